"""What a fresh kernel is compared with, and what it says of it."""

from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tape_jupyter.dataflow.tracing.tracker import Tracker
from tape_jupyter.jupyter.rerun import isolated
from tape_jupyter.jupyter.rerun.isolated import ProofCase
from tests.harness.notebook import notebook


def test_a_cells_text_is_told_as_a_fresh_process_tells_it():
    shown = [
        {"output_type": "stream", "name": "stdout", "text": "a\n"},
        {
            "output_type": "display_data",
            "data": {"text/plain": "tape 3 ms"},
            "metadata": {"tape": {"summary": True}},
        },
        {
            "output_type": "execute_result",
            "data": {"text/plain": "2"},
            "metadata": {},
            "execution_count": 3,
        },
        {"output_type": "stream", "name": "stderr", "text": "not compared"},
        {"output_type": "stream", "name": "stdout", "text": "b\n"},
        {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []},
    ]
    assert isolated.shown_text(shown) == "a\nb\n2\nKeyError: 'x'"


def made(*sources):
    """The history of a shell that ran these cells."""
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    tracker = Tracker(shell)
    tracker.install()
    for source in sources:
        assert shell.run_cell(source, store_history=True).success
    tracker.uninstall()
    return tracker.history


def test_a_history_that_comes_out_the_same_is_proved_and_another_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    history = made("x = 1", "print(x)")
    path = notebook(tmp_path / "n.ipynb", "x = 1", "print(x)")
    case = ProofCase(history, {1: "1\n"}, history, {1: "1\n"}, path, "t", "main")
    done = isolated.prove_case(case)
    assert done.state == "proved", done.text

    wrong = ProofCase(history, {1: "2\n"}, history, {1: "1\n"}, path, "t", "main")
    told = isolated.prove_case(wrong)
    assert told.state == "differs" and told.adopt == ("1",) and "[2]" in told.text

    unsteady = ProofCase(history, {1: "2\n"}, history, {1: "3\n"}, path, "t", "main")
    assert isolated.prove_case(unsteady).state == "not provable"


def test_what_goes_wrong_in_proving_is_told_not_raised(monkeypatch):
    monkeypatch.setattr(isolated.process, "replay_job", lambda job: 1 / 0)
    told = []
    case = ProofCase(made("1"), {}, made("1"), {}, Path("n.ipynb"), "t", "main")
    isolated.begin_proof(case, told.append).join()
    assert told[0].state == "not provable" and "ZeroDivisionError" in told[0].text
