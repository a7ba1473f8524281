"""The commands that run experiments over recordings."""

from __future__ import annotations

from pathlib import Path

import click

from tape_jupyter.cli.common import (
    EXAMPLES,
    StepProgress,
    as_json,
    handled,
    json_text,
    notebook,
    of_name,
)


@click.command(
    epilog=f"{EXAMPLES}  tape why churn.ipynb --good fixed --bad main --check \"decision == 'refund'\"\n"
    "  tape why churn.ipynb --good fixed --bad main --check cell:4 --json    cell 4 must not raise"
)
@notebook
@click.option(
    "--good",
    required=True,
    metavar="A",
    help="The take, cassette or run with which the check holds.",
)
@click.option(
    "--bad", required=True, metavar="B", help="The take or cassette with which it does not."
)
@click.option(
    "--check",
    required=True,
    metavar="EXPR",
    help="Python over variables and `outputs`; cell:N; output:N.",
)
@of_name
@as_json
@handled
def why(
    notebook: Path, good: str, bad: str, check: str, name: str | None, *, as_json: bool
) -> None:
    """Find the replies that make a run come out otherwise.

    The calls that both recordings made and that were answered differently are put back to A's
    replies: all of them, all of one layer (models, one tool, retrieval), then ever fewer, to a set
    of which none can be left out. Each trial replays the notebook in a fresh kernel; nothing goes
    live and nothing of yours is written. cell:N holds where that cell runs and does not raise,
    output:N where it shows what the notebook has saved.
    """
    from tape_jupyter.experiments.why import why

    with StepProgress(quiet=as_json) as steps:
        cause = why(
            notebook, good, bad, check, name,
            lambda number, count, outcome: steps.tell(f"trial {number}: {count} good replies: {outcome}"),
        )  # fmt: skip
    click.echo(json_text(cause.record()) if as_json else cause.text())


COMMANDS = (why,)
