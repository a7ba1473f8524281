"""`!curl ...` and `%pip install ...`: in replay the program is not run, and its output is there again."""

import pytest

from tests.harness.notebook import Kernel, notebook

LOAD = "%load_ext tape_jupyter"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shell")


@pytest.fixture(scope="module")
def cell(folder):
    """Runs a cell of a notebook in one kernel."""
    notebook(folder / "n.ipynb", LOAD)
    with Kernel(folder, {"TAPE_NOTEBOOK": str(folder / "n.ipynb")}) as kernel:
        assert kernel.execute(LOAD).ok
        yield kernel.execute


def test_a_program_that_may_go_to_the_network_is_not_run_again(cell, folder):
    work = "import os\n!python -c \"import os; print(os.getpid()); open('ran', 'a').write('x')\"\nprint(_exit_code)"
    live = cell(f"%%tape record\n{work}")
    assert live.ok and (folder / "ran").read_text() == "x"
    played = cell(f"%%tape replay\n{work}")
    assert played.ok and played.stdout == live.stdout and live.stdout.strip().endswith("\n0")
    assert (folder / "ran").read_text() == "x"
    text = (folder / "n.tapes" / "main.tape.yaml").read_text()
    assert "shell" in text and "command" in text


def test_its_names_are_put_in_and_its_exit_code_is_the_same(cell):
    work = "who = 'ada'\n!python -c \"import sys; print(*sys.argv[1:]); sys.exit(3)\" {who} $who\nprint(_exit_code)"
    live, played = cell(f"%%tape record\n{work}"), cell(f"%%tape replay\n{work}")
    assert live.stdout == played.stdout and live.stdout.split() == ["ada", "ada", "3"]


def test_another_command_is_a_miss(cell):
    assert cell("%%tape record\n!python -c 'print(1)'").ok
    missed = cell("%%tape replay\n!python -c 'print(2)'")
    assert missed.ename == "UnmatchedCall" and "print(1)" in missed.evalue


def test_pip_is_played_wherever_python_lies(cell):
    live = cell("%%tape record\n%pip --version")
    played = cell("%%tape replay\n%pip --version")
    assert live.stdout == played.stdout and live.stdout.startswith("pip ")


def test_what_stays_on_the_machine_runs_each_time_and_untaped_cells_are_as_ever(cell, folder):
    work = "!echo again >> log.txt; ls log.txt"
    assert cell(f"%%tape record\n{work}").stdout == cell(f"%%tape replay\n{work}").stdout
    assert (folder / "log.txt").read_text() == "again\n" * 2
    n = cell("x = 'plain'\n!python -c \"print('{x}')\"\n_exit_code")
    assert n.ok and n.stdout.strip() == "plain"


def test_a_command_in_the_background_is_refused_as_ever(cell):
    assert cell("%%tape record\n!sleep 1 &").ename == "OSError"
