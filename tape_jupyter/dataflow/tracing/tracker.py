"""Listens to the shell's cells and writes the history. The notebook's namespace, shell and code are
left as they are; whatever goes wrong in here is the entry's note, never the cell's error.

It begins where it is installed: what was there before is "from before the tape".
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import random
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from tape_jupyter.core.collector import paused_collector
from tape_jupyter.core.real_clock import perf_counter
from tape_jupyter.core.thread_number import thread_number
from tape_jupyter.core.user_code import MACHINERY
from tape_jupyter.dataflow.fingerprint.fingerprint import SECONDS, Print, fingerprint
from tape_jupyter.dataflow.history import TOO_LARGE, Change, Execution
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.dataflow.restore.versions import Keeper
from tape_jupyter.dataflow.static.names import ParsedCell, cell_names, replaced_names, transform
from tape_jupyter.dataflow.tracing import ambient, unwatched
from tape_jupyter.dataflow.tracing.executed_code import CodeWatch, ExecutedCode
from tape_jupyter.dataflow.tracing.files import (
    UNHEARD,
    file_times,
    has_native_writers,
    permissions,
)
from tape_jupyter.dataflow.tracing.noted_cells import (
    NotedCells,
    does_more_than_load,
    find_user_threads,
    format_notes,
    mark_entry_unknown,
    read_outcome,
)
from tape_jupyter.dataflow.tracing.observations import ExecutionFacts
from tape_jupyter.dataflow.tracing.running_cells import count_running_cells, find_running_info
from tape_jupyter.dataflow.tracing.steps import build, mentioned
from tape_jupyter.dataflow.tracing.variables import MISSING, Replaced, Variables, is_library
from tape_jupyter.files.first_contents import Firsts
from tape_jupyter.files.stand_ins import is_stand_in

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

KEPT = 64 << 20
"""Bytes of one value beyond which it is not kept by reference: people who delete it want the
memory.
"""
LEAST, SHARE = 0.004, 1 / 30
"""Seconds that looking at a cell's values may take, however short the cell was; else this share of
the cell.
"""
_ALL = 1.0
"""Seconds of the processor's for all names at once, when the first cell is about to be taped."""
_DICE = identity(random._inst)  # noqa: SLF001  # a mock may stand where its methods do
"""The generator whose methods the functions of `random` are."""
_NOBODYS = frozenset({"", "builtins", "main__"})
"""Of the names of modules, those that are no library's."""


@dataclass(slots=True)
class _Open:
    """A cell that runs."""

    entry: Execution
    cell: ParsedCell
    began: float
    thread: int
    ambient: dict[str, Any]
    modules: dict[str, dict[str, Any]]
    results: tuple[int, ...]
    threads: set[threading.Thread]
    tasks: set[Any]
    background: bool
    watched: bool = False
    taped: bool = False
    imported: Mapping[str, Any] = field(default_factory=dict)
    """The user's modules that were imported before it."""
    leaves: bool = False
    """Threads or tasks that it started run on."""


