"""Doors room: the commands about bundles: export, verify, open. They parse, call one function of the bundle's modules,
print, and choose the exit code: 0 all is well, 1 something differs, leaks or is wrong, 2 bad usage or input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tape_jupyter.cli_words import EXAMPLES, Steps, as_json, handled, json_text, notebook, pace
from tape_jupyter.errors import NotExported

VERDICT = {"ok": ("green", "ok"), "wrong": ("red", "wrong"), "note": ("yellow", "note"), "said": ("bright_black", "-")}
place = click.argument("place", metavar="FILE|FOLDER|URL")


@click.command(
    epilog=f"{EXAMPLES}  tape export churn.ipynb                  churn.tape.zip, beside the notebook\n"
    "  tape export churn.ipynb s3://runs/churn.tape.zip\n"
    "  tape export churn.ipynb --exclude 'data/*'   leave files out; the bundle says which\n"
    "  tape export churn.ipynb --test               also test_churn.py, which pins the run; edit it, it is yours"
)
@notebook
@click.argument("path", required=False, metavar="[PATH]")
@click.option("--redact", is_flag=True, help="Mask the secrets that are found, everywhere alike, and prove it again.")
@click.option("--allow-differences", is_flag=True, help="Export a session that does not repeat itself, marked so.")
@click.option("--include", multiple=True, metavar="GLOB", help="Also these files of the notebook's folder.")
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="Not these files; the bundle says that they are missing."
)
@click.option("--no-index", is_flag=True, help="Ask no package index: the list of packages has no hashes.")
@click.option(
    "--test", is_flag=False, flag_value="", metavar="[FILE.py]", help="Also write a small test file that pins this run."
)
@click.option(
    "--sign", type=click.Path(path_type=Path), metavar="KEY", help="Sign it with this ssh key, in a file beside it."
)
@pace
@click.option("--progress", is_flag=True, hidden=True, help="Tell the steps on stderr, as lines of JSON.")
@click.option("--python", default="", hidden=True, help="The interpreter of the kernel.")
@as_json
@handled
def export(
    notebook: Path, path: str | None, *, no_index: bool, test: str | None, sign: Path | None, pace: str | None,
    progress: bool, as_json: bool, **said: Any,
) -> int:  # fmt: skip
    """Make one file of a notebook's session, and prove it.

    The saved notebook, its recordings, data, modules and packages become one bundle. Before it is written, the session
    replays in a fresh kernel without network and is compared cell by cell. Exit code 1 where a cell differs or a secret
    was found: then nothing is written.
    """
    from tape_jupyter.bundle import pinned
    from tape_jupyter.bundle.export import Options
    from tape_jupyter.bundle.export import export as make

    options = Options(ask_index=not no_index, key=sign, pace=pace or "", **said)
    pin = None if test is None else pinned.goal(notebook, Path(test) if test else None)
    try:
        with Steps(quiet=as_json, lines=progress) as steps:
            done = make(notebook, path, options, steps.tell)
            if pin is not None:
                steps.tell("pinning the run in a test")
                pinned.write(notebook, pin)
    except NotExported as error:
        click.echo(json_text({"ok": False, "why": error.reason})) if as_json else click.echo(f"tape: {error}", err=True)
        return 1
    if as_json:
        click.echo(json_text({"ok": True, **done.record(), **({"test": str(pin)} if pin is not None else {})}))
    else:
        click.echo("\n".join([*done.lines(), *([f"test: {pin}"] if pin is not None else [])]))
    return 0


@click.command(
    epilog=f"{EXAMPLES}  tape verify churn.tape.zip\n  tape verify churn.tape.zip --signers ~/.ssh/allowed_signers"
)
@place
@click.option("--signature", metavar="FILE", help="The detached signature; FILE.sig by itself.")
@click.option("--signers", type=click.Path(path_type=Path), metavar="FILE", help="Whose signatures count (ssh-keygen).")
@as_json
@handled
def verify(place: str, *, signature: str | None, signers: Path | None, as_json: bool) -> int:
    """Check a bundle: every file against its digest. Nothing in it runs.

    Digests show that it is intact, not who made it; a signature and a file of signers do. Exit code 1 where something
    is wrong.
    """
    from tape_jupyter.bundle import verify

    with Steps(quiet=as_json) as steps:
        verdict = verify.verify(place, signature=signature, signers=signers, tell=steps.tell)
    if as_json:
        click.echo(json_text(verdict.record()))
        return int(not verdict.good)
    click.echo(verdict.place)
    for mark, line in verdict.lines():
        colour, word = VERDICT[mark]
        click.echo(f"  {click.style(f'{word:5}', fg=colour)} {line}")
    click.echo("  Nothing in it was run." if verdict.good else "  Nothing in it was run; do not use it.")
    return int(not verdict.good)


@click.command(
    "open", epilog=f"{EXAMPLES}  tape open churn.tape.zip\n  tape open churn.tape.zip --take angry-customer\n"
    "  tape open churn.tape.zip --lab"
)  # fmt: skip
@place
@click.option("--lab", is_flag=True, help="In JupyterLab: a scratch folder, the bundle's packages, replay mode.")
@click.option("-n", "--name", help="That recording of the notebook, where there are several.")
@click.option("--take", metavar="NAME", help="That take of it.")
@pace
@click.option("--yes", is_flag=True, help="With --lab: its code may run, without being asked.")
@click.option("--here", is_flag=True, help="With --lab: this interpreter's packages, not those of its lock.")
@click.option("--allow-index", is_flag=True, help="With --lab: install from another index that its lock names.")
@as_json
@handled
def open_(  # noqa: PLR0913 - an option each
    place: str, *, lab: bool, name: str | None, take: str | None, pace: str | None, yes: bool, here: bool,
    allow_index: bool, as_json: bool,
) -> int:  # fmt: skip
    """Show a bundle's page in the browser. Nothing in it runs, unless --lab.

    The page is made here, from the bundle's recordings: the one that lies in it is a stranger's. With --json it is
    written to a file, which is named, and no browser is opened.
    """
    from tape_jupyter.bundle import opening

    if lab:
        from tape_jupyter import cli_replay
        from tape_jupyter.bundle.replaying import Wanted

        wanted = Wanted(take or "", "current" if here else "lock", yes, allow_index, pace=pace or "")
        return cli_replay.lab(place, wanted, as_json=as_json)
    with Steps(quiet=as_json) as steps:
        if as_json:
            done = opening.written(place, name, take, steps.tell)
        else:
            done = opening.shown(place, name, take, tell=steps.tell, say=lambda at: click.echo(f"{at}  (Ctrl-C ends)"))
    click.echo(json_text(done.record()) if as_json else "\n".join(done.lines()))
    return 0


COMMANDS = (export, verify, open_)
