"""Can anything of a cell still run? Looks at its threads; changes nothing, patches nothing.

Quiet means that each thread of the cell waits in the kernel for another thread (a lock, a queue, a
condition), or sits in an idle event loop, and that in several looks a moment apart none has burnt
processor time. A thread that reads a socket, waits for a process or computes is not quiet: then
nobody's time may jump.

On Linux the kernel says which system call a thread sleeps in (/proc/self/task/*/syscall: "running",
or the number of the call and its arguments), which tells a thread that was woken but has no
processor yet from one that waits: under load that decides. While one processor wakes a thread that
is to run on another, that file still names the call; the thread's state (stat) is "R" by then. One
that waits for the interpreter's lock waits at an address within the interpreter's own state, and
runs as soon as it gets that lock.

Elsewhere only the Python frame and the process's time can be looked at, so the looks lie further
apart. `time.pthread_getcpuclockid` is no way: on a thread that has just ended it crashes the process
(CPython 3.11).
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import sleep  # not the stand-in that programs get
from types import CodeType, FrameType
from typing import Any

_WAITS = (
    "/threading.py",
    "/queue.py",
    "/concurrent/futures/thread.py",
    "/concurrent/futures/_base.py",
)


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """Numbers of Linux's tables, as /proc writes them. Who sleeps in another one (or in none: a page
    fault) goes on by itself.

    `threads`: waits for another thread (futex); `files`: for one of several files (poll, epoll,
    select); `others`: for the other side of a socket, a process, a signal, a lock of a file, a
    time; `one_file`: reads or writes one file, which is a wait only where that is no regular one.
    """

    threads: frozenset[str]
    files: frozenset[str]
    others: frozenset[str]
    one_file: frozenset[str]


def _to_call_numbers(**calls: int) -> frozenset[str]:
    return frozenset(map(str, calls.values()))


SYSTEM_CALLS = {
    "x86_64": SystemCalls(
        threads=_to_call_numbers(futex=202, futex_waitv=449, futex_wait=455),
        files=_to_call_numbers(
            epoll_wait=232,
            epoll_pwait=281,
            epoll_pwait2=441,
            select=23,
            pselect6=270,
            poll=7,
            ppoll=271,
        ),
        others=_to_call_numbers(
            recvfrom=45,
            recvmsg=47,
            recvmmsg=299,
            accept=43,
            accept4=288,
            connect=42,
            sendto=44,
            sendmsg=46,
            nanosleep=35,
            clock_nanosleep=230,
            wait4=61,
            waitid=247,
            pause=34,
            rt_sigsuspend=130,
            rt_sigtimedwait=128,
            flock=73,
            fcntl=72,
            msgrcv=70,
            semop=65,
            semtimedop=220,
            io_getevents=208,
            io_uring_enter=426,
        ),
        one_file=_to_call_numbers(read=0, readv=19, write=1, writev=20),
    ),
    "aarch64": SystemCalls(
        threads=_to_call_numbers(futex=98, futex_waitv=449, futex_wait=455),
        files=_to_call_numbers(epoll_pwait=22, epoll_pwait2=441, pselect6=72, ppoll=73),
        others=_to_call_numbers(
            recvfrom=207,
            recvmsg=212,
            recvmmsg=243,
            accept=202,
            accept4=242,
            connect=203,
            sendto=206,
            sendmsg=211,
            nanosleep=101,
            clock_nanosleep=115,
            wait4=260,
            waitid=95,
            rt_sigsuspend=133,
            rt_sigtimedwait=137,
            flock=32,
            fcntl=25,
            msgrcv=188,
            semop=193,
            semtimedop=192,
            io_getevents=4,
            io_uring_enter=426,
        ),
        one_file=_to_call_numbers(read=63, readv=65, write=64, writev=66),
    ),
}
_BURNT = 150_000
"""Nanoseconds that threads outside the cell (the kernel's heartbeat) may burn between two looks."""
_STILL = 2_000
"""Nanoseconds by which the time of other threads may seem to move though none of them ran: the two
clocks that tell it are read one after the other.
"""


class Quiet:
    """Looks at the threads of one cell. `loops`: how many files the event loop of a thread had of
    its own.
    """

    def __init__(
        self, threads: Callable[[], Iterable[threading.Thread] | None], files: Callable[[int], int]
    ) -> None:
        self._threads, self._files = threads, files
        if sys.platform == "linux" and _has_thread_files():
            self._calls = SYSTEM_CALLS.get(platform.machine())
        else:
            self._calls = None
        self._gap = 0.0003 if self._calls else 0.004
        self._files_of = _Files()
        self.runs_on = False
        """Whether, at the last look, a thread ran or was about to: one that waits for anything at
        all does not.
        """

    def __call__(self, rounds: int = 3) -> bool:
        self.runs_on = False
        first = self._observe_threads()
        for _ in range(rounds - 1):
            if first is None:
                return False
            burnt = others_time()
            sleep(self._gap)
            if self._observe_threads() != first or others_time() - burnt > _BURNT:
                self.runs_on = True
                return False
        return first is not None

    def active(self, threads: Sequence[threading.Thread], rounds: int) -> int | None:
        """The first that does not wait for anything: a file, a socket, a lock. None where the
        system does not tell.

        Whoever waits at one look may have been woken by one that was looked at later. Nobody was
        where no thread of the process ran meanwhile; else more rounds tell, in which none of these
        may burn anything.
        """
        if self._calls is None or not threads:
            return None
        burnt = others_time()
        for thread in threads:
            if self._runs_on(thread):
                return thread.ident
        for thread in threads:
            if self._is_being_woken(thread):
                return thread.ident
        frames: dict[int, FrameType] = {}
        for thread in threads:
            if _acts_in_tape(_find_frame(thread, frames)) and self._waits_at_lock(thread):
                return thread.ident
        if rounds == 1 or others_time() - burnt < _STILL:
            return None
        return self._find_burning_thread(threads, rounds)

    def _find_burning_thread(self, threads: Sequence[threading.Thread], rounds: int) -> int | None:
        burnt: dict[int, bytes] = {}
        for number in range(rounds):
            if number:
                sleep(0)
            for thread in threads:
                ident, now = thread.ident or 0, self._read_processor_time(thread)
                if now is not None and (not now or burnt.setdefault(ident, now) != now):
                    return ident
        return None

    def _runs_on(self, thread: threading.Thread) -> bool:
        """Whether a thread waits for nothing; one that has ended does not run."""
        assert self._calls is not None
        try:
            return not waits_for_others(self._files_of.read(thread, "syscall"), self._calls)
        except OSError:
            return False

    def _is_being_woken(self, thread: threading.Thread) -> bool:
        """Whether a thread that seemed to wait is about to run."""
        try:
            return runs_soon(self._files_of.read(thread, "stat"))
        except OSError:
            return False

    def _waits_at_lock(self, thread: threading.Thread) -> bool:
        """Whether a thread waits for another one. Where it stands in our own code that is one of
        ours, which nobody looks at and which lets go at once.
        """
        assert self._calls is not None
        try:
            call = self._files_of.read(thread, "syscall").split(maxsplit=1)[0]
        except (OSError, IndexError):
            return False
        return call.decode("ascii") in self._calls.threads

    def runs(self, thread: threading.Thread) -> bool:
        """Whether a thread runs at this moment, as far as the system tells."""
        try:
            return bool(self._calls) and _read_thread_file(
                _find_native_id(thread), "syscall"
            ).startswith("running")
        except OSError:
            return False

    def _read_processor_time(self, thread: threading.Thread) -> bytes | None:
        """What a thread has burnt so far; b"" for one that runs, None for one that has ended."""
        try:
            if self._runs_on(thread):
                return b""
            return self._files_of.read(thread, "schedstat").split(maxsplit=1)[0]
        except (OSError, IndexError):
            return None

    def close(self) -> None:
        """Nobody is looked at any more."""
        self._files_of.close()

    def _observe_threads(self) -> list[tuple[Any, ...]] | None:
        frames: dict[int, FrameType] = {}
        seen = []
        threads = self._threads()
        for thread in threads or ():
            if not thread.is_alive():
                continue
            if self._calls:
                one = self._observe_by_calls(thread, frames)
            else:
                one = self._observe_by_frames(thread, frames)
            if one is None:
                return None
            seen.append(one)
        return None if threads is None else sorted(seen)

    def _observe_by_calls(
        self, thread: threading.Thread, frames: dict[int, FrameType]
    ) -> tuple[Any, ...] | None:
        assert self._calls is not None
        try:
            syscall_line = _read_thread_file(_find_native_id(thread), "syscall")
            call = syscall_line.split(maxsplit=1)[0]
            burnt = _read_thread_file(_find_native_id(thread), "schedstat")
        except (OSError, IndexError):
            return None
        if _is_waiting_to_run(syscall_line.encode("ascii")) or self._is_being_woken(thread):
            call = "running"
        if call in self._calls.threads and _acts_in_tape(_find_frame(thread, frames)):
            call = "running"
        self.runs_on = self.runs_on or call == "running"
        if call in self._calls.threads:
            return (thread.ident, burnt)
        idles = call in self._calls.files and self._is_idle(thread, frames)
        return (thread.ident, burnt) if idles else None

    def _observe_by_frames(
        self, thread: threading.Thread, frames: dict[int, FrameType]
    ) -> tuple[Any, ...] | None:
        frame = _find_frame(thread, frames)
        if frame is None:
            return None
        waits = frame.f_code.co_filename.replace("\\", "/").endswith(_WAITS)
        if waits or frame.f_code in MEANT_WAITS or self._is_idle(thread, frames):
            return (thread.ident, id(frame), frame.f_lasti)
        return None

    def _is_idle(self, thread: threading.Thread, frames: dict[int, FrameType]) -> bool:
        """Whether the thread is an event loop without a file of the program's, or a server without
        a caller.
        """
        frame = _find_frame(thread, frames)
        if frame is None or not frame.f_code.co_filename.endswith("selectors.py"):
            return False
        selector, above = frame.f_locals.get("self"), frame.f_back
        # our own door before the selector
        while above is not None and _PACKAGE in above.f_code.co_filename:
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


def _acts_in_tape(frame: FrameType | None) -> bool:
    """Whether a thread runs our own code, other than what holds it on purpose. What it waits for
    there is a lock or a thread of ours, which nobody looks at: it goes on by itself.
    """
    if frame is None or not frame.f_code.co_filename.startswith(_PACKAGE):
        return False
    return frame.f_code not in MEANT_WAITS


MEANT_WAITS: set[CodeType] = set()
"""Of our own code, what a thread is held in on purpose."""


def waits_for_others(line: bytes, calls: SystemCalls) -> bool:
    """Whether a thread waits for anything that another one, a person or a machine must do, by its
    line of /proc.
    """
    call, _, arguments = line.decode("ascii").partition(" ")
    if call in calls.threads:
        return not _is_waiting_to_run(line)
    if call in calls.one_file:
        return not _is_regular(int(arguments.split(maxsplit=1)[0], 16))
    return call in calls.files or call in calls.others


def runs_soon(line: bytes) -> bool:
    """Whether a thread runs, or has been woken, by its line of /proc (stat: a number, a name in
    brackets, a letter for the state).
    """
    return line.rpartition(b")")[2].lstrip().startswith(b"R")


def _is_regular(file: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(file).st_mode)
    except OSError:  # it was closed meanwhile
        return True


_FUTEX = frozenset({b"202", b"98"})
_STATE = 1 << 20
"""Bytes of the interpreter's state at most."""


def _is_waiting_to_run(call: bytes) -> bool:
    """Whether a thread waits for the interpreter's lock, by its line of /proc."""
    fields = call.split(maxsplit=2)
    if len(fields) < 2 or fields[0] not in _FUTEX:
        return False
    return 0 <= int(fields[1], 16) - _find_interpreter_state() < _STATE


@cache
def _find_interpreter_state() -> int:
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
        what = _find_native_id(thread), name
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


def _find_frame(thread: threading.Thread, frames: dict[int, FrameType]) -> FrameType | None:
    if not frames:
        # the one way to see what other threads do
        frames.update(sys._current_frames())  # noqa: SLF001
    return frames.get(thread.ident or 0)


def _find_native_id(thread: threading.Thread) -> int | None:
    """The number by which Linux knows a thread; a process's first thread has the process's own. In
    a fork `native_id` is still the parent's (CPython 3.11).
    """
    return os.getpid() if thread is threading.main_thread() else thread.native_id


def _read_thread_file(native: int | None, name: str) -> str:
    # in a hot loop
    with open(f"/proc/self/task/{native}/{name}", encoding="ascii") as file:  # noqa: PTH123
        return file.read()


@cache
def _has_thread_files() -> bool:
    """Whether this machine shows system calls and processor times of threads (some sandboxes do
    not).
    """
    try:
        return bool(
            _read_thread_file(threading.get_native_id(), "syscall")
            and _read_thread_file(threading.get_native_id(), "schedstat")
        )
    except OSError:
        return False


def others_time() -> int:
    """Nanoseconds burnt by every thread of the process but this one."""
    return time.process_time_ns() - time.thread_time_ns()
