"""`%tape override CALL ...` and `tape override NB CALL ...`: one place, two doors. Parses words,
makes the take, tells in text or plain structure; prints nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.runs import newer_than
from tape_jupyter.cassette.takes import edits, files, overrides
from tape_jupyter.cassette.takes.edits import EditedReply
from tape_jupyter.core.call import Value
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.session.options import LineParser, split_words

USAGE = (
    "override CALL --text TEXT | --message JSON | --fault NAME[:OPTION=VALUE,...] | --value JSON | "
    "--reply BODY [--status N]  [--take NAME] [--of TAKE]; or %%tape override CALL, and below it the new text or JSON"
)
WAYS = ("text", "message", "fault", "value", "reply")


@dataclass(frozen=True, slots=True)
class OverriddenReply:
    """A reply that was overridden: the take that holds it, and what was said of it."""

    take: Cassette
    entry: Entry
    answer: EditedReply
    warnings: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        name, metadata = files.take_name(self.take.path), dict(self.answer.details)
        notes = [*self.answer.notes, *self.warnings]
        call = f"{self.entry.run}/{self.entry.id}"
        return {"take": name, "path": str(self.take.path), "call": call, **metadata, "notes": notes}

    def text(self) -> str:
        name = files.take_name(self.take.path)
        lines = [
            f"take {name}: call {self.entry.id} answers differently now; {self.take.root.name} is as it was"
        ]
        lines += [f"  {note}" for note in (*self.answer.notes, *self.warnings)]
        lines.append(
            f"to play it: --take {name}; to restore the recorded reply: %tape takes undo {name} "
            f"(in a terminal: tape takes NB undo {name})"
        )
        return "\n".join(lines)


def parse_override(line: str) -> dict[str, Any]:
    """The words of a `%tape override` line. Nothing in it is expanded. Raises TapeUsageError."""
    parser = LineParser("%tape override")
    parser.add_argument("call")
    for way in (*WAYS, "take", "of"):
        parser.add_argument(f"--{way}")
    parser.add_argument("--status", type=int)
    return vars(parser.parse_args(split_words(line)))


def holding(cassettes: Sequence[Path], arguments: Mapping[str, Any]) -> Path:
    """The first of a notebook's cassettes (or of their takes `of`) that holds the call. Raises
    TapeUsageError.
    """
    for each in cassettes:
        with contextlib.suppress(CassetteError, TapeUsageError):
            book = Cassette.open(each, check="marks")
            if arguments.get("of") and files.require_take(each, arguments["of"]):
                book = book.take(arguments["of"])
            if any(arguments["call"] in (entry.id, entry.name) for entry in book.calls):
                return each
    if len(cassettes) > 1 and not arguments.get("of"):
        have = ", ".join(each.name for each in cassettes)
        raise TapeUsageError(
            f"no call {arguments['call']!r} in any cassette of the notebook: {have}"
        )
    return cassettes[0]  # which then says what there is


def write_override(root: Path, arguments: Mapping[str, Any], body: str = "") -> OverriddenReply:
    """Write one override to a take of the cassette, or of its take `of`. Raises TapeUsageError,
    CassetteError.

    `body`: the new text or JSON, where the line says neither (`%%tape override CALL`).
    """
    book = Cassette.open(root)
    if of := arguments.get("of"):
        files.require_take(root, of)
        book = book.take(of)
    entry = overrides.find_call(book, arguments["call"])
    if body:
        arguments = {**arguments, body_way(entry, body): body}
    ways = [way for way in WAYS if arguments.get(way) is not None]
    if len(ways) != 1:
        raise TapeUsageError(f"say one of {', '.join(f'--{way}' for way in WAYS)}. Usage: {USAGE}")
    if arguments.get("status") is not None and ways != ["reply"]:
        raise TapeUsageError(f"--status goes with --reply. Usage: {USAGE}")
    answer, warnings = _build_answer(entry, ways[0], arguments)
    warnings += (*_warn_of_callers(book, entry), *_warn_of_earlier_turn(book, entry))
    return OverriddenReply(
        book.commit_reply(entry, answer, arguments.get("take") or ""), entry, answer, warnings
    )


def _warn_of_earlier_turn(book: Cassette, entry: Entry) -> tuple[str, ...]:
    if not newer_than(book.runs, entry.run):
        return ()
    warning = (
        f"call {entry.id} is from an earlier run of its cell: %tape rerun plays it in the kernel that ran them all; "
        "a replay of the notebook plays the newest run"
    )
    return (warning,)


def body_way(entry: Entry, body: str) -> str:
    """What the body of a `%%tape override` cell is: JSON of a tool's value or of parts of a
    message, a body of a reply that is no message, else the new text.
    """
    reply = entry.reply()
    try:
        value = json.loads(body)
    except ValueError:
        value = body
    if isinstance(reply, Value):
        return "text" if isinstance(reply.value, str) or value is body else "value"
    editable = edits.editable_of(entry)
    if editable.form != "message":
        return "reply"
    keys = {"content", "tool_calls", "refusal", *json.loads(editable.current)}
    if isinstance(value, dict) and value and keys.issuperset(value):
        return "message"
    return "text"


def _warn_of_callers(book: Cassette, entry: Entry) -> tuple[str, ...]:
    """What becomes of the taped functions in whose bodies the call was made."""
    return tuple(
        f"it was made inside {each.title} (call {each.id}), whose body runs again when the take is replayed; "
        f"to keep its recorded result: override {each.id} --value JSON"
        for each in overrides.callers(book, entry).values()
    )


def _build_answer(
    entry: Entry, way: str, arguments: Mapping[str, Any]
) -> tuple[EditedReply, tuple[str, ...]]:
    value = arguments[way]
    if way == "value":
        edit: dict[str, Any] = {"form": "value", "value": value}
    elif way == "reply":
        edit = {"form": "raw", "status": arguments.get("status"), "headers": None, "body": value}
    else:
        answer = edits.given_edit(entry, **{way: value})
        return answer, tuple(edits.format_problem(each) for each in edits.warnings(entry, answer))
    problems = edits.problems_of(entry, edit)
    if wrong := next((each for each in problems if each["level"] == "error"), None):
        raise TapeUsageError(edits.format_problem(wrong))
    return edits.apply_edit(entry, edit), tuple(map(edits.format_problem, problems))
