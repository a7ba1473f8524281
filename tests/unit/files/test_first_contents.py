"""What a file was before the session changed it: whoever writes it, Python or not."""

import os
import sqlite3

import pytest

from tape_jupyter.files import first_contents
from tape_jupyter.files.first_contents import First, Firsts, find_database


@pytest.fixture
def firsts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Firsts(lambda _: True)


def changed(firsts, tmp_path):
    return {os.path.relpath(path, tmp_path): each for path, each in firsts.changed(str(tmp_path))}


def test_a_database_is_known_from_the_moment_it_is_connected_to(firsts, tmp_path):
    path = tmp_path / "a.sqlite"
    firsts.connected(str(path))
    assert changed(firsts, tmp_path) == {}
    made = sqlite3.connect(path)
    made.execute("pragma journal_mode=wal")
    made.execute("create table t (x)")
    made.commit()
    assert changed(firsts, tmp_path) == dict.fromkeys(
        ["a.sqlite", "a.sqlite-shm", "a.sqlite-wal"], First(there=False)
    )
    made.close()
    assert changed(firsts, tmp_path) == {"a.sqlite": First(there=False)}


def test_what_a_library_writes_without_python_is_seen_by_its_name_and_time(firsts, tmp_path):
    (tmp_path / "old.bin").write_bytes(b"12")
    firsts.begin()
    (tmp_path / "new.bin").write_bytes(b"1")
    (tmp_path / "old.bin").write_bytes(b"123")
    firsts.end()
    (tmp_path / "a_persons.csv").write_text("between two cells")
    firsts.begin()
    firsts.end()
    assert changed(firsts, tmp_path) == {
        "new.bin": First(there=False),
        "old.bin": First(there=True, size=2),
    }


def write_later(path, text, than):
    """Write a file so that its time is after `than`, ns: the system's clock ticks. Its time."""
    while True:
        path.write_text(text)
        if (at := path.stat().st_ctime_ns) > than:
            return at


def test_of_several_cells_what_was_changed_between_them_is_anothers(firsts, tmp_path, monkeypatch):
    monkeypatch.setattr(first_contents, "CLOCKS", 0)
    (tmp_path / "old.bin").write_text("12")
    firsts.begin()
    first = write_later(tmp_path / "new.bin", "1", 0)
    between = write_later(tmp_path / "a_persons.csv", "1", first)
    last = write_later(tmp_path / "old.bin", "123", between)
    firsts.end([(0, first), (last, last)])
    assert changed(firsts, tmp_path) == {
        "new.bin": First(there=False),
        "old.bin": First(there=True, size=2),
    }


def test_a_folder_with_too_much_in_it_is_not_looked_at(firsts, tmp_path, monkeypatch):
    monkeypatch.setattr(first_contents, "MANY", 2)
    for name in "abc":
        (tmp_path / name).touch()
    firsts.begin()
    (tmp_path / "d").touch()
    firsts.end()
    assert changed(firsts, tmp_path) == {}


def test_the_first_state_counts_and_of_a_new_folder_nothing_below_it(firsts, tmp_path):
    path, folder = tmp_path / "a.txt", tmp_path / "out"
    path.write_text("first")
    for text in ("second", "third"):
        firsts.note(str(path))
        path.write_text(text)
    for each in (folder, folder / "part"):
        firsts.note(str(each))
    folder.mkdir()
    (folder / "part").touch()
    found = changed(firsts, tmp_path)
    assert (found["a.txt"].content, set(found)) == (b"first", {"a.txt", "out"})
    path.write_text("first")
    assert set(changed(firsts, tmp_path)) == {"out"}


def test_little_is_kept_and_more_is_known_by_its_digest(firsts, tmp_path, monkeypatch):
    monkeypatch.setattr(first_contents, "KEPT", 10)
    monkeypatch.setattr(first_contents, "KEPT_ALL", 15)
    for name in "abc":
        (tmp_path / name).write_bytes(b"0" * (20 if name == "a" else 9))
        firsts.note(str(tmp_path / name))
        (tmp_path / name).write_bytes(b"other")
    found = changed(firsts, tmp_path)
    assert [found[name].content for name in "abc"] == [None, b"0" * 9, None]
    assert all(each.sha256 for each in found.values())
    assert found["a"].record() == {"before": "file", "size": 20, "sha256": found["a"].sha256}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a.db", "a.db"), (b"a.db", "a.db"), ("file:a.db?mode=rwc", "a.db"), (":memory:", ""), ("", ""), (None, ""),
        ("file:a.db?mode=ro", ""), ("file:a.db?immutable=1", ""), ("file:x?mode=memory&cache=shared", ""),
    ],
)  # fmt: skip
def test_the_file_that_a_database_is_written_to(name, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, writes = find_database(name)
    assert (found if writes else "") == (str(tmp_path / path) if path else "")


@pytest.mark.parametrize("name", ["file:a.db?mode=ro", "file:a.db?immutable=1"])
def test_one_that_is_only_read_is_known_too(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_database(name) == (str(tmp_path / "a.db"), False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
def test_a_pipe_is_never_read_which_would_wait_for_who_writes_into_it(firsts, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "replaced").write_text("a file")
    firsts.begin()
    firsts.note(str(tmp_path / "pipe"))
    firsts.note(str(tmp_path / "replaced"))
    (tmp_path / "replaced").unlink()
    os.mkfifo(tmp_path / "replaced")
    os.mkfifo(tmp_path / "new")
    firsts.end()
    assert set(changed(firsts, tmp_path)) == {"replaced", "new"}
    assert first_contents.digest_file(tmp_path / "pipe") == ""
