"""Files that a program has open by a number only (`os.open`): which they are, where they stand.

In a record of what a body did: `{"file": "log.txt", "stands": 12}`, or `"closed": true`. A replay finds
the descriptor by its file, since numbers differ; of several by its place among them: `"nth": [1, 2]`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tape_jupyter.core.open_file import read_descriptor_path
from tape_jupyter.errors import CassetteError

WORDS = frozenset({
    "read", "write", "pread", "pwrite", "readv", "writev", "preadv", "pwritev", "sendfile", "copy_file_range", "splice",
    "truncate", "ftruncate", "lseek", "close", "closerange", "dup2", "posix_fallocate", "fdopen", "open",
})  # fmt: skip
"""How functions of `os` are called that do something to a descriptor."""

_HIGHEST = 4096
"""The largest number that may be one."""


class Opened(NamedTuple):
    """An open file. `stands`: where; of a pipe, how much waits in it."""

    file: tuple[int, int]
    path: str
    stands: int
    is_pipe: bool = False
    writes: bool = False


class Descriptors:
    """Of one body: those that it may reach by their numbers."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._before = {number: each for number in numbers if (each := look_at(number)) is not None}
        self._others = _list_numbers()
        self._nth = {number: self._count_alike(number) for number in self._before}

    def paths(self) -> list[str]:
        """The files that it may write to."""
        return [each.path for each in self._before.values() if each.writes and each.path]

    def _count_alike(self, number: int) -> tuple[int, int]:
        """Which of the descriptors of its file it is, and how many there are."""
        alike = _list_of_file(self._before[number].file, self._others)
        return alike.index(number), len(alike)

    def changed(self) -> Iterator[tuple[Opened, dict[str, Any]]]:
        """Each that is otherwise now, as it was, and what became of it: as a record."""
        for number, before in self._before.items():
            now = look_at(number)
            nth, count = self._nth[number]
            which = {"nth": [nth, count]} if count > 1 else {}
            if now is None or now.file != before.file:
                yield before, {"closed": True, **which}
            elif now.stands != before.stands:
                yield before, {"stands": now.stands, **which}

    def opened(self, numbers: Iterable[int]) -> Iterator[Opened]:
        """Of these numbers, those that are open files now and were not before."""
        for number in numbers:
            now = look_at(number) if number not in self._others else None
            if now is not None and number not in self._before:
                yield now


def look_at(number: int) -> Opened | None:
    """The file, or the pipe, that is open by this number; None where it is neither."""
    if not 2 < number < _HIGHEST:
        return None
    try:
        status = os.fstat(number)
        file = status.st_dev, status.st_ino
        if stat.S_ISREG(status.st_mode):
            stands = os.lseek(number, 0, os.SEEK_CUR)
            return Opened(file, _find_path(number, file), stands, writes=_may_write(number))
        if stat.S_ISFIFO(status.st_mode):
            return Opened(file, "", _count_waiting(number), is_pipe=True)
    except OSError:
        pass
    return None


def redo(records: Iterable[Mapping[str, Any]], paths: Mapping[str, Path]) -> Iterator[str]:
    """Let the descriptors stand where the recorded ones stood. Gives what was not done, in words."""
    for each in records:
        name = str(each.get("file"))
        try:
            number = _find_number(paths[name], *each.get("nth", (0, 1)))
            if each.get("closed"):
                os.close(number)
            else:
                os.lseek(number, int(each["stands"]), os.SEEK_SET)
        except (OSError, LookupError, TypeError, ValueError, CassetteError) as why:
            yield f"where its descriptor of {name} stands: {why}"


def _find_number(path: Path, nth: int, count: int) -> int:
    """One of the descriptors of a file. Raises CassetteError where there are not so many."""
    status = path.stat()
    found = _list_of_file((status.st_dev, status.st_ino), _list_numbers())
    if len(found) != count:
        here = len(found) or "no"
        raise CassetteError(f"{here} descriptors of it are open here, and {count} were then")
    return found[nth]


def _list_of_file(file: tuple[int, int], numbers: Iterable[int]) -> list[int]:
    """Those that are open on a file."""
    opened = ((number, look_at(number)) for number in sorted(numbers))
    return [number for number, each in opened if each is not None and each.file == file]


_TOLD_IN = next((each for each in ("/proc/self/fd", "/dev/fd") if os.path.isdir(each)), "")  # noqa: PTH112


def _list_numbers() -> frozenset[int]:
    """All that are open."""
    if not _TOLD_IN:
        return frozenset(filter(_is_open, range(3, 256)))
    told = [int(each) for each in os.listdir(_TOLD_IN) if each.isdecimal()]  # noqa: PTH208
    return frozenset(filter(_is_open, told))  # that of the listing is closed again


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _find_path(number: int, file: tuple[int, int]) -> str:
    """Its path; "" where no name leads to it any more, or the system does not tell."""
    try:
        path = read_descriptor_path(number)
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return ""
    return path if (status.st_dev, status.st_ino) == file else ""


def _may_write(number: int) -> bool:
    try:
        import fcntl
    except ImportError:  # of Windows: it may
        return True
    return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def _count_waiting(number: int) -> int:
    """Bytes in a pipe that nobody has read yet; 0 where the system does not tell."""
    import array

    try:
        import fcntl
        import termios
    except ImportError:  # of Windows
        return 0
    count = array.array("i", [0])
    fcntl.ioctl(number, termios.FIONREAD, count)
    return count[0]
