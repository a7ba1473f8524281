"""Replays a notebook under many orders of completion, to find the one that fails.

Calls that are under way together may come back in any order; a recording holds one. Each try
replays the notebook in a fresh kernel, with the replies that wait at the same moment handed on in
an order drawn from a seed: the same seed gives the same order, so the one that fails is found
again, and debugged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.headless import run
from tape_jupyter.headless.run import CellRun
from tape_jupyter.session.pins.clock import SHUFFLE

BROKEN = ("failed", "missed")


@dataclass(frozen=True, slots=True)
class Try:
    """One order: its seed, and what each cell gave."""

    seed: int
    cells: tuple[CellRun, ...]

    @property
    def broke(self) -> CellRun | None:
        """The first cell that raised, or asked for something that was never recorded."""
        return next((cell for cell in self.cells if cell.status in BROKEN), None)

    @property
    def differs(self) -> CellRun | None:
        """The first cell whose outputs are not those saved."""
        return next((cell for cell in self.cells if cell.status == "differs"), None)

    def record(self) -> dict[str, Any]:
        return {"seed": self.seed, "cells": [cell.record() for cell in self.cells]}


def search_orders(
    path: Path,
    first: int,
    tries: int,
    on_try: Callable[[Try], None],
    timeout: float | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> list[Try]:
    """Try the seeds `first`, `first + 1`, ... until a cell breaks under one, at most so many; every
    try is told. `env` is added to the kernels' environment.
    """
    done: list[Try] = []
    for seed in range(first, first + tries):
        cells = run.replay_notebook(
            path, do_nothing, do_nothing, timeout, {**env, SHUFFLE: str(seed)}
        )
        done.append(Try(seed, tuple(cells)))
        on_try(done[-1])
        if done[-1].broke:
            break
    return done


def try_lines(each: Try) -> list[str]:
    """What one try gave, for a person."""
    cell = each.broke or each.differs
    if cell is None:
        return [f"seed {each.seed}: every cell as saved"]
    return [
        f"seed {each.seed}: cell {cell.number} {cell.status}: {cell.title}",
        *(f"    {text}" for text in cell.messages),
    ]


def verdict(path: Path, done: list[Try]) -> str:
    """What the search found, and how to see it again."""
    breaking = next((each for each in done if each.broke), None)
    if breaking is not None:
        return f"seed {breaking.seed} breaks it; see it again with: tape replay {path} --shuffle {breaking.seed}"
    differing = [str(each.seed) for each in done if each.differs]
    if differing:
        return f"no order breaks a cell; outputs differ under {len(differing)} of {len(done)} (seed {differing[0]})"
    unsaved = {
        cell.number for each in done for cell in each.cells if cell.messages == (run.UNSAVED,)
    }
    if unsaved:
        unsaved_note = (
            f"; with no saved output to compare with: {format_count(len(unsaved), 'cell')}"
        )
    else:
        unsaved_note = ""
    return f"{format_count(len(done), 'order')} tried, all as saved{unsaved_note}"
