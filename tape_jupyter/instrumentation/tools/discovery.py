"""Which of the user's functions stand behind the tools a model request declares. Only looks.

A tool's name leads to a function through whatever holds it: the namespace, a dict of handlers, a
list of tools, a method of an object, an SDK's tool object. Only functions that the user wrote are
ever returned: taping a library's function would tape everybody who calls it.

What a framework hands to a tool beside the model's arguments. Only looks.

A run's context, its callback managers, its state with the whole history: none of it is what was
asked, much of it is new in every run (ids, times), so none of it is part of a call.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

from tape_jupyter.core.libraries import is_library_class, is_library_file
from tape_jupyter.core.memoised import MEMOISED

MARK = "__tape_tool__"
"""The attribute that a decorator of ours leaves on what it returns."""

_HOLDERS = ("func", "coroutine", "fn", "_func", "_fn", "function", "_run", "_arun")
"""Where tool objects keep the user's function: Anthropic's beta_tool, LangChain's StructuredTool
and BaseTool.
"""

_HISTORY = re.compile(r"_+|_i+|_\d+|_i\d+|_[ido]h|In|Out")
"""Names in a notebook's namespace that hold its past: functions that a re-run cell has replaced
since.
"""
_OF_PAST = frozenset("_IO")

# the longest container, and the farthest attribute of attributes, that is looked into
_WIDEST = 200
_DEEPEST = 3

_PLAIN = frozenset(
    {str, bytes, bytearray, int, float, bool, complex, type(None), type, ModuleType, range}
)
"""Types that are no tool and hold none."""

_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})
"""Types without a name or attributes: not asking for them is most of what a look at a large
namespace saves.
"""

_CONTAINER_TYPES = tuple(_CONTAINERS)
_NAMELESS = _PLAIN | _CONTAINERS
_FINAL = _CONTAINERS | {FunctionType}
"""Types of which there is nothing but themselves to look at: no attributes, and no methods of the
user's.
"""

_T = TypeVar("_T")


def find_functions(
    names: Iterable[str], namespace: Mapping[str, Any]
) -> dict[str, tuple[FunctionType, ...]]:
    """The user's plain functions behind each tool name; a name that leads to none is absent.

    Several, where several hold that name: which of them the program calls cannot be seen from here.
    A method that has the name by its class alone counts only where nothing else goes by it:
    `cart.add` is not the tool `add`.
    """
    requested = set(names)
    by_name: dict[str, list[FunctionType]] = {}
    for name, value in _find_named(namespace, requested):
        functions = _look_safely(unwrap, value)
        if not functions and not _is_tool(value):
            continue
        known = by_name.setdefault(name, [])
        known += [f for f in functions if is_users_function(f, namespace) and f not in known]
    by_name |= _find_methods(namespace, requested - by_name.keys())
    _drop_ambiguous(by_name)
    return {name: tuple(functions) for name, functions in by_name.items() if functions}


def list_search_ids(names: Iterable[str], namespace: Mapping[str, Any]) -> list[int] | None:
    """What a search for these names hangs on, as ids: while they are the same, it finds the same.
    Costs a third.

    None where an object will not say: then nobody can tell. Plain data is left out: messages that
    an agent adds to.
    """
    try:
        return _list_ids(tuple(names), namespace)
    except Exception:  # as in _look_safely
        return None


def _list_ids(names: tuple[str, ...], namespace: Mapping[str, Any]) -> list[int]:
    """Of all that `_find_named` and `_find_methods` look at. Lists and plain loops: it runs at every request
    with tools.
    """
    seen: dict[int, Any] = {}
    known: list[Any] = []
    values = [value for _, value in _yield_current(namespace)]
    for _ in range(_DEEPEST):
        far: list[Any] = []
        for value in values:
            kind = type(value)
            if kind is FunctionType:
                known.append(value)
                continue
            if kind in _CONTAINERS or issubclass(kind, _CONTAINER_TYPES):
                if len(value) <= _WIDEST:
                    items = value.values() if issubclass(kind, dict) else value
                    known += [each for each in items if type(each) not in _NAMELESS]
                if issubclass(kind, dict):
                    known += [
                        each
                        for name in names
                        if dict.__contains__(value, name)
                        for each in _list_entry_values(dict.get(value, name))
                    ]
            else:
                known.append(value)
            if kind not in _CONTAINERS and id(value) not in seen and _is_users_object(value):
                seen[id(value)] = value
                far += _list_attributes(value)
        values = far
    classes = {type(value) for value in known} - _FINAL
    users = [cls for cls in classes if not is_library_class(cls)]
    known += [method for cls in users for name in names for method in _find_defined(cls, name)]
    return [*map(id, known)]


def _list_entry_values(entry: Any) -> list[Any]:
    return [entry, *_list_handlers(entry)] if isinstance(entry, dict) else [entry]


def decorated_names(name: str, namespace: Mapping[str, Any]) -> set[str]:
    """The names on the tape of decorated functions that stand behind a tool name (a dict of
    handlers may rename).
    """
    marks = (_read_attributes(value).get(MARK) for _, value in _find_named(namespace, {name}))
    return {mark.name for mark in marks if mark is not None}


def _is_tool(value: Any) -> bool:
    """Whether it can stand for a tool, if not one to tape: decorated, a library's, an SDK's."""
    return callable(value) or not any(holder in _read_attributes(value) for holder in _HOLDERS)


def _drop_ambiguous(by_name: dict[str, list[FunctionType]]) -> None:
    """A method behind two names: the objects differ, and the call does not say which it was."""
    for functions in by_name.values():
        for function in [f for f in functions if is_method(f)]:
            holders = [other for other in by_name.values() if function in other]
            if len(holders) > 1:
                for holder in holders:
                    holder.remove(function)


def unwrap(value: Any) -> list[FunctionType]:
    """The plain functions inside a callable or tool object, the outermost that are the user's; []
    if there are none.
    """
    functions: list[FunctionType] = []
    _collect_functions(value, functions, 0)
    return functions


def _collect_functions(value: Any, functions: list[FunctionType], depth: int) -> None:
    taped = MARK in _read_attributes(value)
    if depth > _DEEPEST * 2 or value is None or taped or isinstance(value, (type, ModuleType)):
        return
    if isinstance(value, FunctionType) and not (
        is_library_file(value.__code__) and hasattr(value, "__wrapped__")
    ):
        if value not in functions:
            functions.append(value)
        return
    for inner in _yield_inner(value):
        _collect_functions(inner, functions, depth + 1)


def _yield_inner(value: Any) -> Iterator[Any]:
    """What a callable that is no plain function of the user's hands its calls on to."""
    if isinstance(value, (MethodType, staticmethod, classmethod)):
        yield value.__func__
    elif isinstance(value, functools.partial):
        yield value.func
    elif "__wrapped__" in _read_attributes(value):
        yield value.__wrapped__
    elif not isinstance(value, FunctionType):
        yield from _yield_tool_functions(value)


