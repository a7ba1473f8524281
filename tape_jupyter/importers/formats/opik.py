"""Traces of Comet Opik: `opik export` (a trace a file, its spans beside or inside it)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import envelopes, observed, rebuild
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepFailure,
    StepModel,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.rows import decode_field, listed_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Run, Skipped, each

TITLE = "Comet Opik"

_KINDS = {"llm": "model", "tool": "tool"}
_OWN = ("created_from", "type", "_opik_graph_definition")
_DEEPEST = 200


def recognises(source: Source) -> int:
    has_keys = {"parent_span_id", "trace_id"} <= source.keys or {
        "spans",
        "project_name",
    } <= source.keys
    if has_keys and {"feedback_scores", "created_from", "thread_id", "error_info"} & source.keys:
        return 88
    if {"trace", "spans"} <= source.top and "start_time" in source.keys:
        return 80
    return 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name), "traces")


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    trace = mapping_field(row.get("trace")) or (
        row if "type" not in row or "trace_id" not in row else {}
    )
    spans = listed_field(row.get("spans"))
    if trace and "id" in trace:
        trace_id = str(trace["id"])
        about = {
            "thread": trace.get("thread_id"),
            "tags": trace.get("tags"),
            "project": trace.get("project_name"),
        }
        yield Run(
            trace_id,
            str(trace.get("name") or ""),
            {name: value for name, value in about.items() if value},
        )
        for span in spans or listed_field(trace.get("spans")):
            yield from each(partial(_read_span, file, span, trace_id, "", line, 0), line)
        if not spans and not trace.get("spans"):
            yield Skipped("a trace without its spans", line=line)
    elif "id" in row:
        yield from _read_span(file, row, str(row.get("trace_id") or ""), "", line, 0)
    else:
        yield Skipped("a record that is neither a trace nor a span", line=line)


def _read_span(
    file: str, record: Mapping[str, Any], trace: str, parent: str, line: int, depth: int
) -> Iterator[Item]:
    span_id = str(record.get("id") or "")
    about = mapping_field(record.get("metadata"))
    failed = mapping_field(record.get("error_info"))
    kind: Any = _KINDS.get(str(record.get("type")), "span")
    seen = ObservedStep(
        kind=kind,
        name=str(record.get("name") or ""),
        place=StepPlace(
            id=span_id,
            trace=str(record.get("trace_id") or trace),
            parent=str(record.get("parent_span_id") or parent),
            start=attribute_seconds(record.get("start_time")),
            end=attribute_seconds(record.get("end_time")),
            line=line,
        ),
        input=decode_field(record.get("input")),
        output=decode_field(record.get("output")),
        failure=StepFailure(
            message=str(failed.get("message") or failed.get("traceback") or ""),
            type_name=str(failed.get("exception_type") or ""),
        ),
        asked=StepModel(
            model=str(record.get("model") or about.get("model") or ""),
            provider=_choose_provider(
                str(record.get("provider") or ""), str(about.get("created_from") or "")
            ),
        ),
        usage=usage_of(record.get("usage")),
    )
    if failed and not seen.failure.message:
        seen.failure.message = seen.failure.type_name or "error"
    if kind == "model":
        _fill_model_step(seen, about)
    yield observed.item(seen, "opik", file)
    if depth > _DEEPEST:
        yield Skipped(
            "spans that are nested too deep", len(listed_field(record.get("spans"))), line
        )
        return
    for inner in listed_field(record.get("spans")):
        yield from _read_span(file, inner, seen.place.trace, span_id, line, depth + 1)


def _choose_provider(provider: str, made_by: str) -> str:
    """Opik keeps the host of a provider that it does not know."""
    if not provider or provider[:1].isdigit() or provider == "localhost":
        return made_by
    return provider


def _fill_model_step(seen: ObservedStep, about: Mapping[str, Any]) -> None:
    settings, _ = envelopes.parameters(about, without=_OWN)
    body = envelopes.envelope_request(seen.input, settings, seen.asked.provider, seen.notes.assumed)
    if body is None or not observed.is_request(body):
        return
    if about.get("object") == "response":
        seen.notes.missing.append("which of the parameters that the reply repeats were sent")
    if seen.asked.model and "model" not in body and "contents" not in body:
        body["model"] = seen.asked.model
    seen.input, seen.notes.grade = body, "P"
    api = rebuild.api_of(rebuild.provider_of(seen.asked.provider), body)
    if seen.output is not None:
        seen.output = envelopes.envelope_reply(
            api, seen.output, seen.asked.model, seen.usage, about
        )
        seen.notes.assumed.append("reply envelope: the platform keeps it in pieces")
