"""What a function did to its arguments: lists, dicts and the like that it filled or changed in
place.

Told by freezing the arguments before and after; in replay the same objects are made like the
recorded ones. What is inside of them stays the very object where it is unchanged, and where a
dict's key or a list's place holds a container before and after.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from typing import Any

from tape_jupyter.encoding.values.registry import freeze, thaw
from tape_jupyter.errors import TapeError

_DICTS = frozenset({dict, OrderedDict, defaultdict, Counter})
_LISTS = frozenset({list, deque, bytearray})
_CHANGEABLE = _DICTS | _LISTS | {set}


class FrozenValue:
    """A value that is frozen already."""

    __slots__ = ("structure",)

    def __init__(self, structure: Any) -> None:
        self.structure = structure


def frozen_or_type(value: Any) -> Any:
    """An argument as structure. One that cannot be frozen (a database handle, a client) is told by
    its type alone here; its state by value stands beside that in a call (replay/object_state.py).
    """
    if type(value) is FrozenValue:
        return value.structure
    try:
        return freeze(value)
    except TapeError:
        return {"<opaque>": f"{type(value).__module__}.{type(value).__qualname__}"}


def is_changeable(value: Any) -> bool:
    """Whether replay can make it what the recorded call made of it."""
    return type(value) in _CHANGEABLE


def redo_changes(effects: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Change these arguments as the recorded call did. Raises CassetteError."""
    for name, structure in effects.items():
        if name in arguments:
            _make_like(arguments[name], thaw(structure))


def _make_like(live: Any, target: Any) -> Any:
    """The live object, changed in place to be like the other one; or that one, where it cannot be."""
    kind = type(live)
    if kind is not type(target) or kind not in _CHANGEABLE:
        return target
    items: Any = target
    if kind in _DICTS:
        items = {
            key: _reuse_or_copy(live[key], value) if key in live else value
            for key, value in target.items()
        }
    elif kind in _LISTS and kind is not bytearray:
        items = _reuse_items(list(live), list(target))
    live.clear()
    (live.extend if kind in _LISTS else live.update)(items)
    return live


def _reuse_or_copy(live: Any, target: Any) -> Any:
    if type(live) is type(target) and _format_frozen(live) == _format_frozen(target):
        return live
    return _make_like(live, target)


def _reuse_items(live: list[Any], target: list[Any]) -> list[Any]:
    """Items that are there already are the same objects, wherever they stand now; others change in
    their place.
    """
    there: dict[str, list[int]] = {}
    for i in reversed(range(len(live))):
        there.setdefault(_format_frozen(live[i]), []).append(i)
    reused = {
        i: there[text].pop()
        for i, text in enumerate(map(_format_frozen, target))
        if there.get(text)
    }
    moved = set(reused.values())
    items = []
    for i, item in enumerate(target):
        if i in reused:
            items.append(live[reused[i]])
        elif i < len(live) and i not in moved:
            items.append(_make_like(live[i], item))
        else:
            items.append(item)
    return items


def _format_frozen(value: Any) -> str:
    """Equal for equal values, whatever their own `==` says."""
    return json.dumps(frozen_or_type(value))
