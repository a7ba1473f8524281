"""Which entry gave a thing the state it has, had, or must have. Values only.

A *thing* is what can be put back as a whole: a name, a global of a user's module, a file, a piece
of ambient state. A resource may be a part of it. Its *version* is the index of the entry that last
changed it; before all it is BEGINNING.

How long the values of earlier entries are kept, so that a re-run can put them back. People who
rebind or delete a value want its memory: what is large and no cell asked for meanwhile goes at
once, and so does what is large where no cell has made a call yet, since no re-run sets out from
there. The rest has BUDGET bytes for the whole session, and the oldest goes first. What went is one
of the things that the plan makes anew (Versions.lost).

What could not be put back anyway is never kept (restore.hold_values).
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from tape_jupyter.dataflow.history import (
    EVERYTHING,
    TOO_LARGE,
    UNCALLED,
    UNREAD,
    WEAKLY_WATCHED,
    Execution,
    History,
    covers,
    name_of,
)
from tape_jupyter.dataflow.restore.snapshots import is_weakly_watched

BEGINNING = -1


@lru_cache(65536)
def thing_of(resource: str) -> str | None:
    """What would have to be put back to undo a change of the resource; None: nothing that we can
    put back.
    """
    name = name_of(resource)
    if name is not None:
        return name
    kind, _, rest = resource.partition(":")
    if kind == "file":
        return None if rest == "*" else resource
    if kind == "ambient":
        return resource.partition("[")[0]
    variable = None if kind in {"library", "output"} else name_of(rest)
    return None if variable is None else f"{kind}:{variable}"


def parted(thing: str) -> tuple[str, str]:
    """("file", its path), ("ambient", its part), or ("", the thing) for a name: one may be called
    `file`, too.
    """
    kind, colon, rest = thing.partition(":")
    # a text
    if colon and (kind == "ambient" or (kind == "file" and os.path.isabs(rest))):  # noqa: PTH117
        return kind, rest
    return "", thing


def find_seen(things: Iterable[str], reads: Iterable[str]) -> list[str]:
    """Of these things, parts of the process' state, and the files of which something is read."""
    kinds = {thing: parted(thing)[0] for thing in things}
    seen = {each for each, kind in kinds.items() if kind == "ambient"}
    files = (each for each, kind in kinds.items() if kind == "file")
    return sorted(seen.union(each for each in files if any(covers(each, read) for read in reads)))


def written_by(entry: Execution) -> set[str]:
    """The things that an entry may have changed, as far as its code tells."""
    return {thing for each in entry.writes if (thing := thing_of(each)) is not None}


def changed_by(entry: Execution) -> set[str]:
    """The things that an entry was seen to change; of what cannot be looked into, those that it may
    have.
    """
    seen = {
        *entry.changed,
        *(f"ambient:{part}" for part in entry.ambient),
        *(f"file:{path}" for path in entry.files),
    }
    return seen | (written_by(entry) & entry.opaque) if entry.opaque else seen


def needed_by(entry: Execution) -> set[str]:
    """The things whose state before the entry matters to it: what it reads, and what it may leave
    as it was.
    """
    read = {thing for each in entry.reads if (thing := thing_of(each)) is not None}
    return read | written_by(entry) | changed_by(entry)


def list_inputs(entry: Execution) -> set[str]:
    """Of the things that matter to the entry, those whose value before it does: not what it binds
    anew in any case, unread. With EVERYTHING among what it reads, any name is one of them.
    """
    read = {thing for each in entry.reads if (thing := thing_of(each)) is not None}
    return read | ((written_by(entry) | changed_by(entry)) - entry.certain)


