"""What the body of a function changed in its program's memory, found by looking before and after.

Before the body runs, everything within its reach is looked at once (Snapshot). Afterwards the same
objects are looked at again: what differs is written as changes of single objects, each named by a
path from a root of the scope:

    {"at": "variable todo", "splice": [0, 0], "of": 0, "put": ["milk"]}        items of a list
    {"at": "variable ledger", "set": {"milk": ...}, "delete": ["tea"]}          keys of a dict, members of a set
    {"at": "argument self", "attributes": {"count": 2}, "delete": [...]}        attributes, variables, closures
    {"at": "variable frame", "whole": ...}                                      arrays, tables, generators
    {"at": "variable price", "kept": [0, 1], "head": 0, "of": 0, "put": [...]}  what a memoised function keeps
    {"at": "variable todo", "over": true, ...}      a handler of log records, which a replay runs, did its part

What is put may refer to objects that were there before ({"<type>": "standing", "at": path}), so
that aliases stay.
"""

from __future__ import annotations

import builtins
import functools
import gc
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum, EnumMeta
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from tape_jupyter.core.libraries import is_library_class, is_library_file, is_library_path
from tape_jupyter.core.memoised import MEMOISED, Kept
from tape_jupyter.core.open_file import OPEN_FILE
from tape_jupyter.effects import descriptors, figures, kinds, whole_objects
from tape_jupyter.effects.asides import Aside, find_asides, watch_calls
from tape_jupyter.effects.changes import Changes, ChangeWriter, count_bytes
from tape_jupyter.effects.kept_code import find_kept, find_kept_inside
from tape_jupyter.effects.kinds import SCALARS, Kind, kind_of_type
from tape_jupyter.effects.libraries import LibraryState, is_same_look
from tape_jupyter.effects.paths import (
    MODEL_STATE,
    SUSPENDED,
    Step,
    handed,
    handed_on,
    is_model,
    step_text,
    suspended_frame,
)
from tape_jupyter.effects.quiet_connections import (
    called_names,
    functions_in_schema,
    hear_of_files,
    own_functions,
)
from tape_jupyter.effects.reached import ReachedObject, describe_reached
from tape_jupyter.effects.scope import (
    NAMES,
    NamesInUse,
    ReachedVariables,
    Scope,
    SlotValues,
    code_names,
)

MOST = 60_000
"""Objects that are looked at; a scope with more in it is said to be too large."""

_LARGE_ARRAY = 1 << 20

_SQL_RAN = "it may have run a function that {} was given: what such a one changes in memory is not looked at"
_RUNS_SQL = frozenset({
    "execute", "executemany", "executescript", "read_sql", "read_sql_query", "to_sql", "fetchall", "fetchone",
})  # fmt: skip
"""How code that runs SQL names that."""


