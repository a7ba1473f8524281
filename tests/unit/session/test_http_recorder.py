"""A live call as it happens: committed in time, kept whole whatever ends it, and never in the program's way."""

import asyncio
import gc
import json
import threading

import anthropic
import httpx
import openai
import pytest
import requests

import tape_jupyter as tape
from tape_jupyter.cassette.journal import Journal
from tape_jupyter.encoding.http import body as http_body
from tape_jupyter.session import session
from tape_jupyter.session.http_recorder import HttpCapture
from tests.harness.provider import Scripted, sse
from tests.harness.taped_cells import ask, on_tape, question, taped, texts
from tests.harness.timing import Expires

JSON = {"content-type": "application/json"}
STREAM = {"content-type": "text/event-stream"}
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
EARLY = [b'data: {"type":"ping"}\n\n', b'data: {"type":"ping","n":2}\n\n']


def stream(provider, path="/v1/messages", text="one"):
    return httpx.stream(
        "POST", f"{provider.url}{path}", json=question(text, stream=True), timeout=20
    )


def read(provider):
    chunks = []
    with stream(provider) as response:
        for chunk in response.iter_raw():
            chunks.append(chunk)
    return chunks


# ---------------------------------------------------------------- committed in time


def test_who_sees_the_last_event_of_an_sdks_stream_finds_the_call_on_the_tape(provider, path):
    on_disk = {}
    client = anthropic.Anthropic(base_url=provider.url, api_key="k")
    with client, tape.recording(path):
        with client.messages.create(**question("one"), stream=True) as events:
            for event in events:
                on_disk[event.type] = texts(path)
    assert on_disk.pop("message_stop") == ["one"]
    assert set(map(tuple, on_disk.values())) == {()}


def test_the_end_of_a_responses_stream_finds_the_call_on_the_tape(provider, path):
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k") as client, tape.recording(path):
        for event in client.responses.create(model="m", input="one", stream=True):
            kept = len(on_tape(path).calls)
            assert kept == (event.type == "response.completed")


@pytest.mark.parametrize(
    ("headers", "chunks"),
    [
        (STREAM, [*EARLY, STOP]),
        (STREAM, [*EARLY, b"data: [DONE]\n\n"]),
        (STREAM, [*EARLY, STOP[:20], STOP[20:]]),
        ({"content-type": "application/json", "content-length": "12"}, [b'{"a": ', b'"bcd"}']),
        ({"content-type": "application/x-ndjson"}, [b'{"done":false}\n', b'{"done":true}\n']),
    ],
)
def test_the_last_chunk_is_handed_over_when_the_call_is_on_the_tape_though_the_connection_hangs(
    provider, path, headers, chunks
):
    provider.script(
        "/v1/messages",
        Scripted(200, headers, chunks, then="end" if "content-length" in headers else "hang"),
    )
    kept = []
    with tape.recording(path), stream(provider) as response:
        for chunk in response.iter_raw():
            kept.append(len(on_tape(path).calls))
            if len(b"".join(chunks)) == response.num_bytes_downloaded:
                break
    assert kept[-1] == 1 and not any(kept[:-1])


def test_recording_holds_no_token_back(provider, path):
    gates = {1: threading.Event(), 2: threading.Event()}
    provider.script("/v1/messages", Scripted(200, STREAM, [*EARLY, STOP], gates=gates))
    seen = []
    with tape.recording(path), stream(provider) as response:
        for chunk in response.iter_raw():
            seen.append(chunk)
            gate = gates.get(len(seen))
            if gate:  # the next chunk is sent only once this one was handed over
                gate.set()
    assert seen == [*EARLY, STOP]


# ---------------------------------------------------------------- what comes after the terminal event


def test_bytes_after_the_terminal_event_are_added_and_replay_chunk_for_chunk(provider, path):
    gates = {2: threading.Event()}
    late = [b": the end\n\n", b"\n"]
    provider.script(
        "/v1/messages", Scripted(200, STREAM, [EARLY[0], STOP, *late], gates=gates, delay=0.01)
    )
    live = []
    with tape.recording(path), stream(provider) as response:
        for chunk in response.iter_raw():
            live.append(chunk)
            gates[2].set()
    assert live == [EARLY[0], STOP, *late]
    assert path.read_text().count("\nmore: ") == 1
    provider.stop()
    with tape.replaying(path) as block:
        assert read(provider) == live
    assert block.report.notes == []


