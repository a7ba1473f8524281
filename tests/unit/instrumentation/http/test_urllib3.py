"""requests, urllib3 and boto3: what a program saw while recording it sees again, with the provider gone."""

from __future__ import annotations

import gzip
import io
import logging
import os
import re
import socket
import ssl
import threading
import warnings
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import boto3
import botocore.config
import botocore.exceptions
import pytest
import requests
import urllib3
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.core.context import SENDING
from tests.harness.memory_tape import MemoryTape, taped
from tests.harness.provider import Provider, Scripted, closed_port, frame, sse
from tests.harness.sockets import certified
from tests.harness.wire_runs import deaf_port, live_source, patience, provider, tape, twice

PROMPT = {"model": "m", "messages": [{"role": "user", "content": "Where is the amber fox?"}]}
STREAMED = {**PROMPT, "stream": True}
EVENTS = sse((None, 1), (None, 2), (None, 3))


def post(url: str, **options: Any) -> Any:
    try:
        with requests.Session() as session:
            reply = session.post(url, timeout=options.pop("timeout", 5), **options)
            return (
                reply.status_code,
                list(reply.headers.items()),
                reply.content,
                reply.reason,
                reply.raw.version,
            )
    except requests.RequestException as error:
        return told(error)


def stream(
    url: str, size: int | None = None, read: int | None = None, on_chunk: Any = bool, **options: Any
) -> Any:
    """Chunks as `iter_content(size)` gives them, at most `read`, then how it ended."""
    chunks: list[bytes] = []
    try:
        with requests.Session() as session:
            reply = session.post(url, stream=True, timeout=options.pop("timeout", 5), **options)
            with reply:
                for chunk in reply.iter_content(size):
                    chunks.append(chunk)
                    on_chunk(chunk)
                    if len(chunks) == read:
                        return chunks, "left"
    except requests.RequestException as error:
        return chunks, told(error)
    return chunks, "ended"


def told(error: BaseException) -> list[Any]:
    """Class and text of an error and of all it wraps; the address of a connection differs in every run."""
    found: list[Any] = []
    while isinstance(error, BaseException):
        found.append((type(error), re.sub(" at 0x[0-9a-f]+", "", str(error))))
        inner = getattr(error, "reason", None) or (error.args[-1] if error.args else None)
        error = inner if inner is not error else None
    return found


# requests


def test_a_json_reply_comes_back_the_same(provider, tape):
    status, headers, body, reason, version = twice(
        tape, provider, lambda: post(f"{provider.url}/v1/messages", json=PROMPT)
    )
    assert (status, reason, version) == (200, "OK", 11) and b"You wrote" in body
    assert tape.entries[0].end == "complete"


@pytest.mark.parametrize("size", [None, 7, 64, 4096])
def test_a_stream_comes_back_chunk_for_chunk(size, provider, tape):
    chunks, end = twice(
        tape, provider, lambda: stream(f"{provider.url}/v1/messages", size, json=STREAMED)
    )
    assert end == "ended" and b"message_stop" in b"".join(chunks)
    assert all(
        chunk.startswith(b"event: ") and chunk.endswith(b"\n\n") for chunk in tape.entries[0].chunks
    )
    assert tape.entries[0].end == "complete"


def test_a_stream_of_two_thousand_events_comes_back_chunk_for_chunk(provider, tape):
    events = sse(*((None, {"n": n}) for n in range(2000)))
    provider.script("/many", Scripted(200, {"content-type": "text/event-stream"}, events))
    chunks, _ = twice(tape, provider, lambda: stream(f"{provider.url}/many"))
    assert chunks == events


def test_lines_come_back_the_same(provider, tape):
    def lines() -> Any:
        with requests.post(f"{provider.url}/v1/messages", json=STREAMED, stream=True) as reply:
            return list(reply.iter_lines())

    assert twice(tape, provider, lines)[0] == b"event: message_start"


def test_a_large_chunk_that_needs_many_reads_is_one_chunk(provider, tape):
    large = os.urandom(300_000)
    provider.script("/large", Scripted(200, {"transfer-encoding": "chunked"}, [large, b"tail"]))
    assert twice(tape, provider, lambda: stream(f"{provider.url}/large", None)) == (
        [large, b"tail"],
        "ended",
    )
    assert tape.entries[0].chunks == [large, b"tail"]


