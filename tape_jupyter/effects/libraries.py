"""What stands in modules and classes of libraries that code within reach may change: no recording puts
it back, so that it is named.

Which that is follows from the names in the code, so that a tool which sets nothing there costs
nothing: attributes that it sets; tables and lists of a module that it names; and where it calls a
function that sets something by its name (`mimetypes.add_type`), all that the function's own module
keeps.
"""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from tape_jupyter.core.abstract_classes import registered
from tape_jupyter.core.libraries import is_library_class, is_library_path
from tape_jupyter.effects.hidden_state import hides_state, read_state
from tape_jupyter.effects.scope import ABSENT

_SETTER = re.compile(
    r"(un|de|re)?(set|register|install|add|clear|enable|disable|remove|append|insert|switch|activate"
    r"|define|configure|capture|textdomain)"
)
"""How functions are called that set something in their module."""

_ELSEWHERE = frozenset([
    ("os", "environ"), ("os", "environb"), ("sys", "modules"), ("sys", "path"), ("sys", "meta_path"),
    ("sys", "path_hooks"), ("sys", "path_importer_cache"), ("warnings", "filters"),
    ("copyreg", "dispatch_table"), ("random", "_inst"),
    ("logging", "_levelToName"), ("logging", "_nameToLevel"), ("logging", "_loggerClass"),
    ("logging", "_handlers"), ("logging", "_handlerList"), ("logging", "root"),
    ("calendar", "c"), ("pandas", "options"), ("pandas._config.config", "_global_config"), ("matplotlib", "rcParams"),
    ("mimetypes", "_db"), ("mimetypes", "types_map"), ("mimetypes", "common_types"), ("mimetypes", "suffix_map"),
    ("mimetypes", "encodings_map"), ("decimal", "DefaultContext"),
    ("asyncio.events", "_event_loop_policy"), ("multiprocessing.context", "_default_context"),
])  # fmt: skip
"""What is looked at, or left out, by others (tool_settings.py): (module, name)."""

_CACHE = re.compile(r"cache|^__|^inited$|_lock$|^_filters_version$|^_REPL_DISPLAYHOOK$")
"""Names of what a library keeps for itself."""

_FOR_ONE_CALL = frozenset({"already_repring"})
"""What the methods that attrs writes into a class set, and empty before they end."""

_STREAMS = frozenset({"_io", "io", "ipykernel", "IPython", "colorama", "zmq", "traitlets"})
_CONTAINERS = (list, tuple, set, dict, deque)
_CHANGEABLE = (list, set, dict, deque)
_DEEPEST = 4
_MOST = 5_000
"""Items of a table of a library's that are compared."""


