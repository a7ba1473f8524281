"""aiohttp, and what is built on it: what a program saw while recording it sees again, with the provider gone."""

from __future__ import annotations

import asyncio
import functools
import gzip
import io
import json
import os
import socket
import threading
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import aiohttp
import brotli
import pytest

from tape_jupyter.core.call import Play, Reply
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.session.session import TapeSession
from tape_jupyter.core.context import SENDING
from tape_jupyter.secrets.registry import Secrets
from tests.harness.memory_tape import MemoryTape, taped
from tests.harness.provider import Provider, Scripted, closed_port, sse
from tests.harness.taped_cells import on_tape
from tests.harness.taped_cells import taped as taped_cell
from tests.harness.wire_runs import deaf_port, live_source, provider, tape, twice

PROMPT = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "Where is the amber fox?"}],
}
STREAMED = {**PROMPT, "stream": True}
EVENTS = sse((None, 1), (None, 2), (None, 3))


def told(error: BaseException) -> Any:
    return type(error), str(error)


def post(url: str, method: str = "POST", session: Any = None, **options: Any) -> Any:
    """status, raw headers, body, version, reason; or the error's class and text."""

    async def run() -> Any:
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(5), **(session or {})
        ) as client:
            try:
                async with client.request(method, url, **options) as reply:
                    return (
                        reply.status,
                        reply.raw_headers,
                        await reply.read(),
                        reply.version,
                        reply.reason,
                    )
            except (aiohttp.ClientError, TimeoutError) as error:
                return told(error)

    return asyncio.run(run())


def stream(
    url: str,
    how: Callable[[Any], Any] = lambda c: c.iter_any(),
    read: int | None = None,
    on_chunk: Any = bool,
    **options: Any,
) -> Any:
    """The chunks as an iterator of the body gives them, at most `read`, then how it ended."""
    chunks: list[Any] = []

    async def run() -> Any:
        timeout = options.pop("timeout", aiohttp.ClientTimeout(5))
        async with aiohttp.ClientSession(timeout=timeout) as client:
            try:
                async with client.post(url, **options) as reply:
                    async for chunk in how(reply.content):
                        chunks.append(chunk)
                        on_chunk(chunk)
                        if len(chunks) == read:
                            return chunks, "left"
            except (aiohttp.ClientError, TimeoutError) as error:
                return chunks, told(error)
        return chunks, "ended"

    chunks.clear()
    return asyncio.run(run())


# Replies


def test_a_json_reply_comes_back_the_same(provider, tape):
    status, headers, body, version, reason = twice(
        tape, provider, lambda: post(f"{provider.url}/v1/messages", json=PROMPT)
    )
    assert (status, version, reason) == (200, (1, 1), "OK") and b"You wrote 5 words" in body
    assert (b"content-type", b"application/json") in headers
    assert (
        tape.entries[0].end == "complete"
        and tape.entries[0].request.url == f"{provider.url}/v1/messages"
    )


WAYS: dict[str, Callable[[Any], Any]] = {
    "any": lambda c: c.iter_any(),
    "chunked": lambda c: c.iter_chunked(64),
    "chunked small": lambda c: c.iter_chunked(7),
    "chunks": lambda c: c.iter_chunks(),
    "lines": lambda c: c,
}


@pytest.mark.parametrize("path", ["/v1/messages", "/sized", "/old", "/gzip", "/burst", "/large"])
@pytest.mark.parametrize("how", WAYS)
def test_every_way_to_iterate_gives_the_same_again(how, path, provider, tape):
    packed = zlib.compressobj(wbits=31)
    flushed = [packed.compress(event) + packed.flush(zlib.Z_SYNC_FLUSH) for event in EVENTS * 9] + [
        packed.flush()
    ]
    provider.script(
        "/sized", Scripted(200, {"content-length": "90"}, [b"a" * 30, b"b\n" * 30], delay=0.01)
    )
    provider.script(
        "/old", Scripted(200, {"connection": "close"}, [b"a\n" * 10, b"b" * 10], then="close")
    )
    provider.script("/gzip", Scripted(200, {"content-encoding": "gzip"}, flushed, delay=0.002))
    provider.script("/burst", Scripted(200, {}, EVENTS * 50))
    provider.script(
        "/large", Scripted(200, {"transfer-encoding": "chunked"}, [b"line\n" * 60_000, b"tail\n"])
    )
    if how == "chunks" and path not in ("/sized", "/old"):
        pytest.skip("whether a part ends an HTTP chunk that came in parts is not on the tape")
    chunks, end = twice(
        tape, provider, lambda: stream(provider.url + path, WAYS[how], json=STREAMED)
    )
    assert chunks and end == "ended" and tape.entries[0].end == "complete"


