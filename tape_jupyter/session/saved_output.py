"""What is saved below a taped cell for a front end that draws spans: which calls it was, and where
they lie.

No rows, no bodies, no times: a view reads them from the cassette when somebody opens it. So it is
as small for 500 calls as for one, and a replay that did the same writes the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cell_sources import Sources, cell_of
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.reader import Book
from tape_jupyter.cassette.takes import files
from tape_jupyter.spans.headers import read_call_headers
from tape_jupyter.spans.rows import Spans
from tape_jupyter.spans.tree import cell

if TYPE_CHECKING:
    from tape_jupyter.session.cell import TapedCell

MIME = "application/vnd.tape.spans+json"
VERSION = 2
"""1 held the rows themselves (`page`); front ends still draw it."""

MOST_CALLS = 200
"""Of a cell that is over, so many are looked at for its waterfall."""

_MOST_BYTES = 32 * 1024 * 1024
"""Records with more than that are not read again for a digest."""

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")

Places = list[list[str]]
"""`[[RUN, "0-4,7"], ...]`: calls by their run and their place among its calls in the file."""


class OnTape(NamedTuple):
    """What is on the tape of a cell: all its calls, and the spans of the first `MOST_CALLS`."""

    entries: list[Entry]
    spans: Spans


def on_tape(over: TapedCell) -> OnTape | None:
    """Of a cell that is over: what it was played, and what it recorded; None where that is nothing."""
    book = over.cassette
    if book is None or not book.path.exists():
        return None
    run = over.recording.run
    run_calls = [entry for entry in book.calls if entry.run == run] if run else []
    entries = list(dict.fromkeys([*over.execution.played, *run_calls]))
    if not entries:
        return None
    return OnTape(entries, spans_of_run(book, entries[0].run, entries[:MOST_CALLS]))


def spans_of_run(
    book: Book, run: str, entries: Iterable[Entry], sources: Sources | None = None, mode: str = ""
) -> Spans:
    """The spans of one run that made, or was played, these calls: in `mode`, else as recorded. In a
    mode of its own the cell takes as long as its calls did: the recorded cell did more than they.
    """
    spans = Spans(book, sources)
    record, ended = book.by_run.get(run, {"run": run}), book.ended.get(run)
    if mode:
        record, ended = {**record, "mode": mode, "at": ""}, ended and {**ended, "seconds": 0}
    headers = sorted(read_call_headers(list(entries)), key=lambda each: each.at)
    spans.nodes = list(cell(record, ended, headers))
    spans.zero = min((node.begin for node in spans.nodes if node.begin), default=0.0)
    return spans


def bundle(
    taped: OnTape, mode: str, notebook: Path | None, number: int | None = None
) -> dict[str, Any] | None:
    """The saved form; None for a cassette that is not below its notebook's folder. `number` is the
    one beside the cell.
    """
    entries, spans = taped
    path, root = spans.book.path, files.cassette_of(spans.book.path)
    where = notebook.parent if notebook is not None else root.absolute().parent.parent
    try:
        relative = path.absolute().relative_to(where.absolute()).as_posix()
        digest = records_digest(entries)
    except (ValueError, OSError):
        return None
    record = spans.nodes[0].record
    if number is not None:
        spans.sources.numbers[cell_of(record)] = number
    return {
        "version": VERSION, "mode": mode, "title": spans.sources.title(record), "cell": cell_of(record),
        "path": relative, "cassette": paths.stem(root), "take": files.take_name(path) if path != root else "",
        "calls": places_of(spans.book, entries), "sha256": digest,
    }  # fmt: skip


# ---------------------------------------------------------------- calls by their places


def places_of(book: Book, entries: Iterable[Entry]) -> Places:
    """Where calls stand among those of their runs."""
    ids_by_run: dict[str, set[str]] = {}
    for entry in entries:
        ids_by_run.setdefault(entry.run, set()).add(entry.id)
    places: dict[str, list[int]] = {run: [] for run in ids_by_run}
    counts = dict.fromkeys(ids_by_run, 0)
    for entry in book.calls:
        if entry.run in ids_by_run:
            if entry.id in ids_by_run[entry.run]:
                places[entry.run].append(counts[entry.run])
            counts[entry.run] += 1
    return [[run, _format_ranges(at)] for run, at in places.items()]


def calls_at(book: Book, places: Any) -> list[Entry]:
    """The calls at such places, as they are now; those that there are not any more are left out."""
    if not isinstance(places, Sequence):
        return []
    pairs = [each for each in places if isinstance(each, Sequence) and len(each) == 2]
    ranges = {str(run): list(_parse_ranges(str(text))) for run, text in pairs}
    counts = dict.fromkeys(ranges, 0)
    calls: dict[str, list[Entry]] = {run: [] for run in ranges}
    for entry in book.calls:
        if entry.run in ranges:
            at = counts[entry.run]
            counts[entry.run] += 1
            if any(low <= at <= high for low, high in ranges[entry.run]):
                calls[entry.run].append(entry)
    return [entry for run in calls.values() for entry in run]


def calls_named(book: Book, output: Mapping[str, Any]) -> list[Entry]:
    """The calls that a saved output names; of version 1 those whose rows it holds."""
    if "page" not in output:
        return calls_at(book, output.get("calls"))
    names = [str(name).rpartition("/") for name in output["page"]["id"]]
    calls = [book.call(run, call) for run, _, call in names if run]
    return [entry for entry in calls if entry is not None]


def _format_ranges(places: Sequence[int]) -> str:
    """`0-4,7` of ascending numbers."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def _parse_ranges(text: str) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        if (match := _RANGE.fullmatch(part)) is not None:
            yield int(match[1]), int(match[2] or match[1])


# ---------------------------------------------------------------- whether they are as they were


def records_digest(entries: Iterable[Entry]) -> str:
    """The sha256 of the calls' records as the files hold them, from after their `---` on to before
    their `...`, in the order of their places; "" where that is too much to read again.
    """
    digest, size = hashlib.sha256(), 0
    for entry in sorted(entries, key=lambda each: (each.run, each.place)):
        book = entry.book
        size += entry.length
        if size > _MOST_BYTES or not isinstance(book, Book):
            return ""
        text = book.raw(entry.offset, entry.length).replace(b"\r\n", b"\n")
        digest.update(text.removeprefix(b"---\n").removesuffix(b"...\n"))
    return digest.hexdigest()[:16]
