"""Store room: a cassette as a book to read: its runs and calls, found by match key, each read when it is used.

Nothing is written here (cassette.py appends). Opening scans for record marks and a record's first lines; a record is
parsed when it is used. Small files are parsed whole, so that a bad line shows before anything runs.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from tape_jupyter import assets, records, tapetext
from tape_jupyter.ahead import ReadAhead, as_far_as_sound
from tape_jupyter.calls import FunctionCall, Reply, Request, Value
from tape_jupyter.errors import CassetteError
from tape_jupyter.histories import Check, Histories
from tape_jupyter.journal import Journal, Span
from tape_jupyter.migrations import VERSION, migrated

WHOLE_CHECK = 1024 * 1024  # bytes: files up to this size are parsed whole when opened
_MIGRATED = "written in format"
TORN = "and will be put aside in .torn at the next recording"
_ID = re.compile(r"[0-9a-f]{8}(?:-\d{1,9})?")
_HEAD = re.compile(rb'---\r?\n"?(call|run|end|more|override|tape)"?: (?:"([^"\\]*)"|([^"\r\n]+))\r?\n')
_CALL = re.compile(
    rb'run: (?:"([^"\\]*)"|([^"\r\n]+))\r?\nmatch: (?:"([0-9a-f]{32})"|([0-9a-f]{32}))\r?\n'
    rb'(?:exact: (?:"([0-9a-f]{16})"|([0-9a-f]{16}))\r?\n)?'
    rb'(?:lineage: (?:"([^"\\]*)"|([^"\r\n]+))\r?\n)?'
    rb'(?:kind: (?:tool|retrieval)\r?\nname: (?:"([^"\\]*)"|([^"\r\n]+))\r?\n)?'
)


class Entry:
    """One recorded call in a cassette: where it lies and what it is found by; everything else is read on demand."""

    __slots__ = ("book", "id", "length", "lineage", "match", "more", "offset", "place", "run")

    def __init__(self, book: Book, span: tuple[int, int], names: tuple[str, str, str, str]) -> None:
        self.book = book
        self.offset, self.length = span
        self.id, self.run, self.match, self.lineage = names
        self.more: tuple[tuple[int, int], ...] = ()
        self.place = -1

    def __repr__(self) -> str:
        return f"<call {self.id} of run {self.run}>"

    @property
    def line(self) -> int:
        """1-based line of the record in the file."""
        return self.book.line(self.offset)

    @property
    def order(self) -> int:
        """Which of the run's calls with the same match key this is, from 1, in the order they were made."""
        return int(self.id.partition("-")[2] or 1)

    def head(self) -> dict[str, Any]:
        """Every key of the record above `request`."""
        return self.book.head(self)

    def request(self) -> Request | FunctionCall:
        return self.book.request(self)

    def reply(self) -> Reply | Value:
        return self.book.reply(self)[0]

    def edited(self) -> bool:
        """Whether the reply's bytes are not the recorded ones: somebody edited the file."""
        return self.book.reply(self)[1]


