"""`%tape` and `%%tape`, and what `%load_ext` does. Magics only parse, ask and print.

Nothing a person types is expanded ({var} and $var stay as they are), nothing is run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand

from tape_jupyter.core.disk_errors import describe_disk_error
from tape_jupyter.errors import TapeError, TapeUsageError
from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.cell_runner import CellRunner, StepHooks
from tape_jupyter.jupyter.rerun import cell_watch
from tape_jupyter.jupyter.standby import install_front_ends
from tape_jupyter.jupyter.tracebacks import short_traceback
from tape_jupyter.session import session
from tape_jupyter.session.options import SESSION_MODES, Word, asks_for_help, parse_line
from tape_jupyter.session.wakers import wake

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from tape_jupyter.jupyter.line_commands import LineCommands
    from tape_jupyter.jupyter.standby import Standby


@magics_class
class TapeMagics(Magics):
    """The magics of one shell; `cells` holds its hooks."""

    def __init__(self, shell: InteractiveShell, cells: CellRunner) -> None:
        super().__init__(shell)
        self.cells = cells

    # no_var_expand is annotated for functions without arguments
    @line_magic("tape")  # type: ignore[arg-type]
    @no_var_expand
    def line(self, line: str) -> Any:
        """Record, replay or ask: `%tape record`, `%tape status`, `%tape calls`; see `%tape help`."""
        return with_short_errors(self._answer_line, line)

    @cell_magic("tape")  # type: ignore[arg-type]  # the same
    @no_var_expand
    def cell(self, line: str, cell: str) -> None:
        """`%%tape override CALL`: the cell is the new reply. Any other word comes here only where
        it is not the first line of a cell that IPython runs (cells.LineTaker).
        """
        subcommand, _, rest = line.strip().partition(" ")
        if subcommand == "override":
            with_short_errors(lambda text: self._load_commands().override_call(text, cell), rest)
        else:
            with_short_errors(self._refuse_line, line)

    @line_magic("%tape")  # type: ignore[arg-type]  # the same
    @no_var_expand
    def below(self, line: str) -> None:
        """`%%tape` below a comment or code, which IPython takes for a line magic of that name."""
        with_short_errors(self._refuse_line, line)

    def _refuse_line(self, line: str) -> None:
        parse_line(line)
        raise TapeUsageError(
            "%%tape tapes the cell that you run, so it stands on that cell's first line: not below a comment, code or "
            "another %% magic, and not inside a cell that another cell runs (%run, run_cell)"
        )

    def _answer_line(self, line: str) -> Any:
        subcommand, _, rest = line.strip().partition(" ")
        if subcommand in SESSION_MODES and not asks_for_help(rest):
            return self._set_mode(parse_line(line, SESSION_MODES))
        return self._load_commands().answer(subcommand or "status", rest.strip())

    def _load_commands(self) -> LineCommands:
        from tape_jupyter.jupyter.line_commands import LineCommands

        return LineCommands(self.cells.shell, self.cells)

    def _set_mode(self, command: Word) -> None:
        message = self.cells.set_session(command)
        print(message or f"tape {command.mode}: {MEANING[command.mode]}")  # noqa: T201 - the answer


MEANING = {
    "record": "every following cell goes live and is recorded",
    "replay": "every following cell is replayed; nothing goes out",
    "once": "every following cell is replayed if it was recorded, else recorded",
    "new_episodes": "in every following cell known calls are replayed, others recorded",
    "live": "every following cell goes live and is shown, but not recorded",
    "off": "cells are neither recorded nor replayed",
}


def with_short_errors(what: Callable[[str], Any], line: str) -> Any:
    """Run it; an error that a person can mend shows without a traceback (they typed no code)."""
    try:
        return what(line)
    except (TapeError, OSError) as error:
        if not (isinstance(error, TapeError) or describe_disk_error(error)):
            raise
        lines = short_traceback(error)
        error._render_traceback_ = lambda: lines  # type: ignore[union-attr]  # IPython's protocol
        raise


def load_magics(shell: InteractiveShell, standby: Standby | None = None) -> CellRunner:
    """Hook into a shell (once), and set the mode that TAPE_MODE asks for. `standby`: what was loaded
    until now. Raises TapeUsageError if TAPE_MODE is no mode.
    """
    cells = loaded(shell)
    if cells is None:
        cells = CellRunner(shell, session.get(), standby)
        cells.install()
        shell.register_magics(TapeMagics(shell, cells))
        cell_watch.watch_of(cells)
        cells.load_steps = lambda: _load_steps(cells)
        if standby is None:
            install_front_ends(shell, cells.ladder, lambda: cells)
    with_short_errors(cells.force, os.environ.get("TAPE_MODE", ""))
    cells.lend_keys()
    return cells


def unload(shell: InteractiveShell) -> None:
    """Take every hook out; the magics then say nothing is loaded.

    Raises TapeUsageError, and takes nothing out, where what runs on would go live that was to be
    replayed.
    """
    with_short_errors(lambda _: _unload_extension(shell), "")


def _unload_extension(shell: InteractiveShell) -> None:
    cells = loaded(shell)
    if cells is None:
        return
    if (cell := cells.taping) is not None:
        raise TapeUsageError(
            f"the extension stays: this cell is taped ({cell.mode}), and its rest would run past the tape. "
            "Say %unload_ext or %reload_ext in a cell of its own"
        )
    if cells.deck.forced and cells.deck.sealed:
        raise TapeUsageError(
            "TAPE_MODE=replay wins: the extension stays, so that nothing goes live"
        )
    cells.deck.set_session("off")
    labextension.stop_lab(shell)
    cells.uninstall()
    _forget_late_parts(cells)
    cell_watch.forget_watch(cells)
    del shell.magics_manager.registry["TapeMagics"]
    for kind in ("line", "cell"):
        for name in ("tape", "%tape"):
            shell.magics_manager.magics[kind].pop(name, None)


def _load_steps(cells: CellRunner) -> StepHooks:
    """Imported late: most cells are never stepped."""
    from tape_jupyter.jupyter.step.command import steps_of

    return steps_of(cells)


def _forget_late_parts(cells: CellRunner) -> None:
    """Of what was imported when it was asked for, what knows these cells."""
    if (step_command := sys.modules.get("tape_jupyter.jupyter.step.command")) is not None:
        step_command.forget_steps(cells)
    if (rerunner := sys.modules.get("tape_jupyter.jupyter.rerun.rerunner")) is not None:
        rerunner.forget_rerunner(cells)


def loaded(shell: InteractiveShell) -> CellRunner | None:
    """The hooks of a shell where the extension is loaded."""
    wake()
    magics = shell.magics_manager.registry.get("TapeMagics")
    return magics.cells if magics is not None else None
