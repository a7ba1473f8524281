"""Where two replies differ: each place can be taken from the one or the other, and nothing else moves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape_jupyter.experiments.causes.fragments import fragments

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab. \n|,", max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN, PLAIN)
def test_none_of_the_places_is_the_bad_value_and_all_are_the_good_one(bad, good):
    found = fragments(bad, good)
    assert found.mixed([]) == bad
    assert json.dumps(found.mixed(range(len(found.places))), sort_keys=True) == json.dumps(
        good, sort_keys=True
    )


@pytest.mark.parametrize(
    ("bad", "good", "paths"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a.c"]),
        ({"rows": [{"n": 1}, {"n": 2}]}, {"rows": [{"n": 1}, {"n": 9}]}, ["rows[1].n"]),
        ("One. Two. Three.", "One. Zwei. Three.", ["part 2"]),
        ("| N | 1 |\n| S | 2 |\n", "| N | 1 |\n| S | 5 |\n", ["part 2"]),
        ({"text": '{"x": 1, "y": 2}'}, {"text": '{"x": 1, "y": 3}'}, ["text.y"]),
        ([1, 2], [1, 2, 3], ["[2]"]),
        ({"a": 1}, {"a": 1, "b": 2}, ["b"]),
    ],
)
def test_a_place_is_a_field_a_row_or_a_sentence(bad, good, paths):
    assert [place.path for place in fragments(bad, good).places] == paths


def test_one_place_changes_and_the_others_stay():
    bad, good = {"a": "x", "b": ["p", "q"], "c": 1}, {"a": "y", "b": ["p", "r"], "c": 2}
    found = fragments(bad, good)
    assert found.mixed([1]) == {"a": "x", "b": ["p", "r"], "c": 1}
