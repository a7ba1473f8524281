"""Codecs of what databases and child processes gave: rows and cursors of sqlite3, a
CompletedProcess.

A thawed row or cursor is a real one, of a database in memory that holds nothing. No statement comes
from a structure: the only words of it that reach SQL are column names, quoted.
"""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from typing import Any

from tape_jupyter.encoding.values.walker import At, Codec, Freezer, Thawer, need, place_text
from tape_jupyter.errors import CassetteError

# Child processes


def _freeze_completed(done: Any, walk: Freezer, at: At) -> dict[str, Any]:
    return walk.mapping(vars(done), at)


def _thaw_completed(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    parts = [
        walk.thaw(s.get(name), (at, name)) for name in ("args", "returncode", "stdout", "stderr")
    ]
    return subprocess.CompletedProcess(*parts)


# sqlite3


class RecordedCursor(sqlite3.Cursor):
    """A cursor whose rows are all there: what a taped query gives, while recording and in replay
    alike.
    """

    def __init__(
        self, description: Any, rows: list[Any], rowcount: int = -1, lastrowid: int | None = None
    ) -> None:
        with closing(_open_empty_database()) as database:
            super().__init__(database)
        self._description = description
        self.rows = rows
        self._rowcount = rowcount
        self._lastrowid = lastrowid
        self._left = iter(rows)

    description = property(lambda self: self._description)
    rowcount = property(lambda self: self._rowcount)
    lastrowid = property(lambda self: self._lastrowid)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return self

    def __next__(self) -> Any:
        return next(self._left)

    def fetchone(self) -> Any:
        return next(self._left, None)

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        count = self.arraysize if size is None else size
        return [row for _, row in zip(range(count), self._left, strict=False)]

    def fetchall(self) -> list[Any]:
        return list(self._left)


def recorded_cursor(cursor: sqlite3.Cursor) -> RecordedCursor:
    """The cursor read to its end."""
    return RecordedCursor(cursor.description, cursor.fetchall(), cursor.rowcount, cursor.lastrowid)


def _open_empty_database() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", check_same_thread=False)


@lru_cache(maxsize=64)
def _build_empty_cursor(columns: tuple[str, ...]) -> sqlite3.Cursor:
    quoted = ('"' + name.replace('"', '""') + '"' for name in columns)
    with closing(_open_empty_database()) as database:
        return database.execute(f"SELECT {', '.join(f'NULL AS {name}' for name in quoted)} WHERE 0")


def _freeze_row(row: Any, walk: Freezer, at: At) -> dict[str, Any]:
    return {"columns": list(row.keys()), "values": walk.sequence(tuple(row), (at, "values"))}


def _thaw_row(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    columns = tuple(
        need(name, str, (at, "columns")) for name in need(s["columns"], list, (at, "columns"))
    )
    values = tuple(walk.sequence(s["values"], (at, "values")))
    if len(columns) != len(values) or not columns:
        raise CassetteError(f"{place_text(at)}: {len(values)} values for {len(columns)} columns")
    return sqlite3.Row(_build_empty_cursor(columns), values)


def _freeze_cursor(cursor: Any, walk: Freezer, at: At) -> dict[str, Any]:
    if cursor.description is None:
        columns = None
    else:
        columns = [column[0] for column in cursor.description]
    structure = {"columns": columns, "rows": walk.sequence(cursor.rows, (at, "rows"))}
    numbers = {"rowcount": cursor.rowcount, "lastrowid": cursor.lastrowid}
    return structure | {
        name: number for name, number in numbers.items() if number not in (-1, None)
    }


def _thaw_cursor(s: dict[str, Any], walk: Thawer, at: At) -> RecordedCursor:
    columns = s["columns"] and [
        need(name, str, (at, "columns")) for name in need(s["columns"], list, (at, "columns"))
    ]
    description = columns and tuple((name, *(None,) * 6) for name in columns)
    rows = walk.sequence(s["rows"], (at, "rows"))
    return RecordedCursor(description, rows, s.get("rowcount", -1), s.get("lastrowid"))


_COMPLETED = Codec("CompletedProcess", _freeze_completed, _thaw_completed, shared=True)
_ROW = Codec("sqlite3 row", _freeze_row, _thaw_row)
_CURSOR = Codec("sqlite3 cursor", _freeze_cursor, _thaw_cursor, shared=True)
_BY_TYPE: dict[type, Codec] = {
    subprocess.CompletedProcess: _COMPLETED,
    sqlite3.Row: _ROW,
    RecordedCursor: _CURSOR,
}
BY_NAME = {codec.name: codec for codec in _BY_TYPE.values()}


def codec_for(kind: type) -> Codec | None:
    """The codec of a class of these modules; what is derived from one has none."""
    return _BY_TYPE.get(kind)
