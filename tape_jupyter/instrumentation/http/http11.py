"""HTTP/1.1 as `http.client` reads it. Listens to a live body, and builds a response that was
recorded.

Listening happens where `http.client.HTTPResponse` reads (its `fp`): every byte of body passes there
once, before the program has it, whatever reads above: `read`, `read1`, `readline`, urllib3's
`stream`, botocore's event streams. A recorded response is a real HTTPResponse that reads recorded
bytes, so everything above behaves as it did live.

One recorded chunk is one HTTP chunk where the body came chunked (that is what programs see), else
one network read.
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from tape_jupyter.core.call import Capture, Gate, Reply
from tape_jupyter.instrumentation.http.replayed_response import (
    class_name,
    is_chunked,
    one_read,
    pass_chunk,
    pass_closed,
    past_the_end,
    raw_head,
    tell_closed,
)
from tape_jupyter.instrumentation.patching import sending_live

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

UNFINISHED = "unfinished_chunk"
"""Set on an error that broke an HTTP chunk off: the last recorded chunk is only the part of it that
came.
"""
FRAMING = "framing"
"""Set on an error that broke the body off between two chunks: what stood on the wire there, for it
fails again.
"""


class Framing(Protocol):
    """Finds the chunks of one body in the bytes that `http.client` reads."""

    done: bool
    """The end of the body was seen."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The chunks that these bytes complete."""

    def split_body(self, data: bytes) -> tuple[bytes, bytes, bytes]:
        """(wire, body, rest): the bytes up to the end of the next run of body, that run, and what
        follows.
        """

    def rest(self) -> bytes:
        """What has come of an unfinished chunk; forgotten then."""

    def missing(self) -> int | None:
        """Bytes still to come, where that is known and not none."""

    def between(self) -> bytes | None:
        """What has come since the last chunk, where another should begin; None where no chunk can
        be missing.
        """


class Sized:
    """A body with a declared length, or with none: then it ends with the connection."""

    def __init__(self, length: int | None) -> None:
        self.length, self.done = length, length == 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self.length is not None:
            data = data[: self.length]
            self.length -= len(data)
            self.done = not self.length
        if data:
            yield data

    def split_body(self, data: bytes) -> tuple[bytes, bytes, bytes]:
        body = b"".join(self.feed(data))
        return body, body, data[len(body) :]

    def rest(self) -> bytes:
        return b""

    def missing(self) -> int | None:
        return self.length

    def between(self) -> bytes | None:
        return None


