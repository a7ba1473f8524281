"""The extension while nothing is taped: `%load_ext` in a notebook without a cassette.

It notes the cells, and loads the rest at the first word of the tape: a cell that speaks of it, a
magic, a page that wants to see something, a cassette that is there, or the package's functions.
What it imports is what these few hooks need: most notebooks of most days tape nothing.
"""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from IPython.core.error import InputRejected
from IPython.core.magic import no_var_expand

from tape_jupyter.cassette import paths
from tape_jupyter.core.collector import paused_collector
from tape_jupyter.core.real_clock import genuine
from tape_jupyter.dataflow.identity import is_shells
from tape_jupyter.dataflow.tracing.noted_cells import NotedCells, does_more_than_load
from tape_jupyter.dataflow.tracing.running_cells import (
    count_running_cells,
    find_running_info,
    running_cells,
)
from tape_jupyter.errors import NotebookUnknown
from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.line_taker import LineTaker
from tape_jupyter.session.cell_words import asks_only, speaks_of_tape
from tape_jupyter.session.wakers import WAKERS

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from tape_jupyter.jupyter.cell_runner import CellRunner

LOOKS = 3
"""Cells at which an unknown notebook is looked for: each look may read the folder's notebooks."""
_STILL = (ModuleType, type(None), bool, int, float, complex, str, bytes)
"""What a variable may hold that only a new binding changes."""

_standbys: list[Standby] = []


def load_extension(shell: InteractiveShell) -> None:
    """Hook into a shell, once. Raises TapeUsageError where TAPE_MODE is no mode."""
    if _find_standby(shell) is not None:
        return
    if _may_stand_by(shell):
        Standby(shell).install()
        return
    with genuine():
        from tape_jupyter.jupyter.magics import load_magics
    load_magics(shell)


def unload_extension(shell: InteractiveShell) -> None:
    """Take every hook out. Raises TapeUsageError, and takes nothing out, where what runs on would go
    live that was to be replayed.
    """
    if (standby := _find_standby(shell)) is not None:
        standby.uninstall()
        return
    from tape_jupyter.jupyter.magics import unload

    unload(shell)


def install_front_ends(
    shell: InteractiveShell, ladder: paths.Ladder, cells: Callable[[], CellRunner]
) -> None:
    """Completion of `%tape` lines, and the pages of this kernel. `cells` is asked when one of them
    wants something.
    """

    def complete_line(_: Any, event: Any) -> list[str]:
        from tape_jupyter.jupyter.line_commands import complete

        return complete(cells(), event.line)

    for magic in ("%tape", "%%tape"):
        shell.set_hook("complete_command", complete_line, str_key=magic)  # type: ignore[no-untyped-call]
    labextension.start_lab(shell, ladder, cells)


