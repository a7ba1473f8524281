"""Tapes of agenttape, as JSON: OpenAI's calls are its `llm` calls, all others its `http` ones."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tape_jupyter.core.call import FunctionCall, Headers, Reply, Request, Value
from tape_jupyter.exporters import plain_bodies
from tape_jupyter.exporters.recording import File, RecordedCall, Recording
from tape_jupyter.providers import editing, registry

TITLE = "agenttape"
SUFFIX = ".json"

_ENDPOINTS = {"openai_chat": "chat.completions", "openai_responses": "responses"}
_NOT_KEPT = ("stream", "stream_options")
_STREAMS = "chunks of streams: agenttape holds the whole reply"
_HEAD = "headers and status of llm calls: agenttape holds the SDK's arguments and its result"
_TYPES = "Python types that JSON has not (tuples, dates, frames, ...)"
_SPANS = "spans, and which tool a call was made in: agenttape has a plain list"
_NO_REPLY = "errors in place of a reply of HTTP calls: agenttape has no place for them"


def write(recording: Recording) -> list[File]:
    rows = [row for call in recording.calls for row in _build_interaction(recording, call)]
    if not rows:
        return []
    start = min((call.start for call in recording.calls if call.start), default=0.0)
    tape = {
        "version": "1", "created_at": datetime.fromtimestamp(start, UTC).isoformat(),
        "run_id": recording.runs[0].id if recording.runs else recording.title,
        "meta": {"mode": "record", "exported_by": "tape-jupyter"},
        "interactions": [{"index": number, **row} for number, row in enumerate(rows)],
    }  # fmt: skip
    return [
        File((json.dumps(tape, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
    ]


def _build_interaction(recording: Recording, call: RecordedCall) -> Iterator[dict[str, Any]]:
    lost = recording.lost
    description = (
        _describe_tool_call(recording, call)
        if isinstance(call.request, FunctionCall)
        else _describe_http_call(recording, call)
    )
    if description is None:
        lost[_NO_REPLY] += 1
        return
    lost[_SPANS] += bool(call.spans or call.parent)
    kind, boundary, request, answer = description
    key = hashlib.sha256(
        json.dumps(request, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    more: dict[str, Any] = {
        "match_key": f"sha256:{key}",
        "latency_ms": round(call.seconds * 1000, 3),
    }
    if isinstance(usage := call.kit.get("usage"), Mapping) and usage:
        counts = {
            "prompt_tokens": int(usage.get("input", 0)),
            "completion_tokens": int(usage.get("output", 0)),
        }
        more["usage"] = {**counts, "total_tokens": sum(counts.values())}
    yield {"kind": kind, "boundary": boundary, "request": request, **answer, **more}


_Told = tuple[str, str, dict[str, Any], dict[str, Any]]
"""Kind, boundary, request, and `{response: ...}` or `{error: ...}`."""


def _describe_tool_call(recording: Recording, call: RecordedCall) -> _Told:
    assert isinstance(call.request, FunctionCall)
    arguments, same = plain_bodies.plain_arguments(call.request)
    value = call.reply if isinstance(call.reply, Value) else Value()
    if value.error is not None:
        kind, message = plain_bodies.error(value.error)
        answer: dict[str, Any] = {"error": {"type": kind, "message": message}}
    else:
        result, as_it_was = plain_bodies.result(value)
        answer, same = {"response": result}, same and as_it_was
    recording.lost[_TYPES] += not same
    return (
        call.request.kind,
        call.request.name,
        {"name": call.request.name, "args": arguments},
        answer,
    )


def _describe_http_call(recording: Recording, call: RecordedCall) -> _Told | None:
    http_request, reply = call.request, call.reply
    if (
        not isinstance(http_request, Request)
        or not isinstance(reply, Reply)
        or reply.status is None
        or reply.status == 101
    ):
        return None
    known = registry.identify(http_request)
    body = plain_bodies.parse_body(http_request.headers, http_request.body)
    answer = editing.reply_message(http_request, reply)
    if known.wire in _ENDPOINTS and isinstance(body, Mapping) and answer is not None:
        recording.lost[_HEAD] += 1
        recording.lost[_STREAMS] += "stream" in body
        plain = {
            name: value
            for name, value in body.items()
            if name not in _NOT_KEPT and value is not None
        }
        return "llm", "llm", {"endpoint": _ENDPOINTS[known.wire], **plain}, {"response": answer}
    request = {
        "method": http_request.method,
        "url": http_request.url,
        "headers": _map_headers(http_request.headers),
        **_encode_body(http_request),
    }
    response = {
        "status_code": reply.status,
        "headers": _map_headers(reply.headers),
        **_encode_body(reply),
    }
    recording.lost[_STREAMS] += len(reply.chunks) > 1
    return "http", "http", request, {"response": response}


def _encode_body(side: Request | Reply) -> dict[str, Any]:
    """A body as agenttape's HTTP calls have it: JSON (and its bytes, where it was written in
    another way), or text.
    """
    data = plain_bodies.plain_body(side.headers, side.body)
    if not data:
        return {}
    text, coded = plain_bodies.text_or_base64(data)
    if coded:
        return {"body_b64": text}
    if "json" in _find_content_type(side):
        parsed = plain_bodies.parse_body((), data)
    else:
        parsed = None
    if parsed is None:
        return {"text": text}
    same = json.dumps(parsed, ensure_ascii=False).encode("utf-8", "replace") == data
    if same:
        return {"json": parsed}
    return {"json": parsed, "raw_b64": base64.b64encode(data).decode("ascii")}


def _find_content_type(side: Request | Reply) -> str:
    return side.header("content-type") or (
        "application/json" if side.body[:1] in (b"{", b"[") else ""
    )


def _map_headers(headers: Headers) -> dict[str, str]:
    """One value a name; a body without its content-encoding is told so."""
    dropped = ("content-encoding", "content-length", "transfer-encoding")
    return {name: value for name, value in headers if name.lower() not in dropped}
