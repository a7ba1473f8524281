"""What a tool does to files that are open by a number (`os.open`), and below open folders (`dir_fd`), comes back or is
said.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import tape_jupyter as tape
from tape_jupyter.core import open_file
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import replayed, same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies.clear()


READS_AND_WRITES = os.O_CREAT | os.O_RDWR


def program_of(act, look, begin=b"abcdef", count=1):
    """A program that opens a file by numbers; a tool does something with the first; what is looked at then."""

    def program():
        Path("log.txt").write_bytes(begin)
        numbers = [os.open("log.txt", READS_AND_WRITES) for _ in range(count)]
        number = numbers[0]

        @tape.tool
        def work():
            bodies.append("work")
            act(number)

        try:
            work()
            return look(numbers[-1]), Path("log.txt").read_bytes()
        finally:
            for each in filter(is_open, numbers):
                os.close(each)

    return program


def place(number):
    return os.lseek(number, 0, os.SEEK_CUR)


def is_open(number):
    """Whether the file is open by this number, which others may have got meanwhile."""
    try:
        return os.path.samestat(os.fstat(number), os.stat("log.txt"))
    except OSError:
        return False


@pytest.mark.parametrize(
    ("act", "look", "expected"),
    [
        (lambda fd: os.write(fd, b"xy"), place, (2, b"xycdef")),
        (lambda fd: os.pwrite(fd, b"xy", 4), place, (0, b"abcdxy")),
        (lambda fd: os.ftruncate(fd, 1), place, (0, b"a")),
        (lambda fd: os.read(fd, 2), lambda fd: os.read(fd, 2), (b"cd", b"abcdef")),
        (lambda fd: os.lseek(fd, 3, os.SEEK_SET), place, (3, b"abcdef")),
        (os.close, is_open, (False, b"abcdef")),
    ],
    ids=["write", "pwrite", "ftruncate", "read", "lseek", "close"],
)
def test_what_a_tool_does_to_a_file_that_is_open_by_a_number_comes_back(act, look, expected):
    assert same(program_of(act, look)) == expected


def test_of_two_descriptors_of_a_file_the_one_that_was_used_is_moved():
    written = program_of(lambda fd: os.write(fd, b"xy"), place, count=2)
    assert same(written) == (0, b"xycdef")


def test_a_file_that_a_tool_leaves_open_by_its_number_is_said():
    def program():
        opened = {}

        @tape.tool
        def work():
            bodies.append("work")
            opened["log"] = os.open("log.txt", READS_AND_WRITES)

        work()
        return len(opened)

    _, _, recorded, report = replayed(program)
    for said in (recorded.warnings, report.unheld):
        assert "it left log.txt open by its descriptor" in str(said)


def test_what_goes_through_a_pipe_is_said():
    def program():
        ends = os.pipe()

        @tape.tool
        def work():
            bodies.append("work")
            os.write(ends[1], b"hi")

        work()

    _, _, recorded, report = replayed(program)
    for said in (recorded.warnings, report.unheld):
        assert "a pipe" in str(said)


def make_file(folder):
    number = os.open("new.txt", READS_AND_WRITES, dir_fd=folder)
    os.write(number, b"x")
    os.close(number)


@pytest.mark.parametrize(
    "act",
    [
        make_file,
        lambda folder: os.symlink("old.txt", "new.txt", dir_fd=folder),
        lambda folder: os.mkdir("new.txt", dir_fd=folder),
        lambda folder: os.rename("old.txt", "new.txt", src_dir_fd=folder, dst_dir_fd=folder),
    ],
    ids=["open", "symlink", "mkdir", "rename"],
)
def test_what_a_tool_makes_below_an_open_folder_comes_back(act):
    def program():
        Path("below").mkdir(exist_ok=True)
        for each in Path("below").iterdir():
            each.rmdir() if each.is_dir() and not each.is_symlink() else each.unlink()
        Path("below/old.txt").write_text("x")
        folder = os.open("below", os.O_RDONLY)

        @tape.tool
        def work():
            bodies.append("work")
            act(folder)

        work()
        os.close(folder)
        return sorted(os.listdir("below"))

    assert "new.txt" in same(program)


def test_a_named_pipe_that_a_tool_makes_is_said():
    def program():
        @tape.tool
        def work():
            bodies.append("work")
            os.mkfifo("pipe")

        work()

    with tape.recording("a.tape.yaml") as block:
        program()
    Path("pipe").unlink()
    recorded = block.report
    with tape.replaying("a.tape.yaml") as block:
        program()
    for said in (recorded.warnings, block.report.unheld):
        assert "it made pipe, a pipe or a socket" in str(said)


def test_a_file_that_has_another_name_in_replay_is_said_not_to_be_written():
    """A temporary file that a cell without a tape made."""
    names = iter(["one.txt", "two.txt"])

    def program():
        with open(next(names), "w") as file:

            @tape.tool
            def work():
                bodies.append("work")
                file.write("hi")
                file.flush()

            work()

    _, _, _, report = replayed(program)
    assert "another file here" in str(report.unheld)


def test_where_the_system_tells_no_paths_it_is_said_that_a_descriptor_moved(monkeypatch):
    """As on Windows, which has no `fcntl` and no `termios`."""
    monkeypatch.setattr(open_file, "_IS_LINUX", False)
    for module in ("fcntl", "termios"):
        monkeypatch.setitem(sys.modules, module, None)
    pipe = os.pipe()
    program = program_of(lambda number: (os.read(number, 2), pipe), place)
    try:
        live, again, recorded, report = replayed(program)
    finally:
        for each in pipe:
            os.close(each)
    assert (live[0], again[0]) == (2, 0)
    assert "where its descriptor of a file without a name stands" in recorded.warnings[0]
    assert "this did not happen in this replay" in report.warnings[0]
