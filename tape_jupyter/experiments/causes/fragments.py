"""Where two values differ, as parts that can each be taken from the one or the other: fields of a
mapping, items of a list, rows of a table, sentences of a text. Pure.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_SENTENCE = re.compile(r".+?(?:[.!?]+(?=\s)|$)\s*", re.DOTALL)
_SHORT = 200
Build = Callable[[frozenset[int]], Any]
_STYLES: tuple[dict[str, Any], ...] = (
    {}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False},
    {"ensure_ascii": False, "separators": (",", ":")}, {"ensure_ascii": False, "indent": 2},
)  # fmt: skip


class Gone:
    """What a mapping has not under a key."""


GONE = Gone()


@dataclass(frozen=True, slots=True)
class Fragment:
    """A place where they differ, and what stands there in either, in a few letters."""

    path: str
    bad: str
    good: str

    def record(self) -> dict[str, str]:
        return {"path": self.path, "bad": self.bad, "good": self.good}


@dataclass(frozen=True, slots=True)
class Fragments:
    """All places where two values differ; `mixed` takes some of them from the good value."""

    places: tuple[Fragment, ...]
    build: Build

    def mixed(self, good: Sequence[int]) -> Any:
        return self.build(frozenset(good))


def fragments(bad: Any, good: Any) -> Fragments:
    """Where `bad` and `good`, plain structures as JSON has them, differ."""
    places: list[Fragment] = []
    build = _compare_values(bad, good, "", places)
    return Fragments(tuple(places), build)


def _compare_values(bad: Any, good: Any, path: str, places: list[Fragment]) -> Build:
    if isinstance(bad, dict) and isinstance(good, dict):
        return _compare_mappings(bad, good, path, places)
    if isinstance(bad, list) and isinstance(good, list):
        return _compare_lists(bad, good, path, places)
    if type(bad) is type(good) and bad == good:  # not of containers: [1] == [True]
        return lambda _: bad
    if isinstance(bad, str) and isinstance(good, str):
        return _compare_texts(bad, good, path, places)
    return _add_leaf(bad, good, path, places)


def _add_leaf(bad: Any, good: Any, path: str, places: list[Fragment]) -> Build:
    number = len(places)
    places.append(Fragment(path or "all of it", _shorten_value(bad), _shorten_value(good)))
    return lambda chosen: good if number in chosen else bad


def _compare_mappings(
    bad: dict[str, Any], good: dict[str, Any], path: str, places: list[Fragment]
) -> Build:
    keys = [*bad, *(key for key in good if key not in bad)]
    parts = {
        key: _compare_values(bad.get(key, GONE), good.get(key, GONE), _join_path(path, key), places)
        for key in keys
    }

    def build_mapping(chosen: frozenset[int]) -> dict[str, Any]:
        built = {key: part(chosen) for key, part in parts.items()}
        return {key: value for key, value in built.items() if not isinstance(value, Gone)}

    return build_mapping


def _compare_lists(bad: list[Any], good: list[Any], path: str, places: list[Fragment]) -> Build:
    if len(bad) == len(good):
        pairs = zip(bad, good, strict=True)
        parts = [
            _compare_values(one, other, f"{path}[{number}]", places)
            for number, (one, other) in enumerate(pairs)
        ]
        return lambda chosen: [part(chosen) for part in parts]
    keys = [
        [json.dumps(each, sort_keys=True, default=str) for each in side] for side in (bad, good)
    ]
    hunks = _compare_sequences(keys[0], keys[1], bad, good, _escape_braces(path) + "[{}]", places)
    return lambda chosen: [each for hunk in hunks for each in hunk(chosen)]


def _compare_texts(bad: str, good: str, path: str, places: list[Fragment]) -> Build:
    if (inside := _compare_json_texts(bad, good, path, places)) is not None:
        return inside
    ours, theirs = _split_text(bad), _split_text(good)
    if len(ours) == 1 == len(theirs):
        return _add_leaf(bad, good, path, places)
    hunks = _compare_sequences(
        ours, theirs, ours, theirs, f"{_escape_braces(path)} part {{}}".strip(), places, first=1
    )
    return lambda chosen: "".join(each for hunk in hunks for each in hunk(chosen))


def _compare_json_texts(bad: str, good: str, path: str, places: list[Fragment]) -> Build | None:
    """Of texts that are JSON of a mapping or a list, spelt alike."""
    try:
        one, other = json.loads(bad), json.loads(good)
    except (ValueError, RecursionError):
        return None
    if type(one) is not type(other) or not isinstance(one, dict | list):
        return None
    style = next((each for each in _STYLES if json.dumps(one, **each) == bad), None)
    if style is None or json.dumps(other, **style) != good:
        return None
    build = _compare_values(one, other, path, places)
    return lambda chosen: json.dumps(build(chosen), **style)


def _split_text(text: str) -> list[str]:
    """Sentences, and the lines of a table whole."""
    parts: list[str] = []
    for line in text.splitlines(keepends=True):
        is_row = line.lstrip().startswith("|") or line.count(",") > 1 or "\t" in line
        pieces = [line] if is_row else [each for each in _SENTENCE.findall(line) if each]
        parts += pieces
    return parts or [text]


def _compare_sequences(
    ours: Sequence[str], theirs: Sequence[str], bad: Sequence[Any], good: Sequence[Any],
    path: str, places: list[Fragment], *, first: int = 0,
) -> list[Callable[[frozenset[int]], Sequence[Any]]]:  # fmt: skip
    """Runs of items that are the same or not; of a replaced run of one length each item by itself.
    `path` has a place for the item's number, which is counted from `first`.
    """
    builders: list[Callable[[frozenset[int]], Sequence[Any]]] = []
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for what, start, end, start2, end2 in matcher.get_opcodes():
        if what == "equal":
            builders.append(_keep_items(bad[start:end]))
        elif what == "replace" and end - start == end2 - start2:
            for number in range(end - start):
                one, other = bad[start + number], good[start2 + number]
                place = path.format(first + start + number)
                builders.append(_wrap_item(_compare_items(one, other, place, places)))
        else:
            place = path.format(first + start)
            builders.append(_add_hunk(bad[start:end], good[start2:end2], place, places))
    return builders


def _compare_items(bad: Any, good: Any, path: str, places: list[Fragment]) -> Build:
    if isinstance(bad, str):
        return _add_leaf(bad, good, path, places)
    return _compare_values(bad, good, path, places)


def _keep_items(items: Sequence[Any]) -> Callable[[frozenset[int]], Sequence[Any]]:
    return lambda _: items


def _wrap_item(build: Build) -> Callable[[frozenset[int]], Sequence[Any]]:
    return lambda chosen: [build(chosen)]


def _add_hunk(
    bad: Sequence[Any], good: Sequence[Any], path: str, places: list[Fragment]
) -> Callable[[frozenset[int]], Sequence[Any]]:
    number = len(places)
    texts = [" ".join(map(_shorten_value, side)) for side in (bad, good)]
    places.append(Fragment(path, texts[0], texts[1]))
    return lambda chosen: good if number in chosen else bad


def _escape_braces(path: str) -> str:
    return path.replace("{", "{{").replace("}", "}}")


def _join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else str(key)


def _shorten_value(value: Any) -> str:
    if isinstance(value, Gone):
        return "nothing"
    text = value.strip() if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
