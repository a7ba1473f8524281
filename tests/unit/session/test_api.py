"""`tape.recording` and `tape.replaying`: a block of any program, taped like a cell."""

import asyncio
import inspect
import itertools
import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import asynccontextmanager, contextmanager
from datetime import date

import httpx
import pytest

import tape_jupyter as tape
from tape_jupyter.core.call import Request
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.session import session
from tape_jupyter.session.cell import RunRecording
from tape_jupyter.core.context import ORIGIN
from tape_jupyter.secrets.registry import Secrets
from tests.harness.provider import Scripted


def ask(provider, text, client=httpx):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return client.post(f"{provider.url}/v1/messages", json=body).json()["content"][0]["text"]


async def ask_async(client, provider, text):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return (await client.post(f"{provider.url}/v1/messages", json=body)).json()["content"][0][
        "text"
    ]


def test_a_recorded_block_replays_with_the_provider_gone(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        live = [ask(provider, "one"), ask(provider, "two"), ask(provider, "one")]
    provider.stop()
    with tape.replaying(path) as block:
        assert [ask(provider, "one"), ask(provider, "two"), ask(provider, "one")] == live
    assert [row.kind for row in block.report.calls] == ["model"] * 3


def test_replay_sends_nothing_even_while_the_provider_is_there(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        ask(provider, "one")
    before = len(provider.requests)
    with tape.replaying(path):
        ask(provider, "one")
    assert len(provider.requests) == before


def test_a_block_works_as_a_decorator_and_asynchronously(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"

    @tape.recording(path)
    def live():
        return ask(provider, "one")

    @tape.replaying(path)
    async def replayed():
        async with httpx.AsyncClient() as client:
            return await ask_async(client, provider, "one")

    assert live() == asyncio.run(replayed())


def asking(provider, *texts):
    for text in texts:
        yield ask(provider, text)


async def asking_async(provider, *texts):
    async with httpx.AsyncClient() as client:
        for text in texts:
            yield await ask_async(client, provider, text)


def read(items):
    """What a generator gives, plain or async."""
    if not hasattr(items, "__aiter__"):
        return list(items)

    async def every():
        return [item async for item in items]

    return asyncio.run(every())


@pytest.mark.parametrize("agent", [asking, asking_async])
def test_a_decorated_generator_function_is_taped_as_it_is_read(provider, tmp_path, agent):
    path = tmp_path / "a.tape.yaml"
    live = read(tape.recording(path)(agent)(provider, "one", "two"))
    assert len(tape.open(path).calls) == 2
    before = len(provider.requests)
    replayed = tape.replaying(path)(agent)
    assert read(replayed(provider, "one", "two")) == live
    with pytest.raises(tape.UnmatchedCall, match="three"):
        read(replayed(provider, "one", "three"))
    assert len(provider.requests) == before
    assert ask(provider, "after it") and len(provider.requests) == before + 1


def test_a_decorated_generator_is_sent_to_thrown_into_and_returns_as_without_it(provider, tmp_path):
    @tape.recording(tmp_path / "a.tape.yaml")
    def agent():
        question = yield "what?"
        try:
            yield ask(provider, question)
        except ValueError as error:
            yield str(error)
        return "done"

    assert inspect.isgeneratorfunction(agent)
    running = agent()
    assert next(running) == "what?"
    assert running.send("this") and running.throw(ValueError("no")) == "no"
    with pytest.raises(StopIteration) as end:
        next(running)
    assert end.value.value == "done"


def test_a_decorated_async_generator_is_sent_to_and_thrown_into_as_without_it(provider, tmp_path):
    @tape.recording(tmp_path / "a.tape.yaml")
    async def agent():
        question = yield "what?"
        try:
            yield ask(provider, question)
        except ValueError as error:
            yield str(error)

    async def main():
        running = agent()
        assert await anext(running) == "what?"
        assert await running.asend("this") and await running.athrow(ValueError("no")) == "no"
        assert [item async for item in running] == []

    assert inspect.isasyncgenfunction(agent)
    asyncio.run(main())


def test_a_decorated_generator_that_is_left_early_ends_its_block_and_did_not_fail(
    provider, tmp_path
):
    path = tmp_path / "a.tape.yaml"
    running = tape.recording(path)(asking)(provider, "one", "two")
    next(running)
    running.close()
    (end,) = tape.open(path).ended.values()
    assert (end["outcome"], end["calls"]) == ("ok", 1)
    replayed = tape.replaying(path)(asking)(provider, "one", "two")
    next(replayed)
    del replayed
    assert ask(provider, "the block is over")


def test_the_steps_of_a_decorated_async_generator_may_run_in_tasks_of_their_own(provider, tmp_path):
    @tape.tool
    def stamp():
        return time.monotonic()

    async def agent():
        for _ in range(3):
            yield stamp(), str(uuid.uuid4())

    async def each_in_a_task(items):
        async def following():
            return await anext(items, None)

        found = [await asyncio.create_task(following()) for _ in range(4)]
        return found, ORIGIN.get()

    path = tmp_path / "a.tape.yaml"
    live = asyncio.run(each_in_a_task(tape.recording(path)(agent)()))
    assert asyncio.run(each_in_a_task(tape.replaying(path)(agent)())) == live
    assert live[0][3] is None and live[1] is None


def test_a_refusal_that_a_decorated_generator_swallowed_is_raised_when_it_ends(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    read(tape.recording(path)(asking)(provider, "one"))

    @tape.replaying(path)
    def agent():
        try:
            yield ask(provider, "two")
        except BaseException:
            yield "something else"

    with pytest.raises(tape.UnmatchedCall):
        list(agent())


def test_an_object_with_an_async_call_is_awaited_in_the_block(provider, tmp_path):
    class Agent:
        async def __call__(self, text):
            async with httpx.AsyncClient() as client:
                return await ask_async(client, provider, text)

    path = tmp_path / "a.tape.yaml"
    live = asyncio.run(tape.recording(path)(Agent())("one"))
    before = len(provider.requests)
    assert asyncio.run(tape.replaying(path)(Agent())("one")) == live
    with pytest.raises(tape.UnmatchedCall):
        asyncio.run(tape.replaying(path)(Agent())("two"))
    assert len(provider.requests) == before


@pytest.mark.parametrize(
    "late", [asking, asking_async, contextmanager(asking), asynccontextmanager(asking_async)]
)
def test_a_function_whose_work_is_still_to_be_done_is_refused(provider, tmp_path, late):
    before = len(provider.requests)
    with pytest.raises(
        tape.TapeUsageError, match=r"tape\.recording.*start returned a .*not recorded.*`async def`"
    ):

        @tape.recording(tmp_path / "a.tape.yaml")
        def start():
            return late(provider, "one")

        start()
    assert len(provider.requests) == before
    assert ask(provider, "the block is over")


def test_a_function_that_gives_a_coroutine_is_refused_and_leaves_none_unawaited(tmp_path):
    async def work():
        pytest.fail("it ran")

    def start():
        return work()

    async def start_async():
        return work()

    taped = tape.recording(tmp_path / "a.tape.yaml")
    with pytest.raises(tape.TapeUsageError, match="start returned a coroutine"):
        taped(start)()
    with pytest.raises(tape.TapeUsageError, match="start_async returned a coroutine"):
        asyncio.run(taped(start_async)())


class Agent:
    def run(self):
        return 1


@pytest.mark.parametrize("what", [Agent, staticmethod(ask), classmethod(ask), property(ask), 3])
def test_what_is_no_function_cannot_be_decorated(tmp_path, what):
    with pytest.raises(
        tape.TapeUsageError, match=r"goes on a function, not on .* use it in a `with`"
    ):
        tape.replaying(tmp_path / "a.tape.yaml")(what)


def test_a_cassette_that_is_not_there_is_refused_before_anything_runs(tmp_path):
    with (
        pytest.raises(tape.TapeUsageError, match="no cassette"),
        tape.replaying(tmp_path / "none.tape.yaml"),
    ):
        pytest.fail("the block ran")


def test_a_block_that_changes_directory_is_on_one_tape_where_it_began(
    provider, tmp_path, monkeypatch
):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    with tape.recording("a.tape.yaml"):
        os.chdir("data")
        live = ask(provider, "one")
    os.chdir(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.tape.yaml"]
    with tape.replaying("a.tape.yaml"):
        os.chdir("data")
        assert ask(provider, "one") == live
    assert not [*(tmp_path / "data").iterdir()]


def test_a_block_beside_a_half_read_generator_is_told_how_to_end_that(provider, tmp_path):
    running = tape.recording(tmp_path / "a.tape.yaml")(asking)(provider, "one", "two")
    next(running)
    with (
        pytest.raises(tape.TapeUsageError, match="cannot be nested.*closed"),
        tape.recording(tmp_path / "b.tape.yaml"),
    ):
        pytest.fail("the block ran")
    running.close()
    with tape.recording(tmp_path / "b.tape.yaml"):
        ask(provider, "three")


def test_a_miss_comes_at_once_with_the_nearest_call_and_a_diff(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        ask(provider, "Which region lost most?")
    before = len(provider.requests)
    with pytest.raises(tape.UnmatchedCall) as caught, tape.replaying(path):
        ask(provider, "Which region won most?")
    text = str(caught.value)
    assert (
        "messages[0].content" in text
        and "lost most" in text
        and "won most" in text
        and "a.tape.yaml:" in text
    )
    assert len(provider.requests) == before


def test_a_miss_that_the_program_swallowed_is_raised_when_the_block_ends(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        ask(provider, "one")
    with pytest.raises(tape.UnmatchedCall), tape.replaying(path):
        try:
            ask(provider, "two")
        except BaseException:
            pass


def test_the_same_call_made_more_often_than_recorded_is_refused(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        ask(provider, "one")
    with pytest.raises(tape.UnmatchedCall, match="recorded once"), tape.replaying(path):
        ask(provider, "one")
        ask(provider, "one")


def test_new_episodes_replays_what_is_known_and_records_the_rest(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        one = ask(provider, "one")
    with tape.replaying(path, mode="new_episodes"):
        assert ask(provider, "one") == one
        two = ask(provider, "two")
    provider.stop()
    with tape.replaying(path):
        assert [ask(provider, "one"), ask(provider, "two")] == [one, two]


def test_once_records_the_first_time_and_replays_ever_after(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.replaying(path, mode="once"):
        one = ask(provider, "one")
    before = len(provider.requests)
    with tape.replaying(path, mode="once"):
        assert ask(provider, "one") == one
    with pytest.raises(tape.UnmatchedCall), tape.replaying(path, mode="once"):
        ask(provider, "another")
    assert len(provider.requests) == before


def test_ignored_paths_do_not_count_in_the_match(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    send = lambda stamp: (
        httpx.post(
            f"{provider.url}/v1/messages",
            json={
                "model": "m",
                "max_tokens": 9,
                "metadata": {"ts": stamp},
                "messages": [{"role": "user", "content": "x"}],
            },
        ).text
    )
    with tape.recording(path):
        live = send(1)
    with pytest.raises(tape.UnmatchedCall, match="metadata.ts"), tape.replaying(path):
        send(2)
    with tape.replaying(path, ignore=["$.metadata.ts"]):
        assert send(2) == live


def test_a_reply_edited_by_hand_is_replayed_as_edited_and_said_so(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        live = ask(provider, "one")
    path.write_text(path.read_text().replace(live, "Forty-two."))
    with tape.replaying(path) as block:
        assert ask(provider, "one") == "Forty-two."
    assert any("edited" in note for note in block.report.notes)
    with (
        pytest.raises(tape.UnmatchedCall, match="edited by hand"),
        tape.replaying(path, strict=True),
    ):
        ask(provider, "one")


def test_keys_are_not_needed_in_replay_and_never_reach_the_file(provider, tmp_path, monkeypatch):
    import anthropic

    path = tmp_path / "a.tape.yaml"
    body = dict(
        model="m",
        max_tokens=9,
        messages=[{"role": "user", "content": "my key is sk-ant-verysecretvalue-0123456789"}],
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-verysecretvalue-0123456789")
    with tape.recording(path), anthropic.Anthropic(base_url=provider.url) as client:
        live = client.messages.create(**body)
    assert "verysecretvalue" not in path.read_text()
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with tape.replaying(path):
        body["messages"][0]["content"] = f"my key is {os.environ['ANTHROPIC_API_KEY']}"
        with anthropic.Anthropic(base_url=provider.url) as client:
            assert client.messages.create(**body).id == live.id
    assert "ANTHROPIC_API_KEY" not in os.environ


def test_a_tool_runs_while_recording_and_never_in_replay(provider, tmp_path):
    from tests.harness.tool_runs import Witness

    ran = Witness()

    @tape.tool
    def charge(card: str, amount: int) -> dict:
        ran.append((card, amount))
        if amount < 0:
            raise ValueError("negative", amount)
        return {"ok": True, "pair": (1, 2)}

    def program():
        with pytest.raises(ValueError, match="negative") as caught:
            charge("c", -1)
        return charge("c", amount=5), caught.value.args

    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        live = program()
    with tape.replaying(path):
        assert program() == live == ({"ok": True, "pair": (1, 2)}, ("negative", -1))
    assert len(ran) == 2


def lookup_order(order_id: str) -> dict:
    LOOKED_UP.append(order_id)
    return {"order": order_id, "n": len(LOOKED_UP)}


LOOKED_UP: list[str] = []


def test_a_function_named_in_a_requests_tools_is_taped_without_a_change_to_it(provider, tmp_path):
    tools = [
        {
            "name": "lookup_order",
            "input_schema": {"type": "object", "properties": {"order_id": {"type": "string"}}},
        }
    ]

    def program():
        body = {
            "model": "m",
            "max_tokens": 9,
            "tools": tools,
            "messages": [{"role": "user", "content": "order A-12"}],
        }
        reply = httpx.post(f"{provider.url}/v1/messages", json=body).json()
        use = next(block for block in reply["content"] if block["type"] == "tool_use")
        return {"lookup_order": lookup_order}[use["name"]](**use["input"])

    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        live = program()
    runs = len(LOOKED_UP)
    with tape.replaying(path):
        assert program() == live
    assert len(LOOKED_UP) == runs == 1
    lookup_order("live again")
    assert len(LOOKED_UP) == 2


def test_a_call_made_after_the_block_by_its_thread_is_refused_in_replay(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    go, outcome = threading.Event(), []

    def late():
        go.wait(20)
        try:
            outcome.append(ask(provider, "late"))
        except BaseException as error:
            outcome.append(error)

    with tape.recording(path):
        ask(provider, "late")
    before = len(provider.requests)
    with tape.replaying(path):
        thread = threading.Thread(target=late)
        thread.start()
    go.set()
    thread.join()
    assert isinstance(outcome[0], tape.UnmatchedCall) and len(provider.requests) == before


def test_a_call_made_after_the_block_while_recording_is_kept_with_a_warning(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    go, outcome = threading.Event(), []

    def late():
        go.wait(20)
        outcome.append(ask(provider, "late"))

    with tape.recording(path):
        ask(provider, "early")
        thread = threading.Thread(target=late)
        thread.start()
    go.set()
    thread.join()
    with tape.replaying(path):
        assert ask(provider, "late") == outcome[0]


def test_a_socket_that_no_tap_saw_is_refused_in_replay_and_named_while_recording(
    provider, tmp_path
):
    import socket

    path = tmp_path / "a.tape.yaml"
    with tape.recording(path) as block:
        ask(provider, "one")
        socket.create_connection(("127.0.0.1", provider.port)).close()
    assert any("not from a recorded library" in warning for warning in block.report.warnings)
    with pytest.raises(tape.BlockedConnection), tape.replaying(path):
        socket.create_connection(("127.0.0.1", provider.port)).close()
    socket.create_connection(("127.0.0.1", provider.port)).close()


def test_blocks_cannot_be_nested(tmp_path):
    with (
        tape.recording(tmp_path / "a.tape.yaml"),
        pytest.raises(tape.TapeUsageError, match="nested"),
        tape.recording(tmp_path / "b.tape.yaml"),
    ):
        pytest.fail("the inner block ran")


def threads(provider, texts):
    out = {}
    work = [
        threading.Thread(target=lambda i=i, t=t: out.setdefault(i, ask(provider, t)))
        for i, t in enumerate(texts)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    return [out[i] for i in range(len(texts))]


def pool_map(provider, texts):
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda text: ask(provider, text), texts))


def completed(provider, texts):
    with ThreadPoolExecutor(8) as pool:
        futures = {pool.submit(ask, provider, text): i for i, text in enumerate(texts)}
        return dict(sorted((futures[done], done.result()) for done in as_completed(futures)))


def gather(provider, texts):
    async def main():
        async with httpx.AsyncClient() as client:
            return await asyncio.gather(*(ask_async(client, provider, text) for text in texts))

    return asyncio.run(main())


def async_as_completed(provider, texts):
    async def main():
        async def one(client, index, text):
            return index, await ask_async(client, provider, text)

        async with httpx.AsyncClient() as client:
            work = asyncio.as_completed([one(client, i, text) for i, text in enumerate(texts)])
            return dict(sorted([await done for done in work]))

    return asyncio.run(main())


def task_group_with_one_failure(provider, texts):
    async def main():
        out = {}

        async def one(client, index, text):
            out[index] = await ask_async(client, provider, text)
            if index == len(texts) - 1:
                raise ValueError("the last one fails")

        async with httpx.AsyncClient() as client:
            # Those before the failing one end first, so that which of them were cancelled is not left to chance.
            await asyncio.gather(*(one(client, i, text) for i, text in enumerate(texts[:-1])))
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(one(client, len(texts) - 1, texts[-1]))
                    group.create_task(asyncio.Event().wait())
            except* ValueError as failed:
                out["failed"] = [str(error) for error in failed.exceptions]
        return out

    return asyncio.run(main())


@pytest.mark.spread(4)
@pytest.mark.parametrize("same", [False, True], ids=["distinct", "identical"])
@pytest.mark.parametrize(
    "program",
    [threads, pool_map, completed, gather, async_as_completed, task_group_with_one_failure],
)
def test_no_answer_is_swapped_under_concurrency(provider, tmp_path, program, same):
    texts = ["the same question" if same else f"question {i}" for i in range(16)]
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        live = program(provider, texts)
    before = len(provider.requests)
    for _ in range(3):
        with tape.replaying(path):
            assert program(provider, texts) == live
    assert len(provider.requests) == before


def stream_text(provider, stop_after=None):
    body = {
        "model": "m",
        "max_tokens": 9,
        "stream": True,
        "messages": [{"role": "user", "content": "tell me more"}],
    }
    chunks = []
    with httpx.stream("POST", f"{provider.url}/v1/messages", json=body) as response:
        for chunk in response.iter_raw():
            chunks.append(chunk)
            if len(chunks) == stop_after:
                break
    return chunks


def test_a_stream_closed_early_replays_to_the_same_byte_and_no_further(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        live = stream_text(provider, stop_after=2)
    with tape.replaying(path):
        assert stream_text(provider, stop_after=2) == live
    with pytest.raises(tape.UnmatchedCall, match="ends here"), tape.replaying(path):
        stream_text(provider)


def test_a_stream_cancelled_by_its_program_is_cancelled_again_at_the_same_byte(provider, tmp_path):
    provider.script(
        "/v1/stream",
        Scripted(
            200,
            {"content-type": "text/event-stream"},
            [b"data: 1\n\n", b"data: 2\n\n"],
            then="hang",
        ),
    )
    path = tmp_path / "a.tape.yaml"

    async def main():
        seen = []

        async def read():
            async with (
                httpx.AsyncClient() as client,
                client.stream("POST", f"{provider.url}/v1/stream") as response,
            ):
                async for chunk in response.aiter_raw():
                    seen.append(chunk)
                    if b"2" in chunk:
                        arrived.set()

        arrived = asyncio.Event()
        task = asyncio.create_task(read())
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seen

    with tape.recording(path):
        live = asyncio.run(main())
    with tape.replaying(path):
        assert asyncio.run(main()) == live


def test_a_block_that_runs_into_its_programs_timeout_does_so_again(provider, tmp_path):
    provider.script(
        "/v1/slow", Scripted(200, {}, [b"late"], then="hang", gates={0: threading.Event()})
    )

    def run(block, patience):
        async def job():
            async with block, httpx.AsyncClient() as client:
                return (await client.get(f"{provider.url}/v1/slow")).text

        async def main():
            try:
                return await asyncio.wait_for(job(), patience)
            except TimeoutError:
                return "timed out"

        return asyncio.run(main())

    path = tmp_path / "a.tape.yaml"
    assert run(tape.recording(path), 1.0) == "timed out"
    assert run(tape.replaying(path), 1.0) == "timed out"
    assert "cut short" not in path.read_text()


def test_a_session_told_to_replay_from_outside_overrides_a_recording_block(provider, tmp_path):
    from tape_jupyter.session import session

    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        live = ask(provider, "one")
    before = len(provider.requests)
    session.get().set_session("replay")
    session.get().forced = True
    try:
        with tape.recording(path):
            assert ask(provider, "one") == live
    finally:
        session.get().forced = False
        session.get().set_session("off")
    assert len(provider.requests) == before


def test_requests_that_name_another_operation_in_a_header_are_not_the_same(provider, tmp_path):
    def post(**headers):
        return httpx.post(
            f"{provider.url}/v1/messages", json={"model": "m", "messages": []}, headers=headers
        )

    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        post(**{"X-Amz-Target": "DynamoDB.GetItem"})
    with tape.replaying(path):
        post(**{"X-Amz-Target": "DynamoDB.GetItem"})
    with pytest.raises(tape.UnmatchedCall, match="x-amz-target"), tape.replaying(path):
        post(**{"X-Amz-Target": "DynamoDB.DeleteItem"})


def test_a_result_that_could_not_be_kept_does_not_shift_the_others(provider, tmp_path):
    results = iter([object(), "second", "third"])

    @tape.tool
    def draw():
        return next(results)

    path = tmp_path / "a.tape.yaml"
    with tape.recording(path) as block:
        draw(), draw(), draw()
    assert any("draw" in warning for warning in block.report.warnings)
    with pytest.raises(tape.UnmatchedCall, match="could not be recorded"), tape.replaying(path):
        draw()


def test_a_key_that_a_later_reply_echoes_is_not_in_the_file_even_for_a_known_request(
    provider, tmp_path
):
    key = "sk-proj-known-only-from-the-header-0123456789"
    provider.script(
        "/v1/echo", Scripted(200, {}, [b"fine"]), Scripted(401, {}, [f"bad key {key}".encode()])
    )
    path = tmp_path / "a.tape.yaml"
    for number in range(2):
        if number:
            from tape_jupyter.session import session
            from tape_jupyter.secrets.registry import Secrets

            session.get().secrets = Secrets()
        with tape.recording(path):
            httpx.post(f"{provider.url}/v1/echo", headers={"Authorization": f"Bearer {key}"})
    assert key not in path.read_text()


def greet(name: str) -> str:
    GREETED.append(name)
    return f"hello {name} {len(GREETED)}"


GREETED: list[str] = []


def test_a_tool_known_from_an_earlier_block_is_taped_from_the_start_of_the_next(provider, tmp_path):
    tools = [
        {
            "name": "greet",
            "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
    ]
    body = {
        "model": "m",
        "max_tokens": 9,
        "tools": tools,
        "messages": [{"role": "user", "content": "x"}],
    }
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        httpx.post(f"{provider.url}/v1/messages", json=body)
    with tape.recording(path):
        live = greet("bob")
    with tape.replaying(path):
        assert greet("bob") == live
    assert GREETED == ["bob"]


@pytest.fixture
def redacting():
    desk = session.get()
    desk.set("redact.email", r"[\w.]+@[\w.]+\w")
    yield
    desk.secrets._patterns = ()


def test_calls_that_differ_only_in_what_is_masked_are_said_to_go_by_their_order(
    redacting, tmp_path
):
    path = tmp_path / "a.tape.yaml"
    plans = {"ann@x.org": "pro", "bob@x.org": "free"}

    @tape.tool
    def lookup(email):
        return plans[email]

    with tape.recording(path) as block:
        assert [lookup(email) for email in plans] == ["pro", "free"]
    assert "2 calls differ only in what `redact` masks" in block.report.warnings[0]
    with tape.replaying(path) as block:
        assert [lookup(email) for email in plans] == ["pro", "free"]
    assert "told apart by their order" in block.report.warnings[0]
    with (
        pytest.raises(tape.UnmatchedCall, match="differs from others only in what was masked"),
        tape.replaying(path, strict=True),
    ):
        lookup("bob@x.org")


def test_the_same_call_asked_again_is_not_taken_for_another(redacting, tmp_path):
    path = tmp_path / "a.tape.yaml"

    @tape.tool
    def lookup(email):
        return email.upper()

    with tape.recording(path) as block:
        lookup("ann@x.org"), lookup("ann@x.org")
    assert not block.report.warnings
    with tape.replaying(path, strict=True):
        lookup("ann@x.org"), lookup("ann@x.org")


def test_a_mapping_by_masked_keys_replays_whole(redacting, tmp_path):
    path = tmp_path / "a.tape.yaml"

    @tape.tool
    def balances():
        return {"ann@x.org": 10, "bob@x.org": 20}

    with tape.recording(path):
        balances()
    with tape.replaying(path):
        assert list(balances().values()) == [10, 20]


def test_a_tool_with_arguments_that_json_does_not_know_replays_beside_ignored_paths(tmp_path):
    path = tmp_path / "a.tape.yaml"

    @tape.tool
    def orders(day, ids=()):
        return f"orders of {day}"

    with tape.recording(path, ignore=["metadata.ts"]):
        live = orders(date(2026, 1, 2))
    with tape.replaying(path):
        assert orders(date(2026, 1, 2)) == live


def test_two_calls_whose_keys_begin_alike_are_both_recorded(provider, tmp_path):
    path = tmp_path / "a.tape.yaml"
    seen = {}
    for n in itertools.count():
        call = Request("GET", f"{provider.url}/same?n={n}")
        other = seen.setdefault(match_key(call, Secrets())[:4], n)
        if other != n:
            break
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            RunRecording,
            "next_name",
            lambda recording, match, own=RunRecording.next_name: own(recording, match[:4] * 2),
        )
        with tape.recording(path) as block:
            for number in (other, n):
                httpx.get(f"{provider.url}/same?n={number}")
    assert not block.report.warnings and len(tape.open(path).calls) == 2


def test_two_tokens_of_one_name_in_a_call_are_said_to_go_by_their_order(provider, tmp_path):
    tokens = [f"tok-{each}8f2Kd93hfKQ0aZpLx71mNbVt" for each in "ab"]

    @tape.tool
    def who(token):
        return token[4]

    with tape.recording(tmp_path / "a.tape.yaml") as block:
        for token in tokens:
            headers = {"authorization": f"Bearer {token}"}
            httpx.post(f"{provider.url}/v1/messages", json={"model": "m"}, headers=headers)
        assert [who(token) for token in tokens] == ["a", "b"]
    warnings = block.report.warnings
    assert any("2 calls differ only in token: replay" in each for each in warnings), warnings
    with tape.recording(tmp_path / "b.tape.yaml") as block:
        assert [who(token) for token in (tokens[0], tokens[0])] == ["a", "a"]
    assert not block.report.warnings
