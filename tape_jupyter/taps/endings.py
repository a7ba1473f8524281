"""Taps room: how a recorded reply ends, whatever library reads it: the recorded error, or the recording's own end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tape_jupyter.calls import Reply
from tape_jupyter.errors import CassetteError, UnmatchedCall


def class_name(error: Mapping[str, Any] | None) -> str:
    """The recorded class of a frozen exception, as 'module:QualifiedName'; '' without one."""
    return str((error or {}).get("class", ""))


def thawed(error: Mapping[str, Any] | None) -> BaseException:
    """The recorded exception, or the refusal that says why it cannot be raised here."""
    from tape_jupyter.frozen import thaw_error

    try:
        return thaw_error(error or {})
    except CassetteError as reason:
        return UnmatchedCall(f"the recorded reply is an error that cannot be raised in this process: {reason}")


def past_the_end(reply: Reply) -> UnmatchedCall:
    """What a program gets that reads further than the recorded one did."""
    how = "an interrupt stopped the run" if reply.end == "cut short" else "the program closed the stream"
    return UnmatchedCall(
        f"the recording ends here: {how}, after {len(reply.chunks)} chunks, and now the program reads on. "
        "Record the cell again, or read no further than the recorded run did."
    )
