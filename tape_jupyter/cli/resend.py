"""The command that sends a recorded request again, live.

It parses, calls one function of another door, prints, and chooses the exit code.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from tape_jupyter.cli.common import EXAMPLES, Progress, Words, as_json, handled, json_text, of_name
from tape_jupyter.errors import TapeUsageError


@click.command(
    epilog=f"{EXAMPLES}  tape resend churn.ipynb 78a670b1 --dry-run        what would be sent, and its cost\n"
    "  tape resend churn.ipynb 78a670b1                  as it was recorded\n"
    "  tape resend churn.ipynb 78a670b1 --set model=claude-haiku-4-5 --set temperature=0\n"
    '  tape resend churn.ipynb 78a670b1 --message "Answer in one word." --promote\n'
    "  tape resend churn.ipynb 78a670b1 --message ... --rerun    and on through the notebook's code"
)
@click.argument("where", type=click.Path(path_type=Path), metavar="CASSETTE|NB")
@click.argument("call")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A field of the request; a.b for inner ones.",
)
@click.option(
    "--message",
    metavar="TEXT|JSON",
    help="The user's newest text; or JSON of a list: all messages.",
)
@click.option(
    "--take", metavar="NAME", help="The take that the answer is written to; by default a new one."
)
@click.option("--of", default="", metavar="TAKE", help="The call as it is in that take.")
@click.option(
    "--key",
    default="",
    metavar="VARIABLE",
    help="The environment variable with the key for this host.",
)
@click.option("--promote", is_flag=True, help="Put the answer in the call's place, in that take.")
@click.option(
    "--rerun",
    is_flag=True,
    help="Promote it, and run the notebook on it; calls whose request is not recorded go live.",
)
@click.option(
    "--dry-run", is_flag=True, help="Say what would be sent and what it costs. Nothing is sent."
)
@of_name
@as_json
@handled
def resend(  # noqa: PLR0913 - an option each
    where: Path, call: str, settings: Words, message: str | None, take: str | None, of: str, key: str,
    name: str | None, *, promote: bool, rerun: bool, dry_run: bool, as_json: bool,
) -> int:  # fmt: skip
    """Send a recorded request again, live: as it was, or changed.

    What it costs is said first. The answer is written to a take with its difference, and plays
    nowhere until it is promoted (--promote, or `tape takes NB promote TAKE`). The recording stays
    as it is. A key goes to its own provider only, or where --key says so.
    """
    from tape_jupyter.experiments.resending import resend as door
    from tape_jupyter.reports import listing

    if rerun and where.suffix != ".ipynb":
        raise TapeUsageError(f"--rerun runs a notebook, and {where} is none")
    planned = door.plan_resend(
        listing.list_cassettes(where, name),
        call,
        settings=settings,
        message=message,
        of=of,
        key=key,
    )
    summary = {"cost": planned.cost, "changes": list(planned.changes), "note": planned.note}
    if dry_run:
        click.echo(
            json_text({"sent": False, **summary})
            if as_json
            else "\n".join([*planned.lines(), "nothing was sent"])
        )
        return 0
    click.echo("\n".join(planned.lines()), err=True)
    done = door.send_planned(planned, take or "", promoted=promote or rerun)
    if not rerun:
        click.echo(
            json_text({"sent": True, "expected": summary, **done.record()})
            if as_json
            else done.text()
        )
        return int((done.reply.status or 0) >= 400)
    return _rerun_notebook(where, done, as_json=as_json)


def _rerun_notebook(notebook: Path, done: object, *, as_json: bool) -> int:
    """The notebook on the take: the new answer plays, and its code goes on from there."""
    from tape_jupyter.cassette.takes import files
    from tape_jupyter.experiments.resending.resend import Resent
    from tape_jupyter.jupyter.rerun import headless

    assert isinstance(done, Resent)
    take = files.take_name(done.take.path)
    click.echo(
        "calls after it whose request is then another go out live, too; their cost is not known beforehand",
        err=True,
    )
    options = {"TAPE_OPTIONS": shlex.join(["--take", take, "--on-divergence", "live"])}
    with Progress(quiet=as_json) as progress:
        result = headless.rerun_headless(
            notebook, done.take.root, take, progress.starting, progress.print_cell, env=options
        )
    if as_json:
        click.echo(json_text({"sent": True, **done.record(), "rerun": result.record()}))
    else:
        click.echo(f"{done.text()}\n{result.comparison.text()}")
    return int(not result.good)
