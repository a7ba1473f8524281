"""A bundle's files, packed the same way every time and read as if a stranger had sent them.

A bundle is a zip or an unpacked folder. Reading checks all of it first: the frame
(bundle/archive/containers.py), every name, the manifest, and the sha256 of every file. One thing
wrong refuses the whole; then nothing has been written anywhere. Taking files out goes to a new
folder beside the goal, which gets its name when all are there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from tape_jupyter.bundle.archive import locations, names
from tape_jupyter.bundle.archive import manifest as manifests
from tape_jupyter.bundle.archive.containers import Packer, Zipped
from tape_jupyter.bundle.archive.manifest import NAME, BundleFile, Manifest
from tape_jupyter.bundle.archive.unpacked import Unpacked
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError

_PIECE = 1024 * 1024


def pack(
    out: BinaryIO,
    manifest: Manifest,
    content: Mapping[str, Path | bytes],
    on_progress: Tell = ignore_progress,
) -> None:
    """Write the zip of a bundle to `out` (empty, seekable). The same manifest and content give the
    same bytes.

    `content` has the bytes of each file of the manifest, or where they lie. Raises BundleError
    where they are not what the manifest says, and for a manifest that no reader would take; what is
    in `out` then is no bundle.
    """
    manifests.check_manifest(manifest)
    if set(content) != {each.path for each in manifest.files}:
        odd = min(set(content) ^ {each.path for each in manifest.files})
        raise BundleError(f"{odd!a} is in the manifest or among the files, not in both")
    done = 0
    with contextlib.closing(Packer(out)) as packer:
        packer.add(NAME, lambda: iter([manifest.to_bytes()]), len(manifest.to_bytes()))
        for each in manifest.files:

            def yield_checked(each: BundleFile = each) -> Iterator[bytes]:
                return _check_pieces(each, _read_pieces(content[each.path]))

            packer.add(each.path, yield_checked, each.size)
            done += each.size
            on_progress("packing", done, manifest.size)


@contextlib.contextmanager
def opened(place: str | Path, on_progress: Tell = ignore_progress) -> Iterator[Bundle]:
    """The bundle at a place (bundle/archive/locations.py: a zip, an unpacked folder, a URL),
    checked to its last byte.

    Raises BundleError, whose `problems` name every file that is not as the manifest says.
    """
    with (
        locations.fetched(place) as path,
        _add_place(str(place)),
        contextlib.closing(_open_source(path)) as source,
    ):
        yield Bundle(source, str(place), on_progress)


@contextlib.contextmanager
def _add_place(place: str) -> Iterator[None]:
    try:
        yield
    except BundleError as error:
        raise error.at(place) from error.__cause__


def _open_source(path: Path) -> Zipped | Unpacked:
    return Unpacked(path) if path.is_dir() else Zipped(path)


class Bundle:
    """An opened bundle: `manifest`, its `digest`, and files that are what the manifest says each
    time they are read.
    """

    def __init__(
        self, source: Zipped | Unpacked, place: str, on_progress: Tell = ignore_progress
    ) -> None:
        self.place, self._source = place, source
        self.packed_size = source.packed_size
        listed = list(source.sizes)
        if len(listed) > manifests.MOST_FILES:
            raise BundleError(
                f"it has {len(listed):,} files, a bundle has at most {manifests.MOST_FILES:,}"
            )
        if (total := sum(source.sizes.values())) > manifests.MOST_BYTES:
            raise BundleError(
                f"its files have {total:,} bytes, a bundle has at most {manifests.MOST_BYTES:,}"
            )
        names.check_all(listed)
        if NAME not in source.sizes:
            raise BundleError(f"it has no {NAME}: it is not a bundle")
        if source.sizes[NAME] > manifests.MOST_MANIFEST:
            raise BundleError(f"its {NAME} has {source.sizes[NAME]:,} bytes, too many")
        self.manifest = manifests.parse_manifest(b"".join(source.pieces(NAME)))
        self.digest = self.manifest.digest
        self._files = {each.path: each for each in self.manifest.files}
        self._check_files(on_progress)

    def _check_files(self, on_progress: Tell) -> None:
        there = set(self._source.sizes) - {NAME}
        problems = [f"{name!a} is not in the manifest" for name in sorted(there - set(self._files))]
        problems += [f"{name!a} is missing" for name in sorted(set(self._files) - there)]
        problems += [
            f"{each.path!a} has {self._source.sizes[each.path]:,} bytes, the manifest says {each.size:,}"
            for each in self.manifest.files
            if each.path in there and self._source.sizes[each.path] != each.size
        ]
        if not problems:
            problems = self._check_digests(on_progress)
        if problems:
            raise BundleError(
                f"{problems[0]}{_format_more(problems)}; the bundle is refused", problems=problems
            )

    def _check_digests(self, on_progress: Tell) -> list[str]:
        problems, done = [], 0
        for each in self.manifest.files:
            try:
                for _ in self._read_file(each):
                    pass
            except BundleError as error:
                problems.append(error.reason)
            done += each.size
            on_progress("checking", done, self.manifest.size)
        return problems

    def names(self, role: str | None = None) -> list[str]:
        """The files, or those of a role, sorted. Without the manifest."""
        return [each.path for each in self.manifest.files if role in (None, each.role)]

    def pieces(self, name: str) -> Iterator[bytes]:
        """The bytes of a file as they are unpacked; after the last its digest has been checked
        again.
        """
        if name not in self._files:
            raise BundleError(f"{name!a} is not in the bundle", place=self.place)
        with _add_place(self.place):
            yield from self._read_file(self._files[name])

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return b"".join(self.pieces(name))

    def _read_file(self, each: BundleFile) -> Iterator[bytes]:
        return _check_pieces(each, self._source.pieces(each.path))

    def extract(
        self,
        folder: Path,
        roles: Collection[str] | None = None,
        on_progress: Tell = ignore_progress,
    ) -> Path:
        """Write the files (of these roles, or all) below a folder that is new or empty; gives it.

        All or none: nothing is there before all are. The manifest is written too where all roles
        are.
        """
        # - a link that stands there is not followed
        folder = Path(os.path.abspath(folder))  # noqa: PTH100
        if folder.is_symlink() or (
            folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
        ):
            raise BundleError(
                f"{folder} is not empty; nothing was written. Give a folder that is new"
            )
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(
                prefix=".tape-", dir=folder.parent, ignore_cleanup_errors=True
            ) as temporary:
                unpacked = Path(temporary, "bundle")
                unpacked.mkdir()
                self._extract_files(unpacked, roles, on_progress)
                if folder.exists():
                    folder.rmdir()
                unpacked.rename(folder)
        except OSError as error:
            raise BundleError(
                f"{folder} cannot be written: {error.strerror or error}", place=self.place
            ) from error
        return folder

    def _extract_files(
        self, folder: Path, roles: Collection[str] | None, on_progress: Tell
    ) -> None:
        files = [each for each in self.manifest.files if roles is None or each.role in roles]
        done, total = 0, sum(each.size for each in files)
        if roles is None:
            (folder / NAME).write_bytes(self.manifest.to_bytes())
        for each in files:
            goal = folder.joinpath(*each.path.split("/"))
            goal.parent.mkdir(parents=True, exist_ok=True)
            with goal.open("xb") as file:
                file.writelines(self.pieces(each.path))
            done += each.size
            on_progress("unpacking", done, total)


def _check_pieces(each: BundleFile, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces, and an error after the last if they are not what the manifest says; one too many
    is not given.
    """
    size, digest = 0, hashlib.sha256()
    for piece in pieces:
        size += len(piece)
        if size > each.size:
            break
        digest.update(piece)
        yield piece
    if size != each.size or digest.hexdigest() != each.sha256:
        raise BundleError(f"{each.path!a} is not what the manifest says: its sha256 is another")


def _read_pieces(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _format_more(problems: list[str]) -> str:
    return f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
