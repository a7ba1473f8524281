"""What is read of a call of a model, and what edits of its reply become, as values that JSON can hold."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.errors import TapeError
from tape_jupyter.providers import editing, http, validation
from tape_jupyter.providers.conversation import conversation_turns, gist
from tape_jupyter.providers.registry import call_facts
from tests import reencode_corpus, reencode_edits


def facts(request: Request, reply: Reply) -> Any:
    return dataclasses.asdict(call_facts(request, reply))


def turns(request: Request, reply: Reply) -> Any:
    turns = conversation_turns(request, reply)
    return [turns, gist(turns)]


def edits(request: Request, reply: Reply) -> dict[str, Any]:
    taken = editing.take_apart_reply(request, reply)
    if taken is None:
        return {}
    wire, message = taken.wire, taken.message
    tools = validation.schemas(http.decoded_body(request.headers, request.body) or b"")
    fields = validation.editable_fields(wire, message, tools)
    changes = [*_typed(wire, message, fields), *_common(wire, message)]
    return {
        "fields": [fields, sorted(validation.call_ids(wire, message))],
        "alone": editing.composed(wire, message).decode() if taken.streamed else "",
        "edits": {
            f"{number} {name}": edited(request, reply, change)
            for number, (name, change) in enumerate(changes)
        },
        "problems": {
            f"{number} {name}": _problems(taken, change, tools)
            for number, (name, change) in enumerate(changes)
        },
    }


Change = Callable[[], Any]


def _common(wire: str, message: dict[str, Any]) -> Iterator[tuple[str, Change]]:
    """The edits of the trials, where they know the form."""
    if wire in reencode_corpus.PATHS:
        for name, edited in reencode_edits.edits(wire, message):
            yield name, lambda edited=edited: edited


def _typed(
    wire: str, message: dict[str, Any], fields: list[dict[str, Any]]
) -> Iterator[tuple[str, Change]]:
    """Each field of the editor with something else typed into it."""
    for field in fields:
        for value in ("", f"{field['value']} and 7", '{"made": [1, true, null]}', "end_turn"):
            change = {"path": field["path"], "value": value}
            yield (
                f"{field['path']} = {value[-30:]}",
                lambda change=change: validation.with_fields(wire, message, [change]),
            )


def edited(request: Request, reply: Reply, change: Change) -> Any:
    try:
        edited, notes = editing.encoded(request, reply, change())
    except TapeError as error:
        return str(error)
    chunks = [chunk.decode("latin-1") for chunk in edited.chunks]
    return [edited.headers, chunks, edited.waits, notes]


def _problems(taken: editing.Taken, change: Change, tools: dict[str, Any]) -> Any:
    try:
        return validation.problems(taken.wire, taken.message, change(), tools, frozenset())
    except TapeError as error:
        return str(error)


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:8]
