"""What a cell writes depends on what it was made of, not on all that its functions look at."""

import flow_score
import pytest

from tape_jupyter.flow.history import REPLY
from tape_jupyter.flow.plan import plan
from tape_jupyter.flow.tracker import Tracker

ASK = "import copy\ndef outside(text): return copy.copy(text)\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    shell = flow_score._shell()
    tracker = Tracker(shell)
    tracker.install()

    def cells(*sources, changed=None):
        """The last step of the last cell; with `changed`, the cells that depend on that one."""
        for source in (ASK, *sources):
            shell.run_cell(source, store_history=True)
        if changed is not None:
            planned = plan(tracker.history, {changed: (1,)})
            return {cell.entry for cell in planned.cells if cell.role == "downstream"}
        return tracker.history[len(tracker.history) - 1].steps[-1]

    yield cells
    tracker.uninstall()
    assert tracker.failures == []
    shell.clear_instance()


LOGGED = "log = []\ndef ask(p):\n    r = outside(p)\n    log.append(r)\n    return r"


def test_an_answer_depends_on_the_reply_and_not_on_the_log_that_it_is_added_to(run):
    step = run(LOGGED, "a = ask('x')", "b = ask('y')")
    assert REPLY in step.needs["b"]
    assert not any(need.startswith("log") for need in step.needs["b"])
    assert run("n = len(log)").reads >= {"log.__len__"}


def test_who_prints_a_later_answer_of_the_same_function_does_not_depend_on_the_earlier_one(run):
    found = run(LOGGED, "a = ask('x')", "b = ask('y')", "print(b)", "print(len(log))", "print(log)", changed=2)
    assert found == {3, 6}


def test_of_an_object_only_the_part_that_a_method_changes_is_written(run):
    agent = "class Agent:\n    def __init__(self): self.name, self.said = 'a', []\n"
    agent += (
        "    def ask(self, p):\n        r = outside(p)\n        self.said.append(r)\n        return r\nagent = Agent()"
    )
    assert run(agent, "x = agent.ask('x')", "print(agent.name)", "print(agent.said)", changed=2) == {4}


def test_a_key_that_is_handed_over_is_one_part_of_a_cache(run):
    cached = "cache = {}\ndef ask(p):\n    if p not in cache:\n        cache[p] = outside(p)\n    return cache[p]"
    cells = (cached, "a = ask('x')", "b = ask('y')", "print(b)", "print(a)", "print(cache)")
    assert run(*cells, changed=2) == {3, 5, 6}


def test_an_object_that_is_at_two_places_is_changed_at_both(run):
    step = run("log = []\nview = {'log': log}\ndef ask(p): log.append(outside(p))", "ask('x')")
    assert "view" in step.weak


def test_what_comes_after_something_that_may_raise_depends_on_that(run):
    step = run(
        "n, m = 0, []\ndef count(p):\n    global n\n    k = int(outside(p))\n    m.append(1)\n    n += 1", "count('3')"
    )
    assert REPLY in step.needs["n"] and REPLY in step.needs["m"]


def test_a_branch_that_hangs_on_the_reply_makes_all_in_it_hang_on_it(run):
    step = run("hits = {'a': 0, 'b': 0}\ndef vote(p):\n    if outside(p) == 'x':\n        hits['a'] += 1", "vote('x')")
    assert REPLY in step.needs["hits['a']"]


@pytest.mark.parametrize(
    "source",
    [
        "def made():\n    yield outside('x')\nfor each in made(): found.append(each)",
        "def tried():\n    try:\n        found.append(outside('x'))\n    except ValueError:\n        found.clear()\ntried()",
        "(lambda k=found: k.append(outside('x')))()",
        "setattr(box, outside('x'), found)",
        "class Loud:\n    def __str__(self):\n        found.append(1)\n        return ''\nprint(Loud())",
    ],
)
def test_what_is_not_understood_depends_on_everything(run, source):
    step = run("found = []\nclass Box: pass\nbox = Box()", source)
    assert step.needs.get("found") is None


def test_a_function_whose_class_is_patched_is_another(run):
    agent = "class Agent:\n    def ask(self, p): return outside(p)\nagent = Agent()"
    cells = (agent, "Agent.ask = lambda self, p, word=outside('x'): word", "print(agent.ask('y'))")
    assert run(*cells, changed=2) == {3}
