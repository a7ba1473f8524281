"""Which installed packages a session needs, and which of them no index has. Runs in the proof's
kernel.

What was imported, what that requires in this environment, and what a kernel and tape-jupyter need
themselves. A package that was not installed from an index (editable, from a folder, an archive or a
repository) is taken as it is imported.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tape_jupyter.audit.installed_packages import distributions, imported_modules

OURS = "tape-jupyter"
KERNEL = "ipykernel"
_GONE = frozenset(
    {
        "RECORD",
        "RECORD.jws",
        "INSTALLER",
        "REQUESTED",
        "direct_url.json",
        "uv_cache.json",
        "uv_build.json",
    }
)
"""Files of an installed package's metadata that say how it came here."""
_DATA = ("../../../", "..\\..\\..\\")


@dataclass(frozen=True, slots=True)
class Local:
    """A package that no index has. `files`: where each belongs in a wheel of it -> where it lies
    here, absolute.

    `kind`: editable, folder, archive, repository. `dist_info`: the folder in `files` that holds its
    metadata.
    """

    name: str
    version: str
    kind: str
    dist_info: str
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Needs:
    """`distributions`: `name==version`, sorted; `infos`: of each the folder of its metadata;
    `local` by name.

    `elsewhere`: names of packages that these require on another platform, and that are not
    installed here.
    """

    distributions: tuple[str, ...]
    infos: Mapping[str, str]
    local: tuple[Local, ...]
    elsewhere: tuple[str, ...] = ()


def current_needs() -> Needs:
    """What this process needs now, after all that it did."""
    from packaging.utils import canonicalize_name

    shelf = _list_installed()
    roots = {canonicalize_name(each.partition("==")[0]) for each in distributions()} | {
        KERNEL,
        OURS,
    }
    editables = {
        name: place for name, dist in shelf.items() if (place := _find_editable_folder(dist))
    }
    roots |= {name for name, place in editables.items() if _is_used(place)}
    needed = sorted(_find_closure(roots, shelf) - {OURS})
    local = {name: _find_local(shelf[name]) for name in needed if _find_kind(shelf[name])}
    plain = {
        f"{name}=={name_and_version(shelf[name])[1]}": str(_find_info(shelf[name]))
        for name in needed
        if name not in local
    }
    local_packages = tuple(local[name] for name in sorted(local))
    return Needs(
        tuple(sorted(plain)),
        plain,
        local_packages,
        tuple(sorted(set(_find_elsewhere(needed, shelf)))),
    )


def _list_installed() -> dict[str, importlib.metadata.Distribution]:
    """Installed distributions by normalised name; of two the first on the path, as imports have it."""
    installed: dict[str, importlib.metadata.Distribution] = {}
    for dist in importlib.metadata.distributions():
        installed.setdefault(name_and_version(dist)[0], dist)
    return installed


def name_and_version(dist: importlib.metadata.Distribution) -> tuple[str, str]:
    """Normalised name, and version: from its folder's name where that has both (reading metadata
    takes 4 ms each).
    """
    from packaging.utils import canonicalize_name

    info = _find_info(dist)
    name, _, version = info.stem.partition("-")
    if info.suffix != ".dist-info" or not version:
        name, version = str(dist.metadata["Name"] or ""), dist.version
    return canonicalize_name(name), version


def _find_closure(
    roots: Iterable[str], shelf: Mapping[str, importlib.metadata.Distribution]
) -> set[str]:
    """Roots and all that they require here. What is required and not installed is not needed: it
    ran without.
    """
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    waiting = [(name, frozenset[str]()) for name in roots if name in shelf]
    done = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        for line in shelf[name].requires or ():
            try:
                requirement = Requirement(line)
            except InvalidRequirement:
                continue
            if requirement.marker and not any(
                requirement.marker.evaluate({"extra": each}) for each in (extras or {""})
            ):
                continue
            entry = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if entry[0] in shelf and entry not in done:
                done.add(entry)
                waiting.append(entry)
    return {name for name, _ in done}


_PLATFORMS = (
    {
        "sys_platform": "win32",
        "platform_system": "Windows",
        "os_name": "nt",
        "platform_machine": "AMD64",
    },
    {
        "sys_platform": "darwin",
        "platform_system": "Darwin",
        "os_name": "posix",
        "platform_machine": "arm64",
    },
    {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_machine": "x86_64",
    },
    {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_machine": "aarch64",
    },
)


def _find_elsewhere(
    needed: Iterable[str], shelf: Mapping[str, importlib.metadata.Distribution]
) -> Iterator[str]:
    """What packages of a session would require, without any extra, on a platform that is not this
    one.
    """
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    for line in {line for name in needed for line in shelf[name].requires or ()}:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        marker, name = requirement.marker, canonicalize_name(requirement.name)
        if marker is None or name in shelf or marker.evaluate({"extra": ""}):
            continue
        if any(marker.evaluate({**platform, "extra": ""}) for platform in _PLATFORMS):
            yield name