READS: dict[str, Callable[[Any], Any]] = {
    "read": lambda r: r.read(),
    "text": lambda r: r.text(),
    "read all": lambda r: r.content.read(),
    "read some": lambda r: several(r.content.read, 100, 3, 1000, -1),
    "readany": lambda r: several(lambda _: r.content.readany(), 1, 2, 3),
    "readexactly": lambda r: r.content.readexactly(200),
    "readline": lambda r: several(lambda _: r.content.readline(), 1, 2, 3),
    "readuntil": lambda r: r.content.readuntil(b"content_block_start"),
    "readchunk": lambda r: several(lambda _: r.content.readchunk(), 1, 2, 3),
    "mixed": lambda r: several(
        lambda n: r.content.readline() if n % 2 else r.content.read(n), 10, 11, 12, 13, 500, 1000
    ),
    "to the end": lambda r: to_the_end(r.content),
    "json": lambda r: r.json(content_type=None),
}


async def several(read: Callable[[int], Any], *sizes: int) -> list[Any]:
    return [await read(size) for size in sizes]


async def to_the_end(content: Any) -> bytes:
    parts = []
    while not content.at_eof():
        parts.append(await content.read(50))
    return b"".join(parts)


@pytest.mark.parametrize("how", READS)
def test_every_way_to_read_a_body_gives_the_same_again(how, provider, tape):
    asked = PROMPT if how == "json" else STREAMED

    async def run() -> Any:
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{provider.url}/v1/messages", json=asked) as reply,
        ):
            return await READS[how](reply)

    assert twice(tape, provider, lambda: asyncio.run(run()))


def test_a_stream_of_two_thousand_events_comes_back_chunk_for_chunk(provider, tape):
    events = sse(*((None, {"n": n}) for n in range(2000)))
    provider.script("/many", Scripted(200, {"content-type": "text/event-stream"}, events))
    chunks, _ = twice(tape, provider, lambda: stream(f"{provider.url}/many"))
    assert b"".join(chunks) == b"".join(events) and tape.entries[0].chunks == chunks


def test_chunks_that_come_apart_are_recorded_apart(provider, tape):
    gates = {n: threading.Event() for n in range(1, 3)}
    provider.script("/slow", Scripted(200, {}, EVENTS, gates=gates))
    opened = iter(gates.values())
    chunks, _ = twice(
        tape,
        provider,
        lambda: stream(
            f"{provider.url}/slow", on_chunk=lambda _: next(opened, threading.Event()).set()
        ),
    )
    assert chunks == tape.entries[0].chunks == EVENTS


def test_the_first_token_arrives_before_the_second_is_sent(provider, tape):
    asked = threading.Event()
    provider.script("/slow", Scripted(200, {}, EVENTS, gates={1: asked}))
    chunks, _ = stream(f"{provider.url}/slow", on_chunk=lambda _: asked.set())
    assert b"".join(chunks) == b"".join(EVENTS)


def test_a_chunk_is_on_the_tape_before_the_program_has_it(provider, tape):
    on_tape: list[bool] = []
    taken: list[bytes] = []

    def note(chunk: bytes) -> None:
        taken.append(chunk)
        on_tape.append(b"".join(tape.entries[0].chunks) == b"".join(taken))

    stream(f"{provider.url}/v1/messages", on_chunk=note, json=STREAMED)
    assert on_tape and all(on_tape)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b'{"ok": true}', mtime=0)),
        ("deflate", zlib.compress(b'{"ok": true}')),
        ("br", brotli.compress(b'{"ok": true}')),
    ],
)
@pytest.mark.parametrize("unpack", [True, False])
def test_a_compressed_body_is_kept_compressed_and_read_as_before(
    encoding, packed, unpack, provider, tape
):
    provider.script(
        "/packed", Scripted(200, {"content-encoding": encoding}, [packed[:9], packed[9:]])
    )
    run = lambda: post(f"{provider.url}/packed", auto_decompress=unpack)
    assert twice(tape, provider, run)[2] == (b'{"ok": true}' if unpack else packed)
    assert b"".join(tape.entries[0].chunks) == packed and tape.entries[0].end == "complete"


def test_a_body_that_cannot_be_unpacked_is_the_same_error_again(provider, tape):
    provider.script("/bad", Scripted(200, {"content-encoding": "gzip"}, [b"not gzip at all"]))
    kind, text = twice(tape, provider, lambda: post(f"{provider.url}/bad"))
    assert kind is aiohttp.ClientPayloadError and "gzip" in text
    assert tape.entries[0].chunks == [b"not gzip at all"]


