"""Aiohttp's client, and what sends through it: httpx-aiohttp, litellm, google-genai async.

The tape is asked where a connection is: `BaseConnector.connect`, once for each hop of a redirect,
each retry, each request of a middleware; a kept-alive connection from before the cell is asked for
there like any other. What follows on that connection, the sending and the start of the response,
knows the decision by it.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Callable, Coroutine, Mapping
from types import ModuleType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Play, Reply, Request, Tape
from tape_jupyter.core.context import SENDING
from tape_jupyter.core.large_body import LargeBody
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.http import uploads
from tape_jupyter.instrumentation.http.aiohttp_recorded import LiveReply
from tape_jupyter.instrumentation.http.aiohttp_replayed import (
    Nowhere,
    PlayedReply,
    feed_reader,
    replayed_connection,
)
from tape_jupyter.instrumentation.http.replayed_response import (
    await_head,
    await_turn,
    class_name,
    thawed,
    was_cancelled,
)
from tape_jupyter.instrumentation.patching import sending, sending_live, swap, undoing
from tape_jupyter.instrumentation.stepping_hook import begin_call, instead
from tape_jupyter.instrumentation.websocket import aiohttp
from tape_jupyter.instrumentation.websocket.aiohttp import PlayedWebSocket
from tape_jupyter.secrets.spooling import Upload

Door = Callable[..., Coroutine[Any, Any, Any]]

_CALL = "_tape_call"


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the connectors, requests and responses that `module` (aiohttp.client) uses. Returns the
    undo.

    aiohttp before 3.11 is left to the guard: its readers cannot be made to listen.
    """
    from aiohttp.streams import StreamReader

    if "__slots__" not in vars(StreamReader):
        return lambda: None
    tap = _Tap(module)
    return undoing(
        swap(module.BaseConnector, "connect", tap.connect),
        swap(module.ClientRequest, "send", _wrap_send),
        swap(module.ClientResponse, "start", _wrap_start),
        swap(module.ClientSession, "_ws_connect", _wrap_ws_connect),
        swap(module.ClientWebSocketResponse, "_send_heartbeat", aiohttp.heartbeat),
    )


