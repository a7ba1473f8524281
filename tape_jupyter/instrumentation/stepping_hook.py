"""A call that a person holds (`%%tape step`). A door that can await waits in its own task: the loop
goes on.

What is sent may be another request than the program made, where the person changed it: a decision
to go live then carries it as `instead`. It is a request with another body; a door that can send one
is in `CHANGEABLE`.
"""

from __future__ import annotations

import types
from typing import Any

from tape_jupyter.core.call import Capture, FunctionCall, Play, Request, Tape

CHANGEABLE = frozenset(
    f"{__package__}.http.{door}" for door in ("httpx", "urllib3", "http_client", "aiohttp", "lm15")
)
FUNCTIONS = frozenset({f"{__package__}.tools.call"})
"""The modules of the doors that send what a person changed."""


async def begin_call(tape: Tape, call: Request | FunctionCall) -> Play | Capture | None:
    """`tape.begin(call)`, for a door that can await."""
    hold = tape.hold_call(call)
    return tape.begin(call) if hold is None else await hold.wait_async()


def instead(decision: Any) -> Any:
    """The request or the arguments that go live in place of the program's own; None: those."""
    return getattr(decision, "instead", None)


def why_unchangeable(call: Request | FunctionCall, frame: types.FrameType | None) -> str:
    """Why a live call cannot be changed before it goes out, by the door that stands on its stack;
    "" where it can.
    """
    if isinstance(call, FunctionCall):
        function = _find_on_stack(frame, "self", FUNCTIONS)
        if call.discreet != "no" or not getattr(function, "changeable", False):
            return "what this is given cannot be changed here: it is a secret, or part of it was given beforehand"
        return ""
    if (call.header("authorization") or "").startswith("AWS4-"):
        return "this request is signed (AWS): with another body it would be refused there. Change it in the code"
    if _find_on_stack(frame, "__name__", CHANGEABLE) is None:
        libraries = "httpx, requests and urllib3, aiohttp, http.client, lm15"
        return f"a request can be changed that goes out through {libraries}, and a tool's arguments: this is neither"
    return ""


def _find_on_stack(frame: types.FrameType | None, name: str, modules: frozenset[str]) -> Any:
    """The variable of the innermost frame of one of these modules; None where none is on the stack."""
    while frame is not None:
        if frame.f_globals.get("__name__") in modules:
            value = frame.f_locals.get(name, frame.f_globals.get(name))
            if value is not None:
                return value
        frame = frame.f_back
    return None
