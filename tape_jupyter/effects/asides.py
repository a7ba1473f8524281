"""What a recording of a body does not set, but says that it changed."""

from __future__ import annotations

import gc
import io
from abc import ABCMeta
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tape_jupyter.core.abstract_classes import registered
from tape_jupyter.effects import kinds, whole_objects
from tape_jupyter.effects.hidden_state import list_writers
from tape_jupyter.effects.reached import ReachedObject, is_librarys_object
from tape_jupyter.encoding.values.walker import shown_type


class Aside(NamedTuple):
    """Of an object within reach, what a recording does not set, and how it is said that a body
    changed it. It is looked at where code within reach has one of the `names`, None: always.

    `exclusive`: only where no other body runs beside, which may change it for a moment.
    """

    description: str
    read_state: Callable[[Any], Any]
    names: frozenset[str] | None = None
    exclusive: bool = False


_REGISTRY = Aside("it registered a class with {}", lambda value: len(registered(value)))
_DATABASE = Aside(
    "it gave the database {} a function, and code is not recorded",
    whole_objects.functions_in,
    whole_objects.SQL_CODE,
)
_CONNECTED = Aside("it changed how the connection {} works", whole_objects.how_connected)
_FACTORY = Aside(
    "it changed what {} does for a missing key",
    lambda value: value.default_factory,
    frozenset({"default_factory"}),
)
_ANNOTATIONS = Aside(
    "it changed the annotations of {}",
    kinds.annotations_of,
    frozenset({"__annotations__", "update_wrapper"}),
)
_TABLES = Aside("it changed which tables or columns {} has", whole_objects.tables_described)
_TEXT_FORM = Aside(
    "it changed how {} is written",
    lambda value: (value.encoding, value.errors, value.line_buffering, value.write_through),
    frozenset({"reconfigure"}),
)
_PENDING = Aside(
    "it left changes in {} that are not written to the database",
    lambda value: [[*value.new], [*value.dirty], [*value.deleted]],
    frozenset({"add", "add_all", "delete", "merge"}),
)
_LOCK_HELD = Aside(
    "it acquired or released {}", kinds.is_locked, frozenset({"acquire", "release"}), exclusive=True
)


_READ_ON = Aside(
    "it may have read {} further: nothing tells how far that was read", lambda _value: object()
)


def find_asides(node: ReachedObject) -> Iterator[Aside]:
    """Those of one object."""
    value = node.value
    if node.kind in (kinds.CLASS, kinds.FUNCTION):
        yield _ANNOTATIONS
    if node.kind is kinds.CLASS and isinstance(value, ABCMeta):
        yield _REGISTRY
    elif node.kind is whole_objects.CONNECTION:
        yield from (_DATABASE, _CONNECTED)
    elif node.kind is kinds.MAPPING and isinstance(value, defaultdict):
        yield _FACTORY
    elif whole_objects.describes_tables(value):
        yield _TABLES
    elif isinstance(value, io.TextIOWrapper):
        yield _TEXT_FORM
    elif is_session(value):
        yield _PENDING
    elif tells_no_position(value):
        yield _READ_ON
    elif type(value) in kinds.LOCKS and _is_programs_own(node):
        yield _LOCK_HELD


def tells_no_position(value: Any) -> bool:
    """Whether it is an iterator of C's of which nobody sees how far it was read: matches of a pattern,
    entries of a folder.
    """
    read = [value]
    if type(value) is _CALLING:
        read = [getattr(each, "__self__", None) for each in gc.get_referents(value)]
    return any((type(each).__module__, type(each).__name__) in _WITHOUT_POSITION for each in read)


_CALLING = type(iter(int, 1))
"""What reads by calling a function, as matches of a pattern are found."""
_WITHOUT_POSITION = frozenset(
    {("_sre", "SRE_Scanner"), ("posix", "ScandirIterator"), ("nt", "ScandirIterator")}
)


def is_session(value: Any) -> bool:
    """Whether it is a session of SQLAlchemy's."""
    bases = type(value).__mro__
    return any(b.__module__ == "sqlalchemy.orm.session" and b.__name__ == "Session" for b in bases)


def watch_calls(node: ReachedObject) -> Aside:
    """Of an object that tells nothing: no two looks at it are the same, where a method is called that
    may change it; or one of the library's objects that hold it.
    """
    holders: list[type] = []
    each: ReachedObject | None = node
    while each is not None and (each is node or is_librarys_object(each.value)):
        if type(each.value).__module__ != "builtins" or each is node:
            holders.append(type(each.value))
        each = each.above
    message = (
        f"it may have changed {{}}: {shown_type(type(node.value))} shows nothing of what it holds"
    )
    return Aside(message, lambda _value: object(), list_writers(holders))


def _is_programs_own(lock: ReachedObject) -> bool:
    """Whether the program itself keeps it: in an object of a library, others hold it for a moment."""
    above = lock.above
    return (
        above is None
        or type(above.value) in (list, tuple, dict)
        or not kinds.is_librarys(type(above.value))
    )
