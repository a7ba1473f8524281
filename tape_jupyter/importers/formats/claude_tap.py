"""Logs of claude-tap (JSON Lines): the traffic of coding agents, by HTTP and by WebSocket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers import captured, rebuild
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.recorded import (
    LOST,
    decoded_headers,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.rows import read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Call, Item, Skipped

TITLE = "claude-tap"


def recognises(source: Source) -> int:
    if {"upstream_base_url", "request", "response"} <= source.top | source.keys:
        return 90
    return 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source))


def _read_row(source: Source, row: dict[str, Any], line: int) -> Iterator[Item]:
    raw_request, raw_reply = row.get("request"), row.get("response")
    if not isinstance(raw_request, Mapping) or "path" not in raw_request:
        yield Skipped("a record without a request", line=line)
        return
    if not isinstance(raw_reply, Mapping):
        yield Skipped("a request without a reply", line=line)
        return
    socket = row.get("transport") == "websocket" or isinstance(raw_reply.get("ws_events"), list)
    missing, assumed = [LOST, "request bytes"], list[str]()
    body, method = raw_request.get("body"), str(raw_request.get("method") or "POST").upper()
    if socket and isinstance(body, dict):
        body, method = {**{k: v for k, v in body.items() if k != "type"}, "stream": True}, "POST"
        assumed.append("a POST with stream: true, as it went over a WebSocket")
    data = _encode_body(body)
    url = str(row.get("upstream_base_url") or "").rstrip("/") + str(raw_request["path"])
    request = Request(method, url, read_headers(raw_request.get("headers")), data)
    took = float(row.get("duration_ms") or 0.0) / 1000
    end = attribute_seconds(row.get("timestamp"))
    reply = _build_reply(raw_reply, missing, socket=socket)
    item = recorded_exchange(
        source, line, "claude-tap", request, reply, grade="J", missing=missing, assumed=assumed,
        start=max(end - took, 0.0), line=line,
    )  # fmt: skip
    if isinstance(item, Call):
        item.origin.id, item.end = str(row.get("id") or line), end
    yield item


def _build_reply(raw_reply: Mapping[str, Any], missing: list[str], *, socket: bool) -> Reply:
    status, headers = status_of(raw_reply.get("status")), read_headers(raw_reply.get("headers"))
    if socket:
        missing.append("reply bytes")
        return rebuild.streamed(rebuild.OPENAI_RESPONSES, raw_reply.get("ws_events") or ())
    if isinstance(raw_reply.get("sse_events"), list) and raw_reply["sse_events"]:
        missing.append("reply bytes")
        return captured.stream_of(raw_reply["sse_events"], status, headers)
    body = raw_reply.get("body")
    data = _encode_body(body)
    if not isinstance(body, str):
        missing.append("reply bytes")
    if raw_reply.get("completed") is False:
        missing.append("the rest of the reply: it broke off")
    return Reply(status, decoded_headers(headers, data), (data,) if data else ())


def _encode_body(body: Any) -> bytes:
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else rebuild.compact(body)