@pytest.mark.parametrize(
    ("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304), ("GET", 200)]
)
def test_a_reply_without_a_body_comes_back(method, status, provider, tape):
    provider.script(
        "/none",
        Scripted(
            status,
            {"content-length": "5"} if method == "HEAD" else {},
            [b"12345"] if status != 200 or method == "HEAD" else [],
        ),
    )
    assert twice(tape, provider, lambda: post(f"{provider.url}/none", method))[:1] == (status,)
    assert tape.entries[0].end == "complete" and not tape.entries[0].chunks


def test_status_reason_repeated_headers_and_cookies_come_back(provider, tape):
    headers = [
        ("Set-Cookie", "a=1"),
        ("X-Name", "Ünï".encode().decode("latin-1")),
        ("set-cookie", "b=2"),
        ("X-Empty", ""),
    ]
    provider.script("/odd", Scripted(418, headers, [b"tea"], reason="I am short and stout"))

    async def odd() -> Any:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            async with client.get(f"{provider.url}/odd") as reply:
                await reply.read()
            async with client.get(f"{provider.url}/odd") as again:
                kept = again.request_info.headers["Cookie"]
            return (
                reply.status,
                reply.reason,
                reply.raw_headers,
                reply.cookies["b"].value,
                reply.headers.getall("x-name"),
                kept,
            )

    status, reason, raw, *_, cookies = twice(tape, provider, lambda: asyncio.run(odd()))
    assert (status, reason, cookies) == (418, "I am short and stout", "a=1; b=2")
    assert raw[:4] == tuple((name.encode(), value.encode("latin-1")) for name, value in headers)


def test_chunks_that_end_in_a_line_feed_alone_are_heard_whole(provider, tape):
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    provider.script(
        "/bare", Scripted(0, (), [head + b"3\r\nabc\n2\r\nde\n0\r\n\r\n"], then="close")
    )
    assert twice(tape, provider, lambda: post(f"{provider.url}/bare"))[2] == b"abcde"


@pytest.mark.parametrize("phrase", ["成功".encode(), "Déjà".encode(), "Déjà".encode("latin-1")])
def test_a_reason_in_any_alphabet_comes_back(provider, tape, phrase):
    whole = b"HTTP/1.1 200 " + phrase + b"\r\ncontent-length: 1\r\n\r\nx"
    provider.script("/reason", Scripted(0, (), [whole], then="close"))
    *_, reason = twice(tape, provider, lambda: post(f"{provider.url}/reason"))
    assert reason == phrase.decode("utf-8", "surrogateescape")
    assert tape.entries[0].reason == phrase.decode("latin-1")


def test_each_hop_of_a_redirect_is_a_call(provider, tape):
    provider.script("/there", Scripted(307, {"location": "/here"}, [b"go on"]))
    provider.script("/here", Scripted(200, {}, [b"here"]))

    async def run() -> Any:
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{provider.url}/there", json=PROMPT) as reply,
        ):
            return reply.history[0].status, str(reply.url), await reply.read()

    assert twice(tape, provider, lambda: asyncio.run(run())) == (
        307,
        f"{provider.url}/here",
        b"here",
    )
    assert [entry.status for entry in tape.entries] == [307, 200]
    assert tape.entries[0].request.body == tape.entries[1].request.body == provider.requests[1].body


def test_raise_for_status_raises_the_same_again(provider, tape):
    provider.script("/busy", Scripted(429, {"retry-after": "1"}, [b"slow down"]))

    async def run() -> Any:
        async with aiohttp.ClientSession(raise_for_status=True) as client:
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await client.get(f"{provider.url}/busy")
            return caught.value.status, str(caught.value), caught.value.headers["retry-after"]

    assert twice(tape, provider, lambda: asyncio.run(run()))[0] == 429


def test_a_reply_that_was_not_read_is_kept_once_it_is_closed(provider, tape):
    def run() -> Any:
        async def unread() -> Any:
            async with (
                aiohttp.ClientSession() as client,
                client.post(f"{provider.url}/v1/messages", json=PROMPT) as reply,
            ):
                await asyncio.sleep(0.05)
                return reply.status

        return asyncio.run(unread())

    twice(tape, provider, run)
    assert tape.entries[0].end == "complete" and b"You wrote" in b"".join(tape.entries[0].chunks)


# Errors


def test_a_refused_connection_is_the_same_error_again(provider, tape):
    port = closed_port()

    async def run() -> Any:
        async with aiohttp.ClientSession() as client:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await client.get(f"http://127.0.0.1:{port}/")
            error = caught.value
            return told(error), error.host, error.port, error.errno, type(error.os_error), error.ssl

    kind, text = twice(tape, provider, lambda: asyncio.run(run()))[0]
    assert kind is aiohttp.ClientConnectorError and text.startswith(
        f"Cannot connect to host 127.0.0.1:{port} ssl:default"
    )


def test_an_unknown_host_is_the_same_error_again(provider, tape):
    kind, _ = twice(tape, provider, lambda: post("http://nobody.invalid/"))
    assert kind is aiohttp.ClientConnectorDNSError


def test_a_connection_closed_without_an_answer_is_the_same_error_again(provider, tape):
    provider.script("/gone", Scripted(0, then="close"))
    assert twice(tape, provider, lambda: post(f"{provider.url}/gone")) == (
        aiohttp.ServerDisconnectedError,
        "Server disconnected",
    )


def test_a_get_that_lost_its_connection_is_tried_again_as_it_was(provider, tape):
    provider.script("/flaky", Scripted(0, then="close"), Scripted(200, {}, [b"yes"]))
    assert twice(tape, provider, lambda: post(f"{provider.url}/flaky", "GET"))[2] == b"yes"
    assert [entry.status for entry in tape.entries] == [None, 200]


