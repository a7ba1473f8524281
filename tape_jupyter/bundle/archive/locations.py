"""Where bundles lie: a zip, an unpacked folder, a folder with one bundle, or a URL (`s3://`,
`gs://`, ...).

A URL is read and written through fsspec and the package of its protocol (`pip install
'tape-jupyter[remote]' s3fs`). What is fetched is copied to this machine first, never more of it
than a bundle may have. What is written replaces nothing but a bundle, and on this machine it has
its name only when it is whole.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tape_jupyter.bundle.archive import names
from tape_jupyter.bundle.archive.containers import MOST_PACKED, begins
from tape_jupyter.bundle.archive.manifest import MOST_BYTES, MOST_FILES, NAME
from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.errors import BundleError, TapeUsageError

SUFFIX = ".tape.zip"
SIGNED = ".sig"
_BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "adl", "oci", "oss", "obs"})
"""Protocols of stores without folders: to make one there would make a bucket that nobody asked for."""
_PIECE = 1024 * 1024
_URL = re.compile(
    r"[a-z][a-z0-9+.-]+:[/:]/?", re.IGNORECASE
)  # `memory://a`, `simplecache::s3://a`; not `C:\a`


def is_url(place: str | Path) -> bool:
    return isinstance(place, str) and bool(_URL.match(place))


def shown_place(place: str | Path) -> str:
    """A place as messages name it: without a password that its URL may hold, and without what
    follows a `?`.
    """
    return re.sub(r"//[^/@]*@", "//", str(place)).partition("?")[0] if is_url(place) else str(place)


@contextlib.contextmanager
def fetched(place: str | Path) -> Iterator[Path]:
    """The zip, or the folder of an unpacked bundle, at a place: on this machine, as long as the
    context lasts.

    Raises BundleError where there is none, more than one, or one too large to be a bundle.
    """
    if not is_url(place):
        yield _find_bundle(Path(place))
        return
    with tempfile.TemporaryDirectory(prefix="tape-fetched-") as folder:
        with _explain_errors(place):
            path = _fetch_bundle(str(place), Path(folder))
        yield path


def bundle_place(place: str | Path, name: str) -> str | Path:
    """Where a bundle goes that is written to a place: in a folder that is there (or a URL that ends
    in `/`), by `name`.

    Raises TapeUsageError for a file that is there and no bundle: nothing that a person made is
    overwritten.
    """
    if is_url(place):
        return f"{place}{name}" if str(place).endswith("/") else str(place)
    path = Path(place)
    path = path / name if path.is_dir() or str(place).endswith(("/", os.sep)) else path
    if path.exists() and not (path.is_file() and is_bundle(path)):
        raise TapeUsageError(
            f"{path} exists and is not a bundle; nothing was written. Give another name"
        )
    return path


@contextlib.contextmanager
def write_to_place(place: str | Path) -> Iterator[BinaryIO]:
    """An empty file for what goes to a place (as `bundle_place` gives it); put there when the context ends
    without error.
    """
    if is_url(place):
        with tempfile.TemporaryFile() as file:
            yield file
            with _explain_errors(place):
                _put_file(str(place), file)
        return
    path = Path(place)
    with contextlib.ExitStack() as opened:
        with _explain_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = opened.enter_context(
                opened.enter_context(replacing(path, lasting=True)).open("w+b")
            )
        yield file
        with _explain_errors(path):
            opened.close()


def place_beside(place: str | Path, ending: str) -> str | Path:
    """The place of what goes with a bundle: its name with an ending."""
    if is_url(place):
        return f"{str(place).rstrip('/')}{ending}"
    return Path(f"{_find_bundle(Path(place))}{ending}")


def small(place: str | Path, most: int = _PIECE) -> bytes | None:
    """The bytes of a small file at a place; None where there is none. Raises BundleError where it
    is larger.
    """
    with _explain_errors(place):
        if is_url(place):
            files, path = _find_file_system(str(place))
            if not files.isfile(path):
                return None
            with files.open(path, "rb") as file:
                data: bytes = file.read(most + 1)
        elif Path(place).is_file():
            with Path(place).open("rb") as file:
                data = file.read(most + 1)
        else:
            return None
    if len(data) > most:
        raise BundleError(f"it has more than {most:,} bytes", place=shown_place(place))
    return data


def _find_bundle(path: Path) -> Path:
    if not path.exists():
        raise BundleError("there is no such file or folder", place=str(path))
    if not path.is_dir() or (path / NAME).exists():
        return path
    return path / _require_one(
        [each.name for each in path.iterdir() if each.name.endswith(SUFFIX)], str(path)
    )


def _require_one(candidates: list[str], place: str) -> str:
    if len(candidates) != 1:
        there = (
            f"it has {len(candidates)} bundles: {', '.join(sorted(candidates)[:5])}. Name one"
            if candidates
            else "there is no bundle in it (*.tape.zip); name a notebook (.ipynb) or a bundle"
        )
        raise BundleError(there, place=place)
    return candidates[0]


def is_bundle(path: Path) -> bool:
    """Whether a file begins as a bundle does; what else is wrong with it shows when it is opened."""
    with _explain_errors(path), path.open("rb") as file:
        return begins(file.read(100), NAME)


@contextlib.contextmanager
def _explain_errors(place: str | Path) -> Iterator[None]:
    """What a file system or a store says, as an error that a person can read."""
    try:
        yield
    except BundleError as error:
        raise error.at(shown_place(place)) from error.__cause__
    except (TapeUsageError, KeyboardInterrupt):
        raise
    except Exception as error:  # stores have each their own
        reason = (
            getattr(error, "strerror", None) or str(error) or type(error).__name__
        ).splitlines()[0][:300]
        raise BundleError(f"it cannot be reached: {reason}", place=shown_place(place)) from error


def _find_file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        url_to_fs = importlib.import_module("fsspec.core").url_to_fs
    except ImportError:
        raise TapeUsageError(
            f"{shown_place(url)}: URLs need another package: pip install 'tape-jupyter[remote]'"
        ) from None
    try:
        files, path = url_to_fs(url)
    except (
        ImportError,
        ValueError,
    ) as error:  # the protocol's own package is missing, or nobody knows it
        raise TapeUsageError(f"{shown_place(url)}: {error}") from error
    return files, path


def _fetch_bundle(url: str, folder: Path) -> Path:
    files, path = _find_file_system(url)
    if files.isdir(path) and not files.exists(f"{path.rstrip('/')}/{NAME}"):
        inside = [each.rpartition("/")[2] for each in files.ls(path, detail=False)]
        path = f"{path.rstrip('/')}/{_require_one([each for each in inside if each.endswith(SUFFIX)], url)}"
    if files.isdir(path):
        return _fetch_folder(files, path.rstrip("/"), folder / "bundle")
    if not files.exists(path):
        raise BundleError("there is no such file or folder")
    _copy_file(files, path, folder / "bundle.zip", MOST_PACKED)
    return folder / "bundle.zip"


def _fetch_folder(files: Any, path: str, folder: Path) -> Path:
    file_names = [each.removeprefix(path).lstrip("/") for each in files.find(path)]
    if len(file_names) > MOST_FILES:
        raise BundleError(f"it has {len(file_names):,} files, a bundle has at most {MOST_FILES:,}")
    names.check_all(file_names)
    left = MOST_BYTES
    for name in file_names:
        target = folder.joinpath(*name.split("/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        left -= _copy_file(files, f"{path}/{name}", target, left)
    return folder


def _copy_file(files: Any, path: str, target: Path, most: int) -> int:
    """Copy a file of at most so many bytes; gives how many."""
    size = 0
    with files.open(path, "rb") as source, target.open("xb") as file:
        while piece := source.read(min(_PIECE, most - size + 1)):
            size += len(piece)
            if size > most:
                raise BundleError("it has more bytes than a bundle may have")
            file.write(piece)
    return size


def _put_file(url: str, file: BinaryIO) -> None:
    files, path = _find_file_system(url)
    if not url.endswith(SIGNED) and files.exists(path):
        with files.open(path, "rb") as there:
            if not begins(there.read(100), NAME):
                raise TapeUsageError(
                    f"{shown_place(url)} exists and is not a bundle; nothing was written. Give another name"
                )
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    if not protocols & _BUCKETS:
        with contextlib.suppress(NotImplementedError):
            # - fsspec's own way to a parent
            files.makedirs(files._parent(path), exist_ok=True)  # noqa: SLF001
    file.seek(0)
    with files.open(path, "wb") as target:
        while piece := file.read(_PIECE):
            target.write(piece)
