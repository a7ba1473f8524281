"""In which order the strands of a cell went on with what came to them: a part of a reply, a timer,
a sleep that ended.

What the program does next happens at this hand-over, not when bytes arrive: so the recording
numbers hand-overs, and replay repeats their order. Two that fall together would leave it to the
machine who goes on first. So while recording, what comes to one strand while another still acts on
what it got waits until that one waits itself: an event loop runs what is ready first, a thread is
held until the others wait, have computed for `HOLD` seconds, or `PATIENCE` is over. Where that was
too short, the record says so (`together`), and a replay says which two cannot be told apart.

A thread that begins what was handed to it (`Turns.begin`) waits in the same way, before any reply,
and in a replay too: so threads begin in the order in which they were started, each once the others
wait, and that needs no place in the record. Likewise one that another woke (`Turns.wake`).

On the end mark of a run: `order: 3fa1b2c4*3 9d0e1f22*2 @ask-1#0 +3fa1b2c4` tells, in order, calls
with the number of their parts that were handed on, timers by their strand and their number in it,
and with + what came together with what stands before it; `+>ask-2`: a thread began while others computed;
with = what an awaited function gave without awaiting anything: its task just went on.
`timers: {ask-1: 2}` tells how many timers each strand set: those without a place never went off.
"""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio import events
from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import itemgetter
from time import sleep  # not the stand-in that programs get
from typing import Any, Protocol

from tape_jupyter.core.real_clock import monotonic
from tape_jupyter.determinism.idle_detection import MEANT_WAITS, others_time
from tape_jupyter.determinism.scheduler import BEYOND, HOLD, NEVER
from tape_jupyter.errors import CassetteError

LIMIT = 20_000
"""Hand-overs kept of one cell."""

LOOKS = 2
"""How often a thread is looked at that seems to wait."""

BEGIN, BEGIN_IN_ALL = 0.1, 2.0
"""Seconds of others' computing that a thread waits for which is about to begin its work (they may
import something first), and that all threads of a cell wait for that begin or wake: a pool that
computes loses no more.
"""

BEGUN = 100
"""Threads of a cell that are told to have begun while others computed."""

PATIENCE = 1.0
"""Seconds that a thread is held at most: on a busy machine the others may be long in getting a
processor.
"""

_GAPS = (0.0002, 0.001)

SPINS = 20
"""Rounds of an event loop after which, where it also computed for `HOLD` seconds in them, it counts
as one that is never idle: all that is held there goes on, or it would wait for the end of the
traffic.
"""

MOST_NAMED = 3
"""Pairs that are named."""


class Named(Protocol):
    """A call that is being recorded."""

    @property
    def id(self) -> str: ...


@dataclass(slots=True)
class _Run:
    """Hand-overs to one call or timer, one after the other."""

    what: Named | str
    count: int
    together: bool
    at_once: bool


@dataclass(slots=True)
class _Loop:
    """An event loop: which strands act since it was last idle, and what waits until it is idle
    again.
    """

    loop: Any
    busy: set[str] = field(default_factory=set)
    waiting: deque[Callable[[bool], bool]] = field(default_factory=deque)
    rounds: int = 0
    """How often it went round."""
    step: tuple[int, int, float] = (0, 0, 0.0)
    """The task that asked last what time it is, in which round, and what it was told."""
    spins: int = 0
    since: float = 0.0
    """How often it went round without being idle, since when (the thread's own time), while
    something is held.
    """

    def let_go(self, *, rested: bool = True) -> bool:
        """Let the next go on that anybody wants; false where nobody waits."""
        while self.waiting:
            if self.waiting.popleft()(rested):
                return True
        return False

    def let_all_go(self, *, rested: bool = True) -> None:
        while self.let_go(rested=rested):
            pass


_WOKEN, _BEGINS, _LETS_ACT, _GOES_ON = range(4)
"""What threads that wait their turn are about to do, in the order in which they get it."""


