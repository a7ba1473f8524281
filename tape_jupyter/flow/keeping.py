"""Engine room: how long the values of earlier entries are kept, so that a re-run can put them back. People who rebind
or delete a value want its memory: what is large and no cell asked for meanwhile goes at once, and so does what is large
where no cell has made a call yet, since no re-run sets out from there. The rest has BUDGET bytes for the whole session,
and the oldest goes first. What went is one of the things that the plan makes anew (Versions.lost).

What could not be put back anyway is never kept (restore.hold).
"""

from __future__ import annotations

from typing import Any

from tape_jupyter.flow.history import EVERYTHING, UNCALLED, UNREAD, Entry, History
from tape_jupyter.flow.versions import asked_by

BUDGET = 256 << 20
"""Bytes, as far as they are told: of copies of what values held, and of values that the notebook does not hold now."""
SMALL = 4 << 10
"""Bytes of a value that is not worth the letting go."""
LET_GO = f"what `{{name}}` held after {{title}} was let go: the values that are kept have {BUDGET >> 20} MB together"


class Keeper:
    """Of one history. An entry is looked at once it has its place, which that of a re-run finds after its cell."""

    def __init__(self, history: History, budget: int = BUDGET) -> None:
        self._history, self.budget = history, budget
        self._anew()
        self._moved = self._replaced = self._apart = False

    def _anew(self) -> None:
        self._done = 0
        """Entries that were looked at."""
        self._bytes: dict[tuple[int, str], int] = {}
        """By entry and name, what is kept and not small."""
        self.total = 0
        self._changers: dict[str, list[int]] = {}
        self._asked: dict[str, int] = {}
        """By name, the last entry that asked for its value; EVERYTHING is the name of those that may ask for any."""
        self._called = False

    def moved(self) -> None:
        """Values were put back: the next cell may be one of a re-run, which replaces entries."""
        self._moved = self._replaced = True

    def begins(self) -> None:
        """A cell begins. All entries have their places; while a re-run lasts, what it was planned with stays."""
        if self._replaced and not self._moved:
            self._anew()
            self._look()
            self._replaced = False
        self._moved, self._apart = False, self._moved

    def ended(self) -> None:
        """It ended, and its entry knows all that it will."""
        if not self._apart:
            self._look()

    def _look(self) -> None:
        for entry in self._history.entries[self._done :]:
            self._add(entry)
        self._done = len(self._history)
        while self.total > self.budget and self._bytes:
            index, name = min(self._bytes)
            self._let_go(self._history[index], name, LET_GO)

    def _add(self, entry: Entry) -> None:
        self._asked.update(dict.fromkeys(asked_by(entry), entry.index))
        if EVERYTHING in entry.reads:
            self._asked[EVERYTHING] = entry.index
        self._called = self._called or entry.calls
        for name in entry.changed:
            changers = self._changers.setdefault(name, [])
            if changers:
                self._overwritten(name, changers, entry)
            changers.append(entry.index)
        for name in entry.kept.keys() & entry.held.keys():
            self._count(entry, name, entry.held[name].size)

    def _overwritten(self, name: str, changers: list[int], by: Entry) -> None:
        last = self._history[changers[-1]]
        if name not in last.kept or name not in last.held:
            return
        value, memento = last.kept[name], last.held[name]
        large = memento.size + memento.weight >= SMALL
        if large and max(self._asked.get(name, -1), self._asked.get(EVERYTHING, -1)) <= last.index:
            self._let_go(last, name, UNREAD)
        elif large and not self._called:
            self._let_go(last, name, UNCALLED)
        if by.kept.get(name) is not value and (holder := self._holder(name, changers, value)) is not None:
            self._count(holder, name, holder.held[name].weight)

    def _holder(self, name: str, changers: list[int], value: Any) -> Entry | None:
        """The last entry that keeps this value of a name."""
        for index in reversed(changers):
            entry = self._history[index]
            if name in entry.held and entry.kept.get(name) is value:
                return entry
        return None

    def _count(self, entry: Entry, name: str, size: int) -> None:
        if size >= SMALL:
            self._bytes[entry.index, name] = self._bytes.get((entry.index, name), 0) + size
            self.total += size

    def _let_go(self, entry: Entry, name: str, why: str) -> None:
        entry.let_go(name, why)
        self.total -= self._bytes.pop((entry.index, name), 0)
