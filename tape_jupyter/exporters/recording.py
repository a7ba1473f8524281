"""What an exporter is given: the calls that were recorded, and a list of what its format cannot
hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.core.call import FunctionCall, Reply, Request, Value


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call. `parent` is the tool call that it was made in, "" for none; times are seconds of
    the epoch.

    `id` is unique in the whole recording. `spans` are the names of the spans around it, from the
    outermost.
    """

    id: str
    run: str
    kind: str
    name: str
    request: Request | FunctionCall
    reply: Reply | Value
    start: float = 0.0
    seconds: float = 0.0
    spans: tuple[str, ...] = ()
    parent: str = ""
    failed: str = ""
    kit: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """One execution of a cell."""

    id: str
    title: str = ""
    start: float = 0.0
    failed: str = ""


@dataclass(slots=True)
class Recording:
    """A notebook's recorded calls in their order, with the runs that they were made in."""

    title: str
    runs: Sequence[ExportedRun]
    calls: Sequence[RecordedCall]
    lost: Counter[str] = field(default_factory=Counter)
    """What the format has no place for, in words, and of how many calls."""

    def exchanges(self, format_name: str) -> Iterator[tuple[RecordedCall, Request, Reply]]:
        """The HTTP calls that got a reply. The others are counted as lost; `format_name` names what they
        are lost to.
        """
        for call in self.calls:
            if not isinstance(call.request, Request) or not isinstance(call.reply, Reply):
                self.lost[f"{call.kind} calls: {format_name} holds HTTP only"] += 1
            elif call.reply.status is None:
                self.lost[
                    f"errors in place of a reply (refused, reset, timed out): {format_name} holds replies only"
                ] += 1
            elif call.reply.status == 101:
                self.lost[
                    f"frames of WebSockets: {format_name} holds one request and one reply"
                ] += 1
            else:
                yield call, call.request, call.reply


@dataclass(frozen=True, slots=True)
class File:
    """What is written: its bytes, and what is put before its suffix where a format writes several
    files.
    """

    data: bytes
    part: str = ""
