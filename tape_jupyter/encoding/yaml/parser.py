"""Reads the lines of a record, or of a part of one. What a record means is for others to know.

Hostile input costs time in proportion to its length: every pattern is possessive where it repeats,
and the nesting is kept on a stack of our own, so that nothing in a file can exhaust Python's. All
that is raised is CassetteError.
"""

from __future__ import annotations

import re
from functools import lru_cache
from json import JSONDecoder
from math import isfinite
from typing import Any, TypeVar

from tape_jupyter.encoding.yaml.grammar import (
    BAD_ESCAPE,
    BIG_NUMBER,
    CONSTANTS,
    MAX_DEPTH,
    MAX_DIGITS,
    NUMBER,
    QUOTED,
    RESERVED,
    TOO_DEEP,
    TOO_MANY_ESCAPES,
    UNWRITABLE,
    WORD,
    are_bounded,
    explain,
    flawed,
    no_value,
)
from tape_jupyter.errors import CassetteError

T = TypeVar("T")

HEAD = len("---\n")
TAIL = len("...\n")

_TOP_LINE = re.compile(r"\n(?=[^ \n])")
_TOP_KEY = re.compile(rf"\n({WORD}|{QUOTED}):")

# (?![0-9.eE]): whatever follows, nothing that would make it another number.
_VALUE = (
    rf'(?:"([^"\\\t\n]*+)"|({QUOTED})|({WORD})|(-?(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}}+)(?![0-9.eE]))'
    r"|(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)|(\|[-+]?+)|(\[[^]\[\n\"]*+\])|(\{\}))"
)
LINE = re.compile(rf"( *+)((?>(?:- )*))(?:({WORD}|{QUOTED}):(?: |(?=\n)))?{_VALUE}?\n")
_on_a_line = re.compile(_VALUE).fullmatch
KEY_ONLY, PLAIN, ESCAPES, BARE, INT, FLOAT, LITERAL, FLAT, EMPTY = range(3, 12)
"""One line: indentation, dashes, key, and a value in one of these forms, by the number of its
group.
"""


Line = tuple[int, int, str | None, int, Any]
"""A line as it is read: its columns before and after the dashes, its key, the kind of its value,
the value.
"""

_SHORT_LINE = 72  # a line with a digest is longer, and the only one of its kind
_LONG_LINE, _MOST_ESCAPES = 1 << 20, 1_000_000
"""A search keeps 260 bytes for each escape. A longer text than can have so many is an asset."""
_LONG_ITEM = re.compile(rf"[^,]{{{MAX_DIGITS + len('[ -]') + 1}}}")
_REMEMBERED = 4096
_lines: dict[str, Line] = {}


