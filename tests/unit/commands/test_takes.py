"""`takes`, `rename`, `delete` and `diff` as people type them, on the command line."""

import json

import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.commands import takes
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import TapeUsageError
from tests.harness.tapes import answered, churn


@pytest.fixture
def path(tmp_path):
    path = churn(tmp_path)
    main = tape.open(path)
    take = main.override(main.calls[1], reply=answered("East"), take="angry")
    take.override(main.calls[1], reply=answered("West"))
    return path


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def test_the_takes_are_listed_with_what_they_change_and_what_they_are_of(path):
    said = run("takes", path).output.splitlines()
    assert [line.split()[0] for line in said] == ["angry", "angry-2"]
    assert (
        "1 by hand" in said[0]
        and "(take of: main)" in said[0]
        and "(take of: main > angry)" in said[1]
    )
    (told,) = json.loads(run("takes", path, "--json").output)
    assert told["takes"][0]["overrides"] == 1 and told["takes"][0]["of"] == ["main"]


def test_a_take_that_cannot_be_read_is_listed_with_the_reason(path):
    path.write_text(path.read_text().replace("South", "Souse"))
    assert (
        "angry" in run("takes", path).output
        and "those were changed since" in run("takes", path).output
    )


def test_takes_are_renamed_and_put_aside(path):
    assert (
        "take angry-2 is called calm now" in run("takes", path, "rename", "angry-2", "calm").output
    )
    assert run("takes", path, "rename", "calm", "angry").exit_code == 2
    assert "was moved to" in run("takes", path, "delete", "calm").output
    assert takes.act(path, ["delete", "angry"])[0].endswith("brings it back")
    assert "has no takes" in run("takes", path).output


@pytest.mark.parametrize(
    "words", [["explode"], ["rename", "a"], ["delete"], ["diff", "main"], ["delete", "../main"]]
)
def test_words_that_make_no_sense_are_usage_errors(path, words):
    assert run("takes", path, *words).exit_code == 2
    with pytest.raises(TapeUsageError):
        takes.act(path, words)


def test_two_takes_or_a_take_and_its_cassette_are_compared(path, tmp_path):
    told = run("diff", path, "angry")
    assert (
        told.exit_code == 1
        and "-      text: South" in told.output
        and "+      text: East" in told.output
    )
    assert "+      text: West" in run("takes", path, "diff", "angry", "angry-2").output
    assert run("diff", path, path).exit_code == 0
    assert json.loads(run("diff", path, "angry", "--json").output)[0]["what"] == "changed"
    assert run("diff", path, "no-such").exit_code == 2
    (tmp_path / "churn.ipynb").write_text("{}")
    assert run("diff", tmp_path / "churn.ipynb", "angry").exit_code == 1
