"""How many of a notebook's cells a check needs: the others need not run in a trial."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tape_jupyter.dataflow.history import EVERYTHING
from tape_jupyter.dataflow.static.names import cell_names, transform
from tape_jupyter.dataflow.static_plan import history_of
from tape_jupyter.experiments.trials.check import Check

_LOOKS_ANYWHERE = frozenset(
    {"outputs", "globals", "locals", "vars", "dir", "get_ipython", "eval", "exec"}
)


def needed(check: Check, sources: Sequence[str]) -> int:
    """The cells up to the last one that may set or change a name that the check reads."""
    if check.number:
        return check.number
    if check.kind != "expression":
        return len(sources)
    names = read_by(check)
    if names & _LOOKS_ANYWHERE:
        return len(sources)
    history = history_of(sources, [str(number) for number in range(len(sources))])
    touching = [
        number
        for number, entry in enumerate(history, 1)
        for step in entry.steps
        if (names | {EVERYTHING}) & (step.strong | step.weak | (step.reads & {EVERYTHING}))
    ]
    return max(touching, default=len(sources))


def bound(check: Check, sources: Sequence[str]) -> int:
    """The cells up to the last one that may bind a name of an expression: below it, names that hold
    plain values stay as they are. All of them where that cannot be told.
    """
    names = read_by(check)
    if not names or names & _LOOKS_ANYWHERE:
        return len(sources)
    last = 0
    for number, source in enumerate(sources, 1):
        found = cell_names(transform(source))
        if found.broken:
            return len(sources)
        for statement in found.statements:
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
