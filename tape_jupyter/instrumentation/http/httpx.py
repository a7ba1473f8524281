"""Httpx and httpx2, sync and async. The module comes as a value: nothing here imports either.

Both libraries send through two transport classes; their methods are replaced, so clients made
before are taped too. A reply that is being recorded passes chunk by chunk: each is told to the
capture, then handed on, never held.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, Gate, Headers, Play, Reply, Request, Tape
from tape_jupyter.core.context import SENDING
from tape_jupyter.core.large_body import LargeBody
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.http import stub_connection, uploads
from tape_jupyter.instrumentation.http.replayed_response import (
    await_cancel,
    await_chunk,
    await_closed,
    await_head,
    await_turn,
    class_name,
    headers,
    pass_chunk,
    pass_closed,
    pass_head,
    raise_ending,
    tell_closed,
    thawed,
)
from tape_jupyter.instrumentation.patching import sending, swap, undoing
from tape_jupyter.instrumentation.stepping_hook import begin_call, instead

_AS_HTTPX = (
    (ConnectionRefusedError, "ConnectError"),
    (TimeoutError, "ReadTimeout"),
    (OSError, "ReadError"),
)


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the two transport classes of `module` (httpx or httpx2). Returns the undo."""
    tap = _Tap(module)
    return undoing(
        swap(module.HTTPTransport, "handle_request", tap.sync_door),
        swap(module.AsyncHTTPTransport, "handle_async_request", tap.async_door),
    )


