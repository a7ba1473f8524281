"""`tape import`: words that make no sense are one line and code 2."""

import json
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tape_jupyter.cli import tape
from tests.unit.importers.test_otlp import genai, llm, request, span


def run(*words):
    return CliRunner().invoke(tape, [str(word) for word in words])


def test_a_format_that_is_none_names_those_there_are(tmp_path):
    (tmp_path / "x").write_text("{}")
    done = run("import", tmp_path / "x", "--from", "nonsense")
    assert done.exit_code == 2 and "there are: " in done.stderr and "har" in done.stderr


def test_out_is_a_notebook(tmp_path):
    (tmp_path / "x").write_text("{}")
    assert run("import", tmp_path / "x", "--out", tmp_path / "x.yaml").exit_code == 2
    assert run("import", tmp_path / "nothing.json").exit_code == 2


def test_a_notebook_that_is_there_stays_as_it_is_and_nothing_is_imported(tmp_path):
    (tmp_path / "trace.json").write_text(json.dumps(request(span("b1", llm()))))
    (tmp_path / "mine.ipynb").write_text("a person's own")
    done = run("import", tmp_path / "trace.json", "--out", tmp_path / "mine.ipynb")
    assert done.exit_code == 2 and "is there already, and is not overwritten" in done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine.ipynb", "trace.json"]
    assert (tmp_path / "mine.ipynb").read_text() == "a person's own"


def test_the_notebook_says_what_was_put_together_anew(tmp_path):
    """Of a trace that holds messages alone the request was made from them: grade M, where OpenInference's is as sent."""
    for name, told, rebuilt in (("sent", llm(), False), ("messages", genai(), True)):
        (tmp_path / f"{name}.json").write_text(json.dumps(request(span("b1", told))))
        out = tmp_path / f"{name}.ipynb"
        assert run("import", tmp_path / f"{name}.json", "--out", out).exit_code == 0
        text = out.read_text()
        assert ("rebuilt" in text) == rebuilt and "%%tape replay" in text and "client" in text


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_import_that_is_ended_from_outside_leaves_nothing(tmp_path):
    one = json.dumps(request(span("b1" * 8, llm())))
    with (tmp_path / "long.jsonl").open("w") as file:
        file.writelines(f"{one.replace('b1' * 8, f'{each:016x}')}\n" for each in range(1, 20_000))
    before = sorted(tmp_path.iterdir())
    words = [sys.executable, "-m", "tape_jupyter", "import", "long.jsonl", "--out", "long.ipynb", "--progress"]  # fmt: skip
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        step = next(line for line in process.stderr if "record" in line)
        assert json.loads(step)["done"] > 0
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
    assert process.returncode == 130 and "Traceback" not in said, said
    assert sorted(tmp_path.iterdir()) == before
