"""The gate that a played reply passes (core/call.py, `Gate`): it opens when the tape's clock says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tape_jupyter.core.real_clock import monotonic
from tape_jupyter.determinism.clock import GRACE, TapeClock
from tape_jupyter.determinism.order import RecordedOrder
from tape_jupyter.determinism.scheduler import Order, Timeline
from tape_jupyter.errors import TapeRefusal


class ReplyGate:
    """The gate of one call that begins now. `ended()` makes the refusal for a reply whose cell is
    over by then.

    What comes together passes once: a head with its first chunk, and a reply `in_one` chunk as a
    whole.
    """

    each = ends = False

    def __init__(
        self,
        clock: TapeClock,
        timeline: Timeline,
        call: str,
        ended: Callable[[], TapeRefusal],
        *,
        in_one: bool = False,
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._call = call
        self._ended = ended
        self._in_one = in_one
        self._began, self._real = clock.now(), monotonic()
        self._passed = (-1.0, False)

    def wait(self, seconds: float, *, last: bool = False, shown: bool = False) -> None:  # noqa: ARG002 - it has no places for what is shown
        if (until := self._find_deadline(seconds, last=last)) is not None:
            self._clock.wait(*until)
            self._require_open()

    async def wait_async(self, seconds: float, *, last: bool = False, shown: bool = False) -> None:  # noqa: ARG002
        if (until := self._find_deadline(seconds, last=last)) is not None:
            await self._clock.wait_async(*until)
            self._require_open()

    def _find_deadline(self, seconds: float, *, last: bool) -> tuple[int, float, Order] | None:
        last = last or self._in_one
        if self._passed >= (seconds, last) or self._passed[1]:
            return None
        self._passed = (seconds, last)
        seconds = max(seconds, self._timeline.seconds(self._call)) if last else seconds
        order = self._timeline.order(self._call, seconds, last=last)
        return *self._compute_deadline(seconds), order

    def _compute_deadline(self, seconds: float) -> tuple[int, float]:
        grace = GRACE if self._clock.jumps else 0.0
        return self._began + int(seconds * 1e9), self._real + seconds + grace

    def _require_open(self) -> None:
        if self._clock.closed:
            raise self._ended()


Gives = Literal["reply", "value", "items"]


class NumberedGate(ReplyGate):
    """The gate of a call whose hand-overs were numbered (determinism/order.py). Each part passes by
    itself: of a reply the head, the chunks and what ended them, so many `parts`; of a dialogue its
    head and each message of the server (`parts` is None); of a function its value, after what it
    showed before; of a generator each item and its end.
    """

    each = True

    def __init__(
        self,
        clock: TapeClock,
        timeline: Timeline,
        call: str,
        ended: Callable[[], TapeRefusal],
        sequence: RecordedOrder,
        parts: int | None,
        *,
        gives: Gives = "reply",
    ) -> None:
        super().__init__(clock, timeline, call, ended)
        self._sequence, self._parts, self._part = sequence, parts, 0
        self._gives = gives
        self.ends = sequence.tells_end(call, parts)

    def wait(self, seconds: float, *, last: bool = False, shown: bool = False) -> None:
        when, limit, number = self._place_part(seconds, last=last, shown=shown)
        quiet = True
        if number is None:
            self._clock.wait(when, limit)
        elif self._sequence.follows(number):
            self._clock.reach(when)
        else:
            quiet = self._clock.wait(when, limit, None, number)
        self._pass_part(number, quiet=quiet)

    async def wait_async(self, seconds: float, *, last: bool = False, shown: bool = False) -> None:
        when, limit, number = self._place_part(seconds, last=last, shown=shown)
        quiet = True
        if number is None:
            await self._clock.wait_async(when, limit)
        elif self._goes_on(number):
            self._clock.reach(when)
        else:
            quiet = await self._clock.wait_async(when, limit, None, number)
        self._pass_part(number, quiet=quiet)

    def _goes_on(self, number: int) -> bool:
        """Whether the task that gets this part does not wait for it."""
        if self._gives != "items" and self._sequence.follows(number):
            return True
        if not self._sequence.is_at_once(number):
            return False
        return self._sequence.is_next(number) or self._clock.is_only_thread()

    def _place_part(
        self, seconds: float, *, last: bool, shown: bool
    ) -> tuple[int, float, int | None]:
        """When this part comes, the second at which it comes at the latest, and its number.

        What a value's call tells before its end (an MCP server's progress) has no number.
        """
        if last:
            seconds = max(seconds, self._timeline.seconds(self._call))
        deadline = self._compute_deadline(seconds)
        if self._gives == "value" and not shown:
            return *deadline, self._sequence.result(self._call) if last else None
        return *deadline, self._sequence.part(self._call, self._part, self._parts)

    def _pass_part(self, number: int | None, *, quiet: bool) -> None:
        self._require_open()
        if number is not None:
            self._part += 1
            self._sequence.passed(number, quiet=quiet)
