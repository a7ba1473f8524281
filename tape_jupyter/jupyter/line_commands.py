"""What stands behind `%tape WORD`. Imported with the first word that is asked for: most cells ask
nothing.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tape_jupyter.cassette import adoption, paths, prune
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files
from tape_jupyter.commands import override
from tape_jupyter.commands import takes as commands_takes
from tape_jupyter.core.plain_text import did_you_mean
from tape_jupyter.errors import BundleError, CassetteError, NotebookUnknown, TapeUsageError
from tape_jupyter.jupyter import export, help_page
from tape_jupyter.jupyter.long_command import LongCommand
from tape_jupyter.jupyter.rerun import command as rerun_command
from tape_jupyter.reports import gaps, gaps_html, listing
from tape_jupyter.reports.cell_summary import MARK
from tape_jupyter.session.options import (
    HELP,
    LINE_MODES,
    LINE_OPTIONS,
    SESSION_MODES,
    LineParser,
    asks_for_help,
    split_words,
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from tape_jupyter.jupyter.cell_runner import CellRunner


class LineCommands:
    """Answers for one shell; `cells` holds its hooks."""

    def __init__(self, shell: InteractiveShell, cells: CellRunner) -> None:
        self.shell, self.cells = shell, cells

    def answer(self, word: str, rest: str) -> Any:
        """What a magic gives: `%tape view` a widget, `%tape frame` a frame, the others nothing."""
        if asks_for_help(rest) and word in (*SESSION_MODES, *self.words):
            return print_answer(help_page.word_help(word))
        if word in help_page.TERMINAL:
            raise TapeUsageError(
                f"%tape {word} is typed in a terminal: tape {word} (in a cell: !tape {word}); "
                f"tape {word} --help says how"
            )
        if word in LINE_MODES:
            raise TapeUsageError(f"%tape {word} is of one cell: %%tape {word}, on its first line")
        if word not in self.words:
            known = (*SESSION_MODES, *self.words)
            raise TapeUsageError(
                f"%tape {word[:80]!r} is unknown{did_you_mean(word, known) or '.'} {HELP}"
            )
        return self.words[word](self, rest)

    def override_call(self, line: str, body: str = "") -> None:
        """The reply of a call is another one from now on: `line` says of which, `body` what."""
        parsed = override.parse_override(line)
        root = override.holding(paths.cassettes_beside(self._find_recorded_cassette()), parsed)
        print_answer(override.write_override(root, parsed, body.rstrip("\n")).text())

    def _print_help(self, _: str) -> None:
        print_answer(help_page.help_text())

    def _print_status(self, _: str) -> None:
        print_answer(status(self.cells))

    def _print_calls(self, name: str) -> None:
        print_answer(listing.calls_text(self._open_cassette(name)))

    def _print_runs(self, name: str) -> None:
        print_answer("\n".join(listing.runs_text(self._open_cassette(name))))

    def _show_gaps(self, name: str) -> None:
        gaps_html.show_gaps(gaps.report([self._open_cassette(name)]))

    def _open_view(self, name: str) -> Any:
        from tape_jupyter.jupyter.widget import view

        path = self._find_cassette_path(name)
        if name and not path.exists():
            raise self._lacks(path)
        return view(self.cells, name)

    def _build_frame(self, name: str) -> Any:
        return self._open_cassette(name).frame()

    def _act_on_takes(self, line: str) -> None:
        used, arguments = self._find_recorded_cassette(), split_words(line)
        cassettes = paths.cassettes_beside(used)
        root = commands_takes.choose_cassette(cassettes, arguments)
        if arguments:
            message = commands_takes.act(root, arguments)[0]
            return print_answer(message if root == used else f"{root.name}: {message}")
        return print_answer(
            "\n".join(
                map(
                    commands_takes.takes_text,
                    [each for each in cassettes if files.list_take_files(each)] or [used],
                )
            )
        )

    def _prune_cassette(self, line: str) -> None:
        parser = LineParser("%tape prune", "%tape prune [NAME] [--dry-run] [--back-to RUN]")
        parser.add_argument("name", nargs="?", default="")
        parser.add_argument("--dry-run", action="store_true")
        parser.add_argument("--back-to", metavar="RUN", default="")
        asked = parser.parse_args(split_words(line))
        root = files.cassette_of(self._find_cassette_path(asked.name))
        beside = paths.cassettes_beside(root)
        if asked.back_to and not asked.name and beside:
            root = prune.find_cassette_of_run(beside, asked.back_to)
        if not root.exists():
            raise self._lacks(root)
        pruned = prune.prune_cassette(root, dry=asked.dry_run, back_to=asked.back_to)
        print_answer(pruned.text(root, dry=asked.dry_run))

    def _print_plan(self, line: str) -> None:
        print_answer(rerun_command.print_plan(self.cells, self._find_recorded_cassette(), line))

    def _control_rerun(self, line: str) -> None:
        rerun_command.run_rerun(self.cells, self._find_recorded_cassette(), line, print_answer)

    def _export_bundle(self, line: str) -> None:
        """In a headless run there is nothing to export yet, and a replay writes no bundle."""
        if self.cells.deck.forced:
            show_text("%tape export: not in a headless run; when it is saved: tape export NB")
            return
        arguments, progress = split_words(line), Telling(self.shell)
        notebook = self.cells.notebook()
        progress.end(
            export.export_text(export.Export(notebook, arguments).run(progress.step), notebook)
        )

    def _search_cause(self, line: str) -> None:
        """Of the notebook as it is saved, in a process of its own."""
        if self.cells.deck.forced:
            show_text("%tape why: not in a headless run")
            return
        notebook, progress = self.cells.notebook(), Telling(self.shell, "tape why")
        command = LongCommand("why", str(notebook), *split_words(line), folder=notebook.parent)
        progress.end(str(command.run(progress.step)["text"]))

    def _verify_bundle(self, line: str) -> None:
        from tape_jupyter.bundle import verify

        if self.cells.deck.forced:
            show_text("%tape verify: not in a headless run")
            return
        arguments = split_words(line)
        if len(arguments) != 1:
            raise TapeUsageError(
                "usage: %tape verify FILE (a bundle: churn.tape.zip, a folder or a URL)"
            )
        verdict = verify.verify_bundle(arguments[0])
        show_text(
            "\n".join([verdict.place, *(f"  {mark:5} {text}" for mark, text in verdict.lines())])
        )
        if not verdict.good:
            raise BundleError(verdict.problems[0], place=verdict.place)

    def _compare_takes(self, line: str) -> None:
        if len(split_words(line)) != 2:
            raise TapeUsageError(
                "%tape diff: name the two: %tape diff A B (main and a take, for example; %tape takes lists them)"
            )
        self._act_on_takes(f"diff {line}")

    def _set_options(self, line: str) -> None:
        # a pattern's backslashes and quotes are its own
        if masks := re.match(r"redact(?:\.[\w-]+)?=", line):
            line = shlex.quote(masks[0] + unquoted(line.removeprefix(masks[0])))
        for pair in split_words(line) or [""]:
            key, is_pair, value = pair.partition("=")
            if not is_pair:
                raise TapeUsageError("usage: %tape set KEY=VALUE")
            self._set_option(key, value)

    def _set_option(self, key: str, value: str) -> None:
        if key == "adopt":
            folder = adoption.adopt_cassettes(self.cells.notebook(), value)
            print_answer(f"tape: {folder.name} now holds the cassettes of {value}")
        else:
            self.cells.deck.set(key, value)
            masks = key.partition(".")[0] == "redact"
            print_answer(
                f"tape: what matches {value} is masked"
                if masks
                else f"tape: {key}={value} on every run"
            )

    def _open_cassette(self, name: str) -> Cassette:
        path = self._find_cassette_path(name)
        if not path.exists():
            raise self._lacks(path)
        return Cassette.open(path)

    def _lacks(self, path: Path) -> CassetteError:
        """There is no such cassette: what there is, or how there comes to be one."""
        if not self.cells.cassette_names():
            why = "nothing is recorded yet: put %%tape record on top of a cell, and run it"
        else:
            why = f"there is no such cassette; there are: {known_names(self.cells)}"
        return CassetteError(why, path=str(path))

    def _find_recorded_cassette(self) -> Path:
        """The cassette that was used last, or the main one, for what looks through those beside it,
        too. Raises CassetteError where there is none at all.
        """
        root = files.cassette_of(self._find_cassette_path(""))
        if not any(each.exists() for each in paths.cassettes_beside(root)):
            raise self._lacks(root)
        return root

    def _find_cassette_path(self, name: str) -> Path:
        """The named cassette; without a name the last one used, else the notebook's main one."""
        used = next(
            (report.path for report in reversed(self.cells.reports) if there(report.path)), None
        )
        if not name and used is not None:
            return used
        return self.cells.cassette_path(name)

    words: ClassVar[Mapping[str, Callable[[LineCommands, str], Any]]] = {
        "status": _print_status,
        "calls": _print_calls,
        "show": _print_runs,
        "gaps": _show_gaps,
        "view": _open_view,
        "frame": _build_frame,
        "plan": _print_plan,
        "rerun": _control_rerun,
        "override": override_call,
        "takes": _act_on_takes,
        "diff": _compare_takes,
        "why": _search_cause,
        "export": _export_bundle,
        "verify": _verify_bundle,
        "prune": _prune_cassette,
        "set": _set_options,
        "help": _print_help,
    }
    """What stands behind `%tape`, besides the modes: completed and corrected in this order."""


