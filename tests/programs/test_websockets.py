"""Both clients of `websockets`: what a program saw on a connection it sees again, with the server gone."""

import asyncio
import json
import random
import socket
import time

import pytest
import websockets
from websockets.sync.client import connect as connected_by_name

import tape_jupyter as tape
from tape_jupyter.replay import websocket_script
from tape_jupyter import instrumentation
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.errors import BlockedConnection, UnmatchedCall
from tape_jupyter.session.session import get
from tests.harness.provider import closed_port
from tests.harness.socket_runs import conversation, server, twice
from tests.harness.sockets import (
    UNMANAGED,
    Asyncio,
    RawServer,
    SocketServer,
    Sync,
    compact,
    reset,
    told,
)
from tests.harness.taped_cells import taped
from tests.harness.tapes import Recorder

SINCE_17_1 = bool(UNMANAGED)


@pytest.fixture(params=[Sync, Asyncio])
def Open(request):
    return request.param


# ---------------------------------------------------------------- what is said


def test_a_conversation_of_turns_replays_and_ends_with_the_servers_close(Open, server, path):
    async def program(url):
        async with Open(f"{url}/turns") as ws:
            seen = await conversation(ws, "hi", "and now?", "bye")
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await ws.recv()
            return [*seen, told(closed.value), ws.ws.close_code, ws.ws.close_reason]

    assert twice(path, server, program)[-2:] == [4000, "so long"]


def test_messages_in_fragments_binary_and_empty_come_as_they_were_cut(Open, server, path):
    async def program(url):
        async with Open(f"{url}/pieces") as ws:
            seen = [await ws.streamed(), await ws.streamed(), await ws.recv(), await ws.recv()]
            await ws.send(["frag", "mented"])
            return seen

    assert twice(path, server, program) == [
        ["one ", "two ", "three", ""],
        [b"\x00", b"\x01\x02", b""],
        b"",
        "",
    ]


def test_what_was_sent_and_came_back_is_the_same_to_the_byte(Open, server, path):
    messages = [
        "plain",
        "zwei\nZeilen",
        '{"a":1.0}',
        ' {"a": [1,  2]}\n',
        '{\n  "a": {}\n}',
        "\u2028 \U0001f600",
        '{"a":',
    ]
    messages += [
        b"\x00\xff",
        b'{"setupComplete": {}}\n',
        json.dumps({"x": "ü"}).encode(),
        "x" * 70_000,
        b"\x01" * 70_000,
    ]

    async def program(url):
        async with Open(f"{url}/echo", max_size=None) as ws:
            seen = []
            for message in messages:
                await ws.send(message)
                seen.append(await ws.recv())
            return seen

    assert twice(path, server, program) == messages


def test_bytes_are_given_where_bytes_are_asked_for(Open, server, path):
    async def program(url):
        async with Open(f"{url}/echo") as ws:
            await ws.send("text")
            await ws.send(b"bytes")
            return [await ws.recv(decode=False), await ws.recv(decode=True)]

    assert twice(path, server, program) == [b"text", "bytes"]


def test_iterating_ends_with_a_normal_close_and_raises_for_another(Open, server, path):
    async def program(url):
        async with Open(f"{url}/going") as ws:
            seen = await ws.all()
        async with Open(f"{url}/failed") as ws:
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await ws.all()
        async with Open(f"{url}/codeless") as ws:
            return [*seen, told(closed.value), await ws.all(), ws.ws.close_code]

    assert twice(path, server, program)[-2:] == [["before"], 1005]


# ---------------------------------------------------------------- how it ends


@pytest.fixture(params=["vanish", "reset"])
def losing(request, server):
    if request.param == "vanish":
        return server
    raw = RawServer(reset)
    request.addfinalizer(raw.listener.close)
    return raw


def test_a_connection_that_is_lost_is_lost_again(Open, losing, path):
    async def program(url):
        async with Open(f"{url}/vanish") as ws:
            seen = [await ws.recv()]
            await ws.send("go")
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await ws.recv()
            return [*seen, told(closed.value), ws.ws.close_code]

    assert twice(path, losing, program)[-1] == 1006


