"""`tape rows NB|FOLDER`: a row a model call, a tool call or a run, for tables and evaluations.

A row is plain JSON. `input` and `output` are what was asked and answered: messages as chat APIs
have them and a text (or the provider's message, where it is more than one text); a tool's arguments
and its value, types marked as in the cassette; any other body as it is. `expected` is what a person
put in the reply's place in the take that is read. `cost` is US dollars at list price, times are in
seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import cell_of
from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.cassette.runs import RESENT, current_run_ids
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.exporters import conversations, exporting
from tape_jupyter.importers import neutral
from tape_jupyter.providers import editing
from tape_jupyter.reports import gaps, listing
from tape_jupyter.session.summary_rows import row_of_entry

if TYPE_CHECKING:
    import pandas as pd

Of = Literal["call", "model", "tool", "run"]
Row = dict[str, Any]
_LINE_ENDS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}
"""What JSON leaves in a text, and some programs take for the end of a line."""
TYPES = {
    "row": "string", "kind": "category", "notebook": "string", "cassette": "string", "take": "string",
    "run": "string", "call": "string", "cell": "string", "at": "datetime64[ns, UTC]", "name": "string",
    "provider": "category", "model": "string", "input": "object", "output": "object", "expected": "object",
    "error": "string", "tags": "object", "tokens_in": "Int64", "tokens_out": "Int64", "cost": "float64",
    "seconds": "float64",
}  # fmt: skip
"""The keys of a row, and the types of its columns in a frame."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Where rows were written, and how many."""

    path: Path
    count: int
    passed_over: int = 0

    def record(self) -> dict[str, Any]:
        return {"written": str(self.path), "rows": self.count, "not in it": self.passed_over}

    def text(self) -> str:
        left = f" ({self.passed_over} that are no model call are not in it)"
        return f"{self.path}: {format_count(self.count, 'row')}{left if self.passed_over else ''}"


def rows(
    where: str | Path,
    of: Of = "call",
    take: str = "",
    name: str | None = None,
    tell: Tell = ignore_progress,
) -> list[Row]:
    """The rows of what a replay uses: of a notebook, a cassette, or all below a folder.

    `of`: every call, model calls, tool calls (and retrievals), or runs of cells. `take`: as in that
    take, of those cassettes that have it. Raises TapeUsageError, CassetteError.
    """
    top = Path(where)
    cassettes = gaps.cassettes_below(top, name)
    having = [path for path in cassettes if not take or take in files.take_names(path)]
    if not having:
        files.require_take(cassettes[0], take)
    collected: list[Row] = []
    for number, path in enumerate(having, 1):
        tell(f"reading {path.name}", number, len(having))
        book = Cassette.open(path)
        collected += rows_of(book.take(take) if take else book, of)
    return collected


