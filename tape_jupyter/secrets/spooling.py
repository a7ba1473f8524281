"""A large body on its way into a file: searched once for secrets, and masked, in constant memory.

What is kept is masked, so that a secret never lies in the folder of a cassette. Where something was
masked, what the program sent is kept beside it in a file without a name, until it was sent.
"""

from __future__ import annotations

import hashlib
import os
import secrets as entropy
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tape_jupyter.core.large_body import BLOCK, LIMIT, LargeBody, LargeChunks, join_chunks, limit
from tape_jupyter.secrets.registry import Secrets

OVERLAP = 64 * 1024
"""Bytes that two searches have in common: a secret, in whatever spelling, is found if it is no
longer than this.
"""
_CUTS = 16
_TMPFILE = getattr(os, "O_TMPFILE", 0)
_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def unnamed(folder: Path | None) -> int:
    """A new file without a name in the folder (None: where the machine has its temporary files).
    Raises OSError.
    """
    has_folder = folder is not None
    place = folder if folder is not None else _find_temporary_folder()
    if has_folder:
        place.mkdir(parents=True, exist_ok=True)
    mode = 0o666 if has_folder else 0o600
    if _TMPFILE:
        with suppress(OSError):  # a file system that has none
            return os.open(place, _FLAGS | _TMPFILE, mode)
    path = place / f".large-{entropy.token_hex(8)}.tmp"
    file = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, mode)
    path.unlink()
    return file


def _find_temporary_folder() -> Path:
    """On the disk: /tmp lies in memory on some machines."""
    lasting = Path("/var/tmp")  # noqa: S108 - files there have no name
    if "TMPDIR" not in os.environ and os.access(lasting, os.W_OK):
        return lasting
    return Path(tempfile.gettempdir())


