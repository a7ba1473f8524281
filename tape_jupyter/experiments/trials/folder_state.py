"""What the cells of a trial wrote in the notebook's folder, and how it is put back before the next.

The folder that cells see is an overlay or a copy (headless/folders.py); the person's own lies
unchanged below it. What differs between the two is a state, which is small.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Content = bytes | Literal["folder", "gone"] | tuple[Literal["link"], str]
State = dict[str, Content]
"""By path in the folder, what stands there and not below; "gone": it stands below only."""


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """`seen` is what cells see, `below` the person's own; `written`, where there is an overlay,
    holds whatever was written.
    """

    seen: Path
    below: Path
    written: Path | None = None

    def state(self) -> State:
        """What stands in the folder now that does not stand below."""
        contents: State = {}
        for folder in self._list_folders():
            seen_names = set(_list_names(self.seen / folder))
            for name in seen_names:
                path = os.path.join(folder, name)  # noqa: PTH118 - text, and often
                if self._is_changed(path):
                    contents[path] = _read_content(self.seen / path)
            for name in set(_list_names(self.below / folder)) - seen_names:
                contents[os.path.join(folder, name)] = "gone"  # noqa: PTH118 - the same
        return contents

    def put_back(self, state: State) -> None:
        """Have the folder as it was at `state`."""
        now = self.state()
        for path in sorted(now.keys() - state.keys(), reverse=True):
            self._restore_path(path)
        for path in sorted(state):
            if now.get(path) != state[path]:
                _put_content(self.seen / path, state[path])

    def _list_folders(self) -> Iterator[str]:
        """The folders in which something may have been written."""
        top = self.written or self.seen
        for folder, inside, _ in os.walk(top):
            inside[:] = [each for each in inside if not Path(folder, each).is_symlink()]
            yield os.path.relpath(folder, top)

    def _is_changed(self, path: str) -> bool:
        if self.written is not None:
            there = self.written / path
            return os.path.lexists(there) and not (there.is_dir() and (self.below / path).is_dir())
        try:
            one, other = (self.seen / path).lstat(), (self.below / path).lstat()
        except OSError:
            return True
        if (self.seen / path).is_dir():
            return not (self.below / path).is_dir()
        return (one.st_size, one.st_mtime_ns) != (other.st_size, other.st_mtime_ns)

    def _restore_path(self, path: str) -> None:
        goal, source = self.seen / path, self.below / path
        _remove_path(goal)
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, goal, symlinks=True)
        elif os.path.lexists(source):
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, goal, follow_symlinks=False)


def _list_names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _read_content(path: Path) -> Content:
    if path.is_symlink():
        return ("link", str(path.readlink()))
    if path.is_dir():
        return "folder"
    return path.read_bytes() if path.is_file() else b""


def _put_content(path: Path, content: Content) -> None:
    if content == "folder":
        if not path.is_dir():
            _remove_path(path)
            path.mkdir(parents=True)
        return
    _remove_path(path)
    if isinstance(content, tuple):
        path.symlink_to(content[1])
    elif isinstance(content, bytes):
        path.write_bytes(content)


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    with suppress(FileNotFoundError, IsADirectoryError):
        path.unlink()