def test_an_error_after_the_terminal_event_is_added_and_replays(provider, path):
    provider.script("/v1/messages", Scripted(200, STREAM, [*EARLY, STOP], then="reset", delay=0.01))
    live, again = [], []
    with tape.recording(path):
        with pytest.raises(httpx.HTTPError) as first, stream(provider) as response:
            live.extend(response.iter_raw())
    with tape.replaying(path):
        with pytest.raises(httpx.HTTPError) as second, stream(provider) as response:
            again.extend(response.iter_raw())
    assert type(first.value) is type(second.value)
    assert again == live


def test_a_program_that_stops_at_the_terminal_event_replays_as_a_whole_reply(provider, path):
    provider.script("/v1/messages", Scripted(200, STREAM, [*EARLY, STOP], then="hang"))
    with tape.recording(path), stream(provider) as response:
        for chunk in response.iter_raw():
            if chunk == STOP:
                break
    assert on_tape(path).calls[0].reply().end == "complete"
    with tape.replaying(path):
        assert read(provider) == [*EARLY, STOP]


def test_two_terminal_events_make_one_call(provider, path):
    chunks = [*sse(("response.completed", {"type": "response.completed"})), b"data: [DONE]\n\n"]
    provider.script("/v1/messages", Scripted(200, STREAM, chunks))
    for mode in ("record", "live"):
        with tape.replaying(path, mode=mode) as block:
            read(provider)
        assert len(block.report.calls) == 1
    assert len(on_tape(path).calls) == 1


# ---------------------------------------------------------------- a cell that ends first


def test_a_stream_that_a_raising_cell_left_open_is_kept_and_the_raise_replays(provider, path):
    def program(seen):
        events = client.messages.create(**question("one"), stream=True)
        for event in events:
            seen.append(event.type)
            if len(seen) == 3:
                raise ValueError("enough", events)  # the error holds the stream: nobody closes it

    live, again = [], []
    with anthropic.Anthropic(base_url=provider.url, api_key="k") as client:
        with pytest.raises(ValueError, match="enough"), tape.recording(path):
            program(live)
        assert len(on_tape(path).calls) == 1
        with pytest.raises(ValueError, match="enough"), tape.replaying(path):
            program(again)
    assert again == live


def test_a_stream_begun_in_one_cell_and_read_on_in_the_next_is_whole_on_the_tape(provider, path):
    client = httpx.Client()
    request = client.build_request(
        "POST", f"{provider.url}/v1/messages", json=question("one", stream=True)
    )
    with tape.recording(path):
        response = client.send(request, stream=True)
        chunks = response.iter_raw()
        live = [next(chunks)]
    live += chunks
    assert on_tape(path).calls[0].reply().chunks == tuple(live)
    assert on_tape(path).calls[0].reply().end == "complete"
    client.close()
    with tape.replaying(path):
        assert read(provider) == live


def test_the_last_event_of_a_stream_that_outlives_its_cell_is_committed_before_it_is_handed_over(
    provider, path
):
    client = httpx.Client()
    request = client.build_request(
        "POST", f"{provider.url}/v1/messages", json=question("one", stream=True)
    )
    with tape.recording(path):
        chunks = client.send(request, stream=True).iter_raw()
        next(chunks)
    for chunk in chunks:
        reply = on_tape(path).calls[0].reply()
        assert (b"message_stop" in b"".join(reply.chunks)) == (b"message_stop" in chunk)
    client.close()


def test_a_late_call_is_said_below_the_cell_that_started_it_and_only_once(provider, path, capfd):
    go = threading.Event()

    def late():
        go.wait(20)
        ask(provider, "late")
        ask(provider, "later")

    with tape.recording(path):
        ask(provider, "early")
        thread = threading.Thread(target=late)
        thread.start()
    go.set()
    thread.join()
    assert texts(path) == ["early", "late", "later"]
    assert capfd.readouterr().err.count("ended after its cell did") == 1


# ---------------------------------------------------------------- cancelled


def hang(provider):
    provider.script("/v1/messages", Scripted(200, STREAM, EARLY, then="hang"))


async def read_async(provider, seen=None, arrived=None, text="one"):
    async with httpx.AsyncClient() as client:
        body = question(text, stream=True)
        async with client.stream(
            "POST", f"{provider.url}/v1/messages", json=body, timeout=20
        ) as response:
            async for chunk in response.aiter_raw():
                if seen is not None:
                    seen.append(chunk)
                if arrived is not None and chunk == EARLY[1]:
                    arrived.set()


