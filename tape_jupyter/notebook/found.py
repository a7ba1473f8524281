"""Notebook room: the functions of a notebook behind the names of tools, as one taped cell found and taped them.

A cell may put other functions in their place as it runs (its own handlers, a module that is reloaded): so each request
that declares tools is a reason to look again, and a look costs little while nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FunctionType

    from tape_jupyter.taps.functions import TapedFunctions

FOUND = -1
"""Of a name that was sought: it once led to a function. 0: it never did."""


class Found:
    """What a cell saw when it last looked for its tools, and what it taped."""

    def __init__(self) -> None:
        self.sought: dict[str, int] = {}
        self._seen: dict[tuple[str, ...], list[int]] = {}
        self._taped: list[TapedFunctions] = []

    def standing(self) -> set[FunctionType]:
        """The functions that are taped for the cell now."""
        return {function for taped in self._taped for function in taped.standing}

    def tape(self, names: tuple[str, ...], namespace: Mapping[str, Any]) -> TapedFunctions | None:
        """Tape the functions that go by these names and are not taped for the cell yet; None where there is none."""
        from tape_jupyter.taps.finding import find_functions, looked_at
        from tape_jupyter.taps.functions import tape_functions

        seen = looked_at(names, namespace)
        if seen is not None and self._seen.get(names) == seen and self._holds():
            return None
        found, standing = find_functions(names, namespace), self.standing()
        self.sought.update({name: FOUND if name in found else self.sought.get(name, 0) for name in names})
        taped = tape_functions({name: [each for each in found[name] if each not in standing] for name in found})
        if seen is not None:
            self._seen[names] = seen
        if len(taped):
            self._taped.append(taped)
        return taped if len(taped) or taped.skipped else None

    def _holds(self) -> bool:
        """Whether all that was taped still is."""
        return all(len(taped.standing) == len(taped) for taped in self._taped)
