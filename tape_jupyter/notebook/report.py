"""Notebook room: what is reported of a taped cell once it is over. Reads the cell and its cassette; changes neither."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tape_jupyter.cassette import Entry
from tape_jupyter.notebook.capture import row_of
from tape_jupyter.notebook.taped import Cell, CellReport, Row
from tape_jupyter.providers import recalled

NAMED_EDITS = 3


def report_of(cell: Cell, error: BaseException | None) -> CellReport:
    """Rows for every call, refusals, warnings: the cell's own and the cassette's."""
    rows = [*cell.rows, *(row_of_entry(entry) for entry in cell.served)]
    notes = [*cell.notes, *(cell.cassette.notes if cell.cassette else [])]
    if edited := list(dict.fromkeys(cell.edited)):
        more = f" and {len(edited) - NAMED_EDITS} more" if len(edited) > NAMED_EDITS else ""
        notes.append(f"edited by hand: {', '.join(edited[:NAMED_EDITS])}{more}")
    seconds = time.perf_counter() - cell.started
    return CellReport(
        cell.mode, cell.path, rows, list(cell.refusals), list(cell.warnings), notes, seconds, error is not None
    )


def row_of_entry(entry: Entry) -> Row:
    """A recorded call as a row: from its record's head, the reply unread."""
    head = entry.head()
    kit = head.get("kit", {})
    seconds = float(head.get("seconds", 0.0))
    kind = str(head.get("kind", "host"))
    if kind in ("tool", "retrieval"):
        return Row(entry.id, kind, str(head.get("name", "")), seconds=seconds, error=str(head.get("failed", "")))
    told = recalled(kit if isinstance(kit, Mapping) else {})
    return row_of(entry.id, kind, told, seconds, name=str(head.get("name", "")), error=str(head.get("failed", "")))
