"""Timers of asyncio's event loops: `call_later`, `call_at`, `time`, and the moment a loop is about
to block.

`asyncio.sleep`, `wait_for`, `timeout`, anyio's scopes and retry loops all end in these three. Only
timers set by user code, or by asyncio and anyio for it, go onto the tape's heap; the loop's own and
Jupyter's stay in the loop. A loop of the cell that is about to block asks the cell's clock first
whether time can move instead.

While hand-overs are recorded, such timers stay in their loop and tell when they go off
(determinism/order.py). `threading.Timer` does as they do.

Loops that are not asyncio's own (uvloop) keep real time.
"""

from __future__ import annotations

import asyncio
import functools
import math
import threading
import time
from asyncio import events
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any

from tape_jupyter.core.context import is_body
from tape_jupyter.instrumentation.determinism import clock_callers
from tape_jupyter.instrumentation.patching import swap, undoing

_FOR_OTHERS = ("asyncio.tasks", "asyncio.timeouts", "asyncio.staggered")
"""Modules of asyncio whose timers are their caller's."""

_FOREVER = 1e9
"""Seconds, some thirty years: a sleep without end (anyio's sleep_forever) stays in the loop, as
nothing wakes it.
"""


def patch() -> Callable[[], None]:
    """Tap the loops' timers. Returns the undo."""
    loop = asyncio.BaseEventLoop
    return undoing(
        swap(loop, "call_later", _wrap_call_later),
        swap(loop, "call_at", _wrap_call_at),
        swap(loop, "time", _wrap_time),
        swap(threading.Timer, "run", _wrap_timer_run),
    )


def count_files(clock: Any) -> None:
    """Tell `clock` how many files the loop that runs here listens to before the cell begins."""
    loop: Any = events._get_running_loop()  # noqa: SLF001 - the one that does not raise
    selector = _find_selector(loop)
    if selector is not None:
        # which thread runs it
        clock.files[loop._thread_id] = len(selector.get_map() or ())  # noqa: SLF001


def watch_loop(loop: Any, clock: Any) -> bool:
    """Let a loop ask `clock` before it blocks, until the clock's cell is over; false where this
    loop cannot.
    """
    selector = _find_selector(loop)
    if selector is None:
        return False
    watcher = vars(selector).get("select")
    if not isinstance(watcher, _SelectorHook):
        watcher = selector.select = _SelectorHook(selector)
    if clock not in watcher.clocks:
        watcher.clocks.append(clock)
    return True


def _find_selector(loop: Any) -> Any | None:
    selector = getattr(loop, "_selector", None)
    return selector if hasattr(selector, "get_map") else None


class _SelectorHook:
    """Before one selector's `select`: a loop calls it with a timeout when it has nothing to run."""

    def __init__(self, selector: Any) -> None:
        self._selector, self._select = selector, selector.select
        self.clocks: list[Any] = []

    def __call__(self, timeout: float | None = None) -> Any:
        self.clocks = [clock for clock in self.clocks if not clock.closed]
        if not self.clocks:
            vars(self._selector).pop("select", None)
        if timeout is not None and timeout <= 0:
            for clock in self.clocks:
                clock.spins(self._selector)
            return self._select(timeout)
        if not self.clocks:
            return self._select(timeout)
        for clock in self.clocks:
            if clock.rest(self._selector):
                return self._select(0)
        if not any(clock.waits for clock in self.clocks):
            return self._select(timeout)
        ready = self._select(0)
        if ready or any(clock.idle(self._selector) for clock in self.clocks):
            return ready
        return self._select(timeout)


def _find_caller_clock() -> Any | None:
    """The clock of the cell whose code sets a timer by calling the caller of this; None where it is
    not the tape's.
    """
    if _is_loops_own(clock_callers.module_of(2)):
        return None
    clock = clock_callers.clock_here()
    return clock if clock is not None and (clock.sleeps or clock.order is not None) else None


def _is_loops_own(module: Any) -> bool:
    """Whether timers that this module sets are no program's: a loop's `call_later` asks its own
    `time` and `call_at`, which comes by here again.
    """
    return clock_callers.is_plumbing(module) and not str(module).startswith(_FOR_OTHERS)


