"""`tape rerun NB`: the notebook whole, in a fresh kernel, on a take; the notebook and its recording are not written."""

import json
import os
from dataclasses import replace

import nbformat
import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.cli import tape as command
from tests.harness.notebook import clean_env, notebook
from tests.harness.support import digest
from tests.harness.tapes import ASK

CELLS = (
    '%%tape record\nmood = ask("Is this positive or negative? I cannot open it.")\nprint("mood:", mood)',
    '%%tape record\nprint("answer:", ask(f"Reply to a customer who is {mood}"))',
    'print("unrelated")',
)


@pytest.fixture
def path(tmp_path, provider, monkeypatch):
    """A notebook, recorded, and its classification overridden in the take `angry`."""
    wanted = clean_env(tmp_path)
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    path = notebook(
        tmp_path / "support.ipynb",
        "%load_ext tape_jupyter\n" + ASK.replace("URL", provider.url),
        *CELLS,
    )
    assert run("record", path).exit_code == 0
    base = tape.open(base_of(path))
    reply = base.calls[0].reply()
    body = b"".join(reply.chunks).replace(b"negative", b"positive")
    base.override(base.calls[0], reply=replace(reply, chunks=(body,), waits=(0.0,)), take="angry")
    provider.requests.clear()
    return path


def base_of(path):
    return path.with_suffix(".tapes") / "main.tape.yaml"


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def test_it_stops_at_a_divergence_with_exit_code_1(path, provider):
    before = digest(path), digest(base_of(path))
    done = run("rerun", path)
    assert (
        done.exit_code == 1
        and "-mood: negative" in done.output
        and "+mood: positive" in done.output
    )
    assert "stopped: [3]" in done.output and provider.requests == []
    assert (digest(path), digest(base_of(path))) == before


@pytest.mark.slow
def test_what_goes_live_is_on_the_take_and_the_outputs_go_where_they_are_wanted(
    path, provider, tmp_path
):
    before, new = (digest(path), digest(base_of(path))), tmp_path / "support.angry.ipynb"
    done = run("rerun", path, "--take", "angry", "--on-divergence", "live", "--output", new)
    assert done.exit_code == 0 and len(provider.requests) == 1, done.output
    assert (digest(path), digest(base_of(path))) == before
    shown = [cell.outputs[0].text for cell in nbformat.read(new, as_version=4).cells[1:]]
    assert shown[0].startswith("mood: positive") and shown[2] == "unrelated\n"

    again = run("rerun", path, "--take", "angry", "--json")
    told = json.loads(again.stdout)
    assert again.exit_code == 0 and told["ok"] and len(provider.requests) == 1, (
        "the take asks nobody"
    )
    assert [cell["same"] for cell in told["comparison"]["cells"]] == [True, False, False, True]
    spans = {span["mark"]: span["note"] for span in told["comparison"]["spans"]}
    assert set(spans) == {"changed", "added"} and " -> " in spans["changed"] and spans["added"]
    assert run("rerun", path, "--output", new).exit_code == 2, "nothing is overwritten"


def test_a_take_that_is_not_there_is_named(path):
    for words in (("--take", "nobody"), ("nobody",)):
        done = run("rerun", path, *words)
        assert done.exit_code == 2 and "there are: angry" in done.output


def test_without_takes_it_says_how_to_make_one(path):
    for take in tape.open(base_of(path)).takes():
        tape.open(base_of(path)).take(take).delete()
    done = run("rerun", path)
    assert done.exit_code == 2 and "override a reply first" in done.output


@pytest.mark.slow
def test_a_take_of_one_cassette_plays_in_a_notebook_of_two_and_the_other_is_as_recorded(
    tmp_path, path, provider
):
    two = notebook(
        tmp_path / "two.ipynb", "%load_ext tape_jupyter\n" + ASK.replace("URL", provider.url),
        "%%tape record\nprint('one:', ask('one'))", "%%tape record other\nprint('two:', ask('two'))",
    )  # fmt: skip
    assert run("record", two).exit_code == 0
    one, other = (
        json.loads(run("calls", two, "-n", name, "--json").output)[0]["call"]
        for name in ("main", "other")
    )
    assert (
        "main.tape.yaml is as it was"
        in run("override", two, one, "--text", "East", "--take", "fix").output
    )
    assert (
        "other.tape.yaml is as it was"
        in run("override", two, other, "--text", "West", "--take", "fix2").output
    )
    for take, cell, said in (("fix", 2, "one: East"), ("fix2", 3, "two: West")):
        replayed = json.loads(run("replay", two, "--take", take, "--json").output)["cells"]
        assert [each["number"] for each in replayed if each["status"] == "differs"] == [cell]
        assert f"+{said}" in replayed[cell - 1]["said"]
        done = run("rerun", two, "--take", take)
        assert done.exit_code == 0 and f"+{said}" in done.output, done.output
    assert "is called calm now" in run("takes", two, "rename", "fix2", "calm").output
    assert "was moved to" in run("takes", two, "discard", "calm").output
    assert "take calm is back" in run("takes", two, "undo", "calm").output
    nobody = run("override", two, "nobody", "--text", "x")
    assert nobody.exit_code == 2
    assert (
        "no call 'nobody' in any cassette of the notebook: main.tape.yaml, other.tape.yaml"
        in nobody.output
    )
