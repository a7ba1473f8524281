"""Runs a whole notebook in a fresh kernel, recording or replaying, and compares its outputs.

The kernel (headless/kernel.py) is started with the extension loaded and TAPE_MODE set, and is asked
whether it is so before any cell runs: one of another environment, without tape-jupyter, would run
live. Nothing a person has saved is ever lost: a notebook is replaced in one step, and not at all
when somebody saved it meanwhile.
"""

from __future__ import annotations

import copy
import itertools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tape_jupyter.comparison import outputs
from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.core.notebook_text import (
    CodeCell,
    code_cells,
    describe_absence,
    describe_notebooks,
    parse_notebook,
)
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.session.cell_words import asks_only

if TYPE_CHECKING:
    from nbclient import NotebookClient
    from nbformat import NotebookNode

    from tape_jupyter.headless.folders import RunFolder
    from tape_jupyter.headless.kernel import Mode

Status = Literal["ok", "same", "differs", "missed", "failed", "not run"]
UNSAVED = "it was never run when the notebook was saved: there is no output to compare with"
REFUSALS = ("UnmatchedCall", "BlockedConnection")


@dataclass(frozen=True, slots=True)
class CellRun:
    """One code cell of a headless run. `number` counts code cells from 1; `messages` are its diff, miss
    or error, in lines.

    ok: it ran (record), or was never run when it was saved, so that there is nothing to compare with
    (replay). same, differs: against the saved outputs (replay). missed: replay refused a
    call. failed: it raised, and has not done so when it was saved. not run: a cell before it
    raised; `expected` where that one raised as it was saved to, and this one was not run then
    either.
    """

    number: int
    status: Status
    title: str = ""
    seconds: float = 0.0
    messages: tuple[str, ...] = ()
    tape: str = ""
    raised: bool = False
    """It ended with an exception, recorded or not."""
    expected: bool = False

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it: it came out as it should, or was not run as it was not
        when recorded.
        """
        return self.status in ("ok", "same") or self.expected

    @property
    def is_executed(self) -> bool:
        """Whether it was executed, which takes some time. A cell behind one that raised is not, as
        with Run All.
        """
        return self.seconds > 0

    @property
    def said(self) -> tuple[str, ...]:
        """The messages, as people's own tests of a `testing.run_notebook` may ask for them."""
        return self.messages

    def record(self) -> dict[str, Any]:
        """For --json, where the messages are called `said`."""
        named = {"messages": "said"}
        record = {named.get(name, name): value for name, value in asdict(self).items()}
        return {**record, "said": list(self.messages)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> CellRun:
        """Of what `record` gives."""
        fields = {name: value for name, value in record.items() if name != "said"}
        return cls(**fields, messages=tuple(record["said"]))


@dataclass(frozen=True, slots=True)
class CellEnd:
    """How a cell ended that was run. `unheld` and `lost`: outputs.REMARKS."""

    seconds: float
    raised: bool = False
    unheld: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


Parsed = TypeVar("Parsed")
OnCell = Callable[[CellRun], None]
Note = Callable[[str], None]
Starting = Callable[[int, int, str], None]
"""Told before a cell runs: its number, how many there are, the first line of its source."""


def read_notebook(path: Path) -> NotebookNode:
    """The notebook as nbformat 4. Raises TapeUsageError for what is none."""
    return _read_notebook(path, parse_notebook)


def read_code_cells(path: Path) -> list[CodeCell]:
    """Its code cells alone, which is quicker. Raises TapeUsageError for what is no notebook."""
    return _read_notebook(path, code_cells)


def _read_notebook(path: Path, parse: Callable[[str], Parsed]) -> Parsed:
    if path.suffix != ".ipynb":
        raise TapeUsageError(f"{path}: {_describe_other_file(path)}")
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TapeUsageError(f"{path}: {describe_absence(path)}") from None
    except OSError as error:
        raise TapeUsageError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise TapeUsageError(f"{path}: {error}") from error


def _describe_other_file(path: Path) -> str:
    """Why a path without the suffix is no notebook, and which may be meant."""
    if notebooks := describe_notebooks(path):
        return f"a folder, not a notebook; name {notebooks}"
    if path.is_dir():
        return "a folder, not a notebook, and there is no notebook in it"
    if not path.exists() and path.with_name(f"{path.name}.ipynb").is_file():
        return f"there is no such file; the notebook's name ends with .ipynb: {path.name}.ipynb"
    return "not a notebook (.ipynb)"


def replay_notebook(
    path: Path,
    starting: Starting,
    on_cell: OnCell,
    timeout: float | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
    note: Note = do_nothing,
) -> list[CellRun]:
    """Replay the notebook apart from its folder (headless/folders.py) and compare each cell with
    its saved outputs.

    Nothing is written but a take that `env`, which is added to the kernel's environment, asks for.
    `note` hears what a person should know of the run.
    """
    return replay_with_outputs(path, starting, on_cell, timeout, env, note)[0]


def replay_with_outputs(
    path: Path,
    starting: Starting,
    on_cell: OnCell,
    timeout: float | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
    note: Note = do_nothing,
) -> tuple[list[CellRun], NotebookNode]:
    """The same, and the notebook with the outputs that replay gave."""
    saved = read_notebook(path)
    replayed = copy.deepcopy(saved)
    return list(
        _run_in_copy(replayed, saved, path, starting, on_cell, timeout, env, note)
    ), replayed


def replaying(
    path: Path, timeout: float | None = None, env: Mapping[str, str] = MappingProxyType({})
) -> Iterator[CellRun]:
    """The same, run when the first cell is asked for."""
    saved = read_notebook(path)
    return _run_in_copy(
        copy.deepcopy(saved), saved, path, do_nothing, do_nothing, timeout, env, do_nothing
    )


def _run_in_copy(
    notebook: NotebookNode,
    saved: NotebookNode,
    path: Path,
    starting: Starting,
    on_cell: OnCell,
    timeout: float | None,
    env: Mapping[str, str],
    note: Note,
) -> Iterator[CellRun]:
    """Replay each cell in turn, apart from the person's folder."""
    from tape_jupyter.headless.folders import run_folder

    with run_folder(path, {**os.environ, **env}) as place:
        for each in place.notes:
            note(each)
        yield from _run_cells(notebook, saved, place, "replay", starting, on_cell, timeout, env)


def record_notebook(
    path: Path,
    starting: Starting,
    on_cell: OnCell,
    timeout: float | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
    note: Note = do_nothing,
) -> tuple[list[CellRun], Path]:
    """Record every cell and write the outputs into the notebook, also when a cell raises or the run
    is interrupted.

    Cells that were not run show nothing then: what they showed is of another run, and is kept in a
    notebook beside it. Gives the cells and where the outputs went: the notebook, or a file beside
    it if it was saved meanwhile. `note` hears what a person should know of the run.
    """
    from tape_jupyter.headless.folders import RunFolder

    before = _read_stamp(path)
    notebook = read_notebook(path)
    done: list[CellRun] = []
    begun: list[int] = []

    def note_start(number: int, count: int, title: str) -> None:
        starting(number, count, title)
        begun.append(number)

    try:
        for run in _run_cells(
            notebook, notebook, RunFolder(path), "record", note_start, on_cell, timeout, env
        ):
            done.append(run)  # noqa: PERF402 - what ran before an interrupt counts
    finally:
        written = path
        if any(run.status != "not run" for run in done):
            _clear_unrun_cells(notebook, path, begun, note)
            written = write_notebook(notebook, path, before)
    return done, written


def _clear_unrun_cells(
    notebook: NotebookNode, path: Path, begun: Sequence[int], note: Note
) -> None:
    """Take the outputs of an earlier run off the cells that this one did not come to; the notebook
    as it is now is kept beside it where that loses any.
    """
    cells = [cell for cell in notebook.cells if has_code(cell)]
    stale = [number for number, cell in enumerate(cells, 1) if number not in begun and cell.outputs]
    for number, cell in enumerate(cells, 1):
        if number not in begun:
            cell.outputs, cell.execution_count = [], None
    if stale:
        kept = _write_backup(path)
        note(
            f"{_format_subject(stale)} not run: the outputs that stood there, of an earlier run, are now in {kept.name}"
        )


def _write_backup(path: Path) -> Path:
    """A copy of the notebook under a name that is free: `churn.before.ipynb`."""
    content = path.read_bytes()
    for number in itertools.count(1):
        goal = path.with_suffix(".before.ipynb" if number == 1 else f".before{number}.ipynb")
        try:
            with goal.open("xb") as file:
                file.write(content)
        except FileExistsError:
            continue
        break
    return goal


def _run_cells(
    notebook: NotebookNode,
    saved: NotebookNode,
    place: RunFolder,
    mode: Mode,
    starting: Starting,
    on_cell: OnCell,
    timeout: float | None,
    env: Mapping[str, str],
) -> Iterator[CellRun]:
    """Run the code cells and judge them: what a recording gave as it comes, a replay's outputs once
    all have run, since a later cell may update what an earlier one displays.
    """
    from tape_jupyter.headless.kernel import start_kernel

    cells = [(index, cell) for index, cell in enumerate(notebook.cells) if has_code(cell)]
    before = [
        counted_outputs(cell.source, copy.deepcopy(saved.cells[index].outputs))
        for index, cell in cells
    ]
    unrun = frozenset(
        number
        for number, (index, _) in enumerate(cells, 1)
        if saved.cells[index].get("execution_count") is None
    )
    try:
        with start_kernel(
            notebook, place.notebook, mode, timeout, {**env, **place.env}, prefix=place.prefix
        ) as client:
            ends = _execute_cells(client, cells, starting)
            if mode == "replay":
                ends = iter(list(ends))
            for run in _judge_cells(cells, before, unrun, ends, mode, place.where):
                on_cell(run)
                yield run
    finally:
        merge_streams(notebook)


def _judge_cells(
    cells: Sequence[tuple[int, NotebookNode]],
    before: Sequence[Sequence[Any]],
    unrun: frozenset[int],
    ends: Iterator[CellEnd],
    mode: Mode,
    where: Mapping[str, str],
) -> Iterator[CellRun]:
    """What became of each code cell; `ends` are of those that were run, `before` what each showed
    when it was saved; `unrun` were not run then.
    """
    stopped: CellRun | None = None
    for number, ((_, cell), saved_outputs) in enumerate(zip(cells, before, strict=True), 1):
        title, end = first_line(cell.source), next(ends, None)
        if end is None:
            yield CellRun(
                number, "not run", title, expected=_is_expected(stopped, saved_outputs, mode)
            )
            continue
        stopped = _judge_cell(
            number,
            title,
            end,
            saved_outputs,
            counted_outputs(cell.source, cell.outputs),
            mode,
            where,
        )
        if stopped.status == "differs" and number in unrun and not (saved_outputs or end.unheld):
            stopped = replace(stopped, status="ok", messages=(UNSAVED,))
        yield stopped


def _execute_cells(
    client: NotebookClient, cells: Sequence[tuple[int, NotebookNode]], starting: Starting
) -> Iterator[CellEnd]:
    """How each code cell ended; after one that raised the rest is not run, as with Run All."""
    for number, (index, cell) in enumerate(cells, 1):
        starting(number, len(cells), first_line(cell.source))
        end = execute_cell(client, cell, index)
        yield end
        if end.raised:
            return


def _is_expected(stopped: CellRun | None, saved_outputs: Sequence[Any], mode: Mode) -> bool:
    """Whether a cell behind the one that raised was not run when the notebook was saved either."""
    return (
        mode == "replay" and stopped is not None and stopped.status == "same" and not saved_outputs
    )


def behind(cells: Sequence[CellRun]) -> str:
    """Which cells were not run, and why, in one line; "" where all were."""
    unrun = [cell for cell in cells if cell.status == "not run"]
    first = next(iter(unrun), None)
    raised = [
        cell for cell in cells if first is not None and cell.number < first.number and cell.raised
    ]
    if not raised:
        return ""
    as_recorded = raised[-1].status == "same"
    why = f"[{raised[-1].number}] raised{' as recorded' if as_recorded else ''}"
    odd = [cell.number for cell in unrun if not cell.expected]
    summary = f"{why}; {_format_subject([cell.number for cell in unrun])} not run"
    if not odd:
        return f"{summary}, as when recorded"
    if not as_recorded:
        return summary
    return f"{summary}, but {_format_subject(odd)} when the notebook was saved"


def _format_subject(numbers: Sequence[int]) -> str:
    return f"{numbered(numbers)} {'was' if len(numbers) == 1 else 'were'}"


def numbered(numbers: Sequence[int]) -> str:
    """`[3]`, `[3] to [9]`, `[3], [5]`."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"[{numbers[0]}] to [{numbers[-1]}]"
    return ", ".join(f"[{number}]" for number in numbers)


def has_code(cell: NotebookNode) -> bool:
    """Whether it is a code cell with something in it."""
    return bool(cell.cell_type == "code" and cell.source.strip())


def first_line(source: str) -> str:
    """The first line that is not a `%%tape` line, at most 80 characters of it; "" of an empty cell."""
    lines = [line for line in map(str.strip, source.splitlines()) if line]
    code_lines = [line for line in lines if not line.startswith("%%tape")]
    return next(iter([*code_lines, *lines]), "")[:80]


def counted_outputs(source: str, cell_outputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a cell that count. What the tape answers is none: it speaks of a tape that
    goes on growing.
    """
    if not asks_only(source):
        return cell_outputs
    if _BUNDLE_LINE.search(source) and all(map(_IDLE_LINE.fullmatch, source.splitlines())):
        return ()
    return [each for each in cell_outputs if each.get("output_type") == "error"]


def drop_bundle_answers(source: str, cell_outputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a cell without what `%tape export` and `%tape verify` answered in it: digest
    and size of a bundle that would have to hold them.
    """
    if not _BUNDLE_LINE.search(source):
        return cell_outputs
    return [
        each
        for each in counted_outputs(source, cell_outputs)
        if not outputs.is_summary(each) or "text/html" in each["data"]  # a list of calls
    ]


_BUNDLE_LINE = re.compile(r"^[ \t]*%tape[ \t]+(export|verify)\b", re.MULTILINE)
_IDLE_LINE = re.compile(r"\s*(#.*|%tape\s+(export|verify)\b.*)?")
"""Of a cell that does nothing in a headless run, where it may have failed when it was saved."""


def execute_cell(client: NotebookClient, cell: NotebookNode, index: int) -> CellEnd:
    """Run one cell. Its outputs are in it afterwards, as they came: later cells may update them, by
    their places, until the last has run (then: `merge_streams`).
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    from tape_jupyter.headless.kernel import remarks

    started = time.perf_counter()
    raised = False
    try:
        client.execute_cell(cell, index)
    except CellExecutionError:
        raised = True
    except (CellTimeoutError, DeadKernelError) as error:
        from nbformat.v4 import new_output

        message = str(error).splitlines()[0]
        error_output = {"ename": type(error).__name__, "evalue": message, "traceback": [message]}
        cell.outputs.append(new_output("error", **error_output))  # type: ignore[no-untyped-call]
        return _build_cell_end(cell, started, {}, raised=True)
    return _build_cell_end(cell, started, remarks(client), raised=raised)


def _build_cell_end(
    cell: NotebookNode,
    started: float,
    remarks_by_kind: Mapping[str, Sequence[str]],
    *,
    raised: bool,
) -> CellEnd:
    """What a kernel told by itself, and what the cell's summary says where the kernel's
    tape-jupyter tells nothing.
    """
    unheld, lost = (
        tuple(
            dict.fromkeys(
                [*remarks_by_kind.get(kind, ()), *outputs.summary_remarks(cell.outputs, kind)]
            )
        )
        for kind in outputs.REMARKS
    )
    return CellEnd(time.perf_counter() - started, raised, unheld, lost)


def merge_streams(notebook: NotebookNode) -> None:
    """Once a run is over: each cell's outputs as a front end saves them."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = outputs.merge_streams(cell.outputs)


def _judge_cell(
    number: int,
    title: str,
    end: CellEnd,
    saved: Any,
    new: Any,
    mode: Mode,
    where: Mapping[str, str],
) -> CellRun:
    name, value = outputs.failure_of(new)
    run = CellRun(number, "same", title, end.seconds, (), outputs.summary_of(new), end.raised)
    if name in REFUSALS:
        return replace(
            run, status="missed", messages=tuple(f"{name}: {value}".rstrip().split("\n"))
        )
    if mode == "record":
        notes = (*((f"{name}: {value}",) if name else ()), *end.lost)
        return replace(run, status="failed" if notes else "ok", messages=notes)
    same = outputs.same_outputs(saved, new, where)
    if same and not end.unheld:
        return run
    raised_anew = bool(name) and name != outputs.failure_of(saved)[0]
    difference = () if same else outputs.diff_outputs(saved, new, where)
    return replace(
        run,
        status="failed" if raised_anew else "differs",
        messages=(*end.unheld, *difference),
    )


def write_notebook(notebook: NotebookNode, path: Path, before: tuple[int, int] | None) -> Path:
    """Replace the notebook in one step. If it is not as it was (`before`), write beside it instead."""
    import nbformat

    goal = path if _read_stamp(path) == before else path.with_suffix(".recorded.ipynb")
    # the file that a link names, not the link
    with replacing(goal.resolve(), private=True, lasting=True) as draft:
        with draft.open("w", encoding="utf-8") as file:
            nbformat.write(notebook, file)  # type: ignore[no-untyped-call]
        shutil.copymode(path, draft)
    return goal


def _read_stamp(path: Path) -> tuple[int, int] | None:
    try:
        stats = path.stat()
    except OSError:
        return None
    return stats.st_mtime_ns, stats.st_size
