"""Which part of a changed message was which before, and how a changed text is cut like the old one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise
from typing import Any, Final

from tape_jupyter.providers.json_access import as_text

Part = Mapping[str, Any]
IDS = ("id", "call_id", "tool_use_id")


def pair_parts(old: Sequence[Part], new: Sequence[Part]) -> list[int | None]:
    """For each new part the old one that it was, in rising order; None for one that was added.

    Equal parts are the same; of those between them parts of one id are, then parts of one type, in
    their order.
    """
    matcher = SequenceMatcher(
        None, [_to_canonical(part) for part in old], [_to_canonical(part) for part in new], False
    )
    matches: list[int | None] = []
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal":
            matches += range(a, b)
        else:
            matches += _pair_between(old, range(a, b), new[c:d])
    return matches


def _pair_between(old: Sequence[Part], places: range, new: Sequence[Part]) -> Iterator[int | None]:
    left = list(places)
    for number, part in enumerate(new):
        later = {_read_part_id(each) for each in new[number + 1 :]} - {""}
        fitting = (place for place in left if _may_be_same(old[place], part, later))
        same = next(
            (
                place
                for place in left
                if _read_part_id(part) and _read_part_id(old[place]) == _read_part_id(part)
            ),
            None,
        )
        chosen = same if same is not None else next(fitting, None)
        if chosen is not None:
            left = [place for place in left if place > chosen]
        yield chosen


def _may_be_same(old: Part, new: Part, later: set[str]) -> bool:
    """Whether a part may have been that one, changed: of its type, and not one that stands further
    on.
    """
    ids = (_read_part_id(old), _read_part_id(new))
    return old.get("type") == new.get("type") and old.get("index") == new.get("index") and not (
        (all(ids) and ids[0] != ids[1]) or ids[0] in later
    )  # fmt: skip


def _read_part_id(part: Part) -> str:
    return as_text(next((part[key] for key in IDS if part.get(key)), ""))


def _to_canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def recut_parts(parts: Sequence[str], text: str) -> list[str | None]:
    """The new text over the parts that the old one had, as many at most; None for a part that is no
    longer needed.

    Parts of what both texts begin and end with stay as they were; what lies between is cut in
    proportion.
    """
    first, last = _find_common_parts(parts, text)
    # something was put in between two parts: one that says something carries it
    if first == last and parts:
        near = [*range(first - 1, -1, -1), *range(first, len(parts))]
        first = next((place for place in near if parts[place]), 0)
        last = first + 1
    inner = text[sum(map(len, parts[:first])) : len(text) - sum(map(len, parts[last:]))]
    sizes = [max(len(part), 1) for part in parts[first:last]]
    if inner or len(sizes) == len(parts):
        middle = _cut_text(inner, sizes)
    else:
        middle = [None] * len(sizes)
    return [*parts[:first], *middle, *parts[last:]]


def _find_common_parts(parts: Sequence[str], text: str) -> tuple[int, int]:
    """How many parts at the start are as they were, and where those at the end begin."""
    first, at = 0, 0
    while first < len(parts) and text.startswith(parts[first], at):
        at += len(parts[first])
        first += 1
    last, end = len(parts), len(text)
    while (
        last > first and end - len(parts[last - 1]) >= at and text.endswith(parts[last - 1], 0, end)
    ):
        last -= 1
        end -= len(parts[last])
    return first, last


def _cut_text(text: str, sizes: Sequence[int]) -> list[str | None]:
    """In proportion to the old parts, between words where one ends nearby, as models give them."""
    if not sizes:
        return []
    ends = [_find_word_end(text, end * len(text) // sum(sizes)) for end in accumulate(sizes)]
    parts = [text[start:end] or None for start, end in pairwise([0, *ends])]
    return parts if text else ["", *parts[1:]]


def _find_word_end(text: str, at: int) -> int:
    """The next place behind `at` where a word ends; `at` itself where none is near."""
    if at == 0:
        return 0
    end = next(
        (place for place in range(at, min(at + _NEAR, len(text))) if text[place].isspace()),
        at + _NEAR,
    )
    return min(end, len(text)) if end < at + _NEAR or at + _NEAR > len(text) else at


_NEAR: Final = 16
"""Characters of a long word that are not parted."""
