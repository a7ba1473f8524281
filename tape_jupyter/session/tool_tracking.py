"""Tools that models asked for, and whether what answered them is on the tape. Patches
nothing, says nothing.

A tool that no tap saw runs again in replay: its side effects happen, and its result may differ, so
that the request which hands it back is a miss. That is said while recording, when it can still be
mended.

The functions of a notebook behind the names of tools, as one taped cell found and taped them.

A cell may put other functions in their place as it runs (its own handlers, a module that is
reloaded): so each request that declares tools is a reason to look again, and a look costs little
while nothing changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tape_jupyter.providers.registry import Facts

if TYPE_CHECKING:
    from types import FunctionType

    from tape_jupyter.instrumentation.tools.decorators import TapedFunctions


class Tools:
    """What the models of one kernel asked for and got, over all its cells: one may ask and the next
    one answer.

    `moment` numbers what happens; a tool is taped where one of its taped calls came after the
    request that led to it.
    """

    def __init__(self) -> None:
        self._moments = itertools.count()
        self._requested: dict[str, tuple[str, int]] = {}
        self._taped: dict[str, int] = {}

    def moment(self) -> int:
        return next(self._moments)

    def note_call(self, name: str) -> None:
        """A taped function of that name is called; a method of a taped class goes by its own name
        as well.
        """
        self._taped[name] = self._taped[name.rpartition(".")[2]] = self.moment()

    def has_run(self, name: str, since: int) -> bool:
        """Whether a taped function of that name was called after that moment."""
        return self._taped.get(name, -1) > since

    def note_requests(self, facts: Facts, moment: int) -> None:
        """The reply to the request made at `moment` asks for these tools."""
        self._requested.update({call.id or call.name: (call.name, moment) for call in facts.calls})

    def untaped(self, facts: Facts, namespace: Mapping[str, Any]) -> list[str]:
        """The tools whose results this request is the first to hand back, and whose calls are not
        on the tape.
        """
        answered = [
            self._requested.pop(result.id or result.name, ("", 0)) for result in facts.results
        ]
        return [
            name
            for name, moment in answered
            if name and not self._is_taped(name, moment, namespace)
        ]

    def _is_taped(self, name: str, moment: int, namespace: Mapping[str, Any]) -> bool:
        if self._taped.get(name, -1) > moment:
            return True
        from tape_jupyter.instrumentation.tools.discovery import decorated_names

        return any(
            self._taped.get(other, -1) > moment for other in decorated_names(name, namespace)
        )


FOUND = -1
"""Of a name that was sought: it once led to a function. 0: it never did."""


class ScannedTools:
    """What a cell saw when it last looked for its tools, and what it taped."""

    def __init__(self) -> None:
        self.sought: dict[str, int] = {}
        self._seen: dict[tuple[str, ...], list[int]] = {}
        self._taped: list[TapedFunctions] = []

    def list_current_functions(self) -> set[FunctionType]:
        """The functions that are taped for the cell now."""
        return {function for taped in self._taped for function in taped.current_functions}

    def tape(self, names: tuple[str, ...], namespace: Mapping[str, Any]) -> TapedFunctions | None:
        """Tape the functions that go by these names and are not taped for the cell yet; None where
        there is none.
        """
        from tape_jupyter.instrumentation.tools.decorators import tape_functions
        from tape_jupyter.instrumentation.tools.discovery import find_functions, list_search_ids

        seen = list_search_ids(names, namespace)
        if seen is not None and self._seen.get(names) == seen and self._is_still_taped():
            return None
        functions, current = find_functions(names, namespace), self.list_current_functions()
        self.sought.update(
            {name: FOUND if name in functions else self.sought.get(name, 0) for name in names}
        )
        taped = tape_functions(
            {name: [each for each in functions[name] if each not in current] for name in functions}
        )
        if seen is not None:
            self._seen[names] = seen
        if len(taped):
            self._taped.append(taped)
        return taped if len(taped) or taped.skipped else None

    def _is_still_taped(self) -> bool:
        """Whether all that was taped still is."""
        return all(len(taped.current_functions) == len(taped) for taped in self._taped)
