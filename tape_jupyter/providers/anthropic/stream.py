"""Anthropic's stream of a message (Messages, beta Messages), taken apart and put together again.

    message_start {message without content} ; per block content_block_start {shell}, deltas,
    content_block_stop ; message_delta {stop_reason, usage} ; message_stop ; ping anywhere ; `error`
    after a 200

`read` gives the message as the JSON API would; an `error` event stands in it as `error`. Arguments
of a tool that break off (a cut stream) stand as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tape_jupyter.encoding.http.json_style import dialect, find_dialect
from tape_jupyter.providers.json_access import as_list, as_mapping, as_text, dig, maps
from tape_jupyter.providers.streams.diff import pair_parts, recut_parts
from tape_jupyter.providers.streams.events import (
    STYLE,
    StreamEvent,
    join_halves,
    same_json,
    style_of,
)

Block = dict[str, Any]

# Where a block's long texts are: key of the block -> type and key of the delta.
_LEAVES: Final = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "signature": ("signature_delta", "signature"),
    "input": ("input_json_delta", "partial_json"),
}
_HELD: Final = {"text": ("text",), "thinking": ("thinking", "signature")}
_TOOLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_SHELLS: Final = {"text": "", "thinking": "", "signature": ""}
_TAIL: Final = ("stop_reason", "stop_sequence", "stop_details", "container")
_BESIDE: Final = ("context_management", "input_transformations")


# ---------------------------------------------------------------- stream to message


@dataclass
class _StreamBlock:
    """A block of the stream: the places of its events, and its value so far."""

    start: int
    value: Block
    places: list[int] = field(default_factory=list)
    json: str = ""


def read(events: Sequence[StreamEvent]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for event in events:
        if event.kind == "message_start":
            message.update(as_mapping(event.data.get("message")))
        elif event.kind == "message_delta":
            _merge_end(message, event.data)
        elif event.kind == "error":
            message["error"] = event.data.get("error")
    blocks = [block.value for block in _collect_blocks(events)]
    if blocks or not isinstance(message.get("content"), list):
        message["content"] = blocks
    return message


def _merge_end(message: dict[str, Any], data: Mapping[str, Any]) -> None:
    """What a `message_delta` tells of the message. A null in it says nothing."""
    message.update(as_mapping(data.get("delta")))
    beside = {key: value for key, value in data.items() if key not in ("type", "delta", "usage")}
    message.update(_leave_nulls_out(beside))
    used = _leave_nulls_out(as_mapping(data.get("usage")))
    message["usage"] = {**as_mapping(message.get("usage")), **used}


def _leave_nulls_out(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _collect_blocks(events: Sequence[StreamEvent]) -> list[_StreamBlock]:
    """In the order of their starts; deltas of a block that never started belong to none."""
    blocks: list[_StreamBlock] = []
    at: dict[Any, _StreamBlock] = {}
    for place, event in enumerate(events):
        if not event.kind.startswith("content_block_"):
            continue
        index = str(event.data.get("index"))
        if event.kind == "content_block_start":
            at[index] = _StreamBlock(place, dict(as_mapping(event.data.get("content_block"))))
            blocks.append(at[index])
        if index in at:
            at[index].places.append(place)
            _add_delta(at[index], as_mapping(event.data.get("delta")))
    for block in blocks:
        _close_block(block)
    return blocks


def _add_delta(block: _StreamBlock, delta: Mapping[str, Any]) -> None:
    value, kind = block.value, delta.get("type")
    if kind == "input_json_delta":
        block.json += as_text(delta.get("partial_json"))
    elif kind == "signature_delta":
        value["signature"] = delta.get("signature")
    elif kind == "citations_delta":
        value["citations"] = [*as_list(value.get("citations")), delta.get("citation")]
    elif kind in ("text_delta", "thinking_delta"):
        key = _LEAVES["text" if kind == "text_delta" else "thinking"][1]
        value[key] = as_text(value.get(key)) + as_text(delta.get(key))
    else:  # compaction_delta, and what is to come: its fields replace the block's
        value.update({key: field_value for key, field_value in delta.items() if key != "type"})


def _close_block(block: _StreamBlock) -> None:
    for key in ("text", "thinking"):
        if isinstance(block.value.get(key), str):
            block.value[key] = join_halves(block.value[key])
    if block.json:
        try:
            block.value["input"] = json.loads(block.json)
        except (ValueError, RecursionError):
            block.value["input"] = block.json


# ---------------------------------------------------------------- message to stream, from what was recorded


def rewrite(events: Sequence[StreamEvent], message: Mapping[str, Any]) -> list[StreamEvent]:
    old, seen, style = read(events), _collect_blocks(events), style_of(events)
    blocks = list(maps(message.get("content")))
    matches = pair_parts([block.value for block in seen], blocks)
    replacements: dict[int, list[StreamEvent]] = {}
    for place in {place for block in seen for place in block.places}:
        replacements[place] = []
    before = _find_end(events, seen)
    for number, (block, was) in reversed(list(enumerate(zip(blocks, matches, strict=True)))):
        if was is None:
            replacements[before] = [
                *_compose_block(block, number, style),
                *replacements.get(before, events[before : before + 1]),
            ]
        else:
            replacements |= _rewrite_block(events, seen[was], block, (was, number), style)
            before = seen[was].start
    out = [new for place, event in enumerate(events) for new in replacements.get(place, [event])]
    return _rewrite_ends([*out, *replacements.get(len(events), [])], old, message, style)


def _find_end(events: Sequence[StreamEvent], seen: Sequence[_StreamBlock]) -> int:
    """Where blocks that are added at the end go: before what follows the last one."""
    last = max((block.places[-1] for block in seen), default=-1)
    ends = ("message_delta", "message_stop", "error")
    for place, event in enumerate(events):
        if place > last and event.kind in ends:
            return place
    return len(events)


def _rewrite_block(
    events: Sequence[StreamEvent],
    block: _StreamBlock,
    new: Mapping[str, Any],
    numbers: tuple[int, int],
    style: StreamEvent,
) -> dict[int, list[StreamEvent]]:
    """What stands for each event of a block that is `new` now. `numbers`: which one it was, and is."""
    was, number = numbers
    if same_json(new, block.value):
        return {place: [_move_event(events[place], number - was)] for place in block.places}
    if not _may_keep_events(block.value, new):
        return {
            **{place: [] for place in block.places},
            block.start: _compose_block(new, number, style),
        }
    replacements = {place: [_move_event(events[place], number - was)] for place in block.places}
    for key in _list_text_keys(as_text(new.get("type"))):
        if not same_json(new.get(key), block.value.get(key)):
            _recut_text(events, block, key, new, replacements, style)
    start, *more = replacements[block.start]
    shell = dict(start.data["content_block"])
    for key in shell:
        # these are empty in a block's start, and come with its deltas
        if key not in (*_SHELLS, "input", "citations"):
            shell[key] = new.get(key)
    replacements[block.start] = [start.replace_data({**start.data, "content_block": shell}), *more]
    return replacements


def _list_text_keys(kind: str) -> tuple[str, ...]:
    """Where a block of this type has its long texts."""
    if kind in _TOOLS:
        return ("input",)
    return _HELD.get(kind, ())


def _may_keep_events(old: Block, new: Mapping[str, Any]) -> bool:
    """Whether only long texts and plain fields changed: then the recorded events still tell the
    block.
    """
    leaves = {"text", "thinking", "signature", "input"}
    if old.get("type") != new.get("type") or old.keys() != new.keys():
        return False
    plain = {key for key in new.keys() - leaves if not same_json(old[key], new[key])}
    return "citations" not in plain and new.get("type") in (*_HELD, *_TOOLS)


def _move_event(event: StreamEvent, by: int) -> StreamEvent:
    """An event of a block that is that much further on now."""
    index = event.data.get("index")
    if by and type(index) is int:
        return event.replace_data({**event.data, "index": index + by})
    return event


def _recut_text(
    events: Sequence[StreamEvent],
    block: _StreamBlock,
    key: str,
    new: Mapping[str, Any],
    replacements: dict[int, list[StreamEvent]],
    style: StreamEvent,
) -> None:
    """Cut a changed text over the deltas that held it; where there were none, put one after the
    block's start.
    """
    kind, name = _LEAVES[key]
    places = [place for place in block.places if dig(events[place].data, "delta.type") == kind]
    parts = [as_text(events[place].data["delta"].get(name)) for place in places]
    first = ""
    if key in ("text", "thinking"):
        first = as_text(events[block.start].data["content_block"].get(key))
    if first:
        places, parts = [block.start, *places], [first, *parts]
    if key == "input":
        new_text = _format_arguments(new["input"], "".join(parts))
    else:
        new_text = as_text(new.get(key))
    if not places:
        if key == "signature" and len(block.places) > 1:
            where = block.places[-1]
        else:
            where = block.start
        index = replacements[block.start][0].data.get("index")
        delta_event = style.like(_build_delta(index, kind, name, new_text))
        if where != block.start:
            replacements[where] = [delta_event, *replacements[where]]
        else:
            replacements[where] = [*replacements[where], delta_event]
        return
    cut: list[str | None]
    if key == "signature":  # one delta holds it whole
        cut = [new_text or None, *[None] * (len(places) - 1)]
    else:
        cut = recut_parts(parts, new_text)
        cut += [None] * (len(places) - len(cut))
    for place, part in zip(places, cut, strict=True):
        _set_delta_field(replacements, place, name, part)


def _set_delta_field(
    replacements: dict[int, list[StreamEvent]], place: int, name: str, part: str | None
) -> None:
    event = replacements[place][0]
    inner = "content_block" if event.kind == "content_block_start" else "delta"
    if part is None and inner == "delta":
        replacements[place] = []
        return
    if event.data[inner].get(name) != (part or ""):
        changed = {**event.data[inner], name: part or ""}
        replacements[place] = [event.replace_data({**event.data, inner: changed})]


def _format_arguments(value: Any, recorded: str) -> str:
    """Arguments as JSON text, spelled like the recorded ones; a text is what a cut stream left of
    them.
    """
    if isinstance(value, str):
        return value
    try:
        spelling = find_dialect(recorded, json.loads(recorded))
    except ValueError:
        spelling = None
    return (spelling or dialect("spaced")).encode(value)


def _rewrite_ends(
    events: list[StreamEvent], old: Mapping[str, Any], new: Mapping[str, Any], style: StreamEvent
) -> list[StreamEvent]:
    """The events that tell what is not in a block, telling what the message says now."""
    differs = old.keys() ^ new.keys()
    differs |= {key for key in old.keys() & new.keys() if not same_json(old[key], new[key])}
    differs -= {"content"}
    if not differs:
        return events
    if "error" in differs and "error" not in new:
        events = [event for event in events if event.kind != "error"]
    out = [_update_event(event, new, differs) for event in events]
    has_end = any(event.kind == "message_delta" for event in events)
    if differs & {"stop_reason", "stop_sequence"} and not has_end and new.get("stop_reason"):
        # the end of a stream that had none
        out = [event for event in out if event.kind != "message_stop"]
        out += [style.like(each) for each in _compose_end(new)]
    return out


def _update_event(event: StreamEvent, new: Mapping[str, Any], differs: set[str]) -> StreamEvent:
    if event.kind == "message_start":
        message = dict(as_mapping(event.data.get("message")))
        message |= {key: new.get(key) for key in differs - {*_TAIL, "usage", "error", *_BESIDE}}
        if "usage" in message and "usage" in differs:
            message["usage"] = {**as_mapping(message["usage"]), **as_mapping(new.get("usage"))}
        return event.replace_data({**event.data, "message": message})
    if event.kind == "message_delta":
        ends: dict[str, Any] = {key: new.get(key) for key in _TAIL if key in differs}
        delta = {**as_mapping(event.data.get("delta")), **ends}
        extra: dict[str, Any] = {key: new[key] for key in _BESIDE if key in differs and key in new}
        data: dict[str, Any] = {**event.data, "delta": delta, **extra}
        if "usage" in differs:
            usage = as_mapping(new.get("usage"))
            told = as_mapping(data.get("usage"))
            data["usage"] = {key: usage.get(key, old_value) for key, old_value in told.items()}
        return event.replace_data(data)
    if event.kind == "error" and "error" in differs:
        return event.replace_data({**event.data, "error": new.get("error")})
    return event


# ---------------------------------------------------------------- message to stream, from nothing


def compose(message: Mapping[str, Any], like: StreamEvent = STYLE) -> list[StreamEvent]:
    return [like.like(data) for data in _compose_events(message)]


def _compose_events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    later = {*_TAIL, *_BESIDE, "error"} - {"container"}
    shell = {key: value for key, value in message.items() if key not in later}
    if "id" in message or "role" in message:
        start = {**shell, "content": [], "stop_reason": None, "stop_sequence": None}
        yield {"type": "message_start", "message": start}
    for number, block in enumerate(maps(message.get("content"))):
        yield from _compose_block_data(block, number)
    if message.get("error") is not None:
        yield {"type": "error", "error": message["error"]}
    elif message.get("stop_reason") is not None:
        yield from _compose_end(message)


def _compose_end(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    delta: dict[str, Any] = {"stop_reason": None, "stop_sequence": None}
    delta |= {key: message[key] for key in _TAIL if key in message}
    usage = dict(as_mapping(message.get("usage")))
    extra = {key: message[key] for key in _BESIDE if key in message}
    yield {"type": "message_delta", "delta": delta, "usage": usage, **extra}
    yield {"type": "message_stop"}


def _compose_block(block: Mapping[str, Any], number: int, style: StreamEvent) -> list[StreamEvent]:
    return [style.like(data) for data in _compose_block_data(block, number)]


def _compose_block_data(block: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    kind = as_text(block.get("type"))
    shell = dict(block)
    deltas: list[dict[str, Any]] = []
    for key in _HELD.get(kind, ()):
        if isinstance(block.get(key), str):
            shell[key] = ""
            if block[key]:
                deltas.append(_build_delta(number, *_LEAVES[key], block[key]))
    if kind == "text" and block.get("citations"):
        shell["citations"] = []
        citations = as_list(block["citations"])
        deltas += [_build_delta(number, "citations_delta", "citation", each) for each in citations]
    if kind in _TOOLS and block.get("input"):
        shell["input"] = {}
        arguments = _format_arguments(block["input"], "")
        deltas.append(_build_delta(number, *_LEAVES["input"], arguments))
    yield {"type": "content_block_start", "index": number, "content_block": shell}
    yield from deltas
    yield {"type": "content_block_stop", "index": number}


def _build_delta(number: Any, kind: str, name: str, value: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": number, "delta": {"type": kind, name: value}}
