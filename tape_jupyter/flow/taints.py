"""Engine room: what may differ in the changed world, and who wrote it. Asked for every step of a history, so it finds
what covers a resource without looking at all that is tainted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tape_jupyter.flow.history import EVERYTHING, Entry, Step, covers, name_of
from tape_jupyter.flow.versions import thing_of

_ELEMENT = "[*]"


class Taints:
    """Resources with the entries that wrote them. Those of one root stand in order: the parts of one stand together."""

    def __init__(self) -> None:
        self._by: dict[str, Entry] = {}
        self._roots: dict[str, list[str]] = defaultdict(list)
        self._elements: dict[str, set[str]] = defaultdict(set)
        """By root, those that end in [*]: these cover what does not begin with them."""
        self._clean: set[str] = set()
        """Names bound for certain since "*" was tainted."""
        self.moved: set[str] = set()
        """Resources that were tainted or cleared since somebody emptied this."""

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._by))

    def __bool__(self) -> bool:
        return bool(self._by)

    def __contains__(self, resource: str) -> bool:
        return resource in self._by

    def copy(self) -> Taints:
        fresh = Taints()
        for resource, entry in self._by.items():
            fresh.add(resource, entry)
        fresh._clean |= self._clean
        return fresh

    def add(self, resource: str, entry: Entry) -> None:
        if resource == EVERYTHING:
            self._clean.clear()
        self._clean.discard(resource)
        if resource not in self._by:
            self.moved.add(resource)
            insort(self._roots[root_of(resource)], resource)
            if resource.endswith(_ELEMENT):
                self._elements[root_of(resource)].add(resource)
        self._by[resource] = entry

    def clear(self, resource: str) -> None:
        """It was written anew, and so are its parts."""
        if EVERYTHING in self._by:
            self._clean.add(resource)
        root = root_of(resource)
        if (some := self._roots.get(root)) is None:
            return
        for each in [*([resource] if resource in self._by else ()), *_below(some, resource)]:
            self.moved.add(each)
            del some[bisect_left(some, each)]
            self._elements[root].discard(each)
            del self._by[each]
        if not some:
            del self._roots[root]

    def hits(self, step: Step) -> list[tuple[str, str, Entry]]:
        """(what it reads, what was written, by whom)."""
        if not self._by:
            return []
        wide = EVERYTHING in self._roots
        near = [
            r for r in step.reads if (root := root_of(r)) in self._roots or root == EVERYTHING or (wide and name_of(r))
        ]
        found = []
        for read in sorted(near):
            written = self._covering(read)
            if written is not None:
                found.append((read, written, self._by[written]))
        return found

    def reach(self, needs: Iterable[str]) -> bool:
        """Whether something that a thing depends on may differ."""
        return bool(self._by) and any(self._covering(need) is not None for need in needs)

    def _covering(self, read: str) -> str | None:
        """What is tainted of which a change shows in `read`: itself, else the first of all."""
        if read in self._by:
            return read
        if read == EVERYTHING:
            return min((each for each in self._by if name_of(each) is not None), default=None)
        found = self._near(read)
        if found is None and EVERYTHING in self._by and name_of(read) is not None and name_of(read) not in self._clean:
            return EVERYTHING
        return found

    def _near(self, read: str) -> str | None:
        """The first one of its own root."""
        root = root_of(read)
        some = self._roots.get(root)
        if not some:
            return None
        if read == root and name_of(read) == read:
            return next((each for each in some if each not in self._elements[root] or covers(each, read)), None)
        if name_of(read) is None or read.endswith(_ELEMENT):
            return next((each for each in some if covers(each, read)), None)
        elements = (each for each in self._elements[root] if covers(each, read))
        above = (whole for whole in _above(read) if whole in self._by)
        return min((*above, *_below(some, read, most=1), *elements), default=None)


def _above(part: str) -> Iterator[str]:
    """What a resource is a part of."""
    return (part[:place] for place, sign in enumerate(part) if sign in ".[")


def _below(some: list[str], whole: str, most: int = 1 << 30) -> list[str]:
    """Those of resources in order that are parts of `whole`, the first `most` of each kind."""
    found = []
    for sign, after in (".", "/"), ("[", "\\"):
        first = bisect_left(some, whole + sign)
        found += some[first : min(bisect_left(some, whole + after, first), first + most)]
    return found


@lru_cache(65536)
def root_of(resource: str) -> str:
    """Resources of different roots never cover each other, but for "*"."""
    return name_of(resource) or resource.partition(":")[0]


class Differing:
    """Which things may differ after which entry, as a walk through a history found it."""

    def __init__(self) -> None:
        self._marks: dict[str, list[tuple[int, bool]]] = {}
        """By thing, since when it differs and since when it does not."""
        self._tainted: set[str] = set()
        self._parts: Counter[str] = Counter()
        """By thing, how many resources that are part of it are tainted."""
        self._entries: set[int] = set()
        self._more: dict[int, set[str]] = {}

    def passed(self, index: int, taints: Taints, *, depends: bool) -> None:
        """The walk is past an entry, which left these taints; `depends`: it depends on the change."""
        things = set()
        for resource in taints.moved:
            thing = EVERYTHING if resource == EVERYTHING else thing_of(resource)
            if thing is not None and (resource in taints) != (resource in self._tainted):
                self._tainted ^= {resource}
                self._parts[thing] += 1 if resource in taints else -1
                things.add(thing)
        taints.moved.clear()
        for thing in things:
            self._marks.setdefault(thing, []).append((index, self._parts[thing] > 0))
        if depends:
            self._entries.add(index)

    def add(self, index: int, thing: str) -> None:
        self._more.setdefault(index, set()).add(thing)

    def after(self, index: int, thing: str) -> bool:
        """Of an entry of which nothing is known, anything may."""
        if index not in self._entries and index not in self._more:
            return True
        if thing in self._more.get(index, ()):
            return True
        return index in self._entries and (self._marked(index, thing) or self._marked(index, EVERYTHING))

    def _marked(self, index: int, thing: str) -> bool:
        marks = self._marks.get(thing, [])
        place = bisect_left(marks, (index + 1, False))
        return place > 0 and marks[place - 1][1]
