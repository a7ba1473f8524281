"""What a body changed, written as changes of single objects (the records of memory.py)."""

from __future__ import annotations

import functools
import gc
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.core.memoised import Kept
from tape_jupyter.effects import kinds, whole_objects
from tape_jupyter.effects.kinds import SCALARS
from tape_jupyter.effects.made_classes import is_kept_hash
from tape_jupyter.effects.paths import format_path, step_text
from tape_jupyter.effects.reached import ReachedObject, describe_reached, is_librarys_object
from tape_jupyter.effects.scope import ABSENT, NAMES
from tape_jupyter.effects.writing import Writing
from tape_jupyter.encoding.values.user_classes import dict_of
from tape_jupyter.encoding.values.walker import At

LARGEST = 32 << 20
"""Bytes of one array, table or database that are written."""


@dataclass(slots=True)
class Changes:
    """What a body changed: as structure, and in words what of it could not be written."""

    written: list[dict[str, Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    place_of: Callable[[Any], str] = lambda _value: ""
    """Where a mutable object stands that was there before, or was made and kept: a path, or a place
    of `written`.
    """


class ChangeWriter:
    """Writes changes as structure: one walk for all, so that what is shared stays shared."""

    def __init__(self, nodes: dict[int, ReachedObject], variables: Mapping[str, Any]) -> None:
        self._nodes, self._variables = nodes, variables
        self._walk = Writing(functools.partial(_find_standing_path, nodes))
        self._count = 0

    def place_of(self, value: Any) -> str:
        try:
            standing = _find_standing_path(self._nodes, value) or self._walk.made_place(value)
            return standing or self._walk.place_of(value)
        except LookupError:
            return ""

    def write(self, node: ReachedObject, now: Any, changes: Changes, *, over: bool = False) -> None:
        """Add the change of one object to what is written, or to what is lost. `over`: a replay puts it
        in the place of what other code does meanwhile.
        """
        try:
            path = node.path()
        except LookupError as why:
            changes.lost.append(f"{describe_reached(node)} was changed: {why}")
            return
        at: At = (None, self._count)
        self._walk.holder = type(node.value) if is_librarys_object(node.value) else None
        record = self._write_change(node, now, at, path, changes)
        before, behind = self._walk.take_records()
        if record:
            change = {"at": path, **({"over": True} if over else {}), **record}
            changes.written += [*before, change, *behind]
            self._count += 1

    def _write_change(
        self, node: ReachedObject, now: Any, at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        kind = node.kind
        if isinstance(kind, whole_objects.MemoisedKind) and isinstance(now, Kept):
            return self._write_kept(node.state, now, at, path, changes)
        if isinstance(kind, whole_objects.WholeKind):
            return self._write_whole(node, kind, at, path, changes)
        if isinstance(kind, kinds.SequenceKind):
            return self._write_splice(node.state, now, at, path, changes)
        if isinstance(kind, kinds.SetKind):
            return self._write_members(node.state, now, at, path, changes)
        if isinstance(kind, kinds.MappingKind):
            return self._write_keys(node.state, now, at, path, changes)
        return self._write_attributes(node, now, at, path, changes)

    def _attempt_value(
        self, value: Any, at: At, path: str, changes: Changes, *, quiet: bool = False
    ) -> tuple[bool, Any]:
        done, structure = self._walk.attempt(value, at)
        if not done and not quiet:
            _note_lost(changes, path, structure)
        return done, structure

    def _write_whole(
        self,
        node: ReachedObject,
        kind: whole_objects.WholeKind,
        at: At,
        path: str,
        changes: Changes,
    ) -> dict[str, Any]:
        if count_bytes(node.value) > LARGEST:
            changes.lost.append(
                f"{self._name_object(node, path)} is larger than {LARGEST >> 20} MB: its new content is not recorded"
            )
            return {}
        try:
            now = kind.read(node.value)
        except Exception as why:
            changes.lost.append(f"{self._name_object(node, path)}: {why}"[:400])
            return {}
        done, structure = self._walk.attempt_contents(now, (at, "whole"))
        if not done:
            changes.lost.append(f"{self._name_object(node, path)}: {structure}"[:400])
        return {"whole": structure} if done else {}

    def _name_object(self, node: ReachedObject, path: str) -> str:
        """What a person calls it, with the notebook's own names for it: `fig (ax.figure)`."""
        label = format_path(path)
        names = [name for name, each in list(self._variables.items()) if each is node.value]
        aliases = [name for name in names if name != label and not name.startswith("_")]
        return f"{', '.join(aliases)} ({label})" if aliases else label

    def _write_splice(
        self, before: list[Any], now: list[Any], at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        shorter = min(len(before), len(now))
        head = next((i for i in range(shorter) if before[i] is not now[i]), shorter)
        rest = shorter - head
        tail = next((i for i in range(rest) if before[-1 - i] is not now[-1 - i]), rest)
        middle = now[head : len(now) - tail]
        done, structure = self._attempt_value(middle, (at, "put"), path, changes)
        if done:
            return {"splice": [head, tail], "of": len(before), "put": structure}
        return {}

    def _write_kept(
        self, before: Kept, now: Kept, at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        head = before.count_common(now)
        put = [[list(each.args), each.kwargs, each.result] for each in now.entries[head:]]
        done, structure = self._attempt_value(put, (at, "put"), path, changes)
        calls = [now.hits - before.hits, now.misses - before.misses]
        record = {"kept": calls, "head": head, "of": len(before.entries), "put": structure}
        return record if done else {}

    def _write_keys(
        self, before: dict[Any, Any], now: dict[Any, Any], at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        record: dict[str, Any] = {}
        kept = [key for key in before if key in now]
        added = [key for key in now if key not in before]
        if [*kept, *added] == list(now):
            new = {
                k: v
                for k, v in now.items()
                if k not in before or not kinds.is_same_value(before[k], v)
            }
            removed = [key for key in before if key not in now]
        else:
            new, removed, record["anew"] = now, [], True
        pairs: list[Any] = []
        self._note_addresses(path, added, changes)
        for key, value in new.items():
            done, pair = self._walk.attempt_item(key, value, ((at, "set"), len(pairs)))
            if done:
                pairs.append(pair)
            else:
                _note_lost(changes, f"{path}[{key!r}]", pair)
        record |= {"set": pairs} if pairs or record else {}
        if removed:
            done, structure = self._attempt_value(removed, (at, "delete"), path, changes)
            record |= {"delete": structure} if done else {}
        return record

    def _note_addresses(self, path: str, keys: Iterable[Any], changes: Changes) -> None:
        """Say of what is kept by the `id` of an object that this is another one in a replay."""
        for key in keys:
            if type(key) is int and (node := self._nodes.get(key)) is not None:
                what = f"it is kept by the id of {describe_reached(node)}, which a replay has elsewhere"
                _note_lost(changes, path, what)

    def _write_members(
        self, before: set[Any], now: set[Any], at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        record: dict[str, Any] = {}
        self._note_addresses(path, now - before, changes)
        for name, members in (("add", now - before), ("discard", before - now)):
            if members:
                ordered = sorted(members, key=_rank_member)
                done, structure = self._walk.attempt_members(ordered, (at, name))
                if done:
                    record[name] = structure
                else:
                    _note_lost(changes, path, structure)
        return record

    def _write_attributes(
        self, node: ReachedObject, now: Any, at: At, path: str, changes: Changes
    ) -> dict[str, Any]:
        before: dict[str, Any] = node.state
        is_same = getattr(node.kind, "is_same_part", kinds.is_same_value)
        record: dict[str, Any] = {}
        set_: dict[str, Any] = {}
        for name, value in now.items():
            if value is ABSENT or (name in before and is_same(before[name], value)):
                continue
            if _is_cached_view(node.value, name, value) or is_kept_hash(node.value, name, value):
                continue  # made again when it is asked for
            cached = is_librarys_object(node.value) and _CACHED.search(name) is not None
            part = f"{path}{step_text(('name' if isinstance(node.value, NAMES) else 'attribute', name))}"
            if not kinds.is_settable(node.value, name):
                changes.lost.append(
                    f"it changed {format_path(part)}, which a recording does not set"
                )
                continue
            done, structure = self._attempt_value(
                value, ((at, "attributes"), name), part, changes, quiet=cached
            )
            if done:
                set_[name] = structure
        if set_:
            record["attributes"] = set_
        removed = [n for n in before if now.get(n, ABSENT) is ABSENT and before[n] is not ABSENT]
        for name in removed:
            if not kinds.is_settable(node.value, name):
                changes.lost.append(
                    f"it removed {format_path(path)}.{name}, which a recording does not do"
                )
        if removed := [name for name in removed if kinds.is_settable(node.value, name)]:
            record["delete"] = removed
        return record


def _find_standing_path(nodes: Mapping[int, ReachedObject], value: Any) -> str | None:
    """The path of an object that was within reach before. Raises LookupError where it has none."""
    node = nodes.get(id(value))
    return node.path() if node is not None and type(value) is not tuple else None


def list_numbers(structure: Any) -> Iterator[int]:
    """The whole numbers in a structure."""
    if type(structure) is int:
        yield structure
    elif isinstance(structure, dict | list):
        for each in structure.values() if isinstance(structure, dict) else structure:
            yield from list_numbers(each)


def _rank_member(value: Any) -> tuple[str, str]:
    return type(value).__name__, repr(value)


def _note_lost(changes: Changes, path: str, why: str) -> None:
    changes.lost.append(f"{format_path(path)}: {why}"[:400])


def count_bytes(value: Any) -> int:
    if hasattr(value, "estimated_size"):  # of polars
        return int(value.estimated_size())
    size = getattr(value, "nbytes", 0)
    if not isinstance(size, int) and not hasattr(value, "memory_usage"):
        return 0
    if hasattr(value, "memory_usage"):
        used = value.memory_usage(deep=False)
        return int(used.sum() if hasattr(used, "sum") else used)
    return int(size)


def _is_cached_view(owner: Any, name: str, value: Any) -> bool:
    """Whether it is the value of a cached property that has nothing of its own: it refers to its
    owner and what that holds (networkx's `graph.nodes`).
    """
    if type(value) in SCALARS or not isinstance(
        inspect.getattr_static(type(owner), name, None), functools.cached_property
    ):
        return False
    namespace = dict_of(owner)
    owners = {
        id(each) for each in (owner, namespace, *namespace.values()) if type(each) not in SCALARS
    }
    parts = [each for each in gc.get_referents(value) if each is not type(value)]
    foreign = [each for each in parts if id(each) not in owners]
    return len(foreign) < len(parts) and all(type(each) in SCALARS for each in foreign)


_CACHED = re.compile(r"_.*(cache|lock|engine|client|pool|loop|thread|executor|logger)")
"""Names under which objects of libraries keep what they make again when it is needed."""