ASKS = tuple(word for word in LineCommands.words if word != "help")
"""The words that `%tape help` and the documentation explain."""


def there(path: Path | None) -> bool:
    return path is not None and path.exists()


def unquoted(text: str) -> str:
    """A text without the pair of quotes around it."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def print_answer(text: str) -> None:
    print(text)  # noqa: T201 - the answer to a magic


def show_text(text: str, name: str = "", *, again: bool = False) -> None:
    """Display what the tape says of itself; `again` puts it in the place of what `name` showed."""
    from IPython.display import publish_display_data

    transient = {"display_id": name} if name else None
    publish_display_data({"text/plain": text}, metadata=MARK, transient=transient, update=again)  # type: ignore[no-untyped-call]


class Telling:
    """How a long work gets on, in one place below the cell; in a terminal only its end is told."""

    def __init__(self, shell: Any, command: str = "tape export") -> None:
        self._command = command
        self._live = hasattr(shell, "kernel")
        self._name = f"tape-{time.monotonic_ns()}"
        self._again = False

    def step(self, what: str, done: int, total: int) -> None:
        if self._live:
            self._show_text(export.step(what, done, total, self._command))

    def end(self, text: str) -> None:
        self._show_text(text)

    def _show_text(self, text: str) -> None:
        show_text(text, self._name, again=self._again)
        self._again = self._live


def status(cells: CellRunner) -> str:
    """Mode, notebook, cassettes and this kernel's doings, a line each."""
    reports = cells.reports
    lines = {
        "mode": cells.deck.session_mode + (" (TAPE_MODE)" if cells.deck.forced else ""),
        "notebook": where(cells),
        "cassettes": known_names(cells),
        "taped cells": str(len(reports)),
        "calls": str(sum(len(report.calls) for report in reports)),
        "refused": str(sum(len(report.misses) for report in reports)),
    }
    return "\n".join(f"{key + ':':13} {value}" for key, value in lines.items())


def where(cells: CellRunner) -> str:
    try:
        return str(cells.notebook())
    except NotebookUnknown as error:
        return f"unknown ({error})"


def known_names(cells: CellRunner) -> str:
    return ", ".join(cells.cassette_names()) or "none"


def complete(cells: CellRunner, line: str) -> list[str]:
    """Words that can stand at the end of a `%tape` or `%%tape` line."""
    magic, *arguments = line.split(" ")
    if len(arguments) <= 1:
        return list(LINE_MODES if magic == "%%tape" else (*SESSION_MODES, *ASKS))
    if len(arguments) == 2:
        return cells.cassette_names()
    return [option.flag for option in LINE_OPTIONS]
