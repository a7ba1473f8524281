"""What differs between a good and a bad recording, as parts that a trial can take from the good one:
replies of calls, a cell's clock, its chance, its code. Reads, writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.audit.drift import Drift, of_runs
from tape_jupyter.audit.run_view import view_run
from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.records import request_section, response_section
from tape_jupyter.cassette.runs import RecordedRun
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.causes.sides import Side, SideSources
from tape_jupyter.experiments.trials.runner import Trial
from tape_jupyter.reports import diff
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session.pins.random import STATE

CLOCK, CHANCE, CODE, ENVIRONMENT = "clock", "chance", "code", "environment"
_PLUMBING = ("headers", "waits", "reads", "sha256", "cuts")
_ORDER = ("order", "timers")

Answer = tuple[str, str, Mapping[str, Any]]
Held = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that differs. `id` is the bad side's call id, or `clock:N`, `chance:N`, `code:N`
    for code cell N; `cell` is that cell, from 0. `bad` and `good` are the calls, of a reply.
    """

    id: str
    layer: str
    cell: int
    title: str
    answers: tuple[Answer, ...] = ()
    held: Mapping[str, Held] = field(default_factory=dict)
    source: str | None = None
    bad: Entry | None = None
    good: Entry | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell as the bad side ran it. `run` is its recording, None where it has none."""

    number: int
    id: str
    source: str
    run: RecordedRun | None = None


@dataclass(frozen=True, slots=True)
class Differences:
    """All parts; what only the good side asked (`added`, by the run that answers it); the cells;
    and in sentences what differs and is not swapped, by layer.
    """

    parts: tuple[Part, ...]
    added: Mapping[str, Sequence[Mapping[str, Any]]]
    cells: tuple[Cell, ...]
    unswapped: Mapping[str, tuple[str, ...]]

    def trial(self, numbers: Iterable[int], replies: Mapping[int, Mapping[str, Any]]) -> Trial:
        """The trial in which these parts are the good ones. `replies`: other responses, by part."""
        chosen = [(number, self.parts[number]) for number in sorted(set(numbers))]
        run_changes: dict[str, Held] = {}
        for _, part in chosen:
            for run, (changed, ended) in part.held.items():
                old = run_changes.get(run, ({}, {}))
                pins = {**old[0].get("pins", {}), **changed.get("pins", {})}
                run_changes[run] = ({**old[0], **changed, "pins": pins}, {**old[1], **ended})
        return Trial(
            answers=tuple(each for number, part in chosen for each in _choose_answers(part, replies.get(number))),
            added=self.added,
            held=run_changes,
            sources={part.cell: part.source for _, part in chosen if part.source is not None},
            first=min((part.cell for _, part in chosen), default=len(self.cells)),
        )  # fmt: skip


def _choose_answers(part: Part, reply: Mapping[str, Any] | None) -> tuple[Answer, ...]:
    return part.answers if reply is None else ((*part.answers[0][:2], reply),)


def differences(
    good: Side, bad: Side, sources: Sequence[str], ids: Sequence[str], code: tuple[SideSources, SideSources]
) -> Differences:  # fmt: skip
    """`sources` and `ids` are the notebook's code cells, `code` where the sides' code is found."""
    cells = notebook_cells(bad, sources, ids, code[1])
    at = {cell.run.id: cell.number for cell in cells if cell.run is not None}
    cell_of = {run.id: at.get(bad.parent(run.id), 0) for run in bad.runs}
    replies: list[Part] = []
    asked_by_good: list[Entry] = []
    alike: list[tuple[Entry, Entry]] = []
    for one, other in diff.pair_calls(bad.calls, good.calls):
        if one is None or other is None:
            asked_by_good += [other] if other is not None else []
        elif one is not other and _to_comparable(one) != _to_comparable(other):
            replies.append(_build_reply_part(one, other, cell_of[one.run]))
        elif one is not other:
            alike.append((one, other))
    pairs = _pair_cells(good, cells)
    swapped, unswapped = _compare_surroundings(good, bad, pairs, alike, code)
    parts = _name_uniquely([*replies, *swapped, *_compare_unrecorded_code(cells, pairs, code[0])])
    return Differences(
        parts, _collect_added_calls(good, bad, asked_by_good, pairs), tuple(cells), unswapped
    )


def _name_uniquely(parts: Sequence[Part]) -> tuple[Part, ...]:
    """A call id that two runs have is told with its run."""
    from dataclasses import replace

    ids = [part.id for part in parts]
    return tuple(
        replace(part, id=part.bad.name) if part.bad is not None and ids.count(part.id) > 1 else part
        for part in parts
    )


def layer_of(entry: Entry) -> str:
    head = entry.head()
    kind = str(head.get("kind", "call"))
    return f"{kind} {head['name']}" if kind == "tool" and head.get("name") else kind


def _build_reply_part(one: Entry, other: Entry, cell: int) -> Part:
    answer = (one.run, one.id, response_section(other.reply(), Secrets()))
    return Part(one.id, layer_of(one), cell, one.title, (answer,), bad=one, good=other)


def _to_comparable(entry: Entry) -> Any:
    """A reply as its record says it, without what no program reads of it: moments, sizes of reads."""
    section = response_section(entry.reply(), Secrets())
    return {key: value for key, value in section.items() if key not in _PLUMBING}


# ---------------------------------------------------------------- cells and their runs


def notebook_cells(
    side: Side, sources: Sequence[str], ids: Sequence[str], code: SideSources
) -> list[Cell]:
    """The notebook's code cells, each with the recording that is of it and the code it was made of."""
    left = list(side.recorded)
    runs_by_cell: dict[int, RecordedRun] = {}
    for number, (source, cell) in enumerate(zip(sources, ids, strict=True)):
        same = [run for run in left if _is_run_of(run, source, cell)]
        if len(same) == 1 or (same and same[0].cell.cell_id):
            runs_by_cell[number] = same[-1]
            left.remove(same[-1])
        elif same and sum(_is_run_of(same[0], each, "") for each in sources) == len(same):
            runs_by_cell[number] = same[0]  # the same source in as many cells
            left.remove(same[0])
    counts = {side.record(run.id).get("count"): run for run in left}
    code_cells: list[Cell] = []
    number_run = 0
    for number, (source, cell) in enumerate(zip(sources, ids, strict=True)):
        number_run += bool(source.strip())
        run = runs_by_cell.get(number) or _match_by_count(counts.get(number_run), code)
        if run is not None and number not in runs_by_cell:
            run_source = code.find_source(run)
        else:
            run_source = None
        code_cells.append(Cell(number, cell, _choose_source(source, run_source), run))
    return code_cells


