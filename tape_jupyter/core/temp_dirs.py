"""Folders for what is thrown away in the end, also what a killed process left behind it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

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
    """Remove a folder, whatever stands in it (files that may not be read or written too)."""

    def retry_with_rights(function: Callable[[str], Any], path: str, _error: BaseException) -> None:
        with suppress(OSError):
            if Path(path) != folder:  # what the folder lies in is not ours
                Path(path).parent.chmod(0o700)
            if not Path(path).is_symlink():  # nor what it points to
                Path(path).chmod(0o700)
            function(path)

    if sys.version_info >= (3, 12):
        shutil.rmtree(folder, onexc=retry_with_rights)
    else:
        shutil.rmtree(
            folder, onerror=lambda function, path, info: retry_with_rights(function, path, info[1])
        )
