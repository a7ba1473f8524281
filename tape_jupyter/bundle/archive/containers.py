"""The zip of a bundle, written and read in one plain form and in no other.

The form: files one after the other from the first byte on, then the directory, then the end;
deflated or stored; no extra fields, comments, data descriptors, links, encryption or ZIP64. What is
not exactly so is refused before a byte is unpacked, so two readers cannot see two things in it
(prefix, overlap, a header that says otherwise, a hidden entry). Sizes that the directory states are
held while unpacking: no more bytes are ever made than were allowed beforehand.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, NoReturn

from tape_jupyter.bundle.archive import names
from tape_jupyter.bundle.archive.manifest import MOST_BYTES, MOST_FILES
from tape_jupyter.errors import BundleError

MOST_RATIO = 100
"""Bytes that one packed byte may unpack to; a file that packs better is stored."""

PACKED = frozenset({
    ".7z", ".br", ".bz2", ".gif", ".gz", ".jpeg", ".jpg", ".lz4", ".mp3", ".mp4", ".npz", ".ogg", ".parquet", ".png",
    ".webm", ".webp", ".whl", ".woff2", ".xz", ".zip", ".zst",
})  # fmt: skip
"""Kinds of files that are packed already; they are stored."""

_PIECE = 256 * 1024
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_UTF8 = 0x800
MOST_PACKED = (
    MOST_BYTES + MOST_FILES * (_LOCAL.size + _CENTRAL.size + 2 * names.LONGEST) + _END.size
)


class Packer:
    """Writes files to an empty, seekable file, in the order they are added."""

    def __init__(self, out: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(out, "w", allowZip64=False)

    def add(self, name: str, pieces: Callable[[], Iterator[bytes]], size: int) -> None:
        """`pieces` is asked for the bytes once or twice; `size` is theirs together."""
        entry = zipfile.ZipInfo(names.check_file_name(name), (1980, 1, 1, 0, 0, 0))
        entry.create_system = 3
        entry.external_attr = (stat.S_IFREG | 0o644) << 16
        entry.file_size = size
        deflate = PurePosixPath(name).suffix.lower() not in PACKED and not _is_packed_too_well(
            pieces(), size
        )
        entry.compress_type = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
        entry._compresslevel = 9  # type: ignore[attr-defined]  # noqa: SLF001
        with self._zip.open(entry, "w") as file:
            for piece in pieces():
                file.write(piece)

    def close(self) -> None:
        self._zip.close()


def _is_packed_too_well(pieces: Iterator[bytes], size: int) -> bool:
    """Whether a reader would refuse the deflated file; found out at its first hundredth, mostly."""
    packer, packed = zlib.compressobj(9, zlib.DEFLATED, -15), 0
    for piece in pieces:
        packed += len(packer.compress(piece))
        if packed * MOST_RATIO >= size:
            return False
    return (packed + len(packer.flush())) * MOST_RATIO < size


class _Central(NamedTuple):
    """A record of the directory, as it stands."""

    mark: bytes
    made_by: int
    needs: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    packed: int
    size: int
    name: int
    extra: int
    comment: int
    disk: int
    internal: int
    external: int
    offset: int


@dataclass(frozen=True)
class _Entry:
    head: _Central
    start: int  # of its packed bytes


class Zipped:
    """A zip whose frame is sound. `sizes`: the bytes of each file; `packed_size`: of the zip;
    `pieces`: what is in one.
    """

    def __init__(self, path: Path) -> None:
        try:
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode):
                raise BundleError("it is not a file")
            self._file = path.open("rb")
        except OSError as error:
            raise BundleError(f"it cannot be read: {error.strerror or error}") from error
        try:
            self._entries = self._read_entries()
        except BaseException:
            self._file.close()
            raise
        self.packed_size = path.stat().st_size
        self.sizes = {name: entry.head.size for name, entry in self._entries.items()}

    def close(self) -> None:
        self._file.close()

    def _read_entries(self) -> dict[str, _Entry]:
        length = self._file.seek(0, 2)
        if length > MOST_PACKED:
            raise BundleError(f"it has {length:,} bytes, more than a bundle may have")
        count, size, start = _parse_end(
            self._read_at(max(0, length - _END.size), _END.size), length
        )
        directory, entries, expected = self._read_at(start, size), dict[str, _Entry](), 0
        at = 0
        for _ in range(count):
            head, name, at = _parse_central(directory, at)
            text = _decode_name(name, head.flags)
            if text in entries:
                _refuse_zip(f"{text[:200]!a} stands in it twice")
            if head.offset != expected:
                _refuse_zip(f"{text[:200]!a} does not begin where the file before it ends")
            self._check_local(head, name, text)
            entries[text] = _Entry(head, head.offset + _LOCAL.size + head.name)
            expected = entries[text].start + head.packed
        if at != size or expected != start:
            _refuse_zip("there is something between its files and its directory")
        return entries

    def _check_local(self, head: _Central, name: bytes, text: str) -> None:
        mark, *fields = _LOCAL.unpack(self._read_at(head.offset, _LOCAL.size))
        same = (
            fields == [*head[2:11], 0]
            and self._read_at(head.offset + _LOCAL.size, len(name)) == name
        )
        if mark != b"PK\x03\x04" or not same:
            _refuse_zip(f"the file {text[:200]!a} and the directory do not say the same")

    def _read_at(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        data = self._file.read(size)
        if len(data) != size:
            _refuse_zip("it ends too early")
        return data

    def pieces(self, name: str) -> Iterator[bytes]:
        """The bytes of a file: never more than `sizes` says. Raises BundleError after the last if
        they are not so.
        """
        entry = self._entries[name]
        size, crc = 0, 0
        for piece in (
            self._yield_unpacked(entry) if entry.head.method else self._yield_packed(entry)
        ):
            size, crc = size + len(piece), zlib.crc32(piece, crc)
            yield piece
        if size != entry.head.size or crc != entry.head.crc:
            _refuse_zip(f"{name!a} is damaged: its size or checksum is another")

    def _yield_packed(self, entry: _Entry) -> Iterator[bytes]:
        for at in range(0, entry.head.packed, _PIECE):
            yield self._read_at(entry.start + at, min(_PIECE, entry.head.packed - at))

    def _yield_unpacked(self, entry: _Entry) -> Iterator[bytes]:
        unpacker, left = zlib.decompressobj(-15), entry.head.size
        try:
            for piece in self._yield_packed(entry):
                waiting = piece
                while waiting and left and not unpacker.eof:
                    chunk = unpacker.decompress(waiting, min(left, _PIECE))
                    left, waiting = left - len(chunk), unpacker.unconsumed_tail
                    yield chunk
                if not left and not unpacker.eof and unpacker.decompress(waiting, 1):
                    _refuse_zip("a file in it is larger than the directory says")
        except zlib.error as error:
            raise BundleError(f"a file in it is damaged: {error}") from error
        if not unpacker.eof or unpacker.unused_data:
            _refuse_zip("a file in it is not packed as the directory says")


def begins(data: bytes, name: str) -> bool:
    """Whether a zip whose first file has this name could begin so."""
    stored_name = data[_LOCAL.size : _LOCAL.size + len(name)]
    return data.startswith(b"PK\x03\x04") and stored_name == name.encode()


def _parse_end(data: bytes, length: int) -> tuple[int, int, int]:
    """Count, size and start of the directory."""
    mark, disk, first, here, count, size, start, comment = _END.unpack(data)
    if mark != b"PK\x05\x06" or comment:
        _refuse_zip("it is not a zip, was cut off, or something stands behind its end")
    if disk or first or here != count:
        _refuse_zip("it is a part of several")
    if 0xFFFF in (here, count) or 0xFFFFFFFF in (size, start):
        _refuse_zip("it says that it is a large zip (ZIP64)")
    if count > MOST_FILES:
        raise BundleError(f"it has {count:,} files, a bundle has at most {MOST_FILES:,}")
    if start + size != length - _END.size or size < count * _CENTRAL.size:
        _refuse_zip("its directory is not where it says: something stands before or behind it")
    return count, size, start


def _parse_central(data: bytes, at: int) -> tuple[_Central, bytes, int]:
    """The record at an offset, its name, and where the next begins."""
    end = at + _CENTRAL.size
    if end > len(data):
        _refuse_zip("its directory ends too early")
    head = _Central(*_CENTRAL.unpack_from(data, at))
    name = data[end : end + head.name]
    if head.mark != b"PK\x01\x02" or len(name) != head.name:
        _refuse_zip("its directory is damaged")
    _require_plain(head, name)
    return head, name, end + head.name


def _require_plain(head: _Central, name: bytes) -> None:
    """Refuse what a bundle has no need of."""
    shown_name, kind = ascii(name[:200])[1:], stat.S_IFMT(head.external >> 16)
    if head.flags & 0x2041:
        _refuse_zip(f"{shown_name} is encrypted")
    if head.flags & ~_UTF8 or head.extra or head.comment or head.disk or head.needs > 45:
        _refuse_zip(f"{shown_name} has fields that a bundle's files do not have")
    if head.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        _refuse_zip(
            f"{shown_name} is packed in a way that a bundle's files are not ({head.method})"
        )
    if kind not in (0, stat.S_IFREG) or head.external & 0x18 or name.endswith(b"/"):
        _refuse_zip(f"{shown_name} is not a plain file: a link, a device or a folder")
    if 0xFFFFFFFF in (head.size, head.packed, head.offset):
        _refuse_zip("it says that it is a large zip (ZIP64)")
    if head.method == zipfile.ZIP_STORED and head.size != head.packed:
        _refuse_zip(f"the sizes of {shown_name} do not go together")
    if head.size > head.packed * MOST_RATIO:
        raise BundleError(
            f"{shown_name} unpacks to more than {MOST_RATIO} times its size; the bundle is refused"
        )


def _decode_name(name: bytes, flags: int) -> str:
    try:
        return names.check_file_name(name.decode("utf-8" if flags & _UTF8 else "ascii"))
    except UnicodeDecodeError:
        _refuse_zip(f"the name {name[:200]!a} is not text")


def _refuse_zip(what: str) -> NoReturn:
    raise BundleError(
        f"{what}. No `tape export` wrote it so: ask for the file again, or export again"
    )
