"""Parts of a value as they were when a cell had been recorded, beside what they are in a re-run.

A list that got another reply differs, its first message perhaps not: who reads only that need not
run again. A part is `messages[0]['role']`; it is as recorded where all that its look-up meets is.

The recorded state of a value that was changed in place is looked at in place, and what was there is
put back at once. That is done of plain containers and people's own objects only.
"""

from __future__ import annotations

import operator
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tape_jupyter.core.user_code import is_users
from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint
from tape_jupyter.dataflow.fingerprint.objects import TUPLE_FIELD
from tape_jupyter.dataflow.history import ELEMENT, Execution, name_of
from tape_jupyter.dataflow.restore.snapshots import Memento, remember_value
from tape_jupyter.dataflow.restore.versions import changed_by, parted, thing_of
from tape_jupyter.dataflow.static.ways import Way, read_ways
from tape_jupyter.dataflow.tracing import paths
from tape_jupyter.dataflow.tracing.variables import MISSING

_MAPPINGS = (dict, OrderedDict, defaultdict)
_BOXES = (list, set, deque, *_MAPPINGS)


@dataclass(frozen=True, slots=True)
class Part:
    """`digest` of it and of what its look-up met; `values`: what of it can change."""

    digest: str
    values: tuple[Any, ...] = ()


def look_at_part(value: Any, way: Way, namespace: Mapping[str, Any]) -> Part | None:  # noqa: PLR0911 - one kind of step a branch
    """The part of `value` at the end of a way; None where looking it up may run code."""
    if not way:
        print_ = fingerprint(value, namespace)
        return Part(print_.digest, (value,) if print_.ids else ()) if print_.is_data else None
    (kind, key), rest = way[0], way[1:]
    met = type(value).__qualname__
    if kind == "len":
        return _join_parts(met, [_look_at_size(value, namespace)])
    if kind == "each":
        if type(value) not in (list, tuple):
            return None
        parts = [look_at_part(each, rest, namespace) for each in value]
        return _join_parts(f"{met} {len(value)}", parts)
    if kind == "get":
        if type(value) not in _MAPPINGS:
            return None
        if key not in value:
            return Part(f"{met} without")
        return _join_parts(met, [look_at_part(value[key], rest, namespace)])
    if kind == "item" and isinstance(value, list):
        met += f" {len(value)}"  # what is read as `log[-1]` has its place by that
    inner = _find_attribute(value, str(key)) if kind == "attr" else _find_item(value, key)
    if inner is MISSING:
        return None
    return _join_parts(met, [look_at_part(inner, rest, namespace)])


def _join_parts(met: str, parts: list[Part | None]) -> Part | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    digest = " ".join((met, *(part.digest for part in known)))
    return Part(digest, tuple(each for part in known for each in part.values))


def _look_at_size(value: Any, namespace: Mapping[str, Any]) -> Part | None:
    """How many there are; of a dict, its keys."""
    if type(value) not in (*_BOXES, tuple, str):
        return None
    return look_at_part(tuple(value) if isinstance(value, dict) else len(value), (), namespace)


def _find_item(value: Any, key: Any) -> Any:
    if type(value) in (list, tuple) and type(key) is int and key < 0:
        key += len(value)
    return paths.value_at(f"_[{key!r}]", value)


def _find_attribute(value: Any, name: str) -> Any:  # noqa: PLR0911 - one kind a branch
    """An attribute of an object, or of its class, where no code runs to find it."""
    if name == "__class__":
        return type(value)
    if isinstance(value, type):
        if name in paths.TOLD and name != "__doc__":
            return type.__getattribute__(value, name)
        return paths.static_attribute(value, name)
    kind = type(value)
    found = paths.static_attribute(value, name)
    if found is not MISSING or not paths.is_plain_to_read(kind, name):
        return found
    inside = getattr(value, "__dict__", None) if kind.__dictoffset__ else None
    if type(inside) is dict and name in inside:
        return inside[name]
    slot = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), MISSING)
    if type(slot) is TUPLE_FIELD and isinstance(value, tuple):
        place: Any = slot
        return tuple.__getitem__(value, place.__reduce__()[1][0])
    return MISSING if hasattr(type(slot), "__get__") else slot


def ways_of_text(path: str) -> Way | None:
    """The way of a part as resources have it, `[0].text`; None for what is no one part."""
    steps = paths.steps(f"_{path}")
    if ELEMENT in path or any(kind == "call" for kind, _ in steps):
        return None
    way = tuple((kind, key) for kind, key in steps)
    size = ("attr", "__len__")
    return (*way[: way.index(size)], ("len", "")) if size in way else way


