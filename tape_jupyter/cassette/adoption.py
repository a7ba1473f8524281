"""A notebook that was renamed or copied, and the cassettes that were recorded of its cells under
another name. Nothing is moved or copied but by `adopt_cassettes`, which a person asked for.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import digests
from tape_jupyter.cassette.runs import current_runs, run_of
from tape_jupyter.core.saved_cells import read_saved_cells
from tape_jupyter.errors import CassetteError, TapeUsageError

Hashes = Callable[[Path], Collection[str]]
"""Reads the source hashes of the cells that a cassette holds."""


def source_hashes(notebook: Path) -> set[str]:
    """Source hashes of the code cells of a saved notebook, without their `%%tape` line; none where
    it is unreadable.
    """
    cells = read_saved_cells(notebook)
    return {next(digests(each.source)) for each in cells if each.source.strip()}


def recorded_sources(cassette: Path) -> set[str]:
    """Source hashes of the cells that a cassette holds calls of; of a recording without calls, of
    all its cells.

    Cells that only set up draw from the clock, and are recorded too: notebooks that begin alike are
    not copies.
    """
    try:
        tape = Cassette.open(cassette, check="marks")
        runs, calls = current_runs(map(run_of, tape.runs)), {call.run for call in tape.calls}
    except (CassetteError, OSError):
        return set()
    sources = {run.cell.source for run in runs if run.id in calls} or {
        run.cell.source for run in runs
    }
    return sources - {""}


def adoptable(
    notebook: Path, cell_hashes: Collection[str], hashes: Hashes = recorded_sources
) -> Path | None:
    """The one neighbouring folder of cassettes that was recorded from these cells, if the notebook
    has none itself.

    `cell_hashes` are source hashes of the notebook's cells. A renamed or copied notebook is recognised
    by it: none is started empty in silence.
    """
    if paths.folder(notebook).exists():
        return None
    neighbours = [
        each
        for each in sorted(notebook.parent.glob("*.tapes"))
        if _is_recorded_from(cell_hashes, each, hashes)
    ]
    return neighbours[0] if len(neighbours) == 1 else None


def _is_recorded_from(cells: Collection[str], neighbour: Path, hashes: Hashes) -> bool:
    """Whether at least half of what the neighbour recorded are these cells and, where its notebook
    is still there, there are fewer cells that it does not know: one that merely shares its first
    cells has a recording of its own.
    """
    recorded_hashes = {
        source for path in sorted(neighbour.glob(f"*{paths.SUFFIX}")) for source in hashes(path)
    }
    shared, notebook = recorded_hashes & set(cells), neighbour.with_suffix(".ipynb")
    if not shared or len(shared) < len(recorded_hashes - shared):
        return False
    return not notebook.exists() or len(shared) > len(
        set(cells) - recorded_hashes - source_hashes(notebook)
    )


def offer(notebook: Path, neighbour: Path) -> str:
    """What to tell a person whose notebook was renamed or copied."""
    is_copy = neighbour.with_suffix(".ipynb").exists()
    verb = "copied" if is_copy else "renamed"
    folder = paths.folder(notebook)
    names = shlex.join([neighbour.name, folder.name])
    return (
        f"{notebook.name} has no cassettes of its own, but {neighbour.name} was recorded from these cells "
        f"(was the notebook {verb}?). To go on with them: %tape set adopt={neighbour.name} "
        f"(in a terminal, in its folder: {'cp -r' if is_copy else 'mv'} {names}). "
        f"To start anew: make an empty folder {folder.name}."
    )


def adopt_cassettes(notebook: Path, name: str) -> Path:
    """Give the notebook a neighbour's cassettes: moved if the neighbour's notebook is gone, copied
    if it is there.
    """
    neighbour, folder = notebook.parent / name, paths.folder(notebook)
    if Path(name).name != name or not name.endswith(".tapes") or not neighbour.is_dir():
        raise TapeUsageError(f"{name!r} is no .tapes folder beside {notebook.name}")
    if folder.exists():
        raise TapeUsageError(
            f"{folder.name} exists already: {notebook.name} has cassettes of its own"
        )
    if neighbour.with_suffix(".ipynb").exists():
        shutil.copytree(neighbour, folder)
    else:
        neighbour.rename(folder)
    return folder
