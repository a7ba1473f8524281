"""A live reply of aiohttp. Listens to the bytes that come, tells them as the program takes them.

aiohttp is pushed to: the event loop feeds a parser, the parser a `StreamReader`, whose buffer the
program empties when it likes. What counts is what the program saw: bytes are told when it takes
them, just before it has them, and a buffer that a lost connection throws away was never seen. So
one recorded chunk is what one look at the buffer found, and of `readchunk` one HTTP chunk. A read
ends where a recorded chunk ends, as it will when it is played.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import Any

from tape_jupyter.core.call import Capture, Headers
from tape_jupyter.instrumentation.http.http11 import Chunked, Framing, Sized
from tape_jupyter.instrumentation.http.replayed_response import await_turn

_HEAD_END = re.compile(rb"\n\r?\n")
_BODILESS = frozenset({204, 304})


class LiveReply:
    """One call that goes out: told by the parser, the reader and the connection that serve it."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.observer: StreamObserver | None = None

    def listen(self, connection: Any) -> None:
        """From now on. Called when the connection has its parser, before anything is sent."""
        protocol = connection.protocol
        protocol._parser = RecordingParser(protocol._parser, protocol, self)  # noqa: SLF001
        connection.add_callback(self._handle_release)

    def head(self, message: Any) -> None:
        version = f"HTTP/{message.version.major}.{message.version.minor}"
        self.capture.head(
            message.code,
            _decode_headers(message.raw_headers),
            version,
            _decode_reason(message.reason or ""),
        )

    def _handle_release(self) -> None:
        """The connection is given back. At the end of the body the program may have yet to read."""
        if self.observer is None:
            self.capture.close()
        elif not self.observer.eof:
            self.observer.closed()


def _decode_headers(raw: Any) -> Headers:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)


def _decode_reason(decoded: str) -> str:
    """The bytes of the phrase as Latin-1, as headers are kept; aiohttp reads them as UTF-8."""
    return decoded.encode("utf-8", "surrogateescape").decode("latin-1")


class RecordingParser:
    """Stands before aiohttp's parser and feeds it the same bytes, cut where a run of body ends."""

    def __init__(self, parser: Any, protocol: Any, call: LiveReply) -> None:
        self._parser, self._protocol, self._call = parser, protocol, call
        self._seen = b""
        self._framing: Framing | None = None
        self._reader: Any = None
        self._over = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def feed_data(self, data: bytes) -> Any:
        """Gives what the parser gives: (messages, upgraded, what follows an upgrade)."""
        if self._over or not data:
            return self._feed_parser(data)
        messages: list[Any] = []
        rest = bytes(data)
        while rest and not self._over:
            if self._framing is None:
                wire, rest = self._split_head(rest)
            else:
                wire, body, rest = self._framing.split_body(rest)
                self._call.observer.note_body(self._reader, body)  # type: ignore[union-attr]
                self._over = self._framing.done
            parsed, upgraded, tail = self._feed_parser(wire)
            messages += parsed
            for message, payload in parsed:
                self._begin_message(message, payload)
            if upgraded:
                return messages, True, tail + rest
        if rest:
            parsed, upgraded, tail = self._feed_parser(rest)
            return messages + list(parsed), upgraded, tail
        return messages, False, b""

    def _feed_parser(self, wire: bytes) -> Any:
        observer = self._call.observer
        if observer is None:
            return self._parser.feed_data(wire)
        observer.feeding = True
        try:
            return self._parser.feed_data(wire)
        finally:
            observer.feeding = False

    def _split_head(self, data: bytes) -> tuple[bytes, bytes]:
        """The bytes up to the end of the head, and those behind it."""
        match = _HEAD_END.search(self._seen + data)
        if match is None:
            self._seen = (self._seen + data)[-2:]
            return data, b""
        end, self._seen = match.end() - len(self._seen), b""
        return data[:end], data[end:]

    def _begin_message(self, message: Any, payload: Any) -> None:
        if 100 <= message.code < 200 and message.code != 101:
            return
        self._call.head(message)
        if message.code == 101:
            self._over = True
            return
        skipped = self._protocol._skip_payload or message.code in _BODILESS  # noqa: SLF001
        if skipped or not hasattr(payload, "_protocol") or payload.is_eof():
            self._over = True
            self._call.capture.finish()
            return
        self._framing = _build_framing(message)
        self._over = self._framing.done
        self._reader = payload
        observer = StreamObserver(
            payload._protocol,  # noqa: SLF001
            self._call.capture,
            packed=message.compression is not None,
        )
        self._call.observer = payload._protocol = observer  # noqa: SLF001
        payload.__class__ = live_reader(type(payload))


def _build_framing(message: Any) -> Framing:
    length = message.headers.get("Content-Length", "")
    if message.chunked:
        return Chunked(lenient=True)
    return Sized(int(length) if length.isdigit() else None)


