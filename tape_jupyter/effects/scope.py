"""What the body of a function can reach: its arguments, the variables its code names, what the
process has.

A body may call other functions of the user's: the variables that those name are within its reach as
well. Which they are is read from the code, so that a large namespace costs nothing where a body
does not use it.
"""

from __future__ import annotations

import dis
import os
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from tape_jupyter.core.libraries import is_library_path
from tape_jupyter.effects.quiet_connections import called_names
from tape_jupyter.encoding.values.user_classes import slots_of
from tape_jupyter.errors import CassetteError

WHOLE_NAMESPACE = frozenset({"globals", "vars", "locals", "exec", "eval", "get_ipython"})
"""Builtins through which code may reach any variable."""

_WHOLE_BY = frozenset({"__main__", "modules", "f_globals", "f_locals", "user_ns", "__globals__"})
"""Attributes and modules through which it may."""

_NOT_THE_USERS = re.compile(
    r"__\w*__|_{1,3}|_i{1,3}|_[iod]h|_exit_code|_i?\d+|_VSCODE\w*|In|Out|exit|quit|get_ipython|open"
)
"""Names that IPython keeps in a notebook's namespace."""

_KEPT_OUT = re.compile(
    r"^(PATH|LD_|DYLD_|PYTHON|SSL_|REQUESTS_|CURL_|TAPE_)|PROXY|_URL|KEY|TOKEN(?!IZER)|SECRET|PASSWORD",
    re.IGNORECASE,
)
"""A recording may come from anybody."""

_GLOBAL_CODES = frozenset(
    {"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME"}
)


_STORES = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "DELETE_ATTR"})

_WRITERS = frozenset(
    [
        "fill",
        "sort",
        "put",
        "itemset",
        "resize",
        "partition",
        "setfield",
        "setflags",
        "byteswap",
        "copyto",
        "place",
        "putmask",
        "fill_diagonal",
        "insert_column",
        "replace_column",
        "drop_in_place",
        "scatter",
        "shuffle",
        "insert",
        "pop",
        "update",
        "eval",
        "inplace",
        "out",
        "isetitem",
        "set_flags",
        "setattr",
        "exec",
        "__setitem__",
        "__setattr__",
    ]
)
"""Methods and words with which code writes into an array or a table that it holds; what pandas changes
in place only where it is told to says `inplace`.
"""


OPEN_FOLDER = frozenset({"dir_fd", "src_dir_fd", "dst_dir_fd"})
"""What functions of `os` call the open folder that a path is below. They count as names in the code."""


class CodeNames(NamedTuple):
    """What a code object names: global variables; whether it could write into an array or a table;
    whether it may reach variables that it does not name; attributes that it sets or deletes; all
    names in it that are looked up, those of attributes among them; modules that it imports; what its
    texts call that may be SQL; attributes with the name that each is looked up in ("": it has none, or
    is not known). Where it looks names up by their text (`setattr`), all that its texts could name count.
    """

    variables: frozenset[str]
    writes: bool
    reaches_unnamed: bool
    attributes: frozenset[str]
    identifiers: frozenset[str]
    imports: frozenset[str]
    called: frozenset[str]
    looked_up: frozenset[tuple[str, str]]


@lru_cache(maxsize=4096)
def code_names(code: CodeType) -> CodeNames:
    """Of the code and of the functions defined inside it."""
    variables: set[str] = set()
    attributes: set[str] = set()
    imports: set[str] = set()
    identifiers = {*code.co_names}
    looked_up = {*_list_looked_up(code)}
    texts = {each for each in code.co_consts if isinstance(each, str) and each.isidentifier()}
    if not identifiers.isdisjoint(_BY_TEXT):
        identifiers |= texts
        looked_up |= {("", each) for each in texts}
        if not identifiers.isdisjoint(("import_module", "__import__")):
            imports |= {each for each in code.co_consts if isinstance(each, str)}
        attributes |= set() if identifiers.isdisjoint(_SET_BY_TEXT) else texts
    writes = not _WRITERS.isdisjoint(code.co_names)
    uses_all = not _WHOLE_BY.isdisjoint(code.co_names)
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL_CODES:
            variables.add(instruction.argval)
        elif instruction.opname in ("STORE_ATTR", "DELETE_ATTR"):
            attributes.add(instruction.argval)
        elif instruction.opname == "IMPORT_NAME":
            imports.add(instruction.argval)
        writes = writes or instruction.opname in _STORES or _is_in_place(instruction)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = code_names(constant)
            variables |= inner.variables
            attributes |= inner.attributes
            identifiers |= inner.identifiers
            imports |= inner.imports
            looked_up |= inner.looked_up
            writes, uses_all = writes or inner.writes, uses_all or inner.reaches_unnamed
        elif isinstance(constant, tuple):
            texts = {each for each in constant if isinstance(each, str)}
            writes = writes or not _WRITERS.isdisjoint(texts)
            identifiers |= texts & OPEN_FOLDER
    uses_all = uses_all or not WHOLE_NAMESPACE.isdisjoint(variables)
    return CodeNames(
        frozenset(variables),
        writes or uses_all,
        uses_all,
        frozenset(attributes),
        frozenset(identifiers),
        frozenset(imports),
        _list_called(code),
        frozenset(looked_up),
    )


