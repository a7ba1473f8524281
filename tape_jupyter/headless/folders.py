"""Where a notebook is replayed headless: its folder, as it is for the notebook, and nobody else's.

Where the machine has overlays (isolation/overlays.py) the notebook finds its folder at its own
path, and what it writes there is thrown away. Elsewhere it runs in a copy. Either way the folder is
first put back as it was before the recording (files/originals.py): a file that the recording made
is none that it started from.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from tape_jupyter.cassette import paths
from tape_jupyter.comparison.outputs import places
from tape_jupyter.core.copied_folder import CopiedFolder
from tape_jupyter.core.moved_folders import is_told_apart
from tape_jupyter.core.plain_text import join_some
from tape_jupyter.core.progress import ignore_progress
from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.files import copies, originals
from tape_jupyter.isolation import overlays

COPIED = 512 << 20
"""Bytes that are copied where there are no overlays; files that are too much are named, and are not
there.
"""
_TO_A_TAKE = frozenset({"--live", "--freeze", "--stub", "--on-divergence"})
_NAMED = 5


@dataclass(frozen=True, slots=True)
class RunFolder:
    """`notebook` is where the run finds it; `prefix` stands before the kernel's command, `env` is
    added to its environment. `where`: what stands for folders in its outputs (forgiven.places).
    `notes`: what a person should know.
    """

    notebook: Path
    prefix: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    layers: tuple[Path, Path, Path | None] | None = None
    """Of a replay's folder: as it is seen, the person's own below it, and what is written (an
    overlay's upper layer; None for a copy).
    """


@contextmanager
def run_folder(
    notebook: Path, env: Mapping[str, str], files: Mapping[Path, bytes] = MappingProxyType({})
) -> Iterator[RunFolder]:
    """The folder for one replay. `env`: what the kernel is told; where its options write a take,
    the notebook's .tapes folder is the person's own. `files` are found there besides, and nowhere
    else. Raises TapeError.
    """
    path = notebook.resolve()
    top = originals.top_of(path)
    tapes = paths.folder(path)
    kept = tapes if _may_write_takes(env) and tapes.is_dir() else None
    start = originals.original_folder(path)
    start = replace(start, files={**start.files, **files})
    with scratch("replay") as place:
        overlay = overlays.Overlay(top, place, kept, start.absent)
        prefix = overlays.prefix(overlay, path.parent)
        if prefix is not None:
            for goal, content in start.files.items():
                copies.copy_file(content, overlay.upper / goal.relative_to(top))
            layers = (top, overlay.layers / "lower", overlay.upper)
            where = _name_recorded_folders(path, path)
            yield RunFolder(path, tuple(prefix), where=where, notes=start.notes, layers=layers)
        else:
            yield _copy_folder(path, top, place / "copy" / top.name, kept, start)


def _copy_folder(
    path: Path, top: Path, goal: Path, kept: Path | None, start: originals.Start
) -> RunFolder:
    copy = copies.copied(path, top, goal, ignore_progress, COPIED)
    copies.put_copy(copy, top, start)
    if kept is not None:
        link = goal / kept.relative_to(top)
        copies.remove_path(link)
        link.symlink_to(kept, target_is_directory=True)
    notes = list(start.notes)
    if copy.missing:
        missing = join_some(copy.missing, _NAMED)
        notes.append(f"not copied, since the folder is too large: {missing}")
    env = CopiedFolder(str(goal), str(top), str(kept or "")).variable()
    where = places(path.parent) | places(copy.notebook.parent)
    where |= _name_recorded_folders(path, copy.notebook)
    return RunFolder(copy.notebook, (), env, where, tuple(notes), (goal, top, None))


def _name_recorded_folders(notebook: Path, replayed: Path) -> dict[str, str]:
    """What stands for folders that tools of the recording named; none where they lie there still."""
    where: dict[str, str] = {}
    for path, place in originals.recorded_folders(notebook).items():
        here = os.path.normpath(replayed.parent / place)
        if here != path and is_told_apart(path):
            where |= dict.fromkeys((path, here), f"<folder>/{place}".removesuffix("/."))
    return where


def _may_write_takes(env: Mapping[str, str]) -> bool:
    return not _TO_A_TAKE.isdisjoint(shlex.split(env.get("TAPE_OPTIONS", "")))
