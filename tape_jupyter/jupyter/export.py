"""An export that is asked for in a kernel. It runs in a process of its own, by `tape export`, so
that nothing of the kernel's state is in the bundle: what is exported is the notebook as it lies on
the disk.

What a view asks of an export: begin it, how far is it, stop it. One at a time for a kernel, on a
thread of its own; it tells every view how it gets on (js/src/view/protocol.ts, `Exporting`).
"""

from __future__ import annotations

import contextvars
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tape_jupyter.core.progress import Tell
from tape_jupyter.errors import NotExported, TapeError, TapeUsageError
from tape_jupyter.isolation import network_guard
from tape_jupyter.jupyter.viewer import live
from tape_jupyter.jupyter.viewer.server import Forged, Viewer, answers

if TYPE_CHECKING:
    from tape_jupyter.jupyter.cell_runner import CellRunner


_PATIENCE = 20.0
"""Seconds that it gets to put its own kernel away when it is interrupted."""


class Export:
    """One `tape export`. `run` waits for its end; `stop` ends it, from another thread."""

    def __init__(self, notebook: Path, words: Sequence[str] = ()) -> None:
        self._line = [
            sys.executable, "-m", "tape_jupyter", "export", str(notebook), *words,
            "--json", "--progress", "--python", sys.executable,
        ]  # fmt: skip
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self, tell: Tell) -> dict[str, Any]:
        """What it says of the bundle that it wrote (`--json`).

        Raises NotExported where a cell differs or a secret was found, TapeUsageError for all else
        that is in the way.
        """
        with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
            process = self._started(said)
            try:
                wrong = _heard(process, tell)
            except BaseException:
                self.stop()
                raise
            finally:
                _ended(process)
            said.seek(0)
            return _result(said.read(), wrong, process.returncode, stopped=self._stopped)

    def _started(self, said: IO[str]) -> subprocess.Popen[str]:
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TAPE_", "JPY_"))
        }
        with network_guard.unwatched():
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self._line, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.PIPE, text=True, encoding="utf-8",
                errors="replace", env={**environ, "PYTHONIOENCODING": "utf-8"}, start_new_session=True,
            )  # fmt: skip
        return self._process

    def stop(self) -> None:
        """End it: nothing is written."""
        self._stopped = True
        if self._process is not None and self._process.poll() is None:
            with suppress(OSError):
                self._process.send_signal(signal.SIGINT)


def _heard(process: subprocess.Popen[str], tell: Tell) -> list[str]:
    """Hand its steps on; gives what else it said."""
    wrong = []
    for line in process.stderr or ():
        try:
            step = json.loads(line)
            tell(str(step["step"]), int(step["done"]), int(step["total"]))
        except (ValueError, KeyError, TypeError):
            wrong.append(line.rstrip("\n"))
    return wrong


def _ended(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stderr is not None:
        process.stderr.close()


def _result(said: str, wrong: Sequence[str], code: int, *, stopped: bool) -> dict[str, Any]:
    try:
        told = json.loads(said)
    except ValueError:
        told = {}
    if isinstance(told, Mapping) and told.get("ok"):
        return dict(told)
    if stopped or code == 128 + signal.SIGINT:
        raise TapeUsageError("the export was stopped; nothing was written")
    if isinstance(told, Mapping) and "why" in told:
        raise NotExported(str(told["why"]))
    message = "\n".join(wrong).removeprefix("tape: ").strip()
    raise TapeUsageError(message or f"the export ended with code {code} and said nothing")


def text(told: Mapping[str, Any], notebook: Path) -> str:
    """What a person reads of a bundle that was written."""
    saved = datetime.fromtimestamp(notebook.stat().st_mtime).astimezone().strftime("%H:%M:%S")
    held = (
        "it does NOT repeat itself whole" if told["differences"] else "every cell replayed as saved"
    )
    lines = [
        f"{told['path']}: {told['bytes']:,} bytes, {told['cells']} cells, {told['calls']} calls",
        f"  sha256 {told['sha256']}",
        f"  {notebook.name} as it was saved at {saved}; {held}, in a fresh kernel; {'; '.join(told['guards'])}",
        *(
            f"  {each['count']} x {each['kind']} in {each['where']}, masked"
            for each in told["redactions"]
        ),
        *(f"  ! {note}" for note in told["notes"]),
        *([f"  test: {_beside(notebook, Path(told['test']))}"] if "test" in told else []),
    ]
    return "\n".join(lines)


def _beside(notebook: Path, file: Path) -> str:
    return file.name if file.parent.resolve() == notebook.parent.resolve() else str(file)


def step(what: str, done: int, total: int) -> str:
    """A step in one line."""
    return f"tape export: {what}" + (f" ({done} of {total})" if total else "")


_FLAGS = {
    "redact": "--redact",
    "allow_differences": "--allow-differences",
    "no_index": "--no-index",
}


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
            done = self.export.run(
                lambda what, done, total: self._tell("running", step=what, done=done, total=total)
            )
            self._tell("done", text=text(done, self.notebook), path=done["path"], sha256=done["sha256"],
                       differs=bool(done["differences"]))  # fmt: skip
        except TapeError as error:
            why = str(error)
            self._tell(
                "failed", text=why, differs="--allow-differences" in why, secret="--redact" in why
            )
        except Exception as error:
            self._tell("failed", text=f"{type(error).__name__}: {error}; please report it")

    def _tell(self, state: str, **told: Any) -> None:
        self.last = {**_NOTHING, "state": state, **told}
        views = [view for view in live.of(self.viewer.deck).views if isinstance(view, Viewer)]
        for viewer in dict.fromkeys([self.viewer, *views]):
            viewer.tell("export", **self.last)


_NOTHING = {"state": "idle", "step": "", "done": 0, "total": 0, "text": "", "path": "", "sha256": "",
            "differs": False, "secret": False}  # fmt: skip
_asked: WeakKeyDictionary[CellRunner, Exporting] = WeakKeyDictionary()


@answers("export")
def start(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{path?, redact?, allow_differences?, no_index?}: begins, and gives how it stands; with {look:
    true} only that.
    """
    known = _asked.get(viewer.cells)
    if message.get("look"):
        return known.last if known is not None and known.last else _NOTHING
    path, flags = (
        message.get("path", ""),
        [flag for name, flag in _FLAGS.items() if _flag(message, name)],
    )
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
