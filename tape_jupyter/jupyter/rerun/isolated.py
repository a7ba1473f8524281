"""Runs everything fresh: the whole history on a take, in a new process that has no network and
whose writes stay nowhere (dataflow/isolated/process.py). What changed is put into the
notebook's cells. The kernel goes on meanwhile, and keeps its own variables.

Proves a re-run in the background: a fresh process replays the whole history on the take, away from
the network and the disk (dataflow/isolated/process.py), and what it comes to is compared with the
notebook. The kernel goes on.
"""

from __future__ import annotations

import contextvars
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import title_of
from tape_jupyter.cassette.runs import Current, run_of
from tape_jupyter.cassette.takes import files
from tape_jupyter.comparison import outputs
from tape_jupyter.core.plain_text import end_line
from tape_jupyter.dataflow.history import Execution, History
from tape_jupyter.dataflow.isolated import end_state, process, verify
from tape_jupyter.dataflow.restore.versions import find_seen
from tape_jupyter.dataflow.tracing.variables import Variables
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.isolation import network_guard
from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.rerun.comparison import (
    CellChange,
    Comparison,
    RerunProof,
    VariableChange,
    beside_others,
    calls_of_take,
    gave_recorded,
    outputs_changed,
    shorts,
)
from tape_jupyter.jupyter.rerun.divergence import Question
from tape_jupyter.jupyter.rerun.followed import (
    Orders,
    find_asked,
    list_digests,
)
from tape_jupyter.jupyter.rerun.outputs import CellOutputs, Displayed, Output
from tape_jupyter.jupyter.rerun.routes import Message, Parents


