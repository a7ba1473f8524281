"""Engine room: the hash that fingerprints are made of: xxh3 where it is installed, blake2b else."""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

try:
    import xxhash
except ImportError:
    xxhash = None  # type: ignore[assignment,unused-ignore]


class Hash(Protocol):
    def update(self, data: Any, /) -> None: ...
    def hexdigest(self) -> str: ...


def hasher() -> Hash:
    """A new one, of 128 bits."""
    if xxhash is not None:
        return xxhash.xxh3_128()
    return hashlib.blake2b(digest_size=16)


def digest(data: bytes) -> str:
    fresh = hasher()
    fresh.update(data)
    return fresh.hexdigest()
