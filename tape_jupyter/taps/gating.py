"""Taps room: where a played reply passes its gate (calls.Gate). One rule for every library; reads no clock.

The head passes with the first chunk's wait, and the first chunk comes with it, unless the gate wants each by itself;
each later chunk passes before it is handed on. What completes the call is the last chunk, or the head where nothing
follows; an error that ended the recorded reply passes for itself.

A live reply has its turn instead: what comes to a task waits for what an earlier one makes other tasks do (pins/order).
"""

from __future__ import annotations

from typing import Any, cast

from tape_jupyter.calls import Capture, Gate, Play, Reply, Value


def pass_head(play: Play) -> None:
    """Wait until the head, or the error or value that stands instead of one, may be handed on."""
    if play.gate is not None:
        play.gate.wait(_first(play), last=_is_whole(play))


async def await_head(play: Play) -> None:
    """The same, awaited."""
    if play.gate is not None:
        await play.gate.arrive(_first(play), last=_is_whole(play))


def pass_chunk(gate: Gate | None, reply: Reply, index: int) -> None:
    """Wait until the chunk of that index may be handed on; beyond the last: what ended the reply."""
    if gate is not None and _passes(gate, reply, index):
        gate.wait(_wait(reply, index), last=_completes(reply, index))


async def await_chunk(gate: Gate | None, reply: Reply, index: int) -> None:
    """The same, awaited."""
    if gate is not None and _passes(gate, reply, index):
        await gate.arrive(_wait(reply, index), last=_completes(reply, index))


async def await_closed(gate: Gate | None, reply: Reply) -> None:
    """Wait until the program may go on that has closed a reply: closing a live one takes time, too."""
    if gate is not None and getattr(gate, "each", False):
        await gate.arrive(_wait(reply, len(reply.chunks)), last=True)


async def await_turn(capture: Capture) -> None:
    """Wait until what came to this task may be told and handed on."""
    turn = getattr(capture, "turn", None)
    if turn is not None and (held := turn()) is not None and not await held:
        cast("Any", capture).out_of_turn = True


def tell_closed(capture: Capture) -> None:
    """The program goes on that has closed a live reply."""
    if (handed := getattr(capture, "handed", None)) is not None:
        handed()


def _passes(gate: Gate, reply: Reply, index: int) -> bool:
    if index == len(reply.chunks) and reply.end == "complete":
        return False
    return index > 0 or getattr(gate, "each", False)


def _first(play: Play) -> float:
    return play.reply.seconds if isinstance(play.reply, Value) else _wait(play.reply, 0)


def _wait(reply: Reply, index: int) -> float:
    return reply.waits[min(index, len(reply.waits) - 1)] if reply.waits else 0.0


def _is_whole(play: Play) -> bool:
    reply = cast("Reply", play.reply)
    return isinstance(play.reply, Value) or reply.status is None or (len(reply.chunks) <= 1 and reply.end == "complete")


def _completes(reply: Reply, index: int) -> bool:
    return index >= len(reply.chunks) - (reply.end == "complete")
