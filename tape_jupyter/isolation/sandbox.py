"""A process in namespaces of its own (Linux, where a person may make them): without network, seeing
no other process, and ended with all its children. It can change only the folders that it is given:
what it writes in the temporary folders, in the home and where the person is goes into layers that
are thrown away, all else cannot be written. The Unix sockets that somebody listens on (a desktop, an
agent with keys, a daemon of containers) are covered.

It can read what the person can read. As root it can also write to devices.

`python -m tape_jupyter.isolation.sandbox LAYERS KEPT... -- COMMAND...` becomes such a process, or
ends with a line that says why not; without folders it only loses the network. Flags and structures:
Linux's <linux/mount.h>, <linux/sched.h>, <linux/prctl.h>, <linux/capability.h>.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tape_jupyter.isolation import namespaces, overlays

GUARDS = (
    *namespaces.CUT,
    "it changes nothing outside of its folder, and its processes end with it: namespaces of its own",
)
_SECONDS = 20
_NETWORK = 0x10000000 | 0x40000000
"""CLONE_NEWUSER, CLONE_NEWNET."""
_ALL = _NETWORK | 0x00020000 | 0x08000000 | 0x20000000
"""Those, CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID."""
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
_NOSUID_NODEV_NOEXEC = 0x2 | 0x4 | 0x8
_MOUNT_SETATTR, _RECURSIVE, _RDONLY = 442, 0x8000, 1
_AT_FDCWD = -100
_PDEATHSIG, _BOUNDING_DROP, _NO_NEW_PRIVILEGES = 1, 24, 38
_CAPABILITY_VERSION = 0x20080522


@lru_cache(maxsize=1)
def can_confine() -> bool:
    """Whether this machine lets us make such a process."""
    true = namespaces.program("true")
    if not (true and sys.platform.startswith("linux") and namespaces.can_cut()):
        return False
    with tempfile.TemporaryDirectory(prefix="tape-layers-") as layers:
        line = _build_confined_command([true], [Path(layers)])
        try:
            done = subprocess.run(line, capture_output=True, check=False, timeout=_SECONDS)  # noqa: S603 - ours
        except (OSError, subprocess.SubprocessError):
            return False
    return done.returncode == 0


def command(args: Sequence[str], layers: Path, kept: Iterable[Path]) -> list[str]:
    """The words of a command that is to run with the best that this machine has. `layers`: a
    folder for what is thrown away; `kept`: the folders that it may change.
    """
    if can_confine():
        return _build_confined_command(args, [layers, *kept])
    return _build_confined_command(args, []) if namespaces.can_cut() else list(args)


def _build_confined_command(args: Sequence[str], folders: Iterable[Path]) -> list[str]:
    ours = [sys.executable, "-P", "-m", "tape_jupyter.isolation.sandbox"]
    return [*ours, *map(str, folders), "--", *args]


def guards() -> tuple[str, ...]:
    """What holds a stranger's notebook here, in words; the same on every run of one machine."""
    return GUARDS if can_confine() else namespaces.namespace_guards()


# ---------------------------------------------------------------- in the process


def main(args: Sequence[str]) -> None:
    """Make the namespaces, and run the command in them."""
    at = args.index("--")
    if at:
        layers, *kept = map(Path, args[:at])
        _confine_process(layers, kept)
    else:
        _unshare_namespaces(_NETWORK)
        namespaces.loopback_up()
    os.execv(args[at + 1], list(args[at + 1 :]))  # noqa: S606 - it is what we were told


