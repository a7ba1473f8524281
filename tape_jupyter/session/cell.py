"""A taped cell as values: what was asked, what goes on, what is reported. Decides and draws
nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.core.call import (
    Capture,
    FunctionCall,
    Gate,
    HostClass,
    Play,
    Reply,
    Request,
    Value,
)
from tape_jupyter.core.context import Origin
from tape_jupyter.core.real_clock import perf_counter, utc_now
from tape_jupyter.core.seeded_random import Chance
from tape_jupyter.determinism.clock import TapeClock
from tape_jupyter.effects.bodies import Bodies
from tape_jupyter.errors import TapeRefusal
from tape_jupyter.isolation.namespaces import AWAY
from tape_jupyter.providers import registry
from tape_jupyter.providers.registry import Facts
from tape_jupyter.replay.player import CellPlayback, Decision, Mode, Player
from tape_jupyter.session.labels import CellTags
from tape_jupyter.session.saved_output import OnTape
from tape_jupyter.session.tool_tracking import ScannedTools, Tools

T = TypeVar("T")


def current_task() -> asyncio.Task[Any] | None:
    """The asyncio task this runs in; None where no event loop runs."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


@dataclass
class CellRequest:
    """What a person asks for a cell. `explicit`: by a `%%tape` line of its own, not by the
    session's mode.

    `start` is the folder of a named cassette where no notebook is known (default: the working
    directory). `typed`: at a terminal's prompt, where the same source again is the same cell again.
    `sessions_take`: the take was named for the whole session, and may be of another cassette.
    `block`: it is a block of a program (session/api.py), whose tasks nobody cancels but the program
    itself.
    """

    mode: str
    name: str = "main"
    source: str = ""
    cell_id: str | None = None
    count: int | None = None
    notebook: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)
    explicit: bool = True
    typed: bool = False
    sessions_take: bool = False
    path: Path | None = None
    start: Path | None = None
    namespace: Mapping[str, Any] = field(default_factory=dict)
    block: bool = False
    overruled: bool = False
    """It replays because the session does, whatever its own line says."""


NOTHING_TOLD = Facts()


@dataclass(frozen=True)
class ReportRow:
    """One call in a cell's report; `facts` is what its provider's view says of it, `tags` whom it
    served (session/labels.py). `live`: it went out although its cell was replayed, in this run of
    the cell or before it in the same re-run; `at` is when a call that was not played began.
    """

    id: str
    kind: str
    name: str
    facts: Facts = field(default=NOTHING_TOLD, repr=False)
    seconds: float = 0.0
    error: str = ""
    tags: Mapping[str, Any] = field(default_factory=dict)
    live: bool = False
    at: datetime | None = field(default=None, repr=False, compare=False)

    @property
    def provider(self) -> str:
        return self.facts.provider

    @property
    def tokens_in(self) -> int | None:
        return self.facts.usage.input if self.facts.usage else None

    @property
    def tokens_out(self) -> int | None:
        return self.facts.usage.output if self.facts.usage else None

    @cached_property
    def cost(self) -> Decimal | None:
        """US dollars at list price; priced when it is first shown, since that takes a while."""
        return registry.call_cost(self.facts)


class DeferredList(Sequence[T]):
    """A list that ends in what `make` gives: that takes a while, and is made when somebody looks at
    the list.
    """

    def __init__(self, items: Iterable[T], make: Callable[[], Iterable[T]]) -> None:
        self._items = list(items)
        self._make: Callable[[], Iterable[T]] | None = make

    def extend(self, more: Iterable[T]) -> None:
        self._items.extend(more)

    def _collect_items(self) -> list[T]:
        if self._make is not None:
            self._items, self._make = [*self._items, *self._make()], None
        return self._items

    def __len__(self) -> int:
        return len(self._collect_items())

    def __iter__(self) -> Iterator[T]:
        return iter(self._collect_items())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence):
            return self._collect_items() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list has none

    def __repr__(self) -> str:
        return repr(self._collect_items())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self._collect_items()[index]


