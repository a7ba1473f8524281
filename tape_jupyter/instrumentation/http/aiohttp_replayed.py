"""A recorded reply of aiohttp: its own parser and reader are fed the recorded bytes, and no socket
is there.

The connection is aiohttp's, with a transport that leads nowhere. It never reaches a connector's
pool. The head is fed when the response starts, each recorded chunk when the program has read the
one before it and waits for more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from tape_jupyter.core.call import Play, Reply
from tape_jupyter.instrumentation.http.replayed_response import (
    await_cancel,
    await_chunk,
    await_head,
    is_chunked,
    past_the_end,
    raw_head,
)

Thaw = Callable[[Mapping[str, Any] | None], BaseException]


class Nowhere(asyncio.Transport):
    """Takes everything, leads nowhere."""

    def __init__(self, address: tuple[str | None, int | None]) -> None:
        # nothing is bound
        super().__init__({"peername": address, "sockname": ("0.0.0.0", 0)})  # noqa: S104
        self._closing = False

    def write(self, data: Any) -> None:
        """Gone."""

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True

    abort = close

    def pause_reading(self) -> None:
        """What comes waits in any case."""

    resume_reading = pause_reading

    def get_write_buffer_size(self) -> int:
        return 0


class PlayedReply:
    """One recorded reply, and how far it was fed. Stands between the played reader and its
    protocol.
    """

    def __init__(self, decision: Play, protocol: Any, thaw: Thaw) -> None:
        reply = decision.reply
        assert isinstance(reply, Reply)
        self.reply, self._decision, self._thaw = reply, decision, thaw
        self._protocol = protocol
        self._fed = 0
        self._chunked = is_chunked(reply)
        protocol.read_timeout = None  # nothing comes but what is asked for

    def __getattr__(self, name: str) -> Any:
        return getattr(self._protocol, name)

    def pause_reading(self) -> None:
        """One chunk is never held back in parts, or the next would come with its rest; unpacked it
        may grow, though.
        """
        if self.reply.header("content-encoding"):
            self._protocol.pause_reading()

    def resume_reading(self, **options: bool) -> None:
        if self.reply.header("content-encoding"):
            self._protocol.resume_reading(**options)

    async def head(self, *, expected: bool) -> None:
        """Feed the head, or raise what was raised instead. `expected`: the request waits for a 100."""
        reply = self.reply
        await await_head(self._decision)
        if reply.status is None:
            await await_cancel(reply.error)
            raise self._thaw(reply.error)
        self._protocol.data_received(b"HTTP/1.1 100 Continue\r\n\r\n" if expected else b"")
        self._protocol.data_received(raw_head(reply))
        if not reply.chunks:
            self._feed_end()

    async def more(self, reader: Any) -> None:
        """Feed what comes next; raises what ended the recording."""
        reply = self.reply
        # may be cancelled, and asked again
        await await_chunk(self._decision.gate, reply, self._fed)
        if self._fed == len(reply.chunks):
            return await self._end_reading(reader)
        chunk = reply.chunks[self._fed]
        self._fed += 1
        self._protocol.data_received(
            b"%x\r\n%b\r\n" % (len(chunk), chunk) if self._chunked else chunk
        )
        if self._fed == len(reply.chunks):
            self._feed_end()
        return None

    def _feed_end(self) -> None:
        """After the last bytes of a complete body, its end."""
        if self.reply.end != "complete":
            return
        if self._chunked:
            self._protocol.data_received(b"0\r\n\r\n")
        elif not self.reply.header("content-length"):
            self._protocol.connection_lost(None)

    async def _end_reading(self, reader: Any) -> None:
        reply = self.reply
        if reply.end != "error":
            raise past_the_end(reply)
        await await_cancel(reply.error)
        error = self._thaw(reply.error)
        if (
            type(error).__module__ == "builtins"
            and isinstance(error, OSError)
            and not isinstance(error, TimeoutError)
        ):
            # an injected fault: aiohttp says in its own words what was lost
            self._protocol.connection_lost(error)
        else:
            reader.set_exception(error)
            raise error


class _Reader:
    """What a played `StreamReader` does besides: its `_protocol` is Played."""

    __slots__ = ()

    async def _wait(self: Any, _func_name: str) -> None:
        self._raise_failure()
        await self._protocol.more(self)
        self._raise_failure()

    async def wait_eof(self: Any) -> None:
        while not self._eof:
            await self._wait("wait_eof")

    def _raise_failure(self: Any) -> None:
        if self._exception is not None:
            raise self._exception


class _Connection:
    """What a played `Connection` does otherwise: it is nobody's to use again."""

    _protocol: Any
    _notify_release: Callable[[], None]

    def release(self) -> None:
        self._notify_release()
        if self._protocol is not None:
            self._protocol.close()
            self._protocol = None

    close = release

    def __del__(self) -> None:
        """There is nothing to give back."""


_kinds: dict[tuple[type, type], type] = {}


def _derive_class(mixin: type, kind: type) -> type:
    if (mixin, kind) not in _kinds:
        namespace = {"__module__": kind.__module__} | (
            {"__slots__": ()} if mixin is _Reader else {}
        )
        _kinds[mixin, kind] = type(kind.__name__, (mixin, kind), namespace)
    return _kinds[mixin, kind]


def replayed_connection(connector: Any, kind: type, protocol: Any, key: Any) -> Any:
    """A connection of aiohttp's class `kind` that no pool will have."""
    return _derive_class(_Connection, kind)(connector, key, protocol, asyncio.get_running_loop())


def feed_reader(reader: Any, played: PlayedReply) -> None:
    """From now on the response's reader is fed by `played`."""
    if hasattr(reader, "_protocol") and not isinstance(reader, _Reader):
        reader._protocol = played  # noqa: SLF001
        reader.__class__ = _derive_class(_Reader, type(reader))
