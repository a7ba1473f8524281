"""Doors room: the command that reads what other systems recorded.

It parses, calls one function of another door, prints, and chooses the exit code.
"""

from __future__ import annotations

from pathlib import Path

import click

from tape_jupyter.cli_words import EXAMPLES, Steps, as_json, handled, json_text
from tape_jupyter.errors import TapeUsageError


@click.command(
    "import",
    epilog=f"{EXAMPLES}  tape import trace.json\n  tape import exports/            every file in it\n"
    "  tape import spans.jsonl --from otlp",
)
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|FOLDER...")
@click.option("--from", "form", default="", metavar="FORMAT", help="Its format, where it is not recognised.")
@click.option("--out", type=click.Path(path_type=Path), metavar="NB.ipynb", help="The notebook it is to lie beside.")
@as_json
@handled
def import_(places: tuple[Path, ...], form: str, out: Path | None, *, as_json: bool) -> int:
    """Make a cassette of what another system recorded.

    Traces (OTLP, OpenInference, ...), HTTP recordings (HAR, vcrpy, ...), logs and sessions: their format is recognised.
    Each trace becomes a run, each model, tool or HTTP call a call. What the file does not hold is named (missing), and
    so is what was filled in (assumed). Nothing is fetched, and no file is overwritten. Exit code 1 where a file of
    several could not be read.
    """
    from tape_jupyter.importers import assemble
    from tape_jupyter.notebook import paths

    if out is not None and out.suffix != ".ipynb":
        raise TapeUsageError(f"--out {out}: name a notebook, like {out.stem}.ipynb")
    goal = paths.folder(out) / "main.tape.yaml" if out is not None else None
    with Steps(quiet=as_json) as steps:
        done = assemble.import_trace(*places, form=form, cassette=goal, tell=steps.tell)
    click.echo(json_text(done.record()) if as_json else assemble.text(done))
    return int(any(each.error for each in done.files))


COMMANDS = (import_,)
