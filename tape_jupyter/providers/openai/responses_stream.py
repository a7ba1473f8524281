"""The stream of OpenAI's Responses API, taken apart and put together again.

    created, in_progress ; per item output_item.added, {content_part.added, X.delta*, X.done,
    content_part.done}, output_item.done ; completed | incomplete | failed, with the whole response

Every text stands in it up to five times: in deltas, in its `done`, its part's, its item's and in
the response at the end. All of them change together. `sequence_number`s count on where events were
taken out or put in.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tape_jupyter.providers.json_access import as_mapping, as_text, maps
from tape_jupyter.providers.streams.diff import pair_parts, recut_parts
from tape_jupyter.providers.streams.events import (
    STYLE,
    StreamEvent,
    join_halves,
    same_json,
    style_of,
)

_LAST: Final = (
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
)
_FIRST: Final = ("response.created", "response.queued", "response.in_progress")

# X of `response.X.delta` and `response.X.done`: the list of the item it is in ("" the item itself),
# the key in that list's entry, which is also the key of `done`, and the key of the entry's number.
_LEAVES: Final = {
    "output_text": ("content", "text", "content_index"),
    "refusal": ("content", "refusal", "content_index"),
    "reasoning_text": ("content", "text", "content_index"),
    "reasoning_summary_text": ("summary", "text", "summary_index"),
    "function_call_arguments": ("", "arguments", ""),
    "mcp_call_arguments": ("", "arguments", ""),
    "custom_tool_call_input": ("", "input", ""),
    "code_interpreter_call_code": ("", "code", ""),
}
_PARTS: Final = {
    "response.content_part": ("content", "content_index"),
    "response.reasoning_summary_part": ("summary", "summary_index"),
}


# ---------------------------------------------------------------- stream to message


def read(events: Sequence[StreamEvent]) -> dict[str, Any]:
    """The response in the last event that carries a whole one; of a cut stream, what its items had
    come to.
    """
    message: dict[str, Any] = {}
    ended = False
    for event in events:
        message.update(as_mapping(as_mapping(event.data).get("response")))
        ended = ended or event.kind in _LAST
        if event.kind == "error":
            error = event.data.get("error")
            message["error"] = error or {
                key: event.data.get(key) for key in ("code", "message", "param")
            }
    if not ended or not message.get("output"):
        items = _collect_items(events)
        message["output"] = [items[index] for index in sorted(items)] or message.get("output") or []
    return copy.deepcopy(message)


def _collect_items(events: Sequence[StreamEvent]) -> dict[int, dict[str, Any]]:
    items: dict[int, dict[str, Any]] = {}
    for event in events:
        index = as_mapping(event.data).get("output_index")
        if not isinstance(index, int):
            continue
        if event.kind in ("response.output_item.added", "response.output_item.done"):
            items[index] = copy.deepcopy(dict(as_mapping(event.data.get("item"))))
        elif index in items:
            _grow_item(items[index], event)
    return items


def _grow_item(item: dict[str, Any], event: StreamEvent) -> None:
    """What an event adds to an item that is not done."""
    about, _, verb = event.kind.rpartition(".")
    if about in _PARTS and verb == "added":
        name, number = _PARTS[about]
        place, listed = event.data.get(number, 0), item.setdefault(name, [])
        if isinstance(place, int) and isinstance(listed, list) and place == len(listed):
            listed.append(copy.deepcopy(event.data.get("part")))
    elif (leaf := _find_leaf(event)) and verb == "delta":
        where, key = _find_entry(item, leaf, event.data), _LEAVES[leaf][1]
        if where is not None:
            where[key] = join_halves(as_text(where.get(key)) + as_text(event.data.get("delta")))


def _find_leaf(event: StreamEvent) -> str:
    name = event.kind.removeprefix("response.").rpartition(".")[0]
    return name if name in _LEAVES else ""


def _find_entry(item: Any, leaf: str, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of an item that an event speaks of."""
    name, _, number = _LEAVES[leaf]
    if not name:
        return item if isinstance(item, dict) else None
    listed, place = as_mapping(item).get(name), data.get(number, 0)
    if not isinstance(listed, list) or not isinstance(place, int) or not 0 <= place < len(listed):
        return None
    return listed[place] if isinstance(listed[place], dict) else None


# ---------------------------------------------------------------- message to stream, from what was recorded


