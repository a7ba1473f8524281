"""The older asyncio client of `websockets` (`websockets.legacy.client`; to 13 it was
`websockets.connect`).

It has no protocol without I/O that could be listened to, so frames are heard where it reads and
writes them, and the handshake where it reads the answer. In replay it runs over the same transport
as the newer client (instrumentation/websocket/replay_transport.py).

A redirect to another origin is followed by a connection of its own making, which no tap sees: the
guard does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, Play, Reply, Request
from tape_jupyter.core.context import SENDING
from tape_jupyter.encoding.http.websocket import line_of
from tape_jupyter.instrumentation import stepping_hook
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.http.replayed_response import await_cancel, thawed
from tape_jupyter.instrumentation.patching import sending, sending_live, swap
from tape_jupyter.instrumentation.websocket.capture import (
    LIVE,
    PLAYED,
    Assembler,
    Sent,
    Tell,
    mark,
    pinging,
    repeatable,
    request_headers,
)
from tape_jupyter.instrumentation.websocket.replay_transport import PlayedTransport


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap `Connect` of `module` (websockets.legacy.client). Returns the undo."""
    return swap(module.Connect, "__await_impl__", _wrap_connect)


def _wrap_connect(original: Callable[[Any], Any]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    @functools.wraps(original)
    async def connect_taped(connect: Any) -> Any:
        if instrumentation.current() is not None and not SENDING.get():
            # the one place where an attempt begins
            factory = connect._create_connection  # noqa: SLF001
            attempt = _Attempt(factory.func, *factory.args, **factory.keywords)
            attempt.connect = connect
            connect._create_connection = attempt  # noqa: SLF001
        return await original(connect)

    return connect_taped


class _Attempt(functools.partial[Any]):
    """Makes the connection of one attempt: a real one, or one that was recorded. A redirect looks
    into its parts.
    """

    connect: Any

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        make = functools.partial(super().__call__, *args, **kwargs)
        tape = instrumentation.current()
        if tape is None or SENDING.get():
            return await make()
        factory, uri = self.args[0], self.connect._uri  # noqa: SLF001
        options = factory.keywords
        options["extra_headers"] = repeatable(options["extra_headers"])
        added = request_headers(options["extra_headers"], options["user_agent_header"])
        threads.settle_origin()
        decision = await stepping_hook.begin_call(tape, Request("GET", uri, added))
        if decision is None:
            return await make()
        if isinstance(decision, Play):
            return await _play_connection(decision, factory)
        with sending(decision):
            transport, protocol = await make()
        _capture_frames(protocol, decision)
        return transport, protocol


def _capture_frames(protocol: Any, capture: Capture) -> None:
    parts, opened = Assembler("got"), []
    read, answer, lose, shake = (
        getattr(protocol, name)
        for name in ("read_frame", "read_http_response", "connection_lost", "handshake")
    )

    @functools.wraps(read)
    async def read_frame(*args: Any, **kwargs: Any) -> Any:
        frame = await read(*args, **kwargs)
        message = parts.feed(frame.opcode, frame.data, frame.fin)
        if message is not None:
            capture.chunk(line_of(message))
        return frame

    @functools.wraps(answer)
    async def read_http_response() -> Any:
        status, headers = await answer()
        capture.head(status, tuple(headers.raw_items()))
        opened.append(status == 101)
        if status != 101:
            capture.finish()
        return status, headers

    @functools.wraps(lose)
    def connection_lost(error: BaseException | None) -> None:
        rest = parts.rest()
        if any(opened):
            if rest is not None:
                capture.chunk(line_of(rest))
            if protocol.close_rcvd is None and protocol.close_sent is None:
                capture.fail(error or EOFError("the connection ended without a close"))
            capture.finish()
        lose(error)

    @functools.wraps(shake)
    async def handshake_taped(*args: Any, **kwargs: Any) -> None:
        with sending(capture):
            await shake(*args, **kwargs)

    protocol.read_frame, protocol.read_http_response = read_frame, read_http_response
    protocol.connection_lost, protocol.handshake = connection_lost, handshake_taped
    protocol.ping = pinging(protocol.ping)
    mark(protocol, LIVE)
    _capture_sent(protocol, lambda frame: capture.chunk(line_of(frame)), echo=False)


def _capture_sent(
    protocol: Any, on_message: Tell, *, echo: bool, pinged: Callable[[bytes], object] = bool
) -> None:
    """Tell what goes out before it does; with `echo` also the close that only answers the server's."""
    sent = Sent(on_message, pinged, lambda: not echo and protocol.close_rcvd is not None)
    write = protocol.write_frame_sync

    @functools.wraps(write)
    def write_frame_sync(fin: bool, opcode: int, data: Any) -> None:
        sent.feed(opcode, data, fin)
        write(fin, opcode, data)

    protocol.write_frame_sync = write_frame_sync
    protocol.fail_connection = sent.failing(protocol.fail_connection)


async def _play_connection(play: Play, factory: functools.partial[Any]) -> Any:
    reply = cast("Reply", play.reply)
    if reply.status is None:
        await await_cancel(reply.error)
        raise thawed(reply.error)
    protocol = factory()
    transport = PlayedTransport(
        play, protocol, (factory.keywords["host"], factory.keywords["port"]), echoes_later=True
    )
    mark(protocol, PLAYED)
    _capture_sent(protocol, transport.receive_frame, echo=True, pinged=transport.pinged)
    protocol.connection_made(transport)
    transport.give_up = protocol.fail_connection
    shake, interval = protocol.handshake, protocol.ping_interval

    @functools.wraps(shake)
    async def handshake_played(*args: Any, **kwargs: Any) -> None:
        protocol.ping_interval = None  # a recorded server needs no pings to stay
        # the client's tasks take no number among the program's, as they took none when recorded
        with sending_live():
            await shake(*args, **kwargs)
        protocol.ping_interval = interval

    protocol.handshake = handshake_played
    protocol.ping = pinging(protocol.ping)
    protocol.recv = transport.guard(protocol.recv)
    protocol.send = transport.refusing(protocol.send)
    return transport, protocol
