"""Re-runs what depends on an overridden reply, in the notebook itself. What runs next, and from
which state, the engine says (dataflow/restore/rerun.py), where a cell's outputs land its route
(jupyter/rerun/routes.py). Here a cell becomes a replay on the take, a divergence waits for a
person, and before is compared with after.

Everything happens on the kernel's main thread, between cells. While the browser runs a cell the
kernel is idle.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.cassette.cell_sources import title_of
from tape_jupyter.cassette.paths import MAIN
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.dataflow.downstream import HOLDS
from tape_jupyter.dataflow.history import History
from tape_jupyter.dataflow.plan import Plan, PlanCell, plan_rerun
from tape_jupyter.dataflow.restore.rerun import Rerun
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter.rerun import divergence as rerun_divergence
from tape_jupyter.jupyter.rerun import excluded_cells, isolated
from tape_jupyter.jupyter.rerun.cell_watch import watch_of
from tape_jupyter.jupyter.rerun.comparison import (
    CellChange,
    Comparison,
    RerunProof,
    SpanChange,
    beside_others,
    calls_changed,
    gave_recorded,
    mingled_tools,
    outputs_changed,
    played_tools,
    shorts,
    variables_changed,
)
from tape_jupyter.jupyter.rerun.followed import find_asked, find_live_tools
from tape_jupyter.jupyter.rerun.isolated import FreshPage, FreshRun, FreshRunListener, ProofCase
from tape_jupyter.jupyter.rerun.outputs import CellOutputs, Output
from tape_jupyter.jupyter.rerun.routes import (
    CellRoute,
    Here,
    State,
    best_route,
)
from tape_jupyter.session import partial_replay
from tape_jupyter.session.cell import Divergence, TapedCell
from tape_jupyter.session.cell_words import is_quiet
from tape_jupyter.session.options import Word, parse_line

if TYPE_CHECKING:
    from tape_jupyter.dataflow.history import Execution
    from tape_jupyter.jupyter.cell_runner import CellRunner

Choice = Literal["live", "write", "stale", "skip"]
CHOICES: tuple[Choice, ...] = ("live", "write", "stale", "skip")
Tell = Callable[[str, dict[str, Any]], None]
"""Hears "progress", "diverged", "done" and "cancelled", with what protocol.ts says of each."""


@dataclass(slots=True)
class RerunRequest:
    """What a person asks of a re-run. `entries`: those that are ticked (None: as the plan has
    them).
    """

    plan: Plan
    take: Cassette
    entries: frozenset[int] | None = None
    on_divergence: str = "stop"
    fresh: bool = False
    """Everything, in a new process (fresh_rerun.py); so it is also where the plan says that only
    that gets it right.
    """
    pace: str = ""


@dataclass(slots=True)
class RunningCell:
    """The cell that is to run next, as a replay on the take. `cell` is the taped cell once it runs."""

    entry: Execution
    request: RerunRequest
    decided: dict[str, str]
    differing: frozenset[str] = frozenset()
    """Variables that are not what they were when the cell was recorded."""
    moved: tuple[str, ...] = ()
    """Generators of the process that do not stand where they stood when the cell was recorded."""
    live_tools: tuple[str, ...] = ()
    """Tools that go live, since what they ask for is not what it was."""
    cell: TapedCell | None = None

    def choose_word(self, line: str | None, raw: str) -> Word | None:
        """What the tape shall do in it, whatever its own line says. None: it only sets things up."""
        if is_quiet(raw):
            return None
        command = parse_line(line) if line is not None else Word("replay")
        root = paths.stem(self.request.take.root)
        options = {
            name: value
            for name, value in command.options.items()
            if name not in partial_replay.OPTIONS
        }
        options |= {
            "decided": dict(self.decided),
            "on_divergence": self.request.on_divergence,
            "repeats": self.entry.run,
        }
        options |= {"rerun": True, "moved": self.moved}
        if self.live_tools:
            options["live"] = [f"tool:{name}" for name in self.live_tools]
        if line is None and not self.entry.run:
            options["untaped"] = True
        if self.request.pace:
            options["pace"] = self.request.pace
        name = command.name or (root if line is None else None)
        own_take = files.path_of(
            self.request.take.root.with_name(f"{name or MAIN}{paths.SUFFIX}"), self.take_name
        )
        if (name or MAIN) == root or own_take.exists():
            options["take"] = self.take_name
        return Word("replay", name, options)

    @property
    def take_name(self) -> str:
        return files.take_name(self.request.take.path)


@dataclass(slots=True)
class ParkedRerun:
    """A re-run that waits for a person. `divergence`: None where the cell ran in another process."""

    entry: Execution
    question: rerun_divergence.Question
    divergence: Divergence | None = None


@dataclass(slots=True)
class BeforeRerun:
    """What there was before the re-run: outputs by entry, short words of variables, entries that
    ran.
    """

    outputs: dict[int, list[Output]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    entries: dict[int, Execution] = field(default_factory=dict)


class Rerunner:
    """The re-runs of one kernel, one at a time. `compared` is the last one's comparison."""

    def __init__(self, cells: CellRunner) -> None:
        self.cells, self.shell = cells, cells.shell
        self.watch = watch_of(cells)
        self.displayed, self.parents = self.watch.displayed, self.watch.parents
        self.compared: Comparison | None = None
        self.proving: threading.Thread | None = None
        self.parked: ParkedRerun | None = None
        self.fresh: FreshRun | None = None
        self._freshest: FreshRun | None = None
        self.learned: set[int] = set()
        self._machine: Rerun | None = None
        self._request: RerunRequest | None = None
        self._planned: RunningCell | None = None
        self._route: CellRoute | None = None
        self._notify: Tell = _ignore_event
        self._before = BeforeRerun()
        self._spans: list[SpanChange] = []
        self._unsure: list[str] = []
        """What tools gave that a whole run may not give, in words."""
        self._left_out: dict[int, str] = {}
        self._decided: dict[int, dict[str, str]] = {}
        self._cancelling = False
        self._todo: deque[Callable[[], None]] = deque()
        self._stepping = False

    @property
    def history(self) -> History | None:
        return self.cells.history

    def of_cell(self, cell: str) -> list[int]:
        """The entries of a cell, by the front end's id or as the history names it."""
        entries = self._require_history().entries
        return [e.index for e in entries if cell in (e.cell, self.parents.cell_id(e.index))]

    @property
    def running(self) -> bool:
        return self._machine is not None or self.fresh is not None

    @property
    def freshening(self) -> threading.Thread | None:
        """What the last fresh process is heard on."""
        return self._freshest.thread if self._freshest is not None else None

    @property
    def teller(self) -> Tell:
        """Who hears of the newest re-run."""
        return self._notify

    @property
    def planned(self) -> RunningCell | None:
        """The cell that is to run now, if one is."""
        return self._planned

    # ------------------------------------------------------------ plans

    def plan(self, take: Cassette, changed: Iterable[int] | None = None) -> Plan:
        """What to run again for a take. `changed`: entries of the history instead of those that it
        overrides.

        Raises TapeUsageError where this kernel did not run the cells that hold the overridden
        calls.
        """
        history = self._require_history()
        entries = set(changed) if changed is not None else self.changed(take)
        name = files.take_name(take.path) if take.base is not None else ""
        lines = self.cells.deck.tracker.lines if self.cells.deck.tracker is not None else {}
        at = {index: lines.get(index) for index in entries}
        made = plan_rerun(
            history,
            at,
            learned=self.learned - entries,
            calls=_count_calls(take),
            later=_count_later_calls(take),
            answered=_find_answered_runs(take),
            take=name,
        )
        if changed is not None:
            made = _tell_chosen(made, take, history)
        return excluded_cells.planned(_add_costs(made, take, history), take, history)

    def adopt(self, take: str) -> None:
        """Plan from now on with the cells that the last proof of this take found to depend on it,
        too. Raises TapeUsageError where it found none.
        """
        adopted = self.compared.proof.adopt if self.compared is not None else ()
        if not adopted or self.compared is None or self.compared.take != take:
            raise TapeUsageError(
                f"the proof of a re-run with take {take} found no cells to adopt: re-run it first (%tape rerun {take})"
            )
        history = self._require_history()
        self.learned |= {history.of_cell(cell)[-1].index for cell in adopted}

    def changed(self, take: Cassette) -> set[int]:
        """The entries whose runs hold the calls that a take overrides."""
        history = self._require_history()
        overridden = {entry.run for entry in take.newest_overrides()}
        if not overridden:
            raise TapeUsageError(
                f"take {files.take_name(take.path)} overrides nothing: there is nothing to re-run"
            )
        entries = {entry.index for entry in history if entry.run in overridden}
        if not entries:
            raise TapeUsageError(
                "this kernel has not run the cell that holds the overridden call. Now: run the notebook first (%tape "
                "replay, Run All), or re-run it whole in a new kernel (tape rerun NB)"
            )
        return entries

    def _require_history(self) -> History:
        if self.history is None:
            raise TapeUsageError(
                "this kernel keeps no history of its cells: %load_ext tape_jupyter first"
            )
        return self.history

    # ------------------------------------------------------------ a re-run

    def start(self, request: RerunRequest, notify: Tell, *, browser: bool = True) -> None:
        """Begin; what runs without waiting has run when this returns. Raises TapeUsageError while
        another is on.
        """
        if self.running:
            raise TapeUsageError(
                "a re-run is running: continue it (%tape rerun --on-divergence ...) or end it (%tape rerun --cancel)"
            )
        if request.fresh or request.plan.hermetic:
            self._start_fresh(request, notify)
            return
        history = self._require_history()
        self._request = request
        self._notify = notify
        self._route = best_route(self.parents, browser=browser)
        tracker = self.cells.deck.tracker
        resync = tracker.resync if tracker is not None else do_nothing
        behind = {*excluded_cells.entries(request.plan, request.take, history), *self.learned}
        self._machine = Rerun(
            history, request.plan, self.shell, ticked=request.entries, behind=behind, resync=resync
        )
        if doubt := self._machine.doubt:
            self._machine = self._route = None
            self._start_fresh(replace(request, plan=replace(request.plan, hermetic=doubt)), notify)
            return
        self._before, self._spans, self._left_out, self._decided = BeforeRerun(), [], {}, {}
        self._unsure = []
        self._cancelling, self.parked = False, None
        names = {name for entry in history for name in entry.changed}
        self._before.variables = shorts(self.shell.user_ns, names)
        self._queue_step(self._run_next_cell)

    def _start_fresh(self, request: RerunRequest, notify: Tell) -> None:
        self._notify = notify
        history = self._require_history()
        why = (request.plan.hermetic or "") if not request.fresh else ""
        was = History(list(history))
        notebook = self.cells.notebook_or_none(was[0].source) if len(was) else None

        def handle_end(compared: Comparison | None) -> None:
            self.fresh = None
            if compared is None:
                self._notify("cancelled", {})
            else:
                self.compared = compared
                self._notify("done", compared.record())

        def handle_question(entry: Execution, question: rerun_divergence.Question) -> None:
            self.parked = ParkedRerun(entry, question)
            self._ask_person(self.parked)

        tracker = self.cells.deck.tracker
        fresh = FreshRun(
            was,
            history,
            FreshPage(self.displayed, self.parents, self.shell.user_ns),
            request.take,
            notebook,
            request.on_divergence,
            FreshRunListener(notify, handle_question, handle_end),
            why,
            request.pace,
            variables=tracker.variables if tracker is not None else None,
        )
        before = self.parked, self.fresh, self._freshest
        self.parked, self.fresh, self._freshest = None, fresh, fresh
        try:  # its end may come before `begin` returns
            fresh.begin()
        except BaseException:
            self.parked, self.fresh, self._freshest = before
            raise

    def _queue_step(self, step: Callable[[], None]) -> None:
        """Steps run one after another, however deep they are asked for."""
        self._todo.append(step)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._todo:
                self._todo.popleft()()
        except BaseException:
            self._todo.clear()
            self._abandon_rerun()
            raise
        finally:
            self._stepping = False

    def _run_next_cell(self) -> None:
        entry = self._current_machine.next()
        if entry is None:
            self._finish_rerun()
        else:
            self._before.entries.setdefault(entry.index, entry)
            self._before.outputs.setdefault(entry.index, self.displayed.find_outputs(entry.index))
            self._run_cell(entry)

    def _run_cell(self, entry: Execution) -> None:
        assert self._request is not None
        assert self._route is not None
        self._tell_progress(entry, "running")
        self._current_machine.prepare(entry)
        decided = self._decided.get(entry.index, {})
        if self._request.on_divergence == "live":
            live_tools = self._find_live_tools(entry)
        else:
            live_tools = ()
        machine = self._current_machine
        self._planned = RunningCell(
            entry, self._request, decided, machine.differing, machine.moved[entry.index], live_tools
        )
        self.watch.level = 0  # it may run within the cell that asked for it
        self.displayed.number = entry.number
        self._route.run(
            entry.index,
            entry.source,
            lambda *how: self._queue_step(lambda: self._handle_cell_outcome(entry, *how)),
        )

    def _find_live_tools(self, entry: Execution) -> tuple[str, ...]:
        assert self._request is not None
        machine, tracker = self._current_machine, self.cells.deck.tracker
        variables = tracker.variables if tracker is not None else None
        moved, state = machine.moved[entry.index], machine.find_differing_state(entry)
        return find_live_tools(
            self._request.take, entry.run, machine.differing, moved, variables, state
        )

    def _handle_cell_outcome(self, entry: Execution, state: State, text: str) -> None:
        planned, self._planned = self._planned, None
        self.displayed.number = None
        history = self._require_history()
        outcome = history[-1]
        ended = outcome is not entry and outcome.index not in self._before.entries
        if ended:
            # outputs of older messages are shown nowhere
            self.parents.remember_message(entry.index, self.watch.asked_by)
        if state == "gone" and not isinstance(self._route, Here):
            self._route = Here(self.parents)  # the page was closed: the kernel goes on by itself
            self._run_cell(entry)
        elif self._cancelling or state == "canceled" or (ended and self.watch.interrupted):
            self._drop_execution(outcome, ended=ended)
            self._finish_cancel()
        elif not ended:
            self._current_machine.stopped = text or f"{entry.title} did not run"
            self._finish_rerun()
        elif planned is not None and planned.cell is not None and planned.cell.findings.divergences:
            self._current_machine.broke_off(outcome)
            self._drop_execution(outcome, ended=True)
            self._park_rerun(entry, planned.cell.findings.divergences)
        else:
            self._settle_cell(entry, outcome, planned)

    def _settle_cell(
        self, entry: Execution, outcome: Execution, planned: RunningCell | None
    ) -> None:
        self.displayed.keep_outputs(entry.index)
        if planned is not None and planned.cell is not None:
            self._spans += calls_changed(entry.run, planned.cell, entry.number)
            self._unsure += self._collect_doubts(entry, planned, planned.cell)
        self._current_machine.record_outcome(entry, outcome)
        self._queue_step(self._run_next_cell)

    def _collect_doubts(self, entry: Execution, planned: RunningCell, cell: TapedCell) -> list[str]:
        """Tools that gave what they gave when it was recorded, though what they ask for, or what ran
        beside them, is otherwise now.
        """
        tracker = self.cells.deck.tracker
        doubts = [beside_others(entry.title, name) for name in mingled_tools(entry.run, cell)]
        doubts += [
            f"{entry.title}: {each}" for each in (*cell.findings.doubts, *cell.findings.unheld)
        ]
        state = self._current_machine.find_differing_state(entry)
        if tracker is None or not (planned.differing or state):
            return doubts
        for name in dict.fromkeys(played_tools(cell)):
            asked = find_asked(name, planned.differing, state, tracker.variables)
            doubts += [gave_recorded(entry.title, name, asked)] if asked else []
        return doubts

    def _drop_execution(self, outcome: Execution, *, ended: bool) -> None:
        """Take a run that does not count off the history."""
        history = self._require_history()
        if ended and len(history) and history[-1] is outcome:
            history.entries.pop()

    # ------------------------------------------------------------ a divergence

    def _park_rerun(self, entry: Execution, divergences: list[Divergence]) -> None:
        question = rerun_divergence.Question.from_divergence(divergences[0])
        self.parked = ParkedRerun(entry, question, divergences[0])
        without = [
            output for output in self.displayed.last.outputs if output["output_type"] != "error"
        ]
        # it is a question now: its traceback would say less
        self.parents.replace_outputs(entry.index, without)
        self._ask_person(self.parked)

    def _ask_person(self, parked: ParkedRerun) -> None:
        entry = parked.entry
        self._notify(
            "diverged", parked_divergence(parked, self.parents.cell_id(entry.index) or entry.cell)
        )

    def resolve(
        self,
        divergence: str,
        choice: Choice,
        reply: str | None = None,
        *,
        notify: Tell | None = None,
    ) -> None:
        """Go on from a divergence as a person decided. Raises TapeUsageError for what is no answer
        to it.
        """
        parked = self.check(divergence, choice, reply)
        if self.fresh is not None:
            self.parked, self._notify = None, notify or self._notify
            self.fresh.resume_run(parked.question, choice, reply, notify=self._notify)
            return
        assert self._request is not None
        assert parked.divergence is not None
        if choice == "write" and reply is not None:
            rerun_divergence.commit_reply(
                self._request.take, parked.entry.cell, parked.divergence, reply
            )
        elif choice in ("live", "stale"):
            self._decided.setdefault(parked.entry.index, {})[parked.question.match] = choice
        self.parked, self._notify = None, notify or self._notify
        self._queue_step(
            lambda: (
                self._skip_cell(parked.entry)
                if choice == "skip"
                else self._run_cell_again(parked.entry)
            )
        )

    def _run_cell_again(self, entry: Execution) -> None:
        """Run a cell that stopped at a divergence, in the world that it found."""
        if self._current_machine.go_back(entry):
            self._run_next_cell()
        else:
            self._run_cell(entry)

    def check(self, divergence: str, choice: Choice, reply: str | None = None) -> ParkedRerun:
        """Whether `resolve` takes this answer. Raises TapeUsageError, and changes nothing."""
        parked = self.parked
        if parked is None or parked.question.id != divergence:
            raise TapeUsageError(f"no re-run waits at divergence {divergence[:20]!r}")
        if choice == "write":
            if reply is None:
                raise TapeUsageError("a reply of your own needs a text")
            parked.question.answer(reply)
        if choice == "stale" and parked.question.nearest is None:
            raise TapeUsageError("nothing like this call is recorded, so there is no reply to keep")
        if choice == "skip" and self.fresh is not None:
            raise TapeUsageError(
                "a fresh run leaves no cell out, since those after it need what it makes. Now: live, stale, --write "
                "TEXT, or --cancel"
            )
        return parked

    def resolve_all(self, policy: str, *, notify: Tell | None = None) -> None:
        """Go on with a policy for this divergence and those that follow: live, stale or skip."""
        if self.parked is None:
            raise TapeUsageError("no re-run is waiting at a changed request")
        if policy != "skip" and self.fresh is not None:
            self.fresh.policy = policy
        elif policy != "skip" and self._request is not None:
            self._request.on_divergence = policy
        self.resolve(self.parked.question.id, _convert_policy(policy), notify=notify)

    def _skip_cell(self, entry: Execution) -> None:
        """The cell keeps what it made and showed before."""
        self._current_machine.prepare(entry)
        self._current_machine.record_outcome(entry, entry)
        self._left_out[entry.index] = "skipped at a divergence"
        self.parents.replace_outputs(entry.index, self._before.outputs.get(entry.index, []))
        self._queue_step(self._run_next_cell)

    # ------------------------------------------------------------ the end

    def cancel(self, *, notify: Tell | None = None) -> None:
        """End it and put everything back, at any moment and from any thread; a cell that runs is
        interrupted.
        """
        if not self.running:
            raise TapeUsageError("no re-run is running")
        if self.fresh is not None:
            self._notify, self.parked = notify or self._notify, None
            self.fresh.cancel()
            return
        self._cancelling, self._notify = True, notify or self._notify
        if self.parked is not None:
            self._queue_step(self._finish_cancel)
        elif self._planned is not None and self._route is not None:
            self._route.cancel()

    def _finish_cancel(self) -> None:
        machine, outputs_before = self._current_machine, dict(self._before.outputs)
        self._tell_progress(None, "restoring")
        machine.cancel()
        for index, cell_outputs in outputs_before.items():
            self.parents.replace_outputs(index, cell_outputs)
            self.displayed.keep_outputs(index, CellOutputs.from_outputs(cell_outputs))
        self._reset_state()
        self._notify("cancelled", {})

    def _finish_rerun(self) -> None:
        machine = self._current_machine
        self._tell_progress(None, "restoring")
        machine.finish()
        self._remember_excluded_cells(machine)
        case = self._build_proof_case(machine)
        self.compared = replace(
            self._build_comparison(machine),
            proof=RerunProof("running") if case else _build_no_proof(machine),
        )
        compared, notify = self.compared, self._notify
        self._reset_state()
        notify("done", compared.record())
        if case is not None:
            self.proving = isolated.begin_proof(
                case, lambda proof: self._report_proof(compared, proof, notify)
            )

    def _remember_excluded_cells(self, machine: Rerun) -> None:
        """What the person left out stays so in the take; a cell that ran is asked about no more."""
        assert self._request is not None
        history, planned = self._require_history(), self._request.plan.cells
        out = {cell.entry for cell in planned if cell.entry not in machine.ticked} | set(
            self._left_out
        )
        all_of_it = sorted({cell.entry for cell in planned} | out)
        excluded_cells.remember_excluded(
            self._request.take, [history[i] for i in all_of_it], [history[i] for i in out]
        )

    def _report_proof(self, compared: Comparison, proof: RerunProof, notify: Tell) -> None:
        """What the proof in the background came to, while nothing newer is compared or runs."""
        if self.compared is not compared:
            return
        self.compared = replace(compared, proof=proof)
        if not self.running:
            notify("done", self.compared.record())

    def _build_proof_case(self, machine: Rerun) -> ProofCase | None:
        """What is to be proved; None where there is nothing to prove."""
        if machine.stopped or self._left_out or self._request is None or not machine.plan.take:
            return None
        history, displayed = History(list(self._require_history())), self.displayed
        before = History([self._before.entries.get(entry.index, entry) for entry in history])
        texts = isolated.shown_texts(history, displayed.find_outputs, displayed.has_all_outputs)
        was = {
            i: isolated.shown_text(cell_outputs)
            for i, cell_outputs in self._before.outputs.items()
            if i in texts
        }
        root = self._request.take.root
        notebook = self.cells.notebook_or_none(before[0].source) if len(before) else None
        live = machine.end()
        shown_before = {**texts, **was}
        unsure = tuple(self._unsure)
        return ProofCase(
            history,
            texts,
            before,
            shown_before,
            notebook,
            machine.plan.take,
            paths.stem(root),
            live,
            unsure,
            isolated.turns_of(history, self._request.take),
            machine.moved,
        )

    def _abandon_rerun(self) -> None:
        """Something of ours went wrong: everything as it was."""
        try:
            if self._machine is not None:
                self._machine.cancel()
        finally:
            self._reset_state()

    def _reset_state(self) -> None:
        self._machine = self._planned = self.parked = self._route = self.displayed.number = None
        history = self._require_history()
        self.watch.newest = history[-1] if len(history) else None

    def _build_comparison(self, machine: Rerun) -> Comparison:
        history = self._require_history()
        executed = [index for index in machine.ran if index not in self._left_out]
        names = {
            name
            for index in executed
            for name in (*history[index].changed, *self._before.entries[index].changed)
        }
        after = shorts(self.shell.user_ns, {*names, *self._before.variables})
        skipped = {**machine.skipped, **self._left_out}
        return Comparison(
            take=machine.plan.take,
            ran=len(executed),
            cells=tuple(self._compare_cell(history[index]) for index in sorted(executed)),
            spans=tuple(self._spans),
            variables=variables_changed(
                {n: self._before.variables.get(n, "") for n in after}, after
            ),
            skipped=tuple(
                f"{history[index].title} {why}" for index, why in sorted(skipped.items())
            ),
            stopped=machine.stopped,
        )

    def _compare_cell(self, entry: Execution) -> CellChange:
        changed = outputs_changed(
            self._before.outputs.get(entry.index, []), self.displayed.find_outputs(entry.index)
        )
        cell = self.parents.cell_id(entry.index) or entry.cell
        return CellChange(cell, entry.number, title_of(entry.source), changed)

    def _tell_progress(self, entry: Execution | None, state: str) -> None:
        machine = self._current_machine
        if entry is not None:
            cell = self.parents.cell_id(entry.index) or entry.cell
        else:
            cell = ""
        title = title_of(entry.source) if entry is not None else ""
        done = {"done": machine.done, "total": machine.total}
        self._notify("progress", {**done, "cell": cell, "title": title, "state": state})

    @property
    def _current_machine(self) -> Rerun:
        assert self._machine is not None
        return self._machine


