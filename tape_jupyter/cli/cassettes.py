"""The commands about cassettes: what they hold, how they differ, what is changed in them.

Each parses, calls one function of another door, prints, and chooses the exit code.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tape_jupyter.cli.common import (
    EXAMPLES,
    Progress,
    StepProgress,
    Words,
    as_json,
    handled,
    json_text,
    of_name,
    opened,
)

if TYPE_CHECKING:
    from tape_jupyter.cassette.cassette import Cassette

FAULTS = ("rate_limit", "overloaded", "server_error", "reset", "timeout", "truncated")
where = click.argument("where", type=click.Path(path_type=Path), metavar="CASSETTE|NB")


@click.command(
    epilog=f"{EXAMPLES}  tape show churn.ipynb\n  tape show churn.tapes/main.tape.yaml 78a670b1\n"
    "  tape show churn.ipynb --html              churn.tape.html: the viewer, in one file"
)
@where
@click.argument("call", required=False)
@of_name
@click.option(
    "--html",
    is_flag=False,
    flag_value="",
    metavar="[OUT.html]",
    help="Write one self-contained HTML page.",
)
@as_json
@handled
def show(
    where: Path, call: str | None, name: str | None, html: str | None, *, as_json: bool
) -> None:
    """Show the runs, one CALL in full, or all of it as a page."""
    from tape_jupyter.reports import listing

    tapes = [opened(path) for path in listing.list_cassettes(where, name)]
    if html is not None:
        _write_pages(tapes, Path(html) if html else None, as_json=as_json)
    elif call is not None:
        entry = listing.find_call_record(tapes, call)
        click.echo(
            json_text(listing.call_record(entry))
            if as_json
            else "\n".join(listing.call_text(entry))
        )
    elif as_json:
        click.echo(
            json_text(
                [{"cassette": str(tape.path), "runs": listing.run_records(tape)} for tape in tapes]
            )
        )
    else:
        click.echo("\n".join(line for tape in tapes for line in listing.runs_text(tape)))


def _write_pages(tapes: list[Cassette], out: Path | None, *, as_json: bool) -> None:
    """The page of each cassette; `out` names that of the first, which is then the only one."""
    from tape_jupyter.reports import page

    with Progress(quiet=as_json, first="reading the cassette") as progress:
        written = [
            page.write_page(tape_, out, progress.spans)
            for tape_ in (tapes[:1] if out is not None else tapes)
        ]
    if as_json:
        click.echo(json_text([{"page": str(path), "notes": notes} for path, notes in written]))
        return
    for path, notes in written:
        click.echo("\n".join([str(path), *(f"  ! {note}" for note in notes)]))


@click.command(
    epilog=f"{EXAMPLES}  tape calls churn.ipynb\n  tape calls churn.ipynb --json | jq '.[].cost'"
)
@where
@of_name
@as_json
@handled
def calls(where: Path, name: str | None, *, as_json: bool) -> None:
    """List calls: tokens, cost at list price, time."""
    from tape_jupyter.reports import listing

    tapes = [opened(path) for path in listing.list_cassettes(where, name)]
    if as_json:
        click.echo(
            json_text(
                [
                    {"cassette": str(tape.path), **call}
                    for tape in tapes
                    for call in listing.call_records(tape)
                ]
            )
        )
        return
    for tape_ in tapes:
        if len(tapes) > 1:
            click.echo(f"{tape_.path}:")
        click.echo(listing.calls_text(tape_))


@click.command(
    epilog=f"{EXAMPLES}  tape gaps churn.ipynb          what a replay lacks, and the line that would keep it\n"
    "  tape gaps notebooks/           all below a folder: which runs cannot replay fully, and what they have in common"
)
@click.argument("where", type=click.Path(path_type=Path), metavar="NB|CASSETTE|FOLDER")
@of_name
@click.option(
    "--all", "whole", is_flag=True, help="Every field of every run, also what is recorded."
)
@as_json
@handled
def gaps(where: Path, name: str | None, *, whole: bool, as_json: bool) -> int:
    """Say what recordings lack for a full replay."""
    from tape_jupyter.reports import gaps as reports_gaps
    from tape_jupyter.reports import gaps_html

    with StepProgress(quiet=as_json) as steps:
        report = reports_gaps.report_gaps(
            reports_gaps.cassettes_below(where, name), steps.show_step
        )
    click.echo(json_text(report.record())) if as_json else gaps_html.print_it(report, full=whole)
    return 2 if report.broken else 0


@click.command(
    epilog=f"{EXAMPLES}  tape prune churn.ipynb --dry-run\n  tape prune churn.ipynb\n"
    "  tape prune churn.ipynb --back-to r-5f2c81d0    replay that run again"
)
@where
@of_name
@click.option("--dry-run", is_flag=True, help="Only list what would be dropped.")
@click.option(
    "--back-to",
    metavar="RUN",
    default="",
    help="Drop what replaced this run instead: it is replayed again.",
)
@as_json
@handled
def prune(where: Path, name: str | None, *, dry_run: bool, back_to: str, as_json: bool) -> None:
    """Drop recordings that newer ones replaced, or go back to one.

    Never what a replay can still use: of each cell the newest recording stays, what adds to it, and
    what it refers to.
    """
    from dataclasses import asdict

    from tape_jupyter.cassette import prune
    from tape_jupyter.reports import listing

    with StepProgress(quiet=as_json) as steps:
        cassettes = listing.list_cassettes(where, name)
        if back_to:
            cassettes = [prune.find_cassette_of_run(cassettes, back_to)]
        done = [
            (
                path,
                prune.prune_cassette(
                    path, dry=dry_run, back_to=back_to, on_progress=steps.show_step
                ),
            )
            for path in cassettes
        ]
    if as_json:
        click.echo(json_text([{"cassette": str(path), **asdict(each)} for path, each in done]))
        return
    for path, each in done:
        click.echo(each.text(path, dry=dry_run))


@click.command(
    epilog=f"{EXAMPLES}  tape override churn.ipynb 78a670b1 --text angry --take angry-customer\n"
    '  tape override churn.ipynb 78a670b1 --message \'{"stop_reason": "max_tokens"}\'\n'
    "  tape override churn.ipynb 78a670b1 --fault rate_limit:retry_after=5\n"
    '  tape override churn.ipynb 9b1c55aa --value \'{"status": "lost"}\''
)
@where
@click.argument("call")
@click.option("--text", help="Replace the reply's first text.")
@click.option("--message", metavar="JSON", help="What to change in the assembled message.")
@click.option(
    "--fault",
    metavar="NAME[:OPTION=VALUE,...]",
    help=f"One of {', '.join(FAULTS)}; a function has error.",
)
@click.option("--value", metavar="JSON", help="What a tool returns.")
@click.option("--reply", metavar="BODY", help="The whole body of the reply.")
@click.option("--status", type=int, help="With --reply: the HTTP status.")
@click.option(
    "--take", metavar="NAME", help="The take that it is written to; by default a new one."
)
@click.option("--of", metavar="TAKE", help="Change the reply as it is in that take.")
@of_name
@as_json
@handled
def override(where: Path, name: str | None, *, as_json: bool, **arguments: Any) -> None:
    """Replace the reply of a recorded CALL, in a take. The recording stays as it is."""
    from tape_jupyter.commands import override as commands_override
    from tape_jupyter.reports import listing

    root = commands_override.holding(listing.list_cassettes(where, name), arguments)
    done = commands_override.write_override(root, arguments)
    click.echo(json_text(done.record()) if as_json else done.text())


@click.command(
    "takes",
    epilog=f"{EXAMPLES}  tape takes churn.ipynb\n  tape takes churn.ipynb rename live angry-customer\n"
    "  tape takes churn.ipynb diff main angry-customer\n  tape takes churn.ipynb discard angry-customer\n"
    "  tape takes churn.ipynb default angry-customer    it is replayed when no take is named\n"
    "  tape takes churn.ipynb promote resend            an answer of tape resend, in the call's place\n"
    "  tape takes churn.ipynb undo angry-customer       without its last change; or back, if it was put aside",
)
@where
@click.argument(
    "words", nargs=-1, metavar="[rename A B|default A|undo A|keep A|discard A|promote A|diff A B]"
)
@of_name
@as_json
@handled
def takes_(where: Path, words: Words, name: str | None, *, as_json: bool) -> int:
    """List takes; rename, choose, undo, put aside or compare them."""
    from tape_jupyter.commands import takes
    from tape_jupyter.reports import listing

    cassettes = listing.list_cassettes(where, name)
    for path in cassettes:
        opened(path)  # what cannot be read has no takes that could be played
    if words:
        message, differences = takes.act(takes.choose_cassette(cassettes, words), words)
        if as_json:
            click.echo(
                json_text(
                    [each.record() for each in differences]
                    if words[0] == "diff"
                    else {"done": message}
                )
            )
        else:
            click.echo(message)
        return int(bool(differences))
    if as_json:
        click.echo(
            json_text(
                [{"cassette": str(path), "takes": takes.list_takes(path)} for path in cassettes]
            )
        )
        return 0
    for path in cassettes:
        if len(cassettes) > 1:
            click.echo(f"{path}:")
        click.echo(takes.takes_text(path))
    return 0


@click.command(
    epilog=f"{EXAMPLES}  tape diff churn.ipynb angry-customer    the notebook's main cassette and a take of it\n"
    "  tape diff old.tape.yaml new.tape.yaml"
)
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b")
@of_name
@as_json
@handled
def diff(a: Path, b: str, name: str | None, *, as_json: bool) -> int:
    """Compare two cassettes, call by call; B may be a take of A. Exit code 1 where they differ."""
    from tape_jupyter.commands import takes
    from tape_jupyter.reports import diff as differences
    from tape_jupyter.reports import listing

    path = listing.list_cassettes(a, name)[0]
    other_path = listing.list_cassettes(Path(b), name)[0] if Path(b).exists() else None
    with StepProgress(quiet=as_json) as steps:
        steps.show_step("reading both")
        one, other = opened(path), opened(other_path) if other_path else takes.resolve_word(path, b)
        if as_json:
            call_differences = differences.diff(one, other)
            text = json_text(takes.difference_records(one, other, call_differences))
        else:
            text, call_differences = takes.compare_takes(one, other, steps.show_step)
    click.echo(text)
    return int(bool(call_differences))


@click.command(
    epilog=f"{EXAMPLES}  tape merge main.tape.yaml theirs.tape.yaml -o joined.tape.yaml\n"
    "  git show feature:churn.tapes/main.tape.yaml > theirs.tape.yaml    the other branch's recording\n"
    "  tape merge churn.ipynb theirs.tape.yaml                           main-merged, beside churn.ipynb's\n"
    "  tape merge churn.ipynb theirs.tape.yaml --prefer b                where both edited a reply, theirs"
)
@click.argument("a", type=click.Path(path_type=Path), metavar="A")
@click.argument("b", type=click.Path(path_type=Path), metavar="B")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="NEW.tape.yaml",
    help="Write the result to this file.",
)
@click.option(
    "--prefer",
    type=click.Choice(["a", "b"]),
    help="Whose record wins where both have it and they differ.",
)
@of_name
@as_json
@handled
def merge(
    a: Path,
    b: Path,
    output: Path | None,
    prefer: Literal["a", "b"] | None,
    name: str | None,
    *,
    as_json: bool,
) -> int:
    """Join two cassettes that diverged.

    Two kernels went on with one recording, or two git branches. Every record of both goes into a
    new file, once, the older first. A and B stay as they are, and no file is overwritten. Exit code
    1, and nothing is written, where a record is not the same in both.
    """
    from tape_jupyter.cassette import merge as cassette_merge
    from tape_jupyter.reports import listing

    one, two = (listing.list_cassettes(each, name)[0] for each in (a, b))
    with StepProgress(quiet=as_json) as steps:
        done = cassette_merge.merge_cassettes(one, two, output, prefer or "", steps.show_step)
    click.echo(json_text(done.record()) if as_json else cassette_merge.merge_text(done, one, two))
    return int(done.path is None)


READS = (show, calls, gaps)
CHANGES = (prune, override, takes_, diff, merge)
