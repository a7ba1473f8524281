"""Notebook room: runs everything fresh: the whole history on a take, in a new process that has no network and whose
writes stay nowhere (flow/hermetic.py). What came out otherwise is put into the notebook's cells. The kernel goes on
meanwhile, and keeps its own variables.
"""

from __future__ import annotations

import contextvars
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tape_jupyter import airgap, takes
from tape_jupyter.cassette import Cassette
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.flow import hermetic, verify
from tape_jupyter.flow.history import Entry, History
from tape_jupyter.notebook import lab
from tape_jupyter.notebook.calls_compared import calls_of_take
from tape_jupyter.notebook.comparison import CellChange, Comparison, Proof, VariableChange, outputs_changed, shorts
from tape_jupyter.notebook.displayed import Displayed, Output, Run
from tape_jupyter.notebook.proof import LOAD
from tape_jupyter.notebook.routes import Message, Parents
from tape_jupyter.spans.cells import title_of

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
class Fresh:
    """One run of everything. `history` and what is `displayed` are compared with; `over` is called once, at its end, on
    the kernel's main thread, with the comparison, or None where it was cancelled.
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
    leash: hermetic.Leash = field(default_factory=hermetic.Leash)
    asked: Message = field(default_factory=dict)

    def begin(self, current: History) -> threading.Thread:
        """Start it. `current`: the kernel's own history, which may grow meanwhile. Raises TapeUsageError."""
        self._require()
        self.asked = self.parents.now()

        def run() -> None:
            with airgap.unwatched():  # the fresh process has a wall of its own
                try:
                    replayed = hermetic.replay(self._job(), hermetic.Hearer(self._starts, self._ends, self.leash))
                except Exception as error:
                    why = f"the fresh process did not start: {type(error).__name__}: {error}"
                    replayed = hermetic.Replayed((), why)
            lab.on_main(lambda: self._ended(replayed, current))

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
        if why := hermetic.impossible(self.history):
            raise TapeUsageError(f"{why}, so a fresh process cannot begin there. Now: tape rerun NB")

    def _job(self) -> hermetic.Job:
        policy = " --on-divergence stale" if self.policy == "stale" else ""
        pace = f" --pace {self.pace}" if self.pace else ""
        env = {
            "TAPE_MODE": "replay",
            "TAPE_OPTIONS": f"--take {self.name}{policy}{pace}",
            "TAPE_NOTEBOOK": str(self.notebook),
        }
        return hermetic.job(self.history, env=env, setup=LOAD, seconds=SECONDS)

    @property
    def name(self) -> str:
        return takes.name_of(self.take.path) if self.take.base is not None else takes.stem(self.take.root)

    # ------------------------------------------------------------ meanwhile

    def _starts(self, index: int) -> None:
        entry = self.history[index]
        told = {"done": index, "total": len(self.history), "cell": self._cell_id(entry), "state": "running"}
        self.tell("progress", {**told, "title": title_of(entry.source)})

    def _ends(self, ran: hermetic.Ran) -> bool:
        """At the first cell that fails and did not before."""
        return ran.error is not None and self.history[ran.index].outcome != "error"

    def _cell_id(self, entry: Entry) -> str:
        return self.parents.cell_id(entry.index) or entry.cell

    # ------------------------------------------------------------ the end

    def _ended(self, replayed: hermetic.Replayed, current: History) -> None:
        if self.leash.pulled:
            self.over(None)
            return
        stopped, whole = self._stopped(replayed)
        outputs = {ran.index: [dict(each) for each in ran.outputs] for ran in replayed.ran}
        cells = self._cells(outputs, current)
        changed = [index for index, cell in cells.items() if not cell.same]
        placed = self._put(changed, outputs) if whole else set()
        self.over(self._comparison(replayed, cells, stopped, self._note(changed, placed, whole=whole)))

    def _stopped(self, replayed: hermetic.Replayed) -> tuple[str | None, bool]:
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
            return f"{entry.title} raised an error: the cells after it were not run, and show what they showed", True
        said = f"{entry.title}: a call of it is not on the tape, and a fresh process cannot wait for an answer. "
        choose = (
            "Now: choose stale (keep the recorded reply), or live, which is for this kernel or tape rerun NB, since "
            "a fresh process has no network"
        )
        return f"{said}{choose}.\n{error.get('evalue', '')}".rstrip(), False

    def _missing(self, ran: hermetic.Ran) -> str:
        """The name that a cell did not find and that no cell of the history made."""
        found = _UNKNOWN.search(ran.text) if ran.error == "NameError" else None
        made = any(found[1] in entry.strong for entry in self.history) if found else True
        return found[1] if found and not made else ""

    def _cells(self, outputs: Mapping[int, list[Output]], current: History) -> dict[int, CellChange]:
        """The cells that were compared, by entry: the newest run of each whose outputs are known."""
        found = {}
        for index, after in outputs.items():
            entry = self.history[index]
            newest = not entry.cell or current.of_cell(entry.cell)[-1].index == index
            if newest and self.displayed.knows(index):
                change = outputs_changed(self.displayed.of(index), after)
                found[index] = CellChange(self._cell_id(entry), entry.number, title_of(entry.source), change)
        return found

    def _put(self, changed: list[int], outputs: Mapping[int, list[Output]]) -> set[int]:
        """Show them in their cells; what nobody listens to any more, below the cell that asked. Gives the former."""
        placed = {index for index in changed if self.parents.listens(index)}
        for index in changed:
            self.displayed.keep(index, Run.of(outputs[index]))
            if index in placed:
                self.parents.show(index, outputs[index])
            else:
                self.parents.show_below(self.asked, f"{self.history[index].title}\n", outputs[index])
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
        self, replayed: hermetic.Replayed, cells: Mapping[int, CellChange], stopped: str | None, note: str
    ) -> Comparison:
        runs = {self.history[ran.index].run for ran in replayed.ran} - {""}
        names = verify.variables_differing(self.history, replayed)
        before = shorts(self.namespace, names)
        proof = Proof("proved", "all cells ran in a fresh process")
        return Comparison(
            take=self.name,
            ran=len(replayed.ran),
            cells=tuple(cells[index] for index in sorted(cells)),
            spans=tuple(calls_of_take(self.take, runs)),
            variables=tuple(VariableChange(name, told, "another value there") for name, told in before.items()),
            stopped=stopped,
            note=note,
            proof=Proof("not provable", "it did not run to its end") if stopped else proof,
        )
