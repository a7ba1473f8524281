"""Taped notebooks and bundles as pytest tests, one a code cell, replayed in a fresh kernel.

The kernel starts with the first cell that is asked for and ends after the last; a cell that is left
out (`-k`) runs where a later one is asked for. What is not as saved is shown as a diff, never with
a traceback of ours.

A bundle's code cells as pytest tests: replayed away from the network, each compared with the
manifest.

Collecting opens and checks the bundle; nothing of it runs. Running it runs a stranger's code: only
a bundle that was let run here before (`tape replay` asks once a digest), was exported here, or is
under `--tape-trust`. To name it on the command line is not enough: a file that came with a
repository is as much a stranger's as any.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tape_jupyter.bundle import opened, trust
from tape_jupyter.bundle.replay import BundleListener, ReplayRequest, replay_bundle
from tape_jupyter.cassette import paths
from tape_jupyter.core.plain_text import safe_text
from tape_jupyter.errors import BundleError, TapeError
from tape_jupyter.headless import run as headless_run
from tape_jupyter.headless.run import CellRun

BUNDLE, NOTEBOOK = ".tape.zip", ".ipynb"
_PLACES = pytest.StashKey[frozenset[Path]]()
_NOT_INTO = (".", "__pycache__", "node_modules")


# ---------------------------------------------------------------- what is collected


def add_places(config: pytest.Config) -> None:
    """What `--tape` names is collected, and nothing else unless other tests were named too. Raises
    UsageError.
    """
    collected: dict[Path, None] = {}
    for place_text in config.getoption("tape_places"):
        place = (config.invocation_params.dir / place_text).resolve()
        below = list(_find_places(place)) if place.is_dir() else [_require_place(place)]
        if not below:
            raise pytest.UsageError(
                f"--tape {place_text}: no bundle (*{BUNDLE}) and no notebook with a .tapes folder in it"
            )
        collected |= dict.fromkeys(below)
    config.stash[_PLACES] = frozenset(collected)
    named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    known = {_resolve_argument(config, arg) for arg in named}
    config.args[:] = [*named, *(str(path) for path in collected if path not in known)]


def _resolve_argument(config: pytest.Config, arg: str) -> Path:
    return (config.invocation_params.dir / arg.partition("::")[0]).resolve()


def _find_places(folder: Path) -> Iterator[Path]:
    """Bundles and taped notebooks, sorted; not those of hidden folders, environments and
    recordings.
    """
    for where, folders, files in os.walk(folder):
        here = Path(where)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(_NOT_INTO)
            and not name.endswith(".tapes")
            and not (here / name / "pyvenv.cfg").exists()
        )
        yield from (
            here / name for name in sorted(files) if name.endswith(BUNDLE) or _is_taped(here / name)
        )


def _is_taped(path: Path) -> bool:
    return path.suffix == NOTEBOOK and paths.folder(path).is_dir()


def _require_place(path: Path) -> Path:
    if not path.exists():
        raise pytest.UsageError(f"--tape {path}: there is no such file or folder")
    if not path.name.endswith(BUNDLE) and not _is_taped(path):
        raise pytest.UsageError(
            f"--tape {path}: neither a bundle (*{BUNDLE}) nor a notebook that was recorded (it has no "
            f"{paths.folder(path).name} beside it; record it with: tape record {path.name})"
        )
    return path


def is_named(config: pytest.Config, path: Path) -> bool:
    """Whether `--tape` speaks of the file."""
    return path.resolve() in config.stash.get(_PLACES, frozenset())


# ---------------------------------------------------------------- cells as tests


class CellsFile(pytest.File):
    """A file whose code cells are tests. Told by its kind: which cells there are, and how they run.

    `known` are the numbers of cells that differ by the file's own word.
    """

    known: frozenset[int] = frozenset()

    def cells(self) -> Iterable[tuple[int, str]]:
        """Number (from 1) and title of each."""
        raise NotImplementedError

    def runs(self) -> Iterator[CellRun]:
        """Each cell in turn, as it is done. Raises TapeError."""
        raise NotImplementedError

    def setup(self) -> None:
        self._going: Iterator[CellRun] = self.runs()
        self._done: dict[int, CellRun] = {}
        self._broken: TapeError | None = None

    def teardown(self) -> None:
        close = getattr(self._going, "close", None)
        if close is not None:
            close()  # ends the kernel

    def collect(self) -> Iterator[pytest.Item]:
        try:
            listed = list(self.cells())
        except TapeError as error:
            raise self.CollectError(str(error)) from None
        for number, title in listed:
            item = CellItem.from_parent(
                self, name=f"cell {number}: {title.lstrip('# ')}", number=number
            )
            if self.config.pluginmanager.hasplugin("xdist"):
                item.add_marker(pytest.mark.xdist_group(self.nodeid))
            yield item

    def result(self, number: int) -> CellRun:
        """What became of a cell; those before it run first.

        Raises TapeError where the notebook does not run at all, once: the other cells are skipped
        then.
        """
        if self._broken is not None:
            pytest.skip(f"not run: {str(self._broken).splitlines()[0][:200]}")
        try:
            while number not in self._done:
                run = next(self._going)
                self._done[run.number] = run
        except TapeError as error:
            self._broken = error
            raise
        return self._done[number]

    def culprit(self, number: int) -> CellRun | None:
        """The last cell before that one which did run."""
        executed = [run for run in self._done.values() if run.number < number and run.is_executed]
        return executed[-1] if executed else None


class NotRight(Exception):
    """A cell is not as it was saved: the message is the report."""


class CellItem(pytest.Item):
    """One code cell."""

    parent: CellsFile

    def __init__(self, *, number: int, **more: Any) -> None:
        super().__init__(**more)
        self.number = number

    def runtest(self) -> None:
        run = self.parent.result(self.number)
        if run.expected:
            pytest.skip(f"not run: {self._describe_culprit()}, as it did when it was saved")
        if run.status == "not run":
            self._skip_unrun()
        if run.good:
            return
        if self.number in self.parent.known:
            pytest.xfail(f"{run.status}, as the bundle says itself")
        raise NotRight("\n".join([f"{run.status}: {_AS[run.status]}", *run.messages]))

    def _skip_unrun(self) -> None:
        """Behind a cell that failed it is skipped; where that one raised as it was saved to, this
        one differs.
        """
        culprit = self.parent.culprit(self.number)
        if culprit is not None and culprit.good:
            raise NotRight(
                f"not run: {self._describe_culprit()}, as it did when it was saved; but this cell has outputs"
            )
        pytest.skip(f"not run: {self._describe_culprit()}")

    def _describe_culprit(self) -> str:
        culprit = self.parent.culprit(self.number)
        if culprit is not None:
            return f"cell {culprit.number} raised"
        return "an earlier cell raised"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, NotRight | TapeError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name} {self.name}"


_AS = {
    "differs": "its outputs are not those that are saved (- saved, + replayed)",
    "missed": "it asked for what is not on the tape",
    "failed": "it raised, and did not when it was saved",
    "not run": "an earlier cell raised",
}


# ---------------------------------------------------------------- notebooks


class NotebookFile(CellsFile):
    """A notebook with its .tapes folder, replayed in this environment."""

    def cells(self) -> Iterable[tuple[int, str]]:
        saved = headless_run.read_notebook(self.path)
        code = [each for each in saved.cells if headless_run.has_code(each)]
        return [
            (number, headless_run.first_line(each.source)) for number, each in enumerate(code, 1)
        ]

    def runs(self) -> Iterator[CellRun]:
        return headless_run.replaying(self.path, self.config.getoption("tape_timeout"))


__all__ = ["BUNDLE", "CellItem", "CellsFile", "NotebookFile", "add_places", "is_named"]


class BundleCollector(CellsFile):
    """A `*.tape.zip`."""

    def cells(self) -> Iterable[tuple[int, str]]:
        with opened(self.path) as bundle:
            self.digest = bundle.digest
            self.known = frozenset(each.cell for each in bundle.manifest.differences)
            return [(each.number, safe_text(each.title)) for each in bundle.manifest.cells]

    def runs(self) -> Iterator[CellRun]:
        config = self.config
        if not config.getoption("tape_trust") and not trust.trusted(self.digest):
            raise BundleError(
                f"it was never allowed to run here (sha256 {self.digest[:16]}) and is others' code. Look first: tape "
                f"verify {self.path.name}, tape open {self.path.name} (neither runs its code). Then: tape replay "
                f"{self.path.name}, which asks once; or pytest --tape-trust. Nothing of it was run",
                place=str(self.path),
            )
        env = "lock" if config.getoption("tape_env") == "lock" else "current"
        # one of two
        options = ReplayRequest(env=env, yes=True, timeout=config.getoption("tape_timeout"))  # type: ignore[arg-type]
        yield from (
            cell.build_cell_run()
            for cell in replay_bundle(self.path, options, BundleListener()).cells
        )
