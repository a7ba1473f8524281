"""The state of one stepped cell: who stands at which call, who may go on, where a pass is to stop.

Pure: it is told that a strand arrives at a call and says whether it parks; it is told what a person
wants and says who goes on, or that the cell is to be run again (`Rewind`). A *pass* is one run of
the cell's code from its start. In a pass that runs to a place, a strand goes past the calls that
were made before that one in the pass before, and parks at any other: so the others stand where they
stood then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tape_jupyter.debugger.breakpoints import Breaks
from tape_jupyter.debugger.call_site import KINDS, CallSite, Passed, number_of, place_strand
from tape_jupyter.errors import TapeUsageError

Phase = Literal["running", "stopped", "rewinding", "over"]
SHOWN = 500
"""Calls that are listed as passed."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """Run the cell again from its start, to that place ("" : to its first call)."""

    place: str
    through: bool = False
    """Go past that call as well: the strand stops at its next one."""


@dataclass(frozen=True, slots=True)
class ParkedStrand:
    """A strand that stands at a call. `name` is for people."""

    strand: str
    place: str
    nth: int
    site: CallSite
    name: str = ""


@dataclass(slots=True)
class _Goal:
    """Where a pass runs to: a place, or a recorded call. `before` are the places to go past (None:
    any), also by those who come to them when it is `reached`.
    """

    place: str = ""
    span: str = ""
    before: set[str] | None = None
    through: bool = False
    reached: bool = False


@dataclass(slots=True)
class Machine:
    """See the module. `strands` are parked, in the order of arrival. Not safe by itself: the caller
    holds a lock.
    """

    breaks: Breaks
    revision: int = 0
    passes: int = 0
    over: bool = False
    unwinding: bool = False
    """The code that runs is to be left: whoever arrives at a call is sent away."""
    note: str = ""
    strands: dict[str, ParkedStrand] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
    _until: dict[str, str] = field(default_factory=dict)
    """By strand, how it runs: "each" call, a kind of call, or "breaks"."""
    _default: str = ""
    _counts: dict[str, int] = field(default_factory=dict)
    _arrivals: int = 0
    _goal: _Goal | None = None
    _since: dict[str, int] = field(default_factory=dict)
    """By strand that is parked, the revision at which it came."""

    def __post_init__(self) -> None:
        self._default = "breaks" if self.breaks else "each"

    @property
    def phase(self) -> Phase:
        if self.over:
            return "over"
        goal = self._goal
        if self.unwinding or (goal is not None and goal.before is not None and not goal.reached):
            return "rewinding"
        return "stopped" if self.strands else "running"

    # ------------------------------------------------------------ calls

    def register_call(self, lineage: str, site: CallSite, name: str = "") -> ParkedStrand:
        """A strand is about to make a call. The caller asks `stays` next: whether it parks there."""
        strand = self._choose_strand_name(lineage)
        self._counts[strand] = self._counts.get(strand, 0) + 1
        self._arrivals += 1
        return ParkedStrand(strand, f"{strand}:{self._counts[strand]}", self._arrivals, site, name)

    def stays(self, at: ParkedStrand) -> bool:
        """Whether it parks; else it has gone past, and `revision` grows where the pass came to its
        place by that.
        """
        phase = self.phase
        if self._is_stop(at):
            self.strands[at.strand] = at
            self._until.pop(at.strand, None)
            self._note_change()
            return True
        self._note_passed(at)
        if self.phase != phase:
            self._note_change()
        return False

    def _choose_strand_name(self, lineage: str) -> str:
        """Threads that nobody numbered share a lineage: each that stands at a call has a name of
        its own.
        """
        strand, number = lineage, 1
        while strand in self.strands:
            number += 1
            strand = f"{lineage}'{number}"
        return strand

    def _is_stop(self, at: ParkedStrand) -> bool:
        if (stops := self._is_stop_for_goal(at)) is not None:
            return stops
        if at.site.would == "refuse":
            return True
        how = self._until.get(at.strand, self._default)
        if how == "each":
            return True
        if self.breaks.is_met(at.site, at.nth, at.strand):
            return True
        return how in KINDS and at.site.kind == how

    def _is_stop_for_goal(self, at: ParkedStrand) -> bool | None:
        """The same, as far as it follows from where the pass runs to; None: nothing does."""
        goal = self._goal
        if goal is None:
            return None
        if not goal.reached and (
            at.place == goal.place or (goal.span and at.site.span == goal.span)
        ):
            goal.reached = True
            if not goal.before:
                self._goal = None
            return not goal.through
        if goal.before is None:
            return at.site.would == "refuse"
        if at.place not in goal.before:
            return True if not goal.reached else None
        goal.before.discard(at.place)
        if goal.reached and not goal.before:
            self._goal = None
        return False

    def _note_passed(self, at: ParkedStrand) -> None:
        site = at.site
        self.passed.append(Passed(at.place, site.span, site.title, site.kind, site.edited))

    # ------------------------------------------------------------ what a person wants

    def parked(self, strand: str | None, revision: int | None = None) -> ParkedStrand:
        """The strand that is spoken of; the first where none is named. Raises TapeUsageError."""
        if self.over:
            raise TapeUsageError("stepping has ended")
        if strand is None:
            parked_strand = next(iter(self.strands.values()), None)
        else:
            parked_strand = self.strands.get(strand)
        if parked_strand is None:
            if not self.strands:
                where = "no call is waiting now"
            else:
                where = "that thread or task is not waiting at a call"
            raise TapeUsageError(f"{where}: it is running, or has gone on")
        if revision is not None and revision < self._since.get(parked_strand.strand, 0):
            raise TapeUsageError("that thread or task has moved on since: look again")
        return parked_strand

    def release(self, strand: str, until: str = "each", *, edited: bool = False) -> None:
        """The strand's call is answered: it goes on, to its next call, its next of a kind, or the
        next breakpoint.
        """
        at = self.strands.pop(strand)
        site = at.site
        self.passed.append(
            Passed(at.place, site.span, site.title, site.kind, edited or site.edited)
        )
        self._until[strand] = until
        self._note_change()

    def leave(self, strand: str) -> None:
        """The strand does not stand there any more, though nobody let it go."""
        if self.strands.pop(strand, None) is not None:
            self._note_change()

    def release_all(self) -> list[str]:
        """Everybody goes on, to the next breakpoint; the strands that stood at a call."""
        self._default, self._goal = "breaks", None
        self._until.clear()
        released = list(self.strands)
        for strand in released:
            self.release(strand)
        self._until.clear()
        return released

    def run_to_call(self, *, place: str = "", span: str = "") -> Rewind | list[str]:
        """Run to a call, later (who goes on now) or earlier (the cell is run again). Raises
        TapeUsageError.
        """
        place = place or self._find_place(span)
        here = [at.place for at in self.strands.values()]
        if place in here or (span and any(at.site.span == span for at in self.strands.values())):
            return []
        if place and any(done.place == place for done in self.passed):
            return Rewind(place)
        if not place and not span:
            raise TapeUsageError("name a call: its place or its span")
        self._goal = _Goal(place, span)
        released = list(self.strands)
        for strand in released:
            self.release(strand)
        self._until.clear()
        return released

    def back(self, strand: str | None) -> Rewind:
        """To the call before the one at which the strand stands. Raises TapeUsageError."""
        if strand is None and not self.strands and self.passed:
            return Rewind(self.passed[-1].place)
        at = self.parked(strand)
        at_strand, number = place_strand(at.place), number_of(at.place)
        if number > 1:
            return Rewind(f"{at_strand}:{number - 1}")
        if not self.passed:
            raise TapeUsageError("this is the first call of the cell: there is none before it")
        return Rewind(self.passed[-1].place)

    def _find_place(self, span: str) -> str:
        return next((done.place for done in self.passed if span and done.span == span), "")

    # ------------------------------------------------------------ passes

    def rewind(self, to: Rewind) -> None:
        """The code that runs is to be left."""
        places = [done.place for done in self.passed]
        before = places[: places.index(to.place)] if to.place in places else places
        self._goal = _Goal(to.place, "", set(before), to.through)
        self.unwinding = True
        self.strands.clear()
        self._note_change()

    def begin(self) -> None:
        """A pass begins: the cell's code is run from its start."""
        self.passes += 1
        self.unwinding = False
        self.strands.clear()
        self.passed.clear()
        self._until.clear()
        self._counts.clear()
        self._arrivals = 0
        self._note_change()

    def missed(self) -> str:
        """The pass ended before the place it was to run to: where that was, "" where it was
        reached.
        """
        goal, self._goal = self._goal, None
        return "" if goal is None or goal.reached else goal.place or goal.span

    def end(self, note: str = "") -> None:
        """The cell is over, or the person stopped."""
        self.over, self.note = True, note or self.note
        self.strands.clear()
        self._note_change()

    def set_note(self, note: str) -> None:
        self.note = note
        self._note_change()

    def _note_change(self) -> None:
        self.revision += 1
        now = {strand: self._since.get(strand, self.revision) for strand in self.strands}
        self._since = now

    def listed(self) -> Iterable[Passed]:
        return self.passed[-SHOWN:]
