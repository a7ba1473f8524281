"""What a cell read off the clock: noted while recording, given again in replay. Pure, reads no
clock.

A reading is a count of nanoseconds since the cell's start. Readings are kept apart by strand (task,
thread, tool body) and by the module that read: the order in which strands run does not matter, and
a library that reads once more or less than before (a cache is warm, a tool's body does not run)
shifts nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Any

from tape_jupyter.errors import CassetteError

LIMIT = 10_000
"""Readings kept of one strand and module. A loop that waits by looking at the clock makes millions."""


class Notes:
    """What was read in this cell, for the tape."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str], list[int]] = {}
        self.beyond: set[str] = set()

    def note(self, lineage: str, module: str, reading: int) -> None:
        stream = self._streams.setdefault((lineage, module), [])
        if len(stream) < LIMIT:
            stream.append(reading)
        else:
            self.beyond.add(module)

    def record(self) -> dict[str, list[int]]:
        """By reader ("module", or "module strand"), each reading as its distance from the one
        before.
        """
        return {
            f"{module} {lineage}".rstrip(): [b - a for a, b in pairwise([0, *readings])]
            for (lineage, module), readings in sorted(self._streams.items())
        }


class Readings:
    """What a recording read, to be given again, each once and in order."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._streams: dict[str, Iterator[int]] = {
            name: _parse_readings(name, deltas) for name, deltas in record.items()
        }

    def next(self, lineage: str, module: str) -> int | None:
        """The next recorded reading of this reader; None where the recorded run read no more."""
        stream = self._streams.get(f"{module} {lineage}" if lineage else module)
        return None if stream is None else next(stream, None)


def _parse_readings(name: str, deltas: Any) -> Iterator[int]:
    if not isinstance(deltas, list) or not {int}.issuperset(map(type, deltas)):
        raise CassetteError(f"the clock readings of {name!r} are no list of nanoseconds")
    return accumulate(deltas)
