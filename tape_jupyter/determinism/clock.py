"""The clock of one taped cell. Taps ask it for the time and wait on it; it patches nothing itself.

**Readings are recorded, not simulated.** While recording the program reads the real clock (what it
measures and prints is true, a paid run is never bent), and each reading is noted by strand and
module (determinism/clock_readings.py). In replay the same reader gets the same readings: what is
printed is equal to the last digit, whatever order threads run in, on whatever day. The other way,
one logical clock, would tick alike in replay only if the recording ran on it too: then a cell could
not time its own computing, and threads would race for the ticks. Where a reader asks more often
than it did, or the recording is from before there were readings, the clock goes on from the tape's
time: it moves with sleeps, with replies and by a microsecond with each reading.

**Sleeps and timers do not wait in replay**: they and the replies that are handed on in order stand
on one heap (determinism/scheduler.py), and the tape's time jumps to the next of them when nothing
of the cell can run any further. Where the cell has one thread that is known exactly: a thread that
sleeps, or an event loop that is about to block, is all there is. With more threads a pump looks at
them from outside (determinism/idle_detection.py). Where they are never quiet (one computes, or
reads a socket), what is due waits as long as it did in the recording, and not for ever.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tape_jupyter.core.context import is_body
from tape_jupyter.core.real_clock import monotonic, monotonic_ns, perf_counter_ns
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.core.thread_number import thread_number
from tape_jupyter.determinism.clock_readings import Notes, Readings
from tape_jupyter.determinism.idle_detection import Quiet, others_time
from tape_jupyter.determinism.order import Handovers, RecordedOrder, Signal, Turns
from tape_jupyter.determinism.scheduler import Deadline, Order, Schedule

Kind = Literal["wall", "monotonic", "perf"]
REAL: dict[Kind, Callable[[], int]] = {
    "wall": time.time_ns,
    "monotonic": monotonic_ns,
    "perf": perf_counter_ns,
}

GRACE = 1.0
"""Seconds beyond its recorded duration that a reply waits for an earlier one whose thread is not
quiet.
"""

TICK = 1000
"""Nanoseconds that an unrecorded reading moves the tape's time."""

_IDLE = 1.0
_STARTING = 0
"""Stands for a thread that is being started."""
_GAPS = (0.0002, 0.02)


@dataclass(frozen=True, slots=True)
class ClockBase:
    """Nanoseconds of each clock at the cell's start, in the run that the cell repeats."""

    wall: int
    monotonic: int
    perf: int

    @classmethod
    def now(cls) -> ClockBase:
        return cls(REAL["wall"](), REAL["monotonic"](), REAL["perf"]())


