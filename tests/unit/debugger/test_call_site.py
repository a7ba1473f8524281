"""Places: they name a call of a pass."""

from tape_jupyter.debugger.call_site import Passed, number_of, place_strand


def test_a_place_is_a_strand_and_a_number():
    assert (place_strand("0.1:3"), number_of("0.1:3"), place_strand(":1"), number_of("x")) == (
        "0.1",
        3,
        "",
        0,
    )


def test_a_call_that_was_made_is_told_as_the_protocol_has_it():
    told = Passed(":1", "r/c", "ask", "model", edited=True).record()
    assert told == {"place": ":1", "span": "r/c", "title": "ask", "kind": "model", "edited": True}
