"""What a recorded reply is, whatever library reads it: its headers, and how it ends.

Where a played reply passes its gate (core/call.py, `Gate`). One rule for every library; reads no clock.

The head passes with the first chunk's wait, and the first chunk comes with it, unless the gate
wants each by itself; each later chunk passes before it is handed on. What completes the call is the
last chunk, or the head where nothing follows; an error that ended the recorded reply passes for
itself.

A live reply has its turn instead: what comes to a task waits for what an earlier one makes other
tasks do (pins/order).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from tape_jupyter.core.call import Capture, Gate, Headers, Play, Reply, Value
from tape_jupyter.errors import CassetteError, UnmatchedCall
from tape_jupyter.instrumentation.patching import sending_live

PATIENCE = 60.0
"""Seconds that a replayed reply waits for the cancellation that ended the recorded one."""


def headers(reply: Reply) -> Headers:
    """The recorded headers; of a whole body that was edited, the length is that of the body as it
    is now.
    """
    declared = reply.header("content-length")
    if reply.end != "complete" or not reply.chunks or not declared:
        return reply.headers
    length = str(reply.size)
    if declared == length or reply.header("transfer-encoding"):
        return reply.headers
    return tuple(
        (name, length if name.lower() == "content-length" else value)
        for name, value in reply.headers
    )


def raw_head(reply: Reply) -> bytes:
    """The recorded head as HTTP/1 has it on the wire, its empty line included."""
    version = reply.version if reply.version.startswith("HTTP/1") else "HTTP/1.1"
    lines = (
        f"{version} {reply.status} {reply.reason}",
        *(f"{name}: {value}" for name, value in headers(reply)),
    )
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def is_chunked(reply: Reply) -> bool:
    """Whether its body came in HTTP/1.1 chunks."""
    return reply.header("transfer-encoding").lower() == "chunked"


def class_name(error: Mapping[str, Any] | None) -> str:
    """The recorded class of a frozen exception, as 'module:QualifiedName'; '' without one."""
    return str((error or {}).get("class", ""))


def thawed(error: Mapping[str, Any] | None) -> BaseException:
    """The recorded exception, or the refusal that says why it cannot be raised here."""
    from tape_jupyter.encoding.values.registry import thaw_error

    try:
        return thaw_error(error or {})
    except CassetteError as reason:
        return UnmatchedCall(
            f"the recorded reply is an error that cannot be raised in this process: {reason}"
        )


def was_cancelled(error: Mapping[str, Any] | None) -> bool:
    """Whether the recorded task was cancelled while it waited for the reply."""
    return class_name(error) == "asyncio.exceptions:CancelledError"


async def await_cancel(error: Mapping[str, Any] | None) -> None:
    """Where the recorded task was cancelled, wait for the program to cancel this one.

    Raising CancelledError ourselves would end the task, but not as the program's timeout or task
    group does it.
    """
    if was_cancelled(error):
        with sending_live():  # in real time
            await asyncio.wait({asyncio.get_running_loop().create_future()}, timeout=PATIENCE)


async def await_past_cancels(play: Play, count: int) -> None:
    """`await_head` of a function that went on when its task was cancelled, so often: as often the
    program cancels this one.
    """
    if not count:
        await await_head(play)
        return
    loop = asyncio.get_running_loop()
    head = asyncio.Task(await_head(play), loop=loop)  # none of the program's: it has no strand
    while count or not head.done():
        waits = loop.create_future() if head.done() else head
        try:
            with sending_live():
                _, pending = await asyncio.wait({waits}, timeout=PATIENCE)
        except asyncio.CancelledError:
            if not count:
                head.cancel()
                raise
            count -= 1
        else:
            count = 0 if pending and head.done() else count
    head.result()


def past_the_end(reply: Reply) -> UnmatchedCall:
    """What a program gets that reads further than the recorded one did."""
    if reply.end == "cut short":
        how = "an interrupt stopped the run"
    else:
        how = "the program closed the stream"
    return UnmatchedCall(
        f"the recording ends here: {how}, after {len(reply.chunks)} chunks, and now the program reads on. "
        "Record the cell again, or read no further than the recorded run did."
    )


def raise_ending(reply: Reply, thaw: Callable[[Mapping[str, Any] | None], BaseException]) -> None:
    """Once all chunks are handed on: raise what ended a reply that did not come whole."""
    if reply.end == "error":
        raise thaw(reply.error)
    if reply.end != "complete":
        raise past_the_end(reply)


def pass_head(play: Play) -> None:
    """Wait until the head, or the error or value that stands instead of one, may be handed on."""
    for group in _find_shown_groups(play):
        if group and play.gate is not None:
            play.gate.wait(0.0, shown=True)
        _show_group(play, group)
    if play.gate is not None:
        play.gate.wait(_find_first_wait(play), last=_is_complete(play))


async def await_head(play: Play) -> None:
    """The same, awaited."""
    for group in _find_shown_groups(play):
        if group and play.gate is not None:
            await play.gate.wait_async(0.0, shown=True)
        _show_group(play, group)
    if play.gate is not None:
        await play.gate.wait_async(_find_first_wait(play), last=_is_complete(play))


def _find_shown_groups(play: Play) -> range:
    """The groups of what a function showed before its result; none where their places are not known."""
    groups = play.effects.groups if play.effects is not None else ()
    placed = play.gate is not None and play.gate.each
    return range(len(groups) if placed or len(groups) == 1 else 0)


def _show_group(play: Play, group: int) -> None:
    assert play.effects is not None
    play.effects.show_group(group)


def pass_chunk(gate: Gate | None, reply: Reply, index: int) -> None:
    """Wait until the chunk of that index may be handed on; beyond the last: what ended the reply."""
    if gate is not None and _is_gated(gate, reply, index):
        gate.wait(_find_wait(reply, index), last=_is_last_part(reply, index))


async def await_chunk(gate: Gate | None, reply: Reply, index: int) -> None:
    """The same, awaited."""
    if gate is not None and _is_gated(gate, reply, index):
        await gate.wait_async(_find_wait(reply, index), last=_is_last_part(reply, index))


def pass_closed(gate: Gate | None, reply: Reply) -> None:
    """Wait until the program may go on that has read a reply to its end, or closed it."""
    if gate is not None and gate.ends:
        gate.wait(_find_wait(reply, len(reply.chunks)), last=True)


async def await_closed(gate: Gate | None, reply: Reply) -> None:
    """Wait until the program may go on that has closed a reply: closing a live one takes time, too."""
    if gate is not None and gate.each:
        await gate.wait_async(_find_wait(reply, len(reply.chunks)), last=True)


async def await_turn(capture: Capture) -> None:
    """Wait until what came to this task may be told and handed on."""
    turn = getattr(capture, "turn", None)
    if turn is not None and (waiting := turn()) is not None and not await waiting:
        cast("Any", capture).out_of_turn = True


async def await_result(body: Awaitable[Any], capture: Capture) -> Any:
    """What it gives or raises, once that may be told."""
    try:
        result = await body
    except Exception:
        await await_turn(capture)
        raise
    await await_turn(capture)
    return result


def one_read(capture: Capture) -> AbstractContextManager[None]:
    """Around what is told of one network read, which the program gets at once."""
    around = getattr(capture, "one_read", None)
    return nullcontext() if around is None else around()


def tell_closed(capture: Capture) -> None:
    """The program goes on that has closed a live reply."""
    if (handed := getattr(capture, "handed", None)) is not None:
        handed()


def _is_gated(gate: Gate, reply: Reply, index: int) -> bool:
    if index == len(reply.chunks) and reply.end == "complete":
        return False
    return index > 0 or gate.each


def _find_first_wait(play: Play) -> float:
    if isinstance(play.reply, Value):
        return play.reply.seconds
    return _find_wait(play.reply, 0)


def _find_wait(reply: Reply, index: int) -> float:
    return reply.waits[min(index, len(reply.waits) - 1)] if reply.waits else 0.0


def _is_complete(play: Play) -> bool:
    reply = cast("Reply", play.reply)
    return (
        isinstance(play.reply, Value)
        or reply.status is None
        or (len(reply.chunks) <= 1 and reply.end == "complete")
    )


def _is_last_part(reply: Reply, index: int) -> bool:
    return index >= len(reply.chunks) - (reply.end == "complete")