@dataclass(frozen=True, slots=True)
class Divergence:
    """What was asked now (no secret is in `asked`) and the recorded call that is nearest, None
    where there is none.

    `fields` differ: path, recorded value, value now; the decisive one first. `match` is the call's
    match key, `repeats` the recording that its cell repeats, `lineage` its task or thread, `discriminator`
    as in match_key.MatchedRequest.
    """

    match: str
    kind: HostClass
    title: str
    call: Request | FunctionCall
    asked: Mapping[str, Any]
    nearest: Entry | None
    fields: tuple[tuple[str, str, str], ...]
    repeats: str = ""
    lineage: str = ""
    discriminator: str = ""

    @property
    def id(self) -> str:
        """8 hex digits, as the call's own id would begin."""
        return self.match[:8]

    def lines(self) -> list[str]:
        """For people, in a terminal."""
        if self.nearest is not None:
            near = f"; nearest: {self.nearest.id} of run {self.nearest.run}"
        else:
            near = ""
        lines = [f"{self.title} is not on the tape{near}"]
        for path, before, after in self.fields[:3]:
            lines += [f"  {path}", f"    recorded: {before}", f"    now:      {after}"]
        return lines


@dataclass
class CellReport:
    """What happened in a taped cell. `misses` were refused; `incomplete`: the cell raised or was
    interrupted.

    `take` is the take that it played or wrote. `divergences` are the refused calls that a person
    can decide on. `unheld` says what recorded tools did that this replay did not do again, `lost`
    what should be on the tape and could not be written. `on_tape` gives what is on the tape of it,
    read when it is shown.
    """

    mode: str
    path: Path | None
    calls: Sequence[ReportRow]
    misses: list[TapeRefusal]
    warnings: list[str]
    notes: DeferredList[str]
    seconds: float
    incomplete: bool
    take: str = ""
    divergences: Sequence[Divergence] = ()
    on_tape: Callable[[], OnTape | None] = lambda: None
    unheld: Sequence[str] = ()
    lost: Sequence[str] = ()


class Pacing(Protocol):
    """Says when played replies are handed on (session/pins/clock.py)."""

    def gate(self, entry: Entry, reply: Reply | Value) -> Gate | None: ...


class PausedCall(Protocol):
    """A call at the boundary that a person decides on (interceptor.PendingCall).

    `settle(decision, sent)` does as decided; `sent` goes live in place of the program's request.
    """

    @property
    def cell(self) -> TapedCell: ...
    @property
    def call(self) -> Request | FunctionCall: ...
    @property
    def kind(self) -> HostClass: ...
    @property
    def match(self) -> str: ...
    @property
    def lineage(self) -> str: ...
    @property
    def decided(self) -> Decision: ...
    @property
    def settle(self) -> Callable[..., Play | Capture]: ...


class Stepping(Protocol):
    """Holds the calls of a cell until a person lets them go (jupyter/step/stepper.py)."""

    def create_waiter(self, crossing: PausedCall) -> Waiting: ...


class Waiting(Protocol):
    """A held call."""

    def wait(self) -> Play | Capture:
        """Block this thread until it is decided."""

    async def wait_async(self) -> Play | Capture:
        """The same, awaited."""


class Running(Protocol):
    """A live call that has not ended: what is kept of it when its cell ends first."""

    def cell_ended(self, *, interrupted: bool) -> None: ...


@dataclass
class RunRecording:
    """What goes to the tape of a cell's run. `run` is "" until its first call is recorded.

    `kit` and `pins` stand in its run record, `states` gives what its kit record says of the pins,
    `ends` goes to its end mark, and `drawn` says whether a pin gave anything
    (session/pins/__init__.py). `ran` names its calls, live or from the tape, in their order;
    `names` counts the ids given. `variants` are the recorded calls by match key and by what they
    asked that is not on the tape. `running` are live calls that have not ended, `going` calls that
    are not on the tape yet, `committed` those that are, as of the cassette's `readings`.
    `first_commit` is called when the first call is about to be written.
    """

    run: str = ""
    kit: dict[str, Any] = field(default_factory=dict)
    pins: dict[str, Any] = field(default_factory=dict)
    states: Callable[[], Mapping[str, str]] = dict
    drawn: bool = False
    ends: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    variants: dict[str, dict[tuple[tuple[str, Any], ...], list[str]]] = field(default_factory=dict)
    running: dict[Running, None] = field(default_factory=dict)
    going: dict[Any, None] = field(default_factory=dict)
    first_commit: Callable[[], None] = lambda: None
    committed: list[str] = field(default_factory=list)
    readings: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def next_name(self, match: str) -> str:
        """The id of a call that begins now: 8 hex of its match key, -2, -3 for those that begin
        alike.
        """
        name = match[:8]
        with self.lock:
            self.names[name] += 1
            count = self.names[name]
        return name if count == 1 else f"{name}-{count}"

    def remember_variant(self, call: str, match: str, plain: tuple[tuple[str, Any], ...]) -> None:
        """Remember a recorded call by what is not on the tape of what it asked, by name; that is
        never written.
        """
        with self.lock:
            self.variants.setdefault(match, {}).setdefault(plain, []).append(call)

    def group_alike(self) -> list[tuple[str, list[str]]]:
        """Calls that only their order tells apart on the tape: the names of what they differ in,
        and their ids.
        """
        groups = []
        for same in self.variants.values():
            names = _list_differing_names(same) if len(same) > 1 else []
            if names:
                calls = [call for calls in same.values() for call in calls]
                groups.append((", ".join(names), calls))
        return groups

    def drop_uncommitted(self, cassette: Cassette) -> int:
        """How many committed calls the cassette has no more, since it was last read; they are
        committed no longer.
        """
        if cassette.readings == self.readings:
            return 0
        with self.lock:
            self.readings = cassette.readings
            there = [call for call in self.committed if (self.run, call) in cassette.by_name]
            removed, self.committed = len(self.committed) - len(there), there
        return removed


