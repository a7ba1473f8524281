"""A recording as OTLP JSON: a trace for each run, a span for each call and for each step around
calls.

Which attributes a call has is the convention's (formats/otlp.py, formats/openinference.py). Beside
them every call has `tape.call`, its exact request and reply as JSON, which `tape import` reads;
nobody else has to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from tape_jupyter.core.call import FunctionCall, Headers, Reply, Request, Value
from tape_jupyter.exporters import conversations, plain_bodies
from tape_jupyter.exporters.conversations import ExportedConversation
from tape_jupyter.exporters.recording import File, RecordedCall, Recording
from tape_jupyter.providers import registry

Attributes = dict[str, Any]
OWN = "tape.call"
RUN = "tape.run"
TOP = "tape.top"
"""Marks a span right below that of its run."""

_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2
_TYPES = "Python types that JSON has not (tuples, dates, frames, ...): they are written as the cassette writes them"
_DID = "what tools did besides returning (files, output, state)"
_FRAMES = "frames of WebSockets"


class Convention(Protocol):
    """How a convention tells of calls, as attributes."""

    def model(self, call: RecordedCall, conversation: ExportedConversation) -> Attributes: ...

    def tool(self, call: RecordedCall, arguments: Mapping[str, Any], result: Any) -> Attributes: ...

    def step(self) -> Attributes:
        """Of a span that is no call."""
        ...


def write_spans(recording: Recording, convention: Convention) -> list[File]:
    """One document of OTLP JSON."""
    spans = list(_Spans(recording, convention).spans())
    if not spans:
        return []
    scope = {"name": "tape-jupyter", "version": _read_version()}
    resource = {
        "attributes": _encode_attributes(
            {"service.name": recording.title, "telemetry.sdk.name": "tape-jupyter"}
        )
    }
    document = {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]
    }
    return [File(json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8", "replace"))]


def _read_version() -> str:
    from tape_jupyter import __version__

    return __version__


class _Spans:
    """The spans of one recording. A step's span is made with its first call, and ends with its
    last.
    """

    def __init__(self, recording: Recording, convention: Convention) -> None:
        self._recording, self._convention = recording, convention
        self._runs = {run.id: run for run in recording.runs}
        self._steps: dict[str, dict[str, Any]] = {}
        self._times: dict[str, tuple[float, float]] = {}
        self._calls = {call.id: call for call in recording.calls}

    def spans(self) -> Iterator[dict[str, Any]]:
        call_spans = [self._build_call_span(call) for call in self._recording.calls]
        for key, step in self._steps.items():
            start, end = self._times[key]
            yield {
                **step,
                "startTimeUnixNano": _to_nanoseconds(start),
                "endTimeUnixNano": _to_nanoseconds(end),
            }
        yield from call_spans

    def _build_call_span(self, call: RecordedCall) -> dict[str, Any]:
        parent, top = self._find_parent(call)
        name, attributes, events = self._describe_call(call)
        failed = _find_failure(call)
        if failed:
            attributes.setdefault("error.type", failed[0])
        return {
            "traceId": _derive_trace_id(call.run), "spanId": _derive_span_id(call.id), "parentSpanId": parent,
            "name": name,
            "kind": _CLIENT if isinstance(call.request, Request) else _INTERNAL,
            "startTimeUnixNano": _to_nanoseconds(call.start),
            "endTimeUnixNano": _to_nanoseconds(call.start + call.seconds),
            "attributes": _encode_attributes({**attributes, **({TOP: True} if top else {})}), "events": events,
            "status": {"code": _ERROR, "message": failed[1]} if failed else {"code": _OK},
        }  # fmt: skip

    def _find_parent(self, call: RecordedCall) -> tuple[str, bool]:
        """The span right above a call, and whether that is its run's."""
        run = self._ensure_step_span(
            f"run {call.run}", call, "", self._find_title(call.run), top=False
        )
        caller = self._calls.get(call.parent)
        above, key, around = run, f"run {call.run}", call.spans
        if caller is not None and caller is not call:
            above, key = _derive_span_id(caller.id), f"call {caller.id}"
            if call.spans[: len(caller.spans)] == caller.spans:
                shared = len(caller.spans)
            else:
                shared = 0
            around = call.spans[shared:]
        for name in around:
            top = above == run
            key = f"{key} / {name}"
            above = self._ensure_step_span(key, call, above, name, top=top)
        return above, above == run

    def _find_title(self, run: str) -> str:
        known = self._runs.get(run)
        return known.title if known is not None else run

    def _ensure_step_span(
        self, key: str, call: RecordedCall, parent: str, name: str, *, top: bool
    ) -> str:
        start, end = self._times.get(key, (call.start, 0.0))
        self._times[key] = min(start, call.start), max(end, call.start + call.seconds)
        if key not in self._steps:
            attributes = _build_step_attributes(key, call.run, top=top)
            run = self._runs.get(call.run) if RUN in attributes else None
            if run is not None and run.failed:
                status = {"code": _ERROR, "message": run.failed}
            else:
                status = {"code": _OK}
            self._steps[key] = {
                "traceId": _derive_trace_id(call.run), "spanId": _derive_span_id(key), "parentSpanId": parent,
                "name": name, "kind": _INTERNAL,
                "attributes": _encode_attributes({**self._convention.step(), **attributes}), "status": status,
            }  # fmt: skip
        return str(self._steps[key]["spanId"])

    def _describe_call(self, call: RecordedCall) -> tuple[str, Attributes, list[dict[str, Any]]]:
        """The name, the attributes and the events of a call."""
        lost = self._recording.lost
        if isinstance(call.request, FunctionCall):
            value = call.reply if isinstance(call.reply, Value) else Value()
            arguments, same = plain_bodies.plain_arguments(call.request)
            if value.error is None:
                result, as_it_was = plain_bodies.result(value)
            else:
                result, as_it_was = None, True
            lost[_TYPES] += not (same and as_it_was)
            lost[_DID] += bool(value.did or value.effects)
            if value.error is not None:
                events = _build_exception_events(value.error, call)
            else:
                events = []
            attributes = {
                **self._convention.tool(call, arguments, result),
                OWN: _encode_tool_call(call, arguments, result),
            }
            return f"execute_tool {call.request.name}", attributes, events
        reply = call.reply if isinstance(call.reply, Reply) else Reply(None)
        lost[_FRAMES] += reply.status == 101
        attributes = {
            **_describe_http(call.request, reply),
            OWN: _encode_exchange(call, call.request, reply),
        }
        if reply.error is not None:
            events = _build_exception_events(reply.error, call)
        else:
            events = []
        if call.kind == "model" or registry.identify(call.request).wire:
            conversation = conversations.export_conversation(call.request, reply)
            name = f"{'embeddings' if 'embed' in conversation.facts.api else 'chat'} {conversation.facts.model}".strip()
            return name, {**self._convention.model(call, conversation), **attributes}, events
        return f"{call.request.method} {urlsplit(call.request.url).hostname}", attributes, events


