"""Notebook room: a divergence: a call that a replay makes and the tape does not hold. Tells how it differs from the
recorded call in whose place it stands, and finds that call. What becomes of it the player decides, or a person.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from tape_jupyter.calls import FunctionCall, HostClass, Request
from tape_jupyter.cassette import Entry
from tape_jupyter.matching import differing, fields, likeness
from tape_jupyter.notebook.misses import SEARCH_SECONDS, nearest_call, recorded_fields, title
from tape_jupyter.notebook.taped import Cell, Divergence
from tape_jupyter.player import Frozen
from tape_jupyter.secrets import Secrets

FIELDS, WIDTH = 20, 2_000
"""Of a divergence's fields: how many are told, and how long each value may be."""

_TELLING = ("messages", "input", "contents", "prompt", "system", "instructions")
"""Where a request says what it asks: fields below these come first, and of them the last."""


class Stale(Frozen):
    """Answered with the recorded reply of another request, in whose place the call stands."""

    __slots__ = ()


def diverged(
    cell: Cell, call: Request | FunctionCall, match: str, lineage: str, secrets: Secrets, apart: str = ""
) -> Divergence:
    """The divergence that a refused call is."""
    ours = fields(call, secrets=secrets)
    calls = cell.cassette.calls if cell.cassette is not None else []
    nearest = next(in_its_place(cell, ours, lineage), None) or nearest_call(ours, calls)
    theirs = recorded_fields(nearest) or {} if nearest is not None else {}
    told = sorted(differing(theirs, ours, WIDTH), key=lambda field: _rank(field[0]))[:FIELDS]
    kind: HostClass = call.kind if isinstance(call, FunctionCall) else "host"
    if nearest is not None:
        kind = nearest.head().get("kind", kind)
    repeats = cell.player.repeats(cell.execution)
    return Divergence(match, kind, title(call), call, ours, nearest, tuple(told), repeats, lineage, apart)


def stand_in(cell: Cell, call: Request | FunctionCall, lineage: str, secrets: Secrets) -> Stale | None:
    """The recorded call in whose place this one stands, served to it; None where the cell's recording has none left."""
    for entry in in_its_place(cell, fields(call, secrets=secrets), lineage):
        if cell.player.claim(cell.execution, entry):
            return Stale(entry)
    return None


def in_its_place(cell: Cell, ours: Mapping[str, Any], lineage: str) -> Iterator[Entry]:
    """Recorded calls of the same cell to the same address or tool that were not served in this execution: those of the
    same task or thread first, of those the most alike, of these the earliest.
    """
    runs, served = cell.player.repeated(cell.execution) - {cell.run}, cell.execution.served
    calls = cell.cassette.calls if cell.cassette is not None else []
    own = [entry for entry in calls if entry.run in runs and (entry.run, entry.id) not in served]
    until, ranked = time.monotonic() + SEARCH_SECONDS, []
    for place, entry in enumerate(own):
        theirs = recorded_fields(entry) if time.monotonic() < until else None
        if theirs is not None and _address(theirs) == _address(ours):
            ranked.append((entry.lineage != lineage, -likeness(ours, theirs), place))
    for *_, place in sorted(ranked):
        yield own[place]


def _address(told: Mapping[str, Any]) -> tuple[Any, ...]:
    return told.get("tool"), told.get("method"), str(told.get("url", "")).partition("?")[0]


def _rank(path: str) -> tuple[int, int]:
    """What is asked before how it is asked; of a conversation the last turn first."""
    root = path.partition(".")[0].partition("[")[0]
    if root not in _TELLING:
        return 1, 0
    number = path.partition("[")[2].partition("]")[0]
    return 0, -int(number) if number.isdigit() else 0
