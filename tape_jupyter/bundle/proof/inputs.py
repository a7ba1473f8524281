"""Which files the proof's kernel reads, as they were when they were first opened. Runs inside that
kernel.

Two witnesses. An audit hook hears what Python opens, lists and connects to, in its order, so that a
file that a cell wrote itself is not taken for one that it needs. And access times hear of everybody
else: libraries in C, C++ and Rust that open files by themselves, child processes. They are set back
in a copy of the folder, and looked at in the end.
"""

from __future__ import annotations

import glob
import hashlib
import importlib
import os
import pathlib
import pkgutil
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any
from urllib.parse import unquote, urlsplit

from tape_jupyter.core import audit_listener
from tape_jupyter.files.databases import BESIDE

HASHED = 256 << 20
"""Bytes of the largest file that is hashed: larger ones are never carried."""
LISTED = 1_000
"""Files of a folder that was listed; of one with more, or more than HASHED bytes, only what was
opened is taken.
"""
FILES = 50_000
"""Files of a copy whose access times are set back; beyond that the hook is the only witness."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND
_LISTS = frozenset({"os.listdir", "os.scandir"})
_GLOBS = frozenset({"glob.glob", "pathlib.Path.glob", "pathlib.Path.rglob"})
_HEARD = frozenset({"open", "sqlite3.connect", "os.rename", "os.remove", *_LISTS, *_GLOBS})
_IMPORTS = (
    "<frozen importlib",
    "<frozen zipimport",
    # importlib.metadata lists what is on the path
    os.path.dirname(importlib.__file__) + os.sep,  # noqa: PTH120
    pkgutil.__file__,
)
_SEARCHERS = (
    "-packages/pkg_resources/",
    "-packages/IPython/",
    "-packages/jedi/",
    "-packages/ipykernel/",
)
_SEARCHING = re.compile(r"glob|select|_iterate_directories|_iterdir|_r?listdir")
"""Functions of the standard library's `glob` and `pathlib` that list folders while they match
names.
"""
_NOT_OURS = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints", ".ipython", "node_modules"}
)


@dataclass(frozen=True, slots=True, order=True)
class InputFile:
    """A file that was read: its `path`, and its `size` in bytes and `sha256` (hex; "" of what is
    too large or could not be read) when it was first opened.
    """

    path: str
    size: int
    sha256: str


class InputWatch:
    """What was read since `begin`, by absolute path. `top` is the folder whose files are somebody's
    own; of what lies elsewhere only that is looked at which `watched` says may matter.
    """

    def __init__(self, top: str, watched: Callable[[str], bool]) -> None:
        # an audit hook's paths: plain texts throughout
        self.top = os.path.abspath(top)  # noqa: PTH100
        self._watched = watched
        self.unseen = ""
        """What cannot be seen here, in words; "" nothing."""
        self.crowded: set[str] = set()
        """Folders that were listed and have more in them than is taken."""
        self._read: dict[str, InputFile] = {}
        self._created: set[str] = set()
        self._there: dict[str, int] = {}
        self._listener = audit_listener.Listener(self._handle_event)

    def begin(self, *, copied: bool) -> None:
        """From now on. `copied`: `top` is a copy that nobody else reads, and its access times may
        be set.
        """
        self.unseen = "files that libraries open without Python (parquet, polars, child processes)"
        if copied and _has_access_times(self.top):
            marked = dict(zip(_yield_files(self.top), range(FILES + 1), strict=False))
            if len(marked) <= FILES:
                self._there = {path: _set_access_time(path) for path in marked}
                self.unseen = ""
        sys.addaudithook(self._filter_event)

    def list_files(self) -> list[InputFile]:
        """All that was read and that the run did not make itself, sorted by path."""
        with self._listener.deaf():
            for path, mark in self._there.items():
                if path not in self._created and _is_read_since(path, mark):
                    self._note_file(path)
            for path in _list_mapped():
                self._note_file(path)
        return sorted(self._read.values())

    def _filter_event(
        self, event: str, args: tuple[Any, ...], events: frozenset[str] = _HEARD
    ) -> None:
        if event in events:
            self._listener.handle_event(event, args)

    def _handle_event(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            self._handle_open(*args)
        elif event == "sqlite3.connect":
            self._handle_connect(_find_database(args[0]))
        elif event in ("os.rename", "os.remove"):
            self._handle_move(event, args)
        elif event in _GLOBS:
            for path in _find_matching(event, args):
                self._note_file(path)
        elif not _is_search():
            self._handle_listing(os.getcwd() if args[0] is None else args[0])  # noqa: PTH109

    def _handle_open(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        full = _to_absolute(path)
        writes = isinstance(flags, int) and bool(flags & _WRITES)
        emptied = isinstance(flags, int) and bool(flags & os.O_TRUNC)
        if isinstance(mode, str):
            writes, emptied = any(c in mode for c in "wax+"), mode[:1] in ("w", "x")
        if not emptied:
            self._note_file(full)
        if writes and full not in self._read:
            self._created.add(full)

    def _handle_connect(self, path: str) -> None:
        """A database that is not there is made by whoever connects to it, with what SQLite keeps
        beside it.
        """
        self._note_file(path)
        if path not in self._read and not os.path.exists(path):  # noqa: PTH110
            self._created |= {path, *(f"{path}{end}" for end in BESIDE)}

    def _handle_move(self, event: str, args: tuple[Any, ...]) -> None:
        """What is moved somewhere was made there; what it was made of counts where it was."""
        if event == "os.rename" and not isinstance(args[0], int):
            source, goal = _to_absolute(args[0]), _to_absolute(args[1])
            self._note_file(source)
            if goal not in self._read:
                self._created.add(goal)

    def _handle_listing(self, folder: Any) -> None:
        """Whoever lists a folder of his own may count what is there: its files are part of what was
        read.
        """
        if isinstance(folder, int):
            return
        full = _to_absolute(folder)
        if full in self.crowded or not (full == self.top or full.startswith(self.top + os.sep)):
            return
        with os.scandir(full) as listed:
            files = [each for each in listed if not each.name.startswith(".") and each.is_file()]
        if len(files) > LISTED or sum(each.stat().st_size for each in files) > HASHED:
            self.crowded.add(full)
            return
        for each in files:
            if not each.name.endswith(".pyc"):
                self._note_file(each.path)

    def _note_file(self, path: str) -> None:
        if path in self._read or path in self._created:
            return
        is_inside = path.startswith(self.top + os.sep)
        if path.endswith(".pyc"):  # Python's own copy: whoever reads it reads the source
            path = _find_source(path)
        if not (is_inside or self._watched(path)) or not os.path.isfile(path):  # noqa: PTH113
            return
        if self._there and is_inside and path not in self._there:
            self._created.add(path)  # by whomsoever: it was not there when the run began
            return
        try:
            size = os.stat(path).st_size  # noqa: PTH116
            digest = _compute_digest(path) if size <= HASHED else ""
        except OSError:
            size, digest = 0, ""
        self._read[path] = InputFile(path, size, digest)


def _to_absolute(path: Any) -> str:
    return os.path.abspath(os.fsdecode(path))  # noqa: PTH100


def _compute_digest(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123
        return hashlib.file_digest(file, "sha256").hexdigest()


def _find_database(name: Any) -> str:
    text = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
    return _to_absolute(unquote(urlsplit(text).path) if text.startswith("file:") else text)


def _is_search() -> bool:
    """Whether Python's import system lists a folder, or a glob, which has told what it looks for."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to ask who lists
    while frame is not None and frame.f_code.co_filename in (__file__, audit_listener.__file__):
        frame = frame.f_back
    name = "" if frame is None else frame.f_code.co_filename
    if name.startswith(_IMPORTS) or any(
        searcher in name.replace(os.sep, "/") for searcher in _SEARCHERS
    ):
        return True
    while frame is not None and frame.f_code.co_filename.startswith(_GLOBBERS):
        if _SEARCHING.search(frame.f_code.co_name):
            return True
        frame = frame.f_back
    return False


