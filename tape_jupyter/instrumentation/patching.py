"""Putting a stand-in over an attribute, taking it off again, and marking that a tap is sending."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any
from weakref import WeakSet

from tape_jupyter.core.call import Capture
from tape_jupyter.core.context import SENDING

_MARK = "__tape_original__"
_INHERITED = object()
_standing: dict[tuple[int, str], tuple[Any, Any, Any]] = {}
"""What stands in for others' now: owner, stand-in, the owner's own original, by the owner's id and
the name.
"""


_codes: set[Any] = set()
"""The code of every stand-in that is a function. (What wraps one may have its attributes.)"""


_owners: WeakSet[type] = WeakSet()
"""The classes that have had stand-ins."""


class Substitute:
    """A base for stand-ins that are neither functions nor classes."""


def swap(owner: Any, name: str, wrapper: Callable[[Any], Any]) -> Callable[[], None]:
    """Replace `owner.name` by `wrapper(original)`. Returns the undo; what is swapped already stays as
    it is, and so does what a mock has, which stands for a class or module.

    Somebody else may patch over ours: their patch is then left in place, and ours passes through
    without a tape. Once they take theirs off, ours may stand there again, of long ago: it gives way.
    """
    if not isinstance(owner, type | ModuleType):
        return lambda: None
    inherited = name not in vars(owner)  # gevent's Thread has its methods from Python's
    original = getattr(owner, name) if inherited else vars(owner)[name]
    if is_replacement(original):
        if any(ours is original for _, ours, _ in _standing.values()):
            return lambda: None
        original = original_of(original)
    ours = wrapper(_read_unbound(owner, original))
    setattr(ours, _MARK, original)
    if type(ours) is FunctionType:
        _codes.add(ours.__code__)
    if isinstance(owner, type):
        _owners.add(owner)
    _standing[id(owner), name] = owner, ours, _INHERITED if inherited else original
    setattr(owner, name, ours)
    return lambda: _restore_attribute(id(owner), name)


def _read_unbound(owner: Any, original: Any) -> Any:
    """What `owner.name` gives, to be called with the object first: wrapt's wrappers (OpenTelemetry's
    instrumentation) need to be asked for it. What is static or the class's is given as it is.
    """
    if not isinstance(owner, type) or isinstance(original, staticmethod | classmethod):
        return original
    read = getattr(type(original), "__get__", None)
    return original if read is None else read(original, None, owner)


def is_swapped(owner: Any, name: str) -> bool:
    """Whether what `owner` has under that name, of its own or inherited, is a stand-in of ours."""
    return is_replacement(getattr(owner, name))


def is_replacement(value: Any) -> bool:
    """Whether this is one of ours, standing or not."""
    kind = type(value)
    if kind is FunctionType:
        return value.__code__ in _codes and _MARK in value.__dict__
    if issubclass(kind, type):
        return _MARK in type.__dict__["__dict__"].__get__(value)
    return issubclass(kind, Substitute) and _MARK in vars(value)


def original_of(value: Any) -> Any:
    """What a stand-in stands for; any other value itself."""
    while is_replacement(value):
        value = vars(value)[_MARK]
    return value


def _restore_attribute(number: int, name: str) -> None:
    owner, ours, original = _standing.pop((number, name), (None, None, None))
    if owner is None or vars(owner).get(name) is not ours:
        return
    if original is _INHERITED:
        delattr(owner, name)
    else:
        setattr(owner, name, original)


def sweep_patches() -> None:
    """Take off what still stands, and its copies.

    An interrupt may have come before anyone had its undo; modules that were imported meanwhile say
    `from os import urandom`, programs keep what they replace and put it back.
    """
    for number, name in list(_standing):
        _restore_attribute(number, name)
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            _sweep_copies(module)
    for owner in list(_owners):
        for kind in _subclasses(owner):
            _sweep_copies(kind)


def _sweep_copies(owner: Any) -> None:
    for name, value in list(vars(owner).items()):
        if is_replacement(value):
            setattr(owner, name, original_of(value))


def _subclasses(kind: type) -> Iterator[type]:
    """It, and all that are derived from it."""
    yield kind
    derived: list[type] = type.__subclasses__(kind)
    for each in derived:
        yield from _subclasses(each)


def undoing(*undone: Callable[[], None]) -> Callable[[], None]:
    """One undo for them all, in the same order."""

    def undo_all() -> None:
        for each in undone:
            each()

    return undo_all


@contextmanager
def sending_live() -> Iterator[None]:
    """Inside, a tap sends: inner transports stay silent, the guard lets their sockets through."""
    before = SENDING.get()
    SENDING.set(True)
    try:
        yield
    finally:
        # Not Token.reset: a generator that is dropped may be closed in another context than it was
        # started in.
        SENDING.set(before)


def sending(capture: Capture) -> Sending:
    """`sending_live`, and what is raised inside is told to the capture."""
    return Sending(capture)


class Sending:
    """The block of `sending`. A class: three generators for each call cost more than what they do."""

    __slots__ = ("_before", "_capture")

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def __enter__(self) -> None:
        self._before = SENDING.get()
        SENDING.set(True)

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        SENDING.set(self._before)
        # GeneratorExit is the program dropping a stream it was reading, not a failure
        if isinstance(error, GeneratorExit):
            self._capture.close()
        elif error is not None:
            self._capture.fail(error)
