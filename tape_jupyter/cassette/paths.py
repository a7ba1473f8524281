"""Which notebook runs here, and where its cassettes lie. No IPython import; reads, never writes.

A kernel is not told its notebook's name, so a ladder of hints is climbed (each front end gives
another one); the last rung reads the notebooks of the working directory and looks for the very
source that is running.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import executors
from tape_jupyter.core.parent_process import ParentCommand, parent_command
from tape_jupyter.core.saved_cells import list_saved_cells
from tape_jupyter.errors import CassetteError, NotebookUnknown, TapeUsageError

SUFFIX = ".tape.yaml"
NAME = re.compile(r"[a-z0-9-]{1,64}")
MAIN = "main"
HOW_TO_NAME = (
    "name the cassette (%%tape record NAME), or set TAPE_NOTEBOOK to the notebook's path in the "
    "environment of its kernel"
)


def check_cassette_name(name: str) -> str:
    """The name itself when it can be a cassette's; TapeUsageError otherwise. Never a path, never
    expanded.
    """
    if NAME.fullmatch(name):
        return name
    raise TapeUsageError(f"{name[:80]!r} cannot name a cassette: use 1 to 64 of a-z, 0-9 and '-'")


def stem(cassette: Path) -> str:
    """The name of a cassette, of its file."""
    return cassette.name.removesuffix(SUFFIX)


def folder(notebook: Path) -> Path:
    """`churn.ipynb` -> `churn.tapes`, beside it; beside the notebook itself where this is a link to
    one: a kernel is told of that.
    """
    return (notebook.resolve() if notebook.is_symlink() else notebook).with_suffix(".tapes")


def cassette_path(notebook: Path | None, name: str = MAIN, start: Path | None = None) -> Path:
    """Where the cassette `name` lies: in the notebook's folder, or in a folder of its own when
    there is no notebook.

    That one is in `start` (default: the working directory), where the kernel started: a program may
    change directory.
    """
    check_cassette_name(name)
    if notebook is None:
        return (start or Path.cwd()) / f"{name}.tapes" / f"{MAIN}{SUFFIX}"
    return folder(notebook) / f"{name}{SUFFIX}"


def cassette_names(notebook: Path | None, start: Path | None = None) -> list[str]:
    """Names of the cassettes that are there, sorted. `start` as in `cassette_path`."""
    if notebook is None:
        return sorted(
            path.parent.stem for path in (start or Path.cwd()).glob(f"*.tapes/{MAIN}{SUFFIX}")
        )
    return sorted(map(stem, cassettes_in(folder(notebook))))


def cassettes_in(tapes: Path) -> list[Path]:
    """The cassettes in a .tapes folder, main first; none where there is no such folder.

    Raises CassetteError where it cannot be looked into: what is there is not known then.
    """
    try:
        cassettes = [path for path in tapes.iterdir() if path.name.endswith(SUFFIX)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise CassetteError(reason, path=str(tapes)) from error
    return sorted(cassettes, key=main_first)


def cassettes_beside(cassette: Path) -> list[Path]:
    """The cassette, whether it is there or not, and the others of its notebook."""
    others = cassettes_in(cassette.parent) if cassette.parent.suffix == ".tapes" else ()
    return [cassette, *(each for each in others if each != cassette)]


def main_first(cassette: Path) -> tuple[bool, str]:
    """The order in which the cassettes of a notebook are told."""
    return stem(cassette) != MAIN, cassette.name


@dataclass
class Ladder:
    """The ways to find the notebook, best first; the answer of the last (slow) rung is kept.

    `start` is the directory the kernel started in: user code may change directory later.
    """

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    start: Path = field(default_factory=Path.cwd)
    hint: Path | None = None
    found: Path | None = None
    command: Callable[[], ParentCommand | None] = parent_command
    note: str = ""
    """What to tell a person of how the notebook was found, once."""

    def set_notebook(self, path: str | Path) -> None:
        """The front end's own word (labextension message)."""
        self.hint = self._resolve_hint(str(path))

    def find_notebook(self, source: str, user_ns: Mapping[str, Any]) -> Path:
        """The notebook that `source` (a cell as the front end sent it) runs in. Raises
        NotebookUnknown.
        """
        for hint in (
            self.hint,
            user_ns.get("__vsc_ipynb_file__"),
            self.env.get("JPY_SESSION_NAME"),
        ):
            if known := self._resolve_hint(hint):
                return known
        if named := self.env.get("TAPE_NOTEBOOK"):
            return self._resolve_named(named)
        if self.found is None or not self.found.is_file():
            self.found = self._find_by_source(source)
        return self.found

    def _resolve_hint(self, hint: object) -> Path | None:
        """The file a hint speaks of: a notebook that exists (a hint is stale once the notebook is
        renamed).
        """
        if not isinstance(hint, str | Path) or not str(hint).endswith(".ipynb"):
            return None
        for path in (self.start / hint, self.start / Path(hint).name):
            if path.is_file():
                return path.resolve()
        return None

    def _resolve_named(self, named: str) -> Path:
        path = self.start / named
        if path.suffix == ".ipynb" and path.parent.is_dir():
            return path.resolve()
        raise NotebookUnknown(f"TAPE_NOTEBOOK={named!r} is no .ipynb path in an existing folder")

    def _find_by_source(self, source: str) -> Path:
        if executed := self._find_executed(source):
            return executed
        holders = notebooks_holding(source, self.start)
        if len(holders) == 1:
            return holders[0]
        if not holders:
            raise NotebookUnknown(f"no notebook in {self.start} holds this cell: {HOW_TO_NAME}")
        names = ", ".join(path.name for path in holders)
        owners = [path for path in holders if cassette_names(path)]
        if len(owners) != 1:
            raise NotebookUnknown(f"several notebooks hold this cell ({names}): {HOW_TO_NAME}")
        self.note = (
            f"several notebooks hold this cell ({names}); {owners[0].name} has cassettes, so it is "
            f"taken for the one that runs. If it is another: {HOW_TO_NAME}"
        )
        return owners[0]

    def _find_executed(self, source: str) -> Path | None:
        """The notebook that nbconvert, `jupyter execute` or papermill executes, where it is the parent
        process. Of several that hold the cell the one whose turn it is.
        """
        command = self.command()
        if command is None:
            return None
        for notebooks in executors.list_executed(command, self.start, self.env):
            holders = [path for path in notebooks if _has_cell(_read_notebook(path), source)]
            if holders:
                return self._choose_executed(command, holders)
        return None

    def _choose_executed(self, command: ParentCommand, holders: Sequence[Path]) -> Path | None:
        here = [path for path in holders if path.parent == self.start.resolve()]
        if executors.runs_first_only(command) or len(holders) == 1:
            return holders[0]
        if len(here) == 1:
            return here[0]  # each is executed in its own folder
        turn = executors.take_turn(command, here or holders)
        if turn is not None:
            names = ", ".join(path.name for path in here or holders)
            self.note = (
                f"several of the executed notebooks hold this cell ({names}): in their order, this is "
                f"{turn.name}. If it is another: {HOW_TO_NAME}"
            )
        return turn


