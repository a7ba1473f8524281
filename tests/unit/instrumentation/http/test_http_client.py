"""http.client, urllib.request and xmlrpc: what a program saw while recording it sees again, with the server gone."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
import xmlrpc.client
from collections.abc import Callable
from contextlib import closing
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import httpx
import pytest
import requests
import urllib3

from tape_jupyter.core.call import Play, Reply
from tape_jupyter import instrumentation
from tape_jupyter.errors import TapeError, UnmatchedCall
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.session.session import TapeSession
from tape_jupyter.core.context import SENDING
from tests.harness.memory_tape import MemoryTape, taped
from tests.harness.provider import Provider, Scripted, closed_port, sse
from tests.harness.taped_cells import on_tape
from tests.harness.taped_cells import taped as taped_cell
from tests.harness.wire_runs import live_source, provider, tape, twice

PROMPT = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "Where is the amber fox?"}]}
).encode()
STREAMED = PROMPT[:-1] + b', "stream": true}'
EVENTS = sse((None, 1), (None, 2), (None, 3))


def connected(provider: Provider, **options: Any) -> Any:
    return closing(http.client.HTTPConnection("127.0.0.1", provider.port, timeout=5, **options))


def ask(
    provider: Provider,
    method: str = "POST",
    path: str = "/v1/messages",
    body: Any = PROMPT,
    **options: Any,
) -> Any:
    with connected(provider) as conn:
        try:
            conn.request(method, path, body, **options)
            reply = conn.getresponse()
            return reply.status, reply.version, reply.reason, reply.getheaders(), reply.read()
        except (OSError, http.client.HTTPException) as error:
            return type(error), str(error)


def read(
    provider: Provider, path: str, how: Callable[[Any], Any], method: str = "GET", body: Any = None
) -> Any:
    """What `how` gives of a response, or the error, with what had been read."""
    found: list[Any] = []
    with connected(provider) as conn:
        try:
            conn.request(method, path, body)
            with conn.getresponse() as reply:
                found.extend(how(reply))
        except (OSError, http.client.HTTPException) as error:
            return found, type(error), str(error), getattr(error, "partial", None)
    return found


# http.client


def test_a_reply_comes_back_the_same(provider, tape):
    status, version, reason, headers, body = twice(tape, provider, lambda: ask(provider))
    assert (status, version, reason) == (200, 11, "OK") and b"You wrote" in body
    assert ("content-type", "application/json") in headers
    request = tape.entries[0].request
    assert (request.method, request.url, request.body) == (
        "POST",
        f"{provider.url}/v1/messages",
        PROMPT,
    )
    assert tape.entries[0].end == "complete"


READS: dict[str, Callable[[Any], Any]] = {
    "read": lambda r: [r.read(), r.read()],
    "read small": lambda r: [r.read(7), r.read(1), r.read(500), r.read()],
    "read1": lambda r: [*iter(lambda: r.read1(), b"")],
    "peek": lambda r: [r.peek(5)[:1], r.read()],
    "lines": lambda r: list(r),
    "readline": lambda r: [r.readline(), r.readline(3), r.read()],
    "readinto": lambda r: (lambda room: (r.readinto(room), bytes(room)))(bytearray(30)),
    "text": lambda r: list(io.TextIOWrapper(r)),
}


@pytest.mark.parametrize("path", ["/v1/messages", "/sized", "/old"])
@pytest.mark.parametrize("how", READS)
def test_every_way_to_read_a_body_gives_the_same_again(how, path, provider, tape):
    provider.script("/sized", Scripted(200, {"content-length": "90"}, [b"a" * 30, b"b\n" * 30]))
    provider.script(
        "/old", Scripted(200, {"connection": "close"}, [b"a\n" * 10, b"b" * 10], then="close")
    )
    found = twice(tape, provider, lambda: read(provider, path, READS[how], "POST", STREAMED))
    assert found and (how == "readinto" or tape.entries[0].end == "complete")


def test_a_stream_is_on_the_tape_chunk_for_chunk_before_the_program_has_it(provider, tape):
    asked = threading.Event()
    provider.script("/slow", Scripted(200, {}, EVENTS, gates={1: asked}))
    on_tape: list[int] = []

    def how(reply: Any) -> Any:
        for line in reply:
            asked.set()
            on_tape.append(len(tape.entries[0].chunks))
            yield line

    twice(tape, provider, lambda: read(provider, "/slow", how))
    assert tape.entries[0].chunks == EVENTS and on_tape[0] >= 1


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_a_reply_without_a_body_comes_back(method, status, provider, tape):
    provider.script(
        "/none", Scripted(status, {"content-length": "5"} if method == "HEAD" else {}, [b"12345"])
    )
    assert twice(tape, provider, lambda: ask(provider, method, "/none", None))[0] == status
    assert tape.entries[0].end == "complete" and not tape.entries[0].chunks


def test_status_reason_and_repeated_headers_come_back(provider, tape):
    headers = [
        ("Set-Cookie", "a=1"),
        ("X-Name", "Ünï".encode().decode("latin-1")),
        ("set-cookie", "b=2"),
        ("X-E", ""),
    ]
    provider.script("/odd", Scripted(418, headers, [b"tea"], reason="I am short and stout"))
    status, _, reason, found, _ = twice(tape, provider, lambda: ask(provider, "GET", "/odd", None))
    assert (status, reason) == (418, "I am short and stout") and found[:4] == headers


def test_one_connection_serves_many_calls_again(provider, tape):
    def run() -> Any:
        found = []
        with connected(provider) as conn:
            for number in range(3):
                conn.request("POST", "/v1/messages", PROMPT, {"x-number": str(number)})
                found.append(conn.getresponse().read())
        return found

    assert len(twice(tape, provider, run)) == 3 and provider.connections == 1


def test_a_call_before_the_last_reply_was_read_is_the_same_error_again(provider, tape):
    def run() -> Any:
        with connected(provider) as conn:
            conn.request("GET", "/v1/messages")
            conn.getresponse()
            conn.request("GET", "/v1/messages")
            with pytest.raises(http.client.ResponseNotReady):
                conn.getresponse()
            return len(tape.entries)

    provider.script("/v1/messages", Scripted(200, {}, [b"x" * 10]))
    assert run() == 2


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"bytes", {}),
        ("t\u00e9xt", {}),
        (bytearray(b"array"), {}),
        (io.BytesIO(b"file"), {}),
        (io.StringIO("t\u00e9xt file"), {}),
        (iter([b"one,", b"two"]), {}),
        (iter([b"one,", b"two"]), {"Content-Length": "7"}),
        (b"", {}),
        (None, {}),
    ],
    ids=[
        "bytes",
        "text",
        "bytearray",
        "file",
        "text file",
        "iterable",
        "sized iterable",
        "empty",
        "none",
    ],
)
def test_a_request_body_is_seen_whole_and_sent_as_before(body, headers, provider, tape):
    ask(provider, "POST", "/x", body, headers=headers)
    expected = {b"bytes", b"t\xe9xt", b"array", b"file", b"t\xe9xt file", b"one,two", b""}
    assert provider.requests[0].body == tape.entries[0].request.body
    assert provider.requests[0].body in expected


def test_an_untaped_body_is_sent_as_it_comes(provider, tape):
    tape.ignored = True
    ask(provider, "POST", "/x", live_source(provider))
    assert provider.requests[0].body == b"somebody listens" and not tape.entries


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_sent_by_hand_is_one_request_and_in_replay_nothing_is_opened_for_it(
    chunked, provider, tape
):
    provider.script("/x", Scripted(200, {}, [b"yes"]))

    def run() -> Any:
        with connected(provider) as conn:
            conn.connect()
            conn.putrequest("POST", "/x")
            name, value = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", "7")
            conn.putheader(name, value)
            conn.endheaders()
            opened.append(isinstance(conn.sock, socket.socket))
            for part in (
                [b"4\r\none,\r\n", b"3\r\ntwo\r\n0\r\n", b"\r\n"] if chunked else [b"one,", b"two"]
            ):
                conn.send(part)
            return conn.getresponse().read()

    opened: list[bool] = []
    assert twice(tape, provider, run) == b"yes" and opened == [True, False]
    assert provider.requests[0].body == tape.entries[0].request.body == b"one,two"


def test_what_is_sent_outside_of_a_request_is_named_while_recording_and_left_to_the_guard_in_replay(
    provider, tape
):
    with connected(provider) as conn:
        conn.connect()
        conn.send(b"raw")
        assert not tape.entries and "sent directly" in tape.notes[0]
    tape.rewind()
    with connected(provider) as conn:
        conn.connect()
        assert not isinstance(conn.sock, socket.socket)
        conn.send(b"raw")
        assert isinstance(conn.sock, socket.socket) and len(tape.notes) == 1


@pytest.mark.parametrize("ignored", [False, True], ids=["recorded", "untaped"])
def test_connect_connects_wherever_the_reply_cannot_come_off_the_tape(ignored, provider, tape):
    tape.ignored = ignored
    with connected(provider) as conn:
        conn.connect()
        conn.sock.settimeout(5)
        conn.request("POST", "/v1/messages", PROMPT)
        assert conn.sock.getpeername()[1] == provider.port and conn.getresponse().read()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", closed_port()).connect()
    assert len(tape.entries) == len(tape.notes) == (0 if ignored else 1)
    assert ignored or "failed before any request" in tape.notes[0]


def test_a_tunnel_is_opened_for_untaped_code_as_without_us(tape):
    tape.ignored = True
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        proxy.listen(1)
        conn = http.client.HTTPConnection("127.0.0.1", proxy.getsockname()[1], timeout=5)
        conn.set_tunnel("example.invalid", 80)
        replies = [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"]
        answering = threading.Thread(target=answer, args=(proxy, replies))
        answering.start()
        with closing(conn):
            conn.request("GET", "/")
            assert conn.getresponse().read() == b"hi" and not tape.entries
        answering.join()


def answer(server: socket.socket, replies: list[bytes]) -> None:
    """Answer each read of one connection with the next of these."""
    with server.accept()[0] as accepted:
        for reply in replies:
            accepted.recv(10_000)
            accepted.sendall(reply)


@pytest.mark.parametrize("opened", [False, True], ids=["by the request", "by connect"])
def test_the_socket_of_a_replay_takes_settings_and_refuses_the_rest(opened, provider, tape):
    def run() -> Any:
        with connected(provider) as conn:
            if opened:
                conn.connect()
            conn.request("POST", "/v1/messages", PROMPT)
            conn.sock.settimeout(5)
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return conn.sock.getpeername(), conn.getresponse().read()

    assert twice(tape, provider, run)[0] == ("127.0.0.1", provider.port)
    tape.rewind()
    with connected(provider) as conn:
        conn.connect()
        with pytest.raises(
            TapeError, match=r"recv\(\) on the connection to 127.0.0.1:\d+ was refused"
        ):
            conn.sock.recv(10)


@pytest.mark.parametrize("left", ["untaped", "taken off"])
def test_a_connection_that_a_replay_left_open_works_live_as_it_was_set(left, provider):
    with taped(MemoryTape()) as tape, connected(provider) as conn:
        tape.rewind()
        conn.connect()
        conn.sock.settimeout(4.5)
        if left == "untaped":
            tape.ignored = True
        else:
            instrumentation.unpatch_all()
        conn.request("POST", "/v1/messages", PROMPT)
        assert (
            conn.sock.gettimeout() == (4.5 if left == "untaped" else 5)
            and conn.getresponse().read()
        )


def test_a_connection_whose_reply_closed_it_has_no_socket_again(provider, tape):
    provider.script("/last", Scripted(200, {"connection": "close"}, [b"bye"], then="close"))

    def run() -> Any:
        with connected(provider) as conn:
            conn.request("GET", "/last")
            return conn.getresponse().read(), conn.sock

    assert twice(tape, provider, run) == (b"bye", None)


class Dialling:
    """As a mixin has it."""

    def connect(self: Any) -> None:
        self.sock = socket.create_connection((self.host, self.port), 5)


class Own(http.client.HTTPConnection):
    """A connection that opens its own socket, as httplib2's do."""

    connect = Dialling.connect


