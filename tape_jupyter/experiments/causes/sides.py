"""The two recordings that are compared: a take, a cassette or a run, and what a replay of it uses."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.cassette.cell_sources import Sources, digests, notebook_of
from tape_jupyter.cassette.runs import RecordedRun, current_runs, run_of
from tape_jupyter.cassette.takes import files as takes_files
from tape_jupyter.core.saved_cells import load_saved_cells, read_saved_cells
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.isolation.namespaces import git_command

_GIT = 10.0
"""Seconds that git gets to show an older notebook."""


@dataclass(frozen=True, slots=True)
class Side:
    """What it was called, its file, and the runs that a replay of it uses. `renamed`: calls, by
    their names, that are read otherwise than they are recorded.
    """

    name: str
    cassette: Cassette
    runs: Sequence[RecordedRun]
    renamed: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def calls(self) -> list[Entry]:
        used = {run.id for run in self.runs}
        calls = [entry for entry in self.cassette.calls if entry.run in used]
        return [self.renamed.get(entry.name, entry) for entry in calls]

    @property
    def recorded(self) -> list[RecordedRun]:
        """Of each cell its recording, without what adds to it."""
        return [run for run in self.runs if not run.parent]

    def record(self, run: str) -> Mapping[str, Any]:
        return self.cassette.by_run.get(run, {})

    def parent(self, run: str) -> str:
        """The recording that a run adds to; the run itself where it adds to none."""
        known = {each.id: each for each in self.runs}
        while run in known and known[run].parent in known:
            run = known[run].parent
        return run


def side(roots: Sequence[Path], name: str) -> Side:
    """The recording of that name. Raises TapeUsageError naming those that are there."""
    file = Path(name)
    if file.suffix == ".yaml" and file.is_file():
        return _build_side(name, Cassette.open(file))
    for root in roots:
        if paths.stem(root) == name:
            return _build_side(name, Cassette.open(root))
        if name in takes_files.take_names(root):
            return _build_side(name, Cassette.open(root).take(name))
        cassette = Cassette.open(root)
        if name in cassette.by_run:
            return _build_side_as_of(name, cassette)
    have = [
        *map(paths.stem, roots),
        *(each for root in roots for each in takes_files.take_names(root)),
    ]
    raise TapeUsageError(
        f"there is no take, cassette or run {name!r}; there are: {', '.join(have)}"
    )


def _build_side(name: str, cassette: Cassette) -> Side:
    return Side(name, cassette, current_runs(map(run_of, cassette.runs)))


def _build_side_as_of(run_id: str, cassette: Cassette) -> Side:
    """The recordings as they were of the kernel session in which that run was made: of each cell
    the one of that session, else the newest before it.
    """
    runs = [run_of(record) for record in cassette.runs]
    session = run_of(cassette.by_run[run_id]).cell.session
    last = max(number for number, run in enumerate(runs) if run.cell.session == session)
    return Side(run_id, cassette, current_runs(runs[: last + 1]))


@dataclass(slots=True)
class SideSources:
    """The code of a side's cells: from the notebook, the one beside its cassette, or its commit."""

    notebook: Path
    side: Side

    def find_source(self, run: RecordedRun) -> str | None:
        """None where nothing holds it as it was."""
        record = self.side.record(run.id)
        for path in dict.fromkeys((self.notebook, notebook_of(self.side.cassette.path))):
            if (source := Sources(path).find_source(record)) is not None:
                return source
        return self._find_in_git(record)

    def cells(self) -> list[tuple[str, str]]:
        """Id and source of each code cell of the side's own notebook, where it has another than ours."""
        path = notebook_of(self.side.cassette.path)
        if path.resolve() == self.notebook.resolve() or not path.is_file():
            return []
        return [(cell.id, cell.source) for cell in read_saved_cells(path) if cell.source.strip()]

    def _find_in_git(self, record: Mapping[str, Any]) -> str | None:
        git = record.get("kit", {}).get("git", {})
        commit = str(git.get("commit", "") if isinstance(git, Mapping) else "")
        if not commit.isalnum():
            return None
        with suppress(OSError, ValueError, LookupError, subprocess.SubprocessError):
            done = subprocess.run(  # noqa: S603 - a digest that was recorded, and the notebook's name
                git_command(
                    self.notebook.parent, "cat-file", "blob", f"{commit}:./{self.notebook.name}"
                ),
                capture_output=True, check=True, timeout=_GIT,
            )  # fmt: skip
            for cell in load_saved_cells(done.stdout):
                if str(record.get("source")) in digests(cell.source):
                    return cell.source
        return None