_known: list[Rerunner] = []


def rerunner_of(cells: CellRunner) -> Rerunner:
    """The re-runs of a shell; made when first asked for."""
    rerunner = known_rerunner(cells)
    if rerunner is None:
        rerunner = Rerunner(cells)
        cells.planned = lambda: rerunner.planned
        _known.append(rerunner)
    return rerunner


def known_rerunner(cells: CellRunner) -> Rerunner | None:
    """The re-runs of a shell, where somebody asked for them before."""
    return next((each for each in _known if each.cells is cells), None)


def forget_rerunner(cells: CellRunner) -> None:
    """The extension is unloaded."""
    _known[:] = [each for each in _known if each.cells is not cells]


def _convert_policy(policy: str) -> Choice:
    if policy == "skip":
        return "skip"
    return "live" if policy == "live" else "stale"


def parked_divergence(parked: ParkedRerun, cell: str) -> dict[str, Any]:
    """As protocol.ts has it."""
    return {
        **parked.question.payload,
        "cell": cell,
        "title": title_of(parked.entry.source),
    }


def _count_calls(take: Cassette) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for entry in take.calls:
        counts[entry.run] = counts.get(entry.run, 0) + 1
    return counts


def _tell_chosen(plan: Plan, take: Cassette, history: History) -> Plan:
    """Of cells that a person chose, those whose replies the take does not change hold no change."""
    overridden = {entry.run for entry in take.newest_overrides()}

    def told(cell: PlanCell) -> PlanCell:
        if cell.role != "changed" or history[cell.entry].run in overridden:
            return cell
        reasons = tuple("chosen to run again" if r == HOLDS else r for r in cell.reasons)
        return replace(cell, reasons=reasons)

    return replace(plan, cells=tuple(map(told, plan.cells)))


