"""The cassette as bytes: an append-only file of records `---` ... `...`, one write per record.

`...` at column 0 is the commit mark. A tail without it was torn by a crash: it is never read, and
kept aside in `NAME.torn` before the next append. Several processes may append at once. Knows
nothing of what a record means.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tape_jupyter.core import locks
from tape_jupyter.errors import CassetteError

RECORD_CAP = 64 * 1024 * 1024
HEAD_BYTES = 600
_MARK = b"\n..."
_BLOCK = 1024 * 1024
# how a record's first bytes may look, however few arrived
_TORN = re.compile(rb"-{1,3}\r?\Z|---\r?\n")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class Replaced(CassetteError):
    """The file is no longer the one that was read: edited, cut or replaced by somebody else.
    Nothing was written.
    """


class _FileState(NamedTuple):
    """How the file looked when we last read it or wrote to it."""

    changed: int
    size: int
    inode: int

    @classmethod
    def from_stat(cls, file_stat: os.stat_result) -> _FileState:
        return cls(file_stat.st_mtime_ns, file_stat.st_size, file_stat.st_ino)


_UNSURE = _FileState(0, 0, 0)


class RecordPosition(NamedTuple):
    """Where a record lies in the file, and its first bytes (at most HEAD_BYTES)."""

    offset: int
    length: int
    head: bytes


class Journal:
    """One file of records. Holds no descriptor: every read and append opens, works and closes.

    `committed` is the byte up to which records were read or written, `torn` how many bytes of an
    unfinished one follow.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.committed = 0
        self.torn = 0
        self._known = self._kept_out = False
        self._seen: _FileState | None = None
        self._ending = b""  # the last bytes before `committed`: 64, or all of the last append
        # a byte whose line is known, and its line: a list asks for them one after another
        self._counted = (
            0,
            1,
        )
        self._written = _UNSURE  # the file as our last append left it
        self._appending_file: int | None = (
            None  # the open file, where it stays so over many appends
        )

    # ------------------------------------------------------------ reading

    def exists(self) -> bool:
        """Whether there is a file to read. Raises CassetteError for what is no plain file of this
        folder.
        """
        try:
            mode = self.path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._build_io_error("read", error) from error
        if stat.S_ISLNK(mode):
            self._refuse_foreign_link()
            mode = self.path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise CassetteError(
                "is not a plain file; a cassette is a text file", path=str(self.path)
            )
        return True

    def _refuse_foreign_link(self) -> None:
        target = Path(os.path.realpath(self.path))
        if not target.is_relative_to(Path(os.path.realpath(self.path.parent))):
            raise CassetteError(
                "is a link out of its folder; put the file itself there", path=str(self.path)
            )
        if not target.exists():
            raise CassetteError("is a link to a file that is not there", path=str(self.path))

    def _build_io_error(self, what: str, error: Exception) -> CassetteError:
        return CassetteError(
            f"cannot be {what}: {getattr(error, 'strerror', None) or error}", path=str(self.path)
        )

    def changed(self) -> bool:
        """Whether the file is another than at the last whole scan or append of ours."""
        return not self._known or self._stat_file() != self._seen

    def grown(self) -> bool:
        """Whether all that was read is still there, and what changed was appended by others."""
        if not self._known or self._seen is None or not self.exists():
            return False
        with self._open_file() as file:
            return self._has_known_beginning(
                file.fileno(), _FileState.from_stat(os.fstat(file.fileno()))
            )

    def distrust(self) -> None:
        """What is known of the file no longer holds; `changed` until the next whole scan."""
        self.committed, self.torn, self._known = 0, 0, False

    def _stat_file(self) -> _FileState | None:
        try:
            return _FileState.from_stat(self.path.stat())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._build_io_error("read", error) from error

    def _has_known_beginning(self, file: int, current: _FileState) -> bool:
        """Whether the open file still begins with what is known to be committed.

        Records that others append leave the inode, and the same bytes where we stopped. An edit
        that does both and makes the file longer goes unseen here: its records are then found to be
        no records when they are read.
        """
        if not self._known or current == self._seen or not self.committed:
            return True
        same = self._seen is not None and current.inode == self._seen.inode
        return (
            same
            and current.size > self.committed
            and _read_before(file, self.committed).endswith(self._ending)
        )

    def scan(self, start: int = 0) -> Iterator[RecordPosition]:
        """Every committed record from byte `start` (0, or `committed`) on; then `committed` and
        `torn` are known.
        """
        self._known, self._seen, self._counted = False, self._stat_file(), (0, 1)
        self.committed, self.torn = start, 0
        if self.exists():
            with self._open_file() as file:
                file.seek(start)
                base = start + _count_line_end(file.read(2)) if start else 0
                file.seek(base)
                yield from self._scan_blocks(file, base)
                self._ending = _read_before(file.fileno(), self.committed)
        self._known = True

    def _scan_blocks(self, file: BinaryIO, base: int) -> Iterator[RecordPosition]:
        """Blocks are joined only where a mark is in them or on their edge: a giant is refused in
        linear time.
        """
        parts: list[bytes] = []
        edge = b""
        while block := file.read(_BLOCK):
            parts.append(block)
            marked = _MARK in block or _MARK in edge + block[:6]
            edge = (edge + block[-6:])[-6:]
            if marked:
                buffer = b"".join(parts)
                done = yield from self._scan_records(buffer, base)
                parts, base = [buffer[done:]], base + done
            if sum(map(len, parts)) > RECORD_CAP:
                raise self._build_error("a record larger than 64 MiB", base)
        buffer = b"".join(parts)
        done = yield from self._scan_records(buffer, base, at_end=True)
        rest = buffer[done:]
        self.committed, self.torn = base + done, len(rest) if rest.strip() else 0

    def _scan_records(
        self, data: bytes, base: int, *, at_end: bool = False
    ) -> Generator[RecordPosition, None, int]:
        """The whole records of a block; returns how many of its bytes they take."""
        start = 0
        find = data.find
        mark = find(_MARK, start)
        while mark >= 0:
            end = _find_line_end(data, mark + 4)
            if end < 0:
                if data[mark + 4 : mark + 6] not in (b"", b"\r"):
                    reason = "a line begins with `...` and goes on; `...` alone ends a record"
                    raise self._build_error(reason, base + mark + 1)
                if not at_end:
                    break  # the rest of this line is in the next block
                end = len(data)  # an editor that leaves out the last line end
            if not data.startswith((b"---\n", b"---\r\n"), start):
                raise self._build_stray_error(data[start : start + 80], base + start)
            if end - start > RECORD_CAP:
                raise self._build_error("a record larger than 64 MiB", base + start)
            yield RecordPosition(base + start, end - start, data[start : start + HEAD_BYTES])
            start = end
            mark = find(_MARK, start)
        if at_end and (rest := data[start:].strip(b"\0 \t\r\n")) and not _TORN.match(data, start):
            raise self._build_stray_error(
                data[start : start + 80] if data[start : start + 80].strip() else rest[:80],
                base + start,
            )
        return start

    def _build_stray_error(self, text: bytes, offset: int) -> CassetteError:
        if text.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
            return self._build_error(
                "begins with a byte order mark; save the file without BOM, as UTF-8", offset
            )
        if text.startswith((b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")):
            return self._build_error(
                "a merge conflict is left in the file; resolve it (keep both sides' records)",
                offset,
            )
        first = next(iter(text.splitlines()), b"").decode("utf-8", "backslashreplace")[:60]
        description = repr(first) if first.strip() else "an empty line; remove it"
        return self._build_error(
            f"{'not a cassette: ' if offset == 0 else ''}expected `---`, the start of a record, found {description}",
            offset,
        )

    def _build_error(self, reason: str, offset: int) -> CassetteError:
        return CassetteError(reason, path=str(self.path), line=self.line(offset))

    def line(self, offset: int) -> int:
        """The 1-based line that byte `offset` lies on."""
        if self._counted[0] <= offset and not self.changed():
            start, count = self._counted
        else:
            start, count = 0, 1
        left = offset - start
        with self._open_file() as file:
            file.seek(start)
            while left > 0 and (block := file.read(min(_BLOCK, left))):
                count, left = count + block.count(b"\n"), left - len(block)
        self._counted = (offset - left, count)
        return count

    def read(self, offset: int, length: int) -> bytes:
        with self._open_file() as file:
            file.seek(offset)
            return file.read(length)

    def between(self, start: int, stop: int) -> Iterator[RecordPosition]:
        """The records that others appended between two offsets of whole records."""
        data = self.read(start, stop - start)
        skipped = _count_line_end(data) if start else 0
        return self._scan_records(data[skipped:], start + skipped, at_end=True)

    def _open_file(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise self._build_io_error("read", error) from error

    # ------------------------------------------------------------ writing

    def append(self, data: bytes, header: bytes = b"") -> int:
        """Commit one or more whole records with one write, and give the byte offset at which `data`
        begins.

        `header` goes before it when the file is new. Raises Replaced where the file is not the one
        that was read, and CassetteError if nothing could be written (the file is then as it was),
        OSError never.
        """
        if len(data) > RECORD_CAP:
            raise CassetteError("a record larger than 64 MiB cannot be kept", path=str(self.path))
        if self._appending_file is None:
            self.exists()
        try:
            with self._hold_lock() as (file, current):
                if not self._has_known_beginning(file, current):
                    raise Replaced("was changed by another program meanwhile", path=str(self.path))
                # Where nobody wrote since we did, the file ends in our commit mark: there is
                # nothing to mend.
                size = current.size if current == self._written else self._mend_tail(file)
                self._seen = self._written = (
                    _UNSURE  # what fails half-way is read anew before the next append
                )
                payload = data if size else header + data
                self._write_all(file, payload, size)
                self.committed, self.torn = size + len(payload), 0
                after, self._ending = _FileState.from_stat(os.fstat(file)), payload[-64:]
            self._seen = self._written = after
            return self.committed - len(data)
        except OSError as error:
            raise self._build_io_error("written", error) from error

    @contextmanager
    def hold_open(self) -> Iterator[None]:
        """The file stays open and locked over many appends: for one that is made in a place nobody
        else knows.
        """
        with ExitStack() as stack:
            try:
                file, _ = stack.enter_context(self._hold_lock())
            except OSError as error:
                raise self._build_io_error("written", error) from error
            self._appending_file = file
            try:
                yield
            finally:
                self._appending_file = None

    @contextmanager
    def _hold_lock(self) -> Iterator[tuple[int, _FileState]]:
        """The file, open, with its lock held, and how it looks; opened anew where it was replaced
        meanwhile.
        """
        if self._appending_file is not None:
            yield self._appending_file, _FileState.from_stat(os.fstat(self._appending_file))
            return
        while True:
            file = self._open_for_append()
            try:
                self._wait_for_lock(file)
                file_stat = os.fstat(file)
                if self._is_at_path(file_stat):
                    yield file, _FileState.from_stat(file_stat)
                    return
            finally:
                os.close(file)

    def _wait_for_lock(self, file: int) -> None:
        """Wait for the lock: where it was waited for in vain the next append does not wait as long
        again.
        """
        patience, self._kept_out = 0.0 if self._kept_out else locks.PATIENCE, True
        locks.lock_file(file, self.path, patience)
        self._kept_out = False

    def _open_for_append(self) -> int:
        try:
            return os.open(self.path, _APPENDING, 0o644)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self.path, _APPENDING, 0o644)

    def _is_at_path(self, file_stat: os.stat_result) -> bool:
        try:
            return os.path.samestat(file_stat, self.path.stat())
        except FileNotFoundError:
            return False

    def _write_all(self, file: int, data: bytes, size: int) -> None:
        try:
            done = os.write(file, data)
            while done < len(data):
                done += os.write(file, data[done:])
        except BaseException:
            os.ftruncate(file, size)
            raise

    def _mend_tail(self, file: int) -> int:
        """Keep a torn tail aside and cut it off, close an open last line; gives the size of what is
        committed.
        """
        size = os.fstat(file).st_size
        tail = _read_torn_tail(file, size)
        if tail.strip():
            self._keep_aside(tail if tail.endswith(b"\n") else tail + b"\n")
        if tail:
            os.ftruncate(file, size - len(tail))
        size -= len(tail)
        if size and _read_at(file, size - 1, 1) != b"\n":
            size += os.write(file, b"\n")
        return size

    def _keep_aside(self, tail: bytes) -> None:
        name = self.path.with_name(self.path.name + ".torn")
        aside = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NOFOLLOW, 0o644)
        with os.fdopen(aside, "ab") as file:
            file.write(tail)
            file.flush()
            os.fsync(aside)

    def sync(self) -> None:
        """Ask the disk to hold what is committed (power loss; a killed process loses nothing
        without it).
        """
        try:
            file = os.open(self.path, os.O_RDWR)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise self._build_io_error("brought to the disk", error) from error

    def writable(self) -> str:
        """Why an append would fail, or "": asked before a call is paid for."""
        if self.exists():
            if os.access(self.path, os.W_OK) and _is_on_writable_disk(self.path):
                return ""
            return "the file is read-only"
        folder = self.path.parent
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        if not folder.is_dir():
            return f"{folder} is not a folder"
        if os.access(folder, os.W_OK) and _is_on_writable_disk(folder):
            return ""
        return f"the folder {folder} is read-only"


def _is_on_writable_disk(path: Path) -> bool:
    try:
        return not os.statvfs(path).f_flag & os.ST_RDONLY
    except (AttributeError, OSError):  # no statvfs on this platform: os.access has the last word
        return True


def _find_line_end(data: bytes, at: int) -> int:
    if data.startswith(b"\n", at):
        return at + 1
    return at + 2 if data.startswith(b"\r\n", at) else -1


def _count_line_end(data: bytes) -> int:
    """The line end that the last record lacked when it was read, and has by now: 0 to 2 bytes."""
    return max(0, _find_line_end(data, 0))


def _is_mark(text: bytes) -> bool:
    """Whether bytes end with a commit mark: the line `...`, with or without its line end."""
    return text.removesuffix(b"\n").removesuffix(b"\r").endswith(_MARK)


def _read_torn_tail(file: int, size: int) -> bytes:
    """The bytes after the last commit mark."""
    if not size or _is_mark(_read_at(file, max(0, size - 6), 6)):
        return b""
    tail, at = b"", size
    while at > 0:
        step = min(_BLOCK, at)
        tail, at = _read_at(file, at - step, step) + tail, at - step
        mark = tail.rfind(_MARK)
        while mark >= 0:
            end = _find_line_end(tail, mark + 4)
            if end >= 0:
                return tail[end:]
            mark = tail.rfind(_MARK, 0, mark)
    return tail


def _read_before(file: int, offset: int) -> bytes:
    return _read_at(file, max(0, offset - 64), min(offset, 64))


def _read_at(file: int, offset: int, length: int) -> bytes:
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, length)
