"""The decision: given a call, play a recorded one, go live, or refuse. Pure: no I/O, nothing
patched.

A near match is never served here (session/near_matches.py says which recorded call one is that
matches by less than all, by `discriminator`). Identical calls are told apart by cell, then by lineage of
task or thread, then by order; each recorded call is served at most once in one execution of a cell.
A selection (--live, --freeze, --stub) excepts boundaries from the cell's mode.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.match_key import IgnorePath
from tape_jupyter.cassette.runs import CellIdentity, Current, RecordedRun, run_of
from tape_jupyter.replay.selection import CallOrigin, Known, Selection

Mode = Literal["record", "replay", "once", "new_episodes", "live"]
MODES: tuple[Mode, ...] = ("record", "replay", "once", "new_episodes", "live")
Policy = Literal["stop", "live", "stale"]
POLICIES: tuple[Policy, ...] = ("stop", "live", "stale")
"""What becomes of a replayed call that is not recorded, a divergence: refused, sent, or answered as
a like call was.
"""


class Recorded(Known, Protocol):
    """A recorded call as the player sees it."""

    @property
    def lineage(self) -> str: ...
    @property
    def order(self) -> int: ...
    @property
    def discriminator(self) -> str: ...


@dataclass(frozen=True, slots=True)
class GoLive:
    """Send it. `recorded` is the call whose place the live answer takes in a take; None: it is a
    new call.
    """

    recorded: Recorded | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not send it: `times` is how often the same call is recorded (0: never), `ended` that its
    cell is over.

    `frozen`: it was to be answered from an earlier recording, in a cell that else goes live. `why`
    names what tells it apart from every recorded call of its match key.
    """

    times: int = 0
    ended: bool = False
    frozen: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Frozen:
    """While recording: play it from an earlier recording, and write it as a call of this one."""

    recorded: Recorded


@dataclass(frozen=True, slots=True)
class Stub:
    """Answer with this frozen value instead, and write it; `recorded` as in GoLive."""

    value: Any
    recorded: Recorded | None = None


@dataclass(frozen=True, slots=True)
class Diverged:
    """Answer with the recorded reply of the call in whose place it stands; `times` is Refuse's,
    where there is none.
    """

    times: int = 0


Decision = Recorded | GoLive | Refuse | Frozen | Stub | Diverged


Matching = Callable[[str], Sequence[Recorded]]
"""Gives the recorded calls of a match key, in file order."""


@dataclass
class CellPlayback:
    """One execution of one taped cell: what was decided of it, and what was played so far."""

    cell: CellIdentity
    mode: Mode
    nth: int
    matching: Matching
    ignore: tuple[IgnorePath, ...] = ()
    """What is left out of the match."""
    unrecorded: bool = False
    """Whether a session replays it, and the cassette has no recording of it."""
    played: list[Entry] = field(default_factory=list)
    """What was played, in its order."""
    served: set[tuple[str, str]] = field(default_factory=set)
    """Run and id of what was found for a call, played or not: no call is found twice."""
    shelves: dict[str, list[_Candidates]] = field(default_factory=dict)
    own: tuple[int, dict[str, int]] = (-1, {})
    groups: dict[str, dict[str, list[Recorded]]] = field(default_factory=dict)
    """Of match keys that say less than all: the recorded calls by what tells them apart."""
    selection: Selection = field(default_factory=Selection)
    places: dict[str, int] | None = None
    """While recording with frozen boundaries: the runs to answer from, as they were before this one
    replaced any.
    """
    on_divergence: Policy = "stop"
    repeats: str = ""
    """The recording to repeat, where somebody said which."""
    decided: Mapping[str, Policy] = field(default_factory=dict)
    """What a person decided of single divergences, by match key."""

    @property
    def runs_tools(self) -> bool:
        """Whether functions run as they stand: the cell ran untaped, and nothing of the tape was
        played to it since.
        """
        return self.unrecorded and not self.played


class _Candidates:
    """Recorded calls with one match key that are equally near to one execution: by lineage, else in
    order.
    """

    __slots__ = ("lanes", "left")

    def __init__(self, calls: list[Recorded]) -> None:
        self.left = calls[::-1]  # the next one last
        self.lanes: dict[str, list[Recorded]] = {}
        for call in self.left:
            self.lanes.setdefault(call.lineage, []).append(call)

    def take_call(self, lineage: str, served: set[tuple[str, str]]) -> Recorded | None:
        for lane in (self.lanes.get(lineage), self.left):
            while lane:
                call = lane.pop()
                if (call.run, call.id) not in served:
                    return call
        return None


