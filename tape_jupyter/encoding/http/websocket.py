r"""Text room: frames of a WebSocket <-> lines of JSON, one a frame, in the order they passed. Pure:
no I/O.

    {"got":{"type":"session.created",...}}      a text message from the server whose text is this JSON
    {"sent": {"type": "response.create"}}       one by the program, spelled with spaces
    {"got":"hello"}                             a text message that is not a JSON object or list
    {"got":{...},"as":"binary"}                 a binary message that holds JSON (Gemini Live), UTF-8
    {"got":"AAEC","as":"base64"}                any other binary message; "as":"base64 text" a text that is not UTF-8
    {"got":{...},"json":"indent 2","tail":"\n"} JSON that does not fit a line as it is spelled (json_style.py)
    {"got":"ab","parts":[1,1]}                  a message in fragments, their lengths in bytes; "open":true: broken off
    {"got close":1000,"reason":"bye"}           the close of the server, of the program ("sent close"), or of the
                                                program's own library ("failed")

JSON stands in the line exactly as it passed, so that the lines fold as those of any stream do
(encoding/http/event_folding.py) and every frame is restored to the byte: proven when the line is
made.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from tape_jupyter.core.websocket import NO_CODE, WebSocketFrame
from tape_jupyter.encoding.http.json_style import dialect, find_dialect, load_json
from tape_jupyter.errors import CassetteError

_COMPACT: Final = dialect("compact")
_HEAD: Final = re.compile(r'\{"(got|sent)":( ?)(?=[\[{])')
_SPACE: Final = " \t\r\n"
_decode: Final = json.JSONDecoder().raw_decode


# ---------------------------------------------------------------- frame to line


def line_of(frame: WebSocketFrame) -> bytes:
    """The line of one frame, its line end included."""
    if not frame.is_message:
        name = "failed" if frame.kind == "failed" else f"{frame.by} close"
        return _format_line({name: frame.code, "reason": frame.data.decode("utf-8", "replace")})
    line = _encode_structured(frame) or _encode_plain(frame)
    return line if _is_restorable(line, frame) else _encode_base64(frame)


def _encode_structured(frame: WebSocketFrame) -> bytes | None:
    """The line of a message that is JSON; None for one that is none."""
    if frame.data.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        text = frame.data.decode("utf-8")
        core = text.strip(_SPACE)
        value = load_json(core)
    except ValueError:
        return None
    more = {"as": "binary"} if frame.kind == "binary" else {}
    if "\n" not in text and core == text:
        return _splice_json(frame, core, more)
    json_dialect = find_dialect(core, value)
    if json_dialect is None:
        return None
    start = text.find(core)
    around = {"json": json_dialect.name, "head": text[:start], "tail": text[start + len(core) :]}
    more = {**{name: part for name, part in around.items() if part}, **more}
    return _splice_json(frame, _COMPACT.encode(value), more)


def _splice_json(frame: WebSocketFrame, core: str, more: dict[str, Any]) -> bytes:
    """The JSON as it is, in a line that is spelled as it is: with a space after colons, or without."""
    colon = core.find('":')
    space = " " if colon >= 0 and core[colon + 2 : colon + 3] == " " else ""
    fields = _add_fragments(frame, more)
    rest = "".join(
        f",{space}{_COMPACT.string(name)}:{space}{_COMPACT.encode(value)}"
        for name, value in fields.items()
    )
    return f'{{"{frame.by}":{space}{core}{rest}}}\n'.encode()


def _encode_plain(frame: WebSocketFrame) -> bytes:
    if frame.kind == "binary":
        return _encode_base64(frame)
    try:
        return _format_line({frame.by: frame.data.decode("utf-8"), **_add_fragments(frame, {})})
    except UnicodeDecodeError:
        return _encode_base64(frame)


def _encode_base64(frame: WebSocketFrame) -> bytes:
    coded = base64.b64encode(frame.data).decode("ascii")
    return _format_line(
        {
            frame.by: coded,
            **_add_fragments(frame, {"as": "base64" if frame.kind == "binary" else "base64 text"}),
        }
    )


def _add_fragments(frame: WebSocketFrame, more: dict[str, Any]) -> dict[str, Any]:
    if frame.parts:
        more = {**more, "parts": list(frame.parts)}
    return more if frame.complete else {**more, "open": True}


def _format_line(fields: dict[str, Any]) -> bytes:
    return _COMPACT.encode(fields).encode("utf-8") + b"\n"


def _is_restorable(line: bytes, frame: WebSocketFrame) -> bool:
    try:
        return b"\n" not in line[:-1] and parse_frame(line[:-1]) == frame
    except (CassetteError, ValueError):
        return False


# ---------------------------------------------------------------- line to frame


def frames_of(body: bytes) -> Iterator[WebSocketFrame]:
    """The frames of a recorded body. Raises CassetteError for a line that tells none."""
    for line in body.split(b"\n"):
        if line.strip():
            yield parse_frame(line)


def parse_frame(line: bytes) -> WebSocketFrame:
    """The frame that a line tells. Raises CassetteError."""
    try:
        text = line.decode("utf-8")
        fields = json.loads(text)
        return _read_closing(fields) or _read_message(text, fields)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        excerpt = line[:80].decode("utf-8", "replace")
        raise CassetteError(
            f"this line of a dialogue tells no frame ({error}): {excerpt}"
        ) from None


def _read_closing(fields: dict[str, Any]) -> WebSocketFrame | None:
    by: Literal["got", "sent"] = "got" if "got close" in fields else "sent"
    for name in ("got close", "sent close", "failed"):
        if name in fields:
            code = fields[name]
            if type(code) is not int or not 1000 <= code <= 4999:
                raise ValueError(f"{code!r} is not a close code")
            reason = str(fields.get("reason", "")).encode("utf-8")
            return WebSocketFrame(
                by, "failed" if name == "failed" else "close", reason, code or NO_CODE
            )
    return None


def _read_message(text: str, fields: dict[str, Any]) -> WebSocketFrame:
    by: Literal["got", "sent"] = "got" if "got" in fields else "sent"
    way = fields.get("as", "text")
    parts = tuple(int(part) for part in fields.get("parts", ()))
    return WebSocketFrame(
        by,
        "binary" if way in ("binary", "base64") else "text",
        _read_payload(text, fields, fields[by], way),
        parts=parts,
        complete=not fields.get("open", False),
    )


def _read_payload(text: str, fields: dict[str, Any], value: Any, way: str) -> bytes:
    if way in ("base64", "base64 text"):
        return base64.b64decode(value, validate=True)
    if way not in ("text", "binary"):
        raise ValueError(f"as: {way!r} is not known")
    if type(value) is str:
        return value.encode("utf-8")
    if "json" in fields or "head" in fields or "tail" in fields:
        core = dialect(fields.get("json", "compact")).encode(value)
        return f"{fields.get('head', '')}{core}{fields.get('tail', '')}".encode()
    start = _HEAD.match(text)
    if start is None:  # written by hand, in an order of its own
        return _COMPACT.encode(value).encode("utf-8")
    return text[start.end() : _decode(text, start.end())[1]].encode("utf-8")


# ---------------------------------------------------------------- turns

_ENDS: Final = frozenset(
    {
        *(
            "response.done",
            "response.completed",
            "response.failed",
            "response.incomplete",
            "response.cancelled",
        ),
        *("error", "done", "Termination", "agent_response", "session.closed"),
    }
)
"""`type` of the messages that end a turn: OpenAI Realtime and Responses; others'."""

