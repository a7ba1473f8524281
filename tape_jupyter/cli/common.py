"""What commands share: their options, their progress, what an error is to the shell.

Exit codes: 0 all is well; 1 something differs, was missed, raised or is wrong; 2 a word or a file
that cannot be used.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self

import click

from tape_jupyter.cli.terminal import guarded_terminals
from tape_jupyter.core.disk_errors import describe_disk_error
from tape_jupyter.core.plain_text import safe_text
from tape_jupyter.errors import TapeError

if TYPE_CHECKING:
    from tape_jupyter.cassette.cassette import Cassette
    from tape_jupyter.headless.run import CellRun

P = ParamSpec("P")
Words = tuple[str, ...]
EXAMPLES = "\b\nExamples:\n"
MARKS = {
    "ok": ("green", "ok"), "same": ("green", "same"), "differs": ("red", "differs"), "missed": ("red", "missed"),
    "failed": ("red", "failed"), "not run": ("yellow", "not run"),
}  # fmt: skip


def handled(command: Callable[P, int | None]) -> Callable[P, NoReturn]:
    """A command whose result is the exit code; errors that a person can mend are one message and
    code 2.
    """

    @functools.wraps(command)
    def run_command(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        with guarded_terminals():
            sys.exit(run_handled(*args, **kwargs))

    def run_handled(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            with ended():
                code = command(*args, **kwargs) or 0
        except TapeError as error:
            click.echo(f"tape: {error}", err=True)
            code = 2
        except KeyboardInterrupt:
            click.echo("tape: interrupted", err=True)
            code = 130
        except BrokenPipeError:  # `tape calls ... | head`
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # what is left to be flushed goes nowhere
            code = 0
        except OSError as error:
            line = describe_disk_error(error)
            if not line:
                raise
            click.echo(f"tape: {line}", err=True)
            code = 2
        return code

    return run_command


@contextlib.contextmanager
def ended() -> Iterator[None]:
    """A run that is ended from outside (a CI's time is up) is put away like one that a person
    interrupts.
    """

    def raise_interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [
        number
        for name in ("SIGTERM", "SIGHUP")
        if (number := getattr(signal, name, None)) is not None
    ]
    before = {number: signal.signal(number, raise_interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


of_name = click.option(
    "-n", "--name", help="Only this cassette of the notebook (as in %%tape record NAME)."
)
pace = click.option(
    "--pace", type=click.Choice(["instant", "order", "recorded"]),
    help="When replies arrive: at once, in the recorded order, or after the recorded waits.",
)  # fmt: skip
progress = click.option(
    "--progress", is_flag=True, hidden=True, help="Report progress on stderr, as JSON lines."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
notebook = click.argument("notebook", type=click.Path(path_type=Path), metavar="NB")


class Progress:
    """Tells how a run gets on, on stderr: a line for each cell that is done, and a moving one while
    it runs.
    """

    def __init__(self, *, quiet: bool = False, first: str = "starting a kernel") -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False)
        self._status = self._console.status(first)
        self._quiet = quiet
        self._count = 0

    def __enter__(self) -> Self:
        if not self._quiet:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def starting(self, number: int, count: int, title: str) -> None:
        from rich.text import Text

        self._count = count
        self._status.update(Text(f"cell {number} of {count}: {safe_text(title)}"))

    def show_step(self, what: str, done: int = 0, total: int = 0) -> None:
        """A step that is no cell."""
        from rich.text import Text

        self._status.update(Text(f"{what}, {done:,} of {total:,}" if total else what))

    def pausing(self, prompt: Callable[[str], str]) -> Callable[[str], str]:
        """Asks on a terminal on which nothing moves meanwhile."""

        def ask_paused(question: str) -> str:
            self._status.stop()
            try:
                return prompt(question)
            finally:
                if not self._quiet:
                    self._status.start()

        return ask_paused

    def spans(self, done: int, total: int) -> None:
        self._status.update(f"{done:,} of {total:,} spans")

    def print_cell(self, run: CellRun) -> None:
        if self._quiet:
            return
        from rich.text import Text

        colour, label = MARKS[run.status]
        line = Text(f"[{run.number}/{self._count}] ").append(f"{label:8}", colour)
        self._console.print(
            line.append(f"{run.seconds:6.1f} s  {safe_text(run.title)}"), soft_wrap=True
        )
        for message in ("\n".join(map(safe_text, each.split("\n"))) for each in run.messages):
            self._console.print(Text(f"    {message}", _find_diff_colour(message)), soft_wrap=True)


class StepProgress:
    """Tells on stderr which step of a long work is under way, and how far it is; `show_step` is
    what the work is given.
    """

    def __init__(self, *, quiet: bool = False, lines: bool = False, left: bool = False) -> None:
        """`lines`: as JSON, a line each, for a program that shows them. `left`: the time that is
        left is told too.
        """
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(20),
            MofNCompleteColumn(),
        )
        console = Console(stderr=True, highlight=False, markup=False)
        # A bar that cannot be taken back would stand in a log. FORCE_COLOR asks for colours, not
        # for a bar.
        quiet = quiet or lines or not (console.is_terminal and sys.stderr.isatty())
        times = (
            TimeElapsedColumn(),
            *([TextColumn("left"), TimeRemainingColumn()] if left else []),
        )
        self._bar = Progress(*columns, *times, console=console, transient=True, disable=quiet)
        self._lines, self._last = lines, ""
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show_step(self, what: str, done: int = 0, total: int = 0) -> None:
        """`what` is under way, `done` of `total` of it (0: nobody knows how many)."""
        from rich.markup import escape

        if not self._bar.disable:
            task = self._bar.tasks[0]
            # rich's update() keeps a total that is None
            task.total = total or None
            task.finished_time = None
            self._bar.update(self._task, description=escape(what), completed=done)
        if (
            self._lines
            and (line := json.dumps({"step": what, "done": done, "total": total})) != self._last
        ):
            self._last = line
            print(line, file=sys.stderr, flush=True)  # noqa: T201 - the protocol


def _find_diff_colour(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def json_text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=repr)


def opened(path: Path) -> Cassette:
    """The cassette at a path. Raises CassetteError."""
    from tape_jupyter.cassette.cassette import Cassette

    return Cassette.open(path)