def _confine_process(layers: Path, kept: Sequence[Path]) -> None:
    sockets, tops, here = list(_find_bound_sockets()), list(_find_writable_folders()), Path.cwd()
    layers = Path(tempfile.mkdtemp(dir=layers))
    if not overlays.are_covered([Path(tempfile.gettempdir())], tops):
        os.environ["TMPDIR"] = tempfile.mkdtemp(dir=layers)
    _unshare_namespaces(_ALL)
    _follow_child(os.fork())
    _call_libc("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    namespaces.loopback_up()
    _mount_all(layers, kept, tops, sockets)
    os.chdir(here)  # as it is now, below a layer
    _drop_privileges()
    _follow_child(os.fork())  # this one is process 1, which takes over whoever lost its parent
    _follow_child(os.fork())  # a kernel whose parent is process 1 takes its parent for dead


def _unshare_namespaces(flags: int) -> None:
    user, group = os.getuid(), os.getgid()
    _call_libc("unshare", flags)
    for name, text in {
        "setgroups": "deny",
        "uid_map": f"0 {user} 1",
        "gid_map": f"0 {group} 1",
    }.items():
        Path("/proc/self", name).write_text(text, "ascii")


def _follow_child(child: int) -> None:
    """In the parent: wait for the child and end as it did. An interrupt is the command's own."""
    if child == 0:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = -1
    while ended != child:
        ended, status = os.wait()
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _find_bound_sockets() -> Iterator[str]:
    """Paths of the Unix sockets that are bound on this machine."""
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_bytes().splitlines()[1:]:
            path = os.fsdecode(line.split(b" ", 7)[-1].lstrip(b"0123456789 "))
            if path.startswith("/"):
                yield path


def _find_writable_folders() -> Iterator[Path]:
    """The folders that a notebook may well write to by an absolute path; none lies in another."""
    known = {Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path.cwd()}  # noqa: S108
    with suppress(KeyError):
        known.add(Path(pwd.getpwuid(os.getuid()).pw_dir))
    for each in overlays.select_tops(known):
        if os.access(each, os.W_OK):
            yield each


def _mount_all(
    layers: Path, kept: Sequence[Path], tops: Sequence[Path], sockets: Sequence[str]
) -> None:
    _mount_filesystem("none", "/", flags=_REC | _PRIVATE)
    _mount_filesystem("proc", "/proc", "proc", _NOSUID_NODEV_NOEXEC)
    ours = overlays.select_outermost(each.resolve() for each in (layers, *kept))
    for place in ours:
        _mount_filesystem(place, place, flags=_BIND)
    _set_read_only("/", recursive=True)
    for place in ours:
        _set_read_only(place, clear=True)
    # a layer may lie over the paths
    descriptors = [os.open(place, os.O_PATH) for place in (*ours, layers)]
    opened = [Path(f"/proc/self/fd/{each}") for each in descriptors]
    for number, top in enumerate(tops):
        with suppress(OSError):  # it stays as it is: not to be written
            _mount_layer(top, opened[-1] / str(number))
    for place, at in zip(ours, opened, strict=False):
        _mount_filesystem(at, place, flags=_BIND)
    for descriptor in descriptors:
        os.close(descriptor)
    if Path("/dev/shm").is_dir():  # noqa: S108
        _mount_filesystem("tmpfs", "/dev/shm", "tmpfs")  # noqa: S108
    for path in sockets:
        with suppress(OSError):  # of another machine's root, or gone
            if stat.S_ISSOCK(Path(path).stat().st_mode):
                _mount_filesystem("/dev/null", path, flags=_BIND)


def _mount_layer(top: Path, layers: Path) -> None:
    """What is written in a folder goes into layers."""
    parts = {name: layers / name for name in ("lowerdir", "upperdir", "workdir")}
    for folder in parts.values():
        folder.mkdir(parents=True)
    _mount_filesystem(top, parts["lowerdir"], flags=_BIND)
    options = ",".join(f"{name}={_escape_option(folder)}" for name, folder in parts.items())
    _mount_filesystem("overlay", top, "overlay", data=f"{options},userxattr")


def _escape_option(folder: Path) -> str:
    """As overlayfs reads its options."""
    return str(folder).replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def _drop_privileges() -> None:
    """What was mounted cannot be undone, neither by what the command starts."""
    _call_libc("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text("ascii"))
    for capability in range(last + 1):
        _call_libc("prctl", _BOUNDING_DROP, capability, 0, 0, 0)
    header, none = struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24)
    _call_libc("capset", header, none)


def _mount_filesystem(
    source: str | Path, target: str | Path, kind: str | None = None, flags: int = 0, data: str = ""
) -> None:
    args = [os.fsencode(source), os.fsencode(target), kind.encode() if kind else None]
    _call_libc("mount", *args, ctypes.c_ulong(flags), os.fsencode(data) or None)


def _set_read_only(target: str | Path, *, recursive: bool = False, clear: bool = False) -> None:
    attributes = struct.pack("QQQQ", 0 if clear else _RDONLY, _RDONLY if clear else 0, 0, 0)
    args = (os.fsencode(target), _RECURSIVE if recursive else 0, attributes, len(attributes))
    _call_libc("syscall", ctypes.c_long(_MOUNT_SETATTR), _AT_FDCWD, *args)


def _call_libc(name: str, *args: object) -> None:
    """A function of the C library; raises OSError where it fails."""
    function: Callable[..., int] = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"tape: the process cannot be kept apart: {error}")
