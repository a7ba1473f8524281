"""Store room: the cassette as bytes: an append-only file of records `---` ... `...`, one write per record.

`...` at column 0 is the commit mark. A tail without it was torn by a crash: it is never read, and kept aside in
`NAME.torn` before the next append. Knows nothing of what a record means.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import portalocker

from tape_jupyter.errors import CassetteError

RECORD_CAP = 64 * 1024 * 1024
HEAD_BYTES = 600
_MARK = b"\n..."
_BLOCK = 4 * 1024 * 1024


class Span(NamedTuple):
    """Where a record lies in the file, and its first bytes (at most HEAD_BYTES)."""

    offset: int
    length: int
    head: bytes


class Journal:
    """One file of records. Holds no descriptor: every read and append opens, works and closes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.committed = 0
        self.torn = 0
        self._seen: tuple[int, int, int] | None = None

    # ------------------------------------------------------------ reading

    def exists(self) -> bool:
        """Whether there is a file to read. Raises CassetteError for what is no plain file of this folder."""
        try:
            mode = self.path.lstat().st_mode
        except FileNotFoundError:
            return False
        if stat.S_ISLNK(mode):
            self._refuse_foreign_link()
            mode = self.path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise CassetteError("is not a plain file; a cassette is a text file", path=str(self.path))
        return True

    def _refuse_foreign_link(self) -> None:
        target = Path(os.path.realpath(self.path))
        if not target.is_relative_to(Path(os.path.realpath(self.path.parent))):
            raise CassetteError("is a link out of its folder; put the file itself there", path=str(self.path))
        if not target.exists():
            raise CassetteError("is a link to a file that is not there", path=str(self.path))

    def changed(self) -> bool:
        """Whether the file is another than at the last scan or append of ours."""
        return self._signature() != self._seen

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def scan(self, start: int = 0) -> Iterator[Span]:
        """Every committed record from byte `start` on; afterwards `committed` and `torn` are known."""
        self._seen = self._signature()
        self.committed, self.torn = start, 0
        if not self.exists():
            return
        with self.path.open("rb") as file:
            file.seek(start)
            held, base = b"", start
            while block := file.read(_BLOCK):
                held += block
                done = yield from self._records(held, base)
                held, base = held[done:], base + done
                if len(held) > RECORD_CAP + _BLOCK:
                    raise self._error("a record larger than 64 MiB", base)
            done = yield from self._records(held, base, at_end=True)
        self.committed, self.torn = base + done, len(held) - done

    def _records(self, data: bytes, base: int, *, at_end: bool = False) -> Generator[Span, None, int]:
        """The whole records of a block; returns how many of its bytes they take."""
        start = 0
        find = data.find
        mark = find(_MARK, start)
        while mark >= 0:
            end = _line_end(data, mark + 4)
            if end < 0:
                if data[mark + 4 : mark + 6] in (b"", b"\r"):
                    break  # the rest of this line is in the next block, or torn
                raise self._error("a line begins with `...` and goes on; `...` alone ends a record", base + mark + 1)
            if not data.startswith((b"---\n", b"---\r\n"), start):
                raise self._stray(data[start : start + 80], base + start)
            yield Span(base + start, end - start, data[start : start + HEAD_BYTES])
            start = end
            mark = find(_MARK, start)
        if (
            at_end
            and data[start : start + 4].strip()
            and not b"---\n".startswith(data[start : start + 4].replace(b"\r", b""))
        ):
            raise self._stray(data[start : start + 80], base + start)
        return start

    def _stray(self, text: bytes, offset: int) -> CassetteError:
        if text.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
            return self._error("begins with a byte order mark; save the file without BOM, as UTF-8", offset)
        if text.startswith((b"<<<<<<<", b"=======", b">>>>>>>")):
            return self._error("a merge conflict is left in the file; resolve it (keep both sides' records)", offset)
        first = text.splitlines()[0].decode("utf-8", "backslashreplace") if text.strip() else "an empty line"
        return self._error(f"expected `---`, the start of a record, found {first[:60]!r}", offset)

    def _error(self, reason: str, offset: int) -> CassetteError:
        return CassetteError(reason, path=str(self.path), line=self.line(offset))

    def line(self, offset: int) -> int:
        """The 1-based line that byte `offset` lies on."""
        count, left = 1, offset
        with self.path.open("rb") as file:
            while left > 0 and (block := file.read(min(_BLOCK, left))):
                count, left = count + block.count(b"\n"), left - len(block)
        return count

    def read(self, offset: int, length: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    # ------------------------------------------------------------ writing

    def append(self, data: bytes, header: bytes = b"") -> int:
        """Commit one or more whole records with one write, and give the byte offset at which `data` begins.

        `header` goes before it when the file is new. Raises CassetteError if nothing could be written (the file is
        then as it was), OSError never.
        """
        if len(data) > RECORD_CAP:
            raise CassetteError("a record larger than 64 MiB cannot be kept", path=str(self.path))
        self.exists()
        try:
            with self._locked() as file:
                size = self._mend(file)
                whole = data if size else header + data
                self._write_all(file, whole, size)
                self.committed = size + len(whole)
                self._seen = self._signature()
                return self.committed - len(data)
        except OSError as error:
            raise CassetteError(f"cannot be written: {error.strerror or error}", path=str(self.path)) from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE)
            yield file
        finally:
            os.close(file)

    def _write_all(self, file: int, data: bytes, size: int) -> None:
        try:
            done = os.write(file, data)
            while done < len(data):
                done += os.write(file, data[done:])
        except BaseException:
            os.ftruncate(file, size)
            raise

    def _mend(self, file: int) -> int:
        """Keep a torn tail aside and cut it off; gives the size of what is committed."""
        size = os.fstat(file).st_size
        tail = _tail(file, size)
        if not tail:
            return size
        with self.path.with_name(self.path.name + ".torn").open("ab") as aside:
            aside.write(tail if tail.endswith(b"\n") else tail + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
        os.ftruncate(file, size - len(tail))
        return size - len(tail)

    def sync(self) -> None:
        """Ask the disk to hold what is committed (power loss; a killed process loses nothing without it)."""
        try:
            file = os.open(self.path, os.O_RDWR)
        except OSError:
            return
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def writable(self) -> str:
        """Why an append would fail, or "": asked before a call is paid for."""
        if self.exists():
            return "" if os.access(self.path, os.W_OK) and _on_writable_disk(self.path) else "the file is read-only"
        folder = self.path.parent
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        if not folder.is_dir():
            return f"{folder} is not a folder"
        return "" if os.access(folder, os.W_OK) and _on_writable_disk(folder) else f"the folder {folder} is read-only"


def _on_writable_disk(path: Path) -> bool:
    try:
        return not os.statvfs(path).f_flag & os.ST_RDONLY
    except (AttributeError, OSError):  # no statvfs on this platform: os.access has the last word
        return True


def _line_end(data: bytes, at: int) -> int:
    if data.startswith(b"\n", at):
        return at + 1
    return at + 2 if data.startswith(b"\r\n", at) else -1


def _tail(file: int, size: int) -> bytes:
    """The bytes after the last commit mark."""
    if _read_at(file, max(0, size - 6), 6).endswith((b"\n...\n", b"\n...\r\n")) or not size:
        return b""
    held, at = b"", size
    while at > 0:
        step = min(_BLOCK, at)
        held, at = _read_at(file, at - step, step) + held, at - step
        mark = held.rfind(_MARK)
        while mark >= 0:
            end = _line_end(held, mark + 4)
            if end >= 0:
                return held[end:]
            mark = held.rfind(_MARK, 0, mark)
    return held


def _read_at(file: int, offset: int, length: int) -> bytes:
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, length)
