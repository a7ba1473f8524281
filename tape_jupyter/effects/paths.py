"""Paths: how an object is reached from a root of a scope. Written, read and followed; nothing is
run.

variable todo                   the variable `todo` of the function's own module
variable ledger["milk"].price   an attribute of what a dict holds under a key
argument["cart"].items[0]       an argument; `argument["self"]` is a method's own object
variable table{2}               the third value of a dict whose keys are neither text nor numbers, or the third
                                result that a memoised function keeps
closure count                   a variable of the function around it
variable add.__closure__ count  the same, of another function
variable user()                 what a context variable holds
"""

from __future__ import annotations

import gc
import json
import re
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType, MappingProxyType
from typing import Any

from tape_jupyter.core.libraries import is_library_file
from tape_jupyter.core.memoised import MEMOISED, read_kept
from tape_jupyter.effects import iterators
from tape_jupyter.effects.quiet_connections import list_callbacks
from tape_jupyter.effects.scope import ClosureCells, ReachedVariables, Scope, SlotValues
from tape_jupyter.encoding.values.user_classes import state_of
from tape_jupyter.errors import CassetteError

Step = tuple[str, Any]
"""("name", n) of a namespace, ("attribute", n), ("item", key), ("nth", number), ("context", None),
("member", None).
"""

_ROOT = re.compile(r"module [\w.]+|\w+")
_NAME = re.compile(r" (\w+)|\.(\w+)|\{(\d+)\}|(\(\))")
_NAMES_OF: dict[str, Callable[[Any], Any]] = {"__closure__": ClosureCells, "__slots__": SlotValues}
_LINKS = frozenset(
    [
        "__self__",
        "__func__",
        "func",
        "args",
        "keywords",
        "__wrapped__",
        "__defaults__",
        "__kwdefaults__",
        "__mro__",
    ]
)
_JSON = json.JSONDecoder()

_HANDED_ON: dict[tuple[str, str], tuple[str, ...]] = {
    ("workflows", "Context"): ("store",),
    ("pydantic_ai", "RunContext"): ("deps",),
    ("agents", "RunContextWrapper"): ("context",),
    ("langgraph", "Runtime"): ("context", "store", "state"),
    ("langgraph", "ToolRuntime"): ("context", "store", "state"),
    ("google", "ReadonlyContext"): ("state", "actions"),
    ("builtins", "builtin_function_or_method"): ("__self__",),
    ("builtins", "method-wrapper"): ("__self__",),
    ("builtins", "memoryview"): ("obj",),
    ("builtins", "generator"): ("frame_locals", "gi_yieldfrom"),
    ("builtins", "coroutine"): ("frame_locals", "cr_await"),
    ("builtins", "async_generator"): ("frame_locals", "ag_await"),
    ("builtins", "mappingproxy"): ("referent",),
    ("_csv", "writer"): ("referent",),
    ("_pickle", "Pickler"): ("referent",),
    ("_pickle", "Unpickler"): ("referent",),
    ("numpy", "ufunc"): ("referent",),
    ("weakref", "ReferenceType"): ("referent",),
    ("weakref", "WeakMethod"): ("referent",),
    ("builtins", "property"): ("fget", "fset", "fdel"),
    ("builtins", "staticmethod"): ("__func__",),
    ("builtins", "classmethod"): ("__func__",),
    ("functools", "singledispatchmethod"): ("dispatcher", "func"),
    ("functools", "cached_property"): ("func",),
    ("enum", "Enum"): ("_value_",),
    ("enum", "EnumType"): ("_member_map_",),
    ("logging", "Logger"): ("handlers", "filters"),
    ("rich", "Console"): ("_file",),
    ("_io", "BufferedWriter"): ("raw",),
    ("_io", "BufferedRandom"): ("raw",),
    ("sqlite3", "Cursor"): ("connection",),
    ("sqlite3", "Connection"): ("callbacks",),
    ("concurrent", "ThreadPoolExecutor"): ("_initializer", "_initargs"),
    ("multiprocessing", "SynchronizedBase"): ("_obj",),
    ("multiprocessing", "SharedMemory"): ("buf",),
    ("pandas", "NDFrame"): ("attrs",),
    ("PIL", "Image"): ("info",),
    ("matplotlib", "Artist"): ("figure",),
    ("tempfile", "SpooledTemporaryFile"): ("_file",),
    ("tempfile", "_TemporaryFileWrapper"): ("file",),
    ("sqlalchemy", "Engine"): ("referent",),
    ("sqlalchemy", "Connection"): ("engine",),
    ("sqlalchemy", "Session"): ("bind",),
    ("sqlalchemy", "sessionmaker"): ("kw",),
}
"""What an object that keeps no state of the program's itself leads to of it: attributes by package
and class; `referent`: what it holds without saying so; `frame_locals`: the local variables of the
user's code that is suspended in it; `callbacks`: the functions that a database calls.
"""

