"""How many of a notebook's cells a check needs: the others need not run in a trial."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tape_jupyter.dataflow.history import EVERYTHING
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
    tree = ast.parse(check.text.strip(), mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
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
