"""Rows of Braintrust: its fetch API, BTQL, exports, and what its SDKs send (`{rows: [...]}`)."""

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
from tape_jupyter.importers.trace import Call, Item, Skipped, each

TITLE = "Braintrust"

_KINDS = {"llm": "model", "tool": "tool"}
_OWN = (
    "provider",
    "client",
    "braintrust",
    "request_base_uri",
    "request_method",
    "request_path",
    "braintrust.parent",
)
_ATTACHED = "braintrust_attachment"


def recognises(source: Source) -> int:
    if {"span_attributes", "root_span_id"} <= source.keys:
        return 90
    if {"metadata", "metrics", "name", "type"} <= source.top and "spans" not in source.keys:
        return 65  # what its SDKs' own tests keep
    return 60 if {"span_attributes", "span_id"} <= source.keys else 0


def read(source: Source) -> Iterator[Item]:
    rows = _Rows(source.name)
    yield from read_rows(source, rows.row, "data", "rows", "events")
    for row, line in rows.parts.values():
        yield from each(partial(_read_span, source.name, row, line), line)


class _Rows:
    """What of a file waits for its end: the parts in which an SDK sends a span (`_is_merge`)."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.parts: dict[str, tuple[dict[str, Any], int]] = {}

    def row(self, row: dict[str, Any], line: int) -> Iterator[Item]:
        body = mapping_field(row.get("jsonBody") or row.get("rawBody"))
        row_id = str(row.get("id") or "")
        if row_id and ("_is_merge" in row or row_id in self.parts):
            if row_id in self.parts:
                yield Skipped("a further part of a span", line=line)
            before, at = self.parts.get(row_id, ({}, line))
            self.parts[row_id] = (_merge_parts(before, row), at)
        elif "span_attributes" in row or {"name", "type"} <= row.keys():
            yield _build_span(self.file, row, line)
        elif listed_field(body.get("rows")):  # a request of an SDK, with its rows
            for inner in listed_field(body["rows"]):
                yield from each(partial(self.row, inner, line), line)
        else:
            if {"method", "path"} <= row.keys():
                what = "a request of the SDK without rows"
            else:
                what = "a record that is no span"
            yield Skipped(what, line=line)


def _merge_parts(before: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """The later part's fields over the earlier one's; maps in them are put together."""
    merged = dict(before)
    for name, value in row.items():
        old = merged.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[name] = {**old, **value}
        else:
            merged[name] = value
    return merged


def _read_span(file: str, row: Mapping[str, Any], line: int) -> Iterator[Item]:
    yield _build_span(file, row, line)


def _build_span(file: str, row: Mapping[str, Any], line: int) -> Item:
    attributes = mapping_field(row.get("span_attributes"))
    metrics = mapping_field(row.get("metrics"))
    about = mapping_field(row.get("metadata"))
    above = listed_field(row.get("span_parents"))
    failed = row.get("error")
    kind: Any = _KINDS.get(str(attributes.get("type") or row.get("type")), "span")
    start = attribute_seconds(metrics.get("start")) or attribute_seconds(row.get("created"))
    seen = ObservedStep(
        kind=kind,
        name=str(attributes.get("name") or row.get("name") or ""),
        place=StepPlace(
            id=str(row.get("span_id") or row.get("id") or ""),
            trace=str(row.get("root_span_id") or ""),
            parent=str(above[0]) if above else "",
            start=start,
            end=attribute_seconds(metrics.get("end")),
            line=line,
        ),
        input=decode_field(row.get("input")),
        output=decode_field(row.get("output")),
        failure=StepFailure(message=str(failed or "")),
        asked=StepModel(
            model=str(about.get("model") or ""), provider=str(about.get("provider") or "")
        ),
        usage=usage_of(metrics),
    )
    if kind == "model" and (call := _build_model_call(seen, about, metrics, file)) is not None:
        return call
    if kind == "model" and not isinstance(seen.input, dict):
        seen.input = {"messages": seen.input}
    return observed.item(seen, "braintrust", file)


def _build_model_call(
    seen: ObservedStep, about: Mapping[str, Any], metrics: Mapping[str, Any], file: str
) -> Call | None:
    settings, mixed = envelopes.parameters(about, without=_OWN)
    body = envelopes.envelope_request(seen.input, settings, seen.asked.provider, seen.notes.assumed)
    if body is None or (seen.output is None and not seen.failure.message):
        return None
    api = rebuild.api_of(rebuild.provider_of(seen.asked.provider), body)
    seen.input, seen.notes.grade = body, "P" if mixed or api != rebuild.OPENAI_CHAT else "J"
    if about.get("request_path"):  # by OpenTelemetry: the messages alone
        seen.asked.url = (
            f"{str(about.get('request_base_uri') or '').rstrip('/')}/{about['request_path']}"
        )
        seen.arrival.streamed = "time_to_first_token" in metrics
        seen.notes.grade = "M"
        seen.notes.missing.append("tools and parameters of the request")
    if api == rebuild.ANTHROPIC and "max_tokens" not in body:
        body["max_tokens"] = 1024
        seen.notes.assumed.append("max_tokens 1024, which the API requires")
        seen.notes.grade = "M"
    if _ATTACHED in str(seen.input):
        seen.notes.missing.append("attachments: the file refers to Braintrust's store")
        seen.notes.grade = "M"
    if seen.output is not None:
        seen.output = envelopes.envelope_reply(
            api, seen.output, seen.asked.model, seen.usage, about
        )
        seen.notes.assumed.append(
            "reply envelope: the platform keeps its choices, output or content"
        )
        seen.sent = True
    item = observed.item(seen, "braintrust", file)
    return item if isinstance(item, Call) else None