_FRAMEWORKS = frozenset(
    {
        "langchain_core",
        "langchain",
        "langgraph",
        "llama_index",
        "workflows",
        "pydantic_ai",
        "agents",
    }
)
_WORKERS = (
    "func", "afunc", "coroutine", "bound", "kwargs", "get_session_history", "runnable", "fallbacks",
    "first", "middle", "last", "steps", "steps__", "mapper", "branches", "default", "alternatives",
    "_transform", "_atransform", "nodes", "checkpointer", "store", "_tools_by_name", "tools", "memory",
    "_wrap_tool_call", "_awrap_tool_call", "config",
)  # fmt: skip
"""The attributes in which an object of a framework that runs others (a chain, a graph, an agent) has
them, and what they keep their memory in.
"""

SUSPENDED = (GeneratorType, CoroutineType, AsyncGeneratorType)


def suspended_frame(value: Any) -> FrameType | None:
    """The frame of a generator or a coroutine that has not ended."""
    names = ("gi_frame", "cr_frame", "ag_frame")
    return next((frame for each in names if (frame := getattr(value, each, None))), None)


def _read_frame_locals(value: Any) -> dict[str, Any]:
    frame = suspended_frame(value)
    if frame is None or is_library_file(frame.f_code):
        return {}
    return dict(frame.f_locals)


def _find_referent(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, weakref.ReferenceType):
        return value()
    if kind.__module__ in ("_csv", "_pickle", "numpy"):  # a method of the file; what is called
        return next((each for each in gc.get_referents(value) if callable(each)), None)
    if kind is MappingProxyType:
        return next((each for each in gc.get_referents(value) if isinstance(each, dict)), None)
    pool = getattr(value, "pool", None)  # an engine of SQLAlchemy's: its one connection in memory
    if kind.__name__ != "Engine" or getattr(value.url, "database", "") not in (
        None,
        "",
        ":memory:",
    ):
        return None
    records = [getattr(pool, "connection", None), *getattr(pool, "_all_conns", ())]
    connections = [getattr(each, "dbapi_connection", None) for each in records]
    return next((each for each in connections if each is not None), None)


MODEL_STATE = ("__pydantic_private__", "__pydantic_extra__", "__pydantic_fields_set__")
"""Where a pydantic model keeps what is no field of it, and which fields were set."""


def is_model(kind: type) -> bool:
    return hasattr(kind, "__pydantic_private__") and hasattr(kind, "__pydantic_fields_set__")


def handed_on(kind: type) -> tuple[str, ...]:
    """The attributes through which such an object leads to the program's own."""
    if kind in iterators.TYPES:
        return ("beneath",)
    try:
        return _HANDS_ON[kind]
    except KeyError:
        names = _list_named_attributes(kind)
        if kind.__module__.partition(".")[0] in _FRAMEWORKS:
            names += _WORKERS
        attributes = _HANDS_ON[kind] = tuple(dict.fromkeys(names))
        return attributes