# ---- what no index has


def _read_direct_url(dist: importlib.metadata.Distribution) -> Mapping[str, object]:
    try:
        record = json.loads(dist.read_text("direct_url.json") or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _find_kind(dist: importlib.metadata.Distribution) -> str:
    """How it was installed; "" from an index, or by a way that left no trace."""
    record = _read_direct_url(dist)
    if (dist.read_text("INSTALLER") or "").strip() == "conda":
        return ""  # it tells of the folder that it was built in, on conda's own machine
    if "vcs_info" in record:
        return "repository"
    if "archive_info" in record:
        return "archive"
    folder = record.get("dir_info")
    if not isinstance(folder, dict):
        return ""
    return "editable" if folder.get("editable") else "folder"


def _find_editable_folder(dist: importlib.metadata.Distribution) -> str:
    """The folder that an editable installation points to, or ""."""
    if _find_kind(dist) != "editable":
        return ""
    return os.path.realpath(unquote(urlsplit(str(_read_direct_url(dist).get("url", ""))).path))


def _find_local(dist: importlib.metadata.Distribution) -> Local:
    """As it is installed; an editable one as it was imported."""
    installed = installed_as(dist)
    if installed.kind != "editable":
        return installed
    return replace(
        installed,
        files=dict(
            sorted({**installed.files, **_collect_imported(_find_editable_folder(dist))}.items())
        ),
    )


def installed_as(dist: importlib.metadata.Distribution) -> Local:
    """Its files as they are installed; of an editable one only its metadata."""
    kind, info = _find_kind(dist), _find_info(dist)
    name, version = name_and_version(dist)
    stem = f"{name.replace('-', '_')}-{version}"
    files = {f"{stem}.dist-info/{inside}": path for inside, path in _yield_metadata(info)}
    if kind != "editable":
        files.update(_yield_recorded(dist, info.name, stem))
    return Local(name, version, kind, f"{stem}.dist-info", dict(sorted(files.items())))


def read_distribution(info: str) -> importlib.metadata.Distribution:
    """The distribution whose metadata lie in the folder `info`."""
    return importlib.metadata.Distribution.at(info)


def _find_info(dist: importlib.metadata.Distribution) -> Path:
    return Path(str(getattr(dist, "_path", dist.locate_file(""))))


def _yield_metadata(info: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(info.rglob("*")):
        if path.is_file() and path.name not in _GONE:
            yield path.relative_to(info).as_posix(), str(path)


def _yield_recorded(
    dist: importlib.metadata.Distribution, info: str, stem: str
) -> Iterator[tuple[str, str]]:
    """The files that were installed, by the record of them; scripts are made anew from the entry
    points.
    """
    for file in dist.files or ():
        inside, path = file.as_posix(), Path(str(dist.locate_file(file)))
        if inside.startswith(info + "/") or inside.endswith(".pyc") or not path.is_file():
            continue
        if inside.startswith(_DATA):
            inside = inside[len(_DATA[0]) :]
            if inside.startswith(("bin/", "Scripts/")) or ".." in inside:
                continue
            inside = f"{stem}.data/data/{inside}"
        if not inside.startswith(".."):
            yield inside, str(path)


def _is_used(place: str) -> bool:
    return any(os.path.realpath(path).startswith(place + os.sep) for _, path in imported_modules())


def _collect_imported(place: str) -> dict[str, str]:
    """Of an editable package: the whole of each top-level package or module that was imported from
    below `place`.
    """
    files: dict[str, str] = {}
    for name, path in imported_modules():
        real = os.path.realpath(path)
        if not real.startswith(place + os.sep) or "-packages" + os.sep in real:
            continue
        for inside, file in _yield_package_files(name, Path(real)):
            files[inside] = str(file)
    return files


def _yield_package_files(name: str, file: Path) -> Iterator[tuple[str, Path]]:
    """Every file of the top-level package (below a namespace: of the part of it) that the module
    belongs to.
    """
    parts = name.split(".")
    root = file.parents[len(parts) - 1 if file.stem != "__init__" else len(parts)]
    top = sys.modules.get(parts[0])
    depth = 1 if getattr(top, "__file__", None) else min(2, len(parts))
    unit = root.joinpath(*parts[:depth])
    if not unit.is_dir():
        yield file.relative_to(root).as_posix(), file
        return
    for path in sorted(unit.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and not (set(inside.parts) & _LEFT) and path.suffix != ".pyc":
            yield inside.as_posix(), path


_LEFT = frozenset(
    {"__pycache__", ".git", "node_modules", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache"}
)


def python_needs() -> dict[str, str]:
    """What an environment made elsewhere must be like."""
    from packaging.markers import default_environment

    markers = default_environment()
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return {
        "version": markers["python_full_version"],
        "implementation": markers["implementation_name"],
        "platform": markers["sys_platform"],
        "machine": markers["platform_machine"],
        "tag": f"{tag}-{tag}-{machine}",
    }
