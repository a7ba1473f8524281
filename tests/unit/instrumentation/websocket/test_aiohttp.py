"""WebSockets of aiohttp: what a program saw on a connection it sees again, with the server gone."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

import tape_jupyter as tape
from tape_jupyter.replay import websocket_script
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.session.session import get
from tests.harness.provider import closed_port
from tests.harness.socket_runs import server, twice
from tests.harness.sockets import RawServer, reset
from tests.harness.taped_cells import on_tape


def told(message: Any) -> Any:
    data = repr(message.data) if isinstance(message.data, BaseException) else message.data
    return message.type.name, data, message.extra


async def conversation(ws: Any, *texts: str) -> list[str]:
    seen = [await ws.receive_str()]
    for text in texts:
        await ws.send_json({"type": "ask", "text": text})
        while "response.done" not in seen[-1] or len(seen) == 1:
            seen.append(await ws.receive_str())
        seen.append("")
    return seen


def test_a_conversation_of_turns_replays_and_ends_with_the_servers_close(server, path):
    async def program(url):
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/turns") as ws:
            seen = await conversation(ws, "hi", "and now?", "bye")
            return [*seen, told(await ws.receive()), ws.close_code, ws.closed]

    assert twice(path, server, program)[-2:] == [4000, True]
    lines = on_tape(path).calls[0].reply().body
    assert lines.count(b'{"sent"') == 3


@pytest.mark.parametrize("compress", [0, 15])
def test_what_was_sent_and_came_back_is_the_same_to_the_byte(compress, server, path):
    messages = [
        "plain",
        '{"a":1.0}',
        '{\n  "a": {}\n}',
        "\u2028 \U0001f600",
        b"\x00\xff",
        "x" * 70_000,
        b"\x01" * 70_000,
        "",
    ]

    async def program(url):
        seen = []
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{url}/echo", compress=compress) as ws,
        ):
            for message in messages:
                await (ws.send_str(message) if isinstance(message, str) else ws.send_bytes(message))
                seen.append((await ws.receive()).data)
        return seen

    assert twice(path, server, program) == messages


def test_fragments_arrive_whole_and_iterating_ends_with_the_close(server, path):
    async def program(url):
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/pieces") as ws:
            seen = [told(await ws.receive()) for _ in range(4)]
            await ws.send_str("thanks")
            return seen, [told(message) async for message in ws], ws.close_code

    seen, rest, _ = twice(path, server, program)
    assert [data for _, data, _ in seen] == ["one two three", b"\x00\x01\x02", b"", ""] and not rest


@pytest.mark.parametrize("way", ["going", "failed", "codeless"])
def test_a_close_comes_back_with_its_code_and_reason(way, server, path):
    async def program(url):
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{url}/{way}", autoclose=False) as ws,
        ):
            return [told(await ws.receive()), told(await ws.receive()), ws.close_code]

    twice(path, server, program)


def test_the_programs_own_close_is_answered_as_it_was(server, path):
    async def program(url):
        async with aiohttp.ClientSession() as session:
            ws = await session.ws_connect(f"{url}/echo")
            await ws.send_str("a")
            seen = await ws.receive_str()
            return (
                seen,
                await ws.close(code=4001, message=b"enough"),
                ws.close_code,
                told(await ws.receive()),
            )

    assert twice(path, server, program)[2] == 4001


@pytest.mark.parametrize("way", ["vanish", "reset"])
def test_a_connection_that_is_lost_is_lost_again(way, server, path):
    async def program(url):
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/{way}") as ws:
            seen = [told(await ws.receive())]
            await ws.send_str("go on")
            return seen, told(await ws.receive()), ws.close_code, ws.closed

    raw = RawServer(reset)
    twice(path, server if way == "vanish" else raw, program)
    raw.listener.close()


def test_a_message_that_is_too_long_fails_the_connection_again(server, path):
    async def program(url):
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{url}/echo", max_msg_size=1000) as ws,
        ):
            await ws.send_str("x" * 2000)
            return told(await ws.receive()), ws.close_code

    assert twice(path, server, program)[0][0] == "ERROR"


def test_a_refused_handshake_comes_back_with_its_answer(server, path):
    async def program(url):
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                await session.ws_connect(f"{url}/closed")
            return caught.value.status, str(caught.value), caught.value.headers["X-Request-Id"]

    assert twice(path, server, program)[0] == 401


def test_a_port_where_nobody_listens_is_refused_again(server, path):
    port = closed_port()

    async def program(_):
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await session.ws_connect(f"ws://127.0.0.1:{port}/")
            return str(caught.value)

    twice(path, server, program)


def test_a_wait_that_timed_out_is_read_on_from(server, path):
    async def program(url):
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{url}/echo", heartbeat=0.05) as ws,
        ):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ws.receive(), 0.12)  # pings go by
            await ws.send_str("a")
            return await ws.receive_str(), ws.protocol

    assert twice(path, server, program) == ("a", None)


def test_http_addresses_subprotocols_and_tasks_are_as_they_were(server, path):
    async def program(url):
        async with aiohttp.ClientSession() as session:

            async def ask(text: str) -> Any:
                async with session.ws_connect(
                    f"{url.replace('ws:', 'http:')}/turns", protocols=["realtime"]
                ) as ws:
                    return [*await conversation(ws, text), ws.protocol]

            return await asyncio.gather(ask("one"), ask("two"))

    assert twice(path, server, program)[1][-1] == "realtime"
    assert {call.request().url.partition(":")[0] for call in on_tape(path).calls} == {"ws"}


def recorded(path, server, *texts: str) -> Any:
    """Records a conversation and stops the server; gives what replays one."""

    async def program(url, *texts: str):
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/turns") as ws:
            return await conversation(ws, *texts)

    with tape.recording(path):
        asyncio.run(program(server.url, *texts))
    server.stop()

    def replay(*texts: str) -> Any:
        with tape.replaying(path):
            return asyncio.run(program(server.url, *texts))

    return replay


def test_another_message_is_refused_with_the_difference(server, path):
    replay = recorded(path, server, "hi")
    with pytest.raises(UnmatchedCall, match="'hi'(.|\n)*'hello'"):
        replay("hello")


def test_waiting_for_what_cannot_come_is_refused(server, path, monkeypatch):
    monkeypatch.setattr(websocket_script, "PATIENCE", 0.1)
    recorded(path, server, "hi")

    async def program():
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}/turns") as ws,
        ):
            return [await ws.receive_str() for _ in range(2)]

    with pytest.raises(UnmatchedCall, match="it has not sent that"), tape.replaying(path):
        asyncio.run(program())


def test_an_address_that_was_not_recorded_is_refused_and_nothing_is_opened(server, path):
    recorded(path, server, "hi")

    async def program():
        async with aiohttp.ClientSession() as session:
            await session.ws_connect(f"{server.url}/elsewhere")

    with pytest.raises(UnmatchedCall), tape.replaying(path):
        asyncio.run(program())
    assert server.opened == 1


def test_what_ends_a_turn_is_on_the_tape_before_the_program_has_it(server, path):
    kept: list[int] = []

    async def program(url):
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/turns") as ws:
            await conversation(ws, "hi")
            kept.append(on_tape(path).calls[0].reply().body.count(b"response.done"))

    with tape.recording(path):
        asyncio.run(program(server.url))
    assert kept == [1]


def test_nothing_is_changed_in_the_library_once_the_taps_are_off(server, path):
    owners = (aiohttp.ClientSession, aiohttp.ClientWebSocketResponse, aiohttp.BaseConnector)
    get().unhook()
    before = {owner: dict(vars(owner)) for owner in owners}
    recorded(path, server, "hi")("hi")
    get().unhook()
    assert {owner: dict(vars(owner)) for owner in owners} == before
