"""The first text that a LangGraph notebook was answered, overridden: the re-run, in place and headless, ends as where the model
really said it.
"""

import pytest

from tests.trials import langgraph_notebooks
from tests.trials.langgraph_overrides import headless, in_place, judged

CASES = [
    pytest.param(name, marks=() if name == "memory of a thread" else pytest.mark.night)
    for name in langgraph_notebooks.NOTEBOOKS
]
DRAWS = frozenset({"a person approves", "time travel"})
"""Cells that are not taped add ids of their own, drawn and of the time, to what the graph remembers."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_in_place_it_ends_as_a_whole_run_and_is_proved(name):
    how, why = judged(in_place, *langgraph_notebooks.NOTEBOOKS[name])
    assert how == "right" and ("in place, proved" in why or name in DRAWS), why


@pytest.mark.night
@pytest.mark.parametrize("name", langgraph_notebooks.NOTEBOOKS)
def test_headless_it_asks_in_words_or_ends_as_a_whole_run(name):
    how, why = judged(headless, *langgraph_notebooks.NOTEBOOKS[name])
    assert how == "right", why