def _match_by_count(run: RecordedRun | None, code: SideSources) -> RecordedRun | None:
    """A run whose cell has another source now, found as the cell that ran as the same `In [n]`."""
    if run is not None and (run.cell.cell_id == "" or code.find_source(run)):
        return run
    return None


def _choose_source(source: str, run_source: str | None) -> str:
    return source if run_source is None else run_source


def _is_run_of(run: RecordedRun, source: str, cell: str) -> bool:
    from tape_jupyter.cassette.cell_sources import digests

    if run.cell.cell_id and cell:
        return run.cell.cell_id == cell
    return run.cell.source in digests(source)


def _pair_cells(good: Side, cells: Sequence[Cell]) -> list[tuple[Cell, RecordedRun]]:
    """The bad side's recordings and the good side's of the same cells."""
    left = list(good.recorded)
    pairs: list[tuple[Cell, RecordedRun]] = []
    waiting = [cell for cell in cells if cell.run is not None]
    for matches in (_is_same_cell, _is_same_place):
        for cell in list(waiting):
            run = next((each for each in left if matches(cell, each, good)), None)
            if run is not None:
                pairs.append((cell, run))
                left.remove(run)
                waiting.remove(cell)
    return sorted(pairs, key=lambda pair: pair[0].number)


def _is_same_cell(cell: Cell, run: RecordedRun, _: Side) -> bool:
    return cell.run is not None and (
        run.id == cell.run.id or run.cell.same_cell(cell.run.cell) or run.cell.cell_id == cell.id
    )