def test_a_body_that_ends_with_the_connection_comes_back(provider, tape):
    provider.script(
        "/old", Scripted(200, {"connection": "close"}, [b"a" * 10, b"b" * 10], then="close")
    )
    assert twice(tape, provider, lambda: post(f"{provider.url}/old"))[2] == b"a" * 10 + b"b" * 10
    assert tape.entries[0].end == "complete"


def test_a_compressed_stream_is_kept_compressed_and_read_as_before(provider, tape):
    packed = gzip.compress(b"one two three", mtime=0)
    headers = {"content-encoding": "gzip", "transfer-encoding": "chunked"}
    provider.script("/gzip", Scripted(200, headers, [packed[:12], packed[12:]]))
    assert (
        b"".join(twice(tape, provider, lambda: stream(f"{provider.url}/gzip"))[0])
        == b"one two three"
    )
    assert tape.entries[0].chunks == [packed[:12], packed[12:]]


def test_status_reason_repeated_headers_and_cookies_come_back(provider, tape):
    headers = [
        ("Set-Cookie", "a=1"),
        ("X-Name", "Ünï".encode().decode("latin-1")),
        ("set-cookie", "b=2"),
        ("X-Empty", ""),
    ]
    provider.script("/odd", Scripted(418, headers, [b"tea"], reason="I am short and stout"))

    def odd() -> Any:
        with requests.Session() as session:
            reply = session.get(f"{provider.url}/odd")
            return reply.status_code, reply.reason, dict(session.cookies), reply.raw.headers.items()

    status, reason, cookies, raw = twice(tape, provider, odd)
    assert (status, reason, cookies) == (418, "I am short and stout", {"a": "1", "b": "2"})
    assert tape.entries[0].headers[:4] == tuple(headers)


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_a_reply_without_a_body_comes_back(method, status, provider, tape):
    provider.script(
        "/none", Scripted(status, {"content-length": "5"} if method == "HEAD" else {}, [b"12345"])
    )
    run = lambda: requests.request(method, f"{provider.url}/none").headers.get("content-length")
    assert twice(tape, provider, run) == ("5" if method == "HEAD" else None)
    assert tape.entries[0].end == "complete" and not tape.entries[0].chunks


def test_the_first_token_arrives_before_the_second_is_sent(provider, tape):
    asked = threading.Event()
    provider.script("/slow", Scripted(200, {}, EVENTS, gates={1: asked}))
    assert stream(f"{provider.url}/slow", on_chunk=lambda _: asked.set())[0] == EVENTS


def test_a_chunk_is_on_the_tape_before_the_program_has_it(provider, tape):
    early: list[bytes] = []

    def note(chunk: bytes) -> None:
        if chunk not in tape.entries[0].chunks:
            early.append(chunk)

    provider.script("/slow", Scripted(200, {}, EVENTS))
    assert stream(f"{provider.url}/slow", on_chunk=note)[0] == EVENTS and not early


def test_a_redirect_is_followed_again(provider, tape):
    provider.script("/there", Scripted(302, {"location": "/here"}, [b"go on"]))
    provider.script("/here", Scripted(200, {}, [b"here"]))
    assert (
        twice(tape, provider, lambda: requests.get(f"{provider.url}/there").history[0].content)
        == b"go on"
    )
    assert [entry.status for entry in tape.entries] == [302, 200]


# Errors


def test_a_refused_connection_is_the_same_error_again(provider, tape):
    url = f"http://127.0.0.1:{closed_port()}/"
    kinds = [kind for kind, _ in twice(tape, provider, lambda: post(url))]
    assert kinds[:3] == [
        requests.ConnectionError,
        urllib3.exceptions.MaxRetryError,
        urllib3.exceptions.NewConnectionError,
    ]


def test_an_unknown_host_is_the_same_error_again(provider, tape):
    kinds = [kind for kind, _ in twice(tape, provider, lambda: post("http://nobody.invalid/"))]
    assert urllib3.exceptions.NameResolutionError in kinds


def test_a_connection_that_takes_too_long_is_the_same_error_again(provider, tape):
    with deaf_port() as port:
        assert (
            twice(tape, provider, lambda: post(f"http://127.0.0.1:{port}/", timeout=0.1))[0][0]
            is requests.ConnectTimeout
        )


def test_an_answer_that_takes_too_long_is_the_same_error_again(provider, tape):
    provider.script("/mute", Scripted(0, then="hang"))
    kind, text = twice(tape, provider, lambda: post(f"{provider.url}/mute", timeout=0.1))[0]
    assert kind is requests.ReadTimeout and "Read timed out. (read timeout=0.1)" in text