def _yield_tool_functions(tool: Any) -> Iterator[Any]:
    """The function of a tool object: in an attribute of its own, or a method of the user's class."""
    attributes = _read_attributes(tool)
    for holder in _HOLDERS:
        value = attributes.get(holder)
        if value is not None:
            yield value
        elif holder in ("_run", "_arun") and (method := _find_method(tool, holder)):
            yield method
    if method := _find_method(tool, "__call__"):
        yield method


def _find_method(value: Any, name: str) -> FunctionType | None:
    """A method that the user's own class defines, found without running a property."""
    return next(_find_defined(type(value), name), None)


def _find_defined(cls: type, name: str) -> Iterator[FunctionType]:
    method = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    method = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
    method = getattr(method, "__wrapped__", None) if type(method) is MEMOISED else method
    if isinstance(method, FunctionType) and not is_library_file(method.__code__):
        yield method


def _find_named(namespace: Mapping[str, Any], requested: set[str]) -> Iterator[tuple[str, Any]]:
    """(tool name, what goes by it): in the namespace itself, in dicts of handlers, in lists of
    functions and tools.
    """
    values = dict(_yield_current(namespace))
    yield from ((name, values[name]) for name in requested & values.keys())
    for value in _find_reachable(values.values()):
        yield from _look_safely(_find_by_name, value, requested)


