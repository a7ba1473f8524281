"""Where a call crosses. Taps ask here; here the call is placed in its cell and the player decides.

The only rule of its own is fail closed: in replay, what is not played is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from tape_jupyter.cassette import external_texts
from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.growing_history import BodyHistory, GrowingBody
from tape_jupyter.cassette.match_key import MatchedRequest, exact_digest, json_value, match_request
from tape_jupyter.cassette.runs import span_of
from tape_jupyter.cassette.takes.overrides import overridden_inside
from tape_jupyter.core.call import (
    Capture,
    FunctionCall,
    Gate,
    Hold,
    HostClass,
    Play,
    Reply,
    Request,
    Tape,
    Value,
    Where,
)
from tape_jupyter.core.context import ORIGIN, PARENT, SPAN, Origin
from tape_jupyter.core.large_body import large_bodies
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.errors import BlockedConnection, CassetteError, UnmatchedCall
from tape_jupyter.isolation import network_guard
from tape_jupyter.providers import call_class, registry
from tape_jupyter.providers.tools import declared_tools
from tape_jupyter.replay.player import Diverged, Frozen, GoLive, Recorded, Refuse, Stub
from tape_jupyter.replay.selection import call_origin
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.secrets.spooling import Spool
from tape_jupyter.session import near_matches, oauth
from tape_jupyter.session import tool_recorder as answers
from tape_jupyter.session.cell import Stepping, TapedCell
from tape_jupyter.session.http_recorder import HttpCapture
from tape_jupyter.session.lent_keys import Lending, recorded_settings
from tape_jupyter.session.mismatch import Stale, claim_stale_call, find_divergence, miss, title
from tape_jupyter.session.near_matches import NearMatch
from tape_jupyter.session.partial_replay import OfflineAnswer, lacks
from tape_jupyter.session.pins import random
from tape_jupyter.session.recorded_folders import RecordedFolders
from tape_jupyter.session.telemetry import Telemetry
from tape_jupyter.session.tool_effects import RecordedEffects
from tape_jupyter.session.tool_recorder import FunctionCapture, freeze_call
from tape_jupyter.session.websocket_recorder import (
    WebSocketCapture,
    opens_dialogue,
    played_dialogue,
)

_ASKING = (b'"tool', b"unctionCall", b"unction_call")

Settled = Recorded | GoLive | Frozen | Stub | Refuse


@dataclass(frozen=True, slots=True)
class Written:
    """Answer with what a person wrote for this call, which is not on the tape, and keep that."""

    reply: Reply | Value


class BodyAgain(Capture):
    """A recorded function whose body runs again, on the tape: nothing of it is kept, what it calls
    has it as parent.
    """

    def __init__(self, entry: Entry) -> None:
        self.id = entry.id


class InterceptorHost(Protocol):
    """What the boundary needs of the deck."""

    secrets: Secrets
    lending: Lending

    @property
    def active(self) -> TapedCell | None: ...
    @property
    def sealed(self) -> bool: ...
    def start_run(self, cell: TapedCell) -> None: ...
    def tape_tools(self, cell: TapedCell, names: list[str]) -> None: ...
    def tape_known_tools(self, cell: TapedCell) -> None: ...
    def calling(self) -> None: ...


def _has_local_body(call: FunctionCall) -> bool:
    """Whether its body is Python of this process: no prompt, and no server."""
    return call.discreet == "no" and (call.scope is not None or call.kind == "retrieval")


class Interceptor(Tape):
    """The tape that taps ask (core/call.py, `Tape`)."""

    def __init__(self, desk: InterceptorHost) -> None:
        self.desk = desk
        self._pid = os.getpid()
        self.telemetry = Telemetry()
        self._history = BodyHistory(b'"tool')
        self.folders = RecordedFolders()
        self._changed: set[str] = set()
        """Types of arguments that recorded calls changed, and that a replay may have left as they
        are.
        """

    def begin(self, call: Request | FunctionCall) -> Play | Capture | None:
        decided = self._begin_call(call)
        return decided.wait() if isinstance(decided, PendingCall) else decided

    def continue_in_fork(self) -> None:
        """Calls of this process, a fork, are its own from now on."""
        self._pid = os.getpid()

    def may_decide(self) -> bool:
        """Whether an HTTP call that is made here is ours to decide on (instrumentation.tape_here)."""
        return isinstance(self._find_current_cell(), TapedCell) or self.desk.sealed

    def spool(self, request: Request) -> Spool | None:
        """Where a large body goes that the program is about to send with this request; None: it is
        held.
        """
        cell = self._find_current_cell()
        if not isinstance(cell, TapedCell) or os.getpid() != self._pid or not hasattr(os, "pread"):
            return None
        self.desk.secrets.learn_request(request)
        # its digest is made of what lies in the file
        in_parts = "boundary=" in request.header("content-type")
        store = in_parts or not cell.replaying or self._may_go_live(cell)
        return Spool(cell.large_bodies(), self.desk.secrets, keep_sent=True, store=store)

    def withholds(self, peek: Callable[[], Request]) -> bool:
        """Whether a call that is none of a taped cell carries a placeholder, and must not go out
        (instrumentation.tape_here).
        """
        return self.desk.lending.watches and bool(self.desk.lending.lacks(peek()))

    def answers(self) -> bool:
        """Whether it may be answered without being sent (instrumentation.may_answer)."""
        cell = self._find_current_cell()
        if isinstance(cell, TapedCell):
            return _is_decided_per_call(cell)
        return self.desk.sealed

    def replays(self) -> bool:
        """Whether the tape answers all that is asked here, so that no credential is of use
        (instrumentation.replays).
        """
        cell = self._find_current_cell()
        return (
            isinstance(cell, TapedCell)
            and cell.replaying
            and not cell.closed
            and not self._may_go_live(cell)
        )

    def lend_placeholder(self, name: str, label: str) -> str | None:
        """A placeholder for a credential that is nowhere to be found (core/call.py)."""
        cell = self._find_current_cell()
        replaying = isinstance(cell, TapedCell) and cell.replaying and not cell.closed
        if replaying or self.desk.lending.lends:
            return self.desk.secrets.create_placeholder(name, label)
        return None

    def setting(self, name: str) -> str | None:
        """What the recorded calls tell of a setting (instrumentation.setting)."""
        cell = self._find_current_cell()
        if self.replays() and cell.cassette is not None:
            return recorded_settings([cell.cassette]).get(name)
        if not self.desk.lending.lends:
            return None
        return recorded_settings(self.desk.lending.cassettes).get(name)

    def untyped(self, call: FunctionCall) -> str | None:
        """What stands in for a secret that was asked for between taped cells and not typed
        (instrumentation.untyped_stand_in).
        """
        if not self.desk.lending.lends or not answers.asks_a_secret(call):
            return None
        return answers.untyped_secret(call, self.desk.secrets)

    def _may_go_live(self, cell: TapedCell) -> bool:
        execution = cell.execution
        return (
            bool(execution.selection.live)
            or execution.on_divergence == "live"
            or cell.stepping is not None
        )

    def _find_current_cell(self) -> Any:
        origin = ORIGIN.get()
        return origin.cell if origin is not None else self.desk.active

    def hold_call(self, call: Request | FunctionCall) -> Hold | None:
        """For a door that can await: the call, where it is to wait for a person; None: ask `begin`."""
        cell = self._find_current_cell()
        if not isinstance(cell, TapedCell) or cell.stepping is None:
            return None
        decided = self._begin_call(call)
        return decided if isinstance(decided, PendingCall) else Decided(decided)

    def _begin_call(self, call: Request | FunctionCall) -> Play | Capture | PendingCall | None:
        origin = ORIGIN.get()
        cell = origin.cell if origin is not None else self.desk.active
        if not isinstance(cell, TapedCell):
            return self._answer_outside_cell(call)
        if os.getpid() != self._pid:
            return self._answer_forked_call(cell, call)
        if cell.execution.runs_tools and isinstance(call, FunctionCall) and _has_local_body(call):
            return None  # as when it ran untaped
        self.desk.calling()
        self.folders.begin(cell)
        try:
            if isinstance(call, Request):
                return self._begin_http_call(cell, origin, call)
            return self._begin_function_call(cell, origin, call)
        except Exception as error:
            return _handle_own_failure(cell, call, error)

    def note(self, text: str) -> None:
        """What a tap saw and the tape cannot hold (instrumentation.note)."""
        if self.desk.active is not None:
            self.desk.active.warn(text, cold=True)

    def flag(self, key: str, value: Any) -> None:
        """A feature flag was evaluated (instrumentation/openfeature.py): it stands on the run's end
        mark.
        """
        cell = self._find_current_cell()
        if isinstance(cell, TapedCell) and not cell.closed:
            cell.tags.flag(key, value)
            cell.recording.ends["flags"] = cell.tags.flags

    def _answer_outside_cell(self, call: Request | FunctionCall) -> Play | None:
        """A call while no taped cell runs: nothing of ours, unless the whole session replays, or a
        key is missing.
        """
        if isinstance(call, FunctionCall):
            return None
        lacking = self.desk.lending.lacks(call)
        if not self.desk.sealed and not lacking:
            return None
        if call_class.class_of(call) == "telemetry":
            return self.telemetry.unsent(call)
        if not self.desk.sealed:
            if oauth.is_grant(call):
                return oauth.granted(self.desk.secrets, lacking)
            raise BlockedConnection(f"{title(call)} was not sent: {lacks(lacking)}.")
        raise BlockedConnection(
            f"{title(call)}: the session replays, and no taped cell is running. Nothing was sent."
        )

    def _answer_forked_call(self, cell: TapedCell, call: Request | FunctionCall) -> Play | Capture:
        """A call in a forked child: ids given there would collide with its parent's."""
        if isinstance(call, Request) and call_class.class_of(call) == "telemetry":
            if cell.replaying:
                return self.telemetry.unsent(call, cell)
            return Capture()
        if not cell.replaying and not cell.execution.selection:
            cell.warn("a forked process: calls that it makes are not on the tape", cold=True)
            return Capture()
        now = "Ask in the process of the cell, in its threads or tasks, or run the cell without the tape (%tape off)."
        why = "a recording cannot be shared between processes"
        text = f"{title(call)} in a forked process: {why}. Nothing was sent. {now}"
        network_guard.post("note", text, cell, refused=True)
        raise cell.refuse(BlockedConnection(text))

    def _begin_http_call(
        self, cell: TapedCell, origin: Origin | None, request: Request
    ) -> Play | Capture | PendingCall:
        kind = call_class.class_of(request)
        if kind == "telemetry":
            telemetry = self.telemetry
            if cell.replaying or self.desk.lending.lacks(request):
                return telemetry.unsent(request, cell)
            return telemetry.passing(request, cell)
        self.desk.secrets.learn_request(request)
        request = self.folders.as_recorded(request, partial(self._is_request_recorded, cell))
        growing = self._history.build_growing_body(request.body)
        if self._is_certainly_live(cell, request, growing):
            # its match key is computed when somebody asks for it: the program does not wait for it
            self._require_key(cell, request)
            self._open_run(cell, request)
            matching = partial(self._match_request, cell, request, growing)
            where = self._locate_call(cell, origin)
            return HttpCapture(cell, self.desk.secrets, matching, kind, where, request)
        matched = self._match_request(cell, request, growing)
        self._tape_offered_tools(cell, request, growing, matched.json)
        answered = partial(self._answer_http_call, cell, origin, request, growing, kind, matched)
        return self._decide_and_answer(cell, origin, matched, request, kind, answered)

    def _is_certainly_live(self, cell: TapedCell, request: Request, growing: GrowingBody) -> bool:
        """Whether it goes out whatever it asks, and nothing else hangs on what that is: it need not
        be known yet.
        """
        return (
            not _is_decided_per_call(cell)
            and not self._may_offer_tools(cell, growing)
            and not opens_dialogue(request)
        )

    def _answer_http_call(
        self,
        cell: TapedCell,
        origin: Origin | None,
        request: Request,
        growing: GrowingBody,
        kind: HostClass,
        matched: MatchedRequest,
        decided: Recorded | GoLive | Frozen | Stub,
        sent: Request | None = None,
    ) -> Play | Capture:
        """What was decided, done. `sent` goes live in place of the program's request."""
        if not isinstance(decided, GoLive):
            entry = _require_entry(
                decided.recorded if isinstance(decided, Frozen | Stub) else decided
            )
            reply = self._read_reply(cell, entry, request)
            self._tape_requested_tools(cell, growing, kind, reply)
            self._record_substitute_answer(cell, origin, matched, request, kind, decided)
            if (cell.mode == "new_episodes" or cell.execution.selection) and isinstance(
                reply, Reply
            ):
                cell.tools.asked.note_requests(
                    registry.call_facts(request, reply), cell.tools.asked.moment()
                )
            return Play(
                reply,
                self._build_gate(cell, entry, reply),
                dialogue=played_dialogue(self.desk, cell, entry, reply, request),
            )
        self._require_key(cell, request)
        self._open_run(cell, request)
        where = self._locate_call(cell, origin)
        if sent is not None:  # it is found by what the program asks
            request = sent
            matched = MatchedRequest(matched.match, discriminator=matched.discriminator)
        if _is_decided_per_call(cell):
            # what it goes on from may have been played, and not looked at
            matched = matched._replace(news=None)
        capture: HttpCapture
        if opens_dialogue(request):
            offer = self.desk.tape_tools
            capture = WebSocketCapture(
                cell, self.desk.secrets, matched, kind, where, request, offer=offer
            )
        else:
            capture = HttpCapture(cell, self.desk.secrets, matched, kind, where, request)
        capture.takes_place_of(
            _require_entry(decided.recorded) if decided.recorded is not None else None
        )
        capture.diverged = "live" if _is_divergence(cell, decided) else ""
        capture.instead = sent
        return capture

    def _match_request(
        self, cell: TapedCell, request: Request, growing: GrowingBody
    ) -> MatchedRequest:
        exact = exact_digest(request, growing)
        # the very bytes of a recorded call have its match key: nothing is parsed or masked for it
        known = ""
        if cell.cassette is not None and not cell.execution.ignore:
            known = cell.cassette.match_of(exact)
        if known and (
            "?" not in request.url or self.desk.secrets.scrub_url(request.url) == request.url
        ):
            return MatchedRequest(known, exact)
        return match_request(request, self.desk.secrets, cell.execution.ignore, exact, growing)

    def _begin_function_call(
        self, cell: TapedCell, origin: Origin | None, call: FunctionCall
    ) -> Play | Capture | PendingCall:
        cell.tools.asked.note_call(call.name)
        arguments = call.arguments
        call, matched = self._freeze_call(cell, call)
        if (
            call.discreet == "yes"
            and cell.replaying
            and not cell.player.times(cell.execution, matched.match)
        ):
            return Play(answers.unrecorded(call, self.desk.secrets))
        answered = partial(self._answer_function_call, cell, origin, call, matched, arguments)
        return self._decide_and_answer(cell, origin, matched, call, call.kind, answered)

    def _freeze_call(
        self, cell: TapedCell, call: FunctionCall
    ) -> tuple[FunctionCall, MatchedRequest]:
        """A call that names a folder as it is here is the one that named it as it was."""
        asked = freeze_call(call, self.desk.secrets, self.folders.of_copy)
        if self.folders.has_moved and not self._is_recorded(cell, asked[1]):
            moved = freeze_call(call, self.desk.secrets, self.folders.moved)
            if self._is_recorded(cell, moved[1]):
                return moved
        return asked

    def _is_request_recorded(self, cell: TapedCell, request: Request) -> bool:
        matched = match_request(request, self.desk.secrets, cell.execution.ignore)
        return self._is_recorded(cell, matched)

    def _is_recorded(self, cell: TapedCell, matched: MatchedRequest) -> bool:
        execution = cell.execution
        return bool(cell.player.times(execution, matched.match, matched.discriminator))

    def _answer_function_call(
        self,
        cell: TapedCell,
        origin: Origin | None,
        call: FunctionCall,
        matched: MatchedRequest,
        arguments: Mapping[str, Any],
        decided: Recorded | GoLive | Frozen | Stub,
        sent: FunctionCall | None = None,
    ) -> Play | Capture:
        self._record_substitute_answer(cell, origin, matched, call, call.kind, decided)
        if isinstance(decided, Stub):
            return Play(Value(decided.value))
        if not isinstance(decided, GoLive):
            entry = _require_entry(decided.recorded if isinstance(decided, Frozen) else decided)
            if cell.replaying and self._has_override_inside(cell, entry, call):
                return BodyAgain(entry)
            value = self._read_value(cell, entry, call)
            effects = None
            if isinstance(value, Value):
                random.follow_draws(cell, entry.name, value.moved)
                self._changed.update(value.changed)
                value, folders = self.folders.as_here(cell, value)
                effects = RecordedEffects(cell, call, entry.name, value, folders)
            return Play(value, self._build_gate(cell, entry, value), effects=effects)
        self._open_run(cell, call)
        capture = FunctionCapture(
            cell, self.desk.secrets, matched, self._locate_call(cell, origin), call, arguments
        )
        capture.takes_place_of(
            _require_entry(decided.recorded) if decided.recorded is not None else None
        )
        capture.diverged = "live" if _is_divergence(cell, decided) else ""
        capture.instead = sent
        return capture

    def _has_override_inside(self, cell: TapedCell, entry: Entry, call: FunctionCall) -> bool:
        """Whether a person overrode a call inside it: then what its body gives is found out, not
        played.
        """
        if cell.cassette is None or not (inside := overridden_inside(cell.cassette, entry)):
            return False
        calls = ", ".join(each.id for each in inside[:5])
        cell.warn(
            f"{title(call)} ran again, on the tape: the take has another reply for a call inside it ({calls})"
        )
        return True

    def _decide_and_answer(
        self,
        cell: TapedCell,
        origin: Origin | None,
        matched: MatchedRequest,
        call: Request | FunctionCall,
        kind: HostClass,
        answered: Callable[..., Play | Capture],
    ) -> Play | Capture | PendingCall:
        """What is decided of the call, done; in a stepped cell it waits for a person. Raises
        UnmatchedCall.
        """
        lineage = origin.lineage if origin is not None else ""
        near = None
        if matched.hidden and _is_decided_per_call(cell):
            near = near_matches.chosen(cell, call, matched, self._changed)
        options = cell.request.options
        if near is not None and near.changed and (options.get("rerun") or options.get("anew")):
            # everything that came out as it did is as it was: this is another call now
            near = NearMatch(matched.discriminator, why=near.message)
        decided = self._decide_call(cell, lineage, matched, call, kind, near)
        # a stepped cell: what follows from the decision happens when a person has let the call go
        if cell.stepping is None:
            return answered(self._accept_decision(cell, matched, lineage, call, decided, near))

        def answer_decision(
            decided: Settled | Written, sent: Request | FunctionCall | None = None
        ) -> Play | Capture:
            try:
                if isinstance(decided, Written):
                    return self._record_written_reply(
                        cell, origin, matched, call, kind, decided.reply
                    )
                return answered(
                    self._accept_decision(cell, matched, lineage, call, decided, near), sent
                )
            except Exception as error:
                return _handle_own_failure(cell, call, error)

        return PendingCall(cell, call, kind, matched.match, lineage, decided, answer_decision)

    def _record_written_reply(
        self,
        cell: TapedCell,
        origin: Origin | None,
        matched: MatchedRequest,
        call: Request | FunctionCall,
        kind: HostClass,
        reply: Reply | Value,
    ) -> Play:
        self._open_run(cell, call)
        held_answer = OfflineAnswer(
            cell,
            self.desk.secrets,
            _reduce_to_match_key(matched),
            kind,
            self._locate_call(cell, origin),
        )
        held_answer.diverged = "hand"
        held_answer.commit_answer(call, reply, "")
        return Play(reply)

    def _decide_call(
        self,
        cell: TapedCell,
        lineage: str,
        matched: MatchedRequest,
        call: Request | FunctionCall,
        kind: HostClass,
        near: NearMatch | None,
    ) -> Settled:
        """The recorded call to play, or what to do instead."""
        if cell.execution.selection:
            site = call_origin(call, kind, cell.execution.cell)
        else:
            site = None
        group = near.discriminator if near is not None else None
        decided = cell.player.decide(
            cell.execution,
            matched.match,
            lineage,
            ended=cell.closed,
            site=site,
            discriminator=group,
            has_body=isinstance(call, FunctionCall),
        )
        if isinstance(decided, Refuse) and near is not None:
            decided = replace(decided, why=near.why)
        if isinstance(decided, Diverged):
            dialogue = isinstance(call, Request) and opens_dialogue(call)
            if dialogue:
                stale = None
            else:
                stale = claim_stale_call(cell, call, lineage, self.desk.secrets)
            decided = stale or Refuse(decided.times)
        return decided

    def _accept_decision(
        self,
        cell: TapedCell,
        matched: MatchedRequest,
        lineage: str,
        call: Request | FunctionCall,
        decided: Settled,
        near: NearMatch | None = None,
    ) -> Recorded | GoLive | Frozen | Stub:
        """What was decided, taken note of. Raises UnmatchedCall for a refusal."""
        if isinstance(decided, Refuse):
            # a call after the cell's end, or of a frozen boundary, is no question to a person
            if cell.replaying and not decided.ended and not decided.frozen:
                divergence = find_divergence(
                    cell, call, matched.match, lineage, self.desk.secrets, matched.discriminator
                )
                cell.findings.divergences.append(divergence)
            raise cell.refuse(miss(cell, call, decided, self.desk.secrets))
        if isinstance(decided, Entry):
            if decided.id in decided.book.ended.get(decided.run, {}).get("alike", ()):
                self._report_match_by_order(cell, call, decided, matched)
            elif near is not None:
                self._report_match_by_less(cell, call, decided, near)
            cell.execution.played.append(decided)
            cell.recording.ran.append(span_of(decided.run, decided.id))
            cell.findings.changed()
        return decided

    def _report_match_by_order(
        self, cell: TapedCell, call: Request | FunctionCall, entry: Entry, matched: MatchedRequest
    ) -> None:
        """Of calls that differ only in what is not on the tape, nothing there says which is which."""
        names = matched.untold or entry.book.ended.get(entry.run, {}).get("alike in") or ("redact",)
        what = (
            ", ".join(matched.by_type) or f"what was masked or does not count ({', '.join(names)})"
        )
        if cell.request.options.get("strict"):
            text = f"call {entry.id} ({entry.book.path.name}:{entry.line}) differs from others only in {what}"
            raise cell.refuse(
                UnmatchedCall(f"{title(call)}: {text}; --strict does not go by their order")
            )
        calls = near_matches.told_by_order_with(entry)
        cell.warn(
            f"{title(call)}: calls {calls} of run {entry.run} differ only in {what}: told apart by their order"
        )

    def _report_match_by_less(
        self, cell: TapedCell, call: Request | FunctionCall, entry: Entry, near: NearMatch
    ) -> None:
        """The recorded call is the same as far as it can be compared."""
        if near.less and cell.request.options.get("strict"):
            text = (
                f"call {entry.id} ({entry.book.path.name}:{entry.line}) matches without {near.less}"
            )
            now = "Now: pass what distinguishes it as a plain value, or replay without --strict"
            raise cell.refuse(
                UnmatchedCall(f"{title(call)}: {text}; --strict goes by all of a call. {now}")
            )
        if near.message:
            cell.warn(near.message)

    def _record_substitute_answer(
        self,
        cell: TapedCell,
        origin: Origin | None,
        matched: MatchedRequest,
        call: Request | FunctionCall,
        kind: HostClass,
        decided: Any,
    ) -> None:
        """Write a call that is answered from elsewhere (--freeze while recording, --stub) before it
        is handed on.
        """
        if not isinstance(decided, Frozen | Stub):
            return
        self._open_run(cell, call)
        held_answer = OfflineAnswer(
            cell,
            self.desk.secrets,
            _reduce_to_match_key(matched),
            kind,
            self._locate_call(cell, origin),
        )
        if decided.recorded is not None:
            recorded = _require_entry(decided.recorded)
        else:
            recorded = None
        if isinstance(decided, Stub):
            held_answer.commit_answer(call, Value(decided.value), "stub", recorded)
        elif recorded is not None:
            if isinstance(decided, Stale):
                held_answer.diverged = "stale"
                cell.findings.stale.append(held_answer.id)
            held_answer.commit_answer(call, recorded.reply(), recorded.name)

    def _require_key(self, cell: TapedCell, request: Request) -> None:
        if lacking := self.desk.lending.lacks(request):
            raise cell.refuse(
                BlockedConnection(
                    f"{title(request)} would have gone live. Nothing was sent: {lacks(lacking)}"
                )
            )

    def _read_reply(self, cell: TapedCell, entry: Entry, request: Request) -> Reply | Value:
        reply, edited = entry.book.reply(entry)
        self._require_sound_bodies(reply)
        if edited:
            cell.findings.edited.append(entry.id)
        if edited and cell.request.options.get("strict"):
            text = f"call {entry.id} was edited by hand ({entry.book.path.name}:{entry.line}); --strict refuses it"
            raise cell.refuse(UnmatchedCall(f"{title(request)}: {text}"))
        if isinstance(reply, Reply) and reply.end == "cut short":
            return self._build_interrupted_reply(cell, entry, reply, request)
        return reply

    def _read_value(self, cell: TapedCell, entry: Entry, call: FunctionCall) -> Reply | Value:
        value = entry.reply()
        if isinstance(value, Value) and value.unkept:
            raise cell.refuse(
                UnmatchedCall(
                    f"{title(call)}: what it returned could not be recorded: {value.unkept}"
                )
            )
        if isinstance(value, Value):
            return answers.replayed_value(value, self.desk.secrets)
        return value

    def _require_sound_bodies(self, reply: Reply | Value) -> None:
        """A large body is compared with its digest before anything of it is handed on. Raises
        CassetteError.
        """
        if isinstance(reply, Reply):
            for body in large_bodies(reply.chunks):
                external_texts.require_sound(body)

    def _build_gate(self, cell: TapedCell, entry: Entry, reply: Reply | Value) -> Gate | None:
        if cell.pins.pacing is not None:
            return cell.pins.pacing.gate(entry, reply)
        return None

    def _build_interrupted_reply(
        self, cell: TapedCell, entry: Entry, reply: Reply, request: Request
    ) -> Reply:
        if not cell.request.options.get("cut_short"):
            text = f"call {entry.id} was cut short by an interrupt when recorded ({entry.book.path.name}:{entry.line})"
            now = "Record the cell again, or replay with --cut-short to get the partial reply and the interrupt."
            raise cell.refuse(UnmatchedCall(f"{title(request)}: {text}. {now}"))
        if cell.in_task_of_its_own() and reply.status is not None:
            # an event loop does not survive a KeyboardInterrupt in a task; the tap says what ended
            # it
            return reply
        error = freeze_error(KeyboardInterrupt("the recording was interrupted here"))
        return Reply(
            reply.status,
            reply.headers,
            reply.chunks,
            reply.waits,
            "error",
            error,
            reply.version,
            reply.reason,
        )

    def _locate_call(self, cell: TapedCell, origin: Origin | None) -> Where:
        return Where(
            cell.recording.run,
            origin.lineage if origin is not None else "",
            SPAN.get(),
            PARENT.get(),
        )

    def _open_run(self, cell: TapedCell, call: Request | FunctionCall) -> None:
        """The run's record is committed before the first call is paid for."""
        if cell.recording.run or cell.mode == "live":
            return
        try:
            with cell.lock:
                if not cell.recording.run:
                    self.desk.start_run(cell)
        except (CassetteError, OSError) as error:
            text = f"{title(call)} was not sent, since it could not be recorded: {error}"
            raise cell.refuse(BlockedConnection(text)) from error

    def _tape_offered_tools(
        self, cell: TapedCell, request: Request, growing: GrowingBody, body: Any
    ) -> None:
        """Tape the functions that this request offers as tools."""
        if not self._may_offer_tools(cell, growing):
            return
        if names := declared_tools(json_value(request.body) if body is None else body):
            self.desk.tape_tools(cell, names)
        else:
            self.desk.tape_known_tools(cell)

    def _tape_requested_tools(
        self, cell: TapedCell, growing: GrowingBody, kind: HostClass, reply: Reply | Value
    ) -> None:
        """Before a reply is handed on that asks for tools its request did not declare: the provider
        holds those.
        """
        recorded = kind == "model" and cell.cassette is not None and cell.cassette.tools
        if (
            recorded
            and isinstance(reply, Reply)
            and not self._may_offer_tools(cell, growing)
            and _may_ask_for_tools(reply)
        ):
            self.desk.tape_known_tools(cell)

    def _may_offer_tools(self, cell: TapedCell, growing: GrowingBody) -> bool:
        return bool(cell.request.options.get("tools") or cell.execution.selection or growing.marked)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call of a stepped cell (`PausedCall`, core/call.py's `Hold`)."""

    cell: TapedCell
    call: Request | FunctionCall
    kind: HostClass
    match: str
    lineage: str
    decided: Settled
    settle: Callable[..., Play | Capture]

    def wait(self) -> Play | Capture:
        return self._cell_stepping.create_waiter(self).wait()

    async def wait_async(self) -> Play | Capture:
        return await self._cell_stepping.create_waiter(self).wait_async()

    @property
    def _cell_stepping(self) -> Stepping:
        assert self.cell.stepping is not None
        return self.cell.stepping


@dataclass(frozen=True, slots=True)
class Decided:
    """A call of a stepped cell on which nobody needs to decide (core/call.py, `Hold`)."""

    decision: Play | Capture | None

    async def wait_async(self) -> Play | Capture | None:
        return self.decision


def _handle_own_failure(cell: TapedCell, call: Request | FunctionCall, error: Exception) -> Capture:
    """A call went wrong in our own hands. Raises UnmatchedCall in replay.

    As an Exception it would be retried and wrapped by SDKs, or be taken for the tool's own failure.
    A call that is held (--freeze) while recording must not go out either.
    """
    if not cell.replaying and not cell.execution.selection.held_tools:
        cell.lose(f"{title(call)} is NOT on the tape ({type(error).__name__}: {error})")
        return Capture()
    raise cell.refuse(UnmatchedCall(f"{title(call)} cannot be replayed: {error}")) from error


def _reduce_to_match_key(matched: MatchedRequest) -> MatchedRequest:
    """What a call that did not go out is found by."""
    return matched._replace(exact="", json=None, clean=0)


def _may_ask_for_tools(reply: Reply) -> bool:
    """Whether a model's reply could ask for tools, without reading it."""
    return bool(reply.header("content-encoding")) or any(
        marker in reply.readable for marker in _ASKING
    )


def _is_divergence(cell: TapedCell, decided: GoLive) -> bool:
    """Whether it goes live since the tape does not hold it, not since a person wants that boundary
    live.
    """
    return cell.replaying and decided.recorded is None and not cell.execution.selection.live


def _is_decided_per_call(cell: TapedCell) -> bool:
    """Whether it is decided call by call what goes out."""
    return (
        cell.mode not in ("record", "live")
        or bool(cell.execution.selection)
        or cell.stepping is not None
    )


def _require_entry(recorded: Recorded | None) -> Entry:
    assert isinstance(recorded, Entry)  # the players of this room are over cassettes
    return recorded
