"""Calls are found by what was asked and answered in them, a stretch at a time."""

import pytest

from tape_jupyter.spans.rows import Spans
from tape_jupyter.spans.search import search_spans
from tests.harness.spanned import Recording, answered, asked, tool


@pytest.fixture
def tape(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    tape.run(title="agent")
    tape.add(asked("Where is my Order?"), answered('It is "on its way", to Zürich'))
    tape.add(*tool("look_up", {"rows": ["a parcel"]}, query="order"))
    tape.add(asked("thanks"), answered("Gladly"))
    tape.end()
    return tape.cassette


def names(book, words, **more):
    spans = Spans(book)
    spans.refresh()
    found = search_spans(spans, words, 0, **more)
    return [spans.place(span) for span in found["spans"]]


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("order", [1, 2]), ("ORDER way", [1]), ('"on its', [1]), ("zürich", [1]), ("parcel", [2]), ("nowhere", []),
        ("record", []), ("", [1, 2, 3]),
    ],
)  # fmt: skip
def test_calls_that_hold_all_words_are_found_and_what_is_above_their_bodies_is_not_looked_at(
    tape, words, rows
):
    assert names(tape, words) == rows


def test_an_overridden_call_is_found_by_its_new_reply_and_by_what_was_asked(tape):
    take = tape.override(tape.calls[0], reply=answered("It is lost"), take="sad")
    assert names(take, "lost") == [1] == names(take, "my order") and names(take, "zürich") == []


def test_a_stretch_ends_when_its_time_is_over_and_goes_on_where_it_stopped(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    tape.run()
    for number in range(120):
        tape.add(*tool("look_up", number, query=f"needle {number}"))
    tape.end()
    spans = Spans(tape.cassette)
    spans.refresh()
    first = search_spans(spans, "needle", 0, patience=0)
    assert (len(first["spans"]), first["next"], first["total"]) == (50, 51, 121)
    rest = search_spans(spans, "needle", first["next"], patience=60)
    assert len(rest["spans"]) == 70 and rest["next"] is None
    assert search_spans(spans, "needle", 500) == {"spans": [], "next": None, "total": 121}