def _list_looked_up(code: CodeType) -> Iterator[tuple[str, str]]:
    """The attributes that code looks up, each with the name before it; a local name of a module that it
    imports is the module's.
    """
    before, imported = "", ""
    modules: dict[str, str] = {}
    for instruction in dis.get_instructions(code):
        name = instruction.argval if isinstance(instruction.argval, str) else ""
        if instruction.opname in _LOOKS_UP:
            yield modules.get(before, before), name
        if instruction.opname.startswith("STORE_") and imported:
            modules[name] = imported
        imported = name if instruction.opname == "IMPORT_NAME" else ""
        if instruction.opname.startswith("LOAD_"):
            before = name
        elif instruction.opname not in _BETWEEN:
            before = ""


_LOOKS_UP = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_BETWEEN = frozenset({"CACHE", "EXTENDED_ARG", "PUSH_NULL"})
"""Instructions that may stand between a name and its attribute."""


def _list_called(code: CodeType) -> frozenset[str]:
    """What texts of the code call, and those of the functions defined inside it."""
    inner = [code_names(each).called for each in code.co_consts if isinstance(each, CodeType)]
    texts = [called_names(each) for each in code.co_consts if isinstance(each, str)]
    return frozenset().union(*inner, *texts)


_SET_BY_TEXT = frozenset({"setattr", "delattr", "__dict__", "vars", "__setattr__"})
_BY_TEXT = _SET_BY_TEXT | {"getattr", "import_module", "attrgetter", "methodcaller"}
"""Names of what finds others by a text."""


