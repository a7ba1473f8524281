"""Objects that are written, compared and put back as a whole: arrays, tables, random generators, open
files, database connections, and what is only named where it changed.
"""

from __future__ import annotations

import array
import asyncio
import concurrent.futures
import gc
import io
import mmap
import os
import random
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from types import (
    GeneratorType,
)
from typing import Any

from tape_jupyter.core.futures import FUTURES
from tape_jupyter.core.memoised import MEMOISED, Kept, read_settable
from tape_jupyter.core.open_file import OPEN_FILE
from tape_jupyter.core.readable_memory import owns_memory, require_readable
from tape_jupyter.effects import figures, hidden_state, iterators
from tape_jupyter.effects.paths import Step
from tape_jupyter.effects.quiet_connections import quiet, quiet_cursor
from tape_jupyter.encoding.values.walker import CannotFreeze
from tape_jupyter.errors import CassetteError


class WholeKind:
    """An object that is written, compared and put back as a whole: arrays, tables, random
    generators.
    """

    def __init__(
        self,
        digest: Callable[[Any], Any],
        setter: Callable[[Any, Any], None],
        read: Callable[[Any], Any] | None = None,
    ) -> None:
        self.copy_state, self.put, self.read = digest, setter, read or (lambda value: value)

    def same(self, before: Any, now: Any) -> bool:
        return bool(before == now)

    def inside(self, _state: Any) -> Iterator[tuple[Step, Any]]:
        return iter(())


class MemoisedKind(WholeKind):
    """A memoised function: what it keeps is written entry by entry, where its code is Python's."""

    def same(self, before: Any, now: Any) -> bool:
        if isinstance(before, Kept) and isinstance(now, Kept):
            return before.is_kept(now)
        return super().same(before, now)


# ---- whole objects


def _put_bytes(live: Any, recorded: Any) -> None:
    live[:] = recorded


def _put_mapped(live: Any, recorded: Any) -> None:
    """`recorded` is the bytes and where it stands; in older recordings, the bytes."""
    data, place = recorded if isinstance(recorded, tuple) else (recorded, live.tell())
    _put_bytes(live, data)
    live.seek(place)


def _digest_array(value: Any) -> Any:
    """Shape, type and a checksum of the content: the fastest there is, since it is only compared in
    this process.
    """
    require_readable(value)
    if value.dtype.hasobject:
        return (value.shape, [(id(item), repr(item)[:200]) for item in value.ravel()])
    if value.flags.c_contiguous:
        data = value
    elif value.flags.f_contiguous:
        data = value.T
    else:
        data = value.copy()
    return (
        value.shape,
        str(value.dtype),
        zlib.crc32(data.reshape(-1).view("u1").data) if data.size else 0,
    )


def _look_at_c_memory(value: Any) -> bytes | None:
    """None where nobody knows what lies at its address."""
    return bytes(value) if owns_memory(value) else None


def _look_at_array(value: Any) -> Any:
    return _digest_array(value), value.flags.writeable


def _put_array(live: Any, recorded: Any) -> None:
    """`recorded` is the values, or a pair of them and False: nobody may write into it any more."""
    values, writeable = recorded if isinstance(recorded, tuple) else (recorded, True)
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
    if value.flags.writeable:
        return numpy.asarray(value)
    return numpy.array(value), False


def _digest_masked(value: Any) -> Any:
    return _digest_array(value.data), _digest_array(sys.modules["numpy"].ma.getmaskarray(value))


def _read_masked(value: Any) -> Any:
    return sys.modules["numpy"].asarray(value.data), sys.modules["numpy"].ma.getmaskarray(value)


def _put_masked(live: Any, recorded: Any) -> None:
    data, mask = recorded
    live.data[...] = data
    live.mask = mask


def _digest_image(value: Any) -> Any:
    return value.mode, value.size, zlib.crc32(value.tobytes()), repr(value.getpalette())


def _put_image(live: Any, recorded: Any) -> None:
    """Where it can be, in place: what draws on the image holds its pixels."""
    live.load()
    if (live.mode, live.size, live.getpalette()) == (
        recorded.mode,
        recorded.size,
        recorded.getpalette(),
    ):
        live.paste(recorded)
    else:
        live.im, live._mode, live._size = recorded.im, recorded.mode, recorded.size  # noqa: SLF001
        live.palette = recorded.palette


def _read_permits(value: Any) -> Any:
    """How many may still come in."""
    return value._value  # noqa: SLF001 - nothing else tells


