"""Listens to a WebSocket where the `websockets` library has its protocol, for its sync and asyncio
clients.

Both clients drive one object without I/O (`websockets.client.ClientProtocol`): every frame that
arrives passes its `recv_frame` before the program can have it, every frame that goes out passes
`send_frame`, whoever made it. The instance's methods are put in front of the class's; nothing of
the connection is known here.

Pings and pongs are the library's own business (keepalive): they are not recorded.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, Literal

from tape_jupyter.core.call import Capture, Headers
from tape_jupyter.core.websocket import NO_CODE, WebSocketFrame
from tape_jupyter.encoding.http.websocket import line_of

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
"""Opcodes (RFC 6455, 5.2)."""

LIVE, PLAYED = "live", "played"
_WAY = "_tape_way"

Tell = Callable[[WebSocketFrame], None]


def check_client(module: ModuleType) -> None:
    """Raises AttributeError where a client of `websockets` has not what its taps hold on to."""
    connection = module.ClientConnection
    for name in ("ping", "recv", "recv_streaming", "send"):
        getattr(connection, name)
    for name in ("fail", "process_response", "receive_eof", "recv_frame", "send_frame"):
        getattr(module.ClientProtocol, name)
    if not hasattr(connection, "set_recv_exc"):
        connection.set_connection_exc  # noqa: B018 - since 17.3


def loss(connection: Any) -> BaseException | None:
    """What a connection broke of; None if it did not. The name is another since websockets 17.3."""
    error: BaseException | None = getattr(connection, "connection_exc", None) or getattr(
        connection, "recv_exc", None
    )
    return error


def mark(protocol: Any, way: str) -> None:
    """Note whether a client's protocol talks to a server (LIVE) or to a recording (PLAYED)."""
    setattr(protocol, _WAY, way)


def marked_way(protocol: Any) -> str:
    """What it is marked as; "" for a connection that was made untaped."""
    return str(getattr(protocol, _WAY, ""))


class Assembler:
    """Makes messages, and the close, of the frames of one direction."""

    def __init__(self, by: Literal["got", "sent"]) -> None:
        self._by = by
        self._kind: Literal["text", "binary"] = "text"
        self._parts: list[bytes] = []

    def feed(self, opcode: int, data: bytes, fin: bool) -> WebSocketFrame | None:
        """The message that this frame completes, or the close; None for pings and pongs, and while
        fragments come.
        """
        if opcode == CLOSE:
            return _parse_close_frame(self._by, data)
        if opcode in (TEXT, BINARY):
            self._kind, self._parts = "text" if opcode == TEXT else "binary", []
        elif opcode != CONTINUED:
            return None
        self._parts.append(bytes(data))
        return self._build_message(complete=True) if fin else None

    def rest(self) -> WebSocketFrame | None:
        """The message that the end of the connection broke off."""
        return self._build_message(complete=False) if self._parts else None

    def _build_message(self, *, complete: bool) -> WebSocketFrame:
        parts, self._parts = self._parts, []
        lengths = tuple(map(len, parts)) if len(parts) > 1 or not complete else ()
        return WebSocketFrame(
            self._by, self._kind, b"".join(parts), parts=lengths, complete=complete
        )


def capture_protocol(
    protocol: Any, capture: Capture, lost: Callable[[], BaseException | None]
) -> None:
    """Tell `capture` all that passes through a live protocol, from the handshake's answer to the
    end.

    `lost()` gives what ended the connection where reading failed.
    """
    mark(protocol, LIVE)
    hear_handshake(protocol, capture)
    hear_sent(protocol, lambda frame: capture.chunk(line_of(frame)))
    parts = Assembler("got")
    receive_frame, receive_eof = protocol.recv_frame, protocol.receive_eof

    @functools.wraps(receive_frame)
    def recv_frame(frame: Any) -> None:
        message = parts.feed(frame.opcode, frame.data, frame.fin)
        if message is not None:
            capture.chunk(line_of(message))
        receive_frame(frame)

    @functools.wraps(receive_eof)
    def received_eof() -> None:
        first, opened = not protocol.reader.eof, protocol.state.name != "CONNECTING"
        receive_eof()
        if first and opened:
            rest = parts.rest()
            if rest is not None:
                capture.chunk(line_of(rest))
            if protocol.close_rcvd is None and protocol.close_sent is None:
                capture.fail(lost() or EOFError("the connection ended without a close"))
            capture.finish()

    protocol.recv_frame, protocol.receive_eof = recv_frame, received_eof


