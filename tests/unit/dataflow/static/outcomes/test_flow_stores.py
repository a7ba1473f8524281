"""What a statement or a function puts somewhere is a change of that part, and of all who hold it."""

from tape_jupyter.dataflow.history import REPLY
from tests.flow_cells import run, tracked  # noqa: F401 - fixtures


def test_of_an_object_only_the_part_that_a_method_changes_is_written(run):
    agent = "class Agent:\n    def __init__(self): self.name, self.said = 'a', []\n"
    agent += "    def ask(self, p):\n        r = outside(p)\n        self.said.append(r)\n        return r\nagent = Agent()"
    assert run(
        agent, "x = agent.ask('x')", "print(agent.name)", "print(agent.said)", changed=2
    ) == {4}


def test_an_object_that_is_at_two_places_is_changed_at_both(run):
    step = run("log = []\nview = {'log': log}\ndef ask(p): log.append(outside(p))", "ask('x')")
    assert "view" in step.weak


def test_a_key_that_is_set_deep_inside_is_that_key(run):
    step = run("box = {'a': {'n': 1, 'm': 2}}", "box['a']['n'] = outside('x')")
    assert REPLY in step.needs["box['a']['n']"]
    assert not {"box", "box['a']", "box['a']['m']"} & step.needs.keys()


def test_what_is_set_only_perhaps_depends_on_what_it_was_before_too(run):
    step = run("a, first = 1, outside('y')", "if first:\n    a = outside('x')")
    assert {REPLY, "first"} <= step.needs["a"]
