"""Symbolic links in the notebook's folder, as a recording keeps them: where they lead, from where they lie.

None leads out of the folder: a recording may be a stranger's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from tape_jupyter.files.stand_ins import link_target

_MOST = 40
"""Links that a system follows one after another."""


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


def link_above(path: str, root: str) -> str:
    """The first link on the way to a path below `root`; "" where there is none. What was noted without links
    is not what lies behind one now.
    """
    if not path.startswith(root + os.sep):
        return ""
    link, target, rest = _find_first_link(path, root)
    return link if target is not None and rest else ""


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
    """Make the link that a recording has, in the place of what is there.

    Gives what hinders, in words.
    """
    target = str(record["link"])
    place = os.path.realpath(path.parent)
    if not _stays_inside(target, place, os.path.realpath(folder)):
        return "it would be a link out of the notebook's folder"
    full = os.path.normpath(os.path.join(place, target))  # noqa: PTH118 - of texts
    put_link(path, full if record.get("absolute") else target)
    return ""


def put_link(path: Path, target: str) -> None:
    """Make a link, in the place of what is there. Raises OSError where that is a folder with something in
    it.
    """
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _stays_inside(target: str, place: str, root: str) -> bool:
    """Whether a link in the folder `place` leads into `root`, whatever other links lie on its way."""
    parts = PurePath(target).parts
    named = [at for at, part in enumerate(parts) if part != ".."]
    if PurePath(target).is_absolute() or (named and ".." in parts[named[0] :]):
        return False
    return Path(os.path.normpath(os.path.join(place, target))).is_relative_to(root)  # noqa: PTH118 - of texts
