"""One span in full: protocol.ts' `Detail`, `Raw` and `Diff`. Read when a person looks at it.

What cannot be read says so in `error`; nothing here raises for what a file holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tape_jupyter.cassette.cell_sources import cell_of
from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.cassette.reader import Book
from tape_jupyter.cassette.records import moment_text as written
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.call import FunctionCall, Headers, Reply, Request, Value
from tape_jupyter.core.parse_limits import ReadBudget
from tape_jupyter.errors import CassetteError
from tape_jupyter.providers import conversation as providers_conversation
from tape_jupyter.providers import editing, registry
from tape_jupyter.providers.json_access import as_mapping
from tape_jupyter.spans import formatting
from tape_jupyter.spans.headers import (
    CELL,
    KINDS,
    MODEL,
    SPAN,
    CallHeader,
    host_and_path,
    read_call_headers,
)
from tape_jupyter.spans.rows import Spans, price
from tape_jupyter.spans.titles import happened, one_line
from tape_jupyter.spans.tree import Node

TagsOf = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
"""The tags of a recorded call, of its run's kit and its own."""

CANDIDATES = 60
_TURNS, _BLOCK = 400, 1024 * 1024
_MALFORMED = (CassetteError, OSError, TypeError, ValueError, LookupError, AttributeError)


class ReadCall(NamedTuple):
    """A call, read in full. `failure` is why it could not be, "" where it was."""

    request: Request | FunctionCall | None
    reply: Reply | Value | None
    head: Mapping[str, Any]
    failure: str = ""


