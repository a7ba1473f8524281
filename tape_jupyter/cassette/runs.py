"""Which runs count: of each cell the newest recording, and what adds to it. Pure: records in, runs
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RESENT = "resend"
"""The mode of a run that answers nothing in a replay."""


@dataclass(frozen=True, slots=True)
class CellIdentity:
    """What makes two executions executions of the same cell: its id where the front end tells one,
    else its source.

    `session` is random per kernel: where no id is known, runs of one kernel never replace each
    other, since a notebook may hold the same source in two cells, and a program the same block in a
    loop. At a terminal it is random per cell.
    """

    cell_id: str = ""
    source: str = ""
    session: str = ""

    def same_cell(self, other: CellIdentity) -> bool:
        if self.cell_id and other.cell_id:
            return self.cell_id == other.cell_id
        return bool(self.source) and self.source == other.source

    def replaces(self, older: CellIdentity) -> bool:
        if self.cell_id and older.cell_id:
            return self.cell_id == older.cell_id
        return self.same_cell(older) and self.session != older.session


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run record as the player sees it. `parent` is the run that it adds to (`new_episodes`, or
    live in a take).
    """

    id: str
    cell: CellIdentity
    parent: str = ""
    aside: bool = False
    """It answers nothing: an answer that was asked for beside the program (`tape resend`)."""
    added: bool = False
    """It holds what a replay of its cell asked otherwise than was recorded."""


def span_of(run: str, call: str) -> str:
    """What a call is named by among all runs of a cassette: in a run's end mark, in a view."""
    return f"{run}/{call}"


def run_of(record: Mapping[str, Any]) -> RecordedRun:
    """The player's view of a `run:` record."""
    names = (str(record.get(key) or "") for key in ("cell", "source", "session"))
    mode = record.get("mode")
    return RecordedRun(
        str(record.get("run")),
        CellIdentity(*names),
        str(record.get("parent") or ""),
        aside=mode == RESENT,
        added=mode == "replay",
    )


def current_runs(runs: Iterable[RecordedRun]) -> list[RecordedRun]:
    """The runs that count: of each cell the newest recording, whatever its outcome, and later runs
    that add to it.
    """
    return list(Current(runs).kept.values())


def current_run_ids(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of the runs that count, of `run:` records."""
    return {run.id for run in current_runs(map(run_of, records))}


def newer_than(runs: Iterable[Mapping[str, Any]], run: str) -> str:
    """The recording that counts instead of this one, or "" where this one counts."""
    newer = Current(map(run_of, runs)).newer
    passed = {run}  # a file made by hand may go round in a circle
    while run in newer and newer[run] not in passed:
        run = newer[run]
        passed.add(run)
    return run if len(passed) > 1 else ""


def later_recordings(runs: Iterable[Mapping[str, Any]], run: str) -> list[str]:
    """The recordings of its cell that replaced this one, one after the other."""
    newer, chain = Current(map(run_of, runs)).newer, [run]
    while (after := newer.get(chain[-1])) and after not in chain:
        chain.append(after)
    return chain[1:]


def whole_run_before(
    runs: Sequence[Mapping[str, Any]], ended: Mapping[str, Mapping[str, Any]], run: str
) -> str:
    """The newest recording of the same cell that ended well and that `run` replaced; "" if none."""
    newer = Current(map(run_of, runs)).newer
    replaced = {run}
    for older in reversed(runs):
        name = str(older["run"])
        if newer.get(name) not in replaced:
            continue
        replaced.add(name)
        if "parent" not in older and ended.get(name, {}).get("outcome") == "ok":
            return name
    return ""


class Current:
    """The runs that count so far, kept up to date run by run: a kernel that records 500 cells asks
    500 times.
    """

    def __init__(self, runs: Iterable[RecordedRun] = ()) -> None:
        self.kept: dict[str, RecordedRun] = {}
        self.newer: dict[str, str] = {}  # run -> the recording that replaced it
        self._additions: dict[str, list[RecordedRun]] = {}
        self._rivals: dict[tuple[str, str], list[RecordedRun]] = {}
        for run in runs:
            self.add(run)

    def add(self, run: RecordedRun) -> None:
        if run.aside:
            return
        if run.parent:
            self._additions.setdefault(run.parent, []).append(run)
            if run.parent in self.kept:
                self.kept[run.id] = run
            return
        for old in self._find_replaced(run):
            for removed in (old, *self._additions.pop(old.id, ())):
                self.kept.pop(removed.id, None)
                self.newer[removed.id] = run.id
        self.kept[run.id] = run
        # two branches' records may lie in any order
        for addition in self._additions.get(run.id, ()):
            self.kept[addition.id] = addition

    def _find_replaced(self, run: RecordedRun) -> list[RecordedRun]:
        """The older recordings of the same cell, which are then no longer looked at."""
        replaced: dict[str, RecordedRun] = {}
        for name in (("id", run.cell.cell_id), ("source", run.cell.source)):
            if name[1]:
                olds = [old for old in self._rivals.get(name, ()) if old.id in self.kept]
                replaced |= {old.id: old for old in olds if run.cell.replaces(old.cell)}
                self._rivals[name] = [*(old for old in olds if old.id not in replaced), run]
        return list(replaced.values())
