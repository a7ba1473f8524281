"""How a folder lies before and after a process that runs in it, by names, sizes and times.

What is small is kept, so that it can be put back. A folder with too much in it is not looked at,
which is said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from tape_jupyter.core.user_code import bag
from tape_jupyter.files.stand_ins import DIRECTORY, stand_in

MANY = 2_000
"""Files and folders that are looked at."""
KEPT = 1 << 20
"""Bytes of one file that are kept to put it back."""
KEPT_ALL = 32 << 20
_READING = bag(
    "echo cat ls head tail wc grep pwd date env printenv which find du df uname whoami printf sleep true"
)


def may_write(command: str) -> bool:
    """Whether a shell's command may write files, by its text."""
    first = command.strip().partition(" ")[0].rpartition("/")[2]
    return re.search(r"[>|;&`]|\$\(", command) is not None or first not in _READING


_Stamped = tuple[tuple[int, int], bytes]
"""What a file held, with the size and time that it had then."""

_read_before: dict[str, dict[str, _Stamped]] = {}
"""By folder, what the last look at it read: good for as long as size and time are the same."""


class WatchedFolder:
    """One folder. `note_contents` before a process starts, `differing` once the cell is done."""

    UNKNOWN: ClassVar[Any] = object()
    """Stands for bytes that were not kept."""

    def __init__(self, path: str, is_watched: Callable[[str], bool]) -> None:
        self.path, self._is_watched = path, is_watched
        self.crowded = False
        self._was: dict[str, tuple[int, int]] = {}
        self._small_files: dict[str, _Stamped] = {}

    def note_contents(self) -> None:
        """Note how it lies now."""
        self._was = self._scan_folder()
        self._small_files = {} if self.crowded else dict(self._read_small_files())
        _read_before[self.path] = self._small_files

    def differing(self) -> Iterator[tuple[str, Any]]:
        """(path, its bytes when it was looked at: None where there was nothing, UNKNOWN where they
        were not kept).
        """
        was, now = self._was, self._scan_folder()
        if self.crowded:
            return
        for path in sorted({*was, *now}):
            if was.get(path) != now.get(path):
                yield path, self._find_old_bytes(path)

    def _find_old_bytes(self, path: str) -> Any:
        if path not in self._was:
            return None
        if self._was[path] == _FOLDER:
            return DIRECTORY
        return self._small_files[path][1] if path in self._small_files else self.UNKNOWN

    def _scan_folder(self) -> dict[str, tuple[int, int]]:
        """By path, (size, time in nanoseconds)."""
        contents: dict[str, tuple[int, int]] = {}
        todo = [self.path]
        while todo:
            try:
                with os.scandir(todo.pop()) as inside:
                    entries = list(inside)
            except OSError:
                continue
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name == "__pycache__" or not self._is_watched(
                    entry.path + os.sep * is_folder
                ):
                    continue
                if len(contents) >= MANY:
                    self.crowded = True
                    return {}
                if is_folder:
                    contents[entry.path] = _FOLDER
                    todo.append(entry.path)
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    status = entry.stat(follow_symlinks=False)
                    contents[entry.path] = (status.st_size, status.st_mtime_ns)
                else:
                    contents[entry.path] = _NO_FILE
        self.crowded = False
        return contents

    def _read_small_files(self) -> Iterator[tuple[str, _Stamped]]:
        budget, earlier = KEPT_ALL, _read_before.get(self.path, {})
        for path, stamp in self._was.items():
            if stamp in (_FOLDER, _NO_FILE) or stamp[0] > KEPT or stamp[0] > budget:
                continue
            budget -= stamp[0]
            stored = earlier.get(path)
            if stored is not None and stored[0] == stamp:
                yield path, stored
                continue
            if (content := _read_content(path)) is not None:
                yield path, (stamp, content)


def _read_content(path: str) -> bytes | None:
    """What a file holds, or where a link leads; None where it cannot be read."""
    if (mark := stand_in(path)) is not None:
        return mark
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - no objects where none are needed
            return file.read()
    except OSError:
        return None


_FOLDER, _NO_FILE = (-1, -1), (-2, -2)
"""Of what has no content: a folder; a pipe, a socket."""
