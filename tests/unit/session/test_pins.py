"""The pins of a cell: which recording they repeat, what they do when they fail, and that nothing is left of them."""

import random
import secrets
import time
import uuid

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette import paths
from tape_jupyter.session import pins
from tape_jupyter.session.options import PINS
from tape_jupyter.session.session import CellRequest, TapeSession
from tape_jupyter.core.context import ORIGIN
from tests.harness.taped_cells import taped
from tests.harness.timing import ratio


@tape.tool
def tool():
    return 1


def run(deck, mode, path, source="x", **told):
    with taped(deck, mode, path, source, **told) as cell:
        tool()
        drawn = str(uuid.uuid4())
    return drawn, cell.report


def test_each_pin_can_be_switched_off():
    assert {"clock", "sleep", *pins.BUILT_IN} == set(PINS)


def test_a_cell_repeats_its_own_recording(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    recorded = {source: run(deck, "record", path, source)[0] for source in "ab"}
    for source in "ba":
        assert run(TapeSession(), "replay", path, source)[0] == recorded[source]


def test_the_second_run_of_a_cell_repeats_the_second_recording(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    recorded = [run(deck, "record", path)[0] for _ in range(2)]
    again = TapeSession()
    assert [run(again, "replay", path)[0] for _ in range(2)] == recorded


def test_an_edited_cell_repeats_the_only_recording_there_is(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    recorded = run(deck, "record", path, "print(1)")[0]
    assert run(TapeSession(), "replay", path, "print(2)")[0] == recorded


def test_an_edited_cell_repeats_that_of_the_same_number(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    recorded = [run(deck, "record", path, f"print({n})", count=n)[0] for n in (3, 4)]
    replayed, report = run(TapeSession(), "replay", path, "print(44)", count=4)
    assert replayed == recorded[1] and not report.notes


def test_a_cell_without_a_recording_is_told_that_its_chance_is_not_held(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    for n in (3, 4):
        run(deck, "record", path, f"print({n})")
    replayed, report = run(TapeSession(), "replay", path, "print(5)")
    assert "no recording of this cell" in "\n".join(report.notes)
    assert replayed != run(TapeSession(), "replay", path, "print(5)")[0]


def test_what_a_later_run_adds_has_the_chance_of_the_recording(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    recorded = run(deck, "record", path)[0]
    other = tape.tool(lambda: 2)
    again = TapeSession()
    with taped(again, "new_episodes", path, "x"):
        tool()
        assert str(uuid.uuid4()) == recorded
        other()
    runs = Cassette.open(path).runs
    assert (
        runs[1]["parent"] == runs[0]["run"]
        and runs[1]["pins"]["random"]["seed"] == runs[0]["pins"]["random"]["seed"]
    )
    assert run(TapeSession(), "replay", path)[0] == recorded


def test_once_records_and_then_repeats(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    first, second = (run(TapeSession(), "once", path)[0] for _ in range(2))
    assert first == second


def test_a_cell_without_a_call_is_recorded_if_it_drew(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with taped(deck, "record", path, "draws"):
        drawn = random.random()
    assert len(Cassette.open(path).runs) == 1
    random.seed()
    with taped(TapeSession(), "replay", path, "draws"):
        assert random.random() == drawn


def test_a_cell_that_neither_calls_nor_draws_leaves_no_word(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with taped(deck, "record", path, "x = 1"):
        pass
    assert not path.exists()


def recorded_by_its_line(deck, notebook, mode="record", name="setup", **told):
    cell = deck.begin(CellRequest(mode, name, "x = 1", notebook=notebook, **told))
    return deck.end(cell, None)


def test_a_cell_with_a_record_line_replays_though_it_did_nothing(deck, tmp_path):
    notebook = tmp_path / "churn.ipynb"
    assert recorded_by_its_line(deck, notebook).warnings == []
    cassette = Cassette.open(paths.cassette_path(notebook, "setup"))
    assert [end["outcome"] for end in cassette.ended.values()] == ["ok"] and not cassette.calls
    replayed = recorded_by_its_line(TapeSession(), notebook, "replay")
    assert (replayed.mode, replayed.notes, replayed.warnings) == ("replay", [], [])


def test_only_the_first_such_cell_leaves_a_word(deck, tmp_path):
    notebook = tmp_path / "churn.ipynb"
    for _ in range(3):
        recorded_by_its_line(deck, notebook)
    assert len(Cassette.open(paths.cassette_path(notebook, "setup")).runs) == 1


@pytest.mark.parametrize("told", [{"explicit": False}, {"mode": "once"}, {"mode": "new_episodes"}])
def test_a_cell_without_a_record_line_makes_no_empty_cassette(deck, tmp_path, told):
    recorded_by_its_line(deck, tmp_path / "churn.ipynb", **told)
    assert not [*tmp_path.iterdir()]


def test_a_cell_that_failed_before_it_did_anything_makes_no_empty_cassette(deck, tmp_path):
    cell = deck.begin(CellRequest("record", "setup", "x = 1", notebook=tmp_path / "churn.ipynb"))
    deck.end(cell, NameError("no such name"))
    assert not [*tmp_path.iterdir()]


def test_a_replay_of_a_cell_without_a_recording_leaves_generators_alone(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with taped(deck, "record", path, "draws nothing of random"):
        uuid.uuid4()
    random.seed(4)
    with taped(TapeSession(), "replay", path, "draws nothing of random"):
        uuid.uuid4()
    assert random.random() == random.Random(4).random()


def test_the_rest_of_a_sessions_cell_is_held_after_a_block_in_it(deck, tmp_path):
    def program(deck, mode):
        with taped(deck, mode, tmp_path / "a.tape.yaml", "around", explicit=False):
            before = time.time(), uuid.uuid4()
            with taped(deck, mode, tmp_path / "b.tape.yaml", "block"):
                within = time.time(), tool(), uuid.uuid4()
            return before, within, time.time(), uuid.uuid4(), secrets.token_hex(4), tool()

    recorded = program(deck, "record")
    assert program(TapeSession(), "replay") == recorded
    assert ORIGIN.get() is None


def test_a_block_that_outlives_the_cell_around_it_leaves_no_strand_of_it(deck, tmp_path):
    around = deck.begin(CellRequest("record", path=tmp_path / "a.tape.yaml", explicit=False))
    block = deck.begin(CellRequest("record", path=tmp_path / "b.tape.yaml"))
    deck.end(around, None)
    deck.end(block, None)
    assert ORIGIN.get() is None


def test_live_cells_are_left_alone(deck, tmp_path):
    with taped(deck, "live", tmp_path / "a.tape.yaml") as cell:
        uuid.uuid4()
    assert not cell.report.warnings and not (tmp_path / "a.tape.yaml").exists()


def test_a_pin_that_fails_is_named_and_the_cell_runs(deck, tmp_path, monkeypatch):
    def broken(cell, recorded):
        raise OSError("no entropy")

    monkeypatch.setattr(pins, "BUILT_IN", {**pins.BUILT_IN, "random": broken})
    drawn, report = run(deck, "record", tmp_path / "a.tape.yaml")
    assert drawn and "random is not replayed: OSError: no entropy" in report.warnings
    monkeypatch.undo()
    replayed, report = run(TapeSession(), "replay", tmp_path / "a.tape.yaml")
    assert replayed != drawn


def test_a_pin_that_does_not_come_off_keeps_no_other_on(deck, tmp_path, monkeypatch):
    taken_off = []

    def stuck(cell, recorded):
        return lambda: 1 / 0

    def fine(cell, recorded):
        return lambda: taken_off.append(True)

    monkeypatch.setattr(pins, "BUILT_IN", {"timezone": fine, "random": stuck})
    _, report = run(deck, "record", tmp_path / "a.tape.yaml")
    assert taken_off == [True] and "did not come off cleanly" in "\n".join(report.warnings)


def test_a_cassette_from_before_there_were_pins_replays(deck, tmp_path):
    path = tmp_path / "a.tape.yaml"
    run(deck, "record", path, options={"no_pin": ("clock", "sleep", "random", "timezone")})
    assert "seed:" not in path.read_text()
    drawn, report = run(TapeSession(), "replay", path)
    assert drawn and not [text for text in report.warnings if "random" in text]


def test_what_cannot_be_written_is_said(deck, tmp_path, monkeypatch):
    with taped(deck, "record", tmp_path / "a.tape.yaml") as cell:
        uuid.uuid4()
        monkeypatch.setattr(
            Cassette, "start_run", lambda *_: (_ for _ in ()).throw(OSError("disk full"))
        )
    assert "what this cell drew is not on the tape: disk full" in cell.report.warnings


def test_a_cell_with_its_pins_costs_little_more_than_one_without(deck, tmp_path):
    def cell(**options):
        with taped(deck, "record", tmp_path / "a.tape.yaml", options=options):
            pass

    bare = lambda: cell(no_pin=("clock", "sleep", "random", "timezone"))
    assert ratio(cell, bare, rounds=20) < 10  # measured: 1.3
