"""The command that gives recorded calls as rows, and makes a take of rows.

It parses, calls one function of another door, prints, and chooses the exit code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from tape_jupyter.cli.common import EXAMPLES, StepProgress, as_json, handled, json_text, of_name
from tape_jupyter.errors import TapeUsageError


@click.command(
    epilog=f"{EXAMPLES}  tape rows churn.ipynb                         a line of JSON a call\n"
    "  tape rows notebooks/ --of model --out calls.jsonl\n"
    "  tape rows churn.ipynb --as evals --out churn.jsonl    samples of OpenAI's Evals\n"
    "  tape rows churn.ipynb --read churn.jsonl              what differs, as a take"
)
@click.argument("where", type=click.Path(path_type=Path), metavar="NB|CASSETTE|FOLDER")
@click.option(
    "--of", type=click.Choice(["call", "model", "tool", "run"]), default="call", help="What a row is of."
)  # fmt: skip
@click.option(
    "--as", "form", type=click.Choice(["jsonl", "evals"]), default="jsonl",
    help="JSON lines, or samples of OpenAI's Evals (model calls).",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write them there.")
@click.option(
    "--read", "source", type=click.Path(path_type=Path), metavar="FILE",
    help="Make a take of the rows that differ from the recording.",
)  # fmt: skip
@click.option(
    "--take", default="", metavar="NAME", help="Rows of that take; with --read: its name."
)
@of_name
@as_json
@handled
def rows(
    where: Path, of: Literal["call", "model", "tool", "run"], form: str, out: Path | None,
    source: Path | None, take: str, name: str | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Write a row per call or run, or read rows back as a take.

    A row has input, output, expected, tags, tokens, cost and time. `expected` is what a person put
    in the reply's place in the take that is read (--take). Read back, a row's `expected` (Evals:
    `ideal`), else its `output`, becomes an override where it is not what was recorded.
    """
    from tape_jupyter.exporters import rows as door

    if source is not None:
        if out is not None or of != "call":
            raise TapeUsageError("--read makes a take: it goes with neither --out nor --of")
        done = door.read_back(where, source, take, name)
        click.echo(json_text(done.record()) if as_json else done.text())
        return
    with StepProgress(quiet=as_json or out is None) as steps:
        records = door.rows(where, of, take, name, steps.show_step)
        written = (
            door.write_rows(where, out, records, form, steps.show_step) if out is not None else None
        )
    if written is not None:
        click.echo(json_text(written.record()) if as_json else written.text())
        return
    lines = door.json_lines(records, form)
    click.echo(f"[{','.join(lines)}]" if as_json else "\n".join(lines), nl=as_json or bool(lines))


COMMANDS = (rows,)
