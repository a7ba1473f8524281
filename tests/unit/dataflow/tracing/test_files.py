"""Files that a cell opened, listed, wrote: inside the working directory and outside it."""

import importlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tape_jupyter.dataflow.tracing import files
from tape_jupyter.dataflow.tracing.files import FileWatch, is_watched
from tape_jupyter.files.stand_ins import DIRECTORY, target_of

WATCH = FileWatch()


def seen(function):
    WATCH.begin()
    function()
    return WATCH.end()


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a file of the working directory."""
    monkeypatch.chdir(tmp_path)

    def write(name, text="old"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_reads_writes_and_what_stood_there(put):
    path = put("a.txt")
    touched = seen(lambda: path.write_text("new"))
    assert touched.written == {str(path)} == touched.replaced
    change = touched.changes()[str(path)]
    assert (change.before, change.after) == (b"old", b"new")
    assert seen(path.read_text).read == {str(path)}


def test_a_file_outside_the_working_directory_is_seen_like_one_inside(put, tmp_path_factory):
    put("here")
    outside = tmp_path_factory.mktemp("elsewhere") / "out.txt"
    change = seen(lambda: outside.write_text("new")).changes()[str(outside)]
    assert (change.before, change.after, change.known) == (None, b"new", True)


@pytest.mark.parametrize(("mode", "read", "written", "replaced"), [
    ("r", True, False, False), ("w", False, True, True), ("x", False, True, True),
    ("a", True, True, False), ("r+", True, True, False), ("w+", True, True, False),
])  # fmt: skip
def test_a_mode_says_whether_what_stood_there_matters(put, mode, read, written, replaced):
    path = put("a.txt")
    if mode == "x":
        path.unlink()
    touched = seen(lambda: path.open(mode).close())
    name = str(path)
    assert (name in touched.read, name in touched.written, name in touched.replaced) == (
        read,
        written,
        replaced,
    )


def test_a_descriptor_opened_for_both_may_read(put):
    path = put("a.bin")
    touched = seen(lambda: os.close(os.open(path, os.O_RDWR)))
    assert touched.read == touched.written == {str(path)}
    assert seen(lambda: os.close(os.open(path, os.O_WRONLY))).read == set()


def test_a_file_written_as_it_was_is_no_change(put):
    path = put("a.txt", "same")
    assert seen(lambda: path.write_text("same")).changes() == {}


def test_a_listing_is_a_read_of_its_folder(put, tmp_path):
    put("a")
    for look in (
        lambda: os.listdir(tmp_path),
        lambda: list(os.scandir(tmp_path)),
        lambda: list(tmp_path.glob("*")),
    ):
        touched = seen(look)
        assert str(tmp_path) in touched.read and not touched.written


def test_renaming_and_removing_change_both_names(put):
    old = put("a", "x")
    new = old.with_name("b")
    changes = seen(lambda: old.replace(new)).changes()
    assert (changes[str(old)].before, changes[str(old)].after) == (b"x", None)
    assert (changes[str(new)].before, changes[str(new)].after) == (None, b"x")
    assert seen(new.unlink).changes()[str(new)].after is None


def test_a_folder_is_removed_with_what_is_in_it(put, tmp_path):
    inside, deeper = put("tree/a", "A"), put("tree/deep/b", "B")
    beside = put("a", "another file of that name")
    changes = seen(lambda: shutil.rmtree(tmp_path / "tree")).changes()
    assert changes[str(inside)].before == b"A" and changes[str(deeper)].before == b"B"
    assert changes[str(tmp_path / "tree" / "deep")].before == DIRECTORY
    assert str(beside) not in changes


@pytest.mark.parametrize("name", ["tree", "tree/"])
def test_a_folder_is_moved_with_what_is_in_it(put, tmp_path, name):
    old = put("tree/a", "A")
    changes = seen(lambda: os.rename(name, "moved")).changes()
    assert changes[str(old)].before == b"A" and changes[str(old)].after is None
    assert changes[str(tmp_path / "moved" / "a")].after == b"A"


def test_a_folder_too_full_to_keep_is_said_to_be_unknown(put, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TREE", 2)
    for name in "abcd":
        put(f"tree/{name}")
    changes = seen(lambda: shutil.rmtree(tmp_path / "tree")).changes()
    assert not changes[str(tmp_path / "tree")].known


def test_what_is_too_large_to_keep_is_said_to_be_unknown_and_small_files_are_kept_all_the_same(
    put, monkeypatch
):
    large, small = put("large", "x" * 9), put("small", "x")
    monkeypatch.setattr(files, "KEPT_ALL", 8)
    watch = FileWatch()
    watch.begin()
    large.write_text("y")
    small.write_text("y")
    changes = watch.end().changes()
    assert not changes[str(large)].known
    assert changes[str(small)].known and changes[str(small)].before == b"x"


def test_threads_that_write_at_the_same_time_are_all_seen(put, tmp_path, monkeypatch):
    """One is just being looked at (what stood there is read) when the other opens its file."""
    first, second = put("first"), tmp_path / "second"
    real = files.content_of

    def slow(path):
        if path == str(first) and not second.exists():
            other = threading.Thread(target=second.write_text, args=("new",))
            other.start()
            other.join()
        return real(path)

    monkeypatch.setattr(files, "content_of", slow)
    assert seen(lambda: first.write_text("new")).written == {str(first), str(second)}


def test_processes_are_told_since_they_may_read_any_file():
    assert (
        "pass"
        in seen(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)).processes[0]
    )
    assert seen(lambda: os.system("true")).processes == ["true"]
    assert seen(lambda: None).processes == []


def test_a_database_is_a_file_but_for_one_in_memory(put, tmp_path):
    assert str(tmp_path / "d.db") in seen(lambda: sqlite3.connect("d.db").close()).written
    assert seen(lambda: sqlite3.connect(":memory:").close()).written == set()


@pytest.mark.parametrize("path", [
    os.__file__, "/proc/self/stat", "/usr/lib/x/y.so", "/etc/hosts", "/dev/null", "/home/ada/.cache/hub/model.bin",
    "/home/ada/notes.tapes/main.jsonl", "/home/ada/notes.tapes", "/home/ada/.cache", f"{sys.prefix}/bin/python",
])  # fmt: skip
def test_installed_and_system_files_and_tapes_are_nobodys_result(path):
    assert not is_watched(path)


@pytest.mark.parametrize("path", [
    "/home/ada/out.csv", "/usr/src/app/out.csv", "/library/out.csv", "/share/ada/out.csv", f"{sys.prefix}-data/out.csv",
    f"{sys.prefix}/out.csv",
])  # fmt: skip
def test_a_folder_that_is_only_called_like_a_system_folder_is_the_users(path):
    assert is_watched(path)


def test_relative_paths_depend_on_the_folder(put, tmp_path):
    put("r")
    assert (
        seen(lambda: os.listdir(".")).relative and not seen(lambda: os.listdir(tmp_path)).relative
    )


def test_importing_a_helper_reads_it_and_writes_nothing(put, tmp_path, monkeypatch):
    source = put("flow_files_helper.py", "X = 1")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for _ in range(2):  # from its source, then from Python's own copy of it
        touched = seen(lambda: importlib.import_module("flow_files_helper"))
        del sys.modules["flow_files_helper"]
        importlib.invalidate_caches()
        assert str(source) in touched.read and touched.written == set()


def test_between_cells_nobody_looks(put):
    path = put("a")
    touched = seen(lambda: None)
    path.write_text("new")
    assert touched.written == set() and WATCH.touched is touched


def test_a_file_that_cannot_be_opened_raises_what_it_always_does(tmp_path):
    with pytest.raises(FileNotFoundError):
        seen((tmp_path / "none" / "a").read_text)
    with pytest.raises(ValueError, match="null"):
        seen(lambda: Path("a\0b").read_text())
    WATCH.end()


def test_a_file_behind_a_link_is_the_file_that_it_leads_to(put, tmp_path):
    page = put("one/page.txt")
    (tmp_path / "current").symlink_to("one")
    touched = seen(lambda: (tmp_path / "current/page.txt").write_text("new"))
    assert touched.changes().keys() == {str(page)}
    assert str(tmp_path / "current") in touched.read


def test_a_link_that_leads_elsewhere_is_a_change_whatever_lies_there(put, tmp_path):
    put("one/page.txt"), put("two/page.txt")
    link = tmp_path / "current"
    link.symlink_to("one")
    touched = seen(lambda: (link.unlink(), link.symlink_to("two")))
    change = touched.changes()[str(link)]
    assert (target_of(change.before), target_of(change.after)) == ("one", "two")


def test_links_that_lead_in_a_circle_end(put, tmp_path):
    put("here")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    touched = seen(lambda: (tmp_path / "a").exists() or (tmp_path / "a").is_symlink())
    assert not touched.written
    assert str(tmp_path / "a") in seen(lambda: opened(tmp_path / "a")).read


def opened(path):
    with pytest.raises(OSError, match="levels of symbolic links"):
        path.read_text()
