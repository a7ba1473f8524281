"""Carries who is calling (core/context.py) into threads, executors and tasks. Nothing is decided
here.

Threads do not inherit context variables, and a pool's workers outlive the work they were started
for: so each thread and each work item carries a strand, named by the function that it runs and
numbered among those that run the same: LangGraph submits its waiting function a number of times
that hangs on the clock, and its nodes keep their names. Only our own variables travel; the
program's keep the rules Python gives them (a copied context would change `decimal`'s).

Tasks of another event loop than asyncio's own (uvloop) take no number: they inherit their parent's
strand.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import itertools
import sys
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any

from tape_jupyter.core.context import BODY, CALLED_AS, ORIGIN, PARENT, SENDING, SPAN, Origin
from tape_jupyter.core.libraries import is_library_file
from tape_jupyter.instrumentation.patching import swap, undoing

_CARRIED: tuple[ContextVar[Any], ...] = (SPAN, PARENT, SENDING, CALLED_AS, BODY)


_Thread: Any = next(
    each for each in type.mro(type(threading.main_thread())) if each.__name__ == "Thread"
)
"""Python's own: what a program or gevent has put in its place is derived from it, or makes it."""


def patch() -> Callable[[], None]:
    """Tap thread starts, executor submits and task creation. Returns the undo."""
    return undoing(
        swap(_Thread, "start", _wrap_start),
        swap(ThreadPoolExecutor, "submit", _wrap_submit),
        swap(threading.Condition, "wait", _wrap_wait),
        swap(asyncio.BaseEventLoop, "create_task", _wrap_create_task),
        swap(asyncio, "as_completed", _wrap_as_completed),
        swap(asyncio, "wait", _wrap_async_wait),
        swap(asyncio.Runner, "run", _wrap_run),
    )


STARTED: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""Threads that code of a taped cell started; a library may keep them for work of later cells."""


_WORK: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""Threads, futures and tasks that bodies of taped functions started and that run code of the
user's, with what hears of that body, and the code.
"""


def going_on(body: Any) -> list[str]:
    """What a body started that has not ended: the function's name, and what of the program it uses."""
    mine = [(work, code) for work, (by, code) in list(_WORK.items()) if by is body]
    return [
        f"{code.co_name} ({', '.join([*code.co_freevars, *code.co_names])})"
        for work, code in mine
        if not (work.done() if hasattr(work, "done") else not work.is_alive())
    ]


def _note_work(work: Any, runs: Any) -> None:
    body = BODY.get()
    if body is None:
        return
    while isinstance(runs, functools.partial):
        runs = runs.func
    code = getattr(runs, "__code__", None) or getattr(runs, "cr_code", None)
    if code is not None and not is_library_file(code):
        _WORK[work] = body, code


def settle_origin() -> Origin | None:
    """Correct ORIGIN where a work item runs in a context copied from its submitter; gives what it
    is.

    `asyncio.to_thread` and LangChain's executors run each item in a copy of the submitter's
    context, which hides the item's own strand behind the submitter's. A tap calls this before it
    asks the tape.
    """
    item, origin = _running.strand, ORIGIN.get()
    if item is None or origin is not item.submitter:
        return origin
    ORIGIN.set(item.origin)
    return item.origin


class Strand:
    """What one thread or work item carries, taken where it is started."""

    __slots__ = ("carried", "origin", "submitter", "ticket")

    def __init__(self, submitter: Origin, name: str = "", kind: str = "") -> None:
        self.submitter, self.origin = submitter, submitter.spawn(name, kind=kind)
        self.carried = [(variable, variable.get()) for variable in _CARRIED]
        self.ticket = _take_ticket(self.clock)

    def child(self) -> Strand:
        """A strand below this one, with what this one carries."""
        child = copy.copy(self)
        child.submitter, child.origin = self.origin, self.origin.spawn()
        child.ticket = _take_ticket(self.clock)
        return child

    def begins(self) -> None:
        """Before its work, held: it goes on once the others wait (determinism/order.py)."""
        if (clock := self.clock) is not None and not SENDING.get():
            clock.begin(self.ticket, self.origin.lineage)

    @property
    def clock(self) -> Any | None:
        """The clock of the cell, where there is one: it looks at the threads that the cell's code
        runs in.
        """
        return _find_clock(self.origin)

    @contextmanager
    def starting(self) -> Iterator[list[threading.Thread]]:
        """While a thread or a work item is started; takes the threads that may run it."""
        threads: list[threading.Thread] = []
        clock = self.clock
        if clock is None:
            yield threads
            return
        clock.starting.append(self)
        try:
            yield threads
        finally:
            clock.threads.update(threads)
            clock.starting.remove(self)

    @contextmanager
    def activate_strand(self) -> Iterator[None]:
        """The variables of this strand, in whatever context the worker has; taken back at the end."""
        tokens = [(ORIGIN, ORIGIN.set(self.origin))]
        tokens += [(variable, variable.set(value)) for variable, value in self.carried]
        outer = _running.strand
        _running.strand = self
        if (clock := self.clock) is not None:
            clock.threads.add(threading.current_thread())
        try:
            yield
        finally:
            _running.strand = outer
            for variable, token in reversed(tokens):
                variable.reset(token)