class Mixed(Dialling, http.client.HTTPConnection):
    pass


class Below(Own):
    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def defined_later() -> type[http.client.HTTPConnection]:
    class Later(http.client.HTTPConnection):
        connect = Dialling.connect

    return Later


@pytest.mark.parametrize("kind", [lambda: Own, lambda: Mixed, lambda: Below, defined_later])
@pytest.mark.parametrize("before", [False, True], ids=["made in the cell", "made before"])
def test_a_connection_that_opens_its_own_socket_is_taped_and_opens_nothing_in_replay(
    kind, before, path, deck
):
    with Provider() as provider:
        made = kind()
        kept = made("127.0.0.1", provider.port)
        for mode in ("record", "replay"):
            with taped_cell(deck, mode, path) as cell:
                conn = kept if before else made("127.0.0.1", provider.port)
                conn.connect()
                conn.request("POST", "/v1/messages", PROMPT)
                assert conn.getresponse().read()
                conn.close()
            assert not cell.report.warnings
            assert provider.connections == len(provider.requests) == 1


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_a_connection_of_a_cell_after_a_taped_one_is_opened_at_once(mode, tmp_path):
    path, deck = tmp_path / "main.tape.yaml", TapeSession()
    with Provider() as provider:
        for each in dict.fromkeys(("record", mode)):
            with taped_cell(deck, each, path):
                ask(provider)
        with connected(provider) as conn:
            conn.connect()
            assert conn.sock is not None
    deck.unhook()


