"""Some of the planted causes of benchmarks/causes, one of each kind: the set is exact, and nothing else is touched."""

import json
import shutil
import socket

import pytest

import tape_jupyter as tape
from tests.harness.notebook import ROOT
from tests.harness.support import digest

CAUSES = ROOT / "benchmarks" / "causes"
NAMES = (
    "an-agent-with-history", "three-parts-of-a-code", "a-tool-or-two-replies", "appended-by-threads",
    "the-second-search-is-stale", "rounded-then-asked", "a-file-between-cells", "clock-at-midnight",
    "a-sample-of-documents", "a-changed-prompt", "a-changed-threshold",
    "sdks/the-right-city-read-wrongly", "sdks/the-good-run-asks-a-second-time",
)  # fmt: skip


@pytest.fixture
def planted(tmp_path, monkeypatch):
    def copied(name):
        folder = tmp_path / name
        shutil.copytree(CAUSES / (name if "/" in name else f"planted/{name}"), folder)
        monkeypatch.chdir(folder)
        return folder, json.loads((folder / "cause.json").read_text())

    return copied


@pytest.mark.spread(5)
@pytest.mark.parametrize("name", NAMES)
def test_the_planted_cause_is_found_exactly_and_nothing_is_written(planted, name):
    folder, known = planted(name)
    before = {path: digest(path) for path in folder.rglob("*") if path.is_file()}
    found = tape.why("agent.ipynb", known["good"], known["bad"], known["check"])
    assert sorted(found.minimal) in known["minimal"]
    assert found.asked == 0 and found.trials <= 4 * found.differing * found.differing.bit_length()
    assert {path: digest(path) for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.night
def test_a_pytest_file_is_a_check(planted):
    folder, known = planted("a-field-of-json")
    (folder / "test_total.py").write_text(
        "def test_the_total(variables, outputs):\n    assert variables['total'] == 12\n    assert len(outputs) == 4\n"
    )
    found = tape.why("agent.ipynb", known["good"], known["bad"], "test_total.py")
    assert [list(found.minimal)] == known["minimal"]
    assert [place.fragment.path for place in found.within] == ["content[0].text.unit.price"]


@pytest.mark.slow
def test_a_pytest_file_without_a_test_is_said_before_any_search(planted):
    folder, known = planted("a-field-of-json")
    (folder / "test_nothing.py").write_text("x = 1\n")
    with pytest.raises(tape.TapeUsageError, match="no test was found"):
        tape.why("agent.ipynb", known["good"], known["bad"], "test_nothing.py")


def test_no_trial_reaches_the_network(planted):
    folder, known = planted("label-of-one-ticket")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = f"__import__('socket').create_connection(('127.0.0.1', {port})) and 1"
        with pytest.raises(tape.TapeUsageError, match="the check raised"):
            tape.why("agent.ipynb", known["good"], known["bad"], said)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
