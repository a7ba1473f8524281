"""Connections of SQLite's, of which is heard from the start: into which files SQL writes no other hook hears."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tape_jupyter.effects.quiet_connections import connect_heard
from tape_jupyter.instrumentation.patching import swap, undoing


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap `sqlite3.connect`, under both names that libraries call it by. Returns the undo."""
    return undoing(swap(module, "connect", _wrap), swap(module.dbapi2, "connect", _wrap))


def _wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def connect(*args: Any, **kwargs: Any) -> Any:
        return connect_heard(original, *args, **kwargs)

    return connect
