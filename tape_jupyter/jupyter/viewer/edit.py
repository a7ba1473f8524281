"""What a view may change: replies and values into takes, takes undone, put aside, made the default.

Every message may be forged: a field of the wrong type, a call or a take that there is not, and it
is dropped. What an edit means is cassette/takes/edits.py's, where it may be written
cassette/takes/derived.py's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.cassette.takes import edits, files, undo
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter.viewer.server import Forged, Message, Viewer, answers, text_field

_FORMS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "message": {"message": str},
    "fields": {"fields": list},
    "value": {"value": str},
    "raw": {"status": int, "headers": list, "body": str},
    "fault": {"name": str, "options": dict},
}
_LIKE = "edited"


@answers("edit")
def editable(viewer: Viewer, message: Message) -> Message:
    entry = _find_entry(viewer, message)
    fields = edits.editable_of(entry).record()
    return {"span": message["span"], **fields, "take": _propose_take_name(viewer, entry)}


@answers("check")
def handle_check(viewer: Viewer, message: Message) -> Message:
    return {"problems": edits.problems_of(_find_entry(viewer, message), message_edit(message))}


@answers("override")
def handle_override(viewer: Viewer, message: Message) -> Message:
    """Write an edit to a take, and show that take. Warnings need the person's tick (`accept`)."""
    entry = _find_entry(viewer, message)
    edit = message_edit(message)
    name = text_field(message, "take")
    answer = edits.accept_edit(entry, edit, accept=message.get("accept") is True)
    book = viewer.book
    if book is None:
        raise Forged("override")
    take = book.commit_reply(entry, answer, _choose_take_name(viewer, name))
    take_name = files.take_name(take.path)
    session = viewer.open(paths.stem(take.root), take_name)
    return {"take": take_name, "session": session, "plan": None, "notes": list(answer.notes)}


@answers("undo")
def undone(viewer: Viewer, message: Message) -> Message:
    root, name = _find_root(viewer), text_field(message, "take")
    above = _find_base_take(root, name)
    note = undo.undo(root, name)
    take_name = name if files.path_of(root, name).exists() else above
    return _add_note(viewer.open(paths.stem(root), take_name), note)


@answers("keep")
def handle_keep(viewer: Viewer, message: Message) -> Message:
    """A take is kept as it is: it lies in its file already."""
    root, name = _find_root(viewer), text_field(message, "take")
    files.require_take(root, name)
    return viewer.open(paths.stem(root), name)


@answers("discard")
def discard(viewer: Viewer, message: Message) -> Message:
    root, name = _find_root(viewer), text_field(message, "take")
    above = _find_base_take(root, name)
    shown = viewer.cells.list_cells_of(files.path_of(root, name))
    aside = files.delete(root, name)
    session = _add_note(viewer.open(paths.stem(root), above), f"take {name} was moved to {aside}")
    return {**session, "cells": shown}


@answers("default")
def handle_default(viewer: Viewer, message: Message) -> Message:
    """The take that replays where none is named; "" the recording itself."""
    root, name = _find_root(viewer), text_field(message, "take")
    files.choose(root, name)
    viewer.changed()
    return viewer.session()


def _add_note(session: Message, note: str) -> Message:
    return {**session, "notes": [*session.get("notes", ()), note]}


# ---------------------------------------------------------------- what a message may hold


def _find_entry(viewer: Viewer, message: Message) -> Entry:
    return viewer.entry(text_field(message, "span"))


def message_edit(message: Message) -> dict[str, Any]:
    """The Edit of a message: a form that there is, with its fields, each of its type."""
    edit = message.get("edit")
    fields = _FORMS.get(str(edit.get("form"))) if isinstance(edit, dict) else None
    if not isinstance(edit, dict) or fields is None:
        raise Forged("edit")
    if not all(
        isinstance(edit.get(key), kind) and type(edit.get(key)) is not bool
        for key, kind in fields.items()
    ):
        raise Forged("edit")
    return {"form": edit["form"], **{key: edit[key] for key in fields}}


def _find_root(viewer: Viewer) -> Path:
    """The cassette whose takes are spoken of."""
    path = viewer.path
    if path is None:
        raise Forged("take")
    return files.cassette_of(path)


def _find_base_take(root: Path, name: str) -> str:
    """What is shown when a take is gone: the take that it is of, "" for the recording."""
    path = files.path_of(root, name)
    base = files.base_file(path) if path.exists() else None
    return files.take_name(base) if base is not None and base != root else ""


def _propose_take_name(viewer: Viewer, entry: Entry) -> str:
    """What a take may be called: the one that is shown, where the edit goes into it; else a name
    that is free.
    """
    root, book = _find_root(viewer), viewer.book
    if book is not None and book.base is not None and not _is_own_entry(entry, book):
        return files.take_name(book.path)
    return files.unused_name(
        root, files.take_name(book.path) if book is not None and book.base is not None else _LIKE
    )


def _is_own_entry(entry: Entry, book: Any) -> bool:
    return isinstance(entry, Overridden) and entry.book is book


def _choose_take_name(viewer: Viewer, name: str) -> str:
    """The name to write under: the take that is shown, a new one of it, or another that does not
    hold the call yet.
    """
    book = viewer.book
    if not name or (
        book is not None and book.base is not None and name == files.take_name(book.path)
    ):
        if book is not None and book.base is not None:
            return ""
        return files.unused_name(_find_root(viewer), name or _LIKE)
    files.check_take_name(name)
    if name in files.take_names(_find_root(viewer)):
        raise TapeUsageError(
            f"a take {name!r} exists already and is not overwritten: choose another name"
        )
    return name
