"""The process of trials (experiments/trials/runner.py starts it): a shell that replays a notebook.

It runs the cells once, and before each cell at which a trial may begin it leaves a process behind
that waits there. A trial is a fork of the last one before its first change: the cells above have
run, the folder is put back to what it was there, and what the trial does is gone with it.

Channel n (a socket) is of the n-th such process: a trial comes in as a line of JSON, its result
goes out as one. The last channel gets the result of the run itself. Without `fork`, or once a cell
left threads behind, trials begin at an earlier cell, at the latest before the first.

Modules that the cells import are imported in the waiting process, once and not in each trial
(trials/preloaded.py), where the recording then comes out as without.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from tape_jupyter.comparison import outputs
from tape_jupyter.core.call import Request
from tape_jupyter.dataflow.isolated.worker import FreshShell, execute_in_shell, shell
from tape_jupyter.errors import TapeError
from tape_jupyter.experiments.check import Check, CheckedCell, ends, judged, run_check
from tape_jupyter.experiments.trials.composed import ComposedCassette
from tape_jupyter.experiments.trials.folder_state import TrialFolder
from tape_jupyter.experiments.trials.preloaded import import_modules, imported_since
from tape_jupyter.session.cell import TapedCell

WORTH = 20
"""Modules from which on it is worth to import them once, not in each trial."""
_UNCHANGED: Mapping[str, Any] = MappingProxyType(
    {"answers": (), "added": {}, "held": {}, "sources": {}}
)
_LINE = json.JSONEncoder().encode  # bound now: cells patch what they like later
_clock, _select, _fork, _exit = time.monotonic, select.select, getattr(os, "fork", None), os._exit


@dataclass(slots=True)
class TrialProcess:
    """The state of one process: how far its cells ran, and what they showed."""

    job: Mapping[str, Any]
    channels: list[socket.socket]
    shell: FreshShell
    cassette: ComposedCassette
    folder: TrialFolder
    outputs: list[list[Any]] = field(default_factory=list)
    ran: int = 0
    ended: bool = False
    """A cell ended the run: it raised, or was refused what it asked."""
    cell: TapedCell | None = None
    """The taped cell that ran last."""
    modules: frozenset[str] = field(default_factory=lambda: frozenset(sys.modules))
    """What was imported before the first cell."""

    def run(self) -> NoReturn:
        """Run the cells, leaving a waiting process before each stop; then tell how it came out."""
        started = _clock()
        sources = list(self.job["sources"])
        for number, stop in enumerate(self.job["stops"]):
            self._run_cells(sources, min(stop, self.job["last"]))
            if self.ended or not _can_fork():
                self._send_message(self.channels[number], {"absent": True})
                continue
            if _fork is None or _fork() == 0:
                self._serve_trials(number, sources)
        self._run_cells(sources, self.job["last"])
        result = {**self._build_result(), "imports": imported_since(self.modules)}
        self._send_message(self.channels[-1], {**result, "seconds": _clock() - started})
        _exit(0)

    def _serve_trials(self, number: int, sources: list[str]) -> NoReturn:
        """Answer trials that begin here, one after another, until the channel is closed."""
        for other in (each for each in self.channels if each is not self.channels[number]):
            other.close()
        state = self.folder.state()
        lines = self.channels[number].makefile("r", encoding="utf-8")
        self._send_message(self.channels[number], {"ready": self.ran})
        preloads = _fork is not None
        for line in lines:
            trial = json.loads(line)
            started = _clock()
            self.folder.put_back(state)
            if _fork is None:
                self._send_message(self.channels[number], self._run_trial(sources, trial, started))
                _exit(0)
            if preloads:
                preloads = False
                self._preload_modules(sources, trial)
                self.folder.put_back(state)
            self._send_message(self.channels[number], self._fork_trial(sources, trial, started))
        _exit(0)

    def _preload_modules(self, sources: list[str], trial: Mapping[str, Any]) -> None:
        """Go on in a process that has imported what the cells import, where the recording comes out
        there as it did; else, and where little is to be imported, in this one.
        """
        missing = [name for name in trial["imports"] if name not in sys.modules]
        if len(missing) < WORTH:
            return
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                goes_on = pipe.read() == b"as recorded"
            if goes_on:
                os.waitpid(child, 0)
                _exit(0)
            os.waitpid(child, 0)
            return
        os.close(reading)
        import_modules(missing)
        unchanged = {**_UNCHANGED, "options": trial.get("options") or {}}
        result = self._fork_trial(sources, unchanged, _clock()) if _can_fork() else {}
        if result.get("digest") != trial["digest"]:
            _exit(0)
        os.write(writing, b"as recorded")
        os.close(writing)

    def _fork_trial(
        self, sources: list[str], trial: Mapping[str, Any], started: float
    ) -> dict[str, Any]:
        """What a fork of this process says of the trial, in the time that it has."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(f"{_LINE(self._run_trial(sources, trial, started))}\n".encode())
            _exit(0)
        os.close(writing)
        line = _read_line(reading, started + self.job["seconds"])
        if line is None:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if line and not status:
            result: dict[str, Any] = json.loads(line)
            return result
        if line is None:
            why = f"took longer than {self.job['seconds']:g} s"
        else:
            why = "ended the process"
        return {
            "verdict": "unresolved", "why": f"the trial {why}", "seconds": _clock() - started,
        }  # fmt: skip

    def _run_trial(
        self, sources: list[str], trial: Mapping[str, Any], started: float
    ) -> dict[str, Any]:
        try:
            self._continue_session(trial.get("options") or {})
            sources = [trial["sources"].get(str(i), source) for i, source in enumerate(sources)]
            self._compose_recording(trial)
            self._run_cells(sources, self.job["last"])
            result = self._build_result()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if not isinstance(error, TapeError):
                why = f"{why} ({traceback.extract_tb(error.__traceback__)[-1]})"
            result = {"verdict": "unresolved", "why": why}
        return {**result, "seconds": _clock() - started}

    def _continue_session(self, options: Mapping[str, Any]) -> None:
        """Go on in place of the process that this is a fork of."""
        from tape_jupyter.session import session

        deck = session.get()
        deck.continue_in_fork()
        deck.session_options.update(options)

    def _compose_recording(self, trial: Mapping[str, Any]) -> None:
        for run, call, response in trial["answers"]:
            self.cassette.answer(run, call, response)
        for run, calls in trial["added"].items():
            self.cassette.add(run, calls)
        for run, (changed, ended) in trial["held"].items():
            self.cassette.change_run(run, changed, ended)

    # ------------------------------------------------------------ cells

    def _run_cells(self, sources: Sequence[str], until: int) -> None:
        """Run the cells up to that one (from 0, it not among them), as far as none ends the run."""
        while self.ran < until and not self.ended:
            number = self.ran
            self.ran += 1
            result = execute_in_shell(self.shell, sources[number], self.job["cells"][number])
            cell_outputs = outputs.merge_streams(list(result["outputs"]))
            # it cleared what it showed
            if result["error"] and not outputs.failure_of(cell_outputs)[0]:
                cell_outputs.append(
                    {"output_type": "error", "ename": result["error"], "evalue": ""}
                )
            self.outputs.append(cell_outputs)
            self.ended = ends(cell_outputs, may_raise=self.job["may_raise"][number])

    def _build_result(self) -> dict[str, Any]:
        """What the check says of it, and what was asked that is not on the tape; with a digest of
        that and of all that the cells showed.
        """
        check = Check(**self.job["check"])
        all_outputs = self.outputs + [[]] * (len(self.job["sources"]) - self.ran)
        cells = [
            CheckedCell(
                cell_outputs,
                self.job["saved"] if number == check.number else (),
                number <= self.ran,
            )
            for number, cell_outputs in enumerate(all_outputs, 1)
        ]
        answer = run_check(
            check, self.shell.user_ns, [outputs.shown_text(each) for each in all_outputs]
        )
        run = judged(cells, check, answer, self.job["where"], 0.0, settled=self._is_check_final())
        unmatched = None
        if run.verdict == "unresolved" and run.asked:
            unmatched = _describe_unmatched_call(self.cell)
        digested = json.dumps([self.outputs, run.record()], sort_keys=True, default=str)
        return {
            **run.record(), "wanted": unmatched, "digest": hashlib.sha256(digested.encode()).hexdigest(),
        }  # fmt: skip

    def _is_check_final(self) -> bool:
        """Whether what the check reads can no longer change, though a later cell was refused: it
        binds none of the names, and they hold plain values.
        """
        values = [self.shell.user_ns.get(name) for name in self.job["reads"]]
        return self.ran > self.job["bound"] and all(map(_is_plain_value, values))

    def set_cell(self, cell: TapedCell | None) -> None:
        self.cell = cell

    def _send_message(self, channel: socket.socket, message: Mapping[str, Any]) -> None:
        with suppress(OSError):
            channel.sendall((_LINE(message) + "\n").encode())


