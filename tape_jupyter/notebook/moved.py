"""Notebook room: how far the body of a taped function moves the generators that it shares with its caller.

In replay the body does not run: the caller's next `random.random()` would give what the body drew. So the recording
says how far each generator went meanwhile, and the replay moves it as far. Nothing is drawn for the body itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tape_jupyter import generators
from tape_jupyter.generators import Generator, Raw, State
from tape_jupyter.notebook.taped import Cell

OVERLAP = (
    "{} moved {} while other code ran: whose draws were whose cannot be told, so in replay the numbers that follow may "
    "differ. Now: give the function a generator of its own (random.Random())"
)


class Body:
    """A body that runs, from where its caller's generators stood. `lineage` is its caller's.

    `alone` turns false where other code runs meanwhile; a function that this one calls is no other code.
    """

    def __init__(self, cell: Cell, lineage: str, name: str) -> None:
        self._cell, self._name, self.strand = cell, name, f"{lineage}/{name}"
        self._chance = cell.chance
        self.alone = True
        self._before: list[tuple[Generator, Raw]] = []
        if self._chance is not None:
            self._before = [(each, each.get()) for each in generators.standing()]
            for other in self._chance.bodies:
                if not f"{lineage}/".startswith((f"{other.strand}/", f"{other.strand}.")):
                    self.alone = other.alone = False
            self._chance.bodies.append(self)

    def moved(self) -> dict[str, Any]:
        """How far, by generator, now that the body is over; {} where none moved."""
        if self._chance is None:
            return {}
        if self in self._chance.bodies:
            self._chance.bodies.remove(self)
        after = [(each, before, each.get()) for each, before in self._before]
        moved = {each.name: (before, now) for each, before, now in after if not generators.same(before, now)}
        if moved and not self.alone:
            self._cell.warn(OVERLAP.format(self._name, ", ".join(moved)), cold=True)
            return {}
        return {name: _distance(*states) for name, states in moved.items()}


def _distance(before: Raw, after: Raw) -> dict[str, Any]:
    """Words drawn, where that says it all; else the state itself."""
    words = generators.words_between(before, after)
    if words is None:
        state = generators.written(after)
        return {"state": state.words, **state.at}
    spare = generators.mersenne(after)[2]
    return {"words": words, **({} if spare is None else {"gauss": spare})}


def follow(cell: Cell, moved: Mapping[str, Any]) -> None:
    """Move the generators as the recorded body did."""
    if not moved or cell.chance is None:
        return
    for generator in generators.standing():
        told = moved.get(generator.name)
        if isinstance(told, Mapping):
            try:
                _follow(generator, told)
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                cell.warn(f"{generator.name} is not held: how far a function moved it cannot be read ({error})")


def _follow(generator: Generator, told: Mapping[str, Any]) -> None:
    if "state" in told:
        at = {name: value for name, value in told.items() if name != "state"}
        generator.put(State(str(told["state"]), at))
    else:
        generator.set(generators.further(generator.get(), told["words"], told.get("gauss")))
