"""The command that asks a recorded call again, several times.

It parses, calls one function of another door, prints, and chooses the exit code.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tape_jupyter.cli.common import (
    EXAMPLES,
    StepProgress,
    Words,
    as_json,
    handled,
    json_text,
    notebook,
    of_name,
    pace,
)
from tape_jupyter.core.plain_text import format_times
from tape_jupyter.errors import TapeUsageError

if TYPE_CHECKING:
    from tape_jupyter.experiments.resending.resend import ResendPlan


class Dollars(click.ParamType[Decimal]):
    """An amount of US dollars: `0.5`, `$2`."""

    name = "USD"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: Any) -> Decimal:
        try:
            amount = Decimal(str(value).removeprefix("$"))
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite() or amount < 0:
            self.fail(f"{value!r} is no amount of US dollars; write 0.5")
        return amount


max_cost = click.option(
    "--max-cost", type=Dollars(), metavar="USD", help="Calls never cost more than this together."
)
max_calls = click.option(
    "--max-calls", type=click.IntRange(0), metavar="N", help="No more calls than this go out."
)


@click.command(
    epilog=f"{EXAMPLES}  tape sample churn.ipynb 78a670b1 -k 10 --check mood --max-cost 0.05\n"
    "  tape sample churn.ipynb 78a670b1 -k 20 --set temperature=0    those that are there count\n"
    "  tape sample churn.ipynb 78a670b1 -k 10 --check cell:4         does cell 4 run with it\n"
    "  tape sample churn.ipynb 78a670b1 -k 10 --dry-run              what would be sent, and its cost"
)
@notebook
@click.argument("call")
@click.option(
    "-k", "count", type=click.IntRange(1), default=10, help="How many answers; by default 10."
)
@click.option(
    "--check", default="", metavar="EXPR",
    help="What the outcome is: Python over variables and `outputs`; cell:N; output:N. Else the answer.",
)  # fmt: skip
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE",
    help="A field of the request; a.b for inner ones.",
)  # fmt: skip
@click.option("--message", metavar="TEXT|JSON", help="The user's newest text; or all messages.")
@click.option("--of", default="", metavar="TAKE", help="The call as it is in that take.")
@click.option(
    "--key", default="", metavar="VARIABLE", help="The environment variable with the key."
)
@max_cost
@max_calls
@click.option(
    "--calls",
    type=click.IntRange(1),
    default=4,
    metavar="N",
    help="Calls that go out at once; by default 4.",
)
@pace
@click.option("--dry-run", is_flag=True, help="Say what would be sent and what it costs.")
@of_name
@as_json
@handled
def sample(  # noqa: PLR0913, PLR0917 - an option each
    notebook: Path, call: str, count: int, check: str, settings: Words, message: str | None,
    of: str, key: str, name: str | None, max_cost: Decimal | None, max_calls: int | None,
    pace: str | None, *, calls: int, dry_run: bool, as_json: bool,
) -> int:  # fmt: skip
    """Send a recorded CALL live several times; compare the outcomes.

    Each answer is paid once and kept in a take of its own; the notebook then runs on it offline. A
    later run with the same request counts the answers that are there, and pays for the rest. The
    table says how often each outcome came, with its 95 % interval. What it costs is said first.
    Exit code 1 where there are fewer answers than wanted.
    """
    from tape_jupyter.experiments.check import Check
    from tape_jupyter.experiments.sampling import sample as door
    from tape_jupyter.experiments.sampling.budget import Budget

    if notebook.suffix != ".ipynb":
        raise TapeUsageError(
            f"{notebook}: the notebook runs on with each answer: name a notebook (.ipynb)"
        )
    request = door.Ask(notebook, call, settings, message, of, key, name, pace or "")
    if dry_run:
        planned = request.plan()
        summary = {"sent": False, "calls": count, "cost of one": planned.cost}
        lines = [*planned.lines(), f"{format_times(count)}; nothing was sent"]
        click.echo(json_text(summary) if as_json else "\n".join(lines))
        return 0

    def tell_before(planned: ResendPlan, missing: int) -> None:
        click.echo("\n".join(planned.lines()), err=True)
        click.echo(
            f"  {missing} of {count} answers must still be asked for, at that price each", err=True
        )

    budget = Budget(max_cost, max_calls)
    with StepProgress(quiet=as_json) as steps:
        done = door.sample_answers(
            request, count, Check.parse(check, notebook.parent), budget,
            calls=calls, before=tell_before, on_progress=steps.show_step,
        )  # fmt: skip
    click.echo(json_text(done.record()) if as_json else done.text())
    return int(not done.is_complete)


COMMANDS = (sample,)
