"""Engine room: the gate that a played reply passes (calls.Gate): it opens when the tape's clock says so."""

from __future__ import annotations

import time
from collections.abc import Callable

from tape_jupyter.errors import TapeRefusal
from tape_jupyter.pins.clock import GRACE, TapeClock
from tape_jupyter.pins.schedule import Order
from tape_jupyter.pins.timeline import Timeline


class ReplyGate:
    """The gate of one call that begins now. `ended()` makes the refusal for a reply whose cell is over by then.

    What comes together passes once: a head with its first chunk, and a reply `in_one` chunk as a whole.
    """

    def __init__(
        self, clock: TapeClock, timeline: Timeline, call: str, ended: Callable[[], TapeRefusal], *, in_one: bool = False
    ) -> None:
        self._clock, self._timeline, self._call, self._ended, self._in_one = clock, timeline, call, ended, in_one
        self._began, self._real = clock.now(), time.monotonic()
        self._passed = (-1.0, False)

    def wait(self, seconds: float, *, last: bool = False) -> None:
        if (until := self._until(seconds, last=last)) is not None:
            self._clock.wait(*until)
            self._check()

    async def arrive(self, seconds: float, *, last: bool = False) -> None:
        if (until := self._until(seconds, last=last)) is not None:
            await self._clock.arrive(*until)
            self._check()

    def _until(self, seconds: float, *, last: bool) -> tuple[int, float, Order] | None:
        last = last or self._in_one
        if self._passed >= (seconds, last) or self._passed[1]:
            return None
        self._passed = (seconds, last)
        seconds = max(seconds, self._timeline.seconds(self._call)) if last else seconds
        grace = GRACE if self._clock.jumps else 0.0
        order = self._timeline.order(self._call, seconds, last=last)
        return self._began + int(seconds * 1e9), self._real + seconds + grace, order

    def _check(self) -> None:
        if self._clock.closed:
            raise self._ended()