def _put_permits(live: Any, recorded: int) -> None:
    while _read_permits(live) < recorded:
        live.release()
    if _read_permits(live) > recorded:
        live._value = recorded  # noqa: SLF001


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
    flag = value.flags.allows_duplicate_labels
    return columns, arrays, placed, labels, codes, tuple(index.names), named, flag


def _digest_values(values: Any) -> Any:
    numpy = sys.modules["numpy"]
    if isinstance(values, numpy.ndarray) and not values.dtype.hasobject:
        return _digest_array(values)
    plain = getattr(values, "_ndarray", None)
    if isinstance(plain, numpy.ndarray) and not plain.dtype.hasobject:
        return _digest_array(plain)
    items = list(numpy.asarray(values, dtype=object).ravel())
    return zlib.crc32("\x1f".join(map(repr, items)).encode("utf-8", "surrogatepass")), len(items)


def _put_frame(live: Any, recorded: Any) -> None:
    live.flags.allows_duplicate_labels = True
    live._update_inplace(recorded)  # noqa: SLF001 - what pandas' own `inplace=True` does
    if live.ndim == 1:
        live.name = recorded.name
    live.flags.allows_duplicate_labels = recorded.flags.allows_duplicate_labels


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
        pragmas = ("schema_version", "user_version")
        with quiet_cursor(value) as cursor:
            version = [cursor.execute(f"PRAGMA {each}").fetchone()[0] for each in pragmas]
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
    with quiet_cursor(connection) as cursor:
        return connection.serialize() if cursor.execute("PRAGMA page_count").fetchone()[0] else b""


def _list_factories() -> dict[str, Any]:
    import sqlite3

    return {"": None, "Row": sqlite3.Row, "str": str, "bytes": bytes}


def _find_factory_name(connection: Any, factory: Any) -> str:
    for name, each in _list_factories().items():
        if each is factory:
            return name
    raise CannotFreeze(None, connection, "a function makes its rows, and code is not recorded")


def file_of_value(value: Any) -> str:
    """The file that an open file or a database connection writes to, the attached ones aside; "" where
    there is none.
    """
    return next(iter(files_of_value(value)), "")


def files_of_value(value: Any) -> list[str]:
    """The same, with attached databases; "" first where the main one is in memory."""
    if isinstance(value, OPEN_FILE):
        return [_find_written_name(value)]
    if type(value).__name__ == "memmap":  # of numpy's
        return [str(value.filename or "")]
    return [name for _, _, name in _list_databases(value)]


def _list_databases(connection: Any) -> list[Any]:
    """Number, name and file of each that is open in a connection; none where it cannot be asked."""
    try:
        with quiet_cursor(connection) as cursor:
            rows: list[Any] = cursor.execute("PRAGMA database_list").fetchall()
            return rows
    except Exception:  # closed, or of another thread
        return []


def _find_written_name(file: Any) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) and not file.closed and file.writable() else ""


def database_of(engine: Any) -> str:
    """The file of a SQLAlchemy engine for SQLite, whose connections are kept open; "" for any other."""
    url = getattr(engine, "url", None)
    name = getattr(url, "database", None) or ""
    sqlite = str(getattr(url, "drivername", "")).startswith("sqlite")
    return os.path.abspath(name) if sqlite and name not in ("", ":memory:") else ""  # noqa: PTH100


def describes_tables(value: Any) -> bool:
    """Whether it is a table of SQLAlchemy's, or what keeps those."""
    kind = type(value)
    return kind.__module__ == "sqlalchemy.sql.schema" and kind.__name__ in ("MetaData", "Table")


def tables_described(value: Any) -> Any:
    """The tables, with their columns, and how many indexes and constraints they have."""
    tables = value.tables.values() if hasattr(value, "tables") else [value]
    return [(t, list(t.columns), len(t.indexes), len(t.constraints)) for t in tables]


def _look_at_handle(value: Any) -> Any:
    """Where an open file stands; what is written so far is in the file."""
    if value.closed or not value.seekable():
        return None
    if value.writable():
        value.flush()
    return _add_memory(value, _find_place(value))


def _add_memory(file: Any, place: Any) -> Any:
    """A place, with the bytes in memory where a text is written into such."""
    return (file.buffer.getvalue(), place) if _is_text_over_memory(file) else place


def _is_text_over_memory(file: Any) -> bool:
    """Whether a text is written into bytes in memory: they are nowhere else."""
    return isinstance(getattr(file, "buffer", None), io.BytesIO)


def _find_place(file: Any) -> Any:
    """Where it stands; what is read on line by line tells only how far it was read ahead."""
    try:
        return file.tell()
    except OSError:
        return [file.buffer.tell()]