def _read_no_tags(_run: Mapping[str, Any], _call: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


def read_call(entry: Entry | None, budget: ReadBudget | None = None) -> ReadCall:
    """A call with its bodies. With a budget, a call that holds more is told as one that is too
    large.
    """
    if entry is None:
        return ReadCall(None, None, {})
    try:
        if budget is not None and (excess := _describe_excess(entry, budget)):
            return ReadCall(None, None, entry.head(), excess)
        return ReadCall(entry.request(), entry.reply(), entry.head())
    except _MALFORMED as error:
        return ReadCall(None, None, {}, str(error))


def _describe_excess(entry: Entry, budget: ReadBudget) -> str:
    """What of a call is beyond the budget; "" nothing."""
    if not budget.allows_values(count := entry.book.count_values(entry)):
        return f"it holds about {count:,} values: too many to be shown here"
    if not budget.allows_texts(size := entry.book.long_texts(entry)):
        return f"its long texts have {size:,} bytes: too large to be shown here"
    return ""


def find_span(spans: Spans, span: str) -> Node | None:
    """The span of that id: one that is shown, or a call of a run that was superseded."""
    node = spans.node(span)
    if node is not None:
        return node
    run, _, call = span.rpartition("/")
    entry = spans.book.call(run, call) if run else None
    if entry is None:
        return None
    header = next(read_call_headers([entry]))
    return Node(
        span,
        header.kind,
        1,
        spans.book.by_run.get(run, {}),
        header.at,
        header.at + header.seconds,
        header,
    )


def span_detail(
    spans: Spans, node: Node, tags_of: TagsOf = _read_no_tags, call: ReadCall | None = None
) -> dict[str, Any]:
    """protocol.ts' `Detail` of a span; `call` is what was read of it, where it was."""
    if node.header is None:
        return _describe_group(spans, node)
    return _describe_call(spans, node, node.header, tags_of, call or read_call(node.header.entry))


def _describe_group(spans: Spans, node: Node) -> dict[str, Any]:
    """A cell run, or a span of the user's."""
    record = node.record
    ended = spans.book.ended.get(str(record.get("run")), {}) if node.kind == CELL else {}
    source = spans.sources.find_source(record)
    row = spans.row(node)
    kit = record.get("kit")
    run_fields = {name: value for name, value in record.items() if name not in ("kit", "pins")}
    outcome = {name: value for name, value in ended.items() if name != "end"} or {
        "calls": node.calls
    }
    return {
        **_build_detail(spans, node, row.name),
        "line": 0,
        "request": formatting.section_of(source or ""),
        "reply": formatting.value_section(formatting.safe_json(outcome)),
        "ending": str(ended.get("outcome", "" if node.kind == SPAN else "incomplete")),
        "error": formatting.sendable_text(ended["error"], 4_000) if "error" in ended else None,
        "kit": formatting.name_text_pairs(run_fields)
        + (
            formatting.name_text_pairs(kit)
            if isinstance(kit, Mapping) and node.kind == CELL
            else []
        ),
        "source": None if source is None else formatting.sendable_text(source),
    }


def _build_detail(spans: Spans, node: Node, title: str) -> dict[str, Any]:
    """Every field of a Detail, as they are for what is no call."""
    return {
        "id": node.id, "kind": KINDS[node.kind], "title": title, "cell": cell_of(node.record),
        "path": str(spans.book.path), "line": 0, "turns": [],
        "request": formatting.section_of(""), "reply": formatting.section_of(""),
        "headers": {"request": [], "reply": []},
        "status": None, "ending": "", "error": None,
        "timing": {"at": _format_time(node.begin), "seconds": round(max(0.0, node.end - node.begin), 4),
                   "first": None, "chunks": 0, "rate": None},
        "usage": {"tokens_in": None, "tokens_out": None, "cost": None, "model": ""},
        "kit": [], "tags": [], "raw": {"request": 0, "reply": 0},
        "overridden": None, "editable": "no", "source": None,
    }  # fmt: skip


def _format_time(seconds: float) -> str:
    from datetime import UTC, datetime

    if 0 < seconds < _LATE:
        return written(datetime.fromtimestamp(seconds, UTC))
    return ""


_LATE = 32_503_680_000


def _describe_call(
    spans: Spans, node: Node, header: CallHeader, tags_of: TagsOf, call: ReadCall
) -> dict[str, Any]:
    seen = spans.happened(header)
    error = _find_error(header, call)
    detail = {
        **_build_detail(spans, node, seen.name),
        "error": None if error is None else formatting.sendable_text(error, 4_000),
        "kit": _list_kit(node, call),
        "tags": formatting.name_text_pairs(
            tags_of(as_mapping(node.record.get("kit")), as_mapping(call.head.get("kit")))
        ),
        "overridden": _describe_override(header.entry, call.head),
        "source": spans.sources.find_source(node.record),
    }
    if header.entry is not None:
        detail |= {"path": str(header.entry.book.path), "line": _count_line(spans, header.entry)}
    if isinstance(call.request, Request) and isinstance(call.reply, Reply):
        detail |= _describe_request(header, call.request, call.reply)
    elif isinstance(call.request, FunctionCall) and isinstance(call.reply, Value):
        detail |= _describe_function(call.request, call.reply)
    detail["timing"] |= {"first": seen.first, **_measure_pace(header, call.reply)}
    return detail


def _count_line(spans: Spans, entry: Entry) -> int:
    """The line of a record, counted on from that of the one asked for before: a page asks for one
    after another.
    """
    book = entry.book
    try:
        at, line = spans.lines.get(book.path, (0, 1))
        if at > entry.offset or not isinstance(book, Book):
            return entry.line
        while at < entry.offset and (data := book.raw(at, min(_BLOCK, entry.offset - at))):
            at, line = at + len(data), line + data.count(b"\n")
        spans.lines[book.path] = (at, line)
    except _MALFORMED:
        return 0
    return line


def _find_error(header: CallHeader, call: ReadCall) -> str | None:
    if call.failure or header.error:
        return call.failure or header.error
    if call.reply is not None and call.reply.error is not None:
        frozen = call.reply.error
        return header.failed or str(
            frozen.get("message") or frozen.get("type") or "an error was raised"
        )
    return header.failed or None


def _describe_request(header: CallHeader, request: Request, reply: Reply) -> dict[str, Any]:
    if header.kind == MODEL:
        conversation = providers_conversation.conversation_turns(request, reply)
    else:
        conversation = []
    usage = header.facts.usage
    return {
        "turns": [_build_turn(turn) for turn in conversation[-_TURNS:]],
        "request": formatting.body_section(request.body, request.headers),
        "reply": _build_reply_section(reply),
        "headers": {"request": _list_headers(request.headers), "reply": _list_headers(reply.headers)},
        "status": reply.status,
        "ending": reply.end,
        "usage": {
            "tokens_in": usage.input if usage else None, "tokens_out": usage.output if usage else None,
            "cost": price(header.facts, header.at), "model": header.facts.answered or header.facts.model,
        },
        "raw": {"request": len(request.body), "reply": len(reply.body)},
        "editable": _choose_editing(header, reply, conversation),
    }  # fmt: skip


def _choose_editing(
    header: CallHeader, reply: Reply, conversation: list[providers_conversation.Turn]
) -> str:
    wire = registry.identify(Request("POST", header.target)).wire
    answered = bool(conversation) and conversation[-1]["role"] in ("assistant", "thinking")
    if answered and editing.format_of(wire) and reply.status == 200:
        return "message"
    return "raw"


def _build_reply_section(reply: Reply) -> dict[str, Any]:
    if reply.status is None:
        return formatting.value_section(dict(reply.error or {}))
    return formatting.body_section(reply.body, reply.headers)


def _build_value_section(call: FunctionCall, value: Value, side: str) -> dict[str, Any]:
    """What a function was given, or what it gave."""
    if side == "request":
        return formatting.value_section(dict(call.arguments))
    return formatting.value_section(dict(value.error) if value.error is not None else value.value)


def _describe_function(call: FunctionCall, value: Value) -> dict[str, Any]:
    request = _build_value_section(call, value, "request")
    reply = _build_value_section(call, value, "reply")
    sizes = {"request": len(_encode_section(request)), "reply": len(_encode_section(reply))}
    kept = {
        "ending": "error" if value.error is not None else "complete",
        "editable": "no" if value.unkept else "value",
    }
    if value.error is not None:  # as it is recorded, it stands in the raw text
        reply = formatting.section_of(_format_raised(value.error))
    return {"request": request, "reply": reply, "raw": sizes, **kept}


def _format_raised(error: Mapping[str, Any]) -> str:
    """`raised KeyError('ada')`"""
    name = str(error.get("class") or "an exception").rpartition(":")[2]
    given = error.get("args")
    return f"raised {name}({', '.join(map(repr, given if isinstance(given, list) else ()))})"


def _encode_section(section: Mapping[str, Any]) -> bytes:
    return str(section["text"]).encode("utf-8")


def _list_headers(headers: Headers) -> list[list[str]]:
    return [
        [formatting.sendable_text(name, 200), formatting.sendable_text(value, 8_000)]
        for name, value in headers[:500]
    ]


def _build_turn(turn: providers_conversation.Turn) -> dict[str, Any]:
    return {"role": turn["role"], "parts": [_build_part(part) for part in turn["parts"][:_TURNS]]}


def _build_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part as it may be sent. A picture keeps its data, which turns.py has capped."""
    cut = {name: formatting.safe_json(value) for name, value in part.items() if name != "data"}
    return {**cut, "data": part["data"]} if "data" in part else cut


def _measure_pace(header: CallHeader, reply: Reply | Value | None) -> dict[str, Any]:
    """Chunks, and tokens a second once the first had come."""
    if not isinstance(reply, Reply):
        return {"chunks": 0, "rate": None}
    first = reply.waits[0] if reply.waits else 0.0
    usage, streaming = header.facts.usage, header.seconds - first
    spread = len(reply.chunks) > 1 and usage is not None and streaming > 0
    return {
        "chunks": len(reply.chunks),
        "rate": round(usage.output / streaming, 1) if spread and usage else None,
    }


def _list_kit(node: Node, call: ReadCall) -> list[list[str]]:
    """What the call was made with, then what its run was."""
    fields: dict[str, Any] = {}
    if isinstance(call.request, Request):
        known = registry.call_facts(
            call.request, call.reply if isinstance(call.reply, Reply) else None
        )
        fields = {
            "provider": known.provider, "api": known.api, "model": known.model, "answered": known.answered,
            **{f"sampling.{name}": value for name, value in known.sampling.items()},
            "tools": [f"{tool.name} ({tool.digest})" for tool in known.tools],
            "stop": known.stop, "request id": known.request_id, **{f"limits.{k}": v for k, v in known.limits.items()},
            "url": call.request.url,
        }  # fmt: skip
    kept = (
        "call",
        "run",
        "match",
        "lineage",
        "parent",
        "span",
        "frozen",
        "diverged",
        "edit",
        "usage",
        "by",
    )
    fields |= {name: call.head[name] for name in kept if name in call.head}
    filled = {name: value for name, value in fields.items() if value not in ("", None, [], {})}
    run = {
        name: value
        for name, value in as_mapping(node.record.get("kit")).items()
        if name not in _LISTS
    }
    return formatting.name_text_pairs(filled) + formatting.name_text_pairs(run, before="run.")


# what is long stands with the cell
_LISTS = (
    "distributions",
    "modules",
    "variables",
    "environment",
)


def _describe_override(entry: Entry | None, head: Mapping[str, Any]) -> dict[str, Any] | None:
    if not isinstance(entry, Overridden):
        return None
    notes = [f"edited: {head['edit']}"] if "edit" in head else []
    notes += [f"answered by run {entry.by}"] if entry.by else []
    notes += ["its usage is that of the recorded reply"] if head.get("usage") == "stale" else []
    notes += ["for the tape only: its signatures were dropped"] if head.get("tape only") else []
    recorded = happened(next(read_call_headers([entry.recorded]))).name
    note = "; ".join([*notes, f"recorded: {recorded}"])
    stale = head.get("diverged") == "stale"
    return {
        "take": files.take_name(Path(entry.book.path)),
        "stale": stale,
        "note": formatting.sendable_text(note, 1_000),
    }


# ---------------------------------------------------------------- raw bytes, differences


def raw_body(entry: Entry, side: str, start: int, size: int) -> dict[str, Any]:
    """A page of a body's bytes as they went over the wire; of a function, of its values as JSON."""
    return raw_of(read_call(entry), side, start, size)


def raw_of(call: ReadCall, side: str, start: int, size: int) -> dict[str, Any]:
    """The same of a call that was read."""
    if call.failure:
        return formatting.raw_page(call.failure.encode("utf-8", "replace"), start, size)
    return formatting.raw_page(_read_side(call, side), start, size)


def _read_body(of: Request | Reply) -> bytes:
    if isinstance(of, Request):
        if of.large is None:
            return of.body
        return f"({of.large.size:,} bytes: too large to be shown)".encode()
    if of.readable or not of.size:
        return of.readable
    return f"({of.size:,} bytes: too large to be shown)".encode()


def _read_side(call: ReadCall, side: str) -> bytes:
    if isinstance(call.request, Request) and isinstance(call.reply, Reply):
        return _read_body(call.request if side == "request" else call.reply)
    if isinstance(call.request, FunctionCall) and isinstance(call.reply, Value):
        return _encode_section(_build_value_section(call.request, call.reply, side))
    return b""


def told_in_full(entry: Entry) -> str:
    """Request and reply of a call as one text, for a diff."""
    call = read_call(entry)
    if isinstance(call.request, Request) and isinstance(call.reply, Reply):
        request = formatting.body_section(call.request.body, call.request.headers)
        reply = _build_reply_section(call.reply)
    elif isinstance(call.request, FunctionCall) and isinstance(call.reply, Value):
        request, reply = (
            _build_value_section(call.request, call.reply, side) for side in ("request", "reply")
        )
    else:
        return call.failure
    return f"request\n{request['text']}\n\nreply\n{reply['text']}"


def diff_calls(left: Entry, right: Entry) -> dict[str, Any]:
    """protocol.ts' `Diff` of two calls."""
    named = [
        f"{each.run}/{each.id} {happened(next(read_call_headers([each]))).name}"
        for each in (left, right)
    ]
    texts = told_in_full(left), told_in_full(right)
    return {
        "left": texts[0],
        "right": texts[1],
        "left_name": one_line(named[0]),
        "right_name": one_line(named[1]),
    }


def comparable_calls(spans: Spans, node: Node) -> list[dict[str, str]]:
    """Calls that a call may be compared with: what it was in the recording, then its likes, the
    nearest first.
    """
    header = node.header
    if header is None or header.entry is None:
        return []
    if isinstance(header.entry, Overridden):
        base = [{"id": "base", "name": "as recorded"}]
    else:
        base = []
    here = spans.place(node.id) or 0
    others = [
        (_count_differences(header, other.header), abs(place - here), other)
        for place, other in enumerate(spans.nodes)
        if other.header is not None
        and other.id != node.id
        and other.kind == node.kind
        and other.header.entry is not None
    ]
    likes = sorted(others, key=lambda each: each[:2])[: CANDIDATES - len(base)]
    return base + [{"id": other.id, "name": spans.row(other).name} for _, _, other in likes]


def _count_differences(header: CallHeader, other: CallHeader) -> int:
    """How much two calls differ in what they are: 0 the same function or address and model."""
    differ = header.target != other.target and host_and_path(header.target) != host_and_path(
        other.target
    )
    return 2 * differ + (header.facts.model != other.facts.model)
