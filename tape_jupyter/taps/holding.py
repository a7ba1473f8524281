"""Taps room: a call that a person holds (`%%tape step`). A door that can await waits in its own task: the loop goes on.

What is sent may be another request than the program made, where the person changed it: a decision to go live then
carries it as `instead`.
"""

from __future__ import annotations

from typing import Any

from tape_jupyter.calls import Capture, FunctionCall, Play, Request, Tape


async def asked(tape: Tape, call: Request | FunctionCall) -> Play | Capture | None:
    """`tape.begin(call)`, for a door that can await."""
    hold = getattr(tape, "hold", None)
    held = None if hold is None else hold(call)
    return tape.begin(call) if held is None else await held.arrive()


def instead(decision: Any) -> Any:
    """The request or the arguments that go live in place of the program's own; None: those."""
    return getattr(decision, "instead", None)
