"""A colleague's bundle, replayed: every cell as it says, away from the network, and nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tape_jupyter.isolation import sandbox
from tape_jupyter.bundle import replay, trust
from tape_jupyter.bundle.replay import BundleListener, ReplayRequest
from tape_jupyter.cli import tape
from tape_jupyter.errors import BundleError
from tests.harness.bundles import packed
from tests.harness.exported import newcomer
from tests.harness.notebook import ROOT
from tests.harness.provider import Provider
from tests.harness.replayed import LIGHT, bundle_of, changed, recorded

HERE = ReplayRequest(env="current", yes=True)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    newcomer(tmp_path, monkeypatch)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "tmp").mkdir()
    yield
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A recorded session, its provider gone."""
    with Provider(vary=True) as provider, pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("session")
        newcomer(folder, patch)
        return recorded(folder / "full", provider), recorded(folder / "light", provider, *LIGHT)


@pytest.fixture
def mine(session, tmp_path):
    """A copy of it, without what takes long to import."""
    return copy(session[1], tmp_path / "mine")


@pytest.fixture
def pictured(session, tmp_path):
    """A copy of it, with a table and a picture."""
    return copy(session[0], tmp_path / "pictured")


def copy(path, folder):
    shutil.copytree(path.parent, folder)
    return folder / path.name


def statuses(run):
    return [cell.status for cell in run.cells]


def left(tmp_path):
    return [each.name for each in (tmp_path / "tmp").iterdir()]


def test_every_cell_is_as_the_bundle_says_and_nothing_is_left(mine, tmp_path):
    place = bundle_of(mine, tmp_path / "fôlder with blanks ü" / "churn.tape.zip")
    place.chmod(0o400)
    place.parent.chmod(0o500)  # nothing is written where it lies
    told = []
    run = replay.replay_bundle(place, HERE, BundleListener(on_cell=told.append))
    assert run.good and statuses(run) == ["same"] * 5 == [each.status for each in told]
    assert [cell.calls for cell in run.cells] == [0, 1, 0, 0, 0]
    assert all(cell.digest == cell.replayed_digest for cell in run.cells)
    assert run.closing() == "5 of 5 cells as the bundle says" and run.guards == sandbox.guards()
    assert left(tmp_path) == [] and list(place.parent.iterdir()) == [place]


def test_what_differs_is_shown_text_table_and_picture(pictured, tmp_path):
    def spoil(cells):
        cells[1].outputs[0]["text"] = "south, of course\n"
        frame = cells[2].outputs[0]["data"]
        frame["text/html"] = frame["text/html"].replace("<td>9</td>", "<td>8</td>")
        import base64, io
        from PIL import Image

        picture = io.BytesIO()
        Image.new("RGB", (30, 20), "navy").save(picture, "PNG")
        image = Image.open(picture).convert("RGB")
        image.putpixel((1, 1), (255, 0, 0))
        out = io.BytesIO()
        image.save(out, "PNG")
        cells[3].outputs[0]["data"]["image/png"] = base64.b64encode(out.getvalue()).decode()

    run = replay.replay_bundle(bundle_of(changed(pictured, spoil), tmp_path / "b.tape.zip"), HERE)
    assert statuses(run) == ["same", "differs", "differs", "differs", "same"] and not run.good
    assert "-south, of course" in run.cells[1].lines()
    assert ["@@ row s, column lost", "-8", "+9"] == run.cells[2].lines()[1:]
    assert run.cells[3].differences[0].images.share == pytest.approx(1 / 600)
    assert run.closing() == "2 of 5 cells as the bundle says; 3 differ"
    assert json.loads(json.dumps(run.record()))["cells"][2]["differences"][0]["what"] == "table"


def test_a_call_that_is_not_on_the_tape_is_missed_and_what_follows_is_not_run(mine, tmp_path):
    def ask_more(cells):
        cells[1].source = cells[1].source.replace("most", "the most")

    run = replay.replay_bundle(bundle_of(changed(mine, ask_more), tmp_path / "b.tape.zip"), HERE)
    assert statuses(run) == ["same", "missed", "not run", "not run", "not run"]
    assert run.cells[1].messages[0].startswith("UnmatchedCall: POST ") and "now:" in "\n".join(
        run.cells[1].lines()
    )


