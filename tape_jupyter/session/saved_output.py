"""What is saved below a taped cell for a front end that draws spans: its rows, and where the rest
lies.

Rows without bodies, some hundred at most; the cassette's path from the notebook on, and the digest
of what it held.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette.cell_sources import cell_of
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.takes import files
from tape_jupyter.spans.headers import read
from tape_jupyter.spans.rows import PATIENCE, Spans
from tape_jupyter.spans.session import NOTHING
from tape_jupyter.spans.tree import Node, cell

if TYPE_CHECKING:
    from tape_jupyter.session.cell import ReportRow, TapedCell

MIME = "application/vnd.tape.spans+json"
MOST_BYTES = 64 * 1024
MOST_CALLS = 200
_BLOCK = 1024 * 1024


def spans_of(over: TapedCell) -> Spans | None:
    """The spans of a cell that is over: what it recorded, or what it was played; None where nothing
    is on a tape.
    """
    book = over.cassette
    if book is None or not book.path.exists():
        return None
    own = [entry for entry in book.calls if entry.run == over.run] if over.run else []
    entries = list(dict.fromkeys([*over.served, *own]))
    if not entries:
        return None
    spans = Spans(book)
    spans.nodes = _nodes(spans, entries)
    spans.zero = min((node.begin for node in spans.nodes if node.begin), default=0.0)
    return spans


def _nodes(spans: Spans, entries: list[Entry]) -> list[Node]:
    """The cell run and its first calls, in tree order."""
    book, run = spans.book, entries[0].run
    told = sorted(read(entries[:MOST_CALLS]), key=lambda each: each.at)
    return list(cell(book.by_run.get(run, {"run": run}), book.ended.get(run), told))


def bundle(
    spans: Spans, calls: Sequence[ReportRow], mode: str, notebook: Path | None
) -> dict[str, Any] | None:
    """The saved form; None for a cassette that is not below its notebook's folder. `calls`: all
    that the cell made.
    """
    path, root = spans.book.path, files.cassette_of(spans.book.path)
    where = notebook.parent if notebook is not None else root.absolute().parent.parent
    try:
        relative = path.absolute().relative_to(where.absolute()).as_posix()
        size, digest = digest_of(path)
    except (ValueError, OSError):
        return None
    record = spans.nodes[0].record
    totals = {**NOTHING, **spans.totals(), **(_sums(calls) if len(calls) > MOST_CALLS else {})}
    whole = {
        "version": 1, "title": spans.sources.title(record), "cell": cell_of(record), "run": str(record.get("run")),
        "path": relative, "cassette": files.stem(root), "take": files.name_of(path) if path != root else "",
        "bytes": size, "sha256": digest,
        "session": {
            "mode": mode, "cassettes": [files.stem(root)], "cassette": files.stem(root),
            "take": files.name_of(path) if path != root else "", "takes": [], "default_take": "",
            "totals": totals, "running": None, "notes": [],
        },
    }  # fmt: skip
    return _fitting(whole, spans, len(calls))


def _sums(calls: Sequence[ReportRow]) -> dict[str, Any]:
    """Of more calls than have a row here, as the summary's line counts them."""
    used = [row for row in calls if row.tokens_in is not None or row.tokens_out is not None]
    known = [row.cost for row in used if row.cost is not None]
    return {
        "spans": len(calls) + 1, "calls": len(calls), "errors": sum(1 for row in calls if row.error),
        "tokens_in": sum(row.tokens_in or 0 for row in used) if used else None,
        "tokens_out": sum(row.tokens_out or 0 for row in used) if used else None,
        "cost": float(sum(known)) if known else None, "partial": len(known) < len(used),
    }  # fmt: skip


def _fitting(whole: dict[str, Any], spans: Spans, count: int) -> dict[str, Any]:
    """With as many rows as the size allows; the page's total says how many there are."""
    rows = total = len(spans.nodes)
    if count > MOST_CALLS:
        total = max(total, count + 1)
    while True:
        page = spans.page(0, rows, 10 * PATIENCE)
        found = {**whole, "page": {**page, "total": total}}
        if rows <= 1 or len(json.dumps(found)) <= MOST_BYTES:
            return found
        rows //= 2


# ---------------------------------------------------------------- the digest of a file that grows

_TAIL, _SMALL = 4096, 4 * 1024 * 1024
_known: dict[Path, tuple[int, int, bytes, Any]] = {}


def digest_of(path: Path) -> tuple[int, str]:
    """Size and sha256 of a file. Of one that only grew since it was asked for, the new bytes alone
    are read.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        inode, size, tail, told = _known.get(path, (0, 0, b"", None))
        file.seek(size - len(tail))
        small = found.st_size < _SMALL  # read anew: an edit in its midst shows
        if (
            small
            or told is None
            or inode != found.st_ino
            or found.st_size < size
            or file.read(len(tail)) != tail
        ):
            size, tail, told = 0, b"", hashlib.sha256()
            file.seek(0)
        told = told.copy()
        while block := file.read(min(_BLOCK, found.st_size - size)):
            told.update(block)
            size, tail = size + len(block), (tail + block)[-_TAIL:]
    _known[path] = (found.st_ino, size, tail, told)
    return size, str(told.hexdigest())
