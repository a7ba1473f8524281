"""Delta debugging finds exactly the parts that were planted, and says how many trials it took."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape_jupyter.experiments.ddmin import minimal_subset

PLANTED = st.integers(2, 60).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1, max_size=3))
)


def needs(cause):
    return lambda parts: "flips" if cause <= set(parts) else "stays"


@given(PLANTED)
def test_a_single_or_joint_cause_is_found_exactly(planted):
    n, cause = planted
    found = minimal_subset(range(n), needs(cause))
    assert set(found.parts) == cause and found.unresolved == 0
    assert found.trials <= 4 * n * math.log2(n)


@given(PLANTED, st.data())
def test_what_is_found_is_1_minimal_whatever_trials_answer(planted, data):
    n, _ = planted
    told = {frozenset(range(n)): "flips", frozenset(): "stays"}

    def trial(parts):
        answer = data.draw(st.sampled_from(["flips", "stays", "unresolved"]))
        return told.setdefault(frozenset(parts), answer)

    found = minimal_subset(range(n), trial)
    assert told[frozenset(found.parts)] == "flips"
    for part in found.parts:
        assert told[frozenset(found.parts) - {part}] != "flips"


def test_competing_causes_give_one_of_them():
    found = minimal_subset(
        range(16), lambda parts: "flips" if {3} <= set(parts) or {9, 12} <= set(parts) else "stays"
    )
    assert set(found.parts) in ({3}, {9, 12})


def test_parts_that_only_answer_together_are_kept_together():
    """1 without 2 asks something that is not on the tape."""

    def trial(parts):
        if (1 in parts) != (2 in parts):
            return "unresolved"
        return "flips" if {1, 2} <= set(parts) else "stays"

    found = minimal_subset(range(8), trial)
    assert found.parts == (1, 2) and found.unresolved > 0


@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_no_set_is_tried_twice_and_all_of_them_may_be_needed(n):
    tried = []

    def trial(parts):
        tried.append(frozenset(parts))
        return "flips" if len(parts) == n else "stays"

    found = minimal_subset(range(n), trial)
    assert found.parts == tuple(range(n))
    assert found.trials == len(tried) == len(set(tried)) and not {
        frozenset(),
        frozenset(range(n)),
    } & set(tried)
