"""Taps room: putting a stand-in over an attribute, taking it off again, and marking that a tap is sending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tape_jupyter.calls import Capture
from tape_jupyter.origin import SENDING

_MARK = "__tape_original__"
_standing: dict[int, Any] = {}
"""What stands in for others' now, by id."""


def swap(owner: Any, name: str, door: Callable[[Any], Any]) -> Callable[[], None]:
    """Replace `owner.name` by `door(original)`. Returns the undo; what is swapped already stays as it is, and goes with
    this undo too: an interrupt may have come before anyone had the first one.

    Somebody else may patch over ours: their patch is then left in place, and ours passes through without a tape.
    """
    original = ours = vars(owner)[name]
    if hasattr(ours, _MARK):
        if _standing.get(id(ours)) is not ours:  # theirs: functools.wraps copies our mark
            return lambda: None
        original = getattr(ours, _MARK)
    else:
        ours = door(original)
        setattr(ours, _MARK, original)
        _standing[id(ours)] = ours
        setattr(owner, name, ours)

    def undo() -> None:
        if vars(owner).get(name) is ours:
            setattr(owner, name, original)
            _standing.pop(id(ours), None)

    return undo


def undoing(*undone: Callable[[], None]) -> Callable[[], None]:
    """One undo for them all, in the same order."""

    def undo() -> None:
        for each in undone:
            each()

    return undo


@contextmanager
def live() -> Iterator[None]:
    """Inside, a tap sends: inner transports stay silent, the guard lets their sockets through."""
    before = SENDING.get()
    SENDING.set(True)
    try:
        yield
    finally:
        # Not Token.reset: a generator that is dropped may be closed in another context than it was started in.
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
