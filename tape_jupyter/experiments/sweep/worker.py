"""A process of the pool that runs attempts: it ends with its parent, and takes its kernels along."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from multiprocessing import parent_process
from types import FrameType

from tape_jupyter.experiments.sweep.attempt import Attempt, attempt
from tape_jupyter.experiments.sweep.limits import process_tree
from tape_jupyter.experiments.sweep.store import Row

_ENDED = 143
"""The exit code of a process that was asked to end."""


class _Process:
    """What this process does, where it is one of a pool."""

    begun = False
    busy = False


def run_attempt(job: Attempt) -> Row:
    """Run an attempt. In a process of a pool that is asked to end meanwhile, its kernel is put away
    and the process ends.
    """
    _Process.busy = True
    try:
        return attempt(job)
    except KeyboardInterrupt:
        if _Process.begun:
            os._exit(_ENDED)
        raise
    finally:
        _Process.busy = False


def start_worker() -> None:
    """What a process of a pool does first. SIGTERM ends it, and the attempt under way as Ctrl-C
    does; a parent that is gone ends all of it.
    """

    def end_process(_number: int, _frame: FrameType | None) -> None:
        if not _Process.busy:
            os._exit(_ENDED)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what libraries say of being cut off
        raise KeyboardInterrupt

    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, end_process)
        _Process.begun = True
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = parent_process()
    if parent is None:
        return
    parent.join()
    own_pid = os.getpid()
    for pid in reversed(process_tree([own_pid])):
        if pid != own_pid:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    os._exit(1)
