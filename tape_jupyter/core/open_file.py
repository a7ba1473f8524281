"""The class of every open file, to be asked for by `isinstance`; the path of one open by a number."""

import errno
import io
import os
import sys
from typing import Any

OPEN_FILE: Any = io.IOBase.__mro__[1]
"""What `io.IOBase` is derived from, in C. `io.IOBase` itself is an abstract class: each new class
that it is asked about is sought among all its subclasses, 0.2 ms where large libraries are loaded.
"""


_IS_LINUX: bool = sys.platform == "linux"


def read_descriptor_path(number: int) -> str:
    """The path of what is open by a number. Raises OSError where nothing is, or the system does not tell."""
    if _IS_LINUX:
        return os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115 - in an audit hook: plain texts
    try:
        from fcntl import F_GETPATH, fcntl  # type: ignore[attr-defined]  # of macOS
    except ImportError:
        raise OSError(errno.ENOSYS, "no path is told") from None
    return str(fcntl(number, F_GETPATH, bytes(1024)).rstrip(b"\0").decode())
