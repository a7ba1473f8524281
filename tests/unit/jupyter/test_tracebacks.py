"""Our errors below a cell: the person's own lines and the report, nothing else."""

import json
import traceback

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tape_jupyter.errors import TapeUsageError, UnmatchedCall
from tape_jupyter.jupyter.tracebacks import own_lines, short_traceback, show_refusals_briefly


def refuse():
    raise UnmatchedCall("not on the tape\nnearest: 78a670b1")


def caught(deep):
    try:
        deep()
    except UnmatchedCall as error:
        return error


def through_a_library():
    json.JSONEncoder(default=lambda _: refuse()).encode(object())


def test_only_a_persons_own_frames_are_kept():
    error = caught(through_a_library)
    names = [frame.name for frame in traceback.extract_tb(own_lines(error))]
    assert names == ["caught", "through_a_library", "<lambda>", "refuse"]
    assert len(traceback.extract_tb(error.__traceback__)) > len(names)


def test_an_error_without_own_frames_is_told_in_words():
    assert own_lines(UnmatchedCall("x")) is None
    assert short_traceback(TapeUsageError("say what")) == ["TapeUsageError: say what"]


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    return InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}), colors="nocolor")


def test_a_refusal_shows_the_line_that_made_the_call_and_the_report(shell, capsys):
    undo = show_refusals_briefly(shell)
    shell.user_ns["through_a_library"] = through_a_library
    shell.run_cell("x = 1\nthrough_a_library()")
    said = capsys.readouterr().out
    assert "----> 2 through_a_library()" in said
    assert "encoder.py" not in said
    assert said.rstrip().endswith("UnmatchedCall: not on the tape\nnearest: 78a670b1")
    undo()
    assert not hasattr(UnmatchedCall, "_render_traceback_")
