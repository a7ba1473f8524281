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
    entries = [_build_entry(call, asked, said) for call, asked, said in recording.exchanges("HAR")]
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


def _build_entry(call: RecordedCall, asked: Request, said: Reply) -> dict[str, Any]:
    first = said.waits[0] if said.waits else call.seconds
    wait, receive = round(first * 1000, 3), round(max(call.seconds - first, 0.0) * 1000, 3)
    return {
        "startedDateTime": datetime.fromtimestamp(call.start, UTC).isoformat(
            timespec="milliseconds"
        ),
        "time": wait + receive,
        "request": _build_request(asked),
        "response": _build_response(said),
        "cache": {},
        "timings": {"send": 0, "wait": wait, "receive": receive},
        "comment": f"call {call.id}",
        "_tape": _build_own_fields(call, said),
    }


def _build_request(asked: Request) -> dict[str, Any]:
    query = parse_qsl(urlsplit(asked.url).query, keep_blank_values=True)
    told: dict[str, Any] = {
        "method": asked.method, "url": asked.url, "httpVersion": "HTTP/1.1", "cookies": [],
        "headers": _to_pairs(asked.headers), "queryString": _to_pairs(tuple(query)), "headersSize": -1,
        "bodySize": len(asked.body),
    }  # fmt: skip
    if asked.body:
        text, coded = text_or_base64(asked.body)
        kind = asked.header(
            "content-type", "application/json" if asked.body[:1] in (b"{", b"[") else ""
        )
        told["postData"] = {
            "mimeType": kind,
            "text": text,
            **({"encoding": "base64"} if coded else {}),
        }
    return told


def _build_response(said: Reply) -> dict[str, Any]:
    body = plain_body(said.headers, said.body)
    text, coded = text_or_base64(body)
    content: dict[str, Any] = {
        "size": len(body),
        "mimeType": said.header("content-type"),
        "text": text,
    }
    if coded:
        content["encoding"] = "base64"
    return {
        "status": said.status, "statusText": said.reason, "httpVersion": said.version, "cookies": [],
        "headers": _to_pairs(said.headers), "content": content, "redirectURL": said.header("location"),
        "headersSize": -1, "bodySize": len(said.body),
    }  # fmt: skip


def _to_pairs(told: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in told]


def _build_own_fields(call: RecordedCall, said: Reply) -> dict[str, Any]:
    """What `tape import` reads back: the run, the spans, the reads with their times, a body with
    its encoding on.
    """
    told: dict[str, Any] = {
        "call": call.id, "run": call.run, "spans": list(call.spans), "reads": [len(chunk) for chunk in said.chunks],
        "waits": list(said.waits), "end": said.end if said.end != "complete" else "",
    }  # fmt: skip
    if said.header("content-encoding"):
        told["wire"] = b64encode(said.body).decode("ascii")
    return {name: value for name, value in told.items() if value}
