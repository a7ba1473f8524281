"""The only code that patches other people's code. Taps know calls, origin, errors, frozen and a
Tape.

A tap asks `current()` for the tape at every call: patches are process-wide, and without a tape they
pass straight through. `patch_all` patches what is imported already and, through an import hook,
what is imported later.
"""

from __future__ import annotations

from collections.abc import Callable

from tape_jupyter.core.call import FunctionCall, Request, Tape

_slot: list[Tape] = []


def current() -> Tape | None:
    """The tape that every tap asks, or None: behave as if we were not there."""
    return _slot[-1] if _slot else None


def tape_here(peek: Callable[[], Request] | None = None) -> Tape | None:
    """The tape, where it wants to be asked of an HTTP call that is made here; None: as if we were
    not there.

    Asked before anything is touched: a body may be a live source, which can be read once only.
    `peek` gives as much of the call as can be seen without reading one: the tape withholds what
    carries a placeholder, wherever it is made.
    """
    tape = current()
    if tape is None or tape.may_decide():
        return tape
    return tape if peek is not None and tape.withholds(peek) else None


def may_answer() -> bool:
    """Whether an HTTP call that is made here may be answered from the tape: then nothing is opened
    beforehand.
    """
    tape = tape_here()
    return tape is not None and tape.answers()


def replays() -> bool:
    """Whether the tape answers what is asked here, and nothing of it goes live."""
    tape = current()
    return tape is not None and tape.replays()


def credential_stand_in(name: str, label: str) -> str | None:
    """A placeholder for a credential of this name that is nowhere to be found; None: it fails as
    without us.
    """
    tape = current()
    return None if tape is None else tape.lend_placeholder(name, label)


def setting(name: str) -> str | None:
    """What the recorded calls say of a setting that is not told here."""
    tape = current()
    return None if tape is None else tape.setting(name)


def untyped_stand_in(call: FunctionCall) -> str | None:
    """What stands in for a secret that a person was asked for and did not type; None: what was
    typed holds.
    """
    tape = current()
    return None if tape is None else tape.untyped(call)


def install(tape: Tape) -> None:
    """Put this tape into the slot; the one before it is forgotten."""
    _slot[:] = [tape]


def remove_tape() -> None:
    """Empty the slot: every tap passes straight through."""
    _slot.clear()


def note(text: str) -> None:
    """What was seen and the tape cannot hold: the cell names it."""
    if (tape := current()) is not None:
        tape.note(text)


def patch_all() -> None:
    """Patch every client library imported by now, and watch for those imported later. Doing it
    twice is harmless.
    """
    from tape_jupyter.instrumentation import import_hook

    import_hook.watch_imports()


def unpatch_all() -> None:
    """Take every patch off; the classes hold their own attributes again."""
    from tape_jupyter.instrumentation import import_hook

    import_hook.unwatch()
