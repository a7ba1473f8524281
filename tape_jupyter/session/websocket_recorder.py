"""Connections with frames both ways: how one is kept while it lasts, and what refuses one in
replay.

Kept: what was said is committed before the frame that ends a turn is handed on
(encoding/http/websocket.py knows the ends of turns), at the close, and where a turn lasts longer,
every KEPT_EVERY seconds while frames come. So a kill loses nothing up to the last end of a turn,
and of a turn that runs, or of a protocol that is not known, the last seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.match_key import field_diff, json_value, scalar_leaves
from tape_jupyter.comparison.outputs import LATE
from tape_jupyter.core.call import End, Headers, Reply, Request, Value
from tape_jupyter.core.context import ORIGIN
from tape_jupyter.core.websocket import SWITCHED, Dialogue, WebSocketFrame
from tape_jupyter.encoding.http.websocket import TurnWatch, frames_of, parse_frame
from tape_jupyter.errors import CassetteError, UnmatchedCall
from tape_jupyter.providers import registry
from tape_jupyter.providers.realtime import together
from tape_jupyter.providers.tools import declared_tools
from tape_jupyter.replay.websocket_script import Script, counted_content, message_key
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session.cell import TapedCell
from tape_jupyter.session.http_recorder import HttpCapture
from tape_jupyter.session.mismatch import title

KEPT_EVERY = 10.0

Offer = Callable[[TapedCell, list[str]], None]
"""Tapes the functions of the notebook that carry these names (Deck.tape_tools)."""


def opens_dialogue(request: Request) -> bool:
    return request.url.startswith(("wss://", "ws://"))


class WebSocketCapture(HttpCapture):
    """A live connection: its lines come from the program's threads and from the library's own."""

    offer: Offer

    def __init__(self, *args: Any, offer: Offer, **options: Any) -> None:
        self._lock = threading.RLock()
        self._fresh: float | None = None  # when the first line came that is not kept yet
        self.offer = offer
        super().__init__(*args, **options)

    def head(
        self, status: int, headers: Headers, version: str = "HTTP/1.1", reason: str = ""
    ) -> None:
        super().head(status, headers, version, reason)
        if status == SWITCHED:
            self._watch = None
            self._turns: TurnWatch | None = TurnWatch()

    _turns: TurnWatch | None = None

    def chunk(self, data: bytes) -> None:
        if self._turns is None:
            super().chunk(data)
            return
        sent = data.startswith(b'{"sent')
        if sent and b"tools" in data:
            offer_tools(self.offer, self.cell, parse_frame(data))
        with self._lock:
            if self._done:
                return
            self._chunks.append(data)
            self._waits.append(self._measure_elapsed())
            if self._fresh is None:
                self._fresh = self._waits[-1]
            if self._turns.feed(data) or self._waits[-1] - self._fresh > KEPT_EVERY:
                self._fresh = None
                self._commit_rest("complete")
                self._report_if_late()
        if not sent:
            self.handed_by_callback()

    def _append_late_reply(self, late: Reply) -> None:
        """A later turn: its tokens are the call's, and the tools it asks for are asked for."""
        super()._append_late_reply(late)
        facts = registry.call_facts(self.request, late)
        self._warn_of_untaped_tools(facts)
        self.cell.tools.asked.note_requests(facts, self.moment)
        with self.cell.lock:
            for place, row in enumerate(self.cell.findings.rows):
                if row.id == self.id:
                    usage = together(row.facts.usage, facts.usage)
                    merged_facts = replace(
                        row.facts, usage=usage, answered=row.facts.answered or facts.answered
                    )
                    self.cell.findings.rows[place] = replace(
                        row, facts=merged_facts, seconds=self._measure_elapsed()
                    )

    def _report_if_late(self) -> None:
        if self.cell.closed:
            self.cell.warn_late(LATE[1])

    def cell_ended(self, *, interrupted: bool) -> None:
        with self._lock:
            super().cell_ended(interrupted=interrupted)

    def _end_capture(self, end: End, error: BaseException | None = None) -> None:
        with self._lock:
            super()._end_capture(end, error)


def offer_tools(offer: Offer, cell: TapedCell, frame: WebSocketFrame) -> None:
    """Tape the functions that a message offers to the model: `session.update`, `response.create`,
    Gemini's `setup`.
    """
    value = json_value(frame.data) if b'"tools"' in frame.data else None
    if isinstance(value, dict):
        places = (value, *(value.get(name) for name in ("session", "response", "setup")))
        offer(cell, [name for place in places for name in declared_tools(place)])


# ---------------------------------------------------------------- played