def hear_handshake(protocol: Any, capture: Capture) -> None:
    """Tell the head that answers the handshake; of a refused one the body too, which ends the call."""
    process = protocol.process_response

    @functools.wraps(process)
    def process_response(response: Any) -> None:
        headers = tuple(response.headers.raw_items())
        capture.head(response.status_code, headers, "HTTP/1.1", response.reason_phrase)
        if response.status_code != 101:
            if response.body:
                capture.chunk(bytes(response.body))
            capture.finish()
        try:
            process(response)
        except Exception as error:
            capture.fail(error)
            raise

    protocol.process_response = process_response


def hear_sent(protocol: Any, on_message: Tell, pinged: Callable[[bytes], object] = bool) -> None:
    """Tell what goes out before it does: messages, and the close, unless it only answers the
    server's; and pings.
    """
    sent = Sent(on_message, pinged, lambda: protocol.close_rcvd is not None)
    send = protocol.send_frame

    @functools.wraps(send)
    def send_frame(frame: Any) -> None:
        sent.feed(frame.opcode, frame.data, frame.fin)
        send(frame)

    protocol.send_frame, protocol.fail = send_frame, sent.failing(protocol.fail)


class Sent:
    """What goes out of a client, frame by frame: `on_message` has messages and the close, `pinged` the
    pings.

    `answers()` says whether a close, now, only answers the server's: that is not told.
    """

    def __init__(
        self, on_message: Tell, pinged: Callable[[bytes], object], answers: Callable[[], bool]
    ) -> None:
        self._on_frame, self._pinged, self._answers = on_message, pinged, answers
        self._parts = Assembler("sent")
        self._failing: list[bool] = []

    def feed(self, opcode: int, data: bytes, fin: bool) -> None:
        """Raises what `tell` raises."""
        message = self._parts.feed(opcode, data, fin)
        if message is not None and not (opcode == CLOSE and self._answers()):
            self._on_frame(
                replace(message, kind="failed") if opcode == CLOSE and self._failing else message
            )
        if opcode == PING:
            self._pinged(bytes(data))

    def failing(self, give_up: Callable[..., None]) -> Callable[..., None]:
        """`give_up`, by which the library ends a connection itself: the close that it sends is a
        failed one.
        """

        @functools.wraps(give_up)
        def fail_noted(*args: Any, **kwargs: Any) -> None:
            self._failing.append(True)
            try:
                give_up(*args, **kwargs)
            finally:
                self._failing.pop()

        return fail_noted


def pinging(ping: Callable[..., Any]) -> Callable[..., Any]:
    """`ping` with a payload of its own: the library draws it from the program's `random`, whenever
    a ping is due.
    """
    remind = reminder(ping.__self__)  # type: ignore[attr-defined]

    @functools.wraps(ping)
    def ping_with(data: Any = None, *args: Any, **kwargs: Any) -> Any:
        remind()
        return ping(os.urandom(4) if data is None else data, *args, **kwargs)

    return ping_with


def reminder(connection: Any) -> Callable[[], object]:
    """What warns, blaming the caller's caller, of a `connect` that is used without `with` (sync,
    since 17.1).

    A stand-in for a method calls it first, so that the program is named and not the stand-in.
    """
    remind: Callable[[], object] = getattr(connection, "maybe_raise_legacy_warning", bool)
    return remind


def _parse_close_frame(by: Literal["got", "sent"], data: bytes) -> WebSocketFrame:
    """A close frame as a Frame: two bytes of code, then the reason (RFC 6455, 5.5.1)."""
    code = int.from_bytes(data[:2], "big") if len(data) >= 2 else NO_CODE
    return WebSocketFrame(by, "close", bytes(data[2:]), code)


def repeatable(headers: Any) -> Any:
    """Headers may be given as an iterator, which can be read once."""
    return list(headers) if hasattr(headers, "__next__") else headers


def request_headers(headers: Any, user_agent: str | None) -> Headers:
    """The headers that a program adds to the handshake: a mapping, the library's own Headers, or
    pairs.
    """
    if headers is None:
        pairs: Iterable[tuple[Any, Any]] = ()
    elif hasattr(headers, "raw_items"):
        pairs = headers.raw_items()
    else:
        pairs = headers.items() if isinstance(headers, Mapping) else headers
    agent = (("User-Agent", user_agent),) if user_agent else ()
    return (*((str(name), str(value)) for name, value in pairs), *agent)
