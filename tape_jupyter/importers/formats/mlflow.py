"""Traces of MLflow: `Trace.to_json()`, `traces.json` of its file store, rows of `search_traces()`.

A stream's chunks are events with their times, and become a stream with its pace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import attributes, conventions, observed
from tape_jupyter.importers.attributes import Traced
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepFailure,
    StepModel,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.rows import decode_field, listed_field, mapping_field, source_rows
from tape_jupyter.importers.source import Broken, Source, load
from tape_jupyter.importers.trace import Call, Item, Run, Skipped, each
from tape_jupyter.providers.json_access import as_list

TITLE = "MLflow"

_KINDS = {
    "LLM": "model",
    "CHAT_MODEL": "model",
    "EMBEDDING": "model",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
}
_CHUNK = "mlflow.chunk.item."


def recognises(source: Source) -> int:
    text = source.head_text
    if "mlflow.spanInputs" in text or "mlflow.spanType" in text or "mlflow.traceRequestId" in text:
        return 90
    return 85 if {"info", "data"} <= source.top and "mlflow" in text else 0


def read(source: Source) -> Iterator[Item]:
    for path, row, line in source_rows(source, "traces", "spans"):
        if isinstance(row, Broken):
            yield Skipped(
                f"a record that breaks off or is not JSON: {row.reason}", line=line, text=row.text
            )
        elif path[:1] == ("info",) or path[:1] == ("data",):
            yield from each(partial(_read_trace, source.name, {path[0]: row}, line), line)
        elif isinstance(row, dict) and ("span_id" in row or "context" in row):
            yield from each(partial(_read_span, source.name, row, line), line)
        elif isinstance(row, dict):
            yield from each(partial(_read_trace, source.name, row, line), line)
        elif not path or path[-1] == "[]":
            yield Skipped("a record that is no trace", line=line, text=str(row))


def _read_trace(file: str, row: Mapping[str, Any], line: int) -> Iterator[Item]:
    row = {**row, **mapping_field(row.get("trace"))}  # a row of `search_traces`
    info, data = mapping_field(row.get("info")), mapping_field(row.get("data"))
    spans = listed_field(data.get("spans") or row.get("spans"))
    if not spans and not info:
        yield Skipped("a record that is no trace", line=line)
        return
    trace = ""
    for span in spans:
        if record := mapping_field(span):
            item = _build_span(file, record, line)
            trace = item.trace
            yield item
        else:
            yield Skipped("a span that is not a JSON object", line=line)
    if info and trace:
        tags = mapping_field(info.get("tags"))
        about = mapping_field(info.get("trace_metadata") or info.get("request_metadata"))
        named = {
            name.rpartition(".")[2]: about[name]
            for name in ("mlflow.trace.session", "mlflow.trace.user")
            if about.get(name)
        }
        yield Run(trace, str(tags.get("mlflow.traceName") or ""), named)
    elif info:
        yield Skipped("a trace without its spans", line=line)


def _read_span(file: str, span: Mapping[str, Any], line: int) -> Iterator[Item]:
    yield _build_span(file, span, line)


def _build_span(file: str, record: Mapping[str, Any], line: int) -> Any:
    span = attributes.of_span(record, "", line)
    span.attributes = {name: _parse_value(value) for name, value in span.attributes.items()}
    kind: Any = _KINDS.get(
        str(span.attributes.get("mlflow.spanType") or record.get("span_type")).upper(), "span"
    )
    if "mlflow.spanInputs" not in span.attributes:
        item = conventions.item_of_span(span, file)
        if isinstance(item, Call) or kind == "span":
            return item
    return observed.item(_build_step(span, kind), "mlflow", file)


def _read_chunk_number(name: str) -> int:
    number = name.removeprefix(_CHUNK)
    return int(number) if number.isdigit() else 0


def _build_step(span: Traced, kind: Any) -> ObservedStep:
    span_attributes = span.attributes
    form = str(span_attributes.get("mlflow.message.format") or "")
    thrown = next((event.attributes for event in span.events if event.name == "exception"), {})
    thrown_type = _parse_value(thrown.get("exception.type"))
    model = span_attributes.get("mlflow.llm.model") or span_attributes.get("model")
    chunks = [each for each in span.events if each.name.startswith(_CHUNK)]
    chunks.sort(key=lambda each: _read_chunk_number(each.name))
    seen = ObservedStep(
        kind=kind,
        name=span.name,
        place=StepPlace(
            id=span.id,
            trace=span.trace,
            parent=span.parent,
            start=span.start,
            end=span.end,
            line=span.line,
        ),
        input=span_attributes.get("mlflow.spanInputs"),
        output=span_attributes.get("mlflow.spanOutputs"),
        failure=StepFailure(message=span.error, type_name=str(thrown_type or "")),
        asked=StepModel(
            model=str(model or ""),
            provider=str(span_attributes.get("mlflow.llm.provider") or form or ""),
            tools=as_list(span_attributes.get("mlflow.chat.tools")),
        ),
        usage=usage_of(span_attributes.get("mlflow.chat.tokenUsage")),
    )
    if kind == "model" and chunks:
        values = [decode_field(each.attributes.get("mlflow.chunk.value")) for each in chunks]
        if all(isinstance(each, Mapping) for each in values):
            seen.arrival.chunks = [_strip_nulls(each) for each in values]
            if span.start:
                seen.arrival.waits = [max(each.time - span.start, 0.0) for each in chunks]
            seen.notes.assumed.append("chunks without the nulls that the SDK's classes add")
    return seen


def _parse_value(value: Any) -> Any:
    """Every attribute is JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return load(value)
    except ValueError:
        return value


_NULLS = (
    "function_call",
    "refusal",
    "role",
    "tool_calls",
    "logprobs",
    "moderation",
    "service_tier",
    "usage",
    "audio",
)


def _strip_nulls(chunk: Any) -> Any:
    """A chunk less what a dump of its class fills in."""
    if isinstance(chunk, Mapping):
        return {
            name: _strip_nulls(value)
            for name, value in chunk.items()
            if value is not None or name not in _NULLS
        }
    if isinstance(chunk, list):
        return [_strip_nulls(each) for each in chunk]
    return chunk
