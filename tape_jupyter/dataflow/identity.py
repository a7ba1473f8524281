"""Which names of a namespace were bound, bound anew or removed since the last look.

A notebook has thousands of names after a day, most of them the shell's (`_i812`), and a cell binds
three: what did not change is passed over by C code, in about 40 ns a name. Nothing is held: people
who delete a value want the memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import compress
from operator import ne
from typing import Any

identity = object.__hash__
"""Of an object, a number that no other object has as long as it lives. id() would be heard by each
audit hook of the process (files.py), every time.
"""

SHELLS = re.compile(
    r"_+|_i+|_ih|_oh|_dh|In|Out|exit|quit|get_ipython|_i?\d+|_exit_code|__\w+__|_ii+|open"
)
"""Names that the shell itself keeps in the notebook's namespace."""


@lru_cache(maxsize=8192)
def is_shells(name: str) -> bool:
    """Whether a name is the shell's own."""
    return SHELLS.fullmatch(name) is not None


class Bindings:
    """What `read_changes` was last told of one namespace."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._names: list[Any] = []
        self._ids: list[int] = []

    def read_changes(self) -> tuple[dict[Any, Any], list[Any]]:
        """(names bound since the last look, with their values; names that are gone).

        A new value may have got the id of one that is gone: then only the text of the cell tells of
        it.
        """
        now = dict(self._namespace)  # at once: threads may bind names meanwhile
        names, ids = list(now), list(map(identity, now.values()))
        if names[: len(self._names)] == self._names:  # as nearly always: each keeps its place
            bound = [*compress(names, map(ne, ids, self._ids)), *names[len(self._names) :]]
            removed = []
        else:
            known = dict(zip(self._names, self._ids, strict=True))
            bound = [name for name, each in zip(names, ids, strict=True) if known.get(name) != each]
            removed = [name for name in self._names if name not in now]
        self._names, self._ids = names, ids
        return {name: now[name] for name in bound}, removed

    def forget(self) -> None:
        """The next look tells of every name; of those that are gone, too."""
        self._ids = [0] * len(self._names)
