r"""Text room: a record of a cassette as text, and back. Nothing here opens a file or knows what a
record means.

The text is a strict subset of YAML 1.2 (and reads the same to YAML 1.1 tools):

    ---
    call: "78a670b1"              bare words, JSON-quoted texts
    request:
      body:                       block maps and lists, two spaces a level
        - role: user
          content: |-             literals: | one line end at the end, |- none, |+ all of them
            Which region?
    response:
      reads: [582, 150]           JSON numbers, flat lists of numbers; empty {} and []
    ...

`emit` gives a text for which `parse(emit(record)) == record`, types and order included, or raises.
The reader is our own because general ones change values (`no`, `1:20`, the last of two equal keys)
and crash on hostile nesting. One escape is YAML's and not JSON's: the second of two halves of a
surrogate pair that stand in a text as two characters is written `\U0000de00`, because JSON would
join them into one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from json import JSONEncoder
from typing import Any

from tape_jupyter.encoding.yaml import outline
from tape_jupyter.encoding.yaml.grammar import (
    LONG_LINE,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_KEY,
    NUMBER,
    RESERVED,
    UNWRITABLE,
    WORD,
    are_bounded,
    flawed,
)
from tape_jupyter.encoding.yaml.parser import HEAD, TAIL, Reader
from tape_jupyter.errors import CassetteError

# --- writing -------------------------------------------------------------------------------------------------------


def emit(record: dict[str, Any]) -> str:
    """The record's text, from `---` to `...` and a line end.

    Values are dict (str keys), list, str, int, float, bool and None, of exactly these types. Raises
    CassetteError, without a line, for any other type and for what the text cannot carry: NaN and
    infinities, numbers over 400 digits, over 64 levels, keys over 1,000 characters. The caller then
    keeps the body as text.
    """
    return whole_record(part_lines(record) if record else "{}\n")


def part_lines(part: Mapping[str, Any]) -> str:
    """The lines of a part of a record, not empty, as `emit` writes them between the marks."""
    out: list[str] = []
    _emit_map(out, part, "", "", 1)
    out.append("")
    return "\n".join(out)


def whole_record(*parts: str) -> str:
    """The record whose parts have these lines; no two of them have a key in common."""
    return "".join(("---\n", *parts, "...\n"))


def _emit_map(out: list[str], mapping: Mapping[str, Any], first: str, pad: str, depth: int) -> None:
    """The lines of a map. `first` begins its first line (`- ` in a list), `pad` the others."""
    inner = pad + "  "
    for key, value in mapping.items():
        lead = first + _format_key(key)
        first = pad
        if type(value) is str:
            out.append(f"{lead} {_format_text(value, inner)}")
        elif (short := _format_short_value(value)) is not None:
            out.append(f"{lead} {short}")
        else:
            out.append(lead)
            _emit_block(out, value, inner, inner, depth + 1)


def _emit_list(out: list[str], items: list[Any], first: str, pad: str, depth: int) -> None:
    inner = pad + "  "
    for item in items:
        lead = first + "- "
        first = pad
        if type(item) is str:
            out.append(lead + _format_text(item, inner))
        elif (short := _format_short_value(item)) is not None:
            out.append(lead + short)
        else:
            _emit_block(out, item, lead, inner, depth + 1)


def _emit_block(
    out: list[str], value: dict[str, Any] | list[Any], first: str, pad: str, depth: int
) -> None:
    if depth > MAX_DEPTH:
        raise CassetteError(
            f"a value nested more than {MAX_DEPTH} levels deep cannot be written as structure"
        )
    if type(value) is dict:
        _emit_map(out, value, first, pad, depth)
    elif type(value) is list:
        _emit_list(out, value, first, pad, depth)
    else:
        raise CassetteError(
            f"a value of type {type(value).__name__} cannot be written: freeze it first"
        )


def _format_short_value(value: Any) -> str | None:
    """A value that stands on the line of its key, unless it is a text; None for all that takes
    lines of its own.
    """
    if value is None:
        return "null"
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return repr(value) if -_SMALL < value < _SMALL else _format_numbers([value])
    if kind is float:
        return _format_numbers([value])
    if kind is list:
        return f"[{_format_numbers(value)}]" if NUMBER.issuperset(map(type, value)) else None
    return "{}" if kind is dict and not value else None


def _format_numbers(values: list[int | float]) -> str:
    """JSON numbers, `, ` between them. A float has a point: YAML 1.1 takes `1e-07` for a text."""
    text = ", ".join(map(repr, values)) if are_bounded(values) else "inf"
    if "n" in text:  # of nan, inf
        raise CassetteError(
            f"NaN, infinity and numbers over {MAX_DIGITS} digits cannot be written as structure"
        )
    return _POINTLESS.sub(r"\1.0e", text) if "e" in text else text


_SMALL = 1 << 53
_POINTLESS = re.compile(r"(?<![.0-9])([0-9])e")
_LITERAL_STYLES = {0: "|-", 1: "|"}
"""By the number of line ends that a text ends in; more of them are `|+`."""


@lru_cache(1024)
def _format_key(key: str) -> str:
    if type(key) is not str:
        raise CassetteError(f"a key of type {type(key).__name__} cannot be written: keys are texts")
    if len(key) > MAX_KEY or len(written := _format_line(key)) > MAX_KEY:
        raise CassetteError(
            f"a key of more than {MAX_KEY} characters cannot be written as structure"
        )
    return written + ":"


def _format_text(text: str, pad: str) -> str:
    """A text as word, quoted, or as a literal whose lines begin with `pad`."""
    if len(text) <= LONG_LINE and "\n" not in text[:-1]:
        return _format_line(text)
    # A literal's first character must not be a blank: readers find the indentation by it.
    if text[0] in " \t\n" or flawed(text):
        return _quote_text(text)
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    margin = "\n" + pad
    lines = body.replace("\n", margin)
    while margin + "\n" in lines and "\n\n" in body:  # empty lines stay empty; twice around at most
        lines = lines.replace(margin + "\n", "\n\n")
    style = _LITERAL_STYLES.get(ends, "|+")
    return style + margin + lines + "\n" * (ends - 1)


@lru_cache(4096)  # names, roles, types: the same few texts stand in every record
def _format_line(text: str) -> str:
    is_plain = len(text) <= LONG_LINE and _is_word(text) and text.lower() not in RESERVED
    return text if is_plain else _quote_text(text)


_is_word = re.compile(WORD).fullmatch


def _quote_text(text: str) -> str:
    quoted = _encode(text)
    return _ESCAPED.sub(_escape_match, quoted) if flawed(quoted) else quoted


_encode = JSONEncoder(ensure_ascii=False).encode
_ESCAPED = re.compile(f"[\ud800-\udbff][\udc00-\udfff]|{UNWRITABLE.pattern}")


def _escape_match(match: re.Match[str]) -> str:
    halves = match.group()
    escape = f"\\u{ord(halves[0]):04x}"
    return escape if len(halves) == 1 else escape + f"\\U{ord(halves[1]):08x}"


# --- reading -------------------------------------------------------------------------------------------------------


def parse_record(text: str, *, first_line: int = 1) -> dict[str, Any]:
    """The record of a text from `---` to `...`; lines may end in CR LF.

    `first_line` is the number of the text's first line in its file. Raises CassetteError, with the
    line, for everything that is not exactly the subset, and nothing else.
    """
    reader = Reader(text, first_line)
    if reader.text == "---\n{}\n...\n":
        return {}
    record = reader.read(HEAD, len(reader.text) - TAIL)
    if not record:
        raise reader.error(
            0, "an empty record: restore what stood between `---` and `...`, or take the record out"
        )
    return record


def keys(text: str) -> list[str]:
    """The names of a record's top-level keys, in order, found without reading their values."""
    return Reader(text, 1).names()


def top(text: str, name: str, *, first_line: int = 1, last: bool = False) -> Any:
    """The value of one top-level key of a record (`request`); None if it is absent. The rest stays
    unread.

    `name` is a bare word. Raises CassetteError as `parse_record` does for flaws in this part, and if the
    key is there twice. `last`: it is the last key of a record; what follows all the same is read
    with it.
    """
    reader = Reader(text, first_line)
    where = reader.part(name, last=last)
    if where is None:
        return None
    read = outline.read if last else Reader.read
    return read(reader, *where)[name]


def head(text: str, before: str, *, first_line: int = 1) -> dict[str, Any]:
    """The top-level keys of a record that stand before the key `before`; all of them if it is
    absent.
    """
    reader = Reader(text, first_line)
    where = reader.part(before)
    return reader.read(HEAD, where[0] if where else len(reader.text) - TAIL)
