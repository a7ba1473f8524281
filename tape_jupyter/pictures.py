"""Engine room: what a PNG shows, apart from how it is packed. No picture library; nothing of the picture is decoded.

The rows of pixels of a PNG are packed by zlib, whose bytes differ with its version, and beside them stand texts and
dates. Two PNGs whose head, palette, transparency and unpacked rows are the same show the same.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
import zlib
from collections.abc import Iterator

MOST = 256 * 1024 * 1024
"""Bytes of unpacked rows that are looked at; a larger picture counts by its bytes."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SHOWN = (b"IHDR", b"PLTE", b"tRNS")
_PIECE = 1 << 20


def described(kind: str, value: str) -> str:
    """A picture of an output (base64) as a line: equal lines, equal pictures."""
    try:
        data = base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return f"{kind}, not base64: {hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}"
    rows = _rows(data) if kind == "image/png" else None
    if rows is None:
        return f"{len(data):,} bytes, {hashlib.sha256(data).hexdigest()}"
    width, height = struct.unpack(">II", data[16:24])
    return f"{width} x {height} pixels, {rows}"


def _rows(data: bytes) -> str | None:
    """A digest of what a PNG shows; None for what is no whole PNG."""
    told, unpack, left = hashlib.sha256(), zlib.decompressobj(), MOST
    try:
        for name, content in _chunks(data):
            if name in _SHOWN:
                told.update(name + content)
            elif name == b"IDAT":
                pending = content
                while pending and left > 0:
                    piece = unpack.decompress(pending, _PIECE)
                    told.update(piece)
                    left -= len(piece)
                    pending = unpack.unconsumed_tail
    except (struct.error, zlib.error, ValueError):
        return None
    return told.hexdigest() if unpack.eof and left > 0 else None


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of a PNG's chunks. Raises ValueError or struct.error where they do not end well."""
    if data[:8] != _SIGNATURE or data[12:16] != b"IHDR":
        raise ValueError("no PNG")
    at = 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        name, end = data[at + 4 : at + 8], at + 12 + size
        if end > len(data):
            raise ValueError("cut short")
        yield name, data[at + 8 : end - 4]
        if name == b"IEND":
            return
        at = end
