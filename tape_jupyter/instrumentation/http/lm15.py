"""lm15's transports over sockets of its own, which DSPy has a copy of (`dspy._vendor.lm15`): blocking
and asyncio. Read in lm15 1.5 and DSPy 3.4.

A transport gives a response whose chunks are iterated once, and which is released when it was read
to its end, or left before.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, Play, Reply, Request
from tape_jupyter.core.context import SENDING
from tape_jupyter.core.large_body import LargeBody
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.http import uploads
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

_OF_SYSTEM = (
    (TimeoutError, "ReadTimeout"),
    (ConnectionRefusedError, "ConnectError"),
    (OSError, "ReadError"),
)
"""Errors of the system (an injected fault), by what lm15 makes of them; the first that fits."""


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the transport of `module` (`transports._sync` or `transports._async`). Returns the undo."""
    tap = _Tap(module)
    unwatch = swap(module.ResponseHeadParser, "_framing_decoder", _wrap_framing)
    if hasattr(module, "StdlibAsyncTransport"):
        return undoing(unwatch, swap(module.StdlibAsyncTransport, "_do_stream", tap.async_door))
    return undoing(unwatch, swap(module.StdlibTransport, "stream", tap.sync_door))


_CAME: ContextVar[list[bytes] | None] = ContextVar("came", default=None)
"""What takes the parts of the body that comes next, as they are on the wire: lm15 unpacks them."""


