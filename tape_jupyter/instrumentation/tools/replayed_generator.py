"""A recorded generator, played as it is asked: it yields, returns or raises what it did, and runs
nothing.

The program may read less than the recorded one did. Reading on where that one stopped, or sending
and throwing in what that one did not, is refused: nobody knows what would have come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tape_jupyter.core.call import Effects, Gate
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.mutations import frozen_or_type
from tape_jupyter.encoding.values.registry import GeneratorSteps
from tape_jupyter.encoding.values.tracebacks import put_frames
from tape_jupyter.errors import TapeRefusal, UnmatchedCall
from tape_jupyter.instrumentation.http.replayed_response import await_cancel
from tape_jupyter.instrumentation.tools.generators import Found

_OUTSIDE = (GeneratorExit, KeyboardInterrupt, SystemExit, TapeRefusal)
"""What ends a program or its reading, rather than being an answer to what a generator yielded."""


def played(
    steps: GeneratorSteps,
    name: str,
    gate: Gate | None,
    ended: Callable[[], None],
    effects: Effects | None = None,
) -> Any:
    """The source (yielding.Source) of a recorded generator. `ended` is called where the recorded
    one ended; `effects` happen before each item that its body did something for.
    """
    return (AsyncPlayed if steps.is_async else PlayedGenerator)(steps, name, gate, ended, effects)


class _Recording:
    """A recorded generator, and how far it was read."""

    def __init__(
        self,
        steps: GeneratorSteps,
        name: str,
        gate: Gate | None,
        ended: Callable[[], None],
        effects: Effects | None,
    ) -> None:
        self.steps = steps
        self.name = name
        self.gate = gate
        self._ended = ended
        self._effects = effects
        self.position, self.returned = 0, None
        self.thrown: BaseException | None = None

    def sent(self, value: Any) -> None:
        """The program asks for the next item. Raises UnmatchedCall where the recorded one asked in
        another way.
        """
        at = self.position
        self.thrown = None
        if at in self.steps.thrown:
            raise self._build_difference_error(
                f"threw {_format_error(self.steps.thrown[at])} in", "reads on"
            )
        recorded, now = self.steps.sent.get(at), None if value is None else frozen_or_type(value)
        if at and now != recorded and not self._is_past():
            raise self._build_difference_error(f"sent {recorded!r:.200}", f"sends {now!r:.200}")

    def threw(self, error: BaseException) -> None:
        """The program throws: what was thrown then, or what ends its own reading."""
        recorded = self.steps.thrown.get(self.position)
        if recorded is not None and _is_same_error(recorded, registry.freeze_error(error)):
            self.thrown = error
            return
        if isinstance(error, _OUTSIDE):
            if self._is_past():
                self._repeat_effects()
                self._ended()
            elif self._effects is not None and len(self.steps.items) in self.steps.did:
                self._effects.report_early_close()
            raise error
        then = f"threw {_format_error(recorded)} in" if recorded is not None else "read on"
        raise self._build_difference_error(then, f"throws {error!r:.200}") from error

    @property
    def wait(self) -> tuple[float, bool]:
        """When what comes next may be handed on, and whether that completes the call."""
        count = len(self.steps.items)
        return self.steps.wait(self.position), self.position >= (
            count - 1 if self.steps.end == "closed" else count
        )

    def repeat_step(self) -> Found:
        """What the recorded step gave."""
        steps = self.steps
        self._repeat_effects()
        if self.position < len(steps.items):
            self.position += 1
            return (registry.thaw(steps.items[self.position - 1]),)
        self._ended()
        if steps.end == "complete":
            self.returned = registry.thaw(steps.returned)
            return ()
        if steps.end == "error":
            raise put_frames(registry.thaw_error(steps.error or {}), steps.error or {})
        if steps.end == "thrown" and self.thrown is not None:
            raise self.thrown
        raise self._build_past_error()

    def _repeat_effects(self) -> None:
        """What the body did in this step happens again."""
        if self._effects is not None and self.position in self.steps.did:
            self._effects.happen(self.position)

    def _is_past(self) -> bool:
        return self.steps.end in ("closed", "cut short") and self.position >= len(self.steps.items)

    def _build_past_error(self) -> UnmatchedCall:
        how = (
            "an interrupt stopped the run"
            if self.steps.end == "cut short"
            else "the program read no further"
        )
        return UnmatchedCall(
            f"{self.name}: the recording ends here: {how}, after {len(self.steps.items)} items, and now it reads on. "
            "Record the cell again, or read no further than the recorded run did."
        )

    def _build_difference_error(self, then: str, now: str) -> UnmatchedCall:
        return UnmatchedCall(
            f"{self.name}: after {self.position} items the recorded program {then}, and now it {now}. "
            "Nothing was run. Record the cell again."
        )


def _is_same_error(recorded: Any, now: Any) -> bool:
    return all(recorded.get(part) == now.get(part) for part in ("class", "args"))


def _format_error(error: Any) -> str:
    return f"{str(error.get('class', '')).rpartition(':')[2]}{tuple(error.get('args', ()))!r:.200}"


class PlayedGenerator(_Recording):
    """A recorded generator."""

    def send(self, value: Any) -> Found:
        self.sent(value)
        return self._take_next()

    def throw(self, error: BaseException) -> Found:
        self.threw(error)
        return self._take_next()

    def _take_next(self) -> Found:
        if self.gate is not None and not self._is_past():
            seconds, last = self.wait
            self.gate.wait(seconds, last=last)
        return self.repeat_step()


class AsyncPlayed(_Recording):
    """The same, awaited."""

    async def send(self, value: Any) -> Found:
        self.sent(value)
        return await self._take_next()

    async def throw(self, error: BaseException) -> Found:
        self.threw(error)
        return await self._take_next()

    async def _take_next(self) -> Found:
        if self.gate is not None and not self._is_past():
            seconds, last = self.wait
            await self.gate.wait_async(seconds, last=last)
        if self.position >= len(self.steps.items):
            await await_cancel(self.steps.error)
        return self.repeat_step()
