"""Runs trials of one notebook: its cells, offline, with these replies, and a check on what came out.

The process of trials (experiments/trials/process.py) cannot reach the network where the machine has
namespaces; elsewhere the tape's guard refuses. What its cells write is thrown away.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Self

from tape_jupyter.cassette import paths
from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.errors import TapeError
from tape_jupyter.experiments.check import Check, CheckedRun
from tape_jupyter.isolation.namespaces import can_cut, namespace_guards, without_network

if TYPE_CHECKING:
    from tape_jupyter.headless.folders import RunFolder

START = 180.0
"""Seconds that the process gets to start and to run the cells once, besides what a trial gets."""
SECONDS = 120.0
"""Seconds that one trial gets."""
STOPS = 16
"""Cells before which a process waits, at most."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_ABOUT = ("imports", "digest")
"""What the process tells of the recording besides how it comes out, for it to hear with each trial."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is tried. `cassette` is the file of the recording or take, of which `runs` answer;
    `plays` the file that the notebook's cells ask for; `ids` the cell of a run where that is known.

    `sources` and `cells` are the code cells' sources and ids, in order; `saved` what the checked
    cell has saved. `stops` are cells (from 0) before which trials may begin.
    """

    notebook: Path
    cassette: Path
    plays: Path
    runs: Sequence[str]
    ids: Mapping[str, str]
    sources: Sequence[str]
    cells: Sequence[str]
    check: Check
    stops: Sequence[int] = (0,)
    saved: Sequence[Any] = ()
    may_raise: Sequence[bool] = ()
    """Of each cell, whether an error in it ends no run; empty: of none."""
    stale: bool = False
    """Whether a request that is not on the tape gets the reply of the nearest call."""
    seconds: float = SECONDS
    pace: str = ""
    """One of PACES: when the replies arrive; "": as usual."""
    last: int = 0
    """How many cells a trial needs; 0: all."""
    bound: int = 0
    """The cells in which names of the check may be bound; 0: all."""
    reads: Sequence[str] = ()
    """The names that the check reads."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What one trial plays otherwise than the recording. Pure structure, as records have it.

    `answers`: run, call and `response:` section; `added`: by run, calls (`head`, `request`,
    `response`) that it answers besides; `held`: by run, keys of its record and of its end mark;
    `sources`: other code, by cell (from 0). `first`: the first cell in which it differs.
    """

    answers: Sequence[tuple[str, str, Mapping[str, Any]]] = ()
    added: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    held: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=dict)
    sources: Mapping[int, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    first: int = 0

    def line(self, **more: Any) -> bytes:
        message = {
            **more,
            "answers": list(self.answers), "added": dict(self.added), "held": dict(self.held),
            "sources": {str(cell): source for cell, source in self.sources.items()},
            "options": dict(self.options),
        }  # fmt: skip
        return (json.dumps(message) + "\n").encode()


@dataclass(frozen=True, slots=True)
class TrialResult:
    """`missing_request`: the request that is not on the tape (`run`, `head`, `request` as records have them),
    where that leaves the trial unresolved.
    """

    run: CheckedRun
    missing_request: Mapping[str, Any] | None = None

    @classmethod
    def from_record(cls, record: Mapping[str, Any], **changed: Any) -> TrialResult:
        known = {key: value for key, value in record.items() if key not in ("wanted", *_ABOUT)}
        return cls(CheckedRun(**{**known, **changed}), record.get("wanted"))


class TrialRunner:
    """Trials of one job. Use as a context manager: leaving it ends the processes.

    Raises TapeError where the process does not start.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.recording = TrialResult(CheckedRun("unresolved"))
        """How the recording itself comes out: a trial whose seconds are those until the others can
        run, the start of their process among them.
        """
        self._stack = ExitStack()
        self._stops: dict[int, _Channel] = {}
        self._about: dict[str, Any] = {"imports": [], "digest": ""}

    def __enter__(self) -> Self:
        try:
            self._start_process()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def guards(self) -> tuple[str, ...]:
        """What keeps the trials from the network, in words."""
        return namespace_guards()

    def run(self, trial: Trial) -> TrialResult:
        """Run one trial. Raises TapeError where its process is gone."""
        if not hasattr(os, "fork"):
            self._stack.close()
            self._start_process()
        stop = max((stop for stop in self._stops if stop <= trial.first), default=-1)
        if stop < 0:
            raise TapeError(f"{self.job.notebook.name}: no trial could begin: the process ended")
        line = trial.line(**self._about)
        return TrialResult.from_record(
            self._stops[stop].send_request(line, self.job.seconds + START)
        )

    def _start_process(self) -> None:
        from tape_jupyter.headless.folders import run_folder

        began, job = time.perf_counter(), self.job
        there = {} if job.plays.exists() else {job.plays: job.cassette.read_bytes()}
        folder = self._stack.enter_context(run_folder(job.notebook, _NOTHING, there))
        stops = sorted({0, *self.job.stops})[:STOPS] if hasattr(os, "fork") else [0]
        settings = self._stack.enter_context(scratch("trials"))
        channels = self._stack.enter_context(_open_process(self.job, stops, folder, settings))
        patience = START + self.job.seconds
        self._stops = {
            stop: channel
            for stop, channel in zip(stops, channels, strict=False)
            if "ready" in channel.read_answer(patience)
        }
        forks, line = hasattr(os, "fork"), Trial().line()
        if forks:
            recording = channels[-1].read_answer(patience)
        else:
            recording = channels[0].send_request(line, patience)
        self._about |= {key: recording[key] for key in _ABOUT if key in recording}
        self.recording = TrialResult.from_record(recording, seconds=time.perf_counter() - began)


@dataclass(slots=True)
class _Channel:
    end: socket.socket
    errors: IO[str]
    lines: IO[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = self.end.makefile("r", encoding="utf-8")

    def send_request(self, line: bytes, patience: float) -> dict[str, Any]:
        try:
            self.end.sendall(line)
        except OSError as error:
            raise TapeError(
                f"the process of trials is gone: {error}{self._read_last_error()}"
            ) from None
        return self.read_answer(patience)

    def read_answer(self, patience: float) -> dict[str, Any]:
        """The next line. Raises TapeError where none comes."""
        if not select.select([self.end], [], [], patience)[0]:
            raise TapeError(f"the process of trials does not answer in {patience:.0f} s")
        line = self.lines.readline()
        if not line:
            raise TapeError(f"the process of trials ended{self._read_last_error()}")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise TapeError(answer["failed"])
        return answer

    def _read_last_error(self) -> str:
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
        return f": {lines[-1][:300]}" if lines else ""


@contextmanager
def _open_process(
    job: Job, stops: Sequence[int], folder: RunFolder, settings: Path
) -> Iterator[list[_Channel]]:
    """Its channels; when the block is left it ends, and all its forks with it. `settings`: its
    IPython's folder.
    """
    cut = can_cut()
    pairs = [socket.socketpair() for _ in range(len(stops) + 1)]
    theirs = [pair[1].fileno() for pair in pairs]
    command = [
        *folder.prefix, *without_network(cut=cut),
        sys.executable, "-P", "-m", "tape_jupyter.experiments.trials.process", *map(str, theirs),
    ]  # fmt: skip
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        child = subprocess.Popen(  # noqa: S603 - this interpreter, and the person's notebook
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, text=True,
            pass_fds=theirs, cwd=folder.notebook.parent, start_new_session=True,
            env={**_build_environment(job), **folder.env, "IPYTHONDIR": str(settings)},
        )  # fmt: skip
        for pair in pairs:
            pair[1].close()
        try:
            _send_job(child, job, stops, folder, cut=cut)
            yield [_Channel(pair[0], errors) for pair in pairs]
        finally:
            for pair in pairs:
                pair[0].close()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _build_environment(job: Job) -> dict[str, str]:
    from tape_jupyter.bundle.proof.process import hash_seed, kernel_options

    variables = {"PYTHONHASHSEED": hash_seed(job.notebook), **os.environ}
    variables.pop("JPY_SESSION_NAME", None)
    stale = " --on-divergence stale" if job.stale else ""
    options = f"{kernel_options(paths.stem(job.plays), job.pace)}{stale}"
    return {
        **variables, "TAPE_MODE": "replay", "TAPE_OPTIONS": options, "TAPE_NOTEBOOK": str(job.notebook),
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(Path(__file__).parents[3]), variables.get("PYTHONPATH", "")])
        ),
    }  # fmt: skip


def _send_job(
    child: subprocess.Popen[str], job: Job, stops: Sequence[int], folder: RunFolder, *, cut: bool
) -> None:
    message = {
        "cassette": str(job.cassette), "plays": str(job.plays), "runs": list(job.runs),
        "ids": dict(job.ids), "sources": list(job.sources), "cells": list(job.cells),
        "check": job.check.record(), "stops": list(stops), "last": job.last or len(job.sources),
        "bound": job.bound or len(job.sources), "reads": list(job.reads),
        "saved": list(job.saved), "where": dict(folder.where),
        "may_raise": list(job.may_raise) or [False] * len(job.sources),
        "seconds": job.seconds, "cut": cut, "cwd": str(folder.notebook.parent),
        "folder": [str(each) if each else "" for each in folder.layers or ()],
    }  # fmt: skip
    if child.stdin is not None:
        with suppress(BrokenPipeError), child.stdin as stdin:  # it says why it ended
            stdin.write(json.dumps(message) + "\n")