def _is_same_place(cell: Cell, run: RecordedRun, good: Side) -> bool:
    """An edited cell that ran as the same `In [n]`."""
    return cell.run is not None and good.record(run.id).get("count") == cell.number + 1


# ---------------------------------------------------------------- calls that only the good side made


def _collect_added_calls(
    good: Side, bad: Side, entries: Sequence[Entry], pairs: Sequence[tuple[Cell, RecordedRun]]
) -> dict[str, list[Mapping[str, Any]]]:
    """By the bad side's run of the same cell. A cell that asked nothing there has no run: its calls
    are with the newest, which answers for it.
    """
    same = {run.id: cell.run.id for cell, run in pairs if cell.run is not None}
    newest = bad.recorded[-1].id if bad.recorded else None
    secrets, calls_by_run = Secrets(), dict[str, list[Mapping[str, Any]]]()
    for entry in entries:
        run = same.get(good.parent(entry.run), newest)
        if run is not None:
            call_record = {
                "head": {**entry.head(), "call": entry.id, "match": entry.match},
                "request": request_section(entry.request(), secrets),
                "response": response_section(entry.reply(), secrets),
            }
            calls_by_run.setdefault(run, []).append(call_record)
    return calls_by_run


# ---------------------------------------------------------------- clock, chance, code, environment


def _compare_surroundings(
    good: Side, bad: Side, pairs: Sequence[tuple[Cell, RecordedRun]],
    alike: Sequence[tuple[Entry, Entry]], code: tuple[SideSources, SideSources],
) -> tuple[list[Part], dict[str, tuple[str, ...]]]:  # fmt: skip
    parts: list[Part] = []
    unswapped: dict[str, list[str]] = {}
    for cell, run in pairs:
        assert cell.run is not None
        if run.id == cell.run.id:
            continue
        parts += _compare_clocks(good, bad, cell, run, alike)
        parts += _compare_chance(good, bad, cell, run)
        code_change = _compare_code(cell, run, code[0])
        if isinstance(code_change, Part):
            parts.append(code_change)
        elif code_change:
            unswapped.setdefault(CODE, []).append(code_change)
    drifts = [each for cell, run in pairs for each in _find_drifts(good, bad, cell, run)]
    if drifts:
        unswapped[ENVIRONMENT] = list(dict.fromkeys(map(str, drifts)))
    return parts, {layer: tuple(sentences) for layer, sentences in unswapped.items()}


_AROUND = ("library", "python", "platform", "local module", "environment", "hash seed", "git diff")


def _find_drifts(good: Side, bad: Side, cell: Cell, run: RecordedRun) -> Iterator[Drift]:
    """What lies around a cell and is of no other layer."""
    assert cell.run is not None
    one = view_run(good.cassette, run.id, limit=0)
    other = view_run(bad.cassette, cell.run.id, limit=0)
    yield from (each for each in of_runs(one, other) if each.what.startswith(_AROUND))


def _compare_clocks(
    good: Side, bad: Side, cell: Cell, run: RecordedRun, alike: Sequence[tuple[Entry, Entry]]
) -> Iterator[Part]:
    """When the cell ran: its clock and time zone, what it read of it, the order of its replies, and
    how long those took that are else alike.
    """
    assert cell.run is not None
    old, new = bad.record(cell.run.id), good.record(run.id)
    pins = {
        name: new.get("pins", {}).get(name)
        for name in ("clock", "timezone")
        if new.get("pins", {}).get(name) != old.get("pins", {}).get(name)
    }
    told_old = bad.cassette.ended.get(cell.run.id, {})
    told_new = good.cassette.ended.get(run.id, {})
    if told_old.get("clock") != told_new.get("clock"):
        ended = {"clock": told_new.get("clock")}
    else:
        ended = {}
    call_ids = {entry.id for entry in bad.calls if bad.parent(entry.run) == cell.run.id}
    if _parse_order_calls(told_new) <= call_ids:
        ended |= {
            key: told_new.get(key) for key in _ORDER if told_old.get(key) != told_new.get(key)
        }
    late = [
        (one.run, one.id, response_section(other.reply(), Secrets()))
        for one, other in alike
        if bad.parent(one.run) == cell.run.id and _read_waits(one) != _read_waits(other)
    ]
    if pins or ended or late:
        run_changes = {cell.run.id: ({"pins": pins}, ended)}
        yield Part(
            f"{CLOCK}:{cell.number + 1}",
            CLOCK,
            cell.number,
            _format_title(cell),
            tuple(late),
            run_changes,
        )


