"""What a kernel is asked once its cells have run: an expression over the notebook's variables, and
how many calls its cells made.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbclient import NotebookClient

_SHOWN = 200
"""Characters of a value's repr that are told."""
_COUNTS = (
    "(lambda reports: __import__('json').dumps([sum(len(each.calls) for each in reports), "
    "sum(len(each.misses) for each in reports)]))"
    "(__import__('tape_jupyter.jupyter.magics', fromlist=['loaded']).loaded(get_ipython()).reports)"
)


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """`value` is the repr of what the expression gave and `true` whether it counts as true, or
    `error` what it raised. `calls` were made in all cells, `missed` were refused; None where the
    kernel's tape-jupyter cannot tell.
    """

    value: str = ""
    true: bool = False
    error: str = ""
    calls: int | None = None
    missed: int | None = None


def ask_questions(
    client: NotebookClient, expression: str, cell_outputs: Sequence[str]
) -> KernelAnswer:
    """Evaluate it in the notebook's namespace; `outputs` in it is `cell_outputs`, the text that each code
    cell showed. "" asks for the counts alone. Raises DeadKernelError.
    """
    expressions = {"counts": _COUNTS}
    if expression:
        expressions["value"] = (
            f"(lambda value: __import__('json').dumps([bool(value), repr(value)[:{_SHOWN}]]))"
            f"((lambda outputs: ({expression.strip()}\n))({list(cell_outputs)!r}))"
        )
    from tape_jupyter.headless.kernel import ask_kernel

    results = ask_kernel(client, "", None, **expressions).get("user_expressions") or {}
    calls, missed = _parse_answer(results.get("counts")) or (None, None)
    if not expression:
        return KernelAnswer(calls=calls, missed=missed)
    answer = results.get("value") or {}
    parsed = _parse_answer(answer)
    if parsed is None:
        error = f"{answer.get('ename', 'no answer')}: {answer.get('evalue', '')}"
        return KernelAnswer(error=error, calls=calls, missed=missed)
    return KernelAnswer(parsed[1], parsed[0], calls=calls, missed=missed)


def _parse_answer(answer: Any) -> Any:
    """What an expression that gives JSON gave; None where it raised."""
    if not isinstance(answer, dict) or answer.get("status") != "ok":
        return None
    return json.loads(ast.literal_eval(answer["data"]["text/plain"]))
