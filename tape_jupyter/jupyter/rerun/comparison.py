"""Before and after a re-run: outputs cell by cell, calls aligned, variables that changed. Values
only, in the shapes of protocol.ts; a person's values are looked at, never asked to show themselves.

The calls of a cell before and after it ran again, aligned.
"""

from __future__ import annotations

import csv
import io
import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import SequenceMatcher, unified_diff
from html.parser import HTMLParser
from types import FunctionType, ModuleType
from typing import Any, Literal

from tape_jupyter.cassette.cassette import Cassette, Entry, Overridden
from tape_jupyter.comparison import outputs
from tape_jupyter.core.call import FunctionCall, Reply
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.errors import CassetteError
from tape_jupyter.jupyter.rerun.outputs import Output
from tape_jupyter.session.cell import TapedCell
from tape_jupyter.spans.titles import summarise_call
from tape_jupyter.spans.tree import find_retried

Kind = Literal["text", "table", "image", "error"]
Mark = Literal["same", "changed", "added", "gone"]

MOST_TEXT = 20_000
"""Characters of one output that a comparison holds."""
_IMAGES = ("image/png", "image/jpeg")


@dataclass(frozen=True, slots=True)
class OutputChange:
    """Text, CSV of a table, or a data: URL of an image; None where there was none."""

    kind: Kind
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell that ran: its outputs where they differ. `cell` is the front end's id, `number` its
    prompt's.
    """

    cell: str
    number: int | None
    title: str
    outputs: tuple[OutputChange, ...] = ()

    @property
    def same(self) -> bool:
        return not self.outputs


@dataclass(frozen=True, slots=True)
class SpanChange:
    """A call before and after, by span id ("RUN/CALL")."""

    before: str | None
    after: str | None
    name: str
    mark: Mark
    note: str = ""


@dataclass(frozen=True, slots=True)
class VariableChange:
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RerunProof:
    """What a fresh kernel says of it; `adopt` are ids of cells that changed there."""

    state: Literal["running", "proved", "differs", "not provable"] = "not provable"
    text: str = ""
    adopt: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a re-run came to. `ran` counts cells, `skipped` and `stopped` are sentences."""

    take: str
    ran: int
    cells: tuple[CellChange, ...] = ()
    spans: tuple[SpanChange, ...] = ()
    variables: tuple[VariableChange, ...] = ()
    skipped: tuple[str, ...] = ()
    stopped: str | None = None
    note: str = ""
    """What else there is to know, in sentences."""
    proof: RerunProof = field(default_factory=RerunProof)

    def record(self) -> dict[str, Any]:
        """As protocol.ts has it."""
        told = asdict(self)
        for cell, change in zip(told["cells"], self.cells, strict=True):
            cell["same"] = change.same
        return told

    def text(self) -> str:
        """For people, in a terminal or below a cell."""
        changed = [cell for cell in self.cells if not cell.same]
        lines = [
            f"re-run with take {self.take}: {format_count(self.ran, 'cell')} ran, {len(changed)} changed"
        ]
        for cell in self.cells:
            lines.append(
                f"{_format_number(cell.number)} {cell.title}: {'the same' if cell.same else 'changed'}"
            )
            lines += [f"  {line}" for each in cell.outputs for line in _format_change(each)]
        calls = [span for span in self.spans if span.mark != "same"]
        if calls:
            lines.append("calls:")
            lines += [
                f"  {span.mark:8}{span.name}{f' ({span.note})' if span.note else ''}"
                for span in calls
            ]
        if self.variables:
            lines.append("variables:")
            lines += [f"  {each.name}: {each.before} -> {each.after}" for each in self.variables]
        lines += [f"not run: {each}" for each in self.skipped]
        lines += [f"stopped: {self.stopped}"] if self.stopped else []
        lines += [self.note] if self.note else []
        lines += [f"proof: {self.proof.text}"] if self.proof.text else []
        return "\n".join(lines)


def _format_change(change: OutputChange) -> list[str]:
    """A diff of text; an image is only named."""
    if change.kind == "image":
        return ["(another image)" if change.before and change.after else "(an image)"]
    before, after = ((each or "").splitlines() for each in (change.before, change.after))
    return list(unified_diff(before, after, lineterm="", n=1))[3:] or [f"({change.kind})"]


def _format_number(number: int | None) -> str:
    return f"[{number}]" if number is not None else "[ ]"


# ---------------------------------------------------------------- outputs