def _read_line(pipe: int, until: float) -> bytes | None:
    """A line, or what comes until the other end is closed; None where neither comes in time. What a
    cell started may hold the other end open.
    """
    parts: list[bytes] = []
    with os.fdopen(pipe, "rb", buffering=0) as end:
        while _select([end], [], [], max(0.0, until - _clock()))[0]:
            part = end.read(65536)
            parts.append(part)
            if not part or part.endswith(b"\n"):
                return b"".join(parts)
    return None


def _is_plain_value(value: Any) -> bool:
    """Whether nobody can change it but by binding its name anew. Names of builtins give None."""
    if isinstance(value, tuple | frozenset):
        return all(map(_is_plain_value, value))
    return (
        value is None or isinstance(value, str | bytes | int | float | complex) or callable(value)
    )


def _can_fork() -> bool:
    """Whether a fork of this process goes on as this one would: no thread of a cell is alive."""
    return _fork is not None and threading.active_count() == 1


def _describe_unmatched_call(cell: TapedCell | None) -> dict[str, Any] | None:
    """The request that the tape has no answer for, as a call's record has it; None for a tool's."""
    from tape_jupyter.cassette.records import request_section
    from tape_jupyter.secrets.registry import Secrets

    if cell is not None and cell.findings.divergences:
        divergence = cell.findings.divergences[-1]
    else:
        divergence = None
    if divergence is None or not isinstance(divergence.call, Request):
        return None
    head = {
        "call": divergence.id,
        "match": divergence.match,
        "kind": divergence.kind,
        "lineage": divergence.lineage,
    }
    head |= {"apart": divergence.discriminator} if divergence.discriminator else {}
    return {
        "run": divergence.repeats,
        "head": head,
        "request": request_section(divergence.call, Secrets()),
    }


