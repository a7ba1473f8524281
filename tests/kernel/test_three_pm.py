"""3 PM: the hour at which the provider is busy. A 429 with half a JSON body, and the retries around one, in real kernels."""

import json
import re

import pytest

from tests.harness.notebook import Kernel, is_summary, notebook
from tests.harness.provider import Provider, Scripted

LOAD = "%load_ext tape_jupyter"
EARLY = "import time\nreal_time = time.time"  # before there is a tape
HALF = (
    b'{"error": {"type": "rate_limit", "message": "3 PM, every t\xc3\xbcr is closed", "left": [0, '
)
DIGEST = "hashlib.sha256(body).hexdigest()[:12]"

SET_UP = f"""
import asyncio, hashlib, json, random, sys, time
from datetime import datetime
import httpx, requests, urllib3, urllib.request, urllib.error
import tape_jupyter as tape
from tests.harness.tool_runs import Witness
URL, ran = "BASE/orders", Witness()
def parsed(body):
    print(len(body), {DIGEST})
    return json.loads(body)
@tape.tool
def lookup_order(order):
    ran.append(order)
    reply = httpx.get(URL, params={{"order": order}})
    return reply.json()
@tape.tool
def checked_order(order):
    ran.append(order)
    try:
        return requests.get(URL, params={{"order": order}}).json()
    except json.JSONDecodeError as error:
        return {{"problem": str(error), "at": error.pos}}
"""
CELLS = {
    "httpx": "reply = httpx.get(URL)\nprint(reply.status_code, reply.headers['retry-after'])\nparsed(reply.content)",
    "httpx.json": "httpx.get(URL).json()",
    "httpx, awaited": """
async with httpx.AsyncClient() as client:
    async with client.stream("GET", URL) as reply:
        pieces = [piece async for piece in reply.aiter_raw()]
print(reply.status_code)
parsed(b"".join(pieces))""",
    "requests": "reply = requests.get(URL)\nprint(reply.status_code, reply.reason)\nparsed(reply.content)",
    "requests.json": "requests.get(URL).json()",
    "urllib3": "parsed(urllib3.request('GET', URL, retries=False).data)",
    "urllib": """
try:
    urllib.request.urlopen(URL)
except urllib.error.HTTPError as error:
    body = error.read()
parsed(body)""",
    "a tool": "lookup_order('r_8821')",
    "a tool that is caught": """
try:
    lookup_order("r_8822")
except json.JSONDecodeError as error:
    print(type(error), error.msg, error.pos, error.lineno, error.colno, error.doc)""",
    "a tool that tells": "checked_order('r_8823')",
}
TORN = {
    "httpx": """
pieces = []
try:
    with httpx.stream("GET", URL) as reply:
        for piece in reply.iter_raw():
            pieces.append(piece)
except httpx.HTTPError as error:
    print(type(error), error)
parsed(b"".join(pieces))""",
    "requests": """
pieces = []
try:
    for piece in requests.get(URL, stream=True).iter_content(None):
        pieces.append(piece)
except requests.RequestException as error:
    print(type(error))
parsed(b"".join(pieces))""",
}


def slug(name):
    return re.sub(r"\W+", "-", name)


def outputs(ran):
    """All that the cell showed, but for the tape's own line and the [n]."""
    return [{**out, "execution_count": None} for out in ran.outputs if not is_summary(out)]


