"""What a forked child tells the process it came from."""

import os

import pytest

from tape_jupyter.isolation import network_guard


@pytest.fixture
def board(monkeypatch):
    monkeypatch.setattr(network_guard, "_board", [network_guard.Board()])


def in_fork(do):
    """Run it in a forked child; its exit status."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            code = do() or 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_tells_even_after_closing_every_descriptor(board):
    cell = object()

    def tell():
        os.closerange(3, 256)
        network_guard.post("note", "caf\u00e9 \ud800", cell, refused=True)

    assert in_fork(tell) == 0
    (note,) = network_guard.take_notes()
    assert (note["kind"], note["cell"], note["refused"]) == ("note", id(cell), True)
    assert network_guard.take_notes() == []


def test_long_notes_are_shortened_and_too_many_are_dropped(board):
    def tell():
        for _ in range(1000):
            network_guard.post("note", "\N{GRINNING FACE}" * 5000, refused=False)

    assert in_fork(tell) == 0
    assert 0 < len(network_guard.take_notes()) < 1000


def test_a_process_knows_whether_it_was_forked(board):
    assert not network_guard.in_child()

    def look():
        seen = network_guard.in_child()
        network_guard.open_board()
        return 7 if seen and not network_guard.in_child() else 1

    assert in_fork(look) == 7


def test_no_descriptor_is_held():
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    boards = [network_guard.Board() for _ in range(20)]
    after = os.listdir("/proc/self/fd") if before else []
    assert len(before) == len(after) and boards