class _Tap:
    """The doors for one module, and its stream classes (httpx checks that a stream is one of its
    own).
    """

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        streams = (module.SyncByteStream, module.AsyncByteStream)
        self.live = type("TapedStream", (_Live, streams[0]), {})
        self.live_async = type("TapedAsyncStream", (_AsyncLive, streams[1]), {})
        self.spooled = type("SpooledStream", (_Spooled, *streams), {})
        self.played = type("PlayedStream", (_Played, streams[0]), {})
        self.played_async = type("PlayedAsyncStream", (_AsyncPlayed, streams[1]), {})

    def sync_door(self, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """What stands in for `HTTPTransport.handle_request`."""

        @functools.wraps(original)
        def handle_request(transport: Any, request: Any) -> Any:
            tape = None
            if not SENDING.get():
                tape = instrumentation.tape_here(lambda: _build_visible_request(request))
            if tape is None:
                return original(transport, request)
            seen = functools.partial(_build_visible_request, request)
            content = _get_body_in_memory(request)
            if content is None:
                body = uploads.drained(tape, seen, request.stream)
            else:
                body = uploads.keep_body(tape, seen, content)
            decision = tape.begin(_build_settled_request(request, body))
            if decision is None:
                with self._replace_stream(request, body):
                    return original(transport, request)
            if isinstance(decision, Play):
                pass_head(decision)
                return self._play_response(decision, request, self.played)
            request = self._build_sent_request(request, decision)
            with (
                sending(decision),
                self._replace_stream(request, body),
                _trace_sending(request, _Out(decision)),
            ):
                response = original(transport, request)
            return _observe_response(response, decision, self.live, request.url)

        return handle_request

    def async_door(
        self, original: Callable[[Any, Any], Any]
    ) -> Callable[[Any, Any], Coroutine[Any, Any, Any]]:
        """What stands in for `AsyncHTTPTransport.handle_async_request`."""

        @functools.wraps(original)
        async def handle_async_request(transport: Any, request: Any) -> Any:
            tape = None
            if not SENDING.get():
                tape = instrumentation.tape_here(lambda: _build_visible_request(request))
            if tape is None:
                return await original(transport, request)
            body = await _drain_body(tape, request)
            decision = await begin_call(tape, _build_settled_request(request, body))
            if decision is None:
                with self._replace_stream(request, body):
                    return await original(transport, request)
            if isinstance(decision, Play):
                reply = cast("Reply", decision.reply)
                if reply.status is None:
                    await await_cancel(reply.error)
                await await_head(decision)
                return self._play_response(decision, request, self.played_async)
            request = self._build_sent_request(request, decision)
            with (
                sending(decision),
                self._replace_stream(request, body),
                _trace_sending(request, _AsyncOut(decision)),
            ):
                response = await original(transport, request)
            return _observe_response(response, decision, self.live_async, request.url)

        return handle_async_request

    @contextmanager
    def _replace_stream(self, request: Any, body: bytes | LargeBody) -> Iterator[None]:
        """Inside, a request whose body was a stream has the bytes that came of it. It is read once,
        as without us.
        """
        original_stream = request.stream
        if _get_body_in_memory(request) is None:
            if isinstance(body, LargeBody):
                request.stream = self.spooled(body)
            else:
                request.stream = self.module.ByteStream(body)
        try:
            yield
        finally:
            request.stream = original_stream

    def _build_sent_request(self, request: Any, decision: Capture) -> Any:
        """The request that goes out: the program's, or what a person made of it."""
        other = instead(decision)
        if other is None:
            return request
        sent_headers = [
            (name, value) for name, value in other.headers if name.lower() != "content-length"
        ]
        return self.module.Request(
            other.method,
            other.url,
            headers=sent_headers,
            content=other.body,
            extensions=request.extensions,
        )

    def _play_response(self, decision: Play, request: Any, stream: type[Any]) -> Any:
        reply = cast("Reply", decision.reply)
        if reply.status is None:
            raise self.error(reply.error, request)
        extensions = {
            "http_version": reply.version.encode("ascii"),
            "network_stream": stub_connection.Stream(request.url),
        }
        if reply.version.startswith("HTTP/1"):
            extensions["reason_phrase"] = reply.reason.encode("latin-1")
        return self.module.Response(
            reply.status,
            headers=[
                (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers(reply)
            ],
            stream=stream(reply, functools.partial(self.error, request=request), decision.gate),
            extensions=extensions,
        )

    def error(self, frozen: Mapping[str, Any] | None, request: Any) -> BaseException:
        """The recorded error; one of httpx's own comes back in this module's class, with this
        request.
        """
        library, _, name = class_name(frozen).partition(":")
        if frozen and library in {"httpx", "httpx2"}:
            frozen = {**frozen, "class": f"{self.module.__name__}:{name}"}
        error = thawed(frozen)
        if isinstance(error, OSError):  # an injected fault: httpx lets none of these through
            name = next(name for kind, name in _AS_HTTPX if isinstance(error, kind))
            error = getattr(self.module, name)(str(error))
        if isinstance(error, self.module.RequestError):
            error.request = request
        return error


def _get_body_in_memory(request: Any) -> bytes | None:
    """The body of a request that holds one; None where it has only a stream to send."""
    content: bytes | None = getattr(request, "_content", None)
    return content


async def _drain_body(tape: Tape, request: Any) -> bytes | LargeBody:
    """The whole body of a request that an async client sends."""
    seen, content = functools.partial(_build_visible_request, request), _get_body_in_memory(request)
    if content is not None:
        return uploads.keep_body(tape, seen, content)
    upload = uploads.begin_upload(tape, seen)
    async for part in request.stream:
        upload.add(part)
    return upload.finish_body()


def _build_settled_request(request: Any, body: bytes | LargeBody) -> Request:
    threads.settle_origin()
    return _build_request(request, body)


def _build_visible_request(request: Any) -> Request:
    """What can be seen of a request without reading its stream."""
    return _build_request(request, _get_body_in_memory(request) or b"")


def _build_request(request: Any, body: bytes | LargeBody) -> Request:
    return uploads.upload_request(
        request.method.upper(), str(request.url), _decode_headers(request.headers.raw), body
    )


def _decode_headers(raw: list[tuple[bytes, bytes]]) -> Headers:
    return tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw])


@contextmanager
def _trace_sending(request: Any, out: _Out) -> Iterator[None]:
    """Have httpcore tell of what it does, with the `trace` of its requests; a program that has its
    own keeps it.
    """
    extensions = request.extensions
    if "trace" not in extensions:
        request.extensions = out.extensions = {**extensions, "trace": out.trace}
    try:
        yield
    finally:
        request.extensions = extensions


class _Out:
    """Tells the capture when a request is out. httpcore names the steps:
    `http11.receive_response_headers.started`.
    """

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.extensions: dict[str, Any] = {}

    def trace(self, step: str, _info: Mapping[str, Any]) -> Any:
        if step.endswith("receive_response_headers.started"):
            self.extensions.pop("trace", None)
            self.capture.sent()