def test_a_refused_connection_fails_in_request_as_it_did(provider, tape):
    def run() -> Any:
        conn = http.client.HTTPConnection("127.0.0.1", port)
        with pytest.raises(ConnectionRefusedError) as caught:
            conn.request("GET", "/")
        return caught.value.errno

    port = closed_port()
    twice(tape, provider, run)


def test_an_unknown_host_fails_in_request_as_it_did(provider, tape):
    def run() -> Any:
        with pytest.raises(socket.gaierror) as caught:
            http.client.HTTPConnection("nobody.invalid").request("GET", "/")
        return caught.value.args

    twice(tape, provider, run)


@pytest.mark.parametrize("then", ["close", "hang"])
def test_a_head_that_never_comes_is_the_same_error_again(then, provider, tape):
    provider.script("/mute", Scripted(0, then=then))

    def run() -> Any:
        with closing(http.client.HTTPConnection("127.0.0.1", provider.port, timeout=0.1)) as conn:
            conn.request("GET", "/mute")
            with pytest.raises((http.client.RemoteDisconnected, TimeoutError)) as caught:
                conn.getresponse()
            return type(caught.value), str(caught.value)

    assert twice(tape, provider, run)[0] is (
        TimeoutError if then == "hang" else http.client.RemoteDisconnected
    )


