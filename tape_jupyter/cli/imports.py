"""The command that reads what other systems recorded.

It parses, calls one function of another door, prints, and chooses the exit code.
"""

from __future__ import annotations

from pathlib import Path

import click

from tape_jupyter.cli.common import EXAMPLES, StepProgress, as_json, handled, json_text, progress
from tape_jupyter.errors import TapeUsageError


@click.command(
    "import",
    epilog=f"{EXAMPLES}  tape import trace.json\n  tape import exports/            every file in it\n"
    "  tape import spans.jsonl --from otlp\n"
    "  tape import trace.json --out trace.ipynb    and a notebook that replays it",
)
@click.argument(
    "places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|FOLDER..."
)
@click.option(
    "--from", "form", default="", metavar="FORMAT", help="Its format, where it is not recognised."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="NB.ipynb",
    help="Also write a notebook that replays it.",
)
@progress
@as_json
@handled
def import_(
    places: tuple[Path, ...], form: str, out: Path | None, *, progress: bool, as_json: bool
) -> int:
    """Make a cassette from another system's trace or recording.

    Traces (OTLP, OpenInference, ...), HTTP recordings (HAR, vcrpy, ...), logs and sessions: their
    format is recognised. Each trace becomes a run, each model, tool or HTTP call a call. What the
    file does not hold is named (missing), and so is what was filled in (assumed). With --out a
    notebook is written beside the cassette: its cells ask as the recorded program did, and the tape
    answers. Nothing is fetched, and no file is overwritten. Exit code 1 where a file of several
    could not be read, or nothing was found.
    """
    from tape_jupyter.cassette import paths
    from tape_jupyter.importers import assemble, recognise, replaying_notebook

    if out is not None and out.suffix != ".ipynb":
        raise TapeUsageError(f"--out {out}: name a notebook, like {out.stem}.ipynb")
    if out is not None:
        replaying_notebook.require_free(out)
    goal = paths.folder(out) / "main.tape.yaml" if out is not None else None
    try:
        with StepProgress(quiet=as_json, lines=progress) as steps:
            done = assemble.import_trace(*places, form=form, cassette=goal, tell=steps.show_step)
    except recognise.UnknownFormat as error:
        if as_json:  # a view's, which has no options
            raise
        raise TapeUsageError(f"{error}. If it is in one of them: --from FORMAT") from error
    if out is not None and done.path is not None:
        left = replaying_notebook.write_replaying_notebook(out, done.path)
    else:
        left = []
    written = str(out) if out is not None and done.path is not None else ""
    if as_json:
        click.echo(
            json_text(
                {**done.record(), **({"notebook": written, "not called": left} if written else {})}
            )
        )
    else:
        click.echo(
            "\n".join(
                [
                    assemble.assembly_text(done),
                    *(f"    not in the notebook: {each}" for each in left),
                    written,
                ]
            ).rstrip()
        )
    return int(done.path is None or any(each.error for each in done.files))


COMMANDS = (import_,)
