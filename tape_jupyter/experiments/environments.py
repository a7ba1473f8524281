"""Environments of other packages than those that are here, made once and kept by what is in them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tape_jupyter.bundle.environment import install, own_wheel
from tape_jupyter.bundle.environment.index import cache
from tape_jupyter.bundle.environment.requirements import OURS
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError, TapeUsageError

_DONE, _ODD = "made.txt", "odd.txt"


def pinned() -> list[str]:
    """What is installed in this environment, `name==version` each, without ourselves."""
    versions = {
        canonicalize_name(each.metadata["Name"]): each.version
        for each in importlib.metadata.distributions()
        if each.metadata["Name"]
    }
    return [f"{name}=={version}" for name, version in sorted(versions.items()) if name != OURS]


def changed_environment(packages: Sequence[str], base: Sequence[str] | None = None) -> Path:
    """The python of an environment of `base` (this one's packages) with these requirements in place
    of what it has of them. Raises TapeUsageError, BundleError where it cannot be had.
    """
    requirements = [requirement(each) for each in packages]
    names = {canonicalize_name(each.name) for each in requirements}
    kept = [each for each in (pinned() if base is None else base) if _read_name(each) not in names]
    return make_environment([*kept, *map(str, requirements)])


def requirement(text: str) -> Requirement:
    """Raises TapeUsageError for what is none, and for one that names an address."""
    try:
        parsed = Requirement(text)
    except InvalidRequirement as error:
        raise TapeUsageError(f"{text!r} is not a requirement: {error}") from None
    if parsed.url:
        raise TapeUsageError(f"{text!r}: name a version, not an address")
    return parsed


def _read_name(pin: str) -> str:
    return canonicalize_name(re.split(r"[=<>!~\[; ]", pin, maxsplit=1)[0])


def make_environment(pins: Sequence[str], on_progress: Tell = ignore_progress) -> Path:
    """The python of an environment with just these packages, ourselves, and of what a kernel needs
    what is not among them. It is kept in the user's cache folder by what is in it, and made once.
    Raises BundleError where it cannot be made, or where its packages do not go together.
    """
    given_pins = {_read_name(pin): pin for pin in pins if _read_name(pin) != OURS}
    lines = sorted({**{_read_name(pin): pin for pin in _list_needed_pins()}, **given_pins}.values())
    making = install.maker("")
    name, wheel = own_wheel.own_wheel()
    key = hashlib.sha256("\n".join([sys.version, making.python, *lines]).encode() + wheel)
    place = cache() / "environments" / f"try-{key.hexdigest()[:28]}"
    with install.lock_environment(place, on_progress):
        if (place / _DONE).is_file():
            return install.environment_python(place)
        if (place / _ODD).is_file():
            raise BundleError((place / _ODD).read_text("utf-8"))
        shutil.rmtree(place, ignore_errors=True)
        try:
            with tempfile.TemporaryDirectory(prefix="tape-venv-") as folder:
                where = Path(folder)
                python = making.make_environment(place, lambda _line: None)
                (where / name).write_bytes(wheel)
                making.install(python, [lines], [where / name], where, lambda _line: None)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        if odd := _find_conflicts(python):
            (place / _ODD).write_text(odd, "utf-8")
            raise BundleError(odd)
        (place / _DONE).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return python


def _find_conflicts(python: Path) -> str:
    """What of an environment does not go together; "" where all does, or nobody can tell."""
    uv = install.locate_uv(os.environ)
    if not uv:
        return ""
    line = [uv, "pip", "check", "--no-config", "--python", str(python)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603
    conflicts = [
        row for row in done.stderr.splitlines() if " requires " in row or "incompatible" in row
    ]
    if done.returncode:
        return f"packages that do not go together: {'; '.join(conflicts[:3])}"
    return ""


@lru_cache(maxsize=1)
def _list_needed_pins() -> tuple[str, ...]:
    """What is installed here of what ourselves and a kernel need, `name==version` each."""
    pins: dict[str, str] = {}
    left = [OURS, "ipykernel"]
    while left:
        name = canonicalize_name(left.pop())
        if name in pins:
            continue
        try:
            here = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        pins[name] = f"{name}=={here.version}"
        for each in here.requires or ():
            parsed = Requirement(each)
            if parsed.marker is None or parsed.marker.evaluate({"extra": ""}):
                left.append(parsed.name)
    return tuple(pin for name, pin in sorted(pins.items()) if name != OURS)


def resolved(requirements: Sequence[str], before: str = "") -> list[str]:
    """The packages that satisfy these requirements, `name==version` each, of those that were there
    before a date (`2026-10-01`). Raises BundleError where there is no such set, TapeUsageError
    without uv.
    """
    uv = install.locate_uv(os.environ)
    if not uv:
        raise TapeUsageError(
            "packages are resolved by uv, which is not installed here: pip install uv"
        )
    line = [
        uv,
        "pip",
        "compile",
        "--no-header",
        "--no-annotate",
        "--quiet",
        "--python",
        sys.executable,
    ]
    line += ["--exclude-newer", before] if before else []
    done = subprocess.run(  # noqa: S603 - a line of ours
        [*line, "-"], input="\n".join(requirements), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BundleError(
            f"these packages do not go together: {install.reason(done.stderr.splitlines())}"
        )
    return pins_of(done.stdout)


def pins_of(text: str) -> list[str]:
    """The `name==version` lines of a file of requirements."""
    matches = re.findall(
        r"^\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", text, re.MULTILINE
    )
    return sorted(f"{canonicalize_name(name)}=={version}" for name, version in matches)