class TapeClock:
    """See the module. `notes` while recording, `readings` in replay (neither: `is_active` is false,
    reads are real).

    `threads` are those that code of the cell may run in, `starting` what is starting one
    (instrumentation/concurrency/threads.py fills them). `sleeps`: user code's sleeps and timers
    stand on the heap. `jumps`: time jumps when the cell is quiet; else what is on the heap waits in
    real time. `watch(loop)` is called for each event loop that is waited in: whether it asks `idle`
    before it blocks. `earlier`: threads that code of earlier cells started.

    `order` is there while recording hand-overs, `sequence` where they are repeated
    (determinism/order.py).
    """

    def __init__(  # noqa: PLR0913
        self,
        base: ClockBase,
        *,
        notes: Notes | None = None,
        readings: Readings | None = None,
        sleeps: bool = False,
        jumps: bool = True,
        watch: Callable[[Any, TapeClock], bool] = lambda _loop, _clock: False,
        earlier: Iterable[threading.Thread] = (),
        orders: bool = False,
        sequence: RecordedOrder | None = None,
    ) -> None:
        self.base, self.notes, self.sleeps, self.jumps = base, notes, sleeps, jumps
        self.closed, self.pid = False, os.getpid()
        self.threads: set[threading.Thread] = {threading.current_thread()}
        self.starting: list[Any] = []
        self.earlier = [thread for thread in earlier if thread.is_alive()]
        self.files: dict[int, int] = {}
        self.writing: set[int] = set()
        """Threads that write to the tape: they act, whatever they wait for meanwhile."""
        self._readings, self._watch = readings, watch
        self._schedule = Schedule()
        self._held_deadlines: list[tuple[Deadline, float]] = []
        # Re-entrant: the collector may run a program's code in here, which reads the clock.
        self._mutex = threading.RLock()
        self._lock = threading.Condition(self._mutex)
        self._pump: threading.Thread | None = None
        self._quiet = Quiet(self._list_running_threads, lambda ident: self.files.get(ident, 1))
        self._look_no_more = self._quiet.close
        self.turns = Turns(self._find_active_thread)
        self.order = Handovers(self.turns, lambda loop: watch(loop, self)) if orders else None
        self.sequence = sequence
        self._started = monotonic()
        self._children = _list_children() if sleeps else frozenset()

    @property
    def waits(self) -> bool:
        """Whether a loop asks `idle` before it blocks."""
        return self.order is None

    @property
    def is_active(self) -> bool:
        """Whether reads of user code concern the tape."""
        return not self.closed and (self.notes is not None or self._readings is not None)

    # ------------------------------------------------------------ what time it is

    def read(self, kind: Kind, lineage: str, module: str) -> int:
        """Nanoseconds of that clock for this reader."""
        base: int = getattr(self.base, kind)
        if self.notes is not None:
            now = REAL[kind]()
            self.notes.note(lineage, module, now - base)
            return now
        if self._readings is not None:
            recorded = self._readings.next(lineage, module)
        else:
            recorded = None
        with self._mutex:
            schedule = self._schedule
            if recorded is None:
                recorded = max(schedule.now, self._measure_elapsed() + TICK)
            schedule.now = max(schedule.now, recorded)
        return base + recorded

    def now(self) -> int:
        """Nanoseconds of tape time since the cell's start."""
        with self._mutex:
            return self._measure_elapsed()

    def loop_time(self) -> float:
        """Seconds, as an event loop counts them."""
        return (self.base.monotonic + self.now()) / 1e9

    def wall(self) -> int:
        """Nanoseconds since the epoch, on the tape."""
        return self.base.wall + self.now()

    def _measure_elapsed(self) -> int:
        if self.jumps:
            return self._schedule.now
        return max(self._schedule.now, int((monotonic() - self._started) * 1e9))

    def advance(self, by: int) -> None:
        """A reply that took so long was handed on at once."""
        with self._mutex:
            self._schedule.advance(self._measure_elapsed() + by)

    def reach(self, when: int) -> None:
        """Something came at that time that nobody had to wait for."""
        with self._mutex:
            self._schedule.advance(when)

    # ------------------------------------------------------------ waiting on the tape

    def sleep(self, seconds: float, lineage: str = "") -> None:
        """`time.sleep` of user code."""
        number = self.sequence.timer(lineage) if self.sequence is not None else None
        if _list_children() - self._children:  # it may be waiting for them
            time.sleep(seconds)
            return
        time.sleep(0)
        when = self.now() + int(seconds * 1e9)
        quiet = self.wait(
            when, monotonic() + seconds + (GRACE if number is not None else 0.0), None, number
        )
        if self.sequence is not None and number is not None:
            self.sequence.passed(number, quiet=quiet)
        if self.closed and (left := (when - self.now()) / 1e9) > 0:
            time.sleep(left)

    def ring(self, seconds: float, cancelled: threading.Event, lineage: str) -> bool:
        """A `threading.Timer` waits until it is due or cancelled; whether it is due. It may leave
        the event set.
        """
        number = self.sequence.timer(lineage) if self.sequence is not None else None
        limit = monotonic() + seconds + (GRACE if number is not None else 0.0)
        due = self._build_deadline(self.now() + int(seconds * 1e9), limit, None, number)
        rang: list[bool] = []

        def wake_sleeper() -> None:
            if not cancelled.is_set():
                rang.append(True)
                cancelled.set()

        due.wake, due.dead = wake_sleeper, cancelled.is_set
        with self._lock:
            closed = self.closed
            if not closed:
                self._add_deadline(due)
        cancelled.wait(seconds if closed else None)
        released, due.gone = due.gone, True
        if rang and not released:  # the cell ended: the rest of the time is real
            cancelled.clear()
            return not cancelled.wait(max(0.0, (due.when - self.now()) / 1e9))
        if rang and self.sequence is not None and number is not None:
            self.sequence.passed(number, quiet=due.quiet)
        return bool(rang) or (closed and not cancelled.is_set())

    def wait(
        self, when: int, limit: float, order: Order | None = None, number: int | None = None
    ) -> bool:
        """Block this thread until the tape's time is `when`, at most to the real second `limit`, or
        the cell's end.

        Whether the cell's other threads were quiet then.
        """
        with self._lock:
            if self.closed:
                return True
            if self.jumps and self.is_only_thread():
                self._schedule.advance(when)
                return True
            arrived = Signal()
            due = self._build_deadline(when, limit, order, number)
            due.wake = arrived.set
            self._add_deadline(due)
        try:
            arrived.wait()
        finally:
            due.gone = True
        return due.quiet

    async def wait_async(
        self, when: int, limit: float, order: Order | None = None, number: int | None = None
    ) -> bool:
        """The same, awaited."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # trio
            return self.wait(when, limit, order, number)
        future: asyncio.Future[None] = loop.create_future()
        due = self._build_deadline(when, limit, order, number)
        due.wake, due.dead = partial(_call_threadsafe, loop, _resolve_future, future), future.done
        self._schedule_deadline(due, loop)
        if not self.closed:
            await future
        return due.quiet

    def _build_deadline(
        self, when: int, limit: float, order: Order | None, number: int | None
    ) -> Deadline:
        together = (
            number is not None and self.sequence is not None and self.sequence.is_together(number)
        )
        since = others_time() / 1e9
        return Deadline(
            when, limit, do_nothing, order, number=number, together=together, since=since
        )

    def add_timer(
        self,
        when: int,
        limit: float,
        wake: Callable[[], None],
        dead: Callable[[], bool],
        late: Callable[[float], None],
        loop: Any,
        lineage: str = "",
    ) -> None:
        """A timer of an event loop (see schedule.Due); `late` is called in the loop."""
        number = self.sequence.timer(lineage) if self.sequence is not None else None
        due = self._build_deadline(
            when, limit + (GRACE if number is not None else 0.0), None, number
        )
        due.wake = partial(self._wake_deadline, due, wake)
        due.dead = dead
        due.on_early_end = partial(_call_threadsafe, loop, late)
        self._schedule_deadline(due, loop)

    def _wake_deadline(self, due: Deadline, wake: Callable[[], None]) -> None:
        if self.sequence is not None and due.number is not None:
            self.sequence.passed(due.number, quiet=due.quiet)
        wake()

    def _schedule_deadline(self, due: Deadline, loop: Any) -> None:
        watched = self._watch(loop, self)
        with self._lock:
            if self.closed:
                return
            if watched and self.jumps and self.is_only_thread():
                self._schedule.add(due)  # the loop asks before it blocks (`idle`)
            else:
                self._add_deadline(due)

    def _add_deadline(self, due: Deadline) -> None:
        """The pump releases it, whoever else there is: a thread that ends meanwhile never will."""
        self._schedule.add(due)
        self._start_pump()

    def is_only_thread(self) -> bool:
        """Whether this thread is the only one of the cell that lives."""
        with self._mutex:
            self._forget_ended_threads()
            self.threads.add(threading.current_thread())
            return len(self.threads) == 1 and not self._list_stray_threads()

    def _forget_ended_threads(self) -> None:
        ended = [each for each in list(self.threads) if not each.is_alive()]
        self.threads.difference_update(ended)

    def _list_running_threads(self) -> list[threading.Thread] | None:
        """The threads that the cell's code may run in; None while one is being started."""
        self._forget_ended_threads()
        if self.starting:
            return None
        return [*self.threads, *self._list_stray_threads()]

    def _list_stray_threads(self) -> list[threading.Thread]:
        """Threads of earlier cells that run now: a library may have handed them work of this one
        (anyio's do).
        """
        return [
            each
            for each in list(self.earlier)
            if each not in self.threads and self._quiet.runs(each)
        ]

    # ------------------------------------------------------------ when time moves

    def begin(self, ticket: int, lineage: str) -> None:
        """A thread begins the work that has this ticket (`turns`)."""
        if self.closed or self.pid != os.getpid() or is_body(lineage):
            return
        quiet = self.turns.begin(ticket)
        if self.sequence is not None:
            self.sequence.began(lineage, quiet=quiet)
        elif self.order is not None and not quiet:
            self.order.began(lineage)

    def wake(self, ticket: int, lineage: str) -> None:
        """The wait of a thread for another one is over (`turns`)."""
        if not (self.closed or self.pid != os.getpid() or is_body(lineage)):
            self.turns.wake(ticket)

    @contextmanager
    def mark_writing(self) -> Iterator[None]:
        """Inside, this thread writes to the tape."""
        self.writing.add(thread_number())
        try:
            yield
        finally:
            self.writing.discard(thread_number())

    def let_act(self) -> None:
        """Hold this thread until the others act on nothing any more."""
        if not self.closed and self.pid == os.getpid():
            self.turns.let_act()

    def spins(self, selector: Any) -> None:
        """An event loop of a cell that is being recorded goes round without a rest."""
        if self.order is not None and not self.closed:
            self.order.spins(selector)

    def rest(self, selector: Any) -> bool:
        """An event loop of a cell that is being recorded has nothing to run: whether what was held
        goes on there.
        """
        return self.order is not None and not self.closed and self.order.idle(selector)

    def _find_active_thread(
        self, rounds: int, ignored: set[int], first: int | None = None
    ) -> int | None:
        """Another thread of the cell that does not wait for something, if only for a reply; None
        where all do.

        `first`: the one that is looked at before the others, once.
        """
        running, ignored = self._list_running_threads(), {thread_number(), *ignored}
        if running is None:
            return _STARTING
        if writing := self.writing - ignored:
            return next(iter(writing))
        others = [each for each in running if each.ident not in ignored]
        if first is not None:
            again = self._quiet.active([each for each in others if each.ident == first], 1)
            if again is not None:
                return again
        return self._quiet.active(others, rounds)

    def idle(self, selector: Any) -> bool:
        """An event loop of this thread has nothing to run: whether something was released to it."""
        with self._lock:
            if self.closed or not self.jumps or self._schedule.first() is None:
                return False
            if not (self.is_only_thread() and self._quiet.no_files_more(thread_number(), selector)):
                self._start_pump()
                return False
            due = self._schedule.release(quiet=True, real=0.0)
        if due is not None:
            due.wake()
        return due is not None

    def _start_pump(self) -> None:
        self._lock.notify_all()
        if self._pump is None or not self._pump.is_alive():
            self._pump = threading.Thread(target=self._run_pump, name="tape clock", daemon=True)
            # a thread of ours takes no number among the program's
            contextvars.Context().run(self._pump.start)

    def _run_pump(self) -> None:
        gap = _GAPS[0]
        while (version := self._await_deadline()) is not None:
            quiet = self.jumps and self._quiet()
            with self._lock:
                same = version == self._schedule.version
                due = self._release_deadline(quiet=quiet and same)
                if due is None and same:
                    self._lock.wait(gap)
                    gap = min(gap * 1.5, _GAPS[1])
            if due is not None:
                gap = _GAPS[0]
                due.wake()

    def _release_deadline(self, *, quiet: bool) -> Deadline | None:
        if self.closed:
            return None
        return self._schedule.release(
            quiet=quiet,
            real=monotonic(),
            computed=others_time() / 1e9,
            runs_on=getattr(self._quiet, "runs_on", False),
        )

    def _await_deadline(self) -> int | None:
        """The heap's version once something is on it; None when the pump is no longer needed."""
        with self._lock:
            self._lock.wait_for(lambda: self.closed or self._schedule.first() is not None, _IDLE)
            if self.closed or self._schedule.first() is None:
                self._pump = None
                return None
            return self._schedule.version

    # ------------------------------------------------------------ while a person thinks

    def pause_deadlines(self) -> None:
        """A call of the cell waits for a person: what waits on the tape's time now waits on until
        `resume_deadlines`.

        What is put on the heap meanwhile is not held: somebody else's strand may go on.
        """
        with self._lock:
            self._held_deadlines += [(due, monotonic()) for due in self._schedule.drain()]

    def resume_deadlines(self) -> None:
        """Nobody waits for a person any more. Real limits are later by the time that passed."""
        with self._lock:
            deadlines, self._held_deadlines = self._held_deadlines, []
            for due, since in deadlines:
                due.limit += monotonic() - since
                if not self.closed:
                    self._add_deadline(due)

    def close(self) -> None:
        """The cell is over: who still waits goes on in real time."""
        with self._lock:
            self.closed = True
            self._look_no_more()
            if self.order is not None:
                self.order.close()
            left = [*self._schedule.drain(), *(due for due, _ in self._held_deadlines)]
            now = self._schedule.now
            self._held_deadlines = []
            self._lock.notify_all()
        for due in left:
            if due.on_early_end is None:
                due.wake()
            else:
                due.on_early_end(max(0.0, (due.when - now) / 1e9))


def _resolve_future(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _call_threadsafe(loop: asyncio.AbstractEventLoop, call: Callable[..., Any], *args: Any) -> None:
    """Run it in a loop, if there still is one."""
    try:
        loop.call_soon_threadsafe(call, *args, context=contextvars.Context())
    except RuntimeError:
        if not loop.is_closed():
            raise


def _list_children() -> frozenset[str]:
    """Child processes that run; empty where the system does not tell."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, ChildProcessError):
        return frozenset()
    return frozenset(
        pid
        for task in Path("/proc/self/task").glob("*/children")
        for pid in _read_words(task)
        if _is_running(pid)
    )


def _read_words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []


def _is_running(pid: str) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="ascii", errors="replace")
            .rpartition(")")[2][1:2]
            != "Z"
        )
    except OSError:
        return False
