"""What is saved below a taped cell for a front end that draws spans: rows without bodies, and where the rest lies."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.session import saved_output
from tests.harness.spanned import Recording, answered, asked, tool


def over(tape, run="", served=()):
    """A cell that is over, as far as what is saved of it asks."""
    return SimpleNamespace(
        cassette=Cassette.open(tape.cassette.path),
        recording=SimpleNamespace(run=run),
        execution=SimpleNamespace(played=list(served)),
        at=datetime.now(UTC),
    )


def saved(tape, tmp_path, run="", served=(), mode="record"):
    made = saved_output.on_tape(over(tape, run, served))
    return saved_output.bundle(made, mode, tmp_path / "n.ipynb")


def names(tape, told):
    calls = saved_output.calls_named(tape.cassette, told)
    return [
        row.name for row in saved_output.spans_of_run(tape.cassette, calls[0].run, calls).rows()
    ]


def test_a_recorded_cell_names_its_own_calls_and_where_they_lie(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    tape.run(title="other")
    tape.add(asked("o"), answered("other"))
    run = tape.run("bbbb", title="classify")
    tape.add(asked("q"), answered("negative"))
    made = saved(tape, tmp_path, run)
    assert names(tape, made) == ["[2] classify", '"negative"']
    assert (made["path"], made["cassette"], made["take"]) == ("n.tapes/main.tape.yaml", "main", "")
    assert (made["calls"], made["title"], made["mode"]) == ([[run, "0"]], "[2] classify", "record")
    assert made["version"] == 2


def test_a_replayed_cell_says_replay_where_its_recording_says_record(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    entry = tape.add(asked("q"), answered("negative"))
    tape.end()
    for mode, note in (("", "record"), ("replay", "replay")):
        shown = saved_output.spans_of_run(tape.cassette, run, [entry], None, mode)
        cell, call = list(shown.rows())
        assert cell.note == note
        assert not mode or cell.end - cell.start == call.end - call.start, "not the recording's"


def test_the_number_of_a_cell_is_the_one_beside_it_now(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run("bbbb", title="classify", count=9)
    tape.add(asked("q"), answered("negative"))
    made = saved_output.on_tape(over(tape, run))
    assert saved_output.bundle(made, "replay", tmp_path / "n.ipynb", 5)["title"] == "[5] classify"


def test_the_time_of_a_cell_is_that_of_its_own_run(tmp_path):
    """A call that a later run answered, minutes after, makes the cell no longer."""
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    first = tape.add(asked("q"), answered("negative"))
    tape.end()
    tape.clock += 1000
    tape.run("cccc")
    later = tape.add(asked("other"), answered("positive"))
    made = saved_output.on_tape(over(tape, run, served=[first, later]))
    cell = next(iter(made.spans.rows()))
    assert cell.end - cell.start < 20


def test_a_replayed_cell_names_the_calls_it_was_played_and_no_others(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    entries = [tape.add(asked(str(n)), answered(f"reply {n}")) for n in range(5)]
    made = saved(tape, tmp_path, served=[*entries[:2], entries[3]], mode="replay")
    assert made["calls"] == [[run, "0-1,3"]]
    assert names(tape, made)[1:] == ['"reply 0"', '"reply 1"', '"reply 3"']


def test_it_is_as_small_for_thousands_of_calls_as_for_one(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run(title="many " * 50)
    for number in range(1500):
        tape.add(*tool("look", number, n=number, text="ü" * 200))
    made = saved(tape, tmp_path, run)
    assert len(json.dumps(made)) < 600
    assert len(saved_output.calls_named(tape.cassette, made)) == 1500


def test_what_is_recorded_elsewhere_changes_nothing_and_an_edit_of_its_calls_does(tmp_path):
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    tape = Recording(path)
    run = tape.run()
    tape.add(asked("q"), answered("negative"))
    made = saved(tape, tmp_path, run)
    tape.run("bbbb", title="classify")
    tape.add(asked("o"), answered("other"))
    assert saved(tape, tmp_path, run) == made
    path.write_text(path.read_text().replace("negative", "positive"))
    again = saved(tape, tmp_path, run)
    assert again["sha256"] != made["sha256"] and {**again, "sha256": ""} == {**made, "sha256": ""}


def test_outputs_that_were_saved_with_their_rows_still_name_their_calls(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    entry = tape.add(asked("q"), answered("negative"))
    told = {"version": 1, "run": run, "page": {"id": [run, f"{run}/{entry.id}", f"{run}/#1"]}}
    assert [each.id for each in saved_output.calls_named(tape.cassette, told)] == [entry.id]


def test_places_that_are_nonsense_name_nothing(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    tape.add(asked("q"), answered("negative"))
    for places in (
        None,
        "x",
        [[run]],
        [[run, "-"]],
        [[run, "7"]],
        [["r-none", "0"]],
        [[run, 3]],
        5,
    ):
        assert saved_output.calls_at(tape.cassette, places) == []


def test_a_cell_without_calls_or_a_tape_has_nothing_to_save(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    assert saved_output.on_tape(over(tape, run)) is None
    assert saved_output.on_tape(SimpleNamespace(cassette=None)) is None


def test_a_cassette_that_lies_elsewhere_is_not_named_by_its_whole_path(tmp_path):
    tape = Recording(tmp_path / "far" / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    tape.add(asked("q"), answered("negative"))
    made = saved_output.on_tape(over(tape, run))
    assert saved_output.bundle(made, "record", tmp_path / "near" / "n.ipynb") is None
