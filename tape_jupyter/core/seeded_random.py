"""Draws that repeat. A seed stands on the tape, not the draws: nothing here draws, reads or
patches.

A draw is SHAKE-256 of the seed, who draws (a module), on which strand of the cell (task, thread,
tool body) and how many draws that one made before. So one drawer's number of draws never shifts
another's, the order in which threads run does not matter, and nothing runs dry. Whoever has the
seed can tell every draw: what is drawn in a taped cell is no secret any more.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

SEED = 32
"""Bytes of a seed."""


class Chance:
    """The draws of one execution of one cell. `home` is the module whose code is the person's own.

    `seen` holds words for what a person should hear of: "drawn" (anything), "secrets" (the person's
    code asked the secrets module), "taken" (a file lay where a temporary one was to be). `arrived`
    is told the name of a library with generators of its own that is imported meanwhile, `bodies`
    are the taped functions that run (session/pins/random.py). A forked child shares none of this:
    its draws would be its siblings' too, so that `forked` is true there and it draws its own.
    """

    def __init__(
        self, seed: bytes, home: str = "__main__", arrived: Callable[[str], None] = lambda _: None
    ) -> None:
        if len(seed) != SEED:
            raise ValueError(f"a seed has {SEED} bytes, not {len(seed)}")
        self.seed, self.home, self.arrived = seed, home, arrived
        self.seen: set[str] = set()
        self.bodies: list[Any] = []
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._pid = os.getpid()

    @property
    def forked(self) -> bool:
        return os.getpid() != self._pid

    def draw(self, count: int, drawer: str, lineage: str) -> bytes:
        """The next `count` bytes of `drawer` on this strand."""
        key = ("" if drawer == self.home else drawer, lineage)
        with self._lock:
            self._counts[key] += 1
            number = self._counts[key]
        return self._compute_digest((*key, number), count)

    def fixed(self, count: int, name: str) -> bytes:
        """Bytes that stay the same through the cell: for what there is one of."""
        return self._compute_digest((name,), count)

    def _compute_digest(self, key: tuple[str | int, ...], count: int) -> bytes:
        return hashlib.shake_256(self.seed + repr(key).encode("ascii", "backslashreplace")).digest(
            count
        )
