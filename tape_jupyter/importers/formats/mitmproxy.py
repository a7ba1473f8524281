"""Mitmproxy's flow files: tnetstrings, one flow after another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers.recorded import read_headers, recorded_exchange, status_of
from tape_jupyter.importers.source import RECORD_CAP, Source
from tape_jupyter.importers.trace import Call, Item, Skipped, each

TITLE = "mitmproxy flows"

_DEEP = 60


def recognises(source: Source) -> int:
    head = source.head[:4096]
    size, _, rest = head.partition(b":")
    if size.isdigit() and len(size) < 12 and rest[:40].count(b":") and b"version" in source.head:
        return 90
    return 0


def read(source: Source) -> Iterator[Item]:
    data, at, number = source.read(), 0, 0
    while at < len(data):
        try:
            flow, at = _parse_value(data, at, len(data), 0)
        except (ValueError, IndexError, RecursionError) as error:
            if not number:
                raise source.failed(f"is not a flow file: {error}") from None
            yield Skipped(
                "the file breaks off in the middle of a flow",
                text=data[at : at + 2000].decode("latin-1"),
            )
            return
        number += 1
        yield from each(partial(_read_flow, source, number, flow))


def _read_flow(source: Source, number: int, flow: Any) -> Iterator[Item]:
    kind = _to_text(flow.get("type") or "") if isinstance(flow, Mapping) else "unknown"
    if kind != "http":
        yield Skipped(f"a flow that is not HTTP ({kind[:40]})")
        return
    raw_request, raw_reply = flow["request"], flow.get("response")
    if not isinstance(raw_reply, Mapping):
        yield Skipped("a request without a reply")
        return
    missing = ["chunk borders"]
    content = raw_reply.get("content")
    if content is None or (
        not content and "event-stream" in str(read_headers(raw_reply.get("headers"))).lower()
    ):
        missing.append("reply body: it was streamed through")
    if raw_request.get("content") is None:
        missing.append("request body: it was streamed through")
    url = _build_url(raw_request)
    body = content or b""
    start = float(raw_request.get("timestamp_start") or 0)
    end = float(raw_reply.get("timestamp_end") or 0)
    waits = (round(max(end - start, 0.0), 4),) if body and start and end else ()
    reply = Reply(
        status_of(raw_reply.get("status_code")), read_headers(raw_reply.get("headers")), (body,) if body else (), waits,
        version=_to_text(raw_reply.get("http_version") or "HTTP/1.1"), reason=_to_text(raw_reply.get("reason") or ""),
    )  # fmt: skip
    request = Request(
        _to_text(raw_request["method"]).upper(),
        url,
        read_headers(raw_request.get("headers")),
        raw_request.get("content") or b"",
    )
    item = recorded_exchange(
        source, number, "mitmproxy", request, reply, missing=missing, start=start
    )
    if isinstance(item, Call):
        item.end, item.origin.id = end, _to_text(flow.get("id") or number)
    yield item
    if flow.get("websocket"):
        yield Skipped("a message of a WebSocket", len(flow["websocket"].get("messages") or ()))


def _build_url(raw_request: Mapping[str, Any]) -> str:
    """The address by the name that was asked for; a transparent proxy knows the host's number
    alone.
    """
    named = next(
        (
            value
            for name, value in read_headers(raw_request.get("headers"))
            if name.lower() == "host"
        ),
        "",
    )
    host = _to_text(raw_request.get("authority") or named or raw_request["host"])
    scheme, port = _to_text(raw_request.get("scheme") or "https"), raw_request.get("port")
    usual = {"https": 443, "http": 80}.get(scheme)
    place = host.removesuffix(f":{usual}")
    if port not in (usual, None) and not re.search(r":\d+$", place):
        place = f"{place}:{port}"
    return f"{scheme}://{place}{_to_text(raw_request.get('path') or '/')}"


def _to_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def _parse_value(data: bytes, at: int, limit: int, deep: int) -> tuple[Any, int]:
    """A tnetstring (`5:hello,`) that ends before `limit`, and where it ends."""
    colon = data.index(b":", at, min(at + 13, limit))
    size = int(data[at:colon])
    start, end = colon + 1, colon + 1 + size
    if size < 0 or size > RECORD_CAP or end >= limit or deep > _DEEP:
        raise ValueError("a record breaks off")
    kind = data[end : end + 1]
    if kind == b"]":
        return list(_parse_values(data, start, end, deep)), end + 1
    if kind == b"}":
        flat = list(_parse_values(data, start, end, deep))
        return {
            _to_text(name): value for name, value in zip(flat[::2], flat[1::2], strict=True)
        }, end + 1
    if kind not in _SCALARS:
        raise ValueError("a record of no known type")
    return _SCALARS[kind](data[start:end]), end + 1


def _parse_values(data: bytes, at: int, end: int, deep: int) -> Iterator[Any]:
    while at < end:
        value, at = _parse_value(data, at, end, deep + 1)
        yield value


_SCALARS: dict[bytes, Any] = {
    b",": lambda part: part, b";": lambda part: part.decode("utf-8", "replace"), b"#": int, b"^": float,
    b"!": lambda part: part == b"true", b"~": lambda _: None,
}  # fmt: skip