def outputs_changed(before: Sequence[Output], after: Sequence[Output]) -> tuple[OutputChange, ...]:
    """The outputs that differ, each beside what stood in its place; () where a cell shows the same."""
    if outputs.same_outputs(before, after):
        return ()
    old, new = list(_collect_parts(before)), list(_collect_parts(after))
    matched = SequenceMatcher(
        None, [kind for kind, _ in old], [kind for kind, _ in new], autojunk=False
    )
    changes: list[OutputChange] = []
    for what, i, j, k, m in matched.get_opcodes():
        if what == "equal":
            pairs = zip(old[i:j], new[k:m], strict=True)
            changes += [
                OutputChange(one[0], one[1], two[1]) for one, two in pairs if one[1] != two[1]
            ]
        else:
            changes += [OutputChange(kind, content, None) for kind, content in old[i:j]]
            changes += [OutputChange(kind, None, content) for kind, content in new[k:m]]
    return tuple(changes)


def _collect_parts(cell_outputs: Iterable[Output]) -> Iterable[tuple[Kind, str]]:
    """A cell's outputs as they are compared: neighbouring texts of a stream as one, the tape's own
    summary left out.
    """
    for output in outputs.merge_streams(
        [dict(each) for each in cell_outputs if not outputs.is_summary(each)]
    ):
        if output["output_type"] == "stream":
            yield "text", _cut_text(outputs.join_lines(output["text"]))
        elif output["output_type"] == "error":
            yield "error", _cut_text(f"{output.get('ename')}: {output.get('evalue')}")
        elif data := output.get("data"):
            yield _build_part(data)


def _build_part(data: Mapping[str, Any]) -> tuple[Kind, str]:
    for kind in _IMAGES:
        if kind in data:
            return (
                "image",
                f"data:{kind};base64,{outputs.join_lines(data[kind]).replace(chr(10), '')}",
            )
    html = outputs.join_lines(data.get("text/html", ""))
    if "<table" in html and (csv_text := table_csv(html)):
        return "table", _cut_text(csv_text)
    return "text", _cut_text(outputs.join_lines(data.get("text/plain", html)))


def _cut_text(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}\n... {len(text) - MOST_TEXT:,} more characters"


class _Table(HTMLParser):
    """The cells of a page's tables, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._in_cell = False

    # html.parser's
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th", "tr", "table")

    def handle_data(self, data: str) -> None:
        if self._in_cell and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def table_csv(html: str) -> str:
    """A table as it was shown, as CSV: what a person saw of a DataFrame, without asking its values
    again.
    """
    page = _Table()
    page.feed(html)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [cell.strip() for cell in row] for row in page.rows if row
    )
    return text.getvalue()


# ---------------------------------------------------------------- variables


class _Short(reprlib.Repr):
    """Short words for values of known types; of any other only its type, since its repr is a
    person's code.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 80
        self.maxlevel = 3

    def repr_instance(self, x: Any, level: int) -> str:  # noqa: ARG002 - reprlib's
        kind = type(x)
        if kind in (float, complex, bool, type(None), range, bytearray, slice):
            return repr(x)
        if kind is bytes:
            return repr(x[:40])
        shape = None
        if kind.__module__.partition(".")[0] in ("numpy", "pandas", "polars", "torch"):
            shape = _read_shape(x)
        return f"<{kind.__name__}{' ' + 'x'.join(map(str, shape)) if shape else ''}>"


def _read_shape(value: Any) -> tuple[int, ...] | None:
    shape = getattr(value, "shape", None)
    return tuple(shape) if isinstance(shape, tuple) else None


_short = _Short()


def short_value(value: Any) -> str:
    """At most a line for a value; runs none of a person's code."""
    if type(value) in (
        str,
        int,
        float,
        complex,
        bool,
        type(None),
        list,
        tuple,
        dict,
        set,
        frozenset,
        bytes,
    ):
        return _short.repr(value)
    return _short.repr_instance(value, 1)


