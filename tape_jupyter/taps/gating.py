"""Taps room: where a played reply passes its gate (calls.Gate). One rule for every library; reads no clock.

The head passes with the first chunk's wait, and the first chunk comes with it; each later chunk passes before it is
handed on. What completes the call is the last chunk, or the head where nothing follows; an error that ended the
recorded reply passes for itself.
"""

from __future__ import annotations

from typing import cast

from tape_jupyter.calls import Gate, Play, Reply, Value


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
    if gate is not None and index and not (index == len(reply.chunks) and reply.end == "complete"):
        gate.wait(_wait(reply, index), last=_completes(reply, index))


async def await_chunk(gate: Gate | None, reply: Reply, index: int) -> None:
    """The same, awaited."""
    if gate is not None and index and not (index == len(reply.chunks) and reply.end == "complete"):
        await gate.arrive(_wait(reply, index), last=_completes(reply, index))


def _first(play: Play) -> float:
    return play.reply.seconds if isinstance(play.reply, Value) else _wait(play.reply, 0)


def _wait(reply: Reply, index: int) -> float:
    return reply.waits[min(index, len(reply.waits) - 1)] if reply.waits else 0.0


def _is_whole(play: Play) -> bool:
    reply = cast("Reply", play.reply)
    return isinstance(play.reply, Value) or reply.status is None or (len(reply.chunks) <= 1 and reply.end == "complete")


def _completes(reply: Reply, index: int) -> bool:
    return index >= len(reply.chunks) - (reply.end == "complete")
