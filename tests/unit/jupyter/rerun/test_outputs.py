"""What a cell shows is kept for comparing; what is shown stays as it is."""

import sys

import pytest

from tape_jupyter.jupyter.rerun import outputs
from tape_jupyter.jupyter.rerun.outputs import Displayed, CellOutputs


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.enabled = False
    return InteractiveShell.instance(config=config)


@pytest.fixture
def heard(shell):
    heard = Displayed(shell)
    heard.install()
    shell.events.register("pre_run_cell", lambda _: heard.began())
    shell.events.register("post_run_cell", lambda _: heard.ended())
    yield heard
    heard.uninstall()


def kinds(run):
    return [each["output_type"] for each in run.outputs]


def test_prints_displays_results_and_errors_are_kept_in_their_order(shell, heard, capsys):
    shell.run_cell("import sys\nprint('a')\ndisplay(1)\nprint('b', file=sys.stderr)\n2")
    assert kinds(heard.last) == ["stream", "display_data", "stream", "execute_result"]
    assert heard.last.outputs[0]["text"] == "a\n" and heard.last.outputs[3]["data"] == {
        "text/plain": "2"
    }
    shell.run_cell("1 / 0")
    assert heard.last.outputs[0]["ename"] == "ZeroDivisionError"
    out = capsys.readouterr().out
    assert out.startswith("a\n") and "ZeroDivisionError" in out, "it is shown as ever"


def test_what_was_cleared_is_gone(shell, heard):
    shell.run_cell(
        "from IPython.display import clear_output\nprint('a')\nclear_output()\nprint('b')"
    )
    assert [each["text"] for each in heard.last.outputs if each["output_type"] == "stream"][
        -1
    ].endswith("b\n")
    assert not any("a\n" == each.get("text") for each in heard.last.outputs)


def test_a_display_that_is_updated_shows_its_last_state(shell, heard):
    shell.run_cell("h = display('one', display_id='x')\nh.update('two') if h else None")
    assert [each["data"]["text/plain"] for each in heard.last.outputs] == ["'two'"]


def test_a_display_that_is_updated_many_times_is_still_kept_whole():
    run = CellOutputs()
    run.data({"text/plain": "0 %"}, {}, display_id="bar", count=None)
    for _ in range(1000):
        run.update({"text/plain": "x" * 1000}, "bar")
    assert run.whole and run.outputs[0]["data"] == {"text/plain": "x" * 1000}
    assert run.size == 1000


def test_the_tapes_own_rows_are_kept_as_they_are(shell, heard):
    shell.user_ns["rows"] = {
        outputs.MIME: {"version": 1},
        "text/plain": "1 call",
        "application/x-other": "no",
    }
    shell.run_cell("display(rows, raw=True)")
    assert heard.last.outputs[0]["data"] == {outputs.MIME: {"version": 1}, "text/plain": "1 call"}


def test_nothing_is_kept_between_cells_and_everything_is_taken_back(shell, heard):
    stdout, publish = sys.stdout, type(shell.display_pub).publish
    shell.run_cell("print('a')")
    assert sys.stdout is stdout
    heard.uninstall()
    assert shell.display_pub.publish.__func__ is publish and "_showtraceback" not in vars(shell)


def test_long_outputs_are_cut_and_that_is_known():
    run = CellOutputs()
    run.stream("stdout", "x" * (outputs.MOST + 5))
    assert len(run.outputs[0]["text"]) == outputs.MOST and not run.whole
    run.data({"image/png": b"123", "text/plain": ""}, {}, display_id=None, count=None)
    assert run.outputs[1]["data"] == {"text/plain": ""}


def test_the_oldest_outputs_are_forgotten_when_there_are_too_many(shell, monkeypatch):
    monkeypatch.setattr(outputs, "MOST_OF_ALL", 10)
    heard = Displayed(shell)
    for entry in range(3):
        run = CellOutputs()
        run.stream("stdout", "12345")
        heard.keep_outputs(entry, run)
    assert [heard.has_all_outputs(entry) for entry in range(3)] == [
        False,
        True,
        True,
    ] and heard.find_outputs(0) == []