def _has_cell(notebook: Mapping[str, Any] | None, source: str) -> bool:
    """Whether a code cell of a notebook is `source` (white space around it aside)."""
    stripped = source.strip()
    return (
        bool(stripped)
        and notebook is not None
        and stripped in {each.source.strip() for each in list_saved_cells(notebook)}
    )


def notebooks_holding(source: str, where: Path) -> list[Path]:
    """The notebooks of a directory in which a code cell is `source` (white space around it aside),
    sorted.

    An output of papermill's is no such notebook: it stands for its source while it is being
    written, and for itself only where nothing else holds the cell.
    """
    candidates = [
        (path.resolve(), _read_papermill_run(path.resolve(), notebook))
        for path, notebook in _find_holding_notebooks(source, where)
    ]
    sources = {path for path, run in candidates if run is None}
    sources |= {run.source for _, run in candidates if run and run.source and not run.ended}
    return (
        sorted(sources)
        or _find_papermill_below(source, where)
        or sorted({path for path, _ in candidates})
    )


def _find_papermill_below(source: str, where: Path) -> list[Path]:
    """The notebooks that papermill runs, started in `where`, with its output in a folder below;
    sorted.
    """
    candidates = [
        (path, notebook)
        for folder in _list_folders(where)
        for path, notebook in _find_holding_notebooks(source, folder)
    ]
    runs = [_read_papermill_run(path.resolve(), notebook) for path, notebook in candidates]
    return sorted({run.source for run in runs if run and run.source and not run.ended})


def _list_folders(where: Path) -> list[Path]:
    return sorted(
        path for path in where.iterdir() if path.is_dir() and not path.name.startswith(".")
    )


def _find_holding_notebooks(source: str, where: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(where.glob("*.ipynb")):
        notebook = _read_notebook(path)
        if notebook is not None and _has_cell(notebook, source):
            yield path, notebook


def _read_notebook(path: Path) -> dict[str, Any] | None:
    """A notebook's JSON; None where there is none (any more): it cannot be the one that runs."""
    try:
        notebook = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return notebook if isinstance(notebook, dict) else None


@dataclass(frozen=True)
class _Run:
    """What papermill says in its output: the notebook it ran (None where that cannot be found), and
    whether it ended.

    Both hold the source; the cassettes belong beside the one that people edit.
    """

    source: Path | None
    ended: bool


def _read_papermill_run(path: Path, notebook: Mapping[str, Any]) -> _Run | None:
    """The run whose output `path` is; None when it is nobody's (a copy of an output, a notebook run
    onto itself).

    Papermill writes its metadata at the start, with `end_time: null`.
    """
    metadata = notebook.get("metadata")
    facts = metadata.get("papermill") if isinstance(metadata, dict) else None
    facts = facts if isinstance(facts, dict) else {}
    input_path, output = facts.get("input_path"), facts.get("output_path")
    if (
        not isinstance(input_path, str)
        or not isinstance(output, str)
        or not input_path
        or not output
    ):
        return None
    start = _find_papermill_start(path, output)
    if start is None or (start / input_path).resolve() == path:
        return None
    source = (start / input_path).resolve()
    return _Run(source if source.is_file() else None, facts.get("end_time") is not None)


def _find_papermill_start(path: Path, output: str) -> Path | None:
    """The folder from which `output` leads to `path`: the one papermill was started in. None when
    none is.
    """
    parts = Path(os.path.normpath(output)).parts
    if not Path(output).is_absolute() and ".." not in parts:
        if path.parts[-len(parts) :] == parts:
            return path.parents[len(parts) - 1]
        return None
    return path.parent if (path.parent / output).resolve() == path else None
