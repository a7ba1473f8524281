"""What a branch decides and what a loop goes over is what all in it depends on."""

from tape_jupyter.dataflow.history import REPLY
from tests.flow_cells import run, tracked  # noqa: F401 - fixtures


def test_a_branch_that_hangs_on_the_reply_makes_all_in_it_hang_on_it(run):
    step = run(
        "hits = {'a': 0, 'b': 0}\ndef vote(p):\n    if outside(p) == 'x':\n        hits['a'] += 1",
        "vote('x')",
    )
    assert REPLY in step.needs["hits['a']"]


def test_a_sum_over_replies_depends_on_all_of_them_and_on_how_many_there_are(run):
    step = run("words = ['a', 'b']\ntotal = ''", "for word in words:\n    total += outside(word)")
    assert {REPLY, "words"} <= step.needs["total"]


def test_a_lock_that_is_held_meanwhile_changes_nothing(run):
    step = run("import threading\nlock = threading.Lock()", "with lock:\n    a = outside('x')")
    assert REPLY in step.needs["a"]
