"""The spans of a book as rows in columns, page by page: protocol.ts' `Page` and `Totals`.

The tree of 10,000 calls is made of heads alone; bodies are read for the rows of a page, as many as
a time allows: a page may be shorter than was asked for. What was read is kept while the book only
grows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tape_jupyter.cassette.cell_sources import Sources, cell_of, notebook_of
from tape_jupyter.cassette.index_entries import Overridden
from tape_jupyter.cassette.reader import Book
from tape_jupyter.core.real_clock import perf_counter
from tape_jupyter.providers.registry import Facts, call_cost
from tape_jupyter.spans.headers import CELL, SPAN, CallHeader, CallHeaders
from tape_jupyter.spans.titles import RowSummary, happened, one_line
from tape_jupyter.spans.tree import NOTHING_RUNS, Node, Pending, grow


def price(facts: Facts, at: float) -> float | None:
    """US dollars of a call made `at` (seconds of the epoch), at list price; None where it is not
    known.
    """
    dollars = call_cost(facts, datetime.fromtimestamp(at if 0 < at < _LATE else 0, UTC))
    return None if dollars is None else float(dollars)


_LATE = 32_503_680_000  # the year 3000: a moment made by hand


MARKS = ("", "overridden", "error", "diverged", "stale", "running", "superseded", "retried")
NONE, OVERRIDDEN, ERROR, DIVERGED, STALE, RUNNING, SUPERSEDED, RETRIED = range(8)
COLUMNS = (
    "id",
    "depth",
    "kind",
    "mark",
    "start",
    "first",
    "end",
    "name",
    "note",
    "tokens",
    "cost",
    "cell",
)
LIMIT = 5_000
"""Rows of a page, at most."""

PATIENCE = 0.05
"""Seconds in which bodies are read for one page; the first rows of a page are read in any case."""

AT_ONCE = 0.01
"""The same for the first page: somebody waits for it."""

_AT_LEAST = 60
_PLACES = 4  # decimals of a second


class SpanRow(NamedTuple):
    """One span. `start`, `first` and `end` are seconds since the earliest span."""

    id: str
    depth: int
    kind: int
    mark: int
    start: float
    first: float | None
    end: float
    name: str
    note: str
    tokens: int | None
    cost: float | None
    cell: str


class Spans:
    """The spans of a book as they are now. Safe to use from several threads.

    `revision` changes when a row changes that a view may have, unless `refresh` said from which row
    on.
    """

    def __init__(self, book: Book, sources: Sources | None = None) -> None:
        self.book = book
        self.sources = sources or Sources(notebook_of(book.path))
        self.revision = 1
        self.nodes: list[Node] = []
        self.zero = 0.0
        self.lines: dict[Path, tuple[int, int]] = {}
        """By file: a record's offset and line, from which others are counted on (details.py)."""
        self._heads = CallHeaders.from_book(book)
        self._places: dict[str, int] | None = None
        self._by_place: dict[int, tuple[CallHeader, int, RowSummary]] = {}
        self._pending = NOTHING_RUNS
        self._marks: list[tuple[Any, ...]] = []
        self._lock = threading.RLock()

    def refresh(self, pending: Pending = NOTHING_RUNS) -> int:
        """Look at the book as it is now (Book.refresh is the caller's). Gives the first row that is
        not as it was.
        """
        with self._lock:
            was, zero = self._marks, self.zero
            self.lines.clear()
            self._pending = pending
            self.nodes = grow(self.book, self._heads.read(), pending)
            self.zero = min((node.begin for node in self.nodes if node.begin), default=0.0)
            self._places = None
            self._marks = [self._build_signature(node) for node in self.nodes]
            if zero and zero != self.zero:
                return 0
            same = zip(was, self._marks, strict=False)
            for row, (old, new) in enumerate(same):
                if old != new:
                    return row
            return min(len(was), len(self._marks))

    def _build_signature(self, node: Node) -> tuple[Any, ...]:
        """What a row that was sent must share with the row as it is; a cell that runs grows without
        being sent anew.
        """
        header = node.header
        if header is not None:
            entry = header.entry
            more = len(entry.more) if entry is not None else -1
            return (node.id, node.depth, entry, more, node.superseded)
        if node.kind == CELL:
            runs = node.id == self._pending.run
            number = self.sources.number(node.record)
            return (
                node.id,
                runs,
                None if runs else node.end,
                number,
                None if runs else node.ended.get("end"),
            )
        return (node.id, node.depth)

    def place(self, span: str) -> int | None:
        """The row of a span."""
        with self._lock:
            if self._places is None:
                self._places = {node.id: row for row, node in enumerate(self.nodes)}
            return self._places.get(span)

    def node(self, span: str) -> Node | None:
        with self._lock:
            place = self.place(span)
            return None if place is None else self.nodes[place]

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[SpanRow]:
        """The rows of a stretch, their bodies read."""
        for node in self.nodes[start:stop]:
            yield self.row(node)

    def below(self, span: str) -> tuple[int, int]:
        """The rows of a span and all below it, as a stretch; empty where there is none."""
        place = self.place(span)
        if place is None:
            return 0, 0
        depth, stop = self.nodes[place].depth, place + 1
        while stop < len(self.nodes) and self.nodes[stop].depth > depth:
            stop += 1
        return place, stop

    def page(self, start: int, limit: int = LIMIT, patience: float | None = None) -> dict[str, Any]:
        """Columns of rows `start` and on: protocol.ts' `Page`."""
        if patience is None:
            patience = PATIENCE if start else AT_ONCE
        with self._lock:
            rows = self._read_rows(start, max(0, min(limit, LIMIT)), patience)
            return columns(rows, self.revision, start, len(self.nodes))

    def _read_rows(self, start: int, limit: int, patience: float) -> list[SpanRow]:
        rows: list[SpanRow] = []
        until = perf_counter() + patience
        for node in self.nodes[start : start + limit]:
            rows.append(self.row(node))
            if len(rows) >= _AT_LEAST and perf_counter() > until:
                break
        return rows

    def happened(self, header: CallHeader) -> RowSummary:
        """What happened in a call; read once."""
        entry = header.entry
        if entry is None:
            return happened(header)
        known = self._by_place.get(entry.place)
        if known is None or known[0] is not header or known[1] != len(entry.more):
            known = (header, len(entry.more), happened(header))
            self._by_place[entry.place] = known
        return known[2]

    def row(self, node: Node) -> SpanRow:
        """A node as it is shown."""
        header, cell = node.header, cell_of(node.record)
        start = node.begin - self.zero if node.begin else 0.0
        end = node.end - self.zero if node.end else 0.0
        if header is None:
            name, note = self._build_heading(node)
            mark = self._find_cell_mark(node)
            return SpanRow(
                node.id,
                node.depth,
                node.kind,
                mark,
                _round_seconds(start),
                None,
                _round_seconds(start + node.seconds if end else end),
                name,
                note,
                None,
                None,
                cell,
            )
        seen = self.happened(header)
        if header.running:
            end = max(start, self._pending.now - self.zero)
        first = None if seen.first is None else min(start + seen.first, end)
        usage = header.facts.usage
        return SpanRow(
            node.id, node.depth, node.kind, _find_call_mark(node, header, seen),
            _round_seconds(start), None if first is None else _round_seconds(first), _round_seconds(end),
            seen.name, seen.note,
            usage.input + usage.output if usage else None,
            _round_dollars(price(header.facts, node.begin)), cell,
        )  # fmt: skip

    def _build_heading(self, node: Node) -> tuple[str, str]:
        if node.kind == SPAN:
            return one_line(node.name), ""
        outcome = str(node.ended.get("outcome", "")) or (
            "" if node.id == self._pending.run else "incomplete"
        )
        notes = [
            str(node.record.get("mode", "")),
            outcome if outcome != "ok" else "",
            _format_added(node),
        ]
        return one_line(self.sources.title(node.record)), one_line(" · ".join(filter(None, notes)))

    def _find_cell_mark(self, node: Node) -> int:
        if node.kind != CELL:
            return NONE
        if node.id == self._pending.run:
            return RUNNING
        return ERROR if node.ended.get("outcome") == "raised" else NONE

    def totals(self) -> dict[str, Any]:
        """protocol.ts' `Totals`: of all calls but superseded ones; what was sent again is no error.
        Seconds are those of the cells.
        """
        with self._lock:
            calls = [
                (header, node.retried)
                for node in self.nodes
                if (header := node.header) and not node.superseded
            ]
            used = [header for header, _ in calls if header.facts.usage is not None]
            prices = [price(header.facts, header.at) for header in used]
            known = [dollars for dollars in prices if dollars is not None]
            return {
                "spans": len(self.nodes),
                "calls": len(calls),
                "errors": sum(
                    1
                    for header, sent_again in calls
                    if (header.failed or header.error) and not sent_again
                ),
                "seconds": _round_seconds(
                    sum(node.seconds for node in self.nodes if node.kind == CELL)
                ),
                "tokens_in": sum(t.facts.usage.input for t in used if t.facts.usage)
                if used
                else None,
                "tokens_out": sum(t.facts.usage.output for t in used if t.facts.usage)
                if used
                else None,
                "cost": _round_dollars(sum(known)) if known else None,
                "partial": len(known) < len(prices),
            }


def columns(rows: Sequence[SpanRow], revision: int, start: int, total: int) -> dict[str, Any]:
    """Rows as protocol.ts' `Page`."""
    values = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    lists = {name: list(column) for name, column in zip(COLUMNS, values, strict=True)}
    return {"revision": revision, "from": start, "total": total, **lists}


def _find_call_mark(node: Node, header: CallHeader, seen: RowSummary) -> int:
    if node.superseded:
        return SUPERSEDED
    mark = mark_of(header, seen)
    return RETRIED if node.retried and mark in (ERROR, DIVERGED) else mark


def mark_of(header: CallHeader, seen: RowSummary) -> int:
    """The one mark of a call: what a person must know first."""
    if header.running:
        return RUNNING
    if header.error:
        return ERROR
    if header.diverged:
        return STALE if header.diverged == "stale" else DIVERGED
    if isinstance(header.entry, Overridden):
        return OVERRIDDEN
    return ERROR if seen.failed else NONE


def _format_added(node: Node) -> str:
    added = "added" if node.record.get("parent") else ""
    return f"{node.added} new" if node.added else added


def _round_seconds(seconds: float) -> float:
    return round(seconds, _PLACES)


def _round_dollars(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 9)
