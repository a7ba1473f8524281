"""The lock of a file that several processes append to. Whoever waits for it says so, and gives up
in the end: it may be held by a process that is stopped.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import portalocker

from tape_jupyter.errors import CassetteError

NOTICE_AFTER = 1.0
"""Seconds after which a person is told what is waited for."""
PATIENCE = 60.0
"""Seconds after which nobody waits any more."""
_EXCLUSIVE = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
_SHORTEST, _LONGEST = 0.001, 0.02  # seconds between two tries
_HAS_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


def lock_file(file: int, path: Path, patience: float = PATIENCE) -> None:
    """Lock an open file, until it is closed.

    Raises CassetteError where somebody else keeps it locked that long, or it cannot be locked at
    all.
    """
    waited, pause, reported = 0.0, _SHORTEST, False
    while not _try_lock(file, path):
        if waited >= patience:
            raise CassetteError(_format_lock_timeout(file, waited), path=str(path))
        if waited >= NOTICE_AFTER and not reported:
            reported = True
            _print_note(
                f"{path.name} is locked by {_describe_holder(file)}: waiting for it, {patience:.0f} s at most"
            )
        _wait_seconds(pause)
        waited, pause = waited + pause, min(2 * pause, _LONGEST)


@contextmanager
def hold_lock(path: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of a file that is there for that alone; made where it is not. Raises OSError,
    and what `lock_file` does.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock_file(file, path, patience)
        yield
    finally:
        os.close(file)


def _try_lock(file: int, path: Path) -> bool:
    try:
        portalocker.lock(file, _EXCLUSIVE)
    except portalocker.AlreadyLocked:
        return False
    except (OSError, portalocker.LockException) as error:
        raise CassetteError(_format_lock_failure(error), path=str(path)) from error
    return True


def _format_lock_failure(error: Exception) -> str:
    cause = error.__cause__ or error
    text = f"cannot be locked: {getattr(cause, 'strerror', None) or error}"
    if getattr(cause, "errno", None) in _HAS_NO_LOCKS:
        text += ". Its disk has no file locks (as some NFS mounts): keep it on one that has"
    return text


def _wait_seconds(seconds: float) -> None:
    """Whatever the program, or our own pins, have made of `time.sleep`."""
    threading.Event().wait(seconds)


def _print_note(text: str) -> None:
    # a note to a person, in a kernel below the cell
    print(f"tape: {text}", file=sys.stderr)  # noqa: T201


def _format_lock_timeout(file: int, waited: float) -> str:
    pid = _find_holder_pid(file)
    if pid:
        now = f"end it (kill {pid}), or let it go on"
    else:
        now = "find who has it open, and end that"
    holder = _describe_holder(file)
    return f"is locked by {holder}, and was for {waited:.0f} s of waiting. Now: {now}; then run this again"


def _describe_holder(file: int) -> str:
    """Who has the lock, as far as the system tells: `process 4242 (python3, stopped)`."""
    pid = _find_holder_pid(file)
    if not pid:
        return "another process"
    try:
        name, _, rest = (
            Path(f"/proc/{pid}/stat")
            .read_text("utf-8", "replace")
            .partition("(")[2]
            .rpartition(")")
        )
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({name}{', stopped' if rest.split()[:1] in (['T'], ['t']) else ''})"


def _find_holder_pid(file: int) -> int:
    """The process that holds it, by Linux's table of locks; 0 where that does not tell."""
    try:
        about = os.fstat(file)
        place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
        rows = (
            line.split() for line in Path("/proc/locks").read_text("ascii", "replace").splitlines()
        )
        return next(
            (int(row[4]) for row in rows if len(row) > 5 and row[5] == place and row[1] != "->"), 0
        )
    except (OSError, ValueError, AttributeError):
        return 0
