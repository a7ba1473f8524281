"""What a person left out of a take's re-runs: said in the take, not asked again; a recording is never written for it."""

import pytest

from tape_jupyter.cassette import Cassette
from tape_jupyter.flow.history import Entry, History
from tape_jupyter.flow.plan import plan
from tape_jupyter.notebook import left_out
from tests.spanned import Recording, answered, asked


@pytest.fixture
def base(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    tape.run("aaaa", title="classify")
    tape.add(asked("q"), answered("negative"))
    return tape


@pytest.fixture
def history(base):
    """A taped cell, and one that makes no calls and reads what it made."""
    run = next(iter(base.cassette.by_run))
    return History([Entry(0, "c1", "mood = ask()", run=run), Entry(1, "c2", "print(mood)")])


@pytest.fixture
def take(base):
    return Cassette.open(base.cassette.path).override(base.cassette.calls[0], text="furious", take="angry")


def ticks(take, history):
    made = left_out.planned(plan(history, {0}, learned={1}, live=False), take, history)
    return [cell.ticked for cell in made.cells]


def test_what_was_left_out_is_not_ticked_the_next_time_whoever_opens_the_take(take, history):
    assert ticks(take, history) == [True, True]
    left_out.remember(take, history, [history[1]])
    assert ticks(take, history) == [True, False]
    opened = Cassette.open(take.path)
    made = left_out.planned(plan(history, {0}, learned={1}, live=False), opened, history)
    assert [cell.ticked for cell in made.cells] == [True, False] and made.cells[1].reasons[0] == left_out.REASON
    assert left_out.entries(made, opened, history) == {1}


def test_the_newest_choice_counts_and_nothing_is_written_twice(take, history):
    for skipped in ([history[1]], [history[0]], []):
        left_out.remember(take, history, skipped)
        size = take.path.stat().st_size
        left_out.remember(take, history, skipped)
        assert take.path.stat().st_size == size
        assert [entry for entry, ticked in zip(history, ticks(take, history), strict=True) if not ticked] == skipped


def test_a_recording_is_never_written(base, history):
    book = Cassette.open(base.cassette.path)
    before = book.path.read_bytes()
    left_out.remember(book, history, [history[0]])
    assert book.path.read_bytes() == before and left_out.cells(book) == set()
