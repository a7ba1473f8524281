"""Notebook room: what a view asks of an export: begin it, how far is it, stop it. One at a time for a kernel, on a
thread of its own; it tells every view how it gets on (js/src/view/protocol.ts, `Exporting`).
"""

from __future__ import annotations

import contextvars
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tape_jupyter.errors import TapeError, TapeUsageError
from tape_jupyter.notebook import watch
from tape_jupyter.notebook.exporting import Export, text
from tape_jupyter.notebook.viewer import Forged, Viewer, answers

if TYPE_CHECKING:
    from tape_jupyter.notebook.cells import Cells

_FLAGS = {"redact": "--redact", "allow_differences": "--allow-differences", "no_index": "--no-index"}


@dataclass
class Exporting:
    """The export of a kernel that was asked for last; `last` is what its views were told of it."""

    viewer: Viewer
    export: Export
    notebook: Path
    last: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        """To its end; never raises."""
        try:
            done = self.export.run(lambda what, done, total: self._tell("running", step=what, done=done, total=total))
            self._tell("done", text=text(done, self.notebook), path=done["path"], sha256=done["sha256"],
                       differs=bool(done["differences"]))  # fmt: skip
        except TapeError as error:
            why = str(error)
            self._tell("failed", text=why, differs="--allow-differences" in why, secret="--redact" in why)
        except Exception as error:
            self._tell("failed", text=f"{type(error).__name__}: {error}; please report it")

    def _tell(self, state: str, **told: Any) -> None:
        self.last = {**_NOTHING, "state": state, **told}
        views = [view for view in watch.of(self.viewer.deck).views if isinstance(view, Viewer)]
        for viewer in dict.fromkeys([self.viewer, *views]):
            viewer.tell("export", **self.last)


_NOTHING = {"state": "idle", "step": "", "done": 0, "total": 0, "text": "", "path": "", "sha256": "",
            "differs": False, "secret": False}  # fmt: skip
_asked: WeakKeyDictionary[Cells, Exporting] = WeakKeyDictionary()


@answers("export")
def start(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{path?, redact?, allow_differences?, no_index?}: begins, and gives how it stands; with {look: true} only that."""
    known = _asked.get(viewer.cells)
    if message.get("look"):
        return known.last if known is not None and known.last else _NOTHING
    path, flags = message.get("path", ""), [flag for name, flag in _FLAGS.items() if _flag(message, name)]
    if not isinstance(path, str) or path.startswith("-"):
        raise Forged("path")
    if known is not None and known.last.get("state") == "running":
        raise TapeUsageError("an export is under way already")
    notebook = viewer.cells.notebook()
    made = Exporting(viewer, Export(notebook, [*([path] if path else []), *flags]), notebook)
    made.last = {**_NOTHING, "state": "running", "step": "starting"}
    _asked[viewer.cells] = made
    thread = threading.Thread(target=made.run, name="tape export", daemon=True)
    contextvars.Context().run(thread.start)  # a thread of ours takes no number among the program's
    return made.last


@answers("export.stop")
def stop(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    known = _asked.get(viewer.cells)
    if known is not None:
        known.export.stop()
    return {}


def _flag(message: dict[str, Any], name: str) -> bool:
    value = message.get(name, False)
    if not isinstance(value, bool):
        raise Forged(name)
    return value
