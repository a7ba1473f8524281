"""What a file was when the session first opened it for writing, or somebody changed it in a cell.

Databases are written in C, where no hook of Python's hears of it, and so are the files of many a
library. A database is known from the moment that it is connected to, with the files that SQLite
keeps beside it. Of the others the names, sizes and times in the folder that the kernel started in
are compared before and after each cell.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tape_jupyter.core.user_code import bag
from tape_jupyter.files.databases import BESIDE

KEPT = 1 << 20
"""Bytes of one file that are kept."""
KEPT_ALL = 8 << 20
HASHED = 64 << 20
MANY = 200
"""Files and folders that are looked at before and after a cell; where there are more, none is from
then on.
"""
CLOCKS = 50_000_000
"""Nanoseconds by which the time of a file may differ from the clock that cells are timed by: systems
write down that of their last tick.
"""
_LEFT = bag("__pycache__ node_modules site-packages")


Span = tuple[int, int]
"""When something began and ended, nanoseconds of the epoch."""


@dataclass(frozen=True, slots=True)
class First:
    """`there`: whether it was; `sha256` "" and `content` None where they are not known."""

    there: bool
    size: int = 0
    sha256: str = ""
    content: bytes | None = None

    def record(self) -> dict[str, Any]:
        """For the tape."""
        if not self.there:
            return {"before": "none"}
        known = {"sha256": self.sha256} if self.sha256 else {}
        if self.content is None:
            kept = {}
        else:
            kept = {"base64": base64.b64encode(self.content).decode()}
        return {"before": "file", "size": self.size, **known, **kept}


class Firsts:
    """Of one session. Paths are absolute; `watched` says which may be somebody's."""

    def __init__(self, watched: Callable[[str], bool]) -> None:
        self.wanted = True
        """Whether anything is recorded in this session: a replay does not look at files for it."""
        self._watched = watched
        self._first: dict[str, First] = {}
        self._kept = 0
        self._home = os.getcwd()  # noqa: PTH109 - plain texts throughout, as audit hooks have them
        self._lay: dict[str, tuple[int, int]] | None = None
        self._crowded = False

    def note(self, path: str) -> None:
        """The file is about to be written. A pipe or device has no content that could be told."""
        if (
            self.wanted
            and path not in self._first
            and (is_regular(path) or not os.path.exists(path))  # noqa: PTH110
        ):
            self._first[path] = self._read_first(path)

    def connected(self, path: str) -> None:
        """The database is about to be opened."""
        for each in (path, *(f"{path}{end}" for end in BESIDE)):
            self.note(each)

    def changed_by_others(self, path: str, before: bytes | None) -> None:
        """A process changed it; `before` are its bytes, None where there was no file."""
        self._first.setdefault(
            path, First(there=False) if before is None else self._build_first(before)
        )

    def begin(self) -> None:
        """A cell begins."""
        self._lay = self._list_files() if self.wanted and not self._crowded else None

    def end(self, spans: Sequence[Span] = ()) -> None:
        """It ended. `spans`: not one cell ran since `begin` but several, at these times; what was
        changed between them was changed by others.
        """
        was, self._lay = self._lay, None
        now = self._list_files() if was is not None else None
        if was is None or now is None:
            return
        for path, (_, size) in now.items():
            if was.get(path) == now[path] or not self._watched(path):
                continue
            if spans and not _was_changed_within(path, spans):
                continue
            if path not in was:
                self._first.setdefault(path, First(there=False))
            elif size >= 0:
                self._first.setdefault(path, First(there=True, size=was[path][1]))

    def changed(self, top: str) -> Iterator[tuple[str, First]]:
        """What is not as it was, below a folder; of a new folder nothing below it."""
        new_folders: list[str] = []
        for path, first in sorted(self._first.items()):
            if not path.startswith(top + os.sep) or path.startswith(tuple(new_folders)):
                continue
            if not first.there and os.path.isdir(path):  # noqa: PTH112
                new_folders.append(path + os.sep)
            if _is_different(path, first):
                yield path, first

    def _read_first(self, path: str) -> First:
        try:
            size = os.stat(path).st_size  # noqa: PTH116
        except OSError:
            return First(there=os.path.lexists(path))
        if size > HASHED:
            return First(there=True, size=size)
        if size > KEPT:
            return First(there=True, size=size, sha256=digest_file(path))
        try:
            return self._build_first(Path(path).read_bytes())
        except OSError:
            return First(there=True, size=size)

    def _build_first(self, content: bytes) -> First:
        sha256 = hashlib.sha256(content).hexdigest()
        if len(content) > KEPT or self._kept + len(content) > KEPT_ALL:
            return First(there=True, size=len(content), sha256=sha256)
        self._kept += len(content)
        return First(there=True, size=len(content), sha256=sha256, content=content)

    def _list_files(self) -> dict[str, tuple[int, int]] | None:
        """Time and size (-1 of a folder) by path; None where there is too much."""
        files: dict[str, tuple[int, int]] = {}
        waiting = [self._home]
        while waiting:
            try:
                entries = list(os.scandir(waiting.pop()))
            except OSError:
                continue
            for each in entries:
                if each.name.startswith(".") or each.name in _LEFT or each.name.endswith(".tapes"):
                    continue
                if len(files) == MANY:
                    self._crowded = True
                    return None
                folder = each.is_dir(follow_symlinks=False)
                waiting += [each.path] if folder else []
                try:
                    about = each.stat(follow_symlinks=False)
                except OSError:
                    continue
                files[each.path] = (0, -1) if folder else (about.st_mtime_ns, about.st_size)
        return files


def find_database(name: Any) -> tuple[str, bool]:
    """The absolute path of what SQLite is to open, "" where that is no file; whether for writing."""
    text = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
    options: dict[str, list[str]] = {}
    if text.startswith("file:"):
        parts = urlsplit(text)
        options, text = parse_qs(parts.query), unquote(parts.path)
    mode = options.get("mode", ())
    if text in ("", ":memory:") or "memory" in mode:
        return "", False
    writes = "ro" not in mode and "1" not in options.get("immutable", ())
    return os.path.abspath(text), writes  # noqa: PTH100


def is_regular(path: str | Path) -> bool:
    """Whether it can be read to its end: reading a pipe would wait for who writes into it."""
    return os.path.isfile(path)  # noqa: PTH113 - S_ISREG of what it leads to


def digest_file(path: str | Path) -> str:
    """sha256 (hex) of a regular file; "" where it cannot be read."""
    if not is_regular(path):
        return ""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _was_changed_within(path: str, spans: Sequence[Span]) -> bool:
    """Whether a file was changed last at one of these times, give or take CLOCKS."""
    try:
        about = os.stat(path)  # noqa: PTH116
    except OSError:
        return False
    times = about.st_mtime_ns, about.st_ctime_ns
    return any(began - CLOCKS <= time <= ended + CLOCKS for began, ended in spans for time in times)


def _is_different(path: str, first: First) -> bool:
    try:
        about = os.stat(path)  # noqa: PTH116
    except OSError:
        return first.there
    if not first.there or about.st_size != first.size or not first.sha256:
        return True
    return digest_file(path) != first.sha256