def _list_named_attributes(kind: type) -> tuple[str, ...]:
    bases = ((base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__)
    return tuple(name for base in bases for name in _HANDED_ON.get(base, ()))


def handed(value: Any, name: str) -> Any:
    """What one of those attributes holds."""
    if name == "beneath":
        return iterators.code_beneath(value)
    if name == "frame_locals":
        return _read_frame_locals(value)
    if name == "referent":
        return _find_referent(value)
    if name == "callbacks":
        return list_callbacks(value)
    if name in _WORKERS and name not in _list_named_attributes(type(value)):
        return state_of(value).get(name)  # none that a property makes
    return getattr(value, name)


_HANDS_ON: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def step_text(step: Step) -> str:
    """As it is written. Raises LookupError for a member of a set: it has no place."""
    kind, key = step
    if kind == "item":
        return f"[{json.dumps(key)}]"
    if kind == "member":
        raise LookupError("the members of a set have no place to name them by")
    return {"name": f" {key}", "attribute": f".{key}", "nth": f"{{{key}}}", "context": "()"}[kind]


def format_path(path: str) -> str:
    """A path as a person would say it: `todo`, `self.items`."""
    argument = re.match(r'argument\["(\w+)"\]', path)
    if argument:
        return argument[1] + path[argument.end() :]
    return re.sub(r"^(variable|closure) ", "", path)


def parse_path(path: str) -> tuple[str, list[Step]]:
    """The root's name, and the steps from there. Raises CassetteError for what is no path."""
    root = _ROOT.match(path)
    if root is None:
        raise CassetteError(f"{path[:80]!r} is not the path of an object")
    steps: list[Step] = []
    at = root.end()
    while at < len(path):
        step, at = _parse_step(path, at)
        steps.append(step)
    return root[0], steps


def _parse_step(path: str, at: int) -> tuple[Step, int]:
    if path[at] == "[":
        try:
            key, end = _JSON.raw_decode(path, at + 1)
        except ValueError:
            end = len(path)
        if path[end : end + 1] == "]" and type(key) in (str, int):
            return ("item", key), end + 1
    elif match := _NAME.match(path, at):
        name, attribute, number, context = match.groups()
        step: Step
        if name:
            step = ("name", name)
        elif attribute:
            step = ("attribute", attribute)
        else:
            step = ("nth", int(number or 0))
        return (("context", None) if context else step), match.end()
    raise CassetteError(f"{path[:80]!r} is not the path of an object")


def follow_path(path: str, scope: Scope) -> Any:
    """The object that a path leads to now. Raises LookupError where there is none."""
    root, steps = parse_path(path)
    value = scope.root(root)
    for step in steps:
        value = _follow_step(value, step)
    return value


def _follow_step(value: Any, step: Step) -> Any:  # noqa: PLR0911 - one line a sort of step
    kind, key = step
    if kind == "name" and isinstance(value, (ReachedVariables, ClosureCells, SlotValues)):
        return value.get(key)
    if kind == "attribute":
        return _read_attribute(value, key)
    if kind == "item":
        if isinstance(value, Mapping):
            if isinstance(value, dict):
                return dict.__getitem__(value, key)
            return value[key]
        if isinstance(key, int) and isinstance(value, (list, tuple)) and 0 <= key < len(value):
            return value[key]
        return list(value)[key]
    if kind == "nth":
        return _list_values(value)[key]
    if kind == "context":
        return value.get()
    raise LookupError(key)


def _list_values(mapping: Any) -> list[Any]:
    """In their own order, whatever order a class of the user's shows."""
    if type(mapping) is MEMOISED:
        return [entry.result for entry in read_kept(mapping).entries]
    if isinstance(mapping, OrderedDict):
        return list(OrderedDict.values(mapping))
    return list(dict.values(mapping) if isinstance(mapping, dict) else mapping.values())


def _read_attribute(value: Any, name: str) -> Any:  # noqa: PLR0911 - one line a sort of attribute
    """An attribute that the object itself holds, past any code of its class."""
    if name == "__class__":
        return type(value)
    if name in _NAMES_OF:
        return _NAMES_OF[name](value)
    if name == "__dict__" or (name in MODEL_STATE and is_model(type(value))):
        return object.__getattribute__(value, name)
    if name in handed_on(type(value)):
        return handed(value, name)
    if name in _LINKS:
        return getattr(value, name)
    if name.startswith("__"):
        raise LookupError(name)
    if isinstance(value, type) or type(value).__name__ in ("module", "function"):
        return vars(value)[name]
    state = state_of(value)
    return (state if name in state else state.get("_trait_values", state))[name]
