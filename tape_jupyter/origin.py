"""Values room: who is calling. Context variables that say which cell execution, task and span the code runs in.

Taps set them (taps/lineage.py carries them into threads, executors and tasks); the deck reads them. They are
context-local, but no rule hangs on them alone: a thread without an origin belongs to whatever cell is active.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any


class Origin:
    """One strand of a cell's execution: the cell, and a path of spawn numbers (see calls.Where.lineage).

    `cell` is opaque here (the deck's own object). `spawn` numbers children in the order of creation, which is
    the program's own order; a child made while a tap is sending live is not the program's, and takes no number.
    Children of a `sort` are numbered among themselves: a library starts those once a process, and shifts nobody else.
    """

    __slots__ = ("_numbers", "cell", "lineage")

    def __init__(self, cell: Any, lineage: str = "") -> None:
        self.cell, self.lineage = cell, lineage
        self._numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)

    def spawn(self, sort: str = "") -> Origin:
        if SENDING.get():
            return Origin(self.cell, f"{self.lineage}~")
        number = f"{sort}{next(self._numbers[sort])}"
        return Origin(self.cell, f"{self.lineage}.{number}" if self.lineage else number)


ORIGIN: ContextVar[Origin | None] = ContextVar("tape_origin", default=None)
"""The strand this code runs in; None outside taped cells."""

SENDING: ContextVar[bool] = ContextVar("tape_sending", default=False)
"""True while a tap sends live: inner transports stay silent, the guard lets their sockets through."""

SPAN: ContextVar[tuple[str, ...]] = ContextVar("tape_span", default=())
"""Names of the user's open spans, outermost first."""

PARENT: ContextVar[str] = ContextVar("tape_parent", default="")
"""Id of the taped function call whose body is running; "" outside."""

BODY: ContextVar[Any] = ContextVar("tape_body", default=None)
"""The capture (calls.Capture) of the taped function whose body runs: what it shows and writes is told to it."""

CALLED_AS: ContextVar[Mapping[int, str]] = ContextVar("tape_called_as", default=MappingProxyType({}))
"""The names that a framework calls taped functions by, by the `id` of what tapes each (taps/functions.py)."""
