"""The command that finds the package or the commit that made a run come out otherwise.

It parses, calls one function of another door, prints, and chooses the exit code.
"""

from __future__ import annotations

from pathlib import Path

import click

from tape_jupyter.cli.common import (
    EXAMPLES,
    StepProgress,
    as_json,
    handled,
    json_text,
    notebook,
    pace,
)
from tape_jupyter.errors import TapeUsageError


@click.command(
    epilog=f"{EXAMPLES}  tape bisect churn.ipynb --packages old.lock new.lock --check cell:4\n"
    "  tape bisect churn.ipynb --packages 2026-09-01 2026-11-01 --requirements requirements.in\n"
    "  tape bisect churn.ipynb --git v1.2 HEAD --check 'left > 0'\n"
    "  git bisect run tape bisect churn.ipynb --step --check 'left > 0'    0 good, 1 bad, 125 neither"
)
@notebook
@click.option(
    "--packages", nargs=2, metavar="GOOD BAD", help="Two locks (name==version lines, pylock.toml, uv.lock), or dates."
)  # fmt: skip
@click.option("--git", "revisions", nargs=2, metavar="GOOD BAD", help="Two revisions.")
@click.option("--step", is_flag=True, help="Only this checkout: for git bisect run.")
@click.option(
    "--check", default="", metavar="EXPR",
    help="What good is: Python over variables and `outputs`; cell:N; output:N. Else: no cell raises.",
)  # fmt: skip
@click.option(
    "--requirements", type=click.Path(path_type=Path), metavar="FILE", help="With dates: what is installed."
)  # fmt: skip
@click.option(
    "--lock", default="", metavar="FILE", help="With --git, --step: with the packages of this lock."
)
@click.option(
    "--recording", type=click.Path(path_type=Path), metavar="FOLDER",
    help="With --step: this .tapes folder answers, whatever the checkout has.",
)  # fmt: skip
@pace
@as_json
@handled
def bisect(  # noqa: PLR0913 - an option each
    notebook: Path, packages: tuple[str, str] | None, revisions: tuple[str, str] | None, check: str,
    requirements: Path | None, lock: str, recording: Path | None, pace: str | None, *, step: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Find the package or the commit that makes a recorded run fail.

    Each trial replays the notebook offline in a fresh kernel. --packages: with environments of
    GOOD's and BAD's packages, mixed, to the fewest that matter; they are kept and made once. --git:
    with the code of commits between, in a worktree of its own, on the recording that is there now.
    """
    from tape_jupyter.experiments.bisecting import packages as of_packages
    from tape_jupyter.experiments.bisecting import revisions as of_revisions
    from tape_jupyter.experiments.check import Check

    if sum(map(bool, (packages, revisions, step))) != 1:
        raise TapeUsageError("say one of --packages GOOD BAD, --git GOOD BAD and --step")
    parsed_check = Check.parse(check)
    if step:
        run = of_revisions.try_here(
            notebook, parsed_check, Path(lock) if lock else None, recording, pace=pace or ""
        )
        click.echo(json_text(run.record()) if as_json else f"{run.verdict} {run.why}".rstrip())
        return of_revisions.exit_code(run)
    with StepProgress(quiet=as_json) as steps:
        if packages:
            result: of_packages.GuiltyPackages | of_revisions.GuiltyCommit = (
                of_packages.bisect_packages(
                    notebook,
                    *packages,
                    parsed_check,
                    requirements,
                    on_progress=steps.show_step,
                    pace=pace or "",
                )
            )
        else:
            assert revisions is not None
            result = of_revisions.bisect_revisions(
                notebook, *revisions, parsed_check, lock, steps.show_step, pace or ""
            )
    click.echo(json_text(result.record()) if as_json else result.text())
    return 0


COMMANDS = (bisect,)
