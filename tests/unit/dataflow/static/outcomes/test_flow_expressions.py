"""Of what it looks at, an expression depends on the part that it needs."""

from tape_jupyter.dataflow.history import REPLY
from tests.flow_cells import run, tracked  # noqa: F401 - fixtures


def test_a_key_that_is_handed_over_is_one_part_of_a_cache(run):
    cached = "cache = {}\ndef ask(p):\n    if p not in cache:\n        cache[p] = outside(p)\n    return cache[p]"
    cells = (cached, "a = ask('x')", "b = ask('y')", "print(b)", "print(a)", "print(cache)")
    assert run(*cells, changed=2) == {3, 5, 6}


def test_who_asks_whether_a_key_is_there_does_not_depend_on_the_others(run):
    known = "cache = {'a': 1, 'b': 2}\ndef known(): return 'a' in cache"
    step = run(known, "there = known()")
    assert "cache['a']" in step.needs["there"] and not {"cache", "cache['b']"} & step.needs["there"]


def test_a_list_of_replies_depends_on_each_and_on_what_it_goes_over(run):
    step = run("words = ['a', 'b']", "said = [outside(word) for word in words]")
    assert {REPLY, "words"} <= step.needs["said"]