_GLOBBERS = (glob.__file__, pathlib.__file__.removesuffix("__init__.py"))


def _find_matching(event: str, args: tuple[Any, ...]) -> list[str]:
    """The files that a glob gives: those it passes over change nothing."""
    if event == "glob.glob":
        matches = glob.glob(os.fsdecode(args[0]), recursive=bool(args[1]))  # noqa: PTH207
        return [_to_absolute(path) for path in matches]
    within = getattr(args[0], "glob" if event.endswith(".glob") else "rglob")
    return [_to_absolute(path) for path in within(args[1])]


def _find_source(path: str) -> str:
    folder, name = os.path.split(path)
    if os.path.basename(folder) != "__pycache__":  # noqa: PTH119
        return path
    return os.path.join(os.path.dirname(folder), name.partition(".")[0] + ".py")  # noqa: PTH118, PTH120


def _yield_files(top: str) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        folders[:] = [
            name for name in folders if name not in _NOT_OURS and not name.endswith(".tapes")
        ]
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118
            if not os.path.islink(path) and os.path.isfile(path):  # noqa: PTH113, PTH114
                yield path


def _set_access_time(path: str) -> int:
    """Set its access time before its change time, so that the next read of whomsoever moves it;
    what it is now.
    """
    try:
        modified = os.stat(path).st_mtime_ns  # noqa: PTH116
        os.utime(path, ns=(1_000_000_000, modified))
    except OSError:
        return -1
    return 1_000_000_000


def _is_read_since(path: str, mark: int) -> bool:
    try:
        return mark >= 0 and os.stat(path).st_atime_ns != mark  # noqa: PTH116
    except OSError:
        return False


def _has_access_times(top: str) -> bool:
    """Whether a read moves the access time here (not on file systems mounted with `noatime`)."""
    try:
        with tempfile.NamedTemporaryFile(dir=top, prefix=".tape-", delete=False) as file:
            file.write(b"x")
        try:
            mark = _set_access_time(file.name)
            _compute_digest(file.name)
            return _is_read_since(file.name, mark)
        finally:
            os.unlink(file.name)  # noqa: PTH108
    except OSError:
        return False


def _list_mapped() -> Iterator[str]:
    """Files that are in memory or open now (Linux): weights that a library has mapped by itself."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123
            named = {
                line.split(None, 5)[5].rstrip("\n")
                for line in maps
                if line.count(" ") > 4 and "/" in line
            }
    except (OSError, IndexError):
        return
    yield from sorted(
        path for path in named if path.startswith("/") and not path.endswith(" (deleted)")
    )
