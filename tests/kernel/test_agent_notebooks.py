"""Notebooks whose tools do things replay in a fresh kernel, elsewhere, with the outputs, variables and files they left."""

import os

import pytest

from tests.agent_notebooks import NOTEBOOKS
from tests.effect_runs import compare, differences
from tests.provider import Provider

EVERY_PUSH = list(NOTEBOOKS)[1::3]  # the others in the nightly run


@pytest.fixture(scope="module")
def provider():
    with Provider(vary=True) as provider:
        yield provider


@pytest.mark.parametrize("name", NOTEBOOKS if os.environ.get("TAPE_NIGHTLY") else EVERY_PUSH)
def test_a_notebook_is_left_as_its_recording_left_it(name, provider):
    verdict, found = compare(name, provider)
    assert verdict != "silent", found
    assert verdict == "equal", found


def test_the_comparer_sees_values_types_and_lost_aliases():
    assert differences({"a": [1, 2]}, {"a": [1, 2]}, "") == []
    assert differences({"a": [1, 2]}, {"a": [1, 3]}, "") == ["[a][1]: 2 != 3"]
    assert differences({"a": "same as todo"}, {"a": ["list", []]}, "")
    assert differences({"a": 1}, {}, "") == ["[a]: 1 != None"]
