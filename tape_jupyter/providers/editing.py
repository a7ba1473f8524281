"""A recorded reply as the message it amounts to, and a changed message as a reply of the same form.

Taken apart are the replies of providers that have a message format (`Provider.messages`), as JSON
and as streams. Any other reply is text or JSON to be edited as such, and a stream of binary frames
is neither.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tape_jupyter.core.call import Headers, Reply, Request, header_value
from tape_jupyter.encoding.http.json_style import dialect, find_dialect
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.providers import http as wire
from tape_jupyter.providers import registry
from tape_jupyter.providers.protocol import Message, MessageFormat, Path
from tape_jupyter.providers.streams import rechunking
from tape_jupyter.providers.streams.events import join_events, parse_events, same_json, spell

_APIS: Final = frozenset({"messages", "rawPredict", "streamRawPredict", "chat", "responses", ""})
"""Operations whose replies are messages; a third party's have no names here."""


def format_of(wire: str) -> MessageFormat | None:
    """How replies of a wire are taken apart; None where they are not."""
    provider = registry.providers().get(wire)
    return provider.messages if provider is not None else None


def require_format(wire: str) -> MessageFormat:
    """The same. Raises TapeUsageError where there is none."""
    message_format = format_of(wire)
    if message_format is None:
        raise TapeUsageError(f"replies of {wire or 'this address'} are edited as text or JSON")
    return message_format


@dataclass(frozen=True, slots=True)
class Taken:
    """A reply taken apart: its wire, whether it came as a stream, its body without
    content-encoding, its message.
    """

    wire: str
    streamed: bool
    body: bytes
    message: Message


def take_apart_reply(request: Request, reply: Reply) -> Taken | None:
    """What a reply amounts to; None where it is no whole message of a wire that is taken apart
    here.
    """
    if reply.status is None or reply.status >= 400 or not reply.readable:
        return None
    body = wire.decoded_body(reply.headers, reply.readable)
    name = _identify_wire(request, body or b"")
    if not body or not name:
        return None
    streamed = body.lstrip()[:1] not in (b"{", b"[")
    form = require_format(name)
    message = form.read(parse_events(body)) if streamed else wire.loads(body)
    if not isinstance(message, dict) or not isinstance(message.get(form.parts), list):
        return None
    return Taken(name, streamed, body, message)


def reply_message(request: Request, reply: Reply) -> Message | None:
    """The whole message of a reply in the provider's own shape; None where there is none."""
    taken = take_apart_reply(request, reply)
    return taken.message if taken is not None else None


def _identify_wire(request: Request, body: bytes) -> str:
    known = registry.identify(request)
    name, api = known.wire, known.api
    if not name:
        name, api = registry.call_facts(request).wire, ""
    if not name and "/responses/" in request.url:  # a response that is asked for again
        name = "openai_responses"
    return name if format_of(name) is not None and api in _APIS and body else ""


def encoded(request: Request, reply: Reply, message: Mapping[str, Any]) -> tuple[Reply, list[str]]:
    """The reply that says `message`, in the recorded form; and what followed from the change, a
    sentence each.

    What did not change keeps its bytes; an unchanged message gives the recorded reply itself. An
    edited body is sent without content-encoding. Raises TapeUsageError for a reply that is no
    message.
    """
    taken = take_apart_reply(request, reply)
    if taken is None:
        raise TapeUsageError(
            f"{_explain_no_message(request, reply)}; edit it as text or JSON (reply=)"
        )
    if same_json(taken.message, message):
        return reply, []
    settled, notes = settle_message(taken.wire, taken.message, message)
    if not taken.streamed:
        body = respelled(taken.body, settled)
        chunked, waits = rechunking.cut_in_proportion(reply, body)
    else:
        old = parse_events(taken.body)
        new = require_format(taken.wire).rewrite(old, settled)
        body = join_events(new)
        chunked, waits = rechunking.reread(reply, old, new)
    return replace(
        reply, headers=plain_headers(reply.headers, len(body)), chunks=chunked, waits=waits
    ), notes