class Versions:
    """Who changed what, and when. `place` says where a thing has each of its versions."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._changers: dict[str, list[int]] = {}
        self._of: dict[int, set[str]] = {}
        self._needs: dict[int, set[str]] = {}
        self._deep: set[str] = set()
        """Names whose value, as it was last bound, cannot be wound back: an equal fingerprint
        proves nothing.
        """
        for entry in history:
            self._of[entry.index] = self.changed(entry)
            for thing in self._of[entry.index]:
                self._changers.setdefault(thing, []).append(entry.index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._changers)

    def changed(self, entry: Execution) -> set[str]:
        """The things that an entry changed. Entries are to be asked for in the order they ran."""
        mementos = entry.mementos
        self._deep -= entry.changed
        self._deep |= {name for name in entry.changed & mementos.keys() if mementos[name].opaque}
        changed = changed_by(entry)
        return changed | (written_by(entry) & self._deep) if self._deep else changed

    def needs(self, index: int) -> set[str]:
        """The things whose state before the entry at `index` matters to it."""
        if index not in self._needs:
            self._needs[index] = needed_by(self.history[index]) | self._of[index]
        return self._needs[index]

    def list_changes(self, index: int) -> set[str]:
        """The things that the entry at `index` changed."""
        return self._of[index]

    def changers(self, thing: str) -> list[int]:
        """Indices of the entries that changed it, ascending."""
        return self._changers.get(thing, [])

    def before(self, thing: str, index: int) -> int:
        """The version that the entry at `index` found, or BEGINNING."""
        changers = self.changers(thing)
        place = bisect_left(changers, index)
        return changers[place - 1] if place else BEGINNING

    def last(self, thing: str) -> int:
        changers = self.changers(thing)
        return changers[-1] if changers else BEGINNING

    def next(self, thing: str, index: int) -> int | None:
        """The first entry after `index` that changed it."""
        changers = self.changers(thing)
        place = bisect_left(changers, index + 1)
        return changers[place] if place < len(changers) else None

    def add(self, thing: str, index: int) -> None:
        """An entry, run again, changed what it had not changed before."""
        changers = self._changers.setdefault(thing, [])
        self._of.setdefault(index, set()).add(thing)
        if index not in changers:
            insort(changers, index)

    def is_new_value(self, thing: str, index: int) -> bool:
        """Whether the entry gives the thing a new value, whatever it was: a name bound anew, a new
        file.
        """
        entry = self.history[index]
        return thing in entry.strong or entry.before.get(thing) == ""

    def began(self, name: str) -> bool:
        """Whether the first entry that changed the name also made it: before that it was not there."""
        changers = self.changers(name)
        if not changers:
            return False
        first = self.history[changers[0]]
        return first.before.get(name, "") == "" and (
            name in written_by(first) or EVERYTHING in first.writes
        )

    def unread(self, name: str, version: int) -> bool:
        """Whether the value was let go because nobody asks for it, and nobody does since."""
        if self.history[version].unkept.get(name) != UNREAD:
            return False
        end = self.next(name, version)
        users = self.history.entries[version + 1 : None if end is None else end + 1]
        return not any(EVERYTHING in each.reads or name in list_inputs(each) for each in users)

    def lost(self, thing: str, version: int) -> str | None:
        """Why the thing cannot be put back to that version, in words; None where it can."""
        kind, rest = parted(thing)
        if kind:
            return self._explain_lost_change(thing, kind, rest, version)
        if version != BEGINNING:
            return self._explain_lost_value(thing, version)
        if not self.changers(thing) or self.began(thing):
            return None
        return f"`{thing}` was set before the first cell that was watched"

    def _explain_lost_value(self, name: str, version: int) -> str | None:
        if self.history[version].after.get(name) == "" or self.unread(name, version):
            return None
        changers = self.changers(name)
        # who changed nothing of it that was seen has no value of its own
        for index in reversed(changers[: bisect_right(changers, version)]):
            entry = self.history[index]
            if name in entry.unkept:
                return entry.unkept[name].format(name=name, title=entry.title)
            if name in entry.kept or name in entry.mementos:
                return _explain_lost_memento(name, entry)
        return TOO_LARGE.format(name=name)

    def _explain_lost_change(self, thing: str, kind: str, rest: str, version: int) -> str | None:
        changers = self.changers(thing)
        if not changers:
            return None
        entry = self.history[changers[0] if version == BEGINNING else version]
        change = (entry.ambient if kind == "ambient" else entry.files).get(rest)
        if change is None or change.known:
            return None
        return f"{rest} as it was {'before' if version == BEGINNING else 'after'} {entry.title} was not kept"


def _explain_lost_memento(name: str, entry: Execution) -> str | None:
    memento = entry.mementos.get(name)
    if memento is None:
        return f"what `{name}` held after {entry.title} was not kept"
    if memento.possible():
        return None
    if memento.ends and memento.is_complete:
        return f"`{name}` holds {_format_with_article(memento.ends[0])}, which is gone once the notebook drops it"
    what = "something that has been closed"
    if memento.opaque:
        what = _format_with_article(memento.opaque[0])
    return f"`{name}` holds {what}, which cannot be restored"


def _format_with_article(what: str) -> str:
    if what.startswith("something"):
        return what
    article = "an" if what[0].lower() in "aeiou" else "a"
    return f"{article} {what}"


BUDGET = 256 << 20
"""Bytes, as far as they are told: of copies of what values held, and of values that the notebook
does not hold now.
"""
SMALL = 8 << 10
"""Bytes of a value that is not worth the letting go."""
LET_GO = f"what `{{name}}` held after {{title}} was discarded: the values that are kept take {BUDGET >> 20} MB together"


class Keeper:
    """Of one history. An entry is looked at once it has its place, which that of a re-run finds
    after its cell.
    """

    def __init__(self, history: History, budget: int = BUDGET) -> None:
        self._history, self.budget = history, budget
        self._reset_counts()
        self._moved = self._replaced = self._was_moved = False

    def _reset_counts(self) -> None:
        self._done = 0
        """Entries that were looked at."""
        self._bytes: dict[tuple[int, str], int] = {}
        """By entry and name, what is kept and not small."""
        self.total = 0
        self._changers: dict[str, list[int]] = {}
        self._last_read: dict[str, int] = {}
        """By name, the last entry that asked for its value; EVERYTHING is the name of those that
        may ask for any.
        """
        self._called = False

    def moved(self) -> None:
        """Values were put back: the next cell may be one of a re-run, which replaces entries."""
        self._moved = self._replaced = True

    def begins(self) -> None:
        """A cell begins. All entries have their places; while a re-run lasts, what it was planned
        with stays.
        """
        if self._replaced and not self._moved:
            self._reset_counts()
            self._add_new_entries()
            self._replaced = False
        self._moved, self._was_moved = False, self._moved

    def ended(self) -> None:
        """It ended, and its entry knows all that it will."""
        if not self._was_moved:
            self._add_new_entries()

    def _add_new_entries(self) -> None:
        for entry in self._history.entries[self._done :]:
            self._add_entry(entry)
        self._done = len(self._history)
        while self.total > self.budget and self._bytes:
            index, name = min(self._bytes)
            self._release_value(self._history[index], name, LET_GO)

    def _add_entry(self, entry: Execution) -> None:
        self._last_read.update(dict.fromkeys(list_inputs(entry), entry.index))
        if EVERYTHING in entry.reads:
            self._last_read[EVERYTHING] = entry.index
        self._called = self._called or entry.calls
        for name in entry.changed:
            changers = self._changers.setdefault(name, [])
            if changers:
                self._release_overwritten(name, changers, entry)
            changers.append(entry.index)
        for name in entry.kept.keys() & entry.mementos.keys():
            self._count_bytes(entry, name, entry.mementos[name].size)
        if any(f"{each}.".startswith("library:weakref.") for each in entry.reads):
            self._release_weakly_watched()

    def _release_weakly_watched(self) -> None:
        """A weak reference made after a value was kept must see it go when the notebook drops it."""
        for entry in self._history:
            for name in entry.kept.keys() & entry.mementos.keys():
                if any(map(is_weakly_watched, entry.mementos[name].watchable)):
                    self._release_value(entry, name, WEAKLY_WATCHED)

    def _release_overwritten(self, name: str, changers: list[int], by: Execution) -> None:
        last = self._history[changers[-1]]
        if name not in last.kept or name not in last.mementos:
            return
        value, memento = last.kept[name], last.mementos[name]
        large = memento.size + memento.weight >= SMALL
        if (
            large
            and max(self._last_read.get(name, -1), self._last_read.get(EVERYTHING, -1))
            <= last.index
        ):
            self._release_value(last, name, UNREAD)
        elif large and not self._called:
            self._release_value(last, name, UNCALLED)
        if (
            by.kept.get(name) is not value
            and (holder := self._find_holder(name, changers, value)) is not None
        ):
            self._count_bytes(holder, name, holder.mementos[name].weight)

    def _find_holder(self, name: str, changers: list[int], value: Any) -> Execution | None:
        """The last entry that keeps this value of a name."""
        for index in reversed(changers):
            entry = self._history[index]
            if name in entry.mementos and entry.kept.get(name) is value:
                return entry
        return None

    def _count_bytes(self, entry: Execution, name: str, size: int) -> None:
        if size >= SMALL:
            self._bytes[entry.index, name] = self._bytes.get((entry.index, name), 0) + size
            self.total += size

    def _release_value(self, entry: Execution, name: str, why: str) -> None:
        entry.let_go(name, why)
        self.total -= self._bytes.pop((entry.index, name), 0)
