"""Whatever a person does, in whatever order: the kernel is idle and well afterwards, and the recording as it was."""

import hashlib
import os
import queue
import random

import pytest

from tests.harness import old_kernel
from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider
from tests.harness.stepped import ASK, LOAD, THREADS, Refused, Stepper

SEQUENCES = 200 if os.environ.get("TAPE_NIGHTLY") else 12
MOST = 8
"""Commands of one sequence."""

PLAIN = """seen.append(len(seen))
log = []
for word in ("one", "two", "three", "four"):
    log.append(ask(word + str(len(log))))
done = len(log)"""
POOL = """from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    found = list(pool.map(ask, ["p", "q", "r"]))
done = len(found)"""
AASK = """import httpx
async def aask(text):
    async with httpx.AsyncClient() as client:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}
        return (await client.post("URL/v1/messages", json=body)).json()["content"][0]["text"]"""
ASYNC = """import asyncio
async def both(name):
    return [await aask(name), await asyncio.wait_for(aask(name + " again"), 20)]
found = await asyncio.gather(both("m"), both("n"))
done = len(found)"""
PROGRAMS = (PLAIN, THREADS, POOL, ASYNC)
WORDS = (
    ("over",) * 5
    + ("back",) * 3
    + ("answer",) * 2
    + ("jump", "continue", "interrupt", "stop", "model", "reload")
)


@pytest.fixture(scope="module", params=["newest", "ipykernel-6"])
def version(request, tmp_path_factory):
    """What the kernel's environment needs to be of that version."""
    return (
        old_kernel.installed(tmp_path_factory.mktemp("old"))
        if request.param == "ipykernel-6"
        else {}
    )


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Person:
    """Steps one cell at random. `said` is what was done, for the failure's message."""

    def __init__(self, page, draw):
        self.page, self.draw, self.said = page, draw, []

    def go(self):
        page = self.page
        self.wait()
        for _ in range(MOST):
            if page.over:
                break
            self.once(self.draw.choice(WORDS))
            self.wait()
        if not page.over:
            self.once(self.draw.choice(("continue", "stop", "interrupt")))
            while not page.over:  # a call that is not on the tape stops it anew
                self.wait()
                if not page.over:
                    self.once("stop")

    def wait(self, *, standing_too=True):
        """Until it stands at a call, or has ended."""
        try:
            self.page.until(lambda: self.page.over or (standing_too and standing(self.page)))
        except queue.Empty:
            last = (
                {key: self.page.states[-1][key] for key in ("revision", "state", "note")}
                if self.page.states
                else None
            )
            raise AssertionError(
                f"nothing more is heard of the cell after {self.said}; the last was {last}"
            ) from None

    def once(self, word):
        page, state = self.page, self.page.states[-1]
        at = self.draw.choice(state["strands"])
        self.said.append((word, at["call"]["place"]))
        if word == "interrupt":
            page.kernel.interrupt()
            self.wait(standing_too=False)
            return
        if word == "reload":
            page.close()
            page.open()
            page.hello()
            return
        fields = {"strand": at["strand"], "revision": state["revision"]}
        if word == "answer":
            fields |= {"text": self.draw.choice(["yes", "no, thanks"]), "accept": True}
        if word == "jump":
            fields = {
                "place": self.draw.choice(
                    [p["place"] for p in state["passed"]] or [at["call"]["place"]]
                )
            }
        try:
            page.do(word, **fields)
        except Refused as refused:
            self.said.append(str(refused)[:60])


def standing(page):
    return bool(page.states) and page.states[-1]["state"] == "stopped"


@pytest.mark.slow
def test_any_sequence_leaves_an_idle_healthy_kernel_and_the_recording_as_it_was(
    tmp_path, provider, version
):
    notebook(tmp_path / "nb.ipynb", LOAD)
    base = tmp_path / "nb.tapes" / "main.tape.yaml"
    draw = random.Random(20)
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb"), **version}) as kernel:
        for code in (LOAD, ASK, AASK, "seen, done, log, found = [], 0, 0, 0"):
            assert kernel.execute(code.replace("URL", provider.url)).ok
        for program in PROGRAMS:
            assert kernel.execute(f"%%tape record\n{program}").ok
        was, asked = digest(base), len(provider.requests)
        page = Stepper(kernel)
        page.hello()
        for number in range(SEQUENCES):
            assert kernel.execute("done = 'untouched'\nheld = list(seen)").ok
            program = PROGRAMS[number % len(PROGRAMS)]
            page.states.clear()
            page.run(f"%%tape step\n{program}")
            person = Person(page, draw)
            person.go()
            ran = page.end()
            told = (number, person.said, ran.evalue, ran.traceback[-2000:])
            assert page.states and page.states[-1]["state"] == "over", told
            after = kernel.execute(
                "print(done if done == 'untouched' and seen == held else 'ran')\n1 + 1"
            )
            assert after.ok and after.result == "2", told
            assert ran.ok or after.stdout == "untouched\n", told
            assert digest(base) == was and len(provider.requests) == asked, told
        for program in PROGRAMS:
            assert kernel.execute(f"%%tape replay\n{program}").ok
        threads = "sorted(t.name for t in __import__('threading').enumerate() if 'work' in t.name or 'Pool' in t.name)"
        assert kernel.execute(f"print({threads})").stdout == "[]\n"
