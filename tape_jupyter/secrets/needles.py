"""Where any of many short texts stands in a long one: one pass for all of them, at the speed of C.

Tables say of each byte which groups of needles have it as their first, second, third or fourth; a
block is looked up in all of them, and what they give is compared as long integers. Only where all
four agree on a group is it looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import AnyStr

_GROUPS = 8  # bits of a byte
_LETTERS = 4  # of a needle that are compared at once
_BLOCK = 128 * 1024
_ANY = frozenset(range(256))
_END = b"\0" * (_LETTERS - 1)  # any letter may follow a short needle, also none
_REMEMBERED = 1 << 16
_TO_ONE = b"\0" + b"\1" * 255
_OFTEN = b"etaoinsrhldcumfpgwybvk"
"""Letters of texts, the frequent ones first."""
_FREQUENCY = [
    0.1 * 0.88 ** _OFTEN.find(byte) if byte in _OFTEN
    else 0.06 if byte in b' "\\0123456789'
    else 0.02 if byte in b",:._-/ABCDEFGHIJKLMNOPQRSTUVWXYZjqxz\n"
    else 0.005
    for byte in range(256)
]  # fmt: skip
"""How much of a text each is, about: of prose, JSON, numbers and base64."""


def encode_by_character(text: str) -> bytes:
    """One byte for each character, ASCII as it is."""
    return text.encode("latin-1", "replace")


Group = list[set[int] | frozenset[int]]
"""The letters that its needles have at each place."""


class Needles:
    """Needles of two characters of ASCII or more. Of those of four or more in `followed`, with the bytes
    that may follow them, only such places count.
    """

    def __init__(
        self, needles: Iterable[str], followed: Mapping[str, frozenset[int]] = MappingProxyType({})
    ) -> None:
        anchored: list[Group] = []
        self._by_letter: dict[int, list[tuple[Group, int, str]]] = {}
        for needle in sorted({*needles}):
            at = len(needle) - _LETTERS + 1 if needle in followed else _choose_anchor(needle)
            letters: Group = [{letter} for letter in needle[at : at + _LETTERS].encode()]
            letters += [followed.get(needle, _ANY)] * (_LETTERS - len(letters))
            anchored.append(letters)
            for letter in letters[0]:
                self._by_letter.setdefault(letter, []).append((letters[1:], at, needle))
        self._tables = _build_tables(_group_anchors(anchored))
        self._fitting: dict[bytes, list[tuple[int, str]]] = {}

    def find_places(self, text: str, data: bytes | None = None) -> Iterator[tuple[int, str]]:
        """Each place where a needle stands, and the needle; those of one needle in order.
        `data`: the text by character, where it is at hand.
        """
        data = encode_by_character(text) if data is None else data
        known = self._fitting
        for at in self._find_candidates(data):
            letters = data[at : at + _LETTERS]
            fitting = known.get(letters)
            if fitting is None:
                fitting = self._find_fitting(letters)
            for back, needle in fitting:
                if at >= back and text.startswith(needle, at - back):
                    yield at - back, needle

    def _find_fitting(self, letters: bytes) -> list[tuple[int, str]]:
        """The needles that may stand where these letters do. Texts say the same few again and again."""
        rest = letters[1:].ljust(_LETTERS - 1, b"\0")
        fitting = [
            (at, needle)
            for group, at, needle in self._by_letter.get(letters[0], ())
            if all(letter in each for letter, each in zip(rest, group, strict=True))
        ]
        if len(self._fitting) > _REMEMBERED:
            self._fitting = {}
        self._fitting[letters] = fitting
        return fitting

    def _find_candidates(self, data: bytes) -> Iterator[int]:
        for start in range(0, len(data), _BLOCK):
            block = data[start : start + _BLOCK + len(_END)] + _END
            agreed = -1
            for place, table in enumerate(self._tables):
                agreed &= int.from_bytes(block.translate(table), "little") >> 8 * place
            marked = agreed.to_bytes(len(block), "little").translate(_TO_ONE)
            at = marked.find(1, 0, _BLOCK)
            while at >= 0:
                yield start + at
                at = marked.find(1, at + 1, _BLOCK)


def _choose_anchor(needle: str) -> int:
    """Where its four letters begin that stand in the fewest texts."""
    return min(
        range(max(1, len(needle) - _LETTERS + 1)),
        key=lambda at: _chance([{letter} for letter in needle[at : at + _LETTERS].encode()]),
    )


def _group_anchors(anchors: Iterable[Group]) -> list[Group]:
    """Groups that few texts fit which hold none of their needles: of all pairs of groups those two
    are joined, again and again, that then fit the least more.
    """
    groups = dict(enumerate({repr(anchor): anchor for anchor in anchors}.values()))
    chances = {number: _chance(group) for number, group in groups.items()}
    costs = {
        pair: _cost_of_joining(groups, chances, *pair) for pair in itertools.combinations(groups, 2)
    }
    while len(groups) > _GROUPS:
        kept, gone = min(costs, key=costs.__getitem__)
        groups[kept] = _join(groups[kept], groups.pop(gone))
        chances[kept] = _chance(groups[kept])
        costs = {pair: cost for pair, cost in costs.items() if gone not in pair}
        for other in groups:
            if other != kept:
                pair = (min(kept, other), max(kept, other))
                costs[pair] = _cost_of_joining(groups, chances, *pair)
    return list(groups.values())


def _cost_of_joining(
    groups: dict[int, Group], chances: dict[int, float], one: int, two: int
) -> float:
    return _chance(_join(groups[one], groups[two])) - chances[one] - chances[two]


def _join(group: Group, other: Group) -> Group:
    return [
        _ANY if _ANY in (one, two) else one | two for one, two in zip(group, other, strict=True)
    ]


def _chance(group: Group) -> float:
    """How much of a usual text fits a group, about."""
    chance = 1.0
    for letters in group:
        chance *= 1.0 if letters is _ANY else sum(map(_FREQUENCY.__getitem__, letters))
    return chance


def _build_tables(groups: list[Group]) -> list[bytes]:
    return [
        bytes(
            sum(1 << bit for bit, group in enumerate(groups) if byte in group[place])
            for byte in range(256)
        )
        for place in range(_LETTERS)
    ]


def find_all(text: AnyStr, needle: AnyStr, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Each place where a needle stands; none within another."""
    at = text.find(needle, start, end)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle), end)


def long_runs(data: bytes, table: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of `least` bytes or more to which the table gives 1."""
    marked = data.translate(table) + b"\0"
    run = b"\1" * least
    start = marked.find(run)
    while start >= 0:
        end = marked.find(0, start + least)
        yield start, end
        start = marked.find(run, end)


def table_of(letters: bytes) -> bytes:
    """The table that gives 1 to these bytes, and 0 to all others."""
    return bytes(byte in letters for byte in range(256))
