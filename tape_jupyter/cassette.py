"""Store room: a cassette: its runs and calls, found by match key, read when used, appended one record at a time.

No decision about a live call is made here (player.py), and nothing is patched. Opening scans for record marks and a
record's first lines; a record is parsed when it is used. Small files are parsed whole, so that a bad line shows
before anything runs.
"""

from __future__ import annotations

import re
import secrets as entropy
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tape_jupyter import assets, records, slices, tapetext
from tape_jupyter.calls import FunctionCall, Reply, Request, Value
from tape_jupyter.errors import CassetteError
from tape_jupyter.histories import Check, Histories
from tape_jupyter.journal import Journal, Replaced, Span
from tape_jupyter.migrations import VERSION, migrated
from tape_jupyter.secrets import Secrets

WHOLE_CHECK = 1024 * 1024  # bytes: files up to this size are parsed whole when opened
_MIGRATED = "written in format"
_TORN = "and will be put aside in .torn"
_ASIDE = "and are put aside in .torn now"
_NO_HEADER: Mapping[str, Any] = {}
_HEAD = re.compile(rb'---\r?\n"?(call|run|end|more|override|tape)"?: (?:"([^"\\]*)"|([^"\r\n]+))\r?\n')
_CALL = re.compile(
    rb'run: (?:"([^"\\]*)"|([^"\r\n]+))\r?\nmatch: (?:"([0-9a-f]{32})"|([0-9a-f]{32}))\r?\n'
    rb'(?:exact: (?:"([0-9a-f]{16})"|([0-9a-f]{16}))\r?\n)?'
    rb'(?:lineage: (?:"([^"\\]*)"|([^"\r\n]+))\r?\n)?'
)


class Entry:
    """One recorded call in a cassette: where it lies and what it is found by; everything else is read on demand."""

    __slots__ = ("book", "id", "length", "lineage", "match", "more", "offset", "run")

    def __init__(self, book: Cassette, span: tuple[int, int], names: tuple[str, str, str, str]) -> None:
        self.book = book
        self.offset, self.length = span
        self.id, self.run, self.match, self.lineage = names
        self.more: tuple[tuple[int, int], ...] = ()

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


