"""What a library's object, or one of C, keeps of the program's: the callbacks that it calls."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
    TracebackType,
)
from typing import Any

from tape_jupyter.core.libraries import is_library_class, is_library_file
from tape_jupyter.core.user_code import is_class_statement

_MOST = 200
"""Objects that are looked at inside of one: callbacks lie near."""

_LEAVES = (
    type, ModuleType, CodeType, FrameType, TracebackType, BuiltinFunctionType, GeneratorType, CoroutineType,
    AsyncGeneratorType,
)  # fmt: skip
"""What leads to everything, or is looked at in a way of its own."""

_CLOSED = frozenset([
    "IPython", "ipykernel", "ipywidgets", "traitlets", "comm", "zmq", "tornado", "jupyter_client", "anywidget",
    "tape_jupyter", "asyncio", "_asyncio", "uvloop", "logging", "contextvars", "_contextvars", "weakref", "_weakref",
    "debugpy", "_pytest", "pluggy", "hypothesis",
])  # fmt: skip
"""Packages whose objects lead to the whole notebook: the shell, its loop, what runs it."""


def find_kept(value: Any) -> Iterator[Any]:
    """The program's functions and objects that an object of a library keeps, however deep in its own;
    none where it is one that leads to the whole notebook.
    """
    if gc.is_tracked(value) and not _is_closed(value):
        if not is_class_statement(type(value)):
            yield from (each for each in gc.get_referents(value) if _fills_container(each))
        yield from find_kept_inside(value)


def _fills_container(value: Any) -> bool:
    """Whether it is a method of a list or the like (`seen.append`), which an object of C's calls."""
    return type(value) is BuiltinFunctionType and type(value.__self__) in _CONTAINERS


_CONTAINERS = frozenset({list, dict, set, deque})


def find_kept_inside(value: Any) -> Iterator[Any]:
    """The same, whatever object it is."""
    seen, todo = {id(value)}, deque([value])
    while todo:
        for each in gc.get_referents(todo.popleft()):
            if id(each) in seen or not gc.is_tracked(each):
                continue
            if len(seen) >= _MOST:
                return
            seen.add(id(each))
            if _is_programs(each):
                yield each
            elif isinstance(each, FunctionType):
                todo.extend(each.__closure__ or ())
            elif not _is_closed(each):
                todo.append(each)


def _is_programs(value: Any) -> bool:
    if isinstance(value, FunctionType):
        return not is_library_file(value.__code__)
    return not isinstance(value, _LEAVES) and not is_library_class(type(value))


def _is_closed(value: Any) -> bool:
    if isinstance(value, _LEAVES):
        return True
    if type(value) is dict:  # the variables of a module
        return "__builtins__" in value or "__spec__" in value
    return type(value).__module__.partition(".")[0] in _CLOSED
