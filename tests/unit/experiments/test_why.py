"""`tape why NB --good A --bad B --check EXPR`: the replies that make the difference, found by offline replays."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.cli import tape as command
from tape_jupyter.experiments.check import Check
from tape_jupyter.experiments.trials.needed import needed
from tests.harness.notebook import clean_env, notebook
from tests.harness.support import digest
from tests.harness.tapes import ASK

TOOL = """import tape_jupyter as tape
@tape.tool
def stock(item):
    return {"item": item, "left": 0}"""
ASKS = """%%tape record
said = [ask(f"Question {n}: good or bad?") for n in range(6)]
left = stock("lamp")["left"]
happy = said[1] == said[4] == "good"
print(said, left)"""


@pytest.fixture
def path(tmp_path, provider, monkeypatch):
    """A notebook, recorded, and a take `fixed` in which every second thing is answered otherwise."""
    wanted = clean_env(tmp_path)
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    setup = "%load_ext tape_jupyter\n" + ASK.replace("URL", provider.url)
    later = '%%tape record\nfollow = ask(f"They said {said[5]}")\nprint(follow)'
    path = notebook(tmp_path / "shop.ipynb", setup, TOOL, ASKS, later, "assert left < 5")
    assert run("record", path).exit_code == 0
    base = tape.open(base_of(path))
    asked = [entry for entry in base.calls if entry.head()["kind"] == "model"]
    for number in (1, 3, 4):
        base.override(asked[number], text="good", take="fixed")
    base.override(
        next(e for e in base.calls if e.head()["kind"] == "tool"),
        value={"item": "lamp", "left": 7},
        take="fixed",
    )
    provider.requests.clear()
    return path


def base_of(path):
    return path.with_suffix(".tapes") / "main.tape.yaml"


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def why(path, check, *words, good="fixed", bad="main"):
    return run("why", path, "--good", good, "--bad", bad, "--check", check, *words)


def test_a_joint_cause_of_two_replies_is_found_offline_and_nothing_is_written(path, provider):
    tapes = path.with_suffix(".tapes")
    before = {file: digest(file) for file in (path, *tapes.rglob("*.yaml"))}
    done = why(path, "happy", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    calls = [
        entry.id for entry in tape.open(base_of(path)).calls if entry.head()["kind"] == "model"
    ]
    assert told["minimal"] == [calls[1], calls[4]]
    assert told["layers"] == {"model": "flips", "tool stock": "stays"}
    assert list(told) == ["minimal", "within", "layers", "trials", "unresolved", "seconds"]
    assert {place["call"] for place in told["within"]} == {calls[1], calls[4]}
    assert all(place["good"] == "good" for place in told["within"])
    assert provider.requests == [] and told["trials"] <= 32
    assert {file: digest(file) for file in (path, *tapes.rglob("*.yaml"))} == before


def test_a_tool_that_makes_a_later_cell_raise_is_named(path):
    done = why(path, "cell:5", good="main", bad="fixed")
    assert done.exit_code == 0, done.output
    assert "1 difference makes `cell:5` fail in fixed, of 4 between main and fixed" in done.output
    assert "tool stock" in done.output and "value.left" in done.output
    # The calls that are the same are told apart by what they were answered.
    unchanged = [line for line in done.output.splitlines() if line.startswith("     ")]
    assert any('model claude-sonnet-4-5 · "You wrote' in line for line in unchanged)
    assert 'tool stock · stock(item="lamp")' in done.output


@pytest.mark.spread(4)
@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("1 ==", "not a Python expression"),
        ("nobody > 1", "the check raised NameError"),
        ("True", "always true or always false"),
        ("left == left", "always true"),
        ("left != left", "always false"),
        ("left == 0", "holds in main, not in fixed"),
        ("cell:9", "code cells are 1 to 5"),
    ],
)
def test_a_check_that_tells_nothing_is_one_line_and_no_search(path, check, said):
    done = why(path, check)
    assert (
        done.exit_code == 2 and said in done.output and len(done.output.strip().splitlines()) == 1
    ), done.output


def test_a_recording_that_is_not_there_or_of_another_notebook_is_one_line(path, tmp_path):
    done = why(path, "happy", good="nobody")
    assert (
        done.exit_code == 2
        and "no take, cassette or run 'nobody'" in done.output
        and "fixed" in done.output
    )
    other = notebook(tmp_path / "other.ipynb", "%load_ext tape_jupyter", "%%tape record\nprint(1)")
    assert run("record", other).exit_code == 0
    done = why(path, "happy", good=base_of(other))
    assert done.exit_code == 2 and "different notebooks" in done.output


def test_a_module_beside_the_notebook_does_not_stand_in_for_the_standard_library(path):
    for name in ("queue", "bisect", "socket"):
        (path.parent / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    done = why(path, "happy", "--json")
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["minimal"]) == 2


def test_what_only_the_good_run_asked_later_is_answered_as_there(path, provider):
    asked = [entry for entry in tape.open(base_of(path)).calls if entry.head()["kind"] == "model"]
    tape.open(base_of(path)).override(asked[5], text="good", take="other")
    run("rerun", path, "--take", "other", "--on-divergence", "live")
    assert len(provider.requests) == 1
    provider.requests.clear()
    done = why(path, "'good' in said[5]", "--json", good="other")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["minimal"] == [asked[5].id] and told["unresolved"] == 0 and provider.requests == []


@pytest.fixture
def asks_anew(path):
    """A take in which a reply is another, so that the later cell asks what was never recorded."""
    asked = [entry for entry in tape.open(base_of(path)).calls if entry.head()["kind"] == "model"]
    tape.open(base_of(path)).override(asked[5], text="good", take="other")
    return asked[5].id


NEW = "'good' in said[5] and bool(follow)"


@pytest.mark.night
def test_a_request_on_neither_tape_is_said_and_stays_unsent(path, asks_anew, provider):
    done = why(path, NEW, good="other")
    assert done.exit_code == 2 and "UnmatchedCall" in done.output and provider.requests == []


def test_cells_below_what_the_check_reads_are_not_run():
    cells = ["a = ask('x')", "b = a + 1", "c = ask(f'about {b}')", "print(c)"]
    assert needed(Check.parse("a == 1"), cells) == 1
    assert needed(Check.parse("b > 1"), cells) >= 2
    assert needed(Check.parse("'x' in outputs[3]"), cells) == 4
    assert needed(Check.parse("n"), ["n = []", "n.append(1)", "m = 2"]) == 2
    assert needed(Check.parse("n"), ["n = 1", "m = 2", "exec('n = 3')"]) == 3


def test_asked_live_it_is_asked_once_and_kept_in_a_take(path, asks_anew, provider):
    live = ("--on-divergence", "live", "--max-calls", 1)
    done = why(path, NEW, "--json", *live, good="other")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["minimal"] == [asks_anew]
    assert len(provider.requests) == 1 and "why" in tape.open(base_of(path)).takes()


@pytest.mark.night
def test_no_more_is_asked_than_was_said(path, asks_anew, provider):
    done = why(path, NEW, "--on-divergence", "live", good="other")
    assert done.exit_code == 2 and "--max-calls N or --max-cost USD" in done.output
    done = why(path, NEW, "--on-divergence", "live", "--max-calls", 0, good="other")
    assert done.exit_code == 2 and "--max-calls 0: no more calls" in done.output
    done = why(path, NEW, "--on-divergence", "live", "--max-cost", "0.000001", good="other")
    assert done.exit_code == 2 and "--max-cost" in done.output
    assert provider.requests == []


@pytest.mark.night
def test_stale_it_gets_the_nearest_reply(path, asks_anew, provider):
    done = why(path, NEW, "--json", "--on-divergence", "stale", good="other")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["minimal"] == [asks_anew] and provider.requests == []
