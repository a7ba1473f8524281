"""The commands about bundles: export, verify, open. They parse, call one function of the bundle's
modules, print, and choose the exit code: 0 all is well, 1 something differs, leaks or is wrong, 2
bad usage or input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tape_jupyter.cli.common import (
    EXAMPLES,
    StepProgress,
    as_json,
    handled,
    json_text,
    pace,
    progress,
)
from tape_jupyter.errors import NotExported, TapeUsageError

VERDICT = {
    "ok": ("green", "ok"),
    "wrong": ("red", "wrong"),
    "note": ("yellow", "note"),
    "said": ("bright_black", "-"),
}
place = click.argument("place", metavar="FILE|FOLDER|URL")


@click.command(
    epilog=f"{EXAMPLES}  tape export churn.ipynb                  churn.tape.zip, beside the notebook\n"
    "  tape export churn.ipynb s3://runs/churn.tape.zip\n"
    "  tape export churn.ipynb --exclude 'data/*'   leave files out; the bundle says which\n"
    "  tape export churn.ipynb --test               also test_churn.py, which pins the run; edit it, it is yours\n"
    "  tape export churn.ipynb --as otlp            its calls as traces: churn.otlp.json\n"
    "  tape export churn.ipynb --as otlp --endpoint http://localhost:4318/v1/traces"
)
@click.argument("notebook", type=click.Path(path_type=Path), metavar="NB|CASSETTE")
@click.argument("path", required=False, metavar="[PATH]")
@click.option(
    "--redact",
    is_flag=True,
    help="Mask the secrets that are found, everywhere, and check the replay again.",
)
@click.option(
    "--allow-differences",
    is_flag=True,
    help="Export even where cells differ; the bundle says so.",
)
@click.option(
    "--include", multiple=True, metavar="GLOB", help="Also these files of the notebook's folder."
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="GLOB",
    help="Not these files; the bundle says that they are missing.",
)
@click.option(
    "--no-index", is_flag=True, help="Ask no package index: the list of packages has no hashes."
)
@click.option(
    "--test",
    is_flag=False,
    flag_value="",
    metavar="[FILE.py]",
    help="Also write a small pytest file that checks this run.",
)
@click.option(
    "--sign",
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Sign it with this ssh key, in a file beside it.",
)
@click.option(
    "--as",
    "form",
    metavar="FORMAT",
    help="Its calls for another system: otlp, openinference, har, vcr, jsonl or agenttape; no bundle is made.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --as: the file that is written.",
)
@click.option(
    "--endpoint",
    default="",
    metavar="URL",
    help="With --as otlp or openinference: send it there instead.",
)
@pace
@progress
@click.option("--python", default="", hidden=True, help="The interpreter of the kernel.")
@as_json
@handled
def export(  # noqa: PLR0913 - an option each
    notebook: Path, path: str | None, *, no_index: bool, test: str | None, sign: Path | None, pace: str | None,
    form: str | None, out: Path | None, endpoint: str, progress: bool, as_json: bool, **bundle_options: Any,
) -> int:  # fmt: skip
    """Export a session as one file, and check that it replays.

    The saved notebook, its recordings, data, modules and packages become one bundle. Before it is
    written, the session replays in a fresh kernel without network and is compared cell by cell.
    Exit code 1 where a cell differs or a secret was found: then nothing is written.

    With --as FORMAT the recorded calls are written as another system's file, and what that cannot
    hold is listed. No cell runs, and no file is overwritten.
    """
    if form is not None:
        arguments = {
            "PATH": path,
            "--test": test,
            "--sign": sign,
            "--pace": pace,
            "--no-index": no_index,
            **bundle_options,
        }
        return _export_as(notebook, form, out, endpoint, arguments, as_json=as_json)
    if out is not None or endpoint:
        raise TapeUsageError(
            "--out and --endpoint go with --as FORMAT; a bundle's name is the second word: NB PATH"
        )
    from tape_jupyter.bundle.export import Options
    from tape_jupyter.bundle.export import export_bundle as make
    from tape_jupyter.testing import regression_test

    options = Options(ask_index=not no_index, key=sign, pace=pace or "", **bundle_options)
    pin = None
    if test is not None:
        pin = regression_test.regression_test_path(notebook, Path(test) if test else None)
    try:
        with StepProgress(quiet=as_json, lines=progress) as steps:
            done = make(notebook, path, options, steps.show_step)
            if pin is not None:
                steps.show_step("pinning the run in a test")
                regression_test.write_regression_test(notebook, pin)
    except NotExported as error:
        click.echo(json_text({"ok": False, "why": error.reason})) if as_json else click.echo(
            f"tape: {error}", err=True
        )
        return 1
    if as_json:
        click.echo(
            json_text(
                {"ok": True, **done.record(), **({"test": str(pin)} if pin is not None else {})}
            )
        )
    else:
        click.echo("\n".join([*done.lines(), *([f"test: {pin}"] if pin is not None else [])]))
    return 0


def _export_as(
    where: Path,
    form: str,
    out: Path | None,
    endpoint: str,
    arguments: dict[str, Any],
    *,
    as_json: bool,
) -> int:
    """The calls of a notebook or a cassette in another system's format."""
    from tape_jupyter.exporters.exporting import export_calls

    kept = {"python"}  # where the interpreter is: said by programs, with every export
    for name, value in arguments.items():
        if value not in (None, False, (), "") and name not in kept:
            option = (
                name if name == "PATH" or name.startswith("--") else f"--{name.replace('_', '-')}"
            )
            raise TapeUsageError(
                f"{option} is a bundle's: leave it out with --as"
                + (", or say --out FILE" * (option == "PATH"))
            )
    try:
        with StepProgress(quiet=as_json) as steps:
            done = export_calls(
                where, form, out=out, endpoint=endpoint, on_progress=steps.show_step
            )
    except NotExported as error:
        click.echo(json_text({"ok": False, "why": error.reason})) if as_json else click.echo(
            f"tape: {error}", err=True
        )
        return 1
    click.echo(json_text(done.record()) if as_json else "\n".join(done.lines()))
    return 0


