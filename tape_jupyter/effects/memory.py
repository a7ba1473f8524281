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

import functools
import gc
import inspect
import re
import sys
import threading
from abc import ABCMeta
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import EnumMeta
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from tape_jupyter.core.abstract_classes import registered
from tape_jupyter.core.libraries import is_library_class, is_library_file, is_library_path
from tape_jupyter.core.memoised import MEMOISED, Kept
from tape_jupyter.core.open_file import OPEN_FILE
from tape_jupyter.effects import figures, kinds, whole_objects
from tape_jupyter.effects.hidden_state import list_writers
from tape_jupyter.effects.kinds import SCALARS, Kind, kind_of_type
from tape_jupyter.effects.libraries import LibraryState, is_same_look
from tape_jupyter.effects.made_classes import is_kept_hash
from tape_jupyter.effects.paths import (
    SUSPENDED,
    Step,
    format_path,
    handed,
    handed_on,
    step_text,
    suspended_frame,
)
from tape_jupyter.effects.quiet_connections import called_names, functions_in_schema, own_functions
from tape_jupyter.effects.scope import (
    ABSENT,
    NAMES,
    NamesInUse,
    ReachedVariables,
    Scope,
    SlotValues,
    code_names,
)
from tape_jupyter.effects.writing import Writing
from tape_jupyter.encoding.values.user_classes import dict_of
from tape_jupyter.encoding.values.walker import At, shown_type

MOST = 60_000
"""Objects that are looked at; a scope with more in it is said to be too large."""

LARGEST = 32 << 20
"""Bytes of one array, table or database that are written."""

_LARGE_ARRAY = 1 << 20


@dataclass(slots=True)
class ReachedObject:
    """An object within reach, how it is reached, and how it looked. `state` is None for what keeps
    no state.
    """

    value: Any
    above: ReachedObject | None
    step: Step
    kind: Kind | None
    state: Any = None
    placed: bool = True
    """Whether it can be named; what a set holds cannot, unless something else leads to it, too."""

    def path(self) -> str:
        """From a root of the scope. Raises LookupError where it is held by a set, which has no
        places.
        """
        if self.above is None:
            return str(self.step[1])
        return f"{self.above.path()}{step_text(self.step)}"

    def is_below(self, other: ReachedObject) -> bool:
        """Whether the other is on the way to this one."""
        node: ReachedObject | None = self
        while node is not None and node is not other:
            node = node.above
        return node is other