def _add_costs(plan: Plan, take: Cassette, history: History) -> Plan:
    """With what the calls that may go live cost when they were recorded; tools cost nothing."""
    live_counts = {history[cell.entry].run: cell.asks for cell in plan.cells if cell.asks}
    if not live_counts:
        return plan
    calls: dict[str, list[Entry]] = {run: [] for run in live_counts}
    for entry in take.calls:
        if entry.run in calls:
            calls[entry.run].append(entry)
    costs = {run: _sum_costs(calls[run][-count:]) for run, count in live_counts.items()}
    cells = [replace(cell, cost=costs.get(history[cell.entry].run)) for cell in plan.cells]
    return replace(plan, cells=tuple(cells))


def _sum_costs(calls: Iterable[Entry]) -> float | None:
    """Of recorded calls together; None where the price of one is not known."""
    free = ("tool", "retrieval")
    costs = [rerun_divergence.recorded_cost(c) for c in calls if c.head().get("kind") not in free]
    known = [each for each in costs if each is not None]
    return sum(known) if len(known) == len(costs) else None


def _count_later_calls(take: Cassette) -> Mapping[str, int]:
    """By run, how many calls it made after the first that the take overrides."""
    overridden = {(entry.run, entry.id) for entry in take.newest_overrides()}
    counts: dict[str, int] = {}
    for entry in take.calls:
        if entry.run in counts:
            counts[entry.run] += 1
        elif (entry.run, entry.id) in overridden:
            counts[entry.run] = 0
    return counts


def _find_answered_runs(take: Cassette) -> frozenset[str]:
    """The recorded runs whose cells went live on this take, to their end, after its last override
    by a person.
    """
    edits = [str(edit.head().get("at", "")) for edit in take.newest_overrides() if not edit.by]
    since = max(edits, default="")
    answered = set()
    for run in take.runs:
        is_newer = str(run.get("at", "")) > since  # moments of one form: they compare as texts
        is_whole = take.ended.get(str(run["run"]), {}).get("outcome") == "ok"
        if run.get("parent") and is_newer and is_whole:
            answered.add(str(run["parent"]))
    return frozenset(answered)


def _build_no_proof(machine: Rerun) -> RerunProof:
    """Why there is nothing to prove."""
    if machine.stopped:
        return RerunProof("not provable", "the re-run stopped, so there is nothing whole to prove")
    if not machine.plan.take:
        return RerunProof("not provable", "it ran on the recording, and a proof is of a take")
    return RerunProof("not provable", "a cell was skipped, so the take does not replay as a whole")


def _ignore_event(_about: str, _payload: dict[str, Any]) -> None:
    """Nobody listens."""
