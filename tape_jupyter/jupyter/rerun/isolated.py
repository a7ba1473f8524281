"""Runs everything fresh: the whole history on a take, in a new process that has no network and
whose writes stay nowhere (dataflow/isolated/process.py). What came out otherwise is put into the
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
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import title_of
from tape_jupyter.cassette.runs import Current, run_of
from tape_jupyter.cassette.takes import files
from tape_jupyter.comparison import outputs
from tape_jupyter.dataflow.history import Execution, History
from tape_jupyter.dataflow.isolated import end_state, process, verify
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.isolation import network_guard
from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.rerun.comparison import (
    CellChange,
    Comparison,
    RerunProof,
    VariableChange,
    calls_of_take,
    outputs_changed,
    shorts,
)
from tape_jupyter.jupyter.rerun.outputs import CellOutputs, Displayed, Output
from tape_jupyter.jupyter.rerun.routes import Message, Parents
from tape_jupyter.session.options import Word

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from tape_jupyter.jupyter.cell_runner import CellRunner
    from tape_jupyter.session.cell import TapedCell

_LOADED = (
    "The tape_jupyter extension is already loaded. To reload it, use:\n  %reload_ext tape_jupyter\n"
)
"""What IPython says where the cell that loads the tape runs again in the same kernel."""
LOAD = "__import__('tape_jupyter').load_ipython_extension(get_ipython())"


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


def begin(case: ProofCase, done: Callable[[RerunProof], None]) -> threading.Thread:
    """Start proving; `done` is called on a thread of its own."""

    def run() -> None:
        with network_guard.unwatched():  # the fresh process has a wall of its own
            told = prove(case)
        done(told)

    thread = threading.Thread(target=run, name="tape proof", daemon=True)
    contextvars.Context().run(thread.start)  # no cell's thread
    return thread


def prove(case: ProofCase) -> RerunProof:
    """Blocks until it is known. Never raises."""
    if why := process.impossible(case.history):
        return RerunProof("not provable", why)
    if case.notebook is None:
        return RerunProof(
            "not provable",
            "the notebook's path is not known, so a fresh kernel would not find the recording",
        )
    try:
        replayed = process.replay(_job(case.history, case, case.take))
        verdict = verify.verify(
            case.history, case.texts, replayed, lambda: _unsteady(case), case.live
        )
    except Exception as error:
        return RerunProof(
            "not provable", f"the fresh kernel did not start: {type(error).__name__}: {error}"
        )
    text = verdict.text.replace(
        "a fresh replay of all cells came out the same", "proved in a fresh kernel"
    )
    if verdict.state == "proved" and case.unsure:
        more = f" (and {len(case.unsure) - 1} more)" if len(case.unsure) > 1 else ""
        now = f"Now: %tape rerun {case.take} --on-divergence live, or %tape replay --live tool:NAME"
        return RerunProof("not provable", f"{case.unsure[0]}{more}. {now}")
    adopt = tuple(dict.fromkeys(_cell(case.history, index) for index in verdict.cells))
    return RerunProof(verdict.state, text, adopt)


def _unsteady(case: ProofCase) -> set[int]:
    """The entries that do not come out the same even on the recording itself."""
    replayed = process.replay(_job(case.before, case, case.recording))
    return set(verify.differing(case.before, case.texts_before, replayed))


def _job(history: History, case: ProofCase, take: str) -> process.ReplayJob:
    env = {"TAPE_MODE": "replay", "TAPE_OPTIONS": f"--take {take}"}
    if case.notebook is not None:
        env["TAPE_NOTEBOOK"] = str(case.notebook)
    return process.job(history, env=env, setup=setup(case.turns))


def turns_of(history: History, take: Cassette) -> tuple[str, ...]:
    """By entry the recording that it plays, where its cell was run again since ("" where not)."""
    newer = Current(map(run_of, take.runs)).newer
    return tuple(entry.run if entry.run in newer else "" for entry in history)


def setup(turns: Sequence[str]) -> str:
    """What a fresh process begins with."""
    own = f"from {__name__} import play_turns; play_turns(get_ipython(), {turns!r}); del play_turns"
    return f"{LOAD}\n{own}" if any(turns) else LOAD


def play_turns(shell: InteractiveShell, turns: Sequence[str]) -> None:
    """Let the n-th cell from here on play the n-th of these recordings."""
    from tape_jupyter.jupyter import magics

    cells, first = magics.loaded(shell), shell.execution_count
    assert cells is not None

    def turn() -> _Turn | None:
        at = shell.execution_count - first - 1
        return _Turn(cells, turns[at]) if 0 <= at < len(turns) and turns[at] else None

    cells.planned = turn


@dataclass(slots=True)
class _Turn:
    """A cell that plays an earlier turn's recording (cell_runner.PlannedCell)."""

    cells: CellRunner
    run: str
    cell: TapedCell | None = None

    def word(self, line: str | None, raw: str) -> Word | None:
        own = self.cells.own_word(line, raw)
        return own and replace(own, options={**own.options, "repeats": self.run})


