"""Values and counts as text that people read; other people's texts in a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def safe_text(text: str) -> str:
    """A stranger's text in a terminal: nothing that moves its cursor or colours it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def end_line(text: str) -> str:
    """The text with a line feed at its end, where it has none."""
    return text if text.endswith("\n") else text + "\n"


def format_count(number: int, thing: str) -> str:
    """`1 call`, `1,200 calls`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def join_some(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: at most so many by name."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def format_json(value: Any) -> str:
    """JSON on lines of its own; what JSON has no form for as its repr."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=repr)


def text_or_json(value: Any) -> str:
    """A text as it is, any other value as its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
