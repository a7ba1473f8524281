"""A cassette as a book to read: what was asked and answered in each call, when it is used.

Nothing is written here (cassette/cassette.py appends). Small files are parsed whole, so that a bad
line shows before anything runs. A call of a take's base is read from the base's own file, and an
override's answer from the take's.

Replies that are read a few at a time, where a program asks for them in the order they were
recorded.

Reading some dozens of records in one go takes half the time of reading each between two SDK calls,
whose code and data push ours out of the processor's caches. Whoever asks in another order pays
nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from tape_jupyter.cassette import external_texts, records
from tape_jupyter.cassette.index import TORN, CassetteIndex
from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.cassette.journal import Journal
from tape_jupyter.cassette.request_refs import Histories, ReferenceCheck, Shape, shape
from tape_jupyter.cassette.takes.files import Prefix, TakeBase
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.core.parse_limits import ReadBudget, count_record_values
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import CassetteError

CALLS, BYTES = 32, 128 * 1024  # read ahead at most
_IN_ORDER = 2  # calls asked for in file order before anything is read ahead


class Placed(Protocol):
    """Something at a place in a file's order."""

    place: int
    length: int


P = TypeVar("P", bound=Placed)
R = TypeVar("R")


class ReadAhead(Generic[P, R]):
    """Gives what `read(items)` makes of items that lie one after another. Safe to use from several
    threads.
    """

    def __init__(self, read: Callable[[Sequence[P]], list[R]]) -> None:
        self._read = read
        self._ready: dict[int, R] = {}
        self._next, self._run = -1, 0

    def forget(self) -> None:
        """The file is another one now."""
        self._ready, self._next, self._run = {}, -1, 0

    def get(self, item: P, items: Sequence[P]) -> R:
        """What was made of `item`, one of `items` in file order. Raises CassetteError for its own
        flaws only.
        """
        self._run = self._run + 1 if item.place == self._next else 0
        self._next = item.place + 1
        ready = self._ready.pop(item.place, None)
        if ready is not None:
            return ready
        first, *others = self._read(
            self._choose_batch(item, items) if self._run >= _IN_ORDER else [item]
        )
        self._ready = {item.place + 1 + ahead: other for ahead, other in enumerate(others)}
        return first

    def _choose_batch(self, item: P, items: Sequence[P]) -> list[P]:
        batch, size = [item], item.length
        for other in items[item.place + 1 : item.place + CALLS]:
            size += other.length
            if size > BYTES:
                break
            batch.append(other)
        return batch


def as_far_as_sound(items: Sequence[P], read: Callable[[P], R]) -> list[R]:
    """What `read` makes of each item, up to the first flawed one; the flaw of the very first is
    raised.
    """
    results = [read(items[0])]
    for item in items[1:]:
        try:
            results.append(read(item))
        except CassetteError:
            break
    return results


__all__ = ["TORN", "WHOLE_CHECK", "Book", "Entry", "Overridden"]

WHOLE_CHECK = 1024 * 1024  # bytes: files up to this size are parsed whole when opened
# bytes of replies that are kept of such a file: what the check restored need not be made again
_KEPT = 2 * WHOLE_CHECK


