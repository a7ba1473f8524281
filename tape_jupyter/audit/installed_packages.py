"""Which modules are imported, and which installed distributions they come from. Imports nothing
itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any


def imported_modules() -> list[tuple[str, str]]:
    """Names and files of the modules that have one. Their `__dict__` is read: lazy modules must not
    wake up.
    """
    return _scan_modules().files


def not_installed() -> list[tuple[str, str]]:
    """Those of them that lie in no folder of installed packages."""
    return _scan_modules().outside


_NONE: Mapping[str, Any] = {}


@dataclass(slots=True)
class _Look:
    """What was imported at a moment. `state`: how many modules there were, and which of them came
    last.
    """

    state: tuple[int, str, int]
    names: list[str]
    files: list[tuple[str, str]]
    outside: list[tuple[str, str]]
    owners: tuple[list[_PackageFolder], list[str]] | None = None


_last = _Look((0, "", 0), [], [], [])


def _scan_modules() -> _Look:
    """The last look while nothing was imported since: thousands of new tuples would have the
    collector run each time, which takes longer than anything else here, and the program waits
    meanwhile. What is imported comes last.
    """
    global _last  # noqa: PLW0603 - one table of modules, one look at it
    newest = list(sys.modules)[-1]
    state = len(sys.modules), newest, id(sys.modules.get(newest))
    if state != _last.state:
        modules = sys.modules.copy()
        files = [
            (name, getattr(module, "__dict__", _NONE).get("__file__"))
            for name, module in modules.items()
        ]
        located = [
            (name, path)
            for name, path in files
            if path and isinstance(path, str) and name != "__main__"
        ]
        _last = _Look(
            state,
            list(modules),
            located,
            [(name, path) for name, path in located if "-packages" not in path],
        )
    return _last


def distributions() -> list[str]:
    """`name==version` of each installed distribution a module of which is imported now, sorted."""
    sites = [site for site in dict.fromkeys(sys.path) if site.endswith("-packages")]
    shelves = [_read_shelf(site, _read_modified_time(site)) for site in sites]
    scan = _scan_modules()
    if scan.owners is None or scan.owners[0] != shelves:
        owners = {
            shelf.owner(key, path)
            for key, path in _iterate_top_modules(scan)
            for shelf in shelves
            if path.startswith(shelf.inside)
        }
        scan.owners = shelves, sorted(owners - {""})
    return list(scan.owners[1])


def _iterate_top_modules(scan: _Look) -> Iterator[tuple[str, str]]:
    """`numpy`, and `google/genai` where the top is a namespace that several distributions share,
    with a file each.
    """
    files = scan.files
    shared = {name for name in scan.names if "." not in name}.difference(name for name, _ in files)
    for name, path in files:
        top, _, rest = name.partition(".")
        if not rest:
            yield top, path
        elif top in shared:
            yield f"{top}/{rest.partition('.')[0]}", path


@dataclass(slots=True, eq=False)
class _PackageFolder:
    """One folder of installed distributions: which of them owns a top-level module.

    Told by name where it can be (`numpy` is numpy's); else by the records of installed files, those
    of distributions with a like name first. The standard library's `packages_distributions` reads
    all of them, and takes 0.6 s for 170.
    """

    inside: str
    infos: dict[str, Path]  # normalised name -> its .dist-info
    owned: dict[str, str] = field(default_factory=dict)
    """By module, from the records of files: `yaml`, `google/genai` -> distribution."""

    def owner(self, module: str, path: str) -> str:
        """`name==version` of the distribution that installed `module` (`top` or `top/second`), of
        which `path` is a file; or ''.
        """
        info = self.infos.get(_normalise_name(module))
        if info is not None:
            return _format_requirement(info)
        if module not in self.owned:
            file = path.removeprefix(self.inside).replace(os.sep, "/")
            top = self.infos.get(_normalise_name(module.partition("/")[0]))
            info = self._find_installer(module, file) or top
            self.owned[module] = "" if info is None else _format_requirement(info)
        return self.owned[module]

    def _find_installer(self, module: str, file: str) -> Path | None:
        """The distribution in whose record the file stands."""
        top, line = _normalise_name(module.partition("/")[0]).strip("-"), f"\n{file},".encode()
        alike = {name: info for name, info in self.infos.items() if top in name}
        for info in (alike | self.infos).values():
            if line in _read_record(info):
                return info
        return None


def _normalise_name(module: str) -> str:
    return module.lower().replace("_", "-").replace("/", "-")


@lru_cache(maxsize=8)
def _read_shelf(site: str, _modified_ns: int) -> _PackageFolder:
    try:
        infos = [path for path in Path(site).iterdir() if path.suffix == ".dist-info"]
    except OSError:
        infos = []
    return _PackageFolder(
        site.rstrip(os.sep) + os.sep,
        {_read_name(info).lower().replace("_", "-"): info for info in infos},
    )


def _read_name(info: Path) -> str:
    return info.name.partition("-")[0].replace(".", "-")


def _format_requirement(info: Path) -> str:
    name, _, version = info.stem.partition("-")
    return f"{name.replace('_', '-')}=={version}"


def _read_record(info: Path) -> bytes:
    """Its list of files, each line after a line's end."""
    try:
        return b"\n" + (info / "RECORD").read_bytes()
    except OSError:
        return b""


def _read_modified_time(site: str) -> int:
    try:
        return Path(site).stat().st_mtime_ns
    except OSError:
        return 0
