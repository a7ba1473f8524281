"""Who is calling. Context variables that say which cell execution, task and span the code runs in.

Taps set them (instrumentation/concurrency/threads.py carries them into threads, executors and
tasks); the deck reads them. They are context-local, but no rule hangs on them alone: a thread
without an origin belongs to whatever cell is active.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any


class Origin:
    """One strand of a cell's execution: the cell, and a path of spawned children (see
    core/call.py, `Where.lineage`).

    `cell` is opaque here (the deck's own object). `spawn` names a child by what it runs and numbers
    those that run the same, in the order of creation: how often a library submits something else
    shifts nobody. A child made while a tap is sending live is not the program's, and takes no
    number.

    `pins` is what holds the cell to its recorded values (`chance`, `clock`); None where nothing
    does. Every reading of the clock asks for it.

    `counted`: in a replay of a recording from before there were names, all children are numbered
    together, but for those of a `kind`, a library's own class of threads.
    """

    __slots__ = ("_numbers", "cell", "counted", "lineage", "pins")

    def __init__(self, cell: Any, lineage: str = "", *, counted: bool = False) -> None:
        self.cell, self.lineage, self.counted = cell, lineage, counted
        self.pins: Any = getattr(cell, "pins", None)
        self._numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)

    @property
    def has_children(self) -> bool:
        """Whether the program started strands; those that end an event loop are not its own."""
        return any(not name.startswith("shutdown_") for name in self._numbers)

    def spawn(self, name: str = "", *, kind: str = "") -> Origin:
        if SENDING.get():
            return Origin(self.cell, f"{self.lineage}~", counted=self.counted)
        name = kind if self.counted else name and f"{name}-"
        step = f"{name}{next(self._numbers[name])}"
        return Origin(
            self.cell, f"{self.lineage}.{step}" if self.lineage else step, counted=self.counted
        )


def is_body(lineage: str) -> bool:
    """Whether a strand (Origin.lineage) is a tool's body, which does not run in replay: what comes to
    it has no place in the order of hand-overs.
    """
    return "/" in lineage


ORIGIN: ContextVar[Origin | None] = ContextVar("tape_origin", default=None)
"""The strand this code runs in; None outside taped cells."""

SENDING: ContextVar[bool] = ContextVar("tape_sending", default=False)
"""True while a tap sends live: inner transports stay silent, the guard lets their sockets through."""

SPAN: ContextVar[tuple[str, ...]] = ContextVar("tape_span", default=())
"""Names of the user's open spans, outermost first."""

PARENT: ContextVar[str] = ContextVar("tape_parent", default="")
"""Id of the taped function call whose body is running; "" outside."""

BODY: ContextVar[Any] = ContextVar("tape_body", default=None)
"""The capture (call.py, `Capture`) of the taped function whose body runs: what it shows and writes is
told to it.
"""

CALLED_AS: ContextVar[Mapping[int, str]] = ContextVar(
    "tape_called_as", default=MappingProxyType({})
)
"""The names that a framework calls taped functions by, by the `id` of what tapes each
(instrumentation/tools/call.py).
"""
