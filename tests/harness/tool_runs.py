"""Tools whose bodies say in `ran` that they ran, and a program that is recorded, then played while nothing runs.

The fixtures are imported by the modules that use them.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tape_jupyter as tape
from tape_jupyter.session.cell import CellReport


class Witness:
    """A list of what ran that is out of every tape's reach: what a tool does to the program's own lists is replayed."""

    def __init__(self) -> None:
        vars(pytest)["what ran"] = []  # no name leads there

    @property
    def _told(self) -> list[Any]:
        found: list[Any] = vars(pytest)["what ran"]
        return found

    def append(self, what: Any) -> None:
        self._told.append(what)

    def pop(self) -> Any:
        return self._told.pop()

    def clear(self) -> None:
        self._told.clear()

    def __len__(self) -> int:
        return len(self._told)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._told)

    def __getitem__(self, index: Any) -> Any:
        return self._told[index]

    def __eq__(self, other: object) -> bool:
        return self._told == other

    def __repr__(self) -> str:
        return repr(self._told)


ran: Any = Witness()
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


def replayed(program: Callable[[], Any], **options: Any) -> tuple[Any, Any, CellReport, CellReport]:
    """What the program gives live and again from the tape while no body runs; the two reports."""
    with tape.recording("a.tape.yaml") as block:
        live = program()
    recorded = block.report
    assert ran, "the program called no tool"
    ran.clear()
    with tape.replaying("a.tape.yaml", **options) as block:
        again = program()
    assert not ran, "a body ran in replay"
    return live, again, recorded, block.report


def program_of(text: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """What runs this text as a file of the working directory, which knows `tape` and `bodies`, and gives what its
    function `found` does.
    """
    file = Path.cwd() / "program.py"
    file.write_text(text)

    def program() -> Any:
        module = types.ModuleType("program")
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, "program", module)
        vars(module).update(tape=tape, bodies=ran)
        exec(compile(text, str(file), "exec"), vars(module))  # as a file that is run
        return module.found()

    return program


def same(program: Callable[[], Any]) -> Any:
    """The same, where neither has anything to warn of."""
    live, again, recorded, report = replayed(program)
    assert again == live
    assert not recorded.warnings and not report.warnings, (recorded.warnings, report.warnings)
    return live
