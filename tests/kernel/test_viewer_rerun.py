"""A view asks for the plan, re-runs, decides at a divergence and cancels, in a real kernel; forged messages change nothing."""

import json

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider
from tests.harness.support import CELLS, LOAD, Page, digest, record

OPEN = """from IPython import get_ipython
from tape_jupyter.jupyter import magics
from tape_jupyter.jupyter.viewer.server import Viewer
import asyncio, json
heard, told = {}, []
view = Viewer(magics.loaded(get_ipython()), told.append)
def page_asks(about, **said):
    "As a page does: while no cell runs."
    message = {"type": "ask", "id": about, "about": about, **said}
    send = lambda answer: heard.__setitem__(about, answer)
    asyncio.get_running_loop().call_soon(lambda: view.receive(message, send))"""


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


class View:
    """The view of a page; `ask` gives the answer and what was told since."""

    def __init__(self, page):
        self.page = page
        assert self._aside(OPEN).ok

    def _aside(self, code):
        """Run what is no cell of the notebook, away from its names: what changes unseen makes a re-run run fresh."""
        away = f"import sys, types; exec({code!r}, vars(sys.modules.setdefault('__aside__', types.ModuleType('__aside__'))))"
        away = f"(lambda: exec({away!r}, {{}}))()"
        return self.page.execute(away, "aside", silent=True, store_history=False)

    def ask(self, about, **said):
        self._aside(f"told.clear(); heard.clear(); page_asks({about!r}, **{said!r})")
        ran = self._aside(
            "print(json.dumps([heard, [t for t in told if t['about'] != 'changed']]))"
        )
        heard, told = json.loads(ran.stdout)
        return heard.get(about, {}), told

    @property
    def dropped(self):
        return int(self._aside("print(view.dropped)").stdout)


@pytest.fixture
def view(page, base, provider):
    view = View(page)
    view.base, view.digest = base, record(page, base, provider)
    yield view
    assert digest(base) == view.digest


def planned(view):
    """The entries of the plan."""
    return [cell["entry"] for cell in view.ask("plan", take="angry")[0]["answer"]["cells"]]


def test_the_plan_is_shown_before_anything_runs(view, provider):
    answer, told = view.ask("plan", take="angry")
    plan = answer["answer"]
    assert [(cell["role"], cell["cell"]) for cell in plan["cells"]] == [
        ("changed", "classify"), ("downstream", "answer"), ("downstream", "report"),
    ]  # fmt: skip
    assert (
        plan["cells"][0]["reasons"] == ["holds the changed reply"]
        and told == []
        and provider.requests == []
    )


def test_a_re_run_tells_its_progress_and_what_changed(view, provider):
    answer, told = view.ask(
        "rerun", take="angry", entries=planned(view), fresh=False, on_divergence="live"
    )
    assert answer["answer"] == {"started": True}
    assert {each["title"].partition(" ")[0] for each in told if each["about"] == "progress"} >= {
        "mood",
        "answer",
        "report",
    }
    done = next(each for each in told if each["about"] == "done")
    assert (
        done["take"] == "angry"
        and [cell["cell"] for cell in done["cells"] if not cell["same"]][0] == "classify"
    )
    assert {"kind": "text", "before": "mood: negative\n", "after": "mood: positive\n"} in done[
        "cells"
    ][0]["outputs"]
    assert view.page.text("answer").endswith("'positive'.\n") and len(provider.requests) == 1

    # The take is put aside, and its cells run again on the recording.
    cells = view.ask("discard", take="angry")[0]["answer"]["cells"]
    again = view.ask("plan", take="", changed=cells)[0]["answer"]
    reasons = {each["cell"]: each["reasons"] for each in again["cells"]}
    assert {*reasons} == {"classify", "answer", "report"}
    assert reasons["classify"] == ["chosen to run again"]
    entries = [each["entry"] for each in again["cells"]]
    _, told = view.ask("rerun", take="", changed=cells, entries=entries, on_divergence="stop")
    done = next(each for each in told if each["about"] == "done")
    assert done["proof"]["text"] == "it ran on the recording, and a proof is of a take"
    assert view.page.text("classify") == "mood: negative\n" and len(provider.requests) == 1


