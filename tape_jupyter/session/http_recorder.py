"""A call that goes live, as it happens: collects what the tap reports and commits it.

A call is committed before the chunk with its terminal event is handed on. Nothing here ever raises
into the program that made the call: what cannot be kept is a warning of the cell.
"""

from __future__ import annotations

import asyncio
import bisect
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.cassette.match_key import MatchedRequest, read_identity_headers
from tape_jupyter.cassette.prepared_requests import Beginning
from tape_jupyter.cassette.records import Head, moment_text
from tape_jupyter.cassette.runs import span_of
from tape_jupyter.comparison.outputs import LATE
from tape_jupyter.core import large_body
from tape_jupyter.core.call import Capture, End, FunctionCall, Headers, Reply, Request, Value, Where
from tape_jupyter.core.context import is_body
from tape_jupyter.core.real_clock import perf_counter, utc_now
from tape_jupyter.encoding.http.body import TerminalWatch
from tape_jupyter.encoding.values.mutations import frozen_or_type
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.errors import CassetteError
from tape_jupyter.providers import pricing, registry
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.secrets.spooling import Arrived, Spool
from tape_jupyter.session.cell import ReportRow, TapedCell
from tape_jupyter.session.recorded_folders import note_named_folders


class CallPlace:
    """By what the order of hand-overs knows a call: it outlives what was recorded of it."""

    __slots__ = ("_id", "_recorder")

    def __init__(self, recorder: RecorderBase) -> None:
        self._recorder: RecorderBase | None = recorder
        self._id = ""

    @property
    def id(self) -> str:
        return self._id if self._recorder is None else self._recorder.id

    def settle(self, name: str) -> None:
        """The call is committed: its id stays, and nothing else."""
        self._id, self._recorder = name, None


