"""The recorded server of a WebSocket, as bytes: how it answers a handshake, how it says its frames.

Frames go uncompressed: permessage-deflate leaves that open for each (RFC 7692, 6).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from tape_jupyter.core.call import Play, Reply
from tape_jupyter.core.websocket import NO_CODE, DueFrame, WebSocketFrame
from tape_jupyter.instrumentation.http.replayed_response import (
    class_name,
    headers,
    is_chunked,
    thawed,
)
from tape_jupyter.instrumentation.websocket.capture import BINARY, CLOSE, CONTINUED, PONG, TEXT

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_KEY = re.compile(rb"\r\nsec-websocket-key:[ \t]*([^\r\n]+)", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"


def greeting(reply: Reply, request: bytes) -> bytes:
    """The answer to a handshake: the recorded head, with the proof that this client's key asks for."""
    pairs = list(headers(reply))
    key = _KEY.search(request)
    if key is not None and not _is_disbelieved(reply):
        proof = base64.b64encode(
            hashlib.sha1(key[1].strip() + _GUID, usedforsecurity=False).digest()
        ).decode("ascii")
        pairs = [
            (name, proof if name.lower() == "sec-websocket-accept" else value)
            for name, value in pairs
        ]
    lines = [
        f"HTTP/1.1 {reply.status} {reply.reason}",
        *(f"{name}: {value}" for name, value in pairs),
        "",
        "",
    ]
    body = reply.readable if reply.status != 101 else b""
    if body and is_chunked(reply):
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return "\r\n".join(lines).encode("latin-1") + body


def _is_disbelieved(reply: Reply) -> bool:
    """The recorded client refused the server's answer (a wrong proof, say): this one must as well."""
    return reply.end == "error" and class_name(reply.error).startswith("websockets.exceptions")


def wire(frame: WebSocketFrame) -> bytes:
    """The bytes of a frame from a server: not masked, not compressed (RFC 6455, 5.2)."""
    if frame.kind == "close":
        code = b"" if frame.code == NO_CODE else frame.code.to_bytes(2, "big")
        return _build_frame(CLOSE, code + frame.data, fin=True)
    first = TEXT if frame.kind == "text" else BINARY
    fragments = frame.fragments
    last = len(fragments) - 1
    return b"".join(
        _build_frame(CONTINUED if number else first, data, fin=frame.complete and number == last)
        for number, data in enumerate(fragments)
    )


def pong(data: bytes) -> bytes:
    """The answer to a ping; the recorded server's, if it gave none, is not missed: nobody waits in
    replay.
    """
    return _build_frame(PONG, data, fin=True)


def _build_frame(opcode: int, data: bytes, *, fin: bool) -> bytes:
    size = len(data)
    if size < 126:
        head = bytes((size,))
    elif size < 65536:
        head = b"\x7e" + size.to_bytes(2, "big")
    else:
        head = b"\x7f" + size.to_bytes(8, "big")
    return bytes((opcode | (0x80 if fin else 0),)) + head + data


class Peer:
    """What all kinds of stand-in know: the recorded call, its handshake, and the refusal that ended
    its play.
    """

    def __init__(self, play: Play) -> None:
        self.reply, self.gate, self.dialogue = cast("Reply", play.reply), play.gate, play.dialogue
        self.refusal: BaseException | None = None
        self.give_up: Callable[[int, str], None] = lambda _code, _reason: None
        self._request, self._greeted, self._left = b"", False, False

    @contextmanager
    def _raise_refusal(self) -> Iterator[None]:
        """What fails inside fails of what ended the play, where that was a refusal."""
        try:
            yield
        except Exception:
            if self.refusal is not None:
                raise self.refusal from None
            raise

    @property
    def _was_rejected(self) -> bool:
        return self.reply.status != 101

    def _find_first_wait(self) -> float:
        if self._was_rejected and self.reply.waits:
            return self.reply.waits[0]
        return 0.0

    def _build_handshake_answer(self, data: bytes) -> bytes | None:
        """The answer, once the whole request of the handshake was written; what is written later is
        heard above.
        """
        if self._greeted:
            return None
        self._request += data
        if _HEAD_END not in self._request:
            return None
        self._greeted = True
        return greeting(self.reply, self._request)

    def _find_next_frame(self) -> DueFrame | None:
        return self.dialogue.take_due_frame() if self.dialogue is not None else None

    def _find_loss(self) -> OSError | None:
        """What reading raised where the recorded connection broke; None where it merely ended."""
        error = thawed(self.reply.error)
        return error if isinstance(error, OSError) else None
