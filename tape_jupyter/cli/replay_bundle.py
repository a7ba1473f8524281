"""What runs a bundle, `tape replay FILE` and `tape open FILE --lab`: asks whether it may, tells how
it gets on, and writes the reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tape_jupyter.cli.common import Progress, json_text
from tape_jupyter.errors import TapeUsageError

if TYPE_CHECKING:
    from tape_jupyter.bundle.replay import BundleRun, ReplayRequest

ELSEWHERE = "it is for notebooks; of a bundle: tape open FILE --lab, and %tape there"


def is_bundle(place: str) -> bool:
    """Whether the words of `tape replay` are about a bundle: a zip, a folder or a URL, not a
    notebook.
    """
    from tape_jupyter.bundle.archive import locations

    return locations.is_url(place) or place.lower().endswith(".zip") or Path(place).is_dir()


def replay(
    place: str, replay_options: ReplayRequest, page: Path | None, junit: Path | None, *, as_json: bool
) -> int:  # fmt: skip
    """Replay a bundle; gives the exit code."""
    from tape_jupyter.bundle import replay as bundle_replay
    from tape_jupyter.bundle import report, trust

    for path, kind in ((page, "html"), (junit, "xml")):
        if path is not None:
            report.report_path(path, kind)
    with Progress(quiet=as_json, first="opening the bundle") as progress:
        paused_prompt = None if (prompt := trust.terminal()) is None else progress.pausing(prompt)
        listener = bundle_replay.BundleListener(
            progress.show_step,
            progress.starting,
            lambda cell: progress.print_cell(cell.build_cell_run()),
            paused_prompt,
        )
        run = bundle_replay.replay_bundle(place, replay_options, listener)
    if page is not None:
        report.write_report(page, report.report_html(run))
    if junit is not None:
        report.write_report(junit, report.report_junit(run))
    click.echo(json_text(run.record()) if as_json else "\n".join(_yield_closing(run, page)))
    return 0 if run.good else 1


def lab(place: str, replay_options: ReplayRequest, *, as_json: bool) -> int:
    """`tape open FILE --lab`; with --json it is laid out and named, and JupyterLab is not started."""
    from tape_jupyter.bundle import jupyterlab as lab
    from tape_jupyter.bundle import replay as bundle_replay
    from tape_jupyter.bundle import trust

    with Progress(quiet=as_json, first="opening the bundle") as progress:
        paused_prompt = None if (prompt := trust.terminal()) is None else progress.pausing(prompt)
        unpacked = lab.unpack_bundle(
            place,
            replay_options,
            bundle_replay.BundleListener(progress.show_step, answer=paused_prompt),
        )
    if as_json:
        click.echo(json_text(unpacked.record()))
        return 0
    click.echo("\n".join(unpacked.lines()))
    return lab.run_lab(unpacked)


def _yield_closing(run: BundleRun, page: Path | None) -> Iterator[str]:
    yield from (
        f"! {each}" for each in (*run.notes, *(f"not as recorded: {each}" for each in run.drift))
    )
    yield f"guard: {run.guard}"
    yield run.closing() + (f" (take {run.take})" if run.take else "")
    if page is not None:
        yield f"report: {page}"


def only(place: str, *, bundle: bool, **options: object) -> None:
    """Raises TapeUsageError for an option that is not for this kind of place."""
    for name, value in options.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise TapeUsageError(
                f"{option} {place}: {ELSEWHERE if bundle else 'it is for a bundle (tape export)'}"
            )
