"""A bundle that lies unpacked in a folder. Links and devices are refused, never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tape_jupyter.bundle.archive.manifest import MOST_FILES
from tape_jupyter.errors import BundleError

_PIECE = 256 * 1024


class Unpacked:
    """The files below a folder. `sizes`: the bytes of each file, `packed_size` of all; `pieces`: what is
    in one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.sizes = dict[str, int]()
        try:
            self._walk_folder(folder, "")
        except (OSError, RecursionError) as error:
            raise BundleError(f"the folder cannot be read: {error}") from error
        self.packed_size = sum(self.sizes.values())

    def close(self) -> None:
        """Nothing is held open."""

    def _walk_folder(self, folder: Path, before: str) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = before + entry.name
                if entry.is_dir(follow_symlinks=False):
                    self._walk_folder(Path(entry.path), f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    self.sizes[name] = entry.stat(follow_symlinks=False).st_size
                else:
                    raise BundleError(
                        f"{name[:200]!a} is not a plain file: a link or a device; the bundle is refused"
                    )
                if len(self.sizes) > MOST_FILES:
                    raise BundleError(
                        f"it has more than {MOST_FILES:,} files, a bundle has no more"
                    )

    def pieces(self, name: str) -> Iterator[bytes]:
        """The bytes of a file: never more than `sizes` says."""
        try:
            handle = os.open(self._folder / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise BundleError(f"{name!a} is not a plain file; the bundle is refused")
                left = self.sizes[name]
                while left and (piece := file.read(min(left, _PIECE))):
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise BundleError(f"{name!a} cannot be read: {error.strerror or error}") from error
