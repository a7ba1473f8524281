"""WebSockets of aiohttp (`ClientSession.ws_connect`): what is said both ways, live and played.

The handshake is a request like any other and is asked for at the connector
(instrumentation/http/aiohttp.py). Live, messages are told where the program takes them from
aiohttp's queue, and before they are sent; in replay aiohttp's own client runs over a transport that
speaks what was recorded (instrumentation/websocket/replay_transport.py). Pings and pongs are the
library's own business.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, Play, Reply
from tape_jupyter.core.websocket import NO_CODE, WebSocketFrame
from tape_jupyter.encoding.http.websocket import line_of
from tape_jupyter.instrumentation.http.replayed_response import class_name, thawed
from tape_jupyter.instrumentation.patching import sending_live
from tape_jupyter.instrumentation.websocket.capture import Sent
from tape_jupyter.instrumentation.websocket.replay_transport import PlayedTransport

Door = Callable[..., Coroutine[Any, Any, Any]]


def is_websocket(req: Any) -> bool:
    """Whether this request asks for a WebSocket."""
    return "websocket" in req.headers.get("Upgrade", "").lower()


def address(req: Any) -> str:
    """The address as a WebSocket's; aiohttp takes http:// for ws:// as well."""
    return str(
        req.url.with_scheme({"http": "ws", "https": "wss"}.get(req.url.scheme, req.url.scheme))
    )


class PlayedWebSocket:
    """One recorded WebSocket that is played: its transport, and what was raised where it was lost."""

    def __init__(self, play: Play, protocol: Any, host: str, port: int) -> None:
        self.reply = cast("Reply", play.reply)
        self.transport = _Transport(play, protocol, (host, port))

    def failure(self) -> BaseException | None:
        """What aiohttp found wrong with a message of the server's, if the recorded connection ended
        by that.
        """
        if not class_name(self.reply.error).endswith(":WebSocketError"):
            return None
        return thawed(self.reply.error)


class _Transport(PlayedTransport):
    """Takes aiohttp's own close after the server's, as a connection does that is not lost."""

    _closed = False

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        super().close()

    abort = close

    def _deliver_frame(self, frame: WebSocketFrame) -> None:
        lost = frame.kind == "lost" and not class_name(self.reply.error).endswith(":WebSocketError")
        self._closed = self._closed or lost
        super()._deliver_frame(frame)


def heartbeat(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """What stands in for `ClientWebSocketResponse._send_heartbeat`: its task takes no number among
    the program's.
    """

    @functools.wraps(original)
    def send_heartbeat(ws: Any) -> None:
        if instrumentation.current() is None:
            return original(ws)
        with sending_live():
            return original(ws)

    return send_heartbeat


def capture_websocket(ws: Any, capture: Capture) -> None:
    """Tell `capture` what is said over a live WebSocket."""
    ws._reader = reader = _RecordingQueue(ws._reader, capture)  # noqa: SLF001
    _wrap_send_frame(
        ws._writer,  # noqa: SLF001
        Sent(lambda frame: capture.chunk(line_of(frame)), bool, lambda: reader.closed),
    )


def play_websocket(ws: Any, played: PlayedWebSocket) -> None:
    """Let the recorded server hear what the program says, and the program read what is due."""
    ws._reader = reader = _ReplayQueue(ws._reader, played)  # noqa: SLF001
    transport = played.transport
    _wrap_send_frame(
        ws._writer,  # noqa: SLF001
        Sent(transport.receive_frame, transport.pinged, lambda: reader.closed),
    )


def _wrap_send_frame(writer: Any, sent: Sent) -> None:
    send = writer.send_frame

    @functools.wraps(send)
    async def send_frame(message: Any, opcode: int, compress: int | None = None) -> None:
        sent.feed(int(opcode), bytes(message), fin=True)
        await send(message, opcode, compress)

    writer.send_frame = send_frame


class _Queue:
    """Stands before the queue that aiohttp puts messages into."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.closed = False
        """The server's close was read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _RecordingQueue(_Queue):
    """Tells each message just before the program has it."""

    def __init__(self, queue: Any, capture: Capture) -> None:
        super().__init__(queue)
        self._capture = capture

    async def read(self) -> Any:
        try:
            message = await self._queue.read()
        except (asyncio.CancelledError, TimeoutError):  # the program may read on
            raise
        except BaseException as error:
            self._capture.fail(
                EOFError("the connection ended without a close") if _is_eof(error) else error
            )
            raise
        frame = _to_frame(message)
        if frame is not None:
            self._capture.chunk(line_of(frame))
            if frame.kind == "close":
                self.closed = True
                self._capture.finish()
        return message


class _ReplayQueue(_Queue):
    """Waits no longer than the recorded dialogue's patience."""

    def __init__(self, queue: Any, played: PlayedWebSocket) -> None:
        super().__init__(queue)
        self._played = played
        self._guarded = played.transport.guard(queue.read)

    async def read(self) -> Any:
        try:
            message = await self._guarded()
        except Exception as error:
            failure = self._played.failure() if _is_eof(error) else None
            if failure is not None:
                raise failure from None
            raise
        frame = _to_frame(message)
        self.closed = self.closed or (frame is not None and frame.kind == "close")
        return message


def _is_eof(error: BaseException) -> bool:
    return type(error).__name__ == "EofStream"


def _to_frame(message: Any) -> WebSocketFrame | None:
    """A message that aiohttp read; None for pings, pongs, and what the library tells itself."""
    kind, data = message.type.name, message.data
    if kind == "TEXT":
        return WebSocketFrame(
            "got", "text", data.encode("utf-8") if isinstance(data, str) else bytes(data)
        )
    if kind == "BINARY":
        return WebSocketFrame("got", "binary", bytes(data))
    if kind == "CLOSE":
        return WebSocketFrame(
            "got", "close", str(message.extra or "").encode("utf-8"), data or NO_CODE
        )
    return None
