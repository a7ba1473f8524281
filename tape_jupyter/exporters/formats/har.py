"""HAR 1.2, which browsers, mitmproxy and Charles open. `_tape` holds what HAR has no field for."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.exporters.plain_bodies import plain_body, text_or_base64
from tape_jupyter.exporters.recording import File, RecordedCall, Recording

TITLE = "HAR 1.2"
SUFFIX = ".har"


def write(recording: Recording) -> list[File]:
    entries = [
        _build_entry(call, request, reply) for call, request, reply in recording.exchanges("HAR")
    ]
    if not entries:
        return []
    log = {
        "version": "1.2",
        "creator": {"name": "tape-jupyter", "version": _read_version()},
        "entries": entries,
    }
    return [
        File(
            json.dumps({"log": log}, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
        )
    ]


def _read_version() -> str:
    from tape_jupyter import __version__

    return __version__


def _build_entry(call: RecordedCall, request: Request, reply: Reply) -> dict[str, Any]:
    first = reply.waits[0] if reply.waits else call.seconds
    wait, receive = round(first * 1000, 3), round(max(call.seconds - first, 0.0) * 1000, 3)
    return {
        "startedDateTime": datetime.fromtimestamp(call.start, UTC).isoformat(
            timespec="milliseconds"
        ),
        "time": wait + receive,
        "request": _build_request(request),
        "response": _build_response(reply),
        "cache": {},
        "timings": {"send": 0, "wait": wait, "receive": receive},
        "comment": f"call {call.id}",
        "_tape": _build_own_fields(call, reply),
    }


def _build_request(request: Request) -> dict[str, Any]:
    query = parse_qsl(urlsplit(request.url).query, keep_blank_values=True)
    request_json: dict[str, Any] = {
        "method": request.method, "url": request.url, "httpVersion": "HTTP/1.1", "cookies": [],
        "headers": _to_pairs(request.headers), "queryString": _to_pairs(tuple(query)), "headersSize": -1,
        "bodySize": len(request.body),
    }  # fmt: skip
    if request.body:
        text, coded = text_or_base64(request.body)
        kind = request.header(
            "content-type", "application/json" if request.body[:1] in (b"{", b"[") else ""
        )
        request_json["postData"] = {
            "mimeType": kind,
            "text": text,
            **({"encoding": "base64"} if coded else {}),
        }
    return request_json


def _build_response(reply: Reply) -> dict[str, Any]:
    body = plain_body(reply.headers, reply.body)
    text, coded = text_or_base64(body)
    content: dict[str, Any] = {
        "size": len(body),
        "mimeType": reply.header("content-type"),
        "text": text,
    }
    if coded:
        content["encoding"] = "base64"
    return {
        "status": reply.status, "statusText": reply.reason, "httpVersion": reply.version, "cookies": [],
        "headers": _to_pairs(reply.headers), "content": content, "redirectURL": reply.header("location"),
        "headersSize": -1, "bodySize": len(reply.body),
    }  # fmt: skip


def _to_pairs(headers: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers]


def _build_own_fields(call: RecordedCall, reply: Reply) -> dict[str, Any]:
    """What `tape import` reads back: the run, the spans, the reads with their times, a body with
    its encoding on.
    """
    tape_fields: dict[str, Any] = {
        "call": call.id, "run": call.run, "spans": list(call.spans), "reads": [len(chunk) for chunk in reply.chunks],
        "waits": list(reply.waits), "end": reply.end if reply.end != "complete" else "",
    }  # fmt: skip
    if reply.header("content-encoding"):
        tape_fields["wire"] = b64encode(reply.body).decode("ascii")
    return {name: value for name, value in tape_fields.items() if value}
