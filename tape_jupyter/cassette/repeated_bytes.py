"""Bodies that begin with the bytes of an earlier one: these are not digested or searched again.

Of each body seen lately digests of its beginnings are kept, the closer together the nearer to its
end: that is where the next one parts from it. Beginnings are the same where their bytes are, which
are compared each time.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_KEPT = 8
"""Bodies that are known at once: as many agents may ask beside each other."""
_SHORTEST, _LONGEST = 1024, 2 * 1024 * 1024
"""Bytes of a body that is kept."""
_NEAREST = 256
"""Bytes between a body's end and the last beginning of which the digest is kept."""
_EARLIER = 4
"""Beginnings that are kept of those that a body shares with the one before it."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A body; `beginnings` are (bytes, digest of `head` and so many bytes), the shortest first.

    `found` is where the word ends that SeenBodies looks for, -1 where it is not in the body.
    """

    data: bytes
    head: bytes
    beginnings: tuple[tuple[int, Any], ...]
    found: int

    def count_shared(self, data: bytes) -> int:
        """Bytes of the longest of `beginnings` that `data` begins with."""
        shared, own = 0, memoryview(self.data)
        for end, _ in self.beginnings:
            if not data.startswith(own[shared:end], shared):
                break
            shared = end
        return shared


class SeenBodies:
    """The bodies that were seen last, and whether `word` stands in them. Any thread may ask."""

    def __init__(self, word: bytes = b"") -> None:
        self.word = word
        self._known: tuple[_Seen, ...] = ()
        self._lock = threading.Lock()

    def compare(self, data: bytes) -> RepeatedBody:
        """A body, with the known one that it shares the most with."""
        shared, known = 0, None
        for each in self._known:
            count = each.count_shared(data)
            if count > shared:
                shared, known = count, each
        return RepeatedBody(self, data, known, shared)

    def remember(self, seen: _Seen, known: _Seen | None, shared: int) -> None:
        """Remember a body: in place of the one that it goes on from, where it shares most of it."""
        goes_on = known is not None and 2 * shared >= len(known.data)
        with self._lock:
            rest = (each for each in self._known if not (goes_on and each is known))
            self._known = (seen, *rest)[:_KEPT]


class RepeatedBody:
    """A body of which the first `shared` bytes are those of a known one."""

    def __init__(self, bodies: SeenBodies, data: bytes, known: _Seen | None, shared: int) -> None:
        self._bodies, self._data, self._known, self._shared = bodies, data, known, shared
        self._found: int | None = None

    def starts_with(self, beginning: memoryview) -> bool:
        """Whether the body begins so; what it is known to share is not compared again."""
        is_known = self._known is not None and beginning.obj is self._known.data
        same = min(self._shared, len(beginning)) if is_known else 0
        return self._data.startswith(beginning[same:], same)

    @property
    def marked(self) -> bool:
        """Whether SeenBodies.word stands in it."""
        return self._find_word() >= 0

    def _find_word(self) -> int:
        """Where the word ends that stands in it first; -1: nowhere."""
        if self._found is None:
            known, word = self._known, self._bodies.word
            if known is not None and 0 <= known.found <= self._shared:
                self._found = known.found
            else:
                at = self._data.find(word, max(0, self._shared - len(word) + 1))
                self._found = at + len(word) if at >= 0 else -1
        return self._found

    def digest(self, head: bytes) -> str:
        """16 hex digits of `head` and the body; both are known from now on."""
        beginnings = self._list_known_beginnings(head)
        end, digest = beginnings[-1] if beginnings else (0, hashlib.blake2b(head, digest_size=8))
        digest, data = digest.copy(), memoryview(self._data)
        for cut in _list_cuts(len(data)):
            if cut > end:
                digest.update(data[end:cut])
                end = cut
                beginnings.append((end, digest.copy()))
        digest.update(data[end:])
        if _SHORTEST <= len(data) <= _LONGEST:
            seen = _Seen(self._data, head, tuple(beginnings), self._find_word())
            self._bodies.remember(seen, self._known, self._shared)
        return str(digest.hexdigest())

    def _list_known_beginnings(self, head: bytes) -> list[tuple[int, Any]]:
        if self._known is None or self._known.head != head:
            return []
        shared = [each for each in self._known.beginnings if each[0] <= self._shared]
        return shared[-_EARLIER:]


def _list_cuts(size: int) -> Iterator[int]:
    """Where the beginnings of so many bytes end, the shortest first: each leaves four times as much
    as the next.
    """
    for power in reversed(range(0, (size // _NEAREST).bit_length(), 2)):
        yield size - (_NEAREST << power)
