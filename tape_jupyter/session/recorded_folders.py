"""A notebook that is replayed elsewhere than it was recorded: in a clone, or in a copy of its folder.

What its cells ask names the folder as it is here: it is looked for on the tape as it was there. What
a tool gave and did names the folder as it was: the program has it as it is here.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tape_jupyter.core.call import Request, Value
from tape_jupyter.core.copied_folder import copied_folder
from tape_jupyter.core.moved_folders import FOLDERS, MovedFolders, find_folders, place_folders
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.files.originals import top_of
from tape_jupyter.session.cell import TapedCell

_OF_THE_TAPE = frozenset({FOLDERS, "files", "lost"})
"""Keys of what a tool did that are not the program's own: files are looked through one by one."""


class RecordedFolders:
    """What is known, in this process, of folders that have another path here: `of_copy` where it is
    a copy that the notebook runs in; `moved` with those that a recording names besides.
    """

    def __init__(self) -> None:
        self._copied = copied_folder(os.environ)
        self.of_copy = MovedFolders({})
        if self._copied is not None:
            self._copied.guard()
            self.of_copy = MovedFolders({self._copied.folder: self._copied.copy})
        self.moved = self.of_copy
        self._begun: Callable[[], TapedCell | None] = do_nothing

    @property
    def has_moved(self) -> bool:
        return self.moved is not self.of_copy

    def begin(self, cell: TapedCell) -> None:
        """A call of this cell is to be found on its tape."""
        if cell is self._begun() or cell.cassette is None:
            return
        self._begun = weakref.ref(cell)
        for end in cell.cassette.ended.values():
            if isinstance(recorded := end.get(FOLDERS), Mapping):
                self._learn(recorded, cell)

    def _learn(self, recorded: Mapping[str, str], cell: TapedCell) -> MovedFolders:
        top = find_top(cell) if self._copied is None else Path(self._copied.copy)
        placed = place_folders(recorded, cell.folder, top)
        if placed:
            self.moved = self.moved | placed
        return placed

    def as_recorded(self, request: Request, is_recorded: Callable[[Request], bool]) -> Request:
        """The request with the recorded paths of folders, where it was made with them; in a copy of
        the folder with those of the folder.
        """
        asked = _with_recorded_paths(request, self.of_copy)
        if self.has_moved:
            moved = _with_recorded_paths(request, self.moved)
            if moved is not request and not is_recorded(asked) and is_recorded(moved):
                return moved
        return asked

    def as_here(self, cell: TapedCell, value: Value) -> tuple[Value, MovedFolders]:
        """What a function gave and did, with the paths of folders here; and those folders."""
        recorded = value.did.get(FOLDERS)
        moved = self.of_copy
        if isinstance(recorded, Mapping):
            moved = moved | self._learn(recorded, cell)
        if not moved:
            return value, moved
        did = {
            name: each if name in _OF_THE_TAPE else moved.here(each)
            for name, each in value.did.items()
        }
        here = replace(
            value,
            value=moved.here(value.value),
            error=moved.here(value.error),
            effects=moved.here(value.effects),
            did=did,
        )
        return here, moved


def find_top(cell: TapedCell) -> Path | None:
    """The widest folder whose files are the notebook's; None for a block of a program."""
    notebook = cell.request.notebook
    return None if notebook is None else _find_top_of(notebook.absolute())


@lru_cache(8)
def _find_top_of(notebook: Path) -> Path:
    return top_of(Path(os.path.realpath(notebook)))  # asked for each call


def note_named_folders(cell: TapedCell, structure: Any) -> dict[str, str]:
    """Which of the notebook's folders this names. The run's end mark tells of them, for a replay
    elsewhere.
    """
    folders = find_folders(structure, cell.folder, find_top(cell))
    if folders:
        ends = cell.recording.ends
        ends[FOLDERS] = {**ends.get(FOLDERS, {}), **folders}
    return folders


def _with_recorded_paths(request: Request, moved: MovedFolders) -> Request:
    """The same object where it names none."""
    url, body = moved.recorded(request.url), moved.recorded(request.body)
    if url is request.url and body is request.body:
        return request
    return replace(request, url=url, body=body)
