"""Content-encodings (gzip, deflate, br, zstd), both directions. Pure: bytes in, bytes out, no I/O.

Decoding is incremental and capped: a few bytes can expand to gigabytes, so every step asks for at
most the room that is left. brotli and zstandard are optional; without them such bodies stay closed.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import Any, Final, Protocol

from tape_jupyter.errors import CassetteError

CAP: Final = 64 * 2**20
"""Bytes a body may expand to before it is too large to open."""

_GZIP, _ZLIB, _RAW = 31, 15, -15
_ALIASES: Final = {"x-gzip": "gzip"}


class TooLarge(ValueError):
    """The body expands past the cap."""


class _Stage(Protocol):
    def feed(self, data: bytes, limit: int) -> bytes:
        """Decoded bytes; ValueError (TooLarge) when they would be more than `limit`."""


class Decoder:
    """Incremental decoder of one body. `feed` never raises: once something is wrong it gives b""
    for ever.

    `failure` is then the reason (a TooLarge, or a ValueError), else None.
    """

    __slots__ = ("_bytes_left", "_stages", "failure")

    def __init__(self, content_encoding: str = "", cap: int = CAP) -> None:
        self._bytes_left = cap
        self._stages: list[_Stage] = []
        self.failure: ValueError | None = None
        try:
            self._stages = [_build_stage(name) for name in reversed(codings(content_encoding))]
        except ValueError as error:
            self.failure = error

    def feed(self, data: bytes) -> bytes:
        if self.failure is not None:
            return b""
        if not self._stages:
            return data
        try:
            for stage in self._stages:
                data = stage.feed(data, self._bytes_left)
        except Exception as error:  # brotli and zstandard raise classes of their own
            if isinstance(error, ValueError):
                self.failure = error
            else:
                self.failure = ValueError(str(error))
            return b""
        self._bytes_left -= len(data)
        return data


def decoder(content_encoding: str = "") -> Decoder:
    return Decoder(content_encoding)


def codings(content_encoding: str) -> tuple[str, ...]:
    """The codings of a content-encoding header in the order they were applied, identity left out."""
    if not content_encoding:
        return ()
    names = (name.strip().lower() for name in content_encoding.split(","))
    return tuple(_ALIASES.get(name, name) for name in names if name not in ("", "identity"))


def decode_body(raw: bytes, content_encoding: str, cap: int = CAP) -> bytes:
    """The decoded bytes of a whole body (of a cut one: as far as it goes). Raises ValueError,
    TooLarge past the cap.
    """
    incremental = Decoder(content_encoding, cap)
    plain = incremental.feed(raw)
    if incremental.failure is not None:
        raise incremental.failure
    return plain


def sealed(plain: bytes, content_encoding: str) -> bytes:
    """The bytes encoded afresh: the same content as the recorded ones, seldom the same bytes."""
    for name in codings(content_encoding):
        plain = _apply_coding(plain, name)
    return plain


def _apply_coding(plain: bytes, name: str) -> bytes:
    if name in ("gzip", "deflate"):
        packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP if name == "gzip" else _ZLIB)
        return packer.compress(plain) + packer.flush()
    try:
        if name == "br":
            return bytes(import_module("brotli").compress(plain, quality=5))
        if name == "zstd":
            return bytes(import_module("zstandard").ZstdCompressor().compress(plain))
    except ImportError as error:
        raise CassetteError(
            f"an edited {name} body can be replayed only with the package {error.name!r}"
        ) from None
    raise CassetteError(f"encoding: {name!r} is not one of gzip, deflate, br, zstd")


def _build_stage(name: str) -> _Stage:
    if name in ("gzip", "deflate"):
        return _Zlib(_GZIP if name == "gzip" else _ZLIB)
    try:
        if name == "br":
            return _Brotli()
        if name == "zstd":
            return _Zstd()
    except ImportError as error:
        raise ValueError(f"{name} needs the package {error.name!r}") from None
    raise ValueError(f"unknown content-encoding {name!r}")


class _Zlib:
    """gzip (members may follow each other) or deflate (with the zlib header, or raw as some servers
    send it).
    """

    __slots__ = ("_head", "_inflater", "_wbits")

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        # not None: the first two bytes are awaited
        self._head: bytes | None = b"" if wbits == _ZLIB else None
        self._inflater = zlib.decompressobj(wbits)

    def feed(self, data: bytes, limit: int) -> bytes:
        if self._head is not None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return b""
            self._head = None
            if data[0] & 15 != 8 or int.from_bytes(data[:2]) % 31:  # no zlib header (RFC 1950)
                self._inflater = zlib.decompressobj(_RAW)
        return self._inflate_data(data, limit)

    def _inflate_data(self, data: bytes, limit: int) -> bytes:
        out: list[bytes] = []
        while data:
            if self._inflater.eof:
                if self._wbits != _GZIP:
                    break  # trailing bytes after a zlib stream mean nothing
                self._inflater = zlib.decompressobj(_GZIP)
            piece = self._inflater.decompress(data, limit + 1)
            limit -= len(piece)
            if limit < 0:
                raise TooLarge("expands past the cap")
            out.append(piece)
            data = self._inflater.unused_data or self._inflater.unconsumed_tail
        return b"".join(out)


class _Brotli:
    __slots__ = ("_inflater",)

    def __init__(self) -> None:
        self._inflater: Any = import_module("brotli").Decompressor()

    def feed(self, data: bytes, limit: int) -> bytes:
        out: list[bytes] = []
        while True:
            piece = self._inflater.process(data, output_buffer_limit=min(limit, 2**16) + 1)
            limit -= len(piece)
            if limit < 0:
                raise TooLarge("expands past the cap")
            out.append(piece)
            data = b""
            if self._inflater.is_finished() or self._inflater.can_accept_more_data():
                return b"".join(out)


class _Zstd:
    """Fed in slices, since one step gives all it can: 512 bytes hold at most 128 blocks of 128 KiB."""

    __slots__ = ("_inflater",)

    def __init__(self) -> None:
        unpacker = import_module("zstandard").ZstdDecompressor(max_window_size=2**26)
        self._inflater: Any = unpacker.decompressobj(read_across_frames=True)

    def feed(self, data: bytes, limit: int) -> bytes:
        out: list[bytes] = []
        for start in range(0, len(data), 512):
            piece = self._inflater.decompress(data[start : start + 512])
            limit -= len(piece)
            if limit < 0:
                raise TooLarge("expands past the cap")
            out.append(piece)
        return b"".join(out)