class _Tap:
    """The door at the connector, for one module: it makes connections and errors of that module's
    classes.
    """

    def __init__(self, module: ModuleType) -> None:
        self.client = module

    def connect(self, original: Door) -> Door:
        @functools.wraps(original)
        async def connect_taped(connector: Any, req: Any, *args: Any, **options: Any) -> Any:
            tape = None
            if not SENDING.get():
                tape = instrumentation.tape_here(lambda: _build_visible_request(req))
            if tape is None:
                return await original(connector, req, *args, **options)
            body = await self._drain_body(req, tape)
            url = aiohttp.address(req) if aiohttp.is_websocket(req) else str(req.url)
            threads.settle_origin()
            decision = await begin_call(
                tape, uploads.upload_request(req.method, url, tuple(req.headers.items()), body)
            )
            if decision is None:
                return await original(connector, req, *args, **options)
            if isinstance(decision, Play):
                await self._fail_connecting(decision, req)
                return self._play_connection(decision, connector, req)
            other = instead(decision)
            if other is not None:
                self._change_request(req, other)
            call = LiveReply(decision)
            try:
                with sending_live():
                    connection = await original(connector, req, *args, **options)
            except BaseException as error:
                decision.fail(self._convert_error(error, req))
                raise
            setattr(connection, _CALL, call)
            return connection

        return connect_taped

    def _play_connection(self, decision: Play, connector: Any, req: Any) -> Any:
        from aiohttp.client_proto import ResponseHandler
        from aiohttp.connector import Connection

        protocol = ResponseHandler(asyncio.get_running_loop())
        if decision.dialogue is not None:
            call: Any = PlayedWebSocket(decision, protocol, req.url.host, req.url.port)
            protocol.connection_made(call.transport)
        else:
            call = PlayedReply(decision, protocol, functools.partial(self.error, req=req))
            protocol.connection_made(Nowhere((req.url.host, req.url.port)))
        connection = replayed_connection(connector, Connection, protocol, req.connection_key)
        setattr(connection, _CALL, call)
        return connection

    async def _fail_connecting(self, decision: Play, req: Any) -> None:
        """Raise here what was raised here: aiohttp tries a lost connection again, and not one that
        was never made.
        """
        reply = cast("Reply", decision.reply)
        if reply.status is None and not was_cancelled(reply.error):
            error = self.error(reply.error, req)
            if isinstance(error, (self.client.ClientConnectorError, self._timeout_class)):
                await await_head(decision)
                raise error

    @property
    def _timeout_class(self) -> type[Exception]:
        kind: type[Exception] = getattr(
            self.client, "ConnectionTimeoutError", self.client.ServerTimeoutError
        )
        return kind

    def _convert_error(self, error: BaseException, req: Any) -> BaseException:
        """What `ClientSession` makes of an error of the connector."""
        if not isinstance(error, TimeoutError) or isinstance(error, self.client.ClientError):
            return error
        return self._timeout_class(f"Connection timeout to host {req.url}")

    def error(self, frozen: Mapping[str, Any] | None, req: Any) -> BaseException:
        """The recorded error. Those of aiohttp hold the connection's key or the request: they get
        this one's.
        """
        if frozen and class_name(frozen).startswith("aiohttp."):
            frozen = {name: part for name, part in frozen.items() if name != "text"}
        error: Any = thawed(frozen)
        if isinstance(error, self.client.ClientConnectorError):
            error._conn_key = req.connection_key  # noqa: SLF001
            error.args = tuple(
                req.connection_key if "ConnectionKey(" in str(arg) else arg for arg in error.args
            )
        elif isinstance(error, self.client.ClientResponseError):
            error.request_info, error.history = req.request_info, ()
            error.args = (req.request_info, ())
        elif isinstance(error, (ConnectionRefusedError, socket.gaierror)):  # an injected fault
            error = self.client.ClientConnectorError(req.connection_key, error)
        return cast("BaseException", error)

    async def _drain_body(self, req: Any, tape: Tape) -> bytes | LargeBody:
        """The body as it will be sent, content-encoding on. One that can be read once only is kept
        to be sent.
        """
        body = req.body
        if not body:
            return b""
        sink = _Sink(
            Upload(None)
            if req.compress
            else uploads.begin_upload(tape, lambda: _build_visible_request(req))
        )
        try:
            await body.write(sink)
        except Exception as error:
            raise self._convert_write_error(error, req) from error
        data = sink.upload.finish_body()
        # aiohttp before 3.12 does not know whether it can be sent again
        if getattr(body, "consumed", True):
            self._set_body(req, body, data)
        if req.compress and isinstance(data, bytes):
            return await _compress_body(data, req.compress)
        return data

    def _convert_write_error(self, error: Exception, req: Any) -> Exception:
        """What `ClientRequest.write_bytes` makes of a body that fails while it is sent."""
        if not isinstance(error, OSError):
            message = f"Failed to send bytes into the underlying connection: {error!r}"
            return cast("Exception", self.client.ClientConnectionError(message))
        if error.errno is None and isinstance(error, TimeoutError):
            return error
        return cast(
            "Exception",
            self.client.ClientOSError(error.errno, f"Can not write request body for {req.url}"),
        )

    def _change_request(self, req: Any, other: Request) -> None:
        """What goes out in place of the program's request: a person changed its body."""
        req.chunked, req.compress = None, None
        req.headers.clear()
        req.headers.extend(other.headers)
        self._set_body(req, req.body, other.body)

    def _set_body(self, req: Any, body: Any, data: bytes | LargeBody) -> None:
        from aiohttp.payload import BytesPayload

        large = isinstance(data, LargeBody)
        kept: Any = (_build_spooled_class(BytesPayload) if large else BytesPayload)(b"")
        kept._value = data  # noqa: SLF001
        kept._size = (data.sent or data).size if isinstance(data, LargeBody) else len(data)  # noqa: SLF001
        kept._consumed = True  # noqa: SLF001  # no redirect may repeat it
        if hasattr(body, "close"):
            kept.close = body.close
        setattr(req, "_body" if hasattr(req, "_body") else "body", kept)  # aiohttp 3.12 renamed it