def test_a_connection_closed_without_an_answer_is_the_same_error_again(provider, tape):
    provider.script("/gone", Scripted(0, then="close"))
    kind, text = twice(tape, provider, lambda: post(f"{provider.url}/gone"))[0]
    assert kind is requests.ConnectionError and "RemoteDisconnected" in text


def test_a_server_that_does_not_speak_tls_is_the_same_error_again(provider, tape):
    kinds = [
        kind
        for kind, _ in twice(tape, provider, lambda: post(provider.url.replace("http:", "https:")))
    ]
    assert kinds[0] is requests.exceptions.SSLError


@pytest.mark.parametrize("then", ["reset", "close", "hang"])
@pytest.mark.parametrize("size", [None, 5])
def test_a_stream_that_breaks_off_gives_the_same_part_and_the_same_error(
    then, size, provider, tape
):
    read = threading.Event()
    provider.script("/breaks", Scripted(200, {}, EVENTS[:2], then=then, gates={1: read, 2: read}))
    run = lambda: stream(
        f"{provider.url}/breaks", size, on_chunk=lambda _: read.set(), timeout=patience(then)
    )
    chunks, errors = twice(tape, provider, run)
    expected = (
        requests.ConnectionError if then == "hang" else requests.exceptions.ChunkedEncodingError
    )
    assert errors[0][0] is expected and chunks[0] == EVENTS[0][:size]
    assert tape.entries[0].end == "error"


@pytest.mark.parametrize("then", ["reset", "close", "hang"])
@pytest.mark.parametrize("size", [None, 5, 100])
def test_a_chunk_that_breaks_off_gives_the_same_part_and_the_same_error(then, size, provider, tape):
    read = threading.Event()
    half = b"%x\r\nhalf of it" % 90
    parts = [
        b"5\r\nwhole\r\n" + half[:8],
        half[8:],
    ]  # sent as they are, under a head that promises chunks
    raw = Scripted(
        200, {"connection": "close", "x-te": "chunked"}, parts, then=then, gates={1: read, 2: read}
    )
    with framed_by_hand(raw, read) as url:
        run = lambda: stream(url, size, on_chunk=lambda _: read.set(), timeout=patience(then))
        chunks, errors = twice(tape, provider, run)
    assert chunks[0] == b"whole" and errors[0][0].__name__ in {
        "ChunkedEncodingError",
        "ConnectionError",
    }
    assert b"".join(tape.entries[0].chunks) == b"wholehalf of it"


