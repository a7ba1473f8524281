"""A body that is too large to be held in memory: its bytes lie in a file, and are read when they
are used.

Nothing here is written. Files are read by descriptor, so that one without a name can be read too.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LIMIT = 8 * 1024 * 1024
"""Bytes of a body that are held in memory, and written into the cassette."""
READABLE_LIMIT = 32 * 1024 * 1024
"""The same for JSON and streams of events, which a cassette shows in a form that can be read and
edited.
"""
BLOCK = 1024 * 1024


class LargeBody:
    """The bytes of one body, in a file (None: that at `path`, opened when it is read). `sha256` and
    `size` are of the bytes that are kept.

    `sent` is what the program sent, where secrets in it were masked in what is kept. `learned` says
    which secrets were looked for (Secrets.learned). `path` is where the file has its name; None for
    one without.
    """

    def __init__(
        self,
        file: int | None,
        size: int,
        sha256: str,
        *,
        path: Path | None = None,
        sent: LargeBody | None = None,
        learned: int = 0,
    ) -> None:
        self._file, self.size, self.sha256 = file, size, sha256
        self.path, self.sent, self.learned = path, sent, learned
        if file is not None:
            weakref.finalize(self, os.close, file)

    @property
    def masked(self) -> bool:
        """Whether what is kept is not what the program sent or got."""
        return self.sent is not None

    def fileno(self) -> int:
        if self._file is None:
            assert self.path is not None
            self._file = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            weakref.finalize(self, os.close, self._file)
        return self._file

    def read_at(self, start: int, count: int) -> bytes:
        """Up to `count` bytes, fewer at the end only."""
        parts: list[bytes] = []
        while count and (part := os.pread(self.fileno(), count, start)):
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def blocks(self) -> Iterator[bytes]:
        """The bytes, a block at a time."""
        for start in range(0, self.size, BLOCK):
            yield self.read_at(start, BLOCK)

    def open(self) -> io.BufferedReader:
        """A file to read the bytes from, at its own place."""
        return io.BufferedReader(_Reading(self), BLOCK)

    def counted(self, boundary: bytes = b"") -> str:
        """A digest of the bytes, which of a form in parts leaves its boundary out: that is drawn
        anew each time.
        """
        if not boundary:
            return self.sha256
        digest, rest = hashlib.sha256(), b""
        for block in self.blocks():
            data = (rest + block).replace(boundary, b"BOUNDARY")
            keep = min(len(data), len(boundary) - 1)
            rest = data[len(data) - keep :]
            digest.update(data[: len(data) - keep])
        digest.update(rest)
        return digest.hexdigest()


class _Reading(io.RawIOBase):
    """A place in a body. It can be told and sought: clients ask a file for its length in this way."""

    def __init__(self, body: LargeBody) -> None:
        self._body, self._at = body, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._body.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._body.read_at(self._at, len(view))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


class LargeChunks(Sequence[bytes]):
    """The network reads of a large body, each read from its file when it is asked for."""

    def __init__(self, body: LargeBody, sizes: Iterable[int]) -> None:
        self.body = body
        ends = array("Q", itertools.accumulate(sizes))
        total = ends[-1] if ends else 0
        if total != body.size:  # what was masked has another length: as many reads, in proportion
            if total:
                ends = array("Q", (end * body.size // total for end in ends))
            else:
                ends = array("Q", (body.size,))
        self._ends = ends

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self.body.size

    @property
    def sizes(self) -> list[int]:
        return [end - start for start, end in itertools.pairwise((0, *self._ends))]

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = range(len(self._ends))[index]
        start = self._ends[place - 1] if place else 0
        return self.body.read_at(start, self._ends[place] - start)


class JoinedChunks(Sequence[bytes]):
    """Several runs of chunks as one, some of them in files."""

    def __init__(self, runs: Iterable[Sequence[bytes]]) -> None:
        self._runs = tuple(runs)
        self._ends = list(itertools.accumulate(map(len, self._runs)))

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(map(chunks_size, self._runs))

    @property
    def runs(self) -> tuple[Sequence[bytes], ...]:
        return self._runs

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        which = bisect_right(self._ends, place)
        return self._runs[which][place - (self._ends[which - 1] if which else 0)]


def chunks_size(chunks: Sequence[bytes]) -> int:
    """Bytes of chunks in all; none is read for it."""
    if isinstance(chunks, LargeChunks | JoinedChunks):
        return chunks.size
    return sum(map(len, chunks))


def is_large(chunks: Sequence[bytes]) -> bool:
    """Whether chunks lie in a file, and are not to be put together."""
    return isinstance(chunks, LargeChunks | JoinedChunks)


def large_bodies(chunks: Sequence[bytes]) -> Iterator[LargeBody]:
    """The files that chunks lie in."""
    if isinstance(chunks, LargeChunks):
        yield chunks.body
    elif isinstance(chunks, JoinedChunks):
        for run in chunks.runs:
            yield from large_bodies(run)


def join_chunks(*runs: Sequence[bytes]) -> Sequence[bytes]:
    """Runs of chunks, one after another."""
    filled = [run for run in runs if len(run)]
    if any(map(is_large, filled)):
        return filled[0] if len(filled) == 1 else JoinedChunks(filled)
    return tuple(itertools.chain.from_iterable(filled))


def limit(content_type: str, first: bytes) -> int:
    """Bytes from which on a body of that type, or one that begins so, is large."""
    kind = content_type.lower()
    structured = (
        "json" in kind
        or "event-stream" in kind
        or "eventstream" in kind
        or first[:1] in (b"{", b"[")
    )
    return READABLE_LIMIT if structured else LIMIT
