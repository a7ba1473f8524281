"""The edits that people make of a reply, made of a corpus's: a text, a tool's argument, a block taken out, one put in.

`proven(record)` makes each and looks at the result with the real SDK: it must be what the edited message would be had
the provider sent it (composed from nothing), and events of what was not touched must be the recorded bytes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from tape_jupyter.providers import editing
from tape_jupyter.providers.streams.events import join_events, parse_events
from tests.harness import sdk_views

SAID = 'Größe "42"\n\x0b\x1c\u2028 🦊 </script>'


def edits(wire: str, message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and edited message of each edit that can be made of this one."""
    path = editing.first_text(wire, message)
    if path is not None:
        yield "text", editing.with_text(wire, message, SAID)
        yield "longer text", editing.with_text(wire, message, "word " * 400)
        yield "empty text", editing.with_text(wire, message, "")
        yield (
            "text goes on",
            editing.with_text(wire, message, editing.value_at(message, path) + " And more."),
        )
    for path in calls(wire, message):
        changed = with_argument(wire, message, path)
        if changed is not None:
            yield "argument", changed
            break
    for path in lists(wire, message):
        listed = editing.value_at(message, path)
        for number in range(len(listed)):
            yield (
                "block removed",
                editing.with_value_at(message, path, [*listed[:number], *listed[number + 1 :]]),
            )
        yield "block added", editing.with_value_at(message, path, [*listed, added(wire, path)])
        yield "block put first", editing.with_value_at(message, path, [added(wire, path), *listed])
    for key in ("model", "id"):
        if isinstance(message.get(key), str):
            yield key, {**message, key: "another"}


def lists(wire: str, message: dict[str, Any]) -> list[editing.Path]:
    """Where blocks are listed."""
    if wire == "anthropic":
        return [("content",)]
    if wire == "openai_responses":
        return [("output",)]
    told = [
        ("choices", number, "message", "tool_calls")
        for number in range(len(message.get("choices", [])))
    ]
    return [path for path in told if editing.value_at(message, path)]


def added(wire: str, path: editing.Path) -> dict[str, Any]:
    if wire == "anthropic":
        return {"type": "tool_use", "id": "toolu_made", "name": "look", "input": {"at": "the sky"}}
    if wire == "openai_responses":
        return {
            "type": "function_call",
            "id": "fc_made",
            "call_id": "call_made",
            "name": "look",
            "status": "completed",
            "arguments": '{"at":"the sky"}',
        }
    return {
        "id": "call_made",
        "type": "function",
        "function": {"name": "look", "arguments": '{"at":"the sky"}'},
    }


def calls(wire: str, message: dict[str, Any]) -> Iterator[editing.Path]:
    """Where arguments of tools stand."""
    if wire == "anthropic":
        yield from (
            ("content", n, "input")
            for n, b in enumerate(message["content"])
            if b.get("type") == "tool_use"
        )
    elif wire == "openai_responses":
        told = enumerate(message["output"])
        yield from (
            ("output", n, "arguments") for n, item in told if item.get("type") == "function_call"
        )
    else:
        for path in lists(wire, message):
            yield from (
                (*path, n, "function", "arguments")
                for n in range(len(editing.value_at(message, path)))
            )


def with_argument(wire: str, message: dict[str, Any], path: editing.Path) -> dict[str, Any] | None:
    """The same with one argument more, or None where they are no JSON object."""
    value = editing.value_at(message, path)
    parsed = json.loads(value) if isinstance(value, str) and value else value
    if not isinstance(parsed, dict):
        return None
    changed = {**parsed, "made": SAID}
    return editing.with_value_at(
        message, path, json.dumps(changed) if wire != "anthropic" else changed
    )


def proven(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name of each edit and what is wrong with what came of it ("" if nothing is)."""
    from tests.reencode_corpus import call_of, is_beta, plain

    request, reply = call_of(record)
    taken = editing.take_apart_reply(request, reply)
    if taken is None:
        return
    look = {"streamed": taken.streamed, "beta": is_beta(request)}
    for name, message in edits(taken.wire, taken.message):
        wanted, _ = editing.settle_message(taken.wire, taken.message, copy.deepcopy(message))
        edited, _ = editing.encoded(request, reply, message)
        body = plain(edited)
        found = editing.take_apart_reply(request, edited)
        alone = (
            editing.composed(taken.wire, wanted) if taken.streamed else json.dumps(wanted).encode()
        )
        seen, meant = (sdk_views.sees(taken.wire, each, **look) for each in (body, alone))
        if found is None or canonical(found.message) != canonical(wanted):
            yield name, f"says {found and first_difference(wanted, found.message)}"
        elif sdk_views.bare(seen) != sdk_views.bare(meant):
            yield (
                name,
                f"the SDK sees {first_difference(sdk_views.bare(meant), sdk_views.bare(seen))}",
            )
        elif taken.streamed and (gone := lost(taken.body, body, name)):
            yield name, gone
        elif len(edited.chunks) != len(edited.waits) or list(edited.waits) != sorted(edited.waits):
            yield name, "waits that do not rise with the chunks"
        else:
            yield name, ""


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def lost(old: bytes, new: bytes, name: str) -> str:
    """What is no longer there of events that hold nothing of the message (pings, comments, unknown ones)."""
    kept = {event.raw for event in parse_events(new)}
    odd = [event for event in parse_events(old) if event.data is None or event.kind == "ping"]
    gone = [event.raw for event in odd if event.raw not in kept]
    assert join_events(parse_events(new)) == new
    return f"{name} lost {gone[0][:80]!r}" if gone else ""


def first_difference(one: Any, two: Any, at: str = "") -> str:
    if isinstance(one, dict) and isinstance(two, dict):
        for key in {**one, **two}:
            if key not in one or key not in two:
                return f"{at}.{key}: {'missing' if key in one else 'added'} {str(one.get(key, two.get(key)))[:100]}"
            if one[key] != two[key]:
                return first_difference(one[key], two[key], f"{at}.{key}")
    if isinstance(one, list) and isinstance(two, list):
        if len(one) != len(two):
            return f"{at}: {len(one)} became {len(two)}"
        for number, (x, y) in enumerate(zip(one, two)):
            if x != y:
                return first_difference(x, y, f"{at}[{number}]")
    return f"{at}: {str(one)[:160]!r} became {str(two)[:160]!r}"
