"""How a taped cell runs. Takes the `%%tape` line off, begins the tape before the cell and ends it
after. Knows IPython; decides nothing about calls (the deck does) and draws nothing (summary does).

IPython runs the body as the cell itself: an input transformer blanks our line, so `await`,
displays, the last expression, line numbers in tracebacks and errors that stop Run All are those of
an untaped cell. A cell that may not run (bad line, missing cassette) is stopped by an AST
transformer, the one hook of IPython that can reject a cell after `pre_run_cell`: exceptions of
`pre_run_cell` itself are printed and the cell runs on, which would be live.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from IPython.core.error import InputRejected
from IPython.core.interactiveshell import InteractiveShell

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.paths import MAIN, Ladder
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.core.thread_number import thread_number
from tape_jupyter.dataflow.history import History
from tape_jupyter.dataflow.tracing.running_cells import count_running_cells, running_cells
from tape_jupyter.dataflow.tracing.tracker import Tracker
from tape_jupyter.errors import NotebookUnknown, TapeError, TapeRefusal, TapeUsageError
from tape_jupyter.jupyter.line_taker import LineTaker
from tape_jupyter.jupyter.tracebacks import short_traceback, show_refusals_briefly
from tape_jupyter.reports import cell_summary
from tape_jupyter.session import partial_replay
from tape_jupyter.session.cell import CellReport, CellRequest, TapedCell
from tape_jupyter.session.cell_words import asks_only, is_quiet, speaks_of_tape
from tape_jupyter.session.options import SESSION_MODES, Word, check_mode, parse_line

if TYPE_CHECKING:
    from tape_jupyter.jupyter.standby import Standby
    from tape_jupyter.session.session import TapeSession


class CellGate(ast.NodeTransformer):
    """AST transformer: rejects the cell that is not fit to run."""

    def __init__(self, cells: CellRunner) -> None:
        self._cells = cells

    def visit(self, node: ast.AST) -> ast.AST:
        if (error := self._cells.unfit() or self._cells.last_look()) is not None:
            raise rejection(error)
        return node


def rejection(error: BaseException) -> InputRejected:
    """An InputRejected that shows itself by the error's name and in its words, without a traceback."""
    kind = type(
        type(error).__name__,
        (InputRejected,),
        {"_render_traceback_": lambda _: short_traceback(error)},
    )
    rejected: InputRejected = kind(str(error))
    rejected.__cause__ = error
    return rejected


class PlannedCell(Protocol):
    """A cell that a re-run wants to run next (jupyter/rerun/rerunner.py): what the tape does in it,
    and the taped cell once it runs.
    """

    cell: TapedCell | None

    def choose_word(self, line: str | None, raw: str) -> Word | None: ...


class StepPasses(Protocol):
    """A stepped cell that runs, perhaps again and again (jupyter/step/passes.py)."""

    notes: list[str]

    def finish(self) -> None: ...


class PreparedCell(Protocol):
    """A cell that is about to be stepped (jupyter/step/command.py): the mode and options of its
    taped cell.
    """

    @property
    def mode(self) -> str: ...
    @property
    def options(self) -> dict[str, Any]: ...
    def start(self, cell: TapedCell, transformed: str) -> StepPasses: ...


class StepHooks(Protocol):
    """Who steps cells (jupyter/step/command.py)."""

    def override_word(self, cell_id: str | None, command: Word | None) -> Word | None: ...
    def prepare(self, command: Word) -> PreparedCell: ...


@dataclass(slots=True)
class Open:
    """A taped cell that runs: the deck's cell, and where it runs (stack depth and thread)."""

    cell: TapedCell
    depth: int
    thread: int
    explicit: bool
    notes: list[str]
    passes: StepPasses | None = None


