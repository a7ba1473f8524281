"""lm15, which DSPy sends by: what a program saw while recording it sees again, with the provider gone."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import pytest
from lm15 import transports

from tape_jupyter.core.call import Play, Reply
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.errors import UnmatchedCall
from tests.harness.memory_tape import MemoryTape, taped
from tests.harness.provider import Scripted, closed_port, sse
from tests.harness.wire_runs import patience, provider, tape, twice

Run = Callable[..., Any]
EVENTS = sse((None, 1), (None, 2), (None, 3))


def run_blocking(url: str, read: int | None = None, seconds: float = 5) -> Any:
    chunks: list[bytes] = []
    try:
        with transports.StdlibTransport(read_timeout=seconds) as transport:
            with transport.stream(_build_request(url)) as reply:
                for chunk in reply:
                    chunks.append(chunk)
                    if len(chunks) == read:
                        break
            return reply.status, reply.reason, reply.http_version, reply.headers, chunks
    except transports.TransportError as error:
        return type(error), str(error), chunks


def run_on_asyncio(url: str, read: int | None = None, seconds: float = 5) -> Any:
    async def run() -> Any:
        chunks: list[bytes] = []
        try:
            async with transports.StdlibAsyncTransport(read_timeout=seconds) as transport:
                async with transport.stream(_build_request(url)) as reply:
                    async for chunk in reply:
                        chunks.append(chunk)
                        if len(chunks) == read:
                            break
                return reply.status, reply.reason, reply.http_version, reply.headers, chunks
        except transports.TransportError as error:
            return type(error), str(error), chunks

    return asyncio.run(run())


def _build_request(url: str) -> Any:
    headers = [("content-type", "application/json")]
    return transports.TransportRequest("POST", url, headers, b'{"model": "m"}')


@pytest.fixture(params=[run_blocking, run_on_asyncio], ids=["blocking", "asyncio"])
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_stream_comes_back_chunk_for_chunk(run: Run, provider, tape):
    provider.script("/events", Scripted(200, {"content-type": "text/event-stream"}, EVENTS))
    *head, chunks = twice(tape, provider, lambda: run(f"{provider.url}/events"))
    assert head[:3] == [200, "OK", "HTTP/1.1"] and chunks == EVENTS
    assert tape.entries[0].end == "complete" and tape.entries[0].chunks == EVENTS


def test_a_packed_body_is_kept_as_it_came_and_unpacked_as_lm15_does(run: Run, provider, tape):
    packed = gzip.compress(b"words " * 5000)
    parts = [packed[:20], packed[20:]]
    headers = {"content-encoding": "gzip", "content-type": "text/plain"}
    provider.script("/packed", Scripted(200, headers, parts))
    *_, chunks = twice(tape, provider, lambda: run(f"{provider.url}/packed"))
    assert b"".join(chunks) == b"words " * 5000
    assert b"".join(tape.entries[0].chunks) == packed


def test_a_stream_that_was_left_early_ends_there(run: Run, provider, tape):
    provider.script("/events", Scripted(200, {"content-type": "text/event-stream"}, EVENTS))
    twice(tape, provider, lambda: run(f"{provider.url}/events", 2))
    assert tape.entries[0].end == "closed"
    tape.rewind()
    with pytest.raises(UnmatchedCall, match="the program closed the stream"):
        run(f"{provider.url}/events")


@pytest.mark.parametrize("then", ["close", "reset", "hang"])
def test_a_connection_that_is_lost_or_falls_silent_fails_the_same(then, run: Run, provider, tape):
    lost = Scripted(200, {"content-length": "100"}, [b"begun"], then=then)
    provider.script("/lost", lost)
    live = twice(tape, provider, lambda: run(f"{provider.url}/lost", seconds=patience(then)))
    assert issubclass(live[0], transports.TransportError)
    assert tape.entries[0].end == "error"


def test_nobody_there_fails_the_same(run: Run, provider, tape):
    url = f"http://127.0.0.1:{closed_port()}/"
    assert twice(tape, provider, lambda: run(url))[0] is transports.ConnectError


class Given(MemoryTape):
    """Plays this reply to whatever is asked."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply

    def begin(self, call: Any) -> Play:
        return Play(self.reply)


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (ConnectionRefusedError(111, "no"), "ConnectError"),
        (TimeoutError("too long"), "ReadTimeout"),
        (ConnectionResetError(104, "reset"), "ReadError"),
    ],
)
def test_an_injected_fault_is_raised_as_the_librarys_own_error(fault, name, run: Run):
    with taped(Given(Reply(None, end="error", error=freeze_error(fault)))):
        assert run("http://example.invalid/")[0] is getattr(transports, name)
    begun = Reply(200, (), (b"begun",), end="error", error=freeze_error(fault))
    with taped(Given(begun)):
        kind, _, chunks = run("http://example.invalid/")
        assert (kind, chunks) == (getattr(transports, name), [b"begun"])
