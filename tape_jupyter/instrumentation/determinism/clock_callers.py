"""Who reads the clock: user code of a taped cell, or plumbing, whose own time stays real. Patches
nothing.

One rule for reads, sleeps and timers: the code runs in a strand of a taped cell, no tap is sending
live there (signatures and connection timeouts need real time), and the immediate caller is not
plumbing: Jupyter's machinery, event loops, locks and pools, and what we do ourselves. Message
headers of a kernel keep their real dates that way.
"""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any

from tape_jupyter.core.context import ORIGIN, SENDING, Origin, is_body
from tape_jupyter.instrumentation.concurrency.threads import settle_origin

PLUMBING = frozenset({
    "IPython", "_pytest", "asyncio", "comm", "concurrent", "debugpy", "genai_prices", "http", "httpcore", "httpcore2",
    "ipykernel", "ipywidgets", "jupyter_client", "matplotlib_inline", "multiprocessing", "nbclient", "portalocker",
    "pydevd", "queue", "sched", "selectors", "socket", "socketserver", "ssl", "subprocess", "tape_jupyter",
    "threading", "tornado", "traitlets", "uvloop", "websockets", "zmq",
})  # fmt: skip

_FOR_OTHERS = frozenset(
    {
        "tape_jupyter.instrumentation.concurrency.threads",
        "tape_jupyter.instrumentation.concurrency.thread_pools",
    }
)
"""Run what the program handed to a thread or a pool, which may be `time.sleep` itself."""

_known: dict[Any, bool] = {}


def is_plumbing(module: Any) -> bool:
    """Whether the code of this module (its `__name__`) is plumbing."""
    try:
        return _known[module]
    except (KeyError, TypeError):
        root = module.partition(".")[0] if isinstance(module, str) else ""
        plumbing = not root or (root in PLUMBING and module not in _FOR_OTHERS)
        if isinstance(module, str):
            _known[module] = plumbing
        return plumbing


def clock_here() -> Any | None:
    """The clock (pins.clock.TapeClock) of the taped cell that this code belongs to; None where time
    is real.
    """
    origin = ORIGIN.get()
    if origin is None or SENDING.get() or (clock := _find_clock(origin)) is None or clock.closed:
        return None
    return clock


def strand_here() -> str:
    """The strand (Origin.lineage) that this code runs in."""
    origin = settle_origin()
    return "" if origin is None else origin.lineage


def notes_order(clock: Any) -> bool:
    """Whether it is recorded when a timer of this code goes off; not of a tool's body, which does
    not run in replay.
    """
    return clock.order is not None and not is_body(strand_here())


def _find_clock(origin: Origin) -> Any | None:
    """The clock of the origin's cell; None in a child process, whose time is real."""
    clock = getattr(origin.pins, "clock", None)
    return None if clock is None or clock.pid != os.getpid() else clock


def module_of(depth: int) -> Any:
    """The module of the code `depth` frames above the caller of this."""
    # one frame; inspect.stack() takes milliseconds
    frame: FrameType = sys._getframe(depth + 1)  # noqa: SLF001
    return frame.f_globals.get("__name__")


def read_clock(kind: str, *, between: int = 0) -> int | None:
    """Nanoseconds on the tape's clock of that kind (pins.clock.Kind) for the code that called the
    caller of this, by way of so many functions `between`; None where its time is real.
    """
    origin = ORIGIN.get()
    if origin is None or SENDING.get():
        return None
    # as module_of does, a call less
    module = sys._getframe(2 + between).f_globals.get("__name__")  # noqa: SLF001
    if is_plumbing(module):
        return None
    clock = _find_clock(origin)
    if clock is None or not clock.is_active:
        return None
    origin = settle_origin()
    reading: int = clock.read(kind, "" if origin is None else origin.lineage, module)
    return reading
