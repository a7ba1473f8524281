"""Calls in whose request or reply words stand: looked for in the text of their records, stretch by
stretch.

A conversation that is told by reference to an earlier call is found where it was first said. Long
texts that lie in files of their own (assets/) are not looked into.
"""

from __future__ import annotations

import json
from typing import Any

from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.cassette.reader import Book
from tape_jupyter.core.real_clock import perf_counter
from tape_jupyter.spans.rows import Spans

PATIENCE = 0.05
"""Seconds of one stretch."""

_AT_LEAST = 50


def search_spans(
    spans: Spans, query: str, start: int, patience: float = PATIENCE
) -> dict[str, Any]:
    """protocol.ts' `Found`: of rows from `start` on, those that hold all words; as many as the time
    allows.
    """
    spellings_by_word = [_list_spellings(word) for word in query.lower().split()]
    nodes, matches, row = spans.nodes, [], start
    until = perf_counter() + patience
    for row in range(start, len(nodes)):
        header = nodes[row].header
        if header is not None and header.entry is not None:
            text = _read_text(header.entry)
            if all(any(word in text for word in spellings) for spellings in spellings_by_word):
                matches.append(nodes[row].id)
        if row - start >= _AT_LEAST and perf_counter() > until:
            break
    done = row + 1 >= len(nodes)
    return {"spans": matches, "next": None if done else row + 1, "total": len(nodes)}


def _list_spellings(word: str) -> set[str]:
    """A word as it is, and as it stands within quotes."""
    return {word, json.dumps(word, ensure_ascii=False)[1:-1]}


def _read_text(entry: Entry) -> str:
    """What was asked and answered, in small letters; of an overridden call the new answer."""
    if isinstance(entry, Overridden):
        return _read_part(entry, "\nresponse:") + _read_part(
            entry.recorded, "\nrequest:", "\nresponse:"
        )
    return _read_part(entry, "\nrequest:")


def _read_part(entry: Entry, begin: str, end: str = "") -> str:
    book = entry.book
    if not isinstance(book, Book):
        return ""
    pieces = [book.raw(*place) for place in ((entry.offset, entry.length), *entry.more)]
    text = b"".join(pieces).decode("utf-8", "replace")
    stop = text.find(end) if end else -1
    return text[max(0, text.find(begin)) : stop if stop >= 0 else len(text)].lower()
