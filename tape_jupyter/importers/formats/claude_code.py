"""Sessions of Claude Code (`~/.claude/projects/*/SESSION.jsonl`, and those of its sub-agents)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import transcript
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import usage_of
from tape_jupyter.importers.rows import listed_field, mapping_field
from tape_jupyter.importers.source import Broken, Source
from tape_jupyter.importers.trace import Item, Run, Skipped, each
from tape_jupyter.importers.transcript import ModelAnswer, Transcript

TITLE = "Claude Code session"

_URL = "https://api.anthropic.com/v1/messages"


def recognises(source: Source) -> int:
    text = source.head_text
    if {"sessionId", "type", "uuid", "message"} <= source.keys and '"parentUuid"' in text:
        return 90
    if {"sessionId", "type", "message", "uuid", "timestamp"} <= source.keys:
        return 80
    return 0


def read(source: Source) -> Iterator[Item]:
    talks: dict[str, Transcript] = {}
    named: set[str] = set()
    for line, row in source.lines():
        if not isinstance(row, dict):
            text = row.text if isinstance(row, Broken) else str(row)
            yield Skipped("a line that is no record", line=line, text=text)
            continue
        session = str(row.get("sessionId") or "")
        if session and session not in named:
            named.add(session)
            about = {
                "directory": row.get("cwd"),
                "branch": row.get("gitBranch"),
                "version": row.get("version"),
            }
            yield Run(
                session,
                f"session {session[:8]}",
                {name: value for name, value in about.items() if value},
            )
        if row.get("type") not in ("user", "assistant") or not isinstance(row.get("message"), dict):
            kind = str(row.get("type") or "none")
            yield Skipped(f"a record of kind {kind[:40]}: no call", line=line)
            continue
        side = f"{session} {row.get('isSidechain')} {row.get('agentId')}"
        if side not in talks:
            talks[side] = Transcript(
                source.name, "claude-code", "anthropic", _build_request, _build_reply, session
            )
        yield from each(partial(_read_message, talks[side], row, line), line)
    for talk in talks.values():
        yield from talk.end()


def _read_message(talk: Transcript, row: Mapping[str, Any], line: int) -> Iterator[Item]:
    message, time = mapping_field(row["message"]), attribute_seconds(row.get("timestamp"))
    if row["type"] == "user":
        for block in listed_field(message.get("content")):
            if isinstance(block, Mapping) and block.get("type") == "tool_result":
                call_id = str(block.get("tool_use_id") or "")
                result = transcript.tool_answer_text(block.get("content"))
                error = str(result or "error") if block.get("is_error") else ""
                yield from talk.close()
                yield talk.used(call_id, result, time, line, error=error)
        yield from talk.add_message({"role": "user", "content": message.get("content")}, time, line)
    elif message.get("model") == "<synthetic>":
        yield Skipped("an answer that the agent wrote itself", line=line)
    else:
        key = str(message.get("id") or row.get("requestId") or row.get("uuid") or line)
        items, answer = transcript.spoken_items(talk.open_answer(key, line, time))
        yield from items
        _add_answer_parts(talk, answer, row, message, line)


def _add_answer_parts(
    talk: Transcript,
    answer: ModelAnswer,
    row: Mapping[str, Any],
    message: Mapping[str, Any],
    line: int,
) -> None:
    content = message.get("content")
    if isinstance(content, list):
        blocks = content
    else:
        blocks = [{"type": "text", "text": str(content or "")}]
    answer.parts += blocks
    answer.model = str(message.get("model") or answer.model)
    answer.more |= {
        name: message[name]
        for name in ("id", "stop_reason", "stop_sequence", "usage")
        if message.get(name)
    }
    answer.usage = usage_of(message.get("usage")) or answer.usage  # each line repeats it
    if row.get("isApiErrorMessage"):
        answer.error = str(transcript.tool_answer_text(blocks))
    for block in blocks:
        if isinstance(block, Mapping) and block.get("type") == "tool_use":
            use = str(block.get("id") or "")
            talk.use(
                use,
                str(block.get("name") or ""),
                block.get("input"),
                attribute_seconds(row.get("timestamp")),
                line,
            )


def _build_request(model: str, messages: list[Any]) -> tuple[str, dict[str, Any]]:
    return _URL, {"model": model, "messages": messages}


def _build_reply(answer: ModelAnswer) -> dict[str, Any]:
    uses = any(
        isinstance(block, Mapping) and block.get("type") == "tool_use" for block in answer.parts
    )
    return {
        "id": "msg_imported", "type": "message", "role": "assistant", "model": answer.model,
        "content": answer.parts, "stop_reason": "tool_use" if uses else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0}, **answer.more,
    }  # fmt: skip
