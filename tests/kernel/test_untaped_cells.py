"""Cells that ran untaped in a notebook whose other cells are taped: a replay of the whole runs them as they ran."""

import nbformat
import pytest
from click.testing import CliRunner
from nbclient import NotebookClient
from tape_jupyter import cli
from tape_jupyter.headless import run as headless_run
from tests.harness.notebook import clean_env, notebook
from tests.harness.provider import Provider
from tests.harness.tapes import ASK

LOAD = "%load_ext tape_jupyter"

SET_UP = """
import random
import numpy as np
import tape_jupyter as tape
random.seed(7); np.random.seed(7)
notes = ["first"]
@tape.tool
def read_notes():
    return list(notes)
def roll():
    return random.randint(1, 10**9), int(np.random.randint(10**9))
"""
TAPED = "%%tape record\nasked = ask('hello')\nbefore = [read_notes(), roll()]\nprint(before)"
BETWEEN = "notes.append('second')\nprint(read_notes(), roll())"
AFTER = "notes.append('third')\nprint(read_notes(), roll())"
TIMED = "%%time\nlater = read_notes(), roll()"
SHOWN = "print(later)"


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Record cells by Run All, each as its own line says; then the provider is gone. Gives the saved notebook."""
    for name, value in clean_env(tmp_path).items():
        monkeypatch.setenv(name, value)

    def record(*cells):
        with Provider(vary=True) as provider:
            path = notebook(
                tmp_path / "nb.ipynb", LOAD, SET_UP, ASK.replace("URL", provider.url), *cells
            )
            made = nbformat.read(path, as_version=4)
            NotebookClient(made, resources={"metadata": {"path": str(tmp_path)}}).execute()
        nbformat.write(made, path)
        return path

    return record


def replayed(path):
    """How each cell of the replay compares with what was saved, and what is said of it."""
    return [(run.status, run.messages) for run in headless_run.replaying(path)]


@pytest.mark.slow
def test_an_untaped_cell_runs_the_real_tool_and_draws_on_from_where_it_stood(recorded):
    cells = [BETWEEN, TAPED, BETWEEN, TAPED.replace("hello", "again"), AFTER]
    assert replayed(recorded(*cells)) == [("same", ())] * 8


@pytest.mark.slow
def test_a_cell_magic_in_an_untaped_cell_changes_nothing_of_that(recorded):
    path = recorded(TAPED, TIMED, SHOWN)
    assert replayed(path)[-1] == ("same", ())


@pytest.mark.slow
def test_a_recording_at_the_same_place_does_not_hold_an_untaped_cell(recorded):
    """Here the taped cell was the fifth that ran; today the fifth is the untaped one before it."""
    path = recorded(TAPED, AFTER)
    book = nbformat.read(path, as_version=4)
    moved = nbformat.v4.new_code_cell("extra = 1")
    drawn = nbformat.v4.new_code_cell(
        "import copy; state = random.getstate()\nprint(random.random())\nrandom.setstate(state)"
    )
    book.cells[3:3] = [drawn]
    book.cells.insert(0, moved)
    expected = __import__("random").Random(7).random()
    drawn.outputs = [nbformat.v4.new_output("stream", name="stdout", text=f"{expected}\n")]
    nbformat.write(book, path)
    assert {status for status, _ in replayed(path)} == {"same"}


def test_an_untaped_cell_may_not_ask_the_network_in_replay(recorded):
    path = recorded(TAPED)
    book = nbformat.read(path, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell("ask('never recorded')"))
    nbformat.write(book, path)
    status, said = replayed(path)[-1]
    assert status == "missed", said


def test_a_whole_session_that_was_recorded_replays_each_cell_from_the_tape(tmp_path, recorded):
    path = recorded("pass")
    book = nbformat.read(path, as_version=4)
    with Provider(vary=True) as provider:
        cells = [
            LOAD,
            "%tape record",
            SET_UP,
            ASK.replace("URL", provider.url),
            TAPED.partition("\n")[2],
            AFTER,
        ]
        book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        nbformat.write(book, path)
        NotebookClient(book, resources={"metadata": {"path": str(tmp_path)}}).execute()
    nbformat.write(book, path)
    assert {status for status, _ in replayed(path)} == {"same"}


def test_an_untaped_cell_that_keeps_the_clock_is_named_and_is_no_failure(recorded):
    path = recorded("import time\nstarted = time.time()", TAPED, "print(time.time() > started)")
    done = CliRunner().invoke(cli.tape, ["replay", str(path)])
    assert done.exit_code == 0, done.output
    assert "! [4] is not taped and reads the clock: `started`" in done.output.splitlines()
