"""Logs of claude-trace (JSON Lines): the traffic of Claude Code, with headers and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers import captured
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.recorded import (
    LOST,
    data_of,
    decoded_headers,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.rows import read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Skipped

TITLE = "claude-trace"


def recognises(source: Source) -> int:
    if not {"request", "response"} <= source.top or "logged_at" not in source.keys:
        return 0
    return 90 if {"timestamp", "method", "url"} <= source.keys else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source))


def _read_row(source: Source, row: dict[str, Any], line: int) -> Iterator[Item]:
    raw_request, raw_reply = row.get("request"), row.get("response")
    if not isinstance(raw_request, Mapping) or "url" not in raw_request:
        yield Skipped("a record without a request", line=line)
    elif not isinstance(raw_reply, Mapping):
        note = str(row.get("note") or "")
        yield Skipped(f"a request without a reply{': ' + note[:60] if note else ''}", line=line)
    else:
        start = attribute_seconds(raw_request.get("timestamp"))
        request = Request(
            str(raw_request.get("method") or "POST").upper(),
            str(raw_request["url"]),
            read_headers(raw_request.get("headers")),
            data_of(raw_request.get("body")),
        )
        missing = [LOST, "request bytes"]
        reply = _build_reply(raw_reply, start, missing)
        yield recorded_exchange(
            source, line, "claude-trace", request, reply, grade="J", missing=missing, start=start, line=line
        )  # fmt: skip


def _build_reply(raw_reply: Mapping[str, Any], start: float, missing: list[str]) -> Reply:
    status = status_of(raw_reply.get("status_code"))
    headers = read_headers(raw_reply.get("headers"))
    if isinstance(raw_reply.get("events"), list) and raw_reply["events"]:
        missing[0] = "reply bytes"
        return captured.stream_of(raw_reply["events"], status, headers, start)
    if raw_reply.get("body_raw") is not None:
        data = str(raw_reply["body_raw"]).encode("utf-8", "surrogatepass")
    else:
        data = data_of(raw_reply.get("body"))
        missing.append("reply bytes")
    return Reply(status, decoded_headers(headers, data), (data,) if data else ())