class Book:
    """A cassette file, open for reading. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.calls: list[Entry] = []
        self.runs: list[dict[str, Any]] = []
        self.ended: dict[str, dict[str, Any]] = {}
        self._by_run: dict[str, dict[str, Any]] = {}
        self._by_match: dict[str, list[Entry]] = {}
        self._by_exact: dict[str, str] = {}
        self.tools: dict[str, None] = {}
        self._by_name: dict[tuple[str, str], Entry] = {}
        self._assets = path.parent / "assets"
        self._journal = Journal(path)
        self._memory: bytes | None = None
        self._lock = threading.RLock()
        self._histories = Histories(self._place, self._folded_body)
        self._ahead: ReadAhead[Entry, tuple[Reply | Value, bool]] = ReadAhead(self._replies)

    @classmethod
    def open(cls, path: str | Path, check: Literal["auto", "whole", "marks"] = "auto") -> Self:
        """Open a cassette; a file that is not there is an empty cassette (nothing is created).

        Raises CassetteError naming file and line. `check` 'auto' parses every record of a file up to 1 MiB.
        """
        cassette = cls(Path(path))
        cassette.refresh()
        if check == "whole":
            cassette.check()
        elif check == "auto":
            cassette.check_small()
        return cassette

    # ------------------------------------------------------------ the index

    def refresh(self) -> bool:
        """Index what is in the file now; True where it had changed. Appended records alone are added in place."""
        with self._lock:
            if not self._journal.changed():
                return False
            grown = self._memory is None and self._journal.grown()
            if not grown:
                self._forget()
            self._histories.clear()
            self._read(self._journal.committed if grown else 0)
            return True

    def _read(self, start: int) -> None:
        for span in self._journal.scan(start):
            self._index(span)
            if self._memory is not None:  # all of it was read at the header, and migrated
                break
        self.notes = [note for note in self.notes if note.startswith(_MIGRATED)]
        if self._journal.torn:
            self._require_torn_record()
            self.notes.append(
                f"{self.path.name}: the last {self._journal.torn:,} bytes are a record that was never finished "
                f"(a crash); they are not read, {TORN}"
            )

    def _require_torn_record(self) -> None:
        """A file without any record is a crashed cassette only if it begins like one."""
        start = b"" if self._journal.committed else self._journal.read(0, 11).replace(b"\r", b"")
        if start.strip(b"\0") and not b"---\ntape: ".startswith(start[:10]):
            self._journal.distrust()
            reason = f"is no cassette: it does not begin with a `tape: {VERSION}` record"
            raise CassetteError(reason, path=str(self.path), line=1)

    def _forget(self) -> None:
        self.calls, self.runs, self.ended, self._by_match, self._by_name = [], [], {}, {}, {}
        self._by_exact, self._by_run = {}, {}
        self._ahead.forget()
        self.notes, self._memory = [], None

    def _index(self, span: Span) -> None:
        found = _HEAD.match(span.head)
        kind = found[1].decode() if found else ""
        if not self.calls and not self.runs and kind != "tape":
            self._require_header(span, kind)
        if kind == "call" and found and (names := _CALL.match(span.head, found.end())):
            call, run, match = _either(found, 2), sys.intern(_either(names, 1)), _either(names, 3)
            self._add_call(Entry(self, span[:2], (call, run, match, _either(names, 7))), _either(names, 5))
            if tool := _either(names, 9):
                self.tools[tool] = None
        elif kind == "tape" and found:
            self._header(span)
        else:
            self._index_parsed(span)

    def _require_header(self, span: Span, kind: str) -> None:
        if self._journal.exists() and span.offset == 0:
            raise self.at(
                CassetteError(f"a cassette begins with a `tape: {VERSION}` record, not {kind or 'this'}", line=2),
                span.offset,
            )

    def _header(self, span: Span) -> None:
        record = self._parse(span.offset, span.length)
        version = record.get("tape")
        if type(version) is not int or version < 0:
            raise self.at(CassetteError(f"`tape: {version}` is not a version number", line=2), span.offset)
        if version > VERSION:
            raise self.at(
                CassetteError(f"made by a newer version (tape: {version}); upgrade tape-jupyter", line=2), span.offset
            )
        if version < VERSION and span.offset:
            raise self.at(CassetteError(f"a header of format {version} within a cassette", line=2), span.offset)
        if version < VERSION and self._memory is None:
            self._migrate(version)

    def _migrate(self, version: int) -> None:
        """Index a migrated copy held in memory; the file stays as it is."""
        old = [self._parse(span.offset, span.length) for span in self._journal.scan()]
        try:
            texts = [tapetext.emit(record).encode("utf-8") for record in migrated(old, version)]
        except CassetteError as error:
            raise self.at(error, 0) from error
        self._memory = b"".join(texts)
        self.notes.append(f"{_MIGRATED} {version}, read as format {VERSION}; {self.path.name} is untouched")
        offset = 0
        for text in texts:
            self._index(Span(offset, len(text), text[:600]))
            offset += len(text)

    def _index_parsed(self, span: Span) -> None:
        """The slow way: any record but a call in its usual shape."""
        record = self._parse(span.offset, span.length)
        kind = next(iter(record))
        if kind == "run":
            self._add_run(record)
        elif kind == "kit":
            self._add_kit(record, span)
        elif kind == "end":
            self.ended[str(record["end"])] = record
        elif kind == "call":
            names = tuple(str(record.get(key, "")) for key in ("call", "run", "match", "lineage"))
            if not re.fullmatch(r"[0-9a-f]{32}", names[2]):
                raise self.at(
                    CassetteError("a call record needs `call`, `run` and `match` (32 hex digits)", line=2), span.offset
                )
            self._add_call(Entry(self, span[:2], names), str(record.get("exact", "")))  # type: ignore[arg-type]  # four
        elif kind == "more":
            self._add_more(record, span)
        else:
            raise self.at(
                CassetteError(f"unknown record {kind!r}; a record is one of tape, run, kit, call, more, end", line=2),
                span.offset,
            )

    def _add_call(self, entry: Entry, exact: str = "") -> None:
        name = (entry.run, entry.id)
        if name in self._by_name:
            raise self.at(CassetteError(f"call {entry.id} stands twice in run {entry.run}", line=2), entry.offset)
        if not _ID.fullmatch(entry.id):
            raise self.at(
                CassetteError(f"{entry.id[:80]!r} is no call id, like 78a670b1 or 78a670b1-2", line=2), entry.offset
            )
        self._by_name[name] = entry
        entry.place = len(self.calls)
        self.calls.append(entry)
        self._by_match.setdefault(entry.match, []).append(entry)
        if exact:
            self._by_exact[exact] = entry.match

    def _add_kit(self, record: dict[str, Any], span: Span) -> None:
        """The slow part of a run's kit, told as what differs from an earlier run's where it says `like`."""
        own, like = self._run(str(record["kit"])), record.get("like")
        base = self._run(str(like)) if like is not None else None
        if own is None or (like is not None and base is None):
            missing = record["kit"] if own is None else like
            raise self.at(CassetteError(f"a kit speaks of run {missing}, which is not before it", line=2), span.offset)
        own["kit"] = records.kit_whole(record, own, base)

    def _run(self, name: str) -> dict[str, Any] | None:
        return self._by_run.get(name)

    def _add_run(self, record: dict[str, Any]) -> None:
        self.runs.append(record)
        self._by_run[str(record["run"])] = record

    def _add_more(self, record: Mapping[str, Any], span: Span) -> None:
        entry = self._by_name.get((str(record.get("run", "")), str(record["more"])))
        if entry is None:
            raise self.at(CassetteError(f"`more: {record['more']}` belongs to no call before it", line=2), span.offset)
        entry.more += ((span.offset, span.length),)

    def matching(self, key: str) -> Sequence[Entry]:
        """Every recorded call with that match key, in file order (the order of completion)."""
        return self._by_match.get(key, ())

    def match_of(self, exact: str) -> str:
        """The match key of the recorded requests with that exact digest (matching.exact_digest), or ""."""
        return self._by_exact.get(exact, "")

    def call(self, run: str, name: str) -> Entry | None:
        return self._by_name.get((run, name))

    def __len__(self) -> int:
        return len(self.calls)

    # ------------------------------------------------------------ reading records

    def text(self, offset: int, length: int) -> str:
        return self._decoded(self._bytes(offset, length), offset)

    def _bytes(self, offset: int, length: int) -> bytes:
        return (
            self._memory[offset : offset + length] if self._memory is not None else self._journal.read(offset, length)
        )

    def _decoded(self, data: bytes, offset: int) -> str:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise self.at(
                CassetteError("not UTF-8; restore the file, or save it as UTF-8", line=line), offset
            ) from error
        if not text.startswith("---"):
            raise CassetteError("the file changed while it was in use; run the cell again", path=str(self.path))
        return text

    def _parse(self, offset: int, length: int) -> dict[str, Any]:
        try:
            return tapetext.parse(self.text(offset, length))
        except CassetteError as error:
            raise self.at(error, offset) from error

    def at(self, error: CassetteError, offset: int) -> CassetteError:
        """The error with this file's name, and its line counted from the file's first."""
        if error.path is not None:
            return error
        if error.line is None:
            error.line = 2
        return error.at(path=str(self.path), first_line=self.line(offset))

    def line(self, offset: int) -> int:
        return self._memory.count(b"\n", 0, offset) + 1 if self._memory is not None else self._journal.line(offset)

    def head(self, entry: Entry) -> dict[str, Any]:
        try:
            return tapetext.head(self.text(entry.offset, entry.length), "request")
        except CassetteError as error:
            raise self.at(error, entry.offset) from error

    def request_section(self, entry: Entry) -> dict[str, Any]:
        """`request:` with references and assets replaced by what they stand for."""
        try:
            section = self._section(entry, "request")
            if "body" not in section:
                return section
            return {**section, "body": self._histories.body((entry.run, entry.id), section["body"])}
        except CassetteError as error:
            raise self.at(error, entry.offset) from error

    def request(self, entry: Entry) -> Request | FunctionCall:
        section = self.request_section(entry)
        try:
            return records.request_of(section)
        except CassetteError as error:
            raise self.at(error, entry.offset) from error

    def reply(self, entry: Entry) -> tuple[Reply | Value, bool]:
        """The reply, byte for byte, and whether it was edited by hand."""
        return self._ahead.get(entry, self.calls)

    def _replies(self, entries: Sequence[Entry]) -> list[tuple[Reply | Value, bool]]:
        """The replies of calls that lie one after another in the file, from one read of it."""
        start, stop = entries[0].offset, entries[-1].offset + entries[-1].length
        data = self._bytes(start, stop - start)

        def restored(entry: Entry) -> tuple[Reply | Value, bool]:
            at = entry.offset - start
            return self._restored(entry, self._decoded(data[at : at + entry.length], entry.offset))

        return as_far_as_sound(entries, restored)

    def _restored(self, entry: Entry, text: str) -> tuple[Reply | Value, bool]:
        try:
            reply, edited = records.reply_of(self._section_of(entry, text, "response"))
            if entry.more and isinstance(reply, Reply):
                reply, late_edited = records.with_late(
                    reply, [self._with_assets(self._parse(*at)) for at in entry.more]
                )
                edited = edited or late_edited
            if isinstance(reply, Reply):
                reply = records.true_length(reply, edited)
        except CassetteError as error:
            raise self.at(error, entry.offset) from error
        return reply, edited

    def _section(self, entry: Entry, name: str) -> dict[str, Any]:
        return self._section_of(entry, self.text(entry.offset, entry.length), name)

    def _section_of(self, entry: Entry, text: str, name: str) -> dict[str, Any]:
        section = tapetext.top(text, name)
        if not isinstance(section, dict):
            raise CassetteError(f"call {entry.id} has no {name}", line=2)
        return self._with_assets(section) if assets.MARK in text else section

    def _with_assets(self, section: dict[str, Any]) -> dict[str, Any]:
        found = assets.bring_back(section, self._assets)
        return found if isinstance(found, dict) else section

    def _place(self, name: tuple[str, str]) -> int | None:
        entry = self._by_name.get(name)
        return None if entry is None else entry.offset

    def _folded_body(self, name: tuple[str, str]) -> Any:
        return self._section(self._by_name[name], "request").get("body")

    def check(self) -> None:
        """Parse every record whole, and restore what it holds. Raises the first CassetteError met."""
        with self._lock:
            references, known = Check(self._place), set[str]()
            for entry in list(self.calls):
                try:
                    self._check(entry, references, known)
                except CassetteError as error:
                    raise self.at(error, entry.offset) from error

    def _check(self, entry: Entry, references: Check, known: set[str]) -> None:
        """Texts and assets that many requests share are looked at once: a check takes time linear in the file."""
        record = self._parse(entry.offset, entry.length)
        request, response = record.get("request"), record.get("response")
        if not isinstance(request, dict) or not isinstance(response, dict):
            raise CassetteError(f"call {entry.id} has no {'response' if isinstance(request, dict) else 'request'}")
        for name in assets.names(record) - known:
            assets.check(name, self._assets)
            known.add(name)
        if references.body((entry.run, entry.id), request.get("body")):
            request = records.without_body(request)
        if not assets.names(request):
            records.request_of(request)
        if entry.more:
            self.reply(entry)
        elif not assets.names(response):
            records.reply_of(response)

    def check_small(self) -> None:
        """`check`, for a file small enough that nobody waits for it."""
        if self.path.is_file() and self.path.stat().st_size <= WHOLE_CHECK:
            self.check()

    def edited(self) -> Iterator[Entry]:
        return (entry for entry in self.calls if entry.edited())


def _either(found: re.Match[bytes], group: int) -> str:
    return (found[group] or found[group + 1] or b"").decode("utf-8")
