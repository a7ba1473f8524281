"""What is asked of a run, and what a run says to that: the one place where runs are judged.

A check is a Python expression over the notebook's variables and `outputs` (the text that each code
cell showed), `cell:N` (that cell runs and does not raise), `output:N` (it shows what is saved), a
pytest file, or none: no cell raises, but those after which others ran when the notebook was saved.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tape_jupyter.comparison import outputs
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.headless.questions import KernelAnswer
from tape_jupyter.headless.run import REFUSALS

CheckKind = Literal["", "expression", "cell", "output", "pytest"]
Verdict = Literal["passes", "fails", "unresolved"]
_TAIL = 300
"""Characters of a pytest run that are kept."""
_SHOWN = 200
"""Characters of a value's repr that are told."""


@dataclass(frozen=True, slots=True)
class Check:
    """`number`: the code cell, counted from 1 among those that hold something; `file`: the pytest
    file.
    """

    text: str = ""
    kind: CheckKind = ""
    number: int = 0
    file: str = ""

    @classmethod
    def parse(cls, text: str, folder: Path | None = None) -> Check:
        """The check that these words say. `folder`: where a pytest file may lie; None where runs are
        in kernels, which no pytest file is run in. Raises TapeUsageError for what is none.
        """
        text = text.strip()
        if not text:
            return cls()
        if text.endswith(".py"):
            return cls(text, "pytest", file=str(_find_test_file(text, folder)))
        if match := re.fullmatch(r"(cell|output):(\d+)", text):
            return cls(text, "cell" if match[1] == "cell" else "output", int(match[2]))
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError) as error:
            why = error.msg if isinstance(error, SyntaxError) else error
            raise TapeUsageError(f"--check {text!r} is not a Python expression: {why}") from None
        if not any(isinstance(each, ast.Name) for each in ast.walk(tree)):
            raise TapeUsageError(
                f"--check {text}: it reads nothing of the notebook, so it is always true or always false"
            )
        return cls(text, "expression")

    def require(self, cells: int) -> None:
        """Raises TapeUsageError where a notebook of so many code cells has no such cell."""
        if self.kind in ("cell", "output") and not 1 <= self.number <= cells:
            raise TapeUsageError(f"--check {self.text}: the notebook's code cells are 1 to {cells}")

    @property
    def expression(self) -> str:
        return self.text if self.kind == "expression" else ""

    def record(self) -> dict[str, Any]:
        return asdict(self)


def _find_test_file(text: str, folder: Path | None) -> Path:
    if folder is None:
        raise TapeUsageError(
            f"--check {text}: a pytest file is a check of `tape why` and `tape sample` alone"
        )
    for path in (Path(text), folder / text):
        if path.is_file():
            return path.resolve()
    raise TapeUsageError(f"--check {text}: there is no such pytest file")


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """How a run came out. `value` is what the check gave (its repr), `why` a line for people.

    `cell` is the code cell that ended the run (0: none did), with `error`, the name of what it
    raised, and `asked`, what was asked that is not on the tape. `calls` were answered, `missed`
    refused; None where nobody counted.
    """

    verdict: Verdict
    value: str = ""
    why: str = ""
    cell: int = 0
    error: str = ""
    asked: str = ""
    calls: int | None = None
    missed: int | None = None
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CheckedCell:
    """A code cell of a run: what it showed, and what it had saved. `ran`: it was executed."""

    outputs: Sequence[Any]
    saved: Sequence[Any]
    ran: bool = True


def may_raise(saved: Sequence[Sequence[Any]]) -> list[bool]:
    """Of each code cell, by what it had saved, whether its error ended no run: others ran after it."""
    return [
        bool(outputs.failure_of(cell_outputs)[0]) and any(saved[number:])
        for number, cell_outputs in enumerate(saved, 1)
    ]


def ends(cell_outputs: Sequence[Any], *, may_raise: bool) -> bool:
    """Whether a cell that showed this ends its run."""
    name, _ = outputs.failure_of(cell_outputs)
    return bool(name) and (name in REFUSALS or not may_raise)


