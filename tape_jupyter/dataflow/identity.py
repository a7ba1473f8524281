"""Which names of a namespace were bound, bound anew or removed since the last look.

A notebook has thousands of names after a day, most of them the shell's (`_i812`), which nobody asks
for, and a cell binds three: what did not change is passed over by C code. Nothing is held: people who
delete a value want the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import compress, repeat
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


_GONE = object()
"""In place of the value of a name that a thread has removed just now."""


class Bindings:
    """What `read_changes` was last told of one namespace. Of names that are the shell's, and of keys
    that are no names, it never tells.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._keys: list[Any] = []
        self._names: list[str] = []
        """Of the keys, those that are told of, in their order."""
        self._ids: list[int] = []

    def read_changes(self) -> tuple[dict[str, Any], list[str]]:
        """(names bound since the last look, with their values; names that are gone).

        A new value may have got the id of one that is gone: then only the text of the cell tells of
        it.
        """
        keys = list(self._namespace)  # at once: threads may bind names meanwhile
        if keys[: len(self._keys)] == self._keys:  # as nearly always: each keeps its place
            fresh = _filter_variables(keys[len(self._keys) :])
            names, removed = self._names + fresh, []
            known = self._ids + [0] * len(fresh)
        else:
            names, there = _filter_variables(keys), set(keys)
            removed = [name for name in self._names if name not in there]
            ids = dict(zip(self._names, self._ids, strict=True))
            known = [ids.get(name, 0) for name in names]
        values = list(map(self._namespace.get, names, repeat(_GONE)))
        self._keys, self._names, self._ids = keys, names, list(map(identity, values))
        changed = compress(zip(names, values, strict=True), map(ne, self._ids, known))
        return {name: each for name, each in changed if each is not _GONE}, removed

    def forget(self) -> None:
        """The next look tells of every name; of those that are gone, too."""
        self._ids = [0] * len(self._names)


def _filter_variables(keys: Iterable[Any]) -> list[str]:
    return [key for key in keys if isinstance(key, str) and not is_shells(key)]