@pytest.mark.parametrize("framing", [{}, {"content-length": "50"}])
def test_a_body_that_breaks_off_gives_the_same_part_and_the_same_error(framing, provider, tape):
    provider.script("/breaks", Scripted(200, framing, EVENTS[:2], then="close"))
    found = twice(tape, provider, lambda: read(provider, "/breaks", lambda r: [r.read()]))
    assert found[1] is http.client.IncompleteRead
    assert tape.entries[0].end == "error" and b"".join(tape.entries[0].chunks) == b"".join(
        EVENTS[:2]
    )


def test_reading_past_the_point_where_the_program_left_is_refused(provider, tape):
    provider.script("/slow", Scripted(200, {}, EVENTS, gates={2: threading.Event()}))
    read(provider, "/slow", lambda r: [r.read1(), r.read1()])
    tape.rewind()
    with pytest.raises(UnmatchedCall, match="the recording ends here"):
        read(provider, "/slow", lambda r: [r.read()])


def test_a_miss_is_raised_at_once_and_nothing_is_opened(provider, tape):
    tape.rewind()
    with pytest.raises(UnmatchedCall):
        ask(provider)
    assert provider.connections == 0


def test_a_call_the_tape_does_not_want_passes_untouched(provider, tape):
    tape.ignored = True
    assert ask(provider)[0] == 200 and not tape.entries
    with connected(provider) as conn:
        conn.putrequest("POST", "/v1/messages")
        conn.putheader("Content-Length", str(len(PROMPT)))
        conn.endheaders()
        conn.send(PROMPT)
        assert conn.getresponse().read()


def test_a_connection_used_in_replay_works_live_afterwards(provider):
    tape = MemoryTape()
    with connected(provider) as conn, taped(tape):

        def again() -> bytes:
            conn.request("POST", "/v1/messages", PROMPT)
            return conn.getresponse().read()

        first = again()
        tape.rewind()
        assert again() == first
        tape.ignored = True
        assert again() == first and len(provider.requests) == 2 and provider.connections == 1


