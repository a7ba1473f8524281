"""OpenAI Evals: output items of the hosted service, and logs of the open-source `evals`."""

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
    StepNotes,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.rows import mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Run, Skipped

TITLE = "OpenAI Evals"

_SETTINGS = ("temperature", "top_p", "seed", "max_completion_tokens")


def recognises(source: Source) -> int:
    if {"eval_id", "run_id", "sample"} <= source.keys or {
        "datasource_item",
        "sample",
    } <= source.keys:
        return 85
    has_keys = {"run_id", "sample_id", "event_id", "data"} <= source.keys
    return 80 if has_keys or {"spec"} == source.top else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name), "data")


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    if "spec" in row:
        spec = mapping_field(row["spec"])
        yield Run(
            str(spec.get("run_id") or ""),
            str(spec.get("eval_name") or spec.get("base_eval") or "evals"),
        )
    elif "sample" in row:
        yield _build_hosted_call(file, row, line)
    elif row.get("type") == "sampling":
        yield _build_sampling_call(file, row, line)
    else:
        kind = str(row.get("type") or row.get("object") or "none")
        yield Skipped(f"a record of kind {kind[:40]}: no call", line=line)


def _build_hosted_call(file: str, row: Mapping[str, Any], line: int) -> Item:
    sample = mapping_field(row.get("sample"))
    failed = mapping_field(sample.get("error"))
    results = [
        {name: each.get(name) for name in ("name", "passed", "score")}
        for each in row.get("results") or ()
    ]
    seen = ObservedStep(
        kind="model",
        name=str(row.get("datasource_item_id") or ""),
        place=StepPlace(
            id=str(row.get("id") or ""),
            trace=str(row.get("run_id") or ""),
            start=attribute_seconds(row.get("created_at")),
            line=line,
        ),
        input={"messages": sample.get("input")},
        output=sample.get("output"),
        failure=StepFailure(
            message=str(failed.get("message") or "") if failed.get("message") else "",
            type_name=str(failed.get("code") or ""),
        ),
        asked=StepModel(
            model=str(sample.get("model") or ""),
            provider="openai",
            settings={name: sample[name] for name in _SETTINGS if sample.get(name) is not None},
        ),
        usage=usage_of(sample.get("usage")),
        notes=StepNotes(
            grade="P", missing=["tools"], about={"results": results} if results else {}
        ),
    )
    return observed.item(seen, "openai-evals", file)


def _build_sampling_call(file: str, row: Mapping[str, Any], line: int) -> Item:
    data = mapping_field(row.get("data"))
    sampled = data.get("sampled")
    seen = ObservedStep(
        kind="model",
        name=str(row.get("sample_id") or ""),
        place=StepPlace(
            id=str(row.get("event_id") or ""),
            trace=str(row.get("run_id") or ""),
            start=attribute_seconds(
                str(row.get("created_at") or "").replace(" +0000 UTC", "+00:00")
            ),
            line=line,
        ),
        input={"messages": data.get("prompt")},
        output=sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled,
        asked=StepModel(model=str(data.get("model") or ""), provider="openai"),
        usage=usage_of(data.get("usage")),
        notes=StepNotes(missing=["parameters"] + ([] if data.get("model") else ["model"])),
    )
    return observed.item(seen, "openai-evals", file)