def _read_place(file: Any) -> Any:
    buffer = getattr(file, "buffer", None)
    if type(buffer).__module__ in ("gzip", "bz2", "lzma"):
        return _read_compressed_place(buffer)
    place = _find_place(file)
    if isinstance(place, list):
        raise CannotFreeze(None, file, "how far its lines were read is not known")
    return _add_memory(file, int(place))


def _put_handle(live: Any, position: Any) -> None:
    if live.writable():
        live.flush()
    if _is_text_over_memory(live):
        _put_memory_file(live.buffer, position)
        position = position[1]
    elif _measure_file(live) < position < _FARTHEST:
        raise CassetteError("it is open on another file here, which does not reach so far")
    live.seek(position)


_FARTHEST = 1 << 63
"""Beyond which a place in a text tells more than how many bytes stand before it."""


def _measure_file(file: Any) -> int:
    """Bytes of the file that it is open on; without a file, or where a place is told in another way
    than by bytes, more than any place.
    """
    plain = getattr(file, "encoding", "utf-8").lower() in (
        "utf-8",
        "ascii",
        "latin-1",
        "iso-8859-1",
    )
    try:
        return os.fstat(file.fileno()).st_size if plain else sys.maxsize
    except (OSError, ValueError):
        return sys.maxsize


def _put_connection(live: Any, recorded: Any) -> None:
    """Let the live connection's main database hold what the recorded one held, which it may have
    committed or not.
    """
    import sqlite3

    data, is_open, *shape = (recorded, False) if isinstance(recorded, bytes) else recorded
    for names in shape:
        live.row_factory, live.text_factory = (_list_factories()[name] for name in names)
    if data is None:
        return
    scratch = sqlite3.connect(":memory:")
    try:
        with quiet(live):
            _put_database(live, scratch, data, is_open=is_open)
    finally:
        scratch.close()


def _put_database(live: Any, scratch: Any, data: bytes, *, is_open: bool) -> None:
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


def _read_schema(connection: Any) -> list[Any]:
    """Its schema; a trigger would do more than what is put there."""
    with quiet_cursor(connection) as cursor:
        schema: list[Any] = cursor.execute(
            "SELECT type, name, sql FROM sqlite_master ORDER BY name"
        ).fetchall()
    return [object()] if any(kind == "trigger" for kind, _, _ in schema) else schema


def _put_rows(live: Any, scratch: Any) -> None:
    """In a transaction that stays open: the program may still commit it, or take it back."""
    cursor = live.cursor()
    if not live.in_transaction:
        cursor.execute("BEGIN")
    sqls = {name: sql for kind, name, sql in _read_schema(scratch) if kind == "table"}
    for name in sqls:
        cursor.execute(f'DELETE FROM "{name}"')  # noqa: S608
    for name, sql in sqls.items():
        table_info = scratch.execute(f'PRAGMA table_info("{name}")').fetchall()
        columns = [f'"{each[1]}"' for each in table_info]
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
        with quiet_cursor(connection) as cursor:
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
        with quiet_cursor(connection) as cursor:
            functions = cursor.execute("SELECT count(*) FROM pragma_function_list").fetchone()[0]
            return functions + len(cursor.execute("PRAGMA collation_list").fetchall())
    except Exception:  # closed, or of another thread
        return None


def look_at_kept(function: Any) -> Any:
    """What it keeps; only how much that is where it cannot be set again."""
    kept = read_settable(function)
    return function.cache_info() if kept is None else kept


def _put_memory_file(live: Any, recorded: Any) -> None:
    live.seek(0)
    live.truncate()
    live.write(recorded[0])
    live.seek(recorded[1])


def _read_future(value: Any) -> Any:
    """What became of a future: a list of its result, or None where it was cancelled."""
    if value.cancelled():
        return None
    if value.exception() is not None:
        raise CannotFreeze(None, value, "its exception is not recorded")
    return [value.result()]


def _put_future(live: Any, recorded: Any) -> None:
    live.cancel() if recorded is None else live.set_result(recorded[0])


def _look_at_generator(value: Any) -> Any:
    """How far a generator is: nobody can put it there, but it is said."""
    frame = value.gi_frame
    if frame is None:
        return None
    return (frame.f_lasti, {name: repr(each)[:200] for name, each in frame.f_locals.items()})


def _look_at_cookies(jar: Any) -> Any:
    return [(each.domain, each.path, each.name, each.value) for each in jar]


