"""Notebook room: where a call crosses. Taps ask here; here the call is placed in its cell and the player decides.

The only rule of its own is fail closed: in replay, what is not played is refused.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any, Protocol

from tape_jupyter import forks, hosts, providers
from tape_jupyter.calls import Capture, FunctionCall, Play, Reply, Request, Value, Where
from tape_jupyter.cassette import Entry
from tape_jupyter.errors import BlockedConnection, CassetteError, UnmatchedCall
from tape_jupyter.frozen import freeze_error
from tape_jupyter.matching import Asked, asked, exact_digest, json_value, match_key
from tape_jupyter.notebook.capture import FunctionCapture, HttpCapture, Passing
from tape_jupyter.notebook.misses import miss, title
from tape_jupyter.notebook.taped import Cell
from tape_jupyter.origin import ORIGIN, PARENT, SPAN, Origin
from tape_jupyter.player import GoLive, Refuse
from tape_jupyter.providers.tools import declared_tools
from tape_jupyter.secrets import Secrets

REFUSED: Mapping[str, Any] = freeze_error(
    ConnectionRefusedError(errno.ECONNREFUSED, "refused: telemetry is not sent in replay")
)


class Desk(Protocol):
    """What the boundary needs of the deck."""

    secrets: Secrets

    @property
    def active(self) -> Cell | None: ...
    @property
    def sealed(self) -> bool: ...
    def start_run(self, cell: Cell) -> None: ...
    def tape_tools(self, cell: Cell, names: list[str]) -> None: ...


class Boundary:
    """The tape that taps ask (calls.Tape)."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._pid = os.getpid()

    def begin(self, call: Request | FunctionCall) -> Play | Capture | None:
        origin = ORIGIN.get()
        cell = origin.cell if origin is not None else self.desk.active
        if not isinstance(cell, Cell):
            return self._outside(call)
        if os.getpid() != self._pid:
            return self._forked(cell, call)
        try:
            return self._http(cell, origin, call) if isinstance(call, Request) else self._function(cell, origin, call)
        except Exception as error:
            if not cell.replaying:
                cell.warn(f"{title(call)} is NOT on the tape ({type(error).__name__}: {error})", cold=True)
                return Passing()
            # As an Exception it would be retried and wrapped by SDKs, or be taken for the tool's own failure.
            raise cell.refuse(UnmatchedCall(f"{title(call)} cannot be replayed: {error}")) from error

    def _outside(self, call: Request | FunctionCall) -> Play | None:
        """A call while no taped cell runs: nothing of ours, unless the whole session replays."""
        if not self.desk.sealed or isinstance(call, FunctionCall):
            return None
        if hosts.classify(call.url, call.method) == "telemetry":
            return Play(Reply(None, end="error", error=REFUSED))
        raise BlockedConnection(f"{title(call)}: the session replays, and no taped cell is running. Nothing was sent.")

    def _forked(self, cell: Cell, call: Request | FunctionCall) -> Play | Capture:
        """A call in a forked child: ids given there would collide with its parent's."""
        if isinstance(call, Request) and hosts.classify(call.url, call.method) == "telemetry":
            return Play(Reply(None, end="error", error=REFUSED)) if cell.replaying else Passing()
        if not cell.replaying:
            cell.warn("a forked process: calls that it makes are not on the tape", cold=True)
            return Passing()
        now = "Ask in the process of the cell, in its threads or tasks, or run the cell untaped."
        text = (
            f"{title(call)} in a forked process: the tape cannot be shared between processes. Nothing was sent. {now}"
        )
        forks.post("note", text, cell, refused=True)
        raise cell.refuse(BlockedConnection(text))

    def _http(self, cell: Cell, origin: Origin | None, request: Request) -> Play | Capture:
        kind = hosts.classify(request.url, request.method, request.header("content-type"))
        if kind == "telemetry":
            return Play(Reply(None, end="error", error=REFUSED)) if cell.replaying else Passing()
        matched = self._match(cell, request)
        self._tools(cell, request, matched.json)
        entry = self._decide(cell, origin, matched.match, request)
        if entry is not None:
            reply = self._reply(cell, entry, request)
            if cell.mode == "new_episodes" and isinstance(reply, Reply):
                cell.tools.ask(providers.facts(request, reply), cell.tools.moment())
            return Play(reply)
        where = self._where(cell, origin)
        self._open_run(cell, request)
        return HttpCapture(cell, self.desk.secrets, matched, kind, where, request)

    def _match(self, cell: Cell, request: Request) -> Asked:
        self.desk.secrets.learn_request(request)
        exact = exact_digest(request)
        if cell.cassette is not None and not cell.ignore and (known := cell.cassette.match_of(exact)):
            return Asked(known, exact)
        return asked(request, self.desk.secrets, cell.ignore, exact)

    def _function(self, cell: Cell, origin: Origin | None, call: FunctionCall) -> Play | Capture:
        cell.tools.ran(call.name)
        match = match_key(call, self.desk.secrets)
        entry = self._decide(cell, origin, match, call)
        if entry is not None:
            return Play(self._value(cell, entry, call))
        where = self._where(cell, origin)
        self._open_run(cell, call)
        return FunctionCapture(cell, self.desk.secrets, match, where, call)

    def _decide(self, cell: Cell, origin: Origin | None, match: str, call: Request | FunctionCall) -> Entry | None:
        """The recorded call to play; None to go live. Raises UnmatchedCall."""
        lineage = origin.lineage if origin is not None else ""
        decided = cell.player.decide(cell.execution, match, lineage, ended=cell.closed)
        if isinstance(decided, GoLive):
            return None
        if isinstance(decided, Refuse):
            raise cell.refuse(miss(cell, call, decided, self.desk.secrets))
        assert isinstance(decided, Entry)
        cell.served.append(decided)
        return decided

    def _reply(self, cell: Cell, entry: Entry, request: Request) -> Reply | Value:
        reply, edited = entry.book.reply(entry)
        if edited:
            cell.edited.append(entry.id)
        if edited and cell.ask.options.get("strict"):
            text = f"call {entry.id} was edited by hand ({entry.book.path.name}:{entry.line}); --strict refuses it"
            raise cell.refuse(UnmatchedCall(f"{title(request)}: {text}"))
        if isinstance(reply, Reply) and reply.end == "cut short":
            return self._cut_short(cell, entry, reply, request)
        return reply

    def _value(self, cell: Cell, entry: Entry, call: FunctionCall) -> Reply | Value:
        value = entry.reply()
        if isinstance(value, Value) and value.unkept:
            raise cell.refuse(UnmatchedCall(f"{title(call)}: what it returned could not be recorded: {value.unkept}"))
        return value

    def _cut_short(self, cell: Cell, entry: Entry, reply: Reply, request: Request) -> Reply:
        if not cell.ask.options.get("cut_short"):
            text = f"call {entry.id} was cut short by an interrupt when recorded ({entry.book.path.name}:{entry.line})"
            now = "Record the cell again, or replay with --cut-short to get the partial reply and the interrupt."
            raise cell.refuse(UnmatchedCall(f"{title(request)}: {text}. {now}"))
        if cell.in_task_of_its_own() and reply.status is not None:
            return reply  # an event loop does not survive a KeyboardInterrupt in a task; the tap says what ended it
        error = freeze_error(KeyboardInterrupt("the recording was interrupted here"))
        return Reply(
            reply.status, reply.headers, reply.chunks, reply.waits, "error", error, reply.version, reply.reason
        )

    def _where(self, cell: Cell, origin: Origin | None) -> Where:
        return Where(cell.run, origin.lineage if origin is not None else "", SPAN.get(), PARENT.get())

    def _open_run(self, cell: Cell, call: Request | FunctionCall) -> None:
        """The run's record is committed before the first call is paid for."""
        if cell.run or cell.mode == "live":
            return
        try:
            with cell.lock:
                if not cell.run:
                    self.desk.start_run(cell)
        except (CassetteError, OSError) as error:
            text = f"{title(call)} was not sent, since it could not be recorded: {error}"
            raise cell.refuse(BlockedConnection(text)) from error

    def _tools(self, cell: Cell, request: Request, body: Any) -> None:
        """Tape the functions that this request offers as tools."""
        if b'"tool' not in request.body and not cell.ask.options.get("tools"):
            return
        self.desk.tape_tools(cell, declared_tools(json_value(request.body) if body is None else body))
