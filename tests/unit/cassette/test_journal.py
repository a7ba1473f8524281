"""The cassette as bytes: what was committed is read back whole, what was torn is kept aside, whoever else writes."""

import os
import subprocess
import sys
import threading

import errno
from types import SimpleNamespace
import pytest

from tape_jupyter.core import locks
from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.journal import RECORD_CAP, Journal, Replaced


def record(n, size=0):
    return b"---\ncall: %d\ntext: %s\n...\n" % (n, b"x" * size)


def texts(path):
    journal = Journal(path)
    return [journal.read(span.offset, span.length) for span in journal.scan()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "main.tape.yaml"


def test_records_come_back_as_they_were_appended(path):
    journal = Journal(path)
    offsets = [journal.append(record(n), b"---\ntape: 1\n...\n") for n in range(3)]
    assert texts(path) == [b"---\ntape: 1\n...\n", *(record(n) for n in range(3))]
    assert [journal.read(at, len(record(0))) for at in offsets] == [record(n) for n in range(3)]


def test_the_header_stands_once_at_the_top(path):
    for n in range(2):
        Journal(path).append(record(n), b"---\ntape: 1\n...\n")
    assert path.read_bytes() == b"---\ntape: 1\n...\n" + record(0) + record(1)


def test_a_folder_that_is_not_there_is_made(tmp_path):
    path = tmp_path / "new.tapes" / "main.tape.yaml"
    assert Journal(path).writable() == ""
    Journal(path).append(record(1))
    assert texts(path) == [record(1)]


def test_records_over_the_edges_of_read_blocks_are_whole(path, monkeypatch):
    expected = [record(n, size) for n, size in enumerate([0, 1, 50, 3, 120, 7, 64, 13] * 9)]
    for ending in (b"\n", b"\r\n"):
        data = [text.replace(b"\n", ending) for text in expected]
        path.write_bytes(b"".join(data))
        for block in range(1, 41):
            monkeypatch.setattr("tape_jupyter.cassette.journal._BLOCK", block)
            assert texts(path) == data


def test_a_torn_tail_is_told_and_not_read(path):
    whole = record(1) + record(2)
    for cut in range(1, len(record(2)) - 5):
        path.write_bytes(whole[: len(record(1)) + cut])
        journal = Journal(path)
        assert len(list(journal.scan())) == 1
        assert (journal.committed, journal.torn) == (len(record(1)), cut)


def test_a_torn_tail_is_kept_aside_before_the_next_append(path):
    path.write_bytes(record(1) + b"---\ncall: 2\ntex")
    Journal(path).append(record(3))
    assert texts(path) == [record(1), record(3)]
    assert path.with_name("main.tape.yaml.torn").read_bytes() == b"---\ncall: 2\ntex\n"


def test_torn_tails_of_two_crashes_are_both_kept(path):
    for n in (1, 2):
        Journal(path).append(record(n))
        with path.open("ab") as file:
            file.write(b"---\ntorn: %d" % n)
    Journal(path).append(record(3))
    assert path.with_name("main.tape.yaml.torn").read_bytes() == b"---\ntorn: 1\n---\ntorn: 2\n"


def test_a_torn_tail_of_many_blocks_is_found(path, monkeypatch):
    monkeypatch.setattr("tape_jupyter.cassette.journal._BLOCK", 16)
    path.write_bytes(record(1) + b"---\ncall: 2\ntext: " + b"y" * 500)
    Journal(path).append(record(3))
    assert texts(path) == [record(1), record(3)]


def test_a_torn_tail_is_not_written_through_a_link(path, tmp_path):
    path.write_bytes(record(1) + b"---\ncall: 2\ntex")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path.with_name("main.tape.yaml.torn").symlink_to(victim)
    with pytest.raises(CassetteError):
        Journal(path).append(record(3))
    assert victim.read_text() == "mine"


def test_zeros_after_a_power_loss_are_a_torn_tail(path):
    path.write_bytes(record(1) + b"\0" * 4096)
    journal = Journal(path)
    assert len(list(journal.scan())) == 1 and journal.torn == 4096
    journal.append(record(2))
    assert texts(path) == [record(1), record(2)]


@pytest.mark.parametrize("end", [b"", b"\r"])
def test_an_editor_that_leaves_out_the_last_line_end_loses_nothing(path, end):
    path.write_bytes(record(1) + record(2)[:-1] + end)
    journal = Journal(path)
    assert len(list(journal.scan())) == 2
    assert not journal.torn or end
    journal.append(record(3))
    assert [t.replace(b"\r", b"") for t in texts(path)] == [record(1), record(2), record(3)]
    assert not path.with_name("main.tape.yaml.torn").exists()


def test_blank_lines_at_the_end_are_no_torn_record(path):
    path.write_bytes(record(1) + b"\n\n")
    journal = Journal(path)
    assert len(list(journal.scan())) == 1 and journal.torn == 0
    journal.append(record(2))
    assert texts(path) == [record(1), record(2)]
    assert not path.with_name("main.tape.yaml.torn").exists()


@pytest.mark.parametrize(
    ("data", "says", "line"),
    [
        (b"\xef\xbb\xbf" + record(1), "BOM", 1),
        (b"\xff\xfe-\0", "BOM", 1),
        (record(1) + b"<<<<<<< HEAD\n" + record(2), "merge conflict", 5),
        (record(1) + b"<<<<<<< HEAD\n", "merge conflict", 5),
        (record(1) + b"=======\n" + record(2), "merge conflict", 5),
        (record(1) + b"hello\n" + record(2), "expected `---`", 5),
        (record(1) + b"\n" + record(2), "empty line", 5),
        (record(1) + b"\n\n\n\n\nhello", "expected `---`", 5),
        (b"hello", "expected `---`", 1),
        (b"---\ncall: 1\n... more\n", "`...` alone", 3),
        (b"---\ncall: 1\n....\n", "`...` alone", 3),
    ],
)
def test_what_is_no_record_is_told_with_its_line(path, data, says, line):
    path.write_bytes(data)
    with pytest.raises(CassetteError, match=says) as caught:
        texts(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_no_record_is_larger_than_the_cap(path, monkeypatch):
    monkeypatch.setattr("tape_jupyter.cassette.journal.RECORD_CAP", 1000)
    with pytest.raises(CassetteError, match="64 MiB"):
        Journal(path).append(record(1, 1000))
    assert not path.exists()
    path.write_bytes(record(1) + record(2, 1000) + record(3))
    with pytest.raises(CassetteError, match="64 MiB") as caught:
        texts(path)
    assert caught.value.line == 5
    assert RECORD_CAP == 64 * 1024 * 1024


def test_changes_by_others_are_seen_and_ours_are_not(path):
    journal = Journal(path)
    assert journal.changed()
    list(journal.scan())
    assert not journal.changed()
    journal.append(record(1))
    assert not journal.changed()
    Journal(path).append(record(2))
    assert journal.changed() and journal.grown()
    list(journal.scan(journal.committed))
    assert not journal.changed()
    path.write_bytes(path.read_bytes().replace(b"call: 1", b"call: 9"))
    assert journal.changed() and not journal.grown()
    path.unlink()
    assert journal.changed() and not journal.grown()


def test_records_of_others_since_are_found_between_offsets(path):
    journal = Journal(path)
    list(journal.scan())
    journal.append(record(1))
    known = journal.committed
    Journal(path).append(record(2))
    Journal(path).append(record(3))
    at = journal.append(record(4))
    assert [journal.read(s.offset, s.length) for s in journal.between(known, at)] == [
        record(2),
        record(3),
    ]
    assert journal.committed == at + len(record(4))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes().replace(b"call: 1", b"call: 9")),
        lambda path: path.write_bytes(path.read_bytes().replace(b"call: 1", b"call: 1234567890")),
        lambda path: path.write_bytes(path.read_bytes().replace(b"call: 1", b"call: 11")),
        lambda path: path.write_bytes(path.read_bytes().replace(b"call: 1", b"call: 111")),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: path.rename(path.with_name("old")) and path.write_bytes(record(8) * 9),
    ],
)
def test_nothing_is_appended_to_a_file_that_is_no_longer_the_one_that_was_read(path, change):
    path.write_bytes(record(1) + record(2))
    journal = Journal(path)
    list(journal.scan())
    change(path)
    before = path.read_bytes() if path.exists() else b""
    with pytest.raises(Replaced):
        journal.append(record(3))
    assert path.read_bytes() == before
    list(journal.scan())
    journal.append(record(3))
    assert texts(path)[-1] == record(3)


