"""Makes a virtual environment and installs into it, with uv where it is on the PATH, else with pip.

Packages come from the person's own indexes, as pip (and uv) are configured; only what is asked for
by name, version and digest, and only wheels: to build a package is to run its code. An installer
gets the variables that it needs, and no others. What goes wrong is told in a person's words: which
package, and what to do now.

The environment that a bundle's notebook runs in: fresh, made from its lock, its wheels and its
sources.

Packages come from the person's own package index, by name, version and digest; the addresses in a
stranger's lock are not followed. What is made is kept in the user's cache folder, by the digest of
all it was made from; one that was not finished is made again. Nothing of the bundle runs while it
is made: only wheels are installed, those of its sources are put together by us, and what would run
by itself in an environment is refused (bundle/environment/startup_hooks.py).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tape_jupyter.bundle.archive import Bundle
from tape_jupyter.bundle.environment import build_backend, building, index, lock, startup_hooks
from tape_jupyter.bundle.environment.index import cache
from tape_jupyter.bundle.environment.lock import NOWHERE, LockedPackage
from tape_jupyter.bundle.proof import process
from tape_jupyter.core import locks
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError, CassetteError
from tape_jupyter.isolation import sandbox

Said = Callable[[str], None]
"""Hears each line that an installer says."""
_LEFT = re.compile(
    r"PIP_(?:USER|TARGET|PREFIX|ROOT|REQUIRE_VIRTUALENV|NO_BINARY|EDITABLE|REQUIREMENT|CONSTRAINT)"
    r"|UV_(?:NO_BINARY\w*|CONSTRAINT|OVERRIDE|REQUIRE_HASHES|SYSTEM_PYTHON|COMPILE_BYTECODE)"
)
"""Of an installer's variables the ones that are for other environments than a bundle's."""
_NETWORK = re.compile(
    r"Failed to establish a new connection|name resolution|Max retries exceeded|Connection refused|dns error"
    r"|error sending request|Could not connect|ConnectTimeout|NewConnectionError|network is unreachable"
    r"|Failed to fetch",
    re.IGNORECASE,
)
_NOT_INSTALLED = "the packages of the lock cannot be installed"
_DIFFERS = re.compile(
    r"DO NOT MATCH|Hash mismatch|hash(?:es)? (?:of|for) .* (?:do|does) not match", re.IGNORECASE
)
_NAMED = (
    re.compile(r"No matching distribution found for ([\w.-]+)"),
    re.compile(r"satisfies the requirement ([\w.-]+)"),
    re.compile(r"Because ([\w.-]+) was not found"),
    re.compile(r"there (?:is|are) no (?:version|wheels?)[^`]*? (?:of|for) `?([\w.-]+)"),
    re.compile(r"Because ([\w.-]+)(?:==\S+)? has no"),
    re.compile(r"(?:Hash mismatch for|Failed to (?:download|build)) `?([\w.-]+)"),
    re.compile(r"/simple/([\w.-]+)/"),
    re.compile(r"^\s+([\w.-]+)==\S+ from ", re.MULTILINE),
    re.compile(r"for ([\w.-]+) .*DO NOT MATCH"),
)


@dataclass(frozen=True, slots=True)
class Maker:
    """What environments are made with. `uv`: its program, "" without; `python`: an interpreter, or
    `3.11` for uv.
    """

    python: str
    uv: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def make_environment(self, folder: Path, on_line: Said) -> Path:
        """An empty environment in `folder`; its python."""
        if self.uv:
            line = [
                self.uv,
                "venv",
                "--no-project",
                "--no-config",
                "--python",
                self.python,
                str(folder),
            ]
        else:
            flags = [
                *(["--without-pip"] if _find_own_pip() else []),
                "--copies" if os.name == "nt" else "--symlinks",
            ]
            line = [self.python, "-I", "-m", "venv", *flags, str(folder)]
        self._run_installer(line, folder.parent, on_line, "the virtual environment cannot be made")
        return environment_python(folder)

    def install(
        self,
        python: Path,
        groups: Sequence[Sequence[str]],
        wheels: Sequence[Path],
        where: Path,
        on_line: Said,
        *,
        needs: bool = False,
    ) -> None:
        """Install what `groups` say, line by line as in files of requirements (every line of a group
        has digests, or none), and `wheels`, which lie here; `needs`: and what those need.

        An environment is filled in one step: an installer that runs in it, or asks its Python
        something, must not find modules of a stranger's there. So pip first downloads, in the empty
        environment, and then installs without network, variables and home.
        """
        if self.uv:
            lines = [*(line for group in groups for line in group), *map(str, wheels)]
            line = [self.uv, "pip", "install", "--no-config", "--python", str(python)]
            line += [] if needs else ["--no-deps"]
            # to compile it would start the environment's Python, which runs `.pth` files
            line += [
                "--no-compile-bytecode",
                "--only-binary=:all:",
                "-r",
                str(_write_requirements(lines, where)),
            ]
            self._run_installer(line, where, on_line, _NOT_INSTALLED, self._build_uv_environ())
            return
        fetched = where / "fetched"
        fetched.mkdir(exist_ok=True)
        no_deps = [] if needs else ["--no-deps"]
        for group in groups:
            flags = [
                "--only-binary=:all:",
                "-d",
                str(fetched),
                "-r",
                str(_write_requirements(group, where)),
            ]
            hashed = ["--require-hashes"] if any("--hash=" in line for line in group) else []
            self._run_pip(python, "download", [*no_deps, *hashed, *flags], where, on_line)
        files = sorted({*fetched.iterdir(), *wheels})
        self._run_pip(
            python, "install", ["--no-deps", "--no-index", *map(str, files)], where, on_line
        )

    def _run_pip(
        self, python: Path, command: str, flags: Sequence[str], where: Path, on_line: Said
    ) -> None:
        """Run pip, which reads its own configuration."""
        own_pip = _find_own_pip()
        pip = [*own_pip, "--python", str(python)] if own_pip else [str(python), "-I", "-m", "pip"]
        line = [*pip, command, "--disable-pip-version-check", "--no-input", "--progress-bar=off"]
        if command == "download":
            self._run_installer([*line, *flags], where, on_line, _NOT_INSTALLED)
            return
        line = [*line, "--no-compile", *flags]
        self.run_apart(line, where, on_line, _NOT_INSTALLED, python.parents[1])

    def run_apart(
        self, line: Sequence[str], where: Path, on_line: Said, goal: str, *kept: Path
    ) -> None:
        """Run a command as a stranger's: without network, variables and home. It may change `where`
        and `kept`.
        """
        (where / "layers").mkdir(exist_ok=True)
        sandboxed = sandbox.command(line, where / "layers", [where, *kept])
        self._run_installer(
            sandboxed, where, on_line, goal, bare=process.isolated_environment(where / "home")
        )

    def _build_uv_environ(self) -> Mapping[str, str]:
        """The indexes that pip is configured for, for uv, which does not read pip's files."""
        variables = {
            "UV_INDEX_STRATEGY": "unsafe-best-match"
        }  # the digest decides, not which index has it
        if links := index.loose(self.environ):
            variables["UV_FIND_LINKS"] = ",".join(links)
        if index.forbidden(self.environ):
            return {**variables, "UV_NO_INDEX": "1"}
        urls = index.addresses(self.environ)
        if urls:
            variables["UV_DEFAULT_INDEX"] = urls[0]
        if urls[1:]:
            variables["UV_INDEX"] = " ".join(urls[1:])
        return variables

    def _run_installer(
        self,
        line: list[str],
        where: Path,
        on_line: Said,
        goal: str,
        added: Mapping[str, str] | None = None,
        bare: Mapping[str, str] | None = None,
    ) -> None:
        """`added` to the variables that an installer gets; `bare` are all, instead."""
        environ = {
            name: value
            for name, value in index.installer_variables(self.environ).items()
            if not _LEFT.fullmatch(name)
        }
        if self.uv and not bare:  # who is trusted is the system's to say, as it is for pip
            environ.setdefault("UV_SYSTEM_CERTS", "1")
            environ.setdefault("UV_NATIVE_TLS", "1")
            if bundle := environ.get("PIP_CERT"):
                environ.setdefault("SSL_CERT_FILE", bundle)
        lines: list[str] = []
        try:
            # a command line of ours; names and versions were checked
            with subprocess.Popen(  # noqa: S603
                line, cwd=where, env=bare or {**environ, **(added or {})},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, encoding="utf-8", errors="replace", start_new_session=bool(bare),
            ) as started:  # fmt: skip
                try:
                    for each in started.stdout or ():
                        lines.append(each.rstrip())
                        on_line(each.rstrip())
                except BaseException:
                    started.kill()  # in a session of its own it hears no Ctrl-C
                    raise
        except OSError as error:
            raise BundleError(
                f"{goal}: {Path(line[0]).name} cannot be run ({error.strerror or error})"
            ) from error
        if started.returncode:
            raise BundleError(f"{goal}: {reason(lines)}")


