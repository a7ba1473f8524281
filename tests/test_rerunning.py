"""`tape rerun NB`: the notebook whole, in a fresh kernel, on a take; the notebook and its recording are not written."""

import json
import os
from dataclasses import replace

import nbformat
import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.cli import tape as command
from tests.notebook import clean_env, notebook
from tests.support import digest
from tests.tapes import ASK

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
    path = notebook(tmp_path / "support.ipynb", "%load_ext tape_jupyter\n" + ASK.replace("URL", provider.url), *CELLS)
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
    assert done.exit_code == 1 and "-mood: negative" in done.output and "+mood: positive" in done.output
    assert "stopped: [3]" in done.output and provider.requests == []
    assert (digest(path), digest(base_of(path))) == before


def test_what_goes_live_is_on_the_take_and_the_outputs_go_where_they_are_wanted(path, provider, tmp_path):
    before, new = (digest(path), digest(base_of(path))), tmp_path / "support.angry.ipynb"
    done = run("rerun", path, "--take", "angry", "--on-divergence", "live", "--output", new)
    assert done.exit_code == 0 and len(provider.requests) == 1, done.output
    assert (digest(path), digest(base_of(path))) == before
    shown = [cell.outputs[0].text for cell in nbformat.read(new, as_version=4).cells[1:]]
    assert shown[0].startswith("mood: positive") and shown[2] == "unrelated\n"

    again = run("rerun", path, "--take", "angry", "--json")
    told = json.loads(again.stdout)
    assert again.exit_code == 0 and told["ok"] and len(provider.requests) == 1, "the take asks nobody"
    assert [cell["same"] for cell in told["comparison"]["cells"]] == [True, False, False, True]
    assert {span["mark"] for span in told["comparison"]["spans"]} == {"changed", "added"}
    assert run("rerun", path, "--output", new).exit_code == 2, "nothing is overwritten"


def test_a_take_that_is_not_there_is_named(path):
    done = run("rerun", path, "--take", "nobody")
    assert done.exit_code == 2 and "there are: angry" in done.output


def test_without_takes_it_says_how_to_make_one(path):
    for take in tape.open(base_of(path)).takes():
        tape.open(base_of(path)).take(take).delete()
    done = run("rerun", path)
    assert done.exit_code == 2 and "override a reply first" in done.output
