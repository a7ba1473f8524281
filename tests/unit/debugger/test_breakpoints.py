"""Breakpoints of `%%tape step`."""

import pytest

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.debugger.breakpoints import FORMS, USAGE, Breaks
from tape_jupyter.debugger.call_site import CallSite

MODEL = CallSite("model", "claude-sonnet-4-5", text="where is my order?", cell="c-1 3")
TOOL = CallSite("tool", "lookup", failed=True, arguments={"query": "Ada"}, cell="c-1 3")


@pytest.mark.parametrize(
    ("word", "met"),
    [
        ("kind=model", [MODEL]), ("tool", [TOOL]), ("tool=lookup", [TOOL]), ("tool=look*", [TOOL]), ("model=claude*", [MODEL]),
        ("model=lookup", []), ("nth=2", [TOOL]), ("error", [TOOL]), ("cell=3", [MODEL, TOOL]), ("cell=c-1", [MODEL, TOOL]),
        ("cell=4", []), ('"order" in text', [MODEL]), ("arguments.get('query') == 'Ada'", [TOOL]), ("nth == 1", [MODEL]),
        ("kind == 'tool' and error", [TOOL]),
    ],
)  # fmt: skip
def test_a_breakpoint_is_met(word, met):
    breaks = Breaks.parse([word])
    assert [
        each for number, each in enumerate((MODEL, TOOL), 1) if breaks.is_met(each, number, "")
    ] == met


def test_without_any_nothing_is_met():
    assert not Breaks.parse([]) and not Breaks.parse([]).is_met(MODEL, 1, "")


def test_a_condition_that_raises_is_met_and_says_so_once():
    breaks = Breaks.parse(["arguments['x'] > 1"])
    assert breaks.is_met(MODEL, 1, "") and breaks.is_met(TOOL, 2, "")
    assert len(breaks.failures) == 1 and "KeyError" in breaks.failures[0]


@pytest.mark.parametrize("word", ["modle", "nth=0", "nth=x", "kind=dog", "1 +", "tool="])
def test_what_is_none_is_refused(word):
    with pytest.raises(TapeUsageError):
        Breaks.parse([word])


def test_the_words_of_a_page_are_never_evaluated():
    assert Breaks.parse(["tool=x", "error"], conditions=False)
    with pytest.raises(TapeUsageError, match="own line") as refused:
        Breaks.parse(["__import__('os').system('x') == 0"], conditions=False)
    assert USAGE not in str(refused.value)  # it lists what is refused here


def test_all_that_a_usage_lists_is_accepted():
    written = {
        "KIND": "model",
        "NAME": "look*",
        "CELL": "3",
        "N": "2",
        "'PYTHON CONDITION'": "nth > 1",
    }
    for listed, conditions in (
        (USAGE.removeprefix("--break ").split("|"), True),
        (FORMS.split(", "), False),
    ):
        for form in listed:
            key, equals, value = form.rpartition("=")
            Breaks.parse([f"{key}{equals}{written.get(value, value)}"], conditions=conditions)
