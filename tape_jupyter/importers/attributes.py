"""OpenTelemetry spans in their several JSON spellings -> one: `Traced`, with plain attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(slots=True)
class SpanEvent:
    """What happened in a span, or a log record of it. `time` is seconds of the epoch."""

    name: str
    time: float
    attributes: dict[str, Any]


@dataclass(slots=True)
class Traced:
    """One span. `error` is its status message or its exception's, "" where it went well."""

    id: str
    trace: str
    parent: str
    name: str
    start: float
    end: float
    attributes: dict[str, Any]
    events: list[SpanEvent] = field(default_factory=list)
    error: str = ""
    scope: str = ""
    dropped: int = 0
    line: int = 0

    def text(self, *names: str) -> str:
        """The first of these attributes that is there, as text."""
        return next(
            (
                str(self.attributes[name])
                for name in names
                if self.attributes.get(name) not in (None, "")
            ),
            "",
        )


def plain_value(value: Any) -> Any:
    """An OTLP value (`{stringValue: ...}`) as plain structure."""
    if not isinstance(value, Mapping):
        return value
    for name, told in value.items():
        if name in (
            "stringValue",
            "boolValue",
            "doubleValue",
            "bytesValue",
            "string_value",
            "bool_value",
        ):
            return told
        if name in ("intValue", "int_value"):
            return int(told) if isinstance(told, int) or str(told).lstrip("-").isdigit() else told
        if name in ("arrayValue", "array_value"):
            return [plain_value(each) for each in (told or {}).get("values") or ()]
        if name in ("kvlistValue", "kvlist_value"):
            return attribute_map((told or {}).get("values"))
    return None if not value else dict(value)


def attribute_map(told: Any) -> dict[str, Any]:
    """Attributes as a map, from either spelling; nested maps of undotted names become dotted ones
    (Phoenix).
    """
    if isinstance(told, Mapping):
        found: dict[str, Any] = {}
        for name, value in told.items():
            if "." not in name and isinstance(value, Mapping) and name in _NESTED:
                found.update(_flatten_map(name, value))
            else:
                found[name] = value
        return found
    listed = (each for each in told or () if isinstance(each, Mapping))
    return {str(each.get("key", "")): plain_value(each.get("value")) for each in listed}


_NESTED = {
    "llm",
    "input",
    "output",
    "openinference",
    "tool",
    "retrieval",
    "embedding",
    "gen_ai",
    "session",
    "user",
}


