"""Taps room: what a recorded reply is, whatever library reads it: its headers, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tape_jupyter.calls import Headers, Reply
from tape_jupyter.errors import CassetteError, UnmatchedCall
from tape_jupyter.taps.swap import live

PATIENCE = 60.0
"""Seconds that a replayed reply waits for the cancellation that ended the recorded one."""


def headers(reply: Reply) -> Headers:
    """The recorded headers; of a whole body that was edited, the length is that of the body as it is now."""
    declared = reply.header("content-length")
    if reply.end != "complete" or not reply.chunks or not declared:
        return reply.headers
    length = str(sum(map(len, reply.chunks)))
    if declared == length or reply.header("transfer-encoding"):
        return reply.headers
    return tuple((name, length if name.lower() == "content-length" else value) for name, value in reply.headers)


def raw_head(reply: Reply) -> bytes:
    """The recorded head as HTTP/1 has it on the wire, its empty line included."""
    version = reply.version if reply.version.startswith("HTTP/1") else "HTTP/1.1"
    lines = (f"{version} {reply.status} {reply.reason}", *(f"{name}: {value}" for name, value in headers(reply)))
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def is_chunked(reply: Reply) -> bool:
    """Whether its body came in HTTP/1.1 chunks."""
    return reply.header("transfer-encoding").lower() == "chunked"


def class_name(error: Mapping[str, Any] | None) -> str:
    """The recorded class of a frozen exception, as 'module:QualifiedName'; '' without one."""
    return str((error or {}).get("class", ""))


def thawed(error: Mapping[str, Any] | None) -> BaseException:
    """The recorded exception, or the refusal that says why it cannot be raised here."""
    from tape_jupyter.freezing import thaw_error

    try:
        return thaw_error(error or {})
    except CassetteError as reason:
        return UnmatchedCall(f"the recorded reply is an error that cannot be raised in this process: {reason}")


def was_cancelled(error: Mapping[str, Any] | None) -> bool:
    """Whether the recorded task was cancelled while it waited for the reply."""
    return class_name(error) == "asyncio.exceptions:CancelledError"


async def await_cancel(error: Mapping[str, Any] | None) -> None:
    """Where the recorded task was cancelled, wait for the program to cancel this one.

    Raising CancelledError ourselves would end the task, but not as the program's timeout or task group does it.
    """
    if was_cancelled(error):
        with live():  # in real time
            await asyncio.wait({asyncio.get_running_loop().create_future()}, timeout=PATIENCE)


def past_the_end(reply: Reply) -> UnmatchedCall:
    """What a program gets that reads further than the recorded one did."""
    how = "an interrupt stopped the run" if reply.end == "cut short" else "the program closed the stream"
    return UnmatchedCall(
        f"the recording ends here: {how}, after {len(reply.chunks)} chunks, and now the program reads on. "
        "Record the cell again, or read no further than the recorded run did."
    )