@dataclass
class CellPins:
    """What holds a cell's run to its recorded values, while it runs (session/pins/__init__.py)."""

    chance: Chance | None = None
    strayed: set[str] = field(default_factory=set)
    """Generators of the process that stand elsewhere than when it was recorded, by a changed reply."""
    clock: TapeClock | None = None
    pacing: Pacing | None = None


@dataclass
class CellTools:
    """The tools of a cell: `asked` is what models asked for in this kernel, `scanned` what was
    found and taped of their names, `bodies` are the tools that run.
    """

    asked: Tools = field(default_factory=Tools)
    scanned: ScannedTools = field(default_factory=ScannedTools)
    bodies: Bodies = field(default_factory=Bodies)


@dataclass
class StartTime:
    """When a cell began, by the calendar and by a counter that nobody sets; how long a person held
    it since, as one steps.
    """

    at: datetime = field(default_factory=utc_now)
    counter: float = field(default_factory=perf_counter)
    _held: float = 0.0
    _held_since: float | None = None

    def hold(self) -> None:
        """From now on it waits for a person; again is the same."""
        if self._held_since is None:
            self._held_since = perf_counter()

    def release(self) -> None:
        self._held, self._held_since = self.measure_held(), None

    def measure_held(self) -> float:
        """Seconds for which it waited for a person."""
        since = self._held_since
        return self._held + (0.0 if since is None else perf_counter() - since)

    def measure_elapsed(self) -> float:
        """Seconds since then, those aside in which it was held."""
        return perf_counter() - self.counter - self.measure_held()

    def record(self) -> dict[str, float]:
        """Its keys in a run's end mark."""
        held = round(self.measure_held(), 3)
        record: dict[str, float] = {"seconds": round(self.measure_elapsed(), 3)}
        if held:
            record["held"] = held
        return record


@dataclass
class CellFindings:
    """What a cell's report will say (session/summary_rows.py).

    `stale` are calls answered in another's place, `edited` those whose replies were edited. `cold`
    says what makes the run one that cannot be replayed fully, `lost` what should be on the tape
    and could not be written. `unheld` says what recorded tools did that this replay did not do
    again, `doubts` what was played though it was recorded from something else than is there now.
    `searched`: the seconds for which calls were looked for that are like a refused one. `changed`
    is called when there is something new to see (jupyter/viewer/live.py), and only takes note.
    """

    rows: list[ReportRow] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    refusals: list[TapeRefusal] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    divergences: list[Divergence] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cold: list[str] = field(default_factory=list)
    unheld: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    searched: float = 0.0
    changed: Callable[[], None] = lambda: None


