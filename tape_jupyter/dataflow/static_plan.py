"""A plan from the sources of cells alone, where no kernel ran them: `tape.plan(cells, changed)`.

Each cell counts as run once, in the order given. What only a run shows (values, files by name, what
a library does) is assumed: too many cells are named rather than too few. How values are put back is
no part of such a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from tape_jupyter.core.notebook_text import code_cells
from tape_jupyter.dataflow.history import EVERYTHING, FILES, OUTPUTS, History, Step
from tape_jupyter.dataflow.plan import Plan
from tape_jupyter.dataflow.plan import plan_rerun as planned
from tape_jupyter.dataflow.static.names import Statement, cell_names, find_identifiers, transform
from tape_jupyter.errors import TapeUsageError

_FILE_WORDS = frozenset({
    "open", "read_text", "write_text", "read_bytes", "write_bytes", "to_csv", "read_csv", "to_json", "read_json",
    "to_parquet", "read_parquet", "to_pickle", "read_pickle", "to_excel", "read_excel", "dump", "load", "savefig",
    "imread", "imsave", "connect", "listdir", "glob", "iterdir", "scandir", "exists", "makedirs", "mkdir", "unlink",
    "remove", "rename", "copyfile", "copy2", "move", "rmtree", "system", "popen", "Popen", "run", "check_output",
})  # fmt: skip
_NAMESPACE = frozenset({"globals", "locals", "vars", "dir", "exec", "eval", "get_ipython"})
_FILE_MAGICS = frozenset(
    {"writefile", "run", "system", "getoutput", "bash", "sh", "script", "save", "store", "load"}
)
_SHOWN = frozenset({"_", "__", "___", "Out", "_oh"})


def plan(
    cells: Sequence[str] | str | PathLike[str], changed: int | str | Iterable[int | str]
) -> Plan:
    """Which cells run again when the replies of the cells `changed` differ, and why each.

    `cells`: their sources in order, or the path of a notebook; `changed`: indices of code cells
    from 0, or ids of the notebook's cells. Raises TapeUsageError for a cell that is not there and a
    notebook that cannot be read.
    """
    sources, ids = _read_sources(cells)
    requested = [changed] if isinstance(changed, int | str) else list(changed)
    return planned(
        history_of(sources, ids), {_find_index(each, ids) for each in requested}, live=False
    )


def _read_sources(cells: Sequence[str] | str | PathLike[str]) -> tuple[list[str], list[str]]:
    if not isinstance(cells, str | PathLike):
        return list(cells), [str(index) for index in range(len(cells))]
    try:
        code = code_cells(Path(cells).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TapeUsageError(f"{cells}: {error}") from error
    return [cell.source for cell in code], [
        cell.id or str(index) for index, cell in enumerate(code)
    ]


def _find_index(requested: int | str, ids: Sequence[str]) -> int:
    if isinstance(requested, str) and requested in ids:
        return ids.index(requested)
    if isinstance(requested, int) and 0 <= requested < len(ids):
        return requested
    known = f"the code cells are 0 to {len(ids) - 1}, or: {', '.join(ids[:8])}"
    raise TapeUsageError(f"changed: there is no cell {requested!r}; {known}")


def history_of(sources: Sequence[str], ids: Sequence[str]) -> History:
    """Entries as far as the text of cells tells: nothing is kept, nothing is known of values."""
    history, known = History(), _Known()
    for number, (source, cell) in enumerate(zip(sources, ids, strict=True), start=1):
        entry = history.begin(cell, source, number)
        parsed = cell_names(transform(source))
        if parsed.broken:
            entry.notes = ("is not Python: what it reads is unknown",)
            entry.steps = (Step(1, reads=frozenset({EVERYTHING, *find_identifiers(source)})),)
        else:
            magic_names = _find_magic_names(source)
            steps = [known.step(statement, number) for statement in parsed.statements]
            entry.steps = tuple(
                replace(each, reads=each.reads | magic_names, weak=each.weak | magic_names)
                for each in steps
            )
        entry.outcome = "ok"
        entry.changed = frozenset(name for name in entry.writes if name.isidentifier())
    return history


def _find_magic_names(source: str) -> frozenset[str]:
    """A magic's own line may name what it makes: `%%capture out`."""
    lines = [
        line.strip()
        for line in source.splitlines()
        if line.lstrip().startswith("%") and "%tape" not in line
    ]
    return frozenset(name for line in lines for name in find_identifiers(line.partition(" ")[2]))


class _Known:
    """What earlier statements tell of names: what a function reads when called, which may be the
    same object.
    """

    def __init__(self) -> None:
        self._later: dict[str, frozenset[str]] = {}
        self._stores: dict[str, frozenset[str]] = {}
        self._alias: dict[str, frozenset[str]] = {}

    def step(self, statement: Statement, number: int) -> Step:
        code, used = statement.code, statement.uses
        via: dict[str, str] = {}
        reads = self._find_reached_names(
            set(code.reads) | set(used.bare) | {root for root, _ in used.parts}, via
        )
        touched = {touch.root for touch in used.touches if touch.what != "__call__"} | {
            name for each in reads for name in self._stores.get(each, ())
        }
        touched = {name for each in touched for name in (each, *self._alias.get(each, ()))}
        weak = (set(code.stores | code.deletes) | touched) - statement.always
        reads |= touched
        if used.dynamic or _NAMESPACE & code.reads:
            reads.add(EVERYTHING)
        for magic in used.magics:
            reads |= find_identifiers(f"{magic.line} {magic.body}")
        if _FILE_WORDS & code.identifiers or any(
            magic.name in _FILE_MAGICS for magic in used.magics
        ):
            reads.add(FILES)
            weak.add(FILES)
        if _SHOWN & code.reads:
            reads.add(OUTPUTS)
        if statement.displayed:
            weak.add(f"output:{number}")
        self._learn_names(statement, reads)
        return Step(
            statement.line, statement.end, frozenset(reads), statement.always, frozenset(weak), via
        )

    def _find_reached_names(self, names: set[str], via: dict[str, str]) -> set[str]:
        """With all that functions and classes of these names read, and what those read."""
        reached, todo = set(names), list(names)
        while todo:
            name = todo.pop()
            for inner in self._later.get(name, frozenset()) - reached:
                via.setdefault(inner, name)
                reached.add(inner)
                todo.append(inner)
        return reached

    def _learn_names(self, statement: Statement, reads: set[str]) -> None:
        for name in statement.always | statement.code.stores:
            self._later[name] = statement.code.later_reads
            self._stores[name] = statement.code.later_stores | statement.code.later_reads
            same = frozenset(reads - {EVERYTHING, FILES, OUTPUTS, name} - statement.uses.called)
            self._alias[name] = same
            for other in same:
                self._alias[other] = self._alias.get(other, frozenset()) | {name}
