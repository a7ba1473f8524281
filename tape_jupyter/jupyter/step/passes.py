"""The passes of a stepped cell: its code is run again from the start where a person goes back,
within the one execution that the front end knows of.

IPython runs a cell's statements in `run_ast_nodes`; while a cell is stepped ours stands over it.
When the code has left (jupyter/step/stepper.py sends every call away), the notebook's state is put
back, the outputs are cleared, and it runs again.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tape_jupyter.core.real_clock import monotonic
from tape_jupyter.debugger.snapshot import NamespaceSnapshot, reached
from tape_jupyter.debugger.stack import is_theirs
from tape_jupyter.errors import SteppedAway, TapeError
from tape_jupyter.jupyter.step.stepper import Stepper
from tape_jupyter.session.cell import CellRequest, TapedCell, current_task

if TYPE_CHECKING:
    from tape_jupyter.jupyter.cell_runner import CellRunner

_END = b"\0"
"""No signal has this number."""
LINGERING = 1.0
"""Seconds that threads and tasks of a pass that is left have to end."""
STOPPED = (
    "stepping was stopped: the notebook's variables and files are as they were before the cell"
)

AGAIN = "the cell starts again: what is above was shown by the run before"


class CellPasses:
    """Runs one stepped cell as often as a person wants. `cell` is the taped cell of the pass that
    runs.
    """

    def __init__(self, cells: CellRunner, stepper: Stepper, cell: TapedCell) -> None:
        self.cells, self.shell, self.stepper, self.cell = cells, cells.shell, stepper, cell
        self.notes: list[str] = []
        self._undo: list[Callable[[], None]] = []
        self._before: NamespaceSnapshot | None = None
        self._transformed = ""
        self._between = False
        """Between two passes: an interrupt waits until everything is put back."""
        self._threads = set(threading.enumerate())
        self._tasks = _list_tasks()

    # ------------------------------------------------------------ the shell's hooks, for this one cell

    def start(self, transformed: str) -> None:
        """The cell is about to run: keep what it can change, and stand over the shell."""
        self._transformed = transformed
        tracker = self.cells.deck.tracker
        assert tracker is not None
        self._before = NamespaceSnapshot(
            self.shell, tracker.variables, reached(transformed, tracker.variables)
        )
        self._original_run = self._shadow_method("run_ast_nodes", self._run_passes)
        self._original_showtraceback = self._shadow_method("showtraceback", self._show_traceback)
        self._undo += [_handle_interrupts(self.stepper, lambda: self._between), _silence_threads()]
        self.stepper.begin(self.cell)

    def finish(self) -> None:
        """The cell is over."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        if self._before is not None:
            self._before.end()
        self.stepper.end(
            self.stepper.machine.note if self.stepper.stopping else "the cell ran to its end"
        )

    def _shadow_method(self, name: str, ours: Any) -> Any:
        """Shadow a method of the shell on its instance; another's shadow comes back afterwards.
        Gives what it was.
        """
        attributes, original = vars(self.shell), getattr(self.shell, name)

        def restore_method() -> None:
            attributes.pop(name, None)
            attributes.update(was)

        was = {name: attributes[name]} if name in attributes else {}
        self._undo.append(restore_method)
        attributes[name] = ours
        return original

    async def _run_passes(self, nodelist: Any, cell_name: str, *args: Any, **kwargs: Any) -> Any:
        """`run_ast_nodes`, again and again."""
        result = kwargs.get("result") or (args[2] if len(args) > 2 else None)
        while True:
            failed = await self._original_run(copy.deepcopy(nodelist), cell_name, *args, **kwargs)
            if not self.stepper.leaving and (missed := self.stepper.machine.missed()):
                self.notes.append(
                    f"the cell ended before it came to {missed} again: what it asks is not the same"
                )
            if not self.stepper.leaving:
                return failed
            self._between = True
            try:
                await self._await_leftovers()
            except asyncio.CancelledError:  # how an interrupt reaches a cell that awaits
                self.stepper.interrupt()
            if self.stepper.rewinding is None:
                return self._fail_stopped_cell(result)
            try:
                self._begin_next_pass(result)
            except TapeError as error:  # the cassette cannot be read any more, say
                self._add_note(f"the cell could not be run again: {error}")
                return self._fail_stopped_cell(result)
            if self.stepper.stopping:  # interrupted meanwhile
                return self._fail_stopped_cell(result)
            self._between = False

    def _show_traceback(self, *args: Any, **kwargs: Any) -> Any:
        """What code raises that is being left is nobody's error; an interrupt is shown."""
        if self.stepper.leaving and not issubclass(
            sys.exc_info()[0] or BaseException, KeyboardInterrupt
        ):
            return None
        return self._original_showtraceback(*args, **kwargs)

    # ------------------------------------------------------------ between two passes

    def _begin_next_pass(self, result: Any) -> None:
        """Everything as it was before the cell, and a new taped cell."""
        self._clear_outputs()
        self._restore_state()
        if result is not None:
            result.error_before_exec = result.error_in_exec = result.result = None
        self.cells.deck.end(self.cell, SteppedAway("stepped back"))
        if self.cell.recording.run:
            self.stepper.runs.add(self.cell.recording.run)
        self.cell = self.cells.deck.begin(self._build_request())
        self.cells.passes(self.cell)
        assert self._before is not None
        self._before.put_ambient()
        self.stepper.begin(self.cell)

    def _build_request(self) -> CellRequest:
        """The cell as it is run again: on the take that holds the edits; of a recording what it
        recorded is played.
        """
        request, stepper = self.cell.request, self.stepper
        options = {**request.options, **stepper.options}
        if stepper.records and stepper.runs | ({self.cell.recording.run} - {""}):
            options.setdefault("repeats", options.get("adds_to") or self.cell.recording.run)
            return replace(request, mode="new_episodes", options=options)
        return replace(request, options=options)

    def _restore_state(self) -> None:
        assert self._before is not None
        lost = self._before.restore()
        if lost.names:
            self._add_note(
                f"{', '.join(lost.names)} could not be put back: what has no copy (a generator, an open file)"
            )
        if lost.files:
            self._add_note(f"{', '.join(lost.files)} could not be put back: too large to keep")

    def _add_note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _fail_stopped_cell(self, result: Any) -> bool:
        """The person stopped, or the kernel was interrupted: the cell fails, with its state put
        back.
        """
        self._restore_state()
        self.stepper.machine.note = STOPPED
        error = getattr(result, "error_in_exec", None)
        if self.stepper.interrupted and error is None and result is not None:
            error = result.error_in_exec = KeyboardInterrupt(STOPPED)
        if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
            print(f"tape step: {STOPPED}", file=sys.stderr)  # noqa: T201 - a note below the cell
            return True
        error = SteppedAway(STOPPED)
        if result is not None:
            result.error_in_exec = error
        # as front ends do
        self.shell._showtraceback(type(error), error, [f"tape step: {STOPPED}"])  # noqa: SLF001
        return True

    def _clear_outputs(self) -> None:
        """Take what the pass showed off the cell, or say where the next pass begins."""
        if not self.stepper.reach.clears:
            print(f"tape step: {AGAIN}")  # noqa: T201 - a note below the cell
            return
        sys.stdout.flush()
        sys.stderr.flush()
        if getattr(self.shell, "kernel", None) is not None:
            publisher: Any = self.shell.display_pub
            publisher.clear_output(wait=False)

    async def _await_leftovers(self) -> None:
        """Let threads and tasks of the pass end: none may run on beside the next."""
        left = [
            task
            for task in _list_tasks() - self._tasks
            if task is not current_task() and not task.done()
        ]
        for task in left:
            task.cancel()
        if left and self._is_awaited:
            await asyncio.wait(left, timeout=LINGERING)
        until = monotonic() + LINGERING
        while (busy := self._find_busy_threads()) and monotonic() < until:
            busy[0].join(0.01)
        for thread in self._find_busy_threads():
            self._add_note(f"thread {thread.name} of the pass before runs on")

    @property
    def _is_awaited(self) -> bool:
        """Whether this is awaited by an event loop: IPython runs a cell without `await` to its end
        by hand.
        """
        task = current_task()
        shell: Any = self.shell
        source = self._transformed
        return task is not None and bool(shell.should_run_async(source, transformed_cell=source))

    def _find_busy_threads(self) -> list[threading.Thread]:
        """Threads that this cell started and that run its code."""
        frames = sys._current_frames()  # noqa: SLF001 - the only way to a thread's frame
        mine = [
            each
            for each in threading.enumerate()
            if each not in self._threads and each.name[:5] != "tape "
        ]
        others = [each for each in mine if each is not threading.current_thread()]
        return [each for each in others if _has_their_frame(frames.get(each.ident or 0))]


