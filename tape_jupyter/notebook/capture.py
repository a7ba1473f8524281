"""Notebook room: a call that goes live, as it happens: collects what the tap reports and commits it.

A call is committed before the chunk with its terminal event is handed on. Nothing here ever raises into the program
that made the call: what cannot be kept is a warning of the cell.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tape_jupyter import providers
from tape_jupyter.bodies import TerminalWatch
from tape_jupyter.calls import End, FunctionCall, Headers, Reply, Request, Value, Where
from tape_jupyter.cassette import Entry
from tape_jupyter.errors import CassetteError
from tape_jupyter.frozen import CannotFreeze, freeze, freeze_error
from tape_jupyter.matching import exact_digest
from tape_jupyter.notebook.taped import Cell, Row
from tape_jupyter.records import Head
from tape_jupyter.secrets import Secrets


class Taking:
    """What every call that goes live has: its id and place, and the one commit. `kind` is its host class."""

    def __init__(self, cell: Cell, secrets: Secrets, match: str, kind: str, where: Where) -> None:
        self.cell, self.secrets, self.match, self.kind, self.where = cell, secrets, match, kind, where
        self.id = cell.next_name(match)
        self.at = datetime.now(UTC)
        self.started = time.perf_counter()
        self.entry: Entry | None = None
        self.exact = ""

    def _elapsed(self) -> float:
        return time.perf_counter() - self.started

    def _commit(self, call: Request | FunctionCall, reply: Reply | Value, kit: dict[str, Any], row: Row) -> None:
        """Append the call and report it. Every failure becomes a warning: the program has its reply already."""
        with self.cell.lock:
            self.cell.rows.append(row)
        if self.cell.cassette is None or not self.cell.run:
            return
        if self.cell.closed:
            self.cell.warn(f"call {self.id} ended after its cell did; it is kept under that cell's run")
        at = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        name = "" if kit.get("model") else row.name
        head = Head(
            self.id, self.cell.run, self.match, self.kind, self.where, at, self._elapsed(), kit, name, row.error,
            self.exact,
        )  # fmt: skip
        try:
            self.entry = self.cell.cassette.append_call(head, call, reply, self.secrets)
            self.cell.first_commit()
        except (CassetteError, OSError) as error:
            self.cell.warn(f"call {self.id} is NOT on the tape: {error}", cold=True)
        except Exception as error:
            text = f"call {self.id} is NOT on the tape ({type(error).__name__}: {error}); please report this"
            self.cell.warn(text, cold=True)


class HttpCapture(Taking):
    """A live HTTP call (calls.Capture)."""

    def __init__(self, cell: Cell, secrets: Secrets, match: str, kind: str, where: Where, request: Request) -> None:
        super().__init__(cell, secrets, match, kind, where)
        self.exact = exact_digest(request)
        self.request = request
        self._head: tuple[int, Headers, str, str] | None = None
        self._chunks: list[bytes] = []
        self._waits: list[float] = []
        self._late = 0
        self._done = False
        self._watch: TerminalWatch | None = None

    def head(self, status: int, headers: Headers, version: str = "HTTP/1.1", reason: str = "") -> None:
        self._head = (status, headers, version, reason)
        names = {name.lower(): value for name, value in headers}
        length = names.get("content-length", "")
        self._watch = TerminalWatch(
            names.get("content-type", ""), names.get("content-encoding", ""), int(length) if length.isdigit() else None
        )

    def chunk(self, data: bytes) -> None:
        self._chunks.append(data)
        self._waits.append(self._elapsed())
        if self._watch is not None and self.entry is None and not self._done and self._watch.feed(data):
            self._settle("complete")
            self._late = len(self._chunks)

    def finish(self) -> None:
        self._end("complete")

    def close(self) -> None:
        self._end("complete" if self._late == len(self._chunks) and self._late else "closed")

    def fail(self, error: BaseException) -> None:
        if isinstance(error, KeyboardInterrupt):
            self._end("cut short")
        elif isinstance(error, asyncio.CancelledError) and not self.where.lineage and not self._late:
            self._end_when_known(error)
        else:
            self._end("error", error)

    def value(self, value: Any) -> None:
        """Only functions return values."""

    def _end_when_known(self, error: BaseException) -> None:
        """The cell's own task was cancelled: by its program, or by a kernel interrupt, which the cell's end tells."""
        if self._done:
            return
        self._done = True
        settle: Callable[[bool], None] = lambda interrupted: (  # noqa: E731 - two words for a later moment
            self._settle("cut short") if interrupted else self._settle("error", error)
        )
        if self.cell.closed:
            settle(False)
        else:
            self.cell.undecided.append(settle)

    def _end(self, end: End, error: BaseException | None = None) -> None:
        if self._done:
            return
        self._done = True
        if not self._late:
            self._settle(end, error)
        elif len(self._chunks) > self._late or end == "error":
            self._add(end, error)

    def _reply(self, end: End, error: BaseException | None, start: int = 0) -> Reply:
        frozen = freeze_error(error) if error is not None else None
        waits, chunks = tuple(self._waits[start:]), tuple(self._chunks[start:])
        if self._head is None:
            return Reply(None, end=end, error=frozen, waits=waits or (self._elapsed(),))
        status, headers, version, reason = self._head
        return Reply(status, headers, chunks, waits, end, frozen, version, reason)

    def _settle(self, end: End, error: BaseException | None = None) -> None:
        reply = self._reply(end, error)
        told = providers.facts(self.request, reply)
        self.cell.asked_tools.update({call.id or call.name: call.name for call in told.calls})
        row = row_of(self.id, self.kind, told, self._elapsed(), name=self.request.url, error=failure(reply, error))
        self._commit(self.request, reply, told.record(), row)

    def _add(self, end: End, error: BaseException | None) -> None:
        """Bytes, or an error, that came after the terminal event was committed."""
        if self.entry is None or self.cell.cassette is None:
            return
        try:
            self.cell.cassette.append_more(self.entry, self._reply(end, error, self._late), self.secrets)
        except (CassetteError, OSError) as problem:
            self.cell.warn(f"the last bytes of call {self.id} are NOT on the tape: {problem}", cold=True)


class FunctionCapture(Taking):
    """A taped function whose body runs (calls.Capture)."""

    def __init__(self, cell: Cell, secrets: Secrets, match: str, where: Where, call: FunctionCall) -> None:
        super().__init__(cell, secrets, match, call.kind, where)
        self.call = call

    def value(self, value: Any) -> None:
        try:
            self._keep(Value(freeze(value), seconds=self._elapsed()))
        except CannotFreeze as error:
            self.cell.warn(f"{self.call.kind} {self.call.name} is not on the tape: {error}", cold=True)

    def fail(self, error: BaseException) -> None:
        if not isinstance(error, KeyboardInterrupt):
            self._keep(Value(error=freeze_error(error), seconds=self._elapsed()), f"{type(error).__name__}: {error}")

    def _keep(self, value: Value, error: str = "") -> None:
        row = Row(self.id, self.call.kind, self.call.name, seconds=self._elapsed(), error=error)
        self._commit(self.call, value, {}, row)

    def head(self, status: int, headers: Headers, version: str = "HTTP/1.1", reason: str = "") -> None:
        """Only HTTP replies have a head."""

    def chunk(self, data: bytes) -> None:
        """Only HTTP replies have chunks."""

    def finish(self) -> None:
        """Only HTTP replies have an end of their own."""

    def close(self) -> None:
        """Only HTTP replies can be closed."""


def failure(reply: Reply, error: BaseException | None) -> str:
    """The row's word for what went wrong; "" where nothing did."""
    if error is not None:
        return f"{type(error).__name__}: {error}"[:200]
    if reply.status is not None and reply.status >= 400:
        return f"{reply.status} {reply.reason}".strip()
    return reply.end if reply.end == "cut short" else ""


def row_of(call: str, kind: str, told: providers.Facts, seconds: float, *, name: str, error: str) -> Row:
    return Row(call, kind, told.answered or told.model or short_url(name), told, seconds, error)


def short_url(url: str) -> str:
    return url.partition("://")[2].partition("?")[0][:80] or url[:80]


class Passing:
    """A live call that is not taped (telemetry), as a capture that keeps nothing: the guard lets its socket through."""

    def head(self, status: int, headers: Headers, version: str = "HTTP/1.1", reason: str = "") -> None:
        """Not kept."""

    def chunk(self, data: bytes) -> None:
        """Not kept."""

    def finish(self) -> None:
        """Not kept."""

    def close(self) -> None:
        """Not kept."""

    def fail(self, error: BaseException) -> None:
        """Not kept."""

    def value(self, value: Any) -> None:
        """Not kept."""