class CellRunner:
    """The hooks of one shell. Begins, ends and reports taped cells; keeps the reports of this
    kernel.
    """

    def __init__(
        self, shell: InteractiveShell, deck: TapeSession, standby: Standby | None = None
    ) -> None:
        """`standby`: what was loaded before anything was taped, and goes on here."""
        self.shell, self.deck, self._standby = shell, deck, standby
        self.ladder = standby.ladder if standby is not None else Ladder()
        self.session = Word("off")
        self.mode_typed = False
        """Whether a cell set the session's mode, which is then gone with its kernel."""
        self.told: Any = None
        """The last cell of whose start an event told (its ExecutionInfo)."""
        self.refusal: BaseException | None = None
        self.broken: TapeUsageError | None = None
        self.reports: list[CellReport] = []
        self._paths: dict[str, Path | None] = {}  # by cell, of its newest run
        self.summarises = True  # below each taped cell, for people
        self.planned: Callable[[], PlannedCell | None] = _plan_nothing
        self._open: Open | None = None
        self._said_replay_wins = False
        # for a notebook with a cassette; where it is unknown each look reads the folder's notebooks
        self._searches_left = 3
        self._has_cassette = False
        self._transformed = ""
        self.steps: StepHooks | None = None
        self.load_steps: Callable[[], StepHooks | None] = _load_nothing
        self._undo_tracebacks: Callable[[], None] = do_nothing
        self.taker = standby.taker if standby is not None else LineTaker(shell)
        self.gate = CellGate(self)

    @property
    def history(self) -> History | None:
        """What was executed in this kernel since the extension was loaded."""
        return self.deck.tracker.history if self.deck.tracker is not None else None

    def install(self) -> None:
        noted = self._standby.noted if self._standby is not None else None
        self.deck.tracker = Tracker(self.shell, asks_only, self._may_tape, noted)
        self.deck.tracker.install()  # its hook before ours: a taped cell is told to it as it begins
        if self.taker not in self.shell.input_transformers_cleanup:
            self.shell.input_transformers_cleanup.append(self.taker)
        self.shell.ast_transformers.append(self.gate)
        self.shell.events.register("pre_run_cell", self.pre_run_cell)
        self.shell.events.register("post_run_cell", self.post_run_cell)
        self._undo_tracebacks = show_refusals_briefly(self.shell)

    def _may_tape(self, raw: str) -> bool:
        """Whether a cell may be taped: by its text, by the session's mode, or since the notebook has
        a cassette.
        """
        return self.deck.session_mode != "off" or self._has_cassette or speaks_of_tape(raw)

    def lend_keys(self, raw: str = "") -> None:
        """Once it is known which notebook runs, and it has a cassette: keys that are not set have
        placeholders.
        """
        if self._searches_left:
            notebook = self.notebook_or_none(raw)
            self._searches_left -= notebook is None
            if notebook is not None and self.deck.lend_keys(notebook):
                self._searches_left, self._has_cassette = 0, True

    def uninstall(self) -> None:
        if self._open is not None:
            self._close_cell(None)
        self.shell.input_transformers_cleanup.remove(self.taker)
        self.shell.ast_transformers.remove(self.gate)
        if self._standby is not None:
            self._standby.release()
        self.shell.events.unregister("pre_run_cell", self.pre_run_cell)
        self.shell.events.unregister("post_run_cell", self.post_run_cell)
        self._undo_tracebacks()
        if self.deck.tracker is not None:
            self.deck.tracker.uninstall()
            self.deck.tracker = None

    def pre_run_cell(self, info: Any) -> None:
        self.told = info
        depth = count_running_cells()
        if self._is_elsewhere(depth):
            return
        if self._open is not None:  # its post_run_cell never came
            self._close_cell(None)
        count = self.shell.execution_count - 1 if info.store_history else None
        self._transformed = getattr(info, "transformed_cell", None) or ""
        self._begin_cell(info.raw_cell, info.cell_id, count, depth)

    def post_run_cell(self, result: Any) -> None:
        """`result` is None when an async cell was cancelled. Comes without a pre_run_cell for a
        blank cell.
        """
        if self._is_elsewhere(count_running_cells() + 1):
            return
        if result is not None and isinstance(result.error_before_exec, InputRejected):
            result.error_before_exec = self.refusal or result.error_before_exec
        self.refusal = None
        if self._open is not None:
            self._close_cell(result)
        if result is not None and isinstance(result.error_in_exec, Exception):
            self._tell_missed_key(result.error_in_exec)

    def _tell_missed_key(self, error: Exception) -> None:
        """An error of ours names it itself."""
        key = "" if isinstance(error, TapeError) else self.deck.lending.find_missed_key(error)
        if key:
            self._print_note(
                f"tape: {key} was set when this notebook was recorded and is not set here, and no placeholder "
                "stood in for it where it was read: set it (to any text, for a replay), and run that cell again"
            )

    def unfit(self) -> BaseException | None:
        """Why the cell that is about to run may not: what `pre_run_cell` found, or that it was
        never asked.
        """
        cells = list(running_cells())
        if self.refusal is not None or len(cells) != 1:
            return self.refusal
        line, source = self.taker.split(cells[0].f_locals["raw_cell"])
        if (
            line is None
            or not source.strip()
            or (self._open is not None and self._open.thread == thread_number())
        ):
            return None
        return TapeUsageError(
            "%%tape cannot record or replay a cell that runs silently, or in a subshell beside another such cell"
        )

    def last_look(self) -> BaseException | None:
        """Tape what other hooks put in a tool's place since we began (`%autoreload`); why that
        failed, if it did.
        """
        if self._open is None or self._open.thread != thread_number():
            return None
        try:
            self.deck.tape_known_tools(self._open.cell)
        except Exception as error:  # from here it would only be printed, and this hook be taken off
            return error
        return None

    def begin_here(self) -> None:
        """Tape the rest of the cell that runs now: the session's mode was set in its midst."""
        depth = count_running_cells()
        raw, cell_id = self._read_current_cell()
        if depth and self._open is None and not is_quiet(raw):
            self._begin_cell(raw, cell_id, self.shell.execution_count - 1, depth)
            if self.refusal is not None:
                error, self.refusal = self.refusal, None
                raise error

    def force(self, mode: str) -> None:
        """Take the session's mode from TAPE_MODE ("" sets none). While it is no mode, no cell runs."""
        if not mode:
            return
        try:
            check_mode(mode, where="TAPE_MODE: ")
            command = parse_line(f"{mode} {os.environ.get('TAPE_OPTIONS', '')}", SESSION_MODES)
        except TapeUsageError as error:
            self.broken = error
            raise
        self.deck.forced = True
        self.deck.set_session(mode, command.options)
        self.session, self.broken = command, None
        self.begin_here()

    def set_session(self, command: Word) -> str:
        """Set the mode of every following cell; what to tell the person ("" if nothing)."""
        if self.deck.forced and self.deck.session_mode == "replay" and command.mode != "replay":
            return f"TAPE_MODE=replay wins: %tape {command.mode} is ignored"
        self.deck.set_session(command.mode, command.options)
        self.session, self.broken = command, None
        self.mode_typed = not self._is_silent()
        self._searches_left = 0 if command.mode == "off" else self._searches_left
        if command.mode != "off":
            self.begin_here()
        elif (cell := self.deck.active) is not None:
            return f"tape off: the next cells are not recorded or replayed; this one ends as it began ({cell.mode})"
        return ""

    @property
    def taping(self) -> TapedCell | None:
        """The taped cell that runs now. None where its end was not told: no cell is on this stack."""
        if self._open is not None and count_running_cells():
            return self._open.cell
        return None

    def notebook(self, raw: str = "") -> Path:
        """The notebook that the cell `raw` (default: the one that runs now) stands in. Raises
        NotebookUnknown.
        """
        return self.ladder.find_notebook(raw or self._read_current_cell()[0], self.shell.user_ns)

    def notebook_or_none(self, raw: str = "") -> Path | None:
        """The same; None where it is unknown (a named cassette then lies where the kernel started)."""
        try:
            return self.notebook(raw)
        except NotebookUnknown:
            return None

    def cassette_path(self, name: str = "") -> Path:
        """Where the cassette of that name lies; without one the notebook's main one (or
        NotebookUnknown).
        """
        notebook = self.notebook_or_none() if name else self.notebook()
        return paths.cassette_path(notebook, name or MAIN, self.ladder.start)

    def cassette_names(self) -> list[str]:
        """Names of the cassettes that `%%tape replay NAME` could use here."""
        return paths.cassette_names(self.notebook_or_none(), self.ladder.start)

    def _begin_cell(self, raw: str, cell_id: str | None, count: int | None, depth: int) -> None:
        self.refusal = None
        try:
            line, source = self.taker.split(raw)
            if line is not None and depth > 1:
                return  # the %%tape magic is about to refuse
            if self.broken is not None and not is_quiet(raw):
                raise self.broken  # noqa: TRY301 - one way to refuse a cell
            command = self._choose_word(line, raw, cell_id)
            if command is None:
                self.lend_keys(raw)
                return
            if not source.strip():
                self._print_note(f"tape {command.mode}: the cell is empty, nothing to do")
                return
            self._open = self._open_cell(
                command, raw, source, cell_id, count, depth, explicit=line is not None
            )
        except (
            BaseException
        ) as error:  # an interrupt too: IPython would print it and run the cell, live
            self.refusal = error

    def _choose_word(self, line: str | None, raw: str, cell_id: str | None) -> Word | None:
        if (planned := self.planned()) is not None:
            return planned.choose_word(line, raw)
        command = self.parse_own_word(line, raw)
        if self.steps is None or (line is None and is_quiet(raw)):
            return command
        return self.steps.override_word(cell_id, command)

    def parse_own_word(self, line: str | None, raw: str) -> Word | None:
        """What the tape does in a cell by its own line, or by the session."""
        if line is not None:
            return parse_line(line)
        if self.deck.session_mode == "off" or is_quiet(raw):
            return None
        return Word(self.deck.session_mode, self.session.name, self.session.options)

    def _open_cell(
        self,
        command: Word,
        raw: str,
        source: str,
        cell_id: str | None,
        count: int | None,
        depth: int,
        *,
        explicit: bool,
    ) -> Open:
        mode, options, notes = self._resolve_mode(command)
        stepped = None
        if mode == "step" and (steps := self.steps or self.load_steps()) is not None:
            stepped = steps.prepare(command)
            mode, options = stepped.mode, stepped.options
        unnamed = command.name is None and mode != "live"
        notebook = self.notebook(raw) if unnamed else self.notebook_or_none(raw)
        request = CellRequest(
            mode=mode, name=command.name or MAIN, source=source, cell_id=cell_id, count=count,
            notebook=notebook, options=options, explicit=explicit or stepped is not None, namespace=self.shell.user_ns,
            start=self.ladder.start,
            typed=cell_id is None and not hasattr(self.shell, "kernel"),
            overruled=self.deck.session_mode == "replay" and not self.deck.forced,
        )  # fmt: skip
        cell = self.deck.begin(request)
        notes += self._pop_notebook_note()
        if (planned := self.planned()) is not None:
            planned.cell = cell
        opened = Open(cell, depth, thread_number(), explicit or stepped is not None, notes)
        if stepped is not None:
            try:
                opened.passes = stepped.start(cell, self._transformed or source)
            except BaseException as error:
                self.deck.end(cell, error)
                raise
        return opened

    def _pop_notebook_note(self) -> list[str]:
        """How the notebook was found, where that is worth a line; told once."""
        note, self.ladder.note = self.ladder.note, ""
        return [note] if note else []

    def passes(self, cell: TapedCell) -> None:
        """The open cell is run again, as this taped cell (jupyter/step/passes.py)."""
        if self._open is not None:
            self._open.cell = cell

    def _resolve_mode(self, command: Word) -> tuple[str, dict[str, Any], list[str]]:
        """Mode, options and notes of a cell's own word, which a session that replays overrides.

        A person is asked at each call of a stepped cell; so it only loses to TAPE_MODE.
        """
        wins, forced = self.deck.session_mode == "replay", self.deck.forced
        if not wins or command.mode == "replay" or (command.mode == "step" and not forced):
            return command.mode, dict(command.options), []
        if not forced:
            note = (
                f"replay is set, so this %%tape {command.mode} replayed. "
                f"To {command.mode.replace('_', ' ')}: %tape off, then this cell again"
            )
            return "replay", partial_replay.without(command.options), [note]
        note = f"TAPE_MODE=replay wins: %%tape {command.mode} replays here"
        notes = [] if self._said_replay_wins else [note]
        self._said_replay_wins = True
        return "replay", dict(command.options), notes

    def _close_cell(self, result: Any) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        if opened.passes is not None:
            opened.passes.finish()
            opened.notes.extend(opened.passes.notes)
        report = self.deck.end(opened.cell, self._find_result_error(result))
        self.lend_keys()
        report.notes.extend(opened.notes)
        self.reports.append(_strip_tracebacks(report))
        if opened.cell.request.cell_id:
            self._paths[opened.cell.request.cell_id] = report.path
        error = self._find_result_error(result)
        if report.misses and result is not None and result.success:
            error = report.misses[0]
            self._fail_cell(result, report.misses)
        if self.summarises and (opened.explicit or cell_summary.worth_showing(report)):
            request = opened.cell.request
            cell_summary.show_summary(report, error, request.notebook, request.count)

    def list_cells_of(self, path: Path) -> list[str]:
        """The ids of the cells whose newest taped run was on this cassette or take."""
        return [
            cell
            for cell, used in self._paths.items()
            if used is not None and used.absolute() == path.absolute()
        ]

    def _find_result_error(self, result: Any) -> BaseException | None:
        if result is None:
            return KeyboardInterrupt("the cell was interrupted")
        error: BaseException | None = result.error_in_exec or result.error_before_exec
        return error

    def _fail_cell(self, result: Any, misses: list[TapeRefusal]) -> None:
        """Turn a cell whose own code caught a refusal into a failed one: Run All stops, nbclient
        sees an error.
        """
        error = misses[0]
        result.error_in_exec = error
        self.shell.last_execution_succeeded = False
        more = f" and {len(misses) - 1} more" if len(misses) > 1 else ""
        if error.__traceback__ is not None:
            reason = "The cell's own code caught this error"
        else:
            reason = "This was noticed at the end of the cell"
        lines = [
            *short_traceback(error),
            f"{reason}{more}; the cell fails here, since the replay refused it.",
        ]
        # the hook that front ends override
        self.shell._showtraceback(type(error), error, lines)  # noqa: SLF001

    def _is_elsewhere(self, depth: int) -> bool:
        """Whether an event comes from inside the open cell (nested run), or from another shell
        thread.
        """
        opened = self._open
        return opened is not None and (depth > opened.depth or thread_number() != opened.thread)

    def _is_silent(self) -> bool:
        """Whether a front end runs this beside the notebook's cells."""
        get_parent: Callable[[], dict[str, Any]] | None = getattr(self.shell, "get_parent", None)
        parent = (get_parent() or {}) if get_parent else {}
        return bool(parent.get("content", {}).get("silent"))

    def _read_current_cell(self) -> tuple[str, str | None]:
        """Source and id of the cell that runs now, as the front end sent them."""
        get_parent: Callable[[], dict[str, Any]] | None = getattr(self.shell, "get_parent", None)
        parent = (get_parent() or {}) if get_parent else {}
        code = parent.get("content", {}).get("code")
        if code is None:
            history = self.shell.history_manager
            if history is not None and history.input_hist_raw:
                code = history.input_hist_raw[-1]
            else:
                code = ""
        return code, (parent.get("metadata") or {}).get("cellId")

    def _print_note(self, text: str) -> None:
        print(text)  # noqa: T201 - a note below the cell


def _strip_tracebacks(report: CellReport) -> CellReport:
    """The same report to keep: its refusals without their tracebacks, which hold clients, sockets
    and replies.
    """
    return replace(
        report, misses=[type(miss)(*miss.args) for miss in report.misses], on_tape=lambda: None
    )


def _load_nothing() -> None:
    """Nobody steps cells here."""


def _plan_nothing() -> None:
    """No re-run is on."""
