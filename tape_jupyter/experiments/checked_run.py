"""A notebook replayed whole, offline, in a fresh kernel, and what a check says of it.

The check is a Python expression over the notebook's variables and `outputs` (the text that each
code cell showed), `cell:N` (that cell runs and does not raise), `output:N` (it shows what is saved),
or none: no cell raises, but those after which others ran when the notebook was saved.
"""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from contextvars import Context
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from tape_jupyter.comparison import outputs
from tape_jupyter.experiments.check_text import CheckKind, read_check, require_cell
from tape_jupyter.headless import run as headless_run
from tape_jupyter.headless.questions import KernelAnswer, ask

if TYPE_CHECKING:
    from nbformat import NotebookNode

P = ParamSpec("P")
Result = TypeVar("Result")
_STARTING = threading.Lock()
Verdict = Literal["passes", "fails", "unresolved"]


@dataclass(frozen=True, slots=True)
class RunCheck:
    """`number`: the code cell, counted from 1."""

    text: str = ""
    kind: Literal[""] | CheckKind = ""
    number: int = 0

    @classmethod
    def of(cls, text: str) -> RunCheck:
        """Raises TapeUsageError for what is no check."""
        if not text.strip():
            return cls()
        return cls(text.strip(), *read_check(text))

    @property
    def expression(self) -> str:
        return self.text if self.kind == "expression" else ""

    def require(self, cells: int) -> None:
        """Raises TapeUsageError where the notebook has no such cell."""
        require_cell(self.text, self.kind, self.number, cells)


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """How a run came out. `value` is what the check gave (its repr), `why` a line for people.

    `cell` is the code cell that ended the run (0: none did), with `error`, the name of what it
    raised, and `asked`, what was asked that is not on the tape. `calls` were answered, `missed`
    refused.
    """

    verdict: Verdict
    value: str = ""
    why: str = ""
    cell: int = 0
    error: str = ""
    asked: str = ""
    calls: int | None = None
    missed: int | None = None
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A code cell of a run: what it showed, and what it had saved. `ran`: it was executed."""

    shown: Sequence[Any]
    saved: Sequence[Any]
    ran: bool = True


def in_thread(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Work that runs kernels, in a thread that is not the main one: with an event loop of its own,
    which is closed at its end.
    """

    def run() -> Result:
        from jupyter_core.utils import ensure_event_loop

        try:
            return work(*args, **kwargs)
        finally:
            ensure_event_loop().close()

    return Context().run(run)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What is another than in a plain replay: `take` is played, `node` is run in place of what is
    saved, `files` are found in the folder besides, `python` runs the kernel. `timeout`: seconds
    for each cell. `started` hears the id of the kernel's process.
    """

    take: str = ""
    node: NotebookNode | None = None
    files: Mapping[Path, bytes] = field(default_factory=dict)
    python: str | None = None
    timeout: float | None = None
    started: Callable[[int], None] = lambda _pid: None


def replayed(notebook: Path, check: RunCheck, options: ReplayOptions) -> CheckedRun:
    """Replay the notebook apart from its folder, and check it. Writes nothing. Raises TapeError
    where it cannot be run.
    """
    from tape_jupyter.headless.folders import run_folder
    from tape_jupyter.headless.kernel import kernel

    path = notebook.resolve()
    saved_as = headless_run.read(path)
    made = copy.deepcopy(saved_as if options.node is None else options.node)
    cells = [(index, cell) for index, cell in enumerate(made.cells) if headless_run.runs(cell)]
    check.require(len(cells))
    saved = [copy.deepcopy(cell.outputs) for _, cell in cells]
    told = {"TAPE_OPTIONS": f"--take {options.take}"} if options.take else {}
    began = time.perf_counter()
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder(path, told, options.files))
        whole = {**(os.environ if options.python else {}), **told, **folder.env}
        opened = kernel(
            made, folder.notebook, "replay", options.timeout, whole, options.python, folder.prefix
        )
        with _STARTING:  # so that no other kernel of this process takes its ports
            client = stack.enter_context(opened)
        if client.km is not None and client.km.provisioner is not None:
            options.started(getattr(client.km.provisioner, "pid", 0) or 0)
        ran = _executed(client, cells, saved)
        headless_run.merge_streams(made)
        texts = [outputs.shown_text(cell.outputs) for _, cell in cells]
        try:
            answer = ask(client, check.expression, texts)
        except Exception as error:  # of a kernel that is gone
            answer = KernelAnswer(error=str(error))
        shown = [
            ShownCell(cell.outputs, before, number <= ran)
            for number, ((_, cell), before) in enumerate(zip(cells, saved, strict=True), 1)
        ]
        return judged(shown, check, answer, folder.where, time.perf_counter() - began)


def _executed(client: Any, cells: Sequence[tuple[int, Any]], saved: Sequence[Any]) -> int:
    """Run the cells, as Run All does; gives how many were run. One that had raised when it was
    saved, with others run after it, does not end the run.
    """
    for _, cell in cells:
        cell.outputs = []
    for number, (index, cell) in enumerate(cells, 1):
        before, after = saved[number - 1], saved[number:]
        raised = headless_run.execute(client, cell, index).raised
        expected = bool(outputs.failure_of(before)[0]) and any(after)
        if raised and not expected:
            return number
    return len(cells)


def judged(
    cells: Sequence[ShownCell],
    check: RunCheck,
    answer: KernelAnswer,
    where: Mapping[str, str],
    seconds: float,
) -> CheckedRun:
    """What the check says of a run: `cells` are its code cells."""
    verdict: Verdict = "passes"
    value, why = "", ""
    number, name, said = _failed(cells)
    if name in headless_run.REFUSALS and not (check.kind == "cell" and number > check.number):
        verdict, why = "unresolved", f"cell {number}: {said}"
    elif check.kind == "cell":
        if number and number <= check.number:
            verdict, why = "fails", f"cell {number}: {name}: {said}"
    elif check.kind == "output":
        one = cells[check.number - 1]
        if not (one.ran and outputs.same(one.saved, one.shown, where)):
            verdict, why = "fails", f"output {check.number} is another"
    elif check.kind == "expression":
        behind = f" (cell {number} had raised {name})" if number else ""
        value = answer.value
        if answer.error:
            verdict, why = "unresolved", f"the check raised {answer.error}{behind}"
        elif not answer.true:
            verdict, why = "fails", f"{check.text} is {answer.value}{behind}"
    elif number:
        verdict, why = "fails", f"cell {number}: {name}: {said}"
    asked = said if name in headless_run.REFUSALS else ""
    return CheckedRun(
        verdict, value, why, number, name, asked, answer.calls, answer.missed, round(seconds, 3)
    )


def _failed(cells: Sequence[ShownCell]) -> tuple[int, str, str]:
    """The cell that ended the run, what it raised, and the first line of that; (0, "", "") for
    none. One that raised and had cells run after it did not end it.
    """
    for number, cell in enumerate(cells, 1):
        name, value = outputs.failure_of(cell.shown)
        if name and (number == len(cells) or not cells[number].ran):
            return number, name, value.splitlines()[0] if value else ""
    return 0, "", ""