def _read_line_number(reader: Any) -> int:
    """How many lines a reader of csv has read. Raises CannotFreeze where others would read them in
    replay, too: code of the program's.
    """
    plain = (OPEN_FILE, *iterators.TYPES)
    if not any(isinstance(each, plain) for each in gc.get_referents(reader)):
        raise CannotFreeze(None, reader, "reading it further would run the program's code")
    return int(reader.line_num)


def _read_rows_on(reader: Any, lines: int) -> None:
    while reader.line_num < lines and next(reader, None) is not None:
        pass
    if reader.line_num != lines:
        raise CassetteError("it cannot be read to where the recorded one was")


def _look_at_tee(value: Any) -> Any:
    """How far one of several readers of an iterator is; None from Python 3.14 on, which tells not."""
    try:
        _make, _args, (block, index) = value.__reduce__()
    except (TypeError, ValueError):
        return None
    return id(block), index


def _look_at_mock(value: Any) -> Any:
    attributes = vars(value)
    return attributes.get("_mock_call_count"), len(attributes.get("_mock_children", ()))


def _look_at_socket(value: Any) -> Any:
    """Whether it is open, where it is bound, and how long it waits."""
    try:
        return value.fileno(), value.gettimeout(), value.getsockname()
    except OSError:
        return value.fileno(), value.gettimeout()


def _build_named_kind(
    digest: Callable[[Any], Any], why: str = "how it ended is not recorded"
) -> WholeKind:
    """Of what is only named where it changed."""
    return WholeKind(digest, _refuse_put, _build_refusing_read(why))


def _look_at_client(value: Any) -> Any:
    """What a client of HTTP sends with each request."""
    parts = {
        name: getattr(value, name, None)
        for name in (
            "headers",
            "cookies",
            "cookie_jar",
            "params",
            "auth",
            "_default_auth",
            "base_url",
        )
    }
    jars = [parts[name] for name in ("cookies", "cookie_jar") if parts[name] is not None]
    cookies: Iterator[Any] = (each for jar in jars for each in getattr(jar, "jar", jar) or ())
    kept = [
        (getattr(each, "name", getattr(each, "key", each)), getattr(each, "value", ""))
        for each in cookies
    ]
    others = [str(parts[name]) for name in ("params", "base_url")]
    return sorted(dict(parts["headers"] or {}).items()), kept, others, id(parts["auth"])


def _read_compressed_place(value: Any) -> int:
    """Where it is read on. Raises CannotFreeze where it is written: some waits in the compressor."""
    if value.writable():
        raise CannotFreeze(None, value, "what was written to it and is compressed is not recorded")
    return int(value.tell())


def _put_compressed_place(live: Any, place: int) -> None:
    if live.writable():
        raise CassetteError("it is read from when it was recorded, and written to here")
    live.seek(place)


def _look_at_compressed(value: Any) -> Any:
    return None if value.closed else value.tell()


def _build_refusing_read(what: str) -> Callable[[Any], Any]:
    def refuse_read(value: Any) -> Any:
        raise CannotFreeze(None, value, what)

    return refuse_read


def _refuse_put(_live: Any, _recorded: Any) -> None:
    raise CassetteError("how it ended is not on the tape")


_BYTEARRAY = WholeKind(bytes, _put_bytes, bytes)
_MAPPED = WholeKind(
    lambda value: None if value.closed else (zlib.crc32(value), value.tell()),
    _put_mapped,
    lambda value: (value[:], value.tell()),
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
    lambda live, recorded: live.set() if recorded else live.clear(),
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
    figures.drawn, _refuse_put, _build_refusing_read("what is drawn in it cannot be recorded")
)
_MEMORY_FILE = WholeKind(
    lambda v: (v.getvalue(), v.tell()), _put_memory_file, lambda v: (v.getvalue(), v.tell())
)
_POSITION = WholeKind(iterators.position, iterators.advance, iterators.read_position)
_ADVANCED = WholeKind(
    _look_at_generator,
    _refuse_put,
    _build_refusing_read("it was read further, and a replay cannot move it there"),
)
MEMOISED_FUNCTION = MemoisedKind(
    look_at_kept,
    _refuse_put,
    _build_refusing_read("what it caches cannot be recorded"),
)
CONNECTION = WholeKind(_look_at_connection, _put_connection, _read_connection)
HIDDEN = _build_named_kind(hidden_state.read_state)
_HASH = _build_named_kind(lambda value: value.digest())
_FOREIGN = WholeKind(
    _look_at_c_memory,
    _refuse_put,
    _build_refusing_read("it is memory of C code, and a recording does not write to it"),
)

