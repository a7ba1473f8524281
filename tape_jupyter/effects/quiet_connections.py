"""Asking a connection of SQLite's, unheard by the program: a trace callback or an authorizer that it gave the
connection is not told of our questions. And hearing of the files that SQL opens.

What a progress handler is called for cannot be hidden: how often it is called is not known, so that it
could not be set again.
"""

from __future__ import annotations

import functools
import gc
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from tape_jupyter.core.memoised import MEMOISED


def list_callbacks(connection: Any) -> tuple[Any, ...]:
    """The program's functions that a connection calls while it works: those that trace, allow or watch what
    it does, and that make its rows. Those that SQL calls by name are not among them: nothing tells them.
    """
    asked = (
        each.asked if isinstance(each, _Authorizer) else each for each in _list_called(connection)
    )
    return tuple(each for each in asked if each is not None)


def _list_called(connection: Any) -> tuple[Any, ...]:
    """The same with ours."""
    return tuple(
        each
        for each in gc.get_referents(connection)
        if callable(each) and not isinstance(each, type | ModuleType) and type(each) is not MEMOISED
    )


OPENS_FILE = "tape_jupyter.sqlite.attach"
"""An audit event: SQL is about to have a database open a file, which no hook hears of. Its argument is
the name; None where SQL works it out.
"""
_ATTACH = 24
"""SQLite's number for what `ATTACH` does, and `VACUUM INTO`; newer versions of Python name it."""


class _Authorizer:
    """What a connection asks before it does something: the program's own authorizer, if there is one."""

    def __init__(self, asked: Callable[..., Any] | None) -> None:
        self.asked = asked

    def __call__(self, action: int, name: str | None, *more: Any) -> Any:
        answer = 0 if self.asked is None else self.asked(action, name, *more)
        if action == _ATTACH and answer == 0 and name not in ("", ":memory:"):
            sys.audit(OPENS_FILE, name)
        return answer


def hear_of_files(connection: Any) -> None:
    """From now on there is an audit event where SQL has this connection open a file."""
    if any(isinstance(each, _Authorizer) for each in _list_called(connection)):
        return
    with suppress(Exception):  # closed, or of another thread
        gone = _take_callback(connection, connection.set_authorizer)
        connection.set_authorizer(_Authorizer(next(iter(gone), None)))


class _Connecting(threading.local):
    """Whether this thread makes a connection that is heard as soon as it is made."""

    now = False


_connecting = _Connecting()


def connect_heard(connect: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A new connection, of which `hear_of_files` hears."""
    _connecting.now = True
    try:
        connection = connect(*args, **kwargs)
    finally:
        _connecting.now = False
    hear_of_files(connection)
    return connection


def is_heard_soon() -> bool:
    """Whether `connect_heard` makes the connection that is made here and now."""
    return _connecting.now


@contextmanager
def quiet(connection: Any) -> Iterator[None]:
    """Inside, its trace callback and its authorizer hear nothing."""
    set_again: list[Callable[[], Any]] = []
    if list_callbacks(connection):
        for setter in (connection.set_trace_callback, connection.set_authorizer):
            gone = _take_callback(connection, setter)
            set_again += [functools.partial(setter, each) for each in gone]
    try:
        yield
    finally:
        for restore in set_again:
            restore()


def _take_callback(connection: Any, setter: Callable[[None], Any]) -> list[Any]:
    """Take away what this method of a connection's sets; what that was, if there was one."""
    before = _list_called(connection)
    setter(None)
    return _find_gone(before, _list_called(connection))


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


MOMENTS = {
    "current_timestamp": "%Y-%m-%d %H:%M:%S",
    "current_date": "%Y-%m-%d",
    "current_time": "%H:%M:%S",
}
"""The words of SQL for this moment, each as SQLite writes it. They are functions of ours
(instrumentation/tools/databases.py).
"""
_LIST_FUNCTIONS = "SELECT lower(name) FROM pragma_function_list WHERE NOT builtin"
_CALLED = re.compile(r"(\w+)\s*\(")


def called_names(text: str) -> set[str]:
    """The functions that a text calls, if it is SQL."""
    return {name.lower() for name in _CALLED.findall(text)}


def own_functions(connection: Any) -> set[str]:
    """The names of the functions that the program gave a connection; of an older Python's SQLite, none."""
    with quiet_cursor(connection) as cursor:
        names = {name for (name,) in cursor.execute(_LIST_FUNCTIONS)}
    return names - _list_functions_at_first() - MOMENTS.keys() if names else names


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