def _build_visible_request(req: Any) -> Request:
    """What can be seen of a request without reading its body."""
    content = getattr(req.body, "_value", b"")
    return Request(
        req.method,
        str(req.url),
        tuple(req.headers.items()),
        content if isinstance(content, bytes) else b"",
    )


def _wrap_send(original: Door) -> Door:
    @functools.wraps(original)
    async def send_taped(req: Any, conn: Any) -> Any:
        call = vars(conn).get(_CALL)
        if isinstance(call, LiveReply):
            call.listen(conn)
            with sending(call.capture):
                return await original(req, conn)
        if isinstance(call, (PlayedReply, PlayedWebSocket)):
            # the task that writes is not the program's, as it was not when it wrote to somebody
            with sending_live():
                return await original(req, conn)
        return await original(req, conn)

    return send_taped


def _wrap_start(original: Door) -> Door:
    @functools.wraps(original)
    async def start_taped(response: Any, conn: Any) -> Any:
        call = vars(conn).get(_CALL)
        if isinstance(call, LiveReply):
            with sending(call.capture):
                started = await original(response, conn)
                await await_turn(call.capture)
                return started
        if isinstance(call, PlayedReply):
            await call.head(expected=response._continue is not None)  # noqa: SLF001
            started = await original(response, conn)
            feed_reader(response.content, call)
            return started
        return await original(response, conn)

    return start_taped


def _wrap_ws_connect(original: Door) -> Door:
    @functools.wraps(original)
    async def ws_connect(session: Any, *args: Any, **options: Any) -> Any:
        ws = await original(session, *args, **options)
        call = vars(ws._conn).get(_CALL)  # noqa: SLF001
        if isinstance(call, LiveReply):
            aiohttp.capture_websocket(ws, call.capture)
        elif isinstance(call, PlayedWebSocket):
            aiohttp.play_websocket(ws, call)
        return ws

    return ws_connect


class _Spooled:
    """What a payload does whose bytes lie in a file."""

    _value: LargeBody

    async def write(self, writer: Any) -> None:
        for block in uploads.blocks(self._value):
            await writer.write(block)

    async def write_with_length(self, writer: Any, _content_length: int | None) -> None:
        await self.write(writer)


@functools.cache
def _build_spooled_class(kind: type) -> type:
    return type("SpooledPayload", (_Spooled, kind), {})


class _Sink:
    """A body is written here to be seen."""

    def __init__(self, upload: Upload) -> None:
        self.upload = upload

    async def write(self, chunk: Any) -> None:
        self.upload.add(bytes(chunk))

    async def write_eof(self, chunk: bytes = b"") -> None:
        self.upload.add(chunk)

    async def drain(self) -> None:
        """Never full."""


async def _compress_body(data: bytes, encoding: str) -> bytes:
    """As aiohttp's writer compresses it."""
    from aiohttp.http_writer import StreamWriter

    sink = _Wire()
    writer = StreamWriter(sink, asyncio.get_running_loop())  # type: ignore[arg-type]
    writer.enable_compression(encoding)
    await writer.write(data)
    await writer.write_eof()
    return b"".join(sink.parts)


class _Wire:
    """As much of a protocol and its transport as aiohttp's writer asks for."""

    _paused = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.transport = self

    def write(self, data: Any) -> None:
        self.parts.append(bytes(data))

    def writelines(self, parts: Any) -> None:
        self.parts += map(bytes, parts)

    def is_closing(self) -> bool:
        return False

    async def _drain_helper(self) -> None:
        """Never full."""
