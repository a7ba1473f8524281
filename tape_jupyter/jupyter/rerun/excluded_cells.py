"""The cells that a person leaves out of a take's re-runs (skipped at a divergence, or not ticked in
the plan), remembered in the take: the next plan leaves them out too, and nobody is asked again.

In the take it is a run without calls that adds to the recorded one, and its end says `skipped`;
`ran` where the cell was taken in again. Of a cell that has no recording the parent is `cell:ID`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import title_of
from tape_jupyter.cassette.records import moment_text
from tape_jupyter.dataflow.plan import Plan
from tape_jupyter.secrets.registry import Secrets

if TYPE_CHECKING:
    from tape_jupyter.dataflow.history import Execution, History

SKIPPED, RAN = "skipped", "ran"
REASON = "you left it out before, in this take"


def planned(plan: Plan, take: Cassette, history: History) -> Plan:
    """The plan, with what was left out last time not ticked."""
    out = entries(plan, take, history)
    marked = (
        replace(cell, ticked=False, reasons=(REASON, *cell.reasons)) if cell.entry in out else cell
        for cell in plan.cells
    )
    return replace(plan, cells=tuple(marked)) if out else plan


def entries(plan: Plan, take: Cassette, history: History) -> set[int]:
    """The entries of a plan that were left out last time."""
    out = cells(take)
    return {cell.entry for cell in plan.cells if _to_parent_name(history[cell.entry]) in out}


def cells(take: Cassette) -> set[str]:
    """What is left out in a take, as `parent` names it."""
    outcomes: dict[str, str] = {}
    for run in take.runs:
        outcome = str(take.ended.get(str(run.get("run")), {}).get("outcome"))
        if outcome in (SKIPPED, RAN):
            outcomes[str(run.get("parent"))] = outcome
    return {name for name, outcome in outcomes.items() if outcome == SKIPPED}


def remember_excluded(
    take: Cassette, planned_: Iterable[Execution], skipped: Iterable[Execution]
) -> None:
    """Of the cells of a plan, which were left out: commits what differs from what the take says.
    Raises CassetteError.

    A recording that is no take is never written.
    """
    if take.base is None:
        return
    before, now = cells(take), {_to_parent_name(entry) for entry in skipped}
    for entry in planned_:
        name = _to_parent_name(entry)
        if (name in before) != (name in now):
            _write_outcome(take, entry, SKIPPED if name in now else RAN)


def _to_parent_name(entry: Execution) -> str:
    return entry.run or f"cell:{entry.cell}"


def _write_outcome(take: Cassette, entry: Execution, outcome: str) -> None:
    secrets = Secrets()
    secrets.learn_environment(os.environ)
    base = take.by_run.get(entry.run, {})
    known: dict[str, Any] = {key: base[key] for key in ("cell", "source", "session") if key in base}
    fields: dict[str, Any] = {
        "mode": "replay",
        "cell": entry.cell,
        **known,
        "title": title_of(entry.source),
    }
    record = {**fields, "at": moment_text(datetime.now(UTC)), "parent": _to_parent_name(entry)}
    run = take.start_run(record, {}, secrets)
    take.end_run(run, {"outcome": outcome, "calls": 0}, secrets)
