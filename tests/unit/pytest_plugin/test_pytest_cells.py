"""`pytest --tape`: taped notebooks are tests, one a cell."""

import json
import os
import re
import shutil

import pytest

from tests.harness.exported import taped
from tests.harness.notebook import ROOT, clean_env
from tests.harness.tapes import ASK

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """nb.ipynb with its recording: set-up, a call, one that depends on it, one that raised, one never run after that."""
    folder = tmp_path_factory.mktemp("recorded")
    cells = (
        "%load_ext tape_jupyter", ASK, "# Ask once\nprint('said:', ask('one'))", "print('again:', ask('two'))",
        "raise ValueError('as recorded')", "print('never run')",
    )  # fmt: skip
    return taped(folder / "nb.ipynb", *cells, vary=False, env=clean_env(folder))


@pytest.fixture
def project(pytester, recorded, monkeypatch):
    """A folder with that notebook; `run` is pytest in a shell of somebody's, every warning an error."""
    for name in [name for name in os.environ if re.search("KEY|TOKEN|^TAPE_|^PYTEST", name)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shutil.copy(recorded, pytester.path)
    shutil.copytree(recorded.with_suffix(".tapes"), pytester.path / "nb.tapes")
    pytester.makepyfile(test_other="def test_other(): pass")
    run = pytester.runpytest_subprocess
    pytester.run_tape = lambda *words: run(
        "-p", "tape_jupyter.pytest_plugin", "-W", "error", *words
    )
    return pytester


def change(project, old, new):
    path = project.path / "nb.ipynb"
    path.write_text(path.read_text().replace(old, new))


def test_each_cell_is_a_test_by_number_and_title_and_what_never_ran_is_said(project):
    done = project.run_tape("--tape", ".", "-v", "-rs")
    done.assert_outcomes(passed=5, skipped=1)
    done.stdout.fnmatch_lines(
        ["*nb.ipynb::cell 3: Ask once PASSED*", "*cell 6: print('never run') SKIPPED*"]
    )
    done.stdout.fnmatch_lines(["*not run: cell 5 raised, as it did when it was saved"])
    assert "test_other" not in done.stdout.str()


def test_a_cell_that_differs_shows_a_diff_and_no_traceback_of_ours(project):
    change(project, "said: You wrote", "said: You had written")
    done = project.run_tape("--tape", "nb.ipynb", "test_other.py")
    done.assert_outcomes(passed=5, failed=1, skipped=1)
    done.stdout.fnmatch_lines(["-said: You had written*", "+said: You wrote*"])
    assert "pytest_cells.py" not in done.stdout.str() and "Traceback" not in done.stdout.str()


@pytest.mark.slow
def test_a_miss_names_the_nearest_call_and_the_cells_after_it_are_not_run(project):
    change(project, "ask('one')", "ask('another')")
    done = project.run_tape("--tape", ".", "-rs")
    done.assert_outcomes(passed=2, failed=1, skipped=3)
    done.stdout.fnmatch_lines(
        ["missed: it asked for what is not on the tape", "*messages?0?.content*"]
    )
    done.stdout.fnmatch_lines(["*not run: cell 3 raised*"])


@pytest.mark.night
def test_one_cell_alone_runs_those_before_it(project):
    done = project.run_tape("--tape", ".", "-k", "again")
    done.assert_outcomes(passed=1, deselected=5)


@pytest.mark.night
def test_workers_share_the_cells_of_a_notebook(project):
    done = project.run_tape("-p", "xdist", "-n", "2", "--dist", "loadgroup", "--tape", "nb.ipynb")
    done.assert_outcomes(passed=5, skipped=1)


def test_what_is_no_notebook_or_was_never_recorded_is_a_bad_word(project):
    for word, why in (
        ("gone", "no such file"),
        ("test_other.py", "neither a bundle"),
        ("empty", "no bundle"),
    ):
        (project.path / "empty").mkdir(exist_ok=True)
        done = project.run_tape("--tape", word)
        assert done.ret == 4 and why in done.stderr.str()
    shutil.rmtree(project.path / "nb.tapes")
    assert "tape record nb.ipynb" in project.run_tape("--tape", "nb.ipynb").stderr.str()


@pytest.mark.slow
def test_a_broken_notebook_or_a_missing_kernel_is_one_sentence(project):
    saved = (project.path / "nb.ipynb").read_text()
    whole = json.loads(saved)
    whole["metadata"]["kernelspec"]["name"] = "gone-3"
    (project.path / "nb.ipynb").write_text(json.dumps(whole))
    done = project.run_tape("--tape", ".")
    done.assert_outcomes(failed=1, skipped=5)
    assert (
        "'gone-3' is not installed" in done.stdout.str() and "headless.py" not in done.stdout.str()
    )
    (project.path / "nb.ipynb").write_text(saved[:300])
    done = project.run_tape("--tape", ".")
    done.assert_outcomes(errors=1)
    assert (
        "not a notebook that can be read" in done.stdout.str()
        and "headless.py" not in done.stdout.str()
    )