def shown(ran):
    """The same; of a traceback what was raised and the cell's line: frames of transports and tools are not there again."""
    lines = [
        line.split(maxsplit=2)[2] for line in ran.traceback.splitlines() if line.startswith("---->")
    ]
    return (
        [out for out in outputs(ran) if out["output_type"] != "error"],
        ran.ename,
        ran.evalue,
        lines[:1],
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Every cell recorded in one kernel, and replayed in another with the server gone."""
    where = tmp_path_factory.mktemp("three-pm")
    env = {"TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x"))}
    cells = {**CELLS, **{f"torn {name}": code for name, code in TORN.items()}}
    busy = {"content-type": "application/json", "retry-after": "20"}
    with Provider() as provider:
        setup = SET_UP.replace("BASE", provider.url)
        provider.script(
            "/orders", Scripted(429, busy, [HALF[:40], HALF[40:]], reason="Too Many Requests")
        )
        with Kernel(where, env) as kernel:
            assert kernel.execute(f"{EARLY}\n{LOAD}\n{setup}").ok
            recorded = {
                name: kernel.execute(f"%%tape record {slug(name)}\n{code}")
                for name, code in CELLS.items()
            }
            provider.script(
                "/orders", Scripted(429, {**busy, "content-length": "400"}, [HALF], then="close")
            )
            for name, code in TORN.items():
                recorded[f"torn {name}"] = kernel.execute(
                    f"%%tape record {slug('torn ' + name)}\n{code}"
                )
            ran = kernel.execute("ran").result
    with Kernel(where, env) as kernel:
        assert kernel.execute(f"{EARLY}\n{LOAD}\n{setup}").ok
        replayed = {
            name: kernel.execute(f"%%tape replay {slug(name)}\n{code}")
            for name, code in cells.items()
        }
        again = kernel.execute("ran").result
        live = kernel.execute(
            "%%tape replay a-tool --live tool:lookup_order\nlookup_order('r_8821')"
        )
    return recorded, replayed, live, (ran, again)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CELLS, *(f"torn {name}" for name in TORN)])
def test_half_a_reply_breaks_the_parser_again_at_the_same_place(told, name):
    recorded, replayed, *_ = told
    before, after = recorded[name], replayed[name]
    assert shown(after) == shown(before), after.traceback
    if name not in {"a tool that is caught", "a tool that tells"}:
        assert before.ename == "JSONDecodeError" and "char" in before.evalue


def test_the_replays_ran_no_tool(told):
    *_, (ran, again) = told
    assert ran == "['r_8821', 'r_8822', 'r_8823']"
    assert again == "[]"


def test_what_the_tool_was_sent_breaks_its_parser_when_the_tool_is_live(told):
    recorded, _, live, _ = told
    assert (live.ename, live.evalue) == ("JSONDecodeError", recorded["a tool"].evalue)
    assert "reply.json()" in live.traceback, "its own line, from a body that ran"


# ---------------------------------------------------------------- retries


SDKS = {
    "anthropic": """
import anthropic
client = anthropic.Anthropic(base_url="BASE", api_key="k", max_retries=3)
def ask(text):
    return client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": text}]).content[0].text""",
    "openai": """
import openai
client = openai.OpenAI(base_url="BASE/v1", api_key="k", max_retries=3)
def ask(text):
    reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    return reply.choices[0].message.content""",
    "openai, awaited": """
import asyncio, openai
client = openai.AsyncOpenAI(base_url="BASE/v1", api_key="k", max_retries=3)
async def wait_for(text):
    reply = await client.responses.create(model="m", input=text)
    return reply.output_text
def ask(text):
    return asyncio.run(wait_for(text))""",
    "by hand": """
import httpx
def ask(text):
    for attempt in range(4):
        reply = httpx.post("BASE/v1/messages", json={"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]})
        if reply.status_code != 429:
            return reply.json()["content"][0]["text"]
        time.sleep(float(reply.headers["retry-after"]) + random.random() / 1000)""",
}
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "openai, awaited": "/v1/responses", "by hand": "/v1/messages"}  # fmt: skip
RETRIED = """
began, at = time.monotonic(), datetime.now()
random.seed(3)
print(random.random(), await asyncio.to_thread(ask, "hi"), random.random(), random.sample(range(99), 5))
print(time.monotonic() - began, datetime.now() - at, datetime.now())"""
SECONDS = 0.4
LONG = 50
"""Seconds of a wait that is written onto the tape: SDKs heed up to 60."""


class Busy(Provider):
    """Two 429s, then the reply, on every path."""

    def answer(self, seen):
        answer = super().answer(seen)
        if sum(each.path == seen.path for each in self.requests) % 3 == 0:
            return answer
        body = b'{"type": "error", "error": {"type": "rate_limit_error", "message": "3 PM"}}'
        return Scripted(
            429, {"content-type": "application/json", "retry-after": str(SECONDS)}, [body]
        )


@pytest.fixture(scope="module")
def retried(tmp_path_factory):
    """Each recorded, replayed in another kernel, and replayed there with a retry-after of LONG seconds on the tape."""
    where = tmp_path_factory.mktemp("retried")
    env = {"TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x"))}
    found = {name: [] for name in SDKS}
    with Busy() as provider:
        set_up = "\n".join([EARLY, LOAD, "import asyncio, random\nfrom datetime import datetime"])
        setups = {name: code.replace("BASE", provider.url) for name, code in SDKS.items()}
        with Kernel(where, env) as kernel:
            assert kernel.execute(set_up).ok
            for name, code in setups.items():
                assert kernel.execute(code).ok
                found[name].append(timed(kernel, f"%%tape record {slug(name)}{RETRIED}"))
    with Kernel(where, env) as kernel:
        assert kernel.execute(set_up).ok
        for name, code in setups.items():
            assert kernel.execute(code).ok
            kernel.execute("random.seed(8)")
            found[name].append(timed(kernel, f"%%tape replay {slug(name)}{RETRIED}"))
            path = where / "nb.tapes" / f"{slug(name)}.tape.yaml"
            assert path.read_text().count(f'retry-after: "{SECONDS}"') == 2
            path.write_text(
                path.read_text().replace(f'retry-after: "{SECONDS}"', f'retry-after: "{LONG}"')
            )
            found[name].append(timed(kernel, f"%%tape replay {slug(name)}{RETRIED}"))
    return found


def timed(kernel, source):
    """What a cell gave, and how many real seconds it took in the kernel."""
    kernel.execute("began__ = real_time()")
    ran = kernel.execute(source)
    return ran, float(kernel.execute("real_time() - began__").result)


@pytest.mark.night
@pytest.mark.parametrize("name", SDKS)
def test_the_retries_of_an_sdk_leave_text_numbers_and_times_as_recorded(retried, name):
    (recorded, took), (replayed, _), (edited, _) = retried[name]
    assert recorded.ok, recorded.traceback
    assert took > 2 * SECONDS
    assert recorded.summary.startswith("● recorded  3 calls")
    assert replayed.stdout == recorded.stdout, replayed.traceback
    assert edited.stdout == recorded.stdout, edited.traceback


@pytest.mark.slow
@pytest.mark.parametrize("name", SDKS)
def test_the_waits_of_a_retry_pass_on_the_tapes_clock_alone(retried, name):
    (recorded, _), _, (_, edited) = retried[name]
    told = float(recorded.stdout.splitlines()[1].split()[0])
    assert told > 2 * SECONDS, "the waits are on the tape"
    assert edited < 2 * LONG / 8, "two waits of LONG seconds"
