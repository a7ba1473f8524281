"""The files of a notebook's folder as they were before the recording changed them.

A recording that makes its own database did not start from one. What each recorded cell changed, and
what was there before, stands on its run's end mark (files/first_contents.py tells it); here that is
read, for whoever runs the notebook again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import external_texts, paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import digests
from tape_jupyter.cassette.runs import current_runs, run_of
from tape_jupyter.core.moved_folders import FOLDERS
from tape_jupyter.core.saved_cells import read_saved_cells
from tape_jupyter.errors import CassetteError, TapeError
from tape_jupyter.files.first_contents import digest_file

KEY = "files"
"""Of a run's end mark."""


@dataclass(frozen=True, slots=True)
class Start:
    """What is to be done to a copy of the folder: paths that were `absent` (not there), files that
    had other content.

    `notes` name the files that were not as they are now, and whose content then was not kept.
    """

    absent: tuple[Path, ...] = ()
    files: Mapping[Path, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def top_of(notebook: Path) -> Path:
    """The widest folder whose files are the notebook's: the git work tree, else its own folder."""
    folder = notebook.parent
    for above in (folder, *folder.parents):
        if above in (Path.home(), Path(above.anchor)):
            break
        if (above / ".git").exists():
            return above
    return folder


def original_folder(notebook: Path) -> Start:
    """How the folder of a notebook (its real path) is put back to what its recording started from."""
    top, tapes = top_of(notebook), notebook.with_suffix(".tapes")
    removed: list[Path] = []
    files: dict[Path, bytes] = {}
    notes: list[str] = []
    for name, first in _collect_firsts(notebook, tapes).items():
        path = Path(os.path.normpath(notebook.parent / name))
        if (
            not _is_inside(path, top)
            or path == notebook
            or path.is_relative_to(tapes)
            or notebook.is_relative_to(path)
        ):
            continue
        if first.get("before") == "none":
            removed += [path] if os.path.lexists(path) else []
        elif first.get("sha256") == digest_file(path):
            continue
        elif (content := _decode_content(first, tapes / "assets")) is not None:
            files[path] = content
        else:
            notes.append(_describe_difference(name, path, first))
    return Start(tuple(removed), files, tuple(filter(None, notes)))


def _describe_difference(name: str, path: Path, first: Mapping[str, Any]) -> str:
    if "sha256" not in first and path.is_file() and path.stat().st_size == first.get("size"):
        return ""  # nothing says that it is another
    return f"{name} is not as it was before the recording, and that was not kept: the run starts from it as it is now"


def _collect_firsts(notebook: Path, tapes: Path) -> dict[str, Mapping[str, Any]]:
    """By path, what stands on the oldest run that counts and tells of it."""
    firsts: dict[str, Mapping[str, Any]] = {}
    for _, records in sorted(_read_recorded_firsts(notebook, tapes), key=lambda each: each[0]):
        for each in records:
            if isinstance(each, Mapping) and isinstance(each.get("path"), str):
                firsts.setdefault(each["path"], each)
    return firsts


def _read_recorded_firsts(notebook: Path, tapes: Path) -> Iterator[tuple[str, Iterable[Any]]]:
    for at, end in _read_end_marks(notebook, tapes):
        firsts = end.get(KEY)
        yield at, firsts if isinstance(firsts, list) else ()


def recorded_folders(notebook: Path) -> dict[str, str]:
    """Folders that tools of a notebook's recording named, and where each is from the notebook's."""
    found: dict[str, str] = {}
    for _, end in _read_end_marks(notebook, notebook.with_suffix(".tapes")):
        folders = end.get(FOLDERS)
        if isinstance(folders, Mapping):
            found |= {str(path): str(place) for path, place in folders.items()}
    return found


def _read_end_marks(notebook: Path, tapes: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Of the runs that count, each with when it began."""
    ids, sources = _read_cell_identities(notebook)
    for path in paths.cassettes_in(tapes):
        with suppress(TapeError, OSError):  # who runs the notebook is told of it
            tape = Cassette.open(path, check="marks")
            for run in current_runs(map(run_of, tape.runs)):
                if run.cell.cell_id not in ids and run.cell.source not in sources:
                    continue
                at = str(tape.by_run.get(run.id, {}).get("at") or "")
                yield at, tape.ended.get(run.id, {})


def _read_cell_identities(notebook: Path) -> tuple[set[str], set[str]]:
    """Ids and source hashes of a notebook's code cells."""
    cells = read_saved_cells(notebook)
    sources = {digest for cell in cells for digest in digests(cell.source)}
    return {cell.id for cell in cells if cell.id}, sources


def _is_inside(path: Path, top: Path) -> bool:
    """Also where links lead: what lies elsewhere is nobody's to change."""
    real = Path(os.path.realpath(path.parent)) / path.name
    return path != top and path.is_relative_to(top) and real.is_relative_to(os.path.realpath(top))


def _decode_content(first: Mapping[str, Any], folder: Path) -> bytes | None:
    """What was kept of the file, if it is still that."""
    try:
        text = external_texts.restore_texts({"text": first.get("base64")}, folder)["text"]
        content = base64.b64decode(text, validate=True)
    except (CassetteError, binascii.Error, TypeError, ValueError):
        return None
    if hashlib.sha256(content).hexdigest() == first.get("sha256"):
        return content
    return None
