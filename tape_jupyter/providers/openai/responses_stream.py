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

from tape_jupyter.providers.json_access import as_list, as_mapping, as_text, maps
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
            # the fields of an error stand in the event itself, or in one of its own
            flat = {key: event.data.get(key) for key in ("code", "message", "param")}
            message["error"] = event.data.get("error") or flat
    if not ended or not message.get("output"):
        items = _collect_items(events)
        in_order = [items[index] for index in sorted(items)]
        message["output"] = in_order or message.get("output") or []
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
        place = event.data.get(number, 0)
        listed = item.setdefault(name, [])
        if isinstance(place, int) and isinstance(listed, list) and place == len(listed):
            listed.append(copy.deepcopy(event.data.get("part")))
    elif (leaf := _find_leaf(event)) and verb == "delta":
        key = _LEAVES[leaf][1]
        entry = _find_entry(item, leaf, event.data)
        if entry is not None:
            text = as_text(entry.get(key)) + as_text(event.data.get("delta"))
            entry[key] = join_halves(text)


def _find_leaf(event: StreamEvent) -> str:
    name = event.kind.removeprefix("response.").rpartition(".")[0]
    return name if name in _LEAVES else ""


def _find_entry(item: Any, leaf: str, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of an item that an event speaks of."""
    name, _, number = _LEAVES[leaf]
    if not name:
        return item if isinstance(item, dict) else None
    listed, place = as_mapping(item).get(name), data.get(number, 0)
    if not isinstance(listed, list) or not isinstance(place, int):
        return None
    if not 0 <= place < len(listed) or not isinstance(listed[place], dict):
        return None
    entry: dict[str, Any] = listed[place]
    return entry


# ---------------------------------------------------------------- message to stream, from what was recorded


def rewrite(events: Sequence[StreamEvent], message: Mapping[str, Any]) -> list[StreamEvent]:
    old, style = read(events), style_of(events)
    before, after = list(maps(old.get("output"))), list(maps(message.get("output")))
    matches = pair_parts(before, after)
    # by the place of a recorded event, what stands there now
    replacements: dict[int, list[StreamEvent]] = {}
    owned = _group_places(events, len(before))
    for places in owned:
        replacements |= {place: [] for place in places}
    # from the last item to the first: a new one goes before what follows it
    where = _find_end(events, owned)
    for number, (item, was) in reversed(list(enumerate(zip(after, matches, strict=True)))):
        if was is None:
            new_events = [style.like(data) for data in _compose_item(item, number)]
            replacements[where] = [*new_events, *replacements.get(where, events[where : where + 1])]
        elif owned[was]:
            places, numbers = owned[was], (was, number)
            replacements |= _rewrite_item(events, places, before[was], item, numbers, style)
            where = places[0]
    if "error" in old and "error" not in message:
        replacements |= {place: [] for place, event in enumerate(events) if event.kind == "error"}
    out: list[StreamEvent] = []
    for place, event in enumerate(events):
        out += replacements.get(place, [event])
    out += replacements.get(len(events), [])
    updated = [_update_response(event, old, message) for event in out]
    return _renumber_events(updated, events)


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
    for place, event in enumerate(events):
        if place > last and event.kind in ends:
            return place
    return len(events)


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
    replacements: dict[int, list[StreamEvent]] = {place: [] for place in places}
    if not _may_keep_events(old, new):
        replacements[places[0]] = [style.like(data) for data in _compose_item(new, number)]
        return replacements
    for place in places:
        moved = _move_event(events[place], number - was)
        replacements[place] = [_update_copy(moved, old, new)]
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
    return one.keys() == two.keys() and same_json(_leave_texts_out(one), _leave_texts_out(two))


def _leave_texts_out(part: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in part.items() if k not in ("text", "refusal", "logprobs")}


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
        data["item"] = _follow_changes(as_mapping(data.get("item")), old, new)
    elif about in _PARTS and verb == "done":
        name, number = _PARTS[about]
        one = _find_entry_at(old, name, data.get(number, 0))
        two = _find_entry_at(new, name, data.get(number, 0))
        data["part"] = _merge_changes(data.get("part"), one, two)
    elif (leaf := _find_leaf(event)) and verb == "done":
        key = _LEAVES[leaf][1]
        entry = _find_entry(new, leaf, data)
        if entry is not None and key in data:
            data[key] = entry.get(key)
            if isinstance(data.get("logprobs"), list) and "logprobs" in entry:
                data["logprobs"] = entry["logprobs"]
        if "name" in data and "name" in new:
            data["name"] = new["name"]
    return event.replace_data(data)


def _find_entry_at(item: Mapping[str, Any], name: str, place: Any) -> Mapping[str, Any]:
    listed = item.get(name)
    if not isinstance(listed, list) or not isinstance(place, int):
        return {}
    return as_mapping(listed[place]) if 0 <= place < len(listed) else {}


def _merge_changes(copied: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
    """A copy with what changed changed in it: hosts leave this and that out of their copies."""
    if not isinstance(copied, dict) or same_json(copied, old):
        return dict(new)
    kept = {key: value for key, value in copied.items() if key in new or key not in old}
    same = {key for key in old.keys() & new.keys() if same_json(new[key], old[key])}
    return kept | {key: value for key, value in new.items() if key not in same}


def _follow_changes(
    early: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> dict[str, Any]:
    """A copy from before the end, in which what was known then follows; empty values, which were filled
    later, stay.
    """
    followed = dict(early)
    for key, value in early.items():
        if value and key in new and same_json(value, old.get(key)):
            followed[key] = new[key]
    return followed


def _iterate_leaves(
    events: Sequence[StreamEvent], places: Sequence[int]
) -> Iterator[tuple[str, list[int]]]:
    """The texts of an item: each with the places of its deltas."""
    places_by_leaf: dict[tuple[str, str], list[int]] = {}
    for place in places:
        event, leaf = events[place], _find_leaf(events[place])
        if not leaf or not event.kind.endswith(".delta"):
            continue
        if isinstance(event.data.get("delta"), str):
            entry = str(event.data.get(_LEAVES[leaf][2]))
            places_by_leaf.setdefault((leaf, entry), []).append(place)
    for (leaf, _), leaf_places in places_by_leaf.items():
        yield leaf, leaf_places


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
    cut = recut_parts(parts, as_text(two.get(key)))
    for place, part, now in zip(places, parts, cut, strict=True):
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
        kept = _follow_changes(response, old, new)
        return event.replace_data({**event.data, "response": kept})
    if event.kind != "error" or "error" not in new or same_json(old.get("error"), new["error"]):
        return event
    if isinstance(event.data.get("error"), dict):
        return event.replace_data({**event.data, "error": new["error"]})
    return event.replace_data({**event.data, **as_mapping(new["error"])})


def _renumber_events(
    events: Sequence[StreamEvent], recorded: Sequence[StreamEvent]
) -> list[StreamEvent]:
    """With sequence numbers that go on where events were taken out or put in."""
    shift, last, reached = 0, -1, 0
    out: list[StreamEvent] = []
    for event in events:
        if event.place is not None:
            removed = recorded[reached : event.place]
            shift -= sum(_read_number(each) is not None for each in removed)
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
    yield {"type": "response.created", "response": shell}
    yield {"type": "response.in_progress", "response": shell}
    for number, item in enumerate(maps(message.get("output"))):
        for data in _compose_item(item, number):
            yield {key: value for key, value in data.items() if key != "sequence_number"}
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
    lists: dict[str, Any] = {}
    for name in ("content", "summary"):
        if isinstance(item.get(name), list):
            lists[name] = []
    key = _find_own_key(item)
    shell: dict[str, Any] = {**item, **lists}
    if key:
        shell[key] = ""
    if "status" in item:
        shell["status"] = "in_progress"
    yield {"type": "response.output_item.added", "item": shell, **common}
    for name in lists:
        for place, part in enumerate(maps(item[name])):
            yield from _compose_part(name, part, {**named, f"{name}_index": place})
    leaf = _find_own_leaf(item, key)
    if leaf:
        yield {"type": f"response.{leaf}.delta", "delta": item[key], **named}
        yield {"type": f"response.{leaf}.done", key: item[key], **named}
    yield {"type": "response.output_item.done", "item": dict(item), **common}


def _find_own_key(item: Mapping[str, Any]) -> str:
    """The key of the text that an item holds itself, not in a part of it; "" where it has none."""
    for name, key, _ in _LEAVES.values():
        if not name and isinstance(item.get(key), str):
            return key
    return ""


def _find_own_leaf(item: Mapping[str, Any], key: str) -> str:
    kind = as_text(item.get("type"))
    return next((leaf for leaf, (inside, name, _) in _LEAVES.items()
                 if not inside and name == key and leaf.startswith(kind)), "") if key else ""  # fmt: skip


def _compose_part(
    name: str, part: Mapping[str, Any], common: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    kind = as_text(part.get("type"))
    if name == "content":
        about = "response.content_part"
    else:
        about = "response.reasoning_summary_part"
    leaf = "reasoning_summary_text" if kind == "summary_text" else kind
    _, key, _ = _LEAVES.get(leaf, ("", "text", ""))
    shell: dict[str, Any] = dict(part)
    if leaf in _LEAVES:
        shell[key] = ""
    if "annotations" in part:
        shell["annotations"] = []
    yield {"type": f"{about}.added", "part": shell, **common}
    if leaf in _LEAVES:
        more: dict[str, Any] = {"logprobs": []} if leaf == "output_text" else {}
        yield {"type": f"response.{leaf}.delta", "delta": part.get(key), **more, **common}
        for place, note in enumerate(as_list(part.get("annotations"))):
            annotation = {"annotation_index": place, "annotation": note}
            yield {"type": "response.output_text.annotation.added", **annotation, **common}
        yield {"type": f"response.{leaf}.done", key: part.get(key), **more, **common}
    yield {"type": f"{about}.done", "part": dict(part), **common}
