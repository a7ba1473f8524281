"""`tape why`: what makes a notebook come out otherwise than in another recording of it.

What differs between the two (replies, a cell's clock, its chance, its code) are the parts. A trial
replays the cells that depend on what it changes, offline, with some parts from the good recording
and the rest from the bad one. A request that only the good recording made is answered as there; one
that neither made leaves the trial unresolved.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from tape_jupyter.cassette.cell_sources import title_of
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.core.notebook_text import CodeCell
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.causes import answer
from tape_jupyter.experiments.causes.answer import Cause, CauseNode
from tape_jupyter.experiments.causes.asking import Asker, TrialLimits, require_limits
from tape_jupyter.experiments.causes.parts import Differences, differences, require_in_common
from tape_jupyter.experiments.causes.search import Search, Tried, require_difference
from tape_jupyter.experiments.causes.sides import Side, SideSources, side
from tape_jupyter.experiments.causes.tool_call_ids import with_ids_of
from tape_jupyter.experiments.check import Check
from tape_jupyter.experiments.recorded_job import job_of, saved_cells
from tape_jupyter.experiments.trials.runner import SECONDS, TrialRunner
from tape_jupyter.reports import listing
from tape_jupyter.spans.titles import summarise_call


def why(
    notebook: str | Path,
    good: str,
    bad: str,
    check: str,
    name: str | None = None,
    *,
    tried: Tried | None = None,
    **limits: Unpack[TrialLimits],
) -> Cause:
    """Find the smallest set of what the good recording has otherwise with which the check holds.

    `good` and `bad` are takes, cassettes (names or files) or run ids. `check` is a Python
    expression over the notebook's variables and `outputs` (the text that each code cell showed), or
    `cell:N` (that cell runs and does not raise), `output:N` (it shows what is saved), or the path
    of a pytest file, whose tests may ask for the fixtures `variables` and `outputs`.

    `on_divergence`: what becomes of a request that is on neither tape: "stop" leaves the trial
    unresolved, "stale" answers it with the nearest call's reply, "live" sends it (`max_calls`,
    `max_cost` in US dollars: at most so much) and keeps the answer in a take. `timeout`: seconds
    that one trial gets; `pace`: when recorded replies arrive (as `--pace`). Raises TapeUsageError,
    before any search where the check does not tell the two apart.
    """
    started = time.perf_counter()
    on_divergence, budget = require_limits(limits)
    path = Path(notebook).resolve()
    saved = saved_cells(path)
    parsed_check = Check.parse(check, path.parent)
    parsed_check.require(len(saved))
    roots = listing.list_cassettes(path, name)
    ours, theirs = side(roots, bad), side(roots, good)
    difference_set = _find_differences(path, saved, theirs, ours)
    stops = sorted({part.cell for part in difference_set.parts})
    job = replace(
        job_of(path, saved, ours, difference_set.cells, parsed_check, stops),
        stale=on_divergence == "stale",
        seconds=limits.get("timeout") or SECONDS,
        pace=limits.get("pace") or "",
    )
    with TrialRunner(job) as runner:
        newest = ours.recorded[-1].id if ours.recorded else ""
        asker = Asker(runner, ours.cassette, newest, budget)
        search = Search(
            difference_set, asker if on_divergence == "live" else runner, tried or do_nothing
        )
        search.note((frozenset[int](),), runner.recording, "nothing")
        every = range(len(difference_set.parts))
        require_difference(check, (bad, good), search.result([]), search.result(every))
        layers = search.layers()
        numbers = search.minimal(layers)
        within = search.within(numbers)
    parts = [difference_set.parts[number] for number in numbers]
    return Cause(
        minimal=tuple(part.id for part in parts),
        titles=tuple(part.title for part in parts),
        within=tuple(within),
        layers=answer.tried_layers(layers, difference_set.unswapped),
        differing=len(difference_set.parts),
        trials=len(search.results),
        unresolved=search.unresolved,
        seconds=time.perf_counter() - started,
        own=search.seconds,
        check=check,
        sides=(good, bad),
        tree=tuple(_build_tree(ours, difference_set, set(numbers))),
        notes=tuple(_describe_unswapped(difference_set)),
        asked=budget.calls,
        cost=asker.summary,
    )


def _find_differences(path: Path, saved: Sequence[CodeCell], good: Side, bad: Side) -> Differences:
    if good.calls == bad.calls and [run.id for run in good.runs] == [run.id for run in bad.runs]:
        raise TapeUsageError(
            f"--bad {bad.name} is no other recording of {path.name} than --good {good.name}"
        )
    require_in_common(good, bad)
    good = with_ids_of(good, bad)
    code = (SideSources(path, good), SideSources(path, bad))
    difference_set = differences(
        good, bad, [cell.source for cell in saved], [cell.id for cell in saved], code
    )
    if not difference_set.parts:
        around = [sentence for each in difference_set.unswapped.values() for sentence in each]
        raise TapeUsageError(
            f"{good.name} and {bad.name} answer every call alike, at the same time and by the same code"
            + (f"; what differs cannot be swapped offline: {'; '.join(around)}" if around else "")
        )
    return difference_set


def _build_tree(bad: Side, difference_set: Differences, culprits: set[int]) -> Iterator[CauseNode]:
    """The code cells that ask or differ, with their calls."""
    part_numbers = {part.id: number for number, part in enumerate(difference_set.parts)}
    at = {
        (part.bad.run, part.bad.id): part.id
        for part in difference_set.parts
        if part.bad is not None
    }
    for cell in difference_set.cells:
        run = cell.run.id if cell.run is not None else ""
        calls = [entry for entry in bad.calls if run and bad.parent(entry.run) == run]
        around = [
            part for part in difference_set.parts if part.bad is None and part.cell == cell.number
        ]
        if not calls and not around:
            continue
        yield CauseNode(cell.id, f"[{cell.number + 1}] {title_of(cell.source)}")
        for part in around:
            number = part_numbers[part.id]
            yield CauseNode(part.id, part.id, depth=1, differs=True, culprit=number in culprits)
        for entry in calls:
            name = at.get((entry.run, entry.id), "")
            culprit = bool(name) and part_numbers[name] in culprits
            yield CauseNode(
                entry.id,
                _name_call(entry),
                entry.name,
                1,
                differs=bool(name),
                culprit=culprit,
            )


def _name_call(entry: Entry) -> str:
    """`bccc10be model claude-sonnet-4-5 · "refund"`"""
    return " · ".join(filter(None, (f"{entry.id} {entry.title}", summarise_call(entry))))


def _describe_unswapped(difference_set: Differences) -> Iterator[str]:
    for layer, sentences in difference_set.unswapped.items():
        yield from (f"{layer}: {each}, and was not swapped" for each in sentences)
