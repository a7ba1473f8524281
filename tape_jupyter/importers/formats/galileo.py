"""Records of Galileo (`export_records()`, JSON Lines): spans inside of spans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tape_jupyter.importers import observed
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepFailure,
    StepModel,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.recorded import status_of
from tape_jupyter.importers.rows import decode_field, listed_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Run, Skipped, each

TITLE = "Galileo"

_KINDS = {"llm": "model", "tool": "tool", "retriever": "retrieval"}
_OUTER = ("trace", "workflow", "agent", "session")
_DEEPEST = 200


def recognises(source: Source) -> int:
    if {"redacted_input", "type"} <= source.keys or {
        "num_input_tokens",
        "duration_ns",
        "type",
    } <= source.keys:
        return 85
    return 70 if {"spans", "type", "metrics", "status_code"} <= source.keys else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name), "records", "traces")


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    trace = str(row.get("trace_id") or row.get("id") or f"line {line}")
    if row.get("type") == "trace":
        yield Run(trace, str(row.get("name") or ""))
    yield from _read_span(file, row, trace, str(row.get("parent_id") or ""), line, 0)


def _read_span(
    file: str, row: Any, trace: str, parent: str, line: int, depth: int, unnamed: str = ""
) -> Iterator[Item]:
    kind = str(row.get("type") or "")
    if kind not in (*_KINDS, *_OUTER) or depth > _DEEPEST:
        yield Skipped(f"a span of kind {kind[:40] or 'none'}: no call", line=line)
        return
    metrics = mapping_field(row.get("metrics"))
    span_id = str(row.get("id") or unnamed or f"line {line}")
    start = attribute_seconds(row.get("created_at"))
    end = 0.0
    if start:
        end = start + float(metrics.get("duration_ns") or row.get("duration_ns") or 0.0) / 1e9
    step_kind: Any = _KINDS.get(kind, "span")
    status = status_of(row.get("status_code"))
    model = str(row.get("model") or "")
    seen = ObservedStep(
        kind=step_kind,
        name=str(row.get("name") or ""),
        place=StepPlace(id=span_id, trace=trace, parent=parent, start=start, end=end, line=line),
        input=decode_field(row.get("input")),
        output=decode_field(row.get("output")),
        failure=StepFailure(message=f"status {status}" if status >= 400 else ""),
        asked=StepModel(
            model=model,
            settings={"temperature": row["temperature"]}
            if row.get("temperature") is not None
            else {},
            tools=listed_field(row.get("tools")),
        ),
        usage=usage_of(metrics),
    )
    if step_kind == "model":
        seen.input, seen.notes.grade = {"prompt": seen.input}, "P"
        seen.arrival.streamed = bool(metrics.get("time_to_first_token_ns"))
        stop = row.get("finish_reason")
        if stop and isinstance(seen.output, dict):
            seen.output = {**seen.output, "finish_reason": stop}
    yield observed.item(seen, "galileo", file)
    for number, inner in enumerate(listed_field(row.get("spans"))):
        yield from each(
            partial(
                _read_span, file, inner, trace, span_id, line, depth + 1, f"{span_id}/{number}"
            ),
            line,
        )
