"""What a trial wrote in its folder is gone before the next one, whatever it did."""

import shutil

import pytest

from tape_jupyter.experiments.trials.folder_state import TrialFolder


@pytest.fixture
def folder(tmp_path):
    below = tmp_path / "below"
    (below / "data").mkdir(parents=True)
    (below / "a.txt").write_text("one")
    (below / "data" / "b.txt").write_text("two")
    seen = tmp_path / "seen"
    shutil.copytree(below, seen)
    return TrialFolder(seen, below)


def content(folder):
    return {
        path.relative_to(folder.seen).as_posix(): path.read_text() if path.is_file() else None
        for path in folder.seen.rglob("*")
    }


def test_a_folder_that_nobody_wrote_in_has_no_state(folder):
    assert folder.state() == {}


def test_files_that_were_made_changed_and_removed_are_as_before(folder):
    (folder.seen / "early.txt").write_text("early")
    before, state = content(folder), folder.state()
    (folder.seen / "early.txt").write_text("late")
    (folder.seen / "a.txt").write_text("otherwise")
    (folder.seen / "new" / "deep").mkdir(parents=True)
    (folder.seen / "new" / "deep" / "c.txt").write_text("three")
    shutil.rmtree(folder.seen / "data")
    (folder.seen / "link").symlink_to("a.txt")
    folder.put_back(state)
    assert content(folder) == before


def test_what_the_cells_above_removed_stays_removed(folder):
    (folder.seen / "a.txt").unlink()
    state = folder.state()
    (folder.seen / "a.txt").write_text("again")
    folder.put_back(state)
    assert not (folder.seen / "a.txt").exists()
