"""Exports of Langfuse: a trace of its UI, rows of its API and of its exports (JSON, JSONL, CSV,
Parquet).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import conventions, observed
from tape_jupyter.importers.attributes import Traced, attribute_seconds
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepArrival,
    StepFailure,
    StepModel,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.rows import decode_field, listed_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Call, Item, Run, Skipped

TITLE = "Langfuse"

_KINDS = {
    "GENERATION": "model", "TOOL": "tool", "RETRIEVER": "retrieval", "EMBEDDING": "model",
}  # fmt: skip
_PARTS = {"arguments", "result", "reply"}
_MEDIA = "@@@langfuseMedia:"


def recognises(source: Source) -> int:
    if {"trace", "observations"} <= source.top:
        return 95
    has_keys = {"parentObservationId", "parent_observation_id"} & source.keys or {
        "traceId",
        "observations",
    } <= source.keys
    return 85 if has_keys and {"type", "level"} & source.keys else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(
        source,
        partial(_read_row, source.name),
        "observations",
        "traces",
        "data",
        record_field="trace",
    )


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    record = {_to_snake_case(name): value for name, value in row.items()}
    if "trace_id" not in record and ("timestamp" in record or "session_id" in record):
        about = {
            name: record[name]
            for name in ("user_id", "session_id", "tags", "release", "version")
            if record.get(name)
        }
        yield Run(str(record.get("id", "")), str(record.get("name") or ""), about)
    elif "type" not in record or "id" not in record:
        yield Skipped("a record that is neither a trace nor an observation", line=line)
    else:
        yield _read_observation(file, record, line)


def _to_snake_case(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def _read_observation(file: str, record: Mapping[str, Any], line: int) -> Item:
    about = mapping_field(record.get("metadata"))
    attributes = mapping_field(about.get("attributes"))
    if record.get("level") == "ERROR":
        failed = str(record.get("status_message") or "error")
    else:
        failed = ""
    start = attribute_seconds(record.get("start_time"))
    end = attribute_seconds(record.get("end_time"))
    span_id, trace, parent = (
        str(record.get(name) or "") for name in ("id", "trace_id", "parent_observation_id")
    )
    name = str(record.get("name") or "")
    scope = str(mapping_field(about.get("scope")).get("name") or "")
    if attributes:  # what OpenTelemetry sent says more than what the platform made of it
        span = Traced(
            span_id,
            trace,
            parent,
            name,
            start,
            end,
            attributes,
            error=failed,
            scope=scope,
            line=line,
        )
        item = conventions.item_of_span(span, file)
        if isinstance(item, Call) and not _PARTS & set(item.missing):
            return item
    kind: Any = _KINDS.get(str(record["type"]), "span")
    if kind == "model" and record.get("input") is None and record.get("output") is None:
        kind = "span"
    seen = ObservedStep(
        kind=kind,
        name=name,
        place=StepPlace(id=span_id, trace=trace, parent=parent, start=start, end=end, line=line),
        input=decode_field(record.get("input")),
        output=decode_field(record.get("output")),
        failure=StepFailure(message=failed),
        asked=StepModel(
            model=_find_first(
                attributes.get("gen_ai.request.model"),
                about.get("ls_model_name"),
                record.get("model"),
            ),
            provider=_find_first(
                *(attributes.get(each) for each in _PROVIDERS), about.get("ls_provider")
            ),
            settings=mapping_field(record.get("model_parameters")),
            tools=_find_tools(record, about, attributes),
        ),
        arrival=StepArrival(streamed=bool(record.get("completion_start_time"))),
        usage=usage_of(mapping_field(record.get("usage_details") or record.get("usage"))),
    )
    seen.asked.provider = seen.asked.provider or _guess_provider(seen.asked.model)
    system = decode_field(attributes.get("gen_ai.system_instructions"))
    if kind == "model" and system and isinstance(seen.input, list):
        seen.input = {"messages": seen.input, "system": system}
    if _MEDIA in str(record.get("input")) + str(record.get("output")):
        seen.notes.missing.append("media: the file refers to Langfuse's store")
    return observed.item(seen, "langfuse", file)


_PROVIDERS = (
    "ai.model.provider",
    "gen_ai.provider.name",
    "gen_ai.system",
    "llm.provider",
    "llm.system",
)


def _find_first(*values: Any) -> str:
    return str(next((each for each in values if each), ""))


def _find_tools(
    record: Mapping[str, Any], about: Mapping[str, Any], attributes: Mapping[str, Any]
) -> list[Any]:
    """The tools of a request, wherever they are kept: as objects, or each as JSON text."""
    places = (
        about.get("tools"),
        attributes.get("gen_ai.tool.definitions"),
        record.get("tool_definitions"),
    )
    tools = next((listed_field(each) for each in places if listed_field(each)), [])
    return [tool for tool in map(decode_field, tools) if isinstance(tool, Mapping)]


def _guess_provider(model: str) -> str:
    starts = {
        "gpt": "openai",
        "o1": "openai",
        "o3": "openai",
        "o4": "openai",
        "claude": "anthropic",
        "gemini": "gemini",
    }
    return next((name for start, name in starts.items() if model.startswith(start)), "")
