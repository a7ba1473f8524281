"""A stderr that is a terminal, and what was written to it."""

import os
import sys
from contextlib import contextmanager


@contextmanager
def terminal(monkeypatch):
    """Gives a function that tells what was written since; reads nothing that is not there yet."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    with open(theirs, "w", buffering=1) as stderr, open(ours, "rb", buffering=0) as reader:
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setenv("TERM", "xterm")
        yield lambda: (reader.read() or b"").decode()
