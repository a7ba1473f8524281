"""Has a reply said all that counts? Looks for terminal events while a stream is recorded. Pure: no
I/O.

A call is committed before the chunk that completes its terminal event reaches the program, so this
runs on every chunk and must cost next to nothing: an event is looked at once, when it is complete,
first for a few words and only then by its structure. A model that writes "[DONE]" in its text ends
nothing.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from typing import Any, Final

from tape_jupyter.encoding.http.aws_event_stream import (
    PRELUDE,
    frame_headers,
    frame_payload,
    is_prelude,
)
from tape_jupyter.encoding.http.content_encoding import Decoder, codings

_NAMES: Final = frozenset(
    {
        *("message_stop", "error"),  # Anthropic
        *(
            "response.completed",
            "response.failed",
            "response.incomplete",
            "response.cancelled",
        ),  # OpenAI Responses
        *(
            "message-end",
            "interaction.completed",
            "interaction.complete",
            "done",
        ),  # Cohere, Gemini interactions
    }
)
_HINTS: Final = (b"[DONE]", b"finishReason", b"error", b"jsonrpc")
_TYPE_HINTS: Final = (
    *(b"message_stop", b"message-end", b"interaction.complete", b"event: done", b"event:done"),
    *(b"response.completed", b"response.failed", b"response.incomplete", b"response.cancelled"),
)
_LINE_HINTS: Final = (b'"done"', b'"error"', b'"is_finished"')
_HEADER_HINTS: Final = (b"messageStop", b"metadata", b"exception", b"error")
_FRAME_ENDS: Final = frozenset({"messageStop", "metadata"})
_SSE: Final = re.compile(rb"(?:data|event|id|retry)?:")


class TerminalWatch:
    """Fed with the network reads of one reply, says which of them completes it.

    `declared_length` is the content-length, None without one. A reply may have several terminal
    events (OpenAI's `response.completed`, then `[DONE]` from some hosts): each is told.
    """

    __slots__ = ("_declared", "_decoder", "_detector", "_first", "_received")

    def __init__(
        self, content_type: str = "", content_encoding: str = "", declared_length: int | None = None
    ) -> None:
        self._declared, self._received = declared_length, 0
        self._decoder = Decoder(content_encoding) if codings(content_encoding) else None
        self._detector: Callable[[bytes], bool] | None = _choose_detector(content_type)
        self._first = b""

    def feed(self, chunk: bytes) -> bool:
        """True if the chunk completes a terminal event, or holds the last declared byte. Never
        raises.
        """
        self._received += len(chunk)
        data = chunk if self._decoder is None else self._decoder.feed(chunk)
        detector = self._detector or self._sniff_kind
        return detector(data) or (self._declared is not None and self._received >= self._declared)

    def _sniff_kind(self, data: bytes) -> bool:
        """Without a telling content-type the first bytes tell."""
        self._first += data
        if len(self._first) < PRELUDE:
            return False
        first, self._first = self._first, b""
        if is_prelude(first):
            self._detector = _Frames().scan_data
        elif _SSE.match(first):
            self._detector = _Events().scan_data
        else:
            self._detector = _detect_nothing
        return self._detector(first)


def _choose_detector(content_type: str) -> Callable[[bytes], bool] | None:
    kind = content_type.lower()
    if "amazon.eventstream" in kind:
        return _Frames().scan_data
    if "event-stream" in kind:
        return _Events().scan_data
    if any(marker in kind for marker in ("ndjson", "jsonl", "json-seq", "stream+json")):
        return _Lines().scan_data
    return None


def _detect_nothing(_data: bytes) -> bool:
    return False


class _Parts:
    """Bytes of an event that is not complete yet, so that each byte is copied once."""

    __slots__ = ("_parts", "_tail")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._tail = b""

    def scan_data(self, data: bytes) -> bool:
        if not self._parts and self._find_border(data, 0) == len(data):
            return self._is_last(data)  # one read, one event: the usual case
        ended, start = False, 0
        window, known = self._tail + data, len(self._tail)
        while True:
            end = self._find_border(window, max(start, 0))
            if end < 0:
                break
            begin = max(start, known)
            if self._parts:
                event = b"".join((*self._parts, window[begin:end]))
            else:
                event = window[begin:end]
            self._parts = []
            ended = self._is_last(event) or ended
            start = end
        rest = window[max(start, known) :]
        if rest:
            self._parts.append(rest)
        self._tail = window[max(start, len(window) - 2) :]
        return ended

    def _find_border(self, window: bytes, start: int) -> int:
        """Where the event that begins at `start` ends in the window, -1 if it does not."""
        raise NotImplementedError

    def _is_last(self, event: bytes) -> bool:
        raise NotImplementedError


class _Events(_Parts):
    """Server-sent events: a blank line ends each."""

    __slots__ = ()

    def _find_border(self, window: bytes, start: int) -> int:
        blank = window.find(b"\n\n", start)
        end = blank + 2 if blank >= 0 else -1
        if b"\r" in window:
            crlf, cr = window.find(b"\n\r\n", start), window.find(b"\r\r", start)
            end = min(
                (
                    e
                    for e in (end, crlf + 3 if crlf >= 0 else -1, cr + 2 if cr >= 0 else -1)
                    if e >= 0
                ),
                default=-1,
            )
        return end

    def _is_last(self, event: bytes) -> bool:
        if event.startswith(b"event:") and event.endswith(b"delta", 0, event.find(b"\n")):
            return False  # nine of ten events, told by their name
        typed = b'type"' in event or event.startswith(b"event")
        # any() would cost twice as much, on every token
        for hint in (*_HINTS, *_TYPE_HINTS) if typed else _HINTS:
            if hint in event:
                return _is_terminal_event(event)
        return False


def _is_terminal_event(event: bytes) -> bool:
    fields: dict[bytes, list[bytes]] = {}
    for line in event.splitlines():
        name, _, value = line.partition(b":")
        fields.setdefault(name, []).append(value.removeprefix(b" "))
    if any(name.decode("utf-8", "replace") in _NAMES for name in fields.get(b"event", ())):
        return True
    data = b"\n".join(fields.get(b"data", ()))
    return data.strip() == b"[DONE]" or _is_terminal_value(_parse_object(data))


def _is_terminal_value(value: Any) -> bool:
    """Whether the JSON of an event is the last of its stream: its type, Gemini's finishReason, an
    error, an answer.
    """
    if not isinstance(value, dict):
        return False
    if any(
        isinstance(value.get(key), str) and value[key] in _NAMES for key in ("type", "event_type")
    ):
        return True
    if value.get("error"):
        return True
    if "jsonrpc" in value:
        return "id" in value and "result" in value
    inner = value.get("response")
    candidates = value.get("candidates") or (
        inner.get("candidates") if isinstance(inner, dict) else None
    )
    return isinstance(candidates, list) and any(
        isinstance(c, dict) and c.get("finishReason") for c in candidates
    )


def _parse_object(data: bytes) -> Any:
    try:
        return json.loads(data) if data[:1] == b"{" else None
    except (ValueError, RecursionError):
        return None


class _Lines(_Parts):
    """JSON lines (Ollama, Cohere's older form)."""

    __slots__ = ()

    def _find_border(self, window: bytes, start: int) -> int:
        return window.find(b"\n", start) + 1 or -1

    def _is_last(self, event: bytes) -> bool:
        if not any(hint in event for hint in _LINE_HINTS):
            return False
        value = _parse_object(event.strip())
        return isinstance(value, dict) and (
            value.get("done") is True
            or value.get("is_finished") is True
            or bool(value.get("error"))
        )


class _Frames:
    """Amazon's event stream: each frame tells its length."""

    __slots__ = ("_need", "_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size, self._need = 0, PRELUDE

    def scan_data(self, data: bytes) -> bool:
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._need:
            return False
        buffer, start, ended = b"".join(self._parts), 0, False
        self._need = PRELUDE
        while len(buffer) - start >= PRELUDE:
            if not is_prelude(buffer[start : start + PRELUDE]):
                # no event stream after all: the bytes are kept by the recorder, nothing is looked
                # for
                return ended
            (total,) = struct.unpack_from(">I", buffer, start)
            if len(buffer) - start < total:
                self._need = total
                break
            ended = _is_terminal_frame(buffer[start : start + total]) or ended
            start += total
        self._parts, self._size = [buffer[start:]], len(buffer) - start
        return ended


def _is_terminal_frame(frame: bytes) -> bool:
    (length,) = struct.unpack_from(">I", frame, 4)
    head = frame[PRELUDE : PRELUDE + length]
    if any(hint in head for hint in _HEADER_HINTS):
        headers = frame_headers(frame) or {}
        return headers.get(":event-type") in _FRAME_ENDS or headers.get(":message-type") in (
            "exception",
            "error",
        )
    return b"chunk" in head and _is_terminal_chunk(frame_payload(frame))


def _is_terminal_chunk(payload: bytes) -> bool:
    """InvokeModelWithResponseStream: the model's own event in base64; Bedrock adds its metrics to
    the last.
    """
    value = _parse_object(payload)
    try:
        inner = base64.b64decode(value["bytes"]) if isinstance(value, dict) else b""
    except (TypeError, ValueError, KeyError):
        return False
    if b"message_stop" not in inner and b"amazon-bedrock-invocationMetrics" not in inner:
        return False
    event = _parse_object(inner)
    if not isinstance(event, dict):
        return False
    return event.get("type") == "message_stop" or "amazon-bedrock-invocationMetrics" in event
