"""Tools whose bodies say in `ran` that they ran, and a program that is recorded, then played while nothing runs.

The fixtures are imported by the modules that use them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tape_jupyter as tape
from tape_jupyter.notebook.taped import CellReport

ran: list[Any] = []
"""What a body of the running test adds to, each time it runs."""


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    ran.clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.tape.yaml"


def both(path: Path, program: Callable[[], Any]) -> tuple[Any, CellReport]:
    """What a program gives while it is recorded, which it must give again while nothing runs; the recording's report."""
    with tape.recording(path) as block:
        live = program()
    assert ran
    ran.clear()
    with tape.replaying(path):
        assert program() == live
    assert ran == []
    return live, block.report
