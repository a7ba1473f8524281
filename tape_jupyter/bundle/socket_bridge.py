"""A kernel without a network below a server that has one (`tape open FILE --lab`, where the machine
has namespaces). The two talk over Unix sockets, which are files, so that no network is needed
between them.

`python -m tape_jupyter.bundle.socket_bridge COMMAND...` stands in a kernelspec behind `unshare
-rn`: it turns the loopback on, which notebooks speak to themselves over, and becomes the command.
Where the network is not gone there is no kernel.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tape_jupyter.errors import BundleError
from tape_jupyter.isolation import namespaces

LONGEST = 107
"""Bytes that the path of a Unix socket may have on Linux."""
NAME = len("/kernel-00000000-0000-0000-0000-000000000000-ipc-10")
"""What jupyter_client adds to its runtime folder."""
SERVER = ("--KernelManager.transport=ipc",)
"""What the server is told."""


def command(words: Sequence[str]) -> list[str]:
    """The words of a kernelspec, without network."""
    return [
        *namespaces.without_network(),
        sys.executable,
        "-P",
        "-m",
        "tape_jupyter.bundle.socket_bridge",
        *words,
    ]


def runtime(folder: Path) -> Path:
    """A new folder for the sockets: this one where their paths are short enough there, else one in
    /tmp, to be removed in the end. Raises BundleError where there is no such place.
    """
    if _fits(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    try:
        return Path(tempfile.mkdtemp(prefix="tape-lab-", dir="/tmp"))
    except OSError as error:
        raise BundleError(
            f"{folder} is too long a path for the sockets that JupyterLab and its kernel speak over, and none can be "
            f"made in /tmp ({error.strerror}). Set TMPDIR to a folder with a short path"
        ) from None


def remove(sockets: Path | str, scratch: Path) -> None:
    """Remove the folder of the sockets, where it does not lie in the scratch folder."""
    if not Path(sockets).is_relative_to(scratch):
        shutil.rmtree(sockets, ignore_errors=True)


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) + NAME <= LONGEST


def main(words: Sequence[str]) -> None:
    """Become the command, in the namespace. Raises RuntimeError where the network is not gone."""
    namespaces.loopback_up()
    os.execv(words[0], list(words))  # noqa: S606 - it is what the kernelspec says


if __name__ == "__main__":
    main(sys.argv[1:])
