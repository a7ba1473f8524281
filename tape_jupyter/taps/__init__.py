"""Taps room: the only code that patches other people's code. Taps know calls, origin, errors, frozen and a Tape.

A tap asks `current()` for the tape at every call: patches are process-wide, and without a tape they pass straight
through. `patch_all` patches what is imported already and, through an import hook, what is imported later.
"""

from __future__ import annotations

from tape_jupyter.calls import Tape

_slot: list[Tape] = []


def current() -> Tape | None:
    """The tape that every tap asks, or None: behave as if we were not there."""
    return _slot[-1] if _slot else None


def here() -> Tape | None:
    """The tape, where it wants to be asked of an HTTP call that is made here; None: as if we were not there.

    Asked before anything is touched: a body may be a live source, which can be read once only.
    """
    tape = current()
    wants = getattr(tape, "wants", None)
    return tape if wants is None or wants() else None


def answers() -> bool:
    """Whether an HTTP call that is made here may be answered from the tape: then nothing is opened beforehand."""
    asked = getattr(here(), "answers", None)
    return asked is not None and bool(asked())


def install(tape: Tape) -> None:
    """Put this tape into the slot; the one before it is forgotten."""
    _slot[:] = [tape]


def remove() -> None:
    """Empty the slot: every tap passes straight through."""
    _slot.clear()


def note(text: str) -> None:
    """What a tap saw and the tape cannot hold: the cell names it. A tape that has no ear for it is not told."""
    say = getattr(current(), "note", None)
    if say is not None:
        say(text)


def patch_all() -> None:
    """Patch every client library imported by now, and watch for those imported later. Doing it twice is harmless."""
    from tape_jupyter.taps import arrivals

    arrivals.watch()


def unpatch_all() -> None:
    """Take every patch off; the classes hold their own attributes again."""
    from tape_jupyter.taps import arrivals

    arrivals.unwatch()
