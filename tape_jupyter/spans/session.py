"""What there is to look at: the cassettes of a notebook, the takes of one, for protocol.ts'
`Session`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.reader import Book
from tape_jupyter.cassette.takes import files
from tape_jupyter.errors import CassetteError
from tape_jupyter.spans.headers import read_call_headers, seconds_of_moment

_MALFORMED = (CassetteError, OSError, ValueError)


class Takes:
    """The takes of a cassette as protocol.ts lists them; one whose file did not change is not read
    again.
    """

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}

    def list_takes(self, cassette: Path) -> list[dict[str, Any]]:
        """Those of a cassette, by name. One that cannot be read is listed with what is wrong."""
        return [self._read_take(path) for path in files.list_take_files(cassette)]

    def _read_take(self, path: Path) -> dict[str, Any]:
        try:
            status = path.stat()
            seen = (status.st_mtime_ns, status.st_size)
            known = self._known.get(path)
            if known is None or known[0] != seen:
                known = (seen, describe_take(path))
                self._known[path] = known
            return known[1]
        except _MALFORMED as error:
            return {**_EMPTY, "name": files.take_name(path), "of": str(error)[:400]}


_EMPTY = {"overrides": 0, "calls": 0, "at": "", "stale": 0}


def describe_take(path: Path) -> dict[str, Any]:
    """protocol.ts' `Take`: `calls` are those it made itself, `at` is when it was last written to."""
    book = Book.open(path, check="marks")
    overrides = list(book.newest_overrides())
    own_calls = [entry for entry in book.calls if entry.book is book]
    heads = list(read_call_headers(own_calls))
    base = book.base.path if book.base is not None else path
    if book.base is not None and book.base.base is not None:
        above = files.take_name(base)
    else:
        above = paths.stem(base)
    moments = [str(entry.head().get("at", "")) for entry in overrides] + [
        str(run.get("at", "")) for run in _list_own_runs(book)
    ]
    return {
        "name": files.take_name(path),
        "of": above,
        "overrides": len(overrides),
        "calls": sum(1 for entry in own_calls if entry not in overrides),
        "at": max(moments, key=seconds_of_moment, default=""),
        "stale": sum(1 for run in heads if run.diverged == "stale"),
    }


def _list_own_runs(book: Book) -> list[dict[str, Any]]:
    below = set(book.base.by_run) if book.base is not None else set()
    return [run for run in book.runs if run.get("run") not in below]


NOTHING: dict[str, Any] = {
    "spans": 0, "calls": 0, "errors": 0, "seconds": 0.0,
    "tokens_in": None, "tokens_out": None, "cost": None, "partial": False,
}  # fmt: skip
"""protocol.ts' `Totals` of nothing."""
