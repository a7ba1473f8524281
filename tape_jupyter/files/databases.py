"""Files of SQLite: what is in one, wherever its rows lie, and which files it keeps for itself.

The format: https://sqlite.org/fileformat2.html. Bytes 18 and 19 of a file are 2 where it keeps a
write-ahead log beside it, else 1.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

SQLITE = b"SQLite format 3\0"
"""Begins each database."""
BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite adds to a database's name for files of its own."""
_DUMPED = 16 << 20
"""Bytes of a database beyond which it is not read."""


def read_whole(path: Path) -> bytes:
    """What a regular file holds; of a database also the rows that are only in the log beside it yet.
    Raises OSError.
    """
    content = path.read_bytes()
    if not content.startswith(SQLITE) or content[18:19] != b"\2" or not _has_log(path):
        return content
    try:
        address = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=1.0)) as database:
            return database.serialize()
    except sqlite3.Error as why:
        raise OSError(str(why)) from why


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.is_file() and log.stat().st_size > 0


def dump_rows(content: bytes) -> bytes:
    """The statements that make a database as it is, or its bytes where it cannot be read: how its pages
    lie comes of the order in which they were written.
    """
    if len(content) > _DUMPED:
        return content
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(without_log(content))
            return "\n".join(database.iterdump()).encode("utf-8", "surrogatepass")
        except (sqlite3.Error, UnicodeError):
            return content


def without_log(content: bytes) -> bytes:
    """A database as one that keeps no log: in memory SQLite opens no other."""
    return content[:18] + b"\1\1" + content[20:]


def is_kept_beside(path: str) -> bool:
    """Whether it is a file of SQLite's own: a database lies there whose name it has, and an ending."""
    return any(path.endswith(end) and _is_database(path.removesuffix(end)) for end in BESIDE)


def _is_database(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a text, as audit hooks have them
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False
