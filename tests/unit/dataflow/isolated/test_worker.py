"""The shell of a fresh replay: what it says that a cell showed."""

import pytest

from tape_jupyter.dataflow.isolated import worker


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    return worker.shell()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("print('a'); 'b'", "a\n'b'\n"),
        ("None", ""),
        ("print('a'); 1/0", "a\nZeroDivisionError: division by zero"),
        ("from IPython.display import display; display(1); print(2)", "2\n1\n"),
        ("%%capture out\nprint(1)", ""),
        ("!echo hi", "hi\n"),
        ("await __import__('asyncio').sleep(0, 'x')", "'x'\n"),
        ("import sys; print('e', file=sys.stderr)", ""),
    ],
)
def test_what_a_cell_shows(shell, source, text):
    assert worker.execute_in_shell(shell, source)["text"].replace("\r", "") == text


def test_what_keeps_standard_output_prints_below_the_cell_that_uses_it(shell):
    worker.execute_in_shell(shell, "import sys, logging\nout = sys.stdout; print('first')")
    worker.execute_in_shell(
        shell, "log = logging.getLogger('w'); log.addHandler(logging.StreamHandler(out))"
    )
    assert worker.execute_in_shell(shell, "log.error('here')")["text"] == "here\n"
    worker.execute_in_shell(shell, "import io; buffer = sys.stdout = io.StringIO()")
    assert worker.execute_in_shell(shell, "print('elsewhere')")["text"] == ""
    shown = worker.execute_in_shell(shell, "sys.stdout = out; print(buffer.getvalue())")
    assert shown["text"] == "elsewhere\n\n"


def test_text_that_is_no_python(shell):
    ran = worker.execute_in_shell(shell, "a b")
    assert ran["error"] == "SyntaxError" and "SyntaxError: invalid syntax" in ran["text"]


def test_pictures_are_told_by_a_digest(shell):
    worker.execute_in_shell(shell, "%matplotlib inline\nimport matplotlib.pyplot as plt")
    one, other = (worker.execute_in_shell(shell, f"plt.plot([1, {n}]);")["images"] for n in (2, 3))
    assert len(one) == 1 and one != other
