"""OpenTelemetry spans in their several JSON spellings -> one: `Traced`, with plain attributes."""

from __future__ import annotations

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
        for name in names:
            if self.attributes.get(name) not in (None, ""):
                return str(self.attributes[name])
        return ""


def plain_value(value: Any) -> Any:
    """An OTLP value (`{stringValue: ...}`) as plain structure."""
    if not isinstance(value, Mapping):
        return value
    for name, inner in value.items():
        if name in (
            "stringValue",
            "boolValue",
            "doubleValue",
            "bytesValue",
            "string_value",
            "bool_value",
        ):
            return inner
        if name in ("intValue", "int_value"):
            return (
                int(inner) if isinstance(inner, int) or str(inner).lstrip("-").isdigit() else inner
            )
        if name in ("arrayValue", "array_value"):
            return [plain_value(each) for each in (inner or {}).get("values") or ()]
        if name in ("kvlistValue", "kvlist_value"):
            return attribute_map((inner or {}).get("values"))
    return None if not value else dict(value)


def attribute_map(attributes: Any) -> dict[str, Any]:
    """Attributes as a map, from either spelling; nested maps of undotted names become dotted ones
    (Phoenix).
    """
    if isinstance(attributes, Mapping):
        flat: dict[str, Any] = {}
        for name, value in attributes.items():
            if "." not in name and isinstance(value, Mapping) and name in _NESTED:
                flat.update(_flatten_map(name, value))
            else:
                flat[name] = value
        return flat
    listed = (each for each in attributes or () if isinstance(each, Mapping))
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
    groups: dict[int, dict[str, Any]] = {}
    start = len(prefix) + 1
    for name, value in attributes.items():
        if name.startswith(prefix) and name[start - 1 : start] == ".":
            number, _, rest = name[start:].partition(".")
            if number.isdigit() and len(number) < 6:
                groups.setdefault(int(number), {})[rest] = value
    return [groups[number] for number in sorted(groups)]


def attribute_seconds(value: Any) -> float:
    """Seconds of the epoch: of nanoseconds (texts too), micro- and milliseconds, ISO times; 0.0 for
    what is no time.
    """
    if isinstance(value, str) and not value.strip().isdigit():
        try:
            at = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return 0.0
    try:
        number = float(value or 0)
    except (TypeError, ValueError):
        return 0.0
    for least, scale in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if number > least:
            return number / scale
    return max(number, 0.0)


def identity(value: Any) -> str:
    """An id; "" for none, and for one that is all zeros (which is none, by the specification)."""
    text = str(value or "")
    return "" if not text.strip("0") else text


def of_span(record: Mapping[str, Any], scope: str = "", line: int = 0) -> Traced:
    """A span of OTLP JSON, of a plain list (strands, Phoenix) or of Jaeger."""
    context = record.get("context") or record.get("span_context") or {}
    tags = record.get("attributes", record.get("tags"))
    attributes = attribute_map(tags)
    if record.get("span_kind") and str(record["span_kind"]).isupper():
        attributes.setdefault("openinference.span.kind", record["span_kind"])
    events = [
        _read_event(each)
        for each in record.get("events") or record.get("span_events") or record.get("logs") or ()
    ]
    start = attribute_seconds(
        _find_first(record, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
    )
    end = attribute_seconds(
        _find_first(record, "endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
    )
    if not end and record.get("duration") and start:
        end = start + float(record["duration"]) / 1e6
    inner = record.get("scope")
    return Traced(
        identity(_find_first(record, "spanId", "span_id", "spanID") or context.get("span_id")),
        identity(_find_first(record, "traceId", "trace_id", "traceID") or context.get("trace_id")),
        identity(_find_first(record, "parentSpanId", "parent_span_id", "parent_id") or _find_parent_reference(record)),
        str(_find_first(record, "name", "operationName", "spanName") or "span"), start, end, attributes, events,
        _find_error(record, attributes, events),
        scope or str((inner or {}).get("name", "") if isinstance(inner, Mapping) else record.get("scopeName") or ""),
        int(_find_first(record, "droppedAttributesCount", "dropped_attributes_count") or 0), line,
    )  # fmt: skip


def _find_first(record: Mapping[str, Any], *names: str) -> Any:
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def _find_parent_reference(record: Mapping[str, Any]) -> Any:
    for each in record.get("references") or ():
        if isinstance(each, Mapping):
            return each.get("spanID")
    return ""


def _read_event(record: Mapping[str, Any]) -> SpanEvent:
    time = _find_first(record, "timeUnixNano", "time_unix_nano", "timestamp", "time")
    about = attribute_map(record.get("attributes", record.get("fields")))
    name = str(_find_first(record, "name", "event_name", "eventName") or about.get("event") or "")
    return SpanEvent(name, attribute_seconds(time), about)


def _find_error(
    record: Mapping[str, Any], attributes: Mapping[str, Any], events: list[SpanEvent]
) -> str:
    """OTLP's status, the console exporter's (`status_code`, `description`), Phoenix's, and Jaeger's
    tags.
    """
    status = record.get("status")
    if isinstance(status, Mapping):
        inner = status
    else:
        inner = {"code": record.get("status_code", status)}
    code = _find_first(inner, "code", "status_code") or attributes.get("otel.status_code")
    failed = str(code).rpartition(".")[2] in ("2", "ERROR", "STATUS_CODE_ERROR")
    if not failed and not ("tags" in record and attributes.get("error") is True):
        return ""
    message = (
        _find_first(inner, "message", "description")
        or record.get("status_message")
        or attributes.get("otel.status_description")
    )
    thrown = next((each.attributes for each in events if each.name == "exception"), {})
    return str(
        thrown.get("exception.message") or message or attributes.get("error.type") or "error"
    )


def of_log(record: Mapping[str, Any]) -> tuple[str, str, SpanEvent]:
    """A log record: its trace, its span and what it says; a structured body joins the attributes."""
    attributes = attribute_map(record.get("attributes"))
    body = plain_value(record.get("body"))
    name = str(_find_first(record, "eventName", "event_name") or attributes.get("event.name") or "")
    if isinstance(body, Mapping):
        attributes["body"] = dict(body)
    elif body is not None:
        attributes["body"] = body
    time = attribute_seconds(
        _find_first(record, "timeUnixNano", "observedTimeUnixNano", "time_unix_nano", "timestamp")
    )
    trace = _find_first(record, "traceId", "trace_id")
    span = _find_first(record, "spanId", "span_id")
    return identity(trace), identity(span), SpanEvent(name, time, attributes)
