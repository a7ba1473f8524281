"""A box of plain values (texts, numbers) is hashed in C, a piece at a time."""

from __future__ import annotations

import collections
import io
import itertools
import pickle
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tape_jupyter.dataflow.fingerprint.walker import ATOMS, MEGABYTE, Walk
from tape_jupyter.dataflow.identity import identity

PIECE = 4_096
"""Items of a box that are looked at between two looks at the clock."""
ATOM_BOXES = frozenset({list, tuple, dict, set, frozenset, collections.deque})
_PICKLED = ATOMS - {complex, range, slice, type(Ellipsis), type(NotImplemented)}
"""Types of which pickling asks nobody, by a `__reduce__` or a register."""
_SHORT = frozenset({type(None), bool, float})
_SORTED = ({str}, {int}, {bytes})


def items_of(value: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """In its order, which of an OrderedDict is not that of the dict inside of it."""
    items = dict.items(value)
    if not isinstance(value, collections.OrderedDict):
        return items if len(items) > PIECE else list(items)
    places = {identity(pair[0]): pair for pair in items}
    return [places[identity(key)] for key in collections.OrderedDict.__iter__(value)]


def _pickle_box(value: Any) -> bytes:
    sink = io.BytesIO()
    pickler = pickle.Pickler(sink, 5)
    pickler.fast = True  # no memo: equal values give equal bytes, whichever strings are one object
    pickler.dump(value)
    return sink.getvalue()


def _split_box(value: Any, kind: type) -> Iterator[Any]:
    """A box in pieces of its own kind; a deque in lists."""
    if len(value) <= PIECE:
        yield list(value) if kind is collections.deque else value
    elif kind in (list, tuple):
        yield from (value[start : start + PIECE] for start in range(0, len(value), PIECE))
    else:
        items = iter(value.items() if kind is dict else value)
        piece_type = dict if kind is dict else list
        while piece := piece_type(itertools.islice(items, PIECE)):
            yield piece


def _is_plain(items: Iterable[Any]) -> bool:
    """Whether these are texts and numbers, and none is so long that one looks at the clock in it."""
    kinds = set(map(type, items))
    if not kinds <= _PICKLED:
        return False
    return kinds <= _SHORT or max(map(sys.getsizeof, items)) <= MEGABYTE


def hash_plain(walk: Walk, value: Any, kind: type) -> bool:
    """Hashes a box of atoms in C, a piece at a time. What it hashed before it met something else
    does no harm.
    """
    if kind in (set, frozenset):
        inner = set(map(type, value)) if len(value) <= PIECE else set()
        if inner not in _SORTED:
            return False
        value = sorted(value)
    walk.hash_text(f"[{kind.__name__} {getattr(value, 'maxlen', '')}")
    for piece in _split_box(value, kind):
        columns = (piece.values(), piece.keys()) if kind is dict else (piece,)
        if not all(map(_is_plain, columns)):
            return False
        data = _pickle_box(piece)
        if b"ipykernel_" in data:  # each text on its own, by its words
            return False
        walk.weight += len(data)
        walk.count += len(piece) >> 4  # a sixteenth of the work of another object
        walk.hash.update(data)
        walk.tick()
    return True
