"""What stands for the bytes of a path that is no file: of a folder, of a symbolic link."""

from __future__ import annotations

import os
from pathlib import Path

DIRECTORY = b"\0a directory"
LINK = b"\0a link to "
"""Stands before where it leads."""


def link_target(path: str | Path) -> str | None:
    """What a symbolic link leads to, as it is written in it; None where there is no link."""
    try:
        return os.readlink(path)  # noqa: PTH115 - in an audit hook: no objects where none are needed
    except OSError:
        return None


def stand_in(path: str | Path) -> bytes | None:
    """What stands for the bytes of what lies there; None of a file, or where nothing lies."""
    if (target := link_target(path)) is not None:
        return LINK + os.fsencode(target)
    return DIRECTORY if os.path.isdir(path) else None  # noqa: PTH112 - the same


def target_of(content: bytes | None) -> str | None:
    """Where a link leads that this stands for; None where it stands for none."""
    if content is None or not content.startswith(LINK):
        return None
    return os.fsdecode(content[len(LINK) :])


def is_stand_in(content: bytes | None) -> bool:
    return content == DIRECTORY or target_of(content) is not None