def told_by_all_turns(entry: Entry) -> tuple[registry.Facts, float] | None:
    """What a recorded connection says that was kept turn by turn, and its seconds; None for any
    other call.
    """
    try:
        request, reply = entry.request(), entry.reply()
    except CassetteError:
        return None
    if not isinstance(request, Request) or not isinstance(reply, Reply) or reply.status != SWITCHED:
        return None
    return registry.call_facts(request, reply), max(reply.waits, default=0.0)


class WebSocketHost(Protocol):
    """What a played dialogue needs of the deck."""

    secrets: Secrets

    @property
    def active(self) -> TapedCell | None: ...
    def tape_tools(self, cell: TapedCell, names: list[str]) -> None: ...


def played_dialogue(
    desk: WebSocketHost, cell: TapedCell, entry: Entry, reply: Reply | Value, request: Request
) -> Dialogue | None:
    """The dialogue of a recorded call; None for a reply that is no connection. Raises
    CassetteError.
    """
    if not isinstance(reply, Reply) or reply.status != SWITCHED:
        return None
    return PlayedDialogue(desk, cell, entry, reply, request)


class PlayedDialogue(Script):
    """A recorded call's dialogue, for the tap that plays it (dialogue.Dialogue)."""

    def __init__(
        self, desk: WebSocketHost, cell: TapedCell, entry: Entry, reply: Reply, request: Request
    ) -> None:
        self.desk, self.opened, self.entry, self.title = desk, cell, entry, title(request)
        super().__init__(
            list(frames_of(reply.body)),
            reply.waits,
            lambda frame: message_key(frame, desk.secrets, cell.execution.ignore),
            self._refuse_message,
            lost=reply.end == "error",
        )

    def receive_frame(self, frame: WebSocketFrame) -> None:
        if frame.is_message:
            offer_tools(self.desk.tape_tools, self._find_current_cell(), frame)
        super().receive_frame(frame)

    def _find_current_cell(self) -> TapedCell:
        """The cell that asks now: a connection may outlive the cell that opened it."""
        origin = ORIGIN.get()
        cell = origin.cell if origin is not None else self.desk.active
        if isinstance(cell, TapedCell) and not cell.closed:
            return cell
        return self.desk.active or self.opened

    def _format_place(self) -> str:
        return f"call {self.entry.id}, {self.entry.book.path.name}:{self.entry.line}"

    def _refuse_message(
        self, now: WebSocketFrame, recorded: WebSocketFrame | None, place: int
    ) -> BaseException:
        if recorded is None:
            text = f"{self.title}: the recorded connection ({self._format_place()}) had no further message from "
            text += "the program. Nothing was sent."
            diff = field_diff({}, self._extract_fields(now))
        else:
            text = f"{self.title}: this message is not on the tape ({self._format_place()}). Nothing was sent.\n"
            text += (
                f"Nearest recorded message: the program's {_format_ordinal(place)}; it differs in:"
            )
            diff = field_diff(self._extract_fields(recorded), self._extract_fields(now)) or [
                "  nothing that is shown here: a secret"
            ]
        lines = [text, *diff, "Now: fix the difference, or record the cell again (%%tape record)."]
        return self._find_current_cell().refuse(UnmatchedCall("\n".join(lines)))

    def _extract_fields(self, frame: WebSocketFrame) -> Mapping[str, Any]:
        value = counted_content(frame, self.desk.secrets, self.opened.execution.ignore)
        if value is not None:
            return dict(scalar_leaves(value))
        if frame.kind == "text":
            text = frame.data.decode("utf-8", "replace")
        else:
            text = f"{len(frame.data)} bytes"
        return {"message": self.desk.secrets.scrub(text)[0]}

    def stuck(self) -> BaseException | None:
        if self.desk.active is None:
            return None
        missing = self.missing()
        if missing.frame is None:
            text = (
                "the recording of this connection ends here: the recorded program read no further, and now the program "
                "waits for more. Record the cell again, or read no further than the recorded run did."
            )
        else:
            more = f" and {missing.count - 1} more" if missing.count > 1 else ""
            text = (
                f"the program waits for what the server said after the program's {_format_ordinal(missing.place)} "
                f"recorded message{more}, and it has not sent that:\n{self._format_fields(missing.frame)}\n"
                "Now: send it, or record the cell again (%%tape record)."
            )
        return self._find_current_cell().refuse(
            UnmatchedCall(f"{self.title} ({self._format_place()}): {text}")
        )

    def _format_fields(self, frame: WebSocketFrame) -> str:
        return "\n".join(
            f"  {name}: {value!r:.100}"
            for name, value in list(self._extract_fields(frame).items())[:8]
        )


def _format_ordinal(place: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(place, f"{place}th")