def test_the_programs_own_close_is_answered_as_it_was(Open, server, path):
    async def program(url):
        async with Open(f"{url}/turns") as ws:
            seen = await conversation(ws, "hi")
            await ws.close(4321, "enough")
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await ws.recv()
            with pytest.raises(websockets.ConnectionClosed) as sent:
                await ws.send("more")
            return [*seen, told(closed.value), told(sent.value), ws.ws.close_code]

    assert twice(path, server, program)[-1] == 4321


def test_a_message_that_is_too_long_fails_the_connection_again(Open, server, path):
    async def program(url):
        async with Open(f"{url}/echo", max_size=100) as ws:
            await ws.send("y" * 200)
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await ws.recv()
            return told(closed.value)[2:5]

    assert twice(path, server, program)[1].code == 1009


def test_text_that_is_no_text_fails_the_connection_again(Open, server, path):
    async def program(url):
        async with Open(f"{url}/broken") as ws:
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await ws.recv()
            return told(closed.value)[2:5]

    assert twice(path, server, program)[1].code == 1007


def test_a_refused_handshake_comes_back_with_its_answer(Open, server, path):
    async def program(url):
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with Open(f"{url}/closed"):
                pass
        return [
            part for part in told(refused.value) if not isinstance(part, list)
        ], refused.value.response.headers["X-Request-Id"]

    assert twice(path, server, program)[0][2:] == [
        401,
        "Unauthorized",
        b'{"error":{"message":"no such key"}}',
    ]


def test_a_redirect_is_followed_again(Open, server, path):
    if Open is Sync and not SINCE_17_1:
        pytest.skip("this version's threads client follows none")

    async def program(url):
        async with Open(f"{url}/moved") as ws:
            await ws.send("here")
            return await ws.recv()

    assert twice(path, server, program) == "here"


def test_a_port_where_nobody_listens_is_refused_again(Open, server, path):
    port = closed_port()

    async def program(_url):
        with pytest.raises(OSError) as refused:
            async with Open(f"ws://127.0.0.1:{port}/x"):
                pass
        return type(refused.value), refused.value.errno

    assert twice(path, server, program)[0] is ConnectionRefusedError


