"""One frame of Amazon's event stream (vnd.amazon.eventstream) <-> bytes. Pure: no I/O.

A frame is u32 length, u32 length of the headers, CRC-32 of those two, headers, payload, CRC-32 of
all before (smithy.io, "Amazon Event Stream Specification"). botocore only reads them; an edited
reply needs them written.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

STANDARD: Final = (":event-type", ":content-type", ":message-type")
"""The headers that nearly every frame has, in their order."""

LONGEST: Final = 2**25
"""Bytes; the specification allows 24 MiB."""

PRELUDE: Final = 12


def is_prelude(data: bytes) -> bool:
    """Whether the first 12 bytes begin a frame."""
    total, headers, check = struct.unpack_from(">III", data)
    return bool(PRELUDE + 4 + headers <= total <= LONGEST and zlib.crc32(data[:8]) == check)


def split_frames(raw: bytes) -> Iterator[bytes]:
    """Whole frames with right checksums, up to the first that is not."""
    start = 0
    while start + PRELUDE + 4 <= len(raw) and is_prelude(raw[start : start + PRELUDE]):
        (total,) = struct.unpack_from(">I", raw, start)
        frame = raw[start : start + total]
        if (
            len(frame) != total
            or zlib.crc32(frame[:-4]) != struct.unpack_from(">I", frame, total - 4)[0]
        ):
            return
        yield frame
        start += total


def frame_payload(frame: bytes) -> bytes:
    (length,) = struct.unpack_from(">I", frame, 4)
    return frame[PRELUDE + length : -4]


def frame_headers(frame: bytes) -> dict[str, str] | None:
    """The headers of a frame; None if one is no text, or there twice."""
    (length,) = struct.unpack_from(">I", frame, 4)
    block, at = frame[PRELUDE : PRELUDE + length], 0
    headers: dict[str, str] = {}
    try:
        while at < len(block):
            name = block[at + 1 : at + 1 + block[at]].decode("utf-8")
            at += 1 + block[at]
            kind, size = struct.unpack_from(">BH", block, at)
            value = block[at + 3 : at + 3 + size]
            if kind != 7 or name in headers or len(value) != size:
                return None
            headers[name] = value.decode("utf-8")
            at += 3 + size
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    return headers


def encode_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame with text headers."""
    block = b"".join(
        _encode_header(name.encode("utf-8"), value.encode("utf-8"))
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(block) + len(payload), len(block))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + block + payload
    return head + struct.pack(">I", zlib.crc32(head))


def _encode_header(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + struct.pack(">BH", 7, len(value)) + value