class Reader:
    """One record's text. `text` has LF line ends; positions are offsets in it; `first_line` is its
    first line's number.

    Raises CassetteError if the text does not run from `---` to `...`.
    """

    __slots__ = ("first_line", "text")

    def __init__(self, text: str, first_line: int) -> None:
        if not text.endswith("\n"):  # an editor that leaves out the last line end
            text += "\n"
        if "\r" in text:  # git's autocrlf; a CR that is meant is written \r
            text = text.replace("\r\n", "\n")
        self.text, self.first_line = text, first_line
        if text.startswith("\ufeff"):
            raise self.error(
                0, "the file begins with a byte order mark: save it as UTF-8 without BOM"
            )
        if not (text.startswith("---\n") and text.endswith("\n...\n")):
            raise self.error(
                0,
                "a record begins with a line `---` and ends with a line `...`: restore these lines",
            )

    def error(self, pos: int, reason: str) -> CassetteError:
        return CassetteError(reason, line=self.first_line + self.text.count("\n", 0, pos))

    def names(self) -> list[str]:
        """The names of the top-level keys, in order."""
        return [
            self.key(match.start(1), match[1]) for match in _TOP_KEY.finditer(self.text, HEAD - 1)
        ]

    def part(self, name: str, *, last: bool = False) -> tuple[int, int] | None:
        """From where to where the lines of a top-level key run; None if it is absent.

        `last`: it is known to be a record's last key, and all that follows is read with it.
        """
        mark = f"\n{name}:"
        start = self.text.find(mark) + 1
        if not start:
            return None
        if last:
            return start, len(self.text) - TAIL
        stop = _TOP_LINE.search(self.text, start)
        end = stop.end() if stop else len(self.text)  # there always is one: the closing `...`
        if not (_TOP_KEY.match(self.text, end - 1) or self.text.startswith("...\n", end)):
            # a line that lost its indentation would end the part
            raise self.error(end, explain(self.text, end))
        if twice := self.text.find(mark, end - 1) + 1:
            raise self.error(
                twice, f"the key {name!r} a second time in one record: keep one of the two"
            )
        return start, end

    # two calls for each line cost a tenth
    def read(self, pos: int, end: int) -> dict[str, Any]:  # noqa: C901, PLR0912, PLR0915
        """The map whose lines are text[pos:end]: the one hard loop, a microsecond for each line."""
        self.check_characters(pos, end)
        text, known = self.text, _lines.get
        # the open maps and lists around `here`, each with its column
        outer: list[tuple[int, Any]] = []
        root: dict[str, Any] = {}
        here: Any = root
        column, key, pending = 0, "", False  # pending: the value of `key` begins on the next line
        while pos < end:
            after = text.find("\n", pos) + 1
            at, inner, name, kind, value = known(text[pos:after]) or self.line(pos, after)
            if pending:
                if at != column + 2:
                    raise self.error(pos, no_value(key, column + 2))
                if len(outer) + 1 >= MAX_DEPTH:
                    raise self.error(pos, TOO_DEEP)
                outer.append((column, here))
                here[key] = [] if inner > at else {}
                here, column = here[key], at
            elif at != column:
                while at < column:
                    column, here = outer.pop()
                if at != column:
                    raise self.error(
                        pos,
                        f"indented by {at} spaces where {column} belong: two spaces for each level",
                    )

            if inner > at:  # `- `, or several
                if type(here) is not list:
                    raise self.error(
                        pos, "a list item among keys: indent it two spaces more than the list's key"
                    )
                if len(outer) + (inner - at) // 2 - (name is None) >= MAX_DEPTH:
                    raise self.error(pos, TOO_DEEP)
                while column + 2 < inner:
                    outer.append((column, here))
                    here.append([])
                    here, column = here[-1], column + 2
                if name is not None:
                    outer.append((column, here))
                    here.append({})
                    here, column = here[-1], inner
            elif name is None:
                raise self.error(pos, explain(text, pos))
            elif type(here) is list:
                raise self.error(
                    pos,
                    f"the key {name[:40]} among list items: write `- {name[:40]}: ...`, or indent it",
                )

            if kind == LITERAL:
                value, after = self.literal(after, end, column + 2, value)
            if name is None:
                here.append(value)
                pending = False
            else:
                key = name
                if key in here:
                    raise self.error(
                        pos, f"the key {key[:40]!r} a second time in one map: keep one of the two"
                    )
                here[key] = value
                pending = kind == KEY_ONLY
            pos = after
        if pending:
            raise self.error(end, no_value(key, column + 2))
        return root

    def line(self, pos: int, after: int) -> Line:
        """What the line text[pos:after] says. Short ones are remembered: records are alike, and say
        the same again.
        """
        if after - pos > _LONG_LINE and self.text.count("\\", pos, after) > _MOST_ESCAPES:
            raise self.error(pos, TOO_MANY_ESCAPES)
        match = LINE.match(self.text, pos, after)
        if match is None:
            raise self.error(pos, explain(self.text, pos))
        name, kind = match[KEY_ONLY], match.lastindex or 0
        key = None if name is None else self.key(pos, name)
        value = None if kind in (0, KEY_ONLY) else self.scalar(pos, kind, match[kind])
        line = (match.end(1) - pos, match.end(2) - pos, key, kind, value)
        if after - pos <= _SHORT_LINE and kind not in (FLAT, EMPTY):
            remember_meaning(_lines, self.text[pos:after], line)
        return line

    def check_characters(self, pos: int, end: int) -> None:
        if flawed(self.text[pos:end]) and (match := UNWRITABLE.search(self.text, pos, end)):
            code = ord(match.group())
            escaped = f"\\u{code:04x}"
            raise self.error(
                match.start(),
                f"the character U+{code:04X} as it is: write it {escaped} in double quotes",
            )

    def key(self, pos: int, name: str) -> str:
        if name[0] == '"':
            return self.unquote(pos, name)
        if name.lower() in RESERVED:
            raise self.error(
                pos, f'other tools misread the key {name}: write "{name}" in double quotes'
            )
        return name

    def constant(self, pos: int, text: str) -> bool | None:
        if text not in CONSTANTS:
            raise self.error(
                pos,
                f'other tools misread {text}: write true, false or null, or the text "{text}" in quotes',
            )
        return CONSTANTS[text]

    def scalar(self, pos: int, kind: int, raw: str) -> Any:
        """The value on a line; of a text block its style."""
        if kind in (PLAIN, LITERAL):
            return raw
        if kind == BARE:
            return self.constant(pos, raw) if raw.lower() in RESERVED else raw
        if kind == INT:
            return int(raw)
        if kind == ESCAPES:
            return self.unquote(pos, raw)
        if kind == FLOAT:
            if len(raw) <= MAX_DIGITS and isfinite(number := float(raw)):
                return number
            raise self.error(pos, BIG_NUMBER)
        return {} if kind == EMPTY else self.flat(pos, raw)

    def value(self, pos: int, raw: str) -> Any:
        """The value that stands whole on a line as `raw`. Raises CassetteError where that is none
        of a line's own.
        """
        match = _on_a_line(raw)
        kind = KEY_ONLY + (match.lastindex or 0) if match else LITERAL
        if match is None or kind == LITERAL:
            raise self.error(pos, explain(self.text, pos))
        return self.scalar(pos, kind, match[kind - KEY_ONLY])

    def flat(self, pos: int, raw: str) -> list[int | float]:
        # Before anything is converted: a million digits take Python a second. Sign, blank and
        # brackets are no digits.
        if len(raw) > MAX_DIGITS and _LONG_ITEM.search(raw):
            raise self.error(pos, BIG_NUMBER)
        try:
            values: list[int | float] = _decode(raw)[0]
        except ValueError:
            values = [None]  # type: ignore[list-item] # refused below
        if not NUMBER.issuperset(map(type, values)):
            raise self.error(pos, explain(self.text, pos))
        if not are_bounded(values):
            raise self.error(pos, BIG_NUMBER)
        return values

    def unquote(self, pos: int, raw: str) -> str:
        try:
            return _unquote_text(raw)
        except ValueError:
            raise self.error(pos, BAD_ESCAPE) from None

    def literal(self, start: int, end: int, column: int, style: str) -> tuple[str, int]:
        """The text of the lines from `start` that are indented by `column`, and where the next line
        begins.
        """
        text = self.text
        stop = _compile_outdent(column).search(text, start - 1, end)
        body = text[start + column : stop.start()] if stop else ""
        if not stop or not body or text[start] == "\n" or body[0] in " \t\n":
            raise self.error(
                start,
                f"a text block's first line has exactly {column} spaces, then text: "
                'a text that is empty or begins with a blank goes in double quotes, as "\\n  text"',
            )
        return block(body, column, style), stop.end()


