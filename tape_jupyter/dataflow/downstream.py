"""What may differ in the changed world, and who wrote it. Asked for every step of a history, so it
finds what covers a resource without looking at all that is tainted.

Which executions depend on a changed reply, and why. Pure: a walk forward through the history.

A step that reads what is tainted is tainted, and so is all that it may write. A step that is not
tainted does in the changed world what it did in this one: what it writes for certain is clean
again. After a tainted step of a cell, later steps may not be reached (it may raise now), so they
are tainted too.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from tape_jupyter.dataflow.history import (
    EVERYTHING,
    FILES,
    OUTPUTS,
    REPLY,
    Execution,
    History,
    Step,
    covers,
    name_of,
)
from tape_jupyter.dataflow.restore.versions import thing_of

_ELEMENT = "[*]"


class Taints:
    """Resources with the entries that wrote them. Those of one root stand in order: the parts of
    one stand together.
    """

    def __init__(self) -> None:
        self._by: dict[str, Execution] = {}
        self._roots: dict[str, list[str]] = defaultdict(list)
        self._elements: dict[str, set[str]] = defaultdict(set)
        """By root, those that end in [*]: these cover what does not begin with them."""
        self._clean: set[str] = set()
        """Names bound for certain since "*" was tainted."""
        self.moved: set[str] = set()
        """Resources that were tainted or cleared since somebody emptied this."""
        self.used: set[int] = set()
        """Entries whose taints were read since somebody emptied this."""

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

    def add(self, resource: str, entry: Execution) -> None:
        if resource == EVERYTHING:
            self._clean.clear()
        self._clean.discard(resource)
        if resource not in self._by:
            self.moved.add(resource)
            insort(self._roots[resource_root(resource)], resource)
            if _ELEMENT in resource:
                self._elements[resource_root(resource)].add(resource)
        self._by[resource] = entry

    def clear(self, resource: str) -> None:
        """It was written anew, and so are its parts."""
        if EVERYTHING in self._by:
            self._clean.add(resource)
        root = resource_root(resource)
        if (some := self._roots.get(root)) is None:
            return
        for each in [*([resource] if resource in self._by else ()), *_find_parts(some, resource)]:
            self.moved.add(each)
            del some[bisect_left(some, each)]
            self._elements[root].discard(each)
            del self._by[each]
        if not some:
            del self._roots[root]

    def hits(self, step: Step) -> list[tuple[str, str, Execution]]:
        """(what it reads, what was written, by whom)."""
        if not self._by or self._are_unhit(_find_roots(step.reads)):
            return []
        matches = []
        for read in sorted(filter(self._may_be_hit, step.reads)):
            written = self._find_covering(read)
            if written is not None:
                matches.append((read, written, self._by[written]))
        self.used.update(by.index for _, _, by in matches)
        return matches

    def _are_unhit(self, roots: frozenset[str]) -> bool:
        """Whether nothing that is read of these roots may be hit."""
        if EVERYTHING in roots or EVERYTHING in self._roots:
            return False
        return self._roots.keys().isdisjoint(roots)

    def _may_be_hit(self, read: str) -> bool:
        """A look at the root alone, which spares most reads the search among what was written."""
        root = resource_root(read)
        if root in self._roots or root == EVERYTHING:
            return True
        return EVERYTHING in self._roots and bool(name_of(read))

    def writers(self) -> set[int]:
        """The entries that left what may differ now; `Out` of a run that a newer one replaced is
        seen by nobody who does not read it.
        """
        return {by.index for each, by in self._by.items() if resource_root(each) != "output"}

    def reach(self, needs: Iterable[str]) -> bool:
        """Whether something that a thing depends on may differ."""
        return bool(self._by) and any(self._find_covering(need) is not None for need in needs)

    def _find_covering(self, read: str) -> str | None:
        """What is tainted of which a change shows in `read`: itself, else the first of all."""
        if read in self._by:
            return read
        if read == EVERYTHING:
            return min((each for each in self._by if name_of(each) is not None), default=None)
        covering = self._find_covering_in_root(read)
        if (
            covering is None
            and EVERYTHING in self._by
            and name_of(read) is not None
            and name_of(read) not in self._clean
        ):
            return EVERYTHING
        return covering

    def _find_covering_in_root(self, read: str) -> str | None:
        """The first one of its own root."""
        root = resource_root(read)
        some = self._roots.get(root)
        if not some:
            return None
        if read == root and name_of(read) == read:
            return next(
                (
                    each
                    for each in some
                    if name_of(each) is not None
                    and (each not in self._elements[root] or covers(each, read))
                ),
                None,
            )
        if name_of(read) is None or _ELEMENT in read:
            return next((each for each in some if covers(each, read)), None)
        elements = (each for each in self._elements[root] if covers(each, read))
        above = (parent for parent in _find_wholes(read) if parent in self._by)
        return min((*above, *_find_parts(some, read, most=1), *elements), default=None)


def _find_wholes(part: str) -> Iterator[str]:
    """What a resource is a part of."""
    return (part[:place] for place, sign in enumerate(part) if sign in ".[")


def _find_parts(some: list[str], parent: str, most: int = 1 << 30) -> list[str]:
    """Those of resources in order that are parts of `parent`, the first `most` of each kind."""
    parts = []
    for sign, after in (".", "/"), ("[", "\\"):
        first = bisect_left(some, parent + sign)
        parts += some[first : min(bisect_left(some, parent + after, first), first + most)]
    return parts


@lru_cache(65536)
def resource_root(resource: str) -> str:
    """Resources of different roots never cover each other, but for "*"."""
    return name_of(resource) or resource.partition(":")[0]


@lru_cache(65536)
def _find_roots(resources: frozenset[str]) -> frozenset[str]:
    return frozenset(map(resource_root, resources))


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
        self._used: dict[int, frozenset[int]] = {}
        self._newest = Taints()
        """What the walk carries: after its end, what is left."""

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
            self._used[index] = frozenset(taints.used)
        taints.used.clear()
        self._newest = taints

    def find_contributors(self, entries: Iterable[int]) -> set[int]:
        """`entries`, and those of which something may be seen there, or is left at the end."""
        todo, contributors = [*entries, *self._newest.writers()], set[int]()
        while todo:
            if (index := todo.pop()) not in contributors:
                contributors.add(index)
                todo += self._used.get(index, ())
        return contributors

    def add(self, index: int, thing: str) -> None:
        self._more.setdefault(index, set()).add(thing)

    def after(self, index: int, thing: str) -> bool:
        """Of an entry of which nothing is known, anything may."""
        if index not in self._entries and index not in self._more:
            return True
        if thing in self._more.get(index, ()):
            return True
        return index in self._entries and (
            self._is_marked(index, thing) or self._is_marked(index, EVERYTHING)
        )

    def is_left(self, index: int, later: int, thing: str) -> bool:
        """Whether a thing that differs after one entry does after a later one that changes it: not
        where that gives it the same value whatever it was.
        """
        known = index in self._entries and thing not in self._more.get(index, ())
        return not known or self._is_marked(later, thing) or self._is_marked(later, EVERYTHING)

    def _is_marked(self, index: int, thing: str) -> bool:
        marks = self._marks.get(thing, [])
        place = bisect_left(marks, (index + 1, False))
        return place > 0 and marks[place - 1][1]


HOLDS = "holds the changed reply"


Lines = Mapping[int, tuple[int, ...] | None]
"""By entry, the lines at which it made its taped calls; None: they are not known."""


def downstream(history: History, changed: Iterable[int] | Lines) -> dict[int, tuple[str, ...]]:
    """By index, the reasons of each entry that depends on the replies that `changed` entries hold,
    these included.

    A mapping tells the lines at which the changed call may have been made, where they are known:
    what the entry did before them is as it was.
    """
    return traced(history, changed)[0]


def traced(
    history: History, changed: Iterable[int] | Lines
) -> tuple[dict[int, tuple[str, ...]], Differing]:
    """As downstream(), with what may differ after each of these entries."""
    lines = changed if isinstance(changed, Mapping) else dict.fromkeys(changed)
    taints, differing = Taints(), Differing()
    dependents: dict[int, tuple[str, ...]] = {}
    for entry in history:
        if not taints and entry.index not in lines:
            continue
        reasons = walk_entry(entry, taints, lines)
        if reasons:
            dependents[entry.index] = tuple(reasons)
        differing.passed(entry.index, taints, depends=bool(reasons))
    return dependents, differing


def walk_entry(
    entry: Execution, taints: Taints, lines: Lines, equal: Collection[str] = ()
) -> list[str]:
    """Take `taints` past one entry. Returns why it depends on them; nothing where it does not.

    `equal`: what it reads that came out as it was, though something around it differs.
    """
    holds = entry.index in lines
    at = lines.get(entry.index)
    reasons = [HOLDS] if holds else []
    stopped = False
    for step in entry.steps:
        hits = taints.hits(step)
        if equal:
            hits = [hit for hit in hits if hit[0] not in equal]
        at_call = holds and (
            at is None or any(step.line <= line <= max(step.end, step.line) for line in at)
        )
        if not (hits or at_call or stopped):
            for written in step.strong:
                taints.clear(written)
            continue
        if not holds:
            reasons += [
                reason for reason in reasons_in_words(entry, step, hits) if reason not in reasons
            ]
        _taint_writes(step, taints, hits, entry, at_call=at_call, stopped=stopped)
        stopped = stopped or not _is_next_reached(step, taints, hits, at_call=at_call)
    return reasons


_Hits = list[tuple[str, str, "Execution"]]


def _taint_writes(
    step: Step, taints: Taints, hits: _Hits, entry: Execution, *, at_call: bool, stopped: bool
) -> None:
    """What a step that depends on the change leaves: some of what it writes may not depend on it."""
    all_of_it = stopped or (at_call and not _has_known_call(step))
    by_world = any(not _is_name(read) for read, _, _ in hits)
    amends = not at_call and not stopped and all(read in step.amends for read, _, _ in hits)

    def depends_on_change(written: str) -> bool:
        needs = step.needs.get(written)
        if needs is None or (by_world and not written.startswith(_AMBIENT)):
            return not amends  # what it needs is not known
        return (at_call and REPLY in needs) or taints.reach(needs)

    written_by_it = step.strong | step.weak
    if all_of_it:
        tainted = frozenset() if amends else frozenset(written_by_it)
    else:
        tainted = frozenset(filter(depends_on_change, written_by_it))
    for written in step.strong - tainted:
        taints.clear(written)
    for written in tainted:
        taints.add(written, entry)


def _is_next_reached(step: Step, taints: Taints, hits: _Hits, *, at_call: bool) -> bool:
    """Whether what follows a tainted step is reached all the same. To add to a box of which another
    part differs does not raise.
    """
    if (
        step.raises is not None
        and all(_is_name(read) for read, _, _ in hits)
        and (_has_known_call(step) or not at_call)
    ):
        return not (at_call and REPLY in step.raises) and not taints.reach(step.raises)
    if all(read in step.amends and written != read for read, written, _ in hits):
        return step.calm_call
    return step.calm


def _has_known_call(step: Step) -> bool:
    """Whether it is known where in it a call is made: what it writes may depend on that."""
    return REPLY in (step.raises or ()) or any(REPLY in needs for needs in step.needs.values())


def _is_name(read: str) -> bool:
    """Whether it is a variable of the notebook or of a module of the user's."""
    return read != EVERYTHING and (
        name_of(read) is not None or read.partition(":")[0] not in _WORLD
    )