class Standby:
    """The hooks of one shell until something is taped."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.ladder = paths.Ladder()
        self.taker = LineTaker(shell)
        self.noted = NotedCells(shell)
        self._cells: CellRunner | None = None
        self._loads = False
        self._process = os.getpid()
        self._notebook: Path | None = None
        self._searches_left = LOOKS
        self._told: Any = None
        """The last cell of which an event told this object (its ExecutionInfo)."""
        self._lock = threading.RLock()

    def install(self) -> None:
        self.noted.install()
        self.shell.input_transformers_cleanup.append(self.taker)
        self._ast_transformers.append(self)
        self.shell.events.register("pre_run_cell", self.pre_run_cell)
        self.shell.events.register("post_run_cell", self.post_run_cell)
        register: Any = self.shell.register_magic_function
        register(self.answer_line, "line", "tape")
        register(self.answer_cell, "cell", "tape")
        _standbys.append(self)
        WAKERS.append(self._wake_for_use)
        install_front_ends(self.shell, self.ladder, self.wake)
        info = find_running_info()
        if info is not None:
            self._begin_midway(info)
        self._wake_for_cassette(info.raw_cell if info is not None else "")

    @property
    def _ast_transformers(self) -> list[Any]:
        return self.shell.ast_transformers

    def uninstall(self) -> None:
        """Nothing of it stays."""
        labextension.stop_lab(self.shell)
        self._unhook()
        self._forget()
        self.noted.files.end()
        self.release()
        self.shell.input_transformers_cleanup.remove(self.taker)
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop("tape", None)

    def wake(self) -> CellRunner:
        """Load the rest, which goes on where this ends. On whatever thread. Raises what importing
        raises; the next attempt may succeed.
        """
        with self._lock:
            if self._cells is None:
                with genuine(), paused_collector():
                    from tape_jupyter.jupyter.magics import load_magics
                self._loads = True
                self._unhook()
                self._cells = load_magics(self.shell, self)
                self._forget()
        return self._cells

    def _wake_for_use(self) -> None:
        """The package's functions are used. A forked process has the notebook's namespace, but is
        not its kernel.
        """
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._loads:
                self.wake()

    def _unhook(self) -> None:
        """The transformer stays: the list of them may be walked through just now."""
        hooks = {"pre_run_cell": self.pre_run_cell, "post_run_cell": self.post_run_cell}
        for event, hook in hooks.items():
            if hook in self.shell.events.callbacks[event]:
                self.shell.events.unregister(event, hook)

    def _forget(self) -> None:
        _standbys.remove(self)
        WAKERS.remove(self._wake_for_use)

    def release(self) -> None:
        """What loaded the rest is unloaded."""
        if self in self._ast_transformers:
            self._ast_transformers.remove(self)

    # ------------------------------------------------------------ the shell's events
    def pre_run_cell(self, info: Any) -> None:
        with self._lock:
            if self._cells is not None:
                return  # a page had the rest loaded just now: `visit` tells it of this cell
            self._told = info
            if self.noted.is_elsewhere:
                return
            self.noted.end(None)  # where its post_run_cell never came
            if speaks_of_tape(info.raw_cell) or self._wake_for_cassette(info.raw_cell):
                self.wake()
                self._tell_start(info)
            elif not asks_only(info.raw_cell):
                self.noted.begin(info)

    def post_run_cell(self, result: Any) -> None:
        with self._lock:
            if self._cells is None and not (self.noted.is_elsewhere or count_running_cells()):
                self.noted.end(result)

    def visit(self, node: ast.AST) -> ast.AST:
        """As an AST transformer: the cell's code comes next. Raises InputRejected where the cell may
        not run.
        """
        info = find_running_info()
        if info is not self._told:
            with self._lock:  # another thread may be loading the rest just now
                self._tell_missed_start(info)
        if self._cells is not None:
            return node
        self.noted.start()
        if self.noted.running is None and any(
            speaks_of_tape(cell.f_locals["raw_cell"]) for cell in running_cells()
        ):
            # it could not be loaded before, or no event told of the cell
            try:
                self.wake()  # its own transformers come after this one
            except (Exception, KeyboardInterrupt) as error:
                raise InputRejected(f"tape-jupyter could not be loaded: {error!r}") from error
        return node

    def _tell_start(self, info: Any) -> None:
        """Tell the hooks of the rest, which was loaded for or in this cell, of its start, too."""
        for hook in list(self.shell.events.callbacks["pre_run_cell"]):
            if str(getattr(hook, "__module__", "")).startswith("tape_jupyter."):
                hook(info)

    def _tell_missed_start(self, info: Any) -> None:
        """Tell the rest of the start of a cell, where another thread loaded it in the midst of that:
        IPython had chosen by then which hooks it calls.
        """
        cells = self._cells
        if cells is not None and not (info is None or info.silent or info is cells.told):
            self._tell_start(info)

    def _begin_midway(self, info: Any) -> None:
        """The cell that loads us is noted, unless it does nothing else."""
        if does_more_than_load(self.shell, info.raw_cell) and not asks_only(info.raw_cell):
            self.noted.begin(info)
            self.noted.start()

    def _wake_for_cassette(self, raw: str) -> bool:
        """Whether the notebook, of which `raw` is a cell, has a cassette: then all is loaded."""
        notebook = self.ladder.hint or self._find_notebook(raw)
        # each cell asks
        if notebook is None or not os.path.isdir(paths.folder(notebook)):  # noqa: PTH112
            return False
        if not paths.cassette_names(notebook):
            return False
        self.wake()
        return True

    def _find_notebook(self, raw: str) -> Path | None:
        """The notebook as far as it is known without a page that tells; sought a few times only."""
        if self._notebook is None and self._searches_left:
            try:
                self._notebook = self.ladder.find_notebook(raw, self.shell.user_ns)
            except NotebookUnknown:
                self._searches_left -= 1
        return self._notebook

    # ------------------------------------------------------------ magics
    @no_var_expand
    def answer_line(self, line: str) -> Any:
        """Record, replay or ask: `%tape record`, `%tape status`, `%tape calls`; see `%tape help`."""
        self.wake()
        return self.shell.magics_manager.magics["line"]["tape"](line)

    @no_var_expand
    def answer_cell(self, line: str, cell: str) -> None:
        """`%%tape override CALL`: the cell is the new reply."""
        self.wake()
        self.shell.magics_manager.magics["cell"]["tape"](line, cell)


def _find_standby(shell: InteractiveShell) -> Standby | None:
    return next((each for each in _standbys if each.shell is shell), None)


def _may_stand_by(shell: InteractiveShell) -> bool:
    """Whether nothing asks for more yet: no mode from outside, and no variables that may change
    without a new binding.
    """
    if os.environ.get("TAPE_MODE") or "TapeMagics" in shell.magics_manager.registry:
        return False
    return all(
        type(value) in _STILL
        for name, value in list(shell.user_ns.items())
        if isinstance(name, str) and not is_shells(name)
    )
