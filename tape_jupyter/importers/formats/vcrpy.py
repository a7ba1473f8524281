"""Cassettes of vcrpy and pytest-recording (YAML, JSON), and LangGraph's of its documentation
(msgpack).
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.recorded import (
    LOST,
    data_of,
    decoded_headers,
    document,
    has_key,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.source import Source, needs
from tape_jupyter.importers.trace import Item, Skipped
from tape_jupyter.importers.trace import each as each_record

TITLE = "vcrpy"

_OLD = "is a cassette from before vcrpy 1.0; convert it with: python -m vcr.migration"
_EXPANDED = 256 * 1024 * 1024


def recognises(source: Source) -> int:
    text = source.head_text
    if source.path.name.endswith(".msgpack.zlib"):
        return 90
    if {"interactions", "request", "response", "uri"} <= source.keys and "index" not in source.keys:
        return 80
    if _is_old(source):
        return 80
    named = has_key(source, "interactions") and "uri:" in text
    return 80 if named and "recorded_at:" not in text else 0


def read(source: Source) -> Iterator[Item]:
    if _is_old(source):
        raise source.failed(_OLD, 1)
    if source.path.name.endswith(".msgpack.zlib"):
        cassette = _unpack_msgpack(source)
    else:
        cassette = document(source)
    if isinstance(cassette, list):
        raise source.failed(_OLD, 1)
    if not isinstance(cassette, Mapping) or not isinstance(cassette.get("interactions"), list):
        raise source.failed("holds no list of interactions", 1)
    for number, each in enumerate(cassette["interactions"]):
        if not isinstance(each, Mapping) or "request" not in each or "response" not in each:
            yield Skipped("an interaction without a request and a response")
        else:
            yield from each_record(
                partial(_read_interaction, source, number, each["request"], each["response"])
            )


def _is_old(source: Source) -> bool:
    """Whether it is a bare list of interactions."""
    text = source.head_text.removeprefix("---").lstrip()
    yaml = re.match(r"- request:", text) and re.search(r"^  response:", text, re.MULTILINE)
    return bool(yaml) or (text[:1] == "[" and {"request", "response"} == source.top)


def _unpack_msgpack(source: Source) -> Any:
    msgpack = needs("msgpack", "LangGraph's cassettes", source.name)
    try:
        opener = zlib.decompressobj()
        data = opener.decompress(base64.b64decode(source.read()), _EXPANDED)
        if opener.unconsumed_tail:
            raise source.failed("expands to more than 256 MiB: refused")
        return msgpack.unpackb(data, raw=False, strict_map_key=False)
    except (ValueError, zlib.error, msgpack.UnpackException) as error:
        raise source.failed(f"is no such cassette: {error}") from None


def _read_interaction(
    source: Source, number: int, raw_request: Any, raw_reply: Any
) -> Iterator[Item]:
    missing = [LOST]
    request = Request(
        str(raw_request.get("method") or "GET").upper(),
        str(raw_request.get("uri") or ""),
        read_headers(raw_request.get("headers")),
        _read_body(raw_request, "body", missing, "request bytes"),
    )
    body = _read_body(raw_reply, "body", missing, "reply bytes")
    if "content" in raw_reply and "body" not in raw_reply:  # of vcrpy before 6, for httpx
        body = data_of(raw_reply["content"])
    headers = decoded_headers(read_headers(raw_reply.get("headers")), body)
    status = raw_reply.get("status", raw_reply.get("status_code"))
    reason = str((status.get("message") if isinstance(status, Mapping) else "") or "")
    reply = Reply(
        status_of(status), _correct_length(headers, body), (body,) if body else (), reason=reason
    )
    parsed = "request bytes" in missing or "reply bytes" in missing
    yield recorded_exchange(
        source, number, "vcrpy", request, reply, grade="J" if parsed else "W", missing=missing
    )


def _read_body(record: Mapping[str, Any], name: str, missing: list[str], lost: str) -> bytes:
    """A body; of one that was kept as parsed JSON the bytes are gone."""
    if "parsed_body" in record and not record.get(name):
        missing.append(lost)
        if record["parsed_body"] is not None:
            return rebuild.compact(record["parsed_body"])
        return b""
    return data_of(record.get(name))


def _correct_length(headers: Headers, body: bytes) -> Headers:
    """A declared length that is not the body's says only that it was changed on the way."""
    length = str(len(body))
    return tuple(
        (name, length if name.lower() == "content-length" else value) for name, value in headers
    )
