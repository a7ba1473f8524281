"""The index of a cassette: where its runs and calls lie, and what each is found by. Writes nothing.

Opening scans for record marks and a record's first lines; a record is parsed when it is used
(cassette/reader.py).

A take is indexed like a cassette whose first records are those of its base, read from the base's
own file: calls keep their ids, runs and order; an `override:` record puts another reply in a call's
place.
"""

from __future__ import annotations

import re
import sys
import threading
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import records
from tape_jupyter.cassette.index_entries import Entry, Holder, Overridden
from tape_jupyter.cassette.journal import Journal, RecordPosition
from tape_jupyter.cassette.migrations import VERSION, migrated
from tape_jupyter.cassette.takes.files import DEPTH, TakeBase
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import CassetteError

_MIGRATED = "written in format"
TORN = "and will be moved to .torn by the next recording"
_ID = re.compile(r"[0-9a-f]{8}(?:-\d{1,9})?")
_HEAD = re.compile(
    rb'---\r?\n"?(call|run|end|more|override|tape)"?: (?:"([^"\\]*)"|([^"\r\n]+))\r?\n'
)
_CALL = re.compile(
    rb'run: (?:"([^"\\]*)"|([^"\r\n]+))\r?\nmatch: (?:"([0-9a-f]{32})"|([0-9a-f]{32}))\r?\n'
    rb'(?:exact: (?:"([0-9a-f]{16})"|([0-9a-f]{16}))\r?\n)?(?!exact:)'
    rb'(?:lineage: (?:"([^"\\]*)"|([^"|\r\n][^"\r\n]*))\r?\n)?(?!lineage:)'
    rb'(?:apart: (?:"([0-9a-f]{16})"|([0-9a-f]{16}))\r?\n)?(?!apart:)'
    rb'(?:kind: (?:tool|retrieval)\r?\nname: (?:"([^"\\]*)"|([^"|\r\n][^"\r\n]*))\r?\n)?(?!kind: (?:tool|retrieval)\b)'
)
"""A call's first lines as they usually are. One with a long name or lineage, which stands below its
key, is parsed.
"""


