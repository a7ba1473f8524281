"""Cassettes of cassetter (YAML): HTTP; its gRPC and WebSocket interactions are counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.recorded import (
    LOST,
    decoded,
    document,
    exchange,
    has_key,
    headers_of,
    moment,
    status_of,
)
from tape_jupyter.importers.rows import listed, mapping
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
    return 88 if named and bodies and "uri:" in text else 86 if "grpc_interactions:" in text else 0


def read(source: Source) -> Iterator[Item]:
    told = mapping(document(source))
    for number, row in enumerate(listed(told.get("interactions"))):
        yield from each(partial(_read_interaction, source, number, row))
    for name, what in (
        ("grpc_interactions", "a gRPC call"),
        ("ws_interactions", "a WebSocket conversation"),
    ):
        if count := len(listed(told.get(name))):
            yield Skipped(f"{what}: not imported", count)


def _read_interaction(source: Source, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    asked, said = mapping(row.get("request")), mapping(row.get("response"))
    missing = [LOST]
    headers = headers_of(said.get("headers"))
    body = _read_body(asked.get("body"), "request bytes", missing)
    data = _read_body(said.get("body"), "reply bytes", missing)
    request = Request(
        str(asked.get("method") or "GET"),
        str(asked.get("uri") or ""),
        headers_of(asked.get("headers")),
        body,
    )
    told: Headers = decoded(headers, data)
    reply = Reply(status_of(said.get("status")), told, (data,) if data else ())
    grade: Grade = "J" if len(missing) > 1 else "W"
    start = moment(row.get("recorded_at"))
    yield exchange(
        source, number, "cassetter", request, reply, grade=grade, missing=missing, start=start
    )


def _read_body(told: Any, what: str, missing: list[str]) -> bytes:
    body = mapping(told)
    kind, content = str(body.get("type") or "none"), body.get("content")
    if kind == "none":
        return b""
    if kind == "json":
        missing.append(what)
        return rebuild.compact(content)
    if not isinstance(content, str):  # digits without quotes: their zeros in front are gone
        raise TypeError(f"a {kind} body that YAML reads as a number")
    return bytes.fromhex(content) if kind == "binary" else content.encode("utf-8", "surrogatepass")
