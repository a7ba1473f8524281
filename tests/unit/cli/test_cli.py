"""The command line: what it prints, and the exit codes programs go by."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tape_jupyter import __version__
from tape_jupyter.cassette.cell_sources import digests
from tape_jupyter.cli import tape
from tests.harness.notebook import ROOT, clean_env, notebook
from tests.harness.provider import Provider
from tests.harness.tapes import ASK, Recorder, answered, asked, churn


@pytest.fixture(autouse=True)
def newcomer(tmp_path, monkeypatch):
    wanted = clean_env(tmp_path)
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)


def run(*words):
    return CliRunner().invoke(tape, [str(word) for word in words])


COMMANDS = [
    "record",
    "replay",
    "rerun",
    "show",
    "calls",
    "gaps",
    "prune",
    "override",
    "takes",
    "diff",
    "merge",
    "resend",
    "import",
    "rows",
    "why",
    "sample",
    "try",
    "bisect",
    "export",
    "verify",
    "open",
    "doctor",
    "demo",
    "completion",
]


def test_help_names_every_command_and_shows_examples():
    said = run("--help").output
    assert [
        line.split()[0]
        for line in said.split("Commands:\n")[1].splitlines()
        if line.startswith("  ")
    ][: len(COMMANDS)] == COMMANDS
    assert "tape replay churn.ipynb" in said
    assert run("--version").output == f"tape-jupyter {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_json_and_an_example(command):
    said = run(command, "--help")
    assert (
        said.exit_code == 0
        and "--json" in said.output
        and f"tape {command}" in said.output.split("Examples:")[1]
    )


@pytest.mark.parametrize(
    "words", [["frob"], ["show"], ["replay", "a", "b", "c"], ["show", "x", "--frob"]]
)
def test_words_that_make_no_sense_are_code_2_and_one_line(words):
    done = run(*words)
    assert done.exit_code == 2
    assert len(done.output.splitlines()) == 1 and done.stderr.startswith("tape: "), done.output
    assert "Usage: tape" in done.stderr


@pytest.mark.parametrize("words", [["completion"], ["rerun", "a.ipynb", "mine", "more"]])
def test_what_is_typed_wrong_stands_before_the_usage_in_one_line(words):
    done = run(*words)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1 and "\t" not in done.stderr
    assert ". Usage: tape " in done.stderr, done.stderr


def test_tape_alone_shows_its_help():
    assert "Commands:" in run().output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        ("[]", "it does not begin with {"),
        ('{"paragraphs": [], "name": "zeppelin"}', "it has no cells: another program wrote it"),
        (
            '{"nbformat": 9, "nbformat_minor": 0, "metadata": {}, "cells": []}',
            "pip install --upgrade nbformat",
        ),
        (None, "Is a directory"),
    ],
)
def test_what_is_no_notebook_is_one_line_that_says_why(tmp_path, content, said):
    path = tmp_path / "n.ipynb"
    path.mkdir() if content is None else path.write_text(content)
    for command in ("record", "replay") if path.is_file() else ("record",):
        done = run(command, path)
        assert (done.exit_code, len(done.output.splitlines())) == (2, 1), done.output
        assert said in done.output and "Errno" not in done.output


def test_a_cassette_that_no_cell_could_use_is_said_before_a_kernel_is_started(tmp_path):
    path = notebook(tmp_path / "a b.ipynb", "1")
    (tmp_path / "a b.tapes").mkdir()
    (tmp_path / "a b.tapes" / "main.tape.yaml").write_text("---\ntape: 99\n...\n")
    before = path.read_bytes()
    for command in ("record", "replay"):
        done = run(command, path)
        assert (done.exit_code, len(done.output.splitlines())) == (2, 1), done.output
        assert "made by a newer version (tape: 99); upgrade tape-jupyter" in done.output
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_said_before_a_call_is_paid_for(tmp_path, monkeypatch):
    path = notebook(tmp_path / "nb.ipynb", "1")
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != tmp_path)
    done = run("record", path)
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1), done.output
    assert "is read-only: copy the notebook to another folder. Nothing was run" in done.output


def test_a_notebook_that_was_renamed_alone_is_told_how_to_get_its_cassettes(tmp_path):
    notebook(tmp_path / "a b.ipynb", "1")
    Recorder(tmp_path / "old.tapes" / "main.tape.yaml").run(
        next(digests("1")), (asked("?"), answered("!"))
    )
    for command in ("record", "replay", "calls"):
        done = run(command, tmp_path / "a b.ipynb")
        assert (done.exit_code, len(done.output.splitlines())) == (2, 1), done.output
        assert "(in a terminal, in its folder: mv old.tapes 'a b.tapes')" in done.output


def test_what_is_nearly_a_notebook_is_told_which_is_meant(tmp_path):
    notebook(tmp_path / "shop.ipynb", "1")
    assert (
        "a folder, not a notebook; name one of its notebooks: shop.ipynb"
        in run("record", tmp_path).output
    )
    assert (
        "the notebook's name ends with .ipynb: shop.ipynb"
        in run("record", tmp_path / "shop").output
    )
    gone = tmp_path / "shp.ipynb"
    for command in ("record", "calls", "export", "rerun"):
        assert "there is no such notebook; beside it: shop.ipynb" in run(command, gone).output
    assert (
        "there is no such folder; beside it: shop.ipynb"
        in run("calls", tmp_path / "x.tapes").output
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tape", "No such command 'tape': did you mean takes? Usage"),
        ("replay nb.ipynb --pac", "No such option '--pac': did you mean --pace? Usage"),
        ("replay nb.ipynb --fast", "No such option '--fast'. Usage"),
    ],
)
def test_of_a_word_that_is_none_the_one_that_is_alike_is_named(words, said):
    assert said in run(*words.split()).output


@pytest.mark.parametrize("command", ["show", "calls", "gaps", "prune", "doctor"])
def test_a_notebook_that_is_not_there_is_said_to_be_missing_not_its_cassette(tmp_path, command):
    assert "none.ipynb: there is no such notebook" in run(command, tmp_path / "none.ipynb").output


@pytest.mark.parametrize("command", ["record", "replay", "show", "calls", "prune", "doctor"])
def test_a_file_that_is_not_there_is_code_2_and_one_line(tmp_path, command):
    done = run(command, tmp_path / "none.ipynb")
    assert done.exit_code == 2 and done.stderr.startswith("tape: ") and done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_notebook_without_calls_is_not_said_to_be_recorded(tmp_path):
    done = run("record", notebook(tmp_path / "n.ipynb", "1"))
    assert done.exit_code == 0 and "1 of 1 cell ran, outputs in " in done.stdout, done.output
    assert "no call was made, so there is no recording" in done.stdout
    assert (
        "it has no code cells: nothing was run"
        in run("record", notebook(tmp_path / "e.ipynb")).stdout
    )


def test_replay_of_a_notebook_that_was_never_recorded_says_how_to(tmp_path):
    done = run("replay", notebook(tmp_path / "n.ipynb", "1"))
    assert done.exit_code == 2 and "tape record" in done.stderr


def test_show_and_calls_for_people_and_for_programs(tmp_path):
    path = churn(tmp_path)
    assert "3 runs, 3 calls" in run("show", path).output
    assert "claude-sonnet-4-5" in run("calls", tmp_path / "churn.ipynb").output
    listed = json.loads(run("calls", path, "--json").output)
    assert [call["kind"] for call in listed] == ["model", "model", "tool"] and listed[0][
        "cassette"
    ] == str(path)
    assert json.loads(run("show", path, "--json").output)[0]["runs"][2]["outcome"] == "raised"
    one = json.loads(run("show", path, listed[0]["call"], "--json").output)
    assert one["reply"]["body"]["content"][0]["text"] == "South"
    assert '"Which region?"' in run("show", path, listed[0]["call"]).output
    assert run("show", path, "ffffffff").exit_code == 2


def test_a_cassette_of_one_name_can_be_asked_for(tmp_path):
    path = churn(tmp_path)
    path.with_name("alt.tape.yaml").write_bytes(path.read_bytes())
    assert run("calls", tmp_path / "churn.ipynb").output.count("lookup") == 2
    assert run("calls", tmp_path / "churn.ipynb", "-n", "alt").output.count("lookup") == 1
    assert run("calls", tmp_path / "churn.ipynb", "-n", "none").exit_code == 2


def test_a_broken_cassette_is_code_2_with_file_and_line(tmp_path):
    path = churn(tmp_path)
    path.write_text(path.read_text().replace("status: 200", "status: 99", 1))
    done = run("calls", path)
    assert done.exit_code == 2 and f"{path}:" in done.stderr
    assert run("doctor", path).exit_code == 1


def test_prune_tells_before_it_does(tmp_path):
    path = churn(tmp_path)
    assert "would drop 1 run " in run("prune", path, "--dry-run").output
    assert json.loads(run("prune", path, "--json").output)[0]["calls"] == 1
    assert "dropped 0 runs" in run("prune", path).output


def test_prune_finds_the_cassette_that_holds_the_run_to_go_back_to(tmp_path):
    """With several cassettes `--name` was needed: the first one refused a run of another."""
    path = churn(tmp_path)
    other = path.with_name("zwei.tape.yaml")
    path.rename(other)
    Recorder(path).run("cccc", (asked("Which?"), answered("East")))
    first = json.loads(run("show", other, "--json").output)[0]["runs"][0]["run"]
    book = tmp_path / "churn.ipynb"
    done = run("prune", book, "--back-to", first)
    assert done.exit_code == 0 and "zwei.tape.yaml" in done.output, done.output
    nowhere = run("prune", book, "--back-to", "r-none")
    assert nowhere.exit_code == 2
    assert "r-none is not a run of any cassette of the notebook: " in nowhere.stderr


def test_doctor_finds_this_environment_sound(tmp_path):
    done = run("doctor", churn(tmp_path))
    assert done.exit_code == 0, done.output
    assert {each["grade"] for each in json.loads(run("doctor", "--json").output)} <= {"ok", "note"}


@pytest.mark.slow
def test_record_then_replay_then_a_change_then_a_miss(tmp_path):
    with Provider(vary=True) as provider:
        path = notebook(
            tmp_path / "n.ipynb", ASK.replace("URL", provider.url), "print('said:', ask('one'))"
        )
        recorded = run("record", path)
    assert recorded.exit_code == 0, recorded.output
    assert "2 of 2 cells recorded" in recorded.stdout and "[2/2] ok" in recorded.stderr
    replayed = run("replay", path)
    assert (replayed.exit_code, "2 of 2 cells the same as saved" in replayed.stdout) == (0, True), (
        replayed.output
    )
    told = json.loads(run("replay", path, "--json").stdout)
    assert told["ok"] and [cell["status"] for cell in told["cells"]] == ["same", "same"]

    tape_file = tmp_path / "n.tapes" / "main.tape.yaml"
    said = json.loads(
        run(
            "show", path, json.loads(run("calls", path, "--json").output)[0]["call"], "--json"
        ).output
    )
    text = said["reply"]["body"]["content"][0]["text"]
    tape_file.write_text(tape_file.read_text().replace(text, "something else"))
    edited = run("replay", path)
    assert (
        edited.exit_code == 1
        and "+said: something else" in edited.stderr
        and "1 differs" in edited.stdout
    )
    strict = run("replay", path, "--strict")
    assert strict.exit_code == 1 and "Nothing was run" in strict.stderr

    path.write_text(path.read_text().replace("ask('one')", "ask('two')"))
    missed = run("replay", path)
    assert (
        missed.exit_code == 1 and "UnmatchedCall" in missed.stderr and "1 missed" in missed.stdout
    )


@pytest.mark.night
def test_a_boundary_that_goes_live_goes_to_a_take_and_a_frozen_tool_never_runs(tmp_path):
    tool = "import tape_jupyter as tape\n@tape.tool\ndef send(to):\n    open('sent', 'a').write(to)\n    return 'sent'"
    with Provider(vary=True) as provider:
        cells = (
            "%load_ext tape_jupyter",
            ASK.replace("URL", provider.url),
            tool,
            "print(ask('one'), send('ada'))",
        )
        path = notebook(tmp_path / "n.ipynb", *cells)
        assert run("record", path).exit_code == 0
        assert run("record", path, "--freeze", "tool:send").exit_code == 0
        base = (tmp_path / "n.tapes" / "main.tape.yaml").read_bytes()
        live = run("replay", path, "--live", "llm")
        assert live.exit_code == 1 and "1 differs" in live.stdout and "take: live (" in live.stdout
        told = json.loads(run("replay", path, "--live", "llm", "--json").stdout)
        assert told["takes"] == [str(tmp_path / "n.tapes" / "takes" / "main.live-2.tape.yaml")]
    assert (tmp_path / "sent").read_text() == "ada" and (
        tmp_path / "n.tapes" / "main.tape.yaml"
    ).read_bytes() == base
    played = run("replay", path, "--take", "live", "--json")
    assert json.loads(played.stdout)["cells"][-1]["status"] == "differs"
    assert run("replay", path).exit_code == 0
    for wrong in (
        ("--live", "model"),
        ("--live", "llm", "--freeze", "llm"),
        ("--take", "gone"),
        ("--stub", "send"),
    ):
        assert run("replay", path, *wrong).exit_code == 2


def test_python_m_and_both_names_are_the_same_program():
    done = subprocess.run(
        [sys.executable, "-m", "tape_jupyter", "--version"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout == f"tape-jupyter {__version__}\n"


def test_help_comes_at_once():
    """Heavy imports are late: nothing of IPython, nbclient, rich or the store for a usage text."""
    code = (
        "import sys; from tape_jupyter.cli import tape\n"
        "try: tape(['--help'])\n"
        "except SystemExit: pass\n"
        "print({'IPython', 'nbclient', 'rich', 'genai_prices', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.endswith("set()\n")


def test_a_mistyped_boundary_is_refused_before_a_kernel_starts(tmp_path):
    shutil.copytree(ROOT / "example_notebooks", tmp_path / "n", dirs_exist_ok=True)
    path = tmp_path / "n" / "01_record_and_replay.ipynb"
    for option, word in (("--freeze", "tool:lookup_costumer"), ("--live", "call:nope")):
        done = run("replay", path, option, word)
        assert done.exit_code == 2, done.output
        assert f"{option} {word}: no recorded call fits it" in done.stderr
        assert "Nothing was run" in done.stderr and len(done.output.splitlines()) == 1
