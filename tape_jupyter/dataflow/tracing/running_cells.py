"""The IPython cells that run on this stack: two in a `run_cell` inside a cell.

Awaited coroutines are on the stack of the task that runs them, so this holds in async cells too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


def running_cells() -> Iterator[FrameType]:
    """The frames of the running cells, innermost first."""
    run = InteractiveShell.run_cell_async
    code, names = run.__code__, run.__globals__
    # inspect.stack() reads source files for every frame
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    while frame is not None:
        # to ask for a frame's code is an event that each audit hook of the process hears
        if frame.f_globals is names and frame.f_code is code:
            yield frame
        frame = frame.f_back


def count_running_cells() -> int:
    """How many cells run."""
    return sum(1 for _ in running_cells())


def find_running_info() -> Any:
    """What IPython knows of the innermost cell (its ExecutionInfo); None where none runs."""
    innermost = next(running_cells(), None)
    return innermost.f_locals.get("info") if innermost is not None else None
