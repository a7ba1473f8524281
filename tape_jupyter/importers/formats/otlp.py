"""OpenTelemetry traces and logs as JSON: OTLP, lists of spans (Phoenix, strands), Tempo, Jaeger.

One document, or one a line; ids as hex or base64, numbers or names of enums, camelCase or
snake_case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tape_jupyter.importers import attributes, conventions
from tape_jupyter.importers.attributes import SpanEvent, Traced
from tape_jupyter.importers.source import Broken, Source
from tape_jupyter.importers.trace import TWICE, Call, Item, Skipped, Span, each

TITLE = "OpenTelemetry (OTLP JSON)"

_RESOURCES = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_SPANS = ("spans", "logRecords", "log_records")
_LOGS = ("logRecords", "log_records")
_AROUND = ("data", "trace", "traces")
_ENTERED = {*_RESOURCES, *_SCOPES, *_SPANS, *_AROUND}


def recognises(source: Source) -> int:
    if source.top & {*_RESOURCES} or (
        "spans" in source.keys and {"scopeSpans", "scope_spans"} & source.keys
    ):
        return 90
    if source.top & {"trace", "traces"} and "spans" in source.keys and source.keys & {*_RESOURCES}:
        return 80
    if "mlflow." in source.head_text:
        return 0
    first = source.first if isinstance(source.first, dict) else {}
    if first.keys() >= {"attributes"} and first.keys() & {
        "span_id",
        "spanId",
        "context",
        "spanName",
    }:
        return 75
    jaeger = {"spanID", "traceID", "operationName"} <= source.keys
    phoenix = {"context", "span_kind", "attributes", "trace_id"} <= source.keys
    return 75 if jaeger or phoenix else 0


def _build_path_filter(source: Source) -> Callable[[tuple[str, ...]], bool]:
    """What is taken apart: lists, and the objects around spans; a span of its own comes whole."""
    around = source.head_text[:1] == "[" or bool(source.top & _ENTERED)

    def is_entered(path: tuple[str, ...]) -> bool:
        if not path:
            return around
        if path[-1] == "[]":
            return len(path) > 1 and path[-2] in (*_RESOURCES, *_SCOPES)
        return path[-1] in _ENTERED

    return is_entered


def read(source: Source) -> Iterator[Item]:
    joined = begin()
    yield from joined.read(source)
    yield from (item for _, item in joined.rest())


def begin() -> JoinedFiles:
    """What reads several files of one import: a collector writes spans and log records apart."""
    return JoinedFiles()


class JoinedFiles:
    """What of an import's files waits for its end: spans whose messages may stand in log records,
    and those records. Ids of traces are one's own in all the world: files that have the same one
    tell of one trace.
    """

    def __init__(self) -> None:
        self._source, self._scope = Source(Path()), ""
        self._waiting: dict[tuple[str, str], tuple[Source, Traced]] = {}
        self._logs: dict[tuple[str, str], tuple[Source, list[SpanEvent]]] = {}
        self._joined: set[tuple[str, str]] = set()

    def read(self, source: Source) -> Iterator[Item]:
        """The items of one file, but for those that wait."""
        self._source, self._scope = source, ""
        for path, value, line in source.values(_build_path_filter(source)):
            if isinstance(value, Broken):
                yield Skipped(f"the file breaks off: {value.reason}", line=line, text=value.text)
            elif not path or path[-1] == "[]":
                logs = len(path) > 1 and path[-2] in _LOGS
                yield from self._read_log(value, line) if logs else self._read_spans(value, line)
            elif path[-1] in ("scope", "instrumentationLibrary"):
                if isinstance(value, Mapping):
                    self._scope = str(value.get("name") or "")
                else:
                    self._scope = ""
            elif len(path) == 1 and value and isinstance(value, (dict, list)):
                yield Skipped(f"{path[0][:40]}: they are no spans", line=line)

    def _read_spans(self, value: Any, line: int) -> Iterator[Item]:
        if not isinstance(value, Mapping):
            yield Skipped("an item that is no span", line=line)
            return
        yield from each(lambda: self._read_items(value, line), line)

    def _read_items(self, value: Any, line: int) -> Iterator[Item]:
        count = 0
        for span in _find_spans(value, self._scope, line):
            count += 1
            if not span.id or not conventions.wants_content(span):
                item = conventions.item_of_span(span, self._source.name)
                if isinstance(item, Call):
                    self._joined.add((span.trace, span.id))
                yield item
                continue
            if (span.trace, span.id) in self._waiting:
                yield Skipped(TWICE, line=line)
            self._waiting[span.trace, span.id] = self._source, span
        if not count:
            yield Skipped("an item that holds no span", line=line)

    def _read_log(self, value: Any, line: int) -> Iterator[Item]:
        trace, span_id, event = attributes.of_log(value if isinstance(value, Mapping) else {})
        if span_id and (
            event.name.startswith("gen_ai.") or "gen_ai.input.messages" in event.attributes
        ):
            self._logs.setdefault((trace, span_id), (self._source, []))[1].append(event)
        else:
            yield Skipped("a log record without a model call", line=line)

    def rest(self) -> Iterator[tuple[Source, Item]]:
        """What waited, each with its file."""
        for key, (source, span) in self._waiting.items():
            _, events = self._logs.pop(key, (source, []))
            for item in each(partial(self._read_waiting_span, span, source, events), span.line):
                yield source, item
        for (trace, span_id), (source, events) in self._logs.items():
            if (trace, span_id) in self._joined:
                yield source, Skipped("a log record that repeats what its span says", len(events))
                continue
            orphan = _build_span(trace, span_id, events)
            for item in each(partial(self._read_waiting_span, orphan, source, []), orphan.line):
                yield source, item

    @staticmethod
    def _read_waiting_span(span: Traced, source: Source, events: list[SpanEvent]) -> Iterator[Item]:
        item = conventions.item_of_span(span, source.name, events)
        if isinstance(item, Span):
            source.counted(f"model calls {conventions.why_empty(span)}: they are spans")
        yield item


def _find_spans(value: Any, scope: str, line: int) -> Iterator[Traced]:
    """The spans that a value holds: it is one, or a request, or a trace of Jaeger."""
    if not isinstance(value, Mapping):
        return
    for outer in (*_RESOURCES, *_SCOPES, *_SPANS):
        for one in value.get(outer) or ():
            inner = value.get("scope") if outer in _SPANS else None
            yield from _find_spans(
                one, str(inner.get("name", "")) if isinstance(inner, Mapping) else scope, line
            )
    if (
        not {*_RESOURCES, *_SCOPES, *_SPANS} & value.keys()
        and {"attributes", "tags", "name", "spanId"} & value.keys()
    ):
        yield attributes.of_span(value, scope, line)


def _build_span(trace: str, span_id: str, events: list[SpanEvent]) -> Traced:
    """Log records of a span that is not in the file, as that span."""
    span_attributes = {
        name: value
        for event in events
        for name, value in event.attributes.items()
        if name != "body"
    }
    start = min((event.time for event in events if event.time), default=0.0)
    span_attributes.setdefault("gen_ai.operation.name", "chat")
    return Traced(
        span_id,
        trace,
        "",
        f"chat {span_attributes.get('gen_ai.request.model', '')}".strip(),
        start,
        0.0,
        span_attributes,
        events,
    )