class Spool:
    """Takes the bytes of one body; `finish` gives the body. Raises OSError where they cannot be
    written.

    `keep_sent`: the program's own bytes are needed as well. `store`: False where the body's digest
    is all that is.
    """

    def __init__(
        self, folder: Path | None, secrets: Secrets, *, keep_sent: bool, store: bool = True
    ) -> None:
        self._secrets, self._learned = secrets, secrets.learned
        self._file = unnamed(folder) if store else None
        self._keep_sent = keep_sent
        self._sent: int | None = None
        self._digest = hashlib.sha256()
        self._size = 0  # bytes that are kept
        self._passed = 0  # bytes that came, without those of `_carried` and `_waiting`
        self._carried = b""
        self._waiting: list[bytes] = []
        self._weight = 0
        self._masked = False

    def write(self, data: bytes) -> None:
        self._waiting.append(data)
        self._weight += len(data)
        if self._weight >= BLOCK:
            self._write_waiting(last=False)

    def finish(self) -> LargeBody:
        """The body. Nothing may be written any more."""
        self._write_waiting(last=True)
        sent = None
        if self._masked:
            sent = LargeBody(self._sent, self._passed, "")
        return LargeBody(
            self._file, self._size, self._digest.hexdigest(), sent=sent, learned=self._learned
        )

    def taken_back(self) -> Iterator[bytes]:
        """All that was written, where the disk has no more room."""
        file = self._file if self._sent is None else self._sent
        assert file is not None
        for start in range(0, self._passed, BLOCK):
            yield os.pread(file, min(BLOCK, self._passed - start), start)
        yield from (self._carried, *self._waiting)

    def _write_waiting(self, *, last: bool) -> None:
        """Write what came, but for its end, which is looked at again together with what follows."""
        data = b"".join((self._carried, *self._waiting))
        view, kept = memoryview(data), b""
        is_masked = False
        if self._secrets.suspicious(data):
            at, kept = self._mask_part(data, last=last)
            is_masked = kept != view[:at]
        else:
            at = len(data) if last else max(0, len(data) - OVERLAP)
        if is_masked and not self._masked:
            self._begin_sent()
        if self._sent is not None:
            _write_at(self._sent, view[:at], self._passed)
        passed_on = memoryview(kept) if is_masked else view[:at]
        if self._file is not None:
            _write_at(self._file, passed_on, self._size)
        self._digest.update(passed_on)
        self._size += len(passed_on)
        self._passed += at
        self._carried, self._waiting, self._weight = data[at:], [], 0

    def _mask_part(self, data: bytes, *, last: bool) -> tuple[int, bytes]:
        """How much of the data can be passed on now, and what is kept of that."""
        text = data.decode("utf-8", "surrogateescape")
        at = len(text) if last else self._find_safe_cut(text)
        clean = self._secrets.scrub(text[:at])[0]
        return len(text[:at].encode("utf-8", "surrogateescape")), clean.encode(
            "utf-8", "surrogateescape"
        )

    def _find_safe_cut(self, text: str) -> int:
        """A place near the end where nothing that is masked is cut in two; the end itself where
        there is none.
        """
        scrubbed = self._secrets.scrub(text)[0]
        for step in range(_CUTS):
            at = max(0, len(text) - OVERLAP + step * OVERLAP // _CUTS)
            if self._secrets.scrub(text[:at])[0] + self._secrets.scrub(text[at:])[0] == scrubbed:
                return at
        return len(text)

    def _begin_sent(self) -> None:
        """From here on what is kept differs from what came: what was written so far is the same."""
        self._masked = True
        if not self._keep_sent or self._file is None:
            return
        self._sent = unnamed(None)
        for start in range(0, self._size, BLOCK):
            _write_at(
                self._sent, os.pread(self._file, min(BLOCK, self._size - start), start), start
            )


def _write_at(file: int, data: bytes | memoryview, start: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(file, view, start)
        view, start = view[done:], start + done


def spooled(parts: Iterable[bytes], folder: Path | None, secrets: Secrets) -> LargeBody:
    """A body of these parts, searched for what is known now."""
    spool = Spool(folder, secrets, keep_sent=False)
    for part in parts:
        spool.write(part)
    return spool.finish()


Begin = Callable[[], Spool | None]


class Upload:
    """A body that a program sends, part by part: held, and spooled from where it gets large.
    `begin` None: held.
    """

    def __init__(self, begin: Begin | None, content_type: str = "") -> None:
        self._begin, self._kind = begin, content_type
        self._parts: list[bytes] = []
        self._size = 0
        self._spool: Spool | None = None

    def add(self, data: bytes) -> None:
        if self._spool is not None:
            try:
                self._spool.write(data)
            except OSError:
                self._parts, self._spool = [*self._spool.taken_back()], None
            return
        self._parts.append(data)
        self._size += len(data)
        if (
            self._begin is not None
            and self._size > LIMIT
            and self._size > limit(self._kind, self._parts[0])
        ):
            self._spool, self._begin = self._begin_spool(), None

    def _begin_spool(self) -> Spool | None:
        assert self._begin is not None
        try:
            spool = self._begin()
            for part in self._parts if spool is not None else ():
                spool.write(part)  # type: ignore[union-attr]
        except OSError:  # no room on the disk: it is held
            return None
        if spool is not None:
            self._parts = []
        return spool

    def finish_body(self) -> bytes | LargeBody:
        return b"".join(self._parts) if self._spool is None else self._spool.finish()


class Arrived:
    """The network reads of one reply: held, and spooled from where they get large. `begin` None:
    all are held.
    """

    def __init__(self, begin: Begin | None) -> None:
        self._begin = begin
        self.limit = LIMIT
        self._in_memory: list[bytes] = []
        self._size = 0
        self._spool: Spool | None = None
        self._sizes = array("Q")
        self._count = self._from = 0
        self._dropped = False
        self._sealed: list[tuple[int, Sequence[bytes]]] = []

    def __len__(self) -> int:
        return self._count

    def hold_in_memory(self) -> None:
        """Hold all of it, however large it gets."""
        self._begin = None

    def drop(self) -> None:
        """Forget it, and what follows."""
        self._in_memory = []
        self._spool = None
        self._begin = None
        self.limit = 0
        self._dropped = True

    def append(self, data: bytes) -> None:
        self._count += 1
        if self._dropped:
            return
        if self._spool is None:
            self._in_memory.append(data)
            self._size += len(data)
            if self._size > self.limit and self._begin is not None:
                self._begin_spool()
            return
        self._spool.write(data)
        self._sizes.append(len(data))

    def _begin_spool(self) -> None:
        assert self._begin is not None
        self._spool = self._begin()
        if self._spool is None:
            self._begin = None
            return
        self._sizes = array("Q", map(len, self._in_memory))
        for data in self._in_memory:
            self._spool.write(data)
        self._in_memory = []

    def since(self, start: int) -> Sequence[bytes]:
        """Those from number `start` on. What comes later is kept apart from them."""
        if self._from < self._count:
            run: Sequence[bytes] = tuple(self._in_memory)
            if self._spool is not None:
                run = LargeChunks(self._spool.finish(), self._sizes)
            self._sealed.append((self._from, run))
            self._in_memory, self._spool, self._size, self._from = [], None, 0, self._count
        return join_chunks(*(run for at, run in self._sealed if at >= start))