def test_urls_name_the_target_whatever_the_connection_goes_to(tape):
    tape.rewind()
    through = http.client.HTTPSConnection("proxy.invalid", 3128)
    through.set_tunnel("example.invalid", 443)
    plain = http.client.HTTPConnection("proxy.invalid", 3128)
    v6 = http.client.HTTPSConnection("::1", 8443)
    for conn, path in [
        (through, "/a?b=1"),
        (plain, "http://example.invalid/a"),
        (v6, "/"),
        (v6, "*"),
    ]:
        with pytest.raises(UnmatchedCall):
            conn.request("GET", path)
        conn.close()
    assert [call.url for call in tape.missed] == [
        "https://example.invalid/a?b=1",
        "http://example.invalid/a",
        "https://[::1]:8443/",
        "https://[::1]:8443/*",
    ]


def test_an_injected_fault_fails_where_it_would_have():
    class Faulty(MemoryTape):
        def begin(self, call: Any) -> Play:
            return Play(Reply(None, end="error", error=freeze_error(self.fault)))

    with taped(Faulty()) as tape:
        conn = http.client.HTTPConnection("example.invalid")
        tape.fault = ConnectionRefusedError(111, "no")
        with pytest.raises(ConnectionRefusedError):
            conn.request("GET", "/")
        conn.close()
        tape.fault = TimeoutError("late")
        conn.request("GET", "/")
        with pytest.raises(TimeoutError):
            conn.getresponse()


class NotedGate:
    """Passes everything, and notes what it was asked."""

    each = ends = False

    def __init__(self) -> None:
        self.asked: list[tuple[float, bool]] = []

    def wait(self, seconds: float, *, last: bool = False) -> None:
        self.asked.append((seconds, last))

    async def wait_async(self, seconds: float, *, last: bool = False) -> None:
        self.asked.append((seconds, last))


def test_a_gate_is_passed_before_the_head_and_before_each_chunk():
    gate = NotedGate()

    class Gated(MemoryTape):
        def begin(self, call: Any) -> Play:
            chunked = (("transfer-encoding", "chunked"),)
            return Play(Reply(200, chunked, (b"a", b"b"), (0.5, 0.7)), gate)

    with taped(Gated()), urllib.request.urlopen("http://example.invalid/") as reply:
        assert gate.asked == [(0.5, False)]
        assert reply.read() == b"ab"
    assert gate.asked == [(0.5, False), (0.7, True)]


def test_the_undo_is_complete(provider):
    before = {
        cls: dict(vars(cls))
        for cls in (http.client.HTTPConnection, http.client.HTTPSConnection, Own, Dialling)
    }
    with taped(MemoryTape()) as tape:
        ask(provider)
        assert vars(Own)["connect"] is not Dialling.connect
        assert len(tape.entries) == 1 and not SENDING.get()
    assert {cls: dict(vars(cls)) for cls in before} == before


# What is built on it


def opened(request: Any) -> Any:
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, reply.geturl(), reply.headers.items(), reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except (OSError, http.client.HTTPException) as error:
        return type(error), str(error)


def test_urllib_gives_the_same_again(provider, tape):
    request = urllib.request.Request(f"{provider.url}/v1/messages", PROMPT, {"X-Key": "k"})
    assert twice(tape, provider, lambda: opened(request))[0] == 200


def test_urllib_follows_a_redirect_again(provider, tape):
    provider.script("/there", Scripted(302, {"location": "/here"}, [b"go on"]))
    provider.script("/here", Scripted(200, {}, [b"here"]))
    assert (
        twice(tape, provider, lambda: opened(f"{provider.url}/there"))[1] == f"{provider.url}/here"
    )
    assert [entry.status for entry in tape.entries] == [302, 200]


def test_urllib_raises_the_same_http_error_again(provider, tape):
    provider.script("/busy", Scripted(429, {"retry-after": "1"}, [b"slow down"]))
    assert twice(tape, provider, lambda: opened(f"{provider.url}/busy")) == (429, b"slow down")


