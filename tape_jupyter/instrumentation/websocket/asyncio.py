"""The asyncio client of `websockets` 13.1 and later (`websockets.asyncio.client`): OpenAI's, Gemini
Live.

The tap lies where one attempt makes its connection (`connect.create_connection`, since 17
`open_tcp_connection`), below redirects and reconnecting: each attempt is a call. Live, the protocol
is listened to (instrumentation/websocket/capture.py); in replay the library's own client runs over
a transport that speaks what was recorded (instrumentation/websocket/replay_transport.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, Play, Reply, Request
from tape_jupyter.core.context import SENDING
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.instrumentation import stepping_hook
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.http.replayed_response import await_cancel, thawed
from tape_jupyter.instrumentation.patching import sending, sending_live, swap
from tape_jupyter.instrumentation.websocket.capture import (
    PLAYED,
    capture_protocol,
    check_client,
    hear_sent,
    loss,
    mark,
    pinging,
    repeatable,
    request_headers,
)
from tape_jupyter.instrumentation.websocket.replay_transport import PlayedTransport


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap each attempt of `module.connect` (websockets.asyncio.client). Gives the undo; raises if
    it is unknown.
    """
    check_client(module)

    def wrap_attempt(original: Callable[[Any], Any]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        @functools.wraps(original)
        async def create_connection(connect: Any) -> Any:
            tape = instrumentation.current()
            if tape is None or SENDING.get():
                return await original(connect)
            threads.settle_origin()
            decision = await stepping_hook.begin_call(tape, _build_request(connect))
            if decision is None:
                return await original(connect)
            if isinstance(decision, Play):
                return await _play_connection(decision, connect, module.parse_uri(connect.uri))
            return await _record_connection(decision, connect, original)

        return create_connection

    until_16 = hasattr(module.connect, "create_connection")
    undo = swap(
        module.connect, "create_connection" if until_16 else "open_tcp_connection", wrap_attempt
    )
    try:
        probe = module.connect("ws://localhost")  # opens nothing until it is awaited
        _build_request(probe), _find_factory(probe)
    except Exception:
        undo()
        raise
    return undo


def _find_factory(connect: Any) -> Callable[[Any], Any]:
    factory: Callable[[Any], Any] = (
        connect.factory if hasattr(connect, "factory") else connect.protocol_factory
    )
    return factory


def _build_request(connect: Any) -> Request:
    if hasattr(connect, "handshake_args"):  # websockets 13 and 14
        headers, agent = connect.handshake_args
        headers = repeatable(headers)
        connect.handshake_args = (headers, agent)
    else:
        headers = connect.additional_headers = repeatable(connect.additional_headers)
        agent = connect.user_agent_header
    return Request("GET", connect.uri, request_headers(headers, agent))


async def _record_connection(capture: Capture, connect: Any, original: Callable[[Any], Any]) -> Any:
    with sending(capture):
        connection = await original(connect)
    ends: list[BaseException | None] = []
    capture_protocol(
        connection.protocol,
        capture,
        lambda: next((end for end in ends if end is not None), loss(connection)),
    )
    lose, shake, keep = connection.connection_lost, connection.handshake, connection.start_keepalive

    @functools.wraps(lose)
    def connection_lost(error: BaseException | None) -> None:
        ends.append(error)
        lose(error)

    @functools.wraps(shake)
    async def handshake_taped(*args: Any, **kwargs: Any) -> None:
        with sending(capture):
            await shake(*args, **kwargs)

    @functools.wraps(keep)
    def start_keepalive() -> None:
        with sending_live():  # its task takes no number among the program's
            keep()

    connection.connection_lost, connection.handshake = connection_lost, handshake_taped
    connection.start_keepalive = start_keepalive
    connection.ping = pinging(connection.ping)
    return connection


async def _play_connection(play: Play, connect: Any, where: Any) -> Any:
    reply = cast("Reply", play.reply)
    if reply.status is None:
        await await_cancel(reply.error)
        raise thawed(reply.error)
    connection = _find_factory(connect)(where)
    transport = PlayedTransport(play, connection, (where.host, where.port))
    mark(connection.protocol, PLAYED)
    hear_sent(connection.protocol, transport.receive_frame, transport.pinged)
    connection.connection_made(transport)
    transport.give_up = connection.protocol.fail
    connection.start_keepalive = do_nothing
    connection.ping = pinging(connection.ping)
    connection.recv = transport.guard(connection.recv)
    connection.recv_streaming = transport.guard_pieces(connection.recv_streaming)
    connection.send = transport.refusing(connection.send)
    return connection
