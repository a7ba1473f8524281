"""Doors room: makes a virtual environment and installs into it, with uv where it is on the PATH, else with pip.

Packages come from the person's own indexes, as pip (and uv) are configured; only what is asked for by name, version and
digest, and only wheels: to build a package is to run its code. An installer gets the variables that it needs, and no
others. What goes wrong is told in a person's words: which package, and what to do now.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tape_jupyter.bundle import indexes
from tape_jupyter.errors import BundleError

Said = Callable[[str], None]
"""Hears each line that an installer says."""
_KEPT = re.compile(
    r"PATH|HOME|USER|USERNAME|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|TEMP|TMP|XDG_(?:CONFIG|CACHE|DATA)_\w+|LD_LIBRARY_PATH"
    r"|PIP_\w+|UV_\w+|(?:https?|all|no|ftp)_proxy|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NETRC"
    r"|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAM(?:DATA|FILES)\S*"
    r"|PROCESSOR_ARCHITECTURE|NUMBER_OF_PROCESSORS|DBUS_SESSION_BUS_ADDRESS",  # the last: where passwords are kept
    re.IGNORECASE,
)
"""Variables that an installer gets: where programs and its own files lie, its options, the way to the network."""
_LEFT = re.compile(
    r"PIP_(?:USER|TARGET|PREFIX|ROOT|REQUIRE_VIRTUALENV|NO_BINARY|EDITABLE|REQUIREMENT|CONSTRAINT)|UV_(?:NO_BINARY\w*|CONSTRAINT|OVERRIDE)"
)
"""Of those the ones that are for other environments than a bundle's."""
_NETWORK = re.compile(
    r"Failed to establish a new connection|name resolution|Max retries exceeded|Connection refused|dns error"
    r"|error sending request|Could not connect|ConnectTimeout|NewConnectionError|network is unreachable"
    r"|Failed to fetch",
    re.IGNORECASE,
)
_DIFFERS = re.compile(r"DO NOT MATCH|Hash mismatch|hash(?:es)? (?:of|for) .* (?:do|does) not match", re.IGNORECASE)
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
    """What environments are made with. `uv`: its program, "" without; `python`: an interpreter, or `3.11` for uv."""

    python: str
    uv: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def make(self, folder: Path, said: Said) -> Path:
        """An empty environment in `folder`; its python."""
        if self.uv:
            line = [self.uv, "venv", "--no-project", "--no-config", "--python", self.python, str(folder)]
        else:
            words = [*(["--without-pip"] if _own_pip() else []), "--copies" if os.name == "nt" else "--symlinks"]
            line = [self.python, "-I", "-m", "venv", *words, str(folder)]
        self._run(line, folder.parent, said, "the virtual environment cannot be made")
        return python_of(folder)

    def install(self, python: Path, wanted: Sequence[str], where: Path, said: Said) -> None:
        """What `wanted` says, line by line as in a file of requirements; every line has digests, or none."""
        hashed = any("--hash=" in line for line in wanted)
        requirements = where / "wanted.txt"
        requirements.write_text("".join(f"{line}\n" for line in wanted), "utf-8")
        words = ["--no-deps", "--only-binary=:all:", *(["--require-hashes"] if hashed else []), "-r", str(requirements)]
        self._install(python, words, where, said, self._sources())

    def install_wheels(self, python: Path, wheels: Sequence[Path], where: Path, said: Said) -> None:
        """Wheels that lie here. No index is asked."""
        self._install(python, ["--no-deps", "--no-index", *map(str, wheels)], where, said, {})

    def _install(self, python: Path, words: list[str], where: Path, said: Said, sources: Mapping[str, str]) -> None:
        if self.uv:
            line = [self.uv, "pip", "install", "--no-config", "--python", str(python), *words]
        else:
            pip = [*_own_pip(), "--python", str(python)] if _own_pip() else [str(python), "-I", "-m", "pip"]
            line = [*pip, "install", "--disable-pip-version-check", "--no-compile", "--no-input"]
            line += ["--progress-bar=off", *words]
            sources = {}  # pip reads its own configuration
        self._run(line, where, said, "the packages of the lock cannot be installed", sources)

    def _sources(self) -> Mapping[str, str]:
        """The indexes that pip is configured for, for uv, which does not read pip's files."""
        told = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # the digest decides, not which index has it
        if links := indexes.loose(self.environ):
            told["UV_FIND_LINKS"] = ",".join(links)
        if indexes.forbidden(self.environ):
            return {**told, "UV_NO_INDEX": "1"}
        found = indexes.addresses(self.environ)
        if found:
            told["UV_DEFAULT_INDEX"] = found[0]
        if found[1:]:
            told["UV_INDEX"] = " ".join(found[1:])
        return told

    def _run(self, line: list[str], where: Path, said: Said, goal: str, added: Mapping[str, str] | None = None) -> None:
        environ = {
            name: value for name, value in self.environ.items() if _KEPT.fullmatch(name) and not _LEFT.fullmatch(name)
        }
        if self.uv:  # who is trusted is the system's to say, as it is for pip
            environ.setdefault("UV_SYSTEM_CERTS", "1")
            environ.setdefault("UV_NATIVE_TLS", "1")
            if bundle := environ.get("PIP_CERT"):
                environ.setdefault("SSL_CERT_FILE", bundle)
        lines: list[str] = []
        try:
            with subprocess.Popen(  # noqa: S603 - a command line of ours; names and versions were checked
                line, cwd=where, env={**environ, **(added or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace",
            ) as process:  # fmt: skip
                for each in process.stdout or ():
                    lines.append(each.rstrip())
                    said(each.rstrip())
        except OSError as error:
            raise BundleError(f"{goal}: {Path(line[0]).name} cannot be run ({error.strerror or error})") from error
        if process.returncode:
            raise BundleError(f"{goal}: {reason(lines)}")


@lru_cache(maxsize=1)
def _own_pip() -> list[str]:
    """The pip beside us, where it can install for another interpreter (22.3): to put in a new one takes 5 s."""
    try:
        version = importlib.metadata.version("pip")
    except importlib.metadata.PackageNotFoundError:
        return []
    found = re.match(r"(\d+)\.(\d+)", version)
    new_enough = found is not None and (int(found[1]), int(found[2])) >= (22, 3)
    return [sys.executable, "-P", "-m", "pip"] if new_enough else []


def python_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def maker(version: str, environ: Mapping[str, str] | None = None) -> Maker:
    """What makes environments of this Python (`3.11`; "" any). Raises BundleError where there is no such Python."""
    environ = dict(os.environ if environ is None else environ)
    uv = uv_of(environ)
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    python = sys.executable if version in ("", own) else next(_pythons(version, environ), "")
    if not python and not uv:
        raise BundleError(
            f"this bundle was made with Python {version}, and there is none on this machine (this is {own}). Install "
            f"Python {version} so that `python{version}` is found, or install uv, which brings it"
        )
    return Maker(python or version, uv, environ)


def uv_of(environ: Mapping[str, str]) -> str:
    """Where uv is: the one that runs us (`uvx tape-jupyter`), or on the PATH; "" nowhere."""
    return environ.get("UV") or shutil.which("uv", path=environ.get("PATH")) or ""


def _pythons(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Interpreters of that version on the PATH that do run (a version manager may list one that does not)."""
    for name in (f"python{version}", "python3", "python"):
        found = shutil.which(name, path=environ.get("PATH"))
        if found is None:
            continue
        ask = [found, "-I", "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        try:
            done = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.stdout.strip() == version:
            yield found


def reason(lines: Sequence[str]) -> str:
    """Why an installer failed, from what it said: which package, and what to do."""
    text = "\n".join(lines)
    name = next((found[1] for pattern in _NAMED if (found := pattern.search(text))), "")
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
