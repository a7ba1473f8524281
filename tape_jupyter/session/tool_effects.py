"""What the body of a tool did besides returning: observed while it runs live, done again in replay.

The record of it is the call's `did` (core/call.py, `Value`), with those of these keys that say something:

    shown      what it showed, in order (instrumentation/tools/output.py)
    memory     what it changed in the program's memory (effects/memory.py)
    same       parts of its result that are objects of the program's, by their places
    raised     the same of the error that it raised, its cause and its context
    imports    modules of the user's that it imported first (effects/imports.py)
    settings   which settings of the process and of libraries it changed (session/tool_settings.py)
    files      what it wrote in the notebook's folder (session/tool_files.py)
    descriptors     where files stand that are open by a number (effects/descriptors.py)
    lost       in words, what of all this could not be written
    folders    which folders of the notebook's all this names (core/moved_folders.py)
    awaited    that the error is of a coroutine which the body, none of `async def`, gave
    cancelled  how often its task was cancelled, and it went on
    amid       where others went on meanwhile: how many of the things that it showed came together.
               First those that it showed at once, before it awaited anything; then a count for each
               place in the order of hand-overs (determinism/order.py). True where there are no
               places, so that a replay shows all at once
"""

from __future__ import annotations

import asyncio
import contextlib
import linecache
import logging
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any, Protocol, cast

from tape_jupyter.core.call import FunctionCall, Value
from tape_jupyter.core.context import BODY
from tape_jupyter.core.libraries import is_library_class
from tape_jupyter.core.moved_folders import MovedFolders
from tape_jupyter.effects.bodies import Bodies
from tape_jupyter.effects.changes import Changes, list_numbers
from tape_jupyter.effects.imports import import_again, read_import_effects
from tape_jupyter.effects.memory import Snapshot
from tape_jupyter.effects.paths import follow_path
from tape_jupyter.effects.redoing import Redo, restore_own_objects
from tape_jupyter.effects.scope import Scope
from tape_jupyter.effects.writing import EffectWriter
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.exceptions import MAX_CHAIN
from tape_jupyter.encoding.values.placeholders import Argument
from tape_jupyter.errors import CassetteError
from tape_jupyter.instrumentation.concurrency.threads import going_on
from tape_jupyter.instrumentation.tools import processes
from tape_jupyter.instrumentation.tools.output import (
    bare_record,
    current_sinks,
    emit_message,
    find_catch,
    find_publisher,
    handlers_of,
    shows_to_person,
)
from tape_jupyter.session.cell import TapedCell
from tape_jupyter.session.tool_files import (
    ReplayedFolder,
    ToolFiles,
    found_otherwise,
    redo_descriptors,
    redo_files,
)
from tape_jupyter.session.tool_settings import ToolSettings, set_again, set_handler_again

KINDS = ("output", "memory", "files")
"""What `--no-effects` leaves out."""


class _Capture(Protocol):
    """What keeps a call that is recorded (session/http_recorder.RecorderBase)."""

    @property
    def id(self) -> str: ...

    @property
    def lineage(self) -> str: ...

    @property
    def places(self) -> bool: ...

    def take_turn(self) -> None: ...

    def take_place(self) -> int: ...

    def give_place_back(self, count: int) -> bool: ...


