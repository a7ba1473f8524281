"""Asking a connection of SQLite's, unheard by the program: a trace callback or an authorizer that it gave the
connection is not told of our questions.

What a progress handler is called for cannot be hidden: how often it is called is not known, so that it
could not be set again.
"""

from __future__ import annotations

import functools
import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tape_jupyter.core.memoised import MEMOISED


def list_callbacks(connection: Any) -> tuple[Any, ...]:
    """The functions that a connection calls while it works: those that trace, allow or watch what it does,
    and that make its rows. Those that SQL calls by name are not among them: nothing tells them.
    """
    return tuple(
        each
        for each in gc.get_referents(connection)
        if callable(each) and not isinstance(each, type | ModuleType) and type(each) is not MEMOISED
    )


@contextmanager
def quiet(connection: Any) -> Iterator[None]:
    """Inside, its trace callback and its authorizer hear nothing."""
    set_again: list[Callable[[], Any]] = []
    if list_callbacks(connection):
        for setter in (connection.set_trace_callback, connection.set_authorizer):
            before = list_callbacks(connection)
            setter(None)
            gone = _find_gone(before, list_callbacks(connection))
            set_again += [functools.partial(setter, each) for each in gone]
    try:
        yield
    finally:
        for restore in set_again:
            restore()


def _find_gone(before: tuple[Any, ...], now: tuple[Any, ...]) -> list[Any]:
    left = [id(each) for each in now]
    gone = []
    for each in before:
        if id(each) in left:
            left.remove(id(each))
        else:
            gone.append(each)
    return gone


@contextmanager
def quiet_cursor(connection: Any) -> Iterator[Any]:
    """A cursor for questions of ours, whose rows are tuples."""
    with quiet(connection):
        cursor = connection.cursor()
        cursor.row_factory = None
        yield cursor


_LIST_FUNCTIONS = "SELECT lower(name) FROM pragma_function_list WHERE NOT builtin"
_CALLED = re.compile(r"(\w+)\s*\(")
_OPENING = re.compile(r"\b(attach|vacuum\b.*\binto)\b", re.IGNORECASE | re.DOTALL)
OPENING_SQL = "attach or vacuum into"
"""Stands for the statements by which SQLite opens a file, which no hook hears of."""


def called_names(text: str) -> set[str]:
    """The functions that a text calls, if it is SQL; and OPENING_SQL, where it may be such a statement."""
    opening = {OPENING_SQL} if _OPENING.search(text) else set()
    return {name.lower() for name in _CALLED.findall(text)} | opening


def own_functions(connection: Any) -> set[str]:
    """The names of the functions that the program gave a connection; of an older Python's SQLite, none."""
    with quiet_cursor(connection) as cursor:
        names = {name for (name,) in cursor.execute(_LIST_FUNCTIONS)}
    return names - _list_functions_at_first() if names else names


def functions_in_schema(connection: Any) -> set[str]:
    """The functions that triggers, views and columns of its database call."""
    with quiet_cursor(connection) as cursor:
        texts = cursor.execute("SELECT sql FROM sqlite_master").fetchall()
    return set().union(*(called_names(str(text)) for (text,) in texts))


@functools.cache
def _list_functions_at_first() -> frozenset[str]:
    import sqlite3

    fresh = sqlite3.connect(":memory:")
    try:
        return frozenset(name for (name,) in fresh.execute(_LIST_FUNCTIONS))
    finally:
        fresh.close()