class Snapshot:
    """What is within a scope, as it looks now. `too_large` where there is more than is looked at.

    `others` are snapshots of bodies that run beside this one. What those did meanwhile is not said
    yet: in replay it will not have happened when this one ends, so objects that they know look as
    they did to them.
    """

    def __init__(
        self, scope: Scope, names: NamesInUse | None = None, others: Sequence[Snapshot] = ()
    ) -> None:
        self._scope, self._names, self._others = scope, names or NamesInUse(), others
        self._nodes: dict[int, ReachedObject] = {}
        self._waiting: list[tuple[Any, ReachedObject | None, Step]] = []
        self._functions: set[int] = set()
        self._wholes: list[ReachedObject] = []
        self._open_namespaces: set[int] = set()  # namespaces of which code may reach any variable
        self._written: set[str] = set()  # names of variables that code uses which writes into some
        self._libraries = LibraryState()
        self._aside_of: list[tuple[ReachedObject, Aside]] = []
        self._unseen: list[str] = []
        self._called: set[str] = set()  # functions that texts of code call, which may be SQL
        self._plain_databases: set[int] = set()  # of these connections, that call no code by name
        self._connections: list[ReachedObject] = []  # of SQLite
        self._adopted: dict[int, Any] = {}  # how objects were before other code changed them
        self._shared: set[int] = set()  # containers that both the body and other code changed
        self.too_large = False
        for name, value in scope.roots():
            self._waiting.append((value, None, ("root", name)))
        if scope.function is not None:
            self._reach_function_names(scope.function)
            if scope.function.__closure__:
                self._waiting.append(
                    (self._names.cells_of(scope.function), None, ("root", "closure"))
                )
        self.visit_waiting()
        for node in self._wholes:
            self._set_first_look(node)
        self._aside = self._look_at_asides()
        self._figures = figures.look_at_open()

    # ------------------------------------------------------------ before

    def visit_waiting(self) -> None:
        """Look at what waits, and at all that is inside of it."""
        nodes, waiting = self._nodes, self._waiting
        while waiting:
            value, above, step = waiting.pop()
            placed = step[0] != "member" and (above is None or above.placed)
            if known := nodes.get(id(value)):
                if placed and above is not None and known.is_better_reached(above, step):
                    known.above, known.step, known.placed = above, step, True
                continue
            if len(nodes) >= MOST:
                self.too_large = True
                waiting.clear()
                return
            kind = None if _is_cache(value, above) else _find_kind(value)
            node = nodes[id(value)] = ReachedObject(value, above, step, kind, placed=placed)
            self._register_aside(node)
            if kind in (None, kinds.WRAPPER, kinds.MEMBER) or isinstance(
                kind, whole_objects.WholeKind
            ):
                waiting += [
                    (inner, node, inner_step) for inner_step, inner in self._iterate_links(value)
                ]
            if isinstance(kind, whole_objects.WholeKind):
                self._wholes.append(node)  # looked at once it is known whether code may write to it
            elif kind is not None:
                self._open_node(node, kind)

    def _register_aside(self, node: ReachedObject) -> None:
        """Of what is looked at in a way of its own."""
        value = node.value
        if node.kind is None:
            self._libraries.name(value)
        self._aside_of += [(node, aside) for aside in find_asides(node)]
        if node.kind is whole_objects.CONNECTION:
            self._connections.append(node)

    def _open_node(self, node: ReachedObject, kind: Kind) -> None:
        try:
            known = self._find_known_state(node.value)
            node.state = kind.copy_state(node.value) if known is None else known
        except Exception as error:  # the object's own code
            node.kind = None
            self._unseen.append(_explain_unseen(node, error))
            return
        self._waiting += [(inner, node, step) for step, inner in self._list_inside(node, kind)]

    def _find_known_state(self, value: Any) -> Any:
        """How an object looked to a body that runs beside this one; None where none knows it."""
        for other in self._others:
            node = other._nodes.get(id(value))  # noqa: SLF001 - its own kind
            if node is not None and node.kind is not None:
                return node.state
        return None

    def _list_inside(self, node: ReachedObject, kind: Kind) -> list[tuple[Step, Any]]:
        value, inside = node.value, list(kind.inside(node.state))
        if kind is kinds.NAMES_KIND:
            return [(("name", name), inner) for (_, name), inner in inside]
        if kind is kinds.FUNCTION:
            if value.__closure__:
                inside.append((("attribute", "__closure__"), self._names.cells_of(value)))
            self._reach_function_names(value)
        elif kind is kinds.CLASS:
            inside.append((("attribute", "__mro__"), value.__mro__))
            inside += self._iterate_methods(value)
            if kinds.is_users_class(type(value)):
                inside.append((("attribute", "__class__"), type(value)))
            if fields := vars(value).get("__pydantic_fields__"):
                inside += _without_place(find_kept_inside(fields))
        else:
            inside += [
                (("attribute", name), _read_inner(value, name))
                for name in kinds.also_inside(type(value))
            ]
            if kinds.is_of_c(type(value)):  # callbacks that none of its attributes shows
                links = handed_on(type(value))
                inside += [(("attribute", name), _read_link(value, name)) for name in links]
                inside += _without_place(find_kept(value))
        inside.reverse()  # the first waits last, and is looked at first
        return inside

    def _iterate_links(self, value: Any) -> Iterator[tuple[Step, Any]]:
        """What an object hands its calls on to that has no state of its own."""
        kind = type(value)
        if kind is MethodType:
            yield ("attribute", "__self__"), value.__self__
            yield ("attribute", "__func__"), value.__func__
        elif kind is functools.partial:
            yield ("attribute", "func"), value.func
            yield ("attribute", "args"), value.args
            yield ("attribute", "keywords"), value.keywords
            yield ("attribute", "__dict__"), vars(value)
        elif kind is FunctionType:
            yield from self._iterate_librarys_links(value)
        elif kind is MEMOISED:
            yield ("attribute", "__wrapped__"), value.__wrapped__
            yield from _iterate_results(value)
        elif not (kind is EnumMeta and is_library_class(value)):
            yield from self._iterate_opaque_links(value, kind)

    def _iterate_opaque_links(self, value: Any, kind: type) -> Iterator[tuple[Step, Any]]:
        if kind in SUSPENDED:
            self._reach_suspended_names(value)
        names = handed_on(kind)
        for name in names:
            yield ("attribute", name), _read_link(value, name)
        if isinstance(value, Enum):
            yield ("attribute", "__class__"), kind
        elif kinds.is_users_enum(value):
            yield from self._iterate_methods(value)
        elif not names:
            yield from _without_place(find_kept(value))

    def _iterate_librarys_links(self, function: FunctionType) -> Iterator[tuple[Step, Any]]:
        """A library's function may be around one of the user's."""
        inner = _find_wrapped(function)
        if isinstance(inner, FunctionType):
            yield ("attribute", "__wrapped__"), inner
        if function.__closure__ and (inner is not None or "<locals>" in function.__qualname__):
            yield ("attribute", "__closure__"), self._names.cells_of(function)

    def _iterate_methods(self, cls: type) -> Iterator[tuple[Step, Any]]:
        """What methods of the class may name is within reach; and what they hold themselves."""
        for name, member in list(vars(cls).items()):
            users = kinds.is_users_function(member)
            for function in kinds.functions_of(member):
                self._reach_function_names(function)
            if name.startswith("__"):
                if users:  # such as the factories of a dataclass
                    yield from _without_place(find_kept_inside(member.__closure__))
            elif (
                type(member) is MEMOISED
                or (users and _has_changeable_parts(member))
                or (not users and (isinstance(member, FunctionType) or handed_on(type(member))))
            ):
                yield ("attribute", name), member
            elif not users and is_library_class(type(member)) and gc.is_tracked(member):
                yield from _without_place(find_kept_inside(member))

    def _reach_function_names(self, function: FunctionType) -> None:
        """The variables that a function's code names are within reach."""
        original = kinds.own_code(function)
        self._reach_code_names(original.__code__, original.__globals__)

    def _reach_suspended_names(self, value: Any) -> None:
        """Those of a generator's code: who reads it on runs that."""
        frame = suspended_frame(value)
        if frame is not None and not is_library_file(frame.f_code):
            self._reach_code_names(frame.f_code, frame.f_globals)

    def _reach_code_names(self, code: CodeType, namespace: dict[str, Any]) -> None:
        if id(code) in self._functions:
            return
        self._functions.add(id(code))
        if code_names(code).writes:
            self._written |= {
                *code_names(code).variables,
                *code.co_freevars,
                *code.co_varnames[: code.co_argcount],
            }
        self._libraries.attributes |= code_names(code).attributes
        self._libraries.words |= code_names(code).identifiers
        self._libraries.look_up(code_names(code).looked_up, namespace)
        self._called |= code_names(code).called
        self._libraries.import_modules(code_names(code).imports)
        for name in code_names(code).imports:
            module = sys.modules.get(name)
            if isinstance(module, ModuleType) and _is_users_module(module):
                self.reach_module(module)
        for function in _find_replaced(code, namespace):
            self._reach_function_names(function)
        variables, named = self._names.variables_of(code, namespace)
        if code_names(code).reaches_unnamed:
            self._open_namespaces.add(id(variables))
            self._written |= named
        self._reach_variables(variables, namespace, named)

    def reach_module(self, module: ModuleType) -> None:
        """What a module of the user's keeps is within reach from now on."""
        variables, named = self._names.all_of(vars(module))
        self._open_namespaces.add(id(variables))
        self._reach_variables(variables, vars(module), named)

    def _reach_variables(
        self, variables: ReachedVariables, namespace: dict[str, Any], named: set[str]
    ) -> None:
        node = self._nodes.get(id(variables))
        if node is None:
            node = ReachedObject(
                variables, None, ("root", self._scope.root_of(namespace)), kinds.NAMES_KIND, {}
            )
            self._nodes[id(variables)] = node
        known, now = self._find_known_state(variables) or {}, variables.copy_state()
        for name in sorted(named - node.state.keys(), reverse=True):
            value = node.state[name] = known.get(name, now[name])
            if type(value) not in SCALARS:
                self._waiting.append((value, node, ("name", name)))

    def _look_at_asides(self, others: Sequence[Snapshot] = ()) -> dict[str, Any]:
        """What cannot be put back, by what is said where it is otherwise afterwards."""
        states = self._libraries.copy_state()
        for node, aside in self._aside_of:
            if aside.exclusive and (self._others or others):
                continue
            if aside.names is None or self.words & aside.names:
                states[aside.description.format(describe_reached(node))] = aside.read_state(
                    node.value
                )
        if self.words & _RUNS_SQL:
            for node in self._connections:
                states[_SQL_RAN.format(describe_reached(node))] = self._look_at_sql_code(node.value)
        return states

    def _look_at_sql_code(self, connection: Any) -> Any:
        """No two looks are the same where SQL may run a function of the program's: nothing leads to it."""
        if id(connection) in self._plain_databases:
            return None
        try:
            functions = own_functions(connection)
            if not functions:
                self._plain_databases.add(id(connection))
                return None
            called = self._called | functions_in_schema(connection)
        except Exception:  # closed, or of another thread
            return None
        for node in self._nodes.values():
            if node.above is None and isinstance(node.state, dict):
                texts = (each for each in node.state.values() if type(each) is str)
                called = called.union(*map(called_names, texts))
        return None if functions.isdisjoint(called) else object()

    @property
    def words(self) -> AbstractSet[str]:
        """All names that code within reach looks up."""
        return self._libraries.words

    @property
    def imports(self) -> AbstractSet[str]:
        """The modules that code within reach imports itself."""
        return self._libraries.imports

    def _find_changed_asides(self, others: Sequence[Snapshot]) -> Iterator[str]:
        now = self._look_at_asides(others)
        for message, before in self._aside.items():
            if not is_same_look(before, now.get(message, before)):
                yield message

    def _set_first_look(self, node: ReachedObject) -> None:
        try:
            node.state = self._look_at_node(node)
        except Exception as error:
            node.kind = None
            self._unseen.append(_explain_unseen(node, error))
        if node.kind is whole_objects.HIDDEN and node.state is None:
            self._aside_of.append((node, watch_calls(node)))

    def _look_at_node(self, node: ReachedObject) -> Any:
        if (
            isinstance(node.kind, whole_objects.WholeKind)
            and count_bytes(node.value) > _LARGE_ARRAY
            and not self._may_write(node)
        ):
            # no code within reach writes into it: its items need not be read
            return getattr(node.value, "shape", None)
        assert node.kind is not None
        if isinstance(node.value, ReachedVariables):
            now = node.value.copy_state()
            if id(node.value) in self._open_namespaces:
                return now
            return {name: now[name] for name in node.state}
        self._follow_model(node)
        return node.kind.copy_state(node.value)

    def _follow_model(self, node: ReachedObject) -> None:
        """A model that validates what is assigned has another container for what is no field of it."""
        kind, name = node.step
        if kind != "attribute" or name not in MODEL_STATE or node.above is None:
            return
        model = node.above.value
        now = _read_inner(model, name) if is_model(type(model)) else node.value
        if type(now) is type(node.value) and id(now) not in self._nodes:
            del self._nodes[id(node.value)]
            node.value = now
            self._nodes[id(now)] = node

    def files(self) -> list[str]:
        """The files that databases and open files within reach may write to unseen."""
        written = (
            OPEN_FILE,
            getattr(sys.modules.get("sqlite3"), "Connection", OPEN_FILE),
            getattr(sys.modules.get("numpy"), "memmap", OPEN_FILE),
        )
        paths = (
            path
            for node in self._wholes
            if isinstance(node.value, written)
            for path in whole_objects.files_of_value(node.value)
        )
        engines = (
            whole_objects.database_of(node.value)
            for node in self._nodes.values()
            if node.kind is None and type(node.value).__name__ == "Engine"
        )
        return [name for name in (*paths, *engines) if name]

    def descriptors(self) -> list[int] | None:
        """Numbers within reach that may be those of open files; None where no code calls functions of
        `os` with such. Those of Python's own open files are not among them.
        """
        names_os = "os" in self.words or "os" in self.imports
        if not names_os or self.words.isdisjoint(descriptors.WORDS):
            return None
        nodes = list(self._nodes.values())
        files = [node.value for node in nodes if isinstance(node.value, OPEN_FILE)]
        own = {number for each in files if (number := _read_number(each)) is not None}
        found: dict[int, None] = {}
        for node in nodes:
            state = node.state.values() if isinstance(node.state, dict) else node.state
            if isinstance(state, Collection) and not isinstance(state, str | bytes):
                found |= {each: None for each in state if type(each) is int}
        return [number for number in found if number not in own]

    def hear_of_files(self) -> None:
        """From now on the audit hooks are told where SQL has a connection within reach open a file."""
        for node in self._connections:
            hear_of_files(node.value)

    def _may_write(self, node: ReachedObject) -> bool:
        """Whether code that writes into arrays or containers names the variable that leads to this
        object.
        """
        while node.above is not None and node.above.above is not None:
            node = node.above
        return node.step[0] == "root" or node.step[1] in self._written

    # ------------------------------------------------------------ after

    def changes(self, others: Sequence[Snapshot] = ()) -> Changes:
        """What is otherwise now. `others` are snapshots of bodies that still run: what is told here
        is not theirs.
        """
        all_changes = Changes(lost=list(self._unseen))
        changed = self.find_changed(all_changes.lost)
        self._write_changes(changed, all_changes)
        all_changes.lost += self._find_changed_asides(others)
        all_changes.lost += figures.describe_changes(self._figures, self._nodes)
        for other in others:
            other._adopt_changes([node for node, _ in changed])  # noqa: SLF001 - its own kind
        if self.too_large:
            all_changes.lost.append(
                f"more than {MOST:,} objects can be reached from it: what it changed in them was not checked"
            )
        return all_changes

    def changes_within(self, theirs: Snapshot, others: Sequence[Snapshot]) -> Changes:
        """What is otherwise now of what another snapshot reaches; it counts as said from then on."""
        early = Changes()
        near = [node for key in theirs._nodes if (node := self._nodes.get(key))]
        changed = self._compare(near, early.lost)
        self._write_changes(changed, early)
        for each in (self, *others):
            each._adopt_changes([node for node, _ in changed])  # noqa: SLF001 - its own kind
        return early

    def _write_changes(self, changed: Sequence[tuple[ReachedObject, Any]], to: Changes) -> None:
        function = self._scope.function
        writer = ChangeWriter(self._nodes, {} if function is None else function.__globals__)
        for node, now in changed:
            writer.write(node, now, to, over=id(node) in self._shared)
        to.place_of = writer.place_of

    def find_changed(self, lost: list[str]) -> list[tuple[ReachedObject, Any]]:
        """The objects that are otherwise now, and how they are; in `lost`, which cannot be compared."""
        return self._compare(list(self._nodes.values()), lost)

    def _compare(
        self, nodes: Sequence[ReachedObject], lost: list[str]
    ) -> list[tuple[ReachedObject, Any]]:
        changed: list[tuple[ReachedObject, Any]] = []
        for node in nodes:
            if node.kind is None:
                continue
            try:
                now = self._look_at_node(node)
                if not node.kind.same(node.state, now):
                    changed.append((node, now))
            except Exception as error:
                why = f"({type(error).__name__}: {error})"
                lost.append(f"{describe_reached(node)} could not be compared {why}"[:300])
        return changed

    def find_place(self, value: Any) -> str:
        """The path of an object that was within reach; "" where none leads to it."""
        node = self._nodes.get(id(value))
        try:
            return "" if node is None else node.path()
        except LookupError:
            return ""

    def find_text(self, text: str) -> str | None:
        """Where the program keeps a text: the path of an attribute, a variable or an item."""
        for node in self._nodes.values():
            for key, each in _list_named_parts(node).items():
                if type(each) is str and each == text and node.placed:
                    return f"{node.path()}{step_text((_choose_step(node), key))}"
        return None

    def adopt_others(self, changed: Sequence[ReachedObject]) -> None:
        """Code that a replay runs, too, changed these just now. Where the body itself had changed one
        before, it says both, over what that code does in replay.
        """
        for theirs in changed:
            node = self._nodes.get(id(theirs.value))
            if node is None or id(node) in self._shared:
                continue
            if self._is_as_seen(theirs):
                self._adopted.setdefault(id(node), node.state)
                self._adopt_changes([theirs])
            elif node.kind is theirs.kind and isinstance(node.kind, kinds.CONTAINER_KINDS):
                node.state = self._adopted.get(id(node), node.state)
                self._shared.add(id(node))
                # objects (log records) would be others than those that this code puts there
                if any(_is_object(item) for _, item in node.kind.inside(theirs.state)):
                    self._unseen.append(
                        f"it changed {describe_reached(node)} itself, and by what it logged or showed"
                    )

    def _is_as_seen(self, theirs: ReachedObject) -> bool:
        """Whether an object was, before others changed it, as this body found it."""
        node = self._nodes.get(id(theirs.value))
        if node is None or node.kind is None or node.kind is not theirs.kind:
            return False
        return isinstance(node.value, ReachedVariables) or node.kind.same(node.state, theirs.state)

    def _adopt_changes(self, changed: list[ReachedObject]) -> None:
        """Another body changed these, and said so: they are as they are now; what is new in them is
        within reach.
        """
        for theirs in changed:
            node = self._nodes.get(id(theirs.value))
            if node is None or node.kind is None:
                continue
            node.state = self._look_at_node(node)
            if not isinstance(node.kind, whole_objects.WholeKind):
                self._waiting += [
                    (inner, node, step) for step, inner in self._list_inside(node, node.kind)
                ]
        self.visit_waiting()