class CassetteIndex(Holder):
    """The runs and calls of one cassette file, kept as they are added. Safe to use from several
    threads.
    """

    def __init__(
        self,
        path: Path,
        *,
        of: TakeBase | None = None,
        journal: Journal | None = None,
        depth: int = 0,
    ) -> None:
        """`of`: it is a take of that, also while there is no file. `journal` reads it in another
        way (a prefix).
        """
        self.path = path
        self.base: Holder | None = None
        self.overrides: list[Overridden] = []
        self._of, self._depth, self._below = of, depth, 0
        self.notes: list[str] = []
        self.calls: list[Entry] = []
        self.runs: list[dict[str, Any]] = []
        self.ended: dict[str, dict[str, Any]] = {}
        self.by_run: dict[str, dict[str, Any]] = {}
        self.readings = 0
        """How often the file was read anew from its beginning: what was there may be gone."""
        self.by_match: dict[str, list[Entry]] = {}
        self.by_exact: dict[str, str] = {}
        self.strands: dict[str, set[str]] = {}
        self.tools: dict[str, list[Entry]] = {}  # the calls of tools, by the names of those
        self.by_name: dict[tuple[str, str], Entry] = {}
        self._assets = path.parent / "assets"
        self._journal = journal or Journal(path)
        self._memory: bytes | None = None
        self._lock = threading.RLock()

    def refresh(self) -> bool:
        """Index what is in the file now; True where it had changed. Appended records alone are
        added in place.
        """
        with self._lock:
            if not self._journal.changed() and not (self.base is not None and self.base.refresh()):
                return False
            grown = self._memory is None and self._journal.grown()
            if not grown:
                self._clear_index()
            self._drop_caches()
            self._index_from(self._journal.committed if grown else 0)
            return True

    @abstractmethod
    def _drop_caches(self) -> None:
        """What was made of records no longer holds."""

    @abstractmethod
    def _open_base(self, path: Path, of: TakeBase) -> Holder:
        """The book of what this is a take of: as much of that file as it was then."""

    def _index_from(self, start: int) -> None:
        if self._of is not None and self.base is None:
            self._adopt_base(self._of)
        for span in self._journal.scan(start):
            self._index_record(span)
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
        if self._journal.committed:
            start = b""
        else:
            start = self._journal.read(0, 11).replace(b"\r", b"")
        if start.strip(b"\0") and not b"---\ntape: ".startswith(start[:10]):
            self._journal.distrust()
            reason = f"is not a cassette: it does not begin with a `tape: {VERSION}` record"
            raise CassetteError(reason, path=str(self.path), line=1)

    def _clear_index(self) -> None:
        self.readings += 1
        self.calls, self.runs, self.ended, self.by_match, self.by_name = [], [], {}, {}, {}
        self.by_exact, self.by_run, self.strands, self.tools = {}, {}, {}, {}
        self.overrides, self.base, self._below = [], None, 0
        self.notes, self._memory = [], None

    def _index_record(self, span: RecordPosition) -> None:
        """Raises CassetteError with the file and the line of what is wrong in the record."""
        try:
            self._index(span)
        except CassetteError as error:
            raise self.locate_error(error, span.offset) from error

    def _index(self, span: RecordPosition) -> None:
        head_match = _HEAD.match(span.head)
        kind = head_match[1].decode() if head_match else ""
        if not self.calls and not self.runs and self.base is None and kind != "tape":
            self._require_header(span, kind)
        if kind == "call" and head_match and (names := _CALL.match(span.head, head_match.end())):
            call = _decode_group(head_match, 2)
            run = sys.intern(_decode_group(names, 1))
            match = _decode_group(names, 3)
            entry = Entry(
                self, span[:2], (call, run, match, _decode_group(names, 7)), _decode_group(names, 9)
            )
            self._add_call(entry, _decode_group(names, 5), _decode_group(names, 11))
        elif kind == "tape" and head_match:
            self._read_header(span)
        else:
            self._index_parsed(span)

    def _require_header(self, span: RecordPosition, kind: str) -> None:
        if self._journal.exists() and span.offset == 0:
            raise CassetteError(
                f"a cassette begins with a `tape: {VERSION}` record, not {kind or 'this'}"
            )

    def _read_header(self, span: RecordPosition) -> None:
        record = self._parse_record(span.offset, span.length)
        version = record.get("tape")
        if type(version) is not int or version < 0:
            raise CassetteError(f"`tape: {version}` is not a version number")
        if version > VERSION:
            raise CassetteError(f"made by a newer version (tape: {version}); upgrade tape-jupyter")
        if version < VERSION and span.offset:
            raise CassetteError(f"a header of format {version} within a cassette")
        if version < VERSION and self._memory is None:
            self._index_migrated(version)
        elif "take of" in record:
            self._read_take_header(record, span)

    def _read_take_header(self, record: Mapping[str, Any], span: RecordPosition) -> None:
        """The header of a take; two branches' takes that were merged have two, which must say the
        same.

        What the file itself says counts, not what a take that is yet to be made was to be of:
        somebody made it first.
        """
        base = TakeBase.from_record(record)
        if self.base is None or (span.offset == 0 and base != self._of):
            self._of = base
            self._adopt_base(base)
        elif self._of is None or (base.size, base.sha256) != (self._of.size, self._of.sha256):
            raise CassetteError("this header names another base than the take's first")

    def _adopt_base(self, of: TakeBase) -> None:
        """What the take is based on stands before its own records. Raises CassetteError where that
        is not as it was.
        """
        if self._depth >= DEPTH:
            raise CassetteError(
                f"is a take of a take ... more than {DEPTH} deep", path=str(self.path)
            )
        path = of.find_file(self.path)
        base = self._open_base(path, of)
        base.refresh()
        if base.torn:
            reason = (
                f"its base is cut in the midst of a record of {path}: `bytes` was changed by hand"
            )
            raise CassetteError(reason, path=str(self.path), line=2)
        self.base, self._below, self._assets = base, base.size, base.assets
        self.calls, self.runs, self.ended = list(base.calls), list(base.runs), dict(base.ended)
        self.by_run = dict(base.by_run)
        self.by_name = dict(base.by_name)
        self.by_exact = dict(base.by_exact)
        self.by_match = {match: list(entries) for match, entries in base.by_match.items()}
        self.tools = {name: list(entries) for name, entries in base.tools.items()}

    @property
    def torn(self) -> int:
        """Bytes of a record that was never finished, at the end of the file."""
        return self._journal.torn

    @property
    def size(self) -> int:
        """Bytes of whole records, those of the books below included: where its next record would
        stand.
        """
        return self._below + (
            len(self._memory) if self._memory is not None else self._journal.committed
        )

    @property
    def assets(self) -> Path:
        """The folder of its long texts."""
        return self._assets

    def _index_migrated(self, version: int) -> None:
        """Index a migrated copy held in memory; the file stays as it is."""
        old = [self._parse_record(span.offset, span.length) for span in self._journal.scan()]
        try:
            texts = [emitter.emit(record).encode("utf-8") for record in migrated(old, version)]
        except CassetteError as error:
            raise self.locate_error(error, 0) from error
        self._memory = b"".join(texts)
        self.notes.append(
            f"{_MIGRATED} {version}, read as format {VERSION}; {self.path.name} is untouched"
        )
        offset = 0
        for text in texts:
            self._index_record(RecordPosition(offset, len(text), text[:600]))
            offset += len(text)

    def _index_parsed(self, span: RecordPosition) -> None:
        """The slow way: any record but a call in its usual shape."""
        record = self._parse_record(span.offset, span.length)
        kind = next(iter(record))
        if reason := _find_wrong_value(record):
            raise CassetteError(reason)
        if kind == "run":
            self._add_run(record)
        elif kind == "kit":
            self._add_kit(record)
        elif kind == "end":
            self.ended[str(record["end"])] = record
        elif kind == "call":
            names = tuple(str(record.get(key, "")) for key in ("call", "run", "match", "lineage"))
            if not re.fullmatch(r"[0-9a-f]{32}", names[2]):
                raise CassetteError("a call record needs `call`, `run` and `match` (32 hex digits)")
            if record.get("kind") in ("tool", "retrieval"):
                tool = str(record.get("name", ""))
            else:
                tool = ""
            # four
            entry = Entry(self, span[:2], names, str(record.get("apart", "")))  # type: ignore[arg-type]
            self._add_call(entry, str(record.get("exact", "")), tool)
        elif kind == "more":
            self._add_more(record, span)
        elif kind == "override":
            self._add_override(record, span)
        else:
            kinds = "tape, run, kit, call, more, override, end"
            raise CassetteError(f"unknown record {kind!r}; a record is one of {kinds}")

    def _add_call(self, entry: Entry, exact: str = "", tool: str = "") -> None:
        name = (entry.run, entry.id)
        if name in self.by_name:
            raise CassetteError(f"call {entry.id} stands twice in run {entry.run}")
        if not _ID.fullmatch(entry.id):
            raise CassetteError(f"{entry.id[:80]!r} is not a call id, like 78a670b1 or 78a670b1-2")
        self.by_name[name] = entry
        entry.place = len(self.calls)
        self.calls.append(entry)
        self.by_match.setdefault(entry.match, []).append(entry)
        self.strands.setdefault(entry.run, set()).add(entry.lineage)
        if exact:
            self.by_exact[exact] = entry.match
        if tool:
            self.tools.setdefault(tool, []).append(entry)

    def _add_kit(self, record: dict[str, Any]) -> None:
        """The slow part of a run's kit, told as what differs from an earlier run's where it says
        `like`.
        """
        run_record, like = self._find_run(str(record["kit"])), record.get("like")
        base = self._find_run(str(like)) if like is not None else None
        if run_record is None or (like is not None and base is None):
            missing = record["kit"] if run_record is None else like
            raise CassetteError(f"a kit speaks of run {missing}, which is not before it")
        run_record["kit"] = records.kit_whole(record, run_record, base)

    def _find_run(self, name: str) -> dict[str, Any] | None:
        return self.by_run.get(name)

    def _add_run(self, record: dict[str, Any]) -> None:
        self.runs.append(record)
        self.by_run[str(record["run"])] = record

    def _add_more(self, record: Mapping[str, Any], span: RecordPosition) -> None:
        entry = self.by_name.get((str(record.get("run", "")), str(record["more"])))
        if entry is None or entry.book is not self:
            raise CassetteError(f"`more: {record['more']}` belongs to no call before it")
        entry.more += ((span.offset, span.length),)

    def _add_override(self, record: Mapping[str, Any], span: RecordPosition) -> None:
        replaced = self.by_name.get((str(record.get("run", "")), str(record["override"])))
        reason = ""
        if self.base is None:
            reason = (
                "an override stands in a take only, and the header of this file has no `take of`"
            )
        elif replaced is None:
            call = f"call {record['override']} of run {record.get('run')}"
            reason = f"this overrides {call}, which is neither in {self.base.path.name} nor above"
        elif not isinstance(record.get("response"), dict):
            reason = "an override holds a `response:`, as a call does"
        if replaced is None or reason:
            raise CassetteError(reason)
        self._apply_override(Overridden(self, span[:2], replaced, str(record.get("by", ""))))

    def _apply_override(self, entry: Overridden) -> None:
        """The newest override of a call is its reply; what it replaces stays in the file."""
        self.overrides.append(entry)
        self.calls[entry.place] = self.by_name[entry.run, entry.id] = entry
        same = self.by_match[entry.match]
        same[next(i for i, other in enumerate(same) if other.place == entry.place)] = entry

    def newest_overrides(self) -> Collection[Overridden]:
        """Of its own overrides those that count: the newest of each call."""
        return {(override.run, override.id): override for override in self.overrides}.values()

    def matching(self, key: str) -> Sequence[Entry]:
        """Every recorded call with that match key, in file order (the order of completion)."""
        return self.by_match.get(key, ())

    def match_of(self, exact: str) -> str:
        """The match key of the recorded requests with that exact digest (match_key.py), or
        "".
        """
        return self.by_exact.get(exact, "")

    def call(self, run: str, name: str) -> Entry | None:
        return self.by_name.get((run, name))

    def __len__(self) -> int:
        return len(self.calls)

    # ------------------------------------------------------------ reading records

    def text(self, offset: int, length: int) -> str:
        return self._decode_record(self.raw(offset, length), offset)

    def raw(self, offset: int, length: int) -> bytes:
        """Bytes of this very file (of a migrated one, of what it was migrated to)."""
        if self._memory is not None:
            return self._memory[offset : offset + length]
        return self._journal.read(offset, length)

    def _decode_record(self, data: bytes, offset: int) -> str:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise self.locate_error(
                CassetteError("not UTF-8; restore the file, or save it as UTF-8", line=line), offset
            ) from error
        if not text.startswith("---"):
            raise CassetteError(
                "the file changed while it was in use; run the cell again", path=str(self.path)
            )
        return text

    def _parse_record(self, offset: int, length: int) -> dict[str, Any]:
        try:
            return emitter.parse_record(self.text(offset, length))
        except CassetteError as error:
            raise self.locate_error(error, offset) from error

    def locate_error(self, error: CassetteError, offset: int) -> CassetteError:
        """The error with this file's name, and its line counted from the file's first."""
        if error.path is not None:
            return error
        if error.line is None:
            error.line = 2
        return error.at(path=str(self.path), first_line=self.line(offset))

    def line(self, offset: int) -> int:
        if self._memory is not None:
            return self._memory.count(b"\n", 0, offset) + 1
        return self._journal.line(offset)


def _find_wrong_value(record: Mapping[str, Any]) -> str:
    """What is wrong with the values of a run or its end, as a hand may leave them; "" where nothing
    is.
    """
    paths = record.get("ignore", [])
    if "run" in record and not (
        isinstance(paths, list) and all(isinstance(path, str) for path in paths)
    ):
        return "`ignore` lists JSON paths, each on its line: `- $.metadata.ts`"
    if "end" in record and not isinstance(record.get("outcome", ""), str):
        return "`outcome` is a word: ok, raised or interrupted"
    if "end" in record and not isinstance(record.get("alike", []), list):
        return "`alike` lists call ids, each on its line"
    if "run" in record and not isinstance(record.get("at", ""), str):
        return "`at` is a moment, like 2026-03-01T12:00:00.000Z"
    return ""


def _decode_group(match: re.Match[bytes], group: int) -> str:
    return (match[group] or match[group + 1] or b"").decode("utf-8")