@contextmanager
def framed_by_hand(answer: Scripted, gate: threading.Event) -> Iterator[str]:
    """A server of one answer whose chunks are written as they are: HTTP chunks broken anywhere."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + answer.chunks[0]
                )
                gate.wait(5)
                connection.sendall(answer.chunks[1])
                if answer.then == "hang":
                    over.wait(5)
                if answer.then == "reset":
                    wait_until_read(connection)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            over.set()
            thread.join()


def wait_until_read(connection: socket.socket) -> None:
    """Until the peer, in this process, has taken all that was sent: a reset throws away what it has not."""
    peer, here = connection.getpeername(), connection.getsockname()
    for _ in range(500):
        with open("/proc/net/tcp") as table:
            mine = [
                line.split()
                for line in table
                if f":{peer[1]:04X} " in line and f":{here[1]:04X} " in line
            ]
        if not any(
            row[1].endswith(f":{peer[1]:04X}") and int(row[4].split(":")[1], 16) for row in mine
        ):
            return
        threading.Event().wait(0.01)


@pytest.mark.parametrize("size", [None, 3])
def test_a_body_shorter_than_its_length_is_the_same_error_again(size, provider, tape):
    provider.script("/short", Scripted(200, {"content-length": "10"}, [b"five!"], then="close"))
    _, errors = twice(tape, provider, lambda: stream(f"{provider.url}/short", size))
    assert (
        errors[0][0] is requests.exceptions.ChunkedEncodingError
        and "5 bytes read, 5 more expected" in errors[0][1]
    )


def test_a_stream_left_early_replays_to_the_same_byte(provider, tape):
    events = sse(*((None, n) for n in range(50)))  # of which the last is never sent
    provider.script("/v1/messages", Scripted(200, {}, events, gates={49: threading.Event()}))
    chunks, end = twice(
        tape, provider, lambda: stream(f"{provider.url}/v1/messages", 50, 3, json=STREAMED)
    )
    assert end == "left" and b"".join(tape.entries[0].chunks).startswith(b"".join(chunks))
    assert tape.entries[0].end == "closed"


def test_reading_past_the_point_where_the_program_left_is_refused(provider, tape):
    provider.script("/slow", Scripted(200, {}, EVENTS, gates={2: threading.Event()}))
    stream(f"{provider.url}/slow", None, 2)
    tape.rewind()
    with pytest.raises(UnmatchedCall, match="the recording ends here.*after 2 chunks"):
        stream(f"{provider.url}/slow")


def test_an_interrupt_inside_a_read_is_told_and_passes(provider, tape, monkeypatch):
    provider.script("/slow", Scripted(200, {}, EVENTS, gates={1: threading.Event()}))

    def interrupted() -> None:
        with requests.get(f"{provider.url}/slow", stream=True) as reply:
            chunks = reply.iter_content(None)
            next(chunks)
            source = reply.raw._fp.fp.raw
            source._source = Interrupts(source._source)
            next(chunks)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (
        tape.entries[0].end == "cut short"
        and tape.entries[0].chunks == EVENTS[:1]
        and not SENDING.get()
    )


class Interrupts:
    def __init__(self, real: Any) -> None:
        self.close = real.close

    def read1(self, _: int) -> bytes:
        raise KeyboardInterrupt


def test_a_miss_is_raised_at_once_past_all_retries_and_nothing_is_sent(provider, tape):
    tape.rewind()
    with pytest.raises(UnmatchedCall), requests.Session() as session:
        adapter = requests.adapters.HTTPAdapter(max_retries=urllib3.Retry(5, backoff_factor=1))
        session.mount("http://", adapter)
        session.get(provider.url)
    assert provider.connections == 0 and len(tape.missed) == 1


# Requests, as they are asked and sent


@pytest.mark.parametrize(
    ("body", "framing"),
    [
        (b"bytes", "content-length"),
        ("t\u00e9xt", "content-length"),
        (bytearray(b"array"), "content-length"),
        (io.BytesIO(b"file"), "transfer-encoding"),
        (io.StringIO("t\u00e9xt file"), "transfer-encoding"),
        (iter([b"one,", "two"]), "transfer-encoding"),
        (array("B", b"array"), "content-length"),
        (None, ""),
    ],
    ids=["bytes", "text", "bytearray", "file", "text file", "iterable", "array", "none"],
)
def test_a_request_body_is_seen_whole_and_sent_as_before(body, framing, provider, tape):
    with urllib3.PoolManager() as pool:
        pool.request("POST", f"{provider.url}/x", body=body)
    seen = provider.requests[0]
    assert seen.body == tape.entries[0].request.body
    assert (framing in seen.headers) == bool(framing)
    assert seen.body in {
        b"bytes",
        "t\u00e9xt".encode(),
        b"array",
        b"file",
        "t\u00e9xt file".encode(),
        b"one,two",
        b"",
    }


class Piecewise:
    """The recipe for a progress bar: `read` gives the next part, whatever size it is asked for."""

    def __init__(self) -> None:
        self.parts = iter([b"one,", b"two,", b"three"])

    def read(self, _size: int) -> bytes:
        return next(self.parts, b"")

    def __len__(self) -> int:
        return 13


class Counted(io.BytesIO):
    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


def test_a_file_like_body_is_read_a_part_at_a_time_until_there_is_none(provider, tape):
    provider.script("/x", Scripted(200, {}, [b"thanks"]))
    assert (
        twice(tape, provider, lambda: post(f"{provider.url}/x", data=Piecewise()))[2] == b"thanks"
    )
    assert provider.requests[0].body == tape.entries[0].request.body == b"one,two,three"


def test_who_counts_the_reads_of_an_upload_counts_as_many(provider, tape):
    def run() -> int:
        body = Counted(b"x" * 100_000)
        post(f"{provider.url}/x", data=body)
        return body.reads

    tape.ignored = True
    untaped = run()
    tape.ignored = False
    assert untaped > 1 and twice(tape, provider, run) == untaped


def test_the_connection_of_a_streamed_reply_says_whom_it_was_with(provider, tape):
    def run() -> Any:
        with requests.Session() as session:
            for _ in range(2):  # the second takes the first one's connection
                with session.post(f"{provider.url}/v1/messages", json=PROMPT, stream=True) as reply:
                    found = reply.raw._connection.sock.getpeername(), reply.content
        return found

    assert twice(tape, provider, run)[0] == ("127.0.0.1", provider.port)


def test_an_untaped_body_is_sent_as_it_comes(provider, tape):
    tape.ignored = True
    post(f"{provider.url}/x", data=live_source(provider))
    assert provider.requests[0].body == b"somebody listens" and not tape.entries


def test_the_request_is_told_as_it_was_given(provider, tape):
    headers = urllib3.HTTPHeaderDict(
        [("X-Two", "1"), ("x-two", "2"), ("user-agent", urllib3.util.SKIP_HEADER)]
    )
    with urllib3.PoolManager() as pool:
        pool.request("post", f"{provider.url}/a%20b?b=2&a=%C3%BC#part", headers=headers)
    request = tape.entries[0].request
    assert (request.method, request.url) == ("POST", f"{provider.url}/a%20b?b=2&a=%C3%BC")
    assert [value for name, value in request.headers if name.lower() == "x-two"] == ["1", "2"]
    assert not request.header("user-agent")


def test_default_ports_are_left_out_and_ipv6_is_bracketed(tape):
    tape.rewind()
    for url in ("https://[::1]:443/x", "http://example.invalid:80/", "https://example.invalid:80/"):
        with pytest.raises(UnmatchedCall):
            urllib3.request("GET", url)
    assert [call.url for call in tape.missed] == [
        "https://[::1]/x",
        "http://example.invalid/",
        "https://example.invalid:80/",
    ]


@pytest.mark.parametrize(
    "target", ["http://example.invalid/v1/messages", "https://example.invalid/v1/messages"]
)
def test_through_a_proxy_the_target_is_told_and_replay_opens_no_tunnel(target, provider, tape):
    tape.rewind()
    with urllib3.ProxyManager(provider.url) as proxy, pytest.raises(UnmatchedCall):
        proxy.request("GET", target)
    assert [call.url for call in tape.missed] == [target] and provider.connections == 0


def test_a_proxy_that_refuses_the_tunnel_is_the_same_error_again(provider, tape):
    proxies = {"https": f"http://127.0.0.1:{closed_port()}"}
    errors = twice(tape, provider, lambda: post("https://example.invalid/", proxies=proxies))
    assert errors[0][0] is requests.exceptions.ProxyError


def test_a_call_through_a_forwarding_proxy_comes_back(provider, tape):
    def forwarded() -> Any:
        with urllib3.ProxyManager(provider.url) as proxy:
            return proxy.request("POST", "http://example.invalid/v1/messages", json=PROMPT).data

    provider.script("http://example.invalid/v1/messages", Scripted(200, {}, [b"through"]))
    assert twice(tape, provider, forwarded) == b"through"


# urllib3 itself


READS: dict[str, Callable[[Any], Any]] = {
    "read": lambda r: r.read(),
    "read small": lambda r: [r.read(7), r.read(1), r.read(500), r.read()],
    "read1": lambda r: [r.read1(5), *iter(lambda: r.read1(), b"")],
    "stream": lambda r: list(r.stream(20)),
    "stream raw": lambda r: list(r.stream(None, decode_content=False)),
    "data": lambda r: [r.data, r.data],
    "lines": lambda r: list(r),
    "file": lambda r: io.BufferedReader(r).read(),
    "text": lambda r: list(io.TextIOWrapper(r)),
    "readinto": lambda r: (lambda room: (r.readinto(room), bytes(room)))(bytearray(30)),
    "drain": lambda r: r.drain_conn(),
    "socket timeout": lambda r: (r._fp.fp.raw._sock.settimeout(3), r.read()),
}


@pytest.mark.parametrize("path", ["/v1/messages", "/sized"])
@pytest.mark.parametrize("how", READS)
def test_every_way_to_read_a_body_gives_the_same_again(how, path, provider, tape):
    provider.script("/sized", Scripted(200, {"content-length": "90"}, [b"a" * 30, b"b\n" * 30]))

    def run() -> Any:
        with urllib3.PoolManager() as pool:
            reply = pool.request("POST", provider.url + path, json=STREAMED, preload_content=False)
            reply.auto_close = how not in {"file", "text"}
            found = READS[how](reply), reply.tell()
            reply.close()
            return found

    twice(tape, provider, run)
    if how not in {"readinto"}:
        assert tape.entries[0].end == "complete"


def test_a_preloaded_reply_comes_back_with_all_that_urllib3_says_of_it(provider, tape):
    def run() -> Any:
        with urllib3.PoolManager() as pool:
            reply = pool.request("POST", f"{provider.url}/v1/messages", json=PROMPT)
            return (
                reply.json(),
                reply.headers.items(),
                reply.version,
                reply.version_string,
                reply.geturl(),
                reply.closed,
            )

    twice(tape, provider, run)


def test_urllib3s_own_retries_come_again(provider, tape):
    provider.script(
        "/busy", Scripted(503, {}, [b"no"]), Scripted(0, then="close"), Scripted(200, {}, [b"yes"])
    )
    retry = urllib3.Retry(5, status_forcelist=[503], backoff_factor=0)

    def run() -> Any:
        with urllib3.PoolManager(retries=retry) as pool:
            return pool.request("GET", f"{provider.url}/busy").data

    logging.getLogger("urllib3").setLevel(logging.ERROR)
    assert twice(tape, provider, run) == b"yes"
    assert [entry.status for entry in tape.entries] == [503, None, 200]


def test_connections_are_reused_while_recording_and_none_is_opened_in_replay(provider, tape):
    def run() -> Any:
        with urllib3.PoolManager() as pool:
            for _ in range(3):
                pool.request("POST", f"{provider.url}/v1/messages", json=PROMPT)
            return pool.connection_from_url(provider.url).num_requests

    assert twice(tape, provider, run) == 3
    assert provider.connections == 1


def test_a_pool_used_in_replay_works_live_afterwards(provider):
    tape = MemoryTape()
    with urllib3.PoolManager(maxsize=1, block=True) as pool, taped(tape):
        ask = lambda: pool.request("POST", f"{provider.url}/v1/messages", json=PROMPT).data
        first = ask()
        tape.rewind()
        assert ask() == first
        tape.ignored = True
        assert ask() == first and len(provider.requests) == 2


def test_replay_leaves_no_descriptor_open(provider, tape):
    descriptors = lambda: len(os.listdir("/proc/self/fd"))
    stream(f"{provider.url}/v1/messages", json=STREAMED)
    before = descriptors()  # of which the provider may still close some
    for _ in range(20):
        tape.rewind()
        stream(f"{provider.url}/v1/messages", json=STREAMED)
    assert descriptors() <= before


def test_the_undo_is_complete(provider):
    before = {cls: dict(vars(cls)) for cls in (HTTPConnectionPool, HTTPSConnectionPool)}
    with requests.Session() as session, taped(MemoryTape()) as tape:
        session.post(f"{provider.url}/v1/messages", json=PROMPT)
        assert len(tape.entries) == 1
    assert {cls: dict(vars(cls)) for cls in before} == before


def test_a_reply_edited_to_another_length_is_read_whole(provider, tape):
    post(f"{provider.url}/v1/messages", json=PROMPT)
    tape.entries[0].chunks = [b'{"edited": true}']
    tape.rewind()
    status, headers, body, *_ = post(f"{provider.url}/v1/messages", json=PROMPT)
    assert body == b'{"edited": true}' and ("content-length", "16") in headers


# boto3

MESSAGES = [{"role": "user", "content": [{"text": "Where is the amber fox?"}]}]


@contextmanager
def bedrock(url: str, **config: Any) -> Iterator[Any]:
    settings = botocore.config.Config(
        **{"read_timeout": 5, "retries": {"total_max_attempts": 1}, **config}
    )
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=settings,
    )
    yield client
    client.close()


def converse(url: str, **config: Any) -> Any:
    with bedrock(url, **config) as client:
        return client.converse(modelId="m", messages=MESSAGES)


def converse_stream(url: str, **config: Any) -> Any:
    events: list[Any] = []
    with bedrock(url, **config) as client:
        try:
            for event in client.converse_stream(modelId="m", messages=MESSAGES)["stream"]:
                events.append(event)
        except botocore.exceptions.BotoCoreError as error:
            return events, type(error), str(error)
    return events


def test_a_bedrock_converse_comes_back(provider, tape):
    answer = twice(tape, provider, lambda: converse(provider.url))
    assert answer["output"]["message"]["content"][0]["text"].startswith("You wrote")


def test_a_bedrock_stream_comes_back_event_for_event(provider, tape):
    events = twice(tape, provider, lambda: converse_stream(provider.url))
    assert next(iter(events[0])) == "messageStart" and next(iter(events[-1])) == "metadata"
    assert len(tape.entries[0].chunks) == len(events)


def test_a_bedrock_error_comes_back(provider, tape):
    headers = {"content-type": "application/json", "x-amzn-errortype": "ThrottlingException"}
    provider.script("/model/m/converse", Scripted(429, headers, [b'{"message":"slow down"}']))

    def throttled() -> Any:
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            converse(provider.url)
        return caught.value.response

    assert twice(tape, provider, throttled)["Error"]["Code"] == "ThrottlingException"


def test_a_bedrock_endpoint_that_refuses_is_the_same_error_again(provider, tape):
    def refused() -> Any:
        with pytest.raises(botocore.exceptions.EndpointConnectionError) as caught:
            converse(f"http://127.0.0.1:{port}")
        return str(caught.value)

    port = closed_port()
    twice(tape, provider, refused)


@pytest.mark.parametrize("then", ["reset", "close", "hang"])
def test_a_bedrock_stream_that_breaks_off_gives_the_same_part_and_the_same_error(
    then, provider, tape
):
    headers = {"content-type": "application/vnd.amazon.eventstream"}
    parts = [
        frame("messageStart", {"role": "assistant"}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
    ]
    provider.script(
        "/model/m/converse-stream", Scripted(200, headers, parts, then=then, delay=0.05)
    )

    def run() -> Any:
        try:
            return converse_stream(provider.url, read_timeout=patience(then))
        except (urllib3.exceptions.HTTPError, botocore.exceptions.BotoCoreError) as error:
            return told(error)

    twice(tape, provider, run)
    assert tape.entries[0].end == "error"


def test_an_s3_download_and_upload_come_back(provider, tape):
    provider.script("/bucket/key", Scripted(200, {"etag": '"e"'}, [b"x" * 70_000]))

    def run() -> Any:
        client = boto3.client(
            "s3",
            endpoint_url=provider.url,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        body = client.get_object(Bucket="bucket", Key="key")["Body"]
        body.set_socket_timeout(3)
        found = [len(chunk) for chunk in body.iter_chunks(50_000)]
        client.close()
        return found

    assert twice(tape, provider, run) == [50_000, 20_000]


# ---------------------------------------------------------------- what urllib3 says


@pytest.fixture
def secure() -> Iterator[tuple[str, ssl.SSLContext]]:
    """The address of a server over TLS, and the context of a client that trusts it."""
    theirs, ours = certified()
    with Provider() as server:
        server.script("/x", Scripted(200, {}, [b"hello"]))
        plain = server._server.socket
        server._server.socket = theirs.wrap_socket(plain, server_side=True)
        yield server.url.replace("http:", "https:"), ours


def said(run: Callable[[], Any]) -> list[tuple[str, int, str]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with suppress(urllib3.exceptions.HTTPError, requests.RequestException):
            run()
    return [(warning.filename, warning.lineno, str(warning.message)) for warning in seen]


def test_the_warning_of_a_host_that_nobody_verifies_comes_in_replay_from_the_same_line(
    secure, tape
):
    live = said(lambda: requests.get(f"{secure[0]}/x", verify=False, timeout=5))
    assert ["Unverified HTTPS request" in text for _, _, text in live] == [True]
    tape.rewind()
    assert said(lambda: requests.get(f"{secure[0]}/x", verify=False, timeout=5)) == live


def test_a_host_that_is_verified_or_was_never_reached_is_not_warned_of(secure, tape):
    def ask() -> None:
        with urllib3.PoolManager(ssl_context=secure[1], retries=False) as pool:
            pool.request("GET", f"{secure[0]}/x")
        requests.get(f"https://127.0.0.1:{port}/", verify=False, timeout=5)

    port = closed_port()
    assert said(ask) == []
    tape.rewind()
    assert said(ask) == []


def test_what_urllib3_logs_of_a_reply_is_logged_in_replay(provider, tape, caplog):
    def lines() -> list[str]:
        caplog.clear()
        requests.get(f"{provider.url}/nothing", timeout=5)
        return caplog.messages

    with caplog.at_level("DEBUG", "urllib3"):
        live = lines()
        tape.rewind()
        assert lines() == live
    assert any('"GET /nothing HTTP/1.1" 404' in line for line in live)
