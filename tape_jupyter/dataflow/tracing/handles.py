"""Files that an earlier cell opened for writing and that are open still: what a cell writes through
such a handle no hook hears of, so they are compared with how the cell before left them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tape_jupyter.files.databases import read_whole
from tape_jupyter.files.stand_ins import stand_in

if TYPE_CHECKING:
    from tape_jupyter.dataflow.tracing.files import Touched

KEPT = 8 << 20
"""Bytes of one file that are kept to put it back."""
MANY = 64
"""Handles that are followed at once: each costs a look at the file after each cell."""


@dataclass(slots=True)
class OpenHandles:
    """By absolute path, how a file that is open for writing was after the last cell."""

    left: dict[str, tuple[tuple[int, int], bytes | None, bool]] = field(default_factory=dict)

    def end(self, touched: Touched) -> None:
        """A cell ended: add the files that it wrote through older handles to what it touched, and
        note those that it leaves open.
        """
        for path, (mark, before, known) in self.left.items():
            if path not in touched.written and _read_time_and_size(path) != mark:
                touched.written.add(path)
                if known:
                    touched.before[path] = before
                else:
                    touched.unknown.add(path)
        candidates = {*self.left, *(touched.opened & touched.written)}
        if not candidates:
            return
        before_cell, self.left = self.left, {}
        for path in sorted(_find_open_files(candidates))[:MANY]:
            if path in before_cell and path not in touched.written:
                self.left[path] = before_cell[path]
            else:
                self.left[path] = (_read_time_and_size(path), *content_of(path))


def content_of(path: str) -> tuple[bytes | None, bool]:
    """(bytes or None where there is no file, whether that is known)."""
    where = Path(path)
    if (mark := stand_in(where)) is not None:
        return mark, True
    try:
        if not where.exists():
            return None, True
        if not where.is_file() or where.stat().st_size > KEPT:
            return None, False
        return read_whole(where), True
    except OSError:
        return None, False


def _read_time_and_size(path: str) -> tuple[int, int]:
    """Time and size; (-1, -1) where there is nothing."""
    try:
        state = os.stat(path)  # noqa: PTH116 - after each cell
    except OSError:
        return -1, -1
    return state.st_mtime_ns, state.st_size


def _find_open_files(paths: Iterable[str]) -> set[str]:
    """Those that this process holds open; all where the system does not tell."""
    if sys.platform != "linux":
        return set(paths)
    open_paths = set()
    for handle in os.listdir("/proc/self/fd"):  # noqa: PTH208 - plain texts, as here throughout
        try:
            open_paths.add(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115
        except OSError:
            continue  # closed meanwhile
    return {path for path in paths if os.path.realpath(path) in open_paths}
