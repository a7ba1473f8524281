"""Fields of a message are what they should be, or the message is dropped; scripts come from the package."""

import pytest

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter.viewer import read
from tape_jupyter.reports import static_assets
from tape_jupyter.jupyter.viewer.server import Forged


@pytest.mark.parametrize(
    "told", [{}, {"n": None}, {"n": 7}, {"n": ["x"]}, {"n": "x" * 2000}, {"n": b"x"}]
)
def test_a_word_is_a_short_text(told):
    with pytest.raises(Forged):
        read.require_text(told, "n")
    assert read.require_text({"n": "span"}, "n") == "span"


@pytest.mark.parametrize(
    "told", [{"n": None}, {"n": "7"}, {"n": -1}, {"n": 1.5}, {"n": True}, {"n": 2**60}]
)
def test_a_number_is_a_whole_one_from_nought_on(told):
    with pytest.raises(Forged):
        read.number(told, "n", 5)
    assert read.number({"n": 7}, "n", 5) == 7 and read.number({}, "n", 5) == 5


def test_a_script_that_was_not_built_is_named_with_the_way_to_get_it():
    with pytest.raises(TapeUsageError, match="nowhere.js is not in this installation.*node"):
        static_assets.script("nowhere")
