"""The command that tries candidate fixes over many recordings.

It parses, calls one function of another door, prints, and chooses the exit code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tape_jupyter.cli.common import EXAMPLES, StepProgress, Words, as_json, handled, pace
from tape_jupyter.cli.sample import max_calls, max_cost
from tape_jupyter.errors import TapeUsageError

if TYPE_CHECKING:
    from tape_jupyter.experiments.sweep.sweep import Sweep

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)


class Bytes(click.ParamType[int]):
    """A size: `2GB`, `512M`, a number of bytes."""

    name = "SIZE"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: Any) -> int:
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no size; write 2GB")
        return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


@click.command(
    "try",
    epilog=f"{EXAMPLES}  tape try failing/ --candidate fix.toml --check 'decision == \"refund\"'\n"
    "  tape try runs/*.tape.zip --candidate a.toml --candidate b.toml --yes --html report.html\n"
    "  tape try s3://runs/november/ --candidate fix.toml --workers tcp://scheduler:8786 --results s3://runs/try\n"
    "  tape try churn.ipynb    does it run as recorded (no candidate)",
)
@click.argument("wheres", nargs=-1, required=True, metavar="NB|BUNDLE|FOLDER|URL...")
@click.option(
    "-c", "--candidate", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="A candidate fix (TOML): cells, overrides, requests, packages.",
)  # fmt: skip
@click.option(
    "--check", default="", metavar="EXPR",
    help="What passes: Python over variables and `outputs`; cell:N; output:N. Else: no cell raises.",
)  # fmt: skip
@click.option(
    "--workers", default="", metavar="N|tcp://...", help="Processes, or a Dask scheduler's address."
)
@click.option(
    "--results", default="tape-try", metavar="FOLDER|URL", help="Where finished rows are kept and reused."
)  # fmt: skip
@click.option("--again", is_flag=True, help="Run again the rows that exist already.")
@click.option("--yes", is_flag=True, help="Run the bundles' code without being asked.")
@click.option(
    "--here", is_flag=True, help="Bundles with this interpreter's packages, not their lock's."
)
@click.option("--allow-index", is_flag=True, help="Install from another index that a lock names.")
@click.option(
    "--timeout", type=float, metavar="SECONDS", help="Seconds per cell; no limit by default."
)
@click.option(
    "--seconds", type=float, default=600.0, metavar="SECONDS", help="Time limit of a run, in seconds; by default 600."
)  # fmt: skip
@click.option(
    "--memory",
    type=Bytes(),
    default=0,
    metavar="SIZE",
    help="End a run that takes more memory than this, like 2GB.",
)
@pace
@max_cost
@max_calls
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Rows as JSON lines.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="XML", help="A report for a CI.")
@click.option(
    "--html", "page", type=click.Path(path_type=Path), metavar="HTML", help="A page to read."
)
@as_json
@handled
def try_(  # noqa: PLR0913, PLR0917 - an option each
    wheres: Words, files: tuple[Path, ...], check: str, workers: str, results: str, timeout: float | None,
    seconds: float, memory: int, max_cost: Decimal | None, max_calls: int | None, out: Path | None,
    junit: Path | None, page: Path | None, pace: str | None, *, again: bool, yes: bool, here: bool, allow_index: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Try candidate fixes over many recordings, offline.

    Each run is replayed as it is and with each candidate; nothing of yours is written. Nothing goes
    live but calls that a candidate asks again ([[request]]), within --max-cost or --max-calls. A
    row is kept as soon as it is there, so that a sweep that was ended goes on where it stopped.
    Failures that are alike are one line: how many of them now pass. With --json the rows are
    printed, one a line. Exit code 1 where a run does not pass with a candidate, 2 where none of
    them can be run.
    """
    from tape_jupyter.bundle import report as bundle_report
    from tape_jupyter.experiments.sweep import candidate, engine, places, report
    from tape_jupyter.experiments.sweep import sweep as door

    goals = {junit: "xml", page: "html"}
    for path, kind in goals.items():
        if path is not None:
            bundle_report.report_path(path, kind, "--html")
    if out is not None and out.exists():
        raise TapeUsageError(f"{out} exists already and is not overwritten; name another file")
    tried = [candidate.read_candidate(file) for file in files]
    options = door.SweepOptions(
        check, results, "current" if here else "lock", allow_index, timeout, seconds, memory,
        page is not None, again, max_cost, max_calls, pace or "",
    )  # fmt: skip
    with StepProgress(quiet=as_json, left=True) as steps, engine.workers_of(workers) as worker_pool:
        steps.show_step("looking for runs")
        over = places.found_places(wheres, [results, *filter(None, (out, junit, page))])
        door.require_trust(over, yes=yes)
        done = door.sweep(over, tried, options, worker_pool, steps.show_step)
    if out is not None:
        _write_lines(out, report.sweep_lines(done))
    if junit is not None:
        bundle_report.write_report(junit, report.sweep_junit(done))
    if page is not None:
        bundle_report.write_report(page, report.sweep_html(done, page))
    _print_rows(done, as_json=as_json)
    if all(row["end"] == "broken" for row in done.rows()):
        return 2  # not one of the places could be run: bad input, as with every other command
    return int(not done.summary.good or bool(done.summary.unfit))


def _write_lines(out: Path, lines: Iterable[str]) -> None:
    try:
        with out.open("x", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise TapeUsageError(f"{out} cannot be written: {error.strerror or error}") from error


def _print_rows(done: Sweep, *, as_json: bool) -> None:
    from tape_jupyter.experiments.sweep import report

    if not as_json:
        click.echo(done.text())
        return
    for line in report.sweep_lines(done):
        click.echo(line, nl=False)


COMMANDS = (try_,)
