"""The demo in a terminal: a heading for each act, a line for each cell, a table at the end. Plain
text where stdout is no terminal; nothing at all with --json, which prints one object at the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from tape_jupyter.core.plain_text import format_count
from tape_jupyter.demo.acts import TAPED, Show
from tape_jupyter.headless.run import CellRun
from tape_jupyter.reports.cell_summary import money, seconds_text

if TYPE_CHECKING:
    from tape_jupyter.demo.runs import DemoRun

COLOURS = {
    "ok": "green",
    "same": "green",
    "differs": "yellow",
    "missed": "yellow",
    "failed": "red",
    "not run": "dim",
}
SHOWN = 72
"""Characters of an output in the comparison."""


class Screen:
    """A Stage. `quiet` says nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, markup=False, emoji=False, quiet=quiet)
        self._status = self._console.status("")
        self._count = 0
        self._acts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def act(self, title: str, *lines: str) -> None:
        self._acts += 1
        self._console.print(f"\n{self._acts}. {title}", style="bold")
        self.print_lines(*lines)
        self.waiting("starting a kernel")

    def print_lines(self, *lines: str) -> None:
        for line in lines:
            self._console.print(f"   {line}", style=_choose_colour(line), soft_wrap=True)

    def waiting(self, what: str) -> None:
        """A spinner, on a terminal."""
        self._status.update(what)
        if self._console.is_terminal:
            self._status.start()

    def starting(self, number: int, count: int, title: str) -> None:
        self._count = count
        self.waiting(f"cell {number} of {count}: {title.lstrip('# ')}")

    def print_cell(self, run: CellRun) -> None:
        from rich.text import Text

        line = Text(f"   [{run.number}/{self._count}] ").append(
            f"{run.status:8}", COLOURS[run.status]
        )
        self._console.print(
            line.append(f"{run.seconds:6.2f} s  {run.title.lstrip('# ')}"), soft_wrap=True
        )
        for message in (*run.messages, *_find_remarks(run)):
            self._console.print(
                Text(f"             {message}", _choose_colour(message)), soft_wrap=True
            )
        if run.number == self._count:
            self._status.stop()

    def came_out(self, columns: Mapping[str, Mapping[str, str]]) -> None:
        """The outputs of several runs below each other, cell by cell."""
        width = max(map(len, columns))
        for cell in TAPED:
            for title, outputs in columns.items():
                text = " / ".join(outputs[cell].splitlines())
                short = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
                self._console.print(
                    f"   {cell if title == next(iter(columns)) else '':9} {title:{width}}  {short}",
                    soft_wrap=True,
                )

    def figures(self, show: Show) -> None:
        self._console.print("\nFigures", style="bold")
        for name, value in demo_table(show).items():
            self._console.print(f"   {name:34} {value}", soft_wrap=True)
        for problem in show.wrong():
            self._console.print(f"   not as it must be: {problem}", style="red", soft_wrap=True)


def _find_remarks(run: CellRun) -> list[str]:
    """What the tape's summary says below its first line and the cell's error does not."""
    return [
        line
        for line in run.tape.splitlines()[1:]
        if not any(message in line for message in run.messages)
    ]


def _choose_colour(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line.strip()[:1], "")


def demo_table(show: Show) -> dict[str, str]:
    """The figures in words."""
    into, out = show.tokens
    models, tools = show.calls["model"], show.calls["tool"]
    return {
        "calls on the tape": f"{models + tools} "
        f"({format_count(models, 'model call')}, {format_count(tools, 'tool call')})",
        "tokens": f"{into:,} in + {out:,} out",
        "cost at list price, live": money(show.cost)
        if show.cost is not None
        else "none known (a local model)",
        "cells that differ, live twice": f"{show.differing} of {len(TAPED)}",
        "cells that differ, replayed": f"{sum(not cell.good for cell in show.replayed.cells)}",
        "time in the taped cells, live": seconds_text(show.recorded.seconds),
        "time in the taped cells, replayed": seconds_text(show.replayed.seconds),
        "cassette": f"{show.size:,} bytes",
        "connections attempted in replays": f"{show.connections}",
        "key in any file": "yes" if show.key_found else "no",
        "the demo took": seconds_text(show.seconds),
    }


def demo_json(show: Show) -> str:
    """The same for programs: every cell of every act, and the figures as numbers."""
    acts = {
        name: _build_cell_records(getattr(show, name))
        for name in ("recorded", "again", "replayed", "edited", "missed")
    }
    report = {
        "ok": not show.wrong(),
        "wrong": show.wrong(),
        "guards": show.guards,
        "calls": dict(show.calls),
        "tokens": {"in": show.tokens[0], "out": show.tokens[1]},
        "cost": None if show.cost is None else str(show.cost),
        "differing": show.differing,
        "seconds": {
            "live": show.recorded.seconds,
            "replayed": show.replayed.seconds,
            "demo": show.seconds,
        },
        "bytes": show.size,
        "connections": show.connections,
        "key_found": show.key_found,
        "acts": acts,
    }
    return json.dumps(report, indent=1, ensure_ascii=False)


def _build_cell_records(run: DemoRun) -> list[dict[str, Any]]:
    return [cell.record() for cell in run.cells]