def test_a_person_decides_at_a_divergence(view, provider):
    _, told = view.ask(
        "rerun", take="angry", entries=planned(view), fresh=False, on_divergence="stop"
    )
    card = told[-1]
    assert (
        card["about"] == "diverged"
        and card["cell"] == "answer"
        and card["choices"] == ["live", "write", "stale", "skip"]
    )
    assert (
        card["fields"][0]["path"] == "messages[0].content"
        and "negative" in card["fields"][0]["recorded"]
    )
    assert "positive" in card["asked"]["text"] and card["cost"] > 0 and card["reply"]["json"]

    message = json.loads(card["reply"]["text"])
    message["content"][0]["text"] = "</script><img src=x onerror=alert(1)>"
    assert "error" in view.ask("resolve", divergence="12345678", choice="live")[0]
    answer, told = view.ask(
        "resolve", divergence=card["id"], choice="write", reply=json.dumps(message)
    )
    assert answer == {"type": "answer", "id": "resolve", "answer": {}}
    assert view.page.text("answer") == "answer: </script><img src=x onerror=alert(1)>\n"
    assert told[-1]["about"] == "done" or any(each["about"] == "done" for each in told)
    assert provider.requests == []


def test_all_that_went_live_of_a_cell_is_counted_below_it_however_often_it_was_asked(
    page, base, provider
):
    page.cells["answer"] += '\nagain = ask(f"Shorter: {answer}")'
    view = View(page)
    record(page, base, provider)
    _, told = view.ask("rerun", take="angry", entries=planned(view), on_divergence="stop")
    for count in (1, 2):
        assert told[-1]["about"] == "diverged", told
        _, told = view.ask("resolve", divergence=told[-1]["id"], choice="live")
        assert len(provider.requests) == count
    done = next(each for each in told if each["about"] == "done")
    assert [each["note"].startswith("went live") for each in done["spans"]] == [False, True, True]
    summary = page.shown["answer"].summary
    assert "2 calls · 2 went live" in summary and "saved" not in summary, summary


AGAIN = "view = Viewer(magics.loaded(get_ipython()), told.append)"


def test_a_page_that_is_loaded_again_goes_on_where_the_question_stands(view, provider):
    _, told = view.ask(
        "rerun", take="angry", entries=planned(view), fresh=False, on_divergence="stop"
    )
    assert view.ask("resume")[0]["answer"] == {}, "the view that asked has heard it"
    view._aside(f"view.close()\n{AGAIN}")
    resumed = view.ask("resume")[0]["answer"]
    card = {name: said for name, said in told[-1].items() if name not in ("type", "about")}
    assert resumed == {"about": "diverged", "told": card} and card["cell"] == "answer"
    _, told = view.ask("resolve", divergence=card["id"], choice="stale")
    assert "done" in [each["about"] for each in told] and provider.requests == []
    view._aside(f"view.close()\n{AGAIN}")
    assert view.ask("resume")[0]["answer"]["about"] == "done"


@pytest.mark.slow
def test_a_comparison_that_nobody_saw_is_shown_to_the_next_page(view):
    view.ask("rerun", take="angry", entries=planned(view), fresh=False, on_divergence="stop")
    view._aside(f"view.close()\nother = {AGAIN.removeprefix('view = ')}")
    view._aside(
        "runner = __import__('tape_jupyter.jupyter.rerun.rerunner', fromlist=['rerunner_of']).rerunner_of(view.cells)"
    )
    view._aside("asyncio.get_running_loop().call_soon(lambda: runner.resolve_all('stale'))")
    view._aside("view = other")
    resumed = view.ask("resume")[0]["answer"]
    assert resumed["about"] == "done" and resumed["told"]["ran"] == 3
    assert view.ask("resume")[0]["answer"] == {}, "once"
    view.ask("seen")
    view._aside(AGAIN)
    assert view.ask("resume")[0]["answer"] == {}, "a person has closed it"


