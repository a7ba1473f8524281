"""`%%tape step` in real kernels, with the test as the page that answers."""

import hashlib

import pytest

from tests.notebook import Kernel, notebook
from tests.provider import Provider
from tests.stepped import ASK, LOAD, Stepper

THREE = 'a = ask("one")\nprint("a", a)\nb = ask("two " + a)\nprint("b", b)\nc = ask("three " + b)\nprint("c", c)'


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


@pytest.fixture
def kernel(tmp_path, provider):
    notebook(tmp_path / "nb.ipynb", LOAD)
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}) as kernel:
        assert kernel.execute(LOAD).ok
        assert kernel.execute(ASK.replace("URL", provider.url)).ok
        assert kernel.execute(f"%%tape record\n{THREE}").ok
        yield kernel


@pytest.fixture
def base(tmp_path):
    return tmp_path / "nb.tapes" / "main.tape.yaml"


def digest(base):
    return hashlib.sha256(base.read_bytes()).hexdigest()


@pytest.fixture
def page(kernel):
    page = Stepper(kernel)
    assert page.hello() is None
    return page


def titles(state):
    return [each["call"]["place"] for each in state["strands"]]


def test_a_cell_stops_before_each_call_and_goes_on(page, provider, base):
    was, asked = digest(base), len(provider.requests)
    page.run(f"%%tape step\n{THREE}")
    state = page.stop_at()
    call = state["strands"][0]["call"]
    assert (state["state"], state["mode"], call["place"], call["kind"], call["name"]) == (
        "stopped", "replay", ":1", "model", "claude-sonnet-4-5",
    )  # fmt: skip
    assert '"one"' in call["request"]["text"] and call["would"] == "play" and "text" in call["reply"]["text"]
    state = page.moved("over")
    assert titles(state) == [":2"] and [done["place"] for done in state["passed"]] == [":1"]
    assert not page.over
    page.do("continue")
    ran = page.end()
    assert ran.ok, ran.traceback
    assert page.states[-1]["state"] == "over"
    assert ran.stdout.count("\n") == 3 and digest(base) == was and len(provider.requests) == asked


def test_stop_ends_the_cell_and_the_variables_are_as_before(page, kernel, base):
    was = digest(base)
    assert kernel.execute("a = b = c = 0\nseen = []").ok
    page.run(f"%%tape step\nseen.append(1)\n{THREE}")
    page.stop_at()
    page.moved("over")
    page.do("stop")
    ran = page.end()
    assert ran.status == "error" and "as they were before the cell" in ran.evalue
    assert kernel.execute("print(a, b, c, seen)").stdout == "0 0 0 []\n"
    assert digest(base) == was


def test_back_runs_the_cell_again_to_the_call_before(page, kernel):
    assert kernel.execute("a = b = 0\nseen = []").ok
    page.run(f"%%tape step\nseen.append(1)\n{THREE}")
    page.stop_at()
    page.moved("over")
    state = page.moved("over")
    assert titles(state) == [":3"]
    state = page.moved("back")
    assert titles(state) == [":2"] and page.cleared == 1
    told = page.ask("step.variables", strand="", frame=1)
    assert {"name": "seen", "type": "list", "text": "[1]", "whole": True} in told["variables"]
    page.do("continue")
    ran = page.end()
    assert ran.ok and ran.stdout.count("\n") == 3
    assert kernel.execute("print(seen)").stdout == "[1]\n"
