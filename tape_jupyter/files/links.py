"""Symbolic links in the notebook's folder, as a recording keeps them: where they lead, from where they lie.

None leads out of the folder: a recording may be a stranger's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

LINK = b"\0a link to "
"""Stands, before where it leads, for the bytes of a path that is a link."""
_MOST = 40
"""Links that a system follows one after another."""


def link_target(path: str | Path) -> str | None:
    """What a symbolic link leads to, as it is written in it; None where there is no link."""
    try:
        return os.readlink(path)  # noqa: PTH115 - in an audit hook: no objects where none are needed
    except OSError:
        return None


def link_content(path: str | Path) -> bytes | None:
    """What stands for the content of a link; None where there is no link."""
    target = link_target(path)
    return None if target is None else LINK + os.fsencode(target)


def target_of(content: bytes | None) -> str | None:
    """Where a link leads whose content this stands for; None where it is none's."""
    if content is None or not content.startswith(LINK):
        return None
    return os.fsdecode(content[len(LINK) :])


def follow_links(path: str, root: str, *, last: bool) -> tuple[str, list[str]]:
    """(the path without the links that lie on its way below `root`, those links). `last`: a link that the
    path itself ends in is followed, too. All are absolute, without `..`.
    """
    links: list[str] = []
    while path.startswith(root + os.sep) and len(links) < _MOST:
        link, target, rest = _find_first_link(path, root)
        if target is None or not (rest or last):
            break
        links.append(link)
        path = os.path.normpath(os.path.join(os.path.dirname(link), target, rest))  # noqa: PTH118, PTH120
    return path, links


def _find_first_link(path: str, root: str) -> tuple[str, str | None, str]:
    """(the link, what it leads to, what comes after it in the path)."""
    end = len(root)
    while end >= 0:
        end = path.find(os.sep, end + 1)
        place = path if end < 0 else path[:end]
        if (target := link_target(place)) is not None:
            return place, target, "" if end < 0 else path[end + 1 :]
    return path, None, ""


def build_link_record(path: str, target: str, folder: Path) -> dict[str, Any] | None:
    """{"link": where it leads from the folder that it lies in, with `/`}, and "absolute" where it is written
    so; None where it leads out of `folder`.
    """
    place, root = os.path.realpath(Path(path).parent), os.path.realpath(folder)
    written = PurePath(target)
    if not written.is_absolute():
        record: dict[str, Any] = {"link": written.as_posix()}
    else:
        inside = os.path.join(os.path.realpath(written.parent), written.name)  # noqa: PTH118 - of texts
        record = {"link": PurePath(os.path.relpath(inside, place)).as_posix(), "absolute": True}
    return record if _stays_inside(record["link"], place, root) else None


def make_link(path: Path, record: Mapping[str, Any], folder: Path) -> str:
    """Make the link that a recording has, in the place of a file or link that is there.

    Gives what hinders, in words.
    """
    target = str(record["link"])
    place = os.path.realpath(path.parent)
    if not _stays_inside(target, place, os.path.realpath(folder)):
        return "it would be a link out of the notebook's folder"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    full = os.path.normpath(os.path.join(place, target))  # noqa: PTH118 - of texts
    path.symlink_to(full if record.get("absolute") else target)
    return ""


def _stays_inside(target: str, place: str, root: str) -> bool:
    """Whether a link in the folder `place` leads into `root`, whatever other links lie on its way."""
    parts = PurePath(target).parts
    named = [at for at, part in enumerate(parts) if part != ".."]
    if PurePath(target).is_absolute() or (named and ".." in parts[named[0] :]):
        return False
    return Path(os.path.normpath(os.path.join(place, target))).is_relative_to(root)  # noqa: PTH118 - of texts
