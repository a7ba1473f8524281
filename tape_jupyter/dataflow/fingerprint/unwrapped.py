"""Functions of the user's as they are without the tape, which puts code of its own in their place
(instrumentation/tools/decorators.py, instrumentation/tools/wrappers.py): what is tracked, put back
and compared is the user's.
"""

from __future__ import annotations

import types
from typing import Any

from tape_jupyter.instrumentation.patching import original_of

_WRAPPED, _SWAPPED = "__tape_tool__", "__tape_swap__"


def unwrap(function: types.FunctionType) -> Any:
    """What a decorator of ours stands around; the function itself where none does."""
    taped = function.__dict__.get(_WRAPPED)
    return original_of(function) if taped is None else taped.body


def is_decorated(function: types.FunctionType) -> bool:
    """Whether it is what a decorator of ours put around a function of the user's."""
    return _WRAPPED in function.__dict__


def code_of(function: types.FunctionType) -> types.CodeType:
    """The code that the user wrote, also while ours stands in its place."""
    swap = function.__dict__.get(_SWAPPED)
    if swap is not None and function.__code__ is swap.trampoline:
        original: types.CodeType = swap.original
        return original
    return function.__code__


def attributes_of(function: types.FunctionType) -> dict[str, Any]:
    """The attributes that are not ours."""
    attributes = function.__dict__
    if _SWAPPED not in attributes:
        return attributes
    return {name: each for name, each in attributes.items() if name != _SWAPPED}


def put_attributes(function: types.FunctionType, attributes: dict[str, Any]) -> None:
    """Let it have these attributes of the user's, and ours as they are now."""
    current = function.__dict__
    ours = {name: current[name] for name in (_SWAPPED,) if name in current}
    if current != {**attributes, **ours}:
        current.clear()
        current.update(attributes, **ours)
