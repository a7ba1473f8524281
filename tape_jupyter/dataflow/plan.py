"""Which entries must run again after a change, in which order, and why each. Nothing is run here.

What depends on the change (dataflow/downstream.py) is not all: its cells need the values that they
had then. A value that was overwritten or changed since is put back from what the history kept; what
cannot be put back (a generator, a connection) is made anew by the cell that made it, and then
whoever used it since runs again. Where even that does not do, the plan says that only a fresh
kernel gets it right, and why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tape_jupyter.cassette.cell_sources import title_of
from tape_jupyter.dataflow.downstream import Differing, Lines, traced
from tape_jupyter.dataflow.history import EVERYTHING, Execution, History
from tape_jupyter.dataflow.restore.versions import BEGINNING, Versions

Role = Literal["changed", "downstream", "restores"]
_REASONS = 3
_VERBS = {"holds": 0, "reads": 1, "calls": 2, "makes": 3, "opens": 4, "changes": 5}
"""What reasons begin with, those first that tell most."""


@dataclass(frozen=True, slots=True)
class PlanCell:
    """One entry to run again. `needs` are the entries whose run it builds on: without those it runs
    on stale values.
    """

    entry: int
    cell: str
    number: int | None
    title: str
    reasons: tuple[str, ...]
    role: Role
    ticked: bool = True
    needs: tuple[int, ...] = ()
    asks: int = 0
    """How many of its calls may go live: their requests may be others now."""
    cost: float | None = None
    """What these took when they were recorded, US dollars; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What runs again, in order, of `total` runs of cells. `hermetic`: why only a fresh kernel gets
    it right (None: the live one does).
    """

    cells: tuple[PlanCell, ...]
    total: int
    warnings: tuple[str, ...] = ()
    hermetic: str | None = None
    from_tape: int = 0
    maybe_live: int = 0
    """The sum of `asks` of its cells."""
    seconds: float | None = None
    take: str = ""
    counted: Literal["cells", "runs"] = "cells"
    """What its rows and `total` are called: cells where each ran once."""
    lines: Lines = field(default_factory=dict)
    """The changed entries, with the lines of their calls where they are known."""

    @property
    def entries(self) -> list[int]:
        return [cell.entry for cell in self.cells]

    @property
    def downstream(self) -> list[int]:
        """What depends on the change: not the changed entries, nor those that only put something
        back.
        """
        return [cell.entry for cell in self.cells if cell.role == "downstream"]

    def record(self) -> dict[str, Any]:
        """As protocol.ts wants it."""
        return {
            **{k: v for k, v in asdict(self).items() if k not in {"cells", "warnings", "lines"}},
            "cells": [
                {**asdict(c), "reasons": list(c.reasons), "needs": list(c.needs)}
                for c in self.cells
            ],
            "warnings": list(self.warnings),
        }


@dataclass(slots=True)
class _Draft:
    history: History
    versions: Versions
    reasons: dict[int, list[str]] = field(default_factory=dict)
    roles: dict[int, Role] = field(default_factory=dict)
    hermetic: list[str] = field(default_factory=list)
    todo: list[int] = field(default_factory=list)
    differing: Differing = field(default_factory=Differing)
    found: dict[int, dict[str, int]] = field(default_factory=dict)

    def find_inputs(self, index: int) -> dict[str, int]:
        """The things that an entry needs, with the version of each that it found."""
        if index not in self.found:
            versions = self.versions
            needs = versions.needs(index)
            self.found[index] = {thing: versions.before(thing, index) for thing in needs}
        return self.found[index]

    def add(self, index: int, role: Role, reason: str) -> None:
        if index not in self.roles or (role == "downstream" and self.roles[index] == "restores"):
            self.roles[index] = role
            self.todo.append(index)
        reasons = self.reasons.setdefault(index, [])
        if reason not in reasons and (self.roles[index] == role or not reasons):
            reasons.append(reason)


@dataclass(frozen=True, slots=True)
class _CallCounts:
    """Recorded calls by run: all; those that no live answer has taken the place of; of these the
    ones after the first changed reply.
    """

    all: Mapping[str, int]
    open: Mapping[str, int]
    later: Mapping[str, int]


def plan_rerun(
    history: History,
    changed: Iterable[int] | Lines,
    *,
    learned: Mapping[int, str] | Iterable[int] = (),
    calls: Mapping[str, int] | None = None,
    later: Mapping[str, int] | None = None,
    answered: Collection[str] = (),
    take: str = "",
    live: bool = True,
) -> Plan:
    """What to run again when the replies held by the entries `changed` differ.

    A mapping tells the lines of an entry at which its calls were made: what it did before them is
    as it was. `live`: in the kernel that ran them, so that values must be put back; False: what
    depends on it, and no more. `learned`: entries that a proof found to depend on it, with the
    reason where it is a mapping. `calls` counts the recorded calls of each taped run, for
    `from_tape`; `later` those that a changed run made after its first changed reply. `answered`:
    runs whose calls went live since, so that nothing of them is asked anew.
    """
    open_calls, open_later = (
        {run: count for run, count in (counts or {}).items() if run not in answered}
        for counts in (calls, later)
    )
    draft = _Draft(history, Versions(history))
    lines = dict(changed) if isinstance(changed, Mapping) else dict.fromkeys(changed)
    dependents, draft.differing = _trace_newest(history, lines)
    for index, reasons in dependents.items():
        for reason in reasons:
            draft.add(index, "changed" if index in lines else "downstream", reason)
    if isinstance(learned, Mapping):
        adopted = learned
    else:
        adopted = dict.fromkeys(learned, "a fresh replay gave something else here")
    for index, reason in adopted.items():
        draft.add(index, "downstream", reason)
    while live and draft.todo:
        index = draft.todo.pop()
        _restore_inputs(draft, history[index])
        _repeat_changes(draft, history[index])
    counts = _CallCounts(calls or {}, open_calls, open_later)
    return _build_plan(draft, counts, take, lines)


def _trace_newest(history: History, lines: Lines) -> tuple[dict[int, tuple[str, ...]], Differing]:
    """What depends on the change. Of a run that was replayed several times the newest counts, as
    its cell shows it; an older one where something that counts builds on it still.
    """
    dependents, differing = traced(history, lines)
    newest = {index for index in lines if _is_newest(history, index)}
    if len(newest) == len(lines):
        return dependents, differing
    last = {entry.index for entry in history.latest().values()}
    counts = traced(history, {index: lines[index] for index in newest})[0].keys() | last
    seen = differing.find_contributors(counts & dependents.keys())
    return {index: reasons for index, reasons in dependents.items() if index in seen}, differing


def _is_newest(history: History, index: int) -> bool:
    newest = history.of_run(history[index].run)
    return newest is None or newest.index == index


def _restore_inputs(draft: _Draft, entry: Execution) -> None:
    """Each thing it needs is live, comes from the plan, can be put back, or is made anew."""
    for thing, version in draft.find_inputs(entry.index).items():
        if version in draft.roles or draft.versions.last(thing) <= version:
            continue
        lost = draft.versions.lost(thing, version)
        bound = entry.strong if draft.roles[entry.index] == "restores" else entry.certain
        if lost is not None and thing in bound and thing not in entry.reads:
            continue  # it binds the name anew whatever it was
        if lost is not None:
            _add_makers(draft, thing, version, entry, lost)


def _add_makers(draft: _Draft, thing: str, version: int, user: Execution, lost: str) -> None:
    chain = [index for index in draft.versions.changers(thing) if index <= version]
    maker = next(
        (index for index in reversed(chain) if draft.versions.is_new_value(thing, index)), None
    )
    if maker is None:
        draft.hermetic.append(lost)
        return
    for index in chain:
        if index >= maker:
            verb = "makes" if index == maker else "changes"
            draft.add(index, "restores", f"{verb} `{thing}` for {user.title}: {lost}")


def _repeat_changes(draft: _Draft, entry: Execution) -> None:
    """Who changed in place what the entry makes or changes, must change it again."""
    for thing in draft.versions.list_changes(entry.index):
        index = draft.versions.next(
            thing, entry.index
        )  # who comes after that is added for it in turn
        if index is not None and not draft.versions.is_new_value(thing, index):
            depends = (
                draft.roles[entry.index] != "restores"
                and _may_differ(draft, entry.index, thing)
                and draft.differing.is_left(entry.index, index, thing)
            )
            draft.add(
                index,
                "downstream" if depends else "restores",
                f"changes {_format_thing(thing)} after {entry.title}",
            )
            if depends:
                draft.differing.add(index, thing)


def _may_differ(draft: _Draft, index: int, thing: str) -> bool:
    """Whether a thing may differ after an entry: then who changes it next leaves it otherwise, too."""
    if ":" in thing and not thing.startswith("ambient:"):
        return False
    return draft.differing.after(index, thing)


def _format_thing(thing: str) -> str:
    _, colon, rest = thing.partition(":")
    return rest if colon else f"`{thing}`"


def _build_plan(draft: _Draft, counts: _CallCounts, take: str, lines: Lines) -> Plan:
    cells = tuple(_build_cell(draft, draft.history[index], counts) for index in sorted(draft.roles))
    planned = [draft.history[cell.entry] for cell in cells]
    cell_names = {entry.cell or entry.index for entry in draft.history}
    return Plan(
        cells=cells,
        total=len(draft.history),
        warnings=tuple(_collect_warnings(planned)),
        hermetic=_explain_hermetic(draft),
        from_tape=sum(counts.all.get(entry.run, 0) for entry in planned if entry.run),
        maybe_live=sum(cell.asks for cell in cells),
        seconds=sum(entry.seconds for entry in planned),
        take=take,
        counted="cells" if len(cell_names) == len(draft.history) else "runs",
        lines={index: at for index, at in lines.items() if index in draft.roles},
    )


def _build_cell(draft: _Draft, entry: Execution, counts: _CallCounts) -> PlanCell:
    role = draft.roles[entry.index]
    live = {"downstream": counts.open, "changed": counts.later, "restores": {}}[role]
    needs = set(draft.find_inputs(entry.index).values())
    return PlanCell(
        entry=entry.index,
        cell=entry.cell,
        number=entry.number,
        title=title_of(entry.source),
        reasons=_choose_reasons(draft.reasons[entry.index]),
        role=role,
        asks=live.get(entry.run, 0),
        needs=tuple(sorted(needs & draft.roles.keys() - {BEGINNING})),
    )


def _choose_reasons(reasons: list[str]) -> tuple[str, ...]:
    """The two that tell most, and how many more there are."""
    chosen = [each for each in reasons if not each.endswith(" itself")] or reasons
    chosen.sort(key=lambda each: _VERBS.get(each.partition(" ")[0], len(_VERBS)))
    return tuple(
        chosen
        if len(chosen) <= _REASONS
        else [*chosen[: _REASONS - 1], f"and {len(chosen) - _REASONS + 1} more"]
    )


def _explain_hermetic(draft: _Draft) -> str | None:
    return None if not draft.hermetic else draft.hermetic[0]


def _collect_warnings(planned: Iterable[Execution]) -> list[str]:
    messages: dict[str, None] = {}
    for entry in planned:
        for note in entry.notes:
            messages[f"{entry.title} {note}"] = None
        if EVERYTHING in entry.reads:
            messages[
                f"{entry.title} runs code that is only known at run time: it may read any name"
            ] = None
    return list(messages)
