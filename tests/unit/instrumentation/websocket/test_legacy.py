"""The older client of `websockets`: what it saw it sees again, with the server gone."""

import asyncio
import warnings

import pytest
import websockets

import tape_jupyter as tape
from tape_jupyter.replay import websocket_script
from tape_jupyter.errors import UnmatchedCall
from tests.harness.socket_runs import conversation, server, twice
from tests.harness.sockets import RawServer, compact, reset, told

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import websockets.legacy.client
from tests.harness.sockets import Legacy as Open


def test_a_conversation_of_turns_replays_and_ends_with_the_servers_close(server, path):
    async def program(url):
        async with Open(f"{url}/turns") as ws:
            seen = await conversation(ws, "hi", "bye")
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await ws.recv()
            return [*seen, told(closed.value), ws.ws.close_code, ws.ws.close_reason]

    assert twice(path, server, program)[-2:] == [4000, "so long"]


def test_messages_in_fragments_binary_and_long_ones_come_again(server, path):
    async def program(url):
        async with Open(f"{url}/pieces") as ws:
            seen = [await ws.recv() for _ in range(4)]
            await ws.send(["frag", "mented"])
        async with Open(f"{url}/echo") as ws:
            await ws.send(b"\x00" * 70_000)
            return [*seen, await ws.recv(), await ws.ping()]

    assert twice(path, server, program) == [
        "one two three",
        b"\x00\x01\x02",
        b"",
        "",
        b"\x00" * 70_000,
        True,
    ]


def test_iterating_ends_with_a_normal_close(server, path):
    async def program(url):
        async with Open(f"{url}/going") as ws:
            return await ws.all(), ws.ws.close_code

    assert twice(path, server, program) == (["before"], 1001)


@pytest.mark.parametrize("way", ["vanish", "reset"])
def test_a_connection_that_is_lost_is_lost_again(server, path, way):
    async def program(url):
        async with Open(f"{url}/vanish") as ws:
            seen = [await ws.recv()]
            await ws.send("go")
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await ws.recv()
            return [*seen, told(closed.value), ws.ws.close_code]

    assert twice(path, server if way == "vanish" else RawServer(reset), program)[-1] == 1006


def test_the_programs_own_close_and_a_message_that_is_too_long_close_it_again(server, path):
    async def program(url):
        async with Open(f"{url}/turns") as ws:
            seen = await conversation(ws, "hi")
            await ws.close(4321, "enough")
        async with Open(f"{url}/echo", max_size=100) as other:
            await other.send("y" * 200)
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await other.recv()
        return [*seen, ws.ws.close_code, closed.value.sent.code]

    assert twice(path, server, program)[-2:] == [4321, 1009]


def test_a_refused_handshake_and_a_redirect_come_again(server, path):
    async def program(url):
        with pytest.raises(websockets.legacy.exceptions.InvalidStatusCode) as refused:
            async with Open(f"{url}/closed"):
                pass
        async with Open(f"{url}/moved") as ws:
            await ws.send("here")
            return refused.value.status_code, refused.value.headers["X-Request-Id"], await ws.recv()

    assert twice(path, server, program) == (401, "req_9", "here")


def test_headers_that_can_be_read_once_are_sent(server, path):
    async def program(url):
        async with Open(f"{url}/echo", extra_headers=iter([("X-Team", "amber")])) as ws:
            await ws.send("here")
            return await ws.recv()

    assert twice(path, server, program) == "here"
    assert [head.get("X-Team") for head in server.heads] == ["amber", "amber"]


def test_another_message_and_one_too_few_are_refused(server, path, monkeypatch):
    monkeypatch.setattr(websocket_script, "PATIENCE", 0.1)

    async def program(url, *texts):
        async with Open(
            f"{url}/turns", extra_headers={"Authorization": "Bearer sk-0123456789abcdefghij"}
        ) as ws:
            await ws.recv()
            for text in texts:
                await ws.send(compact(type="ask", text=text))
            return [await ws.recv() for _ in range(6)]

    with tape.recording(path):
        asyncio.run(program(server.url, "one", "two"))
    assert "sk-0123" not in path.read_text()
    server.stop()
    with (
        pytest.raises(UnmatchedCall, match="the program's second; it differs"),
        tape.replaying(path),
    ):
        asyncio.run(program(server.url, "one", "three"))
    with pytest.raises(UnmatchedCall, match="it has not sent that"), tape.replaying(path):
        asyncio.run(program(server.url, "one"))