def _write_requirements(lines: Sequence[str], where: Path) -> Path:
    """A file of requirements."""
    requirements = where / "wanted.txt"
    requirements.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return requirements


@lru_cache(maxsize=1)
def _find_own_pip() -> list[str]:
    """The pip beside us, where it can install for another interpreter (22.3): to put in a new one
    takes 5 s.
    """
    try:
        version = importlib.metadata.version("pip")
    except importlib.metadata.PackageNotFoundError:
        return []
    match = re.match(r"(\d+)\.(\d+)", version)
    new_enough = match is not None and (int(match[1]), int(match[2])) >= (22, 3)
    return [sys.executable, "-P", "-m", "pip"] if new_enough else []


def environment_python(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def maker(version: str, environ: Mapping[str, str] | None = None) -> Maker:
    """What makes environments of this Python (`3.11`; "" any). Raises BundleError where there is no
    such Python.
    """
    environ = dict(os.environ if environ is None else environ)
    uv = locate_uv(environ)
    own_version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if version in ("", own_version):
        python = sys.executable
    else:
        python = next(_find_pythons(version, environ), "")
    if not python and not uv:
        raise BundleError(
            f"this bundle was made with Python {version}, and there is none on this machine (this is {own_version}). "
            f"Install Python {version} so that `python{version}` is found, or install uv, which brings it"
        )
    return Maker(python or version, uv, environ)


def locate_uv(environ: Mapping[str, str]) -> str:
    """Where uv is: the one that runs us (`uvx tape-jupyter`), or on the PATH; "" nowhere."""
    return environ.get("UV") or shutil.which("uv", path=environ.get("PATH")) or ""


def _find_pythons(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Interpreters of that version on the PATH that do run (a version manager may list one that
    does not).
    """
    for name in (f"python{version}", "python3", "python"):
        path = shutil.which(name, path=environ.get("PATH"))
        if path is None:
            continue
        command = [path, "-I", "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        env = index.installer_variables(environ)
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False, timeout=30, env=env
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.stdout.strip() == version:
            yield path


def reason(lines: Sequence[str]) -> str:
    """Why an installer failed, from what it said: which package, and what to do."""
    text = "\n".join(lines)
    name = next((match[1] for pattern in _NAMED if (match := pattern.search(text))), "")
    whose = f"{name}: " if name else ""
    if _DIFFERS.search(text):
        return f"{whose}what your package index gives has another digest than the session's file. It was not installed"
    if re.search(r"certificate", text, re.IGNORECASE):
        return (
            f"{whose}the certificate of the package index is not trusted here. Point SSL_CERT_FILE at the certificates "
            "that your network uses"
        )
    if _NETWORK.search(text):
        return f"{whose}the package index cannot be reached. Connect to the network (packages are kept once installed)"
    if name:
        return (
            f"{whose}your package index has no such version as a wheel for this Python and platform. Configure the "
            "index that has it (pip config set global.extra-index-url ...), or replay with the packages that are here"
        )
    last = [re.sub(r"//[^/@\s]*@", "//…@", line) for line in lines if line.strip()][-3:]
    return " | ".join(last)[:600] or "the installer gave no reason"


_FOLDER = "environment"
_DONE = "made.txt"
_PATIENCE = 1800.0
"""Seconds to wait while another process makes the same environment."""


def make_bundle_environment(
    bundle: Bundle,
    folder: Path | None = None,
    *,
    allow_index: bool = False,
    allow_build: bool = False,
    on_progress: Tell = ignore_progress,
) -> Path:
    """The python of an environment with all that the bundle's lock says. Made where there is none
    yet.

    `folder`: make it there (it must be new) and keep it out of the cache. `allow_index`: packages
    that the lock has only by an address of its own are fetched from there. `allow_build`: those of
    which it has only sources are built (bundle/environment/building.py). Raises BundleError, with
    the package and what to do.
    """
    pylock = bundle.read(f"{_FOLDER}/pylock.toml")
    packages = lock.locked_packages(pylock)
    _refuse_foreign(packages, allow_index=allow_index)
    building.require_buildable(packages, allowed=allow_build)
    making = maker(lock.locked_python(pylock))
    wheels = dict(_collect_wheels(bundle, packages))
    if folder is not None:
        if folder.exists() and any(folder.iterdir()):
            raise BundleError(
                f"{folder} is not empty; nothing was installed. Give a folder that is new"
            )
        return _make_environment(
            folder, making, packages, wheels, on_progress, allow_index=allow_index
        )
    place = cache() / "environments" / _build_key(pylock, wheels, making, allow_index=allow_index)
    with lock_environment(place, on_progress):
        if (place / _DONE).is_file() and environment_python(place).exists():
            return environment_python(place)
        shutil.rmtree(place, ignore_errors=True)
        return _make_environment(
            place, making, packages, wheels, on_progress, allow_index=allow_index
        )


def _refuse_foreign(packages: Iterable[LockedPackage], *, allow_index: bool) -> None:
    """A package to be had only from an address of the bundle's: not without being allowed, nor
    without digest.
    """
    foreign = [each for each in packages if each.foreign]
    summary = "; ".join(f"{each.name}: {odd}" for each in foreign for odd in each.odd)
    if foreign and not allow_index:
        raise BundleError(
            f"nothing was installed: {summary}. Allow it (--allow-index) if you trust that place"
        )
    if lost := [each.name for each in foreign if not list(_list_addresses([each]))]:
        raise BundleError(
            f"nothing was installed: {lost[0]} has no https address of a wheel with a digest ({summary})"
        )


def _build_key(pylock: bytes, wheels: dict[str, bytes], making: Maker, *, allow_index: bool) -> str:
    digest = hashlib.sha256(f"2 {making.python} {allow_index}\n".encode())
    for data in (pylock, *(wheels[name] for name in sorted(wheels))):
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:32]


@contextmanager
def lock_environment(place: Path, on_progress: Tell) -> Iterator[None]:
    """Nobody else makes this environment meanwhile. Raises BundleError."""
    on_progress("the environment", 0, 0)
    with ExitStack() as stack:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locks.hold_lock(place.with_name(f".{place.name}.lock"), _PATIENCE))
        except (CassetteError, OSError) as error:
            raise BundleError(f"the environment cannot be made: {error}") from error
        yield


def _make_environment(
    place: Path,
    making: Maker,
    packages: Sequence[LockedPackage],
    wheels: dict[str, bytes],
    on_progress: Tell,
    *,
    allow_index: bool,
) -> Path:
    """All or nothing: a folder without its mark at the end is never used."""
    built = [each for each in packages if each.built]
    from_index = [each for each in packages if not (each.path or each.foreign or each.built)]
    lines = [_format_line(each) for each in from_index if each.digests]
    bare = [f"{each.name}=={each.version}" for each in from_index if not each.digests]
    foreign = list(_list_addresses(packages)) if allow_index else []
    count = _Count(on_progress, len(lines) + len(bare) + len(wheels) + len(foreign) + len(built))
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="tape-venv-") as scratch:
            where = Path(scratch)
            python = making.make_environment(place, count)
            watched = startup_hooks.WatchedEnvironment.new(place)
            files = [where / name for name in sorted(wheels)]
            for file in files:
                file.write_bytes(wheels[file.name])
            files += building.wheels(built, making, where, count)
            groups = [group for group in (lines, bare, foreign) if group]
            making.install(python, groups, files, where, count)
            watched.check()
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    (place / _DONE).write_text("all packages of the lock are in\n", "utf-8")
    return python


class _Count:
    """Tells how many packages are under way, by the lines that an installer says."""

    def __init__(self, on_progress: Tell, total: int) -> None:
        self._on_progress, self._total, self._done = on_progress, total, 0
        on_progress("making the environment", 0, total)

    def __call__(self, line: str) -> None:
        if line.startswith(("Collecting ", " + ", "Processing ")):
            self._done = min(self._done + 1, self._total)
            self._on_progress(
                f"installing {line.split()[1].partition('==')[0].rpartition('/')[2]}",
                self._done,
                self._total,
            )


def _format_line(package: LockedPackage) -> str:
    digests = "".join(f" --hash=sha256:{digest}" for digest in package.digests)
    return f"{package.name}=={package.version}{digests}"


def _list_addresses(packages: Iterable[LockedPackage]) -> Iterator[str]:
    for each in packages:
        for url, digest in each.urls if each.foreign else ():
            if re.fullmatch(r"https://[^\s?#]+\.whl", url) and NOWHERE not in url:
                yield f"{each.name} @ {url} --hash=sha256:{digest}"


# ---- what the bundle brings


def _collect_wheels(
    bundle: Bundle, packages: Iterable[LockedPackage]
) -> Iterator[tuple[str, bytes]]:
    """Of each package that the bundle carries a wheel, by its file's name."""
    for each in packages:
        kind, _, name = each.path.partition("/")
        if kind == "wheels":
            data = bundle.read(f"{_FOLDER}/{each.path}")
            if each.digests and hashlib.sha256(data).hexdigest() not in each.digests:
                raise BundleError(
                    f"{name} is not the wheel that the lock names: its sha256 is another"
                )
            startup_hooks.refuse_startup_hooks(each.name, _list_entries(name, data))
            yield name, data
        elif kind == "sources":
            yield _pack_sources(bundle, each.name, f"{_FOLDER}/{each.path}/{build_backend.FOLDER}/")


def _pack_sources(bundle: Bundle, package: str, root: str) -> tuple[str, bytes]:
    inside = [name for name in bundle.names("source") if name.startswith(root)]
    startup_hooks.refuse_startup_hooks(package, (name.removeprefix(root) for name in inside))
    try:
        name, data = build_backend.pack_wheel(
            {name.removeprefix(root): bundle.read(name) for name in inside}
        )
    except StopIteration:
        raise BundleError(
            f"the sources of {package} hold nothing that can be installed ({root})"
        ) from None
    if not name.endswith(".whl") or "/" in name:
        raise BundleError(f"the sources of {package} name no wheel")
    return name, data


def _list_entries(name: str, data: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            return wheel.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise BundleError(f"{name} is not a wheel: {error}") from error