def _has_their_frame(frame: Any) -> bool:
    while frame is not None:
        if is_theirs(frame):
            return True
        frame = frame.f_back
    return False


def _list_tasks() -> set[Any]:
    try:
        return set(asyncio.all_tasks())
    except RuntimeError:
        return set()


def _silence_threads() -> Callable[[], None]:
    """A thread that is sent away dies without a word; gives what undoes it."""
    before = threading.excepthook

    def show_exception(told: Any) -> None:
        if not issubclass(told.exc_type, SteppedAway):
            before(told)

    threading.excepthook = show_exception

    def restore_hook() -> None:
        if threading.excepthook is show_exception:
            threading.excepthook = before

    return restore_hook


def _handle_interrupts(stepper: Stepper, later: Callable[[], bool]) -> Callable[[], None]:
    """Send everybody away when the kernel is interrupted: the main thread may wait for one that
    waits for a person.

    Gives what undoes it. Nothing happens where signals cannot be heard (a cell beside the main
    thread).
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        return lambda: None

    def handle_interrupt(number: int, frame: Any) -> Any:
        stepper.interrupt()
        return None if later() else before(number, frame)

    signal.signal(signal.SIGINT, handle_interrupt)
    deaf = _handle_interrupts_at_once(stepper.interrupt)

    def restore_handler() -> None:
        deaf()
        if signal.getsignal(signal.SIGINT) is handle_interrupt:
            signal.signal(signal.SIGINT, before)

    return restore_handler


def _handle_interrupts_at_once(interrupt: Callable[[], None]) -> Callable[[], None]:
    """Call it as an interrupt comes, also where the system hands it to another thread while the
    main one waits: that one's handler would run when it goes on, which is when a person says so.
    Gives what undoes it.

    On Windows nothing is done: there the system hands an interrupt to no thread but the main one.
    """
    if os.name != "posix":
        return lambda: None
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)

    def read_signals() -> None:
        while (data := os.read(reads, 1)) != _END:
            if data[0] == signal.SIGINT:
                interrupt()
            if before != -1:
                with suppress(OSError):  # an event loop's, full or closed
                    os.write(before, data)
        os.close(reads)

    thread = threading.Thread(target=read_signals, name="tape interrupts", daemon=True)
    contextvars.Context().run(thread.start)  # a thread of ours takes no number among the program's

    def restore_wakeup() -> None:
        now = signal.set_wakeup_fd(before)
        if now not in (writes, -1):  # somebody else's by now
            signal.set_wakeup_fd(now)
        os.write(writes, _END)
        thread.join()
        os.close(writes)

    return restore_wakeup