def test_an_answer_that_is_not_http_is_the_same_error_again(tape, provider):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"hello there\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        kind, _ = twice(tape, provider, lambda: post(url))
        thread.join()
    assert kind is aiohttp.ClientResponseError


def test_a_server_that_does_not_speak_tls_is_the_same_error_again(provider, tape):
    kind, _ = twice(tape, provider, lambda: post(provider.url.replace("http:", "https:")))
    assert issubclass(kind, aiohttp.ClientConnectorError)


LIMITS = {
    "total": aiohttp.ClientTimeout(0.15),
    "read": aiohttp.ClientTimeout(sock_read=0.15),
    "connect": aiohttp.ClientTimeout(sock_connect=0.15),
    "pool": aiohttp.ClientTimeout(connect=0.15),
}


@pytest.mark.parametrize("limit", ["total", "read"])
def test_an_answer_that_takes_too_long_is_the_same_error_again(limit, provider, tape):
    provider.script("/mute", Scripted(0, then="hang"))
    kind, _ = twice(tape, provider, lambda: post(f"{provider.url}/mute", timeout=LIMITS[limit]))
    assert kind is (aiohttp.SocketTimeoutError if limit == "read" else TimeoutError)


@pytest.mark.parametrize("limit", ["connect", "pool", "total"])
def test_a_connection_that_takes_too_long_is_the_same_error_again(limit, provider, tape):
    with deaf_port() as port:
        kind, text = twice(
            tape, provider, lambda: post(f"http://127.0.0.1:{port}/", timeout=LIMITS[limit])
        )
    assert (kind, text[:18]) == {"total": (TimeoutError, "")}.get(
        limit, (aiohttp.ConnectionTimeoutError, "Connection timeout")
    )


@pytest.mark.parametrize("limit", ["total", "read"])
@pytest.mark.parametrize("then", ["reset", "close", "hang"])
def test_a_stream_that_breaks_off_gives_the_same_part_and_the_same_error(
    then, limit, provider, tape
):
    read = threading.Event()
    provider.script("/breaks", Scripted(200, {}, EVENTS[:2], then=then, gates={1: read, 2: read}))
    run = lambda: stream(
        f"{provider.url}/breaks", on_chunk=lambda _: read.set(), timeout=LIMITS[limit]
    )
    chunks, (kind, _) = twice(tape, provider, run)
    late = {"total": TimeoutError, "read": aiohttp.SocketTimeoutError}[limit]
    assert (
        kind is (late if then == "hang" else aiohttp.ClientPayloadError) and chunks[0] == EVENTS[0]
    )
    assert tape.entries[0].end == "error"


@pytest.mark.parametrize("then", ["reset", "close"])
def test_what_a_lost_connection_threw_away_unread_stays_unread(then, provider, tape):
    """aiohttp forgets what it has buffered once the connection is lost."""
    provider.script("/breaks", Scripted(200, {}, EVENTS, then=then))

    async def run() -> Any:
        found = []
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{provider.url}/breaks") as reply,
        ):
            await asyncio.sleep(0.1)
            try:
                found.append(await reply.content.readany())
            except aiohttp.ClientPayloadError as error:
                return found, told(error)
        return found

    found, _ = twice(tape, provider, lambda: asyncio.run(run()))
    assert not found and not tape.entries[0].chunks


def test_a_body_shorter_than_its_length_is_the_same_error_again(provider, tape):
    provider.script("/short", Scripted(200, {"content-length": "10"}, [b"five!"], then="close"))
    kind, text = twice(tape, provider, lambda: post(f"{provider.url}/short"))
    assert kind is aiohttp.ClientPayloadError and "received 5 of 10" in text


def test_a_stream_left_early_replays_to_the_same_byte(provider, tape):
    provider.script("/slow", Scripted(200, {}, EVENTS, gates={2: threading.Event()}))
    chunks, end = twice(
        tape, provider, lambda: stream(f"{provider.url}/slow", lambda c: c.iter_chunked(3), 4)
    )
    assert end == "left" and tape.entries[0].end == "closed"


def test_reading_past_the_point_where_the_program_left_is_refused(provider, tape):
    provider.script("/slow", Scripted(200, {}, EVENTS, gates={1: threading.Event()}))
    stream(f"{provider.url}/slow", read=1)
    tape.rewind()
    with pytest.raises(UnmatchedCall, match="the recording ends here.*after 1 chunks"):
        stream(f"{provider.url}/slow")


def test_a_miss_is_raised_at_once_and_nothing_is_sent(provider, tape):
    tape.rewind()
    with pytest.raises(UnmatchedCall):
        post(f"{provider.url}/v1/messages", json=PROMPT)
    assert provider.connections == 0


def test_a_call_the_tape_does_not_want_passes_untouched(provider, tape):
    tape.ignored = True
    assert post(f"{provider.url}/v1/messages", json=PROMPT)[0] == 200
    assert not tape.entries


