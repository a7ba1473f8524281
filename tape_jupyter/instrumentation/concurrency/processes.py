"""Children that multiprocessing starts: tells of new interpreters, and brings a refusal home from a
pool.

Python raises no audit event when a new interpreter starts (`spawn`, `forkserver`, loky's), so one
is raised for the guard, which names or refuses the child. A forked child needs none: the fork has
its own, and the guard goes with it.

A worker of `multiprocessing.Pool` catches every Exception of its task; anything else ends it, and
the parent waits for ever. So a refusal leaves the task as an Exception, and arrives in the parent
as the refusal it was.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tape_jupyter.errors import TapeRefusal
from tape_jupyter.instrumentation.patching import swap

EVENT = "tape_jupyter.process"


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap `multiprocessing.process`. Returns the undo."""
    return swap(module.BaseProcess, "start", _wrap_start)


def _wrap_start(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def start_taped(process: Any) -> None:
        method = getattr(process, "_start_method", None) or _find_start_method()
        if method != "fork":
            sys.audit(EVENT, method, process.name)
        elif _is_pool_worker(process):
            tasks, *rest = process._args  # noqa: SLF001  # the only name it has
            process._args = (_Tasks(tasks), *rest)  # noqa: SLF001
        return original(process)

    return start_taped


def _find_start_method() -> str:
    from multiprocessing import get_start_method

    return get_start_method()


def _is_pool_worker(process: Any) -> bool:
    target = getattr(process, "_target", None)
    named = (getattr(target, "__module__", ""), getattr(target, "__name__", ""))
    return named == ("multiprocessing.pool", "worker") and bool(process._args)  # noqa: SLF001


class _Tasks:
    """The queue a worker takes its tasks from; each task's refusal is carried."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def get(self) -> Any:
        task = self._queue.get()
        if task is None:
            return None
        job, number, function, arguments, named = task
        return job, number, functools.partial(_carry_refusal, function), arguments, named


def _carry_refusal(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except TapeRefusal as refusal:
        raise _Carried(refusal) from refusal


class _Carried(Exception):  # no error of its own
    """A refusal on its way to the parent: pickled as this, it is itself again when unpickled."""

    def __init__(self, refusal: TapeRefusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self.refusal), self.refusal.args
