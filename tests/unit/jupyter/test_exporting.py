"""An export that a kernel asks for: a process of its own, whose steps, result and refusals come back."""

import json
import sys
import threading

import pytest

from tape_jupyter.errors import NotExported, TapeUsageError
from tape_jupyter.jupyter import export
from tape_jupyter.jupyter.export import Export

RESULT = {
    "ok": True, "path": "/x/churn.tape.zip", "bytes": 1234, "cells": 2, "calls": 3, "sha256": "ab" * 32, "guards": ["a", "b"],
    "differences": [], "redactions": [{"count": 2, "kind": "an API key", "where": "data/a.csv"}], "notes": ["mind the gap"],
}  # fmt: skip


def running(monkeypatch, tmp_path, script):
    """An export whose command is this script instead of ours."""
    made = Export(tmp_path / "churn.ipynb")
    monkeypatch.setattr(made, "_line", [sys.executable, "-c", f"import sys, json, time\n{script}"])
    return made


def test_steps_are_told_and_the_result_comes_back(monkeypatch, tmp_path):
    monkeypatch.setenv("TAPE_MODE", "record")
    script = (
        "import os; assert not [name for name in os.environ if name.startswith('TAPE_')]\n"
        "print('a warning', file=sys.stderr)\n"
        "print(json.dumps({'step': 'packing', 'done': 1, 'total': 2}), file=sys.stderr)\n"
        f"print({json.dumps(json.dumps(RESULT))})"
    )
    told = []
    assert running(monkeypatch, tmp_path, script).run(lambda *step: told.append(step)) == RESULT
    assert told == [("packing", 1, 2)]


@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        (
            "print(json.dumps({'ok': False, 'why': 'cell 3 differs'})); sys.exit(1)",
            NotExported,
            "cell 3 differs",
        ),
        (
            "print('tape: no such notebook', file=sys.stderr); sys.exit(2)",
            TapeUsageError,
            "^no such notebook$",
        ),
        ("sys.exit(7)", TapeUsageError, "ended with code 7 and said nothing"),
    ],
)
def test_what_is_in_the_way_is_an_error_that_says_so(monkeypatch, tmp_path, script, error, message):
    with pytest.raises(error, match=message):
        running(monkeypatch, tmp_path, script).run(lambda *_: None)


def test_it_can_be_stopped_from_another_thread(monkeypatch, tmp_path):
    made = running(
        monkeypatch, tmp_path,
        "print(json.dumps({'step': 'replaying', 'done': 0, 'total': 0}), file=sys.stderr, flush=True)\n"
        "try: time.sleep(100)\nexcept KeyboardInterrupt: sys.exit(130)",
    )  # fmt: skip
    with pytest.raises(TapeUsageError, match="was stopped; nothing was written"):
        made.run(lambda *_: threading.Thread(target=made.stop).start())


def test_an_interrupt_of_the_cell_stops_it(monkeypatch, tmp_path):
    made = running(
        monkeypatch, tmp_path,
        "print(json.dumps({'step': 'replaying', 'done': 0, 'total': 0}), file=sys.stderr, flush=True)\ntime.sleep(100)",
    )  # fmt: skip

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.run(interrupt)
    assert made._process.returncode


def test_what_a_person_reads_says_which_notebook_it_was(tmp_path):
    path = tmp_path / "churn.ipynb"
    path.write_text("{}")
    text = export.export_text(RESULT, path)
    assert text.startswith("/x/churn.tape.zip: 1,234 bytes, 2 cells, 3 calls\n  sha256 abab")
    assert "churn.ipynb as last saved;" in text and "every cell replayed as saved" in text
    assert "2 x an API key in data/a.csv, masked" in text and "! mind the gap" in text
    assert "NOT every cell replayed as saved" in export.export_text(
        {**RESULT, "differences": [1]}, path
    )
    assert export.export_text({**RESULT, "test": "/x/test_churn.py"}, path).endswith(
        "\n  test: /x/test_churn.py"
    )
    beside = {**RESULT, "test": str(tmp_path / "test_churn.py")}
    assert export.export_text(beside, path).endswith("\n  test: test_churn.py")
    assert export.step("packing", 1, 2) == "tape export: packing (1 of 2)"
