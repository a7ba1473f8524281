"""Attempts on an executor: any `concurrent.futures.Executor`, processes of this machine by itself.

A few attempts a worker are handed out at a time, so that the parent's memory does not grow with the
sweep. Where workers die (a pool of processes is then broken) a new executor goes on with what has
no row yet; an attempt under which workers died several times is a row that says so.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from typing import Any, Protocol

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.sweep import worker
from tape_jupyter.experiments.sweep.attempt import Attempt, RowWriteError, lost
from tape_jupyter.experiments.sweep.store import Row, RowStore

AHEAD = 2
"""Attempts that are handed out for each worker."""
DEATHS = 5
"""Times that workers may die under an attempt, or beside it, before it is given up."""
PATIENCE = 60.0
"""Seconds in which a scheduler that is gone may come again."""
_LOOK = 5.0
"""Seconds after which an executor is asked whether it still is one."""


class Workers(Protocol):
    """What makes executors, and how many workers they have."""

    count: int

    def executor(self) -> Executor:
        """A new one, or the one that there is. Raises TapeUsageError."""

    def broken(self) -> bool:
        """Whether the last one is of no use any more."""


class Processes:
    """Processes of this machine."""

    def __init__(self, count: int) -> None:
        self.count = count

    def executor(self) -> Executor:
        return ProcessPoolExecutor(self.count, _prepare_context(), initializer=worker.start_worker)

    def broken(self) -> bool:
        return False  # its futures say so


def _prepare_context() -> BaseContext:
    """How processes are started: from one that has imported what they need, where there is that."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([worker.__name__])
    with _ignore_interrupts():
        forkserver.ensure_running()
    return context


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """What is started meanwhile does not hear of Ctrl-C, which a terminal sends to all of its
    processes: the parent ends them, and only it says so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class BorrowedExecutor:
    """An executor that somebody else made, and that is theirs to close."""

    def __init__(self, executor: Executor, count: int) -> None:
        self._executor, self.count = executor, count

    def executor(self) -> Executor:
        return self._executor

    def broken(self) -> bool:
        return False


def given_executor(workers: Any) -> BorrowedExecutor:
    """An executor, or a client of Dask with as many workers as it has now. Raises TapeUsageError for
    what is neither.
    """
    if isinstance(workers, Executor):
        return BorrowedExecutor(workers, int(getattr(workers, "_max_workers", 0)) or 2)
    if not hasattr(workers, "get_executor"):
        kind = type(workers).__name__
        raise TapeUsageError(f"workers: a {kind} is not an executor and no client of Dask")
    count = len(workers.scheduler_info(n_workers=-1)["workers"]) or 1
    return BorrowedExecutor(workers.get_executor(pure=False), count)


class Dask:
    """Workers of a Dask scheduler that was started separately."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Any = None
        self.count = 1
        self._seen = time.monotonic()
        """When the scheduler was seen to have workers."""

    def executor(self) -> Executor:
        began = time.monotonic()
        while self._client is None or self.broken():
            try:
                self._client = self._connect_client()
            except TapeUsageError:
                if not self._client or time.monotonic() - began > PATIENCE:
                    raise
                time.sleep(1)
        self.count = len(self._client.scheduler_info(n_workers=-1)["workers"]) or 1
        self._seen = time.monotonic()
        executor: Executor = self._client.get_executor(pure=False)
        return executor

    def _connect_client(self) -> Any:
        try:
            client_of = importlib.import_module("distributed").Client
        except ImportError:
            raise TapeUsageError(
                f"--workers {self._address}: Dask is not installed here: pip install 'tape-jupyter[dask]'"
            ) from None
        try:
            return client_of(self._address, timeout="10s", set_as_default=False)
        except Exception as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TapeUsageError(
                f"--workers {self._address}: the scheduler cannot be reached: {why}"
            ) from None

    def broken(self) -> bool:
        """Raises TapeUsageError for a scheduler that has had no workers for so long that none are
        likely to come.
        """
        if self._client is None or self._client.status not in ("running", "connecting"):
            return self._client is not None
        if time.monotonic() - self._seen > _LOOK:
            self._check_workers()
        return False

    def _check_workers(self) -> None:
        with suppress(OSError, TimeoutError):  # it is gone: the next look says so
            if self._client.scheduler_info(n_workers=1)["workers"]:
                self._seen = time.monotonic()
        if time.monotonic() - self._seen > PATIENCE:
            raise TapeUsageError(
                f"--workers {self._address}: the scheduler has had no workers for {PATIENCE:.0f} s. The rows that are "
                "there stay; start workers, and say the same again"
            )

    def close(self) -> None:
        if self._client is not None:
            with suppress(Exception):  # a scheduler that is gone meanwhile
                self._client.close(timeout=5)


