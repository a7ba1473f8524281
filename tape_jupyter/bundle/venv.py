"""Doors room: the environment that a bundle's notebook runs in: fresh, made from its lock, its wheels and its sources.

Packages come from the person's own package index, by name, version and digest; the addresses in a stranger's lock are
not followed. What is made is kept in the user's cache folder, by the digest of all it was made from; one that was not
finished is made again. Nothing of the bundle runs while it is made: only wheels are installed, those of its sources
are put together by us, and what would run by itself in an environment is refused (startup.py).
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tape_jupyter.bundle import backend, locked, startup
from tape_jupyter.bundle.archive import Bundle
from tape_jupyter.bundle.index import cache
from tape_jupyter.bundle.installing import Maker, maker, python_of
from tape_jupyter.bundle.locked import NOWHERE, Locked
from tape_jupyter.errors import BundleError
from tape_jupyter.telling import Tell, nobody

_FOLDER = "environment"
_DONE = "made.txt"
_PATIENCE = 1800.0
"""Seconds to wait while another process makes the same environment."""


def made(bundle: Bundle, folder: Path | None = None, *, allow_index: bool = False, tell: Tell = nobody) -> Path:
    """The python of an environment with all that the bundle's lock says. Made where there is none yet.

    `folder`: make it there (it must be new) and keep it out of the cache. `allow_index`: packages that the lock has
    only by an address of its own are fetched from there. Raises BundleError, with the package and what to do.
    """
    pylock = bundle.read(f"{_FOLDER}/pylock.toml")
    wanted = locked.packages(pylock)
    _refuse_foreign(wanted, allow_index=allow_index)
    _refuse_built(wanted)
    making = maker(locked.python(pylock))
    wheels = dict(_wheels(bundle, wanted))
    if folder is not None:
        if folder.exists() and any(folder.iterdir()):
            raise BundleError(f"{folder} is not empty; nothing was installed. Give a folder that is new")
        return _make(folder, making, wanted, wheels, tell, allow_index=allow_index)
    place = cache() / "environments" / _key(pylock, wheels, making, allow_index=allow_index)
    with _alone(place, tell):
        if (place / _DONE).is_file() and python_of(place).exists():
            return python_of(place)
        shutil.rmtree(place, ignore_errors=True)
        return _make(place, making, wanted, wheels, tell, allow_index=allow_index)


def _refuse_foreign(wanted: Iterable[Locked], *, allow_index: bool) -> None:
    """A package to be had only from an address of the bundle's: not without being allowed, nor without digest."""
    foreign = [each for each in wanted if each.foreign]
    shown = "; ".join(f"{each.name}: {odd}" for each in foreign for odd in each.odd)
    if foreign and not allow_index:
        raise BundleError(f"nothing was installed: {shown}. Allow it (--allow-index) if you trust that place")
    if lost := [each.name for each in foreign if not list(_addresses([each]))]:
        raise BundleError(f"nothing was installed: {lost[0]} has no https address of a wheel with a digest ({shown})")


def _refuse_built(wanted: Iterable[Locked]) -> None:
    if built := [each.name for each in wanted if each.built]:
        raise BundleError(
            f"nothing was installed: the lock has no wheel of {', '.join(built[:5])}, and to build one would run "
            "its code with your files and network. Install it yourself if you trust it, and replay with your packages"
        )


def _key(pylock: bytes, wheels: dict[str, bytes], making: Maker, *, allow_index: bool) -> str:
    digest = hashlib.sha256(f"2 {making.python} {allow_index}\n".encode())
    for data in (pylock, *(wheels[name] for name in sorted(wheels))):
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:32]


