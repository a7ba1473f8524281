"""Faults in a recorded call's place: each client raises what it raises live, and SDKs try again what they try again."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import threading
from urllib.parse import urlsplit

import anthropic
import httpx
import httpx2
import openai
import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.takes import faults
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.encoding.values.registry import thaw_error
from tape_jupyter.providers.streams.events import parse_events
from tests.harness.provider import Provider, Scripted
from tests.harness.tapes import JSON, Recorder, asked
from tests.unit.providers.test_reencode import END, START, block, chat, sse

SSE = (("content-type", "text/event-stream"),)
STREAM = [event.raw for event in parse_events(sse(START, *block(0, "One ", "two ", "three"), *END))]


# ---------------------------------------------------------------- every client, live and injected


def over_httpx(module):
    def send(url, seen, timeout):
        with (
            module.Client(timeout=timeout, trust_env=False) as client,
            client.stream("POST", url) as reply,
        ):
            for chunk in reply.iter_raw():
                seen(chunk)

    return send


def over_httpx_async(module):
    async def send(url, seen, timeout):
        async with (
            module.AsyncClient(timeout=timeout, trust_env=False) as client,
            client.stream("POST", url) as reply,
        ):
            async for chunk in reply.aiter_raw():
                seen(chunk)

    return lambda *told: asyncio.run(send(*told))


def over_requests(url, seen, timeout):
    import requests

    with requests.Session() as session, session.post(url, stream=True, timeout=timeout) as reply:
        for chunk in reply.iter_content(None):
            seen(chunk)


def over_urllib3(url, seen, timeout):
    import urllib3

    with urllib3.PoolManager() as pool:
        reply = pool.request("POST", url, preload_content=False, retries=False, timeout=timeout)
        for chunk in reply.stream(None):
            seen(chunk)
        reply.release_conn()


def over_aiohttp(url, seen, timeout):
    import aiohttp

    async def send():
        limit = aiohttp.ClientTimeout(total=timeout)
        async with aiohttp.ClientSession(timeout=limit) as session, session.post(url) as reply:
            async for chunk in reply.content.iter_any():
                seen(chunk)

    asyncio.run(send())


def over_http_client(url, seen, timeout):
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=timeout)
    try:
        connection.request("POST", where.path)
        reply = connection.getresponse()
        while chunk := reply.read1(65536):
            seen(chunk)
    finally:
        connection.close()


DOORS = {
    "httpx": over_httpx(httpx),
    "httpx2": over_httpx(httpx2),
    "httpx-async": over_httpx_async(httpx),
    "httpx2-async": over_httpx_async(httpx2),
    "requests": over_requests,
    "urllib3": over_urllib3,
    "aiohttp": over_aiohttp,
    "http.client": over_http_client,
}


def outcome(door, url, *, gate=None, count=0, timeout=20):
    """How many events the program had, and the class of what was raised."""
    body = bytearray()

    def seen(chunk):
        body.extend(chunk)
        if gate is not None and len(parse_events(bytes(body))) >= count:
            gate.set()

    try:
        DOORS[door](url, seen, timeout)
    except Exception as error:
        return len(
            parse_events(bytes(body))
        ), f"{type(error).__module__}.{type(error).__qualname__}"
    return len(parse_events(bytes(body))), ""


def live(door, answer, *, gate=None, count=0, timeout=20):
    with Provider() as provider:
        provider.script("/v1/messages", answer)
        return outcome(door, f"{provider.url}/v1/messages", gate=gate, count=count, timeout=timeout)


def injected(door, fault, tmp_path, *, times=1):
    """What a program gets where that fault stands in a recorded call's place."""
    path = tmp_path / "main.tape.yaml"
    with Provider() as provider:
        url = f"{provider.url}/v1/messages"
        provider.script("/v1/messages", Scripted(200, SSE, STREAM))
        with tape.recording(path):
            whole = outcome(door, url)
    assert whole == (len(STREAM), "")
    before = path.read_bytes()
    take = tape.open(path).override(tape.open(path).calls[0], fault=fault, take="bad")
    with tape.replaying(path, take="bad"):
        got = [outcome(door, url) for _ in range(times)]
    assert path.read_bytes() == before and take.calls[0].head()["edit"] == "fault"
    return got


@pytest.mark.parametrize("door", DOORS)
def test_a_reset_after_two_events_is_what_a_reset_then_is_to_that_client(door, tmp_path):
    gate = threading.Event()
    there = live(
        door, Scripted(200, SSE, STREAM[:2], then="reset", gates={2: gate}), gate=gate, count=2
    )
    assert there[0] == 2 and there[1]
    assert injected(door, "reset:after=2", tmp_path) == [there]


@pytest.mark.parametrize("door", DOORS)
def test_a_timeout_is_the_clients_own_and_the_next_try_gets_the_recorded_reply(door, tmp_path):
    there = live(door, Scripted(0, then="hang"), timeout=0.5)
    assert there[0] == 0 and "ime" in there[1].lower()
    assert injected(door, "timeout", tmp_path, times=2) == [there, (len(STREAM), "")]


