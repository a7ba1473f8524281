"""What each thing that a statement writes depends on, through the functions of the user that it
calls.

`answer = ask("hi")`, where `ask` also appends to a log: the answer depends on the reply, not on the
log. Read from syntax trees, with the values that names have after the cell; nothing is run. What is
not understood is not told: then everything that a statement writes depends on everything that it
reads. So is a statement in which code of the user ran that was not read here.
"""

from __future__ import annotations

import ast

from tape_jupyter.dataflow.static.outcomes import calls, expressions, statements
from tape_jupyter.dataflow.static.outcomes.values import (
    NOTHING,
    OutcomeFrame,
    Reckoning,
    StatementOutcome,
    Unclear,
    Way,
)
from tape_jupyter.dataflow.tracing.variables import Variables

_EXPRESSIONS: dict[type, Way] = {**expressions.WAYS, ast.Call: calls.call_outcome}


def statement_outcome(
    node: ast.stmt,
    variables: Variables,
    unsteady: frozenset[str] = NOTHING,
    moved: frozenset[str] = NOTHING,
    once: frozenset[str] = NOTHING,
) -> StatementOutcome | None:
    """Of a statement at the top of a cell; `unsteady`: names that the cell binds, whose value may
    have been another; `moved`: names whose value the cell changed, so that `log[-1]` may have been
    another; `once`: names that no other statement of the cell binds.
    """
    reckoning = Reckoning(variables, unsteady, moved, statements.WAYS, _EXPRESSIONS, once)
    try:
        reckoning.block([node], OutcomeFrame("", {}, frozenset(), top=True))
    except (Unclear, RecursionError):
        return None
    return reckoning.result
