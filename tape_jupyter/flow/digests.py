"""Engine room: the hash that fingerprints are made of: xxh3 where it is installed, blake2b else."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
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
    return _new()


_new: Callable[[], Hash] = functools.partial(hashlib.blake2b, digest_size=16) if xxhash is None else xxhash.xxh3_128


def digest(data: bytes) -> str:
    fresh = hasher()
    fresh.update(data)
    return fresh.hexdigest()
