"""A divergence as a person sees it, and the reply that a person writes for it: committed to the
take at once, as a call of its own, so that nothing typed is lost and the take replays without
asking.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.cassette.match_key import json_value
from tape_jupyter.cassette.records import Head, moment_text
from tape_jupyter.cassette.takes import edits, faults
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.core.plain_text import format_json
from tape_jupyter.encoding.http.body import decode
from tape_jupyter.encoding.values.mutations import frozen_or_type
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.providers import editing, registry
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session.cell import Divergence
from tape_jupyter.session.summary_rows import row_of_entry

MOST = 100_000
"""Characters of a section that are told."""


@dataclass(frozen=True, slots=True)
class Question:
    """A divergence as a person is asked about it, wherever its cell ran. `payload`: as protocol.ts has
    it, but for its cell; `nearest`: the recorded call in whose wire form a reply is written.
    """

    match: str
    is_tool: bool
    payload: Mapping[str, Any]
    nearest: Entry | None = None

    @property
    def id(self) -> str:
        """As the divergence's own."""
        return str(self.payload["id"])

    @classmethod
    def from_divergence(cls, divergence: Divergence) -> Question:
        is_tool = isinstance(divergence.call, FunctionCall)
        return cls(divergence.match, is_tool, divergence_fields(divergence), divergence.nearest)

    def record(self) -> dict[str, Any]:
        """As JSON, to be told to another process."""
        near = self.nearest
        return asdict(replace(self, nearest=None)) | {
            "nearest": None if near is None else [near.run, near.id]
        }

    @classmethod
    def read(cls, record: Mapping[str, Any], take: Cassette) -> Question:
        """Of another process that played this take: it cannot leave a cell out."""
        known = {(entry.run, entry.id): entry for entry in take.calls}
        nearest = known.get(tuple(record["nearest"] or ()))
        question = record["payload"]
        choices = [each for each in question["choices"] if each != "skip"]
        return cls(record["match"], record["is_tool"], {**question, "choices": choices}, nearest)

    def answer(self, text: str) -> Reply | Value:
        """The reply that a text stands for. Raises TapeUsageError where nothing recorded shows its
        wire form.
        """
        if self.nearest is not None:
            return edits.answer_of(self.nearest, meant_edit(self.nearest, text))
        if self.is_tool:
            return edits.value_of(text)
        raise TapeUsageError(
            "nothing like this call is recorded, so there is no format for a reply written by hand: let it go "
            "live, or skip the cell"
        )


def commit_reply(take: Cassette, cell: str, divergence: Divergence, text: str) -> None:
    """Commit to the take what a person wrote as the reply of this call. Raises TapeUsageError,
    CassetteError.

    `text`: JSON of the message or of the tool's value, else plain text; in the wire form of the
    nearest recorded call.
    """
    reply = Question.from_divergence(divergence).answer(text)
    secrets = Secrets()
    secrets.learn_environment(os.environ)
    at = moment_text(datetime.now(UTC))
    base = take.by_run.get(divergence.repeats, {})
    head_of: dict[str, Any] = {
        key: base[key] for key in ("cell", "source", "session", "title", "ignore") if key in base
    }
    head_of.setdefault("cell", cell)
    run = take.start_run(
        {"mode": "replay", **head_of, "at": at, "parent": divergence.repeats}, {}, secrets
    )
    is_http = isinstance(divergence.call, Request) and isinstance(reply, Reply)
    # is_http
    kit = registry.call_facts(divergence.call, reply).record() if is_http else {}  # type: ignore[arg-type]
    name = divergence.call.name if isinstance(divergence.call, FunctionCall) else ""
    head = Head(
        divergence.id, run, divergence.match, divergence.kind, Where(run, divergence.lineage, (), ""), at, 0.0, kit,
        name, diverged="hand", discriminator=divergence.discriminator,
    )  # fmt: skip
    take.append_call(head, divergence.call, reply, secrets)
    take.end_run(run, {"outcome": "ok", "calls": 1}, secrets)


def fault(divergence: Divergence, name: str, options: Mapping[str, Any]) -> Reply | Value:
    """The fault of that name in the call's place. Raises TapeUsageError where there is none for
    such a call.
    """
    if isinstance(divergence.call, FunctionCall):
        return faults.injected(divergence.call, Value(), {"name": name, "options": options})[0]
    if divergence.nearest is None:
        raise TapeUsageError(
            "nothing like this call is recorded, so there is no reply to turn into a fault: refuse the call instead"
        )
    return edits.answer_of(divergence.nearest, {"form": "fault", "name": name, "options": options})


def meant_edit(template: Entry, text: str) -> Mapping[str, Any]:
    """What a text means as the reply of such a call: a tool's value, a message, else the reply's
    text.
    """
    if isinstance(template.request(), FunctionCall):
        return {"form": "value", "value": text}
    is_message = isinstance(json_value(text.strip().encode()), dict)
    if is_message:
        return {"form": "message", "message": text}
    return {"form": "text", "text": text}


def divergence_fields(divergence: Divergence) -> dict[str, Any]:
    """The divergence as protocol.ts has it, but for its cell."""
    near = divergence.nearest
    return {
        "id": divergence.id,
        "fields": changed_fields(divergence),
        "asked": asked_section(divergence.call),
        "recorded": asked_section(near.request()) if near is not None else None,
        "cost": recorded_cost(near),
        "reply": _describe_recorded_reply(near),
        "choices": ["live", "write", "stale", "skip"] if near is not None else ["live", "skip"],
    }


def changed_fields(divergence: Divergence) -> list[dict[str, str]]:
    """How the call differs from the nearest recorded one, as protocol.ts has it (ChangedField)."""
    return [{"path": path, "recorded": old, "now": new} for path, old, new in divergence.fields]


def asked_section(call: Request | FunctionCall) -> dict[str, Any]:
    """What is asked, as a person reads it; secrets are masked."""
    secrets = Secrets()
    secrets.learn_environment(os.environ)
    if isinstance(call, FunctionCall):
        value: Any = {name: frozen_or_type(each) for name, each in call.arguments.items()}
    else:
        body = decode(call.body, call.header("content-encoding")) or b""
        value = json_value(body)
        if value is None:
            return _build_section(secrets.scrub(body.decode("utf-8", "replace"))[0], is_json=False)
    return _build_section(format_json(secrets.scrub_structure(value)[0]), is_json=True)


def _build_section(text: str, *, is_json: bool) -> dict[str, Any]:
    return {"text": text[:MOST], "json": is_json, "whole": len(text) <= MOST}


def recorded_cost(near: Entry | None) -> float | None:
    """What a recorded call took, US dollars; None where that is not known."""
    cost = row_of_entry(near).cost if near is not None else None
    return float(cost) if cost is not None else None


def _describe_recorded_reply(near: Entry | None) -> dict[str, Any] | None:
    """The recorded reply, where the writing of one's own starts."""
    if near is None:
        return None
    try:
        request, reply = near.request(), near.reply()
    except CassetteError:
        return None
    if isinstance(reply, Value):
        return {"text": format_json(reply.value), "json": True}
    if isinstance(request, Request):
        message = editing.reply_message(request, reply)
    else:
        message = None
    if message is not None:
        return {"text": format_json(message), "json": True}
    return {"text": reply.readable.decode("utf-8", "replace")[:MOST], "json": False}