def _parse_order_calls(ended: Mapping[str, Any]) -> set[str]:
    """The calls that a run's order names: `+78a670b1*2 @ask-2#1` (determinism/order.py)."""
    tokens = str(ended.get("order") or "").split()
    return {token.lstrip("+=").partition("*")[0] for token in tokens if "@" not in token}


def _read_waits(entry: Entry) -> Any:
    return response_section(entry.reply(), Secrets()).get("waits")


def _compare_chance(good: Side, bad: Side, cell: Cell, run: RecordedRun) -> Iterator[Part]:
    """Where its draws came from: the seed, and where the generators stood."""
    assert cell.run is not None
    old, new = bad.record(cell.run.id), good.record(run.id)
    one, other = (each.get("pins", {}).get("random") for each in (old, new))
    if other is None or one == other:
        return
    kit = {key: value for key, value in old.get("kit", {}).items() if not key.startswith(STATE)}
    kit |= {key: value for key, value in new.get("kit", {}).items() if key.startswith(STATE)}
    run_changes: dict[str, Held] = {cell.run.id: ({"pins": {"random": other}, "kit": kit}, {})}
    yield Part(
        f"{CHANCE}:{cell.number + 1}", CHANCE, cell.number, _format_title(cell), (), run_changes
    )


def _compare_code(cell: Cell, run: RecordedRun, code: SideSources) -> Part | str:
    """The cell's code of the good side; a sentence where it differs and is not at hand."""
    assert cell.run is not None
    if run.cell.source == cell.run.cell.source:
        return ""
    source = code.find_source(run)
    if source is None:
        return (
            f"the code of cell {cell.number + 1} differs, and the good side's code is not available"
        )
    return Part(f"{CODE}:{cell.number + 1}", CODE, cell.number, _format_title(cell), source=source)


def _compare_unrecorded_code(
    cells: Sequence[Cell], pairs: Sequence[tuple[Cell, RecordedRun]], code: SideSources
) -> Iterator[Part]:
    """Code of cells that no tape tells of, since they asked nothing: by the two notebooks."""
    recorded = {cell.number for cell, _ in pairs}
    theirs = code.cells()
    by_id = {name: source for name, source in theirs if name}
    for cell in cells:
        place = theirs[cell.number][1] if len(theirs) == len(cells) else cell.source
        source = by_id.get(cell.id, place)
        if theirs and cell.number not in recorded and source.strip() != cell.source.strip():
            yield Part(
                f"{CODE}:{cell.number + 1}", CODE, cell.number, _format_title(cell), source=source
            )


def _format_title(cell: Cell) -> str:
    from tape_jupyter.cassette.cell_sources import title_of

    return f"cell {cell.number + 1}: {title_of(cell.source)}"


def require_in_common(good: Side, bad: Side) -> None:
    """Raises TapeUsageError where they are one recording, or of different notebooks."""
    one, other = ([run.cell for run in each.recorded] for each in (good, bad))
    if not any(a.same_cell(b) for a in one for b in other) and not _is_same_folder(good, bad):
        raise TapeUsageError(
            f"{good.name} and {bad.name} hold no cell in common: they are of different notebooks"
        )


def _is_same_folder(good: Side, bad: Side) -> bool:
    """Whether both lie in one .tapes folder, so that every cell may have been edited."""
    return good.cassette.root.resolve().parent == bad.cassette.root.resolve().parent
