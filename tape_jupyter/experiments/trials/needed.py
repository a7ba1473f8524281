"""How many of a notebook's cells a check needs: the others need not run in a trial."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tape_jupyter.dataflow.history import EVERYTHING
from tape_jupyter.dataflow.static.names import cell_names, transform
from tape_jupyter.dataflow.static_plan import history_of, plan
from tape_jupyter.experiments.check import Check

_LOOKS_ANYWHERE = frozenset(
    {"outputs", "globals", "locals", "vars", "dir", "get_ipython", "eval", "exec"}
)


def needed(check: Check, sources: Sequence[str]) -> int:
    """The cells up to the last one that may set or change a name that the check reads."""
    if check.number:
        return check.number
    touching = _find_touching_cells(check, sources)
    if touching is None:
        return len(sources)
    return max(touching, default=len(sources) - 1) + 1


def depends_on(check: Check, sources: Sequence[str], cell: int) -> bool:
    """Whether what a cell (from 0) does may reach what the check reads."""
    if check.number:
        return cell < check.number
    touching = _find_touching_cells(check, sources)
    return touching is None or not touching.isdisjoint({cell, *plan(sources, cell).entries})


def _find_touching_cells(check: Check, sources: Sequence[str]) -> set[int] | None:
    """The cells (from 0) that may set or change a name that the check reads; None: it may read
    anything.
    """
    names = read_by(check)
    if not check.expression or names & _LOOKS_ANYWHERE:
        return None
    history = history_of(sources, [str(number) for number in range(len(sources))])
    return {
        number
        for number, entry in enumerate(history)
        for step in entry.steps
        if (names | {EVERYTHING}) & (step.strong | step.weak | (step.reads & {EVERYTHING}))
    }


def bound(check: Check, sources: Sequence[str]) -> int:
    """The cells up to the last one that may bind a name of an expression: below it, names that hold
    plain values stay as they are. All of them where that cannot be told.
    """
    names = read_by(check)
    if not names or names & _LOOKS_ANYWHERE:
        return len(sources)
    last = 0
    for number, source in enumerate(sources, 1):
        parsed = cell_names(transform(source))
        if parsed.broken:
            return len(sources)
        for statement in parsed.statements:
            code = statement.code
            if statement.uses.dynamic or names & code.later_stores:
                return len(sources)
            if names & (statement.always | code.stores | code.deletes):
                last = number
    return last or len(sources)


def read_by(check: Check) -> set[str]:
    """The names that an expression reads."""
    if check.kind != "expression":
        return set()
    tree = ast.parse(check.text.strip(), mode="eval")
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
