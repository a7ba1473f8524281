"""A copy of a notebook's folder, in which a run may do what it likes: read, write, delete.

The whole git work tree is copied where the notebook lies in one, so that `../data` and modules of a
parent folder are there; else its folder. What no run reads is not: version control, environments,
caches, other notebooks' recordings.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tape_jupyter.cassette import paths
from tape_jupyter.core.progress import Tell
from tape_jupyter.errors import BundleError
from tape_jupyter.files.originals import Start
from tape_jupyter.isolation.namespaces import git_command

MOST_BYTES = 2 << 30
MOST_FILES = 50_000
"""A folder that holds more is copied in part: the notebook's folder and small files first."""

_PASSED_BY = frozenset({
    ".git", ".hg", ".svn", "node_modules", "__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache",
    ".ruff_cache", ".tox", ".nox", ".DS_Store", ".hypothesis",
})  # fmt: skip
_GIT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Copy:
    """`top` is the copy, `notebook` lies in it; `files` are the paths below it, `missing` what is
    too much. `before`: content of those that were not as they are now when the recording began.
    """

    top: Path
    notebook: Path
    files: frozenset[str]
    missing: tuple[str, ...] = ()
    before: Mapping[str, bytes] = field(default_factory=dict)


def copied(
    notebook: Path, top: Path, goal: Path, on_progress: Tell, most: int = MOST_BYTES
) -> Copy:
    """Copy `top` to `goal`, which is made; at most so many bytes. Raises BundleError where a file
    cannot be read.
    """
    chosen, missing = _choose_files(notebook, top, most)
    for number, name in enumerate(chosen):
        on_progress("copying the folder", number, len(chosen))
        copy_file(top / name, goal / name)
    (goal / notebook.parent.relative_to(top)).mkdir(parents=True, exist_ok=True)
    return Copy(goal, goal / notebook.relative_to(top), frozenset(chosen), tuple(missing))


def put_copy(copy: Copy, top: Path, start: Start) -> Copy:
    """Put a copy of `top` back to how it was before the recording. Raises BundleError."""
    for path in start.absent:
        remove_path(copy.top / path.relative_to(top))
    files = {path.relative_to(top).as_posix(): content for path, content in start.files.items()}
    for name, content in files.items():
        copy_file(content, copy.top / name)
    there = {name for name in copy.files if (copy.top / name).is_file()}
    return replace(copy, files=frozenset(there | files.keys()), before=files)


def remove_path(path: Path) -> None:
    """A file, a link, or a folder with all in it; nothing where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def copy_file(source: Path | bytes, goal: Path) -> None:
    """A file of its own with that content; its folder is made."""
    goal.parent.mkdir(parents=True, exist_ok=True)
    try:
        if isinstance(source, bytes):
            goal.write_bytes(source)
        else:
            shutil.copy2(source, goal)
            goal.chmod(goal.stat().st_mode | 0o600)
    except OSError as error:
        raise BundleError(
            f"{source if isinstance(source, Path) else goal.name}: {error.strerror or error}"
        ) from error


def _choose_files(notebook: Path, top: Path, most: int) -> tuple[list[str], list[str]]:
    """Paths below the top to copy, and those that are too much."""
    near = notebook.parent.relative_to(top).parts
    names = dict.fromkeys(
        [*_walk_folder(notebook, top, notebook.parent), *_list_git_files(notebook, top)]
    )
    sized = [
        (_measure_distance(name, near), size, name)
        for name in names
        if (size := _read_size(top / name)) is not None
    ]
    chosen: list[str] = []
    missing: list[str] = []
    left = most
    for _, size, name in sorted(sized):
        if size > left or len(chosen) >= MOST_FILES:
            missing.append(name)
        else:
            chosen.append(name)
            left -= size
    return sorted(chosen), sorted(missing)


def _measure_distance(name: str, near: tuple[str, ...]) -> int:
    parts = tuple(name.split("/"))[:-1]
    common = next(
        (at for at, pair in enumerate(zip(parts, near, strict=False)) if pair[0] != pair[1]),
        len(near),
    )
    return len(near) - min(common, len(parts))


def _read_size(path: Path) -> int | None:
    """Bytes of a file; None for what is none that can be copied."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _walk_folder(notebook: Path, top: Path, folder: Path) -> Iterator[str]:
    seen: set[str] = set()
    for root, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(root)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [each for each in folders if _is_wanted_folder(Path(root, each), notebook)]
        yield from (
            Path(root, each).relative_to(top).as_posix() for each in files if _is_wanted_file(each)
        )


def _list_git_files(notebook: Path, top: Path) -> Iterator[str]:
    """What git holds or would take in of the work tree; nothing where there is none."""
    if not (top / ".git").exists():
        return
    try:
        command = git_command(top, "ls-files", "-z", "-co", "--exclude-standard")
        # fixed words
        done = subprocess.run(command, capture_output=True, check=True, timeout=_GIT_SECONDS)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return
    for name in filter(None, os.fsdecode(done.stdout).split("\0")):
        path = Path(name)
        if _is_wanted_file(path.name) and all(
            _is_wanted_folder(top / each, notebook) for each in path.parents
        ):
            yield path.as_posix()


def _is_wanted_file(name: str) -> bool:
    return name not in _PASSED_BY and not name.endswith((".tape.zip", ".pyc", ".torn"))


def _is_wanted_folder(path: Path, notebook: Path) -> bool:
    if path.name in _PASSED_BY or (path / "pyvenv.cfg").exists():
        return False
    return (
        path.suffix != ".tapes"
        or path == paths.folder(notebook)
        or not path.with_suffix(".ipynb").exists()
    )
