"""What a call's record says above its request, read for thousands of calls at once.

A head in its usual shape is taken apart by two expressions, in a fifth of the time that the strict
reader needs; any other (escapes, texts over several lines, a record made by hand) is given to that
reader. A record that cannot be read is a row with its error: one bad line does not hide the other
calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.cassette.reader import Book
from tape_jupyter.errors import CassetteError
from tape_jupyter.providers.registry import Facts, recalled

KINDS = ("cell", "span", "model", "tool", "retrieval", "http")
CELL, SPAN, MODEL, TOOL, RETRIEVAL, HTTP = range(6)
HEAD = 1500
"""Bytes of a record in which its head and the first line of its request are sought."""

_BLOCK = 1024 * 1024
_LINE = r'"?([^"\\\n|]*)"?\n'
_HEAD = re.compile(
    r"---\ncall: [^\n]*\nrun: [^\n]*\nmatch: [^\n]*\n(?:exact: [^\n]*\n)?(?:lineage: [^\n]*\n)?(?:apart: [^\n]*\n)?"
    + "".join(
        rf"(?:{key}: {_LINE})?"
        for key in ("kind", "name", "parent", "span", "at", "seconds", "failed")
    )
    + rf"(?:frozen: {_LINE})?(?:diverged: {_LINE})?"
    + rf"(?:kit:\n((?:  [^\n]*\n)+))?request:\n  (\w+): {_LINE}"
)
_KIT = re.compile(r'  (provider|model|answered): (?:"([^"\\\n]*)"|([^"\\\n|]*))\n')
_USAGE = re.compile(r"(?:^|\n)  usage:((?:\n    \w+: \d+)+)")
_COUNT = re.compile(r"    (\w+): (\d{1,15})(?!\d)")


class CallHeader(NamedTuple):
    """A call's head. Seconds are of the epoch (`at`) or durations; `target` is its URL, or its
    function's name.

    `error` is why its record cannot be read, "" where it can.
    """

    entry: Entry | None
    id: str
    run: str
    kind: int
    name: str
    method: str
    target: str
    parent: str
    span: tuple[str, ...]
    at: float
    seconds: float
    failed: str
    facts: Facts
    diverged: str
    error: str = ""
    running: bool = False


@dataclass(slots=True)
class CallHeaders:
    """The heads of a book's calls; those read before are kept while the book only grows."""

    book: Book
    _kept: dict[int, CallHeader]

    @classmethod
    def from_book(cls, book: Book) -> CallHeaders:
        return cls(book, {})

    def read(self) -> list[CallHeader]:
        """One a call, in the order of the book's calls."""
        calls = list(self.book.calls)
        kept = self._kept
        missing = [
            entry
            for entry in calls
            if (old := kept.get(entry.place)) is None or old.entry is not entry
        ]
        kept.update(
            (header.entry.place, header)
            for header in read_call_headers(missing)
            if header.entry is not None
        )
        return [kept[entry.place] for entry in calls]


def read_call_headers(entries: Sequence[Entry]) -> Iterator[CallHeader]:
    """The head of each call, not in their order: from a few reads of each file that holds them."""
    files: dict[int, list[Entry]] = {}
    for entry in entries:
        files.setdefault(id(entry.book), []).append(entry)
    for file_entries in files.values():
        file_entries.sort(key=lambda entry: entry.offset)
        book = file_entries[0].book
        if isinstance(book, Book):
            yield from _read_file_headers(book, file_entries)


def _read_file_headers(book: Book, entries: Sequence[Entry]) -> Iterator[CallHeader]:
    """The heads of a file's calls, which lie in ascending order, from stretches of it.

    A stretch is a character a byte: a head that is not ASCII is read by the strict reader.
    """
    begin, text, plain = 0, "", True
    for entry in entries:
        at, size = entry.offset - begin, min(entry.length, HEAD)
        if at < 0 or at + size > len(text):
            begin, at, data = entry.offset, 0, book.raw(entry.offset, max(_BLOCK, size))
            text, plain = data.decode("latin-1"), data.isascii()
        match = None if type(entry) is Overridden else _HEAD.match(text, at)
        yield (
            _read_header(entry)
            if match is None or not (plain or match[0].isascii())
            else _parse_header(entry, match)
        )


