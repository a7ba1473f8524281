"""What is asked of a trial: a Python expression over the notebook's variables and outputs, a cell
that must not raise, an output that must stay as it is saved, or a pytest file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tape_jupyter.comparison import outputs
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.check_text import CheckKind, read_check, require_cell

Kind = CheckKind | Literal["pytest"]
_TAIL = 300
"""Characters of a pytest run that are kept."""


@dataclass(frozen=True, slots=True)
class Check:
    """`number`: the code cell, counted from 1; `file` the pytest file. Raises nothing."""

    text: str
    kind: Kind = "expression"
    number: int = 0
    file: str = ""

    @classmethod
    def of(cls, text: str, cells: int, folder: Path) -> Check:
        """The check that these words say, for a notebook of so many code cells in that folder.
        Raises TapeUsageError for what is none.
        """
        if text.strip().endswith(".py"):
            return cls(text, "pytest", file=str(_file(text.strip(), folder)))
        kind, number = read_check(text)
        require_cell(text, kind, number, cells)
        return cls(text, kind, number)

    def record(self) -> dict[str, Any]:
        return asdict(self)


def _file(text: str, folder: Path) -> Path:
    for path in (Path(text), folder / text):
        if path.is_file():
            return path.resolve()
    raise TapeUsageError(f"--check {text}: there is no such pytest file")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the check holds; None where that cannot be said, and `why`."""

    holds: bool | None
    why: str = ""


def judge(
    check: Check,
    namespace: Mapping[str, Any],
    shown: Sequence[Sequence[Any]],
    raised: int,
    saved: Sequence[Any] = (),
    where: Mapping[str, str] = outputs.NOWHERE,
) -> Judgement:
    """`shown`: what each code cell showed; `raised`: the cell that ended the run, 0 for none;
    `saved`: what the checked cell has saved.
    """
    if check.kind == "cell":
        return Judgement(not raised or raised > check.number)
    if check.kind == "output":
        if 0 < raised < check.number:
            return Judgement(holds=False, why=f"cell {raised} raised before it")
        return Judgement(outputs.same(saved, shown[check.number - 1], where))
    texts = [outputs.shown_text(each) for each in shown]
    judged = (
        _by_pytest(check.file, namespace, texts)
        if check.kind == "pytest"
        else _by_expression(check.text, namespace, texts)
    )
    if judged.holds is None and raised:
        return Judgement(None, f"{judged.why} (cell {raised} had raised)")
    return judged


def _by_expression(text: str, namespace: Mapping[str, Any], shown: list[str]) -> Judgement:
    try:
        # the person's own words, in the trial's own process
        code = compile(f"(lambda outputs: (\n{text.strip()}\n))", "<check>", "eval")
        return Judgement(bool(eval(code, dict(namespace))(shown)))  # noqa: S307
    except BaseException as error:  # a refused connection, sys.exit()
        said = next(iter(str(error).splitlines()), "")
        return Judgement(None, f"the check raised {type(error).__name__}: {said}")


def _by_pytest(file: str, namespace: Mapping[str, Any], shown: list[str]) -> Judgement:
    """0 holds, 1 does not; every other end (nothing collected, an error) is no answer."""
    try:
        import pytest
    except ImportError:
        return Judgement(None, "pytest is not installed in the notebook's environment")
    lines: list[str] = []
    broken: list[str] = []

    class Given:
        """The plugin that gives tests the notebook."""

        @pytest.fixture
        def variables(self) -> Mapping[str, Any]:
            return namespace

        @pytest.fixture
        def outputs(self) -> list[str]:
            return shown

        def pytest_exception_interact(self, call: Any) -> None:
            lines.append(call.excinfo.exconly())
            if call.when != "call":
                broken.append(call.when)

    words = [file, "-p", "no:cacheprovider", "--rootdir", str(Path(file).parent), "-c", os.devnull]
    code = int(pytest.main(words, plugins=[Given()]))
    said = " ".join(" ".join(lines).split())[:_TAIL]
    if broken:
        return Judgement(None, f"the check raised: {said}")
    if code in (0, 1):
        return Judgement(code == 0, said)
    return Judgement(None, f"pytest ended with {code} ({said or 'no test was found'})")