@dataclass(frozen=True, slots=True)
class ProofCase:
    """What is to be proved: the history as it stands and what its entries show, and both as they
    were before.
    """

    history: History
    texts: Mapping[int, str]
    before: History
    texts_before: Mapping[int, str]
    notebook: Path | None
    take: str
    recording: str
    live: end_state.End | None = None
    """What is there in the kernel after the re-run."""
    unsure: tuple[str, ...] = ()
    """What recorded replies a whole run may not give, in words."""
    turns: tuple[str, ...] = ()
    """By entry, as `turns_of` has them."""
    moved: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By entry, generators of the process that the changed reply left elsewhere."""


def begin_proof(case: ProofCase, done: Callable[[RerunProof], None]) -> threading.Thread:
    """Start proving; `done` is called on a thread of its own."""

    def run_proof() -> None:
        with network_guard.unwatched():  # the fresh process has a wall of its own
            proof = prove_case(case)
        done(proof)

    thread = threading.Thread(target=run_proof, name="tape proof", daemon=True)
    contextvars.Context().run(thread.start)  # no cell's thread
    return thread


def prove_case(case: ProofCase) -> RerunProof:
    """Blocks until it is known. Never raises."""
    if why := process.impossible(case.history):
        return RerunProof("not provable", why)
    if case.notebook is None:
        return RerunProof(
            "not provable",
            "the notebook's path is not known, so a fresh kernel would not find the recording",
        )
    try:
        replayed = process.replay_job(_build_job(case.history, case, case.take, case.moved))
        verdict = verify.verify_rerun(
            case.history, case.texts, replayed, lambda: _find_unsteady_entries(case), case.live
        )
    except Exception as error:
        return RerunProof(
            "not provable", f"the fresh kernel did not start: {type(error).__name__}: {error}"
        )
    text = verdict.text.replace(
        "a fresh replay of all cells gave the same", "proved in a fresh kernel"
    )
    if verdict.state == "proved" and case.unsure:
        now = f"Now: %tape rerun {case.take} --on-divergence live, or %tape replay --live tool:NAME"
        return _build_unsure_proof(case.unsure, now)
    adopt = tuple(dict.fromkeys(_to_cell_id(case.history, index) for index in verdict.cells))
    return RerunProof(verdict.state, text, adopt)


def _build_unsure_proof(doubts: Sequence[str], now: str) -> RerunProof:
    more = f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else ""
    return RerunProof("not provable", f"{doubts[0]}{more}. {now}")


def _find_unsteady_entries(case: ProofCase) -> set[int]:
    """The entries that do not come out the same even on the recording itself."""
    replayed = process.replay_job(_build_job(case.before, case, case.recording, None))
    return set(verify.differing_entries(case.before, case.texts_before, replayed))


def _build_job(
    history: History, case: ProofCase, take: str, moved: Mapping[int, tuple[str, ...]] | None
) -> process.ReplayJob:
    env = {"TAPE_MODE": "replay", "TAPE_OPTIONS": f"--take {take}"}
    if case.notebook is not None:
        env["TAPE_NOTEBOOK"] = str(case.notebook)
    return process.job(history, env=env, setup=Orders(case.turns, moved=moved).setup())


def turns_of(history: History, take: Cassette) -> tuple[str, ...]:
    """By entry the recording that it plays, where its cell was run again since ("" where not)."""
    newer = Current(map(run_of, take.runs)).newer
    return tuple(entry.run if entry.run in newer else "" for entry in history)


def _list_opened(entry: Execution) -> list[str]:
    return [each for each in entry.reads if each.startswith("file:")]


def _to_cell_id(history: History, index: int) -> str:
    return history[index].cell or str(index)


def shown_text(cell_outputs: Iterable[Output]) -> str:
    """What a cell shows, as dataflow/isolated/worker.py tells it: standard output, the text of each
    display, the error's line.
    """
    visible = [each for each in cell_outputs if not outputs.is_summary(each)]
    printed = "".join(
        each["text"]
        for each in visible
        if each["output_type"] == "stream" and each["name"] == "stdout"
    )
    parts = [
        end_line(str(each["data"]["text/plain"]))
        for each in visible
        if "text/plain" in each.get("data", {})
    ]
    errors = [
        f"{each['ename']}: {each['evalue']}" for each in visible if each["output_type"] == "error"
    ]
    return "".join([printed, *parts, *errors])


def shown_texts(
    history: History, find_outputs: Callable[[int], list[Output]], known: Callable[[int], bool]
) -> dict[int, str]:
    """What each cell shows, by its newest entry; those of which that is not known are left out."""
    newest = history.latest()
    return {
        entry.index: shown_text(find_outputs(entry.index))
        for entry in history
        if known(entry.index) and (not entry.cell or newest[entry.cell] is entry)
    }


_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
Tell = Callable[[str, dict[str, Any]], None]

SECONDS = 3600.0
"""How long everything may take; a person can end it at any time."""
DIVERGED = "UnmatchedCall"


@dataclass(frozen=True, slots=True)
class FreshPage:
    """What the notebook shows and holds: the outputs it is compared with, and where they land."""

    displayed: Displayed
    parents: Parents
    namespace: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FreshRunListener:
    """Who hears of it, on the kernel's main thread: `on_question` where a call waits for a person, `over`
    once, at its end, with the comparison, or None where it was cancelled.
    """

    notify: Tell
    on_question: Callable[[Execution, Question], None]
    over: Callable[[Comparison | None], None]


@dataclass(slots=True)
class FreshRun:
    """Runs of everything, one after another until none waits for a person: what was decided or
    written at a call is in the orders, or in the take, of the next. `current` is the kernel's own
    history, which may grow meanwhile.
    """

    history: History
    current: History
    page: FreshPage
    take: Cassette
    notebook: Path | None
    policy: str
    hears: FreshRunListener
    why: str = ""
    pace: str = ""
    variables: Variables | None = None
    leash: process.Leash = field(default_factory=process.Leash)
    message: Message = field(default_factory=dict)
    decided: dict[str, str] = field(default_factory=dict)
    """What becomes of calls that are not on the tape, by match key."""
    written: dict[str, str] = field(default_factory=dict)
    """Replies of a person that are not in the take yet, by match key."""
    thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start it. Raises TapeUsageError."""
        self._require_possible()
        self.message = self.page.parents.now()
        self._start_process()

    def resume_run(
        self, question: Question, choice: str, reply: str | None, *, notify: Tell
    ) -> None:
        """Run again with what a person decided of the call at which it ended."""
        if choice == "write" and reply is not None:
            self.written[question.match] = reply
        else:
            self.decided[question.match] = choice
        self.hears = replace(self.hears, notify=notify)
        self._start_process()

    def _start_process(self) -> None:
        def run_process() -> None:
            with network_guard.unwatched():  # the fresh process has a wall of its own
                try:
                    replayed = process.replay_job(
                        self._build_job(),
                        process.ReplayListener(
                            self._tell_progress, self._is_new_failure, self.leash
                        ),
                    )
                except Exception as error:
                    why = f"the fresh process did not start: {type(error).__name__}: {error}"
                    replayed = process.Replayed((), why)
            labextension.on_main(lambda: self._finish_run(replayed))

        self.thread = threading.Thread(target=run_process, name="tape fresh", daemon=True)
        contextvars.Context().run(self.thread.start)  # no cell's thread

    def cancel(self) -> None:
        """End it, from whatever thread; nothing was changed but what went live into the take."""
        waits = self.thread is not None and not self.thread.is_alive()
        self.leash.pull()
        if waits:
            self.hears.over(None)

    # ------------------------------------------------------------ before

    def _require_possible(self) -> None:
        if self.notebook is None:
            raise TapeUsageError(
                "the notebook's path is not known, so a fresh process would not find the recording. Now: set "
                "TAPE_NOTEBOOK, or run it whole in a new kernel: tape rerun NB"
            )
        if why := process.impossible(self.history):
            raise TapeUsageError(
                f"{why}, so a fresh process cannot begin there. Now: tape rerun NB"
            )

    def _build_job(self) -> process.ReplayJob:
        policy = f" --on-divergence {self.policy}" if self.policy != "stop" else ""
        pace = f" --pace {self.pace}" if self.pace else ""
        env = {
            "TAPE_MODE": "replay",
            "TAPE_OPTIONS": f"--take {self.name}{policy}{pace}",
            "TAPE_NOTEBOOK": str(self.notebook),
        }
        orders = Orders(
            turns_of(self.history, self.take),
            tuple(entry.run for entry in self.history),
            self.decided,
            self.written,
            str(self.take.root),
            self.name,
            after=[*map(list_digests, self.history)] if self.policy == "live" else (),
            opened=[_list_opened(entry) for entry in self.history],
        )
        job = process.job(self.history, env=env, setup=orders.setup(), seconds=SECONDS)
        live = "live" in (self.policy, *self.decided.values())
        return replace(job, kept=str(self.take.root.parent), network=live)

    @property
    def name(self) -> str:
        if self.take.base is not None:
            return files.take_name(self.take.path)
        return paths.stem(self.take.root)

    # ------------------------------------------------------------ meanwhile

    def _tell_progress(self, index: int) -> None:
        entry = self.history[index]
        payload = {
            "done": index,
            "total": len(self.history),
            "cell": self._find_cell_id(entry),
            "state": "running",
        }
        self.hears.notify("progress", {**payload, "title": title_of(entry.source)})

    def _is_new_failure(self, outcome: process.EntryOutcome) -> bool:
        """At the first cell that fails and did not before."""
        return outcome.error is not None and self.history[outcome.index].outcome != "error"

    def _find_cell_id(self, entry: Execution) -> str:
        return self.page.parents.cell_id(entry.index) or entry.cell

    # ------------------------------------------------------------ the end

    def _finish_run(self, replayed: process.Replayed) -> None:
        if self.leash.pulled:
            self.hears.over(None)
            return
        if self.take.base is not None:  # it may have grown
            self.take = Cassette.open(self.take.root).take(self.name)
        if question := replayed.ran[-1].extras.get("asks") if replayed.ran else None:
            self._ask_person(self.history[replayed.ran[-1].index], question)
            return
        stopped, complete = self._explain_stop(replayed)
        outputs = {
            outcome.index: [dict(each) for each in outcome.outputs] for outcome in replayed.ran
        }
        cells = self._compare_cells(outputs)
        changed = [index for index, cell in cells.items() if not cell.same]
        placed = self._show_outputs(changed, outputs) if complete else set()
        self.hears.over(
            self._build_comparison(
                replayed, cells, stopped, self._build_note(changed, placed, complete=complete)
            )
        )

    def _ask_person(self, entry: Execution, question: Mapping[str, Any]) -> None:
        """A person, unless it was answered: that is in the take now."""
        if "written" in question:
            self.written.pop(question["written"], None)
            self._start_process()
        else:
            self.hears.on_question(entry, Question.read(question, self.take))

    def _explain_stop(self, replayed: process.Replayed) -> tuple[str | None, bool]:
        """Why it ended early, as a sentence, and whether what ran before counts."""
        if replayed.failed is not None:
            return replayed.failed.removeprefix("not provable: "), False
        last = replayed.ran[-1] if replayed.ran else None
        if last is None or not self._is_new_failure(last):
            return None, True
        entry = self.history[last.index]
        error = next((each for each in last.outputs if each.get("output_type") == "error"), {})
        if name := self._find_missing_name(last):
            return (
                f"{entry.title} needs `{name}`, which is from before the tape was loaded, so a fresh process lacks it. "
                "Now: load the tape in the notebook's first cell (%load_ext tape_jupyter), or tape rerun NB"
            ), False
        if DIVERGED not in (last.error, error.get("ename")) and DIVERGED not in last.text:
            return (
                f"{entry.title} raised an error: the cells after it were not run and show old outputs",
                True,
            )
        message = f"{entry.title}: a call of it is not on the tape."
        return f"{message}\n{error.get('evalue', '')}".rstrip(), False

    def _find_missing_name(self, outcome: process.EntryOutcome) -> str:
        """The name that a cell did not find and that no cell of the history made."""
        match = _UNKNOWN.search(outcome.text) if outcome.error == "NameError" else None
        if match:
            is_defined = any(match[1] in entry.strong for entry in self.history)
        else:
            is_defined = True
        return match[1] if match and not is_defined else ""

    def _compare_cells(self, outputs: Mapping[int, list[Output]]) -> dict[int, CellChange]:
        """The cells that were compared, by entry: the newest run of each whose outputs are known."""
        changes = {}
        for index, after in outputs.items():
            entry = self.history[index]
            newest = not entry.cell or self.current.of_cell(entry.cell)[-1].index == index
            if newest and self.page.displayed.has_all_outputs(index):
                change = outputs_changed(self.page.displayed.find_outputs(index), after)
                changes[index] = CellChange(
                    self._find_cell_id(entry), entry.number, title_of(entry.source), change
                )
        return changes

    def _show_outputs(self, changed: list[int], outputs: Mapping[int, list[Output]]) -> set[int]:
        """Show them in their cells; what nobody listens to any more, below the cell that asked.
        Gives the former.
        """
        placed = {index for index in changed if self.page.parents.listens(index)}
        for index in changed:
            self.page.displayed.keep_outputs(index, CellOutputs.from_outputs(outputs[index]))
            if index in placed:
                self.page.parents.replace_outputs(index, outputs[index])
            else:
                self.page.parents.show_below(
                    self.message, f"{self.history[index].title}\n", outputs[index]
                )
        return placed

    def _build_note(self, changed: list[int], placed: set[int], *, complete: bool) -> str:
        sentences = [f"run fresh, since {self.why}."] if self.why else []
        if not complete:
            return " ".join([*sentences, "Nothing was put into the notebook."])
        sentences.append(
            "This kernel's own variables and files are as they were. To have those of this run: %tape takes default "
            f"{self.name}, restart the kernel, and Run All in replay (%tape replay; cells marked record go live)."
        )
        if away := [self.history[index].title for index in changed if index not in placed]:
            sentences.append(
                f"Not shown in place, since the page was loaded again: {', '.join(away)}."
            )
        return " ".join(sentences)

    def _build_comparison(
        self,
        replayed: process.Replayed,
        cells: Mapping[int, CellChange],
        stopped: str | None,
        note: str,
    ) -> Comparison:
        runs = {self.history[outcome.index].run for outcome in replayed.ran} - {""}
        names = verify.variables_differing(self.history, replayed)
        before = shorts(self.page.namespace, names)
        proof = RerunProof("proved", "all cells ran in a fresh process")
        if doubts := self._collect_doubts(replayed):
            proof = _build_unsure_proof(
                doubts, "Now: %tape replay --live tool:NAME, or record those cells again"
            )
        return Comparison(
            take=self.name,
            ran=len(replayed.ran),
            cells=tuple(cells[index] for index in sorted(cells)),
            spans=tuple(calls_of_take(self.take, runs)),
            variables=tuple(
                VariableChange(name, value, "another value there") for name, value in before.items()
            ),
            stopped=stopped,
            note=note,
            proof=RerunProof("not provable", "it did not run to its end") if stopped else proof,
        )

    def _collect_doubts(self, replayed: process.Replayed) -> list[str]:
        """What recorded tools gave that a run with their bodies may not give."""
        doubts, differing = [], set[str]()
        for outcome in replayed.ran:
            entry = self.history[outcome.index]
            state = find_seen(differing, _list_opened(entry))
            for name in dict.fromkeys(outcome.extras.get("tools", ())):
                if self.variables is None:
                    continue
                asked = find_asked(name, differing, state, self.variables)
                doubts += [gave_recorded(entry.title, name, asked)] if asked else []
            doubts += [
                beside_others(entry.title, name) for name in outcome.extras.get("mingled", ())
            ]
            doubts += [f"{entry.title}: {each}" for each in outcome.extras.get("doubts", ())]
            was, now = list_digests(entry), dict(outcome.extras.get("left", {}))
            for thing in was.keys() | now.keys():
                same = was.get(thing, entry.after.get(thing)) == now.get(thing)
                (differing.discard if same else differing.add)(thing)
        return doubts
