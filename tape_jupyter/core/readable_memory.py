"""Whether the memory that a value stands for can be read at all: to read what is not there ends the
process, and no exception says so.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any


def require_readable(array: Any) -> None:
    """Of an array of numpy. Raises BufferError where it lies in a file that was cut short, ValueError
    where the file is closed.
    """
    root = array
    while (base := getattr(root, "base", getattr(root, "obj", None))) is not None:
        root = base
    if isinstance(root, mmap.mmap) and root.size() < len(root):
        raise BufferError("the file that it lies in was cut short")


def _find_buffer(value: Any) -> Any:
    """What a value of ctypes was made of, `from_buffer`: one of several parts has it beside what they keep."""
    kept = value._objects  # noqa: SLF001 - documented, too
    return kept.get("ffffffff") if isinstance(kept, dict) else kept


def owns_memory(value: Any) -> bool:
    """Of a value of ctypes: whether its memory was made for it, or for one that it is a part of, or
    is that of a buffer of Python's. Nobody knows what lies at an address that a program gave.
    """
    ctypes = sys.modules["ctypes"]
    root = value
    while root._b_base_ is not None:
        root = root._b_base_
    if not (root._b_needsfree_ or isinstance(_find_buffer(root), memoryview)):
        return False
    begin, at = ctypes.addressof(root), ctypes.addressof(value)
    # a pointer is the root of what it points to, which lies elsewhere
    return bool(begin <= at and at + ctypes.sizeof(value) <= begin + ctypes.sizeof(root))