@pytest.mark.parametrize("door", DOORS)
def test_a_timeout_in_the_midst_of_a_stream_too(door, tmp_path):
    there = live(door, Scripted(200, SSE, STREAM[:3], then="hang"), timeout=0.5)
    assert injected(door, {"name": "timeout", "after": 3}, tmp_path) == [there]


@pytest.mark.parametrize("door", DOORS)
def test_a_stream_that_ends_early_raises_nothing(door, tmp_path):
    assert injected(door, "truncated:after=4", tmp_path) == [(4, "")]


# ---------------------------------------------------------------- the SDKs


MESSAGES = [{"role": "user", "content": "Count."}]


def claude(url, **more):
    return anthropic.Anthropic(base_url=url, api_key="sk-ant-test", **more)


def stream_claude(client):
    """The texts that came, and the class of what was raised."""
    told = []
    try:
        with client.messages.stream(
            model="claude-sonnet-5", max_tokens=99, messages=MESSAGES
        ) as stream:
            for event in stream:
                told.append(event.type)
    except Exception as error:
        return told, type(error)
    return told, None


@pytest.fixture
def recorded(tmp_path):
    """A cassette with one streamed reply of Claude, made without any limit; and the address it was made at."""
    path = tmp_path / "main.tape.yaml"
    with Provider() as provider:
        provider.script("/v1/messages", Scripted(200, SSE, STREAM))
        with tape.recording(path):
            assert stream_claude(claude(provider.url))[1] is None
        return path, provider.url


def test_claudes_sdk_raises_what_it_raises_live_when_a_stream_is_reset(recorded):
    path, url = recorded
    gate = threading.Event()
    with Provider() as provider:
        provider.script(
            "/v1/messages", Scripted(200, SSE, STREAM[:3], then="reset", gates={3: gate})
        )
        told = []
        with pytest.raises(Exception) as live_error:
            with claude(provider.url).messages.stream(
                model="m", max_tokens=9, messages=MESSAGES
            ) as stream:
                for event in stream:
                    told.append(event.type)
                    if event.type == "text":
                        gate.set()
    tape.open(path).override(
        tape.open(path).calls[0], fault={"name": "reset", "after": 3}, take="reset"
    )
    with tape.replaying(path, take="reset"):
        again = stream_claude(claude(url))
    assert again == (told, live_error.type)


@pytest.mark.parametrize(("fault", "status"), [("rate_limit", 429), ("rate_limit:partial=0", 429), ("overloaded", 529), ("server_error", 500)])  # fmt: skip
def test_what_claudes_sdk_tries_again_is_answered_as_recorded_the_next_time(
    recorded, fault, status
):
    path, url = recorded
    take = tape.open(path).override(tape.open(path).calls[0], fault=fault, take="bad")
    assert take.calls[0].reply().status == status
    with tape.replaying(path, take="bad") as block:
        told, error = stream_claude(claude(url))
    assert error is None and told[-1] == "message_stop"
    assert len(block.report.calls) == 2


def test_whether_a_body_breaks_off_is_a_yes_or_no(recorded):
    path, _ = recorded
    call = tape.open(path).calls[0]
    ends = {}
    for word in ("yes", "no", "1", "0", True, False):
        fault = {"name": "rate_limit", "partial": word}
        ends[str(word)] = (
            tape.open(path)
            .override(call, fault=fault, take=f"t-{word}".lower())
            .calls[0]
            .reply()
            .end
        )
    assert [word for word, end in ends.items() if end == "error"] == ["yes", "1", "True"]
    with pytest.raises(TapeUsageError, match="partial is yes or no, not 'half'"):
        tape.open(path).override(call, fault="rate_limit:partial=half", take="half")
    labels = [label for fault in faults.HTTP for label, _ in fault.options.values()]
    assert not [label for label in labels if re.search(r"\d", label)]  # words, no codes


def test_a_fault_that_lasts_longer_than_the_sdks_patience_is_its_own_error(recorded):
    path, url = recorded
    tape.open(path).override(
        tape.open(path).calls[0], fault="rate_limit:times=3,partial=0,retry_after=7", take="busy"
    )
    with tape.replaying(path, take="busy"):
        with pytest.raises(anthropic.RateLimitError) as raised:
            claude(url).messages.create(
                model="claude-sonnet-5", max_tokens=99, messages=MESSAGES, stream=True
            )
        raise_nothing = stream_claude(claude(url))
    assert (
        raised.value.response.headers["retry-after"] == "7"
        and raised.value.body["error"]["type"] == "rate_limit_error"
    )
    assert raise_nothing[1] is None, "the fourth try is answered as recorded"


