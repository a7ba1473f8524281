"""The threads client of `websockets` 13 and later (`websockets.sync.client`): OpenAI's realtime
clients.

`connect` is a function, and people hold it by its own name: its code is replaced, not the name.
Since 17.1 it makes a `reconnect`, which follows redirects: there each attempt is a call, as for the
asyncio client. Live, the protocol is listened to (instrumentation/websocket/capture.py); in replay
the library's own client runs over a socket that speaks what was recorded
(instrumentation/websocket/replay_socket.py).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, Play, Reply, Request
from tape_jupyter.core.context import SENDING
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.http.replayed_response import thawed
from tape_jupyter.instrumentation.patching import sending, sending_live, swap
from tape_jupyter.instrumentation.tools.code_swap import clone, trampoline
from tape_jupyter.instrumentation.websocket.capture import (
    PLAYED,
    capture_protocol,
    check_client,
    hear_sent,
    loss,
    mark,
    pinging,
    reminder,
    repeatable,
    request_headers,
)
from tape_jupyter.instrumentation.websocket.replay_socket import PlayedSocket

_UNUSED = {"path": None, "unix": False, "sock": None, "ssl": None, "proxy": None, "proxy_ssl": None}
"""Options about the network, as a connection without one needs them."""


class _Attempt(NamedTuple):
    """One attempt to connect: what the program asked for, and what opens it with some options
    changed.
    """

    module: ModuleType
    uri: str
    options: Mapping[str, Any]
    open: Callable[[dict[str, Any]], Any]

    @property
    def connection_factory(self) -> Callable[..., Any]:
        """What makes a connection of a socket and a protocol."""
        make: Callable[..., Any] = (
            self.options.get("create_connection") or self.module.ClientConnection
        )
        return make


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap each attempt of `module.connect` (websockets.sync.client). Returns the undo; raises where
    it is not known.
    """
    check_client(module)
    if hasattr(module, "reconnect"):
        # it opens nothing until it is entered
        vars(module.reconnect("ws://localhost"))["create_connection"]
        return swap(
            module.reconnect, "open_connection", functools.partial(_wrap_open_connection, module)
        )
    connect = module.connect
    original_code, body = connect.__code__, clone(connect)
    code = trampoline(connect, _ConnectHook(module, body))
    if code is None:
        return lambda: None
    connect.__code__ = code

    def undo() -> None:
        if connect.__code__ is code:
            connect.__code__ = original_code

    return undo


def _wrap_open_connection(
    module: ModuleType, original: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """What stands in for `reconnect.open_connection`, since 17.1."""

    @functools.wraps(original)
    def open_connection(reconnect: Any, deadline: Any) -> Any:
        def open_changed(options: dict[str, Any]) -> Any:
            attempt = copy.copy(reconnect)
            vars(attempt).update(options)
            return original(attempt, deadline)

        if instrumentation.current() is None or SENDING.get():
            return original(reconnect, deadline)
        reconnect.additional_headers = repeatable(reconnect.additional_headers)
        return _open_attempt(_Attempt(module, reconnect.uri, vars(reconnect), open_changed))

    return open_connection


class _ConnectHook:
    """What stands in for `connect`, to 17.0."""

    def __init__(self, module: ModuleType, body: Callable[..., Any]) -> None:
        self.module, self.body = module, body

    def __call__(self, uri: str, **options: Any) -> Any:
        if instrumentation.current() is None or SENDING.get():
            return self.body(uri, **options)
        options["additional_headers"] = repeatable(options.get("additional_headers"))
        return _open_attempt(
            _Attempt(
                self.module, uri, options, lambda changed: self.body(uri, **{**options, **changed})
            )
        )


def _open_attempt(attempt: _Attempt) -> Any:
    tape = instrumentation.current()
    assert tape is not None
    threads.settle_origin()
    added = request_headers(
        attempt.options["additional_headers"], attempt.options.get("user_agent_header")
    )
    decision = tape.begin(Request("GET", attempt.uri, added))
    if decision is None:
        return attempt.open({})
    if isinstance(decision, Play):
        return _play_connection(decision, attempt)
    return _record_connection(decision, attempt)


def _record_connection(capture: Capture, attempt: _Attempt) -> Any:
    connections: list[Any] = []

    def make_recorded(socket: Any, protocol: Any, **more: Any) -> Any:
        capture_protocol(protocol, capture, lambda: loss(connections[0]) if connections else None)
        connection = attempt.connection_factory(socket, protocol, **more)
        connections.append(connection)
        connection.ping = pinging(connection.ping)
        connection.start_keepalive = _make_uncounted(getattr(connection, "start_keepalive", bool))
        return connection

    with sending(capture):
        return attempt.open({"create_connection": make_recorded})


def _make_uncounted(start: Callable[[], object]) -> Callable[[], None]:
    """`start`, whose thread takes no number among the program's."""

    def start_uncounted() -> None:
        with sending_live():
            start()

    return start_uncounted


def _play_connection(play: Play, attempt: _Attempt) -> Any:
    reply = cast("Reply", play.reply)
    if reply.status is None:
        raise thawed(reply.error)
    where = attempt.module.parse_uri(attempt.uri)
    socket = PlayedSocket(play, (where.host, where.port))

    def make_played(_socket: Any, protocol: Any, **more: Any) -> Any:
        mark(protocol, PLAYED)
        hear_sent(protocol, socket.receive_frame, socket.pinged)
        connection = attempt.connection_factory(socket, protocol, **more)
        connection.ping = pinging(connection.ping)
        connection.start_keepalive = do_nothing
        socket.give_up = functools.partial(_fail_connection, connection)
        return connection

    changed: dict[str, Any] = {
        name: value for name, value in _UNUSED.items() if name in attempt.options
    }
    changed |= {"sock": socket, "create_connection": make_played}
    if where.secure:
        changed["ssl"] = _NoTls()
    # its thread takes no number among the program's, as it took none when recorded
    with sending_live():
        connection = attempt.open(changed)
    return _guard_connection(connection, socket)


def _guard_connection(connection: Any, socket: PlayedSocket) -> Any:
    socket.remind = reminder(connection)
    connection.recv = socket.guard(connection.recv, bounded=_has_timeout)
    connection.recv_streaming = socket.guard_pieces(connection.recv_streaming)
    connection.send = socket.guard(connection.send, bounded=lambda *_, **__: True)
    return connection


def _fail_connection(connection: Any, code: int, reason: str) -> None:
    """What the library does where it ends a connection itself."""
    with connection.protocol_mutex:
        connection.protocol.fail(code, reason)


def _has_timeout(timeout: float | None = None, *_args: Any, **_options: Any) -> bool:
    return timeout is not None


class _NoTls:
    """Stands in for an SSLContext: what was recorded needs no cipher."""

    def wrap_socket(self, sock: Any, **_options: Any) -> Any:
        return sock
