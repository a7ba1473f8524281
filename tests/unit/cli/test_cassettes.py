"""The commands about cassettes, as a shell sees them."""

import contextlib
import io
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cli import tape
from tests.harness.ordinary_user import ordinary_user
from tests.harness.tapes import Recorder, answered, asked, churn
from tests.harness.terminal import terminal


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
    assert done.exit_code == 0 and done.stdout.startswith(
        f"{ours.with_name('main-merged.tape.yaml')}: "
    )
    told = json.loads(
        run("merge", ours.parent.with_suffix(".ipynb"), theirs, "--json", "-n", "main").stdout
    )
    assert (
        told["path"].endswith("main-merged-2.tape.yaml")
        and told["only_b"]
        and not told["conflicts"]
    )


def test_a_conflict_is_code_1_and_a_file_that_is_there_code_2(branches):
    ours, theirs = branches
    theirs.write_text(theirs.read_text().replace("North", "West"))
    done = run("merge", ours, theirs)
    assert (
        done.exit_code == 1
        and "is not the same in both" in done.stdout
        and "Nothing was written" in done.stdout
    )
    assert run("merge", ours, theirs, "--prefer", "b").exit_code == 0
    assert run("merge", ours, theirs, "--prefer", "b", "-o", theirs).exit_code == 2


def test_what_is_done_to_takes_is_told_to_programs_too(tmp_path):
    path = churn(tmp_path)
    cassette = Cassette.open(path)
    cassette.override(cassette.calls[1], text="West", take="west")
    assert "done" in json.loads(run("takes", path, "default", "west", "--json").stdout)
    different = run("takes", path, "diff", "main", "west", "--json")
    assert different.exit_code == 1 and json.loads(different.stdout)[0]["what"] == "changed"


WORK = {
    "gaps": ("gaps", "A"), "diff": ("diff", "A", "B"), "prune": ("prune", "A", "--dry-run"),
    "merge": ("merge", "A", "B"),
}  # fmt: skip


def on_a_terminal(monkeypatch, *words):
    """What a command writes to a stderr that is a terminal."""
    with terminal(monkeypatch) as shown:
        with pytest.raises(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            tape.main([str(word) for word in words])
        return shown()


@pytest.mark.parametrize("word", WORK)
def test_long_work_shows_on_a_terminal_how_far_it_is_and_nowhere_else(monkeypatch, branches, word):
    said = [dict(zip("AB", branches, strict=True)).get(each, each) for each in WORK[word]]
    shown = on_a_terminal(monkeypatch, *said)
    assert any(what in shown for what in ("main.tape.yaml", "main-merged.tape.yaml", "calls"))
    assert "\x1b[2K" in shown  # and it is taken back
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not run(*said).stderr and run(*said).stdout
    assert not on_a_terminal(monkeypatch, *said, "--json")


def test_a_name_that_no_file_can_have_is_said_in_a_line(tmp_path):
    done = run("import", tmp_path / ("x" * 300 + ".json"))
    assert done.exit_code == 2 and len(done.output.splitlines()) == 1
    assert "name too long" in done.output


def test_recordings_that_may_not_be_looked_into_are_not_said_to_be_missing(tmp_path):
    """Who reads "record one" records, and pays, again."""
    tapes = churn(tmp_path).parent
    tapes.chmod(0)
    command = [*ordinary_user(), sys.executable, "-m", "tape_jupyter", "calls"]
    told = subprocess.run([*command, tapes.with_suffix(".ipynb")], capture_output=True, text=True)
    tapes.chmod(0o700)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == f"tape: {tapes}: cannot be read: Permission denied\n"