def rows_frame(
    where: str | Path, of: Of = "call", take: str = "", name: str | None = None
) -> pd.DataFrame:
    """The same as a pandas frame (TYPES). Raises TapeUsageError where pandas is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise TapeUsageError(
            "a frame needs pandas, which is not installed here: pip install pandas"
        ) from error
    records = rows(where, of, take, name)
    return pd.DataFrame(records, columns=list(TYPES)).astype(TYPES)


def rows_of(book: Cassette, of: Of = "call") -> Iterator[Row]:
    """The rows of one cassette or take, in the order of its records."""
    used = current_run_ids(book.runs)
    calls = [entry for entry in book.calls if entry.run in used]
    if of == "run":
        yield from (_build_run_row(book, run, calls) for run in book.runs if run["run"] in used)
        return
    kinds = {"model": ("model",), "tool": ("tool", "retrieval")}.get(of)
    for entry in calls:
        if kinds is None or entry.head().get("kind") in kinds:
            yield _build_call_row(book, entry)


def _describe_place(book: Cassette, run: str) -> Row:
    root = book.root
    has_notebook = root.parent.suffix == ".tapes"
    return {
        "notebook": str(root.parent.with_suffix(".ipynb")) if has_notebook else "", "cassette": str(root),
        "take": files.take_name(book.path) if book.base is not None else "", "run": run,
        "cell": cell_of(book.by_run.get(run, {})),
    }  # fmt: skip


def _build_call_row(book: Cassette, entry: Entry) -> Row:
    by_hand = isinstance(entry, Overridden) and not entry.by and entry.head().get("edit") != RESENT
    summary = row_of_entry(entry)
    recorded = entry.recorded if by_hand and isinstance(entry, Overridden) else entry
    return {
        "row": entry.name, "kind": summary.kind, **_describe_place(book, entry.run), "call": entry.id,
        "at": entry.head().get("at"), "name": summary.name, "provider": summary.provider or None,
        "model": summary.name if summary.kind == "model" else None, "input": input_of(entry),
        "output": output_of(recorded), "expected": output_of(entry) if by_hand else None,
        "error": summary.error or None, "tags": dict(summary.tags), "tokens_in": summary.tokens_in,
        "tokens_out": summary.tokens_out, "cost": None if summary.cost is None else float(summary.cost),
        "seconds": summary.seconds,
    }  # fmt: skip


def _build_run_row(book: Cassette, run: dict[str, Any], calls: Sequence[Entry]) -> Row:
    summaries = [row_of_entry(entry) for entry in calls if entry.run == run["run"]]
    end = book.ended.get(run["run"], {})
    priced = [float(each.cost) for each in summaries if each.cost is not None]
    tags = {key: value for each in summaries for key, value in each.tags.items()}
    return {
        "row": run["run"], "kind": "run", **_describe_place(book, run["run"]), "call": None, "at": run.get("at"),
        "name": run.get("title") or cell_of(run), "provider": None, "model": None,
        "input": {"calls": len(summaries)}, "output": {"outcome": end.get("outcome", "incomplete")}, "expected": None,
        "error": end.get("error"), "tags": tags, "tokens_in": sum(each.tokens_in or 0 for each in summaries),
        "tokens_out": sum(each.tokens_out or 0 for each in summaries), "cost": sum(priced) if priced else None,
        "seconds": sum(each.seconds for each in summaries),
    }  # fmt: skip


def input_of(entry: Entry) -> Any:
    """What was asked: chat messages where it asked a model for them."""
    request, reply = entry.request(), entry.reply()
    if isinstance(request, FunctionCall):
        return dict(request.arguments)
    if entry.head().get("kind") == "model" and isinstance(reply, Reply):
        conversation = conversations.export_conversation(request, reply)
        chat = neutral.Conversation(
            system=conversation.system, input_messages=list(conversation.input_messages)
        )
        if conversation.input_messages:
            return neutral.request_body("openai_chat", chat)["messages"]
    body = listing.readable_body(request.body, request.headers)
    return body if entry.head().get("kind") == "model" else {
        "method": request.method, "url": request.url, "body": body,
    }  # fmt: skip


def output_of(entry: Entry) -> Any:
    """What was answered: the text where that is all there is; None for an error of a function."""
    request, reply = entry.request(), entry.reply()
    if isinstance(reply, Value):
        return reply.value if reply.error is None else None
    if isinstance(request, Request) and entry.head().get("kind") == "model":
        messages = conversations.export_conversation(request, reply).output_messages
        parts = [part for each in messages for part in neutral.parts_of(each)]
        if len(parts) == 1 and parts[0].get("type", "text") == "text":
            return parts[0].get("content", parts[0].get("text"))
        if (message := editing.reply_message(request, reply)) is not None:
            return message
    if reply.chunks:
        return listing.readable_body(reply.readable, reply.headers)
    return None


# ---------------------------------------------------------------- files


def json_lines(records: Sequence[Row], form: str = "jsonl") -> list[str]:
    """The rows as JSON lines; `evals`: model calls as samples of OpenAI's Evals."""
    if form == "evals":
        records = [_build_sample(row) for row in records if row["kind"] == "model"]
    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in records)
    return [line.translate(_LINE_ENDS) for line in lines]


def _build_sample(row: Row) -> Row:
    """`input` and `ideal`, which Evals reads; `metadata` is for whoever reads it back."""
    ideal = row["output"] if row["expected"] is None else row["expected"]
    kept = ("row", "notebook", "cassette", "take", "model", "tags")
    text = ideal if isinstance(ideal, str) else json.dumps(ideal, ensure_ascii=False)
    return {"input": row["input"], "ideal": text, "metadata": {key: row[key] for key in kept}}


def write_rows(
    where: Path, out: Path, records: Sequence[Row], form: str, on_progress: Tell
) -> WrittenRows:
    """Write them to a new file. Raises TapeUsageError where it is there, NotExported where they
    hold a secret, CassetteError where it cannot be written.
    """
    lines = json_lines(records, form)
    exporting.write_files(
        where, {out: "".join(f"{line}\n" for line in lines).encode()}, on_progress
    )
    return WrittenRows(out, len(lines), len(records) - len(lines))


# ---------------------------------------------------------------- rows back as a take


