"""Cells of a notebook that are not taped and keep a reading of the clock, or something drawn: no
replay gives it back. Told from their text, where that is certain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import digests
from tape_jupyter.cassette.runs import run_of
from tape_jupyter.core.notebook_text import CodeCell, code_cells
from tape_jupyter.core.plain_text import join_some
from tape_jupyter.dataflow.static.kept_readings import KeptReadings, What
from tape_jupyter.errors import TapeError

_DOES: dict[What, str] = {"clock": "reads the clock", "chance": "draws at random"}
_NAMED = 5


def describe_untaped_cells(notebook: Path) -> list[str]:
    """A line for each such cell: "[2] is not taped and reads the clock: `started`". Cells are counted
    as `tape replay` counts them; nothing where notebook or cassettes cannot be read.
    """
    runs = [run_of(run).cell for cassette in _open_cassettes(notebook) for run in cassette.runs]
    if not runs:
        return []
    ids = {run.cell_id for run in runs} - {"", None}
    sources = {run.source for run in runs}
    readings, lines = KeptReadings(), list[str]()
    for number, cell in enumerate(_read_code_cells(notebook), 1):
        kept = readings.of_cell(cell.source)
        is_taped = cell.id in ids or not sources.isdisjoint(digests(cell.source))
        if is_taped or cell.source.lstrip().startswith("%%tape"):
            continue
        for what, does in _DOES.items():
            names = [f"`{name}`" for name in kept if kept[name] == what]
            if names:
                lines.append(f"[{number}] is not taped and {does}: {join_some(names, _NAMED)}")
    return lines


def _open_cassettes(notebook: Path) -> Iterator[Cassette]:
    for path in paths.cassettes_beside(paths.cassette_path(notebook)):
        with suppress(TapeError, OSError):
            yield Cassette.open(path, check="marks")


def _read_code_cells(notebook: Path) -> list[CodeCell]:
    """Those that are not empty."""
    with suppress(OSError, ValueError):
        return [each for each in code_cells(notebook.read_text("utf-8")) if each.source.strip()]
    return []
