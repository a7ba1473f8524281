"""Values and counts as text that people read; other people's texts in a terminal."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any


def safe_text(text: str) -> str:
    """A stranger's text in a terminal: nothing that moves its cursor or colours it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8 without a NUL."""
    if b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def end_line(text: str) -> str:
    """The text with a line feed at its end, where it has none."""
    return text if text.endswith("\n") else text + "\n"


def format_count(number: int, thing: str) -> str:
    """`1 call`, `1,200 calls`; `1 reply`, `2 replies`."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith("ly"):
        return f"{number:,} {thing[:-1]}ies"
    return f"{number:,} {thing}s"


def format_times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def did_you_mean(text: str, choices: Sequence[str], likeness: float = 0.6) -> str:
    """`: did you mean replay?`; "" where no choice is as alike (difflib's ratio)."""
    near = difflib.get_close_matches(text, choices, n=1, cutoff=likeness)
    return f": did you mean {near[0]}?" if near else ""


def join_some(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: at most so many by name."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def format_json(value: Any) -> str:
    """JSON on lines of its own; what JSON has no form for as its repr."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=repr)


def text_or_json(value: Any) -> str:
    """A text as it is, any other value as its JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
