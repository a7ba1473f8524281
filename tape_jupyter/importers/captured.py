"""What proxies between an agent and its provider keep of a stream: its events, parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tape_jupyter.core.call import Headers, Reply
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.recorded import without_coding


def stream_of(events: Sequence[Any], status: int, headers: Headers, start: float = 0.0) -> Reply:
    """Server-sent events: `{event, data, timestamp}`, or their data alone."""
    chunks: list[bytes] = []
    waits: list[float] = []
    for each in events:
        wrapped = (
            isinstance(each, Mapping)
            and "data" in each
            and not {"id", "choices", "delta"} & each.keys()
        )
        data = each["data"] if wrapped else each
        name = None
        if wrapped:
            name = each.get("event")
        elif isinstance(data, Mapping):
            name = data.get("type")
        head = f"event: {name}\n".encode() if name and name != "message" else b""
        if isinstance(data, str):
            text = data.encode("utf-8", "surrogatepass")
        else:
            text = rebuild.compact(data)
        chunks.append(head + b"data: " + text + b"\n\n")
        time = attribute_seconds(each.get("timestamp")) if wrapped else 0.0
        if time and start:
            waits.append(round(max(time - start, 0.0), 4))
    known = without_coding(headers) or rebuild.SSE_HEADERS
    return Reply(status, known, tuple(chunks), tuple(waits) if len(waits) == len(chunks) else ())