def judged(
    cells: Sequence[CheckedCell],
    check: Check,
    answer: KernelAnswer,
    where: Mapping[str, str],
    seconds: float,
    *,
    settled: bool = False,
) -> CheckedRun:
    """What the check says of a run: `cells` are its code cells, `answer` what its expression or
    pytest file gave. `settled`: what a cell was refused can no longer change that.
    """
    ended = number, name, message = _find_failure(cells)
    refused = name in REFUSALS
    verdict: Verdict
    if refused and not settled and not 0 < check.number < number:
        verdict, why = "unresolved", f"cell {number}: {name}: {message}"
    elif check.kind in ("expression", "pytest"):
        verdict, why = _judge_answer(check, answer, ended)
    elif check.kind == "output":
        verdict, why = _judge_output(check, cells, number, where)
    elif number and (not check.number or number <= check.number):
        verdict, why = "fails", f"cell {number}: {name}: {message}"
    else:
        verdict, why = "passes", ""
    return CheckedRun(
        verdict, answer.value, why, number, name, message if refused else "", answer.calls,
        answer.missed, round(seconds, 3),
    )  # fmt: skip


def _judge_answer(check: Check, answer: KernelAnswer, ended: _Ended) -> tuple[Verdict, str]:
    behind = f" (cell {ended[0]} had raised {ended[1]})" if ended[0] else ""
    is_test = check.kind == "pytest"
    if answer.error:
        return "unresolved", f"{'' if is_test else 'the check raised '}{answer.error}{behind}"
    if answer.true:
        return "passes", ""
    return "fails", f"{answer.value if is_test else f'{check.text} is {answer.value}'}{behind}"


def _judge_output(
    check: Check, cells: Sequence[CheckedCell], ended: int, where: Mapping[str, str]
) -> tuple[Verdict, str]:
    one = cells[check.number - 1]
    if not one.ran:
        return "fails", f"cell {ended} raised before it"
    if not outputs.same_outputs(one.saved, one.outputs, where):
        return "fails", f"output {check.number} is another"
    return "passes", ""


_Ended = tuple[int, str, str]
"""The cell that ended a run, what it raised, and the first line of that; (0, "", "") for none."""


def _find_failure(cells: Sequence[CheckedCell]) -> _Ended:
    """One that raised and had cells run after it did not end the run."""
    for number, cell in enumerate(cells, 1):
        name, value = outputs.failure_of(cell.outputs)
        if name and (number == len(cells) or not cells[number].ran):
            return number, name, value.splitlines()[0] if value else ""
    return 0, "", ""


# ---------------------------------------------------------------- asked in the run's own process


def run_check(check: Check, namespace: Mapping[str, Any], texts: Sequence[str]) -> KernelAnswer:
    """What the check gives in this process, where the cells ran; `texts`: the text that each showed.

    Raises nothing.
    """
    if check.kind == "pytest":
        return _run_pytest(check.file, namespace, texts)
    if check.expression:
        return _evaluate_expression(check.text, namespace, texts)
    return KernelAnswer()


def _evaluate_expression(
    text: str, namespace: Mapping[str, Any], texts: Sequence[str]
) -> KernelAnswer:
    try:
        # the person's own words, in the trial's own process
        code = compile(f"(lambda outputs: (\n{text}\n))", "<check>", "eval")
        value = eval(code, dict(namespace))(list(texts))  # noqa: S307
        return KernelAnswer(repr(value)[:_SHOWN], bool(value))
    except BaseException as error:  # a refused connection, sys.exit()
        message = next(iter(str(error).splitlines()), "")
        return KernelAnswer(error=f"{type(error).__name__}: {message}")


def _run_pytest(file: str, namespace: Mapping[str, Any], texts: Sequence[str]) -> KernelAnswer:
    """0 holds, 1 does not; every other end (nothing collected, an error) is no answer."""
    try:
        import pytest
    except ImportError:
        return KernelAnswer(error="pytest is not installed in the notebook's environment")
    lines: list[str] = []
    broken: list[str] = []

    class Given:
        """The plugin that gives tests the notebook."""

        @pytest.fixture
        def variables(self) -> Mapping[str, Any]:
            return namespace

        @pytest.fixture
        def outputs(self) -> list[str]:
            return list(texts)

        def pytest_exception_interact(self, call: Any) -> None:
            lines.append(call.excinfo.exconly())
            if call.when != "call":
                broken.append(call.when)

    arguments = [
        file,
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(Path(file).parent),
        "-c",
        os.devnull,
    ]
    code = int(pytest.main(arguments, plugins=[Given()]))
    report = " ".join(" ".join(lines).split())[:_TAIL]
    if broken:
        return KernelAnswer(error=f"the check raised: {report}")
    if code in (0, 1):
        return KernelAnswer(report or "passed", code == 0)
    return KernelAnswer(error=f"pytest ended with {code} ({report or 'no test was found'})")
