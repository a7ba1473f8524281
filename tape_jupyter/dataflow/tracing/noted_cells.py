"""Cells that nobody watches: those of a session that tapes nothing, so far. They cost nothing that a
person feels: of each is noted what it bound and which files it touched. The tracker (tracker.py)
tells what they read and wrote from their text, once the first cell is taped.
"""

from __future__ import annotations

import ast
import threading
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tape_jupyter.core.real_clock import epoch_ns, perf_counter
from tape_jupyter.core.thread_number import thread_number
from tape_jupyter.core.user_code import MACHINERY, root_module
from tape_jupyter.dataflow.history import EVERYTHING, FILES, OUTPUTS, Execution, History, Step
from tape_jupyter.dataflow.identity import Bindings
from tape_jupyter.dataflow.tracing import ambient
from tape_jupyter.dataflow.tracing.files import FileWatch, Touched
from tape_jupyter.dataflow.tracing.running_cells import count_running_cells

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@dataclass(slots=True)
class NotedCell:
    """One such cell: its entry in the history, and what was noted of it."""

    entry: Execution
    began: float
    thread: int = field(default_factory=thread_number)
    started: int = 0
    """When its own code began to run, nanoseconds of the epoch; 0: it never did."""
    stopped: int = 0
    bound: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    touched: Touched = field(default_factory=Touched)
    displayed: bool = False
    taped: bool = False
    """It made a call that is taped, though nothing in its text says so."""


class NotedCells:
    """Of one shell: its history so far, and how things were before the first cell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self.history = History()
        self.files = FileWatch()
        self.running: NotedCell | None = None
        self.ended: list[NotedCell] = []
        self.failures: list[str] = []
        """Tracebacks of our own errors."""
        self.threads: set[threading.Thread] = set()
        """Those that ran before the first cell."""
        self.ambient: dict[str, Any] = {}
        """The state of the process before the first cell."""
        self.there: frozenset[str] = frozenset()
        """The variables that stood there before the first cell."""
        self._bindings = Bindings(shell.user_ns)

    def install(self) -> None:
        """What stands there now is from before the first cell."""
        self.threads = find_user_threads()
        self.ambient = ambient.take_ambient()
        self.files.firsts.begin()
        self.there = frozenset(self._bindings.read_changes()[0])

    def finish(self) -> Sequence[NotedCell]:
        """From now on cells are watched: those that were noted, and what they changed in the folder
        is known.
        """
        noted, self.ended = self.ended, []
        spans = [(each.started, each.stopped) for each in noted if each.started]
        if spans:
            self.files.firsts.end(spans)
        return noted

    def begin(self, info: Any) -> None:
        """A cell begins, of which IPython knows `info` (its ExecutionInfo)."""
        number = self._shell.execution_count - 1 if info.store_history else None
        entry = self.history.begin(info.cell_id or "", info.raw_cell, number)
        self.running = NotedCell(entry, perf_counter())
        self.files.clear()

    def start(self) -> None:
        """The shell is done with its own work, the cell's code comes next."""
        noted = self.running
        if noted is not None and not noted.started and noted.thread == thread_number():
            noted.began, noted.started = perf_counter(), epoch_ns()
            self.files.begin(lists=False)

    @property
    def is_elsewhere(self) -> bool:
        """Whether what happens here belongs to a cell within the running one, or to another thread's."""
        running = self.running
        return running is not None and (
            running.thread != thread_number() or count_running_cells() > 1
        )

    def end(self, result: Any) -> NotedCell | None:
        """The running cell ended with IPython's `result` (None: it was cancelled); gives it, unless
        what it did could not be noted.
        """
        noted, self.running = self.running, None
        if noted is None:
            return None
        entry = noted.entry
        try:
            noted.touched = self.files.end()
            entry.seconds, entry.outcome = perf_counter() - noted.began, read_outcome(result)
            noted.displayed = getattr(result, "result", None) is not None
            bound, removed = self._bindings.read_changes()
            noted.bound, noted.gone = frozenset(bound), frozenset(removed)
            entry.files = noted.touched.changes()
            entry.notes = tuple(format_notes(noted.touched.processes, noted.touched.crowded))
            noted.stopped = epoch_ns()
            self.ended.append(noted)
        except Exception:
            message = traceback.format_exc()
            self.failures.append(message)
            mark_entry_unknown(entry, message.strip().splitlines()[-1])
            return None
        return noted


def does_more_than_load(shell: InteractiveShell, source: str) -> bool:
    """Whether the cell that loads the extension does anything else: most import beside %load_ext."""
    transform: Any = shell.transform_cell
    try:
        return len(ast.parse(transform(source)).body) > 1
    except SyntaxError:
        return False


def read_outcome(result: Any) -> Any:
    """How a cell ended, by IPython's result."""
    if result is None:
        return "cancelled"
    return "ok" if result.success else "error"


def format_notes(processes: list[str], crowded: str) -> Iterable[str]:
    """What of a cell's files is not known. `crowded`: a folder with too much in it to compare."""
    if processes:
        yield f"starts a process ({processes[0][:60]}): it may read any file"
    if crowded:
        yield f"starts a process in {crowded}, where too many files lie to compare them: what it writes is not known"


def mark_entry_unknown(entry: Execution, why: str) -> None:
    """An entry of which nothing is known reads and writes everything."""
    every = frozenset({EVERYTHING, FILES, OUTPUTS, *(f"ambient:{part}" for part in ambient.PARTS)})
    entry.steps = (Step(1, entry.source.count("\n") + 1, every, frozenset(), every),)
    entry.outcome = "error" if entry.outcome == "running" else entry.outcome
    entry.notes = (*entry.notes, f"what this cell read and wrote could not be determined: {why}")


_OF_KERNELS = MACHINERY | {"_pydevd_bundle", "debugpy"}


def find_user_threads() -> set[threading.Thread]:
    """The threads that are neither ours nor the kernel's: JupyterLab has it begin a subshell's thread
    between cells.
    """
    return {
        thread
        for thread in threading.enumerate()
        if not thread.name.startswith("tape ") and root_module(type(thread)) not in _OF_KERNELS
    }
