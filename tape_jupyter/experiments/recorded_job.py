"""The job of a notebook's trials: which recording is played to which of its cells, for which check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.core.notebook_text import CodeCell
from tape_jupyter.experiments.causes.parts import Cell
from tape_jupyter.experiments.causes.sides import Side
from tape_jupyter.experiments.check import Check, may_raise
from tape_jupyter.experiments.trials.needed import bound, needed, read_by
from tape_jupyter.experiments.trials.runner import Job
from tape_jupyter.headless import run as headless_run

_NAMED = re.compile(r"^%%tape\s+\w+\s+([^\s-]\S*)", re.MULTILINE)


def saved_cells(notebook: Path) -> list[CodeCell]:
    """The code cells that hold something, called by their ids, which must differ, else by their
    place. Raises TapeUsageError for what is no notebook.
    """
    cells = [cell for cell in headless_run.read_code_cells(notebook) if cell.source.strip()]
    return [replace(cell, id=cell.id or f"cell-{n}") for n, cell in enumerate(cells, 1)]


def job_of(
    notebook: Path, saved: Sequence[CodeCell], side: Side, cells: Sequence[Cell], check: Check,
    stops: Sequence[int],
) -> Job:  # fmt: skip
    """`cells` are the `saved` ones as the side ran them, `stops` those at which trials begin."""
    sources = [cell.source for cell in cells]
    return Job(
        notebook,
        side.cassette.path,
        _find_asked_file(notebook, saved, side),
        [run.id for run in side.runs],
        {cell.run.id: cell.id for cell in cells if cell.run is not None},
        sources,
        [cell.id for cell in cells],
        check,
        stops,
        _read_outputs(notebook, check.number) if check.kind == "output" else [],
        may_raise([cell.outputs for cell in saved]),
        last=needed(check, sources),
        bound=bound(check, sources),
        reads=sorted(read_by(check)),
    )


def _read_outputs(notebook: Path, number: int) -> list[dict[str, Any]]:
    """What a code cell has saved."""
    cells = list(filter(headless_run.has_code, headless_run.read_notebook(notebook).cells))
    return [dict(each) for each in cells[number - 1].outputs]


def _find_asked_file(notebook: Path, saved: Sequence[CodeCell], side: Side) -> Path:
    """The file that the cells ask for: the side's own, where a line names it, else the main one."""
    named = {name for cell in saved for name in _NAMED.findall(cell.source)}
    stem = paths.stem(side.cassette.root)
    return paths.folder(notebook) / f"{stem if stem in named else paths.MAIN}{paths.SUFFIX}"