class ObservedBody:
    """The body of one call, while it runs. What it does is also done by the bodies around it."""

    def __init__(self, cell: TapedCell, call: FunctionCall, capture: _Capture) -> None:
        self._cell, self._call, self._capture = cell, call, capture
        self._left_out = set(KINDS)
        if call.scope is not None:
            self._left_out = set(cell.request.options.get("no_effects", ()))
        self._running: Bodies = cell.tools.bodies
        self._around = BODY.get()
        self._outermost: ObservedBody = (
            self if self._around is None else self._around.observed._outermost  # noqa: SLF001
        )
        self._snapshot: Snapshot | None = None
        self._files: ToolFiles | None = None
        self._settings: ToolSettings | None = None
        self._events: list[dict[str, Any]] = []
        self._changes = Changes()
        self._shown_at: tuple[Any, int, int | None] | None = None
        self._groups: list[int] = []
        """By event, the group with which it came; 0 is what is shown at once."""
        self._began: tuple[int, int | None] = (0, None)
        """Hand-overs, and the round of its event loop, when the body began."""
        self._overlapping: dict[str, None] = {}
        self._imported: list[ModuleType] = []
        self._sinks: Mapping[str, Any] = {}
        self._program_sinks: Mapping[str, Any] = {}
        """Those when nobody else's body ran: what a body beside it put there stands among the others."""
        self._changed_before: list[dict[str, Any]] | None = None
        """What it changed before the event that it is about to show through code of the program's, of
        what that code looks at.
        """
        self._cancelled = 0
        self._lost: list[str] = []
        """In words, what of what it showed cannot be written."""
        self._display_ids: set[str] = set()
        """Of what it displayed itself."""
        self.begin()

    def begin(self) -> None:
        """The body is about to run, or to run on."""
        self._events, self._groups, self._lost, self._changes = [], [], [], Changes()
        self._sinks = current_sinks()
        others = self._running.open
        self._program_sinks = others[0]._program_sinks if others else self._sinks  # noqa: SLF001
        self._cancelled = _count_cancels()
        order = self._clock_order
        self._began = self._count_handovers(), None if order is None else order.round
        self._note_concurrent_bodies()
        self._running.open.append(self)
        if "memory" not in self._left_out:
            self._snapshot = self._running.begin(self._call.scope, self._collect_outer_snapshots())
            self._settings = ToolSettings(
                self._cell.folder, self._snapshot.words, self._snapshot.imports
            )
            if processes.may_write(self._snapshot.words):
                processes.begin_writing(self)
        if "files" not in self._left_out:
            self._files = ToolFiles(
                self._cell.folder, self._is_running_here, self._cell.request.notebook
            )
            if self._snapshot is None:
                self._files.begin(())
            else:
                snapshot = self._snapshot
                self._files.begin(snapshot.files(), snapshot.words, snapshot.descriptors())
                self._snapshot.hear_of_files()

    def _note_concurrent_bodies(self) -> None:
        """Bodies that run beside each other note it: whose of them changed what is not seen."""
        for other in self._running.open:
            if other._outermost is not self._outermost:  # noqa: SLF001 - its own kind
                self._overlapping[other._capture.id] = None  # noqa: SLF001
                other._overlapping[self._capture.id] = None  # noqa: SLF001

    def _collect_outer_snapshots(self) -> list[Snapshot]:
        snapshots, capture = [], self._around
        while capture is not None:
            snapshots.append(capture.observed._snapshot)  # noqa: SLF001 - its own kind
            capture = capture.observed._around  # noqa: SLF001
        return [each for each in snapshots if each is not None]

    def _is_running_here(self) -> bool:
        """Whether the code that runs here and now is this body, or one that it called."""
        capture = BODY.get()
        while capture is not None and capture.observed is not self:
            capture = capture.observed._around  # noqa: SLF001 - its own kind
        return capture is not None

    def wait_to_show(self) -> None:
        """The body is about to show something, after what came from its processes: where that needs a
        place in the order of hand-overs, others come to rest first.
        """
        self._record_events(processes.take_read(self))
        if self is not self._outermost:
            self._outermost.wait_to_show()
            return
        if self not in self._running.open or "output" in self._left_out:
            return
        if not (self._is_alone_since_shown() or (not self._groups and self._is_at_start())):
            self._capture.take_turn()

    def record_output(self, event: dict[str, Any], sink: Any = None) -> None:
        """The body showed something, at a sink; or what it started, after it ended, while another one
        runs.
        """
        if self not in self._running.open:
            if self._running.open:
                self._running.open[-1].record_output(event, sink)
            return
        if self._around is not None:
            self._around.record_output(event, sink)
        if "output" in self._left_out:
            return
        changed, self._changed_before = self._changed_before, None
        event = self._as_shown(event, sink)
        if not event:
            return
        if "lost" in event:
            self._lost.append(event["lost"])
            return
        group = self._choose_group()
        together = bool(self._groups) and self._groups[-1] == group and changed is None
        for name in ("out", "err"):  # text that follows text is one text
            if together and name in event and name in self._events[-1]:
                self._events[-1][name] += event[name]
                return
        event = dict(event) if "out" in event or "err" in event else event
        self._events.append({**event, "changed": changed} if changed else event)
        self._groups.append(group)

    def _as_shown(self, event: dict[str, Any], sink: Any) -> dict[str, Any]:
        """The event as it is recorded; {} where it went to what the body itself put there to catch it."""
        if self._is_caught(event, sink):
            lost = {"lost": "what it wrote past `redirect_stdout` or the like is not recorded"}
            return lost if shows_to_person(sink) else {}
        if "to" in event:
            place = self.find_place(event["to"])
            lost = {"lost": "it handed a log record to a handler that was not found"}
            return {**event, "to": place} if place else lost
        return self._with_handle(event) if "display" in event else event

    def find_place(self, value: Any) -> str:
        """The path of an object that was within reach when the body began; "" for any other."""
        return "" if self._snapshot is None else self._snapshot.find_place(value)

    def _is_caught(self, event: Mapping[str, Any], sink: Any) -> bool:
        """Whether it goes to what the body itself put there, or one that runs in it or beside it."""
        if sink is None:
            return False
        name = next(iter(event))
        catch = find_catch(sink)
        if catch is None:
            return sink not in (self._sinks.get(name), self._program_sinks.get(name))
        above = [None, *(body._capture for body in self._list_around()[1:])]  # noqa: SLF001
        return all(catch.body is not each for each in above)

    def _with_handle(self, event: dict[str, Any]) -> dict[str, Any]:
        """Of the update of a display that others made: where the program keeps its id, which is another
        one in replay.
        """
        display_id = event.get("transient", {}).get("display_id")
        if not event.get("update"):
            self._display_ids.add(str(display_id))
        elif display_id not in self._display_ids and self._snapshot is not None:
            handle = self._snapshot.find_text(display_id)
            if handle or not _GENERATED.fullmatch(str(display_id)):
                return {**event, "handle": handle} if handle else event
            return {"lost": "it updated a display whose handle was not found"}
        return event

    def writes_to_descriptors(self) -> None:
        """The body, or a process that it starts now, writes to the descriptors 1 and 2."""
        processes.begin_writing(self)

    def _record_events(self, events: Sequence[dict[str, Any]]) -> None:
        for event in events:
            self.record_output(event)

    @contextmanager
    def acting_again(
        self, objects: Sequence[Any], event: Mapping[str, Any], sink: Any
    ) -> Iterator[None]:
        """Inside, code of these objects shows this event, and does so in replay: what it changes is done
        then, and what the bodies had changed of what it looks at is done before.
        """
        showing = [each for each in self._list_around() if each._records(event, sink)]  # noqa: SLF001
        snapshots = [each._snapshot for each in showing if each._snapshot is not None]  # noqa: SLF001
        with self._running.act_apart(objects, snapshots) as changed_before:
            for body, changes in zip(showing, changed_before, strict=True):
                body._changed_before = changes.written  # noqa: SLF001 - its own kind
                body._lost += changes.lost  # noqa: SLF001
            yield

    def _list_around(self) -> list[ObservedBody]:
        """The body itself, and those that it runs in."""
        bodies, capture = [self], self._around
        while capture is not None:
            bodies.append(capture.observed)
            capture = capture.observed._around  # noqa: SLF001 - its own kind
        return bodies

    def _records(self, event: Mapping[str, Any], sink: Any) -> bool:
        """Whether it will have the event, and what was changed before."""
        is_left_out = "output" in self._left_out or self._snapshot is None
        return not is_left_out and not self._is_caught(event, sink)

    def imported(self, module: ModuleType) -> None:
        """The body imported a module of the user's, which has just run."""
        if self._around is not None:
            self._around.imported(module)
        if self._snapshot is not None:
            self._running.reach_module(self._snapshot, module)
            self._imported.append(module)

    def _choose_group(self) -> int:
        """The group of what this body shows now: the last one, unless another body showed something
        or a strand got something meanwhile.
        """
        last = self._groups[-1] if self._groups else 0
        if self._is_alone_since_shown():
            return last
        at_once = not self._groups and self._is_at_start()
        place = self._capture.take_place() if self is self._outermost and not at_once else 0
        self._running.shown_last = self._outermost
        self._shown_at = (self._outermost, place or self._count_handovers(), self._read_round())
        return 0 if at_once else last + 1

    def _is_alone_since_shown(self) -> bool:
        now = self._running.shown_last, self._count_handovers(), self._read_round()
        return self._shown_at == now

    def _read_round(self) -> int | None:
        """The round of the event loop, where other tasks or threads may act in between."""
        order = self._clock_order
        return order.round if order is not None and self._cell.origin.has_children else None

    def _is_at_start(self) -> bool:
        """Whether the task that this body runs in has awaited nothing since it began, and nobody
        else got anything: a replay shows it when it is called, too.
        """
        order = self._clock_order
        if order is None or self._began[1] is None:
            return False
        return bool(self._began == (order.count, order.round))

    def awaited_nothing(self) -> bool:
        """Whether the task that this body runs in awaited nothing since it began, and what it
        showed needs no place: a replay gives its result when it is called, too.
        """
        order = self._clock_order
        if order is None or self._began[1] != order.round or any(self._groups):
            return False
        return self._began[1] is not None and (self._is_at_start() or self._is_only_thread())

    def _is_only_thread(self) -> bool:
        clock = self._cell.pins.clock
        return clock is not None and bool(clock.is_only_thread())

    @property
    def _clock_order(self) -> Any | None:
        if self._cell.pins.clock is not None:
            return self._cell.pins.clock.order
        return None

    def _count_handovers(self) -> int:
        return 0 if self._clock_order is None else self._clock_order.count

    def _end_imports(self) -> tuple[list[str], list[str]]:
        """The modules that a replay may import again; in words, those that it may not."""
        effects = [(module.__name__, read_import_effects(module)) for module in self._imported]
        self._imported = []
        lost = [
            f"it imported {name}, which does more than define things"
            for name, effect in effects
            if effect.acts
        ]
        again = [name for name, effect in effects if not (effect.acts or effect.shows)]
        return list(dict.fromkeys(again)), lost

    def end(self) -> dict[str, Any]:
        """What the body did since it began; {} where that is nothing. What could not be written is
        said.
        """
        self._record_events(processes.end_writing(self))
        lost, self._lost = self._lost, []
        did: dict[str, Any] = {}
        if self._snapshot is not None:
            self._changes = self._running.end(self._snapshot, self._collect_outer_snapshots())
            self._snapshot = None
            lost += self._changes.lost
            did["memory"] = self._changes.written
            did["beside"] = list(self._overlapping) if self._changes.written else []
        did["imports"], unimportable = self._end_imports()
        lost += unimportable
        if self._settings is not None:
            did["settings"], unset = self._settings.end(self._changes.place_of)
            self._settings = None
            lost += unset
        if self._files is not None:
            did["files"], unkept = self._files.end()
            numbers = list_numbers(self._changes.written)
            did["descriptors"], unheld = self._files.end_descriptors(numbers)
            self._files = None
            lost += [*unkept, *unheld]
        if len(self._left_out) < len(KINDS):
            lost += [
                f"what {each} did after it returned, in a thread or task that it started"
                for each in going_on(self._capture)
            ]
            lost += [
                f"what the process {name} did after it returned"
                for name in processes.list_running_processes(self._capture)
            ]
        if self in self._running.open:
            self._running.open.remove(self)
        did["amid"] = self._describe_interleaving()
        did["cancelled"] = max(0, _count_cancels() - self._cancelled)
        did["shown"] = [event for event in self._events if event]
        did["lost"] = list(dict.fromkeys(lost))
        self._events, self._groups, self._shown_at, self._overlapping = [], [], None, {}
        for each in did["lost"]:
            self.warn(f"{each}. Replay does not do this again")
        return {name: value for name, value in did.items() if value}

    def warn(self, what: str) -> None:
        """Name what the tape does not hold of the call."""
        self._cell.warn(f"{self._call.kind} {self._call.name}: {what}", cold=True)

    def _describe_interleaving(self) -> list[int] | bool:
        """What the record says of others that went on while it showed things."""
        if not self._groups or self._shown_at is None:
            return False
        first, last = self._groups[0], self._groups[-1]
        if self is not self._outermost or not self._capture.places:
            return first != last
        if first == last and self._is_alone_since_shown() and self._result_follows(last):
            return False
        kept = Counter(
            group for group, event in zip(self._groups, self._events, strict=True) if event
        )
        return [kept[group] for group in range(last + 1)]

    def _result_follows(self, group: int) -> bool:
        """Whether nobody else can do anything between what it showed, in this group, and its
        result: then that has no place of its own.
        """
        is_alone = not self._cell.origin.has_children
        if group == 0:
            return is_alone or (self.awaited_nothing() and self._is_only_thread())
        assert self._shown_at is not None
        may_follow = is_alone or self._is_only_active_strand()
        return may_follow and self._capture.give_place_back(self._shown_at[1])

    def _is_only_active_strand(self) -> bool:
        order = self._clock_order
        if self._running.open or order is None or order.is_busy(self._capture.lineage):
            return False
        return self._is_only_thread()

    def end_step(self) -> dict[str, Any]:
        """`end` for a body that runs on later, and gives no result now."""
        did = self.end()
        self._changes = Changes()
        return did

    def let_go(self) -> None:
        """Nothing more is to be observed: what the body could reach is no longer kept."""
        self._changes = Changes()
        self._call = replace(self._call, scope=None)

    def written(self, value: Any, did: dict[str, Any]) -> Any:
        """The result as structure; `did` notes which parts of it are objects of the program's.
        Raises CannotFreeze.
        """
        if isinstance(value, (Argument, registry.Awaited)):
            return registry.freeze(value)
        walk = EffectWriter(self._changes.place_of)
        structure = walk.written(value)
        if walk.same:
            did["same"] = walk.same
        return structure

    def raised(self, error: BaseException, did: dict[str, Any]) -> None:
        """Note in `did` which of an error, of those behind it and of a group's members are objects of the
        program's.
        """
        places: dict[str, str] = {}
        waiting: list[tuple[str, BaseException]] = [("", error)]
        for name, each in waiting:
            if len(waiting) > _MOST_ERRORS:
                break
            if place := self._changes.place_of(each):
                places[name] = place
            elif name.count(".") <= MAX_CHAIN:
                waiting += [(f"{name}.{part}", inner) for part, inner in _errors_in(each).items()]
        if places:
            did["raised"] = places