def test_a_stranger_gets_no_key_of_mine_moves_no_cursor_and_does_not_stand_for_the_tape(
    mine, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine-12345")
    monkeypatch.setenv("HARMLESS", "sk-of-mine-12345")

    def spy(cells):
        home = "[each for each in os.listdir(os.path.expanduser('~')) if each[0] != '.']"
        cells[3].source = f"import os\nprint('sk-of-mine-12345' in os.environ.values(), {home})"
        cells[3].outputs = []
        cells[4].source = "#\x1b[2J wipe\nprint('\\x1b[31mred')"
        cells[4].outputs = []

    kit = {"python": "2.7.18", "distributions": ["pandas==0.1", "not-here==1.0"]}
    fake = {
        "session/tape_jupyter.py": b"raise SystemExit",
        "session/xxhash.py": b"raise SystemExit",
        "session/x-1.0.dist-info/entry_points.txt": b"[tape_jupyter.instrumentation]\njson = evil:f\n",
    }
    run = replay.replay_bundle(
        bundle_of(changed(mine, spy), tmp_path / "b.tape.zip", fake, kit=kit), HERE
    )
    assert statuses(run) == ["same", "same", "same", "differs", "differs"]
    assert run.cells[3].lines()[1] == "+False ['runtime']"
    told = run.cells[4].build_cell_run()
    assert "\x1b" not in "".join([told.title, *told.messages])
    left_out = {note.partition(" was left out")[0] for note in run.notes if "left out" in note}
    assert left_out == fake.keys()
    assert run.drift[0].startswith("python 2.7.18 in the bundle, ")
    assert any(each.startswith("pandas 0.1 in the bundle, ") for each in run.drift)
    assert "not-here 1.0 in the bundle, not here" in run.drift


def test_a_take_is_played_and_one_that_is_not_there_is_named(mine, tmp_path):
    from tape_jupyter.cassette.cassette import Cassette

    cassette = Cassette.open(mine.parent / "churn.tapes" / "main.tape.yaml")
    cassette.override(cassette.calls[0].id, text="north, said the take", take="angry")
    place = bundle_of(mine, tmp_path / "b.tape.zip")
    run = replay.replay_bundle(place, ReplayRequest("angry", "current", yes=True))
    assert statuses(run) == ["same", "differs", "same", "same", "same"]
    assert "+north, said the take" in run.cells[1].lines()
    with pytest.raises(BundleError, match="no take 'calm'; there are: angry"):
        replay.replay_bundle(place, ReplayRequest("calm", "current", yes=True))


def test_another_language_is_refused(mine, tmp_path):
    place = bundle_of(mine, tmp_path / "b.tape.zip", kernel={"name": "ir", "language": "R"})
    with pytest.raises(BundleError, match="is in R; only Python"):
        replay.replay_bundle(place, HERE)


# ---------------------------------------------------------------- the command


def run(*words, **more):
    return CliRunner().invoke(tape, ["replay", *map(str, words)], **more)


def test_without_a_terminal_it_is_not_run_and_the_word_is_named(mine, tmp_path):
    place = bundle_of(mine, tmp_path / "b.tape.zip")
    done = run(place, "--here")
    assert (
        done.exit_code == 2
        and "--yes" in done.stderr
        and "5 cells of session/churn.ipynb" in done.stderr
    )
    assert left(tmp_path) == [] and done.stdout == ""


def test_in_a_ci_it_writes_its_reports_and_says_0_1_or_2(mine, tmp_path):
    place, page, junit = (
        bundle_of(mine, tmp_path / "b.tape.zip"),
        tmp_path / "r.html",
        tmp_path / "r.xml",
    )
    good = run(place, "--here", "--yes", "--report", page, "--junit", junit, "--json")
    assert good.exit_code == 0, good.output
    assert (
        json.loads(good.stdout)["guards"] == list(sandbox.guards())
        and page.exists()
        and junit.exists()
    )
    place = bundle_of(
        changed(mine, lambda cells: cells[0].update(source="1 / 0")), tmp_path / "b.tape.zip"
    )
    bad = run(place, "--here", "--yes", "--report", page)
    assert (
        bad.exit_code == 1 and "0 of 5 cells as the bundle says; 1 raised, 4 not run" in bad.stdout
    )
    assert "guard: " in bad.stdout and "ZeroDivisionError" in page.read_text()
    assert not trust.file().exists()  # --yes is for once


def test_options_of_notebooks_and_of_bundles_are_not_mixed(mine, tmp_path):
    place = bundle_of(mine, tmp_path / "b.tape.zip")
    assert "--live" in run(place, "--live", "llm").stderr
    assert "--yes" in run(mine, "--yes").stderr
    for words in (
        (place, "--report", tmp_path / "no" / "r.html"),
        (place, "--report", mine),
        (place, "--junit", place),
    ):
        done = run(*words, "--here", "--yes")
        assert done.exit_code == 2 and "Traceback" not in done.output, words


def test_what_a_person_made_is_not_overwritten_by_a_report(mine, tmp_path):
    place, page = bundle_of(mine, tmp_path / "b.tape.zip"), tmp_path / "thesis.html"
    page.write_text("<h1>mine</h1>")
    assert (
        run(place, "--here", "--yes", "--report", page).exit_code == 2
        and page.read_text() == "<h1>mine</h1>"
    )


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.night)]
)
def test_a_run_that_is_interrupted_leaves_no_folder_and_no_kernel(mine, tmp_path, number):
    def wait(cells):
        started = "open('started', 'w').close()"
        cells[4].source = f"{started}\nimport threading\nthreading.Event().wait()"

    place = bundle_of(changed(mine, wait), tmp_path / "b.tape.zip")
    command = [sys.executable, "-m", "tape_jupyter", "replay", str(place), "--here", "--yes"]
    child = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True
    )
    while not _holds(tmp_path / "tmp", "started"):
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.1)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130 and "interrupted" in said and left(tmp_path) == []
    ours = [
        each
        for each in Path("/proc").glob("[0-9]*/environ")
        if str(tmp_path / "tmp").encode() in _read(each)
    ]
    assert not ours


def _holds(folder, name):
    """Whether a file of this name lies in it, at any depth; folders may come and go meanwhile."""
    return any(name in files for _, _, files in os.walk(folder))


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_broken_bundle_runs_nothing(tmp_path):
    place = tmp_path / "b.tape.zip"
    place.write_bytes(packed()[:-40])
    done = run(place, "--yes")
    assert done.exit_code == 2 and done.stderr.startswith("tape: ") and left(tmp_path) == []
