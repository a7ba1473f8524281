"""What a session needed of its surroundings: packages, modules, data files, models.

Collected inside the kernel of a notebook's run: `before` gives the line that begins it (before the
first cell), `AFTER` is the expression whose value tells it in the end, as JSON, and `parse_collected` reads
that on the other side. The same run gives the same: everything is sorted, nothing of this machine's
(home, temporary folders, times) is in it but in `local`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tape_jupyter.audit.installed_packages import imported_modules
from tape_jupyter.bundle.archive import names
from tape_jupyter.bundle.environment.caches import Model, model_of
from tape_jupyter.bundle.environment.requirements import Local, current_needs, python_needs
from tape_jupyter.bundle.proof.inputs import InputFile, InputWatch
from tape_jupyter.core.user_code import is_installed
from tape_jupyter.dataflow.tracing.files import is_watched
from tape_jupyter.errors import BundleError

ONE = 100 << 20
"""Bytes of the largest file that is carried."""
ALL = 256 << 20
"""Bytes of all data files together."""
AFTER = f"__import__({__name__!r}, fromlist=['told']).told()"


@dataclass(frozen=True, slots=True, order=True)
class Left:
    """A file that was read and is not carried, and why. `path` is relative to the top, or begins
    with `~` or `…`.
    """

    path: str
    size: int
    sha256: str
    why: str


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run needed. Paths are relative to the top folder, with `/`; all is sorted.

    `root`: the nearest folder (of the top, "" is the top itself) that holds the notebook's folder
    and all that was read. `unseen`: what this machine could not watch, in words; "" nothing.
    `called`: sha256 of a secret that the run carried -> its name in recordings. `elsewhere`:
    packages (names) that are required on other platforms only.
    """

    root: str
    distributions: tuple[str, ...] = ()
    infos: Mapping[str, str] = field(default_factory=dict)
    local: tuple[Local, ...] = ()
    modules: tuple[InputFile, ...] = ()
    data: tuple[InputFile, ...] = ()
    models: tuple[Model, ...] = ()
    left_out: tuple[Left, ...] = ()
    unseen: str = ""
    python: Mapping[str, str] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[str, ...]:
        """Where the packages that no index has lie here, and are imported from: folders, and
        modules alone.
        """
        tops = set[str]()
        for inside, path in (
            (each, file) for package in self.local for each, file in package.files.items()
        ):
            above = len(inside.split("/")) - 1
            tops.add(str(Path(path).parents[above - 1] if above else Path(path)))
        return tuple(sorted(tops))


def before(top: Path, folder: Path, *, copied: bool = True) -> str:
    """The line that begins it. `top`: the widest folder whose files may be carried; `folder`: the
    notebook's, in it.

    `copied`: both are a copy of the person's own, which nobody else reads: access times may be set
    there.
    """
    return f"__import__({__name__!r}, fromlist=['begin']).begin({str(top)!r}, {str(folder)!r}, copied={copied})"


