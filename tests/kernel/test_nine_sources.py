"""The nine sources of chance and the kit, each changed between recording and replay: the replay is as recorded.

One kernel records a cell for each. Then everything moves: the provider answers as a provider does a day later, the
tools' data is other data, generators stand elsewhere, time zone, hash seed, code and libraries are others, and the new
kernel's own clock is a day on, over UTC midnight. It replays every cell, to the byte, then records it again, live, and
says what drifted.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.audit.drift import drift
from tape_jupyter.audit.run_view import view_run
from tests.harness.notebook import ROOT, Kernel, Ran, is_summary, notebook
from tests.harness.provider import Provider, Scripted, Seen

LOAD = "%load_ext tape_jupyter"
SET_UP = """
import asyncio, random, sys, time
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, date, datetime
import openai
import tape_jupyter as tape
client = openai.OpenAI(base_url="BASE/v1", api_key="k", max_retries=1)
friend = openai.AsyncOpenAI(base_url="BASE/v1", api_key="k", max_retries=1)
from tests.harness.tool_runs import Witness
ran, stock, described = Witness(), {"lamp": 3}, "Look into the shop"
index = [("c1", 0.91, "Returns within 30 days."), ("c2", 0.55, "Shipping is free.")]
def ask(text, model="gpt-4o", **more):
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}], **more)
def told(reply):
    return reply.choices[0].message.content
@tape.tool
def in_stock(item):
    ran.append(item)
    return {"item": item, "left": stock[item]}
@tape.retrieval
def search(query):
    ran.append(query)
    return {"chunks": [{"id": id, "score": score, "text": text} for id, score, text in index], "embedding_model": "e-1"}
"""
MOVED = """
random.seed(99); stock["lamp"] = 0; described = "How many are left"
index[:] = [("c2", 0.88, "Shipping is free."), ("c7", 0.31, "Returns within 14 days.")]
"""

CELLS = {
    "sampling": """
print([told(ask("Is it positive or negative: I like it", temperature=1.0)) for _ in range(3)])
for chunk in ask("Say it in a stream", temperature=1.0, stream=True):
    print(repr(chunk.choices[0].delta.content), end=" ")""",
    "seed": """
shot, seed = random.choice(["so-so", "great", "dull"]), random.getrandbits(20)
display(f"seed {seed}")
told(ask(f"Like {shot}: it came late", seed=seed, temperature=0))""",
    "model drift": """
reply = ask("Who are you")
print(reply.model, reply.system_fingerprint)""",
    "routing": """
reply = client.chat.completions.with_raw_response.create(model="gpt-4o", messages=[{"role": "user", "content": "Where are you"}])
print(reply.headers["x-ms-region"], reply.headers["x-request-id"], told(reply.parse()))""",
    "latency and races": """
began = time.perf_counter()
with ThreadPoolExecutor(3) as pool:
    for done in as_completed([pool.submit(ask, f"race {name}") for name in "abc"]):
        print(told(done.result()), time.perf_counter() - began)
async def vote(k):
    reply = await friend.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "vote"}])
    return k, told(reply)
print([await each for each in asyncio.as_completed([vote(k) for k in range(6)])])
with ThreadPoolExecutor(6) as pool:
    print([told(reply) for reply in pool.map(lambda k: ask("vote"), range(6))])""",
    "tool results": """
left = in_stock("lamp")
print(left, told(ask(f"There are {left['left']} left: what shall I say")) if left["left"] else "sold out")""",
    "retrieval freshness": """
found = search("returns")["chunks"]
print([(chunk["id"], chunk["score"]) for chunk in found], told(ask(f"Answer from {found[0]['text']}")))""",
    "time-of-day failures": """
try:
    print(told(ask("busy hour")))
except openai.RateLimitError as error:
    print(error.response.text, error.status_code, file=sys.stderr)
    print(told(ask("the small one instead", model="gpt-4o-mini")))""",
    "clock logic": """
now = datetime.now(UTC)
print(now.isoformat(), date.today(), time.time_ns(), time.strftime("%c"))
told(ask(f"As of {date.today()} at {datetime.now().hour}: is the offer of {now:%d %B} still open"))""",
    "kit": """
