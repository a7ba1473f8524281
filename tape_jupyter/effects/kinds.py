"""The kinds of objects that keep a program's state: how each is looked at, compared and put back.

A *look* is a shallow copy of what an object holds. Two looks at one object say what became of it;
what is inside of it is looked at on its own, so that objects which many others refer to stay those
very objects.
"""

from __future__ import annotations

import array
import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import io
import logging
import mmap
import os
import queue
import random
import sys
import threading
import weakref
import zlib
from collections import OrderedDict, UserDict, UserList, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import is_dataclass
from enum import Enum
from operator import is_
from types import (
    BuiltinFunctionType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Protocol

from tape_jupyter.core.libraries import is_library_class, is_library_file
from tape_jupyter.core.open_file import OPEN_FILE
from tape_jupyter.effects import figures, iterators
from tape_jupyter.effects.paths import MODEL_STATE, Step, is_model
from tape_jupyter.effects.scope import NAMES
from tape_jupyter.encoding.values.user_classes import state_of
from tape_jupyter.encoding.values.walker import CannotFreeze
from tape_jupyter.errors import CassetteError

SCALARS = frozenset({str, int, float, bool, complex, bytes, type(None)})

MISSING = object()


class Kind(Protocol):
    """How objects of some types are handled."""

    def copy_state(self, value: Any) -> Any:
        """What the object holds, as a copy that later changes do not touch."""

    def same(self, before: Any, now: Any) -> bool:
        """Whether two looks show the same."""

    def inside(self, look: Any) -> Iterator[tuple[Step, Any]]:
        """What it refers to."""


def is_same_value(one: Any, other: Any) -> bool:
    """The same object, or scalars of one type and value."""
    if one is other:
        return True
    kind = type(one)
    return (
        kind is type(other)
        and kind in SCALARS
        and (one == other or repr(one) == repr(other) == "nan")
    )


def _has_same_items(before: Collection[Any], now: Collection[Any]) -> bool:
    return len(before) == len(now) and (
        all(map(is_, before, now)) or all(map(is_same_value, before, now))
    )


def _has_same_mapping(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> bool:
    return _has_same_items(before, now) and _has_same_items(before.values(), now.values())


class SequenceKind:
    """list, deque and what is derived of them."""

    def copy_state(self, value: Any) -> list[Any]:
        return list(base_of(type(value)).__iter__(value))

    same = staticmethod(_has_same_items)

    def inside(self, look: list[Any]) -> Iterator[tuple[Step, Any]]:
        for index, item in enumerate(look):
            if type(item) not in SCALARS:
                yield ("item", index), item


WEAK = (weakref.WeakSet, weakref.WeakValueDictionary, weakref.WeakKeyDictionary)
_CONTAINERS = frozenset({list, deque, OrderedDict, dict, set, *WEAK})


def base_of(kind: type) -> Any:
    """The container of Python's own that a class is derived of: its methods are past any code of
    the user's.
    """
    if kind in _CONTAINERS:
        return kind
    return next(base for base in kind.__mro__ if base in _CONTAINERS)


class Tuple(SequenceKind):
    """What holds others and never changes."""

    def copy_state(self, value: Any) -> list[Any]:
        return list(tuple.__iter__(value))

    def same(self, _before: Any, _now: Any) -> bool:
        return True


class MappingKind:
    """dict and what is derived of it."""

    def copy_state(self, value: Any) -> dict[Any, Any]:
        if isinstance(value, OrderedDict):  # its order is not that of the dict inside of it
            return {key: dict.__getitem__(value, key) for key in list(OrderedDict.__iter__(value))}
        if isinstance(value, (weakref.WeakValueDictionary, weakref.WeakKeyDictionary)):
            return dict(value.items())
        if type(value) is dict:
            return dict.copy(value)  # in one step: another thread may change it meanwhile
        return dict(list(dict.items(value)))  # in its own order, whatever it shows

    same = staticmethod(_has_same_mapping)

    def inside(self, look: dict[Any, Any]) -> Iterator[tuple[Step, Any]]:
        for number, (key, item) in enumerate(look.items()):
            if type(item) not in SCALARS:
                yield (("item", key) if type(key) in (str, int) else ("nth", number)), item


class SetKind:
    """set and what is derived of it."""

    def copy_state(self, value: Any) -> set[Any]:
        return set(base_of(type(value)).__iter__(value))

    def same(self, before: set[Any], now: set[Any]) -> bool:
        return before == now

    def inside(self, look: set[Any]) -> Iterator[tuple[Step, Any]]:
        for item in look:
            if type(item) not in SCALARS:
                yield ("member", None), item


class Attributes:
    """An object with attributes: those in its slots and its dict; and which of the user's classes
    it is of.
    """

    def copy_state(self, value: Any) -> dict[str, Any]:
        held, kind = state_of(value), type(value)
        if not is_library_class(kind):
            held["__class__"] = kind
        return held

    same = staticmethod(_has_same_mapping)

    def inside(self, look: dict[str, Any]) -> Iterator[tuple[Step, Any]]:
        for name, item in look.items():
            if type(item) not in SCALARS:
                yield ("attribute", name), item


class NamesKind(Attributes):
    """Variables, a function's closure, the environment (scope.py)."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        held: dict[str, Any] = value.copy_state()
        return held

    def same(
        self, before: Mapping[str, Any], now: Mapping[str, Any]
    ) -> bool:  # their order says nothing
        return before.keys() == now.keys() and all(
            is_same_value(before[name], now[name]) for name in before
        )


class CodeHolder(NamesKind):
    """A class or a module of the user's: its attributes, and what the class is derived of. Of the
    functions in it only the user's count, and which they are: libraries set others when they please.
    """

    def copy_state(self, value: Any) -> dict[str, Any]:
        held = {
            n: v
            for n, v in vars(value).items()
            if not n.startswith("_abc_") and _is_programs_attribute(n, v)
        }
        if not isinstance(value, type):
            return held
        return held | {name: getattr(value, name, None) for name in CLASS_PARTS}

    def inside(self, look: Any) -> Iterator[tuple[Step, Any]]:
        yield from ((step, value) for step, value in super().inside(look) if not _is_code(value))


CLASS_PARTS = (
    "__bases__", "__name__", "__qualname__", "__module__", "__doc__", "__hash__", "__match_args__",
    "__abstractmethods__",
)  # fmt: skip
"""Of a class, what is named beside its attributes where it was changed; no recording sets it."""


class EnumMember(Attributes):
    """A member of an Enum of the user's: what it has beside what Python gives it (`_value_`)."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        return {n: v for n, v in vars(value).items() if not (n[0] == n[-1] == "_")}


class WrapperKind(Attributes):
    """A library's function around one of the user's: its attributes."""

    def copy_state(self, value: FunctionType) -> dict[str, Any]:
        return {n: v for n, v in vars(value).items() if not n.startswith("__")}


class FunctionKind(WrapperKind):
    """A function of the user's: its attributes, what its parameters are where nothing is given, and
    its code.
    """

    def copy_state(self, value: FunctionType) -> dict[str, Any]:
        parts = {name: getattr(value, name) for name in FUNCTION_PARTS}
        parts |= {"__module__": value.__module__, "__code__": own_code(value).__code__}
        held = vars(value)
        if held:
            parts |= {name: held[name] for name in ("__wrapped__", "__signature__") if name in held}
        return super().copy_state(value) | parts

    def inside(self, look: dict[str, Any]) -> Iterator[tuple[Step, Any]]:
        yield from (pair for pair in super().inside(look) if is_settable_part(pair[0][1]))


FUNCTION_PARTS = ("__defaults__", "__kwdefaults__", "__doc__", "__name__", "__qualname__")
"""Of a function, what a recording sets beside its attributes."""


def is_settable_part(name: str) -> bool:
    """Whether a recording sets this attribute of a function."""
    return name in FUNCTION_PARTS or not name.startswith("__")


def is_settable(owner: Any, name: str) -> bool:
    """Whether a recording sets this attribute of an object. It decides not which code runs."""
    if isinstance(owner, FunctionType):
        return is_settable_part(name)
    return not (isinstance(owner, type | ModuleType) and name.startswith("__"))


def annotations_of(value: Any) -> Any:
    """What the parameters of a function or the attributes of a class are said to be, as a copy; None
    where they name what is not there.
    """
    try:
        told = (
            vars(value) if isinstance(value, type) else {"__annotations__": value.__annotations__}
        )
        return [*told.get("__annotations__", {}).items()]
    except Exception:  # from Python 3.14 on they are worked out when they are asked for
        return None


def own_code(function: FunctionType) -> FunctionType:
    """The function with the code that the user wrote: a taped one has ours where it stands."""
    swap = vars(function).get("__tape_swap__")
    body = getattr(getattr(swap, "taped", None), "body", None)
    return body if isinstance(body, FunctionType) else function


class HandlerKind(Attributes):
    """A handler of `logging`: what it lets through, and how."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        return {n: v for n, v in vars(value).items() if n in ("level", "filters", "formatter")}


class TraitsKind(Attributes):
    """A widget: what it shows."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        held = vars(value)["_trait_values"]
        return {n: v for n, v in held.items() if not n.startswith("_") and n not in _PLUMBING}


_PLUMBING = frozenset({"comm", "keys", "layout", "style", "log", "tooltip", "tabbable"})


class ContextVariable:
    """A context variable of the program's: its value here."""

    def copy_state(self, value: ContextVar[Any]) -> dict[str, Any]:
        found = value.get(MISSING)
        return {} if found is MISSING else {"value": found}

    same = staticmethod(_has_same_mapping)

    def inside(self, look: dict[str, Any]) -> Iterator[tuple[Step, Any]]:
        for item in look.values():
            if type(item) not in SCALARS:
                yield ("context", None), item


class WholeKind:
    """An object that is written, compared and put back as a whole: arrays, tables, random
    generators.
    """

    def __init__(
        self,
        digest: Callable[[Any], Any],
        put: Callable[[Any, Any], None],
        read: Callable[[Any], Any] | None = None,
    ) -> None:
        self.copy_state, self.put, self.read = digest, put, read or (lambda value: value)

    def same(self, before: Any, now: Any) -> bool:
        return bool(before == now)

    def inside(self, _look: Any) -> Iterator[tuple[Step, Any]]:
        return iter(())


# ---- whole objects


def _put_bytes(live: Any, wanted: Any) -> None:
    live[:] = wanted


def _digest_array(value: Any) -> Any:
    """Shape, type and a checksum of the content: the fastest there is, since it is only compared in
    this process.
    """
    if value.dtype.hasobject:
        return (value.shape, [(id(item), repr(item)[:200]) for item in value.ravel()])
    data = (
        value if value.flags.c_contiguous else value.T if value.flags.f_contiguous else value.copy()
    )
    return (
        value.shape,
        str(value.dtype),
        zlib.crc32(data.reshape(-1).view("u1").data) if data.size else 0,
    )


def _look_at_array(value: Any) -> Any:
    return _digest_array(value), value.flags.writeable


def _put_array(live: Any, wanted: Any) -> None:
    """`wanted` is the values, or a pair of them and False: nobody may write into it any more."""
    values, writeable = wanted if isinstance(wanted, tuple) else (wanted, True)
    if live.dtype != values.dtype:
        live.dtype = values.dtype
    if live.shape != values.shape:
        live.resize(values.shape, refcheck=False)
    if not live.flags.writeable:
        live.setflags(write=True)
    live[...] = values
    live.setflags(write=writeable)


def _read_array(value: Any) -> Any:
    """Of one that is mapped to a file, or of another class derived of it, its values too."""
    numpy = sys.modules["numpy"]
    return numpy.asarray(value) if value.flags.writeable else (numpy.array(value), False)


def _digest_masked(value: Any) -> Any:
    return _digest_array(value.data), _digest_array(sys.modules["numpy"].ma.getmaskarray(value))


def _read_masked(value: Any) -> Any:
    return sys.modules["numpy"].asarray(value.data), sys.modules["numpy"].ma.getmaskarray(value)


def _put_masked(live: Any, wanted: Any) -> None:
    data, mask = wanted
    live.data[...] = data
    live.mask = mask


def _digest_image(value: Any) -> Any:
    return value.mode, value.size, zlib.crc32(value.tobytes()), repr(value.getpalette())


def _put_image(live: Any, wanted: Any) -> None:
    """Where it can be, in place: what draws on the image holds its pixels."""
    live.load()
    if (live.mode, live.size, live.getpalette()) == (
        wanted.mode,
        wanted.size,
        wanted.getpalette(),
    ):
        live.paste(wanted)
    else:
        live.im, live._mode, live._size = wanted.im, wanted.mode, wanted.size  # noqa: SLF001
        live.palette = wanted.palette


def _read_permits(value: Any) -> Any:
    """How many may still come in."""
    return value._value  # noqa: SLF001 - nothing else tells


def _put_permits(live: Any, wanted: int) -> None:
    while _read_permits(live) < wanted:
        live.release()
    if _read_permits(live) > wanted:
        live._value = wanted  # noqa: SLF001


def _look_at_cursor(value: Any) -> Any:
    """Rows that wait to be read: no two looks at them are the same, since nothing tells how many."""
    waiting = any(type(each).__name__ == "Statement" for each in gc.get_referents(value))
    return object() if waiting else None


def _digest_frame(value: Any) -> Any:
    """Of a DataFrame or a Series: its labels, and the arrays that it is made of."""
    columns = tuple(value.columns) if value.ndim == 2 else (value.name,)
    index = value.index
    levels = index.levels if index.nlevels > 1 else [index]
    labels = [_digest_values(level.array) for level in levels]
    codes = [_digest_values(code) for code in index.codes] if index.nlevels > 1 else []
    # a column apart is a copy
    arrays = [_digest_values(block.values) for block in value._mgr.blocks]  # noqa: SLF001
    placed = [block.mgr_locs.as_array.tolist() for block in value._mgr.blocks]  # noqa: SLF001
    named = tuple(value.columns.names) if value.ndim == 2 else ()
    return columns, arrays, placed, labels, codes, tuple(index.names), named


def _digest_values(values: Any) -> Any:
    numpy = sys.modules["numpy"]
    if isinstance(values, numpy.ndarray) and not values.dtype.hasobject:
        return _digest_array(values)
    plain = getattr(values, "_ndarray", None)
    if isinstance(plain, numpy.ndarray) and not plain.dtype.hasobject:
        return _digest_array(plain)
    items = list(numpy.asarray(values, dtype=object).ravel())
    return zlib.crc32("\x1f".join(map(repr, items)).encode("utf-8", "surrogatepass")), len(items)


def _put_frame(live: Any, wanted: Any) -> None:
    live._update_inplace(wanted)  # noqa: SLF001 - what pandas' own `inplace=True` does


def _read_random(value: random.Random) -> Any:
    return value.getstate()


def _put_random(live: random.Random, state: Any) -> None:
    live.setstate((state[0], tuple(state[1]), state[2]))


def _read_bits(value: Any) -> Any:
    return repr(value.bit_generator.state)


def _put_bits(live: Any, state: Any) -> None:
    live.bit_generator.state = state


def _read_legacy_state(value: Any) -> Any:
    return repr(value.get_state(legacy=False))


def _look_at_connection(value: Any) -> Any:
    """Changed where a statement changed a row since; a table that is made or dropped changes the
    schema's version.

    What is committed to a file is that file's content: of such a connection only an open
    transaction counts.
    """
    try:
        if file_of_value(value):
            return _read_row_shape(value), value.total_changes if value.in_transaction else None
        cursor = value.cursor()
        cursor.row_factory = None
        asked = ("schema_version", "user_version")
        version = [cursor.execute(f"PRAGMA {each}").fetchone()[0] for each in asked]
    except Exception:  # closed, or of another thread
        return None
    return _read_row_shape(value), value.total_changes, version, value.in_transaction


def _read_row_shape(connection: Any) -> tuple[Any, Any]:
    return connection.row_factory, connection.text_factory


def _read_connection(value: Any) -> tuple[bytes | None, bool, list[str]]:
    """Its content (None: that of its file), whether a transaction is open, and what shape its rows
    have.
    """
    shape = [_find_factory_name(value, each) for each in _read_row_shape(value)]
    file = file_of_value(value)
    if file and value.in_transaction:
        raise CannotFreeze(None, value, f"it has changes that were not committed to {file}")
    return None if file else _serialize_database(value), value.in_transaction, shape


def _serialize_database(connection: Any) -> bytes:
    """b"" where nothing is in it: there SQLite serializes nothing."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return connection.serialize() if cursor.execute("PRAGMA page_count").fetchone()[0] else b""


def _list_factories() -> dict[str, Any]:
    import sqlite3

    return {"": None, "Row": sqlite3.Row, "str": str, "bytes": bytes}


def _find_factory_name(connection: Any, factory: Any) -> str:
    for name, each in _list_factories().items():
        if each is factory:
            return name
    raise CannotFreeze(None, connection, "a function shapes its rows, which is code")


def file_of_value(value: Any) -> str:
    """The file that a database connection or an open file writes to; "" where there is none."""
    if isinstance(value, OPEN_FILE):
        name = getattr(value, "name", None)
        return name if isinstance(name, str) and not value.closed and value.writable() else ""
    if type(value).__name__ == "memmap":  # of numpy's
        return str(value.filename or "")
    try:
        cursor = value.cursor()
        cursor.row_factory = None
        return str(cursor.execute("PRAGMA database_list").fetchone()[2])
    except Exception:  # closed, or of another thread
        return ""


def database_of(engine: Any) -> str:
    """The file of a SQLAlchemy engine for SQLite, whose connections are kept open; "" for any other."""
    url = getattr(engine, "url", None)
    name = getattr(url, "database", None) or ""
    sqlite = str(getattr(url, "drivername", "")).startswith("sqlite")
    return os.path.abspath(name) if sqlite and name not in ("", ":memory:") else ""  # noqa: PTH100


def _look_at_handle(value: Any) -> Any:
    """Where an open file stands; what is written so far is in the file."""
    if value.closed or not value.seekable():
        return None
    if value.writable():
        value.flush()
    return _find_place(value)


def _find_place(file: Any) -> Any:
    """Where it stands; what is read on line by line tells only how far it was read ahead."""
    try:
        return file.tell()
    except OSError:
        return [file.buffer.tell()]


def _read_place(file: Any) -> int:
    place = _find_place(file)
    if isinstance(place, list):
        raise CannotFreeze(None, file, "how far its lines were read is not known")
    return int(place)


def _put_handle(live: Any, position: Any) -> None:
    if live.writable():
        live.flush()
    live.seek(position)


def _put_connection(live: Any, wanted: Any) -> None:
    """Let the live connection's main database hold what the recorded one held, which it may have
    committed or not.
    """
    import sqlite3

    data, is_open, *shape = (wanted, False) if isinstance(wanted, bytes) else wanted
    for names in shape:
        live.row_factory, live.text_factory = (_list_factories()[name] for name in names)
    if data is None:
        return
    scratch = sqlite3.connect(":memory:")
    try:
        if data:
            scratch.deserialize(data)
        if is_open and _read_schema(scratch) == _read_schema(live):
            _put_rows(live, scratch)
            return
        if live.in_transaction:
            live.commit()
        scratch.backup(live)
        if is_open:
            raise CassetteError("what was not committed when it was recorded is committed here")
    finally:
        scratch.close()


def _read_schema(connection: Any) -> list[Any]:
    """Its schema; a trigger would do more than what is put there."""
    cursor = connection.cursor()
    cursor.row_factory = None
    found: list[Any] = cursor.execute(
        "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    ).fetchall()
    return [object()] if any(sort == "trigger" for sort, _, _ in found) else found


def _put_rows(live: Any, scratch: Any) -> None:
    """In a transaction that stays open: the program may still commit it, or take it back."""
    cursor = live.cursor()
    if not live.in_transaction:
        cursor.execute("BEGIN")
    sqls = {name: sql for sort, name, sql in _read_schema(scratch) if sort == "table"}
    for name in sqls:
        cursor.execute(f'DELETE FROM "{name}"')  # noqa: S608
    for name, sql in sqls.items():
        told = scratch.execute(f'PRAGMA table_info("{name}")').fetchall()
        columns = [f'"{each[1]}"' for each in told]
        if "WITHOUT ROWID" not in str(sql).upper():
            columns.insert(0, "rowid")
        listed, places = ", ".join(columns), ", ".join("?" * len(columns))
        rows = scratch.execute(f'SELECT {listed} FROM "{name}"').fetchall()  # noqa: S608 - names of the schema
        cursor.executemany(f'INSERT INTO "{name}" ({listed}) VALUES ({places})', rows)  # noqa: S608


def how_connected(connection: Any) -> Any:
    """How a connection works: when it begins transactions, whether it checks references, and which
    databases are attached; None where it cannot be asked.
    """
    try:
        cursor = connection.cursor()
        cursor.row_factory = None
        checks = cursor.execute("PRAGMA foreign_keys").fetchone()
        rows = cursor.execute("PRAGMA database_list").fetchall()
    except Exception:  # closed, or of another thread
        return None
    attached = [name for _, name, _ in rows if name != "temp"]
    return [connection.isolation_level, *checks, *attached]


SQL_CODE = frozenset(
    {"create_function", "create_aggregate", "create_window_function", "create_collation"}
)
"""Methods that give a connection a function, by which nothing in the database changes."""


def functions_in(connection: Any) -> Any:
    """How many functions and orders of texts a connection knows; None where it cannot be asked."""
    try:
        cursor = connection.cursor()
        cursor.row_factory = None
        functions = cursor.execute("SELECT count(*) FROM pragma_function_list").fetchone()[0]
        return functions + len(cursor.execute("PRAGMA collation_list").fetchall())
    except Exception:  # closed, or of another thread
        return None


def _put_memory_file(live: Any, wanted: Any) -> None:
    live.seek(0)
    live.truncate()
    live.write(wanted[0])
    live.seek(wanted[1])


def _read_future(value: Any) -> Any:
    """What became of a future: a list of its result, or None where it was cancelled."""
    if value.cancelled():
        return None
    if value.exception() is not None:
        raise CannotFreeze(None, value, "its exception is not kept")
    return [value.result()]


def _put_future(live: Any, wanted: Any) -> None:
    live.cancel() if wanted is None else live.set_result(wanted[0])


def _look_at_generator(value: Any) -> Any:
    """How far a generator is: nobody can put it there, but it is said."""
    frame = value.gi_frame
    return (
        None
        if frame is None
        else (frame.f_lasti, {name: repr(each)[:200] for name, each in frame.f_locals.items()})
    )


def _digest_element(value: Any) -> Any:
    """Of an element of a tree of XML, with all below it."""
    return hash(sys.modules["xml.etree.ElementTree"].tostring(value))


def _read_line_number(reader: Any) -> int:
    """How many lines a reader of csv has read. Raises CannotFreeze where others would read them in
    replay, too: code of the program's.
    """
    plain = (OPEN_FILE, *iterators.TYPES)
    if not any(isinstance(each, plain) for each in gc.get_referents(reader)):
        raise CannotFreeze(None, reader, "to read it on is to run code of the program's")
    return int(reader.line_num)


def _read_rows_on(reader: Any, lines: int) -> None:
    while reader.line_num < lines and next(reader, None) is not None:
        pass
    if reader.line_num != lines:
        raise CassetteError("it does not come to stand where the recorded one stood")


def _look_at_tee(value: Any) -> Any:
    """How far one of several readers of an iterator is; None from Python 3.14 on, which tells not."""
    try:
        _make, _given, (block, index) = value.__reduce__()
    except (TypeError, ValueError):
        return None
    return id(block), index


def _look_at_mock(value: Any) -> Any:
    held = vars(value)
    return held.get("_mock_call_count"), len(held.get("_mock_children", ()))


def _look_at_socket(value: Any) -> Any:
    """Whether it is open, where it is bound, and how long it waits."""
    try:
        return value.fileno(), value.gettimeout(), value.getsockname()
    except OSError:
        return value.fileno(), value.gettimeout()


def _build_named_kind(look: Callable[[Any], Any]) -> WholeKind:
    """Of what is only named where it changed."""
    return WholeKind(look, _refuse_put, _build_refusing_read("what became of it is not kept"))


def _build_refusing_read(what: str) -> Callable[[Any], Any]:
    def refuse_read(value: Any) -> Any:
        raise CannotFreeze(None, value, what)

    return refuse_read


def _refuse_put(_live: Any, _wanted: Any) -> None:
    raise CassetteError("what became of it is not on the tape")


_BYTEARRAY = WholeKind(bytes, _put_bytes, bytes)
_MAPPED = WholeKind(
    lambda value: None if value.closed else zlib.crc32(value), _put_bytes, lambda value: value[:]
)
_ARRAY_ARRAY = WholeKind(
    lambda value: value.tobytes(),
    lambda live, data: _put_bytes(live, array.array(live.typecode, data)),
    lambda value: value.tobytes(),
)
_NDARRAY = WholeKind(_look_at_array, _put_array, _read_array)
_FRAME = WholeKind(_digest_frame, _put_frame)
_RANDOM = WholeKind(_read_random, _put_random, _read_random)
_GENERATOR = WholeKind(_read_bits, _put_bits, lambda value: value.bit_generator.state)
_RANDOM_STATE = WholeKind(
    _read_legacy_state,
    lambda live, state: live.set_state(state),
    lambda value: value.get_state(legacy=False),
)
_FUTURE = WholeKind(lambda value: (value.done(), value.cancelled()), _put_future, _read_future)
_EVENT = WholeKind(
    lambda value: value.is_set(),
    lambda live, wanted: live.set() if wanted else live.clear(),
    lambda value: value.is_set(),
)
_SEMAPHORE = WholeKind(_read_permits, _put_permits, _read_permits)
_MASKED = WholeKind(_digest_masked, _put_masked, _read_masked)
_IMAGE = WholeKind(_digest_image, _put_image, lambda value: value.copy())
_CURSOR = WholeKind(
    _look_at_cursor, _refuse_put, _build_refusing_read("how far its rows were read is not known")
)
_HANDLE = WholeKind(_look_at_handle, _put_handle, _read_place)
_FIGURE = WholeKind(
    figures.drawn, _refuse_put, _build_refusing_read("what is drawn in it cannot be written")
)
_MEMORY_FILE = WholeKind(
    lambda v: (v.getvalue(), v.tell()), _put_memory_file, lambda v: (v.getvalue(), v.tell())
)
_POSITION = WholeKind(iterators.position, iterators.advance, iterators.read_position)
_ADVANCED = WholeKind(
    _look_at_generator,
    _refuse_put,
    _build_refusing_read("it was read on, and nobody can put it there again"),
)
_CACHE = WholeKind(
    lambda value: value.cache_info(),
    _refuse_put,
    _build_refusing_read("what it keeps cannot be written: what it answered runs again"),
)
CONNECTION = WholeKind(_look_at_connection, _put_connection, _read_connection)
_HASH = _build_named_kind(lambda value: value.digest())
_FOREIGN = WholeKind(
    bytes,
    _refuse_put,
    _build_refusing_read("it is memory of C code, which a recording does not write to"),
)

_WHOLE_BY_NAME: dict[
    tuple[str, str], WholeKind
] = {  # by package and class; also what is derived of it
    ("numpy", "MaskedArray"): _MASKED,
    ("numpy", "ndarray"): _NDARRAY,
    ("PIL", "Image"): _IMAGE,
    ("pandas", "DataFrame"): _FRAME,
    ("pandas", "Series"): _FRAME,
    ("numpy", "Generator"): _GENERATOR,
    ("numpy", "RandomState"): _RANDOM_STATE,
    ("sqlite3", "Connection"): CONNECTION,
    ("sqlite3", "Cursor"): _CURSOR,
    ("matplotlib", "Figure"): _FIGURE,
    ("unittest", "NonCallableMock"): _build_named_kind(_look_at_mock),
    ("socket", "socket"): _build_named_kind(_look_at_socket),
    ("xml", "Element"): _build_named_kind(_digest_element),
    **dict.fromkeys([("_hashlib", "HASH"), ("_blake2", "blake2b"), ("_blake2", "blake2s")], _HASH),
    ("_queue", "SimpleQueue"): _build_named_kind(lambda value: value.qsize()),
    ("_csv", "reader"): WholeKind(lambda value: value.line_num, _read_rows_on, _read_line_number),
    ("itertools", "_tee"): _build_named_kind(_look_at_tee),
    ("_struct", "unpack_iterator"): _build_named_kind(lambda value: value.__length_hint__()),
    ("threading", "Barrier"): _build_named_kind(lambda value: (value.broken, value.n_waiting)),
    ("concurrent", "Executor"): _build_named_kind(lambda value: getattr(value, "_shutdown", None)),
    ("multiprocessing", "SimpleQueue"): _build_named_kind(lambda value: value.empty()),
    ("asyncio", "BaseEventLoop"): _build_named_kind(
        lambda value: (value.get_debug(), value.get_exception_handler(), value.is_closed())
    ),
    ("ssl", "SSLContext"): _build_named_kind(
        lambda value: (value.check_hostname, value.verify_mode, value.options)
    ),
    **dict.fromkeys(
        [("_ctypes", name) for name in ("Structure", "Union", "Array", "_SimpleCData")], _FOREIGN
    ),
}

SEQUENCE, TUPLE, MAPPING, SET, ATTRIBUTES, NAMES_KIND = (
    SequenceKind(),
    Tuple(),
    MappingKind(),
    SetKind(),
    Attributes(),
    NamesKind(),
)
CLASS, MODULE, FUNCTION, CONTEXT = CodeHolder(), CodeHolder(), FunctionKind(), ContextVariable()
TRAITS, HANDLER, WRAPPER, MEMBER = TraitsKind(), HandlerKind(), WrapperKind(), EnumMember()

_BY_TYPE: dict[type, Kind] = {
    list: SEQUENCE, deque: SEQUENCE, tuple: TUPLE, dict: MAPPING, set: SET, bytearray: _BYTEARRAY,
    array.array: _ARRAY_ARRAY, random.Random: _RANDOM, ContextVar: CONTEXT, SimpleNamespace: ATTRIBUTES,
    queue.Queue: ATTRIBUTES, queue.LifoQueue: ATTRIBUTES, queue.PriorityQueue: ATTRIBUTES,
    UserDict: ATTRIBUTES, UserList: ATTRIBUTES,
    mmap.mmap: _MAPPED, io.StringIO: _MEMORY_FILE, io.BytesIO: _MEMORY_FILE, GeneratorType: _ADVANCED,
    type(functools.lru_cache(int)): _CACHE,
    **dict.fromkeys(
        (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO), _HANDLE
    ),
    **dict.fromkeys(NAMES, NAMES_KIND), **dict.fromkeys(iterators.TYPES, _POSITION),
    weakref.WeakSet: SET, weakref.WeakValueDictionary: MAPPING, weakref.WeakKeyDictionary: MAPPING,
    asyncio.Future: _FUTURE, concurrent.futures.Future: _FUTURE,
    contextlib.ExitStack: ATTRIBUTES, contextlib.AsyncExitStack: ATTRIBUTES,
    threading.local: ATTRIBUTES, threading.Event: _EVENT, asyncio.Event: _EVENT,
    **dict.fromkeys(
        (threading.Semaphore, threading.BoundedSemaphore, asyncio.Semaphore, asyncio.BoundedSemaphore), _SEMAPHORE
    ),
}  # fmt: skip

LOCKS = (type(threading.Lock()), type(threading.RLock()), asyncio.Lock)


def is_locked(lock: Any) -> bool:
    """Whether somebody holds a lock; of one that a thread may take twice, whether this one does."""
    owned = getattr(lock, "_is_owned", lock.locked if hasattr(lock, "locked") else None)
    return owned is not None and bool(owned())


LINKS = (MethodType, functools.partial, staticmethod, classmethod, property)
"""What holds functions and objects and has no state of its own."""

RESOURCES = frozenset([
    "anthropic", "openai", "google", "mistralai", "cohere", "groq", "boto3", "botocore", "httpx", "httpx2",
    "httpcore", "httpcore2", "aiohttp", "urllib3", "requests", "langsmith", "opentelemetry", "IPython",
    "ipykernel", "ipywidgets", "traitlets", "zmq", "tornado", "jupyter_client", "comm", "anywidget",
    "tape_jupyter", "matplotlib", "matplotlib_inline", "rich", "torch", "transformers", "tensorflow", "jax",
    "sklearn", "sqlalchemy", "psycopg", "psycopg2", "redis", "pymongo", "grpc", "websockets", "mcp", "fastmcp",
    "anyio", "sniffio", "litellm", "tenacity", "click", "typer", "wrapt", "pluggy", "_pytest", "pytest",
    "hypothesis", "tiktoken", "tokenizers", "langgraph_sdk", "instructor",
])  # fmt: skip
"""Packages whose objects are clients, connections and machinery: what they keep for themselves is
no state of the program's.
"""

STANDARD_MACHINERY = frozenset([
    "abc", "ast", "asyncio", "concurrent", "contextlib", "ctypes", "datetime", "decimal", "fractions",
    "functools", "http", "importlib", "inspect", "ipaddress", "logging", "multiprocessing", "numbers", "operator",
    "pathlib", "re", "selectors", "signal", "socket", "socketserver", "ssl", "string", "subprocess", "tempfile",
    "threading", "traceback", "types", "typing", "unittest", "urllib", "uuid", "warnings", "weakref", "xmlrpc",
    "zoneinfo",
])  # fmt: skip
"""The same of the standard library; and of values that never change."""

_STATE = frozenset({"asyncio.queues", "_thread", "types", "http.cookiejar"})

MACHINERY = (
    "langchain_core.callbacks.", "langchain_core.tracers.", "langchain_core.runnables.",
    "langchain_core.language_models.",
    "langgraph.pregel.", "langgraph.graph.", "langgraph.prebuilt.", "langgraph.channels.", "langgraph.managed.",
    "langgraph._internal.", "workflows.", "llama_index.core.workflow.", "llama_index.core.callbacks.",
    "llama_index.core.agent.", "llama_index.core.instrumentation.", "llama_index_instrumentation.",
    "pydantic_ai.models.", "pydantic_ai.providers.", "pydantic_ai._", "pydantic_ai.agent.", "pydantic_ai.toolsets.",
    "agents.models.", "agents.tracing.", "agents.run.", "agents.run_internal.",
)  # fmt: skip
"""The same, of packages that also have objects which a program keeps its state in: stores,
memories, contexts.
"""

_STORES = (
    "workflows.context.state_store.", "rich.table.", "rich.tree.", "rich.text.", "rich.progress.",
)  # fmt: skip
"""Modules of all those whose objects hold the program's state all the same."""

_DATA_BASES = frozenset({"BaseModel"})


def kind_of_type(kind: type) -> Kind | None:
    """How objects of this very type are looked at; None: they keep no state that a program sees as
    its own.
    """
    try:
        return _KNOWN[kind]
    except KeyError:
        found = _KNOWN[kind] = _find_kind(kind)
        return found


_KNOWN: weakref.WeakKeyDictionary[type, Kind | None] = weakref.WeakKeyDictionary()


def _find_kind(kind: type) -> Kind | None:  # noqa: PLR0911 - one line a sort of type
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if kind in SCALARS or issubclass(kind, (Enum, BaseException, ModuleType)):
        return MEMBER if issubclass(kind, Enum) and not is_library_class(kind) else None
    root = kind.__module__.partition(".")[0]
    for base in kind.__mro__:
        whole = _WHOLE_BY_NAME.get((base.__module__.partition(".")[0], base.__name__))
        if whole is not None:
            return whole
    if is_library_class(kind) and issubclass(kind, logging.Handler):
        return HANDLER
    if is_library_class(kind) and _is_machinery(kind, root):
        return TRAITS if is_widget(kind) else None
    for base, found in (
        (list, SEQUENCE),
        (deque, SEQUENCE),
        (dict, MAPPING),
        (set, SET),
        (tuple, TUPLE),
    ):
        if issubclass(kind, base):
            return found
    if kind in (frozenset, FunctionType, BuiltinFunctionType, *LINKS):
        return None
    return ATTRIBUTES if _has_state(kind, root) else None


def _is_machinery(kind: type, root: str) -> bool:
    module = f"{kind.__module__}."
    return (root in RESOURCES or module.startswith(MACHINERY)) and not module.startswith(_STORES)


def is_widget(kind: type) -> bool:
    return any(
        base.__name__ == "Widget" and base.__module__.startswith("ipywidgets")
        for base in kind.__mro__
    )


def _has_state(kind: type, root: str) -> bool:
    if not is_library_class(kind):
        return True
    if is_dataclass(kind) or any(base.__name__ in _DATA_BASES for base in kind.__mro__):
        return root not in ("typing", "dataclasses")
    if root in STANDARD_MACHINERY and kind.__module__ not in _STATE:
        return False
    return bool(kind.__dictoffset__) or root not in sys.stdlib_module_names


def also_inside(kind: type) -> tuple[str, ...]:
    """What else an object of this type leads to: a container's own attributes, and the class that
    the user wrote.
    """
    try:
        return _ALSO[kind]
    except KeyError:
        found = _ALSO[kind] = _list_inner_attributes(kind)
        return found


_ALSO: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def _list_inner_attributes(kind: type) -> tuple[str, ...]:
    found = []
    if kind not in _BY_TYPE and issubclass(kind, (list, deque, dict, set)) and kind.__dictoffset__:
        found.append("__dict__")
    if is_model(kind):
        found += MODEL_STATE
    if is_widget(kind):
        found.append("_trait_notifiers")  # what listens to it
    if is_users_class(kind):
        found.append("__class__")
    return tuple(found)


def is_librarys(kind: type) -> bool:
    return kind not in NAMES and is_library_class(kind)


def is_users_class(value: Any) -> bool:
    return isinstance(value, type) and not is_library_class(value) and not issubclass(value, Enum)


def is_users_function(value: Any) -> bool:
    return isinstance(value, FunctionType) and not is_library_file(value.__code__)


def _is_programs_attribute(name: str, value: Any) -> bool:
    """Whether an attribute of a class or a module is the program's. Python sets many of those that
    begin with two underscores.
    """
    if not name.startswith("__") and not _is_code(value):
        return True
    return any(True for _ in functions_of(value))


def functions_of(member: Any) -> Iterator[FunctionType]:
    """The functions of the user's that a member of a class runs."""
    found = (
        member,
        *(getattr(member, name, None) for name in ("__func__", "fget", "fset", "fdel")),
    )
    yield from (each for each in found if is_users_function(each))


def _is_code(value: Any) -> bool:
    return isinstance(
        value,
        (FunctionType, BuiltinFunctionType, type, ModuleType, staticmethod, classmethod, property),
    ) or hasattr(type(value), "__get__")
