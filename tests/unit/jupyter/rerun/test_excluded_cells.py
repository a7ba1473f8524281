"""What a person left out of a take's re-runs: said in the take, not asked again; a recording is never written for it."""

import pytest

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.dataflow.history import Execution, History
from tape_jupyter.dataflow.plan import plan_rerun
from tape_jupyter.jupyter.rerun import excluded_cells
from tests.harness.spanned import Recording, answered, asked


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
    return History([Execution(0, "c1", "mood = ask()", run=run), Execution(1, "c2", "print(mood)")])


@pytest.fixture
def take(base):
    return Cassette.open(base.cassette.path).override(
        base.cassette.calls[0], text="furious", take="angry"
    )


def ticks(take, history):
    made = excluded_cells.planned(plan_rerun(history, {0}, learned={1}, live=False), take, history)
    return [cell.ticked for cell in made.cells]


def test_what_was_left_out_is_not_ticked_the_next_time_whoever_opens_the_take(take, history):
    assert ticks(take, history) == [True, True]
    excluded_cells.remember_excluded(take, history, [history[1]])
    assert ticks(take, history) == [True, False]
    opened = Cassette.open(take.path)
    made = excluded_cells.planned(
        plan_rerun(history, {0}, learned={1}, live=False), opened, history
    )
    assert [cell.ticked for cell in made.cells] == [True, False] and made.cells[1].reasons[
        0
    ] == excluded_cells.REASON
    assert excluded_cells.entries(made, opened, history) == {1}


def test_the_newest_choice_counts_and_nothing_is_written_twice(take, history):
    for skipped in ([history[1]], [history[0]], []):
        excluded_cells.remember_excluded(take, history, skipped)
        size = take.path.stat().st_size
        excluded_cells.remember_excluded(take, history, skipped)
        assert take.path.stat().st_size == size
        assert [
            entry for entry, ticked in zip(history, ticks(take, history), strict=True) if not ticked
        ] == skipped


def test_a_recording_is_never_written(base, history):
    book = Cassette.open(base.cassette.path)
    before = book.path.read_bytes()
    excluded_cells.remember_excluded(book, history, [history[0]])
    assert book.path.read_bytes() == before and excluded_cells.cells(book) == set()
