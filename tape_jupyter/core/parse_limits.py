"""How much of a stranger's text is parsed: a few bytes can become gigabytes of objects.

What a text would hold is counted by the characters that begin a value, before anything is parsed.
"""

from __future__ import annotations

import time

MOST_VALUES = 3_000_000
"""Of one file, parsed: 200 MB of memory or less. A notebook with 100 charts of 10,000 points has
2 million.
"""
_OBJECT = 8
MOST_IN_RECORD = 1_000_000
_PIECE = 1 << 20


def count_json_values(data: bytes, most: int) -> int:
    """About how many values a JSON text has; an object counts as nine, and what stands in its texts
    as none. Exact enough only where there are more than `most`.
    """
    count = _count_marks(data)
    if count <= most:
        return count
    plain = data.replace(rb"\\", b"").replace(rb"\"", b"")
    count, in_text = 0, 0
    for start in range(0, len(plain), _PIECE):
        parts = plain[start : start + _PIECE].split(b'"')
        count += _count_marks(b" ".join(parts[in_text::2]))
        in_text ^= (len(parts) - 1) & 1
    return count


def _count_marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + _OBJECT * data.count(b"{")


def count_toml_values(data: bytes) -> int:
    """No fewer than the values, keys and lines of a TOML text."""
    return sum(map(data.count, (b",", b"[", b"{", b"=", b"\n")))


def count_record_values(text: str) -> int:
    """About how many values a record of a cassette has, and what a text in it that is JSON holds."""
    return text.count("\n") + text.count(",") + _OBJECT * text.count("{")


def require_few_values(data: bytes, most: int = MOST_VALUES) -> None:
    """Raises ValueError for a JSON text that holds more than is parsed."""
    if (count := count_json_values(data, most)) > most:
        raise ValueError(f"it holds about {count:,} values, at most {most:,} are read")


class ReadBudget:
    """How much of a stranger's recordings a command reads in full: a record may hold any number of
    values, and one long text may stand in any number of calls.
    """

    EACH, ALL = 32 << 20, 256 << 20  # bytes of long texts
    SECONDS, PER_BYTE, PER_VALUE = 3.0, 4e-6, 8e-6
    """Of processor time: what the bytes of a real bundle take several times over."""

    def __init__(self, size: int | None = None) -> None:
        """`size`: the bytes that were sent, which the time follows; None: it may take any time."""
        self._texts = self.ALL
        self._end = None if size is None else time.thread_time() + self._find_seconds(size)

    def _find_seconds(self, size: int) -> float:
        return self.SECONDS + self.PER_BYTE * size

    def allows_texts(self, size: int) -> bool:
        """Whether long texts of so many bytes may be put together; they are counted then."""
        allowed = size <= min(self.EACH, self._texts)
        self._texts -= size if allowed else 0
        return allowed

    def allows_values(self, count: int) -> bool:
        """Whether so many values may be parsed in one piece, and there is time for it."""
        return count <= MOST_IN_RECORD and self.has_time(self.PER_VALUE * count)

    def has_time(self, seconds: float = 0.0) -> bool:
        """Whether there is time for work that takes so long."""
        return self._end is None or time.thread_time() + seconds <= self._end
