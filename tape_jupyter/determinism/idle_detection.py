"""Can anything of a cell still run? Looks at its threads; changes nothing, patches nothing.

Quiet means that each thread of the cell waits in the kernel for another thread (a lock, a queue, a
condition), or sits in an idle event loop, and that in several looks a moment apart none has burnt
processor time. A thread that reads a socket, waits for a process or computes is not quiet: then
nobody's time may jump.

On Linux the kernel says which system call a thread sleeps in (/proc/self/task/*/syscall: "running",
or the number of the call and its arguments), which tells a thread that was woken but has no
processor yet from one that waits: under load that decides. One that waits for the interpreter's
lock waits at an address within the interpreter's own state, and runs as soon as it gets that lock.
Elsewhere only the Python frame and the process's time can be looked at, so the looks lie further
apart. `time.pthread_getcpuclockid` is no way: on a thread that has just ended it crashes the process
(CPython 3.11).
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from time import sleep  # not the stand-in that programs get
from types import FrameType
from typing import Any

_WAITS = (
    "/threading.py",
    "/queue.py",
    "/concurrent/futures/thread.py",
    "/concurrent/futures/_base.py",
)
# numbers of Linux's tables: waiting for another thread (futex), waiting for files (poll, epoll,
# select)
_CALLS = {
    "x86_64": (
        frozenset({"202", "449", "455"}),
        frozenset({"232", "281", "441", "23", "270", "7", "271"}),
    ),
    "aarch64": (frozenset({"98", "449", "455"}), frozenset({"22", "441", "72", "73"})),
}
_BURNT = 150_000
"""Nanoseconds that threads outside the cell (the kernel's heartbeat) may burn between two looks."""


class Quiet:
    """Looks at the threads of one cell. `loops`: how many files the event loop of a thread had of
    its own.
    """

    def __init__(
        self, threads: Callable[[], Iterable[threading.Thread] | None], files: Callable[[int], int]
    ) -> None:
        self._threads, self._files = threads, files
        self._calls = (
            _CALLS.get(platform.machine()) if sys.platform == "linux" and _is_told() else None
        )
        self._gap = 0.0003 if self._calls else 0.004
        self._files_of = _Files()
        self.runs_on = False
        """Whether, at the last look, a thread ran or was about to: one that waits for anything at
        all does not.
        """

    def __call__(self, looks: int = 3) -> bool:
        self.runs_on = False
        first = self._look()
        for _ in range(looks - 1):
            if first is None:
                return False
            burnt = others_time()
            sleep(self._gap)
            if self._look() != first or others_time() - burnt > _BURNT:
                self.runs_on = True
                return False
        return first is not None

    def active(self, threads: Iterable[threading.Thread], looks: int) -> int | None:
        """The first that does not wait for anything: a file, a socket, a lock. None where the
        system does not tell.

        What none has burnt between two looks nobody can have woken.
        """
        threads = [each for each in threads if each.is_alive()]
        if self._calls is None or not threads:
            return None
        burnt: dict[int, bytes] = {}
        for look in range(looks):
            if look:
                sleep(0)
            for thread in threads:
                ident, now = thread.ident or 0, self._burnt(thread)
                if now is not None and (not now or burnt.setdefault(ident, now) != now):
                    return ident
        return None

    def runs(self, thread: threading.Thread) -> bool:
        """Whether a thread runs at this moment, as far as the system tells."""
        try:
            return bool(self._calls) and _read(_native_id(thread), "syscall").startswith("running")
        except OSError:
            return False

    def _burnt(self, thread: threading.Thread) -> bytes | None:
        """What a thread has burnt so far; b"" for one that runs, None for one that has ended."""
        try:
            call = self._files_of.read(thread, "syscall")
            if call.startswith(b"running") or _waits_to_run(call):
                return b""
            return self._files_of.read(thread, "schedstat").split(maxsplit=1)[0]
        except (OSError, IndexError):
            return None

    def close(self) -> None:
        """Nobody is looked at any more."""
        self._files_of.close()

    def _look(self) -> list[tuple[Any, ...]] | None:
        frames: dict[int, FrameType] = {}
        seen = []
        threads = self._threads()
        for thread in threads or ():
            if not thread.is_alive():
                continue
            one = self._by_calls(thread, frames) if self._calls else self._by_frames(thread, frames)
            if one is None:
                return None
            seen.append(one)
        return None if threads is None else sorted(seen)

    def _by_calls(
        self, thread: threading.Thread, frames: dict[int, FrameType]
    ) -> tuple[Any, ...] | None:
        assert self._calls is not None
        for_threads, for_files = self._calls
        try:
            told = _read(_native_id(thread), "syscall")
            call = told.split(maxsplit=1)[0]
            burnt = _read(_native_id(thread), "schedstat")
        except (OSError, IndexError):
            return None
        if _waits_to_run(told.encode("ascii")):
            call = "running"
        self.runs_on = self.runs_on or call == "running"
        if call in for_threads:
            return (thread.ident, burnt)
        return (thread.ident, burnt) if call in for_files and self._idles(thread, frames) else None

    def _by_frames(
        self, thread: threading.Thread, frames: dict[int, FrameType]
    ) -> tuple[Any, ...] | None:
        frame = _frame(thread, frames)
        if frame is None:
            return None
        waits = frame.f_code.co_filename.replace("\\", "/").endswith(_WAITS)
        return (
            (thread.ident, id(frame), frame.f_lasti)
            if waits or self._idles(thread, frames)
            else None
        )

    def _idles(self, thread: threading.Thread, frames: dict[int, FrameType]) -> bool:
        """Whether the thread is an event loop without a file of the program's, or a server without
        a caller.
        """
        frame = _frame(thread, frames)
        if frame is None or not frame.f_code.co_filename.endswith("selectors.py"):
            return False
        selector, above = frame.f_locals.get("self"), frame.f_back
        while (
            above is not None and _PACKAGE in above.f_code.co_filename
        ):  # our own door before the selector
            above = above.f_back
        name = above.f_code.co_filename if above is not None else ""
        if name.endswith("socketserver.py"):
            return True
        return (
            name.endswith("base_events.py")
            and selector is not None
            and self.no_files_more(thread.ident, selector)
        )

    def no_files_more(self, ident: int | None, selector: Any) -> bool:
        """Whether an event loop listens to nothing but what it listened to from the start (its
        self-pipe).
        """
        files = selector.get_map()
        return files is not None and len(files) <= self._files(ident or 0)


_FUTEX = frozenset({b"202", b"98"})
_STATE = 1 << 20
"""Bytes of the interpreter's state at most."""


def _waits_to_run(call: bytes) -> bool:
    """Whether a thread waits for the interpreter's lock, by its line of /proc."""
    words = call.split(maxsplit=2)
    if len(words) < 2 or words[0] not in _FUTEX:
        return False
    return 0 <= int(words[1], 16) - _interpreter() < _STATE


@cache
def _interpreter() -> int:
    """Where the interpreter's state begins; 0 where it does not tell."""
    try:
        state = ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")
    except (AttributeError, ValueError):
        return 0
    return ctypes.addressof(state)


class _Files:
    """Files of /proc that tell of threads, kept open: opening one takes most of the time, and every
    audit hook hears of it.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[int | None, str], int] = {}
        self._lock = threading.Lock()

    def read(self, thread: threading.Thread, name: str) -> bytes:
        """Raises OSError where the thread has ended."""
        what = _native_id(thread), name
        with self._lock:
            if (file := self._open.get(what)) is None:
                path = f"/proc/self/task/{what[0]}/{name}"
                self._open[what] = file = os.open(path, os.O_RDONLY)
            try:
                return os.pread(file, 256, 0)
            except OSError:  # another thread may have that number by now
                os.close(self._open.pop(what))
                raise

    def close(self) -> None:
        with self._lock:
            while self._open:
                os.close(self._open.popitem()[1])


_PACKAGE = str(Path(__file__).parents[1])


def _frame(thread: threading.Thread, frames: dict[int, FrameType]) -> FrameType | None:
    if not frames:
        # the one way to see what other threads do
        frames.update(sys._current_frames())  # noqa: SLF001
    return frames.get(thread.ident or 0)


def _native_id(thread: threading.Thread) -> int | None:
    """The number by which Linux knows a thread; a process's first thread has the process's own. In
    a fork `native_id` is still the parent's (CPython 3.11).
    """
    return os.getpid() if thread is threading.main_thread() else thread.native_id


def _read(native: int | None, name: str) -> str:
    # in a hot loop
    with open(f"/proc/self/task/{native}/{name}", encoding="ascii") as file:  # noqa: PTH123
        return file.read()


@cache
def _is_told() -> bool:
    """Whether this machine shows system calls and processor times of threads (some sandboxes do
    not).
    """
    try:
        return bool(
            _read(threading.get_native_id(), "syscall")
            and _read(threading.get_native_id(), "schedstat")
        )
    except OSError:
        return False


def others_time() -> int:
    """Nanoseconds burnt by every thread of the process but this one."""
    return time.process_time_ns() - time.thread_time_ns()
