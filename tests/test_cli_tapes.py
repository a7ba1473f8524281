"""The commands about cassettes, as a shell sees them."""

import json

import pytest
from click.testing import CliRunner

from tape_jupyter.cassette import Cassette
from tape_jupyter.cli import tape
from tests.tapes import Recorder, answered, asked, churn


def run(*words):
    return CliRunner().invoke(tape, [str(word) for word in words])


@pytest.fixture
def branches(tmp_path):
    ours, theirs = churn(tmp_path / "ours"), tmp_path / "theirs.tape.yaml"
    theirs.write_bytes(ours.read_bytes())
    Recorder(theirs, "s9").run("cccc", (asked("Theirs"), answered("x")))
    return ours, theirs


def test_merge_says_where_the_result_lies_and_what_is_in_it(branches):
    ours, theirs = branches
    done = run("merge", ours, theirs)
    assert done.exit_code == 0 and done.stdout.startswith(f"{ours.with_name('main-merged.tape.yaml')}: ")
    told = json.loads(run("merge", ours.parent.with_suffix(".ipynb"), theirs, "--json", "-n", "main").stdout)
    assert told["path"].endswith("main-merged-2.tape.yaml") and told["only_b"] and not told["conflicts"]


def test_a_conflict_is_code_1_and_a_file_that_is_there_code_2(branches):
    ours, theirs = branches
    theirs.write_text(theirs.read_text().replace("North", "West"))
    done = run("merge", ours, theirs)
    assert done.exit_code == 1 and "is not the same in both" in done.stdout and "Nothing was written" in done.stdout
    assert run("merge", ours, theirs, "--prefer", "b").exit_code == 0
    assert run("merge", ours, theirs, "--prefer", "b", "-o", theirs).exit_code == 2


def test_what_is_done_to_takes_is_told_to_programs_too(tmp_path):
    path = churn(tmp_path)
    cassette = Cassette.open(path)
    cassette.override(cassette.calls[1], text="West", take="west")
    assert "done" in json.loads(run("takes", path, "default", "west", "--json").stdout)
    different = run("takes", path, "diff", "main", "west", "--json")
    assert different.exit_code == 1 and json.loads(different.stdout)[0]["what"] == "changed"
