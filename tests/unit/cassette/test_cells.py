"""How the %%tape line is read and taken off. What IPython then makes of the cell: tests/kernel."""

from types import SimpleNamespace

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.dataflow.tracing.running_cells import count_running_cells
from tape_jupyter.jupyter.cell_runner import rejection
from tape_jupyter.jupyter.line_taker import LineTaker


@pytest.fixture
def manager():
    manager = TransformerManager()
    taker = LineTaker(SimpleNamespace(input_transformers_cleanup=manager.cleanup_transforms))
    manager.cleanup_transforms.append(taker)
    manager.taker = taker
    return manager


@pytest.mark.parametrize(
    ("cell", "seen"),
    [
        ("%%tape record\nx = 1\n", "\nx = 1\n"),
        ("%%tape record\n\n\nx = 1\n", "\n\n\nx = 1\n"),
        ("\n\n%%tape record\nx = 1\n", "\nx = 1\n"),
        ("  %%tape record\n  x = 1\n", "\nx = 1\n"),
        ("%%tape record\n    x = 1\n    y = 2\n", "\nx = 1\ny = 2\n"),
        ("%%tape record\n>>> x = 1\n", "\nx = 1\n"),
        ("%%tape record", "\n"),
        ("%%tape\nx = 1\n", "\nx = 1\n"),
        ("%%tape record\n\n%%time\nx\n", "get_ipython().run_cell_magic('time', '', 'x\\n')\n"),
        ("%%taper record\nx\n", "get_ipython().run_cell_magic('taper', 'record', 'x\\n')\n"),
        ("x = 1\n%%tape record\n", "x = 1\nget_ipython().run_line_magic('%tape', 'record')\n"),
    ],
)
def test_the_line_is_taken_off_and_the_others_keep_their_numbers(manager, cell, seen):
    assert manager.transform_cell(cell) == seen


def test_taking_the_line_off_changes_nothing_else(manager):
    for _ in range(2):
        assert manager.transform_cell("%%tape record\nx = 1\n") == "\nx = 1\n"


@pytest.mark.parametrize(
    ("cell", "line", "source"),
    [
        ("%%tape record demo\nx = 1\ny", " record demo\n", "x = 1\ny"),
        ("\n  %%tape once\n  x\n", " once\n", "x"),
        ("%%tape", "", ""),
        ("x = 1\n", None, "x = 1\n"),
        ("%%time\n%%tape record\nx", None, "%%time\n%%tape record\nx"),
    ],
)
def test_a_cell_splits_into_its_tape_line_and_its_source(manager, cell, line, source):
    assert manager.taker.split(cell) == (line, source)


def test_a_console_waits_for_a_blank_line_as_below_any_cell_magic(manager):
    assert manager.check_complete("%%tape record\nx = 1")[0] == "incomplete"
    assert manager.check_complete("%%tape record\nx = 1\n\n")[0] == "complete"


def test_no_cell_runs_here():
    assert count_running_cells() == 0


def test_a_rejection_shows_the_errors_own_name_and_words():
    rejected = rejection(TapeUsageError("say what"))
    assert type(rejected).__name__ == "TapeUsageError"
    assert str(rejected) == "say what"
    assert rejected._render_traceback_() == ["TapeUsageError: say what"]