def shorts(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """The notebook's variables among these names, as short words ("" where there is none)."""
    values = {}
    for name in names:
        value = namespace.get(name, namespace)
        if (
            name.isidentifier()
            and not name.startswith("_")
            and not isinstance(value, ModuleType | FunctionType | type)
        ):
            values[name] = short_value(value) if value is not namespace else ""
    return values


def variables_changed(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[VariableChange, ...]:
    names = sorted(set(before) | set(after))
    pairs = ((name, before.get(name, ""), after.get(name, "")) for name in names)
    return tuple(VariableChange(name, old, new) for name, old, new in pairs if old != new)


_NOTES = {
    "live": "went live",
    "stale": "stale: recorded for another request",
    "hand": "written by hand",
}


def calls_changed(run: str, cell: TapedCell, number: int | None = None) -> list[SpanChange]:
    """`run` is the recording that the cell repeats, `cell` the taped cell that is over, `number` what
    stands beside it. What failed and was sent again is no call of its own beside the one that ended
    it.
    """
    book = cell.cassette
    if book is None:
        return []
    made = [entry for entry in map(_to_recorded_call, book.calls) if entry.run == run]
    retried = find_retried(made)
    recorded = {entry.name: entry for entry in made if entry not in retried}
    served = [e for e in cell.execution.played if e.run == run and e not in retried]
    changes = [
        _compare_calls(recorded.pop(entry.name, None) or _to_recorded_call(entry), entry)
        for entry in served
    ]
    new = [entry for entry in book.calls if cell.recording.run and entry.run == cell.recording.run]
    added = [*(each for each in cell.execution.played if each.run != run), *new]
    again = find_retried(added)
    for entry in (each for each in added if each not in again):
        old = recorded.pop(str(entry.head().get("frozen", "")), None)
        changes.append(_compare_calls(old or _pop_similar_call(recorded, entry), entry))
    gone = (
        SpanChange(name, None, old.title, "gone", _summarise_reply(old))
        for name, old in recorded.items()
    )
    where = f"{_format_number(number)} " if number is not None else ""
    return [replace(each, name=f"{where}{each.name}") for each in (*changes, *gone)]


def played_tools(cell: TapedCell) -> list[str]:
    """The names of the tools whose recorded values it was given; those that a person wrote are not
    among them.
    """
    played = [entry for entry in cell.execution.played if not isinstance(entry, Overridden)]
    requests = [entry.request() for entry in played if not entry.head().get("diverged")]
    return [request.name for request in requests if isinstance(request, FunctionCall)]


def mingled_tools(run: str, cell: TapedCell) -> list[str]:
    """The names of the tools that were given what they changed when it was recorded, where calls
    that ran beside them then are others now, or the other way round: what was whose is not known.
    """
    if cell.cassette is None:
        return []
    played = {e.id for e in cell.execution.played if e.run == run and not isinstance(e, Overridden)}
    tool_names: dict[str, None] = {}
    for entry in map(_to_recorded_call, cell.cassette.calls):
        if entry.run != run or entry.head().get("kind") != "tool":
            continue
        group = {entry.id, *entry.did().get("beside", ())}
        if len(group) > 1 and group & played and not group <= played:
            tool_names[entry.title] = None
    return list(tool_names)


def gave_recorded(title: str, tool: str, variables: Collection[str]) -> str:
    """That a tool gave its recorded value, though variables that it asks for are otherwise."""
    names = ", ".join(f"`{each}`" for each in sorted(variables))
    return f"{title} {tool} gave its recorded value, but {names}, which it reads, differs now"


def beside_others(title: str, tool: str) -> str:
    """That what a mingled tool changed is not known."""
    return (
        f"{title}: what {tool} changed is not told apart from what ran beside it when it was recorded, and "
        "not all of that is as it was"
    )


def calls_of_take(take: Cassette, runs: Collection[str]) -> list[SpanChange]:
    """The calls of these recordings, each beside what the take answers in its place."""
    return [
        _compare_calls(_to_recorded_call(entry), entry) for entry in take.calls if entry.run in runs
    ]


def _to_recorded_call(entry: Entry) -> Entry:
    return entry.recorded if isinstance(entry, Overridden) else entry


def _pop_similar_call(left: dict[str, Entry], entry: Entry) -> Entry | None:
    """The recorded call that it took the place of: the first that is left with its kind and name."""
    same = next((name for name, old in left.items() if old.title == entry.title), None)
    return left.pop(same) if same is not None else None


def _compare_calls(old: Entry | None, new: Entry) -> SpanChange:
    how = _NOTES.get(str(new.head().get("diverged", "")), "")
    if old is None:
        said = ", ".join(filter(None, (how, _summarise_reply(new))))
        return SpanChange(None, new.name, new.title, "added", said)
    mark: Mark = "changed" if old is not new else "same"
    said = _summarise_reply(new) if mark == "same" else answers_changed(old, new)
    return SpanChange(old.name, new.name, new.title, mark, ", ".join(filter(None, (how, said))))


def answers_changed(old: Entry | None, new: Entry | None) -> str:
    """What was answered and is answered now, where that differs; of one call alone what it is
    answered.
    """
    answers = [_summarise_reply(each) for each in (old, new) if each is not None]
    return " -> ".join(answers) if len(set(answers)) == len(answers) else ""


def _summarise_reply(entry: Entry) -> str:
    """In a few words: what a tool returned, what else happened."""
    try:
        reply = entry.reply()
    except CassetteError:
        return ""
    if isinstance(reply, Reply):
        return summarise_call(entry)
    return short_value(reply.value if reply.error is None else reply.error)