_MOST_ERRORS = 200
"""Errors that are looked at behind one."""


def _errors_in(error: BaseException) -> dict[str, BaseException]:
    """Where it came from, and the members of a group, by the place that a record has of them."""
    errors = {"cause": error.__cause__, "context": error.__context__}
    if isinstance(error, BaseExceptionGroup):
        errors |= {str(number): member for number, member in enumerate(error.exceptions)}
    return {part: inner for part, inner in errors.items() if inner is not None}


def _count_cancels() -> int:
    """How often the task that runs was cancelled, and nobody took that back."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return 0
    return 0 if task is None else task.cancelling()


class RecordedEffects:
    """What a recorded body did, for replay (core/call.py, `Effects`)."""

    def __init__(
        self,
        cell: TapedCell,
        call: FunctionCall,
        name: str,
        value: Value,
        folders: MovedFolders | None = None,
    ) -> None:
        self._cell, self._call, self._name, self._value = cell, call, name, value
        self._did = value.did
        self._folders = folders or MovedFolders({})
        if call.scope is None:  # the function is not at hand
            self._call = replace(call, scope=Scope(None, {}))
        self._left_out = frozenset(cell.request.options.get("no_effects", ()))
        self._redo: Redo | None = None
        self.groups: Sequence[int] = value.groups
        self._replayed_outputs: int | None = None
        """How much of what it showed is shown; None where that waits for the result."""

    def show_group(self, group: int) -> None:
        """Show what came together before the result; a log record whose handler the body itself
        added waits for that, and what follows with it.
        """
        self._replayed_outputs = self._replayed_outputs or 0
        end = sum(self.groups[: group + 1])
        if "output" in self._left_out:
            return
        for event in self._did.get("shown", ())[self._replayed_outputs : end]:
            if "log" in event and not _has_same_handlers(event["log"]):
                return
            self._show_event(event)
            self._replayed_outputs += 1

    def happen(self, step: int | None = None) -> None:
        """Do it again. What cannot be done is said."""
        self._redo = None
        did = self._did if step is None else self._find_step_record(step)
        if not did:
            return
        if "memory" not in self._left_out and self._call.scope is not None:
            self._import_modules(did, self._call.scope)
            self._redo = self._seek_changed(did)
            for problem in set_handler_again(did.get("settings", {})):
                self._report_problem(problem)
        self._show_events(did)
        if self._redo is not None:
            self._redo.flush()
        if "files" not in self._left_out and "files" in did:
            self._redo_files(did["files"])
        if "files" not in self._left_out and "descriptors" in did:
            for problem in redo_descriptors(did["descriptors"], self._cell.folder):
                self._report_problem(problem)
        if self._redo is not None:
            self._redo_changes(self._redo, did)
        if step is not None:  # what a generator yields is no part of the program's own objects
            self._redo = None
        self._report_recorded_losses(did)

    def _seek_changed(self, did: Mapping[str, Any]) -> Redo | None:
        scope = self._call.scope
        return None if scope is None else Redo(did.get("memory", ()), scope)

    def _redo_before(self, event: Mapping[str, Any]) -> None:
        """What it changed before it showed this, which code of the program's looks at that shows it."""
        if "memory" in self._left_out or self._call.scope is None:
            return
        redo = Redo(event.get("changed", ()), self._call.scope)
        redo.run()
        for problem in redo.problems:
            self._report_problem(f"what it changed in {problem}")

    def _import_modules(self, did: Mapping[str, Any], scope: Scope) -> None:
        for problem in import_again(did.get("imports", ()), scope):
            self._report_problem(problem)

    def report_early_close(self) -> None:
        """What it would do when it is closed here is not known."""
        self._report_problem("it is closed earlier than it was, and what it did at its end")

    def _note_doubts(self, files: Sequence[str]) -> None:
        doubt = (
            f"{self._call.kind} {self._call.name} gave and wrote what it did when it was recorded"
        )
        self._cell.findings.doubts += [
            f"{doubt}, but {name} is not as it was then" for name in files
        ]

    def _redo_files(self, files: Sequence[Mapping[str, Any]]) -> None:
        cell = self._cell
        place = ReplayedFolder(cell.folder, cell.cassette, self._folders)
        if cell.rerun:
            self._note_doubts(found_otherwise(files, place))
        for problem in redo_files(files, place, rerun=cell.rerun):
            self._report_problem(problem)

    def _redo_changes(self, redo: Redo, did: Mapping[str, Any]) -> None:
        redo.run()
        problems = [f"what it changed in {problem}" for problem in redo.problems]
        for problem in [*problems, *set_again(did.get("settings", {}), self._cell.folder)]:
            self._report_problem(problem)

    def _find_step_record(self, step: int) -> Mapping[str, Any]:
        return next((did for number, did in self._value.value.get("did", ()) if number == step), {})

    def result(self, structure: Any) -> Any:
        """A frozen result; parts that are the program's own objects are those objects."""
        redo, self._redo = self._redo, None
        return restore_own_objects(structure, self._did.get("same", {}), redo)

    def raised(self, error: BaseException) -> BaseException:
        """A recorded error; it, one behind it or in it is the program's own object where it was that."""
        redo, self._redo = self._redo, None
        places = self._did.get("raised", {})
        if redo is None or not places:
            return error
        return _put_own_errors(
            error, "", {name: redo.place(place) for name, place in places.items()}
        )

    def _report_recorded_losses(self, did: Mapping[str, Any]) -> None:
        for each in did.get("lost", ()):
            self._report_problem(str(each))
        left, self._folders.left = sorted(self._folders.left), set()
        for each in left:
            what = f"names {each}, a folder of the recording, which is not replaced by the one here"
            self._report(f"{self._describe_call()}: what it gave or did {what}")
        if masked := did.get("masked"):
            self._cell.warn(f"{self._describe_call()}: {masked}")

    def _describe_call(self) -> str:
        return f"{self._call.kind} {self._call.name} (call {self._name})"

    def _report_problem(self, what: str) -> None:
        self._report(f"{self._describe_call()}: {what}: this did not happen in this replay")

    def _report(self, message: str) -> None:
        self._cell.findings.unheld.append(message)
        self._cell.warn(message)

    def _show_events(self, did: Mapping[str, Any]) -> None:
        events = did.get("shown", ())[self._replayed_outputs or 0 :]
        for event in events:
            self._show_event(event)
        if self._redo is not None and any("changed" in event for event in did.get("shown", ())):
            self._redo = self._seek_changed(did)  # some of it is there only now
        if "output" in self._left_out:
            return
        if did.get("amid") and self._replayed_outputs is None:
            tool = f"{self._call.kind} {self._call.name}"
            self._cell.warn(f"{tool} showed things while others went on: here it shows all at once")

    def _show_event(self, event: Mapping[str, Any]) -> None:
        if "changed" in event:
            self._redo_before(event)
        if "output" in self._left_out:
            return
        processes.wait_for_program_output()
        try:
            if "workflow" in event:
                self._workflow_context.write_event_to_stream(registry.thaw(event["workflow"]))
            elif "to" in event:
                self._hand_to_handler(event)
            else:
                if (
                    self._redo is not None
                    and "log" in event
                    and not _has_same_handlers(event["log"])
                ):
                    self._redo.run_handlers()
                _emit_event(self._with_own_id(event) if "handle" in event else event)
        except Exception as why:
            names = ", ".join(name for name in event if name != "changed")
            self._report_problem(
                f"what it showed ({names}) cannot be shown here ({type(why).__name__}: {why})"
            )

    def _hand_to_handler(self, event: Mapping[str, Any]) -> None:
        """Raises CassetteError where there is no such handler."""
        scope = self._call.scope
        handler = None if scope is None else follow_path(event["to"], scope)
        if not isinstance(handler, logging.Handler):
            raise CassetteError(f"there is no handler {event['to']} here")
        record = _build_log_record(event["log"])
        if event["by"] == "handle":
            handler.handle(record)
        elif is_library_class(type(handler)):
            handler.emit(record)
        else:
            logging.StreamHandler.emit(cast("logging.StreamHandler[Any]", handler), record)

    def _with_own_id(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """The update of a display, for the one that the program made here."""
        if self._call.scope is None:
            return event
        display_id = follow_path(event["handle"], self._call.scope)
        return {**event, "transient": {**event["transient"], "display_id": display_id}}

    @property
    def _workflow_context(self) -> Any:
        """The workflow's context, among the arguments."""
        if self._call.scope is not None:
            arguments = self._call.scope.arguments.values()
        else:
            arguments = ()
        return next(each for each in arguments if hasattr(each, "write_event_to_stream"))


def _emit_event(event: Mapping[str, Any]) -> None:
    if "out" in event:
        sys.stdout.write(event["out"])
    elif "err" in event:
        sys.stderr.write(event["err"])
    elif "display" in event:
        _publish_display(event)
    elif "clear" in event:
        _clear_output(bool(event["clear"]))
    elif "log" in event:
        _emit_log_record(event["log"])
    elif "warning" in event:
        _emit_warning(event)
    elif "stream" in event:
        sys.modules["langgraph.config"].get_stream_writer()(registry.thaw(event["stream"]))
    elif "message" in event:
        emit_message(event)
    elif "event" in event:
        dispatch = sys.modules["langchain_core.callbacks.manager"].dispatch_custom_event
        dispatch(event["event"], registry.thaw(event["data"]))


def _publish_display(event: Mapping[str, Any]) -> None:
    publisher = find_publisher()
    if publisher is None:
        sys.stdout.write(f"{event['display'].get('text/plain', '')}\n")
        return
    more = {name: event[name] for name in ("transient", "update") if name in event}
    publisher.publish(dict(event["display"]), dict(event.get("metadata", {})), **more)


def _clear_output(wait: bool) -> None:
    if (publisher := find_publisher()) is not None:
        publisher.clear_output(wait)


_GENERATED = re.compile(r"[0-9a-f]{32}")
"""An id of a display that IPython made up."""

_CELLS = re.compile(r".*[/\\]ipykernel_\d+[/\\]")


def _localize_filename(file: str) -> str:
    """The name that a file has in this process: ipykernel names the code of cells by its process."""
    if "ipykernel_" not in file or (compiler := sys.modules.get("ipykernel.compiler")) is None:
        return file
    return _CELLS.sub(lambda _: f"{compiler.get_tmp_directory()}{os.sep}", file)


def _emit_log_record(event: Mapping[str, Any]) -> None:
    record = _build_log_record(event)
    if not _has_same_handlers(event):
        lacks = "".join(f", and {name} lacks this line" for name in event.get("files", ()))
        raise CassetteError(f"the logger {event['name']} has other handlers here{lacks}")
    logging.getLogger(str(event["name"])).callHandlers(record)


def _build_log_record(event: Mapping[str, Any]) -> logging.LogRecord:
    others = ("extra", "handlers", "files", "args", "template")
    fields = {name: value for name, value in event.items() if name not in others}
    for name, value in event.get("extra", {}).items():
        with contextlib.suppress(CassetteError):
            fields.setdefault(name, registry.thaw(value))
    fields["pathname"] = _localize_filename(str(event.get("pathname", "")))
    if "args" in event:
        with contextlib.suppress(CassetteError):
            fields |= {"args": registry.thaw(event["args"]), "msg": event["template"]}
    record = bare_record()
    vars(record).update(fields)
    return record


def _has_same_handlers(event: Mapping[str, Any]) -> bool:
    """Whether a log record would reach as many handlers as the recorded one."""
    now = handlers_of(logging.getLogger(str(event["name"])))
    return bool(event.get("handlers", now) == now)


def _emit_warning(event: Mapping[str, Any]) -> None:
    warning = registry.thaw_error(event["warning"])
    if isinstance(warning, Warning):
        place = _localize_filename(str(event["file"])), int(event["line"])
        text = event.get("text")
        line = None if linecache.getline(*place).strip() == text else text
        message = warnings.WarningMessage(warning, type(warning), *place, line=line)
        warnings._showwarnmsg(message)  # type: ignore[attr-defined]  # noqa: SLF001


def _put_own_errors(error: BaseException, name: str, own: Mapping[str, Any]) -> BaseException:
    """`own`: the program's objects by the places of ObservedBody.raised()."""
    live = own.get(name)
    if isinstance(live, BaseException) and type(live) is type(error):
        return live
    if not any(each.startswith(f"{name}.") for each in own):
        return error
    inner = {
        part: _put_own_errors(each, f"{name}.{part}", own)
        for part, each in _errors_in(error).items()
    }
    if isinstance(error, BaseExceptionGroup):
        members = [inner[str(number)] for number in range(len(error.exceptions))]
        error = _build_group(error, members)
    error.__context__, suppresses = inner.get("context"), error.__suppress_context__
    error.__cause__ = inner.get("cause")
    error.__suppress_context__ = suppresses
    return error


def _build_group(
    group: BaseExceptionGroup[BaseException], members: list[BaseException]
) -> BaseExceptionGroup[BaseException]:
    """The group with other members: they cannot be set."""
    if all(new is old for new, old in zip(members, group.exceptions, strict=True)):
        return group
    made = BaseExceptionGroup.__new__(type(group), group.message, members)
    vars(made).update(vars(group))
    made.__suppress_context__ = group.__suppress_context__
    return made
