"""A cassette that somebody keeps locked: it is said who, and nobody waits for ever."""

import errno
import os
import signal
import subprocess
import sys
import time

import portalocker
import pytest

from tape_jupyter.bundle import trust
from tape_jupyter.bundle.environment import install
from tape_jupyter.cassette import prune
from tape_jupyter.core import locks
from tape_jupyter.errors import BundleError, CassetteError
from tape_jupyter.cassette.journal import Journal

RECORD = b"---\nx: 1\n...\n"
HOLD = """import os, sys, portalocker
file = os.open(sys.argv[1], os.O_RDWR)
portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE)
print("held", flush=True)
sys.stdin.read()"""


@pytest.fixture
def path(tmp_path):
    Journal(tmp_path / "main.tape.yaml").append(RECORD)
    return tmp_path / "main.tape.yaml"


@pytest.fixture
def holder(path):
    """Another process that has the lock until it is told to end."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout.readline() == b"held\n"
    yield child
    child.kill()
    child.stdin.close()
    child.stdout.close()
    child.wait()


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(locks, "NOTICE_AFTER", 0.02)
    monkeypatch.setattr(locks, "PATIENCE", 0.2)


@pytest.mark.usefixtures("hasty")
def test_who_holds_it_is_said_and_in_the_end_it_is_an_error(path, holder, capfd):
    journal = Journal(path)
    with pytest.raises(CassetteError) as refused:
        journal.append(RECORD)
    who = f"process {holder.pid} (" if sys.platform == "linux" else "another process"
    assert f"tape: main.tape.yaml is locked by {who}" in capfd.readouterr().err
    assert str(refused.value).startswith(f"{path}: is locked by {who}") and "Now: " in str(
        refused.value
    )
    assert path.read_bytes().count(b"...") == 1
    with pytest.raises(CassetteError):  # at once: a cell of 400 calls does not wait for each
        journal.append(RECORD)
    assert capfd.readouterr().err == ""
    holder.stdin.close()
    holder.wait()
    journal.append(RECORD)
    assert path.read_bytes().count(b"...") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="who is stopped is read from /proc")
@pytest.mark.usefixtures("hasty")
def test_one_that_is_stopped_is_told_so(path, holder):
    os.kill(holder.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
    with pytest.raises(
        CassetteError,
        match=rf"process {holder.pid} \(.*, stopped\).*kill {holder.pid}\), or let it go on",
    ):
        Journal(path).append(RECORD)
    os.kill(holder.pid, signal.SIGCONT)


def test_whoever_waits_goes_on_once_it_is_free(path, holder, capfd, monkeypatch):
    monkeypatch.setattr(locks, "NOTICE_AFTER", 0.02)
    said = locks._print_note
    monkeypatch.setattr(
        locks, "_print_note", lambda text: (said(text), holder.stdin.close())
    )  # as soon as a person was told
    Journal(path).append(RECORD)
    assert path.read_bytes().count(b"...") == 2 and "60 s at most" in capfd.readouterr().err


@pytest.mark.usefixtures("hasty")
def test_a_clock_that_stands_still_does_not_make_it_wait_for_ever(path, holder, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(CassetteError, match="is locked by"):
        Journal(path).append(RECORD)


def test_where_files_cannot_be_locked_that_is_said(path, monkeypatch):
    def refuse(*_):
        raise portalocker.LockException("No locks available")

    monkeypatch.setattr(portalocker, "lock", refuse)
    with pytest.raises(CassetteError, match="No locks available"):
        Journal(path).append(RECORD)


@pytest.fixture
def no_locks(path, monkeypatch):
    """A disk that has none, as NFS without its lock daemon says it."""

    def refuse(_file, _how):
        error = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        raise portalocker.LockException(error) from error

    monkeypatch.setattr(locks.portalocker, "lock", refuse)


def test_a_disk_without_locks_is_said_and_what_to_do(path, no_locks):
    wanted = "cannot be locked: No locks available. Its disk has no file locks .* keep it on one"
    before = path.read_bytes()
    with pytest.raises(CassetteError, match=wanted):
        Journal(path).append(RECORD)
    with pytest.raises(CassetteError, match=wanted):
        prune.prune_cassette(path)
    assert path.read_bytes() == before


@pytest.mark.usefixtures("no_locks")
def test_an_environment_and_trust_say_so_too(tmp_path, monkeypatch):
    with (
        pytest.raises(BundleError, match="environment cannot be made: .* No locks available"),
        install.lock_environment(tmp_path / "cache" / "abc", lambda *_: None),
    ):
        raise AssertionError("it was made without a lock")
    monkeypatch.setattr(trust, "file", lambda: tmp_path / "config" / "trusted-bundles")
    said = trust.remember_trust("0" * 64, "churn.ipynb", "asked")
    assert "No locks available" in said and said.endswith("it will be asked for again")


@pytest.mark.usefixtures("hasty")
def test_whoever_waits_for_an_environment_is_told_whom_for(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(install, "_PATIENCE", 0.2)
    lock = tmp_path / ".abc.lock"
    lock.touch()
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout.readline() == b"held\n"
    with (
        child,
        pytest.raises(BundleError, match="is locked by .*Now: "),
        install.lock_environment(tmp_path / "abc", lambda *_: None),
    ):
        raise AssertionError("two made it at once")
    assert "tape: .abc.lock is locked by" in capfd.readouterr().err
