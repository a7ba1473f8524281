"""A process without a network, where the machine has namespaces (Linux, `unshare -rn`); and the
words for what keeps a notebook from the network here.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

CUT = ("the network is cut off: a network namespace of its own", "the socket guard")
GUARDED = (
    "the socket guard alone refuses connections: this machine gives no network namespace",
    "it stops ordinary programs, not code that is written to get around it",
)
AWAY = "TAPE_AWAY"
"""Set in a process that the system keeps from the network and the disk, and in its children."""
SYSTEM_FOLDERS = (
    (
        "/usr/bin",
        "/bin",
        "/usr/sbin",
        "/sbin",
        "/run/current-system/sw/bin",
        "/usr/local/bin",
        "/opt/homebrew/bin",
    )
    if os.name == "posix"
    else tuple(
        rf"{root}\System32\OpenSSH" for root in (os.environ.get("SYSTEMROOT", r"C:\Windows"),)
    )
)
"""Where programs of the system lie. PATH is not asked: it may begin with the folder of a stranger's
environment.
"""

_SET_FLAGS = 0x8914  # SIOCSIFFLAGS of Linux's <linux/sockios.h>
_UP_AND_RUNNING = 0x41  # IFF_UP | IFF_RUNNING of <linux/if.h>


def program(name: str) -> str:
    """The absolute path of a program of the system; "" where there is none in SYSTEM_FOLDERS."""
    ending = ".exe" if os.name == "nt" else ""
    # text, and often
    places = (os.path.join(folder, name + ending) for folder in SYSTEM_FOLDERS)  # noqa: PTH118
    return next((place for place in places if os.access(place, os.X_OK)), "")


def git_command(folder: Path, *arguments: str) -> list[str]:
    """A command line of git that runs nothing that the repository's own settings name.

    Raises OSError where there is no git, or one that cannot be kept from that. One that lies in the
    working folder is not taken.
    """
    git = _find_outside("git")
    if not git:
        raise FileNotFoundError("git is not installed")
    settings = [f"core.hooksPath={os.devnull}", *_QUIET]
    for driver in _list_filters(git, folder):
        settings += [f"filter.{driver}.{each}" for each in ("clean=", "smudge=", "process=")]
        settings.append(f"filter.{driver}.required=false")
    options = (word for each in settings for word in ("-c", each))
    return [git, *options, "-C", str(folder), *arguments]


_QUIET = ("core.fsmonitor=false", "log.showSignature=false", "protocol.allow=never")
_GIT_SECONDS = 10.0


def _list_filters(git: str, folder: Path) -> list[str]:
    """What the repository's own settings, not the person's, call programs that files pass through."""
    line = [git, "-C", str(folder), "config", "--show-scope", "--includes", "-z", "--get-regexp"]
    try:
        # fixed words
        done = subprocess.run(  # noqa: S603
            [*line, r"^filter\."],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_GIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"git took longer than {_GIT_SECONDS:g} s") from None
    if done.returncode not in (0, 1):
        problem = os.fsdecode(done.stderr).strip().splitlines()
        raise OSError(" ".join(problem[:1]) or "git config failed")
    words = os.fsdecode(done.stdout).split("\0")
    found = set()
    for scope, setting in zip(words[::2], words[1::2], strict=False):
        key = setting.partition("\n")[0]
        if scope in ("local", "worktree"):
            found.add(key.partition(".")[2].rpartition(".")[0])
    if odd := sorted(driver for driver in found if "=" in driver):
        raise OSError(f"git is not asked: the repository's filter {odd[0]!r} cannot be turned off")
    return sorted(found)


def _find_outside(name: str) -> str:
    """A program on PATH that the working folder cannot hold, "" where there is none: a notebook's
    folder may be a stranger's.
    """
    here = Path.cwd().resolve()
    for folder in map(Path, os.get_exec_path()):
        found = shutil.which(name, path=str(folder)) if folder.is_absolute() else None
        if found and here not in Path(found).resolve().parents:
            return found
    return ""


@lru_cache(maxsize=1)
def can_cut() -> bool:
    """Whether this machine lets us take the network away from a process."""
    unshare, true = program("unshare"), program("true")
    if not (unshare and true and sys.platform.startswith("linux")):
        return False
    # a fixed line
    done = subprocess.run([unshare, "-rn", true], capture_output=True, check=False)  # noqa: S603
    return done.returncode == 0


def without_network(*, cut: bool = True) -> list[str]:
    """What stands before the command of a process that has no network, not even loopback; nothing
    if not `cut`.
    """
    return [program("unshare"), "-rn"] if cut else []


def loopback_up() -> None:
    """Turn `lo` on, in such a process. Raises RuntimeError where anything but `lo` is up: it is not
    cut off then.
    """
    import fcntl

    others = [name for _, name in socket.if_nameindex() if name != "lo" and _is_link_up(name)]
    if others:
        raise RuntimeError(f"the network is not cut off: {', '.join(others)} is up")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def _is_link_up(name: str) -> bool:
    """Tunnels that every namespace starts with (sit0, tunl0) are down."""
    return bool(int(Path(f"/sys/class/net/{name}/flags").read_text(encoding="ascii"), 16) & 1)


def namespace_guards() -> tuple[str, ...]:
    """What keeps a notebook that runs so from the network, in words; the same on every run of one
    machine.
    """
    return CUT if can_cut() else GUARDED