def test_a_file_replaced_while_we_wait_for_its_lock_gets_the_record(path, monkeypatch):
    """As `tape prune` does: it writes another file and renames it, under the lock of the old one."""
    import portalocker

    waits = threading.Event()
    monkeypatch.setattr(locks, "NOTICE_AFTER", 0.0)
    monkeypatch.setattr(locks, "_print_note", lambda _: waits.set())
    path.write_bytes(record(1) + record(2))
    with path.open("rb+") as held:
        portalocker.lock(held, portalocker.LockFlags.EXCLUSIVE)
        appending = threading.Thread(target=Journal(path).append, args=(record(3),))
        appending.start()
        assert waits.wait(60)
        new = path.with_name("new")
        new.write_bytes(record(2))
        new.replace(path)
    appending.join(10)
    assert texts(path) == [record(2), record(3)]


def test_appends_of_many_threads_are_all_whole(path):
    def append(k):
        journal = Journal(path)
        for n in range(50):
            journal.append(record(100 * k + n, n))

    threads = [threading.Thread(target=append, args=(k,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(texts(path)) == sorted(
        record(100 * k + n, n) for k in range(4) for n in range(50)
    )


@pytest.mark.parametrize("kind", ["folder", "fifo", "device", "link out", "dangling link", "loop"])
def test_what_is_no_plain_file_of_its_folder_is_refused(tmp_path, kind):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "main.tape.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link out":
        (tmp_path / "out").write_bytes(record(1))
        path.symlink_to(tmp_path / "out")
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "in" / "nothing")
    else:
        path.symlink_to(path)
    for use in (
        lambda: texts(path),
        lambda: Journal(path).append(record(1)),
        lambda: Journal(path).writable(),
    ):
        with pytest.raises(CassetteError) as caught:
            use()
        assert str(path) in str(caught.value)


def test_a_link_within_its_folder_is_followed(path):
    path.with_name("real").write_bytes(record(1))
    path.symlink_to("real")
    Journal(path).append(record(2))
    assert texts(path) == [record(1), record(2)]
    assert path.is_symlink()


def test_a_path_through_a_file_is_refused_when_written_and_empty_when_read(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "main.tape.yaml"
    assert texts(path) == []
    assert "not a folder" in Journal(path).writable()
    with pytest.raises(CassetteError):
        Journal(path).append(record(1))


def test_a_file_nobody_may_read_is_told(path):
    path.write_bytes(record(1))
    path.chmod(0)
    code = (
        "import os, sys; from pathlib import Path; from tape_jupyter.cassette.journal import Journal\n"
        "from tape_jupyter.errors import CassetteError\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try: list(Journal(Path(sys.argv[1])).scan())\n"
        "except CassetteError as error: print(error)\n"
    )
    if os.getuid():
        with pytest.raises(CassetteError, match="ermission"):
            texts(path)
        return
    for folder in path.parents[:3]:
        folder.chmod(0o755)
    told = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert "ermission" in told.stdout, told.stderr


def test_a_full_disk_leaves_the_file_as_it_was(path, monkeypatch):
    Journal(path).append(record(1))
    before, real = path.read_bytes(), os.write
    calls = []

    def write(file, data):
        calls.append(data)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(file, data[:7])

    monkeypatch.setattr("tape_jupyter.cassette.journal.os.write", write)
    with pytest.raises(CassetteError, match="No space left"):
        Journal(path).append(record(2, 99))
    monkeypatch.undo()
    assert path.read_bytes() == before
    Journal(path).append(record(3))
    assert texts(path) == [record(1), record(3)]


def test_an_interrupt_while_writing_leaves_the_file_as_it_was(path, monkeypatch):
    Journal(path).append(record(1))
    before, real = path.read_bytes(), os.write

    def write(file, data):
        real(file, data[:7])
        raise KeyboardInterrupt

    monkeypatch.setattr("tape_jupyter.cassette.journal.os.write", write)
    with pytest.raises(KeyboardInterrupt):
        Journal(path).append(record(2))
    assert path.read_bytes() == before


def test_a_file_system_without_locks_is_told(path, monkeypatch):
    import portalocker

    def lock(*_):
        raise portalocker.LockException("locks are not supported here")

    monkeypatch.setattr("tape_jupyter.core.locks.portalocker.lock", lock)
    with pytest.raises(CassetteError, match="locks are not supported"):
        Journal(path).append(record(1))


def test_no_descriptor_stays_open(path):
    before = len(os.listdir("/proc/self/fd"))
    journal = Journal(path)
    for n in range(20):
        journal.append(record(n))
        list(journal.scan())
        journal.sync()
    assert len(os.listdir("/proc/self/fd")) == before


def test_lines_are_counted_on_from_the_last_that_was_asked_for_until_the_file_is_another(path):
    journal = Journal(path)
    offsets = [journal.append(record(n), b"---\ntape: 1\n...\n") for n in range(3)]
    assert [journal.line(at) for at in (*offsets, *reversed(offsets))] == [4, 8, 12, 12, 8, 4]
    path.write_bytes(b"# a line\n" + path.read_bytes())
    assert journal.line(offsets[2] + 9) == 13


def test_a_file_that_is_held_over_many_appends_is_as_if_it_were_opened_for_each(path):
    journal = Journal(path)
    with journal.hold_open():
        offsets = [journal.append(record(n), b"---\ntape: 1\n...\n") for n in range(3)]
    journal.append(record(3))
    assert texts(path) == [b"---\ntape: 1\n...\n", *(record(n) for n in range(4))]
    assert [journal.read(at, len(record(0))) for at in offsets] == [record(n) for n in range(3)]


def test_a_file_that_is_held_is_locked_and_is_let_go_after_an_error(path):
    import portalocker

    journal = Journal(path)
    try:
        with journal.hold_open():
            journal.append(record(1))
            with path.open("ab") as file, pytest.raises(portalocker.LockException):
                portalocker.lock(
                    file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
                )
            raise KeyError
    except KeyError:
        pass
    Journal(path).append(record(2))
    assert texts(path) == [record(1), record(2)]


def _refuse(*_, **__):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@pytest.mark.parametrize(
    ("name", "do", "says"),
    [
        ("lstat", lambda journal: journal.exists(), "cannot be read: Permission denied"),
        ("stat", lambda journal: journal.changed(), "cannot be read: Permission denied"),
        ("open", lambda journal: list(journal.scan()), "cannot be read: Permission denied"),
    ],
)
def test_a_file_that_the_system_holds_back_is_told(path, monkeypatch, name, do, says):
    journal = Journal(path)
    journal.append(record(1))
    list(journal.scan())
    monkeypatch.setattr(type(path), name, _refuse)
    with pytest.raises(CassetteError, match=says):
        do(journal)


def test_what_cannot_be_brought_to_the_disk_or_held_open_is_told(path, monkeypatch):
    journal = Journal(path)
    journal.append(record(1))
    monkeypatch.setattr(os, "fsync", _refuse)
    with pytest.raises(CassetteError, match="cannot be brought to the disk: Permission denied"):
        journal.sync()
    monkeypatch.setattr(os, "open", _refuse)
    with (
        pytest.raises(CassetteError, match="cannot be written: Permission denied"),
        journal.hold_open(),
    ):
        pass


def test_before_a_call_is_paid_for_it_is_known_whether_it_can_be_kept(path, monkeypatch):
    journal, deep = Journal(path), Journal(path.parent / "a" / "b" / path.name)
    assert journal.writable() == "" and deep.writable() == ""
    journal.append(record(1))
    (path.parent / "file").write_text("")
    inside = path.parent / "file" / path.name
    assert Journal(inside).writable() == f"{path.parent / 'file'} is not a folder"
    assert journal.writable() == ""
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert journal.writable() == "the file is read-only"
    assert deep.writable() == f"the folder {path.parent} is read-only"
    monkeypatch.undo()
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY | 8))
    assert journal.writable() == "the file is read-only"
    assert deep.writable() == f"the folder {path.parent} is read-only"
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=8))
    assert journal.writable() == "" and deep.writable() == ""
    monkeypatch.setattr(os, "statvfs", _refuse)
    assert journal.writable() == ""
    monkeypatch.delattr(os, "statvfs")
    assert journal.writable() == "" and deep.writable() == ""


