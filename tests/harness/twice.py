"""A program recorded, then replayed after everything that chance could have changed has changed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tape_jupyter as tape
from tape_jupyter.session.cell import CellReport


def scramble() -> None:
    """Generators stand elsewhere, as in another kernel."""
    random.seed()
    random.gauss(0, 1)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def twice(where: Path, program: Callable[[], Any], **options: Any) -> tuple[Any, Any, CellReport]:
    """What it gave while recording, what in replay, and the replay's report. The cassette is `a.tape.yaml`."""
    path = where / "a.tape.yaml"
    with tape.recording(path, **options):
        recorded = program()
    scramble()
    with tape.replaying(path, **options) as block:
        replayed = program()
    return recorded, replayed, block.report
