"""A notebook that is replayed in a copy of its folder at another path (headless/folders.py).

What its cells ask names the copy, where the recording names the folder: it is asked by the recorded
path. Paths that come from the tape name the person's own folder: there nothing may be changed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from tape_jupyter.core.call import FunctionCall, Request
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

    def as_recorded(self, call: Request | FunctionCall) -> Request | FunctionCall:
        """The call with the folder's path in the copy's place."""
        if isinstance(call, FunctionCall):
            arguments = {name: self._restore_paths(value) for name, value in call.arguments.items()}
            same = all(arguments[name] is value for name, value in call.arguments.items())
            return call if same else replace(call, arguments=arguments)
        if self.copy not in call.url and os.fsencode(self.copy) not in call.body:
            return call
        body = call.body.replace(os.fsencode(self.copy), os.fsencode(self.folder))
        return replace(call, url=call.url.replace(self.copy, self.folder), body=body)

    def _restore_paths(self, value: Any) -> Any:
        """The same object where it does not name the copy."""
        if type(value) is str:
            return value.replace(self.copy, self.folder) if self.copy in value else value
        if isinstance(value, PurePath) and self.copy in str(value):
            return type(value)(self._restore_paths(str(value)))
        if type(value) in (list, tuple):
            items = [self._restore_paths(each) for each in value]
            if all(one is other for one, other in zip(items, value, strict=True)):
                return value
            return type(value)(items)
        if type(value) is dict:
            restored = {key: self._restore_paths(each) for key, each in value.items()}
            return value if all(restored[key] is each for key, each in value.items()) else restored
        return value

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
