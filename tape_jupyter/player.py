"""Engine room: the decision: given a call, play a recorded one, go live, or refuse. Pure: no I/O, nothing patched.

A near match is never served. Identical calls are told apart by cell, then by lineage of task or thread, then by
order; each recorded call is served at most once in one execution of a cell.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Mode = Literal["record", "replay", "once", "new_episodes", "live"]
MODES: tuple[Mode, ...] = ("record", "replay", "once", "new_episodes", "live")


class Recorded(Protocol):
    """A recorded call as the player sees it."""

    @property
    def id(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def lineage(self) -> str: ...
    @property
    def order(self) -> int: ...


@dataclass(frozen=True, slots=True)
class CellIdentity:
    """What makes two executions executions of the same cell: its id where the front end tells one, else its source.

    `session` is random per kernel: where no id is known, runs of one kernel never replace each other.
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
    """A run record as the player sees it. `parent` is the run that a `new_episodes` run adds to."""

    id: str
    cell: CellIdentity
    parent: str = ""


def run_of(record: Mapping[str, Any]) -> RecordedRun:
    """The player's view of a `run:` record."""
    names = (str(record.get(key) or "") for key in ("cell", "source", "session"))
    return RecordedRun(str(record.get("run")), CellIdentity(*names), str(record.get("parent") or ""))


def current_runs(runs: Iterable[RecordedRun]) -> list[RecordedRun]:
    """The runs that count: of each cell the newest recording, whatever its outcome, and later runs that add to it."""
    current = _Current()
    for run in runs:
        current.add(run)
    return list(current.kept.values())


class _Current:
    """The runs that count so far, kept up to date run by run: a kernel that records 500 cells asks 500 times."""

    def __init__(self) -> None:
        self.kept: dict[str, RecordedRun] = {}
        self._additions: dict[str, list[RecordedRun]] = {}
        self._rivals: dict[tuple[str, str], list[RecordedRun]] = {}

    def add(self, run: RecordedRun) -> None:
        if run.parent:
            self._additions.setdefault(run.parent, []).append(run)
            if run.parent in self.kept:
                self.kept[run.id] = run
            return
        for old in self._replaced_by(run):
            for gone in (old, *self._additions.pop(old.id, ())):
                self.kept.pop(gone.id, None)
        self.kept[run.id] = run
        for addition in self._additions.get(run.id, ()):  # two branches' records may lie in any order
            self.kept[addition.id] = addition

    def _replaced_by(self, run: RecordedRun) -> list[RecordedRun]:
        """The older recordings of the same cell, which are then no longer looked at."""
        gone: dict[str, RecordedRun] = {}
        for name in (("id", run.cell.cell_id), ("source", run.cell.source)):
            if name[1]:
                olds = [old for old in self._rivals.get(name, ()) if old.id in self.kept]
                gone |= {old.id: old for old in olds if run.cell.replaces(old.cell)}
                self._rivals[name] = [*(old for old in olds if old.id not in gone), run]
        return list(gone.values())


@dataclass(frozen=True, slots=True)
class GoLive:
    """Send it."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not send it: `times` is how often the same call is recorded (0: never), `ended` that its cell is over."""

    times: int = 0
    ended: bool = False


Decision = Recorded | GoLive | Refuse


Matching = Callable[[str], Sequence[Recorded]]
"""Gives the recorded calls of a match key, in file order."""


@dataclass
class Execution:
    """One execution of one taped cell, as the player tracks it. Opaque to everybody else."""

    cell: CellIdentity
    mode: Mode
    nth: int
    matching: Matching
    served: set[tuple[str, str]] = field(default_factory=set)
    shelves: dict[str, list[_Shelf]] = field(default_factory=dict)
    own: tuple[int, dict[str, int]] = (-1, {})


class _Shelf:
    """Recorded calls with one match key that are equally near to one execution: by lineage, else in order."""

    __slots__ = ("lanes", "left")

    def __init__(self, calls: list[Recorded]) -> None:
        self.left = calls[::-1]  # the next one last
        self.lanes: dict[str, list[Recorded]] | None = None
        if len(calls) > 1:  # most keys have one call, and there are as many shelves as keys
            self.lanes = {}
            for call in self.left:
                self.lanes.setdefault(call.lineage, []).append(call)

    def take(self, lineage: str, served: set[tuple[str, str]]) -> Recorded | None:
        for lane in (self.lanes.get(lineage) if self.lanes else None, self.left):
            while lane:
                call = lane.pop()
                if (call.run, call.id) not in served:
                    return call
        return None