def _wrap_call_later(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call_later(
        loop: Any, delay: Any, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        if isinstance(delay, int | float) and delay < _FOREVER:
            clock = _find_caller_clock()
        else:
            clock = None
        if clock is None:
            return original(loop, delay, callback, *args, context=context)
        if clock.order is not None:
            wrapper = _TimerCallback(clock.order, loop, callback, args)
            wrapper.timer = original(loop, delay, wrapper, context=context)
            return wrapper.timer
        return _make_timer(loop, clock, max(0.0, delay), callback, args, context)

    return call_later


def _wrap_call_at(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call_at(
        loop: Any, when: Any, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        if isinstance(when, int | float) and when < _FOREVER:
            clock = _find_caller_clock()
        else:
            clock = None
        if clock is None:
            return original(loop, when, callback, *args, context=context)
        if clock.order is not None:
            wrapper = _TimerCallback(clock.order, loop, callback, args)
            wrapper.timer = original(loop, when, wrapper, context=context)
            return wrapper.timer
        return _make_timer(loop, clock, max(0.0, when - clock.loop_time()), callback, args, context)

    return call_at


class _TimerCallback:
    """What the loop calls in place of a timer's callback, `timer`: it tells when it goes off. A tool's
    body does not run in replay: its timers wait their turn, and have no place in the order.
    """

    __slots__ = ("args", "callback", "loop", "number", "order", "strand", "timer")

    def __init__(self, order: Any, loop: Any, callback: Any, args: tuple[Any, ...]) -> None:
        self.order, self.loop, self.callback, self.args = order, loop, callback, args
        self.strand = clock_callers.strand_here()
        self.number = None if is_body(self.strand) else order.number_timer(self.strand)
        self.timer: Any = None

    def __call__(self) -> None:
        # A task that is about to run may have got what this timer is a deadline of: in replay, where
        # timers go off when nothing else can run, it goes on first.
        if self.order.is_busy(self.strand) or self.order.runs_on():
            self.order.call_when_idle(self.later)
        else:
            self._note_order(together=False)
            self.callback(*self.args)

    def _note_order(self, *, together: bool) -> None:
        if self.number is not None:
            self.order.note_timer(self.strand, self.number, together=together)

    def later(self, rested: bool) -> bool:
        if self.timer.cancelled() or self.loop.is_closed():
            return False
        self._note_order(together=not rested)
        # its own
        self.loop.call_soon(self.callback, *self.args, context=self.timer._context)  # noqa: SLF001
        return True


def _wrap_timer_run(
    original: Callable[[threading.Timer], None],
) -> Callable[[threading.Timer], None]:
    @functools.wraps(original)
    def run_timer(timer: threading.Timer) -> None:
        clock = clock_callers.clock_here()
        if clock is None or not (clock.sleeps or clock_callers.notes_order(clock)):
            return original(timer)
        lineage = clock_callers.strand_here()
        if clock.order is None:
            fires = clock.ring(timer.interval, timer.finished, lineage)
            timer.finished.clear()
        else:
            name = clock.order.timer(lineage)
            timer.finished.wait(timer.interval)
            together = not clock.order.turn()
            if fires := not timer.finished.is_set():
                clock.order.note(name, lineage, together=together)
        if fires:
            timer.function(*timer.args, **timer.kwargs)
        timer.finished.set()
        return None

    return run_timer


def _wrap_time(original: Callable[[Any], float]) -> Callable[[Any], float]:
    @functools.wraps(original)
    def loop_time(loop: Any) -> float:
        module = clock_callers.module_of(1)
        if _is_loops_own(module) or (clock := clock_callers.clock_here()) is None:
            return original(loop)
        if not _sets_deadlines(module):
            reading = clock_callers.read_clock("monotonic")
        elif _is_asked_by_program():
            reading = clock_callers.read_clock("monotonic", between=2)
        elif clock.sleeps:
            return float(clock.loop_time())
        else:
            now = original(loop)
            return now if clock.order is None else float(clock.order.time_of_step(now))
        return original(loop) if reading is None else reading * 1e-9

    return loop_time


def _sets_deadlines(module: Any) -> bool:
    return str(module).startswith((*_FOR_OTHERS, "anyio"))


def _is_asked_by_program() -> bool:
    """Whether the program asked anyio what time it is: two functions of anyio's hand that on to the
    caller of this.
    """
    return clock_callers.module_of(3) == "anyio._core._eventloop" and not _sets_deadlines(
        clock_callers.module_of(4)
    )


def _make_timer(
    loop: Any,
    clock: Any,
    delay: float,
    callback: Any,
    args: tuple[Any, ...],
    context: Context | None,
) -> events.TimerHandle:
    """A handle as the loop gives one, that is not in the loop's own heap. `cancel()` works: the
    clock forgets it.
    """
    loop._check_closed()  # noqa: SLF001 - as the loop itself does
    handle = events.TimerHandle(clock.loop_time() + delay, callback, args, loop, context)
    # Rounded up: anyio and others look at the time when they wake, and sleep on where it is not
    # quite that yet.
    due = clock.now() + math.ceil(delay * 1e9) + 1
    wake, late = partial(_schedule_soon, loop, handle), partial(_reschedule_timer, loop, handle)
    clock.add_timer(
        due,
        time.monotonic() + delay,
        wake,
        handle.cancelled,
        late,
        loop,
        clock_callers.strand_here(),
    )
    return handle


def _schedule_soon(loop: Any, handle: events.TimerHandle) -> None:
    if not loop.is_closed():
        # what call_soon_threadsafe does with a handle of its own
        loop._add_callback_signalsafe(handle)  # noqa: SLF001


def _reschedule_timer(loop: Any, handle: events.TimerHandle, seconds: float) -> None:
    """The cell ended before the timer was due: it goes off after what is left, in real time."""
    if not handle.cancelled():
        loop.call_later(seconds, _run_handle, handle)


def _run_handle(handle: events.TimerHandle) -> None:
    if not handle.cancelled():
        handle._run()  # noqa: SLF001 - as the loop does