_AMBIENT = "ambient:"
_WORLD = frozenset({"file", "ambient", "library", "output"})


def reasons_in_words(
    entry: Execution, step: Step, hits: list[tuple[str, str, Execution]]
) -> list[str]:
    """Reasons in people's words: "reads `mood`, set by [2]"."""
    reasons = []
    for read, _written, by in hits:
        who = by.title if by.index != entry.index else "itself"
        text = _format_reason(read, step.via.get(read, ""), who)
        if text not in reasons:
            reasons.append(text)
    return reasons[:4]


def _format_reason(read: str, via: str, who: str) -> str:
    by_way = f"calls `{via}`, which " if via else ""
    if read.endswith(":*") and read not in _WIDE:
        return f"{by_way}uses `{read[:-2]}`, changed by {who}"
    if read in _WIDE:
        return _WIDE[read].format(who=who)
    kind, colon, rest = read.partition(":")
    if not colon or name_of(read) is not None:
        return f"{by_way}reads `{read}`, set by {who}"
    ambient = AMBIENT_SAID.get(rest.partition("[")[0], rest)
    label = {"file": rest.rpartition("/")[2] or rest, "ambient": ambient}.get(kind, rest)
    return by_way + _KINDS.get(kind, "reads `{it}` of {kind}, set by {who}").format(
        it=label, kind=kind, who=who
    )


