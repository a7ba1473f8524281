"""What is reported of a taped cell once it is over. Reads the cell and its cassette; changes
neither.

A cell that ran live again: what is another than when it was recorded before, in one summary line.

Reads the cassette once the cell is over, and no more of it than a summary is worth; never fails the
cell.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain, islice
from typing import Any

from tape_jupyter.audit import drift, environment
from tape_jupyter.audit.run_view import AuditedRun, call_seen, view_run
from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.cassette.runs import run_of, span_of
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.core.plain_text import join_some
from tape_jupyter.providers.json_access import as_mapping
from tape_jupyter.providers.registry import recalled
from tape_jupyter.session import labels, partial_replay, saved_output
from tape_jupyter.session.cell import CellReport, DeferredList, ReportRow, TapedCell
from tape_jupyter.session.http_recorder import row_of
from tape_jupyter.session.websocket_recorder import told_by_all_turns

CALLS = 30
"""Calls of each run that are compared."""


def first_live_line(cell: TapedCell) -> list[str]:
    """The line, or nothing: the cell was not run live, or never before, or nothing else answered."""
    tape = cell.cassette
    if tape is None or not cell.recording.run or cell.mode not in ("record", "replay"):
        return []
    try:
        if cell.replaying:
            differences = _compare_with_recording(tape, cell)
        else:
            differences = _compare_with_earlier(tape, cell)
    except Exception as error:
        return [
            f"what changed since the last recording cannot be determined: {type(error).__name__}: {error}"
        ]
    line = drift.line(differences)
    return [line] if line else []


def _compare_with_earlier(tape: Cassette, cell: TapedCell) -> list[drift.Drift]:
    earlier = _find_earlier_run(tape, cell)
    if not earlier:
        return []
    return drift.drift(_read_run(tape, earlier), _read_run(tape, cell.recording.run))


_SEEN: weakref.WeakKeyDictionary[Cassette, dict[str, AuditedRun]] = weakref.WeakKeyDictionary()
_KEPT, _SMALL = 8, 1 << 18


def _read_run(tape: Cassette, run: str) -> AuditedRun:
    """A run that is over. The last few small ones are kept: what was recorded now is the earlier
    one when its cell is recorded next.
    """
    kept = _SEEN.setdefault(tape, {})
    if (view := kept.get(run)) is None:
        view = view_run(tape, run, limit=CALLS)
        replies = [call.reply for call in view.calls if isinstance(call.reply, Reply)]
        requests = [call.request for call in view.calls if isinstance(call.request, Request)]
        bytes_ = sum(each.size for each in replies) + sum(len(each.body) for each in requests)
        if bytes_ <= _SMALL and all(isinstance(each.request, Request) for each in view.calls):
            while len(kept) >= _KEPT:
                del kept[next(iter(kept))]
            kept[run] = view
    return view


def _find_earlier_run(tape: Cassette, cell: TapedCell) -> str:
    """The newest other recording of this cell."""
    cell_identity = cell.execution.cell
    for record in reversed(tape.runs):
        names = (str(record.get("cell") or ""), str(record.get("source") or ""))
        if cell_identity.cell_id != names[0] and cell_identity.source != names[1]:
            continue
        run = run_of(record)
        if run.id != cell.recording.run and not run.parent and run.cell.same_cell(cell_identity):
            return run.id
    return ""


def _compare_with_recording(tape: Cassette, cell: TapedCell) -> list[drift.Drift]:
    """What ran live in a replay, against what it took the place of."""
    overrides = [each for each in tape.overrides if each.by == cell.recording.run][:CALLS]
    pairs = [(call_seen(each.recorded), call_seen(each)) for each in overrides]
    parent = cell.player.repeats(cell.execution)
    if not overrides or not parent:
        return drift.of_pairs(pairs)
    base, live = (_read_run_without_calls(tape, run) for run in (parent, cell.recording.run))
    return [*drift.of_pairs(pairs), *drift.of_runs(base, live)]


def _read_run_without_calls(tape: Cassette, run: str) -> AuditedRun:
    """A run without its calls."""
    return view_run(tape, run, limit=0)


NAMED_EDITS = 3


def cell_report(cell: TapedCell, error: BaseException | None) -> CellReport:
    """Rows for every call, refusals, warnings: the cell's own and the cassette's."""
    notes = [*cell.findings.notes, *(cell.cassette.notes if cell.cassette else [])]
    if edited := list(dict.fromkeys(cell.findings.edited)):
        notes.append(f"edited by hand: {join_some(edited, NAMED_EDITS)}")
    if cell.findings.stale:
        named = ", ".join(cell.findings.stale[:NAMED_EDITS]) + (
            ", ..." if len(cell.findings.stale) > NAMED_EDITS else ""
        )
        notes.append(
            f"{len(cell.findings.stale)} stale: answered as another request was when recorded ({named})"
        )
    seconds = cell.start.measure_elapsed()
    take, path, whereto = partial_replay.summarise_take(cell)
    all_notes = DeferredList([*notes, *whereto], lambda: first_live_line(cell))
    findings = cell.findings
    return CellReport(
        cell.mode,
        path,
        Rows(cell),
        list(findings.refusals),
        list(findings.warnings),
        all_notes,
        seconds,
        error is not None,
        take,
        list(findings.divergences),
        cache(lambda: saved_output.on_tape(cell)),
        list(findings.unheld),
        list(findings.lost),
    )


class Rows(DeferredList[ReportRow]):
    """A report's rows: a block that replays 10,000 calls shows none of them."""

    def __init__(self, cell: TapedCell) -> None:
        live = list(cell.findings.rows)
        served = list(cell.execution.played)
        tags_of_run = cell.tags.run
        order, decided = list(cell.recording.ran), dict(cell.execution.decided)
        self._count = len(live) + len(served)

        def build_rows() -> Iterator[ReportRow]:
            run = environment.tags_of(tags_of_run())
            made = (replace(row, tags={**run, **row.tags}) for row in live)
            played = (_build_played_row(entry, decided) for entry in served)
            names = {span_of(e.run, e.id) for e in served}
            for name in order:
                yield from islice(played if name in names else made, 1)
            yield from chain(made, played)

        super().__init__((), build_rows)

    def __len__(self) -> int:
        return self._count


