"""Clients that no tap can record (grpc, pycurl, websocket-client, subprocesses): named while recording, refused in replay."""

import asyncio
import subprocess
import sys
from concurrent import futures

import grpc
import grpc.aio
import pycurl
import pytest
import websocket

import tape_jupyter as tape
from tape_jupyter import instrumentation
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import BlockedConnection
from tests.harness.provider import Provider
from tests.harness.sockets import SocketServer


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "main.tape.yaml"
    Cassette.open(path).start_run(
        {"mode": "record", "source": "x", "session": "s"}, {"cassette": "main"}
    )
    return path


class Upper(grpc.GenericRpcHandler):
    """Answers every method with the request in upper case."""

    def __init__(self):
        self.asked = []

    def service(self, details):
        def unary(request, _context):
            self.asked.append(request)
            return request.upper()

        def streams(requests, _context):
            for request in [requests] if isinstance(requests, bytes) else requests:
                yield unary(request, None)

        kinds = {
            "/a.B/UnaryUnary": grpc.unary_unary_rpc_method_handler(unary),
            "/a.B/UnaryStream": grpc.unary_stream_rpc_method_handler(streams),
            "/a.B/StreamUnary": grpc.stream_unary_rpc_method_handler(
                lambda requests, _: b"".join(map(lambda r: unary(r, None), requests))
            ),
            "/a.B/StreamStream": grpc.stream_stream_rpc_method_handler(streams),
        }
        return kinds[details.method]


@pytest.fixture
def upper():
    handler = Upper()
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[handler])
    handler.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler
    server.stop(0)


def call_once(channel):
    return channel.unary_unary("/a.B/UnaryUnary")(b"x", timeout=5)


CALLS = {
    "unary": call_once,
    "with_call": lambda channel: channel.unary_unary("/a.B/UnaryUnary").with_call(b"x", timeout=5)[
        0
    ],
    "future": lambda channel: (
        channel.unary_unary("/a.B/UnaryUnary").future(b"x", timeout=5).result()
    ),
    "unary to stream": lambda channel: b"".join(
        channel.unary_stream("/a.B/UnaryStream")(b"x", timeout=5)
    ),
    "stream to unary": lambda channel: channel.stream_unary("/a.B/StreamUnary")(
        iter([b"x"]), timeout=5
    ),
    "stream to stream": lambda channel: b"".join(
        channel.stream_stream("/a.B/StreamStream")(iter([b"x"]), timeout=5)
    ),
}


@pytest.mark.parametrize("kind", CALLS)
def test_a_grpc_call_is_named_while_recording_and_refused_in_replay(upper, path, kind):
    with grpc.insecure_channel(
        f"127.0.0.1:{upper.port}"
    ) as channel:  # made before: the channel is not what is tapped
        with tape.recording(path) as block:
            assert CALLS[kind](channel) == b"X"
        [warning] = block.report.warnings
        assert f"127.0.0.1:{upper.port} through grpc (" in warning and "not on the tape" in warning
        with (
            pytest.raises(
                BlockedConnection, match=r"(?s)through grpc .test_unrecordable.*@tape\.tool"
            ),
            tape.replaying(path),
        ):
            CALLS[kind](channel)
    assert len(upper.asked) == 1


def test_a_grpc_call_with_asyncio_is_refused_as_well(upper, path):
    async def program():
        async with grpc.aio.insecure_channel(f"127.0.0.1:{upper.port}") as channel:
            return await channel.unary_unary("/a.B/UnaryUnary")(b"x", timeout=5)

    with tape.recording(path) as block:
        assert asyncio.run(program()) == b"X"
    assert "through grpc" in block.report.warnings[0]
    with (
        pytest.raises(BlockedConnection, match=f"127.0.0.1:{upper.port} through grpc"),
        tape.replaying(path),
    ):
        asyncio.run(program())
    assert len(upper.asked) == 1


def test_spans_that_leave_through_grpc_are_kept_at_home_in_silence(upper, path):
    with grpc.insecure_channel(f"127.0.0.1:{upper.port}") as channel, tape.replaying(path) as block:
        with pytest.raises(ConnectionRefusedError, match="telemetry"):
            channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")(b"x")
    assert not upper.asked and not block.report.misses


def fetch(url):
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.POSTFIELDS, "{}")
    curl.setopt(pycurl.WRITEFUNCTION, lambda _data: None)
    curl.perform()
    return curl.getinfo(pycurl.RESPONSE_CODE)


def fetch_many(url):
    many, curl = pycurl.CurlMulti(), pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.WRITEFUNCTION, lambda _data: None)
    many.add_handle(curl)
    while many.perform()[1]:
        many.select(0.1)
    return curl.getinfo(pycurl.RESPONSE_CODE)


@pytest.mark.parametrize("fetch", [fetch, fetch_many])
def test_a_transfer_of_pycurl_is_named_while_recording_and_refused_in_replay(path, fetch):
    with Provider() as provider:
        with tape.recording(path) as block:
            assert fetch(f"{provider.url}/x") >= 400
        assert "through pycurl" in block.report.warnings[0]
        before = len(provider.requests)
        with pytest.raises(BlockedConnection, match="through pycurl"), tape.replaying(path):
            fetch(f"{provider.url}/x")
        assert len(provider.requests) == before
    instrumentation.unpatch_all()
    assert pycurl.Curl.__bases__ == pycurl.CurlMulti.__bases__ == (object,)


def test_websocket_client_is_named_while_recording_and_refused_in_replay(path):
    def program(url):
        ws = websocket.create_connection(url)
        ws.send("x")
        said = ws.recv()
        ws.close()
        return said

    with SocketServer() as server:
        with tape.recording(path) as block:
            assert program(f"{server.url}/echo") == "x"
        assert "is not from a recorded library" in block.report.warnings[0]
        with (
            pytest.raises(BlockedConnection, match="it is not from a recorded library"),
            tape.replaying(path),
        ):
            program(f"{server.url}/echo")
        assert server.opened == 1


def test_a_subprocess_is_named_while_recording_and_refused_in_replay(path):
    program = [sys.executable, "-c", "print('hello')"]
    with tape.recording(path) as block:
        assert subprocess.run(program, capture_output=True, check=True).stdout == b"hello\n"
    assert "runs live" in block.report.warnings[0]
    with (
        pytest.raises(BlockedConnection, match=r"(?s)child process.*@tape\.tool"),
        tape.replaying(path),
    ):
        subprocess.run(program, check=True)


def test_a_run_that_called_what_cannot_be_recorded_is_marked_cold(upper, path):
    with (
        grpc.insecure_channel(f"127.0.0.1:{upper.port}") as channel,
        tape.recording(path),
        Provider() as provider,
    ):
        import httpx

        httpx.get(f"{provider.url}/x")
        call_once(channel)
    cassette = Cassette.open(path)
    assert "through grpc" in str(cassette.ended[cassette.runs[-1]["run"]]["cold"])