@pytest.mark.parametrize(
    "chunks", [[b'{"edited": true}'], [b'{"edited"', b": true, as it were}" * 20]]
)
def test_a_reply_edited_to_another_length_is_read_whole(chunks, provider, tape):
    post(f"{provider.url}/v1/messages", json=PROMPT)
    tape.entries[0].chunks = chunks
    tape.rewind()
    _, headers, body, *_ = post(f"{provider.url}/v1/messages", json=PROMPT)
    assert body == b"".join(chunks) and (b"content-length", str(len(body)).encode()) in headers


# Requests


async def parts() -> Any:
    yield b"one,"
    yield b"two"


def form() -> Any:
    data = aiohttp.FormData()
    data.add_field("name", "värde")
    data.add_field("file", io.BytesIO(b"file body"), filename="a.txt")
    return data


def mixed() -> Any:
    with aiohttp.MultipartWriter("mixed") as writer:
        writer.append("text")
        writer.append_json({"a": 1})
    return writer


class Pipe(io.RawIOBase):
    """A file that cannot be read twice."""

    def __init__(self) -> None:
        self.left = [b"piped ", b"body"]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def readinto(self, room: Any) -> int:
        part = self.left.pop(0) if self.left else b""
        room[: len(part)] = part
        return len(part)


BODIES: dict[str, Callable[[], dict[str, Any]]] = {
    "json": lambda: {"json": PROMPT},
    "text": lambda: {"data": "téxt"},
    "bytes": lambda: {"data": b"bytes"},
    "bytearray": lambda: {"data": bytearray(b"array")},
    "form": lambda: {"data": {"a": "1", "b": "ü"}},
    "file": lambda: {"data": io.BytesIO(b"file")},
    "pipe": lambda: {"data": io.BufferedReader(Pipe())},
    "multipart form": lambda: {"data": form()},
    "multipart": lambda: {"data": mixed()},
    "streamed": lambda: {"data": parts()},
    "compressed": lambda: {"data": b"bytes " * 50, "compress": True},
    "compressed gzip": lambda: {"json": PROMPT, "compress": "gzip"},
    "compressed stream": lambda: {"data": parts(), "compress": True},
    "expect": lambda: {"json": PROMPT, "expect100": True},
    "empty": lambda: {"data": b""},
    "none": dict,
}


@pytest.mark.parametrize("how", BODIES)
def test_a_request_body_is_seen_whole_and_sent_as_before(how, provider, tape):
    provider.script("/x", Scripted(200, {}, [b"thanks"]))
    status, _, body, *_ = post(f"{provider.url}/x", **BODIES[how]())
    assert (status, body) == (200, b"thanks")
    request, seen = tape.entries[0].request, provider.requests[0]
    assert request.body == seen.body
    assert request.header("content-type") in ("", seen.headers["content-type"])
    provider.stop()
    tape.rewind()
    if "multipart" not in how:
        assert post(f"{provider.url}/x", **BODIES[how]())[2] == b"thanks"


def test_the_connection_of_a_reply_says_whom_it_was_with(provider, tape):
    provider.script(
        "/slow",
        Scripted(
            200,
            {"content-length": "90"},
            [b"a" * 30, b"b" * 60],
            gates={1: (read := threading.Event())},
        ),
    )

    async def ask() -> Any:
        async with aiohttp.ClientSession() as session, session.get(f"{provider.url}/slow") as reply:
            await reply.content.readany()
            found = reply.connection.transport.get_extra_info("peername")
            read.set()
            return found, await reply.read()

    assert twice(tape, provider, lambda: asyncio.run(ask()))[0] == ("127.0.0.1", provider.port)


def test_an_untaped_body_is_sent_as_it_comes(provider, tape):
    async def body() -> Any:
        for part in live_source(provider):
            yield part

    tape.ignored = True
    post(f"{provider.url}/x", data=body())
    assert provider.requests[0].body == b"somebody listens" and not tape.entries


@pytest.mark.parametrize("error", [ValueError("no more"), OSError(5, "unreadable")], ids=repr)
def test_a_body_that_fails_is_the_error_that_it_is_untaped(error, provider, tape):
    async def body() -> Any:
        yield b"part"
        raise error

    run = lambda: post(f"{provider.url}/x", data=body())[0]
    tape.ignored = True
    untaped = run()
    tape.ignored = False
    assert twice(tape, provider, run) is untaped


@pytest.mark.parametrize("how", ["multipart form", "multipart"])
def test_a_boundary_does_not_count(how, provider, tape):
    for _ in range(2):
        post(f"{provider.url}/x", **BODIES[how]())
    one, other = (entry.request for entry in tape.entries)
    assert one.body != other.body and match_key(one, Secrets()) == match_key(other, Secrets())


@pytest.mark.parametrize("how", ["streamed", "pipe"])
def test_a_body_that_can_be_read_once_is_not_sent_twice(how, provider, tape):
    """As aiohttp has it: a redirect that would repeat such a body is an error."""
    provider.script("/there", Scripted(307, {"location": "/here"}))
    kind, _ = post(f"{provider.url}/there", **BODIES[how]())
    assert kind is aiohttp.ClientPayloadError and len(provider.requests) == 1