def _wrap_framing(original: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    @functools.wraps(original)
    def framing_decoder(parser: Any, request_method: str) -> Any:
        framing, came = original(parser, request_method), _CAME.get()
        if came is not None:
            framing.feed = functools.partial(_feed_noting, framing.feed, came)
        return framing

    return framing_decoder


def _feed_noting(
    feed: Callable[[bytes], Iterator[bytes]], came: list[bytes], data: bytes
) -> Iterator[bytes]:
    for part in feed(data):
        came.append(part)
        yield part


@contextmanager
def _noting(capture: Capture) -> Iterator[list[bytes]]:
    """While a request is sent, and its head read."""
    came: list[bytes] = []
    token = _CAME.set(came)
    try:
        with sending(capture):
            yield came
    finally:
        _CAME.reset(token)


class _Tap:
    """The doors for one module: they make responses and errors of that module's classes."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def sync_door(self, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """What stands in for `StdlibTransport.stream`."""

        @functools.wraps(original)
        def stream(transport: Any, request: Any) -> Any:
            tape = _find_tape(request)
            if tape is None:
                return original(transport, request)
            decision = tape.begin(_build_settled_request(tape, request))
            if decision is None:
                return original(transport, request)
            if isinstance(decision, Play):
                pass_head(decision)
                return self._play(decision, self.module.TransportResponse, _Played)
            with _noting(decision) as came:
                response = original(transport, _build_sent_request(request, decision))
            return _observe(response, _Live(response, decision, came))

        return stream

    def async_door(
        self, original: Callable[[Any, Any], Coroutine[Any, Any, Any]]
    ) -> Callable[[Any, Any], Coroutine[Any, Any, Any]]:
        """What stands in for `StdlibAsyncTransport._do_stream`."""

        @functools.wraps(original)
        async def do_stream(transport: Any, request: Any) -> Any:
            tape = _find_tape(request)
            if tape is None:
                return await original(transport, request)
            decision = await begin_call(tape, _build_settled_request(tape, request))
            if decision is None:
                return await original(transport, request)
            if isinstance(decision, Play):
                reply = cast("Reply", decision.reply)
                if reply.status is None:
                    await await_cancel(reply.error)
                await await_head(decision)
                return self._play(decision, self.module.AsyncTransportResponse, _AsyncPlayed)
            with _noting(decision) as came:
                response = await original(transport, _build_sent_request(request, decision))
            return _observe(response, _AsyncLive(response, decision, came))

        return do_stream

    def _play(self, decision: Play, response: type[Any], body: type[_Played]) -> Any:
        reply = cast("Reply", decision.reply)
        if reply.status is None:
            raise self._thaw(reply.error)
        played = body(decision, self._thaw, self._build_decoder(reply))
        return response(
            status=reply.status,
            reason=reply.reason,
            headers=list(headers(reply)),
            http_version=reply.version,
            chunks=played.iterate(),
            release=played.release,
        )

    def _build_decoder(self, reply: Reply) -> Any:
        """What unpacks a body that is not framed any more."""
        wire = sys.modules[self.module.ResponseHeadParser.__module__]
        packed = [value for name, value in reply.headers if name.lower() == "content-encoding"]
        codings = wire.content_codings(packed)
        whole = wire.EOFDecoder()
        return wire.ContentDecoder(whole, codings) if codings else whole

    def _thaw(self, frozen: Mapping[str, Any] | None) -> BaseException:
        """The recorded error; one of lm15's own is of this copy's class."""
        library, _, name = class_name(frozen).partition(":")
        if frozen and library.endswith("lm15.transports._exceptions"):
            package = self.module.__name__.rpartition(".")[0]
            frozen = {**frozen, "class": f"{package}._exceptions:{name}"}
        error = thawed(frozen)
        for kind, name in _OF_SYSTEM:
            if isinstance(error, kind):
                made: BaseException = getattr(self.module, name)(str(error))
                return made
        return error


def _find_tape(request: Any) -> Any:
    if SENDING.get():
        return None
    return instrumentation.tape_here(lambda: _build_request(request, request.body))


def _build_settled_request(tape: Any, request: Any) -> Request:
    threads.settle_origin()
    seen = functools.partial(_build_request, request, b"")
    return _build_request(request, uploads.keep_body(tape, seen, request.body or b""))


def _build_request(request: Any, body: bytes | LargeBody) -> Request:
    return uploads.upload_request(
        request.method.upper(), request.url, tuple(map(tuple, request.headers)), body
    )


def _build_sent_request(request: Any, decision: Capture) -> Any:
    """The request that goes out: the program's, or what a person made of it."""
    other = instead(decision)
    if other is None:
        return request
    return replace(
        request,
        method=other.method,
        url=other.url,
        headers=[each for each in other.headers if each[0].lower() != "content-length"],
        body=other.body,
    )


def _observe(response: Any, live: _Live) -> Any:
    """The live response, its head told, its chunks told as they are read."""
    live.capture.head(
        response.status,
        tuple(map(tuple, response.headers)),
        response.http_version,
        response.reason,
    )
    response._chunks, response._release = live.iterate(), live.release  # noqa: SLF001 - nothing else gives them
    return response


class _Live:
    """A live body: each part that came is told, then handed on."""

    def __init__(self, response: Any, capture: Capture, came: list[bytes]) -> None:
        self.capture, self._came = capture, came
        self._chunks, self._release = response._chunks, response._release  # noqa: SLF001

    def iterate(self) -> Any:
        while True:
            with sending(self.capture):
                try:
                    chunk = next(self._chunks, None)
                except BaseException:
                    self._tell_what_came()
                    raise
            self._tell_what_came()
            if chunk is None:
                self.capture.finish()
                return
            yield chunk

    def release(self, body_consumed: bool) -> Any:
        if not body_consumed:
            self.capture.close()
        self._release(body_consumed)
        tell_closed(self.capture)

    def _tell_what_came(self) -> None:
        for part in self._came:
            self.capture.chunk(part)
        self._came.clear()


class _AsyncLive(_Live):
    """The same, awaited."""

    async def iterate(self) -> AsyncIterator[bytes]:
        while True:
            with sending(self.capture):
                try:
                    chunk = await anext(self._chunks, None)
                except BaseException:
                    self._tell_what_came()
                    raise
                await await_turn(self.capture)
            self._tell_what_came()
            if chunk is None:
                self.capture.finish()
                return
            yield chunk

    async def release(self, body_consumed: bool) -> None:
        if not body_consumed:
            self.capture.close()
        await self._release(body_consumed)
        await await_turn(self.capture)
        tell_closed(self.capture)


class _Played:
    """A recorded body: the recorded chunks, unpacked as lm15 does, then what ended them."""

    def __init__(
        self,
        play: Play,
        thaw: Callable[[Mapping[str, Any] | None], BaseException],
        decoder: Any,
    ) -> None:
        self.reply, self.gate = cast("Reply", play.reply), play.gate
        self._thaw, self._decoder = thaw, decoder

    def iterate(self) -> Any:
        for index, chunk in enumerate(self.reply.chunks):
            pass_chunk(self.gate, self.reply, index)
            yield from self._decoder.feed(chunk)
        pass_chunk(self.gate, self.reply, len(self.reply.chunks))
        yield self._end()

    def release(self, _body_consumed: bool) -> Any:
        pass_closed(self.gate, self.reply)

    def _end(self) -> bytes:
        """What unpacking gives at the end; raises what ended the reply otherwise."""
        raise_ending(self.reply, self._thaw)
        self._decoder.eof()
        left: bytes = self._decoder.drain()
        return left


class _AsyncPlayed(_Played):
    """The same, awaited."""

    async def iterate(self) -> AsyncIterator[bytes]:
        for index, chunk in enumerate(self.reply.chunks):
            await await_chunk(self.gate, self.reply, index)
            for part in self._decoder.feed(chunk):
                yield part
        await await_cancel(self.reply.error)
        await await_chunk(self.gate, self.reply, len(self.reply.chunks))
        yield self._end()

    async def release(self, _body_consumed: bool) -> None:
        await await_closed(self.gate, self.reply)
