"""Is everything there that recording and replaying need, and is a cassette sound? Changes nothing.

Every check is one function that gives one Finding and never raises; a check that itself fails is a
finding.
"""

from __future__ import annotations

import importlib.util
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from tape_jupyter import __version__
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.errors import CassetteError

Grade = Literal["ok", "note", "wrong"]

# What taps were tried with: lowest version that works, first that was never tried.
TAPPED = {
    "httpx": ("0.27", "0.29"),
    "httpx2": ("2.0", "3.0"),
    "urllib3": ("1.26", "3.0"),
}
NEEDED = ("ipython", "nbclient", "portalocker", "click", "rich", "genai-prices", "google-re2")


@dataclass(frozen=True, slots=True)
class DoctorLine:
    """One line of `tape doctor`. note: worth knowing; wrong: something will not work, and `text`
    what to do.
    """

    about: str
    grade: Grade
    text: str


Check = Callable[[], DoctorLine]


def findings(cassettes: list[Path], folder: Path) -> Iterator[DoctorLine]:
    """Everything checked: the environment first, then each cassette."""
    checks: list[tuple[str, Check]] = [
        ("python", check_python),
        ("packages", check_packages),
        ("command", check_command),
        *((f"tap {name}", lambda name=name: tap(name)) for name in TAPPED),
        ("kernel", check_kernel),
        ("extension", extension),
        ("folder", lambda: writable(folder)),
        ("lock", lambda: check_locks(folder)),
        *((path.name, lambda path=path: cassette(path)) for path in cassettes),
    ]
    for about, check in checks:
        try:
            yield check()
        except Exception as error:
            yield DoctorLine(
                about, "wrong", f"could not be checked: {type(error).__name__}: {error}"
            )


def check_python() -> DoctorLine:
    text = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}, {sys.executable}"
    if sys.version_info < (3, 11):  # noqa: UP036 - somebody may run it from a checkout
        return DoctorLine("python", "wrong", f"{text}; tape-jupyter needs Python 3.11 or newer")
    return DoctorLine("python", "ok", text)


def check_packages() -> DoctorLine:
    missing = [name for name in NEEDED if version(name) is None]
    if missing:
        return DoctorLine(
            "packages", "wrong", f"missing: {', '.join(missing)}; install tape-jupyter again"
        )
    versions = [f"{name} {version(name)}" for name in NEEDED]
    return DoctorLine("packages", "ok", ", ".join([f"tape-jupyter {__version__}", *versions]))


def check_command() -> DoctorLine:
    """Which program `tape` is: others have that name too."""
    found = shutil.which("tape")
    if found is None:
        return DoctorLine(
            "command", "note", "tape is not on PATH: python -m tape_jupyter is the same"
        )
    if b"tape_jupyter" in Path(found).read_bytes():
        return DoctorLine("command", "ok", found)
    return DoctorLine(
        "command",
        "wrong",
        f"{found} is another program, before tape-jupyter's on PATH: type tape-jupyter instead of tape",
    )


def version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def tap(name: str) -> DoctorLine:
    """Whether calls through that library are recorded."""
    installed, (low, high) = version(name), TAPPED[name]
    if installed is None:
        return DoctorLine(f"tap {name}", "note", "not installed, so nothing to record")
    if _parse_version(installed) < _parse_version(low):
        return DoctorLine(
            f"tap {name}", "wrong", f"{installed} is too old; from {low} on its calls are recorded"
        )
    if _parse_version(installed) >= _parse_version(high):
        return DoctorLine(
            f"tap {name}",
            "note",
            f"{installed} is newer than what tape-jupyter was tested with (below {high})",
        )
    return DoctorLine(f"tap {name}", "ok", installed)


def _parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in text.split(".")[:3])


def check_kernel() -> DoctorLine:
    """Whether `tape record NB` and `tape replay NB` have a Python kernel to start."""
    if importlib.util.find_spec("ipykernel") is None:
        return DoctorLine(
            "kernel",
            "note",
            "ipykernel is not installed: `tape record NB` needs it (pip install ipykernel)",
        )
    from jupyter_client.kernelspec import KernelSpecManager

    names = sorted(KernelSpecManager().find_kernel_specs())
    return DoctorLine(
        "kernel",
        "ok" if "python3" in names else "note",
        f"ipykernel {version('ipykernel')}; kernels: {names}",
    )


