"""Notebook room: what is reported of a taped cell once it is over. Reads the cell and its cassette; changes neither."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import overload

from tape_jupyter.cassette import Entry
from tape_jupyter.notebook.capture import row_of
from tape_jupyter.notebook.taped import Cell, CellReport, Row
from tape_jupyter.providers import recalled

NAMED_EDITS = 3


def report_of(cell: Cell, error: BaseException | None) -> CellReport:
    """Rows for every call, refusals, warnings: the cell's own and the cassette's."""
    notes = [*cell.notes, *(cell.cassette.notes if cell.cassette else [])]
    if edited := list(dict.fromkeys(cell.edited)):
        more = f" and {len(edited) - NAMED_EDITS} more" if len(edited) > NAMED_EDITS else ""
        notes.append(f"edited by hand: {', '.join(edited[:NAMED_EDITS])}{more}")
    seconds = time.perf_counter() - cell.started
    return CellReport(
        cell.mode, cell.path, Rows(cell), list(cell.refusals), list(cell.warnings), notes, seconds, error is not None
    )


class Rows(Sequence[Row]):
    """A report's rows, made when they are looked at: a block that replays 10,000 calls shows none of them."""

    def __init__(self, cell: Cell) -> None:
        self._live, self._served = list(cell.rows), list(cell.served)
        self._rows: list[Row] | None = None

    def _made(self) -> list[Row]:
        if self._rows is None:
            self._rows = [*self._live, *map(row_of_entry, self._served)]
        return self._rows

    def __len__(self) -> int:
        return len(self._live) + len(self._served)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._made()[index]


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