def _flatten_map(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten_map(f"{name}.{key}", inner)
    elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        for place, inner in enumerate(value):
            yield from _flatten_map(f"{name}.{place}", inner)
    else:
        yield name, value


def indexed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """`prefix.0.a.b`, `prefix.1.a` as a list of maps of what follows the number."""
    found: dict[int, dict[str, Any]] = {}
    start = len(prefix) + 1
    for name, value in attributes.items():
        if name.startswith(prefix) and name[start - 1 : start] == ".":
            number, _, rest = name[start:].partition(".")
            if number.isdigit() and len(number) < 6:
                found.setdefault(int(number), {})[rest] = value
    return [found[number] for number in sorted(found)]


def attribute_seconds(told: Any) -> float:
    """Seconds of the epoch: of nanoseconds (texts too), micro- and milliseconds, ISO times; 0.0 for
    what is no time.
    """
    if isinstance(told, str) and not told.strip().isdigit():
        try:
            at = datetime.fromisoformat(told.strip().removesuffix(" UTC"))
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return 0.0
    try:
        number = float(told or 0)
    except (TypeError, ValueError):
        return 0.0
    for least, scale in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if number > least:
            return number / scale
    return max(number, 0.0)


def identity(told: Any) -> str:
    """An id; "" for none, and for one that is all zeros (which is none, by the specification)."""
    text = str(told or "")
    return "" if not text.strip("0") else text


def of_span(told: Mapping[str, Any], scope: str = "", line: int = 0) -> Traced:
    """A span of OTLP JSON, of a plain list (strands, Phoenix) or of Jaeger."""
    context = told.get("context") or told.get("span_context") or {}
    tags = told.get("attributes", told.get("tags"))
    attributes = attribute_map(tags)
    if told.get("span_kind") and str(told["span_kind"]).isupper():
        attributes.setdefault("openinference.span.kind", told["span_kind"])
    events = [
        _read_event(each)
        for each in told.get("events") or told.get("span_events") or told.get("logs") or ()
    ]
    start = attribute_seconds(
        _find_first(told, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
    )
    end = attribute_seconds(
        _find_first(told, "endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
    )
    if not end and told.get("duration") and start:
        end = start + float(told["duration"]) / 1e6
    inner = told.get("scope")
    return Traced(
        identity(_find_first(told, "spanId", "span_id", "spanID") or context.get("span_id")),
        identity(_find_first(told, "traceId", "trace_id", "traceID") or context.get("trace_id")),
        identity(_find_first(told, "parentSpanId", "parent_span_id", "parent_id") or _find_parent_reference(told)),
        str(_find_first(told, "name", "operationName", "spanName") or "span"), start, end, attributes, events,
        _find_error(told, attributes, events),
        scope or str((inner or {}).get("name", "") if isinstance(inner, Mapping) else told.get("scopeName") or ""),
        int(_find_first(told, "droppedAttributesCount", "dropped_attributes_count") or 0), line,
    )  # fmt: skip


def _find_first(told: Mapping[str, Any], *names: str) -> Any:
    return next((told[name] for name in names if told.get(name) not in (None, "")), None)


def _find_parent_reference(told: Mapping[str, Any]) -> Any:
    return next(
        (each.get("spanID") for each in told.get("references") or () if isinstance(each, Mapping)),
        "",
    )


def _read_event(told: Mapping[str, Any]) -> SpanEvent:
    time = _find_first(told, "timeUnixNano", "time_unix_nano", "timestamp", "time")
    about = attribute_map(told.get("attributes", told.get("fields")))
    name = str(_find_first(told, "name", "event_name", "eventName") or about.get("event") or "")
    return SpanEvent(name, attribute_seconds(time), about)


def _find_error(
    told: Mapping[str, Any], attributes: Mapping[str, Any], events: list[SpanEvent]
) -> str:
    """OTLP's status, the console exporter's (`status_code`, `description`), Phoenix's, and Jaeger's
    tags.
    """
    status = told.get("status")
    inner = status if isinstance(status, Mapping) else {"code": told.get("status_code", status)}
    code = _find_first(inner, "code", "status_code") or attributes.get("otel.status_code")
    failed = str(code).rpartition(".")[2] in ("2", "ERROR", "STATUS_CODE_ERROR")
    if not failed and not ("tags" in told and attributes.get("error") is True):
        return ""
    said = (
        _find_first(inner, "message", "description")
        or told.get("status_message")
        or attributes.get("otel.status_description")
    )
    thrown = next((each.attributes for each in events if each.name == "exception"), {})
    return str(thrown.get("exception.message") or said or attributes.get("error.type") or "error")


def of_log(told: Mapping[str, Any]) -> tuple[str, str, SpanEvent]:
    """A log record: its trace, its span and what it says; a structured body joins the attributes."""
    attributes = attribute_map(told.get("attributes"))
    body = plain_value(told.get("body"))
    name = str(_find_first(told, "eventName", "event_name") or attributes.get("event.name") or "")
    if isinstance(body, Mapping):
        attributes["body"] = dict(body)
    elif body is not None:
        attributes["body"] = body
    time = attribute_seconds(
        _find_first(told, "timeUnixNano", "observedTimeUnixNano", "time_unix_nano", "timestamp")
    )
    trace, span = _find_first(told, "traceId", "trace_id"), _find_first(told, "spanId", "span_id")
    return identity(trace), identity(span), SpanEvent(name, time, attributes)


def attribute_text(value: Any) -> str:
    """A value as text: itself, or its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
