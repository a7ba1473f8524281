"""What is due on the tape's clock: sleeps, timers and replies on one heap. Pure: no threads, no
real time.

One heap for all, so that a timeout around a reply goes off or not as it did: a reply is due its
recorded duration after it was asked for. Replies leave in their recorded order *among those that
were asked for*; nobody ever waits for a call that was not made, so a program that makes other calls
than the recorded one cannot be locked up. Where the recording numbered its hand-overs
(determinism/order.py), replies and timers leave by their numbers; what has none goes when its time
comes.

When a run's calls began and ended, and so in which order their replies came. Pure.

Calls are written in the order of their completion, with the moment they began (to the millisecond)
and how long they took: so the file's order decides where two moments are too close to tell.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any

from tape_jupyter.cassette.index_entries import Entry

HOLD = 0.1
"""Seconds of computing that a hand-over waits for, while recording, where a strand still acts on an
earlier one.
"""

BEYOND = 1 << 60
"""The number of a reply that the recording never handed over: it goes when nothing that has a
number waits.
"""

NEVER = BEYOND + 1
"""The number of a timer that never went off in the recording: time does not jump for it."""

LONG = 0.25
"""Seconds of computing after which nobody waits any longer for who computes."""

Order = tuple[float, float, int]
"""Where a reply stood among the recorded ones; smaller left earlier."""


@dataclass(slots=True, eq=False)
class Deadline:
    """Something that waits for its time. `when`: tape nanoseconds; `limit`: the real second after
    which it waits no longer, whatever the others do; `dead()`: nobody waits for it any more;
    `on_early_end(seconds)` instead of `wake()` where the cell ends before. `number`: of its hand-over;
    `together`: it went while others still acted on what was before it (determinism/order.py), so
    that it waits for those as long as it did, `since` they had computed so long. `quiet`: how it
    was released.
    """

    when: int
    limit: float
    wake: Callable[[], None]
    order: Order | None = None
    dead: Callable[[], bool] = bool
    on_early_end: Callable[[float], None] | None = None
    gone: bool = False
    number: int | None = None
    together: bool = False
    since: float = 0.0
    quiet: bool = True


Heap = list[tuple[int, int, Deadline]]


class Schedule:
    """The heap, and the tape's time: nanoseconds since the cell's start, which never go back. Not
    safe by itself.
    """

    def __init__(self) -> None:
        self.now = 0
        self.version = 0
        self._numbers = count()
        self._timers: Heap = []
        self._replies: Heap = []
        self._in_order: list[tuple[Order, int, Deadline]] = []
        self._numbered: Heap = []
        self._released = 0.0

    def add(self, due: Deadline) -> Deadline:
        self.version += 1
        number = next(self._numbers)
        if due.number is not None:
            heapq.heappush(self._numbered, (due.number, number, due))
            return due
        heapq.heappush(
            self._replies if due.order is not None else self._timers, (due.when, number, due)
        )
        if due.order is not None:
            heapq.heappush(self._in_order, (due.order, number, due))
        return due

    def advance(self, to: int) -> None:
        self.now = max(self.now, to)

    def first(self) -> Deadline | None:
        """What goes first; None where nobody waits."""
        numbered, other = _peek_top(self._numbered), self._find_first_by_time()
        if numbered is None or other is None:
            return numbered or other
        return other if other.when < numbered.when else numbered

    def _find_first_by_time(self) -> Deadline | None:
        timer, reply = _peek_top(self._timers), _peek_top(self._replies)
        if timer is None or reply is None:
            return timer or reply
        return timer if self._timers[0][:2] < self._replies[0][:2] else reply

    def release(
        self, *, quiet: bool, real: float, computed: float = 0.0, runs_on: bool = False
    ) -> Deadline | None:
        """Take out what goes next, and move the tape's time to it; None where it is too early.

        `quiet`: nothing of the cell can run any further, so that time may jump. Else what is due
        waits for its limit. `computed`: seconds that the others have computed so far; while one of
        them `runs_on`, which may be one that gets no processor, a limit counts once they have
        computed for long.
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
        due = first if first.order is None else _pop_first(self._in_order)
        due.gone, due.quiet = True, quiet
        return due

    def drain(self) -> list[Deadline]:
        """Take out all who wait: the cell is over."""
        waiting = (*self._timers, *self._replies, *self._numbered)
        left = [due for _, _, due in waiting if not due.gone and not due.dead()]
        self._timers, self._replies, self._in_order, self._numbered = [], [], [], []
        return left


def _peek_top(heap: Heap) -> Deadline | None:
    while heap and (heap[0][2].gone or heap[0][2].dead()):
        heapq.heappop(heap)
    return heap[0][2] if heap else None


def _pop_first(heap: list[tuple[Order, int, Deadline]]) -> Deadline:
    while heap[0][2].gone or heap[0][2].dead():
        heapq.heappop(heap)
    return heapq.heappop(heap)[2]


@dataclass(frozen=True, slots=True)
class CallTimes:
    """Of one call, in seconds since the epoch; completed: never before one that stands earlier in
    the file.
    """

    began: float
    seconds: float
    completed: float
    place: int


class Timeline:
    """The calls of one run. `seed`: their replies come in an order shuffled by it instead of the
    recorded one.
    """

    def __init__(self, calls: Iterable[Entry], seed: str = "") -> None:
        self._seed = seed
        self._spans: dict[str, CallTimes] = {}
        last = 0.0
        for call in sorted(calls, key=lambda call: call.place):
            began, seconds = _read_moments(call.head())
            last = max(last, began + seconds)
            self._spans[call.id] = CallTimes(began, seconds, last, call.place)

    def __contains__(self, call: str) -> bool:
        return call in self._spans

    def seconds(self, call: str) -> float:
        """How long a call took."""
        return self._spans[call].seconds

    def order(self, call: str, seconds: float, *, last: bool) -> Order:
        """Where a part of a reply comes: `seconds` after its call began, or (`last`) at the call's
        completion.
        """
        span = self._spans[call]
        moment = span.completed if last else min(span.began + seconds, span.completed)
        return (_draw_number(self._seed, call) if self._seed else 0.0, moment, span.place)


def _read_moments(head: Mapping[str, Any]) -> tuple[float, float]:
    try:
        began = datetime.fromisoformat(str(head.get("at"))).timestamp()
    except ValueError:
        began = 0.0
    seconds = head.get("seconds", 0.0)
    return began, float(seconds) if isinstance(seconds, int | float) else 0.0


def _draw_number(seed: str, call: str) -> float:
    return int.from_bytes(hashlib.sha256(f"{seed} {call}".encode()).digest()[:7], "big") / 2**56
