"""A cassette: a book of recorded calls that is written to, one record at a time.

No decision about a live call is made here (replay/player.py), and nothing is patched. What is
written is proven first, and committed by one append (cassette/journal.py); other kernels may append
to the same file, and people may edit it meanwhile.
"""

from __future__ import annotations

import os
import secrets as entropy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tape_jupyter import __version__
from tape_jupyter.cassette import external_texts, paths, records, request_refs
from tape_jupyter.cassette.journal import Replaced
from tape_jupyter.cassette.match_key import MatchedRequest
from tape_jupyter.cassette.migrations import VERSION
from tape_jupyter.cassette.prepared_requests import UNPROVEN, Beginning, begin_record
from tape_jupyter.cassette.reader import TORN, WHOLE_CHECK, Entry, Overridden
from tape_jupyter.cassette.takes.derived import Derived
from tape_jupyter.cassette.takes.files import TakeBase
from tape_jupyter.core import large_body
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import CassetteError
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.secrets.spooling import spooled

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["WHOLE_CHECK", "Cassette", "Entry", "Overridden", "open"]

_ASIDE = "and are moved to .torn now"
_NO_HEADER: Mapping[str, Any] = {}
# calls of a take's base that its own may refer to: the last ones hold what those before them held
_PRIMED = 4


