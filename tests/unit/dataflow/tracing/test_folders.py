"""What a process did to a folder is seen, and what was there before it can be put back."""

import subprocess
import sys

import pytest

from tape_jupyter.dataflow.tracing import folders
from tape_jupyter.dataflow.tracing.files import FileWatch
from tape_jupyter.dataflow.tracing.folders import WatchedFolder, may_write
from tape_jupyter.files.stand_ins import DIRECTORY


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kept.txt").write_text("as it was")
    (tmp_path / "gone.txt").write_text("will go")
    (tmp_path / "still.txt").write_text("stays")
    return tmp_path


def test_what_a_process_made_changed_and_removed_is_told_with_what_was_there(folder):
    looked = WatchedFolder(str(folder), lambda _: True)
    looked.note_contents()
    (folder / "kept.txt").write_text("otherwise now")
    (folder / "gone.txt").unlink()
    (folder / "new").mkdir()
    (folder / "new" / "made.txt").write_text("x")
    assert dict(looked.differing()) == {
        str(folder / "gone.txt"): b"will go",
        str(folder / "kept.txt"): b"as it was",
        str(folder / "new"): None,
        str(folder / "new" / "made.txt"): None,
    }


def test_a_folder_that_is_removed_is_told_as_a_folder(folder):
    (folder / "sub").mkdir()
    looked = WatchedFolder(str(folder), lambda _: True)
    looked.note_contents()
    (folder / "sub").rmdir()
    assert dict(looked.differing()) == {str(folder / "sub"): DIRECTORY}


def test_what_is_too_large_to_keep_is_known_to_have_changed_and_no_more(folder, monkeypatch):
    monkeypatch.setattr(folders, "KEPT", 4)
    looked = WatchedFolder(str(folder), lambda _: True)
    looked.note_contents()
    (folder / "gone.txt").write_text("longer than before")
    assert dict(looked.differing()) == {str(folder / "gone.txt"): WatchedFolder.UNKNOWN}


def test_a_folder_with_too_much_in_it_is_not_looked_at_and_that_is_said(folder, monkeypatch):
    monkeypatch.setattr(folders, "MANY", 2)
    looked = WatchedFolder(str(folder), lambda _: True)
    looked.note_contents()
    assert looked.crowded
    assert list(looked.differing()) == []


def test_a_file_that_a_process_made_is_a_write_of_the_cell(folder, monkeypatch):
    monkeypatch.chdir(folder)
    watch = FileWatch()
    watch.begin()
    subprocess.run(
        [sys.executable, "-c", "open('made.txt', 'w').close(); open('kept.txt', 'a').write('!')"],
        check=True,
    )
    changes = watch.end().changes()
    assert changes[str(folder / "made.txt")].before is None
    assert changes[str(folder / "kept.txt")].before == b"as it was"
    assert str(folder / "still.txt") not in changes


@pytest.mark.parametrize(
    ("command", "writes"),
    [("echo hi", False), ("/bin/ls -l", False), ("echo hi && touch a", True), ("cp a b", True), ("echo a > b", True), ("", True)],
)  # fmt: skip
def test_a_command_that_only_reads_is_known_by_its_words(command, writes):
    assert may_write(command) is writes