class Player:
    """Decides over one cassette. `matching(key)` gives the recorded calls of a match key; `runs()` the run records."""

    def __init__(self, matching: Matching, runs: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
        self._matching, self._runs = matching, runs
        self._lock = threading.RLock()
        self._executions: Counter[tuple[str, str]] = Counter()
        self._served: Counter[tuple[str, str]] = Counter()
        self._read: Sequence[Mapping[str, Any]] = ()
        self._seen, self._version = 0, 0
        self._state = _Current()
        self._current: list[RecordedRun] = []
        self._place: dict[str, int] = {}

    def current(self) -> list[RecordedRun]:
        """The runs that count now (see current_runs)."""
        with self._lock:
            records = self._runs()
            if records is not self._read or len(records) < self._seen:
                self._read, self._seen, self._state = records, 0, _Current()
            elif len(records) == self._seen:
                return self._current
            for record in records[self._seen :]:
                self._state.add(run_of(record))
            self._seen, self._version = len(records), self._version + 1
            self._current = list(self._state.kept.values())
            self._place = {run.id: index for index, run in enumerate(self._current)}
            return self._current

    def knows(self, cell: CellIdentity) -> bool:
        """Whether the cassette holds a recording of this cell."""
        return any(run.cell.same_cell(cell) for run in self.current())

    def forget(self) -> None:
        """The cassette was read anew (edited by hand)."""
        self._read = ()

    def start(self, cell: CellIdentity, mode: Mode, matching: Matching | None = None) -> Execution:
        """A new execution of a cell: everything recorded may be served again. `matching`: other keys (`--ignore`)."""
        with self._lock:
            name = (cell.cell_id, cell.source)
            self._executions[name] += 1
            return Execution(cell, mode, self._executions[name], matching or self._matching)

    def decide(self, execution: Execution, key: str, lineage: str = "", *, ended: bool = False) -> Decision:
        """`ended` says that the cell's execution is over: in replay nothing is served to it any more."""
        if execution.mode in ("record", "live"):
            return GoLive()
        with self._lock:
            if execution.mode == "once":
                known = self.times(execution, key) or self.knows(execution.cell)
                execution.mode = "replay" if known else "record"
            if ended and execution.mode == "replay":
                return Refuse(ended=True)
            found = self._take(execution, key, lineage) if execution.mode != "record" else None
            if found is not None:
                return found
            return Refuse(self.times(execution, key)) if execution.mode == "replay" else GoLive()

    def times(self, execution: Execution, key: str) -> int:
        """How often the cassette's current runs hold this call."""
        runs = {run.id for run in self.current()}
        return sum(call.run in runs for call in execution.matching(key))

    def _take(self, execution: Execution, key: str, lineage: str) -> Recorded | None:
        shelves = execution.shelves.get(key)
        if shelves is None:
            shelves = execution.shelves[key] = self._shelves(execution, key)
        for shelf in shelves:
            call = shelf.take(lineage, execution.served)
            if call is not None:
                name = (call.run, call.id)
                execution.served.add(name)
                self._served[name] += 1
                return call
        return None

    def _shelves(self, execution: Execution, key: str) -> list[_Shelf]:
        """The recorded calls with that key, nearest runs first; of those further off, the least served first."""
        found = execution.matching(key)
        if not found:
            return []
        own = self._own_runs(execution)
        place = self._place
        if len(found) == 1:  # nearly always
            return [_Shelf([found[0]])] if found[0].run in place else []
        tiers: dict[tuple[int, int], list[Recorded]] = {}
        for call in sorted((c for c in found if c.run in place), key=lambda c: (place[c.run], c.order)):
            near = own.get(call.run, 2)
            tiers.setdefault((near, self._served[call.run, call.id] if near else 0), []).append(call)
        return [_Shelf(tiers[tier]) for tier in sorted(tiers)]

    def _own_runs(self, execution: Execution) -> dict[str, int]:
        """Run id -> 0 for the recording of this very execution, 1 for others of the same cell."""
        runs = self.current()
        if execution.own[0] != self._version:
            execution.own = (self._version, _nearness(execution, runs))
        return execution.own[1]


def _nearness(execution: Execution, runs: Sequence[RecordedRun]) -> dict[str, int]:
    same = [run for run in runs if run.cell.same_cell(execution.cell)]
    first = [run for run in same if not run.parent]
    if not first:
        return {run.id: 1 for run in same}
    chosen = first[min(execution.nth, len(first)) - 1].id
    return {run.id: 0 if chosen in (run.id, run.parent) else 1 for run in same}
