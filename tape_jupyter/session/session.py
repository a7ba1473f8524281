"""The deck: one object per kernel that holds cassettes, mode, taps and cells, and drives them.

No IPython here (jupyter/cell_runner.py hooks it up), so that `tape.recording(path)` in a script
drives the same deck.
"""

from __future__ import annotations

import contextvars
import json
import os
import secrets as entropy
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tape_jupyter import __version__, instrumentation
from tape_jupyter.audit import environment
from tape_jupyter.cassette import adoption, paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import source_hash, title_of
from tape_jupyter.cassette.match_key import IgnorePath, match_key
from tape_jupyter.cassette.records import moment_text
from tape_jupyter.cassette.runs import CellIdentity, whole_run_before
from tape_jupyter.cassette.takes import files
from tape_jupyter.comparison.outputs import REMARKS, Output, Remark
from tape_jupyter.core.call import FunctionCall
from tape_jupyter.core.context import ORIGIN, Origin
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.core.unlisted_thread import run_unlisted
from tape_jupyter.dataflow.tracing.tracker import Tracker
from tape_jupyter.errors import CassetteError, NotebookUnknown, TapeUsageError
from tape_jupyter.isolation.namespaces import AWAY
from tape_jupyter.isolation.network_guard import Guard, Policy, Sighting
from tape_jupyter.replay.player import MODES, CellPlayback, Matching, Mode, Player
from tape_jupyter.replay.selection import Selection
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session import late_secrets, partial_replay, pins, placeholders, unplayed_tools
from tape_jupyter.session.cell import (
    CellReport,
    CellRequest,
    CellTools,
    ReportRow,
    TapedCell,
    current_task,
)
from tape_jupyter.session.cell_outcome import note_outcome
from tape_jupyter.session.changed_files import ChangedFiles
from tape_jupyter.session.interceptor import Interceptor
from tape_jupyter.session.labels import Tags
from tape_jupyter.session.lent_keys import Lending, open_cassettes
from tape_jupyter.session.near_matches import by_order
from tape_jupyter.session.summary_rows import cell_report
from tape_jupyter.session.tool_tracking import FOUND, Tools
from tape_jupyter.session.wakers import wake

__all__ = [
    "CellReport",
    "CellRequest",
    "ReportRow",
    "TapeSession",
    "TapedCell",
    "get",
    "source_hash",
]

KIT_SECONDS = 10.0  # how long the end of a cell waits for its kit

_decks: list[TapeSession] = []


def get() -> TapeSession:
    """The deck of this process; made when first asked for."""
    if not _decks:
        _decks.append(TapeSession())
    wake()
    return _decks[0]


@dataclass
class _Opened:
    """What the end of a running cell takes back. `outer` is the strand of the cell around it, a
    session's in which a block runs.
    """

    outer: Origin | None = None
    undo: list[Callable[[], None]] = field(default_factory=list)