_SERVER_ENDS: Final = frozenset(
    {"turnComplete", "turn_complete", "generationComplete", "generation_complete"}
)
"""What Gemini Live's `serverContent` holds at the end of a turn."""

_PAUSES: Final = frozenset({"toolCall", "tool_call", "goAway", "go_away"})
"""Messages of Gemini Live after which it waits for the program."""

_HINTS: Final = re.compile(
    rb'"(?:(?:got|sent) close|failed|error|done|Termination|agent_response|session\.closed'
    rb"|response\.(?:done|completed|failed|incomplete|cancelled)"
    rb'|turn_?[cC]omplete|generation_?[cC]omplete|tool_?[cC]all|go_?[aA]way)"'
)


class TurnWatch:
    """Fed with the lines of one dialogue, says which of them ends a turn.
    (encoding/http/completion.py says it of streams.)
    """

    def feed(self, line: bytes) -> bool:
        """Never raises."""
        if _HINTS.search(line) is None:
            return False
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            return False
        return (
            isinstance(fields, dict)
            and ("got" not in fields or _is_turn_end(fields["got"]))
            and "sent" not in fields
        )


def _is_turn_end(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    content = value.get("serverContent") or value.get("server_content")
    return (
        (isinstance(value.get("type"), str) and value["type"] in _ENDS)
        or not _PAUSES.isdisjoint(value)
        or (isinstance(content, dict) and not _SERVER_ENDS.isdisjoint(content))
    )