@dataclass(frozen=True, slots=True)
class ReadRows:
    """What rows were made of: the takes, which calls answer otherwise in them, how many rows said
    what was recorded.
    """

    takes: tuple[Path, ...]
    changed: tuple[str, ...]
    same: int

    def record(self) -> dict[str, Any]:
        takes = [{"take": files.take_name(path), "path": str(path)} for path in self.takes]
        return {"takes": takes, "changed": list(self.changed), "same": self.same}

    def text(self) -> str:
        if not self.takes:
            return f"{format_count(self.same, 'row')} as recorded: no take was written"
        names = [f"take {files.take_name(path)} ({path})" for path in self.takes]
        calls = format_count(len(self.changed), "call")
        return "\n".join([
            *names, f"  {calls} answered differently: {', '.join(self.changed)}",
            f"  {format_count(self.same, 'row')} as recorded",
        ])  # fmt: skip


def read_back(where: str | Path, source: Path, take: str = "", name: str | None = None) -> ReadRows:
    """Make a take of what rows say otherwise than the recording: `expected`, or `ideal`, else
    `output`.

    A row names its call by `row` (RUN/CALL). Nothing is written where one of them cannot be used.
    Raises TapeUsageError naming its line, CassetteError.
    """
    books = [Cassette.open(path) for path in gaps.cassettes_below(Path(where), name)]
    calls = {entry.name: (book, entry) for book in books for entry in book.calls}
    edits_by_path: dict[Path, list[tuple[Entry, Any]]] = {}
    same = 0
    for number, row in _read_lines(source):
        at = f"{source}:{number}"
        match = calls.get(_read_call_name(row, at))
        if match is None:
            raise TapeUsageError(
                f"{at}: call {_read_call_name(row, at)} is not recorded in {where}"
            )
        book, entry = match
        answer, recorded = _read_answer(row), output_of(entry)
        if answer in (None, recorded) or answer == json.dumps(recorded, ensure_ascii=False):
            same += 1
            continue
        edits_by_path.setdefault(book.path, []).append((entry, _build_edit(entry, answer, at)))
    return _write_takes(edits_by_path, take, same)


def _write_takes(
    edits_by_path: dict[Path, list[tuple[Entry, Any]]], take: str, same: int
) -> ReadRows:
    paths, changed = [], []
    for path, edited in edits_by_path.items():
        if take and take in files.take_names(path):
            raise TapeUsageError(f"{path.name} has a take {take!r} already: name another")
        goal = take or files.unused_name(path, "rows")
        book = Cassette.open(path)
        for entry, answer in edited:
            written = book.commit_reply(book.by_name[entry.run, entry.id], answer, goal)
            changed.append(entry.name)
        paths.append(written.path)
    return ReadRows(tuple(paths), tuple(changed), same)


def _read_lines(source: Path) -> Iterator[tuple[int, Row]]:
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise TapeUsageError(f"{source}: its rows cannot be read: {why}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TapeUsageError(f"{source}:{number}: this line is not JSON ({error})") from None
        if not isinstance(row, dict):
            raise TapeUsageError(f"{source}:{number}: a row is a JSON object")
        if row.get("kind") != "run":
            yield number, row


def _read_call_name(row: Row, at: str) -> str:
    metadata = row.get("metadata")
    named = row.get("row") or (metadata.get("row") if isinstance(metadata, dict) else None)
    if not isinstance(named, str):
        raise TapeUsageError(f"{at}: no `row` says which call it is (RUN/CALL)")
    return named


def _read_answer(row: Row) -> Any:
    if "ideal" in row:
        ideal = row["ideal"]
        return ideal[0] if isinstance(ideal, list) and ideal else ideal
    return row.get("output") if row.get("expected") is None else row["expected"]


def _build_edit(entry: Entry, answer: Any, at: str) -> Any:
    """The edit that has the call answer so. Raises TapeUsageError."""
    from tape_jupyter.cassette.takes import edits

    try:
        reply = entry.reply()
        if isinstance(reply, Value):
            edit = {"form": "value", "value": json.dumps(answer, ensure_ascii=False)}
        elif isinstance(output_of(entry), str) and isinstance(answer, str):
            edit = {"form": "text", "text": answer}
        elif edits.editable_of(entry).form == "message":
            if isinstance(answer, str):
                message = answer
            else:
                message = json.dumps(answer, ensure_ascii=False)
            edit = {"form": "message", "message": message}
        else:
            edit = {"form": "raw", "body": json.dumps(answer, ensure_ascii=False)}
        return edits.apply_edit(entry, edit)
    except (TapeUsageError, CassetteError) as error:
        raise TapeUsageError(f"{at}: {error}") from error
