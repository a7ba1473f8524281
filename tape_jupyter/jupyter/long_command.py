"""A `tape` command that a kernel starts and watches: in a process of its own, so that nothing of the
kernel's state is in what it makes.

One at a time for a kernel and command, on a thread of its own; it tells every view how it gets on
(js/src/view/protocol.ts, `LongTask`).
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tape_jupyter.core.disk_errors import describe_disk_error
from tape_jupyter.core.progress import Tell
from tape_jupyter.errors import TapeError, TapeUsageError
from tape_jupyter.isolation import network_guard
from tape_jupyter.jupyter.viewer import live
from tape_jupyter.jupyter.viewer.server import Viewer

if TYPE_CHECKING:
    from tape_jupyter.jupyter.cell_runner import CellRunner

_PATIENCE = 20.0
"""Seconds that it gets to put its own kernel away when it is interrupted."""
State = dict[str, Any]


class LongCommand:
    """One `tape WORD ...`. `run` waits for its end; `stop` ends it, from another thread."""

    def __init__(self, command: str, *arguments: str, folder: Path | None = None) -> None:
        self._noun = "search" if command == "why" else command
        self._folder = folder
        self._line = [
            sys.executable,
            "-P",  # the notebook's folder may hold a queue.py
            "-m",
            "tape_jupyter",
            command,
            *arguments,
            "--json",
            "--progress",
        ]
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self, on_progress: Tell) -> State:
        """What it says of what it made (`--json`).

        Raises TapeUsageError where it said nothing but what is in the way.
        """
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            process = self._start_process(output)
            try:
                wrong = _relay_progress(process, on_progress)
            except BaseException:
                self.stop()
                raise
            finally:
                _end_process(process)
            output.seek(0)
            return self._parse_result(output.read(), wrong, process.returncode)

    def stop(self) -> None:
        """End it: nothing is written."""
        self._stopped = True
        if self._process is not None and self._process.poll() is None:
            with suppress(OSError):
                self._process.terminate()  # SIGINT is ignored below a shell's `&`

    def _start_process(self, output: IO[str]) -> subprocess.Popen[str]:
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TAPE_", "JPY_"))
        }
        with network_guard.unwatched():
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self._line,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**environ, "PYTHONIOENCODING": "utf-8"},
                cwd=self._folder,
                start_new_session=True,
            )
        return self._process

    def _parse_result(self, output: str, wrong: Sequence[str], code: int) -> State:
        try:
            result = json.loads(output)
        except ValueError:
            result = None
        if isinstance(result, Mapping):
            return dict(result)
        if self._stopped or code == 128 + signal.SIGINT:
            raise TapeUsageError(f"the {self._noun} was stopped; nothing was written")
        message = "\n".join(wrong).removeprefix("tape: ").strip()
        raise TapeUsageError(message or f"the {self._noun} ended with code {code} and said nothing")


def _relay_progress(process: subprocess.Popen[str], on_progress: Tell) -> list[str]:
    """Hand its steps on; gives what else it said."""
    wrong = []
    for line in process.stderr or ():
        try:
            step = json.loads(line)
            on_progress(str(step["step"]), int(step["done"]), int(step["total"]))
        except (ValueError, KeyError, TypeError):
            wrong.append(line.rstrip("\n"))
    return wrong


def _end_process(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stderr is not None:
        process.stderr.close()


# ---------------------------------------------------------------- as views see it


@dataclass
class LongTask:
    """A command that a view asked for. `idle` is what stands before it says more; `last` is what
    views were told of it.
    """

    about: str
    viewer: Viewer
    command: LongCommand
    idle: Mapping[str, Any]
    last: State = field(default_factory=dict)

    def begin(
        self, done: Callable[[State], State], failed: Callable[[TapeError], Mapping[str, Any]]
    ) -> State:
        """Start it, and say how it stands. `done` and `failed` say its end to a view.

        Raises TapeUsageError while one runs.
        """
        mine = _asked.setdefault(self.viewer.cells, {})
        known = mine.get(self.about)
        if known is not None and known.last.get("state") == "running":
            raise TapeUsageError(f"tape {self.about} is already running")
        self.last = {**self.idle, "state": "running", "step": "starting"}
        mine[self.about] = self
        thread = threading.Thread(
            target=self._run_command, args=(done, failed), name=f"tape {self.about}", daemon=True
        )
        # a thread of ours takes no number among the program's
        contextvars.Context().run(thread.start)
        return self.last

    def _run_command(
        self, done: Callable[[State], State], failed: Callable[[TapeError], Mapping[str, Any]]
    ) -> None:
        """To its end; never raises."""
        try:
            result = self.command.run(
                lambda what, count, total: self._tell_views(
                    "running", step=what, done=count, total=total
                )
            )
            self._tell_views("done", **done(result))
        except TapeError as error:
            self._tell_views("failed", text=str(error), **failed(error))
        except Exception as error:
            text = describe_disk_error(error)
            text = text or f"{type(error).__name__}: {error}; please report it"
            self._tell_views("failed", text=text)

    def _tell_views(self, state: str, **fields: Any) -> None:
        self.last = {**self.idle, "state": state, **fields}
        views = [
            view for view in live.updates_of(self.viewer.deck).views if isinstance(view, Viewer)
        ]
        for viewer in dict.fromkeys([self.viewer, *views]):
            viewer.send_update(self.about, **self.last)


_asked: WeakKeyDictionary[CellRunner, dict[str, LongTask]] = WeakKeyDictionary()


def last_of(viewer: Viewer, about: str, idle: State) -> State:
    """How the last one stands that was asked for."""
    known = _asked.get(viewer.cells, {}).get(about)
    return known.last if known is not None and known.last else idle


def stop_command(viewer: Viewer, about: str) -> None:
    known = _asked.get(viewer.cells, {}).get(about)
    if known is not None:
        known.command.stop()