def _read_number(file: Any) -> int | None:
    """The descriptor of an open file."""
    try:
        return int(file.fileno())
    except (OSError, ValueError):
        return None


def _list_named_parts(node: ReachedObject) -> Mapping[Any, Any]:
    """What an object holds by name, also one of a library's whose state is not looked at."""
    if node.kind is not None:
        return node.state if isinstance(node.state, dict) else {}
    code = isinstance(node.value, type | ModuleType | FunctionType)
    return {} if code else getattr(node.value, "__dict__", {})


def _choose_step(node: ReachedObject) -> str:
    if isinstance(node.value, NAMES):
        return "name"
    return "item" if isinstance(node.kind, kinds.MappingKind) else "attribute"


def _is_cache(value: Any, above: ReachedObject | None) -> bool:
    """Whether it is a weak table in a function that a library made."""
    return (
        issubclass(type(value), kinds.WEAK)
        and above is not None
        and above.above is not None
        and above.step[1] == "__closure__"
        and not kinds.is_users_function(above.above.value)
    )


def _find_kind(value: Any) -> Kind | None:
    if isinstance(value, ModuleType):
        return kinds.MODULE if _is_users_module(value) else None
    if isinstance(value, type):
        return kinds.CLASS if kinds.is_users_class(value) else None
    if isinstance(value, FunctionType):
        if kinds.is_users_function(value):
            return kinds.FUNCTION
        if isinstance(_find_wrapped(value), FunctionType):
            return kinds.WRAPPER
        return None
    return kind_of_type(type(value))


