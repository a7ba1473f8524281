"""Notebook room: what is reported of a taped cell once it is over. Reads the cell and its cassette; changes neither."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tape_jupyter import kit
from tape_jupyter.cassette import Entry
from tape_jupyter.notebook import drifted, partial, saved, tags
from tape_jupyter.notebook.capture import row_of
from tape_jupyter.notebook.dialogues import told_by_all_turns
from tape_jupyter.notebook.taped import Cell, CellReport, Later, Row
from tape_jupyter.providers import recalled

NAMED_EDITS = 3


def report_of(cell: Cell, error: BaseException | None) -> CellReport:
    """Rows for every call, refusals, warnings: the cell's own and the cassette's."""
    notes = [*cell.notes, *(cell.cassette.notes if cell.cassette else [])]
    if edited := list(dict.fromkeys(cell.edited)):
        more = f" and {len(edited) - NAMED_EDITS} more" if len(edited) > NAMED_EDITS else ""
        notes.append(f"edited by hand: {', '.join(edited[:NAMED_EDITS])}{more}")
    if cell.stale:
        named = ", ".join(cell.stale[:NAMED_EDITS]) + (", ..." if len(cell.stale) > NAMED_EDITS else "")
        notes.append(f"{len(cell.stale)} stale: answered as another request was when recorded ({named})")
    seconds = time.perf_counter() - cell.started
    take, path, whereto = partial.told_of(cell)
    told = Later([*notes, *whereto], lambda: drifted.said(cell))
    return CellReport(
        cell.mode, path, Rows(cell), list(cell.refusals), list(cell.warnings), told, seconds, error is not None, take,
        list(cell.divergences), lambda: saved.spans_of(cell), list(cell.unheld), list(cell.lost),
    )  # fmt: skip


class Rows(Later[Row]):
    """A report's rows: a block that replays 10,000 calls shows none of them."""

    def __init__(self, cell: Cell) -> None:
        live, served, tags_of_run = list(cell.rows), list(cell.served), cell.tags.run
        self._count = len(live) + len(served)

        def made() -> Iterator[Row]:
            run = kit.tags_of(tags_of_run())
            yield from (replace(row, tags={**run, **row.tags}) for row in live)
            yield from map(row_of_entry, served)

        super().__init__((), made)

    def __len__(self) -> int:
        return self._count


def row_of_entry(entry: Entry) -> Row:
    """A recorded call as a row, stamped with whom it served: from its record's head, the reply unread."""
    head, run = entry.head(), entry.book.by_run.get(entry.run, {})
    own, whole = _mapping(head.get("kit")), _mapping(run.get("kit"))
    return replace(_row_of(entry, head, own), tags=tags.of_record(whole, own))


def _row_of(entry: Entry, head: Mapping[str, Any], own: Mapping[str, Any]) -> Row:
    seconds = float(head.get("seconds", 0.0))
    kind = str(head.get("kind", "host"))
    if kind in ("tool", "retrieval"):
        return Row(entry.id, kind, str(head.get("name", "")), seconds=seconds, error=str(head.get("failed", "")))
    told = recalled(own)
    if entry.more and (whole := told_by_all_turns(entry)) is not None:
        told, seconds = whole
    return row_of(entry.id, kind, told, seconds, name=str(head.get("name", "")), error=str(head.get("failed", "")))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