def test_a_server_that_never_answers_times_out_again(Open, server, path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"ws://127.0.0.1:{silent.getsockname()[1]}/x"

        async def program(_url):
            with pytest.raises(TimeoutError) as late:
                async with Open(url, open_timeout=0.2):
                    pass
            return told(late.value)

        assert twice(path, server, program)[0] == "TimeoutError"


def test_an_answer_that_proves_nothing_is_disbelieved_again(Open, path):
    async def program(url):
        with pytest.raises(websockets.InvalidHandshake) as disbelieved:
            async with Open(f"{url}/x"):
                pass
        return told(disbelieved.value)

    assert (
        twice(path, RawServer(lambda peer: None, proof=False), program)[0] == "InvalidHeaderValue"
    )


# ---------------------------------------------------------------- as the library has it


def test_the_connection_is_the_librarys_own_in_every_way(Open, server, path):
    async def program(url):
        async with Open(f"{url}/turns?x=1", subprotocols=["realtime"], ping_interval=7) as ws:
            before = (
                type(ws.ws),
                ws.ws.subprotocol,
                ws.ws.state,
                ws.ws.close_code,
                ws.ws.ping_interval,
                ws.ws.request.path,
            )
            return (
                before,
                ws.ws.remote_address,
                ws.ws.response.status_code,
                await ws.ping(),
                await conversation(ws, "hi"),
            )

    seen = twice(path, server, program)
    assert seen[0][1] == "realtime" and seen[0][5] == "/turns?x=1" and seen[3] is True


def test_connect_is_taped_where_it_was_imported_by_name_before(server, path):
    def program():
        with connected_by_name(f"{server.url}/echo") as ws:
            ws.send("x")
            return ws.recv()

    with tape.recording(path):
        program()
    server.stop()
    with tape.replaying(path):
        assert program() == "x"
    with pytest.raises(OSError):
        program()


def test_a_wait_that_timed_out_times_out_again(Open, server, path):
    async def program(url):
        async with Open(f"{url}/echo") as ws:
            with pytest.raises(TimeoutError):
                await ws.recv(timeout=0.05)
            await ws.send("now")
            return await ws.recv()

    assert twice(path, server, program) == "now"


def test_wss_needs_no_certificate_in_replay(Open, path):
    url = "wss://api.openai.com/v1/realtime?model=m"
    lines = b'{"sent":"x"}\n{"got":"y"}\n{"sent close":1000,"reason":""}\n{"got close":1000,"reason":""}\n'
    head = (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", "old"))
    reply = Reply(101, head, (lines,), (0.1,), reason="Switching Protocols")
    Recorder(path).run("x", (Request("GET", url), reply))

    async def program():
        async with Open(url, proxy=None) as ws:
            await ws.send("x")
            return await ws.recv()

    with tape.replaying(path):
        assert asyncio.run(program()) == "y"


# ---------------------------------------------------------------- order


def test_two_tasks_that_send_and_one_that_reads_replay(server, path):
    async def program(url):
        async with Asyncio(f"{url}/echo") as ws:

            async def sender(name):
                for number in range(20):
                    await ws.send(f"{name}{number}")
                    await asyncio.sleep(0)

            async def reader():
                return [await ws.recv() for _ in range(40)]

            return sorted((await asyncio.gather(reader(), sender("a"), sender("b")))[0])

    assert len(twice(path, server, program)) == 40


def test_threads_that_overtake_each_other_replay(server, path):
    def program(order):
        with connected_by_name(f"{server.url}/echo") as ws:
            for name in order:
                ws.send(name)
            return [ws.recv() for _ in order]

    with tape.recording(path):
        assert program("abc") == ["a", "b", "c"]
    server.stop()
    with tape.replaying(path):
        assert program("cab") == ["a", "b", "c"]


def test_a_frame_is_held_until_all_was_said_that_came_before_it(Open, server, path):
    async def record(url):
        async with Open(f"{url}/echo") as ws:
            await ws.send("one")
            await ws.send("two")
            return [await ws.recv(), await ws.recv()]

    async def replay(url):
        async with Open(f"{url}/echo") as ws:
            await ws.send("one")
            with pytest.raises(TimeoutError):
                await ws.recv(timeout=0.05)
            await ws.send("two")
            return [await ws.recv(), await ws.recv()]

    def slow(ws):
        said = [ws.recv(), ws.recv()]
        for message in said:
            ws.send(message)
        ws.recv()

    server.handlers["echo"] = slow
    with tape.recording(path):
        asyncio.run(record(server.url))
    server.stop()
    with tape.replaying(path):
        assert asyncio.run(replay(server.url)) == ["one", "two"]


def test_connections_to_one_address_are_told_apart_by_their_tasks(server, path):
    async def one(url, name):
        async with Asyncio(f"{url}/echo") as ws:
            await ws.send(name)
            return await ws.recv()

    async def program(url):
        return await asyncio.gather(*(one(url, name) for name in "abcdef"))

    assert twice(path, server, program) == list("abcdef")


def test_pieces_of_audio_beyond_the_recorded_ones_are_let_go(Open, server, path):
    async def program(url, count):
        async with Open(f"{url}/turns") as ws:
            await ws.recv()
            for _ in range(count):
                await ws.send(compact(type="input_audio_buffer.append", audio="AAAA"))
            return await ws.recv()

    with tape.recording(path):
        first = asyncio.run(program(server.url, 3))
    server.stop()
    with tape.replaying(path):
        assert asyncio.run(program(server.url, 5)) == first


# ---------------------------------------------------------------- refusals


def recorded(Open, path, server, *texts, **options):
    async def program(url, *texts):
        async with Open(f"{url}/turns") as ws:
            return await conversation(ws, *texts)

    with tape.recording(path):
        asyncio.run(program(server.url, *texts))
    server.stop()

    def again(*texts, **options):
        with tape.replaying(path, **options):
            return asyncio.run(program(server.url, *texts))

    return again


def test_another_message_is_refused_with_the_difference(Open, server, path):
    again = recorded(Open, path, server, "hi", "bye")
    with pytest.raises(UnmatchedCall) as missed:
        again("hi", "good bye")
    text = str(missed.value)
    assert "the program's second; it differs in:" in text
    assert (
        "recorded: 'bye'" in text and "now:      'good bye'" in text and "main.tape.yaml:" in text
    )


def test_a_message_too_many_is_refused(Open, server, path):
    again = recorded(Open, path, server, "hi")
    with pytest.raises(UnmatchedCall, match="had no further message"):
        again("hi", "and more")


def test_waiting_for_an_answer_to_what_was_not_sent_is_refused(Open, server, path, monkeypatch):
    monkeypatch.setattr(websocket_script, "PATIENCE", 0.1)

    async def program(url):
        async with Open(f"{url}/echo") as ws:
            await ws.send("one")
            if not skip:
                await ws.send("two")
            return [await ws.recv(), await ws.recv()]

    skip = False
    with tape.recording(path):
        asyncio.run(program(server.url))
    server.stop()
    skip = True
    with pytest.raises(
        UnmatchedCall, match="second recorded message, and it has not sent that:\n  message: 'two'"
    ):
        with tape.replaying(path):
            asyncio.run(program(server.url))


def test_reading_further_than_the_recorded_program_did_is_refused(Open, server, path, monkeypatch):
    monkeypatch.setattr(websocket_script, "PATIENCE", 0.1)

    async def program(url):
        async with Open(f"{url}/echo") as ws:
            await ws.send("one")
            return [await ws.recv() for _ in range(count)]

    count = 1
    with tape.recording(path):
        asyncio.run(program(server.url))
    server.stop()
    count = 2
    with pytest.raises(UnmatchedCall, match="the recording of this connection ends here"):
        with tape.replaying(path):
            asyncio.run(program(server.url))


def test_a_refusal_is_reported_even_where_the_program_hides_it(Open, server, path):
    async def program(url):
        async with Open(f"{url}/echo") as ws:
            try:
                await ws.send(text)
            except BaseException:
                return "hidden"

    text = "one"
    with tape.recording(path):
        asyncio.run(program(server.url))
    text = "two"
    with pytest.raises(UnmatchedCall, match="it differs in"), tape.replaying(path) as block:
        assert asyncio.run(program(server.url)) == "hidden"
    assert len(block.report.misses) == 1


def test_an_address_that_was_not_recorded_is_refused_and_nothing_is_opened(Open, server, path):
    recorded(Open, path, server, "hi")
    with SocketServer() as other:
        with pytest.raises(UnmatchedCall, match="not on the tape"), tape.replaying(path):
            asyncio.run(Open(f"{other.url}/echo").__aenter__())
        assert other.opened == 0


def test_a_program_may_close_earlier_than_the_recorded_one(Open, server, path):
    again = recorded(Open, path, server, "hi", "you", "there")
    assert again("hi") == again("hi", "you", "there")[:6]


# ---------------------------------------------------------------- what counts


def test_event_ids_do_not_count_and_ignored_paths_do_not(Open, server, path):
    async def program(url):
        async with Open(f"{url}/turns") as ws:
            await ws.send(
                json.dumps(
                    {
                        "type": "ask",
                        "event_id": f"event_{number}",
                        "meta": {"at": number},
                        "text": "hi",
                    }
                )
            )
            return await ws.recv()

    number = 1
    with tape.recording(path, ignore=["meta.at"]):
        first = asyncio.run(program(server.url))
    number = 2
    with tape.replaying(path):
        assert asyncio.run(program(server.url)) == first


def test_keys_never_reach_the_file_and_a_message_that_holds_one_still_matches(
    Open, server, path, monkeypatch
):
    monkeypatch.setenv("WIDGET_API_KEY", "wk-5e5f8a1c9d2b4e6f")

    async def program(url):
        headers = {"Authorization": "Bearer sk-abcdefghijklmnop123456", "X-Trace": "t"}
        async with Open(f"{url}/echo", additional_headers=headers) as ws:
            await ws.send(
                json.dumps({"tools": [{"headers": {"authorization": "wk-5e5f8a1c9d2b4e6f"}}]})
            )
            return await ws.recv()

    with tape.recording(path):
        assert "wk-5e5f8a1c9d2b4e6f" in asyncio.run(program(server.url))
    assert server.heads[-1]["Authorization"] == "Bearer sk-abcdefghijklmnop123456"
    text = path.read_text()
    assert "sk-abcdefgh" not in text and "wk-5e5f8" not in text
    server.stop()
    with tape.replaying(path):
        assert "<secret:" in asyncio.run(program(server.url))


def test_a_frame_that_was_edited_by_hand_replays_as_edited(Open, server, path):
    again = recorded(Open, path, server, "hi", "bye")
    text = path.read_text()
    assert text.count("You said bye .") == 1
    path.write_text(text.replace("You said bye .", "You said farewell ."))
    assert "".join(json.loads(event).get("delta", "") for event in again("hi", "bye")).endswith(
        "You said farewell . "
    )
    with pytest.raises(UnmatchedCall, match="edited by hand"):
        again("hi", "bye", strict=True)


# ---------------------------------------------------------------- when it is kept


def test_what_ends_a_turn_is_on_the_tape_before_the_program_has_it(Open, server, path):
    async def program(url):
        async with Open(f"{url}/turns") as ws:
            for text in ("hi", "again"):
                await conversation(ws, text) if text == "hi" else await rest(ws, text)
                assert f"You said {text} ." in spoken(path)

    async def rest(ws, text):
        await ws.send(json.dumps({"type": "ask", "text": text}))
        while "response.done" not in await ws.recv():
            pass

    def spoken(path):
        from tape_jupyter.encoding.http.websocket import frames_of
        from tape_jupyter.cassette.cassette import Cassette

        frames = frames_of(Cassette.open(path).calls[0].reply().body)
        return "".join(
            json.loads(f.data).get("delta", "") for f in frames if f.is_message and f.by == "got"
        )

    with tape.recording(path):
        asyncio.run(program(server.url))


def test_a_connection_of_one_cell_may_be_spoken_on_in_the_next(server, path):
    def first():
        return connected_by_name(f"{server.url}/turns", **UNMANAGED)

    def second(ws, text):
        ws.send(json.dumps({"type": "ask", "text": text}))
        return [ws.recv(5) for _ in range(5)]

    deck = get()
    with taped(deck, "record", path, "one"):
        ws = first()
        seen = [ws.recv()]
    with taped(deck, "record", path, "two"):
        seen += second(ws, "hi")
        ws.close()
    server.stop()
    with taped(deck, "replay", path, "one"):
        ws = first()
        again = [ws.recv()]
    with taped(deck, "replay", path, "two"):
        again += second(ws, "hi")
        ws.close()
    assert again == seen
    with taped(deck, "replay", path, "one"):
        ws = first()
    with pytest.raises(UnmatchedCall), taped(deck, "replay", path, "two") as running:
        second(ws, "ho")
    assert len(running.report.misses) == 1


def test_the_recorded_order_and_the_recorded_waits_are_kept_where_they_are_asked_for(
    Open, server, path
):
    def slowly(ws):
        for number in range(3):
            ws.recv()
            time.sleep(0.05)
            ws.send(str(number))

    async def program(url, name):
        async with Open(f"{url}/{name}") as ws:
            seen = []
            for _ in range(3):
                await ws.send("next")
                seen.append(await ws.recv())
            return seen

    server.handlers["slow"] = slowly
    with tape.recording(path):
        asyncio.run(program(server.url, "slow"))
    server.stop()
    took = {}
    for pace in ("instant", "order", "recorded"):
        start = time.perf_counter()
        with tape.replaying(path, pace=pace):
            assert asyncio.run(program(server.url, "slow")) == ["0", "1", "2"]
        took[pace] = time.perf_counter() - start
    assert took["recorded"] > 0.15


def test_two_conversations_at_once_interleave_as_recorded(server, path):
    def delayed(ws):
        for message in ws:
            time.sleep(float(message))
            ws.send(message)

    async def one(url, waits, seen):
        async with Asyncio(f"{url}/delayed") as ws:
            for wait in waits:
                await ws.send(wait)
                seen.append(await ws.recv())

    async def program(url):
        seen = []
        await asyncio.gather(one(url, ["0.10", "0.02"], seen), one(url, ["0.03", "0.04"], seen))
        return seen

    server.handlers["delayed"] = delayed
    with tape.recording(path):
        first = asyncio.run(program(server.url))
    server.stop()
    for _ in range(3):
        with tape.replaying(path, pace="order"):
            assert asyncio.run(program(server.url)) == first


@pytest.mark.skipif(not SINCE_17_1, reason="this version does not mind")
@pytest.mark.parametrize("use", ["recv", "send", "ping", "recv_streaming"])
def test_who_uses_connect_without_with_is_warned_as_without_a_tape(server, path, use):
    acts = {
        "recv": lambda ws: ws.recv(),
        "send": lambda ws: ws.send("x"),
        "ping": lambda ws: ws.ping(),
        "recv_streaming": lambda ws: list(ws.recv_streaming()),
    }

    async def program(url):
        with pytest.warns(DeprecationWarning, match="context manager") as warned:
            ws = connected_by_name(f"{url}/turns")
            acts[use](ws)
        ws.close()
        return [(one.filename, one.lineno) for one in warned]

    ((blamed, _line),) = twice(path, server, program)
    assert blamed == __file__


def test_nothing_is_changed_in_the_library_once_the_taps_are_off(server, path):
    import websockets.asyncio.client
    import websockets.sync.client

    def held():
        threads, connect = websockets.sync.client, websockets.asyncio.client.connect
        sync = threads.reconnect.open_connection if SINCE_17_1 else threads.connect.__code__
        return sync, getattr(connect, "create_connection", None) or connect.open_tcp_connection

    instrumentation.unpatch_all()
    own = held()
    instrumentation.patch_all()
    assert not any(ours is theirs for ours, theirs in zip(held(), own, strict=True))
    instrumentation.unpatch_all()
    assert held() == own


@pytest.mark.parametrize("made", ["untaped", "recorded"])
def test_a_live_connection_from_before_is_not_spoken_on_in_a_replay(Open, server, path, made):
    async def program():
        deck = get()
        with taped(deck, "record", path, "one"):
            async with Open(f"{server.url}/echo") as ws:
                await ws.send("x")
                await ws.recv()
        if made == "untaped":
            deck.set_session("off")
            ws = Open(f"{server.url}/echo")
            await ws.__aenter__()
            instrumentation.patch_all()
        else:
            with taped(deck, "record", path, "two"):
                ws = Open(f"{server.url}/echo")
                await ws.__aenter__()
        with (
            pytest.raises(BlockedConnection, match="through websockets"),
            taped(deck, "replay", path, "one"),
        ):
            await ws.send("leak")
        await ws.send("fine")
        assert await ws.recv() == "fine"
        with taped(deck, "record", path, "three") as running:
            await ws.send("y")
        await ws.__aexit__(None, None, None)
        return running.report.warnings

    warnings = asyncio.run(program())
    assert "leak" not in server.asked
    assert ("through websockets" in str(warnings)) is (made == "untaped")


def test_a_take_answers_with_other_frames(Open, server, path):
    again = recorded(Open, path, server, "hi", "bye")
    before = path.read_bytes()
    call = tape.open(path).calls[0]
    tape.open(path).override(
        call,
        reply=call.reply().body.replace(b'"delta":"bye "', b'"delta":"farewell "'),
        take="polite",
    )
    assert "farewell" not in str(again("hi", "bye"))
    assert str(again("hi", "bye", take="polite")).count("farewell") == 1
    assert path.read_bytes() == before


def test_the_text_of_a_spoken_turn_is_one_text_that_can_be_edited(Open, server, path):
    words = " ".join(f"word{number}" for number in range(30))
    again = recorded(Open, path, server, words)
    text = path.read_text()
    assert f"You said {words} ." in text
    path.write_text(text.replace("You said word0 ", "You never said "))
    deltas = [json.loads(event).get("delta", "") for event in again(words)]
    assert "".join(deltas).startswith("You never said word1") and len(deltas) > 20


def test_the_librarys_pings_leave_the_programs_random_numbers_alone(Open, server, path):
    async def program(url):
        random.seed(7)
        async with Open(f"{url}/echo", ping_interval=0.02) as ws:
            await ws.ping()
            await asyncio.sleep(0.1)
            time.sleep(0.1)
            await ws.send("x")
            return await ws.recv(), random.random()

    random.seed(7)
    expected = random.random()
    with tape.recording(path):
        assert asyncio.run(program(server.url)) == ("x", expected)
    server.stop()
    with tape.replaying(path):
        assert asyncio.run(program(server.url)) == ("x", expected)