def test_urllib_wraps_a_refused_connection_and_not_a_lost_one_as_it_did(provider, tape):
    provider.script("/gone", Scripted(0, then="close"))
    port = closed_port()
    run = lambda: [opened(f"http://127.0.0.1:{port}/")[0], opened(f"{provider.url}/gone")[0]]
    assert twice(tape, provider, run) == [urllib.error.URLError, http.client.RemoteDisconnected]


def test_urllib_sends_forms_as_before(provider, tape):
    form = urllib.parse.urlencode({"a": "1", "b": "ü"}).encode()
    opened(urllib.request.Request(f"{provider.url}/form", form))
    assert tape.entries[0].request.body == provider.requests[0].body == form
    assert tape.entries[0].request.header("content-type") == "application/x-www-form-urlencoded"


def test_an_xmlrpc_server_answers_again(tape):
    server = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False, allow_none=True)
    server.register_function(lambda a, b: {"sum": a + b}, "add")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    host, port = server.server_address[:2]

    def run() -> Any:
        with xmlrpc.client.ServerProxy(f"http://{host}:{port}") as proxy:
            with pytest.raises(xmlrpc.client.Fault):
                proxy.no_such_method()
            return [proxy.add(1, 2), proxy.add(3, 4)]

    live = run()
    server.shutdown()
    thread.join()
    server.server_close()
    tape.rewind()
    assert run() == live == [{"sum": 3}, {"sum": 7}]


@pytest.mark.parametrize(
    "send",
    [lambda url: requests.post(url, PROMPT), lambda url: urllib3.request("POST", url, body=PROMPT)],
)
def test_what_urllib3_sends_is_recorded_once(send, provider, tape):
    send(f"{provider.url}/v1/messages")
    assert len(tape.entries) == len(provider.requests) == 1


@pytest.mark.parametrize("asked", [PROMPT, STREAMED], ids=["whole", "streamed"])
def test_a_call_is_in_the_file_before_the_program_has_its_last_byte(asked, tmp_path):
    path, deck = tmp_path / "n.tapes" / "main.tape.yaml", TapeSession()
    with Provider(delay=0.005) as provider, taped_cell(deck, "record", path):
        kept = []
        with urllib.request.urlopen(f"{provider.url}/v1/messages", asked) as reply:
            for line in reply:
                if b"message_stop" in line or b"end_turn" in line:
                    kept.append(len(on_tape(path).calls))
        assert kept[-1:] == [1]
    deck.unhook()


# Connections that were open before the cell

FOR_EVER = httpx.Limits(
    keepalive_expiry=None
)  # five seconds by itself, which a busy machine may take


def by_http_client(provider: Provider) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    conn = http.client.HTTPConnection("127.0.0.1", provider.port)

    def send(path: str) -> Any:
        conn.request("POST", path, PROMPT)
        return conn.getresponse().read()

    return send, conn.close


def by_requests(provider: Provider) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    session = requests.Session()
    return lambda path: session.post(provider.url + path, PROMPT).content, session.close


def by_httpx(provider: Provider) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    client = httpx.Client(limits=FOR_EVER)
    return lambda path: client.post(provider.url + path, content=PROMPT).content, client.close


def by_async_httpx(provider: Provider) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    runner, client = asyncio.Runner(), httpx.AsyncClient(limits=FOR_EVER)

    async def send(path: str) -> Any:
        return (await client.post(provider.url + path, content=PROMPT)).content

    def close() -> None:
        runner.run(client.aclose())
        runner.close()

    return lambda path: runner.run(send(path)), close


@pytest.mark.parametrize("made", [by_http_client, by_requests, by_httpx, by_async_httpx])
def test_a_connection_kept_open_from_before_the_cell_is_taped_and_never_live_in_replay(
    made, tmp_path
):
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    with Provider() as provider:
        deck = TapeSession()
        send, close = made(provider)
        send("/v1/messages")
        with taped_cell(deck, "record", path):
            recorded = send("/v1/messages")
        assert provider.connections == 1 and len(on_tape(path).calls) == 1
        with taped_cell(deck, "replay", path):
            assert send("/v1/messages") == recorded
        with pytest.raises(UnmatchedCall), taped_cell(deck, "replay", path):
            send("/v1/other")
        assert len(provider.requests) == 2 and provider.connections == 1
        assert send("/v1/messages") and len(provider.requests) == 3  # live again
        close()
        deck.unhook()
