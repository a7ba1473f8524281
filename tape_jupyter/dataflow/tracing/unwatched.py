"""What the cells read and wrote that were only noted (noted_cells.py), told from their text when the
first cell is taped. Each name's value belongs to the last of them that bound it, or may have changed
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tape_jupyter.dataflow.fingerprint.fingerprint import Print
from tape_jupyter.dataflow.history import UNWATCHED, Execution, name_of
from tape_jupyter.dataflow.static.names import cell_names, transform
from tape_jupyter.dataflow.tracing.executed_code import ExecutedCode
from tape_jupyter.dataflow.tracing.noted_cells import NotedCell
from tape_jupyter.dataflow.tracing.observations import ExecutionFacts
from tape_jupyter.dataflow.tracing.steps import build
from tape_jupyter.dataflow.tracing.variables import Variables


def record_unwatched(
    noted: Sequence[NotedCell], variables: Variables, known: Mapping[str, Print]
) -> dict[str, Execution]:
    """Write into their entries what they read and wrote. `known`: the prints before the first of
    them. Gives, by name that they changed, the last that did.
    """
    last: dict[str, Execution] = {}
    for each in noted:
        _fill_entry_from_text(each, variables, known, last)
    end = noted[-1].entry
    for name, now in variables.prints.items():  # by code that no text told of
        was = known.get(name)
        if name not in last and (was is None or was.digest != now.digest):
            end.changed |= {name}
            _record_change(end, name, known, last)
    for each in noted:
        for name in each.entry.changed - each.gone:
            if last[name] is not each.entry:
                each.entry.unkept[name] = UNWATCHED
    return last


def _fill_entry_from_text(
    noted: NotedCell,
    variables: Variables,
    known: Mapping[str, Print],
    last: dict[str, Execution],
) -> None:
    entry = noted.entry
    cell = cell_names(transform(entry.source))
    for each in cell.statements:
        variables.ever.update(each.code.stores | each.code.later_stores | each.code.deletes)
    there = {name: variables.prints.get(name) for name in variables.prints}
    failed = None if entry.outcome == "ok" else 0
    unseen = ExecutedCode(complete=False, whole_builtins=False)
    built = build(
        ExecutionFacts(
            cell, variables, there, unseen, noted.touched, number=entry.number, displayed=noted.displayed,
            failed_at=failed, rebound=noted.bound & variables.prints.keys(),
        )
    )  # fmt: skip
    entry.steps = built.steps
    written = {n for s in built.steps for r in s.strong | s.weak if (n := name_of(r)) is not None}
    changed = built.changed | noted.bound | noted.gone | (written & variables.prints.keys())
    entry.changed, entry.opaque = frozenset(changed), built.opaque & changed
    for name in sorted(changed):
        _record_change(entry, name, known, last)
    for name in noted.gone:
        entry.after[name] = ""


def _record_change(
    entry: Execution, name: str, known: Mapping[str, Print], last: dict[str, Execution]
) -> None:
    if name not in last:
        entry.before[name] = known[name].digest if name in known else ""
    last[name] = entry
