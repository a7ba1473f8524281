"""What a terminal is shown of other people's texts: recordings, notebooks and replies may hold
sequences that set its title, move its cursor or turn its text around. Files and pipes get all bytes.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_COLOURED = re.compile(rf"{_CONTROLS}|\x1b(?!\[[0-9;]*m)")
_MOVED = re.compile(rf"{_CONTROLS}|\x1b(?!\[[0-9;?]*[A-Za-z])")
"""On stderr progress is drawn, which moves the cursor."""


class GuardedTerminal:
    """A stream to a terminal, on which what is not ours alone cannot act."""

    def __init__(self, stream: TextIO, acting: re.Pattern[str]) -> None:
        self._stream, self._acting = stream, acting

    def write(self, text: str) -> int:
        return self._stream.write(self._acting.sub("\N{REPLACEMENT CHARACTER}", text))

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def guarded_terminals() -> Iterator[None]:
    """Until the block ends stdout and stderr are guarded, where they are a terminal's."""
    before = sys.stdout, sys.stderr
    for name, stream, acting in (
        ("stdout", sys.stdout, _COLOURED),
        ("stderr", sys.stderr, _MOVED),
    ):
        if stream is not None and stream.isatty():
            setattr(sys, name, GuardedTerminal(stream, acting))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