def _find_replaced(code: CodeType, namespace: Mapping[str, Any]) -> list[FunctionType]:
    """Functions of the program's that stand where code looks for one of a library's or of Python's."""
    names = code_names(code)
    found = [vars(builtins).get(name) for name in names.variables if name not in namespace]
    for name in names.variables:
        if isinstance(module := namespace.get(name), ModuleType) and not _is_users_module(module):
            found += [vars(module).get(each) for each in names.identifiers]
    return [
        each for each in found if isinstance(each, FunctionType) and kinds.is_users_function(each)
    ]


def _find_wrapped(function: FunctionType) -> Any:
    """What a library's function is around."""
    return getattr(function, "__wrapped__", None)


def _is_users_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__":
        return False
    made_here = file is None and module.__spec__ is None
    return made_here or (isinstance(file, str) and not is_library_path(file))


def _is_object(item: Any) -> bool:
    """Whether it is more than texts, numbers and containers of Python's own."""
    return type(item).__module__ != "builtins"


def _iterate_results(memoised: Any) -> Iterator[tuple[Step, Any]]:
    """What a memoised function keeps that may change, in its order."""
    kept = whole_objects.look_at_kept(memoised)
    for number, entry in enumerate(kept.entries if isinstance(kept, Kept) else ()):
        if type(entry.result) not in SCALARS:
            yield ("nth", number), entry.result


def _without_place(values: Iterable[Any]) -> Iterator[tuple[Step, Any]]:
    """What is within reach, though no path leads to it."""
    for value in values:
        yield ("member", None), value


def _read_inner(holder: Any, name: str) -> Any:
    return SlotValues(holder) if name == "__slots__" else getattr(holder, name, None)


def _read_link(holder: Any, name: str) -> Any:
    try:
        return handed(holder, name)
    except Exception:  # the library's own code: there is none
        return None


def _has_changeable_parts(function: FunctionType) -> bool:
    """Whether a function has something that may change."""
    return bool(
        function.__closure__ or function.__defaults__ or function.__kwdefaults__ or vars(function)
    )


def _explain_unseen(node: ReachedObject, error: Exception) -> str:
    return f"{describe_reached(node)} could not be read ({type(error).__name__}: {error})"[:300]
