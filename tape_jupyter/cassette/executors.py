"""Programs that execute notebooks from a command line (nbconvert, `jupyter execute`, papermill):
which notebooks one of them was told to execute, and whose turn it is.

No kernel is told which of them it runs. The programs execute one after another, each in a kernel of
its own: where several hold the running cell, the kernels take them in the order of the command line,
and each writes down which it took.
"""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from tape_jupyter.core.parent_process import ParentCommand

_PAPERMILL = "papermill"
_EXECUTORS = frozenset({_PAPERMILL, "jupyter-nbconvert", "jupyter-execute", "jupyter-run"})
_EXECUTOR_MODULES = frozenset({_PAPERMILL, "nbconvert", "nbclient", "jupyter"})
_OUTPUT_OPTIONS = frozenset({"--output", "-o"})
_PROGRAM_WORDS = 3
"""Words of a command line that may name the program: `python -m nbconvert`, `python jupyter-run`."""


def list_executed(command: ParentCommand, start: Path, env: Mapping[str, str]) -> list[list[Path]]:
    """What the program was told to execute, in its order, once for each folder in which its paths
    may begin; nothing where it executes no notebooks. `start` and `env` are the kernel's.
    """
    if not _is_executor(command.argv):
        return []
    folders = dict.fromkeys(_iterate_start_folders(command, start, env))
    return [list(dict.fromkeys(_iterate_notebooks(command.argv, each))) for each in folders]


def runs_first_only(command: ParentCommand) -> bool:
    """Whether the second notebook of its command line is the one that it writes (papermill)."""
    return _PAPERMILL in map(_extract_program, command.argv[:_PROGRAM_WORDS])


def _iterate_start_folders(
    command: ParentCommand, start: Path, env: Mapping[str, str]
) -> Iterator[Path]:
    """Where its paths begin, likeliest first: papermill works in the folder of `--cwd` while it runs
    a notebook, and what it started in is then known to the shell alone.
    """
    folder = command.folder or start
    words = [word for argument in command.argv for word in argument.split("=", 1)]
    inside = Path(os.path.normpath(dict(pairwise(words)).get("--cwd", ".")))
    parts = inside.parts
    if parts and not inside.is_absolute() and folder.parts[-len(parts) :] == parts:
        folder = folder.parents[len(parts) - 1]
    shell = Path(env.get("PWD", ""))
    places = (shell, folder) if inside.is_absolute() else (folder, shell)
    yield from (each for each in places if each.is_absolute())


def _iterate_notebooks(arguments: Sequence[str], folder: Path) -> Iterator[Path]:
    """The notebooks among the words; nbconvert takes patterns, and some leave the suffix out."""
    for before, argument in pairwise(arguments):
        if argument.startswith("-") or before in _OUTPUT_OPTIONS:
            continue
        is_whole = argument.endswith(".ipynb")
        if not is_whole and before.startswith("-"):
            continue  # what an option is set to
        path = folder / (argument if is_whole else f"{argument}.ipynb")
        # unsorted, as nbconvert takes them
        found = [str(path)] if path.is_file() else glob.glob(str(path))  # noqa: PTH207
        yield from (Path(each).resolve() for each in found)


def _extract_program(argument: str) -> str:
    if argument.endswith((".exe", ".py")):
        return Path(argument).stem
    return Path(argument).name


def _is_executor(arguments: Sequence[str]) -> bool:
    """Whether a command line is that of a program that executes the notebooks it is given."""
    first = arguments[:_PROGRAM_WORDS]
    if any(_extract_program(argument) in _EXECUTORS for argument in first):
        return True
    return "-m" in first and any(
        argument in _EXECUTOR_MODULES for argument in arguments[: _PROGRAM_WORDS + 1]
    )


def take_turn(command: ParentCommand, notebooks: Sequence[Path]) -> Path | None:
    """The first of these that no other kernel of the program took, and is this kernel's from now on.
    None where each was taken, or the program cannot be told from one of the same number.
    """
    own = str(os.getpid())
    try:
        folder = _open_turns(command)
        if folder is None:
            return None
        for notebook in notebooks:
            turn = folder / hashlib.sha256(os.fsencode(notebook)).hexdigest()[:32]
            with suppress(FileExistsError), turn.open("x", encoding="ascii") as file:
                file.write(own)
            if turn.read_text(encoding="ascii") == own:
                return notebook
    except OSError:  # a folder that cannot be written
        return None
    return None


def _open_turns(command: ParentCommand) -> Path | None:
    """The folder of the turns of this very process; temp_dirs.sweep_folders removes it one day."""
    if not command.began:
        return None
    began = hashlib.sha256(command.began.encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"tape-turns-{os.getppid()}-{began}")
    folder.mkdir(mode=0o700, exist_ok=True)
    is_own = not folder.is_symlink() and folder.stat().st_uid == os.getuid()
    return folder if is_own else None
