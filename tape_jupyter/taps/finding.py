"""Taps room: which of the user's functions stand behind the tools a model request declares. Only looks.

A tool's name leads to a function through whatever holds it: the namespace, a dict of handlers, a list of tools, a
method of an object, an SDK's tool object. Only functions that the user wrote are ever returned: taping a library's
function would tape everybody who calls it.
"""

from __future__ import annotations

import functools
import inspect
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

MARK = "__tape_tool__"
"""The attribute that a decorator of ours leaves on what it returns."""

_HOLDERS = ("func", "coroutine", "fn", "_func", "_fn", "function", "_run", "_arun")
"""Where tool objects keep the user's function: Anthropic's beta_tool, LangChain's StructuredTool and BaseTool."""

_HISTORY = re.compile(r"_+|_i+|_\d+|_i\d+|_[ido]h|In|Out")
"""Names in a notebook's namespace that hold its past: functions that a re-run cell has replaced since."""

_WIDEST, _DEEPEST = 1000, 3  # how much of a list, and how far into containers and objects, is looked at


def find_functions(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, tuple[FunctionType, ...]]:
    """The user's plain functions behind each tool name; a name that leads to none is absent.

    Several, where several hold that name: which of them the program calls cannot be seen from here.
    """
    wanted = set(names)
    found: dict[str, list[FunctionType]] = {}
    for name, value in _named(namespace, wanted):
        for function in unwrap(value):
            if is_users(function, namespace) and function not in found.setdefault(name, []):
                found[name].append(function)
    _drop_ambiguous(found)
    return {name: tuple(functions) for name, functions in found.items() if functions}


def decorated_names(name: str, namespace: Mapping[str, Any]) -> set[str]:
    """The names on the tape of decorated functions that stand behind a tool name (a dict of handlers may rename)."""
    marks = (getattr(value, MARK, None) for _, value in _named(namespace, {name}))
    return {mark.name for mark in marks if mark is not None}


def _drop_ambiguous(found: dict[str, list[FunctionType]]) -> None:
    """A method behind two names: the objects differ, and the call does not say which it was."""
    for functions in found.values():
        for function in [f for f in functions if is_method(f)]:
            holders = [other for other in found.values() if function in other]
            if len(holders) > 1:
                for holder in holders:
                    holder.remove(function)


def unwrap(value: Any) -> list[FunctionType]:
    """The plain functions inside a callable or tool object, the outermost that are the user's; [] if there are none."""
    functions: list[FunctionType] = []
    _unwrap(value, functions, 0)
    return functions


def _unwrap(value: Any, functions: list[FunctionType], depth: int) -> None:
    taped = MARK in getattr(value, "__dict__", {})
    if depth > _DEEPEST * 2 or value is None or taped or isinstance(value, (type, ModuleType)):
        return
    if isinstance(value, FunctionType) and not (_is_library_file(value.__code__) and hasattr(value, "__wrapped__")):
        if value not in functions:
            functions.append(value)
        return
    for inner in _inside(value):
        _unwrap(inner, functions, depth + 1)


def _inside(value: Any) -> Iterator[Any]:
    """What a callable that is no plain function of the user's hands its calls on to."""
    if isinstance(value, (MethodType, staticmethod, classmethod)):
        yield value.__func__
    elif isinstance(value, functools.partial):
        yield value.func
    elif "__wrapped__" in getattr(value, "__dict__", {}):
        yield value.__wrapped__
    elif not isinstance(value, FunctionType):
        yield from _held(value)


def _held(tool: Any) -> Iterator[Any]:
    """The function of a tool object: in an attribute of its own, or a method of the user's class."""
    own = getattr(tool, "__dict__", {})
    for holder in _HOLDERS:
        value = own.get(holder)
        if value is not None:
            yield value
        elif holder in ("_run", "_arun") and (method := _method(tool, holder)):
            yield method
    if method := _method(tool, "__call__"):
        yield method


def _method(value: Any, name: str) -> FunctionType | None:
    """A method that the user's own class defines, found without running a property."""
    method = inspect.getattr_static(type(value), name, None)
    method = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
    return method if isinstance(method, FunctionType) and not _is_library_file(method.__code__) else None


def _named(namespace: Mapping[str, Any], wanted: set[str]) -> Iterator[tuple[str, Any]]:
    """(tool name, what goes by it) for everything in the namespace that goes by one of these names."""
    for name, value in list(namespace.items()):
        if not isinstance(name, str) or _HISTORY.fullmatch(name) or isinstance(value, ModuleType):
            continue
        if name in wanted:
            yield name, value
        yield from _within(value, wanted, 0, set())


def _within(value: Any, wanted: set[str], depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if depth > _DEEPEST or id(value) in seen or isinstance(value, (str, bytes, int, float, type, ModuleType)):
        return
    seen.add(id(value))
    if (own_name := _own_name(value)) in wanted:
        yield str(own_name), value
    if isinstance(value, dict):
        for name in wanted & value.keys():
            yield from ((name, entry) for entry in _entries(value[name]))
    for inner in _contents(value):
        yield from _within(inner, wanted, depth + 1, seen)
    if _is_users_object(value):
        for name in wanted:
            if method := _method(value, name):
                yield name, method
        for inner in list(vars(value).values()):
            yield from _within(inner, wanted, depth + 1, seen)


def _entries(entry: Any) -> list[Any]:
    """A handler, or the handlers in its description: {"search": {"function": f, "schema": ...}}."""
    return [v for v in entry.values() if callable(v)] if isinstance(entry, dict) else [entry]


def _contents(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) and len(value) <= _WIDEST else []


def _own_name(value: Any) -> str | None:
    """The name a function or a tool object goes by."""
    if isinstance(value, (FunctionType, MethodType)):
        return value.__name__
    if isinstance(value, functools.partial):
        return _own_name(value.func)
    name = getattr(value, "__dict__", {}).get("name") if not isinstance(value, dict) else None
    return name if isinstance(name, str) else None


def _is_users_object(value: Any) -> bool:
    """An instance of a class that the user wrote, with attributes to look at."""
    module = sys.modules.get(type(value).__module__)
    if type(value).__module__ == "builtins" or not hasattr(value, "__dict__"):
        return False
    file = getattr(module, "__file__", None)
    return type(value).__module__ == "__main__" or (file is not None and not _is_library(file))


def is_users(function: FunctionType, namespace: Mapping[str, Any]) -> bool:
    """Whether the user wrote it: in the notebook, or in a file that is not an installed library's."""
    if function.__module__ == "__main__" or function.__globals__ is namespace:
        return True
    return not function.__code__.co_filename.startswith("<") and not _is_library_file(function.__code__)


def is_method(function: Any) -> bool:
    """Whether the first parameter is the object: it says who is asked, not what."""
    where, _, _name = getattr(function, "__qualname__", "").rpartition(".")
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    bound = isinstance(function, MethodType)
    return bool(where) and not where.endswith("<locals>") and not bound and names[:1] in {("self",), ("cls",)}


def _is_library_file(code: Any) -> bool:
    return _is_library(code.co_filename)


@functools.cache
def _is_library(file: str) -> bool:
    """The standard library, an installed package, or this package."""
    path = Path(file)
    return any(path.is_relative_to(folder) for folder in _library_folders())


@functools.cache
def _library_folders() -> tuple[Path, ...]:
    paths = {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(Path(p) for p in {*paths, *site.getsitepackages(), site.getusersitepackages(), _house()})


def _house() -> str:
    return str(Path(__file__).parent.parent)
