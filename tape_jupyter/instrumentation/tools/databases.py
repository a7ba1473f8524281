"""Connections of SQLite's, of which is heard from the start: into which files SQL writes no other hook
hears. And what SQL has of the clock (`CURRENT_TIMESTAMP`, `datetime('now')`) is a reading as any other.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from tape_jupyter import instrumentation
from tape_jupyter.core.real_clock import epoch_ns
from tape_jupyter.effects.quiet_connections import MOMENTS, connect_heard
from tape_jupyter.instrumentation.determinism.clock_callers import read_clock
from tape_jupyter.instrumentation.patching import swap, undoing


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap `sqlite3.connect`, under both names that libraries call it by. Returns the undo."""
    clock = _Clock()
    wrap = functools.partial(_wrap, clock=clock)
    return undoing(
        swap(module, "connect", wrap), swap(module.dbapi2, "connect", wrap), clock.release
    )


class _Clock:
    """SQLite's own clock, which asks us for the time as long as no connection may be shared by threads.

    SQLite holds a lock of a connection's while it asks, and we wait for Python's then: a thread that has
    Python's and waits for that of the connection would never go on. So connections that may be
    shared are not asked to tell us anything.
    """

    def __init__(self) -> None:
        self._unhold = _hold_clock()
        self.is_held = self._unhold is not None

    def release(self) -> None:
        self.is_held, unhold = False, self._unhold
        if unhold is not None:
            unhold()


def _hold_clock() -> Callable[[], None] | None:
    """Let SQLite ask us for the time. Returns the undo; None where it does not."""
    try:
        from tape_jupyter.instrumentation.determinism import sqlite_clock
    except (ImportError, MemoryError):  # a Python without ctypes, or one that may make no callbacks
        return None
    return sqlite_clock.hold_clock()


_UNHELD = (
    "what SQL says of the clock (CURRENT_TIMESTAMP, datetime('now')) is not held: "
    "threads may share a connection (check_same_thread=False)"
)


def _wrap(original: Callable[..., Any], clock: _Clock) -> Callable[..., Any]:
    @functools.wraps(original)
    def connect(*args: Any, **kwargs: Any) -> Any:
        if _may_be_shared(*args, **kwargs):
            clock.release()
            instrumentation.note(_UNHELD)
            return original(*args, **kwargs)
        connection = connect_heard(original, *args, **kwargs)
        if not clock.is_held:
            _hold_moments(connection)
        return connection

    return connect


def _may_be_shared(*args: Any, check_same_thread: Any = True, **_more: Any) -> bool:
    """Whether threads may share the connection that `sqlite3.connect` makes of these arguments."""
    return not (args[4] if len(args) > 4 else check_same_thread)


def _hold_moments(connection: Any) -> None:
    """Where SQLite cannot be asked to ask us: from now on the three words of SQL for this moment tell
    it by the clock of who runs the SQL.
    """
    with suppress(Exception):  # a class of the program's own, which takes no functions
        for name, form in MOMENTS.items():
            connection.create_function(name, 0, _build_moment(form))


def _build_moment(form: str) -> Callable[[], str]:
    def tell_moment() -> str:
        reading = read_clock("wall")
        seconds = (epoch_ns() if reading is None else reading) // 10**9
        return time.strftime(form, time.gmtime(seconds))

    return tell_moment