class RecorderBase:
    """What every call that goes live has: its id and place, and the one commit. `kind` is its host
    class.

    What it is found by (`matched`: its match key, or how to find that) gives its id, when somebody
    first wants to know.
    """

    goes_out = True
    """Whether its call is sent; what --freeze and --stub answer is not."""

    def __init__(
        self,
        cell: TapedCell,
        secrets: Secrets,
        matched: str | MatchedRequest | Callable[[], MatchedRequest],
        kind: str,
        where: Where,
    ) -> None:
        self.cell, self.secrets, self.kind, self.where = cell, secrets, kind, where
        self._matched = MatchedRequest(matched) if isinstance(matched, str) else matched
        self._named: tuple[MatchedRequest, str] | None = None
        self.at = utc_now()
        self.started = perf_counter()
        self.entry: Entry | None = None
        self.over: Entry | None = None
        self.frozen = self.diverged = ""
        self.instead: Request | FunctionCall | None = None
        self._beginning: Beginning | None = None
        self._json: Any = None
        self.tags = cell.tags.of_call()
        self.out_of_turn = self._awaits_turn = self._gave_at_once = False
        self._of_one_read: int | None = None
        self._place = CallPlace(self)
        self._turn: bool | None = None
        """What the turn was that is kept for the next place."""
        if cell.pins.clock is not None and not is_body(where.lineage):
            self._order = cell.pins.clock.order
        else:
            self._order = None
        if isinstance(self._matched, MatchedRequest):
            self._name_call()
        cell.recording.going[self] = None
        cell.findings.changed()

    def takes_place_of(self, recorded: Entry | None) -> None:
        """Its answer overrides that recorded call in a take; None: it is a call of its own."""
        self.over = recorded
        if recorded is not None:
            self._named = self.matched_request, recorded.id

    @property
    def matched_request(self) -> MatchedRequest:
        return (self._named or self._name_call())[0]

    @property
    def match(self) -> str:
        return self.matched_request.match

    @property
    def id(self) -> str:
        return (self._named or self._name_call())[1]

    def _name_call(self) -> tuple[MatchedRequest, str]:
        """Any thread may ask: one that shows what runs, too."""
        with self.cell.lock:
            if self._named is None:
                try:
                    if isinstance(self._matched, MatchedRequest):
                        matched = self._matched
                    else:
                        matched = self._matched()
                except Exception as error:
                    self.cell.lose(f"a call is NOT on the tape ({type(error).__name__}: {error})")
                    matched = MatchedRequest("")
                self._named = matched, self.cell.recording.next_name(matched.match)
            return self._named

    def _measure_elapsed(self) -> float:
        return perf_counter() - self.started

    def turn(self) -> Awaitable[bool] | None:
        """What a door that can await awaits before it hands on what came last
        (determinism/order.py); None: nothing.
        """
        self._awaits_turn = True
        if self._order is None or self.cell.closed or self._gave_at_once:
            return None
        return self._order.awaited_turn(self.where.lineage)

    def handed(self, *, may_block: bool = True) -> None:
        """What came is handed to the program now, once other threads have come to rest (`may_block`)."""
        if self._of_one_read is not None:
            self._of_one_read += 1
        elif self._order is not None and not self.cell.closed:
            may_block = may_block and not self._awaits_turn  # an event loop is never blocked
            # no rest was reached in time, or another strand was at work: their order is not known
            together = (may_block and not self._order.turn()) or self.out_of_turn
            self._order.note(
                self._place, self.where.lineage, together=together, at_once=self._gave_at_once
            )
            self.out_of_turn = False

    @property
    def lineage(self) -> str:
        """The strand that makes the call."""
        return self.where.lineage

    @property
    def places(self) -> bool:
        """Whether what the call shows before it ends has a place in the order of hand-overs."""
        return self._order is not None and not self.cell.closed

    def take_turn(self) -> None:
        """Wait until others have come to rest, for the place that is taken next."""
        if self._order is not None and self.places:
            self._turn = self._order.turn()

    def take_place(self) -> int:
        """What the call shows reaches the program now, once others have come to rest: how often
        something did, with this; 0 where it has no place.
        """
        if self._order is None or not self.places:
            return 0
        turn, self._turn = self._turn, None
        rested = self._order.turn() if turn is None else turn
        together = not rested or self._order.others_act(self.where.lineage)
        return self._order.note(self._place, self.where.lineage, together=together)

    def give_place_back(self, count: int) -> bool:
        """That place is not needed: nothing followed it; false where something did."""
        return self._order is not None and self._order.take_back(self._place, count)

    @contextmanager
    def one_read(self) -> Iterator[None]:
        """What is told inside reaches the program at once, when all of it was told."""
        self._of_one_read = 0
        try:
            yield
        finally:
            count, self._of_one_read = self._of_one_read, None
            for number in range(count):
                self.handed(may_block=number == 0)

    def handed_by_callback(self) -> None:
        """The same from a library's callback, which cannot be held until others come to rest."""
        self.out_of_turn = self._order is not None and self._order.is_busy(self.where.lineage)
        self.handed(may_block=False)

    def _is_decided_at_cell_end(self, error: BaseException | None) -> bool:
        """Whether only the cell's end can tell what cancelled this: the program, or a kernel
        interrupt.
        """
        is_ambiguous = not self.where.lineage or self.cell.cancelling()
        return isinstance(error, asyncio.CancelledError) and is_ambiguous and not self.cell.closed

    def _report_if_late(self) -> None:
        if self.cell.closed:
            self.cell.warn_late(LATE[0])

    def _commit_call(
        self,
        call: Request | FunctionCall,
        reply: Reply | Value,
        kit: dict[str, Any],
        row: ReportRow,
    ) -> None:
        """Append the call and report it. Every failure becomes a warning: the program has its reply
        already.
        """
        note_named_folders(self.cell, self._list_asked(call))
        if self.tags:
            kit, row = {**kit, "tags": self.tags}, replace(row, tags=self.tags)
        if self.goes_out and self.cell.replaying:
            row = replace(row, live=True)
        clock = self.cell.pins.clock
        with clock.mark_writing() if clock is not None else nullcontext():
            if self.cell.cassette is not None and self.cell.recording.run and self.match:
                self._append_call(self.cell.cassette, call, reply, kit, row)
                plain = self.matched_request.plain
                if isinstance(call, Request):
                    plain = (*plain, *read_identity_headers(call))
                if plain:  # what tells it apart is not on the tape: order alone will, in replay
                    self.cell.recording.remember_variant(
                        self.id, self.match + self.matched_request.discriminator, plain
                    )
            with self.cell.lock:
                bisect.insort(
                    self.cell.findings.rows, replace(row, at=self.at), key=attrgetter("at")
                )
                self.cell.recording.ran.append(
                    span_of(self.over.run if self.over else self.cell.recording.run, self.id)
                )
                self.cell.recording.going.pop(self, None)
        self._place.settle(self.id)
        self.cell.findings.changed()

    def _list_asked(self, call: Request | FunctionCall) -> list[Any]:
        """What a call asks: texts, bytes and structures. Of a request that goes on from an earlier
        one what is new in it.
        """
        if isinstance(call, FunctionCall):
            return [frozen_or_type(each) for each in call.arguments.values()]
        news = self.matched_request.news
        return [call.url, call.body if news is None else news]

    def _append_call(
        self,
        cassette: Cassette,
        call: Request | FunctionCall,
        reply: Reply | Value,
        kit: dict[str, Any],
        row: ReportRow,
    ) -> None:
        name = "" if kit.get("model") else row.name
        head = Head(
            self.id, self.cell.recording.run, self.match, self.kind,
            self.where, moment_text(self.at), self._measure_elapsed(),
            kit, name, row.error,
            self.matched_request.exact, self.matched_request.clean, self.frozen, self.diverged,
            self.matched_request.json, self._json, self.matched_request.discriminator, self.matched_request.spelled,
        )  # fmt: skip
        try:
            if self.over is not None:
                self.entry = cassette.append_override(
                    self.over, reply, head.answered(), self.secrets
                )
            else:
                self.entry = cassette.append_call(head, call, reply, self.secrets, self._beginning)
                self.cell.committed(self.id)
            self.cell.recording.first_commit()
        except (CassetteError, OSError) as error:
            self.cell.lose(f"call {self.id} is NOT on the tape: {error}")
        except Exception as error:
            self.cell.lose(
                f"call {self.id} is NOT on the tape ({type(error).__name__}: {error}); please report this"
            )


