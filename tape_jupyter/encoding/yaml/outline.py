"""Reads a part of a record by the outline of one like it, whose keys are known: only values are
looked at.

What one program records is alike to the key, and one regular expression for a whole part takes half
the time of reading it line by line. An outline is drawn from a part that encoding/yaml/parser.py
has read, so that it holds nothing that is refused there. Whatever no outline fits is read line by
line, which also says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Self

from tape_jupyter.encoding.yaml.parser import (
    KEY_ONLY,
    LINE,
    LITERAL,
    Reader,
    block,
    remember_meaning,
)
from tape_jupyter.errors import CassetteError

_KEPT = 8  # outlines: as many sorts of replies as a program has
_LONGEST = 64 * 1024  # characters of a part that is worth it
_LARGEST = (
    8_000  # characters of a pattern, which take 10 ms to compile: longer keys than calls have
)
# parts that none fitted, and twice as many each time: drawing one takes as long as reading some
_DRAWN_AFTER = 16

_VALUE, _MAP, _LIST, _BLOCK = range(4)
_ANY_VALUE = r"([^\n]++)\n"
_ANY_LINES = (
    r"(\|[-+]?+)\n{0}([^ \t\n][^\n]*+\n(?>(?:(?:{0}[^\n]*+)?\n)*))"  # {0}: their indentation
)

Step = tuple[int, str | None, int, int]
"""What is put where: number of a map or list, key in it (None: a list's next item), form, a text
block's column.
"""

_SHORT = 40  # characters of a value that is remembered
_values: dict[str, Any] = {}
_NEW = object()


class Outline:
    """What a part of a record looks like, its values left out."""

    __slots__ = ("_fits", "_steps")

    def __init__(self, pattern: str, steps: Sequence[Step]) -> None:
        self._fits = re.compile(pattern).fullmatch
        self._steps = steps

    @classmethod
    def build(cls, reader: Reader, pos: int, end: int) -> Self | None:
        """The outline of text[pos:end], which the reader has read; None where it would be too
        large.
        """
        drawn = _Drawing(reader)
        drawn.lines(pos, end)
        pattern = "".join(drawn.patterns)
        return cls(pattern, drawn.steps) if len(pattern) <= _LARGEST else None

    def read(self, reader: Reader, pos: int, end: int) -> dict[str, Any] | None:
        """The map whose lines are text[pos:end]; None where they are others, or hold what has to be
        refused.
        """
        match = self._fits(reader.text, pos, end)
        if match is None:
            return None
        try:
            reader.check_characters(pos, end)
            return self._fill_map(reader, pos, iter(match.groups()))
        except CassetteError:
            return None

    def _fill_map(self, reader: Reader, pos: int, values: Iterator[str]) -> dict[str, Any]:
        root: dict[str, Any] = {}
        containers: list[Any] = [root]
        known = _values.get
        value: Any
        for where, key, form, column in self._steps:
            if form == _VALUE:
                raw = next(values)
                value = known(raw, _NEW)
                if value is _NEW:
                    value = reader.value(pos, raw)
                    if len(raw) <= _SHORT and raw[0] not in "[{":
                        remember_meaning(_values, raw, value)
            elif form == _BLOCK:
                style, lines = next(values), next(values)
                value = block(lines[:-1], column, style)
            else:
                value = {} if form == _MAP else []
                containers.append(value)
            if key is None:
                containers[where].append(value)
            else:
                containers[where][key] = value
        return root


class _Drawing:
    """An outline as it is drawn, line by line."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.patterns: list[str] = []
        self.steps: list[Step] = []
        self._open = [(0, 0)]  # the maps and lists around the line: column and number of each
        self._count = 1
        self._pending: str | None = None  # the key whose value begins on the next line

    def lines(self, pos: int, end: int) -> None:
        text = self.reader.text
        while pos < end:
            after = text.find("\n", pos) + 1
            match = LINE.match(text, pos, after)
            assert match is not None  # the reader has read it
            key = self._place_line(match, pos)
            kind = match.lastindex
            if kind == KEY_ONLY:
                self._pending = key
                self.patterns.append(re.escape(text[pos:after]))
            else:
                head = re.escape(text[pos : max(match.end(2), match.end(KEY_ONLY) + len(": "))])
                if kind == LITERAL:
                    column = self._open[-1][0] + 2
                    self.patterns.append(head + _ANY_LINES.format(" " * column))
                    self._add_step(key, _BLOCK, column)
                    after = self.reader.literal(after, end, column, match[LITERAL])[1]
                else:
                    self.patterns.append(head + _ANY_VALUE)
                    self._add_step(key, _VALUE)
            pos = after

    def _place_line(self, match: re.Match[str], pos: int) -> str | None:
        """Open what this line opens and close what ends before it; the line's key."""
        at, inner = match.end(1) - pos, match.end(2) - pos
        if self._pending is not None:
            self._open_container(at, self._pending, _LIST if inner > at else _MAP)
            self._pending = None
        while self._open[-1][0] > at:
            self._open.pop()
        for column in range(at + 2, inner, 2):
            self._open_container(column, None, _LIST)
        if match[KEY_ONLY] is None:
            return None
        if inner > at:
            self._open_container(inner, None, _MAP)
        return self.reader.key(pos, match[KEY_ONLY])

    def _open_container(self, column: int, key: str | None, form: int) -> None:
        self._add_step(key, form)
        self._open.append((column, self._count))
        self._count += 1

    def _add_step(self, key: str | None, form: int, column: int = 0) -> None:
        self.steps.append((self._open[-1][1], key, form, column))


class Outlines:
    """The outlines of what was read of late, the last one that fitted first. Safe to use from
    several threads.
    """

    def __init__(self) -> None:
        self._kept: tuple[Outline, ...] = ()
        self._missed, self._next = 0, _DRAWN_AFTER

    def read(self, reader: Reader, pos: int, end: int) -> dict[str, Any]:
        """The map whose lines are text[pos:end]. Raises CassetteError as Reader.read does."""
        if end - pos > _LONGEST:
            return reader.read(pos, end)
        for outline in self._kept:
            value = outline.read(reader, pos, end)
            if value is not None:
                if outline is not self._kept[0]:
                    self._remember_outline(outline)
                return value
        value = reader.read(pos, end)
        self._missed += 1
        if self._missed >= self._next:
            self._missed, self._next = 0, 2 * self._next
            if (drawn := Outline.build(reader, pos, end)) is not None:
                self._remember_outline(drawn)
        return value

    def _remember_outline(self, outline: Outline) -> None:
        self._kept = (outline, *(other for other in self._kept if other is not outline))[:_KEPT]


read = Outlines().read
