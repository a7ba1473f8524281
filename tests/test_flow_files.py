"""Files that a cell opened, listed, wrote."""

import os
import subprocess
import sys

from tape_jupyter.flow.files import FileWatch, is_watched

WATCH = FileWatch()


def seen(function):
    WATCH.begin()
    function()
    return WATCH.end()


def test_reads_writes_and_what_stood_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    touched = seen(lambda: path.write_text("new"))
    assert touched.written == {str(path)} == touched.replaced
    change = touched.changes()[str(path)]
    assert (change.before, change.after) == (b"old", b"new")
    assert seen(path.read_text).read == {str(path)}


def test_a_file_written_as_it_was_is_no_change(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("same")
    assert seen(lambda: path.write_text("same")).changes() == {}


def test_listing_removing_renaming(tmp_path):
    (tmp_path / "a").write_text("x")
    assert str(tmp_path) in seen(lambda: os.listdir(tmp_path)).read
    touched = seen(lambda: os.rename(tmp_path / "a", tmp_path / "b"))
    assert {str(tmp_path / "a"), str(tmp_path / "b")} <= touched.written
    assert seen(lambda: os.remove(tmp_path / "b")).changes()[str(tmp_path / "b")].after is None


def test_processes_are_told():
    assert "pass" in seen(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)).processes[0]


def test_installed_and_system_files_are_nobodys_result(tmp_path):
    assert not is_watched(os.__file__) and not is_watched("/proc/self/stat") and is_watched(str(tmp_path / "x.csv"))


def test_relative_paths_depend_on_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r").write_text("")
    assert seen(lambda: os.listdir(".")).relative and not seen(lambda: os.listdir(tmp_path)).relative
