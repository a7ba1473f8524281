"""Kernels that are killed, interrupted, or whose cells raise: what reached the program is on the tape."""

import os
import random
import textwrap
import time

import pytest

from tape_jupyter.cassette.cassette import Cassette
from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider, Scripted

KILLS = int(os.environ.get("TAPE_KILL_COUNT", "6"))
LOAD = "%load_ext tape_jupyter"
STREAM = {"content-type": "text/event-stream"}
EARLY = [b'data: {"n":1}\n\n', b'data: {"n":2}\n\n']


def kernel_in(folder, **env):
    return Kernel(folder, {"TAPE_NOTEBOOK": str(notebook(folder / "nb.ipynb", "x")), **env})


# Asks for ever, from four threads, streamed and not. A call counts once its last event was handed over: that is
# written to a side file, with one write past every buffer, before anything else happens.
ASK_FOR_EVER = """
import os, threading, httpx
side = os.open("reached.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def ask(client, name, number):
    body = {{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": f"{round} {{name}} {{number}}"}}]}}
    if number % 2:
        assert client.post("{url}/v1/messages", json=body).json()["type"] == "message"
        os.write(side, f"{round} {{name}} {{number}}\\n".encode())
        return
    with client.stream("POST", "{url}/v1/messages", json=body | {{"stream": True}}) as response:
        for chunk in response.iter_raw():
            if b"event: message_stop" in chunk:
                os.write(side, f"{round} {{name}} {{number}}\\n".encode())
def work(name):
    with httpx.Client() as client:
        for number in range(100_000):
            ask(client, name, number)
threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

REPLAY = """
import httpx
def again(text, stream):
    body = {{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": text}}]}} | ({{"stream": True}} if stream else {{}})
    return b"message_stop" in httpx.post("{url}/v1/messages", json=body).content if stream else True
print(all(again(text, not int(text.split()[2]) % 2) for text in {texts}))
"""


def reached(side):
    lines = side.read_bytes().splitlines(keepends=True) if side.exists() else []
    return [line.decode().strip() for line in lines if line.endswith(b"\n")]


def on_tape(path):
    """Question -> whether the whole reply is there."""
    return {
        entry.request()
        .body.decode()
        .partition('"content":"')[2]
        .partition('"')[0]: entry.reply().end
        for entry in Cassette.open(path, check="whole").calls
    }


def until(done, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.002)


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_no_call_that_reached_the_program(tmp_path):
    path, side, chance = (
        tmp_path / "nb.tapes" / "main.tape.yaml",
        tmp_path / "reached.txt",
        random.Random(KILLS),
    )
    with Provider(vary=True) as provider, kernel_in(tmp_path) as kernel:
        before = 0
        for round in range(KILLS):
            assert kernel.execute(LOAD).ok
            kernel.send("%%tape record\n" + ASK_FOR_EVER.format(url=provider.url, round=round))
            until(lambda: len(reached(side)) > before, "no call came through")
            time.sleep(chance.random() * 0.5)
            kernel.kill()
            new, kept = reached(side)[before:], on_tape(path)
            lost = [text for text in new if kept.get(text) != "complete"]
            assert not lost, f"kill {round}: {len(lost)} of {len(new)} calls lost, first {lost[0]}"
            before += len(new)
            kernel.restart()
            assert kernel.execute(LOAD).ok
            sent = len(provider.requests)
            replayed = kernel.execute(
                "%%tape replay\n" + REPLAY.format(url=provider.url, texts=new[-40:])
            )
            assert replayed.stdout.strip() == "True", replayed.traceback
            assert len(provider.requests) == sent
        recorded = kernel.execute(
            f"%%tape record after\nimport httpx; print(httpx.post('{provider.url}/v1/messages', json={{'model': 'm', 'messages': []}}).status_code)"
        )
        assert recorded.stdout.strip() == "200", recorded.traceback
    print(f"{KILLS} kills, {before} calls reached the program, 0 lost")


# ---------------------------------------------------------------- raised and interrupted


@pytest.fixture(scope="module")
def provider():
    with Provider(vary=True) as provider:
        yield provider


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    with kernel_in(tmp_path_factory.mktemp("raised")) as kernel:
        assert kernel.execute(LOAD + "\nimport httpx, anthropic, asyncio").ok
        yield kernel


def calls(kernel, name):
    return Cassette.open(kernel.cwd / "nb.tapes" / f"{name}.tape.yaml", check="whole").calls


def cell(source, provider, path="/v1/messages"):
    return (
        textwrap.dedent(source)
        .strip()
        .replace("URL", f"{provider.url}{path}")
        .replace("BASE", provider.url)
    )


RAISES = """
client = anthropic.Anthropic(base_url="BASE", api_key="k")
first = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "raise"}])
print(first.content[0].text)
seen = []
for event in client.messages.create(model="m", max_tokens=9, stream=True, messages=[{"role": "user", "content": "raise"}]):
    seen.append(event.type)
    if len(seen) == 4:
        print(seen)
        raise LookupError(first.id)