def _start_process(job: Mapping[str, Any], channels: list[socket.socket]) -> TrialProcess:
    """The shell, with the recording in its place before the extension looks for it."""
    import time_machine  # noqa: F401 - a taped cell does: once, not in each trial

    from tape_jupyter import load_ipython_extension
    from tape_jupyter.jupyter.magics import loaded
    from tape_jupyter.session import session

    cassette = ComposedCassette.open(job["cassette"])
    cassette.keep_runs(job["runs"])
    for run, cell in job["ids"].items():
        cassette.change_run(run, {"cell": cell}, {})
    session.get().cassette(Path(job["plays"]), cassette)
    live = shell()
    deck = session.get()
    live.events.register("post_run_cell", lambda _: process.set_cell(deck.active))
    load_ipython_extension(live)
    if (cells := loaded(live)) is not None:
        cells.summarises = False
    if job["check"]["kind"] != "output":
        live.InteractiveTB.set_mode("Minimal")  # nobody reads it
    watched = TrialFolder(*(Path(each) if each else None for each in job["folder"]))  # type: ignore[arg-type]
    process = TrialProcess(job, channels, live, cassette, watched)
    return process


def main() -> None:
    """`python -m tape_jupyter.experiments.trials.process FD...`: the channels."""
    channels = [socket.socket(fileno=int(argument)) for argument in sys.argv[1:]]
    job = json.loads(sys.stdin.readline())
    sys.stdin = io.StringIO()
    if job["cut"]:
        from tape_jupyter.isolation.namespaces import loopback_up

        loopback_up()
    os.chdir(job["cwd"])
    try:
        process = _start_process(job, channels)
        sys.path.insert(0, "")  # from here on it is the notebook's: its folder may hold a queue.py
    except (TapeError, OSError) as error:
        for channel in channels:
            channel.sendall((_LINE({"failed": str(error)}) + "\n").encode())
        return
    if job["check"]["kind"] == "pytest":
        with suppress(ImportError):
            import pytest  # noqa: F401 - once, not in each trial
    process.run()


if __name__ == "__main__":
    main()