_WIDE = {
    EVERYTHING: "may read any name; {who} changed some",
    FILES: "may look at any file; {who} wrote one",
    OUTPUTS: "reads `Out`; {who} showed a result",
    "output:newest": "reads `_`, the newest result, which may be that of {who}",
}
_KINDS = {
    "file": "opens {it}, written by {who}",
    "ambient": "depends on {it}, changed by {who}",
    "library": "uses {it}, whose state {who} may have changed",
    "output": "reads `Out[{it}]`, shown by {who}",
}
AMBIENT_SAID: dict[str, str] = {
    "environment": "an environment variable", "cwd": "the working directory", "random": "the state of `random`",
    "numpy random": "the state of `numpy.random`", "torch": "the state of torch's random numbers",
    "decimal": "the decimal context", "path": "`sys.path`", "argv": "`sys.argv`", "modules": "`sys.modules`",
    "finders": "what finds modules",
    "locale": "the locale", "time zone": "the time zone",
    "logging": "the levels of `logging`", "warnings": "the filters of `warnings`",
    "process": "a setting of the interpreter", "numpy": "an option of numpy", "pandas": "an option of pandas",
    "matplotlib": "a setting of matplotlib", "figures": "the open figures",
    "csv": "the field size limit of `csv`",
    "background": "tasks or threads that run on", "shell": "a setting of the notebook's shell",
}  # fmt: skip
