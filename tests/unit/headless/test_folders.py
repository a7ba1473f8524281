"""`tape replay` works apart from the person's folder, and leaves it as it was: to the byte, on every way out."""

import os
import signal
import subprocess
import sys
import threading
import time

import nbformat
import pytest

from tape_jupyter.headless import run as headless_run, folders
from tape_jupyter.isolation import overlays
from tests.harness.folders import lies, prints, tape, told
from tests.harness.ordinary_user import ordinary_user
from tests.harness.notebook import clean_env, notebook
from tests.harness.provider import Provider
from tests.harness.tapes import ASK

WRITES = """import os, pathlib, subprocess, sys
import helper
pathlib.Path("out").mkdir()
pathlib.Path("out/new.txt").write_text(ask("new"))
pathlib.Path(os.path.abspath("absolute.txt")).write_text("1")
pathlib.Path("../beside.txt").write_text("2")
pathlib.Path("kept.csv").write_text("changed")
os.remove("gone.csv")
subprocess.run(["cp", "kept.csv", "child.txt"], check=True)
print(sorted(os.listdir(".")), helper.VALUE, os.getcwd())"""


@pytest.fixture
def repo(tmp_path):
    """A git work tree with a module above the notebook's folder."""
    top = tmp_path / "repo"
    (top / "work").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    for name, text in {
        "work/kept.csv": "1,2",
        "work/gone.csv": "3",
        "helper.py": "VALUE = 3\n",
    }.items():
        (top / name).write_text(text)
    return top


def recorded(top, tmp_path, *cells, name="n"):
    """A notebook that was recorded in `top`/work, whose own traces there are then taken away by hand."""
    with Provider(vary=True) as provider:
        setup = "import sys; sys.path.insert(0, '..')\n" + ASK.replace("URL", provider.url)
        path = notebook(top / "work" / f"{name}.ipynb", setup, *cells)
        done = tape("record", path, "--json", home=tmp_path)
        assert set(told(done)[0]) == {"ok"}, done
    return path


def test_a_replay_leaves_the_folder_as_it_was_and_gives_the_recorded_outputs_twice(repo, tmp_path):
    path = recorded(repo, tmp_path, WRITES)
    (repo / "work" / "gone.csv").write_text("3")  # a person's own again
    before = lies(repo)
    for _ in range(2):
        statuses, report = told(tape("replay", path, "--json", home=tmp_path))
        assert statuses == ["same", "same"], report
        assert lies(repo) == before
    assert str(repo / "work") in prints(path)[1]


@pytest.mark.slow
def test_a_miss_and_an_exception_leave_it_as_it_was(repo, tmp_path):
    path = recorded(
        repo,
        tmp_path,
        "open('new.txt', 'w').write(ask('one'))",
        "open('other.txt', 'w').write('1')",
    )
    for source, status in (("ask('another')", "missed"), ("1 / 0", "failed")):
        changed = nbformat.read(path, as_version=4)
        changed.cells[2].source = f"open('third.txt', 'w').write('1'); {source}"
        nbformat.write(changed, path)
        before = lies(repo)
        done = tape("replay", path, "--json", home=tmp_path)
        assert (told(done)[0][2], done.returncode, lies(repo)) == (status, 1, before)


