"""How long work tells how far it is: a function that hears which step is under way, and how much of
it is done. Nothing is shown here; a command line shows it as a bar, a test counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Tell = Callable[[str, int, int], None]
"""Hears what is under way, and how many of how many are done (0 of 0 where nobody knows)."""

_OFTEN = 100
_Item = TypeVar("_Item")


def ignore_progress(_what: str, _done: int, _total: int) -> None:
    """Hears nothing."""


def count_items(items: Sequence[_Item], what: str, on_progress: Tell) -> Iterator[_Item]:
    """The items, one by one; tells of the first, of the last, and of about a hundred in between."""
    total = len(items)
    every = max(1, total // _OFTEN)
    for number, item in enumerate(items, 1):
        if number in (1, total) or number % every == 0:
            on_progress(what, number, total)
        yield item
