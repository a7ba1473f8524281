"""Cassettes of cassetter (YAML): HTTP; its gRPC and WebSocket interactions are counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.recorded import (
    LOST,
    decoded_headers,
    document,
    has_key,
    parse_moment,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.rows import listed_field, mapping_field
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Grade, Item, Skipped, each

TITLE = "cassetter"


def recognises(source: Source) -> int:
    text = source.head_text
    named = has_key(source, "interactions") and "recorded_at:" in text
    bodies = (
        "type: json" in text
        or "type: text" in text
        or "type: none" in text
        or "type: binary" in text
    )
    if named and bodies and "uri:" in text:
        return 88
    return 86 if "grpc_interactions:" in text else 0


def read(source: Source) -> Iterator[Item]:
    cassette = mapping_field(document(source))
    for number, row in enumerate(listed_field(cassette.get("interactions"))):
        yield from each(partial(_read_interaction, source, number, row))
    for name, what in (
        ("grpc_interactions", "a gRPC call"),
        ("ws_interactions", "a WebSocket conversation"),
    ):
        if count := len(listed_field(cassette.get(name))):
            yield Skipped(f"{what}: not imported", count)


def _read_interaction(source: Source, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    raw_request, raw_reply = mapping_field(row.get("request")), mapping_field(row.get("response"))
    missing = [LOST]
    headers = read_headers(raw_reply.get("headers"))
    body = _read_body(raw_request.get("body"), "request bytes", missing)
    data = _read_body(raw_reply.get("body"), "reply bytes", missing)
    request = Request(
        str(raw_request.get("method") or "GET"),
        str(raw_request.get("uri") or ""),
        read_headers(raw_request.get("headers")),
        body,
    )
    reply_headers: Headers = decoded_headers(headers, data)
    reply = Reply(status_of(raw_reply.get("status")), reply_headers, (data,) if data else ())
    grade: Grade = "J" if len(missing) > 1 else "W"
    start = parse_moment(row.get("recorded_at"))
    yield recorded_exchange(
        source, number, "cassetter", request, reply, grade=grade, missing=missing, start=start
    )


def _read_body(value: Any, what: str, missing: list[str]) -> bytes:
    body = mapping_field(value)
    kind, content = str(body.get("type") or "none"), body.get("content")
    if kind == "none":
        return b""
    if kind == "json":
        missing.append(what)
        return rebuild.compact(content)
    if not isinstance(content, str):  # digits without quotes: their zeros in front are gone
        raise TypeError(f"a {kind} body that YAML reads as a number")
    if kind == "binary":
        return bytes.fromhex(content)
    return content.encode("utf-8", "surrogatepass")
