"""Store room: replies that are read a few at a time, where a program asks for them in the order they were recorded.

Reading some dozens of records in one go takes half the time of reading each between two SDK calls, whose code and
data push ours out of the processor's caches. Whoever asks in another order pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from tape_jupyter.errors import CassetteError

CALLS, BYTES = 32, 128 * 1024  # read ahead at most
_IN_ORDER = 2  # calls asked for in file order before anything is read ahead


class Placed(Protocol):
    """Something at a place in a file's order."""

    place: int
    length: int


P = TypeVar("P", bound=Placed)
R = TypeVar("R")


class ReadAhead(Generic[P, R]):
    """Gives what `read(items)` makes of items that lie one after another. Safe to use from several threads."""

    def __init__(self, read: Callable[[Sequence[P]], list[R]]) -> None:
        self._read = read
        self._ready: dict[int, R] = {}
        self._next, self._run = -1, 0

    def forget(self) -> None:
        """The file is another one now."""
        self._ready, self._next, self._run = {}, -1, 0

    def get(self, item: P, items: Sequence[P]) -> R:
        """What was made of `item`, one of `items` in file order. Raises CassetteError for its own flaws only."""
        self._run = self._run + 1 if item.place == self._next else 0
        self._next = item.place + 1
        ready = self._ready.pop(item.place, None)
        if ready is not None:
            return ready
        first, *others = self._read(self._batch(item, items) if self._run >= _IN_ORDER else [item])
        self._ready = {item.place + 1 + ahead: other for ahead, other in enumerate(others)}
        return first

    def _batch(self, item: P, items: Sequence[P]) -> list[P]:
        batch, size = [item], item.length
        for other in items[item.place + 1 : item.place + CALLS]:
            size += other.length
            if size > BYTES:
                break
            batch.append(other)
        return batch


def as_far_as_sound(items: Sequence[P], read: Callable[[P], R]) -> list[R]:
    """What `read` makes of each item, up to the first flawed one; the flaw of the very first is raised."""
    made = [read(items[0])]
    for item in items[1:]:
        try:
            made.append(read(item))
        except CassetteError:
            break
    return made