class Cassette:
    """A cassette file, open for reading and appending. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.calls: list[Entry] = []
        self.runs: list[dict[str, Any]] = []
        self.ended: dict[str, dict[str, Any]] = {}
        self._by_match: dict[str, list[Entry]] = {}
        self._by_exact: dict[str, str] = {}
        self._by_name: dict[tuple[str, str], Entry] = {}
        self._assets = path.parent / "assets"
        self._journal = Journal(path)
        self._memory: bytes | None = None
        self._lock = threading.RLock()
        self._folder = slices.Folder()
        self._first_kit = ""
        self._histories = Histories(self._place, self._folded_body)

    @classmethod
    def open(cls, path: str | Path, check: Literal["auto", "whole", "marks"] = "auto") -> Cassette:
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
            self.notes = [note for note in self.notes if not note.endswith(_ASIDE)]
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
                f"(a crash); they are not read, {_TORN} at the next recording"
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
        self._by_exact = {}
        self.notes, self._memory = [], None
        self._folder = slices.Folder()  # what it refers to may be gone

    def _index(self, span: Span) -> None:
        found = _HEAD.match(span.head)
        kind = found[1].decode() if found else ""
        if not self.calls and not self.runs and kind != "tape":
            self._require_header(span, kind)
        if kind == "call" and found and (names := _CALL.match(span.head, found.end())):
            call, run, match = _either(found, 2), sys.intern(_either(names, 1)), _either(names, 3)
            self._add_call(Entry(self, span[:2], (call, run, match, _either(names, 7))), _either(names, 5))
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
            self.runs.append(record)
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
        self._by_name[name] = entry
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
        return next((run for run in self.runs if run["run"] == name), None)

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
        data = (
            self._memory[offset : offset + length] if self._memory is not None else self._journal.read(offset, length)
        )
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
        try:
            reply, edited = records.reply_of(self._section(entry, "response"))
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
        text = self.text(entry.offset, entry.length)
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

    # ------------------------------------------------------------ appending

    def writable(self) -> str:
        """Why nothing can be recorded here, or ""."""
        if self._memory is not None:
            return "the cassette is of an older format; record under another name, or migrate it"
        return self._journal.writable()

    def start_run(self, record: dict[str, Any], header: dict[str, Any], secrets: Secrets | None = None) -> str:
        """Commit a run record; gives its id (random, so that two kernels or branches never share one)."""
        run = f"r-{entropy.token_hex(4)}"
        whole = {"run": run, **records.masked(record, secrets)}
        with self._lock:
            try:
                self._append(tapetext.emit(whole), header)
            except Replaced:
                self._start_over(run)
                self._append(tapetext.emit(whole), header)
            self.runs.append(whole)
        return run

    def add_kit(self, run: str, kit: Mapping[str, Any], secrets: Secrets | None = None) -> None:
        """Commit the slow part of a run's kit: as what differs from that of this session's first run in the file."""
        told = records.masked(dict(kit), secrets)
        with self._lock:
            first = self._run(self._first_kit)
            record = records.kit_like(run, told, first)
            try:
                self._append(tapetext.emit(record))
            except Replaced:
                self._start_over(run)
                first, record = None, records.kit_like(run, told, None)
                self._append(tapetext.emit(record))
            self._first_kit = first["run"] if first else run
            if (own := self._run(run)) is not None:
                own["kit"] = records.kit_whole(record, own, first)

    def append_call(
        self, head: records.Head, call: Request | FunctionCall, reply: Reply | Value, secrets: Secrets
    ) -> Entry:
        """Commit one call. What is written is proven first: parse(emit(record)) == record, and the bytes restore.

        Raises CassetteError where it cannot be kept (disk full, read-only); the caller's program is not concerned.
        """
        with self._lock:
            try:
                return self._append_call(head, call, reply, secrets)
            except Replaced:
                self._start_over(head.run)
                return self._append_call(head, call, reply, secrets)

    def _append_call(
        self, head: records.Head, call: Request | FunctionCall, reply: Reply | Value, secrets: Secrets
    ) -> Entry:
        if (head.run, head.call) in self._by_name:
            raise CassetteError(f"call {head.call} of run {head.run} is recorded already", path=str(self.path))
        record, remember = self._record(head, call, reply, secrets, scrub=False)
        text = tapetext.emit(record)
        if secrets.suspicious(text):
            record, remember = self._record(head, call, reply, secrets, scrub=True)
            text = tapetext.emit(record)
        place = self._append(self._prove(record, text))
        entry = Entry(self, place, (head.call, head.run, head.match, head.where.lineage))
        self._add_call(entry, head.exact)
        remember(head.call)
        return entry

    def _record(
        self, head: records.Head, call: Request | FunctionCall, reply: Reply | Value, secrets: Secrets, *, scrub: bool
    ) -> tuple[dict[str, Any], Callable[[str], None]]:
        """The record of a call, and what to do once it is committed."""
        request, response = records.request_section(call, secrets), records.response_section(reply, secrets)
        if scrub:
            head = replace(head, exact="")  # a digest of what is masked would be a way to guess it
            request, response = records.scrubbed(request, secrets), records.scrubbed(response, secrets)
        if head.exact:
            request.pop("sha256", None)  # `exact` is the request's digest
        folded, remember = self._folder.fold(head.run, request.get("body"))
        if "body" in request:
            request["body"] = folded
        told = records.scrubbed_head(head, secrets) if scrub else head.record()
        return {**told, "request": request, "response": response}, remember

    def append_more(self, entry: Entry, reply: Reply, secrets: Secrets) -> None:
        """Commit bytes (or an error) that came after a call's terminal event had been committed."""
        response = records.response_section(reply, secrets)
        for told in ("status", "headers", "version", "reason"):
            response.pop(told, None)
        with self._lock:
            record = {"more": entry.id, "run": entry.run, **response}
            text = tapetext.emit(record)
            if secrets.suspicious(text):
                record = {"more": entry.id, "run": entry.run, **records.scrubbed(response, secrets)}
                text = tapetext.emit(record)
            try:
                entry.more += (self._append(self._prove(record, text)),)
            except Replaced:
                self._start_over(entry.run)
                raise

    def end_run(self, run: str, record: dict[str, Any], secrets: Secrets | None = None) -> None:
        """Commit a run's end mark, and ask the disk to hold all that is committed. Raises CassetteError."""
        whole = {"end": run, **records.masked(record, secrets)}
        data = tapetext.emit(whole)
        with self._lock:
            try:
                self._append(data)
            except Replaced:
                self._start_over(run)
                self._append(data)
            self.ended[run] = whole
            self._journal.sync()

    def _start_over(self, run: str) -> None:
        """Somebody edited, cut or removed the file while it was recorded to: read it anew, and put our run back.

        A file that is broken now is still recorded to: what was paid for is kept, and reading it again will tell.
        """
        own = next((old for old in self.runs if old["run"] == run), None)
        self._histories.clear()
        self._forget()
        try:
            self._read(0)
        except CassetteError:
            self._forget()
            self._journal.distrust()
        if own is not None and all(old["run"] != run for old in self.runs):
            self._append(tapetext.emit(own))
            self.runs.append(own)

    def _prove(self, record: dict[str, Any], text: str) -> str:
        """The text to commit, long texts put away; proven to read back as what they were written from."""
        if len(text) > assets.LIMIT:
            record = self._put_away(record)
            text = tapetext.emit(record)
        if tapetext.parse(text) != record:
            raise CassetteError(
                "a record did not survive being written and read; please report this", path=str(self.path)
            )
        return text

    def _put_away(self, record: dict[str, Any]) -> dict[str, Any]:
        kept = ("call", "more", "run", "kit")
        try:
            return {k: v if k in kept else assets.put_away(v, self._assets) for k, v in record.items()}
        except OSError as error:
            reason = f"a long text cannot be written to assets/: {error.strerror or error}"
            raise CassetteError(reason, path=str(self.path)) from error

    def _append(self, text: str, header: Mapping[str, Any] = _NO_HEADER) -> tuple[int, int]:
        """Commit a record; gives offset and length. What others appended since we looked is indexed before it."""
        if self._memory is not None:
            raise CassetteError(self.writable(), path=str(self.path))
        known, torn = self._journal.committed, self._journal.torn
        data, top = text.encode("utf-8"), tapetext.emit({"tape": VERSION, **header}).encode("utf-8")
        offset = self._journal.append(data, top)
        if torn:
            self.notes = [note.replace(f"{_TORN} at the next recording", _ASIDE) for note in self.notes]
        if offset > known and offset != len(top):
            self._catch_up(known, offset)
        return offset, len(data)

    def _catch_up(self, known: int, until: int) -> None:
        try:
            for span in self._journal.between(known, until):
                self._index(span)
        except CassetteError:
            self._journal.distrust()  # our record is committed; whoever reads the file next is told of the other


def _either(found: re.Match[bytes], group: int) -> str:
    return (found[group] or found[group + 1] or b"").decode("utf-8")


def open(path: str | Path, check: Literal["auto", "whole", "marks"] = "auto") -> Cassette:  # noqa: A001  # tape.open
    """`tape.open(path)`: see Cassette.open."""
    return Cassette.open(path, check)