class Signal:
    """Wakes one thread, once for each time that it is set. Not an Event: what waits at those is held
    when it wakes (`Turns.wake`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        with suppress(RuntimeError):  # it is set
            self._lock.release()

    def clear(self) -> None:
        self._lock.acquire(blocking=False)

    def wait(self) -> None:
        self._lock.acquire()

    MEANT_WAITS.add(wait.__code__)


class Turns:
    """Threads that are about to go on, one by one: whose wait another one ended first, then who
    begins its work, both in the order in which that was handed out, then who gave something to
    another one, then who got a reply, in the order in which they ask.

    `active(looks, ignored, first)`: another thread of the cell that waits for nothing.
    """

    def __init__(self, active: Callable[[int, set[int], int | None], int | None]) -> None:
        self._active = active
        self._tickets = count()
        self._lock = threading.Lock()
        self._waiting: list[tuple[Place, Signal]] = []
        self._computing: set[int] = set()
        self._waited = 0.0
        """Seconds that others computed while a thread, the first of those that wait, was about to
        begin, or to go on when woken.
        """

    def ticket(self) -> int:
        """The place of work that is handed to a thread now."""
        return next(self._tickets)

    def begin(self, ticket: int) -> bool:
        """Hold this thread, which begins its work, until the others act on nothing any more; false
        where that took too long.
        """
        return self._take_turn_while_patient((_BEGINS, ticket), BEGIN)

    def wake(self, ticket: int) -> bool:
        """The same, before all others, for a thread whose wait for another one is over: who ended
        it (set an event, a result) comes to rest first, or the machine would choose which of the two
        acts first.
        """
        return self._take_turn_while_patient((_WOKEN, ticket), HOLD)

    def resume_thread(self) -> bool:
        """The same for a thread that got a reply."""
        return self._take_turn((_GOES_ON, next(self._tickets)), HOLD)

    def let_act(self) -> bool:
        """The same for a thread that gave something to another one, which may first have to begin:
        before those that got a reply.
        """
        return self._take_turn((_LETS_ACT, next(self._tickets)), HOLD)

    def do_others_act(self) -> bool:
        """Whether another thread of the cell acts at this moment."""
        return self._active(LOOKS, self._computing, None) is not None

    def _take_turn_while_patient(self, place: Place, patience: float) -> bool:
        return self._waited <= BEGIN_IN_ALL and self._take_turn(place, patience)

    def _take_turn(self, place: Place, patience: float) -> bool:
        entry = (place, Signal())
        with self._lock:
            insort(self._waiting, entry, key=itemgetter(0))
        try:
            return self._wait_for_turn(entry, patience)
        finally:
            with self._lock:
                self._waiting.remove(entry)
                if self._waiting:
                    self._waiting[0][1].set()

    def _wait_for_turn(self, entry: tuple[Place, Signal], patience: float) -> bool:
        """A thread that was waited for in vain is not waited for again until it was seen to wait
        itself.
        """
        began = spent = 0.0
        active, gap = None, _GAPS[0]
        while True:
            if not self._is_first(entry):
                entry[1].wait()
                began, active = 0.0, None
                continue
            active = self._active(LOOKS, self._computing, active)
            if active is None:
                if not self._is_first(entry) or self._forget_resting_threads():
                    continue
                return not self._computing
            now, computed = monotonic(), others_time() / 1e9
            if not began:
                began, spent = now, computed
            if computed - spent > patience or now - began > PATIENCE:
                self._computing.add(active)
                return False
            sleep(gap)
            gap = min(gap * 1.5, _GAPS[1])
            if entry[0][0] in (_WOKEN, _BEGINS):
                self._waited += others_time() / 1e9 - computed

    def _forget_resting_threads(self) -> bool:
        """Forget who was waited for in vain and rests now; whether anybody does. It may have come to
        rest as one that goes first.
        """
        before = self._computing
        self._computing = {each for each in before if self._active(1, set(), each) == each}
        return self._computing != before

    def _is_first(self, entry: tuple[Place, Signal]) -> bool:
        with self._lock:
            if self._waiting[0] is entry:
                return True
            entry[1].clear()
            return False


Place = tuple[int, int]
"""Where a thread stands among those that are about to go on; smaller goes first."""


class Handovers:
    """While recording. `watch(loop)`: have `idle` called by a loop that has nothing to run, false
    where that cannot be.
    """

    def __init__(self, turns: Turns, watch: Callable[[Any], bool]) -> None:
        self._turns, self._watch = turns, watch
        self._runs: list[_Run] = []
        self._strands: set[str] = set()
        self._timers: dict[str, int] = {}
        self._count = self._begun = 0
        self._has_tasks = False
        self._loops: dict[int, _Loop | None] = {}
        self._last: tuple[Any, _Loop | None] = (None, None)
        """The loop that was asked about last, and its state."""
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How often something was handed over so far."""
        return self._count

    def timer(self, lineage: str) -> str:
        """The name of a timer or sleep that this strand sets now."""
        return timer_name(lineage, self.number_timer(lineage))

    def number_timer(self, lineage: str) -> int:
        """The number, among its own, of a timer or sleep that this strand sets now."""
        with self._lock:
            number = self._timers.get(lineage, 0)
            self._timers[lineage] = number + 1
        return number

    def note_timer(self, lineage: str, number: int, *, together: bool) -> None:
        """That timer goes off now."""
        self.note(timer_name(lineage, number), lineage, together=together)

    def note(
        self, what: Named | str, lineage: str, *, together: bool = False, at_once: bool = False
    ) -> int:
        """It is handed over now: how often something was, with this. `at_once`: to a task that
        awaited nothing for it.
        """
        with self._lock:
            self._count += 1
            count = self._count
            self._strands.add(lineage)
            last = self._runs[-1] if self._runs else None
            if last is not None and last.what is what and last.at_once == at_once:
                last.count += 1
            elif self._count <= LIMIT:
                self._runs.append(_Run(what, 1, together, at_once))
        if (state := self._find_running_loop()) is not None:
            state.busy.add(lineage)
        return count

    def begin_task(self, lineage: str) -> None:
        """A task is made: it acts from the next round of the loop on."""
        self._has_tasks = True
        if (state := self._find_running_loop()) is not None:
            state.busy.add(lineage)

    def take_back(self, what: Named, count: int) -> bool:
        """It was handed over last, as the `count`-th, and needs no place; false where something
        followed.
        """
        with self._lock:
            if self._count != count or not self._runs or self._runs[-1].what is not what:
                return False
            self._runs[-1].count -= 1
            if not self._runs[-1].count:
                self._runs.pop()
            self._count -= 1
            return True

    def turn(self) -> bool:
        """Hold this thread until the others act on nothing any more; false where that took too
        long. Where it is the thread of an event loop (a notebook's cell is run by one), what came
        was waited for there, too, and not by a task.
        """
        return self._turns.resume_thread()

    def began(self, lineage: str) -> None:
        """A thread begins its work while others compute."""
        self._begun += 1
        if self._begun <= BEGUN:
            self.note(start_name(lineage), lineage, together=True)

    def awaited_turn(self, lineage: str) -> asyncio.Future[bool] | None:
        """The same for a task: what it is to await (`turn` tells what it gives); None where it need
        not.
        """
        if not (self.is_busy(lineage) or (self._has_tasks and self._may_others_act())):
            return None
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.call_when_idle(partial(_resolve_future, future))
        return future

    def _may_others_act(self) -> bool:
        """Whether the loop that runs here has more to run, or another thread acts, which may hand
        it something.
        """
        state = self._find_running_loop()
        return state is not None and (self.runs_on() or self._turns.do_others_act())

    def is_busy(self, lineage: str) -> bool:
        """Whether another strand acts on something in the loop that runs here, since that was last
        idle.
        """
        state = self._find_running_loop()
        return state is not None and bool(state.waiting or state.busy - {lineage})

    def others_act(self, lineage: str) -> bool:
        """The same, of those that act or are about to, without those that wait for their turn."""
        state = self._find_running_loop()
        if state is None:
            return False
        return bool(state.busy - {lineage}) or (self._has_tasks and self.runs_on())

    @property
    def round(self) -> int | None:
        """The round of the loop that runs here; None where none does that can be watched."""
        state = self._find_running_loop()
        return None if state is None else state.rounds

    def time_of_step(self, now: float) -> float:
        """What time it is for the deadlines that the running task sets: as when it first asked
        since it last waited. In a replay no time passes while a task computes, so that there no
        deadline is over before the task waits for anything.
        """
        state = self._find_running_loop()
        task = None if state is None else asyncio.current_task(state.loop)
        if state is None or task is None:
            return now
        if state.step[:2] != (id(task), state.rounds):
            state.step = (id(task), state.rounds, now)
        return state.step[2]

    def runs_on(self) -> bool:
        """Whether the loop that runs here has more to run before it waits."""
        state = self._find_running_loop()
        return state is not None and bool(getattr(state.loop, "_ready", ()))

    def call_when_idle(self, go: Callable[[bool], bool]) -> None:
        """Have `go(True)` called when the loop that runs here is idle, `go(False)` where it never
        is; it gives whether anybody still wanted it.
        """
        state = self._find_running_loop()
        if state is not None:
            if not state.waiting:
                state.spins, state.since = 0, time.thread_time()
            state.waiting.append(go)

    def spins(self, selector: Any) -> None:
        """A loop goes round with something to run: what has waited for long enough goes on."""
        state = self._loops.get(id(selector))
        if state is None:
            return
        state.rounds += 1
        if not state.waiting:
            return
        state.spins += 1
        if state.spins >= SPINS and time.thread_time() - state.since > HOLD:
            state.let_all_go(rested=False)
            state.spins, state.since = 0, time.thread_time()

    def idle(self, selector: Any) -> bool:
        """A loop has nothing to run: whether something that was held goes on there now."""
        state = self._loops.get(id(selector))
        if state is None:
            return False
        state.rounds += 1
        state.busy.clear()
        if state.waiting:
            self._turns.let_act()
        return not getattr(state.loop, "_ready", ()) and state.let_go()

    def _find_running_loop(self) -> _Loop | None:
        """The loop that runs here; None where none does that can be watched."""
        loop = events._get_running_loop()  # noqa: SLF001 - the one that does not raise
        if loop is None:
            return None
        last, state = self._last
        if last is not loop:
            state = self._find_loop_state(loop)
            self._last = loop, state
        return state

    def _find_loop_state(self, loop: Any) -> _Loop | None:
        selector = getattr(loop, "_selector", None)
        if id(selector) not in self._loops:
            acting = {""}  # the cell's own strand
            self._loops[id(selector)] = _Loop(loop, acting) if self._watch(loop) else None
        return self._loops[id(selector)]

    def close(self) -> None:
        """The cell is over: nothing is held any more."""
        for state in self._loops.values():
            if state is not None and state.waiting:
                with suppress(RuntimeError):  # the loop is closed
                    state.loop.call_soon_threadsafe(state.let_all_go)

    def record(self, *, has_strands: bool = True) -> dict[str, Any]:
        """What the end mark says; nothing where one strand alone ran (not `has_strands`)."""
        with self._lock:
            if (
                not (self._strands and has_strands)
                or self._begun == self._count
                or self._count > LIMIT
            ):
                return {}
            fields = {"order": " ".join(_format_run(run) for run in self._runs)}
            if self._timers:
                return {**fields, "timers": dict(sorted(self._timers.items()))}
            return fields