def _find_clock(origin: Origin | None) -> Any | None:
    return getattr(origin.pins, "clock", None) if origin is not None else None


def _take_ticket(clock: Any | None) -> int:
    """The place among what the cell hands to threads."""
    return 0 if clock is None else int(clock.turns.ticket())


def let_act() -> None:
    """Wait for what another thread makes of what it was given by this one."""
    origin = ORIGIN.get()
    clock = _find_clock(origin)
    # an event loop is never blocked
    if clock is not None and asyncio.events._get_running_loop() is None:  # noqa: SLF001
        clock.let_act()


class _Running(threading.local):
    """What this thread runs. A default of the class: that of `getattr` costs an exception at each
    clock reading.
    """

    strand: Strand | None = None
    runner: Any = None
    """The context of the `asyncio.Runner` that is about to start its main task."""


_running = _Running()


def create_strand(name: str = "", *, kind: str = "") -> Strand | None:
    """A new strand of the code that runs now, which runs a function of that name; None outside
    taped cells.
    """
    settle_origin()
    origin = ORIGIN.get()
    return None if origin is None else Strand(origin, name, kind)


def function_name(function: Any, args: tuple[Any, ...] = ()) -> str:
    """The name of the function that really runs, where `function` is called with `args`; "" for
    what has none.

    What only carries a function is looked through: a partial, a method, the `run` of a context
    (LangChain's executors), what OpenTelemetry puts around it, over our stand-in or under it.
    """
    for _ in range(_WRAPPED):
        if isinstance(function, functools.partial):
            function, args = function.func, (*function.args, *args)
        elif args and isinstance(getattr(function, "__self__", None), Context):
            function, args = args[0], args[1:]
        elif inspect.isfunction(function) and function.__module__ == _OPENTELEMETRY:
            function = inspect.getclosurevars(function).nonlocals.get("original_func", function)
        else:
            break
    return _read_name(function)


_WRAPPED = 5
_OPENTELEMETRY = "opentelemetry.instrumentation.threading"


def _read_name(runs: Any) -> str:
    """Of a function or a coroutine. Not its code's: a taped function has ours."""
    name = getattr(runs, "__name__", "")
    return name.strip("<>") if isinstance(name, str) else ""


def _find_thread_name(thread: threading.Thread) -> str:
    """What a thread runs: its target, a timer's function, else what its class is for."""
    runs = getattr(thread, "_target", None) or getattr(thread, "function", None)
    if runs is not None:
        return function_name(runs, getattr(thread, "_args", ()))
    return type(thread).__name__


def _find_library_class(thread: threading.Thread) -> str:
    """A library's own class of threads: whether one is started (tqdm's monitor, anyio's idle
    workers) hangs on what the process did before this cell.
    """
    thread_class = type(thread)
    file = getattr(sys.modules.get(thread_class.__module__), "__file__", None) or ""
    return thread_class.__name__ if "-packages" in file else ""