def _cell(history: History, index: int) -> str:
    return history[index].cell or str(index)


def text_of(shown: Iterable[Output]) -> str:
    """What a cell shows, as dataflow/isolated/worker.py tells it: standard output, the text of each
    display, the error's line.
    """
    told = [each for each in shown if not outputs.is_summary(each)]
    printed = "".join(
        each["text"]
        for each in told
        if each["output_type"] == "stream" and each["name"] == "stdout"
    )
    printed = printed.replace(_LOADED, "")
    parts = [
        _line(str(each["data"]["text/plain"]))
        for each in told
        if "text/plain" in each.get("data", {})
    ]
    errors = [
        f"{each['ename']}: {each['evalue']}" for each in told if each["output_type"] == "error"
    ]
    return "".join([printed, *parts, *errors])


def _line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def texts(
    history: History, shown: Callable[[int], list[Output]], known: Callable[[int], bool]
) -> dict[int, str]:
    """What each cell shows, by its newest entry; those of which that is not known are left out."""
    newest = history.latest()
    return {
        entry.index: text_of(shown(entry.index))
        for entry in history
        if known(entry.index) and (not entry.cell or newest[entry.cell] is entry)
    }


_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
Tell = Callable[[str, dict[str, Any]], None]

SECONDS = 3600.0
"""How long everything may take; a person can end it at any time."""
DIVERGED = "UnmatchedCall"
NO_NETWORK = (
    "a fresh run has no network, so nothing can go live there. Now: choose stop or stale, or run it whole and live in "
    "a new kernel: tape rerun NB --on-divergence live --output NEW.ipynb"
)


