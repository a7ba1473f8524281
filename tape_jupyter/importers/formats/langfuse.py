"""Exports of Langfuse: a trace of its UI, rows of its API and of its exports (JSON, JSONL, CSV,
Parquet).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import conventions, observed
from tape_jupyter.importers.attributes import Traced, attribute_seconds
from tape_jupyter.importers.observed import ObservedStep, usage_of
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
    own = {"parentObservationId", "parent_observation_id"} & source.keys or {
        "traceId",
        "observations",
    } <= source.keys
    return 85 if own and {"type", "level"} & source.keys else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(
        source, partial(_read_row, source.name), "observations", "traces", "data", beside="trace"
    )


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    told = {_to_snake_case(name): value for name, value in row.items()}
    if "trace_id" not in told and ("timestamp" in told or "session_id" in told):
        about = {
            name: told[name]
            for name in ("user_id", "session_id", "tags", "release", "version")
            if told.get(name)
        }
        yield Run(str(told.get("id", "")), str(told.get("name") or ""), about)
    elif "type" not in told or "id" not in told:
        yield Skipped("a record that is neither a trace nor an observation", line=line)
    else:
        yield _read_observation(file, told, line)


def _to_snake_case(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def _read_observation(file: str, told: Mapping[str, Any], line: int) -> Item:
    about = mapping_field(told.get("metadata"))
    attributes = mapping_field(about.get("attributes"))
    failed = str(told.get("status_message") or "error") if told.get("level") == "ERROR" else ""
    start, end = attribute_seconds(told.get("start_time")), attribute_seconds(told.get("end_time"))
    own, trace, parent = (
        str(told.get(name) or "") for name in ("id", "trace_id", "parent_observation_id")
    )
    name = str(told.get("name") or "")
    scope = str(mapping_field(about.get("scope")).get("name") or "")
    if attributes:  # what OpenTelemetry sent says more than what the platform made of it
        span = Traced(
            own, trace, parent, name, start, end, attributes, error=failed, scope=scope, line=line
        )
        made = conventions.item_of_span(span, file)
        if isinstance(made, Call) and not _PARTS & set(made.missing):
            return made
    kind: Any = _KINDS.get(str(told["type"]), "span")
    if kind == "model" and told.get("input") is None and told.get("output") is None:
        kind = "span"
    seen = ObservedStep(
        own, kind, name, trace, parent, start, end, decode_field(told.get("input")),
        decode_field(told.get("output")), failed,
        model=_find_first(attributes.get("gen_ai.request.model"), about.get("ls_model_name"), told.get("model")),
        provider=_find_first(*(attributes.get(each) for each in _PROVIDERS), about.get("ls_provider")),
        settings=mapping_field(told.get("model_parameters")), tools=_find_tools(told, about, attributes),
        usage=usage_of(mapping_field(told.get("usage_details") or told.get("usage"))),
        stream=bool(told.get("completion_start_time")), line=line,
    )  # fmt: skip
    seen.provider = seen.provider or _guess_provider(seen.model)
    system = decode_field(attributes.get("gen_ai.system_instructions"))
    if kind == "model" and system and isinstance(seen.input, list):
        seen.input = {"messages": seen.input, "system": system}
    if _MEDIA in str(told.get("input")) + str(told.get("output")):
        seen.missing.append("media: the file refers to Langfuse's store")
    return observed.item(seen, "langfuse", file)


_PROVIDERS = (
    "ai.model.provider",
    "gen_ai.provider.name",
    "gen_ai.system",
    "llm.provider",
    "llm.system",
)


def _find_first(*told: Any) -> str:
    return str(next((each for each in told if each), ""))


def _find_tools(
    told: Mapping[str, Any], about: Mapping[str, Any], attributes: Mapping[str, Any]
) -> list[Any]:
    """The tools of a request, wherever they are kept: as objects, or each as JSON text."""
    places = (
        about.get("tools"),
        attributes.get("gen_ai.tool.definitions"),
        told.get("tool_definitions"),
    )
    found = next((listed_field(each) for each in places if listed_field(each)), [])
    return [tool for tool in map(decode_field, found) if isinstance(tool, Mapping)]


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
