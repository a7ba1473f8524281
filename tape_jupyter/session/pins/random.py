"""The pin of chance: the seed that a cell's draws come from, and where its generators stood.

The rule. A recording changes no generator: `random.seed(1)` in an earlier cell keeps its meaning,
taped or not. Where each generator stood at the cell's start is written down if the cell moves it
(`random`, numpy's and torch's global ones, and those that the notebook's variables hold), and a
replay puts it there. After the cell, replayed or recorded, they stand where the program left them.
What takes fresh entropy meanwhile (uuid, secrets, os.urandom, a generator without a seed, names of
temporary files, a library that is imported) draws from a seed of the run's own, in the recording as
in the replay (core/seeded_random.py).

How far the body of a taped function moves the generators that it shares with its caller.

In replay the body does not run: the caller's next `random.random()` would give what the body drew.
So the recording says how far each generator went meanwhile, and the replay moves it as far. Nothing
is drawn for the body itself.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from tape_jupyter.cassette.records import FAST
from tape_jupyter.core.seeded_random import SEED, Chance
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.determinism import random_state
from tape_jupyter.determinism.random_state import Generator, GeneratorState, Raw
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.instrumentation.determinism import entropy
from tape_jupyter.session.cell import TapedCell

STATE = "state of "
"""Before a generator's name: the key of the kit that holds its words."""

VARIABLE = "variable "
"""Before the name of a variable that holds a generator."""

_VARIABLES = 20  # generators in variables that are held, at most

SECRETS = (
    "`secrets` was used in a taped cell: whoever has this cassette can tell what it gave. Make real keys and tokens in "
    "an untaped cell, or with --no-pin random"
)
TAKEN = (
    "a file of an earlier run lies where the recording had a temporary one, so this run's has another name; delete "
    "temporary files within the cell that makes them"
)
HASHES = (
    "sets of strings are ordered differently here than in the recording (PYTHONHASHSEED was not set): a request "
    "built from one differs. Start the kernel with PYTHONHASHSEED=0, and record again"
)


def pin(cell: TapedCell, recorded: Mapping[str, Any] | None) -> Callable[[], None]:
    """Hold the cell's chance to what was recorded, or write it down. Raises ValueError or KeyError
    on a bad record.
    """
    pinned = None
    if recorded is not None and "random" in recorded.get("pins", {}):
        pinned = recorded["pins"]["random"]
    if cell.replaying and pinned is None:
        return do_nothing  # recorded without it
    held_state = _CellRandomness(cell, pinned, recorded or {})
    held_state.start()
    return held_state.end