@click.command(
    epilog=f"{EXAMPLES}  tape verify churn.tape.zip\n  tape verify churn.tape.zip --signers ~/.ssh/allowed_signers"
)
@place
@click.option("--signature", metavar="FILE", help="The detached signature; by default FILE.sig.")
@click.option(
    "--signers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Accepted signers, as in ssh-keygen's allowed_signers.",
)
@as_json
@handled
def verify(place: str, *, signature: str | None, signers: Path | None, as_json: bool) -> int:
    """Check a bundle: every file against its digest. Nothing in it runs.

    Digests show that it is intact, not who made it; a signature and a file of signers do. Exit code
    1 where something is wrong.
    """
    from tape_jupyter.bundle import verify

    with StepProgress(quiet=as_json) as steps:
        verdict = verify.verify_bundle(
            place, signature=signature, signers=signers, on_progress=steps.show_step
        )
    if as_json:
        click.echo(json_text(verdict.record()))
        return int(not verdict.good)
    click.echo(verdict.place)
    for mark, line in verdict.lines():
        colour, label = VERDICT[mark]
        click.echo(f"  {click.style(f'{label:5}', fg=colour)} {line}")
    click.echo(
        "  Nothing in it was run." if verdict.good else "  Nothing in it was run; do not use it."
    )
    return int(not verdict.good)


@click.command(
    "open", epilog=f"{EXAMPLES}  tape open churn.tape.zip\n  tape open churn.tape.zip --take angry-customer\n"
    "  tape open churn.tape.zip --lab"
)  # fmt: skip
@place
@click.option(
    "--lab",
    is_flag=True,
    help="In JupyterLab: a scratch folder, the bundle's packages, replay mode.",
)
@click.option("-n", "--name", help="Which recording of the notebook, if it has several.")
@click.option("--take", metavar="NAME", help="Which take of it.")
@pace
@click.option("--yes", is_flag=True, help="With --lab: run its code without asking.")
@click.option(
    "--here",
    is_flag=True,
    help="With --lab: use this interpreter's packages, not those of its lock.",
)
@click.option(
    "--allow-index",
    is_flag=True,
    help="With --lab: install from another index that its lock names.",
)
@click.option(
    "--allow-build",
    is_flag=True,
    help="With --lab: build packages that have no wheel. Their code runs, without network.",
)
@as_json
@handled
def open_(  # noqa: PLR0913 - an option each
    place: str, *, lab: bool, name: str | None, take: str | None, pace: str | None, yes: bool, here: bool,
    allow_index: bool, allow_build: bool, as_json: bool,
) -> int:  # fmt: skip
    """Show a bundle's page in the browser. Nothing in it runs, unless --lab.

    The page is made here, from the bundle's recordings: the one that lies in it is a stranger's.
    With --json it is written to a file, which is named, and no browser is opened.
    """
    from tape_jupyter.bundle import open as bundle_open

    if lab:
        from tape_jupyter.bundle.replay import ReplayRequest
        from tape_jupyter.cli import replay_bundle

        replay_options = ReplayRequest(
            take or "", "current" if here else "lock", yes, allow_index, pace=pace or "", allow_build=allow_build
        )  # fmt: skip
        return replay_bundle.lab(place, replay_options, as_json=as_json)
    with StepProgress(quiet=as_json) as steps:
        if as_json:
            done = bundle_open.write_page_file(place, name, take, steps.show_step)
        else:
            done = bundle_open.show_page(
                place,
                name,
                take,
                on_progress=steps.show_step,
                on_address=lambda at: click.echo(f"{at}  (Ctrl-C ends)"),
            )
    click.echo(json_text(done.record()) if as_json else "\n".join(done.lines()))
    return 0


COMMANDS = (export, verify, open_)
