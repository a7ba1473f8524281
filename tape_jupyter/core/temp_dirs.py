"""Folders for what is thrown away in the end, also what a killed process left behind it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tape_jupyter.errors import TapeError

LEFT = 24 * 3600.0
"""Seconds after which a folder of a process that is no more is removed. Its number may be another's
in a container.
"""
_NAME = re.compile(r"tape-[a-z]+-([0-9]+)-[^.]+")


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """A new folder (its real path), removed in the end whatever was left in it. `purpose`: one
    lower-case word.

    Raises TapeError where none can be made.
    """
    sweep_folders()
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"tape-{purpose}-{os.getpid()}-")).resolve()
    except OSError as error:
        raise TapeError(
            f"no scratch folder can be made: {error}. Set TMPDIR to a folder that can be written"
        ) from None
    try:
        yield folder
    finally:
        clean(folder)


def sweep_folders() -> None:
    """Remove this user's folders whose process was killed. Only where processes can be asked for
    (POSIX).
    """
    if os.name != "posix":
        return
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            named = _NAME.fullmatch(entry.name)
            if named and _is_stale(entry, int(named[1])):
                clean(Path(entry.path))


def _is_stale(entry: os.DirEntry[str], pid: int) -> bool:
    try:
        about = entry.stat(follow_symlinks=False)
        if not entry.is_dir(follow_symlinks=False) or about.st_uid != os.getuid():
            return False
        if time.time() - about.st_mtime < LEFT:
            return False
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def clean(folder: Path) -> None:
    """Remove a folder, whatever stands in it (folders that may not be read or written too; the
    system makes such a one for each overlay).
    """
    shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir() and not folder.is_symlink():
        _grant_rights(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _grant_rights(folder: Path) -> None:
    """What a person needs to remove it: of files that is asked on Windows alone; elsewhere one may
    be a link to another's.
    """
    with suppress(OSError):
        folder.chmod(0o700)
    for place, folders, files in os.walk(folder):
        for name in [*folders, *(files if os.name == "nt" else ())]:
            inner = Path(place, name)
            with suppress(OSError):
                if not inner.is_symlink():  # what it points to is not ours
                    inner.chmod(0o700)