import prompts, shop
told(ask(f"{prompts.HELLO} from {shop.__name__} to {random.random()}"))""",
}
NUMBERS = {name: number for number, name in enumerate(CELLS, 1)}
SCHEMA = """
tool = {"type": "function", "function": {"name": "in_stock", "description": described, "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}}
reply = ask("Is there a lamp", tools=[tool])
reply.choices[0].message.tool_calls[0].function.name"""
DRIFT = {
    "seed": ["sampling changed: seed ", "state of random changed: "],
    "model drift": ["answered model changed: gpt-4o-2024-08-06 -> gpt-4o-2024-11-20", "system_fingerprint changed: fp_1 -> fp_2"],
    "routing": ["region changed: East US -> West Europe"],
    "latency and races": ["order of completion changed: "],
    "tool results": ['tool result of in_stock changed: {"item": "lamp", "left": 3} -> {"item": "lamp", "left": 0}'],
    "retrieval freshness": ["retrieval scores of search changed: c1 0.91, c2 0.55 -> c2 0.88, c7 0.31"],
    "time-of-day failures": ["status changed: 200 -> 429", "number of calls changed: 2 -> 3"],
    "clock logic": ["day (UTC) changed: "],
    "kit": [
        "git commit changed: ", "library shop changed: 1.0 -> 2.0", "local module prompts changed: ",
        "timezone changed: Asia/Tokyo -> America/Lima", "hash seed changed: ", "environment LANG changed: C.UTF-8 -> C",
        "environment PYTHONHASHSEED changed: 1 -> 2", "user_id changed: ada -> bob", "tenant_id changed: none -> acme",
        "state of random changed: ",
    ],
}  # fmt: skip


HELD = {
    "sampling": "recorded", "seed": "pinned", "model drift": "recorded", "routing": "pinned",
    "latency and races": "pinned", "tool results": "pinned", "retrieval freshness": "pinned",
    "time-of-day failures": "pinned", "clock logic": "pinned",
}  # fmt: skip


class World(Provider):
    """A provider whose texts vary; `later` it is another build, elsewhere, busier, and quick where it was slow."""

    later = False

    def answer(self, seen: Seen) -> Scripted:
        prompt = str(seen.json["messages"][-1]["content"])
        if prompt.startswith("race"):
            place = "abc".index(prompt[-1])
            time.sleep(0.15 * (place if self.later else 2 - place))
        first = not any(b"busy" in each.body for each in self.requests)
        answer = super().answer(seen)
        limited = {"content-type": "application/json", "retry-after-ms": "1"}
        if "busy" in prompt and (self.later or first):
            return Scripted(
                429,
                limited,
                [b'{"error": {"message": "%d busy", "type": "rate_limit"' % len(self.requests)],
            )
        return self._of_build(answer)

    def _of_build(self, answer: Scripted) -> Scripted:
        build = '"model": "gpt-4o-2024-11-20", "system_fingerprint": "fp_2"' if self.later else (
            '"model": "gpt-4o-2024-08-06", "system_fingerprint": "fp_1"'
        )  # fmt: skip
        chunks = [re.sub(rb'"model": ?"gpt-4o"', build.encode(), chunk) for chunk in answer.chunks]
        region = "West Europe" if self.later else "East US"
        return replace(
            answer, chunks=chunks, headers={**dict(answer.headers), "x-ms-region": region}
        )


TOMORROW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
int clock_gettime(clockid_t which, struct timespec *told) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, told);
    if (!failed && which == CLOCK_REALTIME) told->tv_sec += 86400;
    return failed;
}
time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *told, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


def a_day_on(where: Path) -> dict[str, str]:
    """Environment of a process whose wall clock is a day on, by a library before the C library; {} without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return {}
    source, library = where / "tomorrow.c", where / "tomorrow.so"
    source.write_text(TOMORROW)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"],
        check=True,
        timeout=60,
    )
    return {"LD_PRELOAD": str(library)}


def project(where: Path, libraries: Path, greeting: str, version: str) -> None:
    """The person's own module under git, and an installed library, as they are on one day."""
    (where / "prompts.py").write_text(f"HELLO = 'Greetings'  # {greeting}\n")
    shutil.rmtree(libraries, ignore_errors=True)
    (libraries / f"shop-{version}.dist-info").mkdir(parents=True)
    (libraries / "shop.py").write_text(f"VERSION = {version!r}\n")
    git = [
        "git",
        "-C",
        str(where),
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "-c",
        "commit.gpgsign=false",
    ]
    for words in (["init", "-q"], ["add", "prompts.py"], ["commit", "-q", "-m", greeting]):
        subprocess.run([*git, *words], check=True, timeout=30)


@dataclass
class Told:
    """What the cells gave: recorded, replayed in the moved kernel, recorded there anew; and what was asked meanwhile."""

    where: Path
    env: dict[str, str]
    recorded: dict[str, Ran] = field(default_factory=dict)
    replayed: dict[str, Ran] = field(default_factory=dict)
    again: dict[str, Ran] = field(default_factory=dict)
    gaps: dict[str, Ran] = field(default_factory=dict)
    schemas: list[Ran] = field(default_factory=list)
    partly: Ran = field(default_factory=Ran)
    asked: int = 0
    ran: str = ""
    days: float = 0.0


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    where = tmp_path_factory.mktemp("nine")
    libraries = tmp_path_factory.mktemp("installed") / "site-packages"
    env = {
        "TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x")),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{libraries}",
    }
    told = Told(where, a_day_on(where))
    with World(vary=True) as world:
        setup = SET_UP.replace("BASE", world.url)
        project(where, libraries, "first", "1.0")
        with Kernel(
            where, {**env, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "1", "LANG": "C.UTF-8"}
        ) as kernel:
            assert kernel.execute(f"{LOAD}\n{setup}").ok
            assert kernel.execute("%tape set user_id=ada").ok
            told.recorded = run(kernel, "%%tape record {}{}")
            told.gaps = run(kernel, "%tape gaps {}")
            told.schemas = [kernel.execute(f"%%tape record schema{SCHEMA}")]
        asked, world.later = len(world.requests), True
        project(where, libraries, "second", "2.0")
        moved = {**env, **told.env, "TZ": "America/Lima", "PYTHONHASHSEED": "2", "LANG": "C"}
        with Kernel(where, moved) as kernel:
            assert kernel.execute(f"{LOAD}\n{setup}\n{MOVED}").ok
            assert kernel.execute("%tape set user_id=bob tenant_id=acme").ok
            told.days = (float(kernel.execute("time.time()").result) - time.time()) / 86400
            told.replayed = run(kernel, "%%tape replay {}{}")
            told.schemas.append(kernel.execute(f"%%tape replay schema{SCHEMA}"))
            told.asked, told.ran = len(world.requests) - asked, kernel.execute("ran").result
            told.partly = kernel.execute(
                f"%%tape replay model-drift --live llm --take later{CELLS['model drift']}"
            )
            told.again = run(kernel, "%%tape record {}{}")
            told.schemas.append(kernel.execute(f"%%tape record schema{SCHEMA}"))
    return told


