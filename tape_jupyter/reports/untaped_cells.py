"""Cells of a notebook that are not taped and keep a reading of the clock, or something drawn: no
replay gives it back. Told from their text, where that is certain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import digests
from tape_jupyter.cassette.runs import run_of
from tape_jupyter.core.plain_text import join_some
from tape_jupyter.dataflow.static.kept_readings import KeptReadings, What
from tape_jupyter.errors import TapeError

_DOES: dict[What, str] = {"clock": "reads the clock", "chance": "draws at random"}
_NAMED = 5


def describe_kept_readings(notebook: Path, cassettes: Iterable[Cassette]) -> list[str]:
    """A line for each such cell: "[2] is not taped and reads the clock: `started`". Cells are counted
    as `tape replay` counts them.
    """
    runs = [run_of(run).cell for cassette in cassettes for run in cassette.runs]
    if not runs:
        return []
    ids = {run.cell_id for run in runs} - {"", None}
    sources = {run.source for run in runs}
    readings, lines = KeptReadings(), list[str]()
    for number, (cell_id, source) in enumerate(_read_code_cells(notebook), 1):
        kept = readings.of_cell(source)
        is_taped = cell_id in ids or not sources.isdisjoint(digests(source))
        if is_taped or source.lstrip().startswith("%%tape"):
            continue
        for what, does in _DOES.items():
            names = [f"`{name}`" for name in kept if kept[name] == what]
            if names:
                lines.append(f"[{number}] is not taped and {does}: {join_some(names, _NAMED)}")
    return lines


def describe_untaped_cells(notebook: Path) -> list[str]:
    """The same, of a notebook with its cassettes; nothing where they cannot be read."""
    cassettes: list[Cassette] = []
    for path in paths.cassettes_beside(paths.cassette_path(notebook)):
        with suppress(TapeError, OSError):
            cassettes.append(Cassette.open(path, check="marks"))
    return describe_kept_readings(notebook, cassettes)


def _read_code_cells(notebook: Path) -> Iterator[tuple[str, str]]:
    """The id and the source of each code cell that is not empty."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        cells: list[Mapping[str, Any]] = json.loads(notebook.read_bytes())["cells"]
        for cell in cells:
            text = cell.get("source", "")
            source = "".join(text) if isinstance(text, list) else str(text)
            if cell.get("cell_type") == "code" and source.strip():
                yield str(cell.get("id") or ""), source
