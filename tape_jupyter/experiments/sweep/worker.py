"""A process of the pool that runs attempts: it ends with its parent, and takes its kernels along."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from types import FrameType

from tape_jupyter.experiments.sweep.limits import below

EVERY = 1.0
"""Seconds between two looks at the parent."""


def begin() -> None:
    """What a process does first. SIGTERM ends the attempt under way as Ctrl-C does, which puts its
    kernel away; a parent that is gone ends all of it.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(EVERY)
    own = os.getpid()
    for pid in reversed(below([own])):
        if pid != own:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    os._exit(1)
