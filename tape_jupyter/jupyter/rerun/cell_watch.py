"""What the cells of a kernel showed and who asked for them, from the moment the extension is loaded:
a re-run that is asked for later goes by it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.dataflow.tracing.running_cells import count_running_cells
from tape_jupyter.jupyter.rerun.outputs import Displayed, Output
from tape_jupyter.jupyter.rerun.routes import Message, Parents

if TYPE_CHECKING:
    from tape_jupyter.dataflow.history import Execution
    from tape_jupyter.jupyter.cell_runner import CellRunner

_STOPPED = (KeyboardInterrupt, asyncio.CancelledError)
_EXTENSION = "tape_jupyter"


class CellWatch:
    """`newest`: the entry that was last taken notice of; `interrupted`: whether the last cell was
    stopped; `asked_by`: the message that asked for it.
    """

    def __init__(self, cells: CellRunner) -> None:
        self.cells, self.shell = cells, cells.shell
        self.displayed, self.parents = Displayed(cells.shell), Parents(cells.shell)
        self.newest: Execution | None = None
        self.interrupted = self._began = False
        self.asked_by: Message = {}
        self.level = 0
        """How many cells ran on the stack when the one whose outputs are listened to began, with it."""

    def install(self) -> None:
        self.displayed.install()
        self.cells.deck.list_outputs = self._list_outputs
        self.shell.events.register("pre_run_cell", self._handle_cell_start)
        self.shell.events.register("post_run_cell", self._handle_cell_end)

    def uninstall(self) -> None:
        self.displayed.uninstall()
        self.cells.deck.list_outputs = do_nothing
        self.shell.events.unregister("pre_run_cell", self._handle_cell_start)
        self.shell.events.unregister("post_run_cell", self._handle_cell_end)

    def _list_outputs(self) -> list[Output] | None:
        """What the cell that ends now showed; None where not all of it is known."""
        last = self.displayed.last
        return last.copied() if last.whole and not last.raced else None

    def _handle_cell_start(self, _info: Any) -> None:
        depth = count_running_cells()
        if self.level and depth > self.level:
            return  # a cell that a cell runs (`%%capture`) is part of it
        self.level = depth
        self.displayed.began()
        self._began = True
        # its %load_ext is as new as in a whole run: loading is once
        if self.cells.planned() is not None:
            self._get_loaded_extensions().discard(_EXTENSION)

    def _handle_cell_end(self, result: Any) -> None:
        """Comes without a beginning for a blank cell, and without a result for a cell that was
        cancelled.
        """
        around = count_running_cells()
        if self.level and around >= self.level:
            return
        self.level = around
        self.interrupted = result is None or isinstance(result.error_in_exec, _STOPPED)
        if self.cells.planned() is not None:
            self._get_loaded_extensions().add(_EXTENSION)
        self.displayed.ended()
        began, self._began = self._began, False
        history = self.cells.history
        self.asked_by = self.parents.now()
        # the cell that loaded us
        if not began and history is not None and len(history) and self.newest is None:
            self.newest = history[-1]
            self.parents.remember_message(len(history) - 1, self.asked_by)
        new = began and history is not None and len(history) and history[-1] is not self.newest
        if new and self.cells.planned() is None and history is not None:
            self.newest = history[-1]
            self.displayed.keep_outputs(len(history) - 1)
            self.parents.remember_message(len(history) - 1, self.asked_by)

    def _get_loaded_extensions(self) -> set[str]:
        """The extensions that IPython takes for loaded."""
        manager: Any = self.shell.extension_manager
        loaded: set[str] = manager.loaded
        return loaded


_known: list[CellWatch] = []


def watch_of(cells: CellRunner) -> CellWatch:
    """That of a shell; made, and hooked into it, when first asked for."""
    watch = next((each for each in _known if each.cells is cells), None)
    if watch is None:
        watch = CellWatch(cells)
        watch.install()
        _known.append(watch)
    return watch


def forget_watch(cells: CellRunner) -> None:
    """Take the hooks out."""
    for watch in [each for each in _known if each.cells is cells]:
        watch.uninstall()
        _known.remove(watch)
