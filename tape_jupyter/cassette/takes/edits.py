"""What a person may change of a recorded call, and what a change makes of it. Writes nothing
(cassette/cassette.py).

An edit comes from Python (`given_edit`: text=, message=, fault=, reply=, value=, error=) or from a view
or a command line (`apply_edit`: the protocol's Edit as plain structure). Both give an `Answer`: what
answers the call from now on.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.cassette.records import section_headers
from tape_jupyter.cassette.takes import faults, overrides
from tape_jupyter.cassette.takes.overrides import UNSET
from tape_jupyter.core.call import FunctionCall, Headers, Reply, Request, Value
from tape_jupyter.core.plain_text import format_json
from tape_jupyter.core.websocket import SWITCHED
from tape_jupyter.encoding.http.websocket import parse_frame
from tape_jupyter.encoding.values.registry import CannotFreeze, thaw
from tape_jupyter.encoding.values.user_classes import ModuleAbsent
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.providers import editing, http, validation
from tape_jupyter.providers.editing import Taken
from tape_jupyter.providers.protocol import TAPE_ONLY
from tape_jupyter.providers.registry import identify
from tape_jupyter.providers.streams import rechunking

Edit = Mapping[str, Any]

LIMIT: Final = validation.LIMIT
_FRAMES: Final = "is a stream of binary frames, which is not edited here; give another one with reply= (a calls.Reply)"


@dataclass(frozen=True, slots=True)
class EditedReply:
    """What answers the call from now on, and what the take keeps of how it came about.

    `details` stands in the override's record: `edit`, `usage: stale`, `tape only`, `fault`. `notes`
    are sentences for the person. `again` answers the same call when it is tried again, in this
    order.
    """

    reply: Reply | Value
    details: dict[str, Any]
    notes: tuple[str, ...] = ()
    again: tuple[Reply, ...] = ()


# ---------------------------------------------------------------- from Python


def given_edit(entry: Entry, **arguments: Any) -> EditedReply:
    """Of text, message, fault, reply, value and error the one that is not UNSET. Raises
    TapeUsageError.
    """
    named = [name for name, argument in arguments.items() if argument is not UNSET]
    if len(named) == 1 and named[0] in _MAKERS:
        return _MAKERS[named[0]](entry, arguments[named[0]])
    if any(name in _MAKERS for name in named):
        raise TapeUsageError(
            f"an override is one of {', '.join((*_MAKERS, 'reply', 'value', 'error'))}; not all at once"
        )
    old = {name: argument for name, argument in arguments.items() if name not in _MAKERS}
    kind = {"reply": "raw"}.get(named[0], named[0]) if named else ""
    return EditedReply(overrides.answer_override(entry, **old), {"edit": kind})


def _edit_text(entry: Entry, text: Any) -> EditedReply:
    if not isinstance(text, str):
        raise TapeUsageError(f"text= is a text, not a {type(text).__name__}")
    _require_size(text)
    request = entry.request()
    if isinstance(request, FunctionCall):
        return EditedReply(overrides.answer_override(entry, value=text), {"edit": "text"})
    taken, reply = _read_reply_as_message(entry)
    was = http.loads(_decode_body(reply)) if taken is None else None
    if was is not None and type(http.loads(text.encode())) is not type(was):
        problem = (
            f"the reply of call {entry.id} is JSON that is no message of a model: "
            "there is no text to change in it"
        )
        raise TapeUsageError(f"{problem}. Give all of its body: --reply JSON (reply=)")
    if taken is None:
        return EditedReply(_build_raw_reply(entry, text, None, None), {"edit": "text"})
    return _encode_message(
        request, reply, editing.with_text(taken.wire, taken.message, text), "text"
    )


def _edit_message(entry: Entry, raw_message: Any) -> EditedReply:
    """`raw_message` is the message, or the part of it that is to be another: a dict, or JSON of one."""
    if isinstance(raw_message, str):
        partial = _parse_json(raw_message, "message=")
    else:
        partial = raw_message
    if not isinstance(partial, Mapping):
        raise TapeUsageError(f"message= is a dict or JSON of one, not a {type(partial).__name__}")
    taken, reply, request = _require_message(entry)
    change = editing.require_format(taken.wire).expanded(partial, taken.message)
    message = editing.updated(taken.message, change)
    _require_no_error(_find_problems(entry, taken, message))
    return _encode_message(request, reply, message, "message")


def _edit_fault(entry: Entry, fault: Any) -> EditedReply:
    recorded = entry.recorded if isinstance(entry, Overridden) else entry
    reply, again, kept = faults.injected(entry.request(), recorded.reply(), fault)
    return EditedReply(reply, {"edit": "fault", "fault": kept}, again=tuple(again))


_MAKERS: Final = {"text": _edit_text, "message": _edit_message, "fault": _edit_fault}


# ---------------------------------------------------------------- from a view or a command line


def answer_of(entry: Entry, edit: Edit) -> Reply | Value:
    """What answers a call after an edit (`apply_edit`), nothing else told."""
    return apply_edit(entry, edit).reply


def apply_edit(entry: Entry, edit: Edit) -> EditedReply:
    """What an Edit of the protocol makes of a call; `{"form": "text", "text": ...}` too. Raises
    TapeUsageError.
    """
    match edit.get("form"):
        case "text":
            return _edit_text(entry, edit.get("text"))
        case "message" | "fields":
            taken, reply, request = _require_message(entry)
            message = _build_message(taken, edit)
            _require_no_error(_find_problems(entry, taken, message))
            return _encode_message(request, reply, message, "message")
        case "value":
            return EditedReply(_build_value(entry, _require_text(edit, "value")), {"edit": "value"})
        case "raw":
            status, headers = edit.get("status"), edit.get("headers")
            return EditedReply(
                _build_raw_reply(entry, _require_text(edit, "body"), status, headers),
                {"edit": "raw"},
            )
        case "fault":
            return _edit_fault(
                entry, {"name": _require_text(edit, "name"), "options": edit.get("options")}
            )
        case form:
            raise TapeUsageError(
                f"an edit is of the form message, fields, value, raw, fault or text, not {form!r:.80}"
            )


def _require_text(edit: Edit, key: str) -> str:
    text = edit.get(key)
    if not isinstance(text, str):
        raise TapeUsageError(f"this edit has a text {key!r}")
    _require_size(text)
    return text


def _build_message(taken: Taken, edit: Edit) -> Any:
    if edit.get("form") == "message":
        return _parse_json(_require_text(edit, "message"), "the message")
    changes = edit.get("fields")
    if not isinstance(changes, list) or not all(_is_change(each) for each in changes):
        raise TapeUsageError("fields are a list of {path, value}, both texts")
    _require_size("".join(each["value"] for each in changes))
    return validation.with_fields(taken.wire, taken.message, changes)


def _is_change(each: Any) -> bool:
    return (
        isinstance(each, dict)
        and isinstance(each.get("path"), str)
        and isinstance(each.get("value"), str)
    )


def _parse_json(text: str, what: str) -> Any:
    _require_size(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TapeUsageError(f"{what}: this is not JSON ({error})") from None


def _require_size(text: str) -> None:
    _require_no_error(validation.too_long(text))


def _require_no_error(problems: Iterable[Mapping[str, str]]) -> None:
    for problem in problems:
        if problem["level"] == "error":
            raise TapeUsageError(format_problem(problem))


# ---------------------------------------------------------------- messages


def _read_reply_as_message(entry: Entry) -> tuple[Taken | None, Reply]:
    """The reply as a message: as it is in this take, else (a fault stands there now) as it was
    recorded.
    """
    request = entry.request()
    recorded = [entry, *([entry.recorded] if isinstance(entry, Overridden) else [])]
    replies = [reply for each in recorded if isinstance(reply := each.reply(), Reply)]
    if isinstance(request, FunctionCall) or not replies:
        what = "a function" if isinstance(request, FunctionCall) else "no reply"
        raise TapeUsageError(f"call {entry.id} is {what}: override it with value= or error=")
    for reply in replies:
        if (taken := editing.take_apart_reply(request, reply)) is not None:
            return taken, reply
    return None, replies[0]


def _require_message(entry: Entry) -> tuple[Taken, Reply, Request]:
    taken, reply = _read_reply_as_message(entry)
    request = entry.request()
    assert isinstance(request, Request)
    if taken is None:
        editing.encoded(request, reply, {})  # raises, and says why
        raise AssertionError("what is not taken apart is not put together")
    return taken, reply, request


def _encode_message(
    request: Request, reply: Reply, message: Mapping[str, Any], edit: str
) -> EditedReply:
    edited_reply, notes = editing.encoded(request, reply, message)
    metadata: dict[str, Any] = {"edit": edit}
    if any(note.startswith("usage stale") for note in notes):
        metadata["usage"] = "stale"
    if any(note.startswith(TAPE_ONLY) for note in notes):
        metadata["tape only"] = True
    return EditedReply(edited_reply, metadata, tuple(notes))


# ---------------------------------------------------------------- values and bodies


def _build_value(entry: Entry, text: str) -> Value:
    """A function's value as JSON text: plain JSON, or the recorded structure with its types,
    changed.
    """
    if not isinstance(entry.request(), FunctionCall):
        raise TapeUsageError(
            f"call {entry.id} is a request, not a tool's: use --text, --message, --reply or --fault"
        )
    value, recorded = value_of(text).value, entry.reply()
    kept = recorded if isinstance(recorded, Value) else Value()
    return replace(kept, value=value, error=None, unkept="")


def value_of(text: str) -> Value:
    """What a function gives, as JSON text of its value. Raises TapeUsageError."""
    structure = _parse_json(text, "the value")
    try:
        thaw(structure)
    except ModuleAbsent:
        pass  # the notebook has it, this process has not
    except CassetteError as error:
        raise TapeUsageError(f"this is not a value that can be given back: {error}") from error
    return Value(structure)


def _build_raw_reply(entry: Entry, body: str, status: Any, headers: Any) -> Reply:
    """The recorded reply with another body as text, and another status and headers where they are
    given.
    """
    recorded = entry.reply()
    if not isinstance(recorded, Reply):
        raise TapeUsageError(f"call {entry.id} is a function: override it with value= or error=")
    if status is not None and (type(status) is not int or not 100 <= status <= 999):
        raise TapeUsageError(f"a status is a number from 100 to 999, not {status!r:.80}")
    new_headers = recorded.headers if headers is None else _parse_headers(headers)
    if body == body_text(recorded):
        data = _decode_body(recorded)
    else:
        data = _encode_body(entry, recorded, body)
    if recorded.status == SWITCHED and status in (None, SWITCHED):
        return replace(recorded, **_build_frame_chunks(entry, recorded, data))
    cut, waits = rechunking.cut_in_proportion(recorded, data)
    number = status if status is not None else recorded.status or 200
    reason = recorded.reason if number == recorded.status else ""
    head = editing.plain_headers(new_headers, len(data))
    return Reply(number, head, cut, waits, version=recorded.version, reason=reason)


def _build_frame_chunks(entry: Entry, recorded: Reply, data: bytes) -> dict[str, Any]:
    """The frames of a WebSocket, a line each; each keeps the moment of the one that stood in its
    place.
    """
    lines = tuple(data.splitlines(keepends=True))
    try:
        for line in lines:
            parse_frame(line)
    except CassetteError as error:
        raise TapeUsageError(f"call {entry.id} is a dialogue, a frame a line: {error}") from error
    last = recorded.waits[-1:] or (0.0,)
    return {"chunks": lines, "waits": (*recorded.waits, *last * len(lines))[: len(lines)]}


def _encode_body(entry: Entry, recorded: Reply, body: str) -> bytes:
    if is_frames(recorded):
        raise TapeUsageError(f"call {entry.id} {_FRAMES}")
    charset = charset_of(recorded)
    try:
        _decode_body(recorded).decode(charset)
        return body.encode(charset)
    except UnicodeDecodeError:
        message = f"the recorded body of call {entry.id} is not text; give another one with reply= (bytes)"
        raise TapeUsageError(message) from None
    except UnicodeEncodeError as error:
        raise TapeUsageError(
            f"this cannot be said in {charset}, the charset of the reply: {error}"
        ) from None


def _parse_headers(headers: Any) -> Headers:
    pairs: list[Any] = list(headers) if isinstance(headers, list | tuple) else [None]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise TapeUsageError("headers are pairs of name and value")
    try:
        return section_headers([{name: value} for name, value in pairs])
    except (CassetteError, TypeError) as error:
        raise TapeUsageError(str(error)) from error


def charset_of(reply: Reply) -> str:
    """The charset that the content-type tells, UTF-8 without one."""
    _, _, charset = reply.header("content-type").lower().partition("charset=")
    try:
        return codecs.lookup(charset.split(";")[0].strip(" \"'")).name
    except LookupError:
        return "utf-8"


def is_frames(reply: Reply) -> bool:
    return "amazon.eventstream" in reply.header("content-type").lower()


def body_text(reply: Reply) -> str:
    """The body as text, without content-encoding; bytes that are no text are shown escaped, and
    cannot be edited.
    """
    return _decode_body(reply).decode(charset_of(reply), "backslashreplace")


def _decode_body(reply: Reply) -> bytes:
    body = http.decoded_body(reply.headers, reply.body)
    return reply.body if body is None else body


# ---------------------------------------------------------------- what may be edited, and what is wrong with an edit


@dataclass(frozen=True, slots=True)
class Editable:
    """What the editor shows of a call (protocol: Editable, without span and take)."""

    form: str
    api: str = ""
    recorded: str = ""
    current: str = ""
    fields: list[dict[str, Any]] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)
    faults: list[dict[str, Any]] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        return {"form": self.form, "api": self.api, "recorded": self.recorded, "current": self.current,
                "fields": self.fields, "raw": self.raw, "faults": self.faults, "limit": LIMIT}  # fmt: skip


_NO_RAW: Final[Mapping[str, Any]] = {"status": None, "headers": [], "body": "", "json": False}


def editable_of(entry: Entry) -> Editable:
    request, reply = entry.request(), entry.reply()
    listed = [fault.record() for fault in faults.faults(request)]
    recorded = entry.recorded.reply() if isinstance(entry, Overridden) else reply
    if isinstance(request, FunctionCall) or isinstance(reply, Value):
        before, now = (
            format_json(each.value) if isinstance(each, Value) else "" for each in (recorded, reply)
        )
        return Editable("value", "", before, now, raw=dict(_NO_RAW), faults=listed)
    raw = _describe_raw(reply)
    taken = editing.take_apart_reply(request, reply)
    if isinstance(recorded, Reply):
        first = editing.take_apart_reply(request, recorded)
    else:
        first = None
    current = taken or first
    if current is None:
        was = body_text(recorded) if isinstance(recorded, Reply) else ""
        return Editable("raw", identify(request).wire, was, raw["body"], raw=raw, faults=listed)
    return Editable(
        "message",
        current.wire,
        format_json(first.message if first else current.message),
        format_json(current.message),
        validation.editable_fields(
            current.wire,
            current.message,
            validation.schemas(http.decoded_body(request.headers, request.body) or b""),
        ),
        raw,
        listed,
    )


def _describe_raw(reply: Reply) -> dict[str, Any]:
    kind = reply.header("content-type").lower()
    headers = [[name, value] for name, value in reply.headers]
    is_json = "json" in kind and "ndjson" not in kind
    return {"status": reply.status, "headers": headers, "body": body_text(reply), "json": is_json}


def problems_of(entry: Entry, edit: Edit) -> list[dict[str, str]]:
    """What is wrong with an edit, in the shape of the protocol (Problem): errors keep it from being
    written.
    """
    try:
        if edit.get("form") in ("message", "fields"):
            taken, _, _ = _require_message(entry)
            return _find_problems(entry, taken, _build_message(taken, edit))
        answer = apply_edit(entry, edit)
    except (TapeUsageError, CannotFreeze) as error:
        return [validation.problem("error", "", str(error))]
    if edit.get("form") == "raw" and isinstance(answer.reply, Reply):
        return _find_broken_json(answer.reply)
    if edit.get("form") == "value" and isinstance(answer.reply, Value):
        return _find_lost_json(entry, answer.reply)
    return []


def accept_edit(entry: Entry, edit: Edit, *, accept: bool) -> EditedReply:
    """What a person's edit makes of a call. Raises TapeUsageError for an error in it, and for a
    warning that the person did not tick (`accept`).
    """
    problems = problems_of(entry, edit)
    _require_no_error(problems)
    if problems and not accept:
        raise TapeUsageError(
            f"{format_problem(problems[0])} (tick that it is meant so, to save it)"
        )
    return apply_edit(entry, edit)


def format_problem(problem: Mapping[str, str]) -> str:
    """Where something is wrong with an edit, and what."""
    return ": ".join(part for part in (problem["path"], problem["text"]) if part)


def warnings(entry: Entry, answer: EditedReply) -> list[dict[str, str]]:
    """What is odd about a message that an answer says: unknown tools, broken schemas, results
    without their call.
    """
    request = entry.request()
    if (
        not isinstance(answer.reply, Reply)
        or isinstance(request, FunctionCall)
        or answer.details["edit"] != "message"
    ):
        return []
    taken, message = _read_reply_as_message(entry)[0], editing.reply_message(request, answer.reply)
    return [] if taken is None else _find_problems(entry, taken, message)


def _find_problems(entry: Entry, taken: Taken, message: Any) -> list[dict[str, str]]:
    request = entry.request()
    assert isinstance(request, Request)
    declared = validation.schemas(http.decoded_body(request.headers, request.body) or b"")
    removed_calls = validation.call_ids(taken.wire, taken.message) - (
        validation.call_ids(taken.wire, message) if isinstance(message, dict) else set()
    )
    if removed_calls:
        answered = _find_answered_later(entry, removed_calls)
    else:
        answered = frozenset[str]()
    return validation.problems(taken.wire, taken.message, message, declared, answered)


def _find_answered_later(entry: Entry, calls: set[str]) -> frozenset[str]:
    """Which of these tool calls later requests of the recording hand back a result of."""
    later = [other for other in getattr(entry.book, "calls", ()) if other.place > entry.place]
    bodies = [request.body for other in later if isinstance(request := other.request(), Request)]
    return frozenset(call for call in calls if any(call.encode() in body for body in bodies))


def _find_broken_json(reply: Reply) -> list[dict[str, str]]:
    kind = reply.header("content-type").lower()
    if (
        "json" not in kind
        or "ndjson" in kind
        or http.loads(reply.body) is not None
        or reply.body.strip() == b"null"
    ):
        return []
    return [validation.problem("warning", "", "the reply says that it is JSON, and this is none")]


def _find_lost_json(entry: Entry, value: Value) -> list[dict[str, str]]:
    """A tool that gives JSON as a text is taken to go on doing so."""
    recorded = entry.reply()
    was = recorded.value if isinstance(recorded, Value) else None
    if not isinstance(was, str) or was.lstrip()[:1] not in ("{", "[") or http.loads(was) is None:
        return []
    if isinstance(value.value, str) and http.loads(value.value) is None:
        return [
            validation.problem(
                "error", "", "the recorded result is JSON in a text, and this text is not JSON"
            )
        ]
    return []
