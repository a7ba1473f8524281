"""A live tool that is kept: whatever ends it, whatever its cell does first, and never in the program's way."""

import asyncio
import signal
import threading

import pytest

import tape_jupyter as tape
from tape_jupyter.errors import UnmatchedCall
from tests.harness.taped_cells import on_tape


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tape.yaml"


@tape.tool
def numbers(stop, interrupt_at=-1):
    for number in range(stop):
        if number == interrupt_at:
            signal.raise_signal(signal.SIGINT)
        yield number


def test_an_interrupted_generator_keeps_its_items_and_refuses_to_go_on(path):
    with pytest.raises(KeyboardInterrupt), tape.recording(path):
        list(numbers(5, interrupt_at=2))
    assert on_tape(path).calls[0].reply().value["end"] == "cut short"
    with tape.replaying(path):
        again = numbers(5, interrupt_at=2)
        assert [next(again), next(again)] == [0, 1]
        with pytest.raises(UnmatchedCall, match="an interrupt stopped the run, after 2 items"):
            next(again)


def test_an_interrupted_function_leaves_nothing(path):
    @tape.tool
    def stopped():
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), tape.recording(path):
        next(numbers(1))
        stopped()
    assert [call.head()["name"] for call in on_tape(path).calls] == ["numbers"]


def test_a_generator_that_a_thread_reads_past_the_cells_end_is_kept_whole(path, capsys):
    go, begun = threading.Event(), threading.Event()
    got = []

    def read():
        for number in numbers(3):
            got.append(number)
            begun.set()
            go.wait(10)

    with tape.recording(path):
        thread = threading.Thread(target=read)
        thread.start()
        begun.wait(10)
    go.set()
    thread.join()
    assert got == [0, 1, 2]
    (call,) = on_tape(path).calls
    assert call.reply().value == {
        "<type>": "generator", "items": [0, 1, 2], "end": "complete", "waits": call.reply().value["waits"],
    }  # fmt: skip


def test_a_generator_that_is_left_open_is_no_call_that_came_late(path, capsys):
    with tape.recording(path) as block:
        left = numbers(3)
        next(left)
    assert not [text for text in block.report.warnings if "after its cell" in text]
    left.close()
    assert capsys.readouterr().err == ""


def test_an_error_after_the_cells_end_is_added(path):
    @tape.tool
    def fails():
        yield 1
        raise LookupError("late")

    with tape.recording(path):
        late = fails()
        next(late)
    with pytest.raises(LookupError):
        next(late)
    with tape.replaying(path):
        again = fails()
        assert next(again) == 1
        with pytest.raises(LookupError, match="late"):
            next(again)


def test_what_a_generator_changes_after_the_cells_end_is_added(path):
    @tape.tool
    def collect(into):
        for number in range(3):
            into.append(number)
            yield number

    def program(late):
        into = []
        found = collect(into)
        next(found)
        late.append((into, found))

    late = []
    with tape.recording(path):
        program(late)
    for mode in (None, tape.replaying):
        if mode:
            with mode(path):
                program(late)
        into, found = late.pop()
        assert list(found) == [1, 2] and into == [0, 1, 2]


def test_a_refusal_inside_of_a_generator_is_not_its_reply(path):
    @tape.tool
    def asks():
        raise UnmatchedCall("inside")
        yield

    with tape.recording(path):
        next(numbers(1))
        with pytest.raises(UnmatchedCall, match="inside"):
            next(asks())
    assert [call.head()["name"] for call in on_tape(path).calls] == ["numbers"]


def test_secrets_in_items_are_masked(path, monkeypatch):
    monkeypatch.setenv("SERVICE_API_KEY", "planted-secret-9f2c")

    @tape.tool
    def leaks():
        yield "fine"
        yield {"header": "Bearer planted-secret-9f2c"}

    with tape.recording(path):
        assert len(list(leaks())) == 2
    assert "planted-secret" not in path.read_text()
    with tape.replaying(path):
        assert list(leaks())[1] == {"header": "Bearer <secret:SERVICE_API_KEY>"}


def test_many_generators_at_once_are_kept_apart(path):
    @tape.tool
    async def slowly(name):
        for number in range(5):
            await asyncio.sleep(0)
            yield f"{name}{number}"

    async def program():
        async def read(name):
            return [item async for item in slowly(name)]

        return await asyncio.gather(*(read(f"g{number % 7}.") for number in range(30)))

    with tape.recording(path):
        live = asyncio.run(program())
    with tape.replaying(path):
        assert asyncio.run(program()) == live


def test_a_reply_edited_by_hand_is_what_replays(path):
    with tape.recording(path):
        list(numbers(3))
    text = path.read_text()
    assert "items: [0, 1, 2]" in text
    path.write_text(text.replace("items: [0, 1, 2]", "items: [0, 10, 20, 30]"))
    with tape.replaying(path):
        assert list(numbers(3)) == [0, 10, 20, 30]
