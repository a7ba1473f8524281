"""The clock that SQLite reads in C: for `CURRENT_TIMESTAMP`, `datetime('now')`, `unixepoch()` and all
its like it asks its layer over the operating system (https://sqlite.org/vfs.html), and that asks us.
What reads is the code that runs the SQL.

Nothing of a connection is changed: whatever SQL, schema and pragmas there are mean what they mean.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

from tape_jupyter.core.real_clock import epoch_ns
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.instrumentation.determinism.clock_callers import read_clock
from tape_jupyter.instrumentation.patching import undoing

_EPOCH = 210_866_760_000_000
"""Milliseconds from the day that SQLite counts from to 1970."""
_NS = 10**6

_CurrentTime = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))


class _Layer(ctypes.Structure):
    """`sqlite3_vfs`, as far as it is looked at."""


_Layer._fields_ = [
    ("version", ctypes.c_int), ("file_size", ctypes.c_int), ("longest_path", ctypes.c_int),
    ("next", ctypes.POINTER(_Layer)), ("name", ctypes.c_char_p), ("data", ctypes.c_void_p),
    ("others", ctypes.c_void_p * 12),
    ("current_time", ctypes.c_void_p),
]  # fmt: skip


def hold_clock() -> Callable[[], None] | None:
    """From now on SQLite asks us for the time. Returns the undo; None where it cannot be asked to."""
    layers = [each for each in _find_layers() if each.version >= 2 and each.current_time]
    if not layers or not _tells_time(layers[0]):
        return None
    undo = undoing(*map(_hold, layers))
    atexit.register(undo)  # C may ask once more when Python is gone
    return undo


def _hold(layer: Any) -> Callable[[], None]:
    before, ours = layer.current_time, ctypes.cast(_tell_moment, ctypes.c_void_p).value
    if before == ours:
        return do_nothing
    layer.current_time = ours

    def undo() -> None:
        layer.current_time = before

    return undo


def _find_layers() -> Iterator[Any]:
    with suppress(Exception):  # SQLite is linked so that nobody finds it, or there is no ctypes' C
        find = _load_library(sys.modules["_sqlite3"]).sqlite3_vfs_find
        find.argtypes, find.restype = [ctypes.c_char_p], ctypes.POINTER(_Layer)
        at = find(None)
        while at:
            yield at.contents
            at = at.contents.next


def _load_library(module: ModuleType) -> ctypes.CDLL:
    """The library whose functions the module calls."""
    if sys.platform == "win32":
        return ctypes.CDLL("sqlite3.dll")
    return ctypes.CDLL(getattr(module, "__file__", None))


def _tells_time(layer: Any) -> bool:
    """Whether what stands where the function should tells the time, as it does."""
    told = ctypes.c_int64()
    status = _CurrentTime(layer.current_time)(ctypes.addressof(layer), told)
    return status == 0 and abs(told.value - _now()) < 60_000


def _now() -> int:
    return int(_EPOCH + epoch_ns() // _NS)


@_CurrentTime  # type: ignore[untyped-decorator]
def _tell_moment(_layer: Any, told: Any) -> int:
    told[0] = _now()
    try:
        reading = read_clock("wall")
    except KeyboardInterrupt:  # nothing can be raised through C
        _thread.interrupt_main()
    except Exception:  # noqa: S110 - of a thread without code of Python's
        pass
    else:
        told[0] = told[0] if reading is None else _EPOCH + reading // _NS
    return 0
