"""What a use of a value may do to it, also where it did nothing this time: `seen.add(x)` of what is
there already changes nothing, but would with another reply. Pure: code is read, not run.
"""

from __future__ import annotations

import dis
import logging
import types
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tape_jupyter.core.user_code import bag, is_class_of_users, is_users, root_module
from tape_jupyter.dataflow.fingerprint.unwrapped import code_of
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.dataflow.static.names import all_nested
from tape_jupyter.dataflow.static.uses import Touch

MUTATORS = bag(
    "append extend insert remove pop clear sort reverse update setdefault popitem add discard appendleft popleft "
    "extendleft rotate difference_update intersection_update symmetric_difference_update subtract move_to_end "
    "write writelines writerow writerows put put_nowait get_nowait send throw close fill resize itemset partition "
    "setflags setfield truncate seek read readline readlines set reset drop_duplicates_ cache_clear register "
    "add_done_callback set_result set_exception __setitem__ __setattr__ __delitem__ execute executemany "
    "executescript commit rollback fetchone fetchmany fetchall add_ mul_ sub_ div_ copy_ zero_ fill_ step "
    "backward load_state_dict train eval"
)
"""Methods that change what they are called on, of builtin types, queues, files, connections,
arrays, tensors.
"""

CHANGING = bag(
    "next anext setattr delattr heappush heappop heapify heapreplace heappushpop shuffle insort insort_left "
    "insort_right copyto put place putmask fill_diagonal setitem delitem iadd iconcat dump exec eval"
)
"""Functions that change what they are handed."""

_INERT = (
    type(None), bool, int, float, complex, str, bytes, tuple, frozenset, range, types.ModuleType,
    types.BuiltinFunctionType,
)  # fmt: skip
_FIXED = bag("pathlib datetime decimal fractions re uuid zoneinfo ipaddress")
"""Modules whose values never change."""
_DRAWN_ON = bag("matplotlib mpl_toolkits")
"""Packages whose objects nearly every method changes, and whoever is handed one draws on it."""
_LOOKERS = bag(
    "print display len type isinstance id repr str hasattr close list tuple enumerate zip"
)
_LEVELS = bag("debug info warning error critical")
_BOXES = (list, dict, set, deque, bytearray)
_STORES = bag(
    "STORE_ATTR STORE_SUBSCR STORE_SLICE DELETE_ATTR DELETE_SUBSCR STORE_DEREF STORE_GLOBAL"
)


@lru_cache(4096)
def code_changes(code: types.CodeType) -> bool:
    """Whether a function's code may change anything but its own new locals."""
    for each in (code, *all_nested(code)):
        if MUTATORS.intersection(each.co_names) or CHANGING.intersection(each.co_names):
            return True
        if any(op.opname in _STORES for op in dis.get_instructions(each)):
            return True
    return False


def may_change(touch: Touch, value: Any, argument_of: Any = None) -> bool:
    """Whether this use may change `value`; `argument_of` is the function that it is handed to,
    where that is known.
    """
    if type(value) in _INERT or (
        not isinstance(value, type) and root_module(type(value)) in _FIXED
    ):
        return False
    if touch.how in ("item", "attr", "aug"):
        return True
    if isinstance(value, type) and root_module(value) in _FIXED:
        return False
    if touch.how == "next":
        return not isinstance(value, (*_BOXES, type)) and hasattr(type(value), "__next__")
    if touch.how == "argument":
        return _may_change_argument(touch, argument_of, value)
    return _may_change_receiver(touch, value)


def _may_change_receiver(touch: Touch, value: Any) -> bool:
    if isinstance(value, _BOXES) and type(value).__module__ in ("builtins", "collections"):
        return touch.what in MUTATORS
    if isinstance(value, types.FunctionType):
        return touch.what == "__call__" and keeps_state(value) and _may_change_anything(value)
    if isinstance(value, types.MethodType):
        return touch.what == "__call__" and _may_change_anything(value.__func__)
    kind = value if isinstance(value, type) else type(value)
    if is_class_of_users(kind):
        return any(code_changes(code) for code in _find_method_codes(kind, touch.what))
    return _may_change_by_package(touch, value, root_module(kind))


def _may_change_by_package(touch: Touch, value: Any, package: str) -> bool:
    if package in ("pandas", "numpy"):
        return touch.inplace or touch.what in MUTATORS
    if package in _DRAWN_ON:
        return not touch.what.startswith("get_")
    return touch.what in MUTATORS or (not touch.kept and not _is_silent_log(touch, value))


def _is_silent_log(touch: Touch, value: Any) -> bool:
    """log.debug(...) below the level that is set."""
    if not isinstance(value, logging.Logger) or touch.what not in _LEVELS:
        return False
    level: int = logging.getLevelName(touch.what.upper())
    return bool(value.manager.disable >= level or value.getEffectiveLevel() > level)


def _may_change_argument(touch: Touch, function: Any, value: Any) -> bool:
    name = touch.what.rpartition(".")[2]
    if root_module(type(value)) in _DRAWN_ON:
        return name not in _LOOKERS
    if isinstance(function, types.MethodType):
        function = function.__func__
    if isinstance(function, types.FunctionType) and is_users(function.__module__ or ""):
        return _may_change_anything(function)
    return name in CHANGING or touch.inplace


def keeps_state(function: types.FunctionType) -> bool:
    """Whether a function holds values that outlast its call."""
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return bool(function.__closure__ or function.__dict__) or any(
        type(each) not in _INERT for each in defaults
    )


def _may_change_anything(function: Any) -> bool:
    return any(code_changes(code) for code in _find_codes(function, set()))


def _find_codes(function: Any, seen: set[int]) -> Iterator[types.CodeType]:
    """Of a function of the user's and of those that it calls by name."""
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, types.FunctionType) or identity(function) in seen:
        return
    seen.add(identity(function))
    yield code_of(function)
    for cell in function.__closure__ or ():
        try:
            yield from _find_codes(cell.cell_contents, seen)
        except ValueError:
            continue
    for name in code_of(function).co_names:
        inner = function.__globals__.get(name)
        if isinstance(inner, types.FunctionType) and is_users(inner.__module__ or ""):
            yield from _find_codes(inner, seen)


def _find_method_codes(kind: type, name: str) -> Iterator[types.CodeType]:
    """Code that a call of a method runs: its own, and that of the methods it names."""
    todo, done = [name], set()
    while todo:
        each = todo.pop()
        if each in done:
            continue
        done.add(each)
        for base in kind.__mro__:
            method = base.__dict__.get(each)
            method = getattr(method, "__func__", None) or getattr(method, "fget", None) or method
            if isinstance(method, types.FunctionType):
                yield from _find_codes(method, set())
                todo.extend(code_of(method).co_names)
                break
