"""Engine room: what is due on the tape's clock: sleeps, timers and replies on one heap. Pure: no threads, no real time.

One heap for all, so that a timeout around a reply goes off or not as it did: a reply is due its recorded duration after
it was asked for. Replies leave in their recorded order *among those that were asked for*; nobody ever waits for a call
that was not made, so a program that makes other calls than the recorded one cannot be locked up. Where the recording
numbered its hand-overs (order.py), replies and timers leave by their numbers; what has none goes when its time comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

HOLD = 0.025
"""Seconds of computing that a hand-over waits for, while recording, where a strand still acts on an earlier one."""

BEYOND = 1 << 60
"""The number of a reply that the recording never handed over: it goes when nothing that has a number waits."""

NEVER = BEYOND + 1
"""The number of a timer that never went off in the recording: time does not jump for it."""

LONG = 0.25
"""Seconds of computing after which nobody waits any longer for who computes."""

Order = tuple[float, float, int]
"""Where a reply stood among the recorded ones; smaller left earlier."""


@dataclass(slots=True, eq=False)
class Due:
    """Something that waits for its time. `when`: tape nanoseconds; `limit`: the real second after which it waits no
    longer, whatever the others do; `dead()`: nobody waits for it any more; `late(seconds)` instead of `wake()` where
    the cell ends before. `number`: of its hand-over; `together`: it went while others still acted on what was before it
    (order.py), so that it waits for those as long as it did, `since` they had computed so long. `quiet`: how it was
    released.
    """

    when: int
    limit: float
    wake: Callable[[], None]
    order: Order | None = None
    dead: Callable[[], bool] = bool
    late: Callable[[float], None] | None = None
    gone: bool = False
    number: int | None = None
    together: bool = False
    since: float = 0.0
    quiet: bool = True


Heap = list[tuple[int, int, Due]]


class Schedule:
    """The heap, and the tape's time: nanoseconds since the cell's start, which never go back. Not safe by itself."""

    def __init__(self) -> None:
        self.now = 0
        self.version = 0
        self._numbers = count()
        self._timers: Heap = []
        self._replies: Heap = []
        self._in_order: list[tuple[Order, int, Due]] = []
        self._numbered: Heap = []
        self._released = 0.0

    def add(self, due: Due) -> Due:
        self.version += 1
        number = next(self._numbers)
        if due.number is not None:
            heapq.heappush(self._numbered, (due.number, number, due))
            return due
        heapq.heappush(self._replies if due.order is not None else self._timers, (due.when, number, due))
        if due.order is not None:
            heapq.heappush(self._in_order, (due.order, number, due))
        return due

    def advance(self, to: int) -> None:
        self.now = max(self.now, to)

    def first(self) -> Due | None:
        """What goes first; None where nobody waits."""
        numbered, other = _top(self._numbered), self._first_by_time()
        if numbered is None or other is None:
            return numbered or other
        return other if other.when < numbered.when else numbered

    def _first_by_time(self) -> Due | None:
        timer, reply = _top(self._timers), _top(self._replies)
        if timer is None or reply is None:
            return timer or reply
        return timer if self._timers[0][:2] < self._replies[0][:2] else reply

    def release(self, *, quiet: bool, real: float, computed: float = 0.0, runs_on: bool = False) -> Due | None:
        """Take out what goes next, and move the tape's time to it; None where it is too early.

        `quiet`: nothing of the cell can run any further, so that time may jump. Else what is due waits for its limit.
        `computed`: seconds that the others have computed so far; while one of them `runs_on`, which may be one that
        gets no processor, a limit counts once they have computed for long.
        """
        first = self.first()
        if first is None:
            return None
        soon = first.together and computed - max(self._released, first.since) >= HOLD
        late = first.limit <= real and not (runs_on and computed - first.since < LONG)
        jumps = quiet and (first.number is None or first.number < NEVER)
        if not (jumps or soon or late):
            return None
        self.version += 1
        self._released = computed
        self.advance(first.when)
        due = first if first.order is None else _first_of(self._in_order)
        due.gone, due.quiet = True, quiet
        return due

    def drain(self) -> list[Due]:
        """Take out all who wait: the cell is over."""
        waiting = (*self._timers, *self._replies, *self._numbered)
        left = [due for _, _, due in waiting if not due.gone and not due.dead()]
        self._timers, self._replies, self._in_order, self._numbered = [], [], [], []
        return left


def _top(heap: Heap) -> Due | None:
    while heap and (heap[0][2].gone or heap[0][2].dead()):
        heapq.heappop(heap)
    return heap[0][2] if heap else None


def _first_of(heap: list[tuple[Order, int, Due]]) -> Due:
    while heap[0][2].gone or heap[0][2].dead():
        heapq.heappop(heap)
    return heapq.heappop(heap)[2]
