"""Other people's texts in a terminal."""

from __future__ import annotations


def safe_text(text: str) -> str:
    """A stranger's text in a terminal: nothing that moves its cursor or colours it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