class Tracker:
    """The hooks of one shell, and its history."""

    def __init__(
        self,
        shell: InteractiveShell,
        skips: Callable[[str], bool] = lambda _: False,
        tapes: Callable[[str], bool] = lambda _: True,
        noted: NotedCells | None = None,
    ) -> None:
        """`skips`: cells that are no part of the history, by their source. `tapes`: whether a cell
        may be the first to be taped: all before it are only noted. `noted`: those that were, before
        there was a tracker.
        """
        self.shell, self._skips, self._tapes = shell, skips, tapes
        self._noted, self._follows = noted or NotedCells(shell), noted is not None
        self.history = self._noted.history
        self._keeper = Keeper(self.history)
        self.variables = Variables(shell.user_ns)
        self._watch = CodeWatch(shell.user_ns)
        self._files = self._noted.files
        self._open: _Open | None = None
        self._watches = False
        """A cell was taped, or may have been: from then on all are watched."""
        self._last_examined: Mapping[str, int] = {}
        self._between: dict[str, Any] = {}
        """The ambient state after the last cell, which is that before the next one; without the parts
        that have to be taken.
        """
        self.failures = self._noted.failures
        """Tracebacks of our own errors."""
        self.lines: dict[int, tuple[int, ...] | None] = {}
        """By entry, the lines at which taped calls were made (`calling`); None where some was made
        elsewhere.
        """

    def install(self) -> None:
        if not self._follows:
            self._noted.install()
        if not self._noted.ended and self._noted.running is None:
            self.variables.refresh(set(), SECONDS)
        self._between = self._noted.ambient or {}
        self.shell.events.register("pre_run_cell", self.pre_run_cell)
        self.shell.events.register("post_run_cell", self.post_run_cell)
        self.shell.events.register("post_execute", self.post_execute)
        self._ast_transformers.append(self)
        for event in (
            "post_run_cell",
            "post_execute",
        ):  # first: before others put the cell's surroundings back
            hooks = self.shell.events.callbacks[event]
            hooks.insert(0, hooks.pop())
        if not self._follows and (info := find_running_info()) is not None:
            self._begin_midway(info)

    def uninstall(self) -> None:
        self._watch.end()
        self._watch.close()
        if self in self._ast_transformers:
            self._ast_transformers.remove(self)
        self._files.end()
        self.shell.events.unregister("pre_run_cell", self.pre_run_cell)
        self.shell.events.unregister("post_execute", self.post_execute)
        self.shell.events.unregister("post_run_cell", self.post_run_cell)

    @property
    def firsts(self) -> Firsts:
        """What the files that this session changed were before."""
        return self._files.firsts

    def list_changed_data(self) -> dict[str, str]:
        """Fingerprints by name of the data that the cell which ended last made or changed. Objects of
        other libraries are left out: clients hold keys and addresses.
        """
        entry = self._find_taped_entry()
        if entry is None:
            return {}
        prints = self.variables.prints
        names = [each for each in sorted(entry.changed) if each in prints and each[0] != "_"]
        return {name: prints[name].digest for name in names if prints[name].is_data}

    def list_changed_files(self) -> dict[str, bytes | None]:
        """What the files hold that the same cell made or changed, by path; None: it removed them."""
        entry = self._find_taped_entry()
        changes = entry.files.items() if entry is not None else ()
        return {
            path: each.after for path, each in changes if each.known and not is_stand_in(each.after)
        }

    def _find_taped_entry(self) -> Execution | None:
        """The cell that ended last, where it has a recording."""
        entry = self.history.entries[-1] if self.history.entries else None
        return entry if entry is not None and entry.run and self._open is None else None

    def fingerprint_value(self, value: Any) -> str:
        """The same of one value that stands in for a variable's."""
        return fingerprint(value, self.shell.user_ns, seconds=LEAST).digest

    def fingerprint_data(self, names: Iterable[str]) -> dict[str, str]:
        """Fingerprints of these variables (of a module's: `module:name`) as they are now, "" of those
        that are not there. Left out is what is no data, or takes long.
        """
        found = {}
        for name in names:
            value = self.variables.value(name)
            if value is MISSING:
                found[name] = ""
            elif (now := fingerprint(value, self.shell.user_ns, seconds=LEAST)).is_data:
                found[name] = now.digest
        return found

    def set_run(self, run: str) -> None:
        """The cell that runs now is taped as this run."""
        if self._noted.running is not None:
            self._noted.running.entry.run = run
        if self._open is not None:
            self._open.entry.run = run

    def taped(self) -> None:
        """A taped cell begins: what its pins hold, from now until its end, is the state of no other
        cell.
        """
        if self._noted.running is not None:
            self._noted.running.taped = True
            return
        self._between = ambient.keep_unpinned(self._between)
        if self._open is not None:
            self._open.taped = True

    def calling(self) -> None:
        """A call is made now: note the line of the running cell that makes it."""
        if (noted := self._noted.running) is not None:
            noted.taped = True
            self.lines[noted.entry.index] = None
        if (running := self._open) is None:
            return
        index = running.entry.index
        if (known := self.lines.get(index, ())) is None:
            return
        frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to the line
        while frame is not None:
            if frame.f_globals is self.shell.user_ns and frame.f_code.co_name in (
                "<module>",
                "<cell>",
            ):
                if frame.f_lineno not in known:
                    self.lines[index] = (*known, frame.f_lineno)
                return
            frame = frame.f_back
        self.lines[index] = None

    def forget(self) -> None:
        """Values were changed between cells (a re-run put them back): look at everything again when
        it is reached.
        """
        self.variables.forget()
        self._keeper.moved()
        self._between = {}

    def resync(self, names: set[str]) -> None:
        """These variables were bound anew or changed in place between two cells: know them as they
        are now.
        """
        self.variables.refresh(set(names), SECONDS)
        self._keeper.moved()
        self._between = {}

    # ---------------------------------------------------------------- the shell's events
    def pre_run_cell(self, info: Any) -> None:
        if self._open is not None and (
            count_running_cells() > 1 or self._open.thread != thread_number()
        ):
            return  # a cell that a cell runs is part of it
        if self._noted.is_elsewhere:
            return
        self._end_noting(None)  # where its post_run_cell never came
        if self._skips(info.raw_cell):
            self._open = None
            self._between = {} if self._watches else self._between
            return
        try:
            if not self._watches and not self._tapes(info.raw_cell):
                self._noted.begin(info)
                return
            self._watch_from_now()
            self._begin_cell(info)
        except Exception:
            self._open = None
            self._record_failure(
                self.history.begin(info.cell_id or "", info.raw_cell, None), traceback.format_exc()
            )

    def post_execute(self) -> None:
        """The cell's code is done; others now show its figures and the like."""
        if (
            self._open is not None
            and self._open.thread == thread_number()
            and not count_running_cells()
        ):
            self._watch.end()
            self._files.end()

    def post_run_cell(self, result: Any) -> None:
        running = self._open
        if (noting := self._noted.running) is not None:
            if noting.thread == thread_number() and not count_running_cells():
                self._end_noting(result)
            return
        if (
            running is None and count_running_cells() == 0 and not self._noted.ended
        ):  # the cell that began the tracking: what it made is from before
            self.variables.refresh(set(), SECONDS)
        if running is None or count_running_cells() > 0 or running.thread != thread_number():
            return
        self._open = None
        try:
            self._end_cell(running, result)
        except Exception:
            self._record_failure(running.entry, traceback.format_exc())

    @property
    def _ast_transformers(self) -> list[Any]:
        return self.shell.ast_transformers

    def visit(self, node: ast.AST) -> ast.AST:
        """As an AST transformer: the shell is done with its own work, the cell's code comes next.
        Changes nothing.
        """
        self._start_watches()
        return node

    def _start_watches(self) -> None:
        running = self._open
        self._noted.start()
        if running is not None and not running.watched and running.thread == thread_number():
            running.watched = True
            # here: what pins hold by now is no doing of the cell
            running.ambient = ambient.complete_ambient(self._between)
            self._between = {}
            self._files.begin()
            if has_native_writers() and self._may_write_unheard(running.cell):
                self._files.look_at_folder()
            running.began = perf_counter()
            self._watch.begin(_find_shown_lines(running.cell))

    # ---------------------------------------------------------------- cells that are only noted
    def _end_noting(self, result: Any) -> None:
        noted = self._noted.end(result)
        if noted is None or not noted.taped:
            return
        try:
            self._watch_from_now()
            noted.entry.calls = True
            mark_entry_unknown(noted.entry, "it is taped, which nothing in its text says")
        except Exception:
            self._record_failure(noted.entry, traceback.format_exc())

    def _watch_from_now(self) -> None:
        """What the cells before this one did, which were only noted, is told from their text."""
        if self._watches:
            return
        self._watches = True
        noted = self._noted.finish()
        if not noted:
            return
        end, known = noted[-1].entry, dict(self.variables.prints)
        self.variables.forget()
        self.variables.now = end.index
        self.variables.refresh(set(), _ALL)
        if self._follows:  # what stood there was all of a kind that only a new binding changes
            same = self._noted.there.difference(*(each.bound for each in noted))
            prints = self.variables.prints
            known = {name: prints[name] for name in same if name in prints}
        for name, last in unwatched.record_unwatched(noted, self.variables, known).items():
            now = self.variables.prints.get(name)
            last.after[name] = "" if now is None else now.digest
        for each in noted:
            self._keep_values(each.entry, each.entry.changed - each.entry.unkept.keys())
        end.ambient = ambient.changed_parts(self._between, ambient.take_ambient())
        self._between = {}
        self._keeper.ended()

    # ---------------------------------------------------------------- before
    def _begin_cell(self, info: Any) -> None:
        self._keeper.begins()
        self._files.clear()
        number = self.shell.execution_count - 1 if info.store_history else None
        entry = self.history.begin(info.cell_id or "", info.raw_cell, number)
        text = getattr(info, "transformed_cell", None) or transform(info.raw_cell)
        cell = cell_names(text)
        reach = self.variables.closure(self._find_mentioned_variables(cell))
        alive = find_user_threads()
        tasks = _find_user_tasks()
        self._open = _Open(
            entry, cell, 0.0, thread_number(), {},
            self._copy_module_dicts(reach) | self._copy_assigned_dicts(cell),
            self._find_last_results(),
            alive, tasks, bool(tasks) or bool(alive - self._noted.threads),
            imported={name: sys.modules[name] for name in self.variables.find_imported() - {"__main__"}},
        )  # fmt: skip
        self._open.began = perf_counter()

    def _find_last_results(self) -> tuple[int, ...]:
        """The numbers of the results that `___`, `__` and `_` are."""
        kept = reversed(self.shell.user_ns.get("_oh", {}))
        return tuple(sorted(islice((n for n in kept if isinstance(n, int)), 3)))

    def _may_write_unheard(self, cell: ParsedCell) -> bool:
        """Whether the cell uses a library that opens files itself."""
        for name in self.variables.closure(self._find_mentioned_variables(cell)):
            known = self.variables.prints.get(name)
            kinds = known.kinds if known is not None else ()
            packages = {is_library(self.variables.value(name)), *kinds}
            if any(package.lstrip("_") in UNHEARD for package in packages):
                return True
        return False

    def _begin_midway(self, info: Any) -> None:
        """The cell that installs us is an entry, unless it does nothing else."""
        if does_more_than_load(self.shell, info.raw_cell) and not self._skips(info.raw_cell):
            self.pre_run_cell(info)
            self._start_watches()

    def _copy_module_dicts(self, reach: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Attributes of the modules that the cell can reach, to see patches."""
        dicts = {"builtins": dict(vars(sys.modules["builtins"]))}
        for each in reach:
            value = self.variables.value(each)
            if isinstance(value, types.ModuleType) and value.__name__ in sys.modules:
                dicts[value.__name__] = dict(vars(value))
            elif value is not MISSING and not isinstance(value, str | int | float | bool):
                module = None
                if isinstance(value, type | types.FunctionType):
                    module = getattr(value, "__module__", None)
                if isinstance(module, str) and module in sys.modules and module != "__main__":
                    dicts[module] = dict(vars(sys.modules[module]))
        return dicts

    def _copy_assigned_dicts(self, cell: ParsedCell) -> dict[str, dict[str, Any]]:
        """Attributes of classes and objects in libraries of which the cell's text sets one."""
        dicts = {}
        for touch in (touch for each in cell.statements for touch in each.uses.touches):
            root = self.variables.value(touch.root)
            if touch.how not in ("attr", "aug") or root is MISSING or not is_library(root):
                continue
            base = root.__name__ if isinstance(root, types.ModuleType) else _format_class_path(root)
            name = ".".join([base, *touch.dotted.split(".")[1:-1]])
            with contextlib.suppress(LookupError):
                dicts[name] = dict(vars(ambient.holder(name)))
        return dicts

    # ---------------------------------------------------------------- after
    def _end_cell(self, running: _Open, result: Any) -> None:
        executed = self._watch.end() if running.watched else ExecutedCode()
        entry, touched = running.entry, self._files.end()
        entry.seconds = perf_counter() - running.began
        if running.background:
            executed.complete = executed.complete and sys.version_info >= (3, 12)
        entry.outcome = read_outcome(result)
        running.leaves = bool(find_user_threads() - running.threads) or bool(
            _find_user_tasks() - running.tasks
        )
        if running.leaves:  # what it started may run between cells, where nobody looks
            executed.complete = False
        mention = self._find_mentioned_variables(running.cell)
        after = ambient.take_ambient(
            running.ambient, self._find_used_packages(running, executed, mention)
        )
        changes = ambient.changed_parts(running.ambient, after)
        self._between = ambient.keep_unpinned(after) if running.taped else after
        patches = {
            name: c
            for name, was in running.modules.items()
            if (c := ambient.module_changes(name, was)) is not None
        }
        entry.files = touched.changes()
        with paused_collector():
            seen = self._collect_observations(
                running, result, executed, touched, frozenset(changes), mention
            )
            seen.attributes = frozenset(f"{m}.{k}" for m, c in patches.items() for k in c.after)
            if "builtins" in patches:
                self.variables.ever.update(patches["builtins"].after)
            built = build(seen)
        self._add_older_writes(
            {n: was for n, was in seen.before.items() if n not in built.claimed}, entry.index
        )
        entry.ambient = changes | {
            f"{ambient.MODULE}{name}": change for name, change in patches.items()
        }
        entry.ambient |= ambient.imports_undone(running.imported)
        for path, mode in touched.modes.items():
            now = permissions(path)
            if now is not None and now != mode:
                entry.ambient[f"{ambient.MODE}{path}"] = Change(mode, now)
        for path, was in touched.times.items():
            times = file_times(path)
            if times is not None and times[1] != was[1]:  # not when it was read last
                entry.ambient[f"{ambient.TIMES}{path}"] = Change(was, times)
        entry.steps, entry.changed, entry.opaque = built.steps, built.changed, built.opaque
        entry.calls = running.taped or bool(entry.run) or entry.index in self.lines
        with paused_collector():
            self._record_values(entry, seen)
        entry.notes = tuple(format_notes(touched.processes, touched.crowded))
        self._keeper.ended()

    def _find_mentioned_variables(self, cell: ParsedCell) -> set[str]:
        """Variables that a cell's text names."""
        return set().union(*(mentioned(s, self.variables) for s in cell.statements))

    def _find_used_packages(
        self, running: _Open, executed: ExecutedCode, mention: set[str]
    ) -> frozenset[str] | None:
        """The packages whose code ran in a cell, or is in what it names; None where not all of that
        was seen.
        """
        seen = (
            running.watched
            and executed.complete
            and executed.whole_builtins
            and running.cell.statements
        )
        if not seen or running.background or running.leaves or running.taped:
            return None
        near = executed.packages | {is_library(self.variables.value(name)) for name in mention}
        for each in self.variables.closure(mention):
            if (known := self.variables.prints.get(each)) is not None:
                if known.opaque:
                    return None
                near |= known.kinds
                if _DICE in known.ids:
                    near.add("random")
        return frozenset(name.lstrip("_") for name in near - MACHINERY) - _NOBODYS

    def _collect_observations(
        self,
        running: _Open,
        result: Any,
        executed: ExecutedCode,
        touched: Any,
        changes: frozenset[str],
        mention: set[str],
    ) -> ExecutionFacts:
        entry, variables = running.entry, self.variables
        known = set(variables.elsewhere)
        for s in running.cell.statements:
            variables.ever.update(
                s.code.stores | s.code.later_stores | s.code.deletes | s.uses.exists
            )
        reach = variables.closure(mention)
        for place, code in executed.codes:
            if place != "?":
                reach |= variables.closure(variables.used_by(place, code))
        variables.now = entry.index
        seconds = min(SECONDS, max(LEAST, entry.seconds * SHARE))
        replaced = Replaced(replaced_names(running.cell), executed.called_codes)
        scan = variables.refresh(reach, seconds, replaced)
        self._last_examined = scan.last_examined
        new = self._find_globals_of(
            variables.find_imported() - running.imported.keys() - {"__main__"}
        )
        scan.before.update(dict.fromkeys(new))
        entry.imported = frozenset(each.rpartition(":")[0] for each in new)
        rebound = scan.rebound | new | ((variables.elsewhere - known) & scan.before.keys())
        return ExecutionFacts(
            running.cell, variables, scan.before, executed, touched, changes, number=entry.number,
            displayed=getattr(result, "result", None) is not None, failed_at=self._find_failed_line(result, executed),
            background=running.background, leaves_background=running.leaves,
            results=running.results, rebound=frozenset(rebound),
        )  # fmt: skip

    def _find_globals_of(self, modules: set[str]) -> set[str]:
        """The known globals of modules of the user's; nearly always of none."""
        if not modules:
            return set()
        return {each for each in self.variables.elsewhere if each.rpartition(":")[0] in modules}

    def _add_older_writes(self, before: Mapping[str, Print | None], index: int) -> None:
        """A change of a name that was not looked at after each entry, and that this one's text does
        not claim, may be that of any entry since.
        """
        for name, was in before.items():
            now = self.variables.prints.get(name)
            if was is None or now is None or was.digest == now.digest:
                continue
            for entry in self.history.entries[self._last_examined.get(name, index) + 1 : index]:
                entry.steps = tuple(
                    replace(s, weak=s.weak | {name}) if name not in s.strong else s
                    for s in entry.steps
                )

    def _find_failed_line(self, result: Any, executed: ExecutedCode) -> int | None:
        """The line of the cell that raised; 0 where it is not known; None where nothing did."""
        if result is None:
            return 0
        error = result.error_in_exec or result.error_before_exec
        if error is None:
            return None
        line, trace = 0, error.__traceback__
        while trace is not None:
            if (
                trace.tb_frame.f_globals is self.shell.user_ns
                and trace.tb_frame.f_code.co_filename == executed.cell_file
                and not line
            ):
                line = trace.tb_lineno
            trace = trace.tb_next
        return line

    def _record_values(self, entry: Execution, seen: ExecutionFacts) -> None:
        prints = self.variables.prints
        for name, was in seen.before.items():
            now = prints.get(name)
            entry.before[name] = "" if was is None else was.digest
            entry.after[name] = "" if now is None else now.digest
        self._keep_values(entry, entry.changed)

    def _keep_values(self, entry: Execution, names: Iterable[str]) -> None:
        """Keep the values that these names have now, as the entry left them."""
        prints = self.variables.prints
        for name in names:
            if (now := prints.get(name)) is None:
                continue
            others = self.variables.sharing([name]) - {name}
            if others:
                entry.shares[name] = frozenset(others)
            if now.weight < KEPT and not now.vast:
                entry.kept[name] = self.variables.value(name)
            else:
                entry.unkept[name] = TOO_LARGE
        keep_mementos(entry)
        for name, value in entry.kept.items():
            size = sys.getsizeof(value) if type(value) in (str, bytes) else 0
            entry.mementos[name].weight += max(prints[name].weight, size)

    def _record_failure(self, entry: Execution, message: str) -> None:
        self._watch.end()
        self._files.end()
        mark_entry_unknown(entry, message.strip().splitlines()[-1])
        self.failures.append(message)


def keep_mementos(entry: Execution) -> None:
    """Mementos of what is kept, for putting it back (dataflow/restore/restore.py)."""
    from tape_jupyter.dataflow.restore import restore

    restore.hold_values(entry)


def _format_class_path(value: Any) -> str:
    """Where a class of a library stands; "" for what is none."""
    return f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else ""


def _find_shown_lines(cell: ParsedCell) -> range:
    """The lines of the expression that the cell ends with; none where it ends otherwise."""
    last = cell.statements[-1] if cell.statements else None
    return range(last.line, last.end + 1) if last is not None and last.displayed else range(0)


def _find_user_tasks() -> set[Any]:
    """Tasks of the notebook that are not done; the kernel's own are none of them."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        from IPython.core.async_helpers import get_asyncio_loop

        loop = get_asyncio_loop()  # type: ignore[no-untyped-call]
    try:
        return {
            task for task in asyncio.all_tasks(loop) if not task.done() and _is_notebook_task(task)
        }
    except RuntimeError:
        return set()


def _is_notebook_task(task: Any) -> bool:
    frame = getattr(task.get_coro(), "cr_frame", None)
    if frame is None:
        return False
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package not in MACHINERY and package != "nest_asyncio"