def _parse_header(entry: Entry, match: re.Match[str]) -> CallHeader:
    kind, name, parent, span, when, length, failed, _, diverged, kit, method, target = match.groups(
        ""
    )
    facts = _parse_facts(kit) if kit else _NOTHING
    return CallHeader(
        entry, entry.id, entry.run, _find_kind(method, kind, facts), name, method, target, parent,
        tuple(span.split(" / ")) if span else (), seconds_of_moment(when), duration_seconds(length),
        failed, facts, diverged,
    )  # fmt: skip


def _read_header(entry: Entry) -> CallHeader:
    try:
        head = entry.head()
        recorded = entry.recorded if isinstance(entry, Overridden) else entry
        section = recorded.book.request_section(recorded)
    except (CassetteError, OSError) as error:
        return CallHeader(
            entry,
            entry.id,
            entry.run,
            HTTP,
            "",
            "",
            "",
            "",
            (),
            0.0,
            0.0,
            "",
            _NOTHING,
            "",
            str(error)[:400],
        )
    method = next(iter(section), "")
    if recorded is not entry:  # what answers it was made later; it stands where the call did
        head = {**head, "at": recorded.head().get("at")}
    kit = head.get("kit")
    facts = recalled(kit) if isinstance(kit, Mapping) else _NOTHING
    return _build_header(entry, head, facts, method, str(section.get(method, "")))


_NOTHING = Facts()


@lru_cache(maxsize=4096)
def _parse_facts(kit: str) -> Facts:
    """What a call's kit tells of its model, as providers.recalled reads it."""
    fields = {name: quoted or plain for name, quoted, plain in _KIT.findall(kit)}
    counts = _USAGE.search(kit)
    if counts:
        usage = {name: int(count) for name, count in _COUNT.findall(counts[1])}
    else:
        usage = {}
    return recalled({**fields, "usage": usage})


def _build_header(
    entry: Entry, head: Mapping[str, Any], facts: Facts, method: str, target: str
) -> CallHeader:
    span = str(head.get("span") or "")
    return CallHeader(
        entry, entry.id, entry.run, _find_kind(method, str(head.get("kind")), facts),
        str(head.get("name") or ""), method, target, str(head.get("parent") or ""),
        tuple(span.split(" / ")) if span else (),
        seconds_of_moment(head.get("at")), duration_seconds(head.get("seconds")), str(head.get("failed") or ""), facts,
        str(head.get("diverged") or ""),
    )  # fmt: skip


def _find_kind(method: str, kind: str, facts: Facts) -> int:
    if method in ("tool", "retrieval"):
        return TOOL if method == "tool" else RETRIEVAL
    return MODEL if kind == "model" or facts.model else HTTP


def seconds_of_moment(at: Any) -> float:
    """Seconds of the epoch of a record's moment; 0.0 for what is none."""
    try:
        moment = datetime.fromisoformat(str(at))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def duration_seconds(value: Any) -> float:
    """A duration; 0.0 for what is none: a record may have been written by hand."""
    try:
        length = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return length if 0 <= length < _FOR_EVER else 0.0


_FOR_EVER = 1e9


def host_and_path(url: str) -> tuple[str, str]:
    """`api.shop.com` and `orders/search?q=my order`, as people read them."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    path = unquote(parts.path).lstrip("/") + (
        f"?{unquote(parts.query.replace('+', ' '))}" if parts.query else ""
    )
    return parts.netloc.rpartition("@")[2], path


def by_run(headers: Iterable[CallHeader]) -> dict[str, list[CallHeader]]:
    """The heads of each run."""
    groups: dict[str, list[CallHeader]] = {}
    for each in headers:
        groups.setdefault(each.run, []).append(each)
    return groups