class LibraryState:
    """The libraries that code within reach names, and how it names them. `words` are all names that
    the code looks up, `attributes` those that it sets.
    """

    def __init__(self) -> None:
        self._named: dict[str, ModuleType | type] = {}
        self._setters: list[Any] = []
        self._untold: set[str] = set()
        self.words: set[str] = set()
        self.attributes: set[str] = set()
        self.imports: set[str] = set()
        """All modules that the code imports itself."""

    def name(self, value: Any) -> None:
        """A variable of the code's is bound to this."""
        if _is_function(value) and value.__name__ in _UNTOLD_NAMES:
            self._untold.add(_full_name(value))
        if isinstance(value, type):
            self._named[f"{value.__module__}.{value.__name__}"] = value
        elif isinstance(value, ModuleType):
            self._named[value.__name__] = value
            self.words.add(value.__name__.rpartition(".")[2])  # whatever it is called here
        elif type(value) is BuiltinFunctionType and value.__module__ in _OS:
            self.words |= {"os", value.__name__}  # the same
        elif _is_function(value) and _SETTER.match(name := value.__name__):
            module = sys.modules.get(value.__module__ or "")
            if module is not None and vars(module).get(name) is value:
                self._setters.append(value)
                self.words |= {name, module.__name__.strip("_")}  # the same

    def import_modules(self, names: AbstractSet[str]) -> None:
        """The code imports these itself."""
        self.imports |= names
        for name in names:
            module = sys.modules.get(name)
            if module is not None and is_library_path(getattr(module, "__file__", None) or "<C>"):
                self._named[name] = module

    def look_up(self, pairs: Iterable[tuple[str, str]], namespace: Mapping[str, Any]) -> None:
        """The code looks up these attributes, each in what a name stands for."""
        for owner, attribute in pairs:
            if attribute not in _UNTOLD_NAMES:
                continue
            value = namespace.get(owner)
            module = value.__name__ if isinstance(value, ModuleType) else owner
            self._untold.add(f"{module}.{attribute}")

    def copy_state(self) -> dict[str, Any]:
        """How it is now, by what is said where it is otherwise afterwards."""
        states: dict[str, Any] = {}
        functions = list(self._setters)
        elsewhere = _find_elsewhere()
        for owner, library in self._list_libraries():
            namespace = vars(library)
            if isinstance(library, type):
                states |= self._look_at_class(owner, library)
                continue
            states |= self._look_at_attributes(owner, namespace)
            for part in self.words & namespace.keys():
                value = namespace[part]
                if isinstance(value, type):
                    states |= self._look_at_class(f"{owner}.{part}", value)
                elif _is_function(value):
                    functions += [value] if _SETTER.match(part) else []
                elif id(value) not in elsewhere:
                    states |= self._look_at_part(f"{owner}.{part}", value)
        for function in functions:
            states |= _look_at_keeper(function, elsewhere)
        return {
            **{f"it set {name}, which belongs to a library": each for name, each in states.items()},
            **{_MAY_HAVE_SET.format(name): object() for name in self._list_untold()},
        }

    def _list_untold(self) -> list[str]:
        """The functions that the code names which set what nothing tells: no two looks are the same."""
        unnamed = {each for each in self._untold if each.startswith(".")}
        if unnamed:  # in what has no name: any of those modules may be meant that the code names
            named = [name for name, each in self._list_libraries() if isinstance(each, ModuleType)]
            self._untold |= {f"{module}{each}" for module in named for each in unnamed}
        return sorted(self._untold & _UNTOLD)

    def _list_libraries(self) -> Iterator[tuple[str, ModuleType | type]]:
        """Those that code names, and the modules in them that it names."""
        waiting, seen = list(self._named.items()), set()
        for name, library in waiting:
            if id(library) in seen:
                continue
            seen.add(id(library))
            yield name, library
            if isinstance(library, ModuleType):
                waiting += [
                    (part.__name__, part)
                    for identifier in self.words & vars(library).keys()
                    if isinstance(part := vars(library)[identifier], ModuleType)
                ]

    def _look_at_attributes(self, owner: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
        names = self.attributes - _FOR_ONE_CALL
        return {f"{owner}.{name}": namespace.get(name, ABSENT) for name in names}

    def _look_at_class(self, owner: str, library: type) -> dict[str, Any]:
        """Of a class of a library's that the code names: what it sets there; tables that it names; where it
        calls a method that sets something, all of them; and what is registered with an abstract one.
        """
        if library.__name__ not in self.words or not is_library_class(library):
            return {}
        states = self._look_at_attributes(owner, vars(library))
        sets = any(_SETTER.match(word) and hasattr(library, word) for word in self.words)
        for base in library.__mro__[-2::-1]:
            states |= {
                f"{owner}.{name}": take_look(value, 2)
                for name, value in vars(base).items()
                if isinstance(value, _CHANGEABLE) and (sets or name in self.words)
                if not _CACHE.search(name)
            }
        if isinstance(library, ABCMeta) and "register" in self.words:
            states[f"{owner} (register)"] = len(registered(library))
        return states

    def _look_at_part(self, name: str, value: Any) -> dict[str, Any]:
        """Of a table, or of an object that stands in a module."""
        if isinstance(value, _CONTAINERS):
            return {name: take_look(value, 1)}
        if hides_state(type(value)):
            return {name: read_state(value)}
        if not hasattr(value, "__dict__") or type(value).__module__.partition(".")[0] in _STREAMS:
            return {}
        states = self._look_at_attributes(name, vars(value))
        if any(
            _SETTER.match(attribute) and hasattr(type(value), attribute) for attribute in self.words
        ):
            states[name] = take_look(value, _DEEPEST)
        return states


_MAY_HAVE_SET = "it may have called {}: nothing tells what that sets"
_UNTOLD = frozenset([
    "codecs.register", "codecs.unregister", "codecs.register_error", "os.putenv", "os.unsetenv", "os.register_at_fork",
    "faulthandler.register", "faulthandler.unregister", "faulthandler.dump_traceback_later", "signal.siginterrupt",
])  # fmt: skip
"""Functions that set something in C, where nobody can look at it."""


_OS = ("posix", "nt")
"""Where the functions of `os` are at home."""


_UNTOLD_NAMES = frozenset(each.rpartition(".")[2] for each in _UNTOLD)


def _full_name(function: Any) -> str:
    module = str(getattr(function, "__module__", "")).strip("_")
    return f"{'os' if module in _OS else module}.{function.__name__}"


def _is_function(value: Any) -> bool:
    return isinstance(value, FunctionType | BuiltinFunctionType | MethodType)


def _find_elsewhere() -> set[int]:
    """Of those objects that are imported, under whatever name: the `id`."""
    return {
        id(vars(sys.modules[module]).get(name))
        for module, name in _ELSEWHERE
        if module in sys.modules
    } - {id(None)}


def _look_at_keeper(function: Any, elsewhere: AbstractSet[int]) -> dict[str, Any]:
    """What a function that sets something may set: all that its module keeps, or its object. What C
    keeps is seen only where that is a table of Python's.
    """
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if isinstance(function, MethodType):
        owner = function.__self__
        kept = {} if isinstance(owner, type | ModuleType) else {type(owner).__name__: owner}
    elif module is None or (
        isinstance(function, FunctionType) and not is_library_path(function.__code__.co_filename)
    ):
        return {}
    elif isinstance(function, FunctionType):
        kept = {
            name: each for name, each in vars(module).items() if not isinstance(each, ModuleType)
        }
    else:  # `sqlite3` is what keeps the tables of `_sqlite3`
        of_c, _, python = module.__name__.partition("_")
        module = sys.modules.get(python)
        if of_c or module is None:
            return {}
        kept = {key: each for key, each in vars(module).items() if type(each) is dict}
    owner_name = module.__name__ if module is not None else ""
    return {
        f"{owner_name}.{name}": take_look(each, _DEEPEST)
        for name, each in kept.items()
        if not _CACHE.search(name) and id(each) not in elsewhere
    }


def take_look(value: Any, depth: int) -> Any:
    """What it holds, so deep: later changes do not touch that. `is_same_look` compares two."""
    kind = type(value)
    if depth == 0 or isinstance(value, type | ModuleType) or _is_function(value):
        return value
    if isinstance(value, _CONTAINERS):
        return kind, len(value) if len(value) > _MOST else _look_inside(value, depth - 1)
    if hasattr(value, "__dict__") and is_library_class(kind):
        return value, [(name, take_look(each, depth - 1)) for name, each in vars(value).items()]
    return value


def _look_inside(container: Any, depth: int) -> Any:
    if isinstance(container, set):
        return {*set.__iter__(container)}
    if isinstance(container, dict):
        return [(key, take_look(each, depth)) for key, each in list(dict.items(container))]
    return [take_look(each, depth) for each in list(container)]


def is_same_look(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) in (tuple, list):
        return len(one) == len(other) and all(map(is_same_look, one, other))
    return type(one) in _COMPARED and bool(one == other)


_COMPARED = frozenset({str, bytes, int, float, bool, complex, set})
