"""`tape record`, `tape replay` and `tape rerun`: a notebook is run whole, in a fresh kernel."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.errors import TapeUsageError

if TYPE_CHECKING:
    from tape_jupyter.headless.order_search import Try
    from tape_jupyter.headless.run import CellRun

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


@click.command(
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


@click.command(
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
    from tape_jupyter.cli import replay_bundle

    if replay_bundle.is_bundle(place):
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
    options = _build_options(
        "replay", take, kernel_name, live=live, freeze=freeze, stub=stub, on_divergence=on_divergence,
        pace=pace, no_effects=no_effects,
    )  # fmt: skip
    replayed = NotebookReplay(
        Path(place), options, take, timeout, strict=strict, writes=bool(live or stub or on_divergence),
        as_json=as_json,
    )  # fmt: skip
    if replayed.finds_edited_replies():
        return 1
    _say_unknown_names("replay", replayed.notebook, live=live, freeze=freeze, stub=stub)
    replayed.require_take()
    return replayed.run() if shuffle is None else replayed.search_orders(shuffle, tries)


class NotebookReplay:
    """A notebook that is to be replayed as it stands, with what its kernel is told. Raises
    TapeUsageError where there is no notebook, or no recording of it.

    `writes`: what runs live is written to a take.
    """

    def __init__(
        self, notebook: Path, options: dict[str, str], take: str | None, timeout: float | None, strict: bool,
        *, writes: bool, as_json: bool,
    ) -> None:  # fmt: skip
        from tape_jupyter.headless import run as headless_run
        from tape_jupyter.reports import listing

        headless_run.read_notebook(notebook)
        self.cassettes = listing.list_cassettes(notebook)
        listing.require_main_cassette(notebook)
        self.notebook, self.options, self.take, self.timeout = notebook, options, take, timeout
        self.strict, self.writes, self.as_json = strict, writes, as_json

    def finds_edited_replies(self) -> bool:
        """Whether --strict refuses replies that were edited by hand; then it says which."""
        if not self.strict:
            return False
        edited = [entry.id for path in self.cassettes for entry in opened(path).edited()]
        if edited:
            click.echo(
                f"tape: --strict: edited by hand: {', '.join(edited)}. Nothing was run", err=True
            )
        return bool(edited)

    def require_take(self) -> None:
        """Raises TapeUsageError where the take that is to be played is not there."""
        from tape_jupyter.cassette import paths
        from tape_jupyter.cassette.takes import files

        if not self.take or self.writes:
            return
        named = {
            name for path in self.cassettes for name in (paths.stem(path), *files.take_names(path))
        }
        if self.take not in named:
            files.require_take(self.cassettes[0], self.take)

    def search_orders(self, seed: int, tries: int) -> int:
        """Look for an order of replies that breaks it; gives the exit code."""
        from tape_jupyter.headless import order_search

        if "TAPE_OPTIONS" in self.options:
            raise TapeUsageError(
                "--shuffle plays the cassettes themselves: leave out --take, --live, --freeze, --stub, --pace, "
                "--no-effects and --on-divergence"
            )
        listener = _build_try_listener(quiet=self.as_json)
        done = order_search.search_orders(
            self.notebook, seed, tries, listener, self.timeout, self.options
        )
        if self.as_json:
            click.echo(json.dumps([each.record() for each in done], indent=1))
        else:
            click.echo(order_search.verdict(self.notebook, done))
        return int(any(each.broke or each.differs for each in done))

    def run(self) -> int:
        """Replay it once and tell what came out; gives the exit code."""
        from tape_jupyter.headless import run as headless_run
        from tape_jupyter.reports.untaped_cells import describe_untaped_cells

        options = dict(self.options)
        if self.strict:
            options["TAPE_OPTIONS"] = f"{options.get('TAPE_OPTIONS', '')} --strict".strip()
        before = self._list_take_files()
        notes: list[str] = []
        with Progress(quiet=self.as_json) as progress:
            runs = headless_run.replay_notebook(
                self.notebook, progress.starting, progress.print_cell, self.timeout, options, notes.append
            )  # fmt: skip
        notes += describe_untaped_cells(self.notebook)
        self._say_what_came_out(runs, notes, sorted(self._list_take_files() - before))
        return _compute_exit_code(runs)

    def _list_take_files(self) -> set[Path]:
        from tape_jupyter.cassette.takes import files

        return {take_file for path in self.cassettes for take_file in files.list_take_files(path)}

    def _say_what_came_out(self, runs: list[CellRun], notes: list[str], takes: list[Path]) -> None:
        from tape_jupyter.cassette.takes import files

        if self.as_json:
            report = _build_report(self.notebook, "replay", runs, notes)
            if self.writes:
                report["takes"] = list(map(str, takes))
            click.echo(json.dumps(report, indent=1))
            return
        click.echo(_format_closing(runs, "the same as saved", notes))
        for path in takes:
            name = files.take_name(path)
            click.echo(f"take: {name} ({path}); to play it: tape replay --take {name}")


@click.command(
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


COMMANDS = (record, replay, rerun)
