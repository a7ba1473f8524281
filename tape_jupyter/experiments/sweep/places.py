"""What a sweep is over: notebooks with recordings, and bundles, here or at a URL."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tape_jupyter.bundle.archive import locations
from tape_jupyter.bundle.archive.manifest import NAME
from tape_jupyter.bundle.report import JUNIT, MADE
from tape_jupyter.cassette import paths
from tape_jupyter.core.notebook_text import describe_absence
from tape_jupyter.errors import TapeUsageError

_REPORTS: Mapping[str, Sequence[bytes]] = {
    ".html": [MADE.encode()], ".xml": [JUNIT.encode()], ".jsonl": [b'{"key": "'],
}  # fmt: skip
"""How the reports of a sweep begin."""
_MOST = 10_000
"""Files of a notebook's folder that its digest is of, at most."""


@dataclass(frozen=True, slots=True)
class TriedPlace:
    """A notebook or a bundle; `digest` changes with whatever a run of it may read there."""

    place: str
    kind: Literal["notebook", "bundle"]
    digest: str


def found_places(wheres: Sequence[str], excluded: Sequence[str | Path] = ()) -> list[TriedPlace]:
    """All of them, each once, in their order. What a sweep itself writes (`excluded`) is no part of
    any. Raises TapeUsageError where there is none.
    """
    by_place: dict[str, TriedPlace] = {}
    excluded_paths = frozenset(
        Path(each).resolve() for each in excluded if not locations.is_url(each)
    )
    folders = _Folders(excluded_paths)
    for where in wheres:
        listed = list(
            _find_at_url(where) if locations.is_url(where) else _find_in_path(Path(where), folders)
        )
        for place in listed:
            by_place.setdefault(place.place, place)
        if not listed:
            raise TapeUsageError(
                f"{where}: there is no notebook with a recording in it, and no bundle (*.tape.zip)"
            )
    return list(by_place.values())


def _find_in_path(path: Path, folders: _Folders) -> Iterator[TriedPlace]:
    if not path.exists():
        raise TapeUsageError(f"{path}: {describe_absence(path, 'notebook, bundle or folder')}")
    if path.suffix == ".ipynb":
        if not _is_taped(path):
            raise TapeUsageError(f"{path}: it has no recording; record it with: tape record {path}")
        yield TriedPlace(str(path), "notebook", folders.digest(path))
    elif path.is_file() or (path / NAME).is_file():
        yield _build_bundle_place(path)
    else:
        for each in sorted(path.rglob("*")):
            hidden = any(part.startswith(".") for part in each.relative_to(path).parts)
            if each.name.endswith(locations.SUFFIX) and each.is_file():
                yield _build_bundle_place(each)
            elif each.suffix == ".ipynb" and not hidden and _is_taped(each):
                yield TriedPlace(str(each), "notebook", folders.digest(each))


def _is_taped(notebook: Path) -> bool:
    return any(paths.folder(notebook).glob("*.tape.yaml"))


def _build_bundle_place(path: Path) -> TriedPlace:
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as data:
                digest.update(hashlib.file_digest(data, "sha256").digest())
    return TriedPlace(str(path), "bundle", digest.hexdigest())


class _Folders:
    """Digests of what a notebook may read beside it: of other files by size and time, of its own
    and its recordings to the byte.
    """

    def __init__(self, excluded: frozenset[Path]) -> None:
        self._excluded = excluded
        self._folder_digests: dict[Path, bytes] = {}

    def digest(self, notebook: Path) -> str:
        folder = notebook.resolve().parent
        if folder not in self._folder_digests:
            self._folder_digests[folder] = self._digest_folder(folder)
        digest = hashlib.sha256(self._folder_digests[folder] + notebook.read_bytes())
        for file in sorted(paths.folder(notebook).rglob("*")):
            if file.is_file() and file.suffix != ".lock":
                digest.update(file.name.encode() + file.read_bytes())
        return digest.hexdigest()

    def _digest_folder(self, folder: Path) -> bytes:
        digest = hashlib.sha256()
        count = 0
        for top, inside, names in os.walk(folder):
            directory = Path(top)
            inside[:] = sorted(name for name in inside if self._is_counted(directory / name))
            for name in sorted(names):
                if (
                    count < _MOST
                    and name.partition(".")[2] != "ipynb"
                    and self._is_counted(directory / name)
                ):
                    status = (directory / name).lstat()
                    digest.update(
                        f"{directory / name} {status.st_size} {status.st_mtime_ns}\n".encode()
                    )
                    count += 1
        return digest.digest()

    def _is_counted(self, path: Path) -> bool:
        other = path.name.startswith(".") or path.name.endswith((".tapes", locations.SUFFIX))
        if other or path.name == "__pycache__" or path in self._excluded:
            return False
        return path.suffix not in _REPORTS or not _is_report(path)


def _is_report(path: Path) -> bool:
    """Whether a sweep wrote it: no run reads that."""
    try:
        with path.open("rb") as file:
            head = file.read(2_000)
    except OSError:
        return False
    return any(mark in head for mark in _REPORTS[path.suffix])


def _find_at_url(url: str) -> Iterator[TriedPlace]:
    """A bundle at a URL, or all below one that ends in `/`; known by what its store says of it."""
    files, path = store_of(url)
    try:
        names = [path] if path.endswith(locations.SUFFIX) else sorted(files.find(path))
        for name in names:
            if name.endswith(locations.SUFFIX):
                checksum = files.checksum(name)
                digest = hashlib.sha256(f"{name} {checksum}".encode()).hexdigest()
                yield TriedPlace(str(files.unstrip_protocol(name)), "bundle", digest)
    except Exception as error:  # stores have each their own
        raise TapeUsageError(
            f"{locations.shown_place(url)}: it cannot be reached: {str(error).partition(chr(10))[0]}"
        ) from error


def store_of(url: str) -> tuple[Any, str]:
    """The file system of a URL or path, and the path in it. Raises TapeUsageError."""
    try:
        resolved: tuple[Any, str] = importlib.import_module("fsspec.core").url_to_fs(url)
    except ImportError:
        raise TapeUsageError(
            f"{locations.shown_place(url)}: URLs need another package: pip install 'tape-jupyter[remote]'"
        ) from None
    except ValueError as error:
        raise TapeUsageError(f"{locations.shown_place(url)}: {error}") from error
    return resolved
