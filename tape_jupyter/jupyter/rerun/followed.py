"""Within the fresh process of a re-run or a proof (jupyter/rerun/isolated.py): which recording each
cell plays, what a person decided of its calls, and what there is to tell of each cell that ran.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.core.moved_folders import FOLDERS, place_folders
from tape_jupyter.dataflow.isolated.end_state import digest_content
from tape_jupyter.dataflow.restore.versions import find_seen
from tape_jupyter.dataflow.static.lookups import asks_for, looks_at
from tape_jupyter.jupyter.rerun import divergence as rerun_divergence
from tape_jupyter.jupyter.rerun.comparison import mingled_tools, played_tools
from tape_jupyter.session.cell import Divergence, TapedCell
from tape_jupyter.session.options import Word
from tape_jupyter.session.tool_files import ReplayedFolder, found_otherwise

if TYPE_CHECKING:
    from tape_jupyter.dataflow.history import Change, Execution
    from tape_jupyter.dataflow.isolated.worker import FreshShell
    from tape_jupyter.dataflow.tracing.variables import Variables
    from tape_jupyter.jupyter.cell_runner import CellRunner


def find_live_tools(
    take: Cassette,
    run: str,
    differing: Collection[str],
    moved: Collection[str],
    variables: Variables | None,
    state: Collection[str] = (),
) -> tuple[str, ...]:
    """The tools of a recorded run that read variables or files, or draw from generators, which are not
    as the recorded calls found them. `state`: parts of the process' state, and files that its cell looks
    at, that are otherwise.
    """
    tool_names: dict[str, None] = {}
    for call in take.calls:
        name = str(call.head().get("name", "")) if call.run == run else ""
        if not name or call.head().get("kind") != "tool" or name in tool_names:
            continue
        asked = variables is not None and find_asked(name, differing, state, variables)
        drawn = moved and not set(moved).isdisjoint(call.moved())
        if asked or drawn or _found_other_files(call.did(), take.root.parent.parent):
            tool_names[name] = None
    return tuple(tool_names)


def _found_other_files(did: Mapping[str, Any], folder: Path) -> bool:
    """Whether files that a recorded tool wrote over are not as it found them."""
    moved = place_folders(did.get(FOLDERS, {}), folder, None)
    return bool(found_otherwise(did.get("files", ()), ReplayedFolder(folder, moved=moved)))


def find_asked(
    name: str, differing: Collection[str], state: Collection[str], variables: Variables
) -> set[str]:
    """What functions of this name may ask for of variables, files and parts of the process' state
    that are not what they were: as people are told of it.
    """
    seen = (each.partition(":") for each in looks_at(name, state, variables))
    told = {Path(rest).name if kind == "file" else rest for kind, _, rest in seen}
    return asks_for(name, differing, variables) | told


def list_digests(entry: Execution) -> dict[str, str]:
    """Of what an entry changed: names, and files (`file:PATH`)."""
    names = {name: entry.after.get(name, "") for name in entry.changed}
    known = {path: change.after for path, change in entry.files.items() if change.known}
    files = {f"file:{path}": digest_content(content) for path, content in known.items()}
    return names | files | {f"ambient:{part}": _tell(c) for part, c in entry.ambient.items()}


def _tell(change: Change) -> str:
    """A digest of what it was changed to; of what has keys, of those that are other values then."""
    if not isinstance(change.before, dict) or not isinstance(change.after, dict):
        return digest_content(_ADDRESS.sub("", repr(change.after)).encode())
    keys = sorted(map(str, {*change.before, *change.after}))
    pairs = [(key, change.after.get(key)) for key in keys]
    others = [pair for pair in pairs if change.before.get(pair[0]) != pair[1]]
    return digest_content(_ADDRESS.sub("", repr(others)).encode())


_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


LOAD = "__import__('tape_jupyter').load_ipython_extension(get_ipython())"


@dataclass(frozen=True, slots=True)
class Orders:
    """What a fresh process follows. `turns`: by entry the recording that it plays ("": its
    newest); `runs`: by entry its own recording ("": it ran untaped); `decided` and `written`: by
    match key, "live" or "stale", and the reply of a person, for the take at `root`. `moved`: by
    entry, the process' generators that a changed reply left elsewhere (None: nothing was changed).
    `after`: by entry, digests of what it changed when it was recorded, where tools go live that read
    what is not so now.
    """

    turns: Sequence[str]
    runs: Sequence[str] = ()
    decided: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    root: str = ""
    take: str = ""
    moved: Mapping[int, Sequence[str]] | None = field(default_factory=dict)
    after: Sequence[Mapping[str, str]] = ()
    opened: Sequence[Sequence[str]] = ()
    """By entry, the files that it looked at (history.py)."""

    def setup(self) -> str:
        """What a fresh process begins with."""
        code = f"from {__name__} import follow; follow(get_ipython(), {asdict(self)!r}); del follow"
        return f"{LOAD}\n{code}"


def follow(shell: FreshShell, orders: Mapping[str, Any]) -> None:
    """Let the n-th cell from here on do as is ordered, and tell of it."""
    from tape_jupyter.jupyter import magics

    cells = magics.loaded(shell)
    assert cells is not None
    followed = _Followed(cells, Orders(**orders), shell.execution_count)
    cells.deck.session_options["decided"] = dict(followed.orders.decided)
    cells.planned = followed.planned
    shell.collect_extras = followed.describe_cell


@dataclass(slots=True)
class _FollowedCell:
    """A cell of it (cell_runner.PlannedCell)."""

    cells: CellRunner
    turn: str
    untaped: bool
    moved: Sequence[str] | None
    anew: bool
    """Whether a call of an object that is not as it was is another one, as in a re-run in place."""
    cell: TapedCell | None = None

    def choose_word(self, line: str | None, raw: str) -> Word | None:
        command = self.cells.parse_own_word(line, raw)
        if command is None:
            return None
        options: dict[str, Any] = dict(command.options)
        if self.turn:
            options["repeats"] = self.turn
        if self.moved is not None:
            options |= {"whole": True, "moved": self.moved, "anew": self.anew}
        if self.untaped and line is None:
            options["untaped"] = True
        return replace(command, options=options)


@dataclass(slots=True)
class _Followed:
    """The cells of one process, one after another."""

    cells: CellRunner
    orders: Orders
    first: int
    cell: _FollowedCell | None = None
    differing: set[str] = field(default_factory=set)
    """Variables that are not what they were when it was recorded."""

    def planned(self) -> _FollowedCell | None:
        at = self.cells.shell.execution_count - self.first - 1
        if self.cell is None and 0 <= at < len(self.orders.turns):
            untaped = at < len(self.orders.runs) and not self.orders.runs[at]
            moved = None if self.orders.moved is None else self.orders.moved.get(at, ())
            live = [f"tool:{name}" for name in self._find_live_tools(at)]
            self.cells.deck.session_options["live"] = live
            turn, anew = self.orders.turns[at], bool(self.orders.runs)
            self.cell = _FollowedCell(self.cells, turn, untaped, moved, anew)
        return self.cell

    def _find_live_tools(self, at: int) -> tuple[str, ...]:
        """Those of the cell at this place, after what ran before it."""
        tracker = self.cells.deck.tracker
        if at >= len(self.orders.after) or tracker is None:
            return ()
        if 0 < at <= len(tracker.history):
            now, recorded = list_digests(tracker.history[at - 1]), self.orders.after[at - 1]
            for thing in recorded.keys() | now.keys():
                same = recorded.get(thing) == now.get(thing)
                (self.differing.discard if same else self.differing.add)(thing)
        if not self.orders.runs[at]:
            return ()
        take = Cassette.open(Path(self.orders.root)).take(self.orders.take)
        state = find_seen(self.differing, self.orders.opened[at])
        return find_live_tools(
            take, self.orders.runs[at], self.differing, (), tracker.variables, state
        )

    def describe_cell(self) -> dict[str, Any]:
        """Of the cell that ran: the call that it stopped at, the tools whose recorded values it was
        given, and which of those a whole run may not give.
        """
        followed, self.cell = self.cell, None
        cell = followed.cell if followed is not None else None
        tracker = self.cells.deck.tracker
        left = list_digests(tracker.history[-1]) if tracker and len(tracker.history) else {}
        if cell is None:
            return {"left": left}
        record: dict[str, Any] = {
            "left": left,
            "tools": played_tools(cell),
            "doubts": [*cell.findings.doubts, *cell.findings.unheld],
        }
        if cell.replaying:
            record["mingled"] = mingled_tools(cell.player.repeats(cell.execution), cell)
        if cell.findings.divergences:
            record["asks"] = self._answer_or_ask(cell, cell.findings.divergences[0])
        return record

    def _answer_or_ask(self, cell: TapedCell, divergence: Divergence) -> dict[str, Any]:
        """The question; the answer that a person wrote for it is committed to the take instead."""
        text = self.orders.written.get(divergence.match)
        if text is None:
            return rerun_divergence.Question.from_divergence(divergence).record()
        take = Cassette.open(Path(self.orders.root)).take(self.orders.take)
        rerun_divergence.commit_reply(take, cell.request.cell_id or "", divergence, text)
        return {"written": divergence.match}
