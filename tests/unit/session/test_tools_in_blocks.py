"""What a tool did besides giving a value happens again when a block is replayed."""

import asyncio
import contextlib
import os
import sys

import pytest

import tape_jupyter as tape

LOG = []


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LOG.clear()
    return tmp_path


def recorded_and_replayed(program, capsys, between=lambda: None):
    """What a program gives, prints and leaves in LOG: when it is recorded, and when it is replayed."""
    seen = []
    for block in (tape.recording, tape.replaying):
        with block("t"):
            result = program()
        seen.append((result, capsys.readouterr().out, list(LOG)))
        LOG.clear()
        between()
    return seen


def test_a_tool_that_the_program_cancels_did_what_it_did_until_then(capsys, folder):
    @tape.tool
    async def slow(name):
        print("began", name)
        LOG.append(name)
        (folder / "made.txt").write_text(name)
        await asyncio.Event().wait()

    async def ask():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(slow("a"), 0.01)
        return (folder / "made.txt").read_text()

    recorded, replayed = recorded_and_replayed(
        lambda: asyncio.run(ask()), capsys, (folder / "made.txt").unlink
    )
    assert recorded == replayed == ("a", "began a\n", ["a"])


def test_a_function_that_gives_a_generator_did_what_it_did_before(capsys):
    @tape.tool
    def rows(count):
        print("asked for", count)
        LOG.append(count)
        return (str(number) for number in range(count))

    def ask():
        given = rows(3)
        return list(LOG), list(given)

    recorded, replayed = recorded_and_replayed(ask, capsys)
    assert recorded == replayed == (([3], ["0", "1", "2"]), "asked for 3\n", [3])


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_file_that_a_tool_put_in_a_links_place_leaves_what_the_link_led_to(capsys, folder):
    link, target = folder / "latest.txt", folder / "first.txt"

    def start():
        target.write_text("old")
        link.unlink(missing_ok=True)
        link.symlink_to(target)

    @tape.tool
    def publish(text):
        (folder / "draft.txt").write_text(text)
        os.replace(folder / "draft.txt", link)

    def ask():
        publish("new")
        return link.read_text(), target.read_text(), link.is_symlink()

    start()
    recorded, replayed = recorded_and_replayed(ask, capsys, start)
    assert recorded[0] == replayed[0] == ("new", "old", False)


@pytest.mark.parametrize("how", ["cancel", "wait_for", "cancel and go on"])
def test_a_tool_that_goes_on_when_it_is_cancelled_does_in_replay(capsys, how):
    @tape.tool
    async def stubborn(name):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("cancelled", name)
            LOG.append(name)
        if how == "cancel and go on":
            await asyncio.sleep(0.02)
            LOG.append("on")
        return "kept"

    async def ask():
        if how == "wait_for":
            return await asyncio.wait_for(stubborn("a"), 0.01)
        task = asyncio.create_task(stubborn("a"))
        await asyncio.sleep(0.01)
        task.cancel()
        return await task, task.cancelled(), task.cancelling()

    recorded, replayed = recorded_and_replayed(lambda: asyncio.run(ask()), capsys)
    assert recorded == replayed
    assert recorded[1:] == ("cancelled a\n", ["a", "on"] if how == "cancel and go on" else ["a"])


def test_what_a_stream_writer_refused_is_not_told_again():
    from tape_jupyter.instrumentation.tools.output import writer

    def refuse(chunk):
        raise ValueError(chunk)

    @tape.tool
    def tell(chunk):
        with contextlib.suppress(ValueError):
            writer(refuse)(chunk)
        return chunk

    for block in (tape.recording, tape.replaying):
        with block("t") as taped:
            assert tell("x") == "x"
        assert not taped.report.warnings
