"""`--pace` wherever a notebook is replayed: the commands say it to the kernel, and the cell's own word does not win."""

import json

import pytest
from click.testing import CliRunner

from tape_jupyter import testing
from tape_jupyter.cli import tape
from tape_jupyter.cli.common import pace
from tape_jupyter.session.options import PACES
from tests.harness.notebook import notebook

SOURCE = """%load_ext tape_jupyter
import time, tape_jupyter as tape
@tape.tool
def look(name):
    time.sleep(0.6)
    return name"""
ASKING = "%%tape record --pace instant\nprint(look('a'))"
TIMED = """%%tape record
import subprocess
def now():
    return int(subprocess.run(['date', '+%s%N'], capture_output=True).stdout)
began = now()
shown = look('a')
waited = now() - began >= 550_000_000"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = notebook(tmp_path_factory.mktemp("pace") / "nb.ipynb", SOURCE, ASKING)
    done = CliRunner().invoke(tape, ["record", str(path)])
    assert done.exit_code == 0, done.output
    return path


def seconds(told):
    return json.loads(told.stdout)["cells"][1]["seconds"]


@pytest.mark.parametrize(
    "command", ["replay", "export", "rerun", "open", "why", "try", "sample", "bisect"]
)
def test_each_command_that_replays_takes_a_pace_and_says_so(command):
    said = CliRunner().invoke(tape, [command, "--help"]).output
    assert "--pace" in said and "instant" in said
    refused = CliRunner().invoke(tape, [command, "x.ipynb", "--pace", "ordr"])
    assert refused.exit_code == 2 and "recorded" in refused.output


def test_the_commands_know_the_paces_that_a_cell_knows():
    option = pace(lambda: None).__click_params__[0]
    assert tuple(option.type.choices) == PACES


@pytest.mark.slow
def test_a_replay_at_the_recorded_pace_takes_as_long_as_the_recording(recorded):
    told = CliRunner().invoke(tape, ["replay", str(recorded), "--pace", "recorded", "--json"])
    assert told.exit_code == 0, told.output
    assert seconds(told) >= 0.55
    run = testing.run_notebook(recorded, pace="recorded")
    assert run.good and run.cells[1].seconds >= 0.55


@pytest.mark.slow
def test_trials_wait_as_the_recording_did_where_that_is_wanted(recorded, tmp_path):
    results, words = tmp_path / "rows", ["--pace", "recorded", "--json"]
    tried = CliRunner().invoke(tape, ["try", str(recorded), "--results", str(results), *words])
    assert tried.exit_code == 0 and json.loads(tried.stdout.splitlines()[0])["seconds"] >= 0.55
    step = CliRunner().invoke(tape, ["bisect", str(recorded), "--step", *words])
    assert step.exit_code == 0 and json.loads(step.stdout)["seconds"] >= 0.55


def test_a_search_for_a_cause_waits_as_the_recording_did(tmp_path):
    path = notebook(tmp_path / "nb.ipynb", SOURCE, TIMED)
    assert CliRunner().invoke(tape, ["record", str(path)]).exit_code == 0
    listed = CliRunner().invoke(tape, ["calls", str(path), "--json"])
    (call,) = [each["call"] for each in json.loads(listed.stdout)]
    override = ["override", str(path), call, "--value", '"b"', "--take", "fixed"]
    assert CliRunner().invoke(tape, override).exit_code == 0
    words = ["why", str(path), "--good", "fixed", "--bad", "main", "--pace", "recorded"]
    found = CliRunner().invoke(tape, [*words, "--check", "waited and shown == 'b'"])
    assert found.exit_code == 0 and "look" in found.output, found.output