def _is_in_place(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("=")


ABSENT = object()
"""What a name is bound to that is bound to nothing."""


class ReachedVariables:
    """The names of a namespace that code within reach uses; the others are out of reach. `whole`:
    it may use any.
    """

    def __init__(self, namespace: MutableMapping[str, Any]) -> None:
        self.namespace = namespace
        self.names: set[str] = set()
        self.whole = False

    def copy_state(self) -> dict[str, Any]:
        """The values that are there now, ABSENT for a name without one."""
        namespace = self.namespace
        names = self.names | self.users() if self.whole else self.names
        return {name: namespace.get(name, ABSENT) for name in sorted(names)}

    def users(self) -> set[str]:
        """All names that are not IPython's own."""
        return {name for name in list(self.namespace) if not _NOT_THE_USERS.fullmatch(name)}

    def get(self, name: str) -> Any:
        return self.namespace[name]

    def set(self, name: str, value: Any) -> None:
        self.namespace[name] = value

    def delete(self, name: str) -> None:
        self.namespace.pop(name, None)


class ClosureCells:
    """The variables that a function shares with the function around it."""

    def __init__(self, function: FunctionType) -> None:
        self.closure = function.__closure__ or ()
        self.cells: dict[str, CellType] = dict(
            zip(function.__code__.co_freevars, self.closure, strict=False)
        )

    def copy_state(self) -> dict[str, Any]:
        state = {}
        for name, cell in self.cells.items():
            try:
                state[name] = cell.cell_contents
            except ValueError:
                state[name] = ABSENT  # it holds nothing yet
        return state

    def get(self, name: str) -> Any:
        return self.copy_state()[name]

    def set(self, name: str, value: Any) -> None:
        self.cells[name].cell_contents = value

    def delete(self, name: str) -> None:
        del self.cells[name].cell_contents


class SlotValues:
    """The attributes that a container of somebody's own class keeps in slots."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self._slots = slots_of(type(container))

    def copy_state(self) -> dict[str, Any]:
        state = {}
        for name, slot in self._slots.items():
            try:
                state[name] = slot.__get__(self._container)
            except AttributeError:
                state[name] = ABSENT
        return state

    def get(self, name: str) -> Any:
        return self._slots[name].__get__(self._container)

    def set(self, name: str, value: Any) -> None:
        self._slots[name].__set__(self._container, value)

    def delete(self, name: str) -> None:
        self._slots[name].__delete__(self._container)


def is_kept_out(name: str) -> bool:
    """Whether an environment variable leads programs elsewhere or holds a key: no recording sets it."""
    return _KEPT_OUT.search(name) is not None


class Environment:
    """The environment variables; those that lead programs elsewhere or hold keys are nobody's
    effect.
    """

    _seen: tuple[Any, dict[str, Any]] = (None, {})

    def copy_state(self) -> dict[str, Any]:
        # compared as it is: decoding every name costs more than most tools
        raw = getattr(os.environ, "_data", None)
        if raw is None or raw != Environment._seen[0]:
            state = {name: value for name, value in os.environ.items() if not is_kept_out(name)}
            Environment._seen = (dict(raw) if raw is not None else None), state
        return Environment._seen[1]

    def set(self, name: str, value: Any) -> None:
        """Raises CassetteError for a name that no recording may set."""
        if is_kept_out(name) or not isinstance(value, str):
            raise CassetteError(f"the environment variable {name} is not set by a recording")
        os.environ[name] = value

    def delete(self, name: str) -> None:
        os.environ.pop(name, None)


ENVIRONMENT = Environment()
NAMES: tuple[type[Any], ...] = (ReachedVariables, ClosureCells, SlotValues, Environment)


@dataclass(slots=True)
class Scope:
    """What the body of a call can reach. `arguments` are all it was given, by name, its own object
    among them.

    Roots have a name, which begins each path: `variable` (the function's own module), `module
    NAME`, `argument`, `closure`, `environment`.
    """

    function: FunctionType | None
    arguments: Mapping[str, Any]

    far: bool = False
    """Whether a replay does not have the function at hand (a server's tool): then its variables are
    named by its module, as those of other functions are.
    """

    def roots(self) -> Iterator[tuple[str, Any]]:
        yield "argument", dict(self.arguments)
        yield "environment", ENVIRONMENT

    def root(self, name: str) -> Any:
        """The root of that name, in replay. Raises LookupError where there is none."""
        if name == "variable" and self.function is not None:
            return ReachedVariables(self.function.__globals__)
        if name.startswith("module "):
            return ReachedVariables(vars(_require_users_module(name.removeprefix("module "))))
        if name == "closure" and self.function is not None:
            return ClosureCells(self.function)
        return dict(self.roots())[name]

    def root_of(self, namespace: Mapping[str, Any]) -> str:
        """The name of the root that code's variables are in."""
        at_hand = None if self.far else self.function
        is_own = at_hand is not None and namespace is at_hand.__globals__
        return "variable" if is_own else f"module {namespace.get('__name__', '')}"


class NamesInUse:
    """The namespaces and closures within reach of the bodies that run, each once however many of
    them use it.
    """

    def __init__(self) -> None:
        self._variables: dict[int, ReachedVariables] = {}
        self._cells: dict[int, ClosureCells] = {}

    def variables_of(
        self, code: CodeType, namespace: dict[str, Any]
    ) -> tuple[ReachedVariables, set[str]]:
        """The namespace that code looks its variables up in, and the names in it that it names."""
        variables = self._variables.setdefault(id(namespace), ReachedVariables(namespace))
        used = code_names(code)
        names = set(used.variables)
        if used.reaches_unnamed:
            variables.whole = True
            names |= variables.users()
        variables.names |= names
        return variables, names

    def all_of(self, namespace: dict[str, Any]) -> tuple[ReachedVariables, set[str]]:
        """A namespace of which code may reach any variable, and the names in it."""
        variables = self._variables.setdefault(id(namespace), ReachedVariables(namespace))
        variables.whole = True
        variables.names |= variables.users()
        return variables, set(variables.names)

    def cells_of(self, function: FunctionType) -> ClosureCells:
        """The variables of a function's closure."""
        return self._cells.setdefault(id(function.__closure__), ClosureCells(function))


def _require_users_module(name: str) -> ModuleType:
    """A module that the user wrote. Raises LookupError for any other."""
    module = sys.modules[name]
    if name != "__main__" and is_library_path(getattr(module, "__file__", None) or ""):
        raise LookupError(f"{name} is a module of a library")
    return module