def rewrite(events: Sequence[StreamEvent], message: Mapping[str, Any]) -> list[StreamEvent]:
    old, style = read(events), style_of(events)
    before, after = list(maps(old.get("output"))), list(maps(message.get("output")))
    matches = pair_parts(before, after)
    replacements: dict[int, list[StreamEvent]] = {}
    owned = _group_places(events, len(before))
    for places in owned:
        replacements |= {place: [] for place in places}
    where = _find_end(events, owned)
    for number, (item, was) in reversed(list(enumerate(zip(after, matches, strict=True)))):
        if was is None:
            new_events = [style.like(data) for data in _compose_item(item, number)]
            replacements[where] = [*new_events, *replacements.get(where, events[where : where + 1])]
        elif owned[was]:
            replacements |= _rewrite_item(
                events, owned[was], before[was], item, (was, number), style
            )
            where = owned[was][0]
    if "error" in old and "error" not in message:
        replacements |= {place: [] for place, event in enumerate(events) if event.kind == "error"}
    out = [new for place, event in enumerate(events) for new in replacements.get(place, [event])]
    out = [
        _update_response(event, old, message)
        for event in (*out, *replacements.get(len(events), []))
    ]
    return _renumber_events(out, events)


def _group_places(events: Sequence[StreamEvent], count: int) -> list[list[int]]:
    """Of each item the places of its events: by its index, else by its id."""
    owned: list[list[int]] = [[] for _ in range(count)]
    for place, event in enumerate(events):
        index = as_mapping(event.data).get("output_index")
        if isinstance(index, int) and 0 <= index < count:
            owned[index].append(place)
    return owned


def _find_end(events: Sequence[StreamEvent], owned: Sequence[Sequence[int]]) -> int:
    last = max((places[-1] for places in owned if places), default=-1)
    ends = (*_LAST, "error")
    return next(
        (place for place, event in enumerate(events) if place > last and event.kind in ends),
        len(events),
    )


def _rewrite_item(
    events: Sequence[StreamEvent],
    places: Sequence[int],
    old: Any,
    new: Mapping[str, Any],
    numbers: tuple[int, int],
    style: StreamEvent,
) -> dict[int, list[StreamEvent]]:
    """What stands for each event of an item that is `new` now. `numbers`: which one it was, and is."""
    was, number = numbers
    if same_json(old, new):
        return {place: [_move_event(events[place], number - was)] for place in places}
    if not _may_keep_events(old, new):
        return {**{place: [] for place in places},
                places[0]: [style.like(data) for data in _compose_item(new, number)]}  # fmt: skip
    replacements = {
        place: [_update_copy(_move_event(events[place], number - was), old, new)]
        for place in places
    }
    for leaf, entry in _iterate_leaves(events, places):
        _recut_text(events, replacements, old, new, (leaf, entry))
    return replacements


def _may_keep_events(old: Any, new: Mapping[str, Any]) -> bool:
    """Whether the item has the same parts as before, and nothing but texts of them changed."""
    if as_mapping(old).get("type") != new.get("type"):
        return False
    for name in ("content", "summary"):
        one, two = as_mapping(old).get(name), new.get(name)
        if not isinstance(one, list) or not isinstance(two, list):
            if not same_json(one, two):
                return False
        elif len(one) != len(two) or not all(map(_may_keep_part, one, two)):
            return False
    return True


