"""A thread that `threading` does not list: a program that counts its threads does not count it."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable


def run_unlisted(work: Callable[[], None]) -> Callable[[], None]:
    """Run it beside what comes next; gives what waits for its end. The process does not wait for
    it when it exits.
    """
    running = allocate_lock()
    running.acquire()

    def run_work() -> None:
        try:
            work()
        finally:
            running.release()

    def wait_for_end() -> None:
        with running:
            pass

    start_new_thread(run_work, ())
    return wait_for_end
