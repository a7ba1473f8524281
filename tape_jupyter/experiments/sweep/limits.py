"""A run that hangs or eats memory is ended, with all its processes, and says so."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

End = Literal["", "timed out", "memory"]
_PROC = Path("/proc/self")
"""There where the system tells of its processes as Linux does."""
EVERY = 0.25
"""Seconds between two looks at a run."""


@dataclass(slots=True)
class RunLimits:
    """`seconds` for a whole run, `memory` in bytes for all its processes together (0: no limit).
    `started` is told the id of the process under which they are; `ended` is why they were ended.
    """

    seconds: float = 0.0
    memory: int = 0
    ended: End = ""
    _pids: list[int] = field(default_factory=list)

    def started(self, pid: int) -> None:
        self._pids.append(pid)

    @contextmanager
    def watch_limits(self) -> Iterator[None]:
        """Look at the run until the block ends."""
        over = threading.Event()
        watcher = threading.Thread(target=self._watch_run, args=(over,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _watch_run(self, over: threading.Event) -> None:
        began = time.monotonic()
        while not over.wait(EVERY):
            if self.seconds and time.monotonic() - began > self.seconds:
                self.ended = "timed out"
            elif self.memory and _measure_memory(self._pids) > self.memory:
                self.ended = "memory"
            if self.ended:
                _kill_processes(self._pids)


def _kill_processes(roots: list[int]) -> None:
    for pid in process_tree(roots):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)


def process_tree(roots: list[int]) -> list[int]:
    """These processes and all that they started, those of them that are there."""
    children: dict[int, list[int]] = {}
    for pid, parent in _list_parents():
        children.setdefault(parent, []).append(pid)
    pids, left = [], [pid for pid in roots if pid]
    while left:
        pid = left.pop()
        pids.append(pid)
        left += children.get(pid, ())
    return pids


def _list_parents() -> Iterator[tuple[int, int]]:
    if _PROC.is_dir():
        for entry in os.listdir("/proc"):  # noqa: PTH208 - often
            if entry.isdecimal():
                with suppress(OSError, ValueError, IndexError):
                    stat = Path("/proc", entry, "stat").read_text("utf-8", "replace")
                    yield int(entry), int(stat.rpartition(")")[2].split()[1])
        return
    with suppress(OSError, ValueError):
        line = ["/bin/ps", "-axo", "pid=,ppid="]
        done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603
        for row in done.stdout.splitlines():
            pid, parent = row.split()
            yield int(pid), int(parent)


def _measure_memory(roots: list[int]) -> int:
    """Bytes in memory of all their processes; 0 where the system does not tell."""
    total = 0
    for pid in process_tree(roots):
        with suppress(OSError, ValueError, IndexError):
            pages = Path("/proc", str(pid), "statm").read_text("ascii").split()[1]
            total += int(pages) * os.sysconf("SC_PAGE_SIZE")
    return total


def usual_memory() -> int:
    """Half of this machine's memory; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 0