def _wrap_start(original: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    @functools.wraps(original)
    def start_taped(thread: threading.Thread) -> None:
        strand = create_strand(_find_thread_name(thread), kind=_find_library_class(thread))
        if strand is None:
            return original(thread)
        run = thread.run

        def run_in_strand() -> None:
            del thread.run  # the instance attribute set below, and with it a cycle
            with strand.activate_strand():
                strand.begins()
                run()

        thread.run = run_in_strand  # type: ignore[method-assign]
        with _clear_origin(), strand.starting() as threads:  # it waits until the thread is there
            original(thread)
            threads.append(thread)
            STARTED.add(thread)
        _note_work(thread, getattr(thread, "_target", None) or getattr(thread, "function", None))
        return None

    return start_taped


@contextmanager
def _clear_origin() -> Iterator[None]:
    """What runs here is not the program's own doing."""
    token = ORIGIN.set(None)
    try:
        yield
    finally:
        ORIGIN.reset(token)


class TapedFuture(Future[Any]):
    """One of a taped cell. `wait` gives futures in sets, and `as_completed` keeps them in one: their
    order is by address, another one in every run, but by the strand for these.
    """

    strand: str

    @classmethod
    def adopt(cls, future: Any, strand: str) -> None:
        future.__class__, future.strand = cls, strand

    def __hash__(self) -> int:
        return zlib.crc32(self.strand.encode())


def _wrap_submit(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def submit_taped(
        pool: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        strand = create_strand(function_name(fn, args))
        if strand is None:
            return original(pool, fn, *args, **kwargs)

        @functools.wraps(fn, assigned=(), updated=())
        def item(*args: Any, **kwargs: Any) -> Any:
            with strand.activate_strand():
                strand.begins()
                return fn(*args, **kwargs)

        # The pool may start a worker, which is nobody's: only its items are.
        with _clear_origin(), strand.starting() as threads:
            future = original(pool, item, *args, **kwargs)
            threads.extend(pool._threads)  # noqa: SLF001 - whoever may run it
        if type(future) is Future:
            TapedFuture.adopt(future, strand.origin.lineage)
        _note_work(future, fn)
        return future

    return submit_taped


def _wrap_wait(original: Callable[..., bool]) -> Callable[..., bool]:
    """Events, queues, futures and semaphores all wait in here."""

    @functools.wraps(original)
    def wait_taped(condition: threading.Condition, timeout: float | None = None) -> bool:
        ended = original(condition, timeout)
        origin = ORIGIN.get()
        if origin is None or SENDING.get() or (clock := _find_clock(origin)) is None:
            return ended
        item = _running.strand
        # Not with the lock: whoever else waited for it is held as well, or it would be chance which
        # of them got it first.
        state = condition._release_save()  # type: ignore[attr-defined]  # noqa: SLF001
        try:
            clock.wake(-1 if item is None else item.ticket, origin.lineage)
        finally:
            condition._acquire_restore(state)  # type: ignore[attr-defined]  # noqa: SLF001
        return ended

    return wait_taped


def _wrap_create_task(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create_task(loop: Any, coro: Any, **kwargs: Any) -> Any:
        origin = settle_origin()
        if origin is None or _is_finalizer(coro):
            return original(loop, coro, **kwargs)
        context: Context | None = kwargs.get("context")
        if context is not None:
            if _is_for_task(context, origin):
                context.run(ORIGIN.set, _begin_task(origin, coro))
            return _number_task(original(loop, coro, **kwargs))
        token = ORIGIN.set(_begin_task(origin, coro))  # a task copies the context it is created in
        try:
            task = original(loop, coro, **kwargs)
        finally:
            ORIGIN.reset(token)
        _note_work(task, coro)
        return _number_task(task)

    return create_task


_TASKS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
"""Tasks of taped cells, numbered in the order of creation."""
_task_numbers = itertools.count()


def _number_task(task: Any) -> Any:
    _TASKS[task] = next(_task_numbers)
    return task


class _TaskSet(set[Any]):
    """Tasks, in the order of their creation where a plain set has them by address."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=lambda task: _TASKS.get(task, -1)))

    def pop(self) -> Any:
        for task in self:
            self.remove(task)
            return task
        return super().pop()


def _wrap_async_wait(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def wait(fs: Any, **kwargs: Any) -> tuple[set[Any], set[Any]]:
        done, pending = await original(fs, **kwargs)
        if ORIGIN.get() is None:
            return done, pending
        return _TaskSet(done), _TaskSet(pending)

    return wait


def _begin_task(origin: Origin, coro: Any) -> Origin:
    """The strand of a task that this one makes."""
    strand = origin.spawn(_read_name(coro))
    order = getattr(_find_clock(origin), "order", None)
    if order is not None:
        order.begin_task(strand.lineage)
    return strand


def _is_for_task(context: Context, origin: Origin) -> bool:
    """Whether a context is one for this task alone, as LangGraph makes them: without a strand, or a
    copy of ours.

    One of the program's own keeps what it says, and a runner's main task is the strand that started
    it.
    """
    before = context.get(ORIGIN)
    return before is None or (
        before is origin and not origin.counted and context is not _running.runner
    )


def _wrap_as_completed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def as_completed(fs: Any, **kwargs: Any) -> Any:
        if ORIGIN.get() is None or asyncio.iscoroutine(fs) or asyncio.isfuture(fs):
            return original(fs, **kwargs)
        # It keeps what it is given in a set, and makes the tasks in the set's order: by address,
        # new in every run.
        return original([asyncio.ensure_future(each) for each in dict.fromkeys(fs)], **kwargs)

    return as_completed


def _wrap_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run_taped(runner: asyncio.Runner, coro: Any, *, context: Context | None = None) -> Any:
        runner.get_loop()  # makes the runner's own context, which it keeps from one run to the next
        kept: Any = context if context is not None else runner._context  # type: ignore[attr-defined]  # noqa: SLF001
        now, before = ORIGIN.get(), kept.get(ORIGIN)
        if before is not None and (now is None or now.cell is not before.cell):
            kept.run(ORIGIN.set, now)
        outer, _running.runner = _running.runner, kept
        try:
            return original(runner, coro, context=context)
        finally:
            _running.runner = outer

    return run_taped


def _is_finalizer(coro: Any) -> bool:
    """The loop's own task that closes a dropped async generator: garbage collection decides when,
    so no number.
    """
    return type(coro).__name__ == "async_generator_athrow"
