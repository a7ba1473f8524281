"""Calls of W&B Weave: `calls/stream_query` (JSON Lines), its UI's JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from tape_jupyter.importers.rows import mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Skipped

TITLE = "W&B Weave"

_SDKS = {  # how the SDKs' ops are called
    "openai.": "openai", "anthropic.": "anthropic", "google.genai": "gemini", "mistralai.": "mistral", "groq.": "groq",
    "cohere.": "cohere", "litellm.": "", "bedrock": "bedrock", "BedrockRuntime": "bedrock", "huggingface": "",
}  # fmt: skip
_REFERENCE = "weave:///"


def recognises(source: Source) -> int:
    if {"op_name", "trace_id", "inputs"} <= source.keys:
        return 90
    return 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name), "calls")


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    if "op_name" not in row or "id" not in row:
        yield Skipped("a record that is no call", line=line)
        return
    op = str(row["op_name"])
    name = op.rpartition("/op/")[2].rpartition(":")[0] or op.rpartition("/op/")[2]
    inputs, failed = mapping_field(row.get("inputs")), str(row.get("exception") or "")
    inputs = {key: value for key, value in inputs.items() if key != "self"}
    kind, provider = _classify_call(name, inputs, mapping_field(row.get("attributes")))
    summary = mapping_field(mapping_field(row.get("summary")).get("usage"))
    model = str(inputs.get("model") or next(iter(summary), ""))
    lines = failed.strip().splitlines()
    thrown, _, message = lines[-1].partition(": ") if lines else ("", "", "")
    seen = ObservedStep(
        kind=kind,
        name=str(row.get("display_name") or name),
        place=StepPlace(
            id=str(row["id"]),
            trace=str(row.get("trace_id") or ""),
            parent=str(row.get("parent_id") or ""),
            start=attribute_seconds(row.get("started_at")),
            end=attribute_seconds(row.get("ended_at")),
            line=line,
        ),
        input=inputs,
        output=row.get("output"),
        failure=StepFailure(
            message=message or failed, type_name=thrown if thrown.isidentifier() else ""
        ),
        asked=StepModel(model=model, provider=provider),
        usage=usage_of(next(iter(summary.values()), None)),
    )
    if kind != "span" and _REFERENCE in str(inputs) + str(row.get("output")):
        seen.notes.missing.append("objects: the file refers to Weave's store")
        seen.notes.grade = "P"
    yield observed.item(seen, "weave", file)


def _classify_call(
    name: str, inputs: Mapping[str, Any], attributes: Mapping[str, Any]
) -> tuple[Any, str]:
    declared_kind = str(
        attributes.get("kind") or mapping_field(attributes.get("weave")).get("kind") or ""
    )
    for start, provider in _SDKS.items():
        if name.startswith(start) and (
            "messages" in inputs or "contents" in inputs or "input" in inputs
        ):
            return "model", provider
    if declared_kind in ("tool", "llm"):
        return {"tool": "tool", "llm": "model"}[declared_kind], ""
    return "span", ""
