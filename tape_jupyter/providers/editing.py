"""Providers room: a recorded reply as the message it amounts to, and a changed message as a reply of the same form.

Three wires are taken apart: Anthropic Messages, OpenAI Chat (and Mistral's) and OpenAI Responses, as JSON and as
streams. Any other reply is text or JSON to be edited as such, and a stream of binary frames is neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final

from tape_jupyter import providers
from tape_jupyter.bodies.dialects import dialect, spelled
from tape_jupyter.calls import Headers, Reply, Request, header
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.providers import wire
from tape_jupyter.providers.look import mapping, maps
from tape_jupyter.providers.recut import anthropic, chunks, consequences, openai_chat, openai_responses
from tape_jupyter.providers.recut.events import joined, parse, same_json, spell

Message = dict[str, Any]

CODECS: Final[Mapping[str, ModuleType]] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "mistral": openai_chat,
    "openai_responses": openai_responses,
}
_APIS: Final = frozenset({"messages", "rawPredict", "streamRawPredict", "chat", "responses", ""})
_HAS: Final = {"anthropic": "content", "openai_chat": "choices", "mistral": "choices", "openai_responses": "output"}


@dataclass(frozen=True, slots=True)
class Taken:
    """A reply taken apart: its wire, whether it came as a stream, its body without content-encoding, its message."""

    wire: str
    streamed: bool
    body: bytes
    message: Message


def taken(request: Request, reply: Reply) -> Taken | None:
    """What a reply amounts to; None where it is no whole message of a wire that is taken apart here."""
    if reply.status is None or reply.status >= 400 or not reply.chunks:
        return None
    body = wire.plain(reply.headers, reply.body)
    name = _wire(request, body or b"")
    if not body or not name:
        return None
    streamed = body.lstrip()[:1] not in (b"{", b"[")
    message = CODECS[name].read(parse(body)) if streamed else wire.loads(body)
    there = isinstance(message, dict) and isinstance(message.get(_HAS[name]), list)
    return Taken(name, streamed, body, message) if there and isinstance(message, dict) else None


def message_of(request: Request, reply: Reply) -> Message | None:
    """The whole message of a reply in the provider's own shape; None where there is none."""
    found = taken(request, reply)
    return found.message if found is not None else None


def _wire(request: Request, body: bytes) -> str:
    known = providers.identify(request)
    name, api = known.wire, known.api
    if not name:
        name, api = providers.facts(request).wire, ""
    if not name and "/responses/" in request.url:  # a response that is asked for again
        name = "openai_responses"
    return name if name in CODECS and api in _APIS and body else ""


def encoded(request: Request, reply: Reply, message: Mapping[str, Any]) -> tuple[Reply, list[str]]:
    """The reply that says `message`, in the recorded form; and what followed from the change, a sentence each.

    What did not change keeps its bytes; an unchanged message gives the recorded reply itself. An edited body is sent
    without content-encoding. Raises TapeUsageError for a reply that is no message.
    """
    found = taken(request, reply)
    if found is None:
        raise TapeUsageError(f"{_what(request, reply)}; edit it as text or JSON (reply=)")
    if same_json(found.message, message):
        return reply, []
    settled, notes = consequences.settle(found.wire, found.message, message)
    if not found.streamed:
        body = respelled(found.body, settled)
        chunked, waits = chunks.whole(reply, body)
    else:
        old = parse(found.body)
        new = CODECS[found.wire].rewrite(old, settled)
        body = joined(new)
        chunked, waits = chunks.reread(reply, old, new)
    return replace(reply, headers=plain_headers(reply.headers, len(body)), chunks=chunked, waits=waits), notes


def composed(name: str, message: Mapping[str, Any]) -> bytes:
    """A stream made from the message alone, as if nothing had been recorded."""
    return joined(CODECS[name].compose(message))


def respelled(body: bytes, value: Any) -> bytes:
    """JSON in the dialect of the recorded body, with what stood around it."""
    core = body.strip()
    start = body.find(core)
    try:
        text = core.decode("utf-8")
        spelling = spelled(text, json.loads(text))
    except (ValueError, RecursionError):
        spelling = None
    return body[:start] + spell(value, spelling or dialect("compact")) + body[start + len(core) :]


def plain_headers(headers: Headers, length: int) -> Headers:
    """The headers of a body that was edited: not encoded, and of this length where one is told."""
    kept = tuple((name, told) for name, told in headers if name.lower() != "content-encoding")
    if not header(kept, "content-length"):
        return kept
    return tuple((name, str(length) if name.lower() == "content-length" else told) for name, told in kept)


def _what(request: Request, reply: Reply) -> str:
    """Why a reply is no message."""
    if reply.status is None:
        return "this call got no reply but an error"
    if reply.status >= 400:
        return f"this reply is an error ({reply.status}), no message"
    return f"what {request.method} {request.url.partition('?')[0]} answered is no message that can be taken apart"


# ---------------------------------------------------------------- texts, and changes to them


Path = tuple[str | int, ...]


def texts(name: str, message: Mapping[str, Any]) -> Iterator[Path]:
    """Where the answer's texts stand in a message, in order."""
    if name == "anthropic":
        yield from (("content", at, "text") for at, block in _typed(message.get("content"), "text"))
    elif name == "openai_responses":
        for at, item in _typed(message.get("output"), "message"):
            yield from (("output", at, "content", n, "text") for n, _ in _typed(item.get("content"), "output_text"))
    else:
        for at, choice in enumerate(maps(message.get("choices"))):
            content = mapping(choice.get("message")).get("content")
            if isinstance(content, str):
                yield ("choices", at, "message", "content")
            for number, _ in _typed(content, "text"):
                yield ("choices", at, "message", "content", number, "text")


def _typed(parts: Any, kind: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    listed = parts if isinstance(parts, list) else []
    return ((at, part) for at, part in enumerate(listed) if isinstance(part, dict) and part.get("type") == kind)


def first_text(name: str, message: Mapping[str, Any]) -> Path | None:
    """Where the first text stands that says something, else the first one; None where the answer has no text."""
    found = list(texts(name, message))
    return next((path for path in found if get(message, path)), found[0] if found else None)


def with_text(name: str, message: Mapping[str, Any], text: str) -> Message:
    """The message with another first text. Raises TapeUsageError where it has none."""
    path = first_text(name, message)
    if path is None:
        raise TapeUsageError("the answer has no text, only tool calls or nothing; change it with message=")
    changed: Message = put(message, path, text)
    return changed


def get(message: Any, path: Sequence[str | int]) -> Any:
    """What stands there; None where nothing does."""
    for step in path:
        if isinstance(step, int):
            message = message[step] if isinstance(message, list) and 0 <= step < len(message) else None
        else:
            message = message.get(step) if isinstance(message, dict) else None
    return message


def put(message: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy with another value there. Raises TapeUsageError where there is no such place."""
    if not path:
        return value
    step, *rest = path
    there = isinstance(message, dict) if isinstance(step, str) else isinstance(message, list) and step < len(message)
    if not there:
        raise TapeUsageError(f"the message has no {step!r} there")
    copy = message.copy()
    copy[step] = put(message.get(step) if isinstance(step, str) else message[step], rest, value)
    return copy


def updated(message: Mapping[str, Any], partial: Mapping[str, Any]) -> Message:
    """The message with the keys of `partial` in their place: mappings key by key, everything else as a whole."""
    return {
        **message,
        **{
            key: updated(message[key], value)
            if isinstance(value, dict) and isinstance(message.get(key), dict)
            else value
            for key, value in partial.items()
        },
    }