class RecordedParts:
    """Of one history, as it was recorded. `value` gives what a name holds now."""

    def __init__(
        self,
        recorded: Iterable[Execution],
        value: Callable[[str], Any],
        namespace: Mapping[str, Any],
    ) -> None:
        self._recorded = list(recorded)
        self._value, self._namespace = value, namespace
        self._ways: dict[str, set[Way]] = {}
        """By name, the ways into it that any cell reads."""
        self._read: dict[tuple[int, str], frozenset[Way]] = {}
        """By entry and what it reads, the ways of that."""
        for entry in self._recorded:
            for read in entry.reads:
                name = thing_of(read)
                ways = None if name is None else _find_ways(entry, read, name)
                if name is not None and ways and not self._may_call_another_len(ways):
                    self._read[entry.index, read] = ways
                    self._ways.setdefault(name, set()).update(ways)
        self._parts: dict[tuple[str, int], dict[Way, Part]] = {}

    def _may_call_another_len(self, ways: frozenset[Way]) -> bool:
        """Whether a way ends in a function of the notebook's that is called `len`."""
        return "len" in self._namespace and any(("len", "") in way for way in ways)

    def are_known(self, read: str, reader: Execution) -> bool:
        """Whether it is known which parts of it that is."""
        return (reader.index, read) in self._read

    def are_equal(self, reads: Iterable[tuple[str, int]], reader: Execution) -> bool:
        """Whether each of these parts, of a version of its name, is now what `reader` read."""
        copies = 0
        for read, version in reads:
            name = thing_of(read) or ""
            for way in self._read[reader.index, read]:
                was = self._read_recorded(name, version).get(way)
                now = look_at_part(self._value(name), way, self._namespace)
                if was is None or now is None or was.digest != now.digest:
                    return False
                copies += sum(map(operator.is_not, was.values, now.values))
        # an equal object is not the same one: who keeps it, or compares two, tells them apart
        return copies == 0 or (copies == 1 and self._keeps_nothing(reader))

    def _keeps_nothing(self, reader: Execution) -> bool:
        shown = {f"output:{number}" for number in self._namespace.get("_oh", {})}
        others = {each for each in reader.writes if name_of(each) is None}
        return not changed_by(reader) and all(
            each.startswith("output:") and each not in shown for each in others
        )

    def _read_recorded(self, name: str, version: int) -> dict[Way, Part]:
        if (name, version) not in self._parts:
            entry = self._find_changer(name, version)
            self._parts[name, version] = (
                {} if entry is None else self._look_at_recorded(name, entry)
            )
        return self._parts[name, version]

    def _find_changer(self, name: str, version: int) -> Execution | None:
        """Who had changed it last when it was recorded: an entry that ran again may have changed
        what it had not changed then.
        """
        so_far = reversed(self._recorded[: version + 1])
        return next((each for each in so_far if name in changed_by(each)), None)

    def _look_at_recorded(self, name: str, entry: Execution) -> dict[Way, Part]:
        kind, rest = parted(name)
        if kind:
            change = entry.ambient.get(rest) if kind == "ambient" else None
            known = change is not None and change.known
            return self._look_at_parts(name, change.after) if change and known else {}
        memento = entry.mementos.get(name)
        if memento is None or name not in entry.kept or name in entry.opaque:
            return {}
        value = entry.kept[name]
        if fingerprint(value, self._namespace).digest == entry.after.get(name):
            return self._look_at_parts(name, value)
        if not (memento.possible() and all(map(_is_plain, memento.changeable))):
            return {}
        now: Memento = remember_value(tuple(memento.changeable))
        if not (now.possible() and all(map(_is_plain, now.changeable))):
            return {}
        memento.restore()
        try:
            return self._look_at_parts(name, value)
        finally:
            now.restore()

    def _look_at_parts(self, name: str, value: Any) -> dict[Way, Part]:
        parts = {way: look_at_part(value, way, self._namespace) for way in self._ways[name]}
        return {way: part for way, part in parts.items() if part is not None}


def _find_ways(entry: Execution, read: str, name: str) -> frozenset[Way] | None:
    """The ways into `name` that `read` stands for; None where they are not known."""
    if read != name and ELEMENT not in read:
        way = ways_of_text(read.removeprefix(name))
        return None if way is None else frozenset({way})
    found: set[Way] = set()
    for step in entry.steps:
        if read in step.reads:
            if name not in step.direct or step.place is None:
                return None
            ways = read_ways(step.place.parse(), name)
            if ways is None:
                return None
            found |= ways
    return frozenset(found)


def _is_plain(what: Any) -> bool:
    """Whether all that a memento puts back of it are references that it holds."""
    return (
        type(what) in _BOXES
        or isinstance(what, type | types.FunctionType | types.CellType)
        or (is_users(type(what).__module__) and not isinstance(what, types.ModuleType))
    )