def remember_meaning(known: dict[str, T], raw: str, meaning: T) -> None:
    """Records are alike and say the same again: keep what a text means, of so many texts."""
    if len(known) >= _REMEMBERED:
        known.clear()
    known[raw] = meaning


def block(body: str, column: int, style: str) -> str:
    """The text whose lines are those of `body`, indented by `column` but for the first."""
    text = body.replace("\n" + " " * column, "\n")
    if style != "|+":
        text = text.rstrip("\n")
    return text if style == "|-" else text + "\n"


@lru_cache(MAX_DEPTH + 1)
def _compile_outdent(column: int) -> re.Pattern[str]:
    """The line end after which a text block at this column is over: the next line is neither empty
    nor indented.
    """
    return re.compile(rf"\n(?! {{{column}}}|\n)")


def _unquote_text(quoted: str) -> str:
    if "\\U" not in quoted:
        return str(_decode(quoted)[0])
    out, start = "", 1
    for match in _ANY_ESCAPE.finditer(quoted):
        if match[1]:
            out += _decode(f'"{quoted[start : match.start()]}"')[0] + chr(int(match[1], 16))
            start = match.end()
    return out + str(_decode('"' + quoted[start:])[0])


_ANY_ESCAPE = re.compile(r"\\(?:U0000(d[c-f][0-9a-f]{2})|.)")


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


_decode = JSONDecoder(parse_constant=_refuse_constant).raw_decode
