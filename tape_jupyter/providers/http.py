"""From the bytes of a reply to JSON values or stream events. Never raises on what it is given.

Streams are read from their raw bytes, not with an SDK's accumulator (one of them yields
"assistantassistant" for hosts that repeat the role). An event that holds none of the `wanted` words
is passed over unparsed: a reply of 2,000 text deltas has a handful of events that say anything
about model, tools or usage.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from typing import Any

from tape_jupyter.core.call import Headers, header_value
from tape_jupyter.encoding.http.content_encoding import decode_body

FIRST = 3
"""Events always parsed: the model is told in the first; Azure's first is empty, so is a
keep-alive's.
"""

Wanted = tuple[bytes, ...]


def decoded_body(headers: Headers, body: bytes) -> bytes | None:
    """The body with its content-encoding off (of a cut body, what came); None when it cannot be
    taken off.
    """
    coding = header_value(headers, "content-encoding")
    try:
        return decode_body(body, coding) if coding else body
    except ValueError:
        return None


def loads(data: bytes | str) -> Any:
    """A JSON value, or None: for bytes that are not JSON, and for JSON that is too deep."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def events(headers: Headers, data: bytes, markers: Wanted) -> Iterator[Any] | None:
    """The events of a stream as JSON values, or None when the body is no stream."""
    kind = header_value(headers, "content-type").lower()
    if "amazon.eventstream" in kind or (data[:1] == b"\0" and b":event-type" in data[:256]):
        return event_stream_payloads(data, markers)
    if "ndjson" in kind:
        return ndjson(data, markers)
    # Gemini sends its errors as JSON under this type; recorders drop the type.
    if data.lstrip()[:1] not in (b"{", b"[") and ("event-stream" in kind or _SSE.match(data)):
        return sse_payloads(data, markers)
    return None


_SSE = re.compile(rb"(?:data|event|id|retry)?:")


def sse_payloads(data: bytes, markers: Wanted) -> Iterator[Any]:
    """The JSON of each server-sent event; `[DONE]` and comments have none."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    blocks = _filter_wanted((block for block in data.split(b"\n\n") if b"data:" in block), markers)
    for block in blocks:
        lines = [line[5:] for line in block.split(b"\n") if line.startswith(b"data:")]
        value = loads(b"\n".join(lines))
        if value is not None:
            yield value


def ndjson(data: bytes, markers: Wanted) -> Iterator[Any]:
    """The JSON of each line."""
    values = (
        loads(line)
        for line in _filter_wanted((line for line in data.split(b"\n") if line.strip()), markers)
    )
    return (value for value in values if value is not None)


def event_stream_payloads(data: bytes, markers: Wanted) -> Iterator[Any]:
    """AWS event stream: each frame as `{event type: payload}`; checksums are the transport's
    business.

    A frame is u32 length, u32 length of headers, u32 crc, headers, payload, u32 crc, all big-endian
    (Amazon's event stream encoding).
    """
    for frame in _filter_wanted(_split_frames(data), markers):
        (named,) = struct.unpack_from(">I", frame, 4)
        kind = _TYPE.search(frame, 12, 12 + named)
        value = loads(frame[12 + named : -4])
        if kind and value is not None:
            yield {kind.group(2)[: kind.group(1)[-1]].decode("ascii", "replace"): value}


# A string header: length-prefixed name, type 7, u16 length (under 256 for every event type), value.
_TYPE = re.compile(rb":(?:event|exception)-type\x07(\x00[\x00-\xff])([ -~]*)", re.DOTALL)


def _split_frames(data: bytes) -> Iterator[bytes]:
    """Whole frames; what follows a torn one is not readable."""
    start = 0
    while start + 16 <= len(data):
        total, named = struct.unpack_from(">II", data, start)
        if not 16 + named <= total <= len(data) - start:
            return
        yield data[start : start + total]
        start += total


def _filter_wanted(parts: Iterator[bytes], markers: Wanted) -> Iterator[bytes]:
    for index, part in enumerate(parts):
        if index < FIRST or not markers or any(marker in part for marker in markers):
            yield part