def parse_collected(text: str) -> Collected:
    """What `AFTER` told. Raises BundleError for what is none of it."""
    try:
        record = json.loads(text)
        return Collected(
            root=record["root"],
            distributions=tuple(record["distributions"]),
            infos=record["infos"],
            local=tuple(Local(**each) for each in record["local"]),
            modules=tuple(InputFile(**each) for each in record["modules"]),
            data=tuple(InputFile(**each) for each in record["data"]),
            models=tuple(Model(**each) for each in record["models"]),
            left_out=tuple(Left(**each) for each in record["left_out"]),
            unseen=record["unseen"],
            python=record["python"],
            called=record["called"],
            elsewhere=tuple(record.get("elsewhere", ())),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BundleError(
            f"the kernel did not tell what its cells needed: {error}. Nothing was exported"
        ) from error


# ---- inside the kernel

_running: list[tuple[InputWatch, str]] = []


def begin(top: str, folder: str, *, copied: bool) -> None:
    """Watch from now on, until this process ends."""
    reading = InputWatch(os.path.realpath(top), _may_matter)
    reading.begin(copied=copied)
    _running[:] = [(reading, os.path.realpath(folder))]


def told() -> str:
    """All of it, as JSON."""
    if not _running:
        raise RuntimeError("collecting has not begun in this process")
    reading, folder = _running[0]
    return json.dumps(asdict(_collect_needs(reading, folder)), sort_keys=True)


def _collect_needs(reading: InputWatch, folder: str) -> Collected:
    from tape_jupyter.session import session

    input_files, needs = reading.list_files(), current_needs()
    top = reading.top
    carried = {file for package in needs.local for file in package.files.values()}
    own_files = [
        InputFile(_to_relative(top, each.path), each.size, each.sha256)
        for each in input_files
        if _is_own_file(top, each.path)
    ]
    hooks = [each for each in own_files if names.startup_hook(each.path)]
    own_files = [each for each in own_files if each not in hooks]
    sources = {
        _to_relative(top, os.path.realpath(path))
        for _, path in imported_modules()
        if _is_own_file(top, os.path.realpath(path))
    }
    modules = [each for each in own_files if each.path in sources or each.path.endswith(".py")]
    data, left = _split_by_caps([each for each in own_files if each not in modules])
    left += [
        Left(
            each.path,
            each.size,
            each.sha256,
            "a file of that name is run automatically just because it exists",
        )
        for each in hooks
    ]
    left += [
        Left(_to_relative(top, each) or ".", 0, "", _CROWDED) for each in sorted(reading.crowded)
    ]
    elsewhere = [
        each
        for each in input_files
        if not each.path.startswith(top + os.sep) and each.path not in carried
    ]
    models = {model for each in elsewhere if (model := model_of(each.path))}
    left += [
        _build_left(each)
        for each in elsewhere
        if model_of(each.path) is None and not _is_package(each, needs.local)
    ]
    return Collected(
        root=_find_common_folder(
            _to_relative(top, folder), [each.path for each in (*modules, *data)]
        ),
        distributions=needs.distributions,
        infos=needs.infos,
        local=needs.local,
        modules=tuple(sorted(modules)),
        data=tuple(sorted(data)),
        models=tuple(sorted(models)),
        left_out=tuple(sorted(set(left))),
        unseen=reading.unseen,
        python=python_needs(),
        called=session.get().secrets.carried(),
        elsewhere=needs.elsewhere,
    )


_CROWDED = "a folder that was listed, with too much in it: only what was opened is carried"
_STATE = (
    "IPYTHONDIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "MPLCONFIGDIR",
)


def _may_matter(path: str) -> bool:
    """Whether a file outside the top may be somebody's: no part of the system, of Python, or of a
    tool's own state.
    """
    if model_of(path) is not None:
        return True
    if not is_watched(path) or is_installed(path) or path.startswith(("/run/", "/var/")):
        return False
    home = str(Path.home()) + os.sep
    state = [os.environ.get(name) for name in _STATE]
    if path.startswith(tuple(os.path.join(each, "") for each in state if each)):  # noqa: PTH118
        return False
    if path.startswith(home):
        return not path.removeprefix(home).startswith(".")
    return not (path.startswith(os.path.join(tempfile.gettempdir(), "")) and _is_young(path))  # noqa: PTH118


def _is_young(path: str) -> bool:
    """Whether a temporary file was made after this process began: it is nobody's data."""
    try:
        return os.stat(path).st_ctime >= os.stat(f"/proc/{os.getpid()}").st_ctime  # noqa: PTH116
    except OSError:
        return True


_NEVER = frozenset(
    {".git", ".hg", ".svn", ".ipynb_checkpoints", "__pycache__", ".cache", ".ipython"}
)


def _is_own_file(top: str, path: str) -> bool:
    if not path.startswith(top + os.sep) or is_installed(path):
        return False
    parts = _to_relative(top, path).split("/")
    if path == os.path.realpath(os.environ.get("TAPE_NOTEBOOK", "")) or any(
        part.endswith(".tapes") for part in parts
    ):
        return False
    return not _NEVER.intersection(parts)


def _to_relative(top: str, path: str) -> str:
    inside = os.path.relpath(path, top).replace(os.sep, "/")
    return "" if inside == "." else inside


def _split_by_caps(files: Sequence[InputFile]) -> tuple[list[InputFile], list[Left]]:
    """The smallest first, until they are too much together; and what is left out."""
    kept: list[InputFile] = []
    left: list[Left] = []
    total = 0
    for each in sorted(files, key=lambda file: (file.size, file.path)):
        if each.size > ONE:
            left.append(Left(each.path, each.size, each.sha256, f"larger than {ONE >> 20} MB"))
        elif total + each.size > ALL:
            left.append(
                Left(
                    each.path,
                    each.size,
                    each.sha256,
                    f"the data files together are over {ALL >> 20} MB",
                )
            )
        else:
            kept.append(each)
            total += each.size
    return kept, left


def _build_left(file: InputFile) -> Left:
    home = str(Path.home())
    if file.path.startswith(home + os.sep):
        shown_path = "~" + file.path.removeprefix(home)
    else:
        shown_path = "…/" + Path(file.path).name
    why = "it lies outside of the notebook's folder and of its git work tree"
    return Left(shown_path.replace(os.sep, "/"), file.size, file.sha256, why)


def _is_package(file: InputFile, packages: Iterable[Local]) -> bool:
    """Whether it lies in the folder of a package that is carried as sources."""
    folders = {str(Path(path).parent) for package in packages for path in package.files.values()}
    return (
        any(file.path.startswith(folder + os.sep) for folder in folders)
        or "tape_jupyter" in Path(file.path).parts
    )


def _find_common_folder(folder: str, paths: Iterable[str]) -> str:
    parents: list[Sequence[str]] = [path.split("/")[:-1] for path in paths]
    shared = folder.split("/") if folder else []
    for parts in parents:
        same = 0
        while same < min(len(shared), len(parts)) and shared[same] == parts[same]:
            same += 1
        shared = shared[:same]
    return "/".join(shared)
