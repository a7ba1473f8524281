"""Which records of a cassette have to be read as YAML in a search for secrets: those whose lines may hold one.

Reading and walking a record takes ten times as long as searching its lines, and an agent sends what was
said before with each request. So what is new in each record is searched first, as lines: without their
indentation, lists of texts also in one piece. What only a reader can put together (streams, bytes in an
encoding) is no matter of this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Suspects = Callable[[list[str]], set[int]]
"""The numbers of those texts in which a secret may stand, in whatever encoding."""

_ITEM = "\n      - "
_TURN = ("role: ", "type: ", "content:", "parts:")
"""What a message of a request's body begins with."""
_INDENT = re.compile(r"\n ++(?![\"-]|[\w./@+-]++:[ \n])")
"""Before a line of a text that goes on: what follows a key, or is one, keeps its distance."""
_KEY = r'(?:[A-Za-z_/][\w./@+ -]*|"(?:[^"\\\n]|\\.)*"):(?: |\n)'
_TEXTS = re.compile(
    rf"\n( *)- (?!{_KEY}|\[|\{{\}}\n|- )[^\n]*(?:\n(?:(?!\1- {_KEY})\1- |\1  |(?=\n))[^\n]*)+"
)
"""The lines of a list of nothing but texts: two items or more, or one of several lines."""
_BETWEEN_ITEMS = re.compile(r'"?\n *- (?:"|\|[-+]?\n *)?')
_NUMBERS = re.compile(r"\[[-+.0-9eE, ]+\]\n")
_OURS = re.compile(r'\n(?:(?:  sha256|match): ("?)[0-9a-f]{16,64}\1|run: r-[0-9a-f]{8})(?=\n)')
"""Digests, quoted or not, and the random name of a run."""
_OPENED = re.compile(r": \|[-+]?\n")


def bare_record(record: str) -> str:
    """A record with empty lists of numbers and no digests or runs: a search looks at texts."""
    return _OURS.sub("", _NUMBERS.sub("[]\n", record))


def choose_records(records: Sequence[str], suspects: Suspects) -> set[int]:
    """The numbers of the records (bare_record) in which a secret may stand that none before says."""
    said: set[str] = set()
    new = []
    for record in records:
        parts = []
        for part in record.split(_ITEM):
            if part not in said:
                parts.append(part)
            if part.startswith(_TURN):
                said.add(part)
        new.append(_said_by_lines(_ITEM.join(parts)))
    return suspects(new)


def _said_by_lines(lines: str) -> str:
    """What the lines of a record say, whatever is list, key or text."""
    lists = [_BETWEEN_ITEMS.split(match[0]) for match in _TEXTS.finditer(lines)]
    joined = [glue.join(items) for items in lists for glue in ("", "\n")]
    text = "\n\x1e\n".join((lines, *joined))
    return _INDENT.sub("\n", _OPENED.sub(":\n", text))
