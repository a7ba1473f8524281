"""Which files on the disk are a notebook's session: the notebook as it is saved, its cassettes and
takes, and the long texts that these refer to. What its cells read besides is found by running them
(bundle/proof/collection.py).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tape_jupyter.cassette import adoption, paths
from tape_jupyter.cassette.external_texts import MARK
from tape_jupyter.cassette.takes import files as takes_files
from tape_jupyter.comparison.outputs import places
from tape_jupyter.errors import BundleError, TapeUsageError
from tape_jupyter.headless import run

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ASSET = re.compile(rb'"?' + re.escape(MARK.encode()) + rb'"?: *"?([0-9a-f]{64})\b')


@dataclass(frozen=True, slots=True)
class Session:
    """A notebook as it lies on the disk. `files` are paths below its folder (`/` between) with
    their role in a bundle; `cassettes` the recordings themselves, main first. `home`: of a copy,
    the folder that its outputs were saved in. `packages`: folders that packages are imported from
    where they lie (editable ones).
    """

    path: Path
    notebook: NotebookNode
    files: Mapping[str, str]
    cassettes: tuple[Path, ...]
    home: Path | None = None
    packages: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def where(self) -> dict[str, str]:
        """What stands for folders in its saved outputs: they were made here, by this person."""
        return places(self.home or self.folder, Path.home(), self.packages)


def session_of(notebook: Path) -> Session:
    """The session of a notebook. Raises TapeUsageError where there is nothing to make a bundle of."""
    node = run.read_notebook(notebook)
    path = notebook.resolve()
    cassettes = _find_cassettes(path)
    _require_outputs(notebook, node)
    roles = {path.name: "notebook"}
    for cassette in cassettes:
        roles |= {
            _to_relative(path, each): "take" for each in takes_files.list_take_files(cassette)
        }
        roles |= {_to_relative(path, cassette): "cassette"}
        if takes_files.default_take(cassette):
            roles |= {_to_relative(path, takes_files.choice(cassette)): "take"}
    tapes = paths.folder(path)
    for name in sorted(
        {
            name
            for each in roles
            if each.endswith(paths.SUFFIX)
            for name in _find_assets(path.parent / each)
        }
    ):
        asset = tapes / "assets" / name
        if not asset.is_file() or asset.is_symlink():
            raise BundleError(
                f"{_to_relative(path, asset)} is needed by the recording and missing; restore it, or record again"
            )
        roles[_to_relative(path, asset)] = "asset"
    return Session(path, node, dict(sorted(roles.items())), tuple(cassettes))


def _to_relative(notebook: Path, file: Path) -> str:
    return file.relative_to(notebook.parent).as_posix()


def _find_assets(path: Path) -> set[str]:
    """Names of the long texts that a cassette refers to; of some more where a recorded text looks
    like a reference.
    """
    return {asset.decode() for asset in _ASSET.findall(path.read_bytes())}


def _find_cassettes(path: Path) -> list[Path]:
    folder = paths.folder(path)
    cassettes = paths.cassettes_in(folder)
    if not cassettes:
        raise TapeUsageError(_explain_missing(path))
    for each in cassettes:
        if each.is_symlink() or not each.is_file():
            raise TapeUsageError(f"{each}: a cassette is a file of its own, not a link")
    return cassettes


def _explain_missing(path: Path) -> str:
    """What to tell of a notebook without a recording: it may have been renamed."""
    if neighbour := adoption.adoptable(path, adoption.source_hashes(path)):
        return f"nothing to export yet: {adoption.offer(path, neighbour)}"
    return (
        f"{path.name} has no recording ({paths.folder(path).name}/): record it first, with %%tape record in its cells, "
        f"or: tape record {path.name}"
    )


def _require_outputs(notebook: Path, node: NotebookNode) -> None:
    cells = [cell for cell in node.cells if run.has_code(cell)]
    if not any(cell.outputs or cell.execution_count is not None for cell in cells):
        raise TapeUsageError(
            f"{notebook.name} has no outputs to compare with: no cell of the saved notebook was run. Run it and save "
            f"it, or: tape record {notebook.name}"
        )


# ---------------------------------------------------------------- --include and --exclude


def included(folder: Path, globs: Sequence[str]) -> list[str]:
    """Files of the notebook's folder that `--include` names. Raises TapeUsageError for a glob that
    names none.
    """
    matches: list[str] = []
    for glob in globs:
        _require_inside(glob, "--include")
        files = sorted(_find_files(folder, glob))
        if not files:
            raise TapeUsageError(f"--include {glob}: there is no such file in {folder}")
        matches += files
    return sorted(set(matches))


def _find_files(folder: Path, glob: str) -> Iterator[str]:
    for path in folder.glob(glob):
        for each in path.rglob("*") if path.is_dir() else [path]:
            if each.is_file():
                yield each.relative_to(folder).as_posix()


def excluded(names: Collection[str], globs: Sequence[str]) -> set[str]:
    """Of these paths those that `--exclude` names: by the whole path, by a folder of it, or by the
    file's name.
    """
    for glob in globs:
        _require_inside(glob, "--exclude")
    return {name for name in names if any(_is_named(name, glob.rstrip("/")) for glob in globs)}


def _is_named(name: str, glob: str) -> bool:
    path = PurePosixPath(name)
    forms = (name, path.name, *(str(parent) for parent in path.parents))
    return any(fnmatch.fnmatchcase(form, glob) for form in forms)


def _require_inside(glob: str, option: str) -> None:
    parts = PurePosixPath(glob.replace("\\", "/"))
    if not glob.strip() or parts.is_absolute() or ".." in parts.parts or Path(glob).is_absolute():
        raise TapeUsageError(
            f"{option} {glob!r}: a glob names files in the notebook's folder (data/*.csv)"
        )