def test_the_request_is_told_as_it_was_given(provider, tape):
    headers = [("X-Two", "1"), ("X-Two", "2"), ("Authorization", "Bearer k")]
    post(f"{provider.url}/a b?b=2&a=ü#part", "post", params={"c": "d e"}, headers=headers)
    request = tape.entries[0].request
    assert (request.method, request.url) == ("POST", f"{provider.url}/a%20b?b=2&a=%C3%BC&c=d+e")
    assert [pair for pair in request.headers if pair[0].lower() == "x-two"] == [
        ("X-Two", "1"),
        ("X-Two", "2"),
    ]


def test_through_a_proxy_the_target_is_told_and_replay_opens_no_tunnel(provider, tape):
    tape.rewind()
    for target in ("http://example.invalid/v1/messages", "https://example.invalid/v1/messages"):
        with pytest.raises(UnmatchedCall):
            post(target, proxy=provider.url)
    assert [call.url for call in tape.missed] == [
        "http://example.invalid/v1/messages",
        "https://example.invalid/v1/messages",
    ]
    assert provider.connections == 0


# Cancelling


def test_a_task_cancelled_mid_stream_replays_to_the_same_byte(provider, tape):
    provider.script(
        "/long", Scripted(200, {}, EVENTS[:2], then="hang", gates={1: threading.Event()})
    )

    async def consume(chunks: list[bytes], seen: asyncio.Event) -> None:
        async with aiohttp.ClientSession() as client, client.post(f"{provider.url}/long") as reply:
            async for chunk in reply.content.iter_any():
                chunks.append(chunk)
                seen.set()

    async def cancelled() -> Any:
        chunks: list[bytes] = []
        seen = asyncio.Event()
        task = asyncio.create_task(consume(chunks, seen))
        await seen.wait()
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return chunks

    assert twice(tape, provider, lambda: asyncio.run(cancelled())) == EVENTS[:1]
    assert tape.entries[0].error["class"] == "asyncio.exceptions:CancelledError"


@pytest.mark.parametrize("path", ["/mute", "/stalls"])
def test_a_timeout_around_a_call_is_a_timeout_again(path, provider, tape):
    provider.script("/mute", Scripted(0, then="hang"))
    provider.script("/stalls", Scripted(200, {}, [b"a"], then="hang"))

    async def limited() -> Any:
        chunks: list[bytes] = []
        async with aiohttp.ClientSession() as client:
            try:
                async with asyncio.timeout(0.1), client.get(provider.url + path) as reply:
                    async for chunk in reply.content.iter_any():
                        chunks.append(chunk)
            except TimeoutError:
                return chunks

    assert twice(tape, provider, lambda: asyncio.run(limited())) == (
        [] if path == "/mute" else [b"a"]
    )


def test_a_program_that_waits_in_short_turns_reads_on(provider, tape):
    turns = threading.Event()
    provider.script("/slow", Scripted(200, {}, EVENTS[:2], gates={1: turns}))

    async def run() -> Any:
        found, late = [], 0
        async with aiohttp.ClientSession() as client, client.get(f"{provider.url}/slow") as reply:
            while not reply.content.at_eof():
                try:
                    found.append(await asyncio.wait_for(reply.content.readany(), 0.05))
                except TimeoutError:
                    late += 1
                    turns.set()
        return b"".join(found)

    assert twice(tape, provider, lambda: asyncio.run(run())) == b"".join(EVENTS[:2])
    assert tape.entries[0].end == "complete"


def test_gathered_calls_come_back_to_their_tasks(provider, tape):
    async def run() -> Any:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=2)) as client:

            async def ask(number: int) -> Any:
                async with client.post(
                    f"{provider.url}/v1/messages", json={**PROMPT, "n": number}
                ) as reply:
                    return (await reply.json())["id"]

            return await asyncio.gather(*map(ask, range(6)))

    assert len(set(twice(tape, provider, lambda: asyncio.run(run())))) == 6


# Sessions, layers, patches


def test_a_session_made_before_the_patch_is_taped_and_the_undo_is_complete(provider):
    owners = (
        aiohttp.BaseConnector,
        aiohttp.ClientRequest,
        aiohttp.ClientResponse,
        aiohttp.StreamReader,
    )
    before = {owner: dict(vars(owner)) for owner in owners}

    async def run() -> Any:
        async with aiohttp.ClientSession() as client:
            with taped(MemoryTape()) as tape:
                async with client.post(f"{provider.url}/v1/messages", json=PROMPT) as reply:
                    await reply.read()
                assert len(tape.entries) == 1 and not SENDING.get()

    asyncio.run(run())
    assert {owner: dict(vars(owner)) for owner in owners} == before