def test_a_timeout_of_the_cells_own_is_the_programs_and_replays(provider, path):
    hang(provider)

    async def main(mode):
        seen = []
        async with tape.replaying(path, mode=mode):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(None) as limit:
                    await read_async(provider, seen, Expires(limit))
            return seen

    live = asyncio.run(main("record"))
    assert live == EARLY
    assert on_tape(path).calls[0].reply().end == "error"
    assert asyncio.run(main("replay")) == live


@pytest.mark.parametrize("children", [0, 3])
def test_a_cell_that_is_cancelled_itself_was_interrupted_with_all_its_tasks(
    provider, path, children
):
    hang(provider)

    async def cell():
        with taped(session.get(), "record", path):
            if children:
                await asyncio.gather(
                    *(
                        read_async(provider, arrived=arrived[i], text=str(i))
                        for i in range(children)
                    )
                )
            else:
                await read_async(provider, arrived=arrived[0])

    async def main():
        running = asyncio.create_task(cell())
        for event in arrived[: children or 1]:
            await event.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    arrived = [asyncio.Event() for _ in range(3)]
    asyncio.run(main())
    assert [entry.reply().end for entry in on_tape(path).calls] == ["cut short"] * (children or 1)
    assert [end["outcome"] for end in on_tape(path).ended.values()] == ["interrupted"]
    with pytest.raises(tape.UnmatchedCall, match="--cut-short"), tape.replaying(path):
        asyncio.run(read_async(provider, text="0" if children else "one"))


def test_a_cancelled_cell_keeps_what_its_program_had_cancelled_before(provider, path):
    hang(provider)

    async def cell():
        async with tape.recording(path):
            child = asyncio.create_task(read_async(provider, arrived=arrived))
            await arrived.wait()
            child.cancel()
            await asyncio.wait([child])
            running.cancel()
            await asyncio.sleep(1)

    async def main():
        nonlocal running
        running = asyncio.create_task(cell())
        await asyncio.wait([running])

    running, arrived = None, asyncio.Event()
    asyncio.run(main())
    assert on_tape(path).calls[0].reply().end == "error"


def test_an_interrupt_between_two_chunks_is_no_early_close_of_the_programs(provider, path):
    with pytest.raises(KeyboardInterrupt), tape.recording(path), stream(provider) as response:
        for _ in response.iter_raw():
            raise KeyboardInterrupt
    assert on_tape(path).calls[0].reply().end == "cut short"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_interrupt_amid_a_commit_neither_loses_the_call_nor_writes_it_twice(
    provider, path, monkeypatch, when, streamed
):
    append = Journal.append

    def struck(journal, data, *more):
        if b"\ncall: " not in data:
            return append(journal, data, *more)
        monkeypatch.setattr(Journal, "append", append)
        if when == "after":
            append(journal, data, *more)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), tape.recording(path):
        ask(provider, "zero")
        monkeypatch.setattr(Journal, "append", struck)
        read(provider) if streamed else ask(provider, "one")
    assert texts(path) == ["zero", "one"]
    assert on_tape(path).calls[1].reply().end == ("complete" if when == "after" else "cut short")
    with tape.recording(path):
        ask(provider, "two")
    assert texts(path) == ["zero", "one", "two"]


# ---------------------------------------------------------------- functions


def test_a_value_that_cannot_be_frozen_is_named_and_marks_the_run(provider, path):
    @tape.tool
    def handle() -> object:
        return threading.Lock()

    with tape.recording(path) as block:
        ask(provider, "one")
        assert handle()
    (warning,) = block.report.warnings
    assert warning.startswith("tool handle is not on the tape")
    (end,) = on_tape(path).ended.values()
    assert end["cold"] == [warning]


def test_a_tool_that_was_interrupted_gave_nothing_to_keep(path):
    @tape.tool
    def slow() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), tape.recording(path):
        slow()
    assert on_tape(path).calls == []
    with pytest.raises(tape.UnmatchedCall, match="tool slow"), tape.replaying(path):
        slow()


def test_a_tool_whose_task_was_cancelled_is_the_programs_unless_the_cell_was_interrupted(path):
    @tape.tool
    async def slow(n: int) -> int:
        await asyncio.sleep(30)
        return n

    async def own():
        async with tape.recording(path):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await slow(1)

    async def interrupted():
        with taped(session.get(), "record", path):
            asyncio.get_running_loop().call_later(0.01, asyncio.current_task().cancel)
            await slow(2)

    asyncio.run(own())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert [entry.request().arguments for entry in on_tape(path).calls] == [{"n": 1}]