class StreamObserver:
    """Stands between a live `StreamReader` and its protocol, and knows which bytes the program has
    yet to take.

    Places are counted in bytes that the reader gives: body bytes, of a packed body those that come
    out of it.
    """

    def __init__(self, protocol: Any, capture: Capture, *, packed: bool) -> None:
        self._protocol, self._capture, self._packed = protocol, capture, packed
        self._received = 0
        self._untold: deque[tuple[int, bytes]] = deque()
        self._told_to = 0
        self._cancelled: BaseException | None = None
        self._over = False
        self.eof = self.feeding = self.by_chunk = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._protocol, name)

    def note_body(self, reader: Any, body: bytes) -> None:
        """Bytes of body that the reader is about to be fed."""
        if body:
            # Where reading is held back, the parser has bytes that the reader was not fed yet.
            self._untold.append((reader.total_bytes if self._packed else self._received, body))
            self._received += len(body)

    def allowed(self, reader: Any, count: int) -> int:
        """How many of `count` bytes (-1: all there are) one read may take; they are told now."""
        left: int = self._told_to - reader._cursor  # noqa: SLF001
        if left > 0 and not self.by_chunk:
            return left if count == -1 else min(count, left)
        self.reach(reader, reader._cursor + count if self.by_chunk else reader.total_bytes)  # noqa: SLF001
        return count

    def reach(self, reader: Any, place: int) -> None:
        """The program is about to have what lies before `place`."""
        untold, pieces = self._untold, []
        while untold and (untold[0][0] < place or (self.eof and place == reader.total_bytes)):
            pieces.append(untold.popleft()[1])
        if pieces:
            self._cancelled = None
            self._record_chunk(b"".join(pieces))
            if untold:
                self._told_to = untold[0][0]
            else:
                self._told_to = reader.total_bytes if self._packed else self._received
        if self.eof and not untold:
            self._capture.finish()

    def ended(self) -> None:
        """The end of the body was fed."""
        self.eof = True
        if not self._untold:
            self._capture.finish()

    def waited(self, error: BaseException) -> None:
        """Raised to the program where it waited for more. After a cancellation it may read on."""
        if isinstance(error, asyncio.CancelledError):
            self._cancelled = error
        else:
            self._end_capture(error)

    async def turn(self) -> None:
        """Before the program has what it waited for."""
        await await_turn(self._capture)

    def failed(self, error: BaseException) -> None:
        """The reader raises this from now on, and its buffer is gone."""
        if _is_closing(error):
            self.closed()
        elif not self.eof:
            if self.feeding:  # it is in the bytes: they will fail again
                self._record_rest()
            self._end_capture(error)

    def closed(self) -> None:
        """The program reads no further."""
        if self.eof:
            self._record_rest()
            self._capture.finish()
        else:
            self._end_capture(self._cancelled)

    def _end_capture(self, error: BaseException | None) -> None:
        self._over = True
        if error is None:
            self._capture.close()
        else:
            self._capture.fail(error)

    def _record_rest(self) -> None:
        rest = b"".join(body for _, body in self._untold)
        self._untold.clear()
        if rest:
            self._record_chunk(rest)

    def _record_chunk(self, data: bytes) -> None:
        if not self._over:
            self._capture.chunk(data)


def _is_closing(error: BaseException) -> bool:
    """Whether this is what aiohttp leaves in the reader of a response that the program closed."""
    return type(error).__name__ == "ClientConnectionError" and error.args == ("Connection closed",)


class _Reader:
    """What a live `StreamReader` does besides: its `_protocol` is an Ear."""

    __slots__ = ()

    def _read_nowait(self: Any, n: int) -> Any:
        try:
            self._timer.assert_timeout()
        except TimeoutError as error:
            self._protocol.waited(error)
            raise
        return super()._read_nowait(self._protocol.allowed(self, n))  # type: ignore[misc]

    def _read_nowait_chunk(self: Any, n: int) -> Any:
        size = len(self._buffer[0]) - self._buffer_offset
        self._protocol.reach(self, self._cursor + (size if n == -1 else min(n, size)))
        return super()._read_nowait_chunk(n)  # type: ignore[misc]

    async def readchunk(self: Any) -> Any:
        self._protocol.by_chunk = True
        try:
            return await super().readchunk()  # type: ignore[misc]
        finally:
            self._protocol.by_chunk = False

    async def _wait(self: Any, func_name: str) -> None:
        try:
            await super()._wait(func_name)  # type: ignore[misc]
            await self._protocol.turn()
        except BaseException as error:
            self._protocol.waited(error)
            raise

    def feed_eof(self: Any) -> None:
        self._protocol.ended()
        super().feed_eof()  # type: ignore[misc]

    def set_exception(self: Any, exc: BaseException, *cause: Any) -> None:
        self._protocol.failed(exc)
        super().set_exception(exc, *cause)  # type: ignore[misc]


_readers: dict[type, type] = {}


def live_reader(kind: type) -> type:
    """`kind` (aiohttp's StreamReader), listening; of the same layout, so that a reader can become
    one.
    """
    if kind not in _readers:
        _readers[kind] = type(
            kind.__name__, (_Reader, kind), {"__slots__": (), "__module__": kind.__module__}
        )
    return _readers[kind]
