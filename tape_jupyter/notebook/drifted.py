"""Notebook room: a cell that ran live again: what is another than when it was recorded before, in one summary line.

Reads the cassette once the cell is over, and no more of it than a summary is worth; never fails the cell.
"""

from __future__ import annotations

from tape_jupyter import drift
from tape_jupyter.cassette import Cassette
from tape_jupyter.notebook.taped import Cell
from tape_jupyter.runs import run_of
from tape_jupyter.seen import RunSeen, call_seen, seen

CALLS = 30
"""Calls of each run that are compared."""


def said(cell: Cell) -> list[str]:
    """The line, or nothing: the cell was not run live, or never before, or nothing else answered."""
    tape = cell.cassette
    if tape is None or not cell.run or cell.mode not in ("record", "replay"):
        return []
    try:
        found = _against_recording(tape, cell) if cell.replaying else _against_earlier(tape, cell)
    except Exception as error:
        return [f"what drifted since the last recording cannot be told: {type(error).__name__}: {error}"]
    told = drift.line(found)
    return [told] if told else []


def _against_earlier(tape: Cassette, cell: Cell) -> list[drift.Drift]:
    earlier = _earlier(tape, cell)
    if not earlier:
        return []
    return drift.drift(seen(tape, earlier, limit=CALLS), seen(tape, cell.run, limit=CALLS))


def _earlier(tape: Cassette, cell: Cell) -> str:
    """The newest other recording of this cell."""
    own = cell.execution.cell
    for record in reversed(tape.runs):
        run = run_of(record)
        if run.id != cell.run and not run.parent and run.cell.same_cell(own):
            return run.id
    return ""


def _against_recording(tape: Cassette, cell: Cell) -> list[drift.Drift]:
    """What ran live in a replay, against what it took the place of."""
    made = [each for each in tape.overrides if each.by == cell.run][:CALLS]
    pairs = [(call_seen(each.recorded), call_seen(each)) for each in made]
    parent = cell.player.repeats(cell.execution)
    if not made or not parent:
        return drift.of_pairs(pairs)
    base, live = (_alone(tape, run) for run in (parent, cell.run))
    return [*drift.of_pairs(pairs), *drift.of_runs(base, live)]


def _alone(tape: Cassette, run: str) -> RunSeen:
    """A run without its calls."""
    return seen(tape, run, limit=0)