def row_of_entry(entry: Entry) -> ReportRow:
    """A recorded call as a row, stamped with whom it served: from its record's head, the reply
    unread.
    """
    head, run = entry.head(), entry.book.by_run.get(entry.run, {})
    call_kit, run_kit = as_mapping(head.get("kit")), as_mapping(run.get("kit"))
    return replace(_build_row(entry, head, call_kit), tags=labels.recorded_tags(run_kit, call_kit))


def _build_played_row(entry: Entry, decided: Mapping[str, str]) -> ReportRow:
    """The row of a call that its cell was given. A re-run begins a cell anew after each request that
    a person decides (`decided`: what, by match key): what went live before is of the same re-run.
    """
    went_live = decided.get(entry.match) == "live" and entry.head().get("diverged") == "live"
    return replace(row_of_entry(entry), live=went_live)


def _build_row(entry: Entry, head: Mapping[str, Any], call_kit: Mapping[str, Any]) -> ReportRow:
    seconds = float(head.get("seconds", 0.0))
    kind = str(head.get("kind", "host"))
    if kind in ("tool", "retrieval"):
        return ReportRow(
            entry.id,
            kind,
            str(head.get("name", "")),
            seconds=seconds,
            error=str(head.get("failed", "")),
        )
    facts = recalled(call_kit)
    if entry.more and (all_turns := told_by_all_turns(entry)) is not None:
        facts, seconds = all_turns
    return row_of(
        entry.id,
        kind,
        facts,
        seconds,
        name=str(head.get("name", "")),
        error=str(head.get("failed", "")),
    )
