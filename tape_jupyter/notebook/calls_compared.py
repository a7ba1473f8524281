"""Notebook room: the calls of a cell before and after it ran again, aligned."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tape_jupyter.bodies import decode
from tape_jupyter.calls import FunctionCall, Reply, header
from tape_jupyter.cassette import Cassette, Entry, Overridden
from tape_jupyter.errors import CassetteError
from tape_jupyter.notebook.comparison import Mark, SpanChange, short
from tape_jupyter.notebook.taped import Cell
from tape_jupyter.providers import turns

_NOTES = {"live": "went live", "stale": "stale: recorded for another request", "hand": "written by hand"}


def calls_changed(run: str, cell: Cell) -> list[SpanChange]:
    """`run` is the recording that the cell repeats, `cell` the taped cell that is over."""
    book = cell.cassette
    if book is None:
        return []
    recorded = {entry.name: entry for entry in map(_recorded, book.calls) if entry.run == run}
    served = [entry for entry in cell.served if entry.run == run]
    found = [_pair(recorded.pop(entry.name, None) or _recorded(entry), entry) for entry in served]
    new = [entry for entry in book.calls if cell.run and entry.run == cell.run]
    for entry in [*(each for each in cell.served if each.run != run), *new]:
        old = recorded.pop(str(entry.head().get("frozen", "")), None)
        found.append(_pair(old or _like(recorded, entry), entry))
    return [*found, *(SpanChange(name, None, old.title, "gone") for name, old in recorded.items())]


def played_tools(cell: Cell) -> list[str]:
    """The names of the tools whose recorded values it was given; those that a person wrote are not among them."""
    played = [entry for entry in cell.served if not isinstance(entry, Overridden)]
    requests = [entry.request() for entry in played if not entry.head().get("diverged")]
    return [request.name for request in requests if isinstance(request, FunctionCall)]


def calls_of_take(take: Cassette, runs: Collection[str]) -> list[SpanChange]:
    """The calls of these recordings, each beside what the take answers in its place."""
    return [_pair(_recorded(entry), entry) for entry in take.calls if entry.run in runs]


def _recorded(entry: Entry) -> Entry:
    return entry.recorded if isinstance(entry, Overridden) else entry


def _like(left: dict[str, Entry], entry: Entry) -> Entry | None:
    """The recorded call that it took the place of: the first that is left with its kind and name."""
    same = next((name for name, old in left.items() if old.title == entry.title), None)
    return left.pop(same) if same is not None else None


def _pair(old: Entry | None, new: Entry) -> SpanChange:
    how = _NOTES.get(str(new.head().get("diverged", "")), "")
    if old is None:
        return SpanChange(None, new.name, new.title, "added", how)
    said = (_said(old), _said(new)) if old is not new else ("", "")
    mark: Mark = "changed" if old is not new else "same"
    note = ", ".join(filter(None, (how, f"{said[0]} -> {said[1]}" if said[0] != said[1] else "")))
    return SpanChange(old.name, new.name, new.title, mark, note)


def _said(entry: Entry) -> str:
    return next(_gist(entry), "")


def _gist(entry: Entry) -> Iterator[str]:
    try:
        reply = entry.reply()
    except CassetteError:
        return
    if isinstance(reply, Reply):
        data = decode(b"".join(reply.chunks), header(reply.headers, "content-encoding")) or b""
        yield turns.gist(turns.said(reply.headers, data), 60)
    else:
        yield short(reply.value if reply.error is None else reply.error)