BY_CLASS_NAME: dict[tuple[str, str], WholeKind] = {
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
    ("http.cookiejar", "CookieJar"): _build_named_kind(
        _look_at_cookies, "a recording does not keep cookies that clients send"
    ),
    **dict.fromkeys(
        [("lxml", "_Element"), ("lxml", "_ElementTree")],
        _build_named_kind(hidden_state.digest_lxml),
    ),
    **dict.fromkeys(
        [("polars", "DataFrame"), ("polars", "Series")],
        WholeKind(hidden_state.digest_polars, hidden_state.put_polars),
    ),
    ("_duckdb", "DuckDBPyConnection"): _build_named_kind(hidden_state.look_at_duckdb),
    ("pyarrow", "NativeFile"): _build_named_kind(
        lambda value: None if value.closed else value.tell()
    ),
    ("builtins", "iterator"): _build_named_kind(lambda value: value.__reduce__()[2:]),
    ("numpy", "flatiter"): _build_named_kind(lambda value: value.index),
    ("numpy", "nditer"): _build_named_kind(lambda value: value.iterindex),
    **dict.fromkeys([("_hashlib", "HASH"), ("_blake2", "blake2b"), ("_blake2", "blake2s")], _HASH),
    **dict.fromkeys(
        [("requests", "Session"), ("httpx", "BaseClient"), ("aiohttp", "ClientSession")],
        _build_named_kind(_look_at_client, "a recording does not keep what a client sends: keys"),
    ),
    **dict.fromkeys(
        [("gzip", "GzipFile"), ("bz2", "BZ2File"), ("lzma", "LZMAFile")],
        WholeKind(_look_at_compressed, _put_compressed_place, _read_compressed_place),
    ),
    ("zipfile", "ZipFile"): _build_named_kind(lambda value: value.namelist()),
    ("tarfile", "TarFile"): _build_named_kind(lambda value: (value.offset, value.closed)),
    ("_queue", "SimpleQueue"): _build_named_kind(lambda value: value.qsize()),
    ("_csv", "reader"): WholeKind(lambda value: value.line_num, _read_rows_on, _read_line_number),
    ("itertools", "_tee"): _build_named_kind(_look_at_tee),
    **dict.fromkeys(
        [("_pickle", "Pickler"), ("_pickle", "Unpickler")],
        _build_named_kind(
            lambda value: len(value.memo.copy()), "which objects it knows already is not recorded"
        ),
    ),
    ("_struct", "unpack_iterator"): _build_named_kind(lambda value: value.__length_hint__()),
    ("threading", "Barrier"): _build_named_kind(lambda value: (value.broken, value.n_waiting)),
    ("concurrent", "Executor"): _build_named_kind(lambda value: getattr(value, "_shutdown", None)),
    ("multiprocessing", "SimpleQueue"): _build_named_kind(lambda value: value.empty()),
    ("asyncio", "BaseEventLoop"): _build_named_kind(
        lambda value: (
            value.get_debug(),
            value.get_exception_handler(),
            value.get_task_factory(),
            value.is_closed(),
        )
    ),
    ("_contextvars", "Context"): _build_named_kind(lambda value: dict(value.items())),
    ("ssl", "SSLContext"): _build_named_kind(
        lambda value: (value.check_hostname, value.verify_mode, value.options)
    ),
    **dict.fromkeys(
        [("_ctypes", name) for name in ("Structure", "Union", "Array", "_SimpleCData")], _FOREIGN
    ),
}
"""By package, or module, and name of a class; also of what is derived of it (`find_by_class_name`)."""


def find_by_class_name(kind: type) -> WholeKind | None:
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        for where in (package, base.__module__):
            if (where, base.__name__) in BY_CLASS_NAME:
                return BY_CLASS_NAME[where, base.__name__]
    return None


BY_TYPE: dict[type, WholeKind] = {
    bytearray: _BYTEARRAY, array.array: _ARRAY_ARRAY, random.Random: _RANDOM, mmap.mmap: _MAPPED,
    io.StringIO: _MEMORY_FILE, io.BytesIO: _MEMORY_FILE, GeneratorType: _ADVANCED,
    MEMOISED: MEMOISED_FUNCTION,
    **dict.fromkeys(
        (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO), _HANDLE
    ),
    **dict.fromkeys(iterators.TYPES, _POSITION),
    **dict.fromkeys(FUTURES, _FUTURE), concurrent.futures.Future: _FUTURE,
    threading.Event: _EVENT, asyncio.Event: _EVENT,
    **dict.fromkeys(
        (threading.Semaphore, threading.BoundedSemaphore, asyncio.Semaphore, asyncio.BoundedSemaphore), _SEMAPHORE
    ),
}  # fmt: skip