_WORSE_ENDS: dict[End | None, tuple[End, ...]] = {
    "complete": ("error",),
    "cut short": ("complete",),
}
"""By the known end of a reply, the ends that may still replace it."""


class HttpCapture(RecorderBase, Capture):
    """A live HTTP call (core/call.py, `Capture`).

    What has come is committed once: at the terminal event, at the reply's end, or at the end of a
    cell that left it open. What comes after that is added by `more:` records.
    """

    def __init__(
        self,
        cell: TapedCell,
        secrets: Secrets,
        matched: MatchedRequest | Callable[[], MatchedRequest],
        kind: str,
        where: Where,
        request: Request,
    ) -> None:
        super().__init__(cell, secrets, matched, kind, where)
        self.request = request
        self._head: tuple[int, Headers, str, str] | None = None
        # no method of its own: a ring would hold the request's body until the collector comes
        spool = partial(_create_spool, cell, secrets)
        self._chunks = Arrived(spool if hasattr(os, "pread") else None)
        self._waits: list[float] = []
        self._kept: tuple[int, End] | None = None
        self._pending: tuple[End, BaseException | None] | None = None
        self._done = self._torn = False
        self._watch: TerminalWatch | None = None
        self.moment = cell.tools.asked.moment()
        cell.recording.running[self] = None

    def sent(self) -> None:
        """The network answers meanwhile: what is known by now is made ready in time that nobody
        waits for.
        """
        if registry.identify(self.request).wire:
            pricing.load_table_meanwhile()
        if (
            self.cell.cassette is not None
            and self.cell.recording.run
            and self.over is None
            and self.match
        ):
            with suppress(Exception):  # the commit makes it again, and tells what is wrong
                self._beginning = self.cell.cassette.begin_call(
                    self.cell.recording.run, self.request, self.matched_request, self.secrets
                )

    def head(
        self, status: int, headers: Headers, version: str = "HTTP/1.1", reason: str = ""
    ) -> None:
        self._head = (status, headers, version, reason)
        names = {name.lower(): value for name, value in headers}
        self._chunks.limit = large_body.limit(names.get("content-type", ""), b"")
        if "content-encoding" in names:
            self._chunks.hold_in_memory()  # what is packed can be masked as a whole only
        length = names.get("content-length", "")
        self._watch = TerminalWatch(
            names.get("content-type", ""),
            names.get("content-encoding", ""),
            int(length) if length.isdigit() else None,
        )
        self.handed()

    def chunk(self, data: bytes) -> None:
        try:
            self._chunks.append(data)
        except OSError as error:
            self.cell.lose(
                f"call {self.id} is NOT on the tape: a large body cannot be written ({error})"
            )
            self._done = True
            self._chunks.drop()
        self._waits.append(self._measure_elapsed())
        ends = self._watch is not None and self._watch.feed(data)
        if ends and not self._done and (self._kept is None or self._kept[1] != "complete"):
            self._commit_rest("complete")
            self._report_if_late()
        self.handed()

    def finish(self) -> None:
        self._end_capture("complete")

    def close(self) -> None:
        """An interrupt that strikes between two chunks closes the reply on its way out of the
        program.
        """
        error = sys.exc_info()[1]
        if isinstance(error, KeyboardInterrupt):
            self._end_capture("cut short")
        elif self._is_decided_at_cell_end(error):
            self._postpone_end("closed", None)
        else:
            self._end_capture("closed")

    def fail(self, error: BaseException) -> None:
        if isinstance(error, KeyboardInterrupt):
            self._end_capture("cut short")
        elif self._is_decided_at_cell_end(error):
            self._postpone_end("error", error)
        else:
            self._end_capture("error", error)
            if not isinstance(error, asyncio.CancelledError):
                self.handed()

    def cell_ended(self, *, interrupted: bool) -> None:
        """The cell is over and this is not: keep what has come, since it may be all that ever will."""
        if self._torn:
            self._finish_torn_commit("cut short" if interrupted else "closed")
        elif self._pending is not None:
            end, error = self._pending
            self._done = True
            self._commit_rest("cut short" if interrupted else end, error)
        elif self._head is not None and not self._done:
            self._commit_rest("cut short" if interrupted else "closed")

    def _postpone_end(self, end: End, error: BaseException | None) -> None:
        if not self._done and self._pending is None:
            self._pending = (end, error)

    def _end_capture(self, end: End, error: BaseException | None = None) -> None:
        if self._done or self._pending is not None:
            return
        self._done = True
        if self._commit_rest(end, error):
            self._report_if_late()
        if not self._torn:
            self.cell.recording.running.pop(self, None)

    def _commit_rest(self, end: End, error: BaseException | None = None) -> bool:
        """Commit what is not on the tape yet; an end that says less than what is known changes
        nothing.
        """
        error = error if end == "error" else None
        kept, known = self._kept or (0, None)
        news = len(self._chunks) > kept
        worse = _WORSE_ENDS.get(known, ("complete", "error"))
        if known is not None and not news and end not in worse:
            return False
        self._kept = (len(self._chunks), end)
        self._torn = True
        if known is None:
            self._commit_reply(end, error)
        else:
            self._append_late_reply(self._build_reply(end, error, kept))
        self._torn = False
        return True

    def _finish_torn_commit(self, end: End) -> None:
        """An interrupt struck amid a commit: what it kept from the tape is committed now."""
        self._torn = False
        if self.cell.cassette is None or self.entry is not None:
            return
        try:
            self.entry = self.cell.cassette.recovered(self.cell.recording.run, self.id, self.over)
        except CassetteError as error:
            self.cell.lose(f"call {self.id} is perhaps NOT on the tape: {error}")
        else:
            if self.entry is None:
                self._commit_reply(end)

    def _build_reply(self, end: End, error: BaseException | None, start: int = 0) -> Reply:
        frozen = freeze_error(error) if error is not None else None
        waits, chunks = tuple(self._waits[start:]), self._chunks.since(start)
        if self._head is None:
            return Reply(None, end=end, error=frozen, waits=waits or (self._measure_elapsed(),))
        status, headers, version, reason = self._head
        return Reply(status, headers, chunks, waits, end, frozen, version, reason)

    def _commit_reply(self, end: End, error: BaseException | None = None) -> None:
        reply = self._build_reply(end, error)
        self._json = registry.said_json(reply)
        facts = registry.call_facts(
            self.request, reply, parsed=self._get_request_news(), reply_json=self._json
        )
        self._warn_of_untaped_tools(facts)
        self.tags = self.cell.tags.with_user(self.tags, facts.user)
        self.cell.tools.asked.note_requests(facts, self.moment)
        # before it is cut: half a secret is known by nobody
        url = self.secrets.scrub_url(self.request.url)
        row = row_of(
            self.id,
            self.kind,
            facts,
            self._measure_elapsed(),
            name=url,
            error=failure_word(reply, error),
        )
        self._commit_call(self.request, reply, facts.record(), row)

    def _get_request_news(self) -> Any:
        """The request's JSON; of one that goes on from an earlier one what that did not hand back
        yet: nobody looks at the same messages in each turn.
        """
        asked = self.matched_request
        return asked.json if asked.news is None else asked.news

    def _warn_of_untaped_tools(self, facts: registry.Facts) -> None:
        for name in self.cell.tools.asked.untaped(facts, self.cell.request.namespace):
            self.cell.warn(
                f"the result of tool {name} was not taped: no function of the notebook goes by that name, so in replay "
                "it would run again. Now: put @tape.tool on the function that answers it",
                cold=True,
            )

    def _append_late_reply(self, late: Reply) -> None:
        """Bytes, or an end, that came after the call was committed."""
        if self.entry is None or self.cell.cassette is None:
            return
        try:
            self.cell.cassette.append_more(self.entry, late, self.secrets)
        except (CassetteError, OSError) as problem:
            self.cell.lose(f"the last bytes of call {self.id} are NOT on the tape: {problem}")


def _create_spool(cell: TapedCell, secrets: Secrets) -> Spool:
    return Spool(cell.large_bodies(), secrets, keep_sent=False)


def failure_word(reply: Reply, error: BaseException | None) -> str:
    """The row's word for what went wrong; "" where nothing did."""
    if error is not None:
        return f"{type(error).__name__}: {error}"[:200]
    if reply.status is not None and reply.status >= 400:
        return f"{reply.status} {reply.reason}".strip()
    return reply.end if reply.end == "cut short" else ""


def row_of(
    call: str, kind: str, facts: registry.Facts, seconds: float, *, name: str, error: str
) -> ReportRow:
    return ReportRow(
        call, kind, facts.answered or facts.model or short_url(name), facts, seconds, error
    )


def short_url(url: str) -> str:
    return url.partition("://")[2].partition("?")[0][:80] or url[:80]
