"""What a person puts in a recorded call's place, and where that may be done. Writes nothing
(cassette/cassette.py).

A raw reply (status, headers, body, how it ended), a tool's value or exception. What is given is
taken as it is: that a message's parts fit together is the providers' business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tape_jupyter.cassette.index_entries import Entry, Holder, Overridden
from tape_jupyter.cassette.reader import Book
from tape_jupyter.cassette.runs import Current, newer_than, run_of
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.encoding.values.registry import freeze, freeze_error
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.providers.editing import plain_headers


class Unset:
    """Stands for an argument that was not given."""

    def __repr__(self) -> str:
        return "(not given)"


UNSET: Final = Unset()
"""Not given; None is a value."""


def answer_override(
    entry: Entry, *, reply: Any = UNSET, value: Any = UNSET, error: Any = UNSET
) -> Reply | Value:
    """What the override holds, of the one that is given. Raises TapeUsageError for what cannot
    answer this call.

    `reply`: a `Reply` (core/call.py); or a body (bytes, text, or structure written as JSON), with the recorded
    status and headers. `value`: what the function gives, of any type that is recorded. `error`: an
    exception, raised instead.
    """
    arguments = {"reply": reply, "value": value, "error": error}
    names = [name for name, argument in arguments.items() if argument is not UNSET]
    if len(names) != 1:
        raise TapeUsageError(
            f"an override is one of reply=, value= and error=, not {', '.join(names) or 'nothing'}"
        )
    is_function = isinstance(entry.request(), FunctionCall)
    if names[0] == ("reply" if is_function else "value"):
        if is_function:
            what, instead = "a function", "value= or error="
        else:
            what, instead = "a request", "reply= or error="
        raise TapeUsageError(f"call {entry.id} is {what}: override it with {instead}")
    if error is not UNSET:
        if not isinstance(error, BaseException):
            raise TapeUsageError(f"error= is an exception, not a {type(error).__name__}")
        if is_function:
            return Value(error=freeze_error(error), did=entry.did())
        return Reply(None, end="error", error=freeze_error(error))
    if is_function:  # what the recorded body did besides another value does not undo
        return Value(freeze(value), did=entry.did())
    return reply if isinstance(reply, Reply) else _replace_body(entry, reply)


def _replace_body(entry: Entry, body: Any) -> Reply:
    """The recorded reply with another body, in one piece and not encoded."""
    recorded = entry.reply()
    if not isinstance(recorded, Reply):
        raise TapeUsageError(f"call {entry.id} has no reply whose body could be replaced")
    if isinstance(body, bytes | bytearray):
        data = bytes(body)
    elif isinstance(body, str):
        data = body.encode("utf-8")
    else:
        try:
            data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        except (TypeError, ValueError) as problem:
            raise TapeUsageError(f"reply= is a Reply, bytes, text or JSON: {problem}") from problem
    headers, status = plain_headers(recorded.headers, len(data)), recorded.status or 200
    chunks, waits = ((data,), (recorded.waits[-1:] or (0.0,))) if data else ((), ())
    return replace(
        recorded,
        status=status,
        headers=headers,
        chunks=chunks,
        waits=waits,
        end="complete",
        error=None,
    )


def find_call(book: Book, call: str | Entry) -> Entry:
    """The call of that id ("78a670b1", or "RUN/78a670b1"), or entry, among those that count. Raises
    TapeUsageError.
    """
    call = call if isinstance(call, str) else call.name
    run, _, name = call.rpartition("/")
    current = Current(map(run_of, book.runs)).kept
    same = [entry for entry in book.calls if entry.id == name and run in ("", entry.run)]
    counting = [entry for entry in same if entry.run in current] or same
    if len(counting) > 1 and not run:
        which = ", ".join(entry.name for entry in counting[:5])
        raise TapeUsageError(f"several runs hold a call {name}; say which: {which}")
    if not counting:
        near = sorted({entry.id for entry in book.calls if entry.id.startswith(name[:3])})[:5]
        raise TapeUsageError(
            f"no call {call!r} in {book.path.name}; "
            f"{'near: ' + ', '.join(near) if near else 'tape calls lists them'}"
        )
    return counting[-1]


def base_chain(book: Holder) -> Iterator[Holder]:
    """The book, what it is a take of, and so on down to the cassette."""
    at: Holder | None = book
    while at is not None:
        yield at
        at = at.base


def overridden_inside(book: Holder, entry: Entry) -> list[Entry]:
    """The calls that the recorded body of a function made, itself or further in, and that a person
    overrode.

    None where a person overrode what the function itself gives: that plays.
    """
    if _is_by_hand(entry):
        return []
    keys = {
        (each.run, each.id)
        for holder in base_chain(book)
        for each in holder.overrides
        if each.run == entry.run
    }
    current = [book.by_name[name] for name in sorted(keys)]
    return [each for each in current if _is_by_hand(each) and entry.id in callers(book, each)]


def _is_by_hand(entry: Entry) -> bool:
    return isinstance(entry, Overridden) and not entry.by


def callers(book: Holder, entry: Entry) -> Mapping[str, Entry]:
    """The taped functions in whose bodies a call was made, innermost first, by call id."""
    entries: dict[str, Entry] = {}
    while (name := str(entry.head().get("parent", ""))) and name not in entries:
        caller = book.by_name.get((entry.run, name))
        if caller is None:
            break
        entries[name] = entry = caller
    return entries


def require_newest(entry: Entry, above: Holder) -> None:
    """Raises TapeUsageError where a call's cell was recorded again since by another session, in a
    book or below it, as they are now. In the same session it is an earlier turn of its cell.
    """
    for book in [
        Book.open(each.path, check="marks") for each in base_chain(above) if each.path.exists()
    ]:
        newer = newer_than(book.runs, entry.run)
        if newer and not _is_same_session(book, entry.run, newer):
            at = str(book.by_run[newer].get("at", ""))
            raise TapeUsageError(
                f"call {entry.id} of run {entry.run} was recorded again: run {newer}{f' of {at}' if at else ''} in "
                f"{book.path.name} is the newer. Nothing was written; override that run's call, in a new take"
            )


def _is_same_session(book: Holder, one: str, other: str) -> bool:
    sessions = {book.by_run.get(run, {}).get("session") for run in (one, other)}
    return len(sessions) == 1 and None not in sessions