def run(kernel, form):
    return {name: kernel.execute(form.format(slug(name), code)) for name, code in CELLS.items()}


def slug(name):
    return name.replace(" ", "-")


def outputs(ran):
    """All that the cell showed, but for the tape's own line and the [n] of a result."""
    return [{**out, "execution_count": None} for out in ran.outputs if not is_summary(out)]


@pytest.mark.parametrize("name", CELLS)
def test_replay_is_the_recording_to_the_byte_whatever_changed(told, name):
    recorded, replayed = told.recorded[name], told.replayed[name]
    assert recorded.ok, recorded.traceback
    assert outputs(recorded)
    assert outputs(replayed) == outputs(recorded), replayed.traceback


def test_nothing_was_asked_and_no_tool_ran_in_the_replays(told):
    assert told.asked == 0
    assert told.ran == "[]"


@pytest.mark.parametrize("name", CELLS)
def test_the_same_cell_run_live_again_is_another(told, name):
    if name == "clock logic" and not told.env:
        pytest.skip("no C compiler here to move the clock of a process with")
    assert told.again[name].ok, told.again[name].traceback
    assert outputs(told.again[name]) != outputs(told.recorded[name])


def test_the_new_kernel_is_a_day_on_and_its_replay_is_not(told):
    if not told.env:
        pytest.skip("no C compiler here to move the clock of a process with")
    assert 0.9 < told.days < 1.1
    days = [
        re.search(r"\d{4}-\d\d-\d\d", ran["clock logic"].stdout)[0]
        for ran in (told.recorded, told.replayed, told.again)
    ]
    assert days[0] == days[1] < days[2]


@pytest.mark.parametrize("name", DRIFT)
def test_running_it_live_again_says_what_drifted(told, name):
    if name == "clock logic" and not told.env:
        pytest.skip("no C compiler here to move the clock of a process with")
    found = drifted(told.where / "nb.tapes" / f"{slug(name)}.tape.yaml")
    for said in DRIFT[name]:
        assert any(each.startswith(said) for each in found), found
    assert "drift: " in told.again[name].summary
    assert "drift: " not in told.recorded[name].summary + told.replayed[name].summary


def test_replaying_it_with_the_model_live_says_what_answers_now(told):
    assert told.partly.stdout == "gpt-4o-2024-11-20 fp_2\n"
    assert f"drift: {DRIFT['model drift'][0]}; {DRIFT['model drift'][1]}" in told.partly.summary
    assert "what ran live is in the take later" in told.partly.summary


def drifted(path):
    """All that the second recording says differently from the first."""
    cassette = Cassette.open(path)
    first, second = (view_run(cassette, run["run"]) for run in cassette.runs)
    return list(map(str, drift(first, second)))


def test_a_tool_that_is_described_otherwise_is_a_miss_and_a_drift(told):
    recorded, missed, again = told.schemas
    assert recorded.result == again.result == "'in_stock'"
    assert missed.ename == "UnmatchedCall"
    assert "tools[0].function.description" in missed.evalue and "How many are left" in missed.evalue
    assert "drift: " in again.summary
    found = drifted(told.where / "nb.tapes" / "schema.tape.yaml")
    assert any(each.startswith("tool schema in_stock changed") for each in found), found


@pytest.mark.parametrize("name", [name for name in CELLS if name != "kit"])
def test_gaps_says_of_each_source_how_it_was_held(told, name):
    line = next(
        line
        for line in told.gaps[name].displays[0].splitlines()
        if f" {NUMBERS[name]} {name} " in line
    )
    assert HELD[name] in line
