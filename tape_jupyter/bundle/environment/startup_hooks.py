"""What a package would run by merely lying in an environment: each start of Python runs it, or a
person's shell takes it for a program of the system.

Wheels that a bundle brings are looked at before they are installed; what came from an index is
looked at after each step of an installer, before the environment's Python starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tape_jupyter.bundle.archive import names
from tape_jupyter.errors import BundleError

_AT_START = re.compile(r"(?:site|user)customize(?:\..*)?|.*\.(?:pth|_pth|start)", re.IGNORECASE)
"""Names beside the packages that Python's `site` looks for
(https://docs.python.org/3/library/site.html).
"""
_KNOWN = re.compile(
    r"distutils-precedence\.pth|.*-nspkg\.pth|pywin32\.pth|a1_coverage\.pth|pytest-cov\.pth"
)
"""Of setuptools, namespace packages, pywin32, coverage and pytest-cov: a replay does without their
lines of code.
"""
_SYSTEM = frozenset(
    # what shells, their users and we start by name; they read better so
    (  # noqa: SIM905
        "[ apt apt-get awk basename bash bunzip2 busybox bwrap bzip2 cat chgrp chmod chown chrome chromium chroot "
        "clear cmd cp crontab csh curl cut dash date dd df diff dig dirname dmesg dnf doas docker dpkg du echo ed "
        "egrep emacs env exit expr false fgrep file find firefox fuser getent git google-chrome gpg grep groups "
        "gunzip gzip head host hostname id ifconfig ip iptables journalctl kill killall ksh launchctl less ln "
        "login losetup ls lsblk lscpu lsof man md5sum mkdir mkfifo mktemp modprobe more mount mv nano nc netstat "
        "nice nohup nproc nsenter nslookup od open openssl osascript passwd perl pgrep pidof ping pkill podman "
        "poweroff powershell printenv printf ps pwd readlink realpath reboot rm rmdir rsync scp sed seq service "
        "setpriv setsid sh sha1sum sha256sum sha512sum shred shutdown sleep sort ssh ssh-add ssh-agent ssh-keygen "
        "stat stdbuf strace stty su sudo sync sysctl systemctl tac tail tar tee telnet test time timeout top "
        "touch tr true tty umount uname uniq unlink unshare unzip useradd vi vim wc wget which who whoami "
        "x-www-browser xargs xdg-open xxd xz yes yum zcat zip zsh"
    ).split()
)
_IPYTHON = ("etc", "ipython")
"""Below an environment, what each start of IPython reads."""
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?t?)?w?")


def refuse_startup_hooks(package: str, inside: Iterable[str]) -> None:
    """Refuse a wheel one of whose files, by their names in it, would run by itself or lie outside
    of its packages.
    """
    for name in inside:
        parts = PurePosixPath(name).parts
        scheme = parts[1] if len(parts) > 2 and parts[0].endswith(".data") else ""
        rest = parts[2:] if scheme else parts
        shared = scheme == "data" and rest[0] in ("share", "etc")
        if (
            ".." in parts
            or name.startswith("/")
            or (scheme and scheme not in ("purelib", "platlib") and not shared)
        ):
            raise BundleError(
                f"{package} would put {name[:200]!a} outside of its packages; nothing was installed"
            )
        read_by_ipython = "/".join(rest) if shared and rest[:2] == _IPYTHON else ""
        if hook := read_by_ipython or names.startup_hook("/".join(rest if shared else rest[:1])):
            raise BundleError(
                f"{package} brings {hook!a}, which runs automatically just because it exists; nothing was installed"
            )


@dataclass(frozen=True, slots=True)
class WatchedEnvironment:
    """An environment, and what lay in it before anything was installed."""

    place: Path
    before: dict[Path, tuple[object, ...]]

    @classmethod
    def new(cls, place: Path) -> WatchedEnvironment:
        return cls(place, {path: _read_state(path) for path in _yield_watched_files(place)})

    def check(self) -> None:
        """Raises BundleError for what would run by itself. Lines of code of known `.pth` files are
        taken out.
        """
        now = {path: _read_state(path) for path in _yield_watched_files(self.place)}
        for path in self.before:
            if now.get(path) != self.before[path] and not path.is_dir():
                raise self._build_refusal(path, "stands in for a part of the environment itself")
        for path in now.keys() - self.before.keys():
            inside = path.relative_to(self.place).parts
            if inside[:2] == _IPYTHON or (inside[0] == "etc" and names.startup_hook(path.name)):
                raise self._build_refusal(path, "is read at each start of IPython or Jupyter")
            if path.parent.name == "site-packages":
                self._check_module(path)
            elif _strip_extension(path) in _SYSTEM or _PYTHON.fullmatch(_strip_extension(path)):
                raise self._build_refusal(path, "stands for a program of the system")

    def _check_module(self, path: Path) -> None:
        if not _AT_START.fullmatch(path.name):
            return
        if path.suffix != ".pth" or not path.is_file():
            raise self._build_refusal(path, "is run at each start of Python")
        lines = path.read_bytes().splitlines()
        if all(_is_inside_line(line) for line in lines):
            return
        if not _KNOWN.fullmatch(path.name):
            raise self._build_refusal(path, "holds code or paths that each start of Python takes")
        path.unlink()  # it may be a link into an installer's cache
        path.write_bytes(b"".join(line + b"\n" for line in lines if _is_inside_line(line)))

    def _build_refusal(self, path: Path, why: str) -> BundleError:
        return BundleError(
            f"{self._find_owner(path)} brings {path.name!a}, which {why}; the environment was not made"
        )

    def _find_owner(self, path: Path) -> str:
        """The distribution whose RECORD lists the file."""
        for packages in _list_site_packages(self.place):
            listed = os.path.relpath(path, packages).replace(os.sep, "/")
            for record in packages.glob("*.dist-info/RECORD"):
                lines = record.read_text("utf-8", "replace").splitlines()
                if any(line.startswith((f"{listed},", f"{listed}/")) for line in lines):
                    return record.parent.name.partition("-")[0]
        return "a package"


def _yield_watched_files(place: Path) -> Iterator[Path]:
    """The files of an environment that Python, IPython or a shell finds by their names."""
    yield from (path for path in (place / "etc").rglob("*") if not path.is_dir())
    folders = [place, *_list_program_folders(place), *_list_site_packages(place)]
    for folder in folders:
        with os.scandir(folder) as entries:
            yield from (
                Path(entry.path) for entry in entries if folder != place or not entry.is_dir()
            )


def _list_program_folders(place: Path) -> list[Path]:
    return [folder for folder in (place / "bin", place / "Scripts") if folder.is_dir()]


def _list_site_packages(place: Path) -> list[Path]:
    return [
        folder
        for folder in (*place.glob("lib/python*/site-packages"), place / "Lib" / "site-packages")
        if folder.is_dir()
    ]


def _read_state(path: Path) -> tuple[object, ...]:
    about = path.lstat()
    link = path.readlink() if path.is_symlink() else None
    return about.st_mode, about.st_ino, about.st_size, about.st_mtime_ns, link


def _strip_extension(path: Path) -> str:
    return re.sub(r"\.(?:exe|bat|cmd|com|ps1)$", "", path.name.lower())


def _is_inside_line(line: bytes) -> bool:
    """Whether a line of a `.pth` file is a remark, or a folder of the environment's packages."""
    text = line.decode("utf-8", "replace").strip()
    if not text or text.startswith("#"):
        return True
    parts = re.split(r"[/\\]", text)
    return (
        not re.match(r"import[ \t]", text)
        and not re.match(r"[/\\]|\w:", text)
        and ".." not in parts
    )
