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
from tape_jupyter.importers.observed import ObservedStep, usage_of
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
    told = mapping_field(document(source))
    trace, about = str(told.get("run_id") or ""), mapping_field(told.get("meta"))
    yield Run(
        trace,
        f"run {trace[:8]}",
        {name: about[name] for name in ("framework", "model") if about.get(name)},
    )
    start = attribute_seconds(str(told.get("created_at") or ""))
    for number, row in enumerate(listed_field(told.get("interactions"))):
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
    asked, said = (
        _strip_marks(row.get("request"), missing),
        _strip_marks(row.get("response"), missing),
    )
    if kind == "http" and isinstance(asked, Mapping) and isinstance(said, Mapping):
        yield _build_http_call(source, trace, number, asked, said, start)
        return
    if kind not in _KINDS or not isinstance(asked, Mapping):
        yield Skipped(f"an interaction of kind {kind[:40] or 'none'}: no call")
        return
    failed, thrown = recorders.error_message_and_class(row.get("error"))
    place: Any = _KINDS[kind]
    seen = ObservedStep(
        f"{row.get('index', number)}", place, str(asked.get("name") or row.get("boundary") or ""), trace, "", start,
        start + float(row.get("latency_ms") or 0.0) / 1000, error=failed, thrown=thrown, output=said,
        usage=usage_of(row.get("usage")), missing=missing, assumed=["time, from when the tape began"] if start else [],
    )  # fmt: skip
    if place == "model":
        body = {name: value for name, value in asked.items() if name != "endpoint"}
        seen.input, seen.model = (
            _cut_later_messages(body, said, seen.assumed),
            str(asked.get("model") or ""),
        )
        seen.provider = recorders.named_provider(asked.get("endpoint"), about.get("framework"))
    else:
        given = asked.get("args", asked.get("arguments", asked))
        more = asked.get("kwargs")
        seen.input = recorders.named_arguments(
            {"args": given, "kwargs": more} if more is not None else given
        )
    yield observed.item(seen, "agenttape", source.name)


def _cut_later_messages(body: dict[str, Any], said: Any, assumed: list[str]) -> dict[str, Any]:
    """The request without what came after it: agenttape keeps the list of messages that the program
    goes on with.
    """
    own = _find_tool_call_ids(said)
    for place, message in enumerate(listed_field(body.get("messages"))):
        if own & _find_tool_call_ids(message):
            assumed.append(
                "messages up to the reply: the tape holds those that were added after it too"
            )
            return {**body, "messages": body["messages"][:place]}
    return body


def _find_tool_call_ids(told: Any) -> set[str]:
    """The ids of the tool calls in a message, or in a reply's choices."""
    choices = [
        mapping_field(each_).get("message")
        for each_ in listed_field(mapping_field(told).get("choices"))
    ] or [told]
    calls = (
        use for message in choices for use in listed_field(mapping_field(message).get("tool_calls"))
    )
    blocks = (
        block
        for block in listed_field(mapping_field(told).get("content"))
        if mapping_field(block).get("type") == "tool_use"
    )
    return {str(use["id"]) for use in (*calls, *blocks) if mapping_field(use).get("id")}


def _build_http_call(
    source: Source,
    trace: str,
    number: int,
    asked: Mapping[str, Any],
    said: Mapping[str, Any],
    start: float,
) -> Item:
    request = Request(
        str(asked.get("method") or "GET").upper(), str(asked.get("url") or ""), read_headers(asked.get("headers")),
        _decode_body(asked),
    )  # fmt: skip
    data = _decode_body(said)
    reply = Reply(
        status_of(said.get("status", said.get("status_code"))),
        read_headers(said.get("headers")),
        (data,),
    )
    made = recorded_exchange(
        source,
        number,
        "agenttape",
        request,
        reply,
        grade="J",
        missing=[LOST, "request bytes"],
        start=start,
    )
    if not isinstance(made, Skipped):
        made.trace = trace
    return made


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
    return [_strip_marks(each_, missing) for each_ in value] if isinstance(value, list) else value
