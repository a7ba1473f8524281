"""The words of `--check`: an expression, `cell:N` (it does not raise) or `output:N` (as saved)."""

from __future__ import annotations

import ast
import re
from typing import Literal

from tape_jupyter.errors import TapeUsageError

CheckKind = Literal["expression", "cell", "output"]


def read_check(text: str) -> tuple[CheckKind, int]:
    """What is asked, and of which code cell (counted from 1; 0 for an expression). Raises
    TapeUsageError for what is no Python expression.
    """
    text = text.strip()
    if found := re.fullmatch(r"(cell|output):(\d+)", text):
        return ("cell" if found[1] == "cell" else "output"), int(found[2])
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError) as error:
        why = error.msg if isinstance(error, SyntaxError) else error
        raise TapeUsageError(f"--check {text!r} is no Python expression: {why}") from None
    return "expression", 0


def require_cell(text: str, kind: str, number: int, cells: int) -> None:
    """Raises TapeUsageError where a notebook of so many code cells has no such cell."""
    if kind in ("cell", "output") and not 1 <= number <= cells:
        raise TapeUsageError(f"--check {text}: the notebook's code cells are 1 to {cells}")
