"""What is saved below a taped cell for a front end that draws spans: rows without bodies, and where the rest lies."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.session import saved_output
from tape_jupyter.session.cell import ReportRow
from tape_jupyter.providers.registry import Facts, Usage
from tests.spanned import Recording, answered, asked, tool


def over(tape, run="", served=()):
    """A cell that is over, as far as what is saved of it asks."""
    return SimpleNamespace(
        cassette=Cassette.open(tape.cassette.path),
        run=run,
        served=list(served),
        at=datetime.now(UTC),
    )


def row():
    """A call as the cell's report has it."""
    return ReportRow("c", "model", "claude-sonnet-5", Facts(usage=Usage(2, 1)))


def test_a_recorded_cell_has_its_own_rows_the_path_and_the_digest(tmp_path):
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    tape = Recording(path)
    tape.run(title="other")
    tape.add(asked("o"), answered("other"))
    run = tape.run("bbbb", title="classify")
    tape.add(asked("q"), answered("negative"))
    made = saved_output.bundle(
        saved_output.spans_of(over(tape, run)), [row()], "record", tmp_path / "n.ipynb"
    )
    assert made["page"]["name"] == ["[2] classify", '"negative"'] and made["page"]["total"] == 2
    assert (made["path"], made["cassette"], made["take"], made["run"]) == (
        "n.tapes/main.tape.yaml",
        "main",
        "",
        run,
    )
    assert (made["bytes"], made["sha256"]) == (
        path.stat().st_size,
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )
    assert (
        made["session"]["totals"]["calls"] == 1
        and made["title"] == "[2] classify"
        and made["version"] == 1
    )


def test_a_replayed_cell_has_the_rows_it_was_played(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    tape.run()
    entry = tape.add(asked("q"), answered("negative"))
    cell = over(tape, served=[entry])
    assert [row.name for row in saved_output.spans_of(cell).rows()][1:] == ['"negative"']


def test_it_stays_small_whatever_the_cell_did(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run(title="many " * 50)
    for number in range(1500):
        tape.add(*tool("look", number, n=number, text="ü" * 200))
    made = saved_output.bundle(
        saved_output.spans_of(over(tape, run)), [row()] * 1500, "record", tmp_path / "n.ipynb"
    )
    assert len(json.dumps(made)) <= saved_output.MOST_BYTES
    assert (
        made["session"]["totals"]["calls"] == 1500
        and made["session"]["totals"]["tokens_in"] == 3000
    )
    assert made["page"]["total"] == 1501 and 20 < len(made["page"]["id"]) < 300


def test_a_cell_without_calls_or_a_tape_has_nothing_to_save(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    assert saved_output.spans_of(over(tape, run)) is None
    assert saved_output.spans_of(SimpleNamespace(cassette=None, run="", served=[])) is None


def test_a_cassette_that_lies_elsewhere_is_not_named_by_its_whole_path(tmp_path):
    tape = Recording(tmp_path / "far" / "n.tapes" / "main.tape.yaml")
    run = tape.run()
    tape.add(asked("q"), answered("negative"))
    assert (
        saved_output.bundle(
            saved_output.spans_of(over(tape, run)), [row()], "record", tmp_path / "near" / "n.ipynb"
        )
        is None
    )


def test_the_digest_of_a_file_that_grew_or_was_edited_is_that_of_what_it_holds(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(saved_output, "_SMALL", 0)
    path = Path(tmp_path / "file")
    for content in (b"", b"abc", b"abc" * 5000, b"abc" * 9000, b"xyz", b"xyz" * 9000, b"q" * 27000):
        path.write_bytes(content)
        assert saved_output.digest_of(path) == (len(content), hashlib.sha256(content).hexdigest())
