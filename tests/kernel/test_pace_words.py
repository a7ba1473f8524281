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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = notebook(tmp_path_factory.mktemp("pace") / "nb.ipynb", SOURCE, ASKING)
    done = CliRunner().invoke(tape, ["record", str(path)])
    assert done.exit_code == 0, done.output
    return path


def seconds(told):
    return json.loads(told.stdout)["cells"][1]["seconds"]


@pytest.mark.parametrize("command", ["replay", "export", "rerun", "open"])
def test_each_command_that_replays_takes_a_pace_and_says_so(command):
    said = CliRunner().invoke(tape, [command, "--help"]).output
    assert "--pace" in said and "instant" in said
    refused = CliRunner().invoke(tape, [command, "x.ipynb", "--pace", "ordr"])
    assert refused.exit_code == 2 and "recorded" in refused.output


def test_the_commands_know_the_paces_that_a_cell_knows():
    option = pace(lambda: None).__click_params__[0]
    assert tuple(option.type.choices) == PACES


def test_a_replay_at_the_recorded_pace_takes_as_long_as_the_recording(recorded):
    told = CliRunner().invoke(tape, ["replay", str(recorded), "--pace", "recorded", "--json"])
    assert told.exit_code == 0, told.output
    assert seconds(told) >= 0.55
    run = testing.run_notebook(recorded, pace="recorded")
    assert run.good and run.cells[1].seconds >= 0.55