class TapeSession:
    """Cassette, mode, pins, taps and cells of one kernel."""

    def __init__(self) -> None:
        self.secrets = Secrets()
        self._notes_of_names: set[str] = set()
        self._learned = 0  # what was looked for in what is recorded
        # the runs that were recorded here: at a terminal each has a session of its own
        self._recorded_runs: set[str] = set()
        self.session = entropy.token_hex(4)
        self.session_mode = "off"
        self.forced = False
        self.session_options: dict[str, Any] = {}
        # what runs live under a session's word goes to one take of each cassette
        self._fresh: dict[Path, str] = {}
        self.tags = Tags()
        self.tools = Tools()
        self._files = ChangedFiles()
        # of this session's requests: taped from each cell's start
        self._known_tools: dict[str, None] = {}
        self._cells: dict[TapedCell, _Opened] = {}
        self._shelf: dict[Path, tuple[Cassette, Player]] = {}
        # of a cassette's cells, whichever take they play
        self._executions: dict[Path, Counter[tuple[str, str]]] = {}
        self._guard = Guard()
        self._withdraw_keys: Callable[[], None] = do_nothing
        self._mode_pending = (
            False  # the session's mode was set, and what hangs on it is still to be done
        )
        self.lending = Lending(self.secrets, lambda: bool(self._cells) or self.sealed)
        self._boundary = Interceptor(self)
        self._remarks: list[tuple[Remark, str]] = []
        self._await_sync: Callable[[], None] = do_nothing
        self.watchers: list[Callable[[], None]] = []
        self.tracker: Tracker | None = None  # of the shell whose cells these are
        self.list_outputs: Callable[[], Sequence[Output] | None] = do_nothing
        """What the shell's cell that ends now showed; None where not all of it is known."""

    # ------------------------------------------------------------ the session

    @property
    def active(self) -> TapedCell | None:
        """The taped cell that runs now; the innermost where blocks are nested."""
        cells = list(self._cells)  # other threads begin and end blocks
        return cells[-1] if cells else None

    @property
    def sealed(self) -> bool:
        """Whether the whole session replays: then nothing may leave between cells either."""
        return self.session_mode == "replay"

    def set_session(self, mode: str, options: dict[str, Any] | None = None) -> None:
        """The mode of every following cell; 'off' takes the taps off. A cell that runs now ends as
        it began.
        """
        if mode != "off" and mode not in MODES:
            raise TapeUsageError(f"{mode!r} is not a mode; there are {', '.join((*MODES, 'off'))}")
        self.session_options, self._fresh = options or {}, {}
        self.session_mode, self._mode_pending = mode, True
        if self.tracker is not None:
            self.tracker.firsts.wanted = mode != "replay"
        if mode != "off":
            self._install_instrumentation()
            self._set_guard()
        self._apply_session_mode()
        self.changed()

    def _apply_session_mode(self) -> None:
        """Once no cell runs: put on what the session's new mode has between cells, take off what it
        has no more.

        A replayed cell that says `%tape off` stays guarded to its end, and a recorded one on the
        tape.
        """
        if self._cells or not self._mode_pending:
            return
        self._mode_pending = False
        self._withdraw_keys()
        if self.sealed:
            self._withdraw_keys = placeholders.supply(self.secrets, ())
        else:
            self._withdraw_keys = do_nothing
        if self.session_mode == "off":
            self.unhook()

    def changed(self) -> None:
        """Something is new to see: tell those who watch. They take note and come back later: no
        call waits for them.
        """
        for watcher in tuple(self.watchers):
            watcher()

    def set(self, key: str, value: str) -> None:
        """`%tape set KEY=VALUE`: a fact stamped on every following run; `redact` adds a pattern to
        mask.
        """
        self.tags.set(key, value, self.secrets)

    def _install_instrumentation(self) -> None:
        instrumentation.patch_all()
        instrumentation.install(self._boundary)

    def unhook(self) -> None:
        """Take every patch off (what was recorded stays)."""
        self.lending.stop()
        instrumentation.remove_tape()
        instrumentation.unpatch_all()
        self._guard.disarm()

    def continue_in_fork(self) -> None:
        """Go on, in a process that was forked between two cells, in place of the one it is of."""
        self._boundary.continue_in_fork()
        self._set_guard()

    def lend_keys(self, notebook: Path) -> bool:
        """From now on clients that are made between the taped cells of a notebook can replay; False
        if it has no cassette: then nothing is touched.
        """
        if not paths.cassette_names(notebook):
            return False
        self._install_instrumentation()
        self._set_guard()
        folder = paths.folder(notebook)
        self.lending.start(folder, open_cassettes(folder, lambda path: self.cassette(path)[0]))
        return True

    # ------------------------------------------------------------ cells

    def check(self, request: CellRequest) -> None:
        """Whether the cell can run as asked. Raises TapeUsageError or CassetteError, and changes
        nothing.
        """
        self._resolve_cassette(self._apply_forced_replay(request))

    def _apply_forced_replay(self, request: CellRequest) -> CellRequest:
        """A session that was told to replay from outside (TAPE_MODE, `tape replay`) overrides every
        word within.
        """
        if not self.forced:
            return request
        return partial_replay.sessions_own(request, self.session_options, sealed=self.sealed)

    def _resolve_cassette(self, request: CellRequest) -> tuple[Cassette | None, Path | None]:
        if request.mode not in MODES:
            raise TapeUsageError(f"{request.mode!r} is not a mode; there are {', '.join(MODES)}")
        active = self.active
        if active is not None and request.explicit and active.request.explicit:
            raise TapeUsageError(
                f"a taped cell or block is running ({active.mode}); they cannot be nested. End it first (a generator's "
                "is open until it is read to its end, or closed)"
            )
        path = request.path or self._find_cassette_path(request)
        if path is None or request.mode == "live":
            return None, path
        self._require_cassette(request, path)
        cassette = self.cassette(path)[0]
        selection = partial_replay.selection_of(request.options, request.mode)
        take = partial_replay.opened_take(
            cassette,
            request,
            selection,
            self._open_take,
            lambda: self._find_fresh_take_name(request, cassette),
        )
        if take is not cassette:
            path, cassette = take.path, self.cassette(take.path, take)[0]
        writes = request.mode == "record" or partial_replay.writes(
            request.options, request.mode, selection
        )
        if writes and (reason := cassette.writable()):
            raise CassetteError(
                f"cannot be recorded to: {reason}. Nothing was run or sent", path=str(path)
            )
        return cassette, path

    def _find_fresh_take_name(self, request: CellRequest, cassette: Cassette) -> str:
        """A free name for what runs live: one for each cell that asks for it, one for a session
        that does.
        """
        if request.explicit and not (self.forced and self.sealed):
            return files.unused_name(cassette.root, partial_replay.FRESH)
        if cassette.root not in self._fresh:
            self._fresh[cassette.root] = files.unused_name(cassette.root, partial_replay.FRESH)
        return self._fresh[cassette.root]

    def _open_take(self, base: Cassette, name: str) -> Cassette:
        """The take of that name, as it was opened for an earlier cell; else opened now."""
        path = files.path_of(base.root, name)
        if path.absolute() in self._shelf and path.exists():
            return base.require_own_take(self.cassette(path)[0])
        return base.take(name)

    def _find_cassette_path(self, request: CellRequest) -> Path | None:
        if request.mode == "live" and request.notebook is None:
            return None
        if request.notebook is None and request.name == paths.MAIN:
            raise NotebookUnknown(f"the notebook's path is not known here: {paths.HOW_TO_NAME}")
        return paths.cassette_path(request.notebook, request.name, request.start)

    def _require_cassette(self, request: CellRequest, path: Path) -> None:
        """In replay the cassette must be there; never start empty in silence beside a neighbour's
        recording.
        """
        if path.exists() or path.is_symlink():
            return
        if request.notebook is not None and (
            neighbour := _find_adoptable_recording(request.notebook, request)
        ):
            raise TapeUsageError(adoption.offer(request.notebook, neighbour))
        if request.mode == "replay" and request.explicit:
            if request.path is None:
                names = paths.cassette_names(request.notebook, request.start)
            else:
                names = []
            have = f"There are: {', '.join(names)}" if names else "There is none yet"
            raise TapeUsageError(
                f"there is no cassette {path}. {have}; record one with %%tape record. Nothing was run"
            )

    def cassette(self, path: Path, opened: Cassette | None = None) -> tuple[Cassette, Player]:
        """The cassette at a path and its player, read again where the file changed. `opened`: as it
        was opened.
        """
        key = path.absolute()
        if opened is not None and not path.exists():
            self._shelf.pop(key, None)  # a take that is to be made: of its base as that is now
        if key not in self._shelf:
            cassette = opened or Cassette.open(path)
            executions = self._executions.setdefault(cassette.root.absolute(), Counter())
            self._shelf[key] = (
                cassette,
                Player(cassette.matching, lambda: cassette.runs, executions),
            )
        cassette, player = self._shelf[key]
        try:
            if cassette.refresh():
                cassette.check_small()
                player.forget()
        except CassetteError:
            del self._shelf[key]
            raise
        return cassette, player

    def _check_names(self, request: CellRequest, selection: Selection, cassette: Cassette) -> None:
        """Words that fit nothing are refused, or said once, before the cell runs."""

        def is_defined(name: str) -> bool:
            return name in request.namespace or partial_replay.contains_name(request.source, name)

        for note in partial_replay.check_names(selection, [cassette], is_defined):
            if note not in self._notes_of_names:
                self._notes_of_names.add(note)
                print(f"tape: {note}", file=sys.stderr)  # noqa: T201 - a note to a person

    def forget(self, path: Path) -> None:
        """Drop what is known of a cassette: the next cell opens it anew."""
        self._shelf.pop(path.absolute(), None)

    def begin(self, request: CellRequest) -> TapedCell:
        """Start a taped cell: from here on its calls cross the boundary. Raises what `check`
        raises.
        """
        request = self._apply_forced_replay(request)
        cassette, path = self._resolve_cassette(request)
        if cassette is not None and path is not None:
            player = self._shelf[path.absolute()][1]
        else:  # it goes live: nothing is recorded that could be played
            player = Player(lambda _key: (), lambda: ())
        execution = self._start_execution(request, player, cassette)
        cell = TapedCell(
            request,
            execution,
            player,
            cassette,
            path,
            tools=CellTools(self.tools),
            task=current_task(),
        )
        if cell.replaying:
            self._note_cell_recording(player.repeats(execution))
            cell.findings.notes += _describe_older_recording(*player.recording_of(execution))
            cell.execution.unrecorded = not request.explicit and pins.recorded_run(cell) is None
        self._start_cell(cell)
        return cell

    def _start_execution(
        self, request: CellRequest, player: Player, cassette: Cassette | None
    ) -> CellPlayback:
        """What is decided of a cell before it runs: its mode, what is excepted from it, and by what calls
        are matched. Raises TapeUsageError.
        """
        identity = self._identify(request)
        ignore = self._collect_ignored_paths(request, player, cassette)
        matching = None
        if cassette and ignore:
            matching = _build_matching_without(cassette, self.secrets, ignore)
        mode: Mode = request.mode  # type: ignore[assignment]  # checked above
        if mode == "once" and player.has_recording(identity):
            mode = "replay"
        selection = partial_replay.selection_of(request.options, request.mode)
        partial_replay.require_outside(request, selection)
        if cassette is not None and not self.forced:
            self._check_names(request, selection, cassette)
        if mode != request.mode:
            selection = selection.without_stubs()
        repeats = str(request.options.get("repeats") or "")
        execution = player.start(identity, mode, matching, selection, repeats)
        execution.on_divergence = partial_replay.policy_of(request.options, request.mode)
        execution.ignore = ignore
        execution.decided = request.options.get("decided") or {}
        return execution

    def _identify(self, request: CellRequest) -> CellIdentity:
        source = source_hash(request.source) if request.source else ""
        session = entropy.token_hex(4) if request.typed else self.session
        return CellIdentity(request.cell_id or "", source, session)

    def _collect_ignored_paths(
        self, request: CellRequest, player: Player, cassette: Cassette | None
    ) -> tuple[IgnorePath, ...]:
        """Paths out of the match: asked for now, and those the recordings were made with."""
        current = {run.id for run in player.current()}
        texts = list(request.options.get("ignore", ()))
        for run in cassette.runs if cassette else ():
            if run["run"] in current:
                texts += run.get("ignore", ())
        return tuple(map(IgnorePath, dict.fromkeys(texts)))

    def _start_cell(self, cell: TapedCell) -> None:
        self.secrets.learn_environment(os.environ)
        self._install_instrumentation()
        opened = self._cells[cell] = _Opened(_find_running_origin(ORIGIN.get()))
        # a cell that ran untaped ran without placeholders, and does now
        if cell.replaying and not cell.request.options.get("untaped"):
            runs = cell.cassette.runs if cell.cassette else ()
            opened.undo.append(placeholders.supply(self.secrets, runs))
        cell.recording.kit, cell.tags = environment.collect_fast(), self.tags.start()
        cell.findings.changed = self.changed
        self._set_guard()
        ORIGIN.set(cell.origin)
        self.tape_known_tools(cell)
        opened.undo += [pins.put_on_pins(cell), partial_replay.watched(cell)]
        if self.tracker is not None:
            self.tracker.taped()
        self.changed()

    def end(self, cell: TapedCell, error: BaseException | None) -> CellReport:
        """End a taped cell, in whatever context: the next cell is live again. Commits its end mark."""
        for seen in self._guard.take_children(cell):
            self._report_sighting(seen)
        if error is None:
            unplayed_tools.refuse_untaped(cell)
        cell.closed = True  # calls of its threads come late from here on
        opened = self._cells.pop(cell, _Opened())
        if ORIGIN.get() is cell.origin:
            ORIGIN.set(_find_running_origin(opened.outer))
        self._set_guard()  # for the cells that are left: the one around a block, if any
        for name in cell.request.options.get("tools", ()):
            if cell.tools.scanned.sought.get(name) != FOUND:
                cell.warn(
                    f"--tools {name}: there is no function of that name here; nothing was taped for it",
                    cold=True,
                )
        for undo in reversed(opened.undo):  # pins, placeholders, taped tools: last on, first off
            undo()
        cancelled = type(error).__name__ == "CancelledError" and not cell.request.block
        interrupted = cancelled or isinstance(error, KeyboardInterrupt)
        for call in list(cell.recording.running):
            call.cell_ended(interrupted=interrupted)
        cell.task = None
        if self.tracker is not None and not (cell.request.block or interrupted):
            folders = self._boundary.folders.moved
            note_outcome(cell, self.list_outputs(), self.tracker, self.secrets, folders)
        self._end_run(cell, error, interrupted)
        self._guard.take_refusals()  # the cell has them; their tracebacks hold sockets
        cell.recording.going.clear()
        self._apply_session_mode()
        self.changed()
        report = cell_report(cell, error)
        self._remarks += [("unheld", each) for each in report.unheld]
        self._remarks += [("lost", each) for each in report.lost]
        return report

    def take_remarks(self) -> str:
        """As JSON: what cells and blocks that ended since the last asking did not hold, and what
        they lost. A headless run asks: the summary that says it too is an output, which a program
        can clear or capture.
        """
        self._await_sync()
        taken, self._remarks = self._remarks, []
        remarks: dict[str, list[str]] = {kind: [] for kind in REMARKS}
        for kind, text in taken:
            remarks[kind].append(text)
        return json.dumps(remarks)

    def _end_run(self, cell: TapedCell, error: BaseException | None, interrupted: bool) -> None:
        if self.tracker is not None and not cell.request.block:
            self._files.extend_end_mark(cell, self.tracker.firsts, self.secrets, self.start_run)
        self._boundary.telemetry.extend_end_mark(cell, self.secrets, self.start_run)
        pins.commit_drawn(cell, self.start_run, failed=error is not None)
        if not cell.recording.run or cell.cassette is None:
            return
        record: dict[str, Any] = {
            "outcome": _name_outcome(error, interrupted=interrupted),
            **cell.start.record(),
            "calls": len(cell.findings.rows),
            **cell.ran_record(interrupted=interrupted),
        }
        if error is not None:
            record["error"] = self.secrets.scrub(f"{type(error).__name__}: {error}")[0][:500]
        if cell.findings.cold:
            record["cold"] = cell.findings.cold
        if groups := cell.recording.group_alike():
            record["alike"] = [call for _, calls in groups for call in calls]
            record["alike in"] = list(dict.fromkeys(names for names, _ in groups))
            for names, calls in groups:
                cell.warn(by_order(names, calls))
        record.update(cell.recording.ends)
        try:
            self._commit_end(cell, cell.cassette, record)
            if error is not None and cell.mode == "record":
                cell.findings.notes += _describe_way_back(cell, cell.cassette)
        except (CassetteError, OSError) as problem:
            cell.lose(f"the end of the run is not on the tape: {problem}")

    def _commit_end(self, cell: TapedCell, cassette: Cassette, record: dict[str, Any]) -> None:
        at_once = cell.request.block or os.name == "nt"  # there an open file is not replaced
        cassette.end_run(cell.recording.run, record, self.secrets, sync=at_once)
        if not at_once:
            self._sync_beside(cell, cassette)
        cell.warn_of_removed_calls()
        if self.secrets.learned != self._learned:
            self._learned = self.secrets.learned
            for line in late_secrets.told_before(cassette, self._recorded_runs, self.secrets):
                cell.warn(line)

    def _sync_beside(self, cell: TapedCell, cassette: Cassette) -> None:
        """Have the disk hold what a cell recorded beside what comes next: it takes milliseconds, and
        only a loss of power would lose it.
        """

        def sync_to_disk() -> None:
            try:
                cassette.sync()
            except CassetteError as error:
                problem = f"what this cell recorded is not safe on the disk: {error}"
                cell.lose(problem)
                self._remarks.append(("lost", problem))

        self._await_sync()
        self._await_sync = run_unlisted(sync_to_disk)

    def start_run(self, cell: TapedCell) -> None:
        """Commit the run's record before its first call goes out. Raises CassetteError."""
        if cell.cassette is None:
            return
        record = {**self._build_run_record(cell), "kit": cell.recording.kit}
        header = {
            "notebook": cell.request.notebook.name if cell.request.notebook else "",
            "cassette": cell.request.name,
            "made by": f"tape-jupyter {__version__}",
        }
        cell.recording.run = cell.cassette.start_run(
            record, {k: v for k, v in header.items() if v}, self.secrets
        )
        self._recorded_runs.add(cell.recording.run)
        cell.recording.first_commit = lambda: self._collect_kit(cell)
        if not cell.replaying:
            self._note_cell_recording(cell.recording.run)

    def turn_aside(self, cell: TapedCell, name: str) -> Cassette:
        """What a recording cell does from now on goes to a new take of its cassette; what it
        recorded stays, and ends.

        Raises CassetteError, OSError.
        """
        base, recorded = cell.cassette, cell.recording.run
        assert base is not None
        take = self._open_take(base, name)
        if recorded:
            self._end_run(cell, None, interrupted=False)
        with cell.lock:
            cell.path, cell.recording.run = take.path, ""
            cell.cassette, _ = self.cassette(take.path, take)
            cell.request = replace(
                cell.request, options={**cell.request.options, "adds_to": recorded}
            )
            self.start_run(cell)
        return take

    def _note_cell_recording(self, run: str) -> None:
        """The history knows which recording the running cell made, or repeats."""
        if self.tracker is not None and run:
            self.tracker.set_run(run)

    def calling(self) -> None:
        """A call is made: the history knows at which line of its cell."""
        if self.tracker is not None:
            self.tracker.calling()

    def _collect_kit(self, cell: TapedCell) -> None:
        """Collect the slow part of the kit beside the cell, once its first call is safe: no token
        waits for git.
        """
        cell.recording.first_commit = do_nothing
        if cell.closed:  # what its end commits first: no token waits any more
            self._add_kit(cell)
            return
        gathering = threading.Thread(
            target=self._add_kit, args=(cell,), name="tape kit", daemon=True
        )
        # a thread of ours takes no number among the program's
        contextvars.Context().run(gathering.start)
        if (opened := self._cells.get(cell)) is not None:
            opened.undo.append(lambda: gathering.join(timeout=KIT_SECONDS))

    def _add_kit(self, cell: TapedCell) -> None:
        folder = cell.request.notebook.parent if cell.request.notebook else None
        try:
            if cell.cassette is not None:
                kit = {
                    **environment.collect(cell.request.namespace, cell.tags.run(), folder=folder),
                    **cell.recording.states(),
                }
                cell.cassette.add_kit(cell.recording.run, kit, self.secrets)
        except Exception as error:
            cell.warn(f"the kit of this run is not on the tape: {type(error).__name__}: {error}")

    def _build_run_record(self, cell: TapedCell) -> dict[str, Any]:
        identity = cell.execution.cell
        record = {
            "mode": "new_episodes" if cell.request.options.get("adds_to") else cell.mode,
            "cell": identity.cell_id,
            "source": identity.source,
            "session": identity.session,
            "count": cell.request.count,
            "title": title_of(self.secrets.scrub(cell.request.source)[0]),  # before it is cut
            "at": moment_text(cell.start.at),
            "ignore": list(cell.request.options.get("ignore", ())),
            "parent": self._find_parent_run(cell),
            "pins": cell.recording.pins,
            "strands": "" if cell.origin.counted else "named",
            **cell.execution.selection.record(),
        }
        return {key: value for key, value in record.items() if value not in ("", None, [], {})}

    def _find_parent_run(self, cell: TapedCell) -> str:
        """The recording that a `new_episodes` run adds to, or what ran live in a replay."""
        if adds_to := cell.request.options.get("adds_to"):
            return str(adds_to)
        if cell.mode == "replay":
            return cell.player.repeats(cell.execution)
        if cell.mode != "new_episodes":
            return ""
        for run in reversed(cell.player.current()):  # the newest recording of the cell
            if run.cell.same_cell(cell.execution.cell) and not run.parent:
                return run.id
        return ""

    def tape_tools(self, cell: TapedCell, names: Iterable[str]) -> None:
        """Tape the functions of the notebook that carry these names, for the rest of the cell, as
        they stand now.
        """
        requested = dict.fromkeys(
            (*names, *cell.request.options.get("tools", ()), *cell.execution.selection.tools)
        )
        self._known_tools.update(requested)
        if not requested or cell.closed:  # what is taped after its end would never be untaped
            return
        taped = cell.tools.scanned.tape(tuple(requested), cell.request.namespace)
        if taped is not None:
            opened = self._cells.get(cell)
            if opened is None:  # it has ended meanwhile, in another thread
                taped()
                return
            opened.undo.append(taped)
            for name, why in taped.skipped.items():
                cell.warn(f"tool {name} runs live and is not on the tape: {why}", cold=True)

    def tape_known_tools(self, cell: TapedCell) -> None:
        """The same for every tool that is known by now: of this session's requests, and of the
        recording.

        In a cell that ran untaped none was taped: there they run, unless a recorded reply asks for
        them.
        """
        if cell.execution.runs_tools:
            return
        self.tape_tools(cell, (*self._known_tools, *(cell.cassette.tools if cell.cassette else ())))

    # ------------------------------------------------------------ the guard

    def _set_guard(self) -> None:
        mode: Literal["replay", "record", "off"] = "off"
        cells = list(self._cells)
        if self.sealed or any(cell.replaying for cell in cells):
            mode = "replay"
        elif any(cell.mode != "live" for cell in cells):
            mode = "record"
        allow = frozenset[str]().union(*(cell.execution.selection.hosts for cell in cells))
        self._guard.arm(
            Policy(
                mode,
                _is_replaying,
                allow,
                self._report_sighting,
                self._report_allowed_connection,
                self._explain_withheld_text,
                self._may_start_children,
            )
        )

    def _may_start_children(self, cell: Any) -> bool:
        """Whether a replay's child processes are started: it re-runs a cell that ran untaped, or
        has no network.
        """
        cell = cell if isinstance(cell, TapedCell) else self.active
        untaped = cell is not None and cell.request.options.get("untaped")
        return bool(untaped or os.environ.get(AWAY))

    def _explain_withheld_text(self, text: str) -> str:
        """Why a command line, or what a child process inherits, must not leave: a placeholder is in
        it. Where there is no network, none can leave.
        """
        lacking = "" if os.environ.get(AWAY) else self.secrets.stood_for(text)
        return lacking and partial_replay.lacks(lacking)

    def _report_allowed_connection(self, what: str, cell: Any) -> None:
        """A connection to a host that --live names: it is not on the tape, and that is said."""
        cell = cell if isinstance(cell, TapedCell) else self.active
        note = f"{what} was let through (--live host): its answer is not on the tape"
        if cell is not None and note not in cell.findings.notes:
            cell.findings.notes.append(note)

    def _report_sighting(self, seen: Sighting) -> None:
        """A connection or child process that no tap saw: refused, or named at once."""
        cell = seen.cell if isinstance(seen.cell, TapedCell) else self.active
        if cell is None:
            return
        if seen.refusal is not None:
            cell.refuse(seen.refusal)
        else:
            cell.warn(str(seen), cold=True)