def test_the_proof_of_a_take_that_was_put_aside_comes_back_to_nobody(view):
    view.ask("rerun", take="angry", entries=planned(view), fresh=False, on_divergence="stale")
    view.ask("discard", take="angry")
    view.ask("seen")
    runner = "__import__('tape_jupyter.jupyter.rerun.rerunner', fromlist=['known_rerunner'])"
    view._aside(f"told.clear()\n{runner}.known_rerunner(view.cells).proving.join()")
    told = json.loads(view._aside("print(json.dumps(told))").stdout)
    assert [each for each in told if each["about"] == "done"] == []


@pytest.mark.slow
def test_the_original_is_opened_by_its_take_alone(view):
    assert view.ask("open", cassette="main", take="angry")[0]["answer"]["take"] == "angry"
    session = view.ask("open", take="")[0]["answer"]
    assert (session["cassette"], session["take"]) == ("main", "")


def test_cancel_tells_that_all_is_as_it_was(view):
    view.ask("rerun", take="angry", entries=planned(view), fresh=False, on_divergence="stop")
    assert view.page.text("classify") == "mood: positive\n"
    _, told = view.ask("cancel")
    assert told[-1]["about"] == "cancelled" and view.page.text("classify") == "mood: negative\n"


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    "said",
    [
        {"about": "rerun", "take": 3, "entries": [0]},
        {"about": "rerun", "take": "angry", "entries": ["0"]},
        {"about": "rerun", "take": "angry", "entries": [0], "on_divergence": "guess"},
        {"about": "resolve", "divergence": 1, "choice": "live"},
        {"about": "resolve", "divergence": "x", "choice": "exec"},
        {"about": "plan", "take": "angry", "changed": [1]},
        {"about": "adopt", "cells": "all"},
    ],
)
def test_a_forged_message_is_dropped_and_counted(view, said):
    assert view.ask(**said) == ({}, [])
    assert view.dropped == 1


def told_of_fresh(view):
    """What the fresh run tells the page, once it has ended."""
    view._aside(
        "rerun = __import__('tape_jupyter.jupyter.rerun.rerunner', fromlist=['rerunner_of']).rerunner_of(view.cells)"
    )
    view._aside("rerun.freshening.join()")
    view._aside("pass")
    return json.loads(view._aside("print(json.dumps(told))").stdout)


@pytest.mark.slow
def test_everything_fresh_tells_its_progress_and_leaves_the_kernel_alone(view, provider):
    answer, _ = view.ask(
        "rerun", take="angry", entries=planned(view), fresh=True, on_divergence="stale"
    )
    assert answer["answer"] == {"started": True}
    told = told_of_fresh(view)
    assert [each["done"] for each in told if each["about"] == "progress"] == [0, 1, 2, 3, 4]
    done = next(each for each in told if each["about"] == "done")
    assert (
        done["ran"] == 5
        and "own variables and files are as they were" in done["note"]
        and done["stopped"] is None
    )
    assert view.page.text("classify") == "mood: positive\n" and provider.requests == []
    assert view.page.execute("print(mood)").stdout == "negative\n"


@pytest.mark.slow
def test_everything_fresh_may_go_live(view, provider):
    answer, _ = view.ask(
        "rerun", take="angry", entries=planned(view), fresh=True, on_divergence="live"
    )
    assert answer["answer"] == {"started": True}
    done = next(each for each in told_of_fresh(view) if each["about"] == "done")
    assert done["stopped"] is None and len(provider.requests) == 1
    assert view.page.execute("print(mood)").stdout == "negative\n"