@contextmanager
def _alone(place: Path, tell: Tell) -> Iterator[None]:
    """Nobody else makes this environment meanwhile."""
    import portalocker

    place.parent.mkdir(parents=True, exist_ok=True)
    tell("the environment", 0, 0)
    try:
        with portalocker.Lock(place.with_name(f".{place.name}.lock"), "a", timeout=_PATIENCE, check_interval=0.2):
            yield
    except portalocker.LockException as error:
        raise BundleError(
            f"another process has been making this environment for {_PATIENCE / 60:.0f} minutes"
        ) from error


def _make(
    place: Path, making: Maker, wanted: Sequence[Locked], wheels: dict[str, bytes], tell: Tell, *, allow_index: bool
) -> Path:
    """All or nothing: a folder without its mark at the end is never used."""
    lines = [_line(each) for each in wanted if each.digests and not each.path and not each.foreign]
    bare = [
        f"{each.name}=={each.version}" for each in wanted if not each.digests and not each.path and not each.foreign
    ]
    foreign = list(_addresses(wanted)) if allow_index else []
    count = _Count(tell, len(lines) + len(bare) + len(wheels) + len(foreign))
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="tape-venv-") as scratch:
            where = Path(scratch)
            python = making.make(place, count)
            watched = startup.Watched.new(place)
            for group in filter(None, (lines, bare, foreign)):
                making.install(python, group, where, count)
                watched.check()
            files = [where / name for name in sorted(wheels)]
            for file in files:
                file.write_bytes(wheels[file.name])
            making.install_wheels(python, files, where, count)
            watched.check()
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    (place / _DONE).write_text("all packages of the lock are in\n", "utf-8")
    return python


class _Count:
    """Tells how many packages are under way, by the lines that an installer says."""

    def __init__(self, tell: Tell, total: int) -> None:
        self._tell, self._total, self._done = tell, total, 0
        tell("making the environment", 0, total)

    def __call__(self, line: str) -> None:
        if line.startswith(("Collecting ", " + ", "Processing ")):
            self._done = min(self._done + 1, self._total)
            self._tell(f"installing {line.split()[1].partition('==')[0].rpartition('/')[2]}", self._done, self._total)


def _line(package: Locked) -> str:
    digests = "".join(f" --hash=sha256:{digest}" for digest in package.digests)
    return f"{package.name}=={package.version}{digests}"


def _addresses(wanted: Iterable[Locked]) -> Iterator[str]:
    for each in wanted:
        for url, digest in each.urls if each.foreign else ():
            if re.fullmatch(r"https://[^\s?#]+\.whl", url) and NOWHERE not in url:
                yield f"{each.name} @ {url} --hash=sha256:{digest}"


# ---- what the bundle brings


def _wheels(bundle: Bundle, wanted: Iterable[Locked]) -> Iterator[tuple[str, bytes]]:
    """Of each package that the bundle carries a wheel, by its file's name."""
    for each in wanted:
        kind, _, name = each.path.partition("/")
        if kind == "wheels":
            data = bundle.read(f"{_FOLDER}/{each.path}")
            if each.digests and hashlib.sha256(data).hexdigest() not in each.digests:
                raise BundleError(f"{name} is not the wheel that the lock names: its sha256 is another")
            startup.refuse(each.name, _entries(name, data))
            yield name, data
        elif kind == "sources":
            yield _put_together(bundle, each.name, f"{_FOLDER}/{each.path}/{backend.FOLDER}/")


def _put_together(bundle: Bundle, package: str, root: str) -> tuple[str, bytes]:
    inside = [name for name in bundle.names("source") if name.startswith(root)]
    startup.refuse(package, (name.removeprefix(root) for name in inside))
    try:
        name, data = backend.packed({name.removeprefix(root): bundle.read(name) for name in inside})
    except StopIteration:
        raise BundleError(f"the sources of {package} hold nothing that can be installed ({root})") from None
    if not name.endswith(".whl") or "/" in name:
        raise BundleError(f"the sources of {package} name no wheel")
    return name, data


def _entries(name: str, data: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            return wheel.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise BundleError(f"{name} is no wheel: {error}") from error
