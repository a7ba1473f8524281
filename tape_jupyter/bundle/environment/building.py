"""Builds the packages of a lock of which there are only sources, where a person allows it
(`--allow-build`). To build is to run the package's code: it is done without network, with an empty
home and no variables (isolation/sandbox.py), and not at all on a machine that has no such thing.

The sources come from the person's own index, by the lock's digest. What they say they are built
with (`build-system.requires`, PEP 518) comes from there too, as wheels, into an environment that is
thrown away.
"""

from __future__ import annotations

import hashlib
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tape_jupyter.bundle.environment import index, startup_hooks
from tape_jupyter.bundle.environment.lock import LockedPackage
from tape_jupyter.errors import BundleError
from tape_jupyter.isolation import namespaces

if TYPE_CHECKING:
    from tape_jupyter.bundle.environment.install import Maker, Said

_OLD = ("setuptools>=40.8.0", "wheel")
"""What sources without `build-system` are built with (PEP 518)."""
_LARGEST, _MOST = 1 << 30, 50_000
"""Bytes and members of an archive that are looked through for its pyproject.toml."""


def require_buildable(packages: Iterable[LockedPackage], *, allowed: bool) -> None:
    """Raises BundleError where a package has to be built, and may not, or cannot, be."""
    built = [each for each in packages if each.built]
    names = ", ".join(each.name for each in built[:5])
    if built and not allowed:
        raise BundleError(
            f"nothing was installed: the lock has no wheel of {names}, and to build one runs its code. Allow it "
            "(--allow-build): it runs without network, variables and home. Or install it yourself"
        )
    if built and not namespaces.can_cut():
        raise BundleError(
            f"nothing was installed: {names} would have to be built, and this machine gives no network namespace to "
            "build it in. Install it yourself if you trust it"
        )


def wheels(
    packages: Iterable[LockedPackage], making: Maker, where: Path, on_line: Said
) -> Iterator[Path]:
    """The wheel of each package, built in a folder of its own below `where`."""
    for package in packages:
        folder = where / f"build-{package.name}"
        folder.mkdir()
        sources = _fetch_sources(package, folder)
        needs = _read_needs(package, sources)
        python = making.make_environment(folder / "environment", on_line)
        watched = startup_hooks.WatchedEnvironment.new(folder / "environment")
        making.install(python, [["pip", *needs]], [], folder, on_line, needs=True)
        watched.check()
        line = [str(python), "-I", "-m", "pip", "wheel", "--disable-pip-version-check"]
        line += ["--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
        line += ["--no-input", "--progress-bar=off", "-w", str(folder / "out"), str(sources)]
        making.run_apart(line, folder, on_line, f"{package.name} cannot be built")
        yield _find_wheel(package, folder / "out")


def _fetch_sources(package: LockedPackage, folder: Path) -> Path:
    for file in index.files_of(package.name, index.configured()):
        name = file.name
        if file.sha256 in package.digests and name.endswith((".tar.gz", ".zip")):
            data = index.downloaded(file, index.configured())
            if hashlib.sha256(data).hexdigest() != file.sha256:
                raise BundleError(f"{package.name}: your index gives another file than its digest")
            place = folder / Path(name).name
            place.write_bytes(data)
            return place
    raise BundleError(f"{package.name}: your package index has no such sources")


def _read_needs(package: LockedPackage, sources: Path) -> list[str]:
    """What it says that it is built with: requirements of an index, and nothing else."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        project = tomllib.loads(_read_project(sources).decode("utf-8"))
        system = project.get("build-system", {})
        listed = system.get("requires", _OLD)
        needs = [Requirement(each) for each in listed]
    except (ValueError, AttributeError, TypeError, InvalidRequirement, RecursionError) as error:
        raise BundleError(
            f"{package.name}: what it is built with cannot be read: {error}"
        ) from error
    if any(each.url for each in needs):
        raise BundleError(f"{package.name} is to be built with files of some address")
    return [str(each) for each in needs]


def _read_project(sources: Path) -> bytes:
    """Its pyproject.toml; empty where it has none."""
    try:
        if sources.suffix == ".zip":
            with zipfile.ZipFile(sources) as archive:
                names = [name for name in archive.namelist() if _is_project(name)]
                return archive.open(names[0]).read(index.LARGEST) if names else b""
        with tarfile.open(sources, "r|gz") as tar:
            size = 0
            for number, member in enumerate(tar):
                size += member.size
                if number > _MOST or size > _LARGEST:
                    raise BundleError(f"{sources.name} is too large to be built")
                if _is_project(member.name) and (file := tar.extractfile(member)):
                    return file.read(index.LARGEST)
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, RuntimeError) as error:
        raise BundleError(f"{sources.name} is not an archive: {error}") from error
    return b""


def _is_project(name: str) -> bool:
    return name.count("/") == 1 and name.endswith("/pyproject.toml")


def _find_wheel(package: LockedPackage, out: Path) -> Path:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from packaging.version import Version

    built = list(out.glob("*.whl"))
    try:
        (place,) = built
        name, version, *_ = parse_wheel_filename(place.name)
        if (name, version) == (package.name, Version(package.version)) and place.is_file():
            return place
    except (ValueError, InvalidWheelFilename):
        pass
    names = ", ".join(each.name[:80] for each in built) or "nothing"
    raise BundleError(f"the sources of {package.name} gave {names}, not {package.version} of it")
