"""Which span stands below which: the spans of a book, in tree order, as values.

Of each cell the runs that count are shown (runs.Current), and what was added to them; superseded
runs are not. What a re-run asked otherwise, in a take, stands in its cell, among the calls that were
played; those that it did not ask again come last, as superseded. A call stands below the taped
function whose body made it (`parent`), else below the user's spans it was made in, else below its
cell; one that failed and was sent again, as SDKs do, below the call that sent it again last.
Brothers stand in the order in which they began.
Records may be made by hand: a parent that is not there, or a circle of parents, loses no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.cassette.index_entries import Entry, Holder, Overridden
from tape_jupyter.cassette.runs import Current, run_of, span_of
from tape_jupyter.spans.headers import (
    CELL,
    HTTP,
    MODEL,
    SPAN,
    CallHeader,
    by_run,
    duration_seconds,
    read_call_headers,
    seconds_of_moment,
)


@dataclass(slots=True)
class Node:
    """A span: `header` is a call's head, `record` its run's. `begin` and `end` are seconds of the
    epoch.
    """

    id: str
    kind: int
    depth: int
    record: Mapping[str, Any]
    begin: float
    end: float
    header: CallHeader | None = None
    name: str = ""
    calls: int = 0
    """How many calls stand below it."""
    ended: Mapping[str, Any] = field(default_factory=dict)
    """A cell's end mark: of the newest run of those that it shows."""
    added: int = 0
    """How many of a cell's calls a re-run asked otherwise."""
    superseded: bool = False
    """A recorded call that the newest re-run of its cell did not ask."""
    retried: bool = False
    """A call that failed and was sent again: it stands below the one that ended it."""

    held: float = 0.0
    """Seconds of a cell's time in which a person held it, as one steps."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(0.0, self.end - self.begin - self.held)


@dataclass(slots=True)
class Pending:
    """What runs now and is not on the tape yet: the run of a cell, and its calls that have begun."""

    run: str = ""
    calls: Sequence[CallHeader] = ()
    now: float = 0.0


NOTHING_RUNS = Pending()


def shown_runs(book: Holder) -> list[Mapping[str, Any]]:
    """The run records whose spans are shown, each followed by those that add to it.

    What answers the same request when an SDK sends it again after an injected fault (`mode: again`)
    is no run of a cell: it repeats calls that are shown.
    """
    kept = Current(map(run_of, book.runs)).kept
    records = {
        str(run.get("run")): run
        for run in book.runs
        if str(run.get("run")) in kept and run.get("mode") != "again"
    }
    additions: dict[str, list[Mapping[str, Any]]] = {}
    for name, record in records.items():
        if parent := kept[name].parent:
            additions.setdefault(parent, []).append(record)
    return [
        each
        for name, record in records.items()
        if not kept[name].parent
        for each in (record, *additions.get(name, ()))
    ]


def grow(book: Holder, heads: Iterable[CallHeader], pending: Pending = NOTHING_RUNS) -> list[Node]:
    """All spans in tree order."""
    groups = by_run(heads)
    for header in pending.calls:
        groups.setdefault(header.run, []).append(header)
    shown_records = [*shown_runs(book), *({"run": run} for run in groups if run not in book.by_run)]
    reruns = _reruns(shown_records, pending)
    within = {id(each) for records in reruns.values() for each in records}
    nodes: list[Node] = []
    for record in shown_records:
        name = str(record.get("run"))
        calls = groups.get(name, [])
        if id(record) in within:
            continue
        if name in reruns:
            nodes += _rerun_cell(book, record, reruns[name], groups)
        elif calls or not record.get("parent"):
            nodes += cell(record, book.ended.get(name), calls, pending)
    return nodes


def _reruns(shown_records: Iterable[Mapping[str, Any]], pending: Pending) -> dict[str, list[Any]]:
    """By the run of a cell: those that asked otherwise in its place and are over, oldest first."""
    reruns: dict[str, list[Any]] = {str(record.get("run")): [] for record in shown_records}
    for record in shown_records:
        run = run_of(record)
        if run.added and run.id != pending.run and run.parent in reruns:
            reruns[run.parent].append(record)
    return {name: records for name, records in reruns.items() if records}


def _rerun_cell(
    book: Holder,
    record: Mapping[str, Any],
    reruns: Sequence[Mapping[str, Any]],
    groups: Mapping[str, list[CallHeader]],
) -> Iterator[Node]:
    """A cell as it stands in a take: its recorded run, and the runs that asked otherwise."""
    name, newest = str(record.get("run")), str(reruns[-1].get("run"))
    added = [header for each in reruns for header in groups.get(str(each.get("run")), ())]
    calls = {span_of(header.run, header.id): header for header in (*groups.get(name, ()), *added)}
    ended = book.ended.get(newest, {})
    executed = dict.fromkeys(_what_ran(reruns[-1], ended, calls.values()) or calls)
    requested = [calls[each] for each in executed if each in calls]
    rest = [header._replace(span=()) for each, header in calls.items() if each not in executed]
    head = next(cell(record, book.ended.get(name), groups.get(name, [])))  # its time is its own
    head.ended, head.calls = ended, len(requested)
    head.added = sum(1 for header in requested if header.run != name)
    yield head
    yield from list(cell(record, None, requested, ordered=True))[1:]
    for node in list(cell(record, None, rest))[1:]:
        node.superseded = True
        yield node


def _what_ran(
    record: Mapping[str, Any], ended: Mapping[str, Any], calls: Iterable[CallHeader]
) -> list[str]:
    """The calls that a re-run went through, by their names (runs.span_of). Nothing where that is not
    known: it did not come to its end, or a reply was changed since.
    """
    executed, at = ended.get("ran"), seconds_of_moment(record.get("at"))
    if not isinstance(executed, list):
        return []
    entries = [header.entry for header in calls if isinstance(header.entry, Overridden)]
    later = (
        seconds_of_moment(each.head().get("at")) > at
        for each in entries
        if each.by != record.get("run")
    )
    return [] if any(later) else [str(name) for name in executed]


def cell(
    record: Mapping[str, Any],
    ended: Mapping[str, Any] | None,
    calls: list[CallHeader],
    pending: Pending = NOTHING_RUNS,
    *,
    ordered: bool = False,
) -> Iterator[Node]:
    """A cell run and all below it, by the time of its calls unless these are `ordered`. Its time is
    that of its own calls: one that another run answered, or a take, was made at another time.
    """
    name = str(record.get("run"))
    at = seconds_of_moment(record.get("at"))
    own_calls = [
        header
        for header in calls
        if header.run in ("", name) and type(header.entry) is not Overridden
    ]
    starts = [header.at for header in own_calls or calls if header.at]
    begin = min([at, *starts] if at else starts, default=0.0)
    last = max((_compute_end(header, begin) for header in own_calls or calls), default=begin)
    ended = ended or {}
    held = duration_seconds(ended.get("held"))
    over = at + duration_seconds(ended.get("seconds")) + held if at else begin
    end = max(last, over, pending.now if name == pending.run else begin)
    yield Node(name, CELL, 0, record, begin, end, calls=len(calls), ended=ended, held=held)
    brothers = calls if ordered else sorted(calls, key=lambda call: call.at)
    yield from _build_nodes(_Run(name, record, begin), brothers)


def _compute_end(header: CallHeader, begin: float) -> float:
    return (header.at or begin) + header.seconds


@dataclass(slots=True)
class _Run:
    """One run while its tree is made: `below` are the children of a container: a call's id, or a
    span's.
    """

    name: str
    record: Mapping[str, Any]
    begin: float
    below: dict[str, list[Node]] = field(default_factory=dict)
    spans: dict[tuple[str, str], Node] = field(default_factory=dict)

    def add_node(self, container: str, node: Node) -> None:
        self.below.setdefault(container, []).append(node)

    def within(self, container: str, name: str, header: CallHeader) -> str:
        """The id of the user's span of that name in a container; made when first met."""
        key = (container, name)
        node = self.spans.get(key)
        begin, end = header.at or self.begin, _compute_end(header, self.begin)
        if node is None:
            node = Node(
                f"{self.name}/#{len(self.spans) + 1}", SPAN, 0, self.record, begin, end, name=name
            )
            self.spans[key] = node
            self.add_node(container, node)
        node.begin, node.end = min(node.begin, begin), max(node.end, end)
        node.calls += 1
        return node.id