class Chunked:
    """A body in HTTP/1.1 chunks: size line, data, empty line, ...; size 0, trailer lines, empty
    line.

    Read as `http.client` reads it: behind the data two bytes are skipped whatever they are.
    `lenient`: as aiohttp does, where a line feed alone will do.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self._lenient = lenient
        self.done = self.broken = self.last = False
        self._line, self._left, self._skip = b"", 0, 0
        self._between = b""
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self.done:
            _, body, data = self.split_body(data)
            self._parts.append(body)
            if body and not self._left:
                yield self.rest()

    def split_body(self, data: bytes) -> tuple[bytes, bytes, bytes]:
        rest = data
        while rest and not self.done:
            if self._left:
                body, rest = rest[: self._left], rest[self._left :]
                self._left -= len(body)
                self._skip = 0 if self._left else len(_CRLF)
                return data[: len(data) - len(rest)], body, rest
            if self._lenient and self._skip and rest[:1] == b"\n":
                self._skip = 1
            gap, rest = rest[: self._skip], rest[self._skip :]
            self._skip -= len(gap)
            line, end, rest = rest.partition(b"\n")
            self._line += line + end
            self._between += gap + line + end
            if end or len(self._line) > _LONGEST:
                line, self._line = self._line, b""
                self._read_trailer_line(line) if self.last else self._read_size_line(line)
        return data[: len(data) - len(rest)], b"", rest

    def rest(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def missing(self) -> int | None:
        return self._left or None

    def between(self) -> bytes | None:
        return None if self._left or self.last else self._between

    def _read_size_line(self, line: bytes) -> None:
        try:
            self._left = int(line.split(b";")[0], 16)
        except ValueError:
            self._left = -1
        # not HTTP: the reader above raises, we only listen
        if self._left < 0 or len(line) > _LONGEST:
            self._left, self.done, self.broken = 0, True, True
        else:
            self.last = not self._left
            self._between = b""

    def _read_trailer_line(self, line: bytes) -> None:
        self.done = not line.strip()


_CRLF = b"\r\n"
_LONGEST = 65_536
"""Bytes of a line, its end included, that `http.client` reads at most."""


def capture_response(
    response: http.client.HTTPResponse, capture: Capture, *, in_parts: bool = False
) -> None:
    """Tell `capture` the body of a live response as it is read. The head has been told already.

    `in_parts`: an HTTP chunk that needs several reads is that many recorded chunks, for a program
    that sees the parts (`read1`) and not the chunk.
    """
    framing: Framing = (
        Chunked() if response.chunked and response.length != 0 else Sized(response.length)
    )
    if framing.done or response.fp is None:
        capture.finish()
    else:
        response.fp = io.BufferedReader(
            _RecordingReader(response.fp, framing, capture, in_parts=in_parts)
        )


class _RecordingReader(io.RawIOBase):
    """Stands between `http.client` and the connection: one `readinto` is at most one network read."""

    def __init__(self, source: Any, framing: Framing, capture: Capture, *, in_parts: bool) -> None:
        self._source = source
        self._framing = framing
        self._capture = capture
        self._in_parts = in_parts

    @property
    def _sock(self) -> Any:
        return self._source.raw._sock  # noqa: SLF001 - botocore reaches for the socket in this way

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._source.fileno())

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            with sending_live():
                data: bytes = self._source.read1(len(view))
        except BaseException as error:
            self._fail_capture(error)
            raise
        self._record_read(data)
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._record_rest()
            self._capture.close()
            self._source.close()
        super().close()

    def _record_read(self, data: bytes) -> None:
        if not self._framing.done:
            with one_read(self._capture):
                self._record_chunks(data)

    def _record_chunks(self, data: bytes) -> None:
        for chunk in self._split_parts(data) if self._in_parts else self._framing.feed(data):
            self._capture.chunk(chunk)
        if self._is_complete() or (not data and self._may_end_here()):
            self._capture.finish()
            tell_closed(self._capture)
        elif self._framing.done or not data:
            self._fail_capture(http.client.IncompleteRead(b"", self._framing.missing()))

    def _split_parts(self, data: bytes) -> Iterator[bytes]:
        while data and not self._framing.done:
            _, body, data = self._framing.split_body(data)
            if body:
                yield body

    def _is_complete(self) -> bool:
        return self._framing.done and not (
            isinstance(self._framing, Chunked) and self._framing.broken
        )

    def _may_end_here(self) -> bool:
        """Whether the body is whole where the connection ends: one of no declared length, one that
        lacks trailers.
        """
        if isinstance(self._framing, Chunked):
            return self._framing.last
        return self._framing.missing() is None

    def _fail_capture(self, error: BaseException) -> None:
        if (
            isinstance(error, http.client.IncompleteRead)
            and (between := self._framing.between()) is not None
        ):
            setattr(error, FRAMING, between.decode("latin-1"))
        if self._record_rest() or (
            self._in_parts and isinstance(self._framing, Chunked) and self._framing.missing()
        ):
            setattr(error, UNFINISHED, True)
        self._capture.fail(error)

    def _record_rest(self) -> bool:
        rest = self._framing.rest()
        if rest:
            self._capture.chunk(rest)
        return bool(rest)


def replayed_http_response(
    reply: Reply, method: str, thaw: Callable[[Reply], BaseException], gate: Gate | None = None
) -> http.client.HTTPResponse:
    """A response that reads the recorded bytes. `thaw` gives the error to raise where the recording
    has one.
    """
    response = http.client.HTTPResponse(replayed_socket(reply, thaw, gate), method=method)
    response.begin()
    return response


def replayed_socket(
    reply: Reply, thaw: Callable[[Reply], BaseException], gate: Gate | None = None
) -> Any:
    """As much of a socket as HTTPResponse asks for: it gives the recorded bytes. The head has
    passed its gate.
    """
    if reply.end == "complete" or _is_end_of_file(reply):
        ending = None
    else:
        ending = _build_ending(reply, thaw)
    return _Socket(_Wire(_yield_pieces(reply, gate), ending))


def _build_ending(
    reply: Reply, thaw: Callable[[Reply], BaseException]
) -> Callable[[], BaseException]:
    return lambda: thaw(reply) if reply.end == "error" else past_the_end(reply)


def _is_end_of_file(reply: Reply) -> bool:
    """The connection ended before the body did: no read failed, so the reader finds out as it did
    live.
    """
    return reply.end == "error" and class_name(reply.error) == "http.client:IncompleteRead"


def _yield_pieces(reply: Reply, gate: Gate | None) -> Iterator[bytes]:
    """What the connection gave, network read by network read."""
    yield raw_head(reply)
    if not is_chunked(reply):
        yield from _yield_in_time(reply, gate)
        return
    last, framing = len(reply.chunks) - 1, _read_end_framing(reply)
    for number, chunk in enumerate(_yield_in_time(reply, gate)):
        more = _count_missing(reply) if number == last else 0
        # by itself, so that a chunk is not cut where buffers end
        yield b"%x\r\n" % (len(chunk) + more)
        yield chunk
        cut_off = more or (number == last and framing is not None)
        yield b"" if cut_off else b"\r\n"  # urllib3 reads it before it hands the chunk on
    yield b"0\r\n\r\n" if reply.end == "complete" else framing or b""


def _yield_in_time(reply: Reply, gate: Gate | None) -> Iterator[bytes]:
    """The recorded chunks, each once the gate lets it pass."""
    for index, chunk in enumerate(reply.chunks):
        pass_chunk(gate, reply, index)
        yield chunk
    pass_chunk(gate, reply, len(reply.chunks))
    pass_closed(gate, reply)


def _count_missing(reply: Reply) -> int:
    """How many bytes the last chunk lacks; where the number is not known, any number reads the
    same.
    """
    attributes = (reply.error or {}).get("attributes", {})
    if _is_end_of_file(reply):
        return attributes.get("expected") or 0
    return 1 if attributes.get(UNFINISHED) else 0


def _read_end_framing(reply: Reply) -> bytes | None:
    """What the wire had in place of a further chunk; None where it is not known."""
    framing = (reply.error or {}).get("attributes", {}).get(FRAMING)
    if not isinstance(framing, str) or not _is_end_of_file(reply):
        return None
    return framing.encode("latin-1", "replace")


class _Wire(io.RawIOBase):
    """Recorded network reads, then the end of file or what `ending` makes."""

    def __init__(self, pieces: Iterator[bytes], ending: Callable[[], BaseException] | None) -> None:
        self._pieces, self._ending, self._buffer = pieces, ending, b""
        self._sock = _UntimedSocket()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._buffer:  # a piece may be empty
            piece = next(self._pieces, None)
            if piece is None:
                if self._ending is not None:
                    raise self._ending()
                return 0
            self._buffer = piece
        data, self._buffer = self._buffer[: len(view)], self._buffer[len(view) :]
        view[: len(data)] = data
        return len(data)


class _UntimedSocket:
    """The socket that botocore sets a read timeout on: recorded bytes never keep anybody waiting."""

    def settimeout(self, seconds: float | None) -> None:
        """Nothing to wait for."""


class _Socket:
    """As much of a socket as HTTPResponse asks for."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._raw)

    def close(self) -> None:
        """Nothing is open."""