@dataclass(slots=True)
class FreshRun:
    """One run of everything. `history` and what is `displayed` are compared with; `over` is called
    once, at its end, on the kernel's main thread, with the comparison, or None where it was
    cancelled.
    """

    history: History
    displayed: Displayed
    parents: Parents
    namespace: Mapping[str, Any]
    take: Cassette
    notebook: Path | None
    policy: str
    tell: Tell
    over: Callable[[Comparison | None], None]
    why: str = ""
    pace: str = ""
    leash: process.Leash = field(default_factory=process.Leash)
    asked: Message = field(default_factory=dict)

    def begin(self, current: History) -> threading.Thread:
        """Start it. `current`: the kernel's own history, which may grow meanwhile. Raises
        TapeUsageError.
        """
        self._require()
        self.asked = self.parents.now()

        def run() -> None:
            with network_guard.unwatched():  # the fresh process has a wall of its own
                try:
                    replayed = process.replay(
                        self._job(), process.ReplayListener(self._starts, self._ends, self.leash)
                    )
                except Exception as error:
                    why = f"the fresh process did not start: {type(error).__name__}: {error}"
                    replayed = process.Replayed((), why)
            labextension.on_main(lambda: self._ended(replayed, current))

        thread = threading.Thread(target=run, name="tape fresh", daemon=True)
        contextvars.Context().run(thread.start)  # no cell's thread
        return thread

    def cancel(self) -> None:
        """End the process, from whatever thread; nothing was changed."""
        self.leash.pull()

    # ------------------------------------------------------------ before

    def _require(self) -> None:
        if self.policy == "live":
            raise TapeUsageError(NO_NETWORK)
        if self.notebook is None:
            raise TapeUsageError(
                "the notebook's path is not known, so a fresh process would not find the recording. Now: set "
                "TAPE_NOTEBOOK, or run it whole in a new kernel: tape rerun NB"
            )
        if why := process.impossible(self.history):
            raise TapeUsageError(
                f"{why}, so a fresh process cannot begin there. Now: tape rerun NB"
            )

    def _job(self) -> process.ReplayJob:
        policy = " --on-divergence stale" if self.policy == "stale" else ""
        pace = f" --pace {self.pace}" if self.pace else ""
        env = {
            "TAPE_MODE": "replay",
            "TAPE_OPTIONS": f"--take {self.name}{policy}{pace}",
            "TAPE_NOTEBOOK": str(self.notebook),
        }
        turns = turns_of(self.history, self.take)
        return process.job(self.history, env=env, setup=setup(turns), seconds=SECONDS)

    @property
    def name(self) -> str:
        return (
            files.name_of(self.take.path)
            if self.take.base is not None
            else files.stem(self.take.root)
        )

    # ------------------------------------------------------------ meanwhile

    def _starts(self, index: int) -> None:
        entry = self.history[index]
        told = {
            "done": index,
            "total": len(self.history),
            "cell": self._cell_id(entry),
            "state": "running",
        }
        self.tell("progress", {**told, "title": title_of(entry.source)})

    def _ends(self, ran: process.EntryOutcome) -> bool:
        """At the first cell that fails and did not before."""
        return ran.error is not None and self.history[ran.index].outcome != "error"

    def _cell_id(self, entry: Execution) -> str:
        return self.parents.cell_id(entry.index) or entry.cell

    # ------------------------------------------------------------ the end

    def _ended(self, replayed: process.Replayed, current: History) -> None:
        if self.leash.pulled:
            self.over(None)
            return
        stopped, whole = self._stopped(replayed)
        outputs = {ran.index: [dict(each) for each in ran.outputs] for ran in replayed.ran}
        cells = self._cells(outputs, current)
        changed = [index for index, cell in cells.items() if not cell.same]
        placed = self._put(changed, outputs) if whole else set()
        self.over(
            self._comparison(replayed, cells, stopped, self._note(changed, placed, whole=whole))
        )

    def _stopped(self, replayed: process.Replayed) -> tuple[str | None, bool]:
        """Why it ended early, as a sentence, and whether what ran before counts."""
        if replayed.failed is not None:
            return replayed.failed.removeprefix("not provable: "), False
        last = replayed.ran[-1] if replayed.ran else None
        if last is None or not self._ends(last):
            return None, True
        entry = self.history[last.index]
        error = next((each for each in last.outputs if each.get("output_type") == "error"), {})
        if name := self._missing(last):
            return (
                f"{entry.title} needs `{name}`, which is from before the tape was loaded, so a fresh process lacks it. "
                "Now: load the tape in the notebook's first cell (%load_ext tape_jupyter), or tape rerun NB"
            ), False
        if DIVERGED not in (last.error, error.get("ename")) and DIVERGED not in last.text:
            return (
                f"{entry.title} raised an error: the cells after it were not run, and show what they showed",
                True,
            )
        said = f"{entry.title}: a call of it is not on the tape, and a fresh process cannot wait for an answer. "
        choose = (
            "Now: choose stale (keep the recorded reply), or live, which is for this kernel or tape rerun NB, since "
            "a fresh process has no network"
        )
        return f"{said}{choose}.\n{error.get('evalue', '')}".rstrip(), False

    def _missing(self, ran: process.EntryOutcome) -> str:
        """The name that a cell did not find and that no cell of the history made."""
        found = _UNKNOWN.search(ran.text) if ran.error == "NameError" else None
        made = any(found[1] in entry.strong for entry in self.history) if found else True
        return found[1] if found and not made else ""

    def _cells(
        self, outputs: Mapping[int, list[Output]], current: History
    ) -> dict[int, CellChange]:
        """The cells that were compared, by entry: the newest run of each whose outputs are known."""
        found = {}
        for index, after in outputs.items():
            entry = self.history[index]
            newest = not entry.cell or current.of_cell(entry.cell)[-1].index == index
            if newest and self.displayed.knows(index):
                change = outputs_changed(self.displayed.of(index), after)
                found[index] = CellChange(
                    self._cell_id(entry), entry.number, title_of(entry.source), change
                )
        return found

    def _put(self, changed: list[int], outputs: Mapping[int, list[Output]]) -> set[int]:
        """Show them in their cells; what nobody listens to any more, below the cell that asked.
        Gives the former.
        """
        placed = {index for index in changed if self.parents.listens(index)}
        for index in changed:
            self.displayed.keep(index, CellOutputs.of(outputs[index]))
            if index in placed:
                self.parents.show(index, outputs[index])
            else:
                self.parents.show_below(
                    self.asked, f"{self.history[index].title}\n", outputs[index]
                )
        return placed

    def _note(self, changed: list[int], placed: set[int], *, whole: bool) -> str:
        said = [f"run fresh, since {self.why}."] if self.why else []
        if not whole:
            return " ".join([*said, "Nothing was put into the notebook."])
        said.append(
            "This kernel's own variables are as they were. To have those of this run: %tape takes default "
            f"{self.name}, restart the kernel, and Run All in replay (%tape replay; cells marked record ask anew)."
        )
        if away := [self.history[index].title for index in changed if index not in placed]:
            said.append(f"Not shown in place, since the page was loaded again: {', '.join(away)}.")
        if self.policy == "stale":
            said.append("Replies that were kept for a changed request are not written to the take.")
        return " ".join(said)

    def _comparison(
        self,
        replayed: process.Replayed,
        cells: Mapping[int, CellChange],
        stopped: str | None,
        note: str,
    ) -> Comparison:
        runs = {self.history[ran.index].run for ran in replayed.ran} - {""}
        names = verify.variables_differing(self.history, replayed)
        before = shorts(self.namespace, names)
        proof = RerunProof("proved", "all cells ran in a fresh process")
        return Comparison(
            take=self.name,
            ran=len(replayed.ran),
            cells=tuple(cells[index] for index in sorted(cells)),
            spans=tuple(calls_of_take(self.take, runs)),
            variables=tuple(
                VariableChange(name, told, "another value there") for name, told in before.items()
            ),
            stopped=stopped,
            note=note,
            proof=RerunProof("not provable", "it did not run to its end") if stopped else proof,
        )
