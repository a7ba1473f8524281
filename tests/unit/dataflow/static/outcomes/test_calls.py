"""A call of the notebook's own function is what that does."""

from tape_jupyter.dataflow.history import REPLY
from tests.flow_cells import run, tracked  # noqa: F401 - fixtures


def test_a_function_whose_class_is_patched_is_another(run):
    agent = "class Agent:\n    def ask(self, p): return outside(p)\nagent = Agent()"
    cells = (agent, "Agent.ask = lambda self, p, word=outside('x'): word", "print(agent.ask('y'))")
    assert run(*cells, changed=2) == {3}


def test_a_default_that_is_no_plain_value_is_not_reckoned_with(run):
    step = run("def ask(p, told=[]):\n    told.append(p)\n    return outside(p)", "a = ask('x')")
    assert step.needs.get("a") is None


def test_a_function_that_is_picked_from_a_box_may_be_any_of_those(run):
    tools = (
        "seen = []\ndef one(p): return outside(p)\ndef other(p):\n    seen.append(p)\n    return p"
    )
    step = run(
        f"{tools}\ntools = {{'one': one, 'other': other}}\nname = 'one'", "a = tools[name]('x')"
    )
    assert REPLY in step.needs["a"] and "name" in step.needs["a"]
