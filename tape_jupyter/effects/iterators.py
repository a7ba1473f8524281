"""How far an iterator of Python's own has been read, and reading another one as far.

A position is what `__reduce__` tells of an iterator, without the values: numbers, and the positions
of the iterators that it reads from.
"""

from __future__ import annotations

import gc
import itertools
import operator
import warnings
from collections import deque
from collections.abc import Iterator
from types import BuiltinFunctionType, GeneratorType
from typing import Any

from tape_jupyter.core.open_file import OPEN_FILE
from tape_jupyter.encoding.values.walker import CannotFreeze
from tape_jupyter.errors import CassetteError

FURTHEST = 100_000
"""Steps that are read on at most."""

_DEEPEST = 6

_SHORTENED: tuple[Any, ...] = (
    iter({}), iter({}.values()), iter({}.items()), reversed({}), reversed({}.values()), reversed({}.items()),
    iter(set()), iter(range(0)), iter(range(1 << 70)), iter(deque()), reversed(deque()), itertools.repeat(0, 1),
)  # fmt: skip
_PLACED: tuple[Any, ...] = (
    iter([]), iter(()), reversed([]), reversed(()), iter(""), iter("\xe4"), iter(b""), iter(bytearray()),
    zip(), enumerate(()), map(id, ()), filter(id, ()), itertools.count(), itertools.cycle(()),
    itertools.chain(), itertools.islice((), 0), itertools.pairwise(()), itertools.product(),
    itertools.permutations(()), itertools.combinations((), 0), itertools.zip_longest(()), itertools.compress((), ()),
    itertools.starmap(id, ()), itertools.takewhile(id, ()), itertools.dropwhile(id, ()), itertools.accumulate(()),
    itertools.groupby(()),
)  # fmt: skip
_BY_LENGTH = frozenset(map(type, _SHORTENED))
"""Those that tell how much is left; where what they read from changes, that does not tell."""
_BY_PLACE = frozenset(map(type, _PLACED))
TYPES = _BY_LENGTH | _BY_PLACE


def position(iterator: Any) -> Any:
    """As structure; equal where as much has been read. Raises CannotFreeze where none can tell."""
    return _find_position(iterator, 0)


def _find_position(value: Any, depth: int) -> Any:  # noqa: PLR0911 - one line a sort of iterator
    kind = type(value)
    if kind in (int, bool, type(None)):
        return value
    if depth > _DEEPEST:
        raise CannotFreeze(None, value, "it reads from too many other iterators")
    if kind is GeneratorType:
        frame = value.gi_frame
        return None if frame is None else frame.f_lasti
    if kind in _BY_LENGTH:
        return operator.length_hint(value)
    if kind is itertools.count:
        return repr(value)
    if kind in _BY_PLACE:
        return [_find_position(each, depth + 1) for each in _reduce_iterator(value)]
    if kind is tuple and len(value) < _LONG:
        return [_find_position(each, depth + 1) for each in value]
    return "end" if kind is list and not value else "..."


_LONG = 50
"""Items of a tuple: a longer one is what is read, not how far."""


def _reduce_iterator(iterator: Any) -> Iterator[Any]:
    """What it reads from, and its numbers."""
    try:
        _make, args, *state = _reduce(iterator)
    except TypeError:  # from Python 3.14 on, itertools tell nothing
        why = "this Python does not say how far it has been read"
        raise CannotFreeze(None, iterator, why) from None
    yield from args
    yield from state


def _reduce(iterator: Any) -> tuple[Any, ...]:
    """`__reduce__()`. Python 3.12 and 3.13 warn that itertools lose it, which may be an error here."""
    try:
        return tuple(iterator.__reduce__())
    except DeprecationWarning:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return tuple(iterator.__reduce__())


def read_position(iterator: Any) -> Any:
    """Its position. Raises CannotFreeze where a replay would not come to stand there."""
    if _may_run_code(iterator, 0):
        raise CannotFreeze(None, iterator, "reading it further would run the program's code")
    return position(iterator)


def code_beneath(iterator: Any) -> list[Any]:
    """What runs code of the program's where an iterator is read on: functions, generators, iterators
    of classes. Each once, in an order that is the same wherever the iterator stands.
    """
    by_id = {id(each): each for each in _iterate_beneath(iterator, 0)}
    return list(by_id.values())


def _iterate_beneath(iterator: Any, depth: int) -> Iterator[Any]:
    for each in gc.get_referents(iterator):
        if (type(each) in TYPES or type(each) is tuple) and depth < _DEEPEST:
            yield from _iterate_beneath(each, depth + 1)
        elif callable(each) or hasattr(type(each), "__next__"):
            yield each


def advance(live: Any, expected: Any) -> None:
    """Read on until it stands where the recorded one stood. Raises CassetteError where it does not
    come to stand there, or where reading it further would run the program's code.
    """
    if position(live) == expected:
        return
    if _may_run_code(live, 0):
        raise CassetteError("reading it further would run the program's code")
    for _ in range(FURTHEST):
        if next(live, _END) is _END or position(live) == expected:
            break
    if position(live) != expected:
        raise CassetteError("it cannot be read to where the recorded one was")


_END = object()


def _may_run_code(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind in _BY_LENGTH or kind is itertools.count:
        return False
    if kind in _BY_PLACE:
        return any(_may_run_code(each, depth + 1) for each in _reduce_iterator(value))
    if kind is tuple:
        return any(_may_run_code(each, depth + 1) for each in value)
    reads = hasattr(kind, "__next__") or (callable(value) and kind is not BuiltinFunctionType)
    return depth > 0 and (reads or isinstance(value, OPEN_FILE))