def test_a_connection_kept_open_from_before_the_cell_is_taped_and_never_live_in_replay(tmp_path):
    path = tmp_path / "n.tapes" / "main.tape.yaml"

    async def run(provider: Provider) -> None:
        deck = TapeSession()
        async with aiohttp.ClientSession() as client:

            async def ask(path: str = "/v1/messages") -> bytes:
                async with client.post(provider.url + path, json=PROMPT) as reply:
                    return await reply.read()

            await ask()
            with taped_cell(deck, "record", path):
                recorded = await ask()
            assert provider.connections == 1 and len(on_tape(path).calls) == 1
            with taped_cell(deck, "replay", path):
                assert await ask() == recorded
            with pytest.raises(UnmatchedCall), taped_cell(deck, "replay", path):
                await ask("/v1/other")
            assert len(provider.requests) == 2
            await ask()
            assert len(provider.requests) == 3 and provider.connections == 1
        deck.unhook()

    with Provider() as provider:
        asyncio.run(run(provider))


@pytest.mark.parametrize("asked", [PROMPT, STREAMED], ids=["whole", "streamed"])
def test_a_call_is_in_the_file_before_the_program_has_its_last_byte(asked, tmp_path):
    path = tmp_path / "n.tapes" / "main.tape.yaml"

    async def run(url: str) -> list[int]:
        kept = []
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{url}/v1/messages", json=asked) as reply,
        ):
            async for chunk in reply.content.iter_any():
                if b"message_stop" in chunk or b"end_turn" in chunk:
                    kept.append(len(on_tape(path).calls))
        return kept[-1:]

    deck = TapeSession()
    with Provider(delay=0.005) as provider, taped_cell(deck, "record", path):
        assert asyncio.run(run(provider.url)) == [1]
    deck.unhook()


def test_replay_gives_no_connection_to_the_pool_and_leaves_nothing_open(provider, tape):
    async def run() -> Any:
        async with aiohttp.ClientSession() as client:
            for _ in range(3):
                async with client.post(f"{provider.url}/v1/messages", json=PROMPT) as reply:
                    await reply.read()
            connector = client.connector
            return len(connector._acquired), sum(map(len, connector._conns.values()))

    assert asyncio.run(run()) == (0, 1)
    tape.rewind()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(run()) == (0, 0)


def test_connections_are_reused_while_recording(provider, tape):
    async def run() -> Any:
        async with aiohttp.ClientSession() as client:
            for _ in range(3):
                async with client.post(f"{provider.url}/v1/messages", json=STREAMED) as reply:
                    await reply.read()

    twice(tape, provider, lambda: asyncio.run(run()))
    assert provider.connections == 1


def test_a_middleware_that_asks_again_makes_calls_of_its_own(provider, tape):
    provider.script("/busy", Scripted(503, {}, [b"no"]), Scripted(200, {}, [b"yes"]))

    async def retry(request: Any, handler: Any) -> Any:
        reply = await handler(request)
        return reply if reply.ok else await handler(request)

    run = lambda: post(f"{provider.url}/busy", session={"middlewares": (retry,)})
    assert twice(tape, provider, run)[2] == b"yes"
    assert [entry.status for entry in tape.entries] == [503, 200]


def test_a_large_body_read_slowly_is_held_back_as_before_and_comes_back(provider, tape):
    large = os.urandom(3_000_000)
    provider.script(
        "/large",
        Scripted(
            200,
            {"transfer-encoding": "chunked"},
            [large[i : i + 70_000] for i in range(0, len(large), 70_000)],
        ),
    )

    async def run() -> Any:
        found = []
        async with aiohttp.ClientSession() as client, client.get(f"{provider.url}/large") as reply:
            async for chunk in reply.content.iter_chunked(9_000):
                found.append(chunk)
                await asyncio.sleep(0)
        return found

    assert b"".join(twice(tape, provider, lambda: asyncio.run(run()))) == large


# Replies nobody recorded in this process


class Given(MemoryTape):
    """Plays this reply to whatever is asked."""

    def __init__(self, reply: Reply, gate: Any = None) -> None:
        super().__init__()
        self.play = Play(reply, gate)

    def begin(self, call: Any) -> Play:
        return self.play


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (ConnectionRefusedError(111, "no"), "ClientConnectorError"),
        (OSError(5, "io"), "ClientOSError"),
        (ConnectionResetError(104, "reset"), "ClientOSError"),
    ],
)
def test_an_injected_fault_is_raised_as_the_librarys_own_error(fault, name):
    with taped(Given(Reply(None, end="error", error=freeze_error(fault)))):
        assert post("http://example.invalid/")[0] is getattr(aiohttp, name)


def test_a_connection_lost_by_an_injected_fault_is_told_in_aiohttps_words():
    chunked = (("transfer-encoding", "chunked"),)
    reply = Reply(
        200,
        chunked,
        (b"one", b"two"),
        (0.0, 0.0),
        "error",
        freeze_error(ConnectionResetError(104, "reset")),
    )
    with taped(Given(reply)):
        chunks, (kind, text) = stream("http://example.invalid/")
    assert chunks == [b"one", b"two"] and kind is aiohttp.ClientPayloadError and "reset" in text


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_a_reply_without_framing_is_read_to_its_end(version):
    with taped(Given(Reply(200, (("x-a", "1"),), (b"one", b"two"), (0.0, 0.0), version=version))):
        assert post("http://example.invalid/")[2] == b"onetwo"


