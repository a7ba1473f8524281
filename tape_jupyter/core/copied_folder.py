"""A notebook that is replayed in a copy of its folder at another path (headless/folders.py).

What its cells ask names the copy, where the recording names the folder (session/recorded_folders.py).
Nothing may be changed in the person's own folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.core.changed_paths import changed_paths

VARIABLE = "TAPE_COPY"
"""Of the kernel's environment: the copy, the folder, and what may be written there all the same, as
JSON.
"""
_ALSO = frozenset({"os.symlink", "sqlite3.connect"})
"""Audit events whose first argument, too, may not be the person's own: it would be written through
the link, or by SQLite.
"""


@dataclass(frozen=True, slots=True)
class CopiedFolder:
    """`copy` stands for `folder`; `kept`, in it, is the person's own also for this run."""

    copy: str
    folder: str
    kept: str = ""

    def variable(self) -> dict[str, str]:
        return {VARIABLE: json.dumps([self.copy, self.folder, self.kept])}

    def guard(self) -> None:
        """From now on refuse what would change the person's own folder, in this process."""
        sys.addaudithook(self._check_event)

    def _check_event(self, event: str, args: tuple[Any, ...]) -> None:
        for path in changed_paths(event, args):
            self._check_path(path)
        if event in _ALSO:
            self._check_path(args[0])

    def _check_path(self, path: Any) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        place = Path(os.path.realpath(os.fsdecode(path)))
        if not place.is_relative_to(self.folder) or place.is_relative_to(self.copy):
            return
        if not self.kept or not place.is_relative_to(self.kept):
            raise PermissionError(
                f"{place} is the notebook's own; this replay works in a copy of its folder: {self.copy}"
            )


def copied_folder(environment: Mapping[str, str]) -> CopiedFolder | None:
    """What the environment tells; None where the notebook runs in its own folder."""
    setting = environment.get(VARIABLE)
    return CopiedFolder(*json.loads(setting)) if setting else None
