"""Notebook room: tools that models asked for, and whether what answered them is on the tape. Patches
nothing, says nothing.

A tool that no tap saw runs again in replay: its side effects happen, and its result may differ, so that the request
which hands it back is a miss. That is said while recording, when it can still be mended.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from tape_jupyter.providers import Facts


class Tools:
    """What the models of one kernel asked for and got, over all its cells: one may ask and the next one answer.

    `moment` numbers what happens; a tool is taped where one of its taped calls came after the request that led to it.
    """

    def __init__(self) -> None:
        self._moments = itertools.count()
        self._asked: dict[str, tuple[str, int]] = {}
        self._taped: dict[str, int] = {}

    def moment(self) -> int:
        return next(self._moments)

    def ran(self, name: str) -> None:
        """A taped function of that name is called; a method of a taped class goes by its own name as well."""
        self._taped[name] = self._taped[name.rpartition(".")[2]] = self.moment()

    def has_run(self, name: str, since: int) -> bool:
        """Whether a taped function of that name was called after that moment."""
        return self._taped.get(name, -1) > since

    def ask(self, told: Facts, moment: int) -> None:
        """The reply to the request made at `moment` asks for these tools."""
        self._asked.update({call.id or call.name: (call.name, moment) for call in told.calls})

    def untaped(self, told: Facts, namespace: Mapping[str, Any]) -> list[str]:
        """The tools whose results this request is the first to hand back, and whose calls are not on the tape."""
        answered = [self._asked.pop(result.id or result.name, ("", 0)) for result in told.results]
        return [name for name, moment in answered if name and not self._is_taped(name, moment, namespace)]

    def _is_taped(self, name: str, moment: int, namespace: Mapping[str, Any]) -> bool:
        if self._taped.get(name, -1) > moment:
            return True
        from tape_jupyter.taps.finding import decorated_names

        return any(self._taped.get(other, -1) > moment for other in decorated_names(name, namespace))