class NotedGate:
    """Passes everything, and notes what it was asked."""

    each = ends = False

    def __init__(self) -> None:
        self.asked: list[tuple[float, bool]] = []

    async def wait_async(self, seconds: float, *, last: bool = False) -> None:
        self.asked.append((seconds, last))


def test_a_gate_is_passed_before_the_head_and_before_each_chunk():
    gate = NotedGate()

    async def run() -> None:
        async with (
            aiohttp.ClientSession() as client,
            client.get("http://example.invalid/") as reply,
        ):
            assert gate.asked == [(0.5, False)]
            assert await reply.read() == b"ab"

    with taped(Given(Reply(200, (("content-length", "2"),), (b"a", b"b"), (0.5, 0.7)), gate)):
        asyncio.run(run())
    assert gate.asked == [(0.5, False), (0.7, True)]


# What is built on it

GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "In the den."}]}, "finishReason": "STOP"}
    ]
}


async def gemini(url: str) -> Any:
    """What google-genai's async client gives: a whole answer, a stream, an error."""
    from google import genai
    from google.genai import errors

    async with genai.Client(api_key="k", http_options={"base_url": url}).aio as client:
        whole = await client.models.generate_content(model="m", contents="Where is the fox?")
        stream = await client.models.generate_content_stream(
            model="m", contents="Where is the fox?"
        )
        parts = [part.model_dump_json() async for part in stream]
        with pytest.raises(errors.APIError) as caught:
            await client.models.generate_content(model="none", contents="Where?")
        return whole.model_dump_json(), parts, caught.value.code, str(caught.value)


@pytest.mark.filterwarnings(
    "ignore:Inheritance class AiohttpClientSession:DeprecationWarning"
)  # google-genai's own
def test_google_genais_async_client_gives_the_same_objects_again(provider, tape):
    events = [event.replace(b"\n", b"\r\n") for event in sse((None, GEMINI), (None, GEMINI))]
    whole = {"content-type": "application/json"}
    provider.script(
        "/v1/models/m:generateContent", Scripted(200, whole, [json.dumps(GEMINI).encode()])
    )
    provider.script(
        "/v1/models/m:streamGenerateContent",
        Scripted(200, {"content-type": "text/event-stream"}, events),
    )
    told = {"error": {"code": 404, "message": "no such model", "status": "NOT_FOUND"}}
    provider.script(
        "/v1/models/none:generateContent", Scripted(404, whole, [json.dumps(told).encode()])
    )
    _, parts, code, _ = twice(tape, provider, lambda: asyncio.run(gemini(provider.url)))
    assert len(parts) == 2 and code == 404
    assert (
        all("aiohttp" in entry.request.header("user-agent").lower() for entry in tape.entries)
        or len(tape.entries) == 3
    )
    assert [entry.end for entry in tape.entries] == ["complete"] * 3


async def over_aiohttp(transport: Any, url: str, closed: int) -> Any:
    """What an SDK gives that sends with httpx over a transport of aiohttp's."""
    import httpx

    http = httpx.AsyncClient(transport=transport)
    async with http:
        reply = await http.post(f"{url}/v1/messages", json=PROMPT)
        async with http.stream("POST", f"{url}/v1/chat/completions", json=STREAMED) as stream:
            lines = [line async for line in stream.aiter_lines()]
        with pytest.raises(httpx.TransportError) as caught:
            await http.post(f"http://127.0.0.1:{closed}/")
    return reply.json(), lines, told(caught.value)


def test_httpx_over_aiohttp_is_recorded_once_and_comes_back(provider, tape):
    from httpx_aiohttp import AiohttpTransport

    port = closed_port()
    _, lines, _ = twice(
        tape, provider, lambda: asyncio.run(over_aiohttp(AiohttpTransport(), provider.url, port))
    )
    assert lines[-2] == "data: [DONE]" and len(provider.requests) == 2
    assert len(tape.entries) == 3


@pytest.mark.filterwarnings("ignore")  # litellm's own
def test_litellm_is_recorded_once_and_gives_the_same_again(provider, tape, monkeypatch):
    monkeypatch.setenv(
        "LITELLM_LOCAL_MODEL_COST_MAP", "True"
    )  # else it fetches prices when it is imported
    litellm = pytest.importorskip(
        "litellm", reason="its pins do not go with those of the other SDKs"
    )
    messages = PROMPT["messages"]

    async def run() -> Any:
        found = []
        for model, url in (("openai/m", f"{provider.url}/v1"), ("anthropic/m", provider.url)):
            ask = functools.partial(
                litellm.acompletion, model=model, api_base=url, api_key="k", messages=messages
            )
            found.append((await ask()).choices[0].model_dump())
            found.append([part.model_dump()["choices"] async for part in await ask(stream=True)])
        return found

    assert len(twice(tape, provider, lambda: asyncio.run(run()))) == len(tape.entries) == 4
