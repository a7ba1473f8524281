"""A notebook replayed whole, offline, in a fresh kernel, and what a check says of it."""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from contextvars import Context
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tape_jupyter.comparison import outputs
from tape_jupyter.experiments.check import Check, CheckedCell, CheckedRun, ends, judged, may_raise
from tape_jupyter.headless import run as headless_run
from tape_jupyter.headless.questions import KernelAnswer, ask_questions

if TYPE_CHECKING:
    from nbformat import NotebookNode

P = ParamSpec("P")
Result = TypeVar("Result")
_STARTING = threading.Lock()


def in_thread(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Work that runs kernels, in a thread that is not the main one: with an event loop of its own,
    which is closed at its end.
    """

    def run_work() -> Result:
        from jupyter_core.utils import ensure_event_loop

        try:
            return work(*args, **kwargs)
        finally:
            ensure_event_loop().close()

    return Context().run(run_work)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What is another than in a plain replay: `take` is played, at this `pace` (one of PACES; "":
    the usual one), `node` is run in place of what is saved, `files` are found in the folder
    besides, `python` runs the kernel. `timeout`: seconds for each cell. `started` hears the id of
    the kernel's process.
    """

    take: str = ""
    pace: str = ""
    node: NotebookNode | None = None
    files: Mapping[Path, bytes] = field(default_factory=dict)
    python: str | None = None
    timeout: float | None = None
    started: Callable[[int], None] = lambda _pid: None


def replay_and_check(notebook: Path, check: Check, options: ReplayOptions) -> CheckedRun:
    """Replay the notebook apart from its folder, and check it. Writes nothing. Raises TapeError
    where it cannot be run.
    """
    from tape_jupyter.bundle.proof.process import kernel_options
    from tape_jupyter.headless.folders import run_folder
    from tape_jupyter.headless.kernel import start_kernel

    path = notebook.resolve()
    saved_as = headless_run.read_notebook(path)
    node = copy.deepcopy(saved_as if options.node is None else options.node)
    cells = [(index, cell) for index, cell in enumerate(node.cells) if headless_run.has_code(cell)]
    check.require(len(cells))
    saved = [copy.deepcopy(cell.outputs) for _, cell in cells]
    line = kernel_options(options.take, options.pace)
    variables = {"TAPE_OPTIONS": line} if line else {}
    began = time.perf_counter()
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder(path, variables, options.files))
        environment = {**(os.environ if options.python else {}), **variables, **folder.env}
        opened = start_kernel(
            node,
            folder.notebook,
            "replay",
            options.timeout,
            environment,
            options.python,
            folder.prefix,
        )
        with _STARTING:  # so that no other kernel of this process takes its ports
            client = stack.enter_context(opened)
        if client.km is not None and client.km.provisioner is not None:
            options.started(getattr(client.km.provisioner, "pid", 0) or 0)
        executed = _run_cells(client, cells, saved)
        headless_run.merge_streams(node)
        texts = [outputs.shown_text(cell.outputs) for _, cell in cells]
        try:
            answer = ask_questions(client, check.expression, texts)
        except Exception as error:  # of a kernel that is gone
            answer = KernelAnswer(error=str(error))
        shown_cells = [
            CheckedCell(cell.outputs, before, number <= executed)
            for number, ((_, cell), before) in enumerate(zip(cells, saved, strict=True), 1)
        ]
        return judged(shown_cells, check, answer, folder.where, time.perf_counter() - began)


def _run_cells(client: Any, cells: Sequence[tuple[int, Any]], saved: Sequence[Any]) -> int:
    """Run the cells, as Run All does; gives how many were run. One that had raised when it was
    saved, with others run after it, does not end the run.
    """
    for _, cell in cells:
        cell.outputs = []
    for number, ((index, cell), may) in enumerate(zip(cells, may_raise(saved), strict=True), 1):
        raised = headless_run.execute_cell(client, cell, index).raised
        if raised and ends(cell.outputs, may_raise=may):
            return number
    return len(cells)
