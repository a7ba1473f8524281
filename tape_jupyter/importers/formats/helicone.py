"""Requests of Helicone, a proxy: `query-clickhouse`, `npx @helicone/export`.

Their bodies may lie behind URLs, which are not fetched.
"""

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
)
from tape_jupyter.importers.recorded import status_of
from tape_jupyter.importers.rows import decode_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Skipped, Span

TITLE = "Helicone"

_SESSION, _PATH, _NAME = "Helicone-Session-Id", "Helicone-Session-Path", "Helicone-Session-Name"


def recognises(source: Source) -> int:
    if {"request_id", "response_id"} <= source.keys and source.keys & _FIELDS:
        return 90
    return 0


_FIELDS = {"request_body", "response_body", "target_url", "signed_body_url", "request_properties"}


def read(source: Source) -> Iterator[Item]:
    seen_spans: set[tuple[str, str]] = set()
    yield from read_rows(source, partial(_read_row, source.name, seen_spans), "data")


def _read_row(
    file: str, seen_spans: set[tuple[str, str]], row: dict[str, Any], line: int
) -> Iterator[Item]:
    request_body = _read_body(row.get("request_body"))
    reply_body = _read_body(row.get("response_body"))
    request_id = str(row.get("request_id") or "")
    if not isinstance(request_body, dict) or not request_body:
        where = str(row.get("signed_body_url") or "")
        if where:
            reason = "whose bodies are behind a URL, which is not fetched"
        else:
            reason = "without its bodies"
        yield Skipped(f"a request {reason}", line=line, text=where.partition("?")[0])
        return
    tags = mapping_field(row.get("request_properties") or row.get("properties"))
    trace, path = str(tags.get(_SESSION) or ""), str(tags.get(_PATH) or "")
    parent = ""
    for name in (part for part in path.split("/") if part):
        above, parent = parent, f"{parent}/{name}"
        if (trace, parent) not in seen_spans:
            seen_spans.add((trace, parent))
            yield Span(parent, name, above, trace)
    start = attribute_seconds(row.get("request_created_at"))
    end = (
        attribute_seconds(row.get("response_created_at"))
        or start + float(row.get("delay_ms") or 0) / 1000
    )
    seen = ObservedStep(
        kind="model",
        name=str(row.get("model") or ""),
        place=StepPlace(id=request_id, trace=trace, parent=parent, start=start, end=end, line=line),
        input=request_body,
        output=reply_body,
        failure=StepFailure(status=status_of(row.get("response_status"))),
        asked=StepModel(
            model=str(row.get("model") or row.get("request_model") or ""),
            provider=str(row.get("provider") or ""),
            url=_build_url(row),
        ),
        usage=_read_usage(row),
        sent=True,
        notes=StepNotes(
            about={"user": row["request_user_id"]} if row.get("request_user_id") else {}
        ),
    )
    if int(row.get("response_status") or 0) < 0:
        seen.notes.missing.append(
            f"status: {row['response_status']} is Helicone's own (cancelled, or timed out)"
        )
    if isinstance(reply_body, dict) and isinstance(reply_body.get("streamed_data"), list):
        seen.arrival.chunks = reply_body["streamed_data"]
        seen.notes.missing.append("pace")
    elif reply_body is None or reply_body == "":
        yield Skipped("a request without its reply", line=line)
        return
    yield observed.item(seen, "helicone", file)


def _read_body(value: Any) -> Any:
    """A body; None where only Helicone's word stands in its place, that it lies behind a URL."""
    body = decode_field(value)
    if isinstance(body, dict) and body.keys() == {"helicone_message"}:
        return None
    return body


def _build_url(row: Mapping[str, Any]) -> str:
    target, path = str(row.get("target_url") or ""), str(row.get("request_path") or "")
    if "://" in path:
        return path
    if "://" in target and path and not target.endswith(path):
        return target.rstrip("/") + path
    return target


def _read_usage(row: Mapping[str, Any]) -> dict[str, int]:
    names = {"input": "prompt_tokens", "output": "completion_tokens"}
    return {name: int(row[key]) for name, key in names.items() if row.get(key)}