def settle_message(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[Message, list[str]]:
    """The new message with what follows from its differences (how it ends, signatures that no
    longer hold, stale log probabilities), and a sentence for each thing that did. What a person
    said themselves stays as they said it.
    """
    settled = copy.deepcopy(dict(new))
    notes = require_format(name).adjust_dependents(old, settled)
    usage = old.get("usage")
    if not same_json(usage, None) and same_json(usage, settled.get("usage")):
        notes.append("usage stale: token counts are those of the recorded reply")
    return settled, notes


def composed(name: str, message: Mapping[str, Any]) -> bytes:
    """A stream made from the message alone, as if nothing had been recorded."""
    return join_events(require_format(name).compose(message))


def respelled(body: bytes, value: Any) -> bytes:
    """JSON in the dialect of the recorded body, with what stood around it."""
    core = body.strip()
    start = body.find(core)
    try:
        text = core.decode("utf-8")
        spelling = find_dialect(text, json.loads(text))
    except (ValueError, RecursionError):
        spelling = None
    return body[:start] + spell(value, spelling or dialect("compact")) + body[start + len(core) :]


def plain_headers(headers: Headers, length: int) -> Headers:
    """The headers of a body that was edited: not encoded, and of this length where one is told."""
    kept = tuple((name, value) for name, value in headers if name.lower() != "content-encoding")
    if not header_value(kept, "content-length"):
        return kept
    return tuple(
        (name, str(length) if name.lower() == "content-length" else value) for name, value in kept
    )


def _explain_no_message(request: Request, reply: Reply) -> str:
    """Why a reply is no message."""
    if reply.status is None:
        return "this call got no reply but an error"
    if reply.status >= 400:
        return f"this reply is an error ({reply.status}), no message"
    return f"what {request.method} {request.url.partition('?')[0]} answered is not a message that can be taken apart"


# ---------------------------------------------------------------- texts, and changes to them


def text_paths(name: str, message: Mapping[str, Any]) -> Iterator[Path]:
    """Where the answer's texts stand in a message, in order."""
    return require_format(name).texts(message)


def first_text(name: str, message: Mapping[str, Any]) -> Path | None:
    """Where the first text stands that says something, else the first one; None where the answer
    has no text.
    """
    paths = list(text_paths(name, message))
    return next((path for path in paths if value_at(message, path)), paths[0] if paths else None)


def with_text(name: str, message: Mapping[str, Any], text: str) -> Message:
    """The message with another first text. Raises TapeUsageError where it has none."""
    path = first_text(name, message)
    if path is None:
        raise TapeUsageError(
            "the answer has no text, only tool calls or nothing; change it with message="
        )
    changed: Message = with_value_at(message, path, text)
    return changed


def value_at(message: Any, path: Sequence[str | int]) -> Any:
    """What stands there; None where nothing does."""
    for step in path:
        if isinstance(step, int):
            if isinstance(message, list) and 0 <= step < len(message):
                message = message[step]
            else:
                message = None
        else:
            message = message.get(step) if isinstance(message, dict) else None
    return message


def with_value_at(message: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy with another value there. Raises TapeUsageError where there is no such place."""
    if not path:
        return value
    step, *rest = path
    if not isinstance(message, dict if isinstance(step, str) else list):
        raise TapeUsageError(f"the message has no {step!r} there")
    changed: Any = message.copy()
    changed[step] = with_value_at(value_at(message, [step]), rest, value)
    return changed


def updated(message: Mapping[str, Any], partial: Mapping[str, Any]) -> Message:
    """The message with the keys of `partial` in their place: mappings key by key, everything else
    as a whole.
    """
    changed = dict(message)
    for key, value in partial.items():
        if isinstance(value, dict) and isinstance(message.get(key), dict):
            changed[key] = updated(message[key], value)
        else:
            changed[key] = value
    return changed
