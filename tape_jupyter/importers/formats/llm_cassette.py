"""Cassettes of llm-cassette (JSON Lines)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tape_jupyter.importers import observed, recorders
from tape_jupyter.importers.observed import ObservedStep, StepFailure, StepModel, StepPlace
from tape_jupyter.importers.rows import mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Skipped

TITLE = "llm-cassette"


def recognises(source: Source) -> int:
    text = source.head_text
    if '"llm_call"' not in text and '"tool_call"' not in text:
        return 0
    if "format_version" in source.top:
        return 90
    return 70 if {"type", "provider", "request"} <= source.top else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name))


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    kind = str(row.get("type") or "")
    failed, thrown = recorders.error_message_and_class(row.get("error"))
    if kind == "llm_call":
        raw_request = mapping_field(row.get("request"))
        body = mapping_field(raw_request.get("body"))
        provider = str(row.get("provider") or "") or recorders.named_provider(
            raw_request.get("operation")
        )
        seen = ObservedStep(
            kind="model",
            name=str(raw_request.get("operation") or ""),
            place=StepPlace(id=str(line), line=line),
            input=body,
            output=row.get("response"),
            failure=StepFailure(message=failed, type_name=thrown),
            asked=StepModel(model=str(body.get("model") or ""), provider=provider),
            sent=bool(body),
        )
    elif kind == "tool_call":
        seen = ObservedStep(
            kind="tool",
            name=str(row.get("name") or ""),
            place=StepPlace(id=str(line), line=line),
            input=row.get("args"),
            output=row.get("result"),
            failure=StepFailure(message=failed, type_name=thrown),
        )
    else:
        yield Skipped(f"a record of kind {kind[:40] or 'none'}: no call", line=line)
        return
    yield observed.item(seen, "llm-cassette", file)
