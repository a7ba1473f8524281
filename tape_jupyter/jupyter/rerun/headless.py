"""`tape rerun NB`: a notebook run whole, in a fresh kernel, on a take; what comes out otherwise than
saved.

Nothing goes live but what --on-divergence lets out, into the take. The notebook itself is never
written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.headless import run as headless_run
from tape_jupyter.jupyter.rerun.comparison import (
    CellChange,
    Comparison,
    Mark,
    RerunProof,
    SpanChange,
    answers_changed,
    outputs_changed,
)
from tape_jupyter.reports import diff, listing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbformat import NotebookNode

_MARKS: Mapping[str, Mark] = {"changed": "changed", "only in A": "gone", "only in B": "added"}


@dataclass(frozen=True, slots=True)
class HeadlessRerun:
    """How each cell fared, what changed, and where the outputs were written ("" nowhere)."""

    runs: list[headless_run.CellRun]
    comparison: Comparison
    written: str = ""

    @property
    def good(self) -> bool:
        """Whether every cell ran that ran when it was saved; that one shows something else is what
        a re-run is for.
        """
        return all(run.good or run.status == "differs" for run in self.runs)

    def record(self) -> dict[str, Any]:
        cells = [run.record() for run in self.runs]
        return {
            "ok": self.good,
            "cells": cells,
            "comparison": self.comparison.record(),
            "written": self.written,
        }


def named_take(notebook: Path, name: str | None, cassette: str | None = None) -> tuple[Path, str]:
    """The cassette and the take of it: the named one, else the default, else the newest. Raises
    TapeUsageError.
    """
    return files.choose_take(listing.list_cassettes(notebook, cassette), name or "")


def rerun_headless(
    notebook: Path,
    root: Path,
    take: str,
    starting: headless_run.Starting,
    on_cell: headless_run.OnCell,
    *,
    env: Mapping[str, str],
    output: Path | None = None,
    timeout: float | None = None,
) -> HeadlessRerun:
    """Run it. `output`: where to write the notebook with its new outputs; never over a file. Raises
    TapeUsageError.
    """
    if output is not None and output.exists():
        raise TapeUsageError(f"{output} exists already and is not overwritten: name another file")
    saved = headless_run.read_notebook(notebook)
    runs, replayed = headless_run.replay_with_outputs(notebook, starting, on_cell, timeout, env)
    if output is not None:
        _write_notebook(replayed, output)
    return HeadlessRerun(
        runs, _build_comparison(saved, replayed, runs, root, take), str(output or "")
    )


def _build_comparison(
    saved: NotebookNode,
    replayed: NotebookNode,
    runs: list[headless_run.CellRun],
    root: Path,
    take: str,
) -> Comparison:
    executed = [run for run in runs if run.status != "not run"]
    stopped = None
    first = next((run for run in runs if run.status in ("missed", "failed")), None)
    if first is not None:
        stopped = f"[{first.number}] {first.title}: {first.messages[0]}"
    return Comparison(
        take=take,
        ran=len(executed),
        cells=tuple(_compare_cells(saved, replayed, {run.number: run for run in executed})),
        spans=tuple(_compare_spans(root, take)),
        stopped=stopped,
        proof=RerunProof(
            "proved" if stopped is None else "not provable",
            "all cells ran in a fresh kernel" if not stopped else "",
        ),
    )


def _compare_cells(
    saved: NotebookNode, replayed: NotebookNode, executed: Mapping[int, headless_run.CellRun]
) -> list[CellChange]:
    changes, number = [], 0
    for old, new in zip(saved.cells, replayed.cells, strict=True):
        if not headless_run.has_code(new):
            continue
        number += 1  # as a headless run counts: cells with code alone
        if number in executed:
            changed = outputs_changed(old.outputs, new.outputs)
            changes.append(CellChange(new.get("id", ""), number, executed[number].title, changed))
    return changes


def _compare_spans(root: Path, take: str) -> list[SpanChange]:
    base = Cassette.open(root)
    derived = base.take(take)
    before, after = ({entry.name: entry for entry in each.calls} for each in (base, derived))
    return [
        SpanChange(
            each.a or None,
            each.b or None,
            each.title,
            _MARKS[each.what],
            answers_changed(before.get(each.a), after.get(each.b)),
        )
        for each in diff.diff(base, derived)
    ]


def _write_notebook(replayed: NotebookNode, output: Path) -> None:
    import nbformat

    with output.open("x", encoding="utf-8") as file:
        nbformat.write(replayed, file)  # type: ignore[no-untyped-call]
