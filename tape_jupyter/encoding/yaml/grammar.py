"""The limits, words and characters of the cassette text, and what to say of a line that is not in
it.

encoding/yaml/emitter.py writes and encoding/yaml/parser.py reads by these rules. Nothing here
raises; each reason says what to write instead.
"""

from __future__ import annotations

import re
from json import dumps

MAX_DEPTH = 64
"""Maps and lists inside each other, the record itself counted."""

MAX_DIGITS = 400
"""Digits of the longest number."""

MAX_KEY = 1000
"""Characters of the longest key as written; YAML itself stops at 1024."""

LONG_LINE = 100
"""Characters of the longest word, and of the longest single line in quotes that could be a literal."""

TOO_BIG = 10**MAX_DIGITS

# `(?>(...)*)` and not `(...)*+`: before 3.11.5 a possessive group keeps what its last, failed round
# took (gh-106052).
WORD = r"[A-Za-z_/][A-Za-z0-9_./@+-]*+(?>(?: [A-Za-z0-9_./@+()-]++)*)"
QUOTED = r'"(?>(?:[^"\\\t\n]++|\\.)*)"'
RESERVED = frozenset(
    {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"}
)
NUMBER = frozenset({int, float})
CONSTANTS = {"null": None, "true": True, "false": False}

# What a record may hold as it stands. C0, DEL, C1 (NEL among them), U+2028, U+2029, the byte order
# mark, non-characters and halves of surrogate pairs are \u escapes inside quotes.
UNWRITABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_WRITABLE_ASCII = bytes([0x09, 0x0A, *range(0x20, 0x7F)])


def flawed(text: str) -> bool:
    """Whether a character must not stand as it is. Deleting plain ASCII first is eight times as
    fast as the search.
    """
    odd = text.encode("utf-8", "surrogatepass").translate(None, _WRITABLE_ASCII)
    return bool(odd) and UNWRITABLE.search(odd.decode("utf-8", "surrogatepass")) is not None


def are_bounded(numbers: list[int | float]) -> bool:
    """Whether none is infinite or has more digits than may be (NaN goes unseen)."""
    return not numbers or (min(numbers) > -TOO_BIG and max(numbers) < TOO_BIG)


TOO_DEEP = (
    f"nested more than {MAX_DEPTH} levels deep: no tape is; restore the file, or record again"
)
BAD_ESCAPE = (
    r"a bad escape in double quotes: \" \\ \/ \b \f \n \r \t and \u with four hex digits are known; "
    "write a backslash twice to mean itself"
)
TOO_MANY_ESCAPES = "a text in double quotes with over 1,000,000 escapes: write it as a text block (|), or record again"
BIG_NUMBER = f"a number that is infinite or has over {MAX_DIGITS} digits: write it as a text in double quotes"


def no_value(key: str, column: int) -> str:
    return (
        f"`{key[:40]}:` has no value: indent the lines of its value by exactly {column} spaces, "
        'or write "", null, {} or [] behind it'
    )


def explain(text: str, pos: int) -> str:
    """Why the line at `pos` is not one of ours, and what to write instead."""
    line = text[pos : text.find("\n", pos)][:2000]
    for flaw, reason in _FLAWS:
        if re.match(flaw, line):
            return reason
    # it matches the empty text too
    rest = line[re.match(_START, line).end() :]  # type: ignore[union-attr]
    return f"write this text in double quotes: {dumps(rest[:60], ensure_ascii=False)}"


_START = rf" *+(?>(?:- )*)(?:(?:{WORD}|{QUOTED}):(?: |$))?"
# compiled when a line is explained
_FLAWS = (
    (
        r"<{7}|={7}|>{7}|\|{7}",
        "a merge-conflict marker: keep one of the two sides, or join both files with `tape merge`",
    ),
    (r" *\t", "a tab: indent with spaces, two for each level"),
    (r" *$", "an empty line: take it out"),
    (
        r"---|\.\.\.",
        "a record mark inside a record: a text with this line is indented under `key: |-`",
    ),
    (_START + "#", "a comment: comments are not part of a tape; take it out"),
    (
        r" *(?:- )*<<:",
        'a merge key: merge keys are not part of a tape; write the keys out, or the key "<<" in quotes',
    ),
    (
        _START + r"[&*]",
        "an anchor or alias: anchors are not part of a tape; write the value out, or a text in quotes",
    ),
    (
        _START + "!",
        "a tag: tags are not part of a tape; take it out, or write a text in double quotes",
    ),
    (
        _START + r"\{",
        "a map in braces: write its keys on lines of their own; only {} stands on one line",
    ),
    (
        _START + r"\[",
        "a list in brackets holds plain numbers only: write `- item` lines instead",
    ),
    (_START + "'", "single quotes: write the text in double quotes"),
    (_START + r"[|>]", "a text block begins with |, |- or |+ and nothing behind it"),
    (_START + r"\?", "a key after `?`: write `key: value`"),
    (
        _START + r"[-+]?\.?(?i:nan|inf|infinity)$",
        'NaN and infinity are not part of a tape: write them as a text, as "NaN"',
    ),
    (_START + r" ", "two spaces where one belongs: write `key: value`, `- item`"),
    (_START + r"-?$", 'a list item without a value: write "", null, {} or [] behind the dash'),
    (_START + r"-", "a dash without a space: write `- item`, or a text in double quotes"),
    (
        _START + '"',
        r"a text in double quotes ends on its line, with nothing behind it; a tab in it is \t",
    ),
    (
        _START + ".* $",
        "a space at the end of the line: take it out, or write the text in double quotes",
    ),
    (_START + ".* #", "a comment: comments are not part of a tape; take it out"),
    (
        rf" *(?:- )*(?!(?:{WORD}|{QUOTED}):)[^:]*:(?: |$)",
        "a key with other characters than letters, digits and _./@+-: write it in double quotes",
    ),
    (r" *" + WORD + "$", "a text alone on its line: write `key: value`, or `- item` in a list"),
)
