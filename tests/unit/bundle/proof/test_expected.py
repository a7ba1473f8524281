"""What a bundle says its cells give."""

import nbformat
import pytest

from tape_jupyter.bundle.proof import expected
from tape_jupyter.bundle.session import session_of
from tape_jupyter.comparison.outputs import places
from tape_jupyter.cassette.cell_sources import source_hash
from tests.harness.notebook import notebook
from tests.harness.tapes import Recorder, answered, asked


def stream(text):
    return [{"output_type": "stream", "name": "stdout", "text": text}]


def test_outputs_that_count_as_the_same_have_the_same_digest_and_others_have_not(tmp_path):
    one = expected.outputs_digest(stream("<C at 0x7f01>\n"))
    assert (
        one
        == expected.outputs_digest(stream("<C at 0x7f02>\n"))
        != expected.outputs_digest(stream("<D at 0x7f01>\n"))
    )
    where = places(tmp_path / "a", tmp_path) | places(tmp_path / "b", tmp_path)
    assert expected.outputs_digest(stream(f"{tmp_path}/a/x"), where) == expected.outputs_digest(
        stream(f"{tmp_path}/b/x"), where
    )
    assert expected.outputs_digest(stream("a\nb")) != expected.outputs_digest(stream("a\n\nb"))


@pytest.fixture
def churn(tmp_path):
    path = notebook(
        tmp_path / "churn.ipynb",
        "%%tape record\nask()",
        "1 / 0",
        "",
        "%tape export",
        "ask()\nask()",
    )
    node = nbformat.read(path, as_version=4)
    for count, cell in enumerate(node.cells, 1):
        cell.execution_count = count
    node.cells[1].outputs = [
        nbformat.v4.new_output("error", ename="ZeroDivisionError", evalue="", traceback=["no"])
    ]
    node.cells[3].outputs = [
        nbformat.v4.new_output("error", ename="NotExported", evalue="", traceback=["no"])
    ]
    nbformat.write(node, path)
    recorder = Recorder(tmp_path / "churn.tapes" / "main.tape.yaml")
    recorder.run(source_hash("ask()"), (asked("old"), answered("1")), session="s0")
    recorder.run(
        source_hash("ask()"),
        (asked("one"), answered("1")),
        (asked("two"), answered("2")),
        session="s1",
    )
    recorder.run("of no cell", (asked("three"), answered("3")), session="s1")
    return path


def test_each_code_cell_has_its_calls_as_they_are_replayed_and_the_error_it_ends_with(churn):
    cells = expected.of_session(session_of(churn))
    assert [(cell.number, cell.title, cell.calls, cell.raises) for cell in cells] == [
        (1, "ask()", 2, ""),
        (2, "1 / 0", 0, "ZeroDivisionError"),
        (3, "%tape export", 0, ""),
        (4, "ask()", 0, ""),
    ]
    assert (
        cells[2].outputs == expected.outputs_digest([])
        and len({cell.source for cell in cells}) == 4
    )