class _CellRandomness:
    """The chance of one cell while it runs. `pinned` is what its recording says, None where this is
    the recording.
    """

    def __init__(
        self, cell: TapedCell, pinned: Mapping[str, Any] | None, recorded: Mapping[str, Any]
    ) -> None:
        self.cell, self.own, self.recorded = cell, pinned, recorded
        seed = bytes.fromhex(pinned["seed"]) if pinned is not None else os.urandom(SEED)
        self.chance = Chance(
            seed, str(cell.request.namespace.get("__name__", "__main__")), self.handle_import
        )
        self.standing: list[tuple[Generator, Raw]] = []  # where each stood, while recording
        self.known: set[str] = set()
        self.kept: set[str] = set()  # generators whose state is on the tape

    def start(self) -> None:
        record = self.cell.recording.pins["random"] = {
            "seed": self.chance.seed.hex(),
            "hash": _compute_hash_print(),
        }
        generators = [*random_state.list_generators(), *self._list_variable_generators()]
        self.known = {generator.name for generator in generators}
        if self.own is not None:
            for generator in generators:
                self._place_generator(generator)
        if not self.cell.replaying:
            self.standing = [(each, each.get()) for each in generators]
            record["at"] = {each.name: random_state.place(raw) for each, raw in self.standing}
            self.cell.recording.states = lambda: self._collect_states(self._find_moved())
        entropy.forget_time_ids()
        self.cell.pins.chance = self.chance

    def _list_variable_generators(self) -> list[Generator]:
        generators = islice(random_state.of_variables(self.cell.request.namespace), _VARIABLES)
        return [Generator(VARIABLE + each.name, each.get, each.set) for each in generators]

    def _find_moved(self) -> dict[str, Raw]:
        """Where the generators stood that have gone on since."""
        return {
            each.name: raw
            for each, raw in self.standing
            if not random_state.are_same(raw, each.get())
        }

    def _collect_states(self, moved: Mapping[str, Raw]) -> dict[str, str]:
        """The long part of the states of those that moved, each once; of one that arrived later
        there is none.
        """
        places = self.cell.recording.pins["random"]["at"]
        new = {name: raw for name, raw in moved.items() if name in places and name not in self.kept}
        self.kept.update(new)
        return {STATE + name: random_state.write_state(raw).encoded for name, raw in new.items()}

    def handle_import(self, _module: str) -> None:
        """A library was imported within the cell: its generators stand where they stood in the
        recording.
        """
        for generator in random_state.list_generators():
            if generator.name not in self.known:
                self.known.add(generator.name)
                self._place_generator(generator)
                self.standing.append((generator, generator.get()))

    def _place_generator(self, generator: Generator) -> None:
        """Where it stood at the recording's start; at a beginning of its own if the recording
        imported it later.
        """
        try:
            self._put_state(generator)
        except (
            Exception
        ) as error:  # of other people's generators, and of a tape that somebody edited
            why = f"{type(error).__name__}: {error}"
            self.cell.warn(
                f"{generator.name} is not replayed: its state on the tape cannot be used ({why})",
                cold=True,
            )

    def _put_state(self, generator: Generator) -> None:
        if self._goes_on(generator):
            return
        pinned = self.own or {}
        at = pinned.get("at", {}).get(generator.name)
        if at is None:
            if not generator.name.startswith(VARIABLE):
                generator.begin(self.chance.fixed(SEED, generator.name))
            return
        state = self._find_state_words(generator.name)
        if state is not None:
            generator.restore_state(GeneratorState(state, at))
        elif "states" not in pinned and self._is_cut_off():
            self.cell.warn(
                f"{generator.name} is not replayed: the recording was cut off before its state was written"
            )

    def _goes_on(self, generator: Generator) -> bool:
        """Whether it stands where the cells before left it, with a changed reply: a re-run has put
        back what it stood at, but for what changed since; a whole run goes on from where it began.
        """
        name, options = generator.name, self.cell.request.options
        if not name.startswith(VARIABLE):
            self.cell.pins.strayed.update({name} & set(options.get("moved", ())))
            return name in self.cell.pins.strayed
        if options.get("rerun") or not options.get("whole"):
            return bool(options.get("rerun"))
        value = self.cell.request.namespace.get(name.removeprefix(VARIABLE))
        before = _placed.get(name)
        _placed[name] = value
        return before is value

    def _is_cut_off(self) -> bool:
        """Whether the recording has no end: then it may have moved what its kit says nothing of."""
        return (
            self.cell.cassette is not None
            and self.recorded.get("run") not in self.cell.cassette.ended
        )

    def _find_state_words(self, name: str) -> str | None:
        """The long part of a state: with its run's kit, or on the run's record where that made no
        call.
        """
        inline, kit = (self.own or {}).get("states", {}), self.recorded.get("kit", {})
        state = inline.get(STATE + name) or kit.get(STATE + name)
        return None if state is None else str(state)

    def end(self) -> None:
        """From here on chance is real. A cell without a call is recorded all the same if it drew
        anything.
        """
        self.cell.pins.chance = None
        if self.cell.replaying:
            return self._report_differences()
        if "secrets" in self.chance.seen:
            self.cell.warn(SECRETS)
        moved = self._find_moved()
        if self.cell.recording.run:
            self._add_to_kit(self._collect_states(moved))
        else:
            self.cell.recording.pins["random"]["states"] = self._collect_states(moved)
            self.cell.recording.drawn = (
                self.cell.recording.drawn or bool(moved) or "drawn" in self.chance.seen
            )
        return None

    def _add_to_kit(self, states: dict[str, str]) -> None:
        """What moved after the kit was written: a second record, so that runs of a session share
        these as well.
        """
        cassette = self.cell.cassette
        if states and cassette is not None:
            kit = cassette.by_run.get(self.cell.recording.run, {}).get("kit", {})
            slow = {name: value for name, value in kit.items() if name not in FAST}
            cassette.add_kit(self.cell.recording.run, {**slow, **states})

    def _report_differences(self) -> None:
        if "taken" in self.chance.seen:
            self.cell.warn(TAKEN)
        moved = any(
            isinstance(e, UnmatchedCall) and e.reordered for e in self.cell.findings.refusals
        )
        if moved and self.own is not None and self.own.get("hash") != _compute_hash_print():
            self.cell.warn(HASHES)