def test_a_timeout_is_the_sdks_timeout(recorded):
    path, url = recorded
    tape.open(path).override(tape.open(path).calls[0], fault="timeout", take="late")
    with tape.replaying(path, take="late"):
        with pytest.raises(anthropic.APITimeoutError):
            claude(url, max_retries=0).messages.create(
                model="claude-sonnet-5", max_tokens=99, messages=MESSAGES, stream=True
            )


def test_openais_sdk_sees_openais_own_error(tmp_path):
    path = tmp_path / "main.tape.yaml"
    with Provider() as provider:
        provider.script("/v1/chat/completions", Scripted(200, SSE, [chat("Hi")]))
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-test", max_retries=0)
        with tape.recording(path):
            list(client.chat.completions.create(model="gpt-5", messages=MESSAGES, stream=True))
    tape.open(path).override(tape.open(path).calls[0], fault="rate_limit:partial=0", take="busy")
    with tape.replaying(path, take="busy"):
        with pytest.raises(openai.RateLimitError) as raised:
            client.chat.completions.create(model="gpt-5", messages=MESSAGES, stream=True)
        assert raised.value.code == "rate_limit_exceeded"
        assert list(client.chat.completions.create(model="gpt-5", messages=MESSAGES, stream=True))


# ---------------------------------------------------------------- functions, and what is refused


def test_a_tool_raises_the_exception_that_is_named(tmp_path):
    @tape.tool
    def look_up(order):
        return order

    path = tmp_path / "main.tape.yaml"
    with tape.recording(path):
        look_up(7)
    main = tape.open(path)
    main.override(
        main.calls[0], fault="error:class=ConnectionError,message=the shop is down", take="down"
    )
    with (
        tape.replaying(path, take="down"),
        pytest.raises(ConnectionError, match="the shop is down"),
    ):
        look_up(7)


REQUEST = asked("?")
TEXT = Reply(200, SSE, tuple(STREAM), tuple(0.1 * n for n in range(len(STREAM))))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("explode", "there is no fault 'explode' for this call; there are: rate_limit, overloaded"),
        ("reset:after", "'after' has no ="),
        ("reset:after=x", "after is a number, not 'x'"),
        ("reset:after=nan", "after is from 0"),
        ("rate_limit:times=0", "times is from 1 to 20"),
        ("rate_limit:times=1e9", "times is from 1 to 20"),
        ("overloaded:after=3", "has no option 'after'; it has times"),
        ("reset:after=9999", "the recorded stream has 8 events"),
        (7, 'fault= is a text like "reset:after=2"'),
        ({"name": 7}, "fault= is a text like"),
    ],
)
def test_a_fault_that_there_is_not_is_refused(told, said):
    with pytest.raises(TapeUsageError, match=said):
        faults.injected(REQUEST, TEXT, told)


@pytest.mark.parametrize(
    "name", ["NoSuchError", "print", "__import__", "builtins:eval", "subprocess:Popen", "int"]
)
def test_only_exceptions_are_raised_in_a_functions_place(name):
    with pytest.raises(TapeUsageError):
        faults.injected(
            FunctionCall("f", {}), Value(1), {"name": "error", "options": {"class": name}}
        )


def test_an_exception_of_a_module_that_only_the_notebook_has_is_taken_at_its_word():
    answer, again, _ = faults.injected(
        FunctionCall("f", {}), Value(1), "error:class=shop.errors:Gone,message=x"
    )
    assert answer.error["class"] == "shop.errors:Gone" and again == []
    known, _, _ = faults.injected(
        FunctionCall("f", {}), Value(1), "error:class=json:JSONDecodeError,message=x"
    )
    assert known.error["class"] == "json:JSONDecodeError" or isinstance(
        thaw_error(known.error), json.JSONDecodeError
    )


def test_a_fault_over_a_fault_is_made_of_the_recorded_reply(tmp_path):
    path = tmp_path / "main.tape.yaml"
    Recorder(path).run("aaaa", (REQUEST, TEXT))
    first = tape.open(path).override(tape.open(path).calls[0], fault="server_error", take="down")
    second = first.override(first.calls[0], fault="truncated:after=3")
    assert second.calls[0].reply().body == b"".join(STREAM[:3])


def test_a_broken_off_body_keeps_its_reads_and_loses_its_encoding():
    import gzip

    packed = gzip.compress(b"".join(STREAM))
    parts = tuple(packed[start : start + 50] for start in range(0, len(packed), 50))
    reply = Reply(
        200, (*SSE, ("content-encoding", "gzip")), parts, tuple(float(n) for n in range(len(parts)))
    )
    broken, _, _ = faults.injected(REQUEST, reply, "reset:after=4")
    assert broken.body == b"".join(STREAM[:4]) and broken.header("content-encoding") == ""
    assert len(broken.waits) == len(broken.chunks) and broken.waits[-1] <= len(parts)
    whole, _, _ = faults.injected(
        Request("POST", REQUEST.url, JSON),
        Reply(200, JSON, (b'{"a": 1}',), (0.2,)),
        "reset:after=1",
    )
    assert whole.body == b'{"a"' and whole.end == "error"