def _format_run(run: _Run) -> str:
    name = run.what if isinstance(run.what, str) else run.what.id
    mark = "=" if run.at_once else "+" * run.together
    return f"{mark}{name}{f'*{run.count}' if run.count > 1 else ''}"


def _resolve_future(future: asyncio.Future[bool], value: bool) -> bool:
    if future.done():
        return False
    future.set_result(value)
    return True


def start_name(lineage: str) -> str:
    return f">{lineage.replace(' ', '_')}"


def timer_name(lineage: str, number: int) -> str:
    return f"@{lineage.replace(' ', '_')}#{number}"


class RecordedOrder:
    """What a recording says of its order (`Handovers.record`), and how far a replay has come in it."""

    def __init__(self, text: Any, timers: Any = None) -> None:
        if not isinstance(text, str) or not isinstance(timers or {}, dict):
            raise CassetteError("the order of hand-overs is no line of calls")
        self._numbers: dict[str, list[int]] = {}
        self._runs: list[int] = []
        self._names: list[str] = []
        self._together: set[int] = set()
        self._at_once: set[int] = set()
        self._timers: Mapping[str, int] = timers or {}
        self._set: Counter[str] = Counter()
        self._last = self._top = -1
        self._passed: set[int] = set()
        self._latest = ""
        """What went on last: the name of a call, a timer or a beginning; of the cell's own start "".
        """
        self._lock = threading.Lock()
        self.swapped: dict[tuple[str, str], None] = {}
        """(handed over first, though recorded later; the other): by the names of their calls or
        timers.
        """
        self.untold: dict[tuple[str, str], None] = {}
        """Pairs that were handed over together, when they were recorded or now: none of the two
        surely first. "" is what the cell did before anything else.
        """
        for number, token in enumerate(text.split()):
            self._parse_word(number, token)

    def _parse_word(self, run: int, token: str) -> None:
        name, _, count = token.removeprefix("+").removeprefix("=").partition("*")
        if not name or not (count or "1").isdigit():
            raise CassetteError(f"the order of hand-overs has {token[:40]!r}, which is no call")
        if token.startswith("+"):
            self._together.add(len(self._runs))
        for _ in range(min(int(count or "1"), LIMIT)):
            if token.startswith("="):
                self._at_once.add(len(self._runs))
            self._numbers.setdefault(name, []).append(len(self._runs))
            self._runs.append(run)
            self._names.append(name)

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def part(self, call: str, part: int, parts: int | None) -> int:
        """The number of a part of a reply that has so many parts, or one more for its end; None: as
        many as it had.
        """
        known = self._numbers.get(call, [])
        if not known:
            return BEYOND
        if parts is None or len(known) in (parts, parts + 1):
            return known[part] if part < len(known) else BEYOND
        # the reply was edited: it has other parts than it had
        return known[min(part, len(known) - 1)]

    def result(self, call: str) -> int:
        """The number of what a function gave in the end."""
        known = self._numbers.get(call, [])
        return known[-1] if known else BEYOND

    def tells_items(self, call: str, items: int) -> bool:
        """Whether it tells when a generator gave each of so many items."""
        count = len(self._numbers.get(call, ()))
        return count > 1 and count in (items, items + 1)

    def tells_end(self, call: str, parts: int | None) -> bool:
        """Whether it tells when the program went on that had read, or closed, the whole reply."""
        return parts is not None and len(self._numbers.get(call, ())) == parts + 1

    def timer(self, lineage: str) -> int | None:
        """The number of a timer or sleep that this strand sets now; None: the recorded strand set
        none so late.
        """
        with self._lock:
            ordinal = self._set[lineage]
            self._set[lineage] += 1
        known = self._numbers.get(timer_name(lineage, ordinal))
        if known:
            return known[0]
        return NEVER if ordinal < self._timers.get(lineage, 0) else None

    def began(self, lineage: str, *, quiet: bool) -> None:
        """A thread begins its work; `quiet`: the others waited."""
        name = start_name(lineage)
        known = self._numbers.get(name)
        if known:
            self.passed(known[0], quiet=quiet)
        else:
            self._note_handover(name, quiet=quiet)

    def follows(self, number: int) -> bool:
        """Whether it comes with what was handed over last: nobody else stands between them."""
        return 0 <= self._last < number < BEYOND and self._runs[self._last] == self._runs[number]

    def is_at_once(self, number: int) -> bool:
        """Whether the task that got it had awaited nothing, and nothing later was handed over yet."""
        return number in self._at_once and number > self._top

    def is_next(self, number: int) -> bool:
        """Whether all before it was handed over."""
        return number == self._top + 1

    def is_together(self, number: int) -> bool:
        return number in self._together

    def passed(self, number: int, *, quiet: bool = True) -> None:
        """It is handed over now. `quiet`: whoever was before it had come to rest."""
        if number >= BEYOND:
            return
        with self._lock:
            name, self._last = self._names[number], number
            self._passed.add(number)
            swapped, self._top = number < self._top, max(self._top, number)
        if swapped:
            _note_pair(self.swapped, self._names[self._top], name)
        self._note_handover(name, quiet=swapped or (quiet and number not in self._together))

    def note_missing(self, begun: Container[str]) -> None:
        """The replay is over: what came together with something when it was recorded and, of the
        calls `begun`, never came now is untold, too. The program may have cut it off in between.
        """
        for number in sorted(self._together - self._passed):
            before = self._names[number - 1] if number else ""
            if self._names[number] in begun and (not number or number - 1 in self._passed):
                _note_pair(self.untold, before, self._names[number])

    def _note_handover(self, name: str, *, quiet: bool) -> None:
        with self._lock:
            before, self._latest = self._latest, name
        if not quiet:
            _note_pair(self.untold, before, name)


def _note_pair(pairs: dict[tuple[str, str], None], first: str, second: str) -> None:
    if first != second:
        pairs[first, second] = None
