"""Where any of many short texts, or one of some shapes, stands in a long one: one pass of RE2's automaton.

RE2 takes as long for a hundred patterns as for one. Its patterns only point at places; what stands there
is for `re` and for Python to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, AnyStr

_MEMORY = 32 * 1024 * 1024
"""Bytes that RE2 may remember of what it has met."""
_BLOCK, _NEAR = 256 * 1024, 32
"""Bytes that are looked up at once: of a long text, and at first around a place."""


def encode_by_character(text: str) -> bytes:
    """One byte for each character, ASCII as it is."""
    return text.encode("latin-1", "replace")


@lru_cache(maxsize=32)
def compile_quick(pattern: str) -> Any:
    """A pattern of RE2 over bytes: `search` and `finditer` as in `re`, in linear time. It has no look-around.

    RE2 is loaded here: a kernel that only records has no use for it. Where it is not installed, `re` finds
    the same, some fifty times slower.
    """
    try:
        import re2
    except ImportError:
        return re.compile(pattern.encode("latin-1"))
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    return re2.compile(pattern.encode("latin-1"), options)


class Needles:
    """Needles of two characters of ASCII or more. Of those in `followed`, with the bytes that may follow
    them, only such places count. `shapes`: what else is looked for, as patterns by a name.
    """

    def __init__(
        self,
        needles: Iterable[str],
        followed: Mapping[str, frozenset[int]] = MappingProxyType({}),
        shapes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._shapes = {name: re.compile(shape.encode()) for name, shape in shapes.items()}
        self._by_start: dict[str, list[str]] = {}
        self._followed = followed
        for needle in sorted({*needles}):
            self._by_start.setdefault(needle[:2], []).append(needle)
        each = (
            re.escape(needle) + _class_of(followed.get(needle, ()))
            for group in self._by_start.values()
            for needle in group
        )
        self._pattern = "|".join((*each, *shapes.values()))

    def find_places(self, text: str, data: bytes | None = None) -> Iterator[tuple[int, str]]:
        """Each place where a needle stands, and the needle, in order.
        `data`: the text by character, where it is at hand.
        """
        data = encode_by_character(text) if data is None else data
        search = compile_quick(self._pattern).search
        match = search(data)
        while match is not None:
            at = match.start()
            for needle in self._by_start.get(text[at : at + 2], ()):
                if text.startswith(needle, at) and self._goes_on(needle, data, at + len(needle)):
                    yield at, needle
            for name, shape in self._shapes.items():
                if shape.match(data, at):
                    yield at, name
            match = search(data, at + 1)

    def any_in(self, data: bytes) -> bool:
        """Whether one may stand in a text in UTF-8."""
        return compile_quick(self._pattern).search(data) is not None

    def _goes_on(self, needle: str, data: bytes, end: int) -> bool:
        followed = self._followed.get(needle)
        return followed is None or (end < len(data) and data[end] in followed)


def _class_of(letters: Iterable[int]) -> str:
    """What matches one of these bytes; nothing where there are none."""
    told = "".join(f"\\x{letter:02x}" for letter in sorted(letters))
    return f"[{told}]" if told else ""


def find_all(text: AnyStr, needle: AnyStr, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Each place where a needle stands; none within another."""
    at = text.find(needle, start, end)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle), end)


def long_runs(data: bytes, table: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of `least` bytes or more to which the table gives 1."""
    low = 0
    while low < len(data):  # piece by piece, which stay in the processor's cache; no stretch is cut
        high = find_end(data, table, min(low + _BLOCK, len(data)))
        marked = data[low:high].translate(table)
        run = b"\1" * least
        start = marked.find(run)
        while start >= 0:
            end = marked.find(0, start + least) % (len(marked) + 1)
            yield low + start, low + end
            start = marked.find(run, end)
        low = high


def find_start(data: bytes, table: bytes, at: int) -> int:
    """Where the bytes begin that lead up to a place and to which the table gives 1."""
    low, size = at, _NEAR
    while low:
        low, size = max(0, low - size), min(4 * size, _BLOCK)
        gap = data[low : low + size].translate(table).rfind(0, 0, at - low)
        if gap >= 0:
            return low + gap + 1
    return 0


def find_end(data: bytes, table: bytes, at: int) -> int:
    """Where the bytes end that go on from a place and to which the table gives 1."""
    size = _NEAR
    while at < len(data):
        gap = data[at : at + size].translate(table).find(0)
        if gap >= 0:
            return at + gap
        at, size = at + size, min(4 * size, _BLOCK)
    return len(data)


def table_of(letters: bytes) -> bytes:
    """The table that gives 1 to these bytes, and 0 to all others."""
    return bytes(byte in letters for byte in range(256))