def _build_step_attributes(key: str, run: str, *, top: bool) -> Attributes:
    if key.startswith("run ") and " / " not in key:
        return {RUN: run}
    return {TOP: True} if top else {}


def _describe_http(request: Request, reply: Reply) -> Attributes:
    """OpenTelemetry's conventions for HTTP clients."""
    url = urlsplit(request.url)
    attributes = {
        "http.request.method": request.method,
        "url.full": request.url,
        "server.address": url.hostname or "",
    }
    port = {"https": 443, "http": 80}.get(url.scheme)
    with contextlib.suppress(ValueError):  # no number
        port = url.port or port
    status = {"http.response.status_code": reply.status} if reply.status is not None else {}
    return {**attributes, **({"server.port": port} if port else {}), **status}


def _encode_exchange(call: RecordedCall, http_request: Request, http_reply: Reply) -> str:
    """Everything of the exchange, as one JSON text."""
    reply: dict[str, Any] = {
        "status": http_reply.status,
        "headers": _to_pairs(http_reply.headers),
        **_encode_body(http_reply.body),
        "version": http_reply.version,
        "reason": http_reply.reason,
        "reads": [len(chunk) for chunk in http_reply.chunks],
        "waits": list(http_reply.waits),
        "end": http_reply.end,
        "error": dict(http_reply.error) if http_reply.error is not None else None,
    }
    request = {
        "method": http_request.method,
        "url": http_request.url,
        "headers": _to_pairs(http_request.headers),
        **_encode_body(http_request.body),
    }
    exchange = {
        "kind": call.kind,
        "name": call.name,
        "failed": call.failed,
        "request": request,
        "reply": reply,
    }
    return json.dumps(exchange, ensure_ascii=False, separators=(",", ":"))


def _encode_tool_call(call: RecordedCall, arguments: Mapping[str, Any], result: Any) -> str:
    assert isinstance(call.request, FunctionCall)
    record = {
        "kind": call.request.kind,
        "name": call.request.name,
        "failed": call.failed,
        "arguments": dict(arguments),
    }
    error = call.reply.error
    return json_text(
        {**record, **({"error": dict(error)} if error is not None else {"value": result})}
    )


def _encode_body(data: bytes) -> dict[str, str]:
    text, coded = plain_bodies.text_or_base64(data)
    return {"base64" if coded else "text": text}


def _to_pairs(headers: Headers) -> list[list[str]]:
    return [list(pair) for pair in headers]


def _find_failure(call: RecordedCall) -> tuple[str, str] | None:
    """The class and the message of what went wrong; None where nothing did."""
    reply = call.reply
    if reply.error is not None:
        return plain_bodies.error(reply.error)
    if isinstance(reply, Reply) and (reply.status or 0) >= 400:
        provider_error = ""
        if isinstance(call.request, Request):
            provider_error = registry.call_facts(call.request, reply).error
        return str(
            reply.status
        ), call.failed or provider_error or f"{reply.status} {reply.reason}".strip()
    return None


def _build_exception_events(error: Any, call: RecordedCall) -> list[dict[str, Any]]:
    kind, message = plain_bodies.error(error)
    attributes = {"exception.type": kind, "exception.message": message}
    at = _to_nanoseconds(call.start + call.seconds)
    return [{"timeUnixNano": at, "name": "exception", "attributes": _encode_attributes(attributes)}]


def _derive_trace_id(run: str) -> str:
    return hashlib.sha256(f"tape run {run}".encode()).hexdigest()[:32]


def _derive_span_id(name: str) -> str:
    return hashlib.sha256(f"tape span {name}".encode()).hexdigest()[:16]


def _to_nanoseconds(seconds: float) -> str:
    return str(round(seconds * 1e6) * 1000)


def _encode_attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": _encode_value(value)}
        for name, value in attributes.items()
        if value is not None
    ]


def _encode_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)} if abs(value) < 2**63 else {"stringValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value} if value - value == 0.0 else {"stringValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_encode_value(each) for each in value]}}
    return {"stringValue": value if isinstance(value, str) else json_text(value)}


def json_text(value: Any) -> str:
    """A value as JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)


def filled_attributes(values: Mapping[str, Any]) -> Attributes:
    """The attributes that say something."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}
