"""Engine room: which files a cell opened, listed, wrote, moved; and whether it started a process.

Seen by an audit hook, inside and outside the working directory; files of installed packages and of the
system are nobody's result.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tape_jupyter.flow.history import Change
from tape_jupyter.flow.modules import is_installed

KEPT = 8 << 20
"""Bytes of one file that are kept to put it back."""
KEPT_ALL = 128 << 20
DIRECTORY = b"\0a directory"
"""Stands for the bytes of a path that is a directory."""
_SYSTEM = ("/usr/", "/lib", "/proc/", "/sys/", "/dev/", "/etc/", "/bin/", "/sbin/", sys.prefix, sys.base_prefix)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ONE = {
    "os.remove": 0,
    "os.rmdir": 0,
    "os.mkdir": 0,
    "os.truncate": 0,
    "os.utime": 0,
    "os.chmod": 0,
    "shutil.rmtree": 0,
}
_TWO = ("os.rename", "os.link", "os.symlink", "shutil.copyfile", "shutil.move", "shutil.copytree", "shutil.copymode")
_PROCESS = (
    "subprocess.Popen",
    "os.system",
    "os.posix_spawn",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
    "os.spawn",
)


@dataclass(slots=True)
class Touched:
    """Absolute paths. `relative`: some path was given relative to the working directory."""

    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    before: dict[str, bytes | None] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    """Written from the start or removed, whatever stood there before."""
    unknown: set[str] = field(default_factory=set)
    """Written, and what stood there was too large to keep."""
    processes: list[str] = field(default_factory=list)
    relative: bool = False

    def changes(self) -> dict[str, Change]:
        """Of the files that are not as they were."""
        found = {}
        for path in sorted(self.written):
            now, known = _content(path)
            before = self.before.get(path)
            if path in self.unknown or not known or now != before:
                found[path] = Change(before, now, known=known and path not in self.unknown)
        return found


def is_watched(path: str) -> bool:
    """Whether a file may be somebody's result."""
    if path.startswith(_SYSTEM) or is_installed(path):
        return False
    return not any(
        part in path for part in ("/.ipython/", "/.cache/", "/.git/", "/.ipynb_checkpoints/", ".tapes/", "/.ipy/")
    )


class FileWatch:
    """One audit hook a process, asleep between cells. Hooks cannot be taken away again."""

    def __init__(self, is_ours: Callable[[], bool] = lambda: False) -> None:
        self.touched = Touched()
        self._on = self._inside = self._hooked = False
        self._is_ours = is_ours
        self._kept = 0

    def begin(self) -> None:
        if not self._hooked:
            sys.addaudithook(self._hook)
            self._hooked = True
        self.touched, self._on = Touched(), True

    def end(self) -> Touched:
        self._on = False
        return self.touched

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on or self._inside:
            return
        if event != "open" and not event.startswith(
            ("os.", "shutil.", "sqlite3.", "subprocess.", "pty.", "glob.", "tempfile.")
        ):
            return
        self._inside = True
        try:
            self._seen(event, args)
        except Exception:  # noqa: S110 - an audit hook that raises would fail the user's open()
            pass
        finally:
            self._inside = False

    def _seen(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            self._opened(*args)
        elif event in ("os.listdir", "os.scandir", "glob.glob"):
            self._note(args[0] if args[0] is not None else ".", read=True)
        elif event in _ONE:
            self._note(args[0], write=True, whole=event in ("os.remove", "os.rmdir", "shutil.rmtree"))
        elif event in _TWO:
            self._note(args[0], read=True, write=event in ("os.rename", "shutil.move"))
            self._note(args[1], write=True)
        elif event == "sqlite3.connect":
            self._note(args[0], read=True, write=True)
        elif event.startswith(_PROCESS):
            self.touched.processes.append(_command(event, args))

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        write = (isinstance(mode, str) and any(c in mode for c in "wax+")) or (
            not isinstance(mode, str) and isinstance(flags, int) and bool(flags & _WRITES)
        )
        read = not write or (isinstance(mode, str) and any(c in mode for c in "a+"))
        whole = isinstance(mode, str) and mode[:1] in ("w", "x") and "+" not in mode
        self._note(path, read=read, write=write, whole=whole)

    def _note(self, path: Any, *, read: bool = False, write: bool = False, whole: bool = False) -> None:
        if isinstance(path, int):
            return
        text = os.fsdecode(path)
        if text == ":memory:" or (text.startswith("<") and text.endswith(">")):
            return
        full = os.path.abspath(text)  # noqa: PTH100 - an audit hook: no objects where none are needed
        if full.endswith(".pyc") and "__pycache__" in full:
            full = _source_of(full)
        if not is_watched(full):
            return
        self.touched.relative = self.touched.relative or not os.path.isabs(text)  # noqa: PTH117 - the same
        if read:
            self.touched.read.add(full)
        if whole and full not in self.touched.read:
            self.touched.replaced.add(full)
        if write and full not in self.touched.written:
            self._keep(full)
            self.touched.written.add(full)

    def _keep(self, path: str) -> None:
        content, known = _content(path)
        self._kept += len(content or b"")
        if known and self._kept < KEPT_ALL:
            self.touched.before[path] = content
        else:
            self.touched.unknown.add(path)


def _source_of(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(os.path.dirname(folder), name.partition(".")[0] + ".py")  # noqa: PTH118, PTH120 - the same


def _content(path: str) -> tuple[bytes | None, bool]:
    """(bytes or None where there is no file, whether that is known)."""
    where = Path(path)
    try:
        if not where.exists():
            return None, True
        if where.is_dir():
            return DIRECTORY, True
        if not where.is_file() or where.stat().st_size > KEPT:
            return None, False
        return where.read_bytes(), True
    except OSError:
        return None, False


def _command(event: str, args: tuple[Any, ...]) -> str:
    told = args[1] if event == "subprocess.Popen" and len(args) > 1 else args[0] if args else ""
    if isinstance(told, list | tuple):
        told = " ".join(os.fsdecode(each) if isinstance(each, bytes | str) else str(each) for each in told)
    return os.fsdecode(told) if isinstance(told, bytes | str) else str(told)


TEMPORARY = tempfile.gettempdir()