def _find_methods(
    namespace: Mapping[str, Any], requested: set[str]
) -> dict[str, list[FunctionType]]:
    """The methods of the user's objects that have these names; none where two classes offer
    different ones.

    A class that was defined anew is no other class: an object of its earlier version may still be
    there.
    """
    if not requested:
        return {}
    offered: dict[str, set[FunctionType]] = {name: set() for name in requested}
    classes: set[type] = set()
    for value in _find_reachable(dict(_yield_current(namespace)).values()):
        classes.update(
            type(each)
            for each in (value, *_look_safely(_list_items, value))
            if _is_users_object(each)
        )
    for cls in classes:
        for name, methods in offered.items():
            methods.update(_look_safely(_find_defined, cls, name))
    return {
        name: list(methods)
        for name, methods in offered.items()
        if len(set(map(_read_place, methods))) == 1
    }


def _read_place(function: FunctionType) -> tuple[str | None, str]:
    return function.__module__, function.__qualname__


def _yield_current(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in list(namespace.items()):
        if (
            type(value) not in _PLAIN
            and isinstance(name, str)
            and not (name[:1] in _OF_PAST and _is_past(name))
        ):
            yield name, value


@functools.lru_cache(maxsize=4096)
def _is_past(name: str) -> bool:
    return _HISTORY.fullmatch(name) is not None


def _find_reachable(values: Iterable[Any]) -> Iterator[Any]:
    """These values, and what is in attributes of the user's objects among them, the near before the
    far.
    """
    seen: set[int] = set()
    for _ in range(_DEEPEST):
        near = {
            id(value): value
            for value in values
            if type(value) not in _PLAIN and id(value) not in seen
        }
        yield from near.values()
        seen |= near.keys()
        values = [
            inner
            for value in near.values()
            if _is_users_object(value)
            for inner in _list_attributes(value)
        ]


def _find_by_name(value: Any, requested: set[str]) -> Iterator[tuple[str, Any]]:
    """What goes by these names: the value, an entry of a dict, an item of a list. Not what is
    inside of those.
    """
    if isinstance(value, dict):
        for name in requested:
            # Not `value[name]`: the program's own dict may fill in what is missing.
            entry = dict.get(value, name)
            yield from ((name, handler) for handler in _list_handlers(entry))
    for each in (value, *_list_items(value)):
        own_name = _read_name(each) if type(each) not in _CONTAINERS else None
        if own_name in requested:
            yield str(own_name), each


def _look_safely(reader: Callable[..., Iterable[_T]], *args: Any) -> list[_T]:
    """What a look at the program's own object gives: nothing when the object objects."""
    try:
        return list(reader(*args))
    except Exception:  # a proxy outside of its request, a lazy loader: whatever theirs raises
        return []


def _list_handlers(entry: Any) -> list[Any]:
    """A handler, or the handlers in its description: {"search": {"function": f, "schema": ...}}."""
    if isinstance(entry, dict):
        return [v for v in _list_items(entry) if callable(v)]
    return [] if type(entry) in _PLAIN else [entry]


def _list_items(value: Any) -> list[Any]:
    """What a short container holds, plain data aside."""
    if not isinstance(value, (dict, list, tuple, set, frozenset)) or len(value) > _WIDEST:
        return []
    return [
        v for v in (value.values() if isinstance(value, dict) else value) if type(v) not in _PLAIN
    ]


def _list_attributes(value: Any) -> list[Any]:
    return _list_items(_read_attributes(value))


def _read_name(value: Any) -> str | None:
    """The name a function or a tool object goes by."""
    kind = type(value)  # not isinstance: it asks a proxy for its `__class__`
    if kind in (FunctionType, MethodType):
        return str(value.__name__)
    if issubclass(kind, functools.partial):
        return _read_name(value.func)
    name = _read_attributes(value).get("name") if not issubclass(kind, (dict, type)) else None
    return name if isinstance(name, str) else None


def _read_attributes(value: Any) -> dict[str, Any]:
    """The attributes of the object itself; none where it will not say."""
    try:
        attributes = value.__dict__
    except Exception:  # as in _look_safely
        return {}
    return attributes if isinstance(attributes, dict) else {}


def _is_users_object(value: Any) -> bool:
    """An instance of a class that the user wrote."""
    if type(value) in _CONTAINERS:
        return False
    return not is_library_class(type(value))


def is_users_function(function: FunctionType, namespace: Mapping[str, Any]) -> bool:
    """Whether the user wrote it: in the notebook, or in a file that is not an installed library's."""
    if function.__module__ == "__main__" or function.__globals__ is namespace:
        return True
    return not function.__code__.co_filename.startswith("<") and not is_library_file(
        function.__code__
    )


def is_method(function: Any) -> bool:
    """Whether the first parameter is the object: it says who is asked, not what."""
    where, _, _name = getattr(function, "__qualname__", "").rpartition(".")
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    bound = isinstance(function, MethodType)
    return (
        bool(where)
        and not where.endswith("<locals>")
        and not bound
        and names[:1] in {("self",), ("cls",)}
    )


_CLASSES = {
    "pydantic_ai": {"RunContext"},
    "agents": {"RunContextWrapper", "ToolContext", "AgentHookContext"},
    "langchain_core": {
        "CallbackManager",
        "AsyncCallbackManager",
        "CallbackManagerForToolRun",
        "AsyncCallbackManagerForToolRun",
        "CallbackManagerForRetrieverRun",
        "AsyncCallbackManagerForRetrieverRun",
    },
    "langgraph": {"ToolRuntime", "Runtime", "BaseStore", "InMemoryStore"},
    "workflows": {"Context"},
    "llama_index": {"Context"},
    "mcp": {"Context"},
    "google": {"ReadonlyContext", "InvocationContext"},
    "agno": {"RunContext", "Agent", "Team"},
    "strands": {"ToolContext", "Agent"},
    "autogen_core": {"CancellationToken"},
    "semantic_kernel": {"Kernel", "FunctionInvocationContext"},
}
"""By library, the classes whose instances (subclasses too) are plumbing."""

_CONFIG = frozenset(
    [
        "tags",
        "metadata",
        "callbacks",
        "run_name",
        "max_concurrency",
        "recursion_limit",
        "configurable",
        "run_id",
    ],
)
"""Keys of LangChain's RunnableConfig, a TypedDict."""


def without_plumbing(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were asked for."""
    return {name: value for name, value in arguments.items() if not is_frameworks(value)}


def is_frameworks(value: Any) -> bool:
    """Whether a framework handed this in on its own account."""
    kind = type(value)
    if kind is dict:
        return _is_config(value) or _is_state(value.get("messages"))
    if kind.__module__ in ("builtins", "__main__"):
        return False
    return any(
        base.__name__ in _CLASSES.get(base.__module__.partition(".")[0], ())
        for base in kind.__mro__
    )


def _is_config(value: dict[Any, Any]) -> bool:
    return "callbacks" in value and _CONFIG.issuperset(value)


def _is_state(messages: Any) -> bool:
    """Whether these are the messages of a LangGraph state."""
    base = getattr(sys.modules.get("langchain_core.messages.base"), "BaseMessage", None)
    return (
        base is not None
        and isinstance(messages, list)
        and any(isinstance(message, base) for message in messages)
    )
