"""Which files and folders an audit event (PEP 578) is about to change: for guards that refuse it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES: Mapping[str, tuple[int, ...]] = {
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (0, 1),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.removexattr": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.setxattr": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "shutil.chown": (0,),
    "shutil.move": (0, 1),
    "shutil.rmtree": (0,),
}
"""Events of what changes a folder, and which of their arguments are the places. The file that a
link is made to would be changed through it.
"""


def changed_paths(event: str, args: tuple[Any, ...]) -> Iterator[str | bytes | os.PathLike[Any]]:
    """The paths, as they were given. What is open already (a descriptor) is no path."""
    places = _CHANGES.get(event, ())
    if event == "open" and _is_writing(args[1], args[2]):
        places = (0,)
    for place in places:
        if isinstance(args[place], str | bytes | os.PathLike):
            yield args[place]


def _is_writing(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITES)
