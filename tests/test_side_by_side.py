"""Test files side by side, each in a process of its own: what one imports, breaks or ends is not another's."""

import os
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest

from tests.harness.notebook import ROOT

FILES = {
    "test_first": "import decimal, sys\nsys.first = True\ndef test_it(): assert not hasattr(sys, 'second')",
    "test_second": "import sys\nsys.second = True\ndef test_it(): assert not hasattr(sys, 'first')",
    "test_fails": "def test_it(): print('what it printed'); assert 'this' == 'that'",
    "test_ends": "import os\ndef test_before(): pass\ndef test_it(): print('nearly', flush=True); os._exit(3)",
    "test_starts": "import subprocess, sys, time, pytest\n@pytest.fixture\ndef server(): \n    open('up', 'w').close()\n    yield\n    open('down', 'w').close()\ndef test_it(server): time.sleep(600)",
    "test_stops": "def test_it(): raise KeyboardInterrupt\ndef test_more(): pass",
    "test_broken": "import no_such_module",
    "test_skipped": "import pytest\npytest.importorskip('no_such_module')",
    "test_marked": "import pytest\n@pytest.mark.skip\ndef test_it(): pass\ndef test_folder(tmp_path): assert not [*tmp_path.iterdir()]",
}


@pytest.fixture
def run(tmp_path):
    """Run these files with these options: pytest's status, what it printed, what junit was given."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -ra\n")

    def run(*names, options=("--jobs", "2")):
        for name in names:
            (tmp_path / f"{name}.py").write_text(FILES[name])
        made = tmp_path / "junit.xml"
        words = [
            "-p",
            "tests.side_by_side",
            *options,
            f"--junitxml={made}",
            f"--basetemp={tmp_path}-tmp",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr, ElementTree.parse(made).find("testsuite")

    return run


@pytest.mark.slow
def test_what_a_file_leaves_in_its_process_is_not_there_for_another(run):
    status, shown, junit = run("test_first", "test_second", "test_marked")
    assert (status, junit.get("tests"), junit.get("skipped")) == (0, "4", "1"), shown
    assert "3 passed, 1 skipped" in shown
    assert run(options=("--jobs", "0"))[0] == 1, "in one process they see each other"


@pytest.mark.slow
def test_each_failure_is_shown_as_if_it_were_the_first_process_s(run):
    status, shown, junit = run("test_first", "test_fails", "test_broken", "test_skipped")
    assert (status, junit.get("failures"), junit.get("errors")) == (1, "1", "1"), shown
    assert "what it printed" in shown and "'this' == 'that'" in shown
    assert "No module named 'no_such_module'" in shown and "1 passed, 1 skipped" in shown


def test_a_process_that_ends_fails_the_test_that_ran_in_it(run):
    status, shown, _ = run("test_ends", "test_first")
    assert status == 1 and "2 passed" in shown and "1 failed" in shown, shown
    assert "FAILED test_ends.py::test_it" in shown and "ended with 3" in shown


@pytest.mark.slow
def test_tests_that_a_process_did_not_come_to_are_a_failure(run):
    status, shown, _ = run("test_stops", "test_first")
    assert status == 1 and "1 passed" in shown and "1 failed" in shown, shown
    assert "its process ended with 2" in shown


@pytest.mark.slow
def test_after_the_first_failure_no_more_is_begun_if_one_wants(run):
    status, shown, _ = run("test_fails", "test_first", "test_second", options=("--jobs", "1", "-x"))
    assert status == 1 and "stopping after 1 failures" in shown, shown


@pytest.mark.slow
def test_nothing_chosen_is_an_error_as_ever(run):
    status, shown, _ = run("test_first", options=("--jobs", "2", "-k", "nothing"))
    assert status == 5 and "1 deselected" in shown, shown


@pytest.mark.slow
def test_ended_from_outside_it_takes_down_what_the_tests_had_started(tmp_path):
    (tmp_path / "test_starts.py").write_text(FILES["test_starts"])
    words = [sys.executable, "-m", "pytest", "-p", "tests.side_by_side", "--jobs", "1"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL) as running:
        while not (tmp_path / "up").exists():
            assert running.poll() is None
            time.sleep(0.01)
        running.terminate()
    assert (tmp_path / "down").exists() and running.returncode == 2
