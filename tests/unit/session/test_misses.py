"""What a refused call is told: what was asked, the nearest that is recorded, how they differ, what to do now."""

import asyncio
import threading
import time

import httpx
import pytest

import tape_jupyter as tape
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.core.plain_text import format_count, format_times
from tape_jupyter.session.mismatch import title
from tests.harness.notebook import Kernel
from tests.harness.provider import Provider
from tests.harness.taped_cells import ask, on_tape
from tests.harness.tapes import ASK


@pytest.fixture(scope="module")
def provider():
    with Provider() as provider:
        yield provider


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tape.yaml"


def told(path, what, **options):
    with pytest.raises(tape.UnmatchedCall) as caught, tape.replaying(path, **options):
        what()
    return str(caught.value)


def test_a_call_is_titled_by_what_it_is():
    assert title(FunctionCall("search", {}, "retrieval")) == "retrieval search"
    assert (
        title(Request("POST", "https://api.example/v1/x?key=abc"))
        == "POST https://api.example/v1/x"
    )
    assert [format_times(1), format_times(3)] == ["once", "3 times"]
    assert [format_count(1, "reply"), format_count(2000, "reply")] == ["1 reply", "2,000 replies"]


def test_the_nearest_call_is_named_with_run_file_line_and_the_fields_that_differ(provider, path):
    with tape.recording(path):
        ask(provider, "What is the capital of France?", temperature=0)
        ask(provider, "What is the capital of Spain?", temperature=0)
    entry = on_tape(path).calls[0]
    said = told(
        path, lambda: ask(provider, "What is the capital of France?", temperature=1, top_k=5)
    )
    assert (
        said.splitlines()[0]
        == f"POST {provider.url}/v1/messages is not on the tape (a.tape.yaml). Nothing was sent."
    )
    assert (
        f"Nearest recorded call: {entry.id} (run {entry.run}, a.tape.yaml:{entry.line}); it differs in:"
        in said
    )
    assert "  temperature\n    recorded: 0\n    now:      1" in said
    assert "  top_k\n    recorded: (absent)\n    now:      5" in said
    assert "content" not in said
    assert said.splitlines()[-1].startswith("Now: ")
    assert "%%tape new_episodes" in said


def test_a_tool_call_is_compared_with_tool_calls_by_its_arguments(provider, path):
    @tape.tool
    def lookup(order: str, deep: bool = False) -> int:
        return 1

    with tape.recording(path):
        lookup("A-1")
        ask(provider, "A-2")
    said = told(path, lambda: lookup("A-2"))
    assert said.startswith("tool lookup is not on the tape")
    assert "  order\n    recorded: 'A-1'\n    now:      'A-2'" in said


def test_a_call_unlike_all_others_says_so(provider, path):
    @tape.tool
    def lookup() -> int:
        return 1

    with tape.recording(path):
        ask(provider, "one")
    assert "Nothing like it is recorded (1 call to other places)" in told(path, lookup)


def test_an_empty_cassette_says_so(provider, path):
    path.write_text("---\ntape: 1\n...\n")
    assert "The cassette holds no calls yet." in told(path, lambda: ask(provider, "one"))


def test_a_call_made_once_more_than_recorded_is_counted(provider, path):
    with tape.recording(path):
        ask(provider, "one")
        ask(provider, "one")

    def thrice():
        for _ in range(3):
            ask(provider, "one")

    assert "recorded 2 times in a.tape.yaml, and this cell now makes it once more" in told(
        path, thrice
    )


def test_a_call_after_the_end_of_its_cell_is_told_to_be_awaited(provider, path):
    with tape.recording(path):
        ask(provider, "one")
    go, caught = threading.Event(), []

    def late():
        go.wait(20)
        try:
            ask(provider, "one")
        except tape.UnmatchedCall as error:
            caught.append(str(error))

    with tape.replaying(path):
        thread = threading.Thread(target=late)
        thread.start()
    go.set()
    thread.join()
    assert "its cell has ended" in caught[0] and "Wait for it inside the cell" in caught[0]


def test_no_secret_is_told_in_a_miss(provider, path, monkeypatch):
    key = "sk-verysecretvalue-0123456789"
    monkeypatch.setenv("MYCORP_API_KEY", key)

    def send(text):
        body = {
            "messages": [{"content": f"{text} {key}"}],
            "auth": key,
            "login": {"password": "tr0ub4dor&3x"},
        }
        httpx.post(
            f"{provider.url}/v1/other?key={key}",
            json=body,
            headers={"authorization": f"Bearer {key}"},
        )

    with tape.recording(path):
        send("first")
    said = told(path, lambda: send("second"))
    assert "second" in said and "messages[0].content" in said
    assert "verysecret" not in said and "tr0ub4dor" not in said
    assert "\n  auth\n" not in said  # the same key then and now


def test_long_texts_are_shown_around_their_first_difference(provider, path):
    with tape.recording(path):
        ask(provider, "word " * 500 + "old end")
    said = told(path, lambda: ask(provider, "word " * 500 + "new end"))
    assert "old end" in said and "new end" in said
    assert max(map(len, said.splitlines())) < 160


def test_many_differences_are_counted_not_listed(provider, path):
    with tape.recording(path):
        ask(provider, "one")
    said = told(path, lambda: ask(provider, "one", metadata={f"k{i}": i for i in range(30)}))
    assert "... and 22 more fields differ" in said


def test_a_call_that_a_newer_recording_of_its_cell_no_longer_makes_is_said_to_be_recorded(
    provider, tmp_path
):
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    with Kernel(tmp_path) as kernel:
        for text in ("first", "second"):
            kernel.execute(
                "%load_ext tape_jupyter\nimport os; os.environ['TAPE_NOTEBOOK'] = 'n.ipynb'"
            )
            kernel.execute(ASK.replace("URL", provider.url))
            assert kernel.execute(f"%%tape record\nask('{text}')", cell_id="c1").ok
            kernel.restart()
        kernel.execute("%load_ext tape_jupyter\nimport os; os.environ['TAPE_NOTEBOOK'] = 'n.ipynb'")
        kernel.execute(ASK.replace("URL", provider.url))
        said = kernel.execute("%%tape replay\nask('first')", cell_id="c1").evalue
    entry = on_tape(path).calls[0]
    assert (
        f"It was recorded: call {entry.id} of run {entry.run} (main.tape.yaml:{entry.line})."
        in said
    )


@pytest.mark.slow
def test_a_thousand_refused_tasks_take_no_longer_than_a_few(provider, path):
    """Each miss looks for the call that is nearest to it: of a cell's, together, no more than seconds."""

    async def asked(word, at_once):
        async with httpx.AsyncClient(timeout=60) as client:

            async def one(number):
                return await client.get(f"{provider.url}/v1/models?{word}={number}")

            for first in range(0, 1000, at_once):
                tasks = map(one, range(first, first + at_once))
                replies = await asyncio.gather(*tasks, return_exceptions=True)
        return replies

    with tape.recording(path):
        asyncio.run(asked("before", 50))  # httpx itself takes a minute for 1,000 at once
    began = time.thread_time()
    with pytest.raises(tape.UnmatchedCall) as caught, tape.replaying(path) as block:
        assert all(isinstance(each, tape.UnmatchedCall) for each in asyncio.run(asked("now", 1000)))
    assert time.thread_time() - began < 20
    assert "Nearest recorded call" in str(caught.value)
    assert len(block.report.misses) == 1000
    assert "was not looked for" in str(block.report.misses[-1])