@contextmanager
def workers_of(text: str) -> Iterator[Workers]:
    """What `--workers` means: a number of processes ("": one for each core), or the address of a
    Dask scheduler. Raises TapeUsageError.
    """
    if "://" not in text:
        yield Processes(_parse_count(text))
        return
    scheduler = Dask(text)
    scheduler.executor()
    try:
        yield scheduler
    finally:
        scheduler.close()


def _parse_count(text: str) -> int:
    if not text:
        have = getattr(os, "sched_getaffinity", None)
        return len(have(0)) if have else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise TapeUsageError(
            f"--workers {text}: say how many processes, or where a Dask scheduler is (tcp://HOST:PORT)"
        )
    return int(text)


def run_jobs(
    jobs: Iterable[Attempt], store: RowStore, workers: Workers, done: Callable[[Row], None]
) -> None:
    """Have a row of each; `done` hears of it once it is in the store. On Ctrl-C what is done stays
    and what is under way is ended. Raises TapeUsageError where rows cannot be kept, or there are no
    workers.
    """
    _Engine(store, workers, done).run(iter(jobs))


class _Engine:
    def __init__(self, store: RowStore, workers: Workers, done: Callable[[Row], None]) -> None:
        self._store, self._workers, self._done = store, workers, done
        self._deaths: Counter[str] = Counter()
        self._again: list[Attempt] = []

    def run(self, jobs: Iterator[Attempt]) -> None:
        while True:
            executor = self._workers.executor()
            is_local = isinstance(executor, ProcessPoolExecutor) and not isinstance(
                self._workers, BorrowedExecutor
            )
            try:
                if self._run_on_executor(executor, jobs):
                    return
            except BaseException:
                if is_local:
                    _end_workers(executor)
                raise
            finally:
                if is_local:
                    executor.shutdown(wait=False, cancel_futures=True)

    def _run_on_executor(self, executor: Executor, jobs: Iterator[Attempt]) -> bool:
        """Run on one executor; False where it is broken, and another must go on."""
        waiting: dict[Future[Row], Attempt] = {}
        capacity = max(1, self._workers.count) * AHEAD
        broken = False
        while True:
            while not broken and len(waiting) < capacity:
                job = self._again.pop(0) if self._again else next(jobs, None)
                if job is None:
                    break
                try:
                    waiting[executor.submit(worker.run_attempt, job)] = job
                except Exception:  # broken, or shut down; each kind has its own
                    self._again.append(job)
                    broken = True
            if not waiting:
                return not broken
            finished, _ = wait(waiting, _LOOK, FIRST_COMPLETED)
            for future in finished:
                broken = self._settle_attempt(future, waiting.pop(future)) or broken
            if self._workers.broken():
                self._again += waiting.values()
                return False

    def _settle_attempt(self, future: Future[Row], job: Attempt) -> bool:
        """Take a row, or hand the attempt out again; gives whether the executor is broken."""
        try:
            error = future.exception()
        except CancelledError:  # a scheduler that is gone: no fault of the attempt
            self._again.append(job)
            return True
        if error is None:
            self._done(future.result())
            return False
        if isinstance(error, RowWriteError):
            raise error
        self._deaths[job.key] += 1
        if self._deaths[job.key] < DEATHS:
            self._again.append(job)
        else:
            row = lost(job, f"workers died under it: {type(error).__name__}")
            self._store.put_row(job.key, row)
            self._done(row)
        return isinstance(error, RuntimeError)


def _end_workers(executor: Executor) -> None:
    """Have the workers of a pool of processes end now, and not when their attempts are done."""
    processes = list((getattr(executor, "_processes", None) or {}).values())
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(4)
        process.kill()
