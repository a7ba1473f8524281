"""How a changed body is cut into network reads: where the recorded ones ended, as far as that is
there.

A read that ended between two events, or in the midst of one that did not change, ends there again
and keeps its wait; one that ended within a changed event ends at that part of it. A read of which
nothing is left goes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from tape_jupyter.core.call import Reply
from tape_jupyter.encoding.http.content_encoding import decoder
from tape_jupyter.providers.streams.events import StreamEvent


def plain_ends(reply: Reply) -> list[int]:
    """Where each recorded read ends in the body without its content-encoding."""
    coding = reply.header("content-encoding")
    if not coding:
        return list(accumulate(map(len, reply.chunks)))
    opened = decoder(coding)
    return list(accumulate(len(opened.feed(chunk)) for chunk in reply.chunks))


def reread(
    reply: Reply, old: Sequence[StreamEvent], new: Sequence[StreamEvent]
) -> tuple[tuple[bytes, ...], tuple[float, ...]]:
    """The new stream in chunks, and their waits. The events of `new` know by their `place` which
    they were.
    """
    moved = _Moves(old, new)
    body = b"".join(event.raw for event in new)
    ends = [moved(end) for end in plain_ends(reply)]
    return _cut_chunks(body, ends, reply.waits)


def cut_in_proportion(reply: Reply, body: bytes) -> tuple[tuple[bytes, ...], tuple[float, ...]]:
    """Another body that is no stream: cut in proportion to the recorded reads."""
    ends = plain_ends(reply)
    cut = [end * len(body) // ends[-1] for end in ends if ends[-1]]
    return _cut_chunks(body, cut, reply.waits)


def _cut_chunks(
    body: bytes, ends: Iterable[int], waits: Sequence[float]
) -> tuple[tuple[bytes, ...], tuple[float, ...]]:
    kept: dict[int, float] = {}
    for number, end in enumerate(ends):
        if 0 < end < len(body) and end > max(kept, default=0):
            kept[end] = waits[min(number, len(waits) - 1)] if waits else 0.0
    if body:
        kept[len(body)] = waits[-1] if waits else 0.0
    chunks = tuple(body[start:end] for start, end in pairwise([0, *kept]))
    return chunks, tuple(kept.values())


class _Moves:
    """Where an offset of the old stream lies in the new one."""

    def __init__(self, old: Sequence[StreamEvent], new: Sequence[StreamEvent]) -> None:
        self._old = [0, *accumulate(len(event.raw) for event in old)]
        at: dict[int, tuple[int, int]] = {}
        end = 0
        for event in new:
            start, end = end, end + len(event.raw)
            if event.place is not None:
                at[event.place] = (start, end)
        self._new: list[tuple[int, int]] = []
        # an event that is gone, or was made anew, lies where the one before it ended
        for place in range(len(old)):
            behind = self._new[-1][1] if self._new else 0
            self._new.append(at.get(place, (behind, behind)))
        self._last = end

    def __call__(self, offset: int) -> int:
        place = bisect_left(self._old, offset) - 1
        if place < 0:
            return 0
        if place >= len(self._new):
            return self._last
        start, stop = self._new[place]
        before, after = self._old[place], self._old[place + 1]
        return start + (offset - before) * (stop - start) // (after - before)


def first_chunks(reply: Reply, body: bytes) -> tuple[tuple[bytes, ...], tuple[float, ...]]:
    """The first bytes of the recorded body (without content-encoding), in the reads that brought
    them.
    """
    ends = [end for end in plain_ends(reply) if end < len(body)]
    chunks, waits = _cut_chunks(body, ends, reply.waits)
    last = reply.waits[min(len(ends), len(reply.waits) - 1)] if reply.waits else 0.0
    return chunks, (*waits[:-1], last) if waits else ()