@pytest.mark.slow
def test_an_interrupt_leaves_it_as_it_was_and_nothing_behind(repo, tmp_path):
    cell = "open('new.txt', 'w').write('1'); print('here', flush=True)"
    path = recorded(repo, tmp_path, cell, "1")
    changed = nbformat.read(path, as_version=4)
    changed.cells[
        1
    ].source = f"{cell}; open({str(tmp_path / 'ready')!r}, 'w').close()\nwhile True: pass"
    nbformat.write(changed, path)
    before, scratch = lies(repo), tmp_path / "scratch"
    scratch.mkdir()
    child = subprocess.Popen(
        [*ordinary_user(), sys.executable, "-m", "tape_jupyter", "replay", str(path)],
        env=clean_env(tmp_path) | {"TMPDIR": str(scratch)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        ends = time.monotonic() + 60
        while not (tmp_path / "ready").exists() and time.monotonic() < ends:
            threading.Event().wait(0.05)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
    finally:
        child.kill()
        child.wait()
    assert lies(repo) == before
    assert [each.name for each in scratch.glob("tape-*")] == []


def test_what_ran_live_is_written_to_a_take_of_the_persons_own_and_nothing_else_is(repo, tmp_path):
    source = "open('made.txt', 'w').write('1')\nimport tape_jupyter as tape\n@tape.tool\ndef look(): return 7\nprint(look())"
    path = recorded(repo, tmp_path, source)
    before = lies(repo)
    done = tape("replay", path, "--live", "tool:look", "--take", "fresh", "--json", home=tmp_path)
    assert told(done)[0] == ["same", "same"], done
    after = lies(repo)
    takes = repo / "work" / "n.tapes" / "takes"
    assert {each for each in after if each not in before} == {
        str(takes),
        str(takes / "main.fresh.tape.yaml"),
    }
    assert [each for each in before if before[each] != after[each]] == [
        str(repo / "work" / "n.tapes")
    ]


@pytest.fixture
def no_overlays(monkeypatch):
    monkeypatch.setattr(overlays, "prefix", lambda *_: None)


@pytest.fixture
def newcomer(tmp_path, monkeypatch):
    wanted = clean_env(tmp_path)
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)


def replayed(path, **more):
    notes = []
    runs = headless_run.replay_notebook(
        path, lambda *_: None, lambda _: None, note=notes.append, **more
    )
    return runs, notes


@pytest.mark.usefixtures("no_overlays", "newcomer")
def test_without_overlays_it_works_in_a_copy_and_the_recorded_paths_are_still_its_own(
    repo, tmp_path
):
    here = "import os, tape_jupyter as tape\n@tape.tool\ndef size(path): return len(path)\n"
    here += "print(ask(f'what lies in {os.getcwd()}?'), size(os.path.abspath('kept.csv')), size([os.getcwd()]))"
    path = recorded(repo, tmp_path, WRITES, here)
    (repo / "work" / "gone.csv").write_text("3")
    before = lies(repo)
    runs, notes = replayed(path)
    assert ([run.status for run in runs], notes) == (["same"] * 3, []), runs
    assert lies(repo) == before


@pytest.mark.usefixtures("no_overlays", "newcomer")
def test_in_a_copy_a_recorded_path_leads_to_no_write_into_the_persons_own_folder(repo, tmp_path):
    path = recorded(
        repo,
        tmp_path,
        f"place = {str(repo / 'work' / 'kept.csv')!r}\nopen(place, 'a').write('more')",
    )
    (repo / "work" / "kept.csv").write_text("1,2")
    before = lies(repo)
    runs, _ = replayed(path)
    assert [run.status for run in runs] == ["same", "failed"]
    assert "works in a copy of its folder" in "\n".join(runs[1].messages)
    assert lies(repo) == before


@pytest.mark.usefixtures("no_overlays", "newcomer")
def test_what_is_too_large_to_be_copied_is_named(repo, tmp_path, monkeypatch):
    path = recorded(repo, tmp_path, "print(1)")
    (repo / "work" / "weights.bin").write_bytes(b"0" * 100_000)
    monkeypatch.setattr(folders, "COPIED", 90_000)
    runs, notes = replayed(path)
    assert [run.status for run in runs] == ["same", "same"]
    assert notes == ["not copied, since the folder is too large: work/weights.bin"]


@pytest.mark.usefixtures("no_overlays", "newcomer")
def test_in_a_copy_a_take_is_written_to_the_persons_own_recording(repo, tmp_path):
    path = recorded(
        repo,
        tmp_path,
        "import tape_jupyter as tape\n@tape.tool\ndef look(): return 7\nprint(look())",
    )
    runs, _ = replayed(path, env={"TAPE_OPTIONS": "--live tool:look --take fresh"})
    assert [run.status for run in runs] == ["same", "same"]
    assert (repo / "work" / "n.tapes" / "takes" / "main.fresh.tape.yaml").is_file()