def test_a_call_that_is_on_the_tape_is_let_go_before_the_collector_comes(provider, path):
    client = anthropic.Anthropic(base_url=provider.url, api_key="k")
    gc.collect()
    gc.disable()  # each request of an agent holds all of its history
    try:
        with client, tape.recording(path):
            for text in ("one", "two", "three"):
                client.messages.create(**question(text))
            kept = [each for each in gc.get_objects() if isinstance(each, HttpCapture)]
    finally:
        gc.enable()
    assert texts(path) == ["one", "two", "three"] and kept == []


SENDERS = {
    "httpx": lambda url, body: httpx.post(url, content=body, headers=JSON, timeout=20),
    "requests": lambda url, body: requests.post(url, data=body, headers=JSON, timeout=20),
}


@pytest.mark.parametrize("client", SENDERS)
def test_of_an_agents_turn_only_what_is_new_is_spelled_whatever_client_sends_it(
    client, provider, path, monkeypatch
):
    spelled, fold = [], http_body.fold_body
    monkeypatch.setattr(
        http_body,
        "fold_body",
        lambda raw, *how, **more: spelled.append(raw) or fold(raw, *how, **more),
    )
    asked, sent = question("a message that is long enough to be worth it, " * 30), []
    with tape.recording(path):
        for turn in range(3):
            asked["messages"].append({"role": "user", "content": f"turn {turn}"})
            sent.append(json.dumps(asked, separators=(",", ":")).encode())
            SENDERS[client](f"{provider.url}/v1/messages", sent[-1])
    assert [entry.request().body for entry in on_tape(path).calls] == sent
    assert not set(sent) & set(spelled)


# ---------------------------------------------------------------- tools that no tap saw


def hidden_loop(provider, asked="roll the dice"):
    """An agent whose tool is answered in line: no function that could be found."""
    tools = [{"name": "roll", "input_schema": {"type": "object", "properties": {}}}]
    client = anthropic.Anthropic(base_url=provider.url, api_key="k")
    messages = [{"role": "user", "content": asked}]
    for _ in range(2):
        reply = client.messages.create(model="m", max_tokens=9, tools=tools, messages=messages)
        use = next(block for block in reply.content if block.type == "tool_use")
        answer = {"type": "tool_result", "tool_use_id": use.id, "content": "4"}
        messages += [
            {"role": "assistant", "content": [use.model_dump()]},
            {"role": "user", "content": [answer]},
        ]
        client.messages.create(model="m", max_tokens=9, tools=tools, messages=messages)
        messages.append({"role": "user", "content": "again"})


@pytest.mark.parametrize("asked", ["roll the dice", "roll the dice, " * 100])
def test_a_tool_whose_result_was_not_taped_is_named_once_and_marks_the_run(provider, path, asked):
    with tape.recording(path) as block:
        hidden_loop(provider, asked)
    (warning,) = block.report.warnings
    assert "the result of tool roll was not taped" in warning and "@tape.tool" in warning
    (end,) = on_tape(path).ended.values()
    assert end["cold"] == [warning]


def test_a_result_that_crosses_in_the_next_cell_is_a_gap_of_that_cell(provider, path):
    tools = [{"name": "roll", "input_schema": {"type": "object", "properties": {}}}]
    with tape.recording(path) as first:
        reply = httpx.post(f"{provider.url}/v1/messages", json=question("roll", tools=tools)).json()
    use = reply["content"][0]
    answer = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "4"}],
    }
    history = [{"role": "user", "content": "roll"}, {"role": "assistant", "content": [use]}, answer]
    with tape.recording(path) as second:
        httpx.post(
            f"{provider.url}/v1/messages", json={"model": "m", "max_tokens": 9, "messages": history}
        )
    assert first.report.warnings == []
    assert "the result of tool roll" in second.report.warnings[0]


def test_a_key_that_stands_in_an_address_is_not_left_in_half_where_its_name_is_cut(
    provider, path, monkeypatch
):
    key = "Zq7rTq1v9WcX2bLk4711"
    monkeypatch.setenv("ACME_API_KEY", key)
    address = f"/hooks/{'a' * 45}/{key}/x"
    provider.script(address, Scripted(200, {}, [b"fine"]))
    with tape.recording(path):
        httpx.get(provider.url + address)
    name = path.read_text().partition("name:")[2].partition("\n")[0]
    assert key[:6] not in path.read_text() and "<secret" in name
