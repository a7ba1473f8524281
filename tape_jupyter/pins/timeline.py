"""Engine room: when a run's calls began and ended, and so in which order their replies came. Pure.

Calls are written in the order of their completion, with the moment they began (to the millisecond) and how long they
took: so the file's order decides where two moments are too close to tell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tape_jupyter.entry import Entry
from tape_jupyter.pins.schedule import Order


@dataclass(frozen=True, slots=True)
class Span:
    """Of one call, in seconds since the epoch; completed: never before one that stands earlier in the file."""

    began: float
    seconds: float
    completed: float
    place: int


class Timeline:
    """The calls of one run. `seed`: their replies come in an order shuffled by it instead of the recorded one."""

    def __init__(self, calls: Iterable[Entry], seed: str = "") -> None:
        self._seed = seed
        self._spans: dict[str, Span] = {}
        last = 0.0
        for call in sorted(calls, key=lambda call: call.place):
            began, seconds = _moments(call.head())
            last = max(last, began + seconds)
            self._spans[call.id] = Span(began, seconds, last, call.place)

    def __contains__(self, call: str) -> bool:
        return call in self._spans

    def seconds(self, call: str) -> float:
        """How long a call took."""
        return self._spans[call].seconds

    def order(self, call: str, seconds: float, *, last: bool) -> Order:
        """Where a part of a reply comes: `seconds` after its call began, or (`last`) at the call's completion."""
        span = self._spans[call]
        moment = span.completed if last else min(span.began + seconds, span.completed)
        return (_drawn(self._seed, call) if self._seed else 0.0, moment, span.place)


def _moments(head: Mapping[str, Any]) -> tuple[float, float]:
    try:
        began = datetime.fromisoformat(str(head.get("at"))).timestamp()
    except ValueError:
        began = 0.0
    seconds = head.get("seconds", 0.0)
    return began, float(seconds) if isinstance(seconds, int | float) else 0.0


def _drawn(seed: str, call: str) -> float:
    return int.from_bytes(hashlib.sha256(f"{seed} {call}".encode()).digest()[:7], "big") / 2**56