def extension() -> DoctorLine:
    """Whether `%load_ext tape_jupyter` works, in a fresh interpreter: this one has half of it
    loaded already.
    """
    code = (
        "from IPython.core.interactiveshell import InteractiveShell as S; s = S(); "
        "s.extension_manager.load_extension('tape_jupyter'); "
        "assert 'tape' in s.magics_manager.magics['line']; s.extension_manager.unload_extension('tape_jupyter')"
    )
    with tempfile.TemporaryDirectory() as folder:
        completed = subprocess.run(  # noqa: S603 - our own code, our own interpreter
            [sys.executable, "-P", "-c", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=folder,
            env=_build_calm_env(folder),
        )
    if completed.returncode:
        last = (completed.stderr.strip().splitlines() or ["no word"])[-1]
        return DoctorLine("extension", "wrong", f"%load_ext tape_jupyter fails: {last}")
    return DoctorLine("extension", "ok", "%load_ext tape_jupyter works")


def _build_calm_env(folder: str) -> dict[str, str]:
    """The environment without a session's mode, with no IPython profile and no path from the
    current folder.
    """
    import os

    package = Path(__file__).parents[2]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPE_")}
    path = os.pathsep.join(filter(None, [str(package), kept.get("PYTHONPATH", "")]))
    return {**kept, "IPYTHONDIR": folder, "PYTHONPATH": path}


def writable(folder: Path) -> DoctorLine:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".tape-doctor-"):
            return DoctorLine("folder", "ok", f"{folder} can be written")
    except OSError as error:
        return DoctorLine(
            "folder",
            "wrong",
            f"{folder} cannot be written ({error.strerror}): recording is refused there",
        )


def check_locks(folder: Path) -> DoctorLine:
    """Whether a lock taken by one process keeps another out: on some network drives it does not."""
    import portalocker

    other = (
        "import sys, portalocker as p; "
        "p.lock(open(sys.argv[1], 'r+'), p.LockFlags.EXCLUSIVE | p.LockFlags.NON_BLOCKING)"
    )
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".tape-doctor-") as file:
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE)
            completed = subprocess.run(  # noqa: S603
                [sys.executable, "-P", "-c", other, file.name],
                capture_output=True,
                check=False,
                timeout=60,
            )
    except OSError as error:
        return DoctorLine("lock", "wrong", f"no file can be locked in {folder}: {error.strerror}")
    if completed.returncode:
        return DoctorLine("lock", "ok", "file locks work")
    return DoctorLine(
        "lock",
        "wrong",
        f"file locks do nothing in {folder}: two kernels must not record there at once",
    )


def cassette(path: Path) -> DoctorLine:
    """Reads every record and restores every byte. Worst first: broken, torn, edited by hand,
    incomplete.
    """
    try:
        tape = Cassette.open(path, check="whole")
        edited = [entry.id for entry in tape.edited()]
    except CassetteError as error:
        return DoctorLine(path.name, "wrong", str(error))
    notes = [
        ", ".join(
            (
                format_count(len(tape.runs), "run"),
                format_count(len(tape.calls), "call"),
                format_count(path.stat().st_size, "byte"),
            )
        )
    ]
    if tape.notes:
        notes += tape.notes
    if edited:
        notes.append(
            f"{format_count(len(edited), 'reply')} edited by hand "
            f"({', '.join(edited[:3])}{', ...' if len(edited) > 3 else ''})"
        )
    unended = [str(run["run"]) for run in tape.runs if str(run["run"]) not in tape.ended]
    if unended:
        notes.append(
            f"{format_count(len(unended), 'run')} without an end (a crash, or still running): what it called replays"
        )
    grade: Grade = "note" if len(notes) > 1 else "ok"
    if path.with_name(path.name + ".torn").exists():
        notes.append(f"an unfinished record of an earlier crash lies in {path.name}.torn")
    return DoctorLine(path.name, grade, "; ".join(notes))


def doctor_json(lines: list[DoctorLine]) -> str:
    return json.dumps(
        [{"about": each.about, "grade": each.grade, "said": each.text} for each in lines], indent=1
    )
