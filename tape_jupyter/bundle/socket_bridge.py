"""A kernel without a network below a server that has one (`tape open FILE --lab`, where the machine
has namespaces). The two talk over Unix sockets, which are files, so that no network is needed
between them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tape_jupyter.errors import BundleError

LONGEST = 107
"""Bytes that the path of a Unix socket may have on Linux."""
NAME = len("/kernel-00000000-0000-0000-0000-000000000000-ipc-10")
"""What jupyter_client adds to its runtime folder."""
SERVER = ("--KernelManager.transport=ipc",)
"""What the server is told."""


def runtime(folder: Path) -> Path:
    """A new folder for the sockets: this one where their paths are short enough there, else one in
    /tmp, to be removed in the end. Raises BundleError where there is no such place.
    """
    if _is_short_enough(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    try:
        return Path(tempfile.mkdtemp(prefix="tape-lab-", dir="/tmp"))
    except OSError as error:
        raise BundleError(
            f"{folder} is too long a path for the sockets that JupyterLab and its kernel speak over, and none can be "
            f"made in /tmp ({error.strerror}). Set TMPDIR to a folder with a short path"
        ) from None


def remove_sockets(sockets: Path | str, scratch: Path) -> None:
    """Remove the folder of the sockets, where it does not lie in the scratch folder."""
    if not Path(sockets).is_relative_to(scratch):
        shutil.rmtree(sockets, ignore_errors=True)


def _is_short_enough(folder: Path) -> bool:
    return len(os.fsencode(folder)) + NAME <= LONGEST
