"""`pytest --tape`: bundles are tests, one a cell, and run nothing that nobody let run."""

import json
import os
import re

import pytest

from tape_jupyter.bundle.proof import expected
from tape_jupyter.bundle import trust
from tape_jupyter.bundle.archive.manifest import ProofDifference, Expected
from tests.harness import bundles
from tests.harness.notebook import ROOT

pytest_plugins = ["pytester"]
CELLS = [
    "import pathlib; pathlib.Path.home().joinpath('ran').touch()\nprint(40 + 2)",
    "print('two')",
]


def bundle(folder, shown=("42\n", "two\n"), **said):
    """A bundle of two cells, whose saved outputs are `shown`."""
    outputs = [[{"output_type": "stream", "name": "stdout", "text": text}] for text in shown]
    cells = [
        {**bundles.CELL, "id": f"c{n}", "source": source, "outputs": out}
        for n, (source, out) in enumerate(zip(CELLS, outputs))
    ]
    nb = (
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
        + b"\n"
    )
    content = {"README.md": b"r", "session/churn.ipynb": nb}
    wanted = [
        Expected(n, f"c{n}", source.splitlines()[-1], "0" * 64, expected.outputs_digest(out), 0)
        for n, (source, out) in enumerate(zip(CELLS, outputs), 1)
    ]
    return bundles.written(folder, content, bundles.made(content, cells=tuple(wanted), **said))


@pytest.fixture
def project(pytester, monkeypatch):
    for name in [name for name in os.environ if re.search("KEY|TOKEN|^TAPE_|^PYTEST", name)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(pytester.path / "config"))
    run = pytester.runpytest_subprocess
    pytester.run_tape = lambda *words: run(
        "-p", "tape_jupyter.pytest_plugin", "-W", "error", *words
    )
    return pytester


def test_naming_a_bundle_does_not_let_it_run(project):
    path = bundle(project.path)
    done = project.run_tape("--tape", ".")
    done.assert_outcomes(failed=1, skipped=1)
    done.stdout.fnmatch_lines(
        ["*never allowed to run here (sha256 *tape verify churn.tape.zip*--tape-trust*"]
    )
    assert "replaying.py" not in done.stdout.str() and path.exists()
    collected = project.run_tape("--tape", str(path), "--collect-only", "-q").stdout.str()
    assert "churn.tape.zip::cell 1: print(40 + 2)" in collected


def test_a_bundle_that_may_run_is_replayed_and_a_cell_that_differs_shows_how(project):
    bundle(project.path, shown=("42\n", "three\n"))
    done = project.run_tape("--tape", ".", "--tape-trust")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*differs: its outputs are not those*"])
    assert "three" in done.stdout.str() and "replaying.py" not in done.stdout.str()


@pytest.mark.night
def test_a_digest_that_was_let_run_before_runs_and_what_the_bundle_says_to_differ_is_expected(
    project,
):
    path = bundle(
        project.path, shown=("42\n", "three\n"), differences=(ProofDifference(2, "it draws"),)
    )
    with bundles.archive.opened(path) as it:
        trust.remember_trust(it.digest, "churn.ipynb", "asked")
    project.run_tape("--tape", ".").assert_outcomes(passed=1, xfailed=1)


def test_a_bundle_that_is_not_whole_is_no_test_at_all(project):
    path = bundle(project.path)
    path.write_bytes(path.read_bytes()[:-40])
    done = project.run_tape("--tape", ".", "--tape-trust")
    done.assert_outcomes(errors=1)
    assert "Traceback" not in done.stdout.str()
