"""What a cell writes depends on what it was made of, not on all that its functions look at."""

import pytest
from tape_jupyter.dataflow.history import REPLY
from tests.flow_cells import run, tracked  # noqa: F401 - fixtures

LOGGED = "log = []\ndef ask(p):\n    r = outside(p)\n    log.append(r)\n    return r"


def test_an_answer_depends_on_the_reply_and_not_on_the_log_that_it_is_added_to(run):
    step = run(LOGGED, "a = ask('x')", "b = ask('y')")
    assert REPLY in step.needs["b"]
    assert not any(need.startswith("log") for need in step.needs["b"])
    assert run("n = len(log)").reads >= {"log.__len__"}


def test_who_prints_a_later_answer_of_the_same_function_does_not_depend_on_the_earlier_one(run):
    found = run(
        LOGGED,
        "a = ask('x')",
        "b = ask('y')",
        "print(b)",
        "print(len(log))",
        "print(log)",
        changed=2,
    )
    assert found == {3, 6}


@pytest.mark.parametrize("change", ["insert(0, outside('x'))", "append(outside('x'))"])
def test_how_many_there_are_does_not_depend_on_what_is_added(run, change):
    found = run("xs = ['a']", f"xs.{change}", "print(len(xs))", "print(xs)", changed=2)
    assert found == {4}


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