"""


def test_a_cell_that_raises_amid_a_stream_loses_nothing_and_replays_its_raise(kernel, provider):
    live = kernel.execute("%%tape record raises\n" + cell(RAISES, provider))
    assert (live.ename, live.summary.count("incomplete")) == ("LookupError", 1)
    assert len(calls(kernel, "raises")) == 2
    sent = len(provider.requests)
    again = kernel.execute("%%tape replay raises\n" + cell(RAISES, provider))
    assert (again.ename, again.evalue, again.stdout) == (live.ename, live.evalue, live.stdout)
    assert len(provider.requests) == sent


SYNC = """
seen = []
with httpx.stream("POST", "URL", json={}, timeout=60) as response:
    for chunk in response.iter_raw():
        seen.append(chunk)
        print(len(seen), flush=True)
"""
ASYNC = """
seen = []
async with httpx.AsyncClient() as client, client.stream("POST", "URL", json={}, timeout=60) as response:
    async for chunk in response.aiter_raw():
        seen.append(chunk)
        print(len(seen), flush=True)
"""
THINKING = """
import time
seen = []
response = httpx.Client().send(httpx.Request("POST", "URL", json={}), stream=True)
for chunk in response.iter_raw():
    seen.append(chunk)
    if len(seen) == 2:
        print(len(seen), flush=True)
        time.sleep(SLEEP)
"""


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    "how", [SYNC, ASYNC, THINKING], ids=["waiting", "awaiting", "between chunks"]
)
def test_an_interrupt_amid_a_stream_keeps_what_came_and_replays_only_when_asked(
    kernel, provider, how
):
    name = {SYNC: "sync", ASYNC: "async", THINKING: "thinking"}[how]
    provider.script(f"/v1/{name}", Scripted(200, STREAM, EARLY, then="hang"))
    source = cell(how, provider, f"/v1/{name}")
    asked = kernel.send(f"%%tape record {name}\n" + source.replace("SLEEP", "30"))
    kernel.wait_for(asked, "2\n")
    kernel.interrupt()
    assert kernel.collect(asked).status == "error"
    (kept,) = calls(kernel, name)
    assert (kept.reply().end, list(kept.reply().chunks)) == ("cut short", EARLY)
    sent = len(provider.requests)

    refused = kernel.execute(f"%%tape replay {name}\n" + source.replace("SLEEP", "0"))
    assert refused.ename == "UnmatchedCall"
    assert "--cut-short" in refused.traceback

    again = kernel.execute(f"%%tape replay {name} --cut-short\n" + source.replace("SLEEP", "0"))
    assert again.ename == "KeyboardInterrupt", again.traceback
    assert kernel.execute("seen").result == repr(EARLY)
    assert len(provider.requests) == sent


def test_an_interrupted_gather_is_refused_at_once_in_replay_and_the_kernel_lives(kernel, provider):
    provider.script("/v1/gather", Scripted(200, STREAM, EARLY, then="hang"))
    source = cell("""
        seen = {}
        async def read(i):
            async with httpx.AsyncClient() as client, client.stream("POST", "URL", json={"i": i}, timeout=60) as response:
                async for chunk in response.aiter_raw():
                    seen.setdefault(i, []).append(chunk)
                    if sum(map(len, seen.values())) == 6:
                        print("all", flush=True)
        await asyncio.gather(*(read(i) for i in range(3)))
        """, provider, "/v1/gather")  # fmt: skip
    asked = kernel.send("%%tape record gather\n" + source)
    kernel.wait_for(asked, "all")
    kernel.interrupt()
    assert kernel.collect(asked).status == "error"
    assert [entry.reply().end for entry in calls(kernel, "gather")] == ["cut short"] * 3
    for options, said in (("", "--cut-short"), (" --cut-short", "an interrupt stopped the run")):
        replayed = kernel.execute(f"%%tape replay gather{options}\n" + source)
        assert replayed.ename == "UnmatchedCall"
        assert said in replayed.traceback
    assert kernel.execute("await asyncio.sleep(0.01, 'alive')").result == "'alive'"
