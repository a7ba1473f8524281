"""What is known of one execution when its steps are put together. Values only."""

from __future__ import annotations

import types
from dataclasses import dataclass, field

from tape_jupyter.dataflow.fingerprint.fingerprint import Print
from tape_jupyter.dataflow.static.names import ParsedCell, Statement
from tape_jupyter.dataflow.tracing.executed_code import ExecutedCode
from tape_jupyter.dataflow.tracing.files import Touched
from tape_jupyter.dataflow.tracing.variables import Variables


@dataclass(slots=True)
class ExecutionFacts:
    """All that is known of one execution."""

    cell: ParsedCell
    variables: Variables
    before: dict[str, Print | None]
    ran: ExecutedCode
    touched: Touched
    ambient: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    """Attributes of libraries' modules that were bound anew: "math.pi"."""
    number: int | None = None
    displayed: bool = False
    """It showed a result (Out[number])."""
    failed_at: int | None = None
    """The line whose statement raised; 0 unknown."""
    background: bool = False
    """Tasks or threads of the notebook ran on when it began."""
    leaves_background: bool = False
    results: tuple[int, ...] = ()
    """Numbers of the results that `_`, `__` and `___` were when it began."""
    rebound: frozenset[str] = frozenset()
    """Names whose value is another object than before."""


@dataclass(slots=True)
class Draft:
    """A step that is being put together."""

    statement: Statement
    mention: set[str] = field(default_factory=set)
    reach: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    strong: set[str] = field(default_factory=set)
    weak: set[str] = field(default_factory=set)
    via: dict[str, str] = field(default_factory=dict)
    codes: set[tuple[str, types.CodeType]] = field(default_factory=set)
    needs: dict[str, frozenset[str]] = field(default_factory=dict)
    raises: frozenset[str] | None = None
