"""What a cell's text says of the tape, before any of it is read in full."""

from __future__ import annotations

import re

_ASKS = re.compile(r"\s*(#.*|%tape\b.*)?")
_SPEAKS = re.compile(r"%tape\b|\btape(_jupyter)?\s*\.|\bfrom\s+tape_jupyter\b")
_OVERRIDES = re.compile(r"\s*%%tape\s+override\b")
_QUIET = re.compile(r"\s*(#.*|%(tape|load_ext|reload_ext|unload_ext)\b.*)?")


def asks_only(source: str) -> bool:
    """Whether a cell only speaks to the tape: it is no part of what the notebook does."""
    return _OVERRIDES.match(source) is not None or all(
        _ASKS.fullmatch(line) for line in source.splitlines()
    )


def speaks_of_tape(source: str) -> bool:
    """Whether a cell's text may tape something: a magic, or the package's own functions."""
    return _SPEAKS.search(source) is not None


def is_quiet(source: str) -> bool:
    """Whether a cell only sets things up (`%tape`, `%load_ext`, comments): the session does not
    tape it.
    """
    return _OVERRIDES.match(source) is not None or all(
        _QUIET.fullmatch(line) for line in source.splitlines()
    )
