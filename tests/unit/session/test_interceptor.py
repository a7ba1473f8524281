"""Where a call crosses: what passes, what is refused, and what a refusal looks like from inside an SDK."""

import asyncio
import json
import re
import signal
import threading

import anthropic
import httpx
import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import WHOLE_CHECK
from tape_jupyter.session.session import TapeSession
from tests.harness.provider import Scripted
from tests.harness.taped_cells import ask, on_tape, question, taped
from tests.harness.tool_runs import Witness

STREAM = {"content-type": "text/event-stream"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tape.yaml"


def spans(provider):
    return httpx.post(
        f"{provider.url}/v1/traces",
        content=b"\x0a\x00",
        headers={"content-type": "application/x-protobuf"},
    )


def test_telemetry_goes_out_while_recording_and_is_not_taped(provider, path):
    with tape.recording(path) as block:
        assert spans(provider).status_code == 404
        ask(provider, "one")
    assert [seen.path for seen in provider.requests] == ["/v1/traces", "/v1/messages"]
    assert [entry.request().url.rpartition("/")[2] for entry in on_tape(path).calls] == ["messages"]
    assert block.report.warnings == []


def test_telemetry_is_not_sent_in_replay_and_nobody_complains(provider, path):
    with tape.recording(path):
        ask(provider, "one")
    before = len(provider.requests)
    with tape.replaying(path) as block:
        taken = spans(provider)
        assert (taken.status_code, taken.json()) == (200, {}), (
            "a library that is refused complains in the cell"
        )
        ask(provider, "one")
    assert len(provider.requests) == before
    assert (block.report.misses, len(block.report.calls)) == ([], 1)


@pytest.mark.parametrize(
    "path_of_the_api", ["/v1/profiles", "/v1/metrics", "/v1/logs", "/runs/batch"]
)
def test_an_api_of_ones_own_whose_path_looks_like_a_collectors_is_taped(
    provider, path, path_of_the_api
):
    provider.script(
        path_of_the_api, Scripted(200, {"content-type": "application/json"}, [b'{"name": "Ada"}'])
    )

    def answer():
        return httpx.post(f"{provider.url}{path_of_the_api}", json={"id": 7}).json()

    with tape.recording(path):
        assert answer() == {"name": "Ada"}
    before = len(provider.requests)
    with tape.replaying(path):
        assert answer() == {"name": "Ada"}
    assert len(provider.requests) == before


def test_a_bad_record_met_in_replay_is_a_refusal_with_file_and_line_and_no_connection_error(
    provider, path
):
    provider.script(
        "/v1/filler", Scripted(200, {"content-type": "text/plain"}, [b"0123456789 abcdef\n" * 1500])
    )
    with tape.recording(path):
        for number in range(WHOLE_CHECK // 27_000 + 1):
            httpx.get(f"{provider.url}/v1/filler?{number}")
        anthropic.Anthropic(base_url=provider.url, api_key="k").messages.create(**question("one"))
    assert path.stat().st_size > WHOLE_CHECK, "smaller files are read whole before anything runs"
    head, status, tail = path.read_text().rpartition("status: 200")
    path.write_text(f'{head}status: "200 OK"{tail}')
    line = head.count("\n") + 1
    with (
        pytest.raises(tape.UnmatchedCall, match="cannot be replayed") as caught,
        tape.replaying(path),
    ):
        anthropic.Anthropic(base_url=provider.url, api_key="k").messages.create(**question("one"))
    where = int(re.search(r"a\.tape\.yaml:(\d+): status", str(caught.value))[1])
    assert tape.open(path, check="marks").calls[-1].line <= where <= line


def test_a_miss_comes_through_an_sdk_at_once_and_as_itself(provider, path):
    with tape.recording(path):
        anthropic.Anthropic(base_url=provider.url, api_key="k").messages.create(**question("one"))
    with pytest.raises(tape.UnmatchedCall, match="is not on the tape"), tape.replaying(path):
        anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=5).messages.create(
            **question("two")
        )


def interrupted(provider, seen, strike=True):
    """Reads a stream of which only two events ever come, and is interrupted while it waits for the third."""
    main = threading.main_thread().ident
    with httpx.stream(
        "POST", f"{provider.url}/v1/messages", json=question("one", stream=True), timeout=20
    ) as response:
        for chunk in response.iter_raw():
            seen.append(chunk)
            if len(seen) == 2 and strike:
                threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()


@pytest.fixture
def hanging(provider):
    provider.script(
        "/v1/messages", Scripted(200, STREAM, [b"data: 1\n\n", b"data: 2\n\n"], then="hang")
    )
    return provider


def test_an_interrupted_stream_is_refused_in_replay_with_the_way_to_have_it(hanging, path):
    live, again = [], []
    with pytest.raises(KeyboardInterrupt), tape.recording(path):
        interrupted(hanging, live)
    assert [entry.reply().end for entry in on_tape(path).calls] == ["cut short"]
    with pytest.raises(tape.UnmatchedCall, match="--cut-short"), tape.replaying(path):
        interrupted(hanging, again)
    assert again == []
    with (
        pytest.raises(KeyboardInterrupt, match="interrupted here"),
        tape.replaying(path, cut_short=True),
    ):
        interrupted(hanging, again, strike=False)
    assert again == live == [b"data: 1\n\n", b"data: 2\n\n"]


def test_an_interrupt_before_the_reply_came_is_played_before_it(provider, path):
    provider.script("/v1/messages", Scripted(0, then="hang"))
    main = threading.main_thread().ident

    def strike():
        while not provider.requests:
            threading.Event().wait(0.005)
        signal.pthread_kill(main, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), tape.recording(path):
        threading.Thread(target=strike, daemon=True).start()
        ask(provider, "one")
    for options in ({}, {"cut_short": True}):
        refused = KeyboardInterrupt if options else tape.UnmatchedCall
        with pytest.raises(refused), tape.replaying(path, **options):
            ask(provider, "one")


def test_the_partial_reply_of_a_task_of_its_own_ends_in_a_refusal_since_a_loop_survives_no_interrupt(
    hanging, path
):
    with pytest.raises(KeyboardInterrupt), tape.recording(path):
        interrupted(hanging, [])
    again = []

    async def read():
        async with httpx.AsyncClient() as client:
            body = question("one", stream=True)
            async with client.stream("POST", f"{hanging.url}/v1/messages", json=body) as response:
                async for chunk in response.aiter_raw():
                    again.append(chunk)

    async def main():
        return await asyncio.gather(asyncio.create_task(read()), return_exceptions=True)

    with tape.replaying(path, cut_short=True):
        with pytest.raises(tape.UnmatchedCall, match="an interrupt stopped the run"):
            asyncio.run(asyncio.wait_for(read(), 20))
    assert again == [b"data: 1\n\n", b"data: 2\n\n"]


def test_functions_outside_taped_cells_run_as_if_we_were_not_there(provider, path):
    ran = Witness()

    @tape.tool
    def touch(what):
        ran.append(what)

    with tape.recording(path):
        touch("recorded")
    touch("outside")
    with tape.replaying(path):
        touch("recorded")
    assert ran == ["recorded", "outside"]


def test_new_episodes_knows_the_tools_that_replayed_replies_asked_for(provider, path):
    tools = [{"name": "never_found", "input_schema": {"type": "object", "properties": {}}}]

    def program():
        reply = httpx.post(
            f"{provider.url}/v1/messages", json=question("hello", tools=tools)
        ).json()
        use = reply["content"][0]
        result = {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": ANSWER[0]}],
        }
        messages = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [use]},
            result,
        ]
        httpx.post(
            f"{provider.url}/v1/messages",
            json={"model": "m", "max_tokens": 9, "tools": tools, "messages": messages},
        )

    ANSWER = ["first"]
    with tape.recording(path):
        program()
    ANSWER[0] = "another"
    with tape.replaying(path, mode="new_episodes") as block:
        program()
    assert any(
        "the result of tool never_found was not taped" in warning
        for warning in block.report.warnings
    )


