"""The proof: a session replays in a fresh kernel without network, and gives what its notebook
shows.

First in a copy of the folder, where it is seen what its cells read and import; then once more from
that alone, in a folder with blanks and letters of other alphabets in its name. Where the copy held
nothing else, the first run is it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.bundle.environment import caches
from tape_jupyter.bundle.proof import process
from tape_jupyter.bundle.proof.expected import shown_outputs
from tape_jupyter.bundle.session import Session
from tape_jupyter.comparison import outputs
from tape_jupyter.comparison.outputs import places
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell
from tape_jupyter.headless import run
from tape_jupyter.isolation import sandbox

PLACE = "a session, проба 試"
"""The folder's name that a proof runs in: what a path may look like elsewhere."""

MISSED = "asks for a call that is not on the tape"
UNTAPED = "goes to the network and is not taped"
RAISED = "raises, and did not when the notebook was saved"
NOT_RUN = "was not run, since a cell before it raised"
NEVER_RUN = "was not run when the notebook was saved, and now shows something"
DIFFERS = "shows something other than what is saved"
UNHELD = "has a recorded tool with an effect that a replay does not repeat"


@dataclass(frozen=True, slots=True)
class CellProof:
    """A code cell in the proof. `why` it is not as saved, in words that every run repeats ("": it
    is); `lines` show it.
    """

    number: int
    title: str
    why: str = ""
    lines: tuple[str, ...] = ()
    seconds: float = 0.0
    ran: bool = True

    def text(self) -> str:
        return f"[{self.number}] {self.title}: {self.why}"


@dataclass(frozen=True, slots=True)
class ProofRun:
    """A whole run; `after` is what the kernel was asked in the end."""

    cells: tuple[CellProof, ...]
    guards: tuple[str, ...]
    after: str = ""

    @property
    def differences(self) -> tuple[CellProof, ...]:
        return tuple(cell for cell in self.cells if cell.why)


def prove_session(
    session: Session, notebook: Path, home: Path, python: str, on_progress: Tell, *, pace: str = "",
    before: str = "", after: str = "",
) -> ProofRun:  # fmt: skip
    """Run the notebook where it lies (a copy) and compare each cell with the session's saved
    outputs.

    `before` and `after` are for the kernel (alone.Job). Raises BundleError where there is no run.
    """
    job = process.ProofJob(
        str(notebook),
        str(home),
        python,
        pace=pace,
        variables=caches.cache_variables(),
        before=before,
        after=after,
    )
    where = session.where | places(notebook.parent, home)

    def tell_starting(number: int, count: int, title: str) -> None:
        on_progress(f"replaying without network: {title}", number - 1, count)

    done = process.run_proof(job, tell_starting, lambda _: None)
    saved = [cell for cell in session.notebook.cells if run.has_code(cell)]
    judged = [judge(cell, out, where) for cell, out in zip(saved, done.outs, strict=True)]
    return ProofRun(tuple(judged), sandbox.guards(), done.after)


def judge(saved: Any, out: process.ProofOutput, where: Mapping[str, str]) -> CellProof:
    """How a cell came out. A refused call is never as saved, even where the saved outputs show the
    same refusal.
    """
    why, lines = _judge_outputs(saved, out, where)
    return CellProof(out.number, out.title, why, tuple(lines), out.seconds, out.ran)


def _judge_outputs(
    saved: Any, out: process.ProofOutput, where: Mapping[str, str]
) -> tuple[str, Sequence[str]]:
    name, value = outputs.failure_of(out.outputs)
    before, after = shown_outputs(saved), run.counted_outputs(saved.source, out.outputs)
    if not out.ran:
        return (NOT_RUN, ()) if before else ("", ())
    if name in run.REFUSALS:
        return MISSED if name == "UnmatchedCall" else UNTAPED, f"{name}: {value}".splitlines()
    same = outputs.same_outputs(before, after, where)
    lines = () if same else outputs.diff_outputs(before, after, where)
    if out.unheld:
        return UNHELD, [*out.unheld, *lines]
    if same:
        return "", ()
    if name and name != outputs.failure_of(before)[0]:
        return RAISED, lines
    return (NEVER_RUN if not before and saved.execution_count is None else DIFFERS), lines


def changed_cells(proof: ProofRun, take: str = "") -> list[str]:
    """Which cells are not as saved, and how, for a person whose session is not exported. `take`:
    the one that replays where none is named.
    """
    count = f"{len(proof.differences)} of {format_count(len(proof.cells), 'cell')}"
    lines = [
        f"the session does not replay as its saved notebook shows ({count}); nothing was written:"
    ]
    for cell in proof.differences:
        lines += [f"  {cell.text()}", *(f"      {line}" for line in cell.lines)]
    return [
        *lines,
        f"Now: {_find_advice(proof, take)}, or export it anyway, marked as such: tape export NB --allow-differences",
    ]


def _find_advice(proof: ProofRun, take: str) -> str:
    """What mends the first of them; what comes after it may only follow from it."""
    match proof.differences[0].why:
        case why if why == MISSED:
            return "record that cell again (%%tape record), run and save the notebook"
        case why if why == UNTAPED:
            return (
                "put %%tape record on the cells that go to the network, run and save the notebook"
            )
        case why if why == UNHELD:
            return (
                "have the tool return its result instead of changing things, or make the change in a cell of its own, "
                "and record that cell again"
            )
        case why if why == NEVER_RUN:
            return "run the whole notebook and save it"
        case why if why == DIFFERS and take:
            return (
                f"let the notebook show take {take}, which replays: tape rerun NB --take {take} --output NEW.ipynb, "
                "and put NEW.ipynb in its place (or export the recording: tape takes NB default main)"
            )
        case _:
            return (
                "run the notebook from its first cell to its last and save it (or: tape record NB)"
            )