@pytest.mark.parametrize("number", [1, 5, 100])
def test_what_stands_behind_empty_lines_is_named(path, number):
    path.write_bytes(record(1) + b"\n" * number + b"stray text\n")
    with pytest.raises(CassetteError, match="found " + ("'stray text'" if number > 79 else "an empty line")):  # fmt: skip
        list(Journal(path).scan())


def test_a_mark_in_the_torn_tail_of_a_line_is_none(path):
    """`...` that goes on in its line ends no record, wherever the crash left it."""
    journal = Journal(path)
    journal.append(record(1))
    with path.open("ab") as file:
        file.write(b"---\ncall: 2\ntext: |\n...and so on\n...and more")
    Journal(path).append(record(3))
    assert path.read_bytes() == record(1) + record(3)
    assert path.with_name(path.name + ".torn").read_bytes().endswith(b"...and so on\n...and more\n")


def test_a_file_that_is_replaced_and_gone_while_we_wait_is_made_again(path, monkeypatch):
    journal = Journal(path)
    journal.append(record(1))
    lock = locks.lock_file

    def removed(file, *more):
        lock(file, *more)
        path.unlink(missing_ok=True)
        monkeypatch.setattr(locks, "lock_file", lock)

    monkeypatch.setattr(locks, "lock_file", removed)
    Journal(path).append(record(2), b"---\ntape: 1\n...\n")
    assert texts(path) == [b"---\ntape: 1\n...\n", record(2)]