def _find_running_origin(origin: Origin | None) -> Origin | None:
    """A strand of a cell that still runs; in the context of one that ended elsewhere its strand may
    have stayed.
    """
    if origin is not None and not getattr(origin.cell, "closed", False):
        return origin
    return None


def _describe_older_recording(number: int, count: int) -> list[str]:
    """What to say of a replay that does not play the newest recording of its cell: a person may
    expect that one.
    """
    if number == count:
        return []
    position = (
        f"recording {number} of {count} of this cell: "
        "without cell ids several may be alike, and its next run plays"
    )
    return [f"{position} the next. To have one only, record it again in a new session"]


def _describe_way_back(cell: TapedCell, cassette: Cassette) -> list[str]:
    """A recording that ended with an error counts, as the newest does: where a whole one was there
    before it, how to have that one replayed again.
    """
    whole = whole_run_before(cassette.runs, cassette.ended, cell.recording.run)
    if not whole or cassette.base is not None:
        return []
    if paths.stem(cassette.path) == paths.MAIN:
        name = ""
    else:
        name = f"{paths.stem(cassette.path)} "
    if cell.request.block:
        command = f"tape prune {cassette.path}"
    else:
        command = f"%tape prune {name}".rstrip()
    return [
        (
            "this recording ended with an error, and is the one that replays now. "
            f"To replay the one before it again: {command} --back-to {whole}"
        )
    ]


def _name_outcome(error: BaseException | None, *, interrupted: bool) -> str:
    if interrupted:
        return "interrupted"
    return "raised" if error is not None else "ok"


def _is_replaying(cell: Any) -> bool:
    return isinstance(cell, TapedCell) and cell.mode == "replay"


def _find_adoptable_recording(notebook: Path, request: CellRequest) -> Path | None:
    """The recording that the notebook may adopt. Who records a copy, beside the notebook it is of,
    means to.
    """
    neighbour = adoption.adoptable(
        notebook, {source_hash(request.source), *adoption.source_hashes(notebook)}
    )
    copied = neighbour is not None and neighbour.with_suffix(".ipynb").exists()
    return None if copied and request.mode == "record" else neighbour


def _build_matching_without(
    cassette: Cassette, secrets: Secrets, ignore: tuple[IgnorePath, ...]
) -> Matching:
    """Recorded calls by a match key without the ignored paths: every request is read, once for the
    cell.
    """
    entries: dict[str, list[Any]] = {}
    for entry in cassette.calls:
        call = entry.request()
        # arguments all count
        key = entry.match if isinstance(call, FunctionCall) else match_key(call, secrets, ignore)
        entries.setdefault(key, []).append(entry)
    return lambda key: entries.get(key, ())