class _AsyncOut(_Out):
    """The same, awaited."""

    async def trace(self, step: str, info: Mapping[str, Any]) -> None:
        super().trace(step, info)


def _observe_response(response: Any, capture: Capture, stream: type[Any], url: Any) -> Any:
    """The live response, its head told, its stream told as it is read."""
    if response.status_code == 101:
        instrumentation.note(
            f"the connection to {url.host} was taken over for another protocol (101): what is spoken on it from then "
            "on is not on the tape, and is refused in replay. Make what speaks on it a tool (@tape.tool)"
        )
    capture.head(
        response.status_code,
        _decode_headers(response.headers.raw),
        response.http_version,
        _decode_reason(response),
    )
    response.stream = stream(response.stream, capture)
    return response


def _decode_reason(response: Any) -> str:
    return cast("bytes", response.extensions.get("reason_phrase", b"")).decode("latin-1")


class _Spooled:
    """A large body that the program sends, out of its file."""

    def __init__(self, body: LargeBody) -> None:
        self.body = body

    def __iter__(self) -> Iterator[bytes]:
        return uploads.blocks(self.body)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in uploads.blocks(self.body):
            yield block


class _Live:
    """A live body: each network read is told, then handed on."""

    def __init__(self, inner: Any, capture: Capture) -> None:
        self.inner, self.capture = inner, capture

    def __iter__(self) -> Iterator[bytes]:
        pulled = iter(self.inner)
        while True:
            with sending(self.capture):
                chunk = next(pulled, None)
            if chunk is None:
                self.capture.finish()
                return
            self.capture.chunk(chunk)
            yield chunk

    def close(self) -> None:
        self.capture.close()
        self.inner.close()
        tell_closed(self.capture)


class _AsyncLive:
    """The same, awaited. An iterator rather than a generator, so that dropping it adds no task to
    the event loop.

    One pull serves every reader: the first one's generator, dropped for a second, would close the
    connection.
    """

    def __init__(self, inner: Any, capture: Capture) -> None:
        self.inner, self.capture = inner, capture
        self.pulled: AsyncIterator[bytes] | None = None
        self.broken = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        if self.pulled is None:
            self.pulled = aiter(self.inner)
        return self

    async def __anext__(self) -> bytes:
        assert self.pulled is not None
        try:
            with sending(self.capture):
                chunk = await anext(self.pulled, None)
                await await_turn(self.capture)
        except BaseException:
            self.broken = True
            raise
        if chunk is None:
            self.capture.finish()
            raise StopAsyncIteration
        self.capture.chunk(chunk)
        return chunk

    async def aclose(self) -> None:
        self.capture.close()
        await self.inner.aclose()
        if not self.broken:
            await await_turn(self.capture)
            tell_closed(self.capture)


class _Played:
    """A recorded body: the recorded chunks, then what ended them.

    Read again it goes on where it stopped, as a connection does: openai's async streams drain what
    is left that way.
    """

    def __init__(
        self,
        reply: Reply,
        thaw: Callable[[Mapping[str, Any] | None], BaseException],
        gate: Gate | None,
    ) -> None:
        self.reply, self.thaw, self.gate = reply, thaw, gate
        self.left = enumerate(reply.chunks)

    def __iter__(self) -> Iterator[bytes]:
        for index, chunk in self.left:
            pass_chunk(self.gate, self.reply, index)
            yield chunk
        pass_chunk(self.gate, self.reply, len(self.reply.chunks))
        raise_ending(self.reply, self.thaw)

    def close(self) -> None:
        gate, self.gate = self.gate, None
        pass_closed(gate, self.reply)


class _AsyncPlayed(_Played):
    """The same, awaited."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        gate, closing = self.gate, self.gate
        self.gate = None  # what breaks off here is closed without waiting
        for index, chunk in self.left:
            await await_chunk(gate, self.reply, index)
            self.gate = closing
            yield chunk
            self.gate = None
        await await_cancel(self.reply.error)
        await await_chunk(gate, self.reply, len(self.reply.chunks))
        raise_ending(self.reply, self.thaw)
        self.gate = closing

    async def aclose(self) -> None:
        gate, self.gate = self.gate, None
        await await_closed(gate, self.reply)
