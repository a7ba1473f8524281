"""`tape why`: which replies make a notebook come out otherwise than with those of another
recording.

The calls that both recordings made, with different replies, are the parts. A trial replays the
notebook in a fresh kernel, in replay mode, with some parts answered as in the good recording and
the rest as in the bad one. A request that only the good recording made is answered as there; one
that neither made leaves the trial unresolved.
"""

from __future__ import annotations

import ast
import copy
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette import records
from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.cassette.records import moment, response_section
from tape_jupyter.cassette.runs import current_runs, run_of
from tape_jupyter.cassette.takes import files as takes_files
from tape_jupyter.cassette.takes.edits import EditedReply
from tape_jupyter.comparison import outputs
from tape_jupyter.core.call import Where
from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.ddmin import Outcome, minimal
from tape_jupyter.headless import run as headless_run
from tape_jupyter.reports import diff, listing
from tape_jupyter.secrets.registry import Secrets

if TYPE_CHECKING:
    from nbformat import NotebookNode

TRIAL = "why-trial"
Tried = Callable[[int, int, Outcome], None]
"""Told after each trial: its number, how many replies were the good ones, what came out."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two recordings: what it was called, the file, and the calls that a replay of it
    would use.
    """

    name: str
    cassette: Cassette
    calls: Sequence[Entry]

    def cells(self) -> list[Any]:
        used = {entry.run for entry in self.calls}
        return [run_of(run).cell for run in self.cassette.runs if run["run"] in used]


@dataclass(frozen=True, slots=True)
class Part:
    """A call that both sides made and that was answered differently. Named by the bad side's call."""

    bad: Entry
    good: Entry

    @property
    def layer(self) -> str:
        head = self.bad.head()
        kind = str(head.get("kind", "call"))
        return f"{kind} {head['name']}" if kind == "tool" and head.get("name") else kind


@dataclass(frozen=True, slots=True)
class Cause:
    """The answer: ids of the calls whose replies are needed, what each is, and how it was found."""

    minimal: tuple[str, ...]
    titles: tuple[str, ...]
    differing: int
    layers: dict[str, Outcome]
    trials: int
    unresolved: int
    seconds: float
    notes: tuple[str, ...] = ()
    within: tuple[Any, ...] = ()

    def record(self) -> dict[str, Any]:
        return {
            "minimal": list(self.minimal), "within": list(self.within), "layers": self.layers, "trials": self.trials,
            "unresolved": self.unresolved, "seconds": round(self.seconds, 3), "differing": self.differing,
            "notes": list(self.notes),
        }  # fmt: skip

    def text(self) -> str:
        """For people."""
        count = len(self.minimal)
        verb = "reply makes" if count == 1 else "replies together make"
        head = f"{count} {verb} the difference, of {self.differing} that differ:"
        rows = [f"  {call}  {title}" for call, title in zip(self.minimal, self.titles, strict=True)]
        layers = [f"  {name}: {_SAID[outcome]}" for name, outcome in self.layers.items()]
        end = f"{self.trials} trials, {self.unresolved} unresolved, {self.seconds:.1f} s, nothing went live"
        return "\n".join([head, *rows, "all good replies of one layer:", *layers, *self.notes, end])


_SAID = {
    "flips": "the check holds",
    "stays": "it still fails",
    "unresolved": "asked something that is on neither tape",
}


def why(
    notebook: str | Path,
    good: str,
    bad: str,
    check: str,
    name: str | None = None,
    tried: Tried | None = None,
) -> Cause:
    """Find the smallest set of the good recording's replies with which the check holds.

    `good` and `bad` are takes, cassettes (names or files) or, for `good`, a run id. `check` is a
    Python expression over the notebook's variables and `outputs` (the text that each code cell
    showed), or `cell:N` (that cell runs and does not raise), or `output:N` (it shows what is
    saved). Raises TapeUsageError, before any search where the check does not tell the two apart.
    """
    path = Path(notebook).resolve()
    saved = headless_run.read(path)
    judge = Check(check, sum(map(headless_run.runs, saved.cells)))
    roots = listing.cassettes_of(path, name)
    ours, theirs = side(roots, bad), side(roots, good)
    if (
        ours.cassette.root.resolve().parent != roots[0].resolve().parent
        or theirs.calls == ours.calls
    ):
        raise TapeUsageError(f"--bad {bad} is no other recording of {path.name} than --good {good}")
    if not any(one.same_cell(two) for one in ours.cells() for two in theirs.cells()):
        raise TapeUsageError(
            f"{good} and {bad} hold no cell in common: they are of different notebooks"
        )
    search = _Search(path, saved, ours, theirs, judge, tried)
    return search.cause()


def side(roots: Sequence[Path], word: str) -> Side:
    """The recording of that name. Raises TapeUsageError naming those that are there."""
    file = Path(word)
    if file.suffix == ".yaml" and file.is_file():
        return _side(word, Cassette.open(file))
    for root in roots:
        if takes_files.stem(root) == word:
            return _side(word, Cassette.open(root))
        if word in takes_files.names(root):
            return _side(word, Cassette.open(root).take(word))
        cassette = Cassette.open(root)
        if word in cassette.by_run:
            return Side(word, cassette, [entry for entry in cassette.calls if entry.run == word])
    have = [
        *map(takes_files.stem, roots),
        *(each for root in roots for each in takes_files.names(root)),
    ]
    raise TapeUsageError(
        f"there is no take, cassette or run {word!r}; there are: {', '.join(have)}"
    )


