"""A cell that is stepped: its calls wait here until a person lets them go, wherever that person
sits.

What may be done, and what follows from it, the engine says (debugger/machine.py). Here threads and
tasks wait, an edit is committed to the take before it is served, and whoever watches is told.
Commands come on any thread.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.cell_sources import source_hash, title_of
from tape_jupyter.cassette.takes import edits, files
from tape_jupyter.core.call import Capture, Play
from tape_jupyter.debugger.breakpoints import Breaks
from tape_jupyter.debugger.call_site import KINDS
from tape_jupyter.debugger.machine import Machine, ParkedStrand, Rewind
from tape_jupyter.debugger.stack import Walked, frame_variables, namespace_texts, stack, walk_stack
from tape_jupyter.errors import BlockedConnection, SteppedAway, TapeUsageError
from tape_jupyter.instrumentation import stepping_hook
from tape_jupyter.jupyter.rerun import divergence
from tape_jupyter.jupyter.step import view as shown
from tape_jupyter.replay.player import GoLive, Refuse
from tape_jupyter.session.cell import Divergence, PausedCall, TapedCell
from tape_jupyter.session.interceptor import Written
from tape_jupyter.session.mismatch import find_divergence, title
from tape_jupyter.session.partial_replay import STEPPED

if TYPE_CHECKING:
    from tape_jupyter.session.session import TapeSession

Record = dict[str, Any]
Hear = Callable[[Record], None]
"""Hears the state (protocol.ts' StepState) whenever it changes; on any thread, and never for long."""

MOST_STOPS = 200
"""Stops whose variables are kept, to be compared."""


@dataclass(slots=True)
class Waiter:
    """A held call (session/cell.py, `Waiting`), and what a person made of it. `answer` gives what the program
    gets.
    """

    stepper: Stepper
    call: PausedCall
    at: ParkedStrand
    decided: Any
    answer: Callable[[], Play | Capture]
    frames: Walked = field(default_factory=list)
    unchangeable: str = ""
    sent: Any = None
    divergence: Divergence | None = None
    """Of a call that is not on the tape, once it was asked for."""
    wake: Callable[[], None] = lambda: None

    def wait(self) -> Play | Capture:
        released = threading.Event()
        self.wake = released.set
        if self.stepper.park_waiter(self):
            try:
                self.stepper.reach.block(released, self)
            except BaseException:
                self.stepper.abandon_wait(self, interrupted=True)
                raise
            finally:
                self.frames = []
        return self.answer()

    async def wait_async(self) -> Play | Capture:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # trio: its loop waits with us
            return self.wait()
        released: asyncio.Future[None] = loop.create_future()
        self.wake = lambda: _settle_future(loop, released)
        if self.stepper.park_waiter(self):
            try:
                await self.stepper.reach.wait_async(released, self)
            except BaseException as error:
                self.stepper.abandon_wait(self, interrupted=isinstance(error, KeyboardInterrupt))
                raise
            finally:
                self.frames = []
        return self.answer()


def _settle_future(loop: asyncio.AbstractEventLoop, released: asyncio.Future[None]) -> None:
    try:
        loop.call_soon_threadsafe(lambda: None if released.done() else released.set_result(None))
    except RuntimeError:
        if not loop.is_closed():
            raise


class Reach:
    """How a person is reached, and how a strand waits for one meanwhile. This one waits for
    commands.
    """

    name = "page"
    clears = True
    """Whether what a pass showed is taken off the cell when the person goes back."""

    # a prompt asks at once
    def block(self, released: threading.Event, waiter: Waiter) -> None:  # noqa: ARG002
        released.wait()

    def attach(self, stepper: Stepper) -> None:
        """The stepped cell that this is for."""

    # the same
    async def wait_async(self, released: asyncio.Future[None], waiter: Waiter) -> None:  # noqa: ARG002
        await released


@dataclass(slots=True)
class Stops:
    """What the variables were at the places where the cell stopped, the newest last."""

    at: dict[str, dict[str, str]] = field(default_factory=dict)

    def keep_texts(self, place: str, texts: dict[str, str]) -> None:
        self.at.pop(place, None)
        self.at[place] = texts
        while len(self.at) > MOST_STOPS:
            del self.at[next(iter(self.at))]

    def compared(self, a: str, b: str) -> Record:
        """protocol.ts' StepCompared. Raises TapeUsageError for a place where the cell did not stop."""
        for place in (a, b):
            if place not in self.at:
                raise TapeUsageError(
                    f"the cell did not stop at {place or 'its start'}: only places where it stopped can be compared"
                )
        one, two = self.at[a], self.at[b]
        pairs = ((name, one.get(name, ""), two.get(name, "")) for name in sorted({*one, *two}))
        return {
            "variables": [
                {"name": n, "before": old, "after": new} for n, old, new in pairs if old != new
            ],
            "note": "Values of classes are compared by their type and attributes; functions and modules are left out.",
        }


class Stepper:
    """One stepped cell (session/cell.py, `Stepping`), over all its passes."""

    def __init__(
        self, deck: TapeSession, breaks: Breaks, reach: Reach, notify: Hear, *, records: bool
    ) -> None:
        self.deck, self.reach, self.records = deck, reach, records
        self.machine = Machine(breaks)
        self.cell: TapedCell | None = None
        self.stops = Stops()
        self.edits = 0
        self.options: dict[str, Any] = {}
        self.runs: set[str] = set()
        """What this step recorded itself, with --record: that is what its later passes play."""
        self.rewinding: Rewind | None = None
        self.stopping = False
        self.interrupted = False
        self._waiters: dict[str, Waiter] = {}
        self._notify = notify
        self._lock = threading.RLock()

    # ------------------------------------------------------------ calls

    def create_waiter(self, crossing: PausedCall) -> Waiter:
        decided = self._decide_answer(crossing)
        site = shown.held_site(crossing, decided, with_text=bool(self.machine.breaks))
        with self._lock:
            if self._is_left_behind(crossing):
                raise SteppedAway("stepping was ended at this call")
            at = self.machine.register_call(crossing.lineage, site, _name_strand())
        return Waiter(self, crossing, at, decided, lambda: crossing.settle(decided))

    def _is_left_behind(self, crossing: PausedCall) -> bool:
        return self.machine.unwinding or self.machine.over or crossing.cell is not self.cell

    def _decide_answer(self, held_call: PausedCall) -> Any:
        """What the player decided; while recording, a later pass plays what this step recorded, and
        nothing else.
        """
        decided = held_call.decided
        if self.records and isinstance(decided, Entry) and decided.run not in self.runs:
            return GoLive()
        return decided

    def park_waiter(self, waiter: Waiter) -> bool:
        """Whether the call waits. Called on the strand itself."""
        with self._lock:
            if self._is_left_behind(waiter.call):
                raise SteppedAway("stepping was ended at this call")
            revision = self.machine.revision
            if not self.machine.stays(waiter.at):
                if self.machine.revision != revision:
                    self.publish_state()
                return False
            frame = sys._getframe(1)  # noqa: SLF001 - its callers are the stack that is shown
            waiter.frames = walk_stack(frame)
            if isinstance(waiter.decided, GoLive):
                waiter.unchangeable = stepping_hook.why_unchangeable(waiter.call.call, frame)
            self._waiters[waiter.at.strand] = waiter
            waiter.call.cell.start.hold()
            if waiter.call.cell.pins.clock is not None:
                waiter.call.cell.pins.clock.pause_deadlines()
            self.stops.keep_texts(waiter.at.place, self._collect_texts(waiter))
        self.publish_state()
        return True

    def abandon_wait(self, waiter: Waiter, *, interrupted: bool) -> None:
        """The strand does not wait any more, though nobody let it go: an interrupt, a timeout, a
        cancelled task.
        """
        with self._lock:
            self._waiters.pop(waiter.at.strand, None)
            self.machine.leave(waiter.at.strand)
            self._release_clock(waiter)
        if interrupted:
            self.interrupt()
        else:
            self.publish_state()

    def _release_clock(self, waiter: Waiter) -> None:
        if self._waiters:
            return
        waiter.call.cell.start.release()
        if waiter.call.cell.pins.clock is not None:
            waiter.call.cell.pins.clock.resume_deadlines()

    def _release_strand(self, strand: str) -> None:
        waiter = self._waiters.pop(strand)
        self._release_clock(waiter)
        waiter.wake()

    def _collect_texts(self, waiter: Waiter) -> dict[str, str]:
        """The notebook's variables, and those of the functions that the strand is in."""
        texts = namespace_texts(waiter.call.cell.request.namespace, self.scrub)
        for frame, _ in waiter.frames:
            if (
                frame.f_globals is not frame.f_locals
                and frame.f_locals is not waiter.call.cell.request.namespace
            ):
                name = frame.f_code.co_name
                texts |= {
                    f"{name}: {key}": text
                    for key, text in namespace_texts(frame.f_locals, self.scrub).items()
                }
        return texts

    def scrub(self, text: str) -> str:
        return self.deck.secrets.scrub(text)[0]

    # ------------------------------------------------------------ what a person wants

    def apply_command(self, message: Mapping[str, Any]) -> None:
        """A StepDo of the protocol. Raises TapeUsageError for what cannot be done now, TapeError
        for what failed.
        """
        action, strand, revision = message.get("do"), message.get("strand"), message.get("revision")
        with self._lock:
            if action == "stop":
                self.stop()
            elif action == "continue":
                self._require_open()
                for released in self.machine.release_all():
                    self._release_strand(released)
            elif action in ("to", "jump"):
                self._run_to_place(str(message.get("place") or ""), str(message.get("span") or ""))
            elif action == "back":
                self._rewind_cell(self.machine.back(strand))
            else:
                self._act_on_call(str(action), self.machine.parked(strand, revision), message)
        self.publish_state()

    def _require_open(self) -> None:
        if self.machine.over:
            raise TapeUsageError("stepping has ended")

    def _run_to_place(self, place: str, span: str) -> None:
        self._require_open()
        released = self.machine.run_to_call(place=place, span=span)
        if isinstance(released, Rewind):
            self._rewind_cell(released)
            return
        for strand in released:
            self._release_strand(strand)

    def _act_on_call(self, action: str, at: ParkedStrand, message: Mapping[str, Any]) -> None:
        waiter = self._waiters[at.strand]
        if action == "request" and waiter.unchangeable:
            raise TapeUsageError(waiter.unchangeable)
        if action not in self.can(waiter):
            raise TapeUsageError(
                f"{action!r:.40} is not possible here: {', '.join(self.can(waiter))}"
            )
        if action in ("over", *KINDS):
            self._release_call(waiter, "each" if action == "over" else action)
        elif action == "live":
            self._answer_call(waiter, GoLive(shown.entry_of(waiter.decided)))
        elif action == "refuse":
            waiter.answer = lambda: _refuse_call(waiter)
            self._release_call(waiter)
        elif action == "request":
            waiter.sent = shown.changed_request(waiter.call.call, str(message.get("text", "")))
            waiter.answer = lambda: waiter.call.settle(waiter.decided, waiter.sent)
            self.machine.set_note("the request is changed; it goes out when you step over it")
        else:
            self._edit_reply(action, waiter, message)

    def _answer_call(self, waiter: Waiter, decided: Any) -> None:
        waiter.answer = lambda: waiter.call.settle(decided)
        self._release_call(waiter)

    def _release_call(self, waiter: Waiter, until: str = "each", *, edited: bool = False) -> None:
        self.machine.note = ""
        self.machine.release(waiter.at.strand, until, edited=edited)
        self._release_strand(waiter.at.strand)

    def can(self, waiter: Waiter) -> list[str]:
        """What may be done with the call: words of the protocol."""
        moves = ["over", "model", "tool", "retrieval", "continue", "to", "jump"]
        if isinstance(waiter.decided, Refuse):
            moves = ["over"]
        if self.machine.passed:
            moves.append("back")
        known = shown.entry_of(waiter.decided) is not None
        fault = ["fault"] if known or self.records else []
        own_actions = [*(["edit"] if known else []), *fault, "answer"]
        if self.records:
            if isinstance(waiter.decided, GoLive) and not waiter.unchangeable:
                request = ["request"]
            else:
                request = []
            return [*moves, *own_actions, "refuse", *request, "stop"]
        return [*moves, *own_actions, "live", "refuse", "stop"]

    # ------------------------------------------------------------ edits

    def _edit_reply(self, action: str, waiter: Waiter, message: Mapping[str, Any]) -> None:
        """Commit another reply to the take, serve it and go on."""
        entry = shown.entry_of(waiter.decided)
        if entry is None:
            reply = self._build_reply(waiter, action, message)
            self._switch_to_take(waiter)
            self._serve_written_reply(waiter, reply)
            return
        answer = edits.accept_edit(
            entry, self._build_edit(action, entry, message), accept=message.get("accept") is True
        )
        self._switch_to_take(waiter)
        book = self._require_cassette()
        take = book.commit_reply(entry, answer)
        self.edits += 1
        self.options["take"] = files.take_name(take.path)
        self.deck.changed()
        if take is not book:  # a take of the take: the cell goes on in that one, from its start
            self._rewind_cell(Rewind(waiter.at.place, through=True))
            return
        call = take.call(entry.run, entry.id)
        waiter.call.cell.execution.shelves.clear()
        waiter.answer = lambda: waiter.call.settle(call)
        self._release_call(waiter, edited=True)

    def _build_edit(
        self, action: str, entry: Entry, message: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if action == "fault":
            return {
                "form": "fault",
                "name": str(message.get("name", "")),
                "options": message.get("options") or {},
            }
        if action == "answer":
            return divergence.meant_edit(entry, str(message.get("text", "")))
        edit = message.get("edit")
        if not isinstance(edit, Mapping):
            raise TapeUsageError("an edit says what the reply shall be")
        return edit

    def _build_reply(self, waiter: Waiter, action: str, message: Mapping[str, Any]) -> Any:
        """The reply of a call that is not on the tape: in the wire form of the recorded call that
        is nearest.
        """
        mismatch = self._find_divergence(waiter)
        if action == "fault":
            return divergence.fault(
                mismatch, str(message.get("name", "")), message.get("options") or {}
            )
        return divergence.Question.from_divergence(mismatch).answer(str(message.get("text", "")))

    def _list_changed_fields(self, waiter: Waiter) -> list[dict[str, str]]:
        if waiter.at.site.would != "refuse":
            return []
        return divergence.changed_fields(self._find_divergence(waiter))

    def _find_divergence(self, waiter: Waiter) -> Divergence:
        if waiter.divergence is None:
            paused = waiter.call
            waiter.divergence = find_divergence(
                paused.cell, paused.call, paused.match, paused.lineage, self.deck.secrets
            )
        return waiter.divergence

    def _switch_to_take(self, waiter: Waiter) -> None:
        """The first edit of a recording: what happened until here stays in it, and what follows
        goes to a take.
        """
        cell = waiter.call.cell
        if not self.records or cell.cassette is None or cell.cassette.base is not None:
            return
        self.runs.add(cell.recording.run)
        take = self.deck.turn_aside(cell, files.unused_name(cell.cassette.root, STEPPED))
        self.runs.add(cell.recording.run)
        self.options["take"] = files.take_name(take.path)

    def _serve_written_reply(self, waiter: Waiter, reply: Any) -> None:
        self.edits += 1
        waiter.answer = lambda: waiter.call.settle(Written(reply))
        self._release_call(waiter, edited=True)

    def _require_cassette(self) -> Any:
        if self.cell is None or self.cell.cassette is None:
            raise TapeUsageError("the cell has no cassette")
        return self.cell.cassette

    # ------------------------------------------------------------ leaving the code that runs

    def _rewind_cell(self, to: Rewind) -> None:
        self.rewinding = to
        self.machine.rewind(to)
        self._send_waiters_away()

    def stop(self) -> None:
        """End the step; the notebook's state is put back as it was before the cell."""
        with self._lock:
            if self.machine.over or self.stopping:
                return
            self.stopping, self.rewinding = True, None
            self.machine.unwinding = True
            self._send_waiters_away()

    def interrupt(self) -> None:
        """The kernel was interrupted: whoever waits is sent away, so that nobody waits for them in
        vain.
        """
        with self._lock:
            self.interrupted = True
            self.stop()

    def _send_waiters_away(self) -> None:
        for waiter in list(self._waiters.values()):
            waiter.answer = _leave_step
            waiter.wake()
        self._waiters.clear()
        self.machine.strands.clear()
        if self.cell is not None and self.cell.pins.clock is not None:
            self.cell.pins.clock.resume_deadlines()

    @property
    def leaving(self) -> bool:
        """Whether the code that runs is to be left: what it raises meanwhile is none of its own."""
        return self.machine.unwinding

    # ------------------------------------------------------------ passes (jupyter/step/passes.py drives them)

    def begin(self, cell: TapedCell) -> None:
        """A pass begins, with this taped cell."""
        with self._lock:
            self.cell, self.rewinding = cell, None
            cell.stepping = self
            self.machine.begin()
            self.machine.unwinding = self.stopping
        self.publish_state()

    def end(self, note: str) -> None:
        """The cell is over. Whoever still waits (a thread that outlives it) is sent away."""
        with self._lock:
            if self.machine.over:
                return
            self._send_waiters_away()
            self.machine.end(note)
            if self.cell is not None and not self.stopping:
                self.cell.stepping = (
                    None  # a call that comes too late is refused as in any other cell
                )
        self.publish_state()

    # ------------------------------------------------------------ what is shown

    def publish_state(self) -> None:
        """To all who look on. In the order of revisions: a refusal is told by one thread, the
        cell's end by another.
        """
        with self._lock:
            self._notify(self.state())

    def state(self) -> Record:
        """protocol.ts' StepState."""
        with self._lock:
            machine, cell = self.machine, self.cell
            request = cell.request if cell is not None else None
            tape = cell.cassette if cell is not None else None
            notes = [machine.note, *machine.breaks.failures]
            cell_id = ""
            if request is not None:
                cell_id = request.cell_id or source_hash(request.source)[:12]
            return {
                "revision": machine.revision,
                "state": machine.phase,
                "cell": cell_id,
                "title": title_of(request.source) if request is not None else "",
                "mode": "record" if self.records else "replay",
                "cassette": paths.stem(tape.root) if tape is not None else "",
                "take": str(self.options.get("take") or "") if self.edits else "",
                "plays": files.take_name(tape.played_path)
                if tape is not None and tape.played_path != tape.root
                else "",
                "edits": self.edits,
                "breaks": list(machine.breaks.words),
                "strands": [self._build_strand_record(each) for each in self._waiters.values()],
                "passed": [done.record() for done in machine.listed()],
                "made": len(machine.passed),
                "note": "; ".join(note for note in notes if note),
            }

    def _build_strand_record(self, waiter: Waiter) -> Record:
        frame = waiter.frames[0][0] if waiter.frames else None
        at = waiter.at
        call = shown.call_record(
            at, waiter.call, waiter.decided, self.can(waiter), self.deck.secrets,
            sent=waiter.sent, fields=self._list_changed_fields(waiter),
            unchangeable=waiter.unchangeable if self.records else "",
        )  # fmt: skip
        return {
            "strand": at.strand, "name": at.name, "call": call,
            "at": self._format_file_name(frame.f_code.co_filename) if frame is not None else "",
            "line": frame.f_lineno if frame is not None else None,
        }  # fmt: skip

    def _format_file_name(self, name: str) -> str:
        return self._find_cell(name)[0] or name

    def _find_cell(self, name: str) -> tuple[str, str]:
        """Such as "cell [3]", for the file name that IPython gave that cell's code, and the cell's
        id.
        """
        from IPython import get_ipython

        shell: Any = get_ipython()
        if shell is not None:
            number = getattr(shell.compile, "_filename_map", {}).get(name)
        else:
            number = None
        if number is None:
            return "", ""
        return f"cell [{number}]", self._find_cell_id(number)

    def _find_cell_id(self, number: int) -> str:
        """As the front end has it, else the first digits of the source's hash."""
        request = self.cell.request if self.cell is not None else None
        if request is not None and request.count == number:
            return request.cell_id or source_hash(request.source)[:12]
        history = self.deck.tracker.history if self.deck.tracker is not None else ()
        entry = next((each for each in reversed(list(history)) if each.number == number), None)
        return "" if entry is None else entry.cell or source_hash(entry.source)[:12]

    def frames(self, strand: str) -> list[Record]:
        """protocol.ts' StepFrame[]. Raises TapeUsageError where that strand does not wait."""
        with self._lock:
            return [
                frame.record()
                for frame in stack(self._require_waiter(strand).frames, self._find_cell)
            ]

    def variables(self, strand: str, index: int) -> Record:
        """protocol.ts' StepVariables of a frame. Raises TapeUsageError."""
        with self._lock:
            frames = self._require_waiter(strand).frames
            if not 0 <= index < len(frames):
                raise TapeUsageError("that frame is gone")
            return frame_variables(frames[index][0], self.scrub)

    def _require_waiter(self, strand: str) -> Waiter:
        waiter = self._waiters.get(strand)
        if waiter is None:
            raise TapeUsageError("that thread or task is not waiting at a call")
        return waiter


def _leave_step() -> Play | Capture:
    raise SteppedAway("stepping was ended at this call")


def _refuse_call(waiter: Waiter) -> Play | Capture:
    text = f"{title(waiter.call.call)} was refused on your request. Nothing was sent."
    raise waiter.call.cell.refuse(BlockedConnection(text))


def _name_strand() -> str:
    """The strand for people: the cell, a thread, a task."""
    thread = threading.current_thread()
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is not None and thread is threading.main_thread():
        return f"task {task.get_name()}"
    return "cell" if thread is threading.main_thread() else f"thread {thread.name}"