def _may_keep_part(one: Any, two: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(two, dict):
        return same_json(one, two)
    rest = [
        {k: v for k, v in part.items() if k not in ("text", "refusal", "logprobs")}
        for part in (one, two)
    ]
    return same_json(*rest) and one.keys() == two.keys()


def _move_event(event: StreamEvent, by: int) -> StreamEvent:
    """An event of an item that is that much further on now."""
    if not by:
        return event
    return event.replace_data({**event.data, "output_index": event.data["output_index"] + by})


def _update_copy(event: StreamEvent, old: Mapping[str, Any], new: Mapping[str, Any]) -> StreamEvent:
    """An event that holds a whole copy of something, with what that is now; ids follow."""
    data = dict(event.data)
    about, _, verb = event.kind.rpartition(".")
    if data.get("item_id") == old.get("id") and "item_id" in data and "id" in new:
        data["item_id"] = new["id"]
    if event.kind == "response.output_item.done":
        data["item"] = _merge_changes(data.get("item"), old, new)
    elif event.kind == "response.output_item.added":
        item = as_mapping(data.get("item"))
        data["item"] = {key: new[key] if key in new and same_json(value, old.get(key)) and value else value
                        for key, value in item.items()}  # fmt: skip
    elif about in _PARTS and verb == "done":
        name, number = _PARTS[about]
        one, two = (_find_entry_at(item, name, data.get(number, 0)) for item in (old, new))
        data["part"] = _merge_changes(data.get("part"), one, two)
    elif (leaf := _find_leaf(event)) and verb == "done":
        where, key = _find_entry(new, leaf, data), _LEAVES[leaf][1]
        if where is not None and key in data:
            data |= {key: where.get(key)}
            if isinstance(data.get("logprobs"), list) and "logprobs" in where:
                data["logprobs"] = where["logprobs"]
        if "name" in data and "name" in new:
            data["name"] = new["name"]
    return event.replace_data(data)


def _find_entry_at(item: Mapping[str, Any], name: str, place: Any) -> Mapping[str, Any]:
    listed = item.get(name)
    there = isinstance(listed, list) and isinstance(place, int) and 0 <= place < len(listed)
    return as_mapping(listed[place]) if there and isinstance(listed, list) else {}


def _merge_changes(copied: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
    """A copy with what changed changed in it: hosts leave this and that out of their copies."""
    if not isinstance(copied, dict) or same_json(copied, old):
        return dict(new)
    changed = {
        key: value
        for key, value in new.items()
        if not same_json(value, old.get(key)) or key not in old
    }
    return {
        **{key: value for key, value in copied.items() if key in new or key not in old},
        **changed,
    }


def _iterate_leaves(
    events: Sequence[StreamEvent], places: Sequence[int]
) -> Iterator[tuple[str, list[int]]]:
    """The texts of an item: each with the places of its deltas."""
    places_by_leaf: dict[tuple[str, Any], list[int]] = {}
    for place in places:
        leaf = _find_leaf(events[place])
        if (
            leaf
            and events[place].kind.endswith(".delta")
            and isinstance(events[place].data.get("delta"), str)
        ):
            number = _LEAVES[leaf][2]
            places_by_leaf.setdefault(
                (leaf, events[place].data.get(number) if number else None), []
            ).append(place)
    yield from ((leaf, at) for (leaf, _), at in places_by_leaf.items())


def _recut_text(
    events: Sequence[StreamEvent],
    replacements: dict[int, list[StreamEvent]],
    old: Any,
    new: Any,
    text_of: tuple[str, list[int]],
) -> None:
    """Cut a changed text over the deltas that held it."""
    leaf, places = text_of
    data, key = events[places[0]].data, _LEAVES[leaf][1]
    one, two = _find_entry(old, leaf, data), _find_entry(new, leaf, data)
    if one is None or two is None or same_json(one.get(key), two.get(key)):
        return
    parts = [as_text(events[place].data["delta"]) for place in places]
    for place, part, now in zip(
        places, parts, recut_parts(parts, as_text(two.get(key))), strict=True
    ):
        if now is None and part:
            replacements[place] = []
        elif now is not None and now != part:
            kept = replacements[place][0]
            stale: dict[str, Any] = {"logprobs": []} if kept.data.get("logprobs") else {}
            replacements[place] = [kept.replace_data({**kept.data, "delta": now, **stale})]


def _update_response(
    event: StreamEvent, old: Mapping[str, Any], new: Mapping[str, Any]
) -> StreamEvent:
    """Events that carry a response: the last the whole, the first ones what was known then."""
    response = as_mapping(event.data).get("response")
    if isinstance(response, dict) and event.kind in _LAST:
        return event.replace_data({**event.data, "response": _merge_changes(response, old, new)})
    if isinstance(response, dict) and event.kind in _FIRST:
        kept = {key: new[key] if key in new and value and same_json(value, old.get(key)) else value
                for key, value in response.items()}  # fmt: skip
        return event.replace_data({**event.data, "response": kept})
    if (
        event.kind == "error"
        and "error" in new
        and not same_json(old.get("error"), new.get("error"))
    ):
        inner = isinstance(event.data.get("error"), dict)
        return event.replace_data(
            {**event.data, **({"error": new["error"]} if inner else as_mapping(new["error"]))}
        )
    return event


def _renumber_events(
    events: Sequence[StreamEvent], recorded: Sequence[StreamEvent]
) -> list[StreamEvent]:
    """With sequence numbers that go on where events were taken out or put in."""
    shift, last, reached = 0, -1, 0
    out: list[StreamEvent] = []
    for event in events:
        if event.place is not None:
            shift -= sum(
                _read_number(removed) is not None for removed in recorded[reached : event.place]
            )
            reached = event.place + 1
        number = _read_number(event)
        if number is not None:
            last = last + 1 if event.place is None else number + shift
            shift += event.place is None
            if number != last:
                event = event.replace_data({**event.data, "sequence_number": last})  # noqa: PLW2901
        out.append(event)
    return out


def _read_number(event: StreamEvent) -> int | None:
    number = as_mapping(event.data).get("sequence_number")
    return number if type(number) is int else None


# ---------------------------------------------------------------- message to stream, from nothing


def compose(message: Mapping[str, Any], like: StreamEvent = STYLE) -> list[StreamEvent]:
    numbered = (
        {**data, "sequence_number": number} for number, data in enumerate(_compose_events(message))
    )
    return [like.like(data) for data in numbered]


def _compose_events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    shell = {**message, "status": "in_progress", "output": [], "usage": None, "error": None}
    yield from (
        {"type": kind, "response": shell} for kind in ("response.created", "response.in_progress")
    )
    for number, item in enumerate(maps(message.get("output"))):
        yield from ({key: value for key, value in data.items() if key != "sequence_number"}
                    for data in _compose_item(item, number))  # fmt: skip
    status = message.get("status")
    last = f"response.{status}" if f"response.{status}" in _LAST else ""
    if last:
        yield {"type": last, "response": dict(message)}
    elif message.get("error"):
        yield {"type": "error", **as_mapping(message["error"])}


def _compose_item(item: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The events of one item. Their sequence numbers are counted afterwards."""
    common = {"output_index": number, "sequence_number": 0}
    named = {"item_id": item["id"], **common} if "id" in item else common
    lists: dict[str, Any] = {
        name: [] for name in ("content", "summary") if isinstance(item.get(name), list)
    }
    key = next(
        (
            leaf[1]
            for leaf in _LEAVES.values()
            if not leaf[0] and isinstance(item.get(leaf[1]), str)
        ),
        "",
    )
    shell = {
        **item,
        **lists,
        **({key: ""} if key else {}),
        **({"status": "in_progress"} if "status" in item else {}),
    }
    yield {"type": "response.output_item.added", "item": shell, **common}
    for name in lists:
        for place, part in enumerate(maps(item[name])):
            yield from _compose_part(name, part, {**named, f"{name}_index": place})
    leaf = _find_own_leaf(item, key)
    if leaf:
        yield {"type": f"response.{leaf}.delta", "delta": item[key], **named}
        yield {"type": f"response.{leaf}.done", key: item[key], **named}
    yield {"type": "response.output_item.done", "item": dict(item), **common}


def _find_own_leaf(item: Mapping[str, Any], key: str) -> str:
    kind = as_text(item.get("type"))
    return next((leaf for leaf, (inside, name, _) in _LEAVES.items()
                 if not inside and name == key and leaf.startswith(kind)), "") if key else ""  # fmt: skip


def _compose_part(
    name: str, part: Mapping[str, Any], common: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    kind = as_text(part.get("type"))
    about = "response.content_part" if name == "content" else "response.reasoning_summary_part"
    leaf = "reasoning_summary_text" if kind == "summary_text" else kind
    _, key, _ = _LEAVES.get(leaf, ("", "text", ""))
    shell = {
        **part,
        **({key: ""} if leaf in _LEAVES else {}),
        **({"annotations": []} if "annotations" in part else {}),
    }
    yield {"type": f"{about}.added", "part": shell, **common}
    if leaf in _LEAVES:
        more: dict[str, Any] = {"logprobs": []} if leaf == "output_text" else {}
        yield {"type": f"response.{leaf}.delta", "delta": part.get(key), **more, **common}
        for place, note in enumerate(part.get("annotations") or ()):
            annotation = {"annotation_index": place, "annotation": note}
            yield {"type": "response.output_text.annotation.added", **annotation, **common}
        yield {"type": f"response.{leaf}.done", key: part.get(key), **more, **common}
    yield {"type": f"{about}.done", "part": dict(part), **common}