def find_retried(entries: Sequence[Entry]) -> frozenset[Entry]:
    """Those of a cell's calls that failed and were sent again."""
    calls = sorted(read_call_headers(entries), key=lambda header: header.at)
    again = _find_retries(calls)
    return frozenset(header.entry for header in calls if header.entry and id(header) in again)


def _find_retries(calls: Sequence[CallHeader]) -> dict[int, CallHeader]:
    """By the `id()` of a call that failed and whose request was sent again from the same place: the
    call that ended this, by its reply or as the last one.
    """
    sent: dict[tuple[Any, ...], list[CallHeader]] = {}
    for header in calls if any(header.failed for header in calls) else ():
        if header.entry is not None and header.kind in (MODEL, HTTP):
            key = (header.entry.match, header.entry.lineage, header.parent, header.span)
            sent.setdefault(key, []).append(header)
    last: dict[int, CallHeader] = {}
    for same in sent.values():
        answer = same[-1]
        for header in same[-2::-1]:
            if header.failed:
                last[id(header)] = answer
            else:
                answer = header
    return last


def _build_nodes(run: _Run, calls: list[CallHeader]) -> Iterator[Node]:
    retries = _find_retries(calls)
    if any(header.parent for header in calls):
        known = {header.id: header for header in calls}
    else:
        known = {}
    for header in calls:
        parent = known.get(header.parent) if header.parent != header.id else None
        container, path = "", header.span
        if parent is not None:
            container = parent.id
            if path[: len(parent.span)] == parent.span:
                path = path[len(parent.span) :]
            else:
                path = ()
        for name in path:
            container = run.within(container, name, header)
        answer = retries.get(id(header))
        container = container if answer is None else answer.id
        begin = header.at or run.begin
        run.add_node(
            container,
            Node(
                f"{header.run or run.name}/{header.id}",
                header.kind,
                0,
                run.record,
                begin,
                begin + header.seconds,
                header,
                retried=answer is not None,
            ),
        )
    yield from _walk_tree(run)


def _walk_tree(run: _Run) -> Iterator[Node]:
    """Depth first. What hangs in a circle of parents is never reached: it stands below the cell,
    after the rest.
    """
    yield from _walk_from(run, run.below.pop("", []))
    while run.below:
        yield from _walk_from(run, run.below.pop(next(iter(run.below))))


def _walk_from(run: _Run, roots: list[Node]) -> Iterator[Node]:
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        node.depth = node.depth or 1
        yield node
        children = run.below.pop(node.header.id if node.header is not None else node.id, None)
        if children:
            for child in children:
                child.depth = node.depth + 1
            stack += reversed(children)
