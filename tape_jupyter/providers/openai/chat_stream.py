"""The stream of OpenAI's Chat Completions, as a hundred hosts speak it, taken apart and put
together.

    {role} ; {content}* ; per tool call {index, id, name, ""} {index, arguments}* ; {finish_reason}
    ; {usage} ; [DONE]

One chunk may hold parts of several choices, of text and of tool calls at once. Hosts repeat the
role, leave the finish_reason or `[DONE]` out, put usage and keys of their own anywhere: none of
that is required, all of it is kept.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tape_jupyter.providers.json_access import as_mapping, maps
from tape_jupyter.providers.openai.chat_choices import (
    CHUNK,
    TEXTS,
    Leaf,
    Path,
    StreamedChoice,
    choices_of,
    get_arguments_key,
    inner_of,
    read,
)
from tape_jupyter.providers.streams.diff import pair_parts, recut_parts
from tape_jupyter.providers.streams.events import (
    BARE_STYLE,
    StreamEvent,
    join_halves,
    same_json,
    style_of,
)

__all__ = ["compose", "read", "rewrite"]

# ---------------------------------------------------------------- message to stream, from what was recorded


class _Sheet:
    """The events as they become: data changed in place, parts taken out, chunks put in after
    others.
    """

    def __init__(self, events: Sequence[StreamEvent]) -> None:
        self.events = events
        self.data: dict[int, Any] = {}
        self.after: dict[int, list[Any]] = {}
        self.hollow: set[int] = set()

    def copy_data(self, place: int) -> Any:
        if place not in self.data:
            self.data[place] = copy.deepcopy(self.events[place].data)
        return self.data[place]

    def set_value(self, place: int, path: Path, value: Any) -> None:
        where = self._find_parent(place, path)
        if where is not None:
            where[path[-1]] = value

    def remove_value(self, place: int, path: Path) -> None:
        """Take a key out of a delta, or a call out of its list (its place is kept till the end)."""
        where = self._find_parent(place, path)
        if isinstance(where, dict):
            where.pop(path[-1], None)
        elif isinstance(where, list):
            where[path[-1]] = None
        self.hollow.add(place)

    def _find_parent(self, place: int, path: Path) -> Any:
        where = self.copy_data(place)
        for step in path[:-1]:
            where = where[step]
        return where

    def insert_after(self, place: int, data: Any) -> None:
        self.after.setdefault(place, []).append(data)

    def out(self, style: StreamEvent) -> Iterator[StreamEvent]:
        yield from (style.like(data) for data in self.after.get(-1, ()))
        for place, event in enumerate(self.events):
            data = _drop_taken_calls(self.data[place]) if place in self.data else event.data
            if place not in self.hollow or not _is_hollow(data):
                yield event.replace_data(data) if place in self.data else event
            yield from (style.like(data) for data in self.after.get(place, ()))


def _drop_taken_calls(data: Any) -> Any:
    """Without the calls that were taken out."""
    for choice in maps(as_mapping(data).get("choices")):
        delta = choice.get("delta")
        if isinstance(delta, dict) and isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"] = [each for each in delta["tool_calls"] if each is not None]
            if not delta["tool_calls"]:
                del delta["tool_calls"]
    return data


def _is_hollow(data: Any) -> bool:
    """Whether a chunk from which something was taken says nothing any more (usage and ends are
    something).
    """
    choices = list(maps(as_mapping(data).get("choices")))
    has_content = any(choice.get("finish_reason") or choice.get("delta") for choice in choices)
    return not has_content and not as_mapping(data).get("usage")


def rewrite(events: Sequence[StreamEvent], message: Mapping[str, Any]) -> list[StreamEvent]:
    old, seen = read(events), choices_of(events)
    sheet = _Sheet(events)
    style = style_of([event for event in events if "choices" in as_mapping(event.data)], BARE_STYLE)
    new = list(maps(message.get("choices")))
    matches = pair_parts(
        [{"index": choice.index} for choice in seen],
        [{"index": each.get("index", 0)} for each in new],
    )
    base = _collect_base(message, events)
    for number, each in enumerate(new):
        was = matches[number]
        if was is None:
            _put_before_end(
                sheet,
                [_build_chunk(base, each, delta, end) for delta, end in _compose_deltas(each)],
            )
        else:
            _Rewritten(sheet, seen[was], each, base).rewrite_choice()
    for place in set(range(len(seen))) - set(matches):
        _remove_choice(sheet, seen[place])
    _rewrite_top_fields(sheet, old, message)
    return list(sheet.out(style))


def _collect_base(message: Mapping[str, Any], events: Sequence[StreamEvent]) -> dict[str, Any]:
    """What every chunk of the stream says of itself."""
    first = next(
        (as_mapping(event.data) for event in events if "choices" in as_mapping(event.data)), {}
    )
    kept = {
        key: value
        for key, value in first.items()
        if key not in CHUNK and isinstance(value, str | int | None)
    }
    return {**kept, **{key: message[key] for key in kept if key in message and key != "object"}}


def _build_chunk(
    base: Mapping[str, Any], choice: Mapping[str, Any], delta: Any, end: Any = None
) -> dict[str, Any]:
    return {
        **base,
        "choices": [{"index": choice.get("index", 0), "delta": delta, "finish_reason": end}],
    }


def _put_before_end(sheet: _Sheet, chunks: Iterable[Any]) -> None:
    """A choice that is added goes after the last chunk that tells of one."""
    last = max(
        (
            place
            for place, event in enumerate(sheet.events)
            if as_mapping(event.data).get("choices")
        ),
        default=-1,
    )
    for chunk in chunks:
        sheet.insert_after(last, chunk)


def _remove_choice(sheet: _Sheet, choice: StreamedChoice) -> None:
    for place, event in enumerate(sheet.events):
        choices = as_mapping(event.data).get("choices")
        if isinstance(choices, list) and any(
            each.get("index", 0) == choice.index for each in maps(choices)
        ):
            data = sheet.copy_data(place)
            data["choices"] = [
                each for each in data["choices"] if as_mapping(each).get("index", 0) != choice.index
            ]
            sheet.hollow.add(place)


def _rewrite_top_fields(sheet: _Sheet, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for key in {*old, *new} - {"choices"}:
        if same_json(old.get(key), new.get(key)) and (key in old) == (key in new):
            continue
        places = [
            place
            for place, event in enumerate(sheet.events)
            if as_mapping(event.data).get(key) is not None
        ]
        for place in (
            places
            or [place for place, event in enumerate(sheet.events) if as_mapping(event.data)][:1]
        ):
            if key in new and key != "object":
                sheet.set_value(place, (key,), new[key])
            elif key not in new:
                sheet.remove_value(place, (key,))


class _Rewritten:
    """One choice that was recorded, and what it is to be."""

    def __init__(
        self, sheet: _Sheet, choice: StreamedChoice, new: Mapping[str, Any], base: Mapping[str, Any]
    ) -> None:
        self.sheet, self.choice, self.new, self.base = sheet, choice, new, base
        self.old = choice.build_choice()
        self.message = as_mapping(new.get("message"))
        self.own = [
            (place, number)
            for place, event in enumerate(sheet.events)
            for number, each in enumerate(_list_choices(event.data))
            if as_mapping(each).get("index", 0) == choice.index
        ]

    def rewrite_choice(self) -> None:
        old = self.old["message"]
        for key in dict.fromkeys((*old, *self.message)):
            if key != "tool_calls" and not same_json(old.get(key), self.message.get(key)):
                self._rewrite_text(key) if self._is_text(key) else self._rewrite_field(key)
        if not same_json(old.get("tool_calls"), self.message.get("tool_calls")):
            self._rewrite_calls()
        for key in dict.fromkeys((*self.old, *self.new)):
            if key not in ("index", "message") and not same_json(
                self.old.get(key), self.new.get(key)
            ):
                self._rewrite_choice_field(key)

    def _is_text(self, key: str) -> bool:
        return key in TEXTS and isinstance(self.message.get(key), str | None) and not isinstance(
            self.choice.message.get(key), list
        )  # fmt: skip

    def _rewrite_text(self, key: str) -> None:
        leaf, text = self.choice.leaves.get(key), self.message.get(key)
        if leaf is None:
            self.sheet.insert_after(self._find_start(), self._build_own_chunk({key: text}))
        elif text and all("error" in self.sheet.events[place].data for place, _ in leaf.at):
            # nobody reads what an error event says
            self.sheet.insert_after(leaf.at[0][0] - 1, self._build_own_chunk({key: text}))
        elif text is None:
            for number, (place, path) in enumerate(leaf.at):
                if number == 0 and key in self.message:
                    self.sheet.set_value(place, path, None)
                else:
                    self._drop_part(place, path)
        else:
            self._rewrite_leaf(leaf, text)

    def _rewrite_leaf(self, leaf: Leaf, text: str) -> None:
        for (place, path), part, now in zip(
            leaf.at, leaf.parts, recut_parts(leaf.parts, text), strict=True
        ):
            if now is None and part:
                self._drop_part(place, path)
            elif now is not None and now != part:
                self.sheet.set_value(place, path, now)

    def _drop_part(self, place: int, path: Path) -> None:
        """A part that is no longer needed; a chunk that then says nothing but the role (again) goes
        with it.
        """
        self.sheet.remove_value(place, path)
        choice = self.sheet.copy_data(place)["choices"][path[1]]
        if place != self.own[0][0] and not choice["delta"].keys() - {"role"}:
            choice["delta"] = {}

    def _rewrite_field(self, key: str) -> None:
        """What is told whole: once is enough."""
        places = [at for at in self.own if key in as_mapping(self._find_delta(*at))]
        for place, number in places[1:]:
            self.sheet.remove_value(place, ("choices", number, "delta", key))
        if places and key in self.message:
            self.sheet.set_value(
                places[0][0], ("choices", places[0][1], "delta", key), self.message[key]
            )
        elif places:
            self.sheet.remove_value(places[0][0], ("choices", places[0][1], "delta", key))
        else:
            self.sheet.insert_after(
                self._find_start(), self._build_own_chunk({key: self.message[key]})
            )

    def _rewrite_calls(self) -> None:
        before, after = list(self.choice.tools.items()), list(maps(self.message.get("tool_calls")))
        matches = _unpair_after_added(
            [
                None
                if was is not None and inner_of(before[was][1]) != inner_of(after[number])
                else was
                for number, was in enumerate(pair_parts([call for _, call in before], after))
            ]
        )
        for removed in set(range(len(before))) - set(matches):
            for place, path in self.choice.where[before[removed][0]]:
                self.sheet.remove_value(place, path)
        last = max(
            (place for at in self.choice.where.values() for place, _ in at),
            default=self._find_last_text(),
        )
        for number, call in enumerate(after):
            was = matches[number]
            if was is None:
                for delta in _compose_call_deltas(call, number):
                    self.sheet.insert_after(last, self._build_own_chunk({"tool_calls": [delta]}))
            else:
                self._rewrite_call(before[was][0], call, number)

    def _rewrite_call(self, name: str, new: Mapping[str, Any], number: int) -> None:
        old, at = self.choice.tools[name], self.choice.where[name]
        for place, path in at:
            content = None
            if name != str(number) and not name.startswith("+"):
                content = self.sheet.copy_data(place)
            if content is not None:
                self.sheet.set_value(place, (*path, "index"), number)
        inner, leaf = inner_of(new), self.choice.arguments.get(name)
        key = get_arguments_key(new)
        for each in dict.fromkeys((*old, *new)):
            if each not in (inner, "index") and not same_json(old.get(each), new.get(each)):
                self._set_call_field(at, (each,), new.get(each))
        for each, value in as_mapping(new.get(inner)).items():
            if each != key and not same_json(as_mapping(old.get(inner)).get(each), value):
                self._set_call_field(at, (inner, each), value)
        content = as_mapping(new.get(inner)).get(key)
        if (
            leaf is not None
            and isinstance(content, str)
            and content != join_halves("".join(leaf.parts))
        ):
            self._rewrite_arguments(leaf, content)
        elif leaf is None and not same_json(as_mapping(old.get(inner)).get(key), content):
            self._set_call_field(at, (inner, key), content)

    def _rewrite_arguments(self, leaf: Leaf, arguments: str) -> None:
        for (place, path), part, now in zip(
            leaf.at, leaf.parts, recut_parts(leaf.parts, arguments), strict=True
        ):
            if now is None and part:
                if place == leaf.at[0][0]:
                    self.sheet.set_value(place, path, "")
                else:
                    self.sheet.remove_value(place, path[:5])
            elif now is not None and now != part:
                self.sheet.set_value(place, path, now)

    def _set_call_field(self, at: Sequence[tuple[int, Path]], path: Path, value: Any) -> None:
        """Set what a call says of itself where it is said, else where the call begins."""
        for place, start in at:
            where = self.sheet.copy_data(place)
            for step in (*start, *path[:-1]):
                where = where.get(step) if isinstance(where, dict) else where[step]
            if isinstance(where, dict) and (where.get(path[-1]) or place == at[0][0]):
                where[path[-1]] = value
                return

    def _rewrite_choice_field(self, key: str) -> None:
        """finish_reason and what stands beside it: where it was said last."""
        positions = [
            at for at in self.own if as_mapping(self._find_chunk(*at)).get(key) is not None
        ]
        if key == "logprobs" and self.new.get(key) is None:
            for place, number in positions:
                self.sheet.set_value(place, ("choices", number, key), None)
        elif positions:
            for place, number in positions[:-1]:
                self.sheet.set_value(place, ("choices", number, key), None)
            self.sheet.set_value(
                positions[-1][0], ("choices", positions[-1][1], key), self.new.get(key)
            )
        elif self.own and self.new.get(key) is not None:
            self.sheet.insert_after(self.own[-1][0], {**self._build_own_chunk({}), "choices": [
                {"index": self.choice.index, "delta": {}, "finish_reason": None, key: self.new[key]}]})  # fmt: skip

    def _find_delta(self, place: int, number: int) -> Any:
        return as_mapping(self._find_chunk(place, number)).get("delta")

    def _find_chunk(self, place: int, number: int) -> Any:
        return self.sheet.events[place].data["choices"][number]

    def _build_own_chunk(self, delta: Any) -> dict[str, Any]:
        return _build_chunk(self.base, {"index": self.choice.index}, delta)

    def _find_start(self) -> int:
        """After the chunk with the role, which comes first."""
        return self.own[0][0] if self.own else -1

    def _find_last_text(self) -> int:
        places = [place for leaf in self.choice.leaves.values() for place, _ in leaf.at]
        ends = [
            place
            for place, number in self.own
            if as_mapping(self._find_chunk(place, number)).get("finish_reason")
        ]
        last = max(places, default=self._find_start())
        if ends and last >= ends[0] and ends[0] > self._find_start():
            return min(last, ends[0] - 1)
        return last


def _unpair_after_added(matches: list[int | None]) -> list[int | None]:
    """What follows a call that was put in is put in anew: programs add calls up in the order of
    their numbers.
    """
    first = matches.index(None) if None in matches else len(matches)
    return [*matches[:first], *[None] * (len(matches) - first)]


def _list_choices(data: Any) -> list[Any]:
    choices = as_mapping(data).get("choices")
    return choices if isinstance(choices, list) else []


# ---------------------------------------------------------------- message to stream, from nothing


def compose(message: Mapping[str, Any], like: StreamEvent = BARE_STYLE) -> list[StreamEvent]:
    return [
        *(like.like(data) for data in _compose_chunks(message)),
        StreamEvent(b"data: [DONE]\n\n"),
    ]


def _compose_chunks(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Usage last, and by itself; an error (some hosts send one after a 200) after what came before
    it.
    """
    base = {key: value for key, value in message.items() if key not in CHUNK}
    if base.get("object") == "chat.completion":
        base["object"] = "chat.completion.chunk"
    for choice in maps(message.get("choices")):
        chunks = [_build_chunk(base, choice, delta, end) for delta, end in _compose_deltas(choice)]
        extra = {
            key: value
            for key, value in choice.items()
            if key not in ("index", "message", "finish_reason")
        }
        chunks[-1]["choices"][0] |= extra
        if "finish_reason" not in choice:
            for chunk in chunks:
                del chunk["choices"][0]["finish_reason"]
        yield from chunks
    if "error" in message:
        yield {**base, "error": message["error"]}
    if "usage" in message or not message.get("choices"):
        yield {**base, "choices": [], **({"usage": message["usage"]} if "usage" in message else {})}


def _compose_deltas(choice: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    message = as_mapping(choice.get("message"))
    shell = {
        key: "" if key in TEXTS and isinstance(value, str) and value else value
        for key, value in message.items()
        if key != "tool_calls" or not value
    }
    yield shell, None
    for key in TEXTS:
        if isinstance(message.get(key), str) and message[key]:
            yield {key: message[key]}, None
    for number, call in enumerate(maps(message.get("tool_calls"))):
        yield from (({"tool_calls": [delta]}, None) for delta in _compose_call_deltas(call, number))
    yield {}, choice.get("finish_reason")


def _compose_call_deltas(call: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    inner, key = inner_of(call), get_arguments_key(call)
    function = as_mapping(call.get(inner))
    arguments = function.get(key)
    split = isinstance(arguments, str) and bool(arguments)
    yield {"index": number, **call, inner: {**function, key: "" if split else arguments}}
    if split:
        yield {"index": number, inner: {key: arguments}}
