"""The commands that run experiments over recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tape_jupyter.cli.common import (
    EXAMPLES,
    StepProgress,
    as_json,
    handled,
    json_text,
    notebook,
    of_name,
    pace,
    progress,
)


@click.command(
    epilog=f"{EXAMPLES}  tape why churn.ipynb --good fixed --bad main --check \"decision == 'refund'\"\n"
    "  tape why churn.ipynb --good fixed --bad main --check cell:4 --json    cell 4 must not raise\n"
    "  tape why churn.ipynb --good r-5f2c81d0 --bad main --check test_churn.py"
)
@notebook
@click.option(
    "--good",
    required=True,
    metavar="A",
    help="The take, cassette or run with which the check holds.",
)
@click.option(
    "--bad", required=True, metavar="B", help="The take, cassette or run with which it does not."
)
@click.option(
    "--check",
    required=True,
    metavar="EXPR",
    help="Python over variables and `outputs`; cell:N; output:N; a pytest file.",
)
@click.option(
    "--on-divergence",
    type=click.Choice(["stop", "stale", "live"]),
    default="stop",
    help="A request on neither tape: no answer (stop), the nearest call's reply (stale), or ask (live).",
)
@click.option(
    "--max-calls",
    type=click.IntRange(min=0),
    metavar="N",
    help="With --on-divergence live: send at most N calls.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="With --on-divergence live: spend at most this much.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Time limit of one trial, in seconds.",
)
@pace
@of_name
@progress
@as_json
@handled
def why(
    notebook: Path, good: str, bad: str, check: str, name: str | None, *, progress: bool, as_json: bool, **limits: Any
) -> None:  # fmt: skip
    """Find which difference between two runs makes a check fail.

    What differs between the two recordings is put back to A's: all of it, all of one layer (models,
    each tool, retrieval, clock, chance, code of cells), then ever fewer, to a set of which nothing
    can be left out, and to the part of each reply that does it. Each trial replays the cells from
    the first change on, in a process without network; nothing of yours is written. cell:N holds
    where that cell runs and does not raise, output:N where it shows what the notebook has saved; a
    pytest file's tests may ask for `variables` and `outputs`. With --on-divergence live a request
    that is on neither tape is sent, with your keys, and its answer kept in a take.
    """
    from tape_jupyter.experiments.why import why

    with StepProgress(quiet=as_json, lines=progress) as steps:
        cause = why(
            notebook, good, bad, check, name, **limits,
            tried=lambda number, what, outcome: steps.show_step(f"trial {number}: {what}: {outcome}"),
        )  # fmt: skip
    record = cause.build_view_record() if progress else cause.record()
    click.echo(json_text(record) if as_json else cause.text())


COMMANDS = (why,)