@dataclass(eq=False)
class TapedCell:
    """One execution of one taped cell, while it runs and after: what was asked for, the state of
    its replay, what is recorded, what will be reported.

    `pins`, `tools` and `tags` are what its calls meet: the values that it is held to, the functions
    that models may ask for, whom the calls serve.
    `path` is the cassette's, there or not. `task` is the asyncio task it runs in; None once it has
    ended. `lock` guards recording and findings.
    """

    request: CellRequest
    execution: CellPlayback
    player: Player
    cassette: Cassette | None
    path: Path | None
    recording: RunRecording = field(default_factory=RunRecording)
    findings: CellFindings = field(default_factory=CellFindings)
    pins: CellPins = field(default_factory=CellPins)
    tools: CellTools = field(default_factory=CellTools)
    tags: CellTags = field(default_factory=CellTags)
    stepping: Stepping | None = None
    task: asyncio.Task[Any] | None = None
    closed: bool = False
    start: StartTime = field(default_factory=StartTime)
    origin: Origin = field(init=False)

    def __post_init__(self) -> None:
        self.origin = Origin(self)

    @property
    def lock(self) -> threading.RLock:
        return self.recording.lock

    @property
    def mode(self) -> Mode:
        return self.execution.mode

    @property
    def folder(self) -> Path | None:
        """The notebook's folder; of a block in a program, the working directory."""
        if self.request.notebook is not None:
            return self.request.notebook.absolute().parent
        return self.request.start or Path.cwd()

    @property
    def replaying(self) -> bool:
        """Whether nothing may leave: fail closed."""
        return self.mode == "replay"

    def large_bodies(self) -> Path | None:
        """The folder that large bodies are recorded to; None where nothing is recorded."""
        if self.replaying or self.cassette is None or self.mode == "live":
            return None
        return self.cassette.assets

    @property
    def rerun(self) -> bool:
        """Whether files and values are as the recorded cell found them, but for what came out
        otherwise since.
        """
        options = self.request.options
        return bool(options.get("rerun") or options.get("anew") or os.environ.get(AWAY))

    def ran_record(self, *, interrupted: bool) -> dict[str, list[str]]:
        """For the end mark of a run that asked otherwise than its recording: what it went through,
        nothing where it was stopped on its way.
        """
        complete = self.replaying and not interrupted and not self.findings.refusals
        return {"ran": self.recording.ran} if complete else {}

    def warn(self, text: str, *, cold: bool = False) -> None:
        """Say a thing once; `cold` marks the run as one that cannot be replayed fully."""
        with self.lock:
            if text not in self.findings.warnings:
                self.findings.warnings.append(text)
            if cold and text not in self.findings.cold:
                self.findings.cold.append(text)

    def lose(self, text: str) -> None:
        """Say that something is not on the tape that should be: the first time at once, where the
        program prints.
        """
        self.warn(text, cold=True)
        with self.lock:
            self.findings.lost.append(text)
            first = len(self.findings.lost) == 1
        if first:
            # a note
            print(f"tape: {text}. What is lost after it is told when this ends", file=sys.stderr)  # noqa: T201

    def committed(self, call: str) -> None:
        """A call of the run is on the tape."""
        with self.lock:
            self.recording.committed.append(call)
        self.warn_of_removed_calls()

    def warn_of_removed_calls(self) -> None:
        """Say which calls are on the tape no more, since somebody removed or changed the file."""
        if self.cassette is None or not (removed := self.recording.drop_uncommitted(self.cassette)):
            return
        if removed == 1:
            calls = "a call of this run is"
        else:
            calls = f"{removed:,} calls of this run are"
        self.lose(
            f"{calls} NO LONGER on the tape: {self.cassette.path} was removed, replaced or edited"
            " while it was recorded to"
        )

    def warn_late(self, text: str) -> None:
        """Say a thing once that happens after the cell was reported; a kernel shows it below the
        cell all the same.
        """
        if text not in self.findings.warnings:
            self.warn(text)
            print(f"tape: {text}", file=sys.stderr)  # noqa: T201 - a note to a person

    def cancelling(self) -> bool:
        """Whether the cell's own task is being cancelled: by its program, or by a kernel interrupt."""
        return self.task is not None and self.task.cancelling() > 0

    def in_task_of_its_own(self) -> bool:
        """Whether this runs in an asyncio task other than the cell's."""
        current = current_task()
        return current is not None and current is not self.task

    def refuse(self, refusal: TapeRefusal) -> TapeRefusal:
        """Remember a refusal, so that it is reported even if the cell's own code hides it; gives it
        back to raise.
        """
        with self.lock:
            self.findings.refusals.append(refusal)
        if self.closed:
            self.warn_late(f"{type(refusal).__name__}: {str(refusal).partition(chr(10))[0]}")
        return refusal


def _list_differing_names(several: Iterable[tuple[tuple[str, Any], ...]]) -> list[str]:
    """The names that have several values. To ask once more with a key, after once without, is no
    other call.
    """
    values: dict[str, set[str]] = {}
    for each in several:
        for name, value in each:
            values.setdefault(name, set()).add(repr(value))
    return [name for name, distinct in values.items() if len(distinct) > 1]
