"""Engine room: which entry gave a thing the state it has, had, or must have. Values only.

A *thing* is what can be put back as a whole: a name, a global of a user's module, a file, a piece of ambient state. A
resource may be a part of it. Its *version* is the index of the entry that last changed it; before all it is BEGINNING.
"""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from collections.abc import Iterator
from functools import lru_cache

from tape_jupyter.flow.history import EVERYTHING, TOO_LARGE, UNREAD, Entry, History, name_of

BEGINNING = -1


@lru_cache(65536)
def thing_of(resource: str) -> str | None:
    """What would have to be put back to undo a change of the resource; None: nothing that we can put back."""
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
    """("file", its path), ("ambient", its part), or ("", the thing) for a name: one may be called `file`, too."""
    kind, colon, rest = thing.partition(":")
    if colon and (kind == "ambient" or (kind == "file" and os.path.isabs(rest))):  # noqa: PTH117 - a text
        return kind, rest
    return "", thing


def written_by(entry: Entry) -> set[str]:
    """The things that an entry may have changed, as far as its code tells."""
    return {thing for each in entry.writes if (thing := thing_of(each)) is not None}


def changed_by(entry: Entry) -> set[str]:
    """The things that an entry was seen to change; of what cannot be looked into, those that it may have."""
    seen = {*entry.changed, *(f"ambient:{part}" for part in entry.ambient), *(f"file:{path}" for path in entry.files)}
    return seen | (written_by(entry) & entry.opaque) if entry.opaque else seen


def needed_by(entry: Entry) -> set[str]:
    """The things whose state before the entry matters to it: what it reads, and what it may leave as it was."""
    read = {thing for each in entry.reads if (thing := thing_of(each)) is not None}
    return read | written_by(entry) | changed_by(entry)


def asked_by(entry: Entry) -> set[str]:
    """Of the things that matter to the entry, those whose value before it does: not what it binds anew in any case,
    unread. With EVERYTHING among what it reads, any name is one of them.
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
        """Names whose value, as it was last bound, cannot be wound back: an equal fingerprint proves nothing."""
        for entry in history:
            self._of[entry.index] = self.changed(entry)
            for thing in self._of[entry.index]:
                self._changers.setdefault(thing, []).append(entry.index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._changers)

    def changed(self, entry: Entry) -> set[str]:
        """The things that an entry changed. Entries are to be asked for in the order they ran."""
        for name in entry.changed:
            memento = entry.held.get(name)
            (self._deep.add if memento is not None and not memento.whole else self._deep.discard)(name)
        changed = changed_by(entry)
        return changed | (written_by(entry) & self._deep) if self._deep else changed

    def needs(self, index: int) -> set[str]:
        """The things whose state before the entry at `index` matters to it."""
        if index not in self._needs:
            self._needs[index] = needed_by(self.history[index]) | self._of[index]
        return self._needs[index]

    def of(self, index: int) -> set[str]:
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

    def makes(self, thing: str, index: int) -> bool:
        """Whether the entry gives the thing a new value, whatever it was: a name bound anew, a new file."""
        entry = self.history[index]
        return thing in entry.strong or entry.before.get(thing) == ""

    def began(self, name: str) -> bool:
        """Whether the first entry that changed the name also made it: before that it was not there."""
        changers = self.changers(name)
        if not changers:
            return False
        first = self.history[changers[0]]
        return first.before.get(name, "") == "" and (name in written_by(first) or EVERYTHING in first.writes)

    def unread(self, name: str, version: int) -> bool:
        """Whether the value was let go because nobody asks for it, and nobody does since."""
        if self.history[version].unkept.get(name) != UNREAD:
            return False
        end = self.next(name, version)
        users = self.history.entries[version + 1 : None if end is None else end + 1]
        return not any(EVERYTHING in each.reads or name in asked_by(each) for each in users)

    def lost(self, thing: str, version: int) -> str | None:
        """Why the thing cannot be put back to that version, in words; None where it can."""
        kind, rest = parted(thing)
        if kind:
            return self._lost_change(thing, kind, rest, version)
        if version != BEGINNING:
            return self._lost_value(thing, version)
        if not self.changers(thing) or self.began(thing):
            return None
        return f"`{thing}` is from before the first cell that was watched"

    def _lost_value(self, name: str, version: int) -> str | None:
        if self.history[version].after.get(name) == "" or self.unread(name, version):
            return None
        for index in reversed(self.changers(name)):  # who changed nothing of it that was seen has no value of its own
            entry = self.history[index]
            if index > version:
                continue
            if name in entry.unkept:
                return entry.unkept[name].format(name=name, title=entry.title)
            if name in entry.kept or name in entry.held:
                return _lost_memento(name, entry)
        return TOO_LARGE.format(name=name)

    def _lost_change(self, thing: str, kind: str, rest: str, version: int) -> str | None:
        changers = self.changers(thing)
        if not changers:
            return None
        entry = self.history[changers[0] if version == BEGINNING else version]
        change = (entry.ambient if kind == "ambient" else entry.files).get(rest)
        if change is None or change.known:
            return None
        return f"{rest} as it was {'before' if version == BEGINNING else 'after'} {entry.title} was not kept"


def _lost_memento(name: str, entry: Entry) -> str | None:
    memento = entry.held.get(name)
    if memento is None:
        return f"what `{name}` held after {entry.title} was not kept"
    if memento.possible():
        return None
    if memento.ends and memento.whole:
        return f"`{name}` holds {_a(memento.ends[0])}, which goes when the notebook lets it go"
    what = _a(memento.opaque[0]) if memento.opaque else "something that is closed now"
    return f"`{name}` holds {what}, which cannot be wound back"


def _a(what: str) -> str:
    return what if what.startswith("something") else f"{'an' if what[0].lower() in 'aeiou' else 'a'} {what}"