@dataclass(slots=True)
class Changes:
    """What a body changed: as structure, and in words what of it could not be written."""

    written: list[dict[str, Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    place_of: Callable[[Any], str] = lambda _value: ""
    """Where a mutable object stands that was there before, or was made and kept: a path, or a place
    of `written`.
    """


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
        self._aside_of: list[tuple[ReachedObject, _Aside]] = []
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
                if placed and not known.placed and above is not None and not above.is_below(known):
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
        if node.kind in (kinds.CLASS, kinds.FUNCTION):
            self._aside_of.append((node, _ANNOTATIONS))
        if node.kind is kinds.CLASS and isinstance(value, ABCMeta):
            self._aside_of.append((node, _REGISTRY))
        elif node.kind is whole_objects.CONNECTION:
            self._aside_of += [(node, _DATABASE), (node, _CONNECTED)]
            self._connections.append(node)
        elif node.kind is kinds.MAPPING and isinstance(value, defaultdict):
            self._aside_of.append((node, _FACTORY))
        elif whole_objects.describes_tables(value):
            self._aside_of.append((node, _TABLES))
        elif type(value) in kinds.LOCKS and _is_programs_own(node):
            self._aside_of.append((node, _LOCK_HELD))

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
        else:
            inside += [
                (("attribute", name), _read_inner(value, name))
                for name in kinds.also_inside(type(value))
            ]
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
            if kind in SUSPENDED:
                self._reach_suspended_names(value)
            for name in handed_on(kind):
                yield ("attribute", name), _read_link(value, name)

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
            if not name.startswith("__") and (
                type(member) is MEMOISED
                or (users and _has_changeable_parts(member))
                or (not users and (isinstance(member, FunctionType) or handed_on(type(member))))
            ):
                yield ("attribute", name), member

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
        self._called |= code_names(code).called
        self._libraries.import_modules(code_names(code).imports)
        for name in code_names(code).imports:
            module = sys.modules.get(name)
            if isinstance(module, ModuleType) and _is_users_module(module):
                self.reach_module(module)
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
                states[aside.description.format(_describe_node(node))] = aside.read_state(
                    node.value
                )
        if self.words & _RUNS_SQL:
            for node in self._connections:
                states[_SQL_RAN.format(_describe_node(node))] = self._look_at_sql_code(node.value)
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
            self._aside_of.append((node, _watch_calls(node)))

    def _look_at_node(self, node: ReachedObject) -> Any:
        if (
            isinstance(node.kind, whole_objects.WholeKind)
            and _count_bytes(node.value) > _LARGE_ARRAY
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
        return node.kind.copy_state(node.value)

    def files(self) -> list[str]:
        """The files that databases and open files within reach may write to unseen."""
        written = (
            OPEN_FILE,
            getattr(sys.modules.get("sqlite3"), "Connection", OPEN_FILE),
            getattr(sys.modules.get("numpy"), "memmap", OPEN_FILE),
        )
        paths = (
            whole_objects.file_of_value(node.value)
            for node in self._wholes
            if isinstance(node.value, written)
        )
        engines = (
            whole_objects.database_of(node.value)
            for node in self._nodes.values()
            if node.kind is None and type(node.value).__name__ == "Engine"
        )
        return [name for name in (*paths, *engines) if name]

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
        changed = self._find_changed(all_changes.lost)
        function = self._scope.function
        writer = _Writer(self._nodes, {} if function is None else function.__globals__)
        for node, now in changed:
            writer.write(node, now, all_changes, over=id(node) in self._shared)
        all_changes.lost += self._find_changed_asides(others)
        all_changes.lost += figures.describe_changes(self._figures, self._nodes)
        for other in others:
            other._adopt_changes([node for node, _ in changed])  # noqa: SLF001 - its own kind
        all_changes.place_of = writer.place_of
        if self.too_large:
            all_changes.lost.append(
                f"more than {MOST:,} objects can be reached from it: what it changed in them was not checked"
            )
        return all_changes

    def _find_changed(self, lost: list[str]) -> list[tuple[ReachedObject, Any]]:
        """The objects that are otherwise now, and how they are; in `lost`, which cannot be compared."""
        changed: list[tuple[ReachedObject, Any]] = []
        for node in list(self._nodes.values()):
            if node.kind is None:
                continue
            try:
                now = self._look_at_node(node)
                if not node.kind.same(node.state, now):
                    changed.append((node, now))
            except Exception as error:
                why = f"({type(error).__name__}: {error})"
                lost.append(f"{_describe_node(node)} could not be compared {why}"[:300])
        return changed

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
                if any(True for _ in node.kind.inside(theirs.state)):  # such as log records
                    self._unseen.append(
                        f"it changed {_describe_node(node)} itself, and by what it logged or showed"
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


class _Aside(NamedTuple):
    """Of an object within reach, what a recording does not set, and how it is said that a body
    changed it. It is looked at where code within reach has one of the `names`, None: always.

    `exclusive`: only where no other body runs beside, which may change it for a moment.
    """

    description: str
    read_state: Callable[[Any], Any]
    names: frozenset[str] | None = None
    exclusive: bool = False


_REGISTRY = _Aside("it registered a class with {}", lambda value: len(registered(value)))
_DATABASE = _Aside(
    "it gave the database {} a function, and code is not recorded",
    whole_objects.functions_in,
    whole_objects.SQL_CODE,
)
_CONNECTED = _Aside("it changed how the connection {} works", whole_objects.how_connected)
_FACTORY = _Aside(
    "it changed what {} does for a missing key",
    lambda value: value.default_factory,
    frozenset({"default_factory"}),
)
_ANNOTATIONS = _Aside(
    "it changed the annotations of {}",
    kinds.annotations_of,
    frozenset({"__annotations__", "update_wrapper"}),
)
_TABLES = _Aside("it changed which tables or columns {} has", whole_objects.tables_described)
_LOCK_HELD = _Aside(
    "it acquired or released {}", kinds.is_locked, frozenset({"acquire", "release"}), exclusive=True
)


_SQL_RAN = "it may have run a function that {} was given: what such a one changes in memory is not looked at"
_RUNS_SQL = frozenset({
    "execute", "executemany", "executescript", "read_sql", "read_sql_query", "to_sql", "fetchall", "fetchone",
})  # fmt: skip
"""How code that runs SQL names that."""


def _watch_calls(node: ReachedObject) -> _Aside:
    """Of an object that tells nothing: no two looks at it are the same, where a method is called that
    may change it; or one of the library's objects that hold it.
    """
    holders: list[type] = []
    each: ReachedObject | None = node
    while each is not None and (each is node or _is_librarys_object(each.value)):
        if type(each.value).__module__ != "builtins" or each is node:
            holders.append(type(each.value))
        each = each.above
    message = (
        f"it may have changed {{}}: {shown_type(type(node.value))} shows nothing of what it holds"
    )
    return _Aside(message, lambda _value: object(), list_writers(holders))


def _is_programs_own(lock: ReachedObject) -> bool:
    """Whether the program itself keeps it: in an object of a library, others hold it for a moment."""
    above = lock.above
    return (
        above is None
        or type(above.value) in (list, tuple, dict)
        or not kinds.is_librarys(type(above.value))
    )


def _is_cache(value: Any, above: ReachedObject | None) -> bool:
    """Whether it is a weak table in a function that a library made."""
    return (
        issubclass(type(value), kinds.WEAK)
        and above is not None
        and above.above is not None
        and above.step[1] == "__closure__"
        and not kinds.is_users_function(above.above.value)
    )


def _is_cached_view(owner: Any, name: str, value: Any) -> bool:
    """Whether it is the value of a cached property that has nothing of its own: it refers to its
    owner and what that holds (networkx's `graph.nodes`).
    """
    if type(value) in SCALARS or not isinstance(
        inspect.getattr_static(type(owner), name, None), functools.cached_property
    ):
        return False
    namespace = dict_of(owner)
    owners = {
        id(each) for each in (owner, namespace, *namespace.values()) if type(each) not in SCALARS
    }
    parts = [each for each in gc.get_referents(value) if each is not type(value)]
    foreign = [each for each in parts if id(each) not in owners]
    return len(foreign) < len(parts) and all(type(each) in SCALARS for each in foreign)


_CACHED = re.compile(r"_.*(cache|lock|engine|client|pool|loop|thread|executor|logger)")
"""Names under which objects of libraries keep what they make again when it is needed."""


def _is_librarys_object(value: Any) -> bool:
    """Whether a library defines its class; code of a library does not count."""
    return kinds.is_librarys(type(value)) and not isinstance(
        value, (type, FunctionType, ModuleType)
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


def _find_wrapped(function: FunctionType) -> Any:
    """What a library's function is around."""
    return getattr(function, "__wrapped__", None)


def _is_users_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__":
        return False
    made_here = file is None and module.__spec__ is None
    return made_here or (isinstance(file, str) and not is_library_path(file))


def _iterate_results(memoised: Any) -> Iterator[tuple[Step, Any]]:
    """What a memoised function keeps that may change, in its order."""
    kept = whole_objects.look_at_kept(memoised)
    for number, entry in enumerate(kept.entries if isinstance(kept, Kept) else ()):
        if type(entry.result) not in SCALARS:
            yield ("nth", number), entry.result


def _note_lost(changes: Changes, path: str, why: str) -> None:
    changes.lost.append(f"{format_path(path)}: {why}"[:400])


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
    return f"{_describe_node(node)} could not be read ({type(error).__name__}: {error})"[:300]


def _count_bytes(value: Any) -> int:
    if hasattr(value, "estimated_size"):  # of polars
        return int(value.estimated_size())
    size = getattr(value, "nbytes", 0)
    if not isinstance(size, int) and not hasattr(value, "memory_usage"):
        return 0
    if hasattr(value, "memory_usage"):
        used = value.memory_usage(deep=False)
        return int(used.sum() if hasattr(used, "sum") else used)
    return int(size)


def _describe_node(node: ReachedObject) -> str:
    """What a person calls it: `todo`, `self.items`, `count`; `a Person in team.people`."""
    try:
        return format_path(node.path())
    except LookupError:
        above = "" if node.above is None else f" in {_describe_node(node.above)}"
        return f"a {shown_type(type(node.value))}{above}"


# ---- written


class _Writer:
    """Writes changes as structure: one walk for all, so that what is shared stays shared."""

    def __init__(self, nodes: dict[int, ReachedObject], variables: Mapping[str, Any]) -> None:
        self._nodes, self._variables = nodes, variables
        self._walk = Writing(functools.partial(_find_standing_path, nodes))
        self._count = 0

    def place_of(self, value: Any) -> str:
        try:
            standing = _find_standing_path(self._nodes, value) or self._walk.made_place(value)
            return standing or self._walk.places().get(id(value), "")
        except LookupError:
            return ""

    def write(self, node: ReachedObject, now: Any, changes: Changes, *, over: bool = False) -> None:
        """Add the change of one object to what is written, or to what is lost. `over`: a replay puts it
        in the place of what other code does meanwhile.
        """
        try:
            path = node.path()
        except LookupError as why:
            changes.lost.append(f"{_describe_node(node)} was changed: {why}")
            return
        at: At = (None, self._count)
        self._walk.holder = type(node.value) if _is_librarys_object(node.value) else None
        record = self._write_change(node, now, at, path, changes)
        before, behind = self._walk.take_records()
        if record:
            change = {"at": path, **({"over": True} if over else {}), **record}
            changes.written += [*before, change, *behind]
            self._count += 1

    def _write_change(
        self, node: ReachedObject, now: Any, at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        kind = node.kind
        if isinstance(kind, whole_objects.MemoisedKind) and isinstance(now, Kept):
            return self._write_kept(node.state, now, at, path, changes)
        if isinstance(kind, whole_objects.WholeKind):
            return self._write_whole(node, kind, at, path, changes)
        if isinstance(kind, kinds.SequenceKind):
            return self._write_splice(node.state, now, at, path, changes)
        if isinstance(kind, kinds.SetKind):
            return self._write_members(node.state, now, at, path, changes)
        if isinstance(kind, kinds.MappingKind):
            return self._write_keys(node.state, now, at, path, changes)
        return self._write_attributes(node, now, at, path, changes)

    def _attempt_value(
        self, value: Any, at: At, path: str, changes: Changes, *, quiet: bool = False
    ) -> tuple[bool, Any]:
        done, structure = self._walk.attempt(value, at)
        if not done and not quiet:
            _note_lost(changes, path, structure)
        return done, structure

    def _write_whole(
        self,
        node: ReachedObject,
        kind: whole_objects.WholeKind,
        at: At,
        path: str,
        changes: Changes,
    ) -> dict[str, Any]:
        if _count_bytes(node.value) > LARGEST:
            changes.lost.append(
                f"{self._name_object(node, path)} is larger than {LARGEST >> 20} MB: its new content is not recorded"
            )
            return {}
        try:
            now = kind.read(node.value)
        except Exception as why:
            changes.lost.append(f"{self._name_object(node, path)}: {why}"[:400])
            return {}
        done, structure = self._walk.attempt_contents(now, (at, "whole"))
        if not done:
            changes.lost.append(f"{self._name_object(node, path)}: {structure}"[:400])
        return {"whole": structure} if done else {}

    def _name_object(self, node: ReachedObject, path: str) -> str:
        """What a person calls it, with the notebook's own names for it: `fig (ax.figure)`."""
        label = format_path(path)
        names = [name for name, each in list(self._variables.items()) if each is node.value]
        aliases = [name for name in names if name != label and not name.startswith("_")]
        return f"{', '.join(aliases)} ({label})" if aliases else label

    def _write_splice(
        self, before: list[Any], now: list[Any], at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        shorter = min(len(before), len(now))
        head = next((i for i in range(shorter) if before[i] is not now[i]), shorter)
        rest = shorter - head
        tail = next((i for i in range(rest) if before[-1 - i] is not now[-1 - i]), rest)
        middle = now[head : len(now) - tail]
        done, structure = self._attempt_value(middle, (at, "put"), path, changes)
        if done:
            return {"splice": [head, tail], "of": len(before), "put": structure}
        return {}

    def _write_kept(
        self, before: Kept, now: Kept, at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        head = before.count_common(now)
        put = [[list(each.args), each.kwargs, each.result] for each in now.entries[head:]]
        done, structure = self._attempt_value(put, (at, "put"), path, changes)
        calls = [now.hits - before.hits, now.misses - before.misses]
        record = {"kept": calls, "head": head, "of": len(before.entries), "put": structure}
        return record if done else {}

    def _write_keys(
        self, before: dict[Any, Any], now: dict[Any, Any], at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        record: dict[str, Any] = {}
        kept = [key for key in before if key in now]
        added = [key for key in now if key not in before]
        if [*kept, *added] == list(now):
            new = {
                k: v
                for k, v in now.items()
                if k not in before or not kinds.is_same_value(before[k], v)
            }
            removed = [key for key in before if key not in now]
        else:
            new, removed, record["anew"] = now, [], True
        pairs: list[Any] = []
        for key, value in new.items():
            done, pair = self._walk.attempt_item(key, value, ((at, "set"), len(pairs)))
            if done:
                pairs.append(pair)
            else:
                _note_lost(changes, f"{path}[{key!r}]", pair)
        record |= {"set": pairs} if pairs or record else {}
        if removed:
            done, structure = self._attempt_value(removed, (at, "delete"), path, changes)
            record |= {"delete": structure} if done else {}
        return record

    def _write_members(
        self, before: set[Any], now: set[Any], at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for name, members in (("add", now - before), ("discard", before - now)):
            if members:
                ordered = sorted(members, key=_rank_member)
                done, structure = self._walk.attempt_members(ordered, (at, name))
                if done:
                    record[name] = structure
                else:
                    _note_lost(changes, path, structure)
        return record

    def _write_attributes(
        self, node: ReachedObject, now: Any, at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        before: dict[str, Any] = node.state
        is_same = getattr(node.kind, "is_same_part", kinds.is_same_value)
        record: dict[str, Any] = {}
        set_: dict[str, Any] = {}
        for name, value in now.items():
            if value is ABSENT or (name in before and is_same(before[name], value)):
                continue
            if _is_cached_view(node.value, name, value) or is_kept_hash(node.value, name, value):
                continue  # made again when it is asked for
            cached = _is_librarys_object(node.value) and _CACHED.search(name) is not None
            part = f"{path}{step_text(('name' if isinstance(node.value, NAMES) else 'attribute', name))}"
            if not kinds.is_settable(node.value, name):
                changes.lost.append(
                    f"it changed {format_path(part)}, which a recording does not set"
                )
                continue
            done, structure = self._attempt_value(
                value, ((at, "attributes"), name), part, changes, quiet=cached
            )
            if done:
                set_[name] = structure
        if set_:
            record["attributes"] = set_
        removed = [n for n in before if now.get(n, ABSENT) is ABSENT and before[n] is not ABSENT]
        for name in removed:
            if not kinds.is_settable(node.value, name):
                changes.lost.append(
                    f"it removed {format_path(path)}.{name}, which a recording does not do"
                )
        if removed := [name for name in removed if kinds.is_settable(node.value, name)]:
            record["delete"] = removed
        return record


def _find_standing_path(nodes: Mapping[int, ReachedObject], value: Any) -> str | None:
    """The path of an object that was within reach before. Raises LookupError where it has none."""
    node = nodes.get(id(value))
    return node.path() if node is not None and type(value) is not tuple else None


def _rank_member(value: Any) -> tuple[str, str]:
    return type(value).__name__, repr(value)


_LOCK = threading.RLock()


class Bodies:
    """The snapshots of the bodies that run now, of one cell: what one says it changed, no other
    says again, but those that it runs in.
    """

    def __init__(self) -> None:
        self._running: list[Snapshot] = []
        self._names = NamesInUse()
        self.open: list[Any] = []
        """What hears of them, in the order in which they began."""
        self.shown_last: Any = None
        """Whose body, among those that no other runs, showed something last."""

    def begin(self, scope: Scope, around: Sequence[Snapshot] = ()) -> Snapshot:
        """A body is about to run, in those `around` it."""
        with _LOCK:
            snapshot = Snapshot(scope, self._names, self._list_beside(around))
            self._running.append(snapshot)
            return snapshot

    def reach_module(self, snapshot: Snapshot, module: ModuleType) -> None:
        """The body of this snapshot imported a module of the user's, which has just run."""
        with _LOCK:
            snapshot.reach_module(module)
            snapshot.visit_waiting()

    def end(self, snapshot: Snapshot, around: Sequence[Snapshot] = ()) -> Changes:
        """It has ended: what it changed."""
        with _LOCK:
            if snapshot in self._running:
                self._running.remove(snapshot)
            if not self._running:
                self._names = NamesInUse()
            return snapshot.changes(self._list_beside(around))

    @contextmanager
    def act_apart(self, objects: Sequence[Any]) -> Iterator[None]:
        """Inside, code of these objects runs that a replay runs, too: no body says what it changes."""
        with _LOCK:
            snapshot = Snapshot(Scope(None, {"objects": list(objects)}), self._names)
        try:
            yield
        finally:
            with _LOCK, suppress(Exception):  # of the objects' own code
                changed = [node for node, _ in snapshot._find_changed([])]  # noqa: SLF001 - its own
                for each in self._running:
                    each.adopt_others(changed)

    def _list_beside(self, around: Sequence[Snapshot]) -> list[Snapshot]:
        return [each for each in self._running if each not in around]