class Book(CassetteIndex):
    """A cassette file, open for reading. Safe to use from several threads."""

    def __init__(
        self,
        path: Path,
        *,
        of: TakeBase | None = None,
        journal: Journal | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(path, of=of, journal=journal, depth=depth)
        self._histories = Histories(self.place, self.folded_body)
        self._read_ahead: ReadAhead[Entry, tuple[Reply | Value, bool]] = ReadAhead(
            self._read_replies
        )
        self._kept: dict[int, tuple[Reply, bool]] = {}  # by the offset of the call's record
        self._bytes_left = _KEPT

    @classmethod
    def open(cls, path: str | Path, check: Literal["auto", "whole", "marks"] = "auto") -> Self:
        """Open a cassette; a file that is not there is an empty cassette (nothing is created).

        Raises CassetteError naming file and line. `check` 'auto' parses every record of a file up
        to 1 MiB.
        """
        cassette = cls(Path(path))
        cassette.refresh()
        if check == "whole":
            cassette.check()
        elif check == "auto":
            cassette.check_small()
        return cassette

    def _open_base(self, path: Path, of: TakeBase) -> Book:
        return Book(path, journal=Prefix(path, of, self.path), depth=self._depth + 1)

    def _drop_caches(self) -> None:
        self._histories.clear()
        self._read_ahead.forget()
        self._kept, self._bytes_left = {}, _KEPT

    def _clear_index(self) -> None:
        super()._clear_index()
        self._drop_caches()

    def head(self, entry: Entry) -> dict[str, Any]:
        try:
            overridden = isinstance(entry, Overridden)
            own_head = emitter.head(
                self.text(entry.offset, entry.length), "response" if overridden else "request"
            )
            if not isinstance(own_head.get("seconds", 0), int | float):
                # reported like a record that cannot be parsed
                raise CassetteError(  # noqa: TRY301
                    f"`seconds` is a number, not {own_head['seconds']!r:.80}", line=2
                )
        except CassetteError as error:
            raise self.locate_error(error, entry.offset) from error
        if not isinstance(entry, Overridden):
            return own_head
        recorded = {key: value for key, value in entry.recorded.head().items() if key != "failed"}
        return recorded | {
            key: value for key, value in own_head.items() if key not in ("override", "run")
        }

    def request_section(self, entry: Entry) -> dict[str, Any]:
        """`request:` with references and assets replaced by what they stand for."""
        entry = entry.recorded if isinstance(entry, Overridden) else entry
        if entry.book is not self and self.base is not None:
            return self.base.request_section(entry)
        try:
            section = self.section(entry, "request")
            if "body" not in section:
                return section
            return {**section, "body": self._histories.body((entry.run, entry.id), section["body"])}
        except CassetteError as error:
            raise self.locate_error(error, entry.offset) from error

    def request(self, entry: Entry) -> Request | FunctionCall:
        section = self.request_section(entry)
        try:
            return records.section_request(section, self._assets)
        except CassetteError as error:
            raise self.locate_error(error, entry.offset) from error

    def reply(self, entry: Entry) -> tuple[Reply | Value, bool]:
        """The reply, byte for byte, and whether it was edited by hand."""
        if self.base is None:
            kept = None if entry.more else self._kept.get(entry.offset)
            return self._read_ahead.get(entry, self.calls) if kept is None else kept
        if entry.book is not self:
            return self.base.reply(entry)
        # few calls are a take's own, and they do not lie in the order of `calls`
        return self._read_replies([entry])[0]

    def _read_replies(self, entries: Sequence[Entry]) -> list[tuple[Reply | Value, bool]]:
        """The replies of calls that lie one after another in the file, from one read of it."""
        start, stop = entries[0].offset, entries[-1].offset + entries[-1].length
        data = self.raw(start, stop - start)

        def restore_entry(entry: Entry) -> tuple[Reply | Value, bool]:
            at = entry.offset - start
            return self._restore_reply(
                entry, self._decode_record(data[at : at + entry.length], entry.offset)
            )

        mark = external_texts.MARK.encode()
        at_first = (
            place
            for place, entry in enumerate(entries[1:], 1)
            if data.find(mark, entry.offset - start, entry.offset - start + entry.length) >= 0
        )  # they may be of any size: none is read ahead
        return as_far_as_sound(entries[: next(at_first, None)], restore_entry)

    def _restore_reply(self, entry: Entry, text: str) -> tuple[Reply | Value, bool]:
        try:
            reply, edited = records.section_reply(
                self._parse_section(entry, text, "response"), self._assets
            )
            if entry.more and isinstance(reply, Reply):
                late = [self._bring_back_assets(self._parse_record(*at)) for at in entry.more]
                reply, late_edited = records.with_late(reply, late, self._assets)
                edited = edited or late_edited
            elif entry.more and isinstance(reply, Value):
                reply = records.with_late_steps(
                    reply, [self._bring_back_assets(self._parse_record(*at)) for at in entry.more]
                )
            if isinstance(reply, Reply):
                reply = records.true_length(reply, edited)
            if isinstance(entry, Overridden):
                _require_fit(entry, reply)
        except CassetteError as error:
            raise self.locate_error(error, entry.offset) from error
        self._cache_reply(entry, reply, edited)
        return reply, edited

    def _cache_reply(self, entry: Entry, reply: Reply | Value, edited: bool) -> None:
        """Hold on to a reply of a small file: it is read twice at least, by the check and by the
        replay.
        """
        if self.size > WHOLE_CHECK or self.base is not None or entry.more:
            return
        if isinstance(reply, Reply) and reply.error is None:
            size = reply.size + 100 * len(reply.chunks) + 500  # with what Python adds to each
            if size <= self._bytes_left:
                self._kept[entry.offset] = (reply, edited)
                self._bytes_left -= size

    def section(self, entry: Entry, name: str) -> dict[str, Any]:
        """`request:` or `response:` of a call of this very file as it stands there, its long texts
        brought back.
        """
        try:
            return self._parse_section(entry, self.text(entry.offset, entry.length), name)
        except CassetteError as error:
            raise self.locate_error(error, entry.offset) from error

    def _parse_section(self, entry: Entry, text: str, name: str) -> dict[str, Any]:
        section = emitter.top(text, name, last=name == "response")
        if not isinstance(section, dict):
            raise CassetteError(f"call {entry.id} has no {name}", line=2)
        if external_texts.MARK in text:
            return self._bring_back_assets(section)
        return section

    def _bring_back_assets(self, section: dict[str, Any]) -> dict[str, Any]:
        restored = external_texts.restore_texts(section, self._assets)
        return restored if isinstance(restored, dict) else section

    def place(self, name: tuple[str, str]) -> int | None:
        """Where a call's record stands, counted through the books below."""
        entry = self.by_name.get(name)
        entry = entry.recorded if isinstance(entry, Overridden) else entry
        if entry is None or entry.book is self or self.base is None:
            return None if entry is None else self._below + entry.offset
        return self.base.place(name)

    def folded_body(self, name: tuple[str, str]) -> Any:
        entry = self.by_name[name]
        entry = entry.recorded if isinstance(entry, Overridden) else entry
        if entry.book is not self and self.base is not None:
            return self.base.folded_body(name)
        return self.section(entry, "request").get("body")

    def long_texts(self, entry: Entry) -> int:
        """Bytes of the long texts (assets) that stand in a call's record, each as often as it
        stands there.
        """
        text = self.text(entry.offset, entry.length)
        marked = external_texts.MARK in text or external_texts.BYTES in text
        spans = [(entry.offset, entry.length), *entry.more] if marked else entry.more
        return external_texts.assets_size([self._parse_record(*at) for at in spans], self._assets)

    def count_values(self, entry: Entry) -> int:
        """About how many values a call's record has, with what arrived late."""
        spans = [(entry.offset, entry.length), *entry.more]
        return sum(count_record_values(self.text(*at)) for at in spans)

    def check(self, *, large: bool = True, budget: ReadBudget | None = None) -> Sequence[Entry]:
        """Parse every record whole, and restore what it holds. Raises the first CassetteError met.

        `large`: large bodies are read as well; a replay does that before it hands one on. Gives
        those that the budget leaves unread.
        """
        unread: list[Entry] = []
        with self._lock:
            if self.base is not None:
                unread += self.base.check(large=large, budget=budget)
            references, known = ReferenceCheck(self.place, self._find_shape_below), set[str]()
            for entry in self._list_own_entries():
                if budget is not None and not budget.allows_values(self.count_values(entry)):
                    unread.append(entry)
                    continue
                try:
                    self._check_entry(entry, references, known, large=large)
                except CassetteError as error:
                    raise self.locate_error(error, entry.offset) from error
        return unread

    def _list_own_entries(self) -> list[Entry]:
        """The calls and overrides of this very file, in its order."""
        if self.base is None:
            return list(self.calls)
        replaced = (each for override in self.overrides for each in (override, override.recorded))
        entries = {id(entry): entry for entry in (*self.calls, *replaced) if entry.book is self}
        return sorted(entries.values(), key=lambda entry: entry.offset)

    def _check_entry(
        self, entry: Entry, references: ReferenceCheck, known: set[str], *, large: bool
    ) -> None:
        """Texts and assets that many requests share are looked at once: a check takes time linear
        in the file.
        """
        record = self._parse_record(entry.offset, entry.length)
        if isinstance(entry, Overridden):
            self.reply(entry)
            return
        request, response = record.get("request"), record.get("response")
        if not isinstance(request, dict) or not isinstance(response, dict):
            raise CassetteError(
                f"call {entry.id} has no {'response' if isinstance(request, dict) else 'request'}"
            )
        text = self.text(entry.offset, entry.length)
        marked = external_texts.MARK in text or external_texts.BYTES in text
        bodies = external_texts.bodies(record) if marked else set()
        for name in external_texts.asset_names(record) - known if marked else ():
            if large or name not in bodies:
                external_texts.check_asset(name, self._assets, is_body=name in bodies)
            else:
                external_texts.read_large_body({external_texts.BYTES: name}, self._assets)
            known.add(name)
        if references.body((entry.run, entry.id), request.get("body")):
            request = records.without_body(request)
        if not marked or not external_texts.asset_names(request):
            records.section_request(request)
        if entry.more:
            self.reply(entry)
        elif not marked or not external_texts.asset_names(response):
            reply, edited = records.section_reply(response)
            if isinstance(reply, Reply):
                self._cache_reply(entry, records.true_length(reply, edited), edited)

    def _find_shape_below(self, name: tuple[str, str]) -> Shape:
        """The shape of a body that a request of this take may refer to."""
        return shape(self.folded_body(name)) if name in self.by_name else {}

    def check_small(self) -> None:
        """`check`, for files small enough that nobody waits for it."""
        if (self.base is not None or self.path.is_file()) and self.size <= WHOLE_CHECK:
            self.check(large=False)

    def edited(self) -> Iterator[Entry]:
        return (entry for entry in self.calls if entry.edited())


def _require_fit(entry: Overridden, reply: Reply | Value) -> None:
    """An override answers what was asked: a function with a value or an exception, a request with a
    reply.
    """
    request = entry.recorded.request()
    if isinstance(request, FunctionCall) != isinstance(reply, Value):
        if isinstance(request, FunctionCall):
            needed = "a value or an error"
        else:
            needed = "a status, headers and a body"
        raise CassetteError(
            f"call {entry.id} is answered by {needed}, not by what this override holds", line=2
        )