def _side(word: str, cassette: Cassette) -> Side:
    used = {run.id for run in current_runs(map(run_of, cassette.runs))}
    return Side(word, cassette, [entry for entry in cassette.calls if entry.run in used])


class Check:
    """What is asked of a trial: an expression, `cell:N` or `output:N`. Raises TapeUsageError for
    what is none.
    """

    def __init__(self, text: str, cells: int) -> None:
        self.text = text
        told = re.fullmatch(r"(cell|output):(\d+)", text.strip())
        self.kind, self.number = (told[1], int(told[2])) if told else ("expression", 0)
        if told:
            if not 1 <= self.number <= cells:
                raise TapeUsageError(f"--check {text}: the notebook's code cells are 1 to {cells}")
            return
        try:
            ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            raise TapeUsageError(f"--check {text!r} is no Python expression: {error.msg}") from None

    def expression(self, shown: Sequence[str]) -> str:
        return f"bool((lambda outputs: ({self.text.strip()}\n))({list(shown)!r}))"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a trial showed: whether the check holds, or why that cannot be said."""

    holds: bool | None
    why: str = ""
    missed: bool = False

    @property
    def outcome(self) -> Outcome:
        return "unresolved" if self.holds is None else "flips" if self.holds else "stays"


@dataclass(slots=True)
class _Search:
    path: Path
    saved: NotebookNode
    bad: Side
    good: Side
    check: Check
    tried: Tried | None
    parts: list[Part] = field(default_factory=list)
    extra: list[Entry] = field(default_factory=list)
    known: dict[frozenset[int], _Answer] = field(default_factory=dict)

    def cause(self) -> Cause:
        started = time.perf_counter()
        self._pair()
        every = range(len(self.parts))
        self._require(every)
        layers: dict[str, list[int]] = {}
        for number in every:
            layers.setdefault(self.parts[number].layer, []).append(number)
        told = {layer: self._outcome(numbers) for layer, numbers in layers.items()}
        flipping = [numbers for layer, numbers in layers.items() if told[layer] == "flips"]
        found = minimal(min(flipping, key=len, default=list(every)), self._outcome)
        calls = [self.parts[number].bad for number in found.parts]
        return Cause(
            tuple(call.id for call in calls),
            tuple(call.title for call in calls),
            len(self.parts),
            told,
            len(self.known),
            sum(answer.holds is None for answer in self.known.values()),
            time.perf_counter() - started,
            tuple(self._notes()),
        )

    def _pair(self) -> None:
        asked = {entry.match for entry in self.bad.calls}
        for bad, good in diff.paired(self.bad.calls, self.good.calls):
            if bad is None:
                if good is not None and good.match not in asked:
                    self.extra.append(good)
            elif good is not None and good is not bad and _told(bad) != _told(good):
                self.parts.append(Part(bad, good))
        if not self.parts:
            raise TapeUsageError(
                f"{self.good.name} and {self.bad.name} answer alike every call that both made: "
                "no reply is the cause. Compare code, clock, chance and environment with: tape diff"
            )

    def _require(self, every: Sequence[int]) -> None:
        """Both ends answer, and differently."""
        for side_, numbers in ((self.bad, []), (self.good, every)):
            answer = self._try(numbers)
            if answer.holds is None:
                raise TapeUsageError(
                    f"--check {self.check.text}: with the replies of {side_.name}: {answer.why}"
                )
        before, after = self._try([]).holds, self._try(every).holds
        if before and after:
            raise TapeUsageError(
                f"--check {self.check.text} holds with the replies of {self.bad.name} too: always true"
            )
        if before:
            raise TapeUsageError(
                f"--check {self.check.text} holds in {self.bad.name}, not in {self.good.name}: swap them"
            )
        if not after:
            raise TapeUsageError(
                f"--check {self.check.text} is false with the replies of {self.good.name} too: it is always false, "
                "or the cause is no reply (code of cells, clock, chance, environment)"
            )

    def _notes(self) -> list[str]:
        found = diff.drifts(self.bad.cassette, self.good.cassette)
        return [f"differs too, and was not swapped: {each}" for each in found]

    def _outcome(self, numbers: Sequence[int]) -> Outcome:
        return self._try(numbers).outcome

    def _try(self, numbers: Sequence[int]) -> _Answer:
        key = frozenset(numbers)
        if key not in self.known:
            self.known[key] = self._replayed(key)
            if self.tried is not None:
                self.tried(len(self.known), len(key), self.known[key].outcome)
        return self.known[key]

    def _replayed(self, numbers: frozenset[int]) -> _Answer:
        """One trial: its take is made in a folder of its own, and seen by its kernel only."""
        from tape_jupyter.headless.folders import run_folder
        from tape_jupyter.headless.kernel import kernel

        tapes = self.bad.cassette.root.resolve().parent
        with scratch("why") as place:
            files = self._take(place / tapes.name, numbers)
            env = {"TAPE_OPTIONS": f"--take {TRIAL}"}
            with run_folder(
                self.path, env, {tapes / name: content for name, content in files.items()}
            ) as folder:
                made = copy.deepcopy(self.saved)
                with kernel(
                    made,
                    folder.notebook,
                    "replay",
                    None,
                    {**env, **folder.env},
                    prefix=folder.prefix,
                ) as client:
                    return self._judged(client, made, folder.where)

    def _take(self, folder: Path, numbers: frozenset[int]) -> dict[str, bytes]:
        """The files, by their paths in the .tapes folder, that this trial's take consists of."""
        tapes = self.bad.cassette.root.parent
        shutil.copytree(tapes, folder, ignore=shutil.ignore_patterns(takes_files.DELETED))
        before = {file for file in folder.rglob("*") if file.is_file()}
        base = Cassette.open(folder / self.bad.cassette.path.relative_to(tapes))
        for number, part in enumerate(self.parts):
            reply = (part.good if number in numbers else part.bad).reply()
            base.put(base.by_name[part.bad.run, part.bad.id], EditedReply(reply, {}), TRIAL)
        self._add_extra(base.take(TRIAL))
        made = {file for file in folder.rglob("*") if file.is_file()} - before
        return {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in made
            if file.suffix != ".lock"
        }

    def _add_extra(self, take: Cassette) -> None:
        """Let requests that only the good recording made be answered as there."""
        own = {run["run"]: run_of(run).cell for run in self.bad.cassette.runs}
        used = {entry.run for entry in self.bad.calls}
        cells = {run["run"]: run_of(run).cell for run in self.good.cassette.runs}
        by_run: dict[str, list[Entry]] = {}
        for entry in self.extra:
            by_run.setdefault(entry.run, []).append(entry)
        secrets, at = Secrets(), moment(datetime.now(UTC))
        for run, entries in by_run.items():
            parent = next(
                (name for name, cell in own.items() if name in used and cell.same_cell(cells[run])),
                "",
            )
            if not parent:
                continue
            same = self.bad.cassette.by_run[parent]
            identity = {
                key: same[key] for key in ("cell", "source", "session", "title") if same.get(key)
            }
            again = take.start_run(
                {"mode": "again", "parent": parent, **identity, "at": at}, {}, secrets
            )
            for entry in entries:
                take.append_call(_head(entry, again, at), entry.request(), entry.reply(), secrets)
            take.end_run(again, {"outcome": "ok", "calls": len(entries)}, secrets)

    def _judged(self, client: Any, made: NotebookNode, where: Any) -> _Answer:
        from tape_jupyter.headless.kernel import asked

        raised, cells = (
            0,
            [(index, cell) for index, cell in enumerate(made.cells) if headless_run.runs(cell)],
        )
        saved = [copy.deepcopy(cell.outputs) for _, cell in cells]
        for _, cell in cells:
            cell.outputs = []
        for number, (index, cell) in enumerate(cells, 1):
            if headless_run.execute(client, cell, index).raised:
                raised = number
            name, value = outputs.failure_of(cell.outputs)
            if name in headless_run.REFUSALS:
                return _Answer(
                    None, f"cell {number}: {name}: {value.splitlines()[0] if value else ''}"
                )
            if raised:
                break
        headless_run.merge_streams(made)
        if self.check.kind == "cell":
            return _Answer(not raised or raised > self.check.number)
        if self.check.kind == "output":
            at = self.check.number - 1
            return _Answer(outputs.same(saved[at], cells[at][1].outputs, where))
        told = asked(
            client, "", check=self.check.expression([_shown(cell.outputs) for _, cell in cells])
        )
        answer = (told.get("user_expressions") or {}).get("check") or {}
        if answer.get("status") == "ok":
            return _Answer(answer["data"]["text/plain"] == "True")
        behind = f" (cell {raised} had raised)" if raised else ""
        return _Answer(
            None, f"the check raised {answer.get('ename')}: {answer.get('evalue')}{behind}"
        )


def _head(entry: Entry, run: str, at: str) -> records.Head:
    told = entry.head()
    return records.Head(
        entry.id, run, entry.match, str(told.get("kind", "host")), Where(run, entry.lineage), at,
        float(told.get("seconds", 0.0)), told.get("kit", {}), str(told.get("name", "")), apart=entry.apart,
    )  # fmt: skip


def _told(entry: Entry) -> Any:
    """A reply as its record says it, without what no program reads of it: moments, sizes of reads."""
    section = response_section(entry.reply(), Secrets())
    return {
        key: told
        for key, told in section.items()
        if key not in ("headers", "waits", "reads", "sha256", "cuts")
    }


def _shown(shown: Sequence[Any]) -> str:
    """The text that a cell's outputs show."""
    own = [each for each in shown if not outputs.is_summary(each)]
    texts = [each.get("text") or each.get("data", {}).get("text/plain", "") for each in own]
    return "".join("".join(text) for text in texts)
