"""What a run says to a check, whoever ran it: a kernel, or a fork of a trial's process."""

import pytest

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.check import Check, CheckedCell, run_check, ends, judged, may_raise


def error(name, said=""):
    return {"output_type": "error", "ename": name, "evalue": said, "traceback": []}


def text(said):
    return {"output_type": "stream", "name": "stdout", "text": said}


FINE, RAISED, REFUSED = [text("1\n")], [error("ValueError", "no\nmore")], [error("UnmatchedCall", "POST x")]  # fmt: skip


def told(check, *shown, namespace=None, settled=False):
    asked = Check.parse(check)
    over = next((n for n, each in enumerate(shown) if ends(each, may_raise=False)), len(shown))
    cells = [CheckedCell(each, FINE, n <= over) for n, each in enumerate(shown)]
    answer = run_check(asked, namespace or {}, [])
    run = judged(cells, asked, answer, {}, 0.0, settled=settled)
    return run.verdict, run.why


@pytest.mark.parametrize(
    ("check", "shown", "verdict"),
    [
        ("", (FINE, FINE), "passes"),
        ("", (FINE, RAISED), "fails"),
        ("cell:1", (FINE, RAISED, FINE), "passes"),
        ("cell:2", (FINE, RAISED, FINE), "fails"),
        ("cell:3", (FINE, RAISED, FINE), "fails"),
        ("output:1", (FINE, REFUSED), "passes"),
        ("output:2", (RAISED, FINE), "fails"),
        ("output:1", ([text("2\n")], FINE), "fails"),
        ("cell:1", (FINE, REFUSED), "passes"),
        ("cell:2", (FINE, REFUSED), "unresolved"),
        ("x == 1", (FINE, REFUSED), "unresolved"),
        ("x == 1", (FINE, RAISED), "passes"),
        ("x == 2", (FINE, FINE), "fails"),
        ("y == 2", (FINE, FINE), "unresolved"),
    ],
)
def test_a_run_passes_or_not_or_it_cannot_be_said(check, shown, verdict):
    assert told(check, *shown, namespace={"x": 1})[0] == verdict


def test_what_is_refused_after_the_answer_is_settled_changes_nothing():
    assert told("x == 1", FINE, REFUSED, namespace={"x": 1}, settled=True)[0] == "passes"
    assert told("", FINE, REFUSED)[1] == "cell 2: UnmatchedCall: POST x"


def test_an_error_after_which_others_ran_ends_no_run_and_a_refusal_always_does():
    assert may_raise([RAISED, FINE, RAISED, []]) == [True, False, False, False]
    assert ends(RAISED, may_raise=False) and not ends(RAISED, may_raise=True)
    assert ends(REFUSED, may_raise=True) and not ends(FINE, may_raise=False)


def test_a_value_that_cannot_be_shown_is_no_answer():
    class Odd:
        def __repr__(self):
            raise ValueError("nothing to see")

    assert told("x", FINE, namespace={"x": Odd()}) == ("unresolved", "the check raised ValueError: nothing to see")  # fmt: skip


def test_words_that_are_no_check_are_one_line():
    for words, said in (("x =", "not a Python expression"), ("1 == 1", "reads nothing"), ("t.py", "alone")):  # fmt: skip
        with pytest.raises(TapeUsageError, match=said):
            Check.parse(words)
    with pytest.raises(TapeUsageError, match="code cells are 1 to 2"):
        Check.parse("cell:3").require(2)