# how far a recorded run is from the execution that is served: the nearest are asked first
_REPEATED, _SAME_CELL, _OTHER_CELL, _REPLACED = range(4)

_TAKEN: list[_Candidates] = []
"""Of a key whose only call was taken: one for all keys, of which there are as many as calls. Never
changed.
"""


class Player:
    """Decides over one cassette. `matching(key)` gives the recorded calls of a match key; `runs()`
    the run records.
    """

    def __init__(
        self,
        matching: Matching,
        runs: Callable[[], Sequence[Mapping[str, Any]]],
        executions: Counter[tuple[str, str]] | None = None,
    ) -> None:
        """`executions`: how often each cell was executed, which players of a cassette and of its
        takes share.
        """
        self._matching, self._runs = matching, runs
        self._lock = threading.RLock()
        self._executions = Counter[tuple[str, str]]() if executions is None else executions
        self._served: Counter[tuple[str, str]] = Counter()
        self._read: Sequence[Mapping[str, Any]] = ()
        self._seen, self._version = 0, 0
        self._state = Current()
        self._current: list[RecordedRun] = []
        self._place: dict[str, int] = {}

    def current(self) -> list[RecordedRun]:
        """The runs that count now (see cassette/runs.py)."""
        with self._lock:
            records = self._runs()
            if records is not self._read or len(records) < self._seen:
                self._read, self._seen, self._state = records, 0, Current()
            elif len(records) == self._seen:
                return self._current
            for record in records[self._seen :]:
                self._state.add(run_of(record))
            self._seen, self._version = len(records), self._version + 1
            self._current = list(self._state.kept.values())
            self._place = {run.id: index for index, run in enumerate(self._current)}
            return self._current

    def has_recording(self, cell: CellIdentity) -> bool:
        """Whether the cassette holds a recording of this cell."""
        return any(run.cell.same_cell(cell) for run in self.current())

    def forget(self) -> None:
        """The cassette was read anew (edited by hand)."""
        self._read = ()

    def start(
        self,
        cell: CellIdentity,
        mode: Mode,
        matching: Matching | None = None,
        selection: Selection | None = None,
        repeats: str = "",
    ) -> CellPlayback:
        """A new execution of a cell: everything recorded may be served again. `matching`: other
        keys (`--ignore`).

        `repeats`: the run whose calls come first, though a newer recording of the cell replaced it;
        else the n-th execution of a cell repeats its n-th recording.
        """
        with self._lock:
            name = (cell.cell_id, cell.source)
            self._executions[name] += 1
            execution = CellPlayback(cell, mode, self._executions[name], matching or self._matching)
            if selection:
                execution.selection = selection
                if mode in ("record", "once"):
                    self._order_places(execution)
            if repeats and any(run.get("run") == repeats for run in self._runs()):
                self._repeat_run(execution, repeats)
            return execution

    def _repeat_run(self, execution: CellPlayback, repeats: str) -> None:
        """Serve that run first, and what adds to it, also where a newer recording replaced it."""
        execution.repeats = repeats
        if any(run.id == repeats for run in self.current()):
            return
        self._order_places(execution)
        distances = execution.own[1]
        for run in self._runs():
            if repeats in (run["run"], run.get("parent")):
                distances[str(run["run"])] = 0

    def _order_places(self, execution: CellPlayback) -> None:
        """The runs that count now come first, then those that newer ones replaced, the newest
        first.
        """
        current = [run.id for run in self.current()]
        known = [str(run.get("run")) for run in reversed(self._runs())]
        replaced = [run for run in known if run not in self._place]
        execution.places = {run: place for place, run in enumerate((*current, *replaced))}
        distances = _rank_runs(execution, self._current)
        for place, run in enumerate(replaced):
            distances[run] = _REPLACED + place
        execution.own = (-1, distances)

    def repeats(self, execution: CellPlayback) -> str:
        """Id of the recording that this execution repeats; "" where there is none of its cell."""
        if execution.repeats:
            return execution.repeats
        with self._lock:
            distances = self._find_own_runs(execution)
            for run in self._current:
                if distances.get(run.id) == _REPEATED and not run.parent:
                    return run.id
            return ""

    def recording_of(self, execution: CellPlayback) -> tuple[int, int]:
        """Which recording of its cell this execution repeats, and of how many; (1, 1) where it was
        said which.
        """
        same = [run for run in self.current() if run.cell.same_cell(execution.cell)]
        count = sum(not run.parent for run in same)
        if execution.repeats or not count:
            return 1, 1
        return min(execution.nth, count), count

    def decide(
        self,
        execution: CellPlayback,
        key: str,
        lineage: str = "",
        *,
        ended: bool = False,
        site: CallOrigin | None = None,
        discriminator: str | None = None,
        has_body: bool = False,
    ) -> Decision:
        """`ended` says that the cell's execution is over: in replay nothing is served to it any
        more.

        `site` is asked for where the execution has a selection. `discriminator`: only calls with that are
        the same call. `has_body`: it is of a function of the person's; what one did live in another
        cell of a take it did there, and would do again here.
        """
        if execution.mode == "live" or (execution.mode == "record" and not execution.selection):
            return GoLive()
        with self._lock:
            if execution.mode == "once":
                self._settle_once(execution, key, discriminator)
            if ended and execution.mode == "replay":
                return Refuse(ended=True)
            if execution.selection and site is not None:
                return self._decide_selected(
                    execution, key, lineage, site, discriminator, has_body=has_body
                )
            recorded = None
            if execution.mode != "record":
                recorded = self._find_next_match(
                    execution, key, lineage, discriminator, has_body=has_body
                )
            if recorded is not None:
                return recorded
            if execution.mode == "replay":
                return self._decide_divergence(execution, key, discriminator)
            return GoLive()

    def _settle_once(self, execution: CellPlayback, key: str, discriminator: str | None) -> None:
        """The first call of a cell in mode `once` says which mode it has: as if that had been asked for,
        what is recorded is played, and what is not is refused.
        """
        if self.times(execution, key, discriminator) or self.has_recording(execution.cell):
            execution.mode = "replay"
            execution.selection = execution.selection.without_stubs()
            execution.places = None
        else:
            execution.mode = "record"

    def _decide_divergence(
        self, execution: CellPlayback, key: str, discriminator: str | None
    ) -> Decision:
        """What becomes of a call that no recorded one answers, in a replay."""
        how = execution.decided.get(key, execution.on_divergence)
        if how == "live":
            return GoLive()
        times = self.times(execution, key, discriminator)
        return Diverged(times) if how == "stale" else Refuse(times)

    def _decide_selected(
        self,
        execution: CellPlayback,
        key: str,
        lineage: str,
        site: CallOrigin,
        discriminator: str | None,
        *,
        has_body: bool,
    ) -> Decision:
        """The decision where a selection excepts some boundaries from the mode."""
        mode = execution.mode
        recorded = self._find_next_match(execution, key, lineage, discriminator, has_body=has_body)
        how = execution.selection.how(site, recorded)
        # in replay a live or stubbed answer overrides the recorded call, in a take; while recording
        # there is no call yet whose place it could take
        if how == "live":
            return GoLive(recorded if mode == "replay" else None)
        if how == "stub" and (mode in ("record", "replay") or recorded is None):
            return Stub(execution.selection.stub(site), recorded if mode == "replay" else None)
        if recorded is not None and (how == "freeze" or mode != "record"):
            return Frozen(recorded) if mode == "record" else recorded
        if how == "freeze":
            return Refuse(self.times(execution, key, discriminator), frozen=mode != "replay")
        if mode == "replay":
            return self._decide_divergence(execution, key, discriminator)
        return GoLive()

    def repeated(self, execution: CellPlayback) -> frozenset[str]:
        """Ids of the runs that this execution repeats: the recording of its cell, and what adds to
        that.
        """
        with self._lock:
            distances = self._find_own_runs(execution)
            return frozenset(run for run, near in distances.items() if near == _REPEATED)

    def claim(self, execution: CellPlayback, recorded: Recorded) -> bool:
        """Serve this very call; False where it has been served in this execution."""
        with self._lock:
            name = (recorded.run, recorded.id)
            if name in execution.served:
                return False
            execution.served.add(name)
            self._served[name] += 1
            return True

    def times(self, execution: CellPlayback, key: str, discriminator: str | None = None) -> int:
        """How often the cassette's current runs hold this call."""
        if discriminator is not None:
            return len(self.groups(execution, key).get(discriminator, ()))
        return len(self._filter_current(execution, execution.matching(key)))

    def groups(self, execution: CellPlayback, key: str) -> Mapping[str, Sequence[Recorded]]:
        """The recorded calls of a match key, by what tells them apart; "" are those of which
        nothing more is known.
        """
        with self._lock:
            if key not in execution.groups:
                groups = execution.groups[key] = {}
                for call in self._filter_current(execution, execution.matching(key)):
                    groups.setdefault(call.discriminator, []).append(call)
            return execution.groups[key]

    def _filter_current(self, execution: CellPlayback, calls: Sequence[Recorded]) -> list[Recorded]:
        runs: Container[str] = execution.places or ()
        if execution.places is None:
            runs = {run.id for run in self.current()}
        return [call for call in calls if call.run in runs]

    def _find_next_match(
        self,
        execution: CellPlayback,
        key: str,
        lineage: str,
        discriminator: str | None = None,
        *,
        has_body: bool = False,
    ) -> Recorded | None:
        shelf_name = key if discriminator is None else f"{key} {discriminator}"
        shelves = execution.shelves.get(shelf_name)
        if shelves is None:
            if discriminator is None:
                calls = execution.matching(key)
            else:
                calls = self.groups(execution, key).get(discriminator, ())
            if has_body:
                calls = [call for call in calls if not self._is_added_elsewhere(execution, call)]
            if len(calls) == 1:  # nearly always: then there is nothing to tell apart
                execution.shelves[shelf_name] = _TAKEN
                if self._may_serve(execution, calls[0]) and self.claim(execution, calls[0]):
                    return calls[0]
                return None
            shelves = execution.shelves[shelf_name] = self._build_shelves(execution, calls)
        for shelf in shelves:  # the nearest runs first
            call = shelf.take_call(lineage, execution.served)
            if call is not None:
                self.claim(execution, call)
                return call
        return None

    def _is_added_elsewhere(self, execution: CellPlayback, call: Recorded) -> bool:
        """Whether another cell came to ask this in a replay of a take."""
        runs = self.current()
        if call.run not in self._place:
            return False
        run = runs[self._place[call.run]]
        return run.added and not run.cell.same_cell(execution.cell)

    def _may_serve(self, execution: CellPlayback, call: Recorded) -> bool:
        """Whether the call is of a run that this execution may be served from."""
        self.current()
        return call.run in (self._place if execution.places is None else execution.places)

    def _build_shelves(
        self, execution: CellPlayback, calls: Sequence[Recorded]
    ) -> list[_Candidates]:
        """Recorded calls with one key, nearest runs first; of those further off, the least served
        first.
        """
        if not calls:
            return []
        distances = self._find_own_runs(execution)
        places = self._place if execution.places is None else execution.places
        known = [call for call in calls if call.run in places]
        known.sort(key=lambda call: (places[call.run], call.order))
        tiers: dict[tuple[int, int], list[Recorded]] = {}
        for call in known:
            distance = distances.get(call.run, _OTHER_CELL)
            # the repeated recording's own calls come in their order, however often they were served
            served = self._served[call.run, call.id] if distance else 0
            tiers.setdefault((distance, served), []).append(call)
        return [_Candidates(tiers[tier]) for tier in sorted(tiers)]

    def _find_own_runs(self, execution: CellPlayback) -> dict[str, int]:
        """Run id -> how far off it is: _REPEATED, _SAME_CELL, or _REPLACED and more. Runs of other
        cells are not in it.
        """
        runs = self.current()
        if execution.own[0] != self._version and execution.places is None:
            execution.own = (self._version, _rank_runs(execution, runs))
        return execution.own[1]


def _rank_runs(execution: CellPlayback, runs: Sequence[RecordedRun]) -> dict[str, int]:
    """How far off the recordings of this cell are from this execution of it: the one that it repeats,
    with what adds to that, and the others.
    """
    same = [run for run in runs if run.cell.same_cell(execution.cell)]
    distances = dict.fromkeys((run.id for run in same), _SAME_CELL)
    chosen = _choose_run(execution, runs, same)
    if chosen is None:
        return distances
    distances[chosen] = _REPEATED
    for run in same:
        if run.parent == chosen:
            distances[run.id] = _REPEATED
    return distances


def _choose_run(
    execution: CellPlayback, runs: Sequence[RecordedRun], same: Sequence[RecordedRun]
) -> str | None:
    """The id of the recording that is repeated: the one somebody named, else the n-th of the cell, or
    its last. None where the cell has none of its own.
    """
    if any(run.id == execution.repeats for run in runs):
        return execution.repeats
    recordings = [run for run in same if not run.parent]
    if not recordings:
        return None
    return recordings[min(execution.nth, len(recordings)) - 1].id
