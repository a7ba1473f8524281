"""A walk through a value and all that it holds: its hash, the objects it met, how long it may take.
What is done with each kind of thing is in dataflow/fingerprint/objects.py,
dataflow/fingerprint/instances.py and dataflow/fingerprint/containers.py.

The hash that fingerprints are made of: xxh3 where it is installed, blake2b else.
"""

from __future__ import annotations

import functools
import hashlib
import time
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from tape_jupyter.core.user_code import name_cells
from tape_jupyter.dataflow.fingerprint import arrays
from tape_jupyter.dataflow.identity import identity

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


_new: Callable[[], Hash] = (
    functools.partial(hashlib.blake2b, digest_size=16) if xxhash is None else xxhash.xxh3_128
)


def digest_bytes(data: bytes) -> str:
    fresh = hasher()
    fresh.update(data)
    return fresh.hexdigest()


NODES, BYTES = 2_000, 1 << 20
"""What is always looked at, however slow the machine is just now."""
MEGABYTE = 1 << 20
"""Bytes of a text or buffer that are looked at between two looks at the clock."""
DEPTH = 150
ATOMS = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type(Ellipsis),
        type(NotImplemented),
        range,
        slice,
    }
)


class Vast(Exception):
    """The value is too large, or too deep, to be looked at in its time."""


class ObjectLook(Protocol):
    """How one object that is no atom is looked at: what there is to say of it, and what in it is
    gone through.
    """

    def __call__(
        self, walk: Walk, value: Any, kind: type, depth: int, *, foreign: bool
    ) -> None: ...


class Walk:
    """Goes through one value; `deadline` is by `time.thread_time()`, `visit_object` is asked of each object
    once. Raises Vast.

    `namespace` is the notebook's. `foreign` things lie in an object of a library.
    """

    def __init__(
        self, namespace: Mapping[str, Any] | None, deadline: float, visit_object: ObjectLook
    ) -> None:
        self.hash = hasher()
        self.ids: set[int] = set()
        self.classes: set[int] = set()
        self.codes: set[tuple[str, types.CodeType]] = set()
        self.kinds: set[str] = set()
        self.opaque = False
        self.weight = 0
        self.namespace, self._deadline, self._inspector = namespace, deadline, visit_object
        self.seen: dict[int, int] = {}
        self.held: list[Any] = []
        """What lives as long as the walk, so that no two things have one address."""
        self.count = 0
        self.foreigners = 0
        """Objects of libraries that were met."""
        self.partial = False
        """Whether there were too many of them to look at each."""
        self.dim: set[int] = set()
        """Of `ids`, those of which less was looked at because they lie in a library's object."""

    def hash_text(self, text: str) -> None:
        """A word of what is hashed."""
        self.hash.update(text.encode("utf-8", "surrogatepass") + b"\0")

    def buffer(self, data: Any) -> None:
        """A large buffer, in pieces, so that the deadline holds."""
        self.weight += arrays.size_of(data)
        for piece in arrays.buffer_pieces(data, MEGABYTE):
            self.hash.update(piece)
            self.tick()

    @property
    def large(self) -> bool:
        """Whether the clock may end the walk: what is small is always gone through, however busy
        the machine is.
        """
        return self.count > NODES or self.weight > BYTES

    def tick(self) -> None:
        """Look at the clock. Raises Vast."""
        if self.large and time.thread_time() > self._deadline:
            raise Vast

    def visit_value(self, value: Any, depth: int, *, foreign: bool) -> None:
        """Through one object and all in it, once."""
        kind = type(value)
        self.count += 1
        if not self.count & 63:
            self.tick()
        if kind in ATOMS:
            self._hash_atom(value, kind)
            return
        address = identity(value)
        if address in self.seen:
            self.hash_text(f"@{self.seen[address]}")
            return
        if depth > DEPTH:
            raise Vast
        if kind is not tuple and kind is not frozenset:
            self.seen[address] = len(self.seen)
        self.held.append(value)
        self._inspector(self, value, kind, depth + 1, foreign=foreign)

    def _hash_atom(self, value: Any, kind: type) -> None:
        if kind is not bytes and (kind is not str or len(value) <= MEGABYTE):
            text = f"{kind.__name__}\1{name_cells(value) if kind is str else value}\0"
            self.hash.update(text.encode("utf-8", "surrogatepass"))
            return
        self.hash.update(f"{kind.__name__}\1".encode())
        if kind is bytes:
            self.buffer(value)
        else:
            for start in range(0, len(value), MEGABYTE):
                self.buffer(value[start : start + MEGABYTE].encode("utf-8", "surrogatepass"))
        self.hash.update(b"\0")

    def unordered(self, value: Iterable[Any], depth: int, *, foreign: bool) -> None:
        """Through a set: each item has a hash of its own, and their order does not matter."""
        base: Any = frozenset if isinstance(value, frozenset) else set
        parts = []
        outer_hash = self.hash
        for each in base.__iter__(value):
            self.hash = hasher()
            self.visit_value(each, depth, foreign=foreign)
            parts.append(self.hash.hexdigest())
        self.hash = outer_hash
        self.hash_text(",".join(sorted(parts)))