_placed: dict[str, Any] = {}
"""In a run of a whole history: the generators of variables that were put somewhere, by name. From
there on they go on as in any run.
"""


def _compute_hash_print() -> str:
    """What tells hash seeds apart: sets of texts come in the same order where it is the same."""
    return f"{hash('tape-jupyter') & 0xFFFFFFFF:08x}"


OVERLAP = (
    "{} used {} while other code ran: it is unknown which code drew which numbers, so in a replay later numbers may "
    "differ. Now: give the function a generator of its own (random.Random())"
)


STRAYED = "{} gave its recorded value, but {}, which it draws from, stands elsewhere now"


class Body:
    """A body that runs, from where its caller's generators stood. `lineage` is its caller's.

    `alone` turns false where other code runs meanwhile; a function that this one calls is no other
    code.
    """

    def __init__(self, cell: TapedCell, lineage: str, name: str) -> None:
        self._cell, self._name, self.strand = cell, name, f"{lineage}/{name}"
        self._chance = cell.pins.chance
        self.alone = True
        self._before: list[tuple[Generator, Raw]] = []
        if self._chance is not None:
            self._before = [(each, each.get()) for each in random_state.list_generators()]
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
        known = {each.name for each, _ in self._before}
        new = [
            (each, _NONE, each.get())
            for each in random_state.list_generators()
            if each.name not in known
        ]
        after = [*((each, before, each.get()) for each, before in self._before), *new]
        moved = {
            each.name: (before, now)
            for each, before, now in after
            if not random_state.are_same(before, now)
        }
        if moved and not self.alone:
            self._cell.warn(OVERLAP.format(self._name, ", ".join(moved)), cold=True)
            return {}
        return {name: _measure_distance(*states) for name, states in moved.items()}


_NONE = object()
"""Where a generator stood whose library the body imported."""


def _measure_distance(before: Raw, after: Raw) -> dict[str, Any]:
    """Words drawn, where that says it all; else the state itself."""
    drawn = None if before is _NONE else random_state.words_between(before, after)
    if drawn is None:
        state = random_state.write_state(after)
        return {"state": state.encoded, **state.at}
    spare = random_state.mersenne(after)[2]
    return {"words": drawn, **({} if spare is None else {"gauss": spare})}


def follow_draws(cell: TapedCell, name: str, moved: Mapping[str, Any]) -> None:
    """Move the generators as the recorded body of the function of this name did."""
    if not moved or cell.pins.chance is None:
        return
    cell.findings.doubts += [
        STRAYED.format(name, each) for each in sorted(moved.keys() & cell.pins.strayed)
    ]
    if "numpy" in moved and "numpy" in sys.modules:  # which imports this part when it is asked for
        importlib.import_module("numpy.random")
    for generator in random_state.list_generators():
        distance = moved.get(generator.name)
        if isinstance(distance, Mapping):
            try:
                _advance_generator(generator, distance)
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                cell.warn(
                    f"{generator.name} is not replayed: how far a function moved it cannot be read ({error})"
                )


def _advance_generator(generator: Generator, distance: Mapping[str, Any]) -> None:
    if "state" in distance:
        at = {name: value for name, value in distance.items() if name != "state"}
        generator.restore_state(GeneratorState(str(distance["state"]), at))
    else:
        generator.set(
            random_state.further(generator.get(), distance["words"], distance.get("gauss"))
        )
