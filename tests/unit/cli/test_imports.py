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


def test_what_holds_no_call_is_no_import(tmp_path):
    entry = {"request": {"method": "GET", "url": "javascript:1", "headers": []}, "response": {}}
    (tmp_path / "x.har").write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}))
    done = run("import", tmp_path / "x.har")
    assert done.exit_code == 1 and "nothing was found to import" in done.stdout
    assert "secret" not in done.output


def test_a_notebook_that_is_there_stays_as_it_is_and_nothing_is_imported(tmp_path):
    (tmp_path / "trace.json").write_text(json.dumps(request(span("b1", llm()))))
    (tmp_path / "mine.ipynb").write_text("a person's own")
    done = run("import", tmp_path / "trace.json", "--out", tmp_path / "mine.ipynb")
    assert done.exit_code == 2 and "exists already and is not overwritten" in done.stderr
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


def long(path, count):
    """A trace file of so many model calls, each a run; a record is about 4 KB."""
    one = json.dumps(request(span("b1" * 8, {**llm(), "note": "x" * 3000})))
    with path.open("w") as file:
        file.writelines(
            f"{one.replace('b1' * 8, f'{each:016x}').replace('aa' * 16, f'{each // 20:032x}')}\n"
            for each in range(1, count + 1)
        )


@pytest.mark.spread(3)
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("step", ["reading", "writing"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_import_that_is_ended_from_outside_leaves_no_half_written_cassette(
    tmp_path, number, step
):
    long(tmp_path / "long.jsonl", 8_000)
    words = [sys.executable, "-m", "tape_jupyter", "import", "long.jsonl", "--out", "long.ipynb", "--progress"]  # fmt: skip
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        told = next(line for line in process.stderr if step in line)
        assert json.loads(told)["done"] > 0
        process.send_signal(number)
        said = process.stderr.read()
    left = sorted(each.name for each in tmp_path.iterdir())
    if number == signal.SIGKILL:  # nobody can tidy up then: what is left is hidden, and no cassette
        assert [name for name in left if not name.startswith(".")] == ["long.jsonl"]
        long(tmp_path / "long.jsonl", 10)
        assert (
            run("import", tmp_path / "long.jsonl", "--out", tmp_path / "long.ipynb").exit_code == 0
        )
    else:
        assert process.returncode == 130 and "Traceback" not in said, said
        assert left == ["long.jsonl"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="ru_maxrss")
def test_what_an_import_needs_of_memory_does_not_grow_with_the_file(tmp_path):
    """100,000 spans in 300 MB are read within 500 MB: here a sixteenth and a hundredth of them."""
    code = (
        "import resource, sys, tape_jupyter as tape\n"
        "tape.import_trace(sys.argv[1], cassette=sys.argv[2])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == 'linux' else 2**20))"
    )
    taken = []
    for count in (1_000, 6_000):
        long(tmp_path / f"{count}.jsonl", count)
        words = [sys.executable, "-c", code, f"{count}.jsonl", f"{count}.tapes/main.tape.yaml"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        taken.append(int(done.stdout))
    # calls wait in memory up to 32 MiB, then in a file
    assert taken[1] - taken[0] < 60, taken
