"""Putting a stand-in over an attribute, taking it off again, and marking that a tap is sending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tape_jupyter.core.call import Capture
from tape_jupyter.core.context import SENDING

_MARK = "__tape_original__"
_INHERITED = object()
_standing: dict[tuple[int, str], tuple[Any, Any, Any]] = {}
"""What stands in for others' now: owner, stand-in, the owner's own original, by the owner's id and
the name.
"""


def swap(owner: Any, name: str, door: Callable[[Any], Any]) -> Callable[[], None]:
    """Replace `owner.name` by `door(original)`. Returns the undo; what is swapped already stays as
    it is.

    Somebody else may patch over ours: their patch is then left in place, and ours passes through
    without a tape.
    """
    inherited = name not in vars(owner)  # gevent's Thread has its methods from Python's
    original = getattr(owner, name) if inherited else vars(owner)[name]
    if hasattr(original, _MARK):
        return lambda: None
    ours = door(original)
    setattr(ours, _MARK, original)
    _standing[id(owner), name] = owner, ours, _INHERITED if inherited else original
    setattr(owner, name, ours)
    return lambda: _restore_attribute(id(owner), name)


def is_swapped(owner: Any, name: str) -> bool:
    """Whether what `owner` has under that name, of its own or inherited, is a stand-in of ours."""
    return hasattr(getattr(owner, name), _MARK)


def _restore_attribute(number: int, name: str) -> None:
    owner, ours, original = _standing.pop((number, name), (None, None, None))
    if owner is None or vars(owner).get(name) is not ours:
        return
    if original is _INHERITED:
        delattr(owner, name)
    else:
        setattr(owner, name, original)


def sweep() -> None:
    """Take off what still stands: an interrupt may have come before anyone had its undo."""
    for number, name in list(_standing):
        _restore_attribute(number, name)


def undoing(*undone: Callable[[], None]) -> Callable[[], None]:
    """One undo for them all, in the same order."""

    def undo_all() -> None:
        for each in undone:
            each()

    return undo_all


@contextmanager
def live() -> Iterator[None]:
    """Inside, a tap sends: inner transports stay silent, the guard lets their sockets through."""
    before = SENDING.get()
    SENDING.set(True)
    try:
        yield
    finally:
        # Not Token.reset: a generator that is dropped may be closed in another context than it was
        # started in.
        SENDING.set(before)


@contextmanager
def sending(capture: Capture) -> Iterator[None]:
    """`live`, and what is raised inside is told to the capture.

    GeneratorExit is the program dropping a stream it was reading, not a failure.
    """
    try:
        with live():
            yield
    except GeneratorExit:
        capture.close()
        raise
    except BaseException as error:
        capture.fail(error)
        raise