class Cassette(Derived):
    """A cassette file, open for reading and appending. Safe to use from several threads."""

    def __init__(self, path: Path, *, of: TakeBase | None = None) -> None:
        super().__init__(path, of=of)
        self._folder = request_refs.RequestFolder()
        self._primed = ""
        self._first_kit = ""
        self._unsynced: list[large_body.LargeBody] = []

    def refresh(self) -> bool:
        """Index what is in the file now; True where it had changed. Appended records alone are
        added in place.
        """
        with self._lock:
            self.notes = [note for note in self.notes if not note.endswith(_ASIDE)]
            return super().refresh()

    def _clear_index(self) -> None:
        super()._clear_index()
        # what it refers to may be gone
        self._folder = request_refs.RequestFolder()
        self._primed = ""

    def frame(self) -> pd.DataFrame:
        """Its spans as a pandas frame: one row a span, typed columns (spans/dataframe.py tells them
        and their units).

        Raises TapeUsageError where pandas is not installed.
        """
        from tape_jupyter.spans.dataframe import spans_frame

        self.refresh()
        return spans_frame(self)

    def append_override(
        self, entry: Entry, reply: Reply | Value, metadata: Mapping[str, Any], secrets: Secrets
    ) -> Overridden:
        """Commit what answers a recorded call from now on; `metadata` stands above it (by, at, seconds,
        failed, kit).

        Raises CassetteError where this is no take, or it cannot be written. The base is never
        written.
        """
        with self._lock:
            try:
                self._create_file()
                reply = self._put_reply_body(reply, secrets)
                return self._append_override(entry, reply, metadata, secrets)
            except Replaced:
                self._reread_changed_file(str(metadata.get("by", "")))
                return self._append_override(entry, reply, metadata, secrets)

    def _append_override(
        self, entry: Entry, reply: Reply | Value, metadata: Mapping[str, Any], secrets: Secrets
    ) -> Overridden:
        replaced = self.by_name.get((entry.run, entry.id))
        if self.base is None or replaced is None:
            reason = f"call {entry.id} of run {entry.run} cannot be overridden here: "
            reason += (
                "this is not a take"
                if self.base is None
                else f"{self.base.path.name} does not hold it"
            )
            raise CassetteError(reason, path=str(self.path))
        response = records.response_section(reply, secrets)
        record = {"override": entry.id, "run": entry.run, **metadata, "response": response}
        text = emitter.emit(record)
        if secrets.suspicious(text):
            clean = records.masked_record(
                {key: value for key, value in metadata.items() if key != "by"}, secrets
            )
            record = {**record, **clean, "response": records.scrubbed(response, secrets)}
            text = emitter.emit(record)
        overridden = Overridden(
            self,
            self._append_record(self._prove_text(record, text)),
            replaced,
            str(metadata.get("by", "")),
        )
        self._apply_override(overridden)
        return overridden

    def append_again(
        self, entry: Overridden, replies: Sequence[Reply], at: str, secrets: Secrets
    ) -> None:
        """Commit what answers an overridden request when it is sent again (a fault, then the
        recorded reply).
        """
        run = self._find_run(entry.run) or {}
        identity = {key: run[key] for key in ("cell", "source", "session", "title") if run.get(key)}
        again = self.start_run(
            {"mode": "again", "parent": entry.run, **identity, "at": at}, {}, secrets
        )
        recorded_head, request = entry.recorded.head(), entry.request()
        name = entry.match[:8]
        for number, reply in enumerate(replies, 1):
            head = records.Head(
                name if number == 1 else f"{name}-{number}", again, entry.match, str(recorded_head.get("kind", "host")),
                Where(again, entry.lineage), at, float(recorded_head.get("seconds", 0.0)), recorded_head.get("kit", {}),
                str(recorded_head.get("name", "")), discriminator=entry.discriminator,
            )  # fmt: skip
            self.append_call(head, request, reply, secrets)
        self.end_run(again, {"outcome": "ok", "calls": len(replies)}, secrets)

    def _create_file(self) -> None:
        """A take's file, with its header; another kernel may have made it meanwhile, of a longer
        base.
        """
        if self._of is None or self._journal.committed:
            return
        if not self._journal.exists():
            header = {"cassette": paths.stem(self.root), "made by": f"tape-jupyter {__version__}"}
            self._journal.append(b"", self._build_header(header))
        self._journal.distrust()
        self.refresh()

    def writable(self) -> str:
        """Why nothing can be recorded here, or ""."""
        if self._memory is not None:
            return "the cassette is of an older format; record under another name, or migrate it"
        return self._journal.writable()

    def start_run(
        self, record: dict[str, Any], header: dict[str, Any], secrets: Secrets | None = None
    ) -> str:
        """Commit a run record; gives its id (random, so that two kernels or branches never share
        one).
        """
        run = f"r-{entropy.token_hex(4)}"
        full_record = {"run": run, **records.masked_record(record, secrets)}
        with self._lock:
            try:
                self._append_record(emitter.emit(full_record), header)
            except Replaced:
                self._reread_changed_file(run)
                self._append_record(emitter.emit(full_record), header)
            self._add_run(full_record)
        return run

    def add_kit(self, run: str, kit: Mapping[str, Any], secrets: Secrets | None = None) -> None:
        """Commit the slow part of a run's kit: as what differs from that of this session's first
        run in the file.
        """
        masked_kit = records.masked_record(dict(kit), secrets)
        with self._lock:
            first = self._find_run(self._first_kit)
            record = records.kit_like(run, masked_kit, first)
            try:
                self._append_record(emitter.emit(record))
            except Replaced:
                self._reread_changed_file(run)
                first, record = None, records.kit_like(run, masked_kit, None)
                self._append_record(emitter.emit(record))
            self._first_kit = first["run"] if first else run
            if (run_record := self._find_run(run)) is not None:
                run_record["kit"] = records.kit_whole(record, run_record, first)

    def begin_call(
        self,
        run: str,
        call: Request | FunctionCall,
        matched_request: MatchedRequest,
        secrets: Secrets,
    ) -> Beginning:
        """What a call's record begins with, made before its reply is there. Writes nothing. Raises
        CassetteError.
        """
        with self._lock:
            self._prime_request_folder(run)
            return begin_record(run, call, matched_request, secrets, self._folder)

    def append_call(
        self,
        head: records.Head,
        call: Request | FunctionCall,
        reply: Reply | Value,
        secrets: Secrets,
        beginning: Beginning | None = None,
    ) -> Entry:
        """Commit one call. What is written is proven first: parse(emit(record)) == record, and the
        bytes restore.

        `beginning`: its `begin_call`, where that was made already. Raises CassetteError where it
        cannot be kept (disk full, read-only); the caller's program is not concerned.
        """
        reply = self._put_reply_body(reply, secrets)
        if isinstance(call, Request) and call.large is not None:
            kept = self._put_body(call.large, call.large.blocks(), secrets)
            beginning = beginning if kept.sha256 == call.large.sha256 else None
            call = replace(call, large=kept)
        with self._lock:
            try:
                return self._append_call(head, call, reply, secrets, beginning)
            except Replaced:
                self._reread_changed_file(head.run)
                return self._append_call(head, call, reply, secrets)

    def _put_reply_body(self, reply: Reply | Value, secrets: Secrets) -> Reply | Value:
        """The reply, a large body of it in assets/. Raises CassetteError."""
        if not isinstance(reply, Reply) or not large_body.is_large(reply.chunks):
            return reply
        if isinstance(reply.chunks, large_body.LargeChunks):
            body, sizes = reply.chunks.body, reply.chunks.sizes
            kept = self._put_body(body, body.blocks(), secrets)
        else:
            kept, sizes = self._put_body(None, reply.chunks, secrets), list(map(len, reply.chunks))
        return replace(reply, chunks=large_body.LargeChunks(kept, sizes))

    def _put_body(
        self, body: large_body.LargeBody | None, parts: Iterable[bytes], secrets: Secrets
    ) -> large_body.LargeBody:
        """A secret that was learned after the body had passed is looked for now."""
        if body is not None and body.path is not None and body.path.parent == self._assets:
            return body
        try:
            if body is None or body.learned != secrets.learned:
                again = spooled(parts, self._assets, secrets)
                again.sent = again.sent or (body.sent if body is not None else None)
                body = again
            kept = external_texts.put_body(body, self._assets)
        except OSError as error:
            reason = f"a large body cannot be written to assets/: {error.strerror or error}"
            raise CassetteError(reason, path=str(self.path)) from error
        self._unsynced.append(kept)
        return kept

    def _append_call(
        self,
        head: records.Head,
        call: Request | FunctionCall,
        reply: Reply | Value,
        secrets: Secrets,
        beginning: Beginning | None = None,
    ) -> Entry:
        if (head.run, head.call) in self.by_name:
            raise CassetteError(
                f"call {head.call} of run {head.run} is recorded already", path=str(self.path)
            )
        self._prime_request_folder(head.run)
        if beginning is None or not beginning.is_current(self._folder):
            matched_request = MatchedRequest(
                head.match, head.exact, head.request_json, head.clean, spelled=head.spelled
            )
            beginning = begin_record(head.run, call, matched_request, secrets, self._folder)
        text = self._record_text(head, beginning, reply, secrets)
        remember = beginning.remember
        if not text:
            record, remember = self._build_scrubbed_record(head, call, reply, secrets)
            text = self._prove_text(record, emitter.emit(record))
        place = self._append_record(text)
        entry = Entry(
            self, place, (head.call, head.run, head.match, head.where.lineage), head.discriminator
        )
        self._add_call(entry, head.exact, call.name if isinstance(call, FunctionCall) else "")
        remember(head.call)
        return entry

    def _record_text(
        self, head: records.Head, beginning: Beginning, reply: Reply | Value, secrets: Secrets
    ) -> str:
        """The text of a call's record, proven; "" where it holds secrets."""
        head_record = head.record()
        answer = {"response": records.response_section(reply, secrets, head.reply_json)}
        parts = (emitter.part_lines(head_record), beginning.text, emitter.part_lines(answer))
        looked_at = parts[::2] if beginning.clean and beginning.clean == secrets.version else parts
        if secrets.suspicious("".join(looked_at)):
            return ""
        if sum(map(len, parts)) > external_texts.LIMIT:
            record = {**head_record, "request": beginning.section, **answer}
            return self._prove_text(record, emitter.whole_record(*parts))
        if emitter.parse_record(emitter.whole_record(*parts[::2])) != {**head_record, **answer}:
            raise CassetteError(UNPROVEN, path=str(self.path))
        return emitter.whole_record(*parts)

    def _build_scrubbed_record(
        self,
        head: records.Head,
        call: Request | FunctionCall,
        reply: Reply | Value,
        secrets: Secrets,
    ) -> tuple[dict[str, Any], Callable[[str], None]]:
        """The record of a call without known secrets, and what to do once it is committed."""
        head = replace(head, exact="")  # a digest of what is masked would be a way to guess it
        request = records.scrubbed(
            records.request_section(call, secrets, head.request_json), secrets
        )
        records.require_address(request)
        response = records.scrubbed(
            records.response_section(reply, secrets, head.reply_json), secrets
        )
        folded, remember = self._folder.fold(head.run, request.get("body"))
        if "body" in request:
            request["body"] = folded
        return {
            **records.scrubbed_head(head, secrets),
            "request": request,
            "response": response,
        }, remember

    def _prime_request_folder(self, run: str) -> None:
        """Let a take's requests refer to those of the recording that the run adds to: they repeat
        its history.
        """
        parent = str((self._find_run(run) or {}).get("parent", ""))
        if self.base is None or not parent or parent == self._primed:
            return
        self._primed = parent
        for entry in [entry for entry in self.base.calls if entry.run == parent][-_PRIMED:]:
            _, remember = self._folder.fold(parent, self.request_section(entry).get("body"))
            remember(entry.id)

    def append_more(self, entry: Entry, reply: Reply | Value, secrets: Secrets) -> None:
        """Commit bytes (or an error, or items of a generator) that came after a call had been
        committed.
        """
        response = records.response_section(self._put_reply_body(reply, secrets), secrets)
        for key in ("status", "headers", "version", "reason"):
            response.pop(key, None)
        with self._lock:
            record = {"more": entry.id, "run": entry.run, **response}
            text = emitter.emit(record)
            if secrets.suspicious(text):
                record = {"more": entry.id, "run": entry.run, **records.scrubbed(response, secrets)}
                text = emitter.emit(record)
            try:
                entry.more += (self._append_record(self._prove_text(record, text)),)
            except Replaced:
                self._reread_changed_file(entry.run)
                raise

    def end_run(
        self, run: str, record: dict[str, Any], secrets: Secrets | None = None, *, sync: bool = True
    ) -> None:
        """Commit a run's end mark, and with `sync` ask the disk to hold all that is committed.
        Raises CassetteError.
        """
        full_record = {"end": run, **records.masked_record(record, secrets)}
        data = emitter.emit(full_record)
        with self._lock:
            try:
                self._append_record(data)
            except Replaced:
                self._reread_changed_file(run)
                self._append_record(data)
            self.ended[run] = full_record
        if sync:
            self.sync()

    def hold_open(self) -> AbstractContextManager[None]:
        """Keep the file open and locked over many appends: for a cassette that nobody else knows of
        yet.
        """
        return self._journal.hold_open()

    def sync(self) -> None:
        """Ask the disk to hold all that is committed; others may read and append meanwhile. Raises
        CassetteError.
        """
        with self._lock:
            bodies, self._unsynced = self._unsynced, []
        for body in bodies:
            with suppress(OSError):  # one that is gone is told of where it is read
                os.fsync(body.fileno())
        self._journal.sync()

    def recovered(self, run: str, name: str, over: Entry | None = None) -> Entry | None:
        """A call whose commit an interrupt broke off: only the file can tell whether it is there.

        `over`: the run's answer to that recorded call, an override.
        """
        with self._lock:
            self._journal.distrust()
            self.refresh()
            entry = self.call(run, name) if over is None else self.call(over.run, over.id)
            if over is None or (isinstance(entry, Overridden) and entry.by == run):
                return entry
            return None

    def _reread_changed_file(self, run: str) -> None:
        """Somebody edited, cut or removed the file while it was recorded to: read it anew, and put
        our run back.

        A file that is broken now is still recorded to: what was paid for is kept, and reading it
        again will tell.
        """
        run_record = self._find_run(run)
        self._histories.clear()
        self._clear_index()
        try:
            self._index_from(0)
        except CassetteError:
            self._clear_index()
            self._journal.distrust()
        if run_record is not None and self._find_run(run) is None:
            self._append_record(emitter.emit(run_record))
            self._add_run(run_record)

    def _prove_text(self, record: dict[str, Any], text: str) -> str:
        """The text to commit, long texts put away; proven to read back as what they were written
        from.
        """
        if len(text) > external_texts.LIMIT:
            shorter = self._put_away_long_texts(record)
            if shorter != record:
                record, text = shorter, emitter.emit(shorter)
        if emitter.parse_record(text) != record:
            raise CassetteError(UNPROVEN, path=str(self.path))
        return text

    def _put_away_long_texts(self, record: dict[str, Any]) -> dict[str, Any]:
        kept = ("call", "override", "more", "run", "kit")
        try:
            return {
                k: v if k in kept else external_texts.put_away(v, self._assets)
                for k, v in record.items()
            }
        except OSError as error:
            reason = f"a long text cannot be written to assets/: {error.strerror or error}"
            raise CassetteError(reason, path=str(self.path)) from error

    def _append_record(self, text: str, header: Mapping[str, Any] = _NO_HEADER) -> tuple[int, int]:
        """Commit a record; gives offset and length. What others appended since we looked is indexed
        before it.
        """
        if self._memory is not None:
            raise CassetteError(self.writable(), path=str(self.path))
        known, torn = self._journal.committed, self._journal.torn
        data, top = text.encode("utf-8"), self._build_header(header)
        offset = self._journal.append(data, top)
        if torn:
            self.notes = [note.replace(TORN, _ASIDE) for note in self.notes]
        if offset > known and offset != len(top):
            self._index_appended(known, offset)
        return offset, len(data)

    def _build_header(self, header: Mapping[str, Any]) -> bytes:
        """The header that a new file begins with; a take's says what it is of."""
        of = self._of.record() if self._of is not None else {}
        return emitter.emit({"tape": VERSION, **header, **of}).encode("utf-8")

    def _index_appended(self, known: int, until: int) -> None:
        try:
            for span in self._journal.between(known, until):
                self._index_record(span)
        except CassetteError:
            # our record is committed; whoever reads the file next is told of the other
            self._journal.distrust()


# tape.open
def open(path: str | Path, check: Literal["auto", "whole", "marks"] = "auto") -> Cassette:  # noqa: A001
    """`tape.open(path)`: see Cassette.open."""
    return Cassette.open(path, check)
