"""What a value is, as a short digest, and what it can reach: shared objects, code, libraries.

Nothing of the user's is run: no __reduce__, __eq__, __hash__, __repr__, property or __getattr__; no
generator is moved. What cannot be looked into is opaque: whoever mentions it may have changed it.
Digests hold no addresses, so equal values have equal digests in another kernel.
"""

from __future__ import annotations

import time
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tape_jupyter.core.user_code import bag, name_cells
from tape_jupyter.dataflow.fingerprint.objects import visit_object
from tape_jupyter.dataflow.fingerprint.walker import ATOMS, Vast, Walk, hasher

SECONDS = 0.05
"""How much of the processor's time one value may take; then it is opaque."""


_DATA = bag(
    "__main__ array builtins collections dataclasses datetime decimal enum fractions functools "
    "numpy operator pandas pydantic random statistics string types typing uuid zoneinfo"
) | {""}
"""Root modules of the types that data is made of."""


@dataclass(frozen=True, slots=True)
class Print:
    """A value's fingerprint.

    `ids`: changeable objects in it; `codes`: (module, code) of its functions, "" the notebook;
    `kinds`: root modules of its types and functions.
    """

    digest: str
    opaque: bool = False
    vast: bool = False
    """Opaque for its size alone: it could be read, but that takes too long."""
    ids: frozenset[int] = frozenset()
    classes: frozenset[int] = frozenset()
    """Of `ids`, the classes and functions: who changes an object changes none of them."""
    codes: frozenset[tuple[str, types.CodeType]] = frozenset()
    kinds: frozenset[str] = frozenset()
    seconds: float = 0.0
    large: bool = False
    """So large that the time it takes may keep it from being looked at."""
    weight: int = 0
    """Bytes of its buffers, about."""
    partial: bool = False
    """A library's object in it holds more than was looked at."""
    dim: frozenset[int] = frozenset()
    """Of `ids`, what lies in a library's object and shows less there than where it lies open."""

    @property
    def is_whole(self) -> bool:
        """Whether the digest is another wherever any of `ids`, but `dim` ones, holds another value."""
        return not (self.opaque or self.vast or self.partial)

    @property
    def is_data(self) -> bool:
        """Whether it shows all that it holds."""
        return self.kinds <= _DATA and not (self.opaque or self.vast)


def fingerprint(
    value: Any, namespace: Mapping[str, Any] | None = None, *, seconds: float = SECONDS
) -> Print:
    """Of one value; `namespace` is the notebook's, by which its functions are known. Raises
    nothing.
    """
    if type(value) in ATOMS and not (type(value) in (str, bytes) and len(value) > 1_000_000):
        return Print(_hash_atom(value))
    began = time.thread_time()
    walk = Walk(namespace, began + seconds, visit_object)
    opaque = vast = False
    try:
        walk.visit_value(value, 0, foreign=False)
    except Vast:
        vast = True
    except Exception:  # whatever people's objects do when looked at, tracking goes on
        opaque = True
    took = time.thread_time() - began
    ids = frozenset(walk.ids)
    digest = "" if vast or opaque else walk.hash.hexdigest()
    return Print(
        digest or f"opaque {type(value).__qualname__}", walk.opaque or opaque or vast, vast, ids,
        frozenset(walk.classes),
        frozenset(walk.codes), frozenset(walk.kinds), took, walk.large, walk.weight,
        walk.partial, frozenset(walk.dim),
    )  # fmt: skip


def _hash_atom(value: Any) -> str:
    h = hasher()
    h.update(f"{type(value).__name__}\0".encode())
    text = name_cells(value) if type(value) is str else str(value)
    h.update(value if type(value) is bytes else text.encode("utf-8", "surrogatepass"))
    return h.hexdigest()