def test_a_tool_that_only_the_reply_tells_of_is_sought_again_before_the_reply_is_handed_on(
    provider, path
):
    use = {"type": "tool_use", "id": "toolu_1", "name": "send_mail", "input": {"to": "ada"}}
    message = {
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [use],
        "stop_reason": "tool_use",
    }
    provider.script(
        "/held/v1/messages",
        Scripted(200, {"content-type": "application/json"}, [json.dumps(message).encode()]),
    )
    held = f"{provider.url}/held/v1/messages"  # where the provider itself holds the tools
    notebook = {
        "ask": lambda: httpx.post(held, json=question("mail her")).json(),
        "ran": [],
        "__name__": "__main__",
    }
    agent = (
        "HANDLERS = {'send_mail': lambda to: ran.append(to)}\nask()\nHANDLERS['send_mail']('ada')"
    )
    deck = TapeSession()
    with taped(deck, "record", path, namespace=notebook, options={"tools": ["send_mail"]}):
        exec("HANDLERS = {'send_mail': lambda to: ran.append(to)}", notebook)
        deck.tape_known_tools(deck.active)
        exec("ask()\nHANDLERS['send_mail']('ada')", notebook)
    assert notebook["ran"] == ["ada"] and len(on_tape(path).calls) == 2
    with taped(deck, "replay", path, namespace=notebook) as running:
        exec(agent, notebook)
    assert notebook["ran"] == ["ada"] and len(running.report.calls) == 2
    deck.set_session("off")
