"""`%%tape step`: who can answer is found out before anything of the cell runs, views are told of
it, and the next execution of a cell can be stepped whatever its own line says (the Step button).
"""

from __future__ import annotations

import contextlib
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette.takes import files
from tape_jupyter.debugger.breakpoints import Breaks
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.rerun.cell_watch import watch_of
from tape_jupyter.jupyter.step.passes import CellPasses
from tape_jupyter.jupyter.step.stepper import Reach, Record, Stepper
from tape_jupyter.jupyter.step.terminal import Prompt, can_ask
from tape_jupyter.jupyter.viewer import live as watch
from tape_jupyter.session.cell import TapedCell
from tape_jupyter.session.options import Word

if TYPE_CHECKING:
    from tape_jupyter.jupyter.cell_runner import CellRunner
    from tape_jupyter.jupyter.viewer.server import Viewer

PATIENCE = 1.0
"""Seconds in which a page answers that it is there."""
AGAIN = 0.15
NOBODY = (
    "%%tape step needs a viewer or an input prompt: no open page of this notebook answered, and this front end takes "
    "no input. Now: %%tape replay runs the cell without stopping"
)
SILENT = "no view of this notebook answers while a cell runs: asking here (h: help)"
NO_VIEW = "no view of this notebook is open: asking here (h: help)"


@dataclass(frozen=True, slots=True)
class StepRequest:
    """The next execution of a cell ("" any) is to be stepped."""

    cell: str
    word: Word


@dataclass(slots=True)
class PreparedStep:
    """A cell that is about to be stepped: who answers, and how."""

    steps: Steps
    word: Word
    reach: Reach

    @property
    def mode(self) -> str:
        return "record" if self.word.options.get("record") else "replay"

    @property
    def options(self) -> dict[str, Any]:
        """The cell's options. Replies come at once: the order is the person's."""
        told = {
            name: value
            for name, value in self.word.options.items()
            if name not in ("breaks", "record")
        }
        told["pace"] = told.get("pace") or "instant"
        return {**told, "step": True}

    def start(self, cell: TapedCell, transformed: str) -> CellPasses:
        """The cell begins: its calls wait from here on."""
        stepper = Stepper(
            self.steps.cells.deck,
            Breaks.parse(self.word.options.get("breaks", ())),
            self.reach,
            self.steps.send_state,
            records=self.mode == "record",
        )
        if take := cell.request.options.get("take"):
            stepper.options["take"] = take
        elif cell.cassette is not None and cell.cassette.base is not None:
            stepper.options["take"] = files.take_name(cell.cassette.path)
        self.reach.attach(stepper)
        self.steps.current = stepper
        self.steps.parent = watch_of(self.steps.cells).parents.read_current_id()
        passes = CellPasses(self.steps.cells, stepper, cell)
        passes.start(transformed)
        return passes


@dataclass(slots=True)
class Steps:
    """The stepped cells of one kernel, one at a time. `current` stays when it is over, for views
    that come later.
    """

    cells: CellRunner
    current: Stepper | None = None
    parent: str = ""
    """The message that asked for the cell: what the cell shows is in its name."""
    armed: StepRequest | None = None
    answered: threading.Event = field(default_factory=threading.Event)
    knock: str = ""
    _views: list[Viewer] = field(default_factory=list)
    _count: int = 0

    # ------------------------------------------------------------ who is there

    def prepare(self, command: Word) -> PreparedStep:
        """Find out who answers. Raises TapeUsageError where nobody can; nothing of the cell has run
        then.
        """
        Breaks.parse(command.options.get("breaks", ()))
        return PreparedStep(self, command, self._find_reach())

    def _find_reach(self) -> Reach:
        somebody = self._has_views()
        if somebody and self._wait_for_answer():
            return Reach()
        if can_ask(self.cells.shell):
            return Prompt(self.cells.shell, why=SILENT if somebody else NO_VIEW)
        raise TapeUsageError(NOBODY)

    def _has_views(self) -> bool:
        return labextension.has_pages() or bool(self._find_widgets())

    def _find_widgets(self) -> list[Viewer]:
        from tape_jupyter.jupyter.viewer.server import Viewer

        views = (
            view for view in watch.updates_of(self.cells.deck).views if isinstance(view, Viewer)
        )
        return [view for view in views if view.is_widget]

    def _wait_for_answer(self) -> bool:
        """Whether a page answers within PATIENCE; asked again and again, since its way here may
        only just be made.
        """
        self._count += 1
        self.knock, left = f"step-{self._count}", PATIENCE
        self.answered.clear()
        while left > 0:
            labextension.knock(self.knock, self.here)
            for view in self._find_widgets():
                view.send_update("step.probe", id=self.knock)
            if self.answered.wait(AGAIN):
                return True
            left -= AGAIN
        return False

    def here(self) -> None:
        """A page answered."""
        self.answered.set()

    # ------------------------------------------------------------ views

    def watch(self, view: Viewer) -> Record | None:
        """A view is told from now on; the state of the cell that is stepped, None where none is."""
        self._views = [each for each in self._views if each is not view and not each.closed]
        self._views.append(view)
        return self.current.state() if self.current and not self.current.machine.over else None

    def send_state(self, state: Record) -> None:
        for view in tuple(self._views):
            view.send_update("step", **state)

    def require(self) -> Stepper:
        """The cell that is stepped now. Raises TapeUsageError."""
        if self.current is None or self.current.machine.over:
            raise TapeUsageError("no cell is being stepped")
        return self.current

    def collect_outputs(self) -> Record:
        """protocol.ts' StepShown: what the cell has shown so far, for a page that came while it
        ran. What is shown from now on follows the answer, on the same channel.
        """
        stepper, displayed = self.require(), watch_of(self.cells).displayed
        for stream in (sys.stdout, sys.stderr):  # what waits to be sent goes before the answer
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        request = stepper.cell.request if stepper.cell is not None else None
        return {
            "cell": stepper.state()["cell"],
            "asked": self.parent,
            "count": request.count if request is not None else None,
            "outputs": displayed.last.copied() if displayed.open else [],
        }

    # ------------------------------------------------------------ the Step button

    def arm(self, armed: StepRequest) -> None:
        # a page's words are never evaluated
        Breaks.parse(armed.word.options.get("breaks", ()), conditions=False)
        self.armed = armed

    def override_word(self, cell_id: str | None, command: Word | None) -> Word | None:
        """The word of a cell that is about to run, where the button was pressed for it; once."""
        armed = self.armed
        if armed is None or armed.cell not in ("", cell_id):
            return command
        self.armed = None
        if command is None:
            return armed.word
        excepted = ("live", "freeze", "stub", "on_divergence")
        options = {name: value for name, value in command.options.items() if name not in excepted}
        # the cell's own `--take` stays: what a view shows stands in for the default take alone
        return Word("step", command.name, {**options, **armed.word.options})


_steps: list[Steps] = []


def steps_of(cells: CellRunner) -> Steps:
    """The stepping of a shell's cells; made when first asked for."""
    steps = next((each for each in _steps if each.cells is cells), None)
    if steps is None:
        steps = cells.steps = Steps(cells)
        _steps.append(steps)
    return steps


def forget_steps(cells: CellRunner) -> None:
    """The extension is unloaded."""
    cells.steps = None
    _steps[:] = [each for each in _steps if each.cells is not cells]
