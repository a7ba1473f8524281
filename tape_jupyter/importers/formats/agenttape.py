"""Tapes of agenttape (YAML or JSON). Files in its `assets` folder are not read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers import observed, recorders
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepFailure,
    StepNotes,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.recorded import (
    LOST,
    data_of,
    document,
    has_key,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.rows import listed_field, mapping_field
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Run, Skipped, each

TITLE = "agenttape"

_KINDS = {
    "llm": "model",
    "tool": "tool",
    "retrieval": "retrieval",
    "memory_read": "tool",
    "memory_write": "tool",
}
_ASSET, _BYTES = "__agenttape_asset__", "__agenttape_bytes__"


def recognises(source: Source) -> int:
    if {"run_id", "interactions", "match_key", "boundary"} <= source.keys:
        return 90
    named = has_key(source, "interactions") and has_key(source, "run_id")
    return 90 if named and "boundary:" in source.head_text else 0


def read(source: Source) -> Iterator[Item]:
    tape = mapping_field(document(source))
    trace, about = str(tape.get("run_id") or ""), mapping_field(tape.get("meta"))
    yield Run(
        trace,
        f"run {trace[:8]}",
        {name: about[name] for name in ("framework", "model") if about.get(name)},
    )
    start = attribute_seconds(str(tape.get("created_at") or ""))
    for number, row in enumerate(listed_field(tape.get("interactions"))):
        yield from each(partial(_read_interaction, source, trace, about, start, number, row))
        start += float(mapping_field(row).get("latency_ms") or 0.0) / 1000


def _read_interaction(
    source: Source,
    trace: str,
    about: Mapping[str, Any],
    start: float,
    number: int,
    row: Mapping[str, Any],
) -> Iterator[Item]:
    kind = str(row.get("kind") or "")
    missing: list[str] = []
    raw_request = _strip_marks(row.get("request"), missing)
    raw_reply = _strip_marks(row.get("response"), missing)
    if kind == "http" and isinstance(raw_request, Mapping) and isinstance(raw_reply, Mapping):
        yield _build_http_call(source, trace, number, raw_request, raw_reply, start)
        return
    if kind not in _KINDS or not isinstance(raw_request, Mapping):
        yield Skipped(f"an interaction of kind {kind[:40] or 'none'}: no call")
        return
    failed, thrown = recorders.error_message_and_class(row.get("error"))
    step_kind: Any = _KINDS[kind]
    seen = ObservedStep(
        kind=step_kind,
        name=str(raw_request.get("name") or row.get("boundary") or ""),
        place=StepPlace(
            id=f"{row.get('index', number)}",
            trace=trace,
            start=start,
            end=start + float(row.get("latency_ms") or 0.0) / 1000,
        ),
        output=raw_reply,
        failure=StepFailure(message=failed, type_name=thrown),
        usage=usage_of(row.get("usage")),
        notes=StepNotes(
            missing=missing, assumed=["time, from when the tape began"] if start else []
        ),
    )
    if step_kind == "model":
        body = {name: value for name, value in raw_request.items() if name != "endpoint"}
        seen.input = _cut_later_messages(body, raw_reply, seen.notes.assumed)
        seen.asked.model = str(raw_request.get("model") or "")
        seen.asked.provider = recorders.named_provider(
            raw_request.get("endpoint"), about.get("framework")
        )
    else:
        arguments = raw_request.get("args", raw_request.get("arguments", raw_request))
        more = raw_request.get("kwargs")
        seen.input = recorders.named_arguments(
            {"args": arguments, "kwargs": more} if more is not None else arguments
        )
    yield observed.item(seen, "agenttape", source.name)


def _cut_later_messages(body: dict[str, Any], raw_reply: Any, assumed: list[str]) -> dict[str, Any]:
    """The request without what came after it: agenttape keeps the list of messages that the program
    goes on with.
    """
    call_ids = _find_tool_call_ids(raw_reply)
    for place, message in enumerate(listed_field(body.get("messages"))):
        if call_ids & _find_tool_call_ids(message):
            assumed.append(
                "messages up to the reply: the tape holds those that were added after it too"
            )
            return {**body, "messages": body["messages"][:place]}
    return body


def _find_tool_call_ids(value: Any) -> set[str]:
    """The ids of the tool calls in a message, or in a reply's choices."""
    choices = [
        mapping_field(each_).get("message")
        for each_ in listed_field(mapping_field(value).get("choices"))
    ] or [value]
    calls = (
        use for message in choices for use in listed_field(mapping_field(message).get("tool_calls"))
    )
    blocks = (
        block
        for block in listed_field(mapping_field(value).get("content"))
        if mapping_field(block).get("type") == "tool_use"
    )
    return {str(use["id"]) for use in (*calls, *blocks) if mapping_field(use).get("id")}


def _build_http_call(
    source: Source,
    trace: str,
    number: int,
    raw_request: Mapping[str, Any],
    raw_reply: Mapping[str, Any],
    start: float,
) -> Item:
    request = Request(
        str(raw_request.get("method") or "GET").upper(),
        str(raw_request.get("url") or ""),
        read_headers(raw_request.get("headers")),
        _decode_body(raw_request),
    )
    data = _decode_body(raw_reply)
    reply = Reply(
        status_of(raw_reply.get("status", raw_reply.get("status_code"))),
        read_headers(raw_reply.get("headers")),
        (data,),
    )
    item = recorded_exchange(
        source,
        number,
        "agenttape",
        request,
        reply,
        grade="J",
        missing=[LOST, "request bytes"],
        start=start,
    )
    if not isinstance(item, Skipped):
        item.trace = trace
    return item


def _decode_body(side: Mapping[str, Any]) -> bytes:
    """A body in one of the forms that agenttape gives it: its bytes win."""
    coded = side.get("raw_b64") or side.get("body_b64")
    if coded:
        return base64.b64decode(str(coded))
    if "json" in side:
        return json.dumps(side["json"], ensure_ascii=False).encode("utf-8", "surrogatepass")
    return data_of(
        next(
            (side[name] for name in ("text", "content", "body") if side.get(name) is not None), None
        )
    )


def _strip_marks(value: Any, missing: list[str]) -> Any:
    """The value without agenttape's marks."""
    if isinstance(value, Mapping):
        if _BYTES in value:
            return base64.b64decode(str(value[_BYTES]))
        if _ASSET in value:
            missing.append("what lies in the assets folder")
            return None
        return {name: _strip_marks(each_, missing) for name, each_ in value.items()}
    if isinstance(value, list):
        return [_strip_marks(each_, missing) for each_ in value]
    return value
