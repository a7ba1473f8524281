"""Sessions of Codex (`~/.codex/sessions/**/rollout-*.jsonl`); old ones are bare items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import transcript
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import usage_of
from tape_jupyter.importers.rows import decode_field, mapping_field
from tape_jupyter.importers.source import Broken, Source
from tape_jupyter.importers.trace import Item, Run, Skipped, each
from tape_jupyter.importers.transcript import ModelAnswer, Transcript

TITLE = "Codex session"

_KINDS = {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"}
_USES = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
_RESULTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
_SAID = ("reasoning", "web_search_call", "image_generation_call", "agent_message", *_USES)


def recognises(source: Source) -> int:
    if {"timestamp", "type", "payload"} <= source.top and any(
        f'"{kind}"' in source.head_text for kind in _KINDS
    ):
        return 90
    if {"id", "timestamp", "instructions"} <= source.top and {
        "type",
        "role",
        "content",
    } <= source.keys:
        return 75  # before 2025-09: a head, then bare items
    if {"call_id", "arguments", "type"} <= source.keys and source.path.name.startswith("rollout-"):
        return 60
    return 0


def read(source: Source) -> Iterator[Item]:
    talk = Transcript(source.name, "codex", "openai", _build_request, _build_reply)
    state = _State(talk, has_messages=_has_messages(source))
    for line, row in source.lines():
        if isinstance(row, dict):
            yield from each(partial(state.row, row, line), line)
        else:
            text = row.text if isinstance(row, Broken) else str(row)
            yield Skipped("a line that is no record", line=line, text=text)
    yield from talk.end()


def _has_messages(source: Source) -> bool:
    """Whether the model's answers are items of their own; else only events tell of them."""
    payloads = (
        mapping_field(row.get("payload")) or row
        for _, row in source.lines()
        if isinstance(row, dict)
    )
    return any(
        each.get("type") == "message" and each.get("role") == "assistant" for each in payloads
    )


class _State:
    def __init__(self, talk: Transcript, *, has_messages: bool) -> None:
        self.talk = talk
        self.has_messages = has_messages
        self.model = ""
        self.turn = 0
        self.named = False

    def row(self, row: Mapping[str, Any], line: int) -> Iterator[Item]:
        payload = row.get("payload")
        record: Mapping[str, Any] = payload if isinstance(payload, Mapping) else row
        kind, time = str(row.get("type") or ""), attribute_seconds(row.get("timestamp"))
        if kind == "session_meta" and not self.named:
            self.named = True
            about = {
                "directory": record.get("cwd"),
                "version": record.get("cli_version"),
                "id": record.get("id"),
            }
            yield Run(
                "",
                f"session {str(record.get('id') or '')[:8]}",
                {k: v for k, v in about.items() if v},
            )
        elif kind == "turn_context":
            self.model = str(record.get("model") or self.model)
            yield from self._end_turn()
            yield Skipped("a record of kind turn_context: no call", line=line)
        elif kind == "event_msg":
            yield from self._read_event(record, time, line)
        elif kind == "response_item" or (
            payload is None and "type" in record and kind not in _KINDS
        ):
            yield from self._read_item(record, time, line)
        else:
            yield Skipped(f"a record of kind {kind[:40] or 'none'}: no call", line=line)

    def _read_event(self, event: Mapping[str, Any], time: float, line: int) -> Iterator[Item]:
        kind = str(event.get("type") or "")
        if kind == "user_message" and not self.has_messages:
            yield from self._add_message(
                {"role": "user", "content": event.get("message")}, time, line
            )
            return
        if kind == "agent_message" and not self.has_messages:
            text = [
                {"type": "output_text", "text": str(event.get("message") or ""), "annotations": []}
            ]
            item = {"type": "message", "role": "assistant", "status": "completed", "content": text}
            yield from self._add_answer_part(item, time, line)
            return
        if kind == "token_count":
            usage = usage_of(
                mapping_field(mapping_field(event.get("info")).get("last_token_usage"))
            )
            yield from self._end_turn(usage)
        yield Skipped(f"an event of kind {kind[:40] or 'none'}: no call", line=line)

    def _read_item(self, record: Mapping[str, Any], time: float, line: int) -> Iterator[Item]:
        kind = str(record.get("type") or "")
        if kind == "message" and record.get("role") != "assistant":
            yield from self._add_message(record, time, line)
        elif kind in _RESULTS:
            yield from self._end_turn()
            result = record.get("output", record.get("tools"))
            result = transcript.tool_answer_text(
                decode_field(result) if isinstance(result, str) and result[:1] == "{" else result
            )
            if isinstance(result, Mapping) and isinstance(result.get("output"), str):
                result = result["output"]
            yield self.talk.used(str(record.get("call_id") or ""), result, time, line)
            self.talk.messages.append(dict(record))
        elif kind == "message" or kind in _SAID:
            yield from self._add_answer_part(record, time, line)
        else:
            yield Skipped(f"an item of kind {kind[:40] or 'none'}: no call", line=line)

    def _add_answer_part(self, part: Mapping[str, Any], time: float, line: int) -> Iterator[Item]:
        items, answer = transcript.spoken_items(
            self.talk.open_answer(f"answer {self.turn}", line, time)
        )
        yield from items
        answer.model = self.model
        answer.parts.append(part)
        if part.get("type") in _USES:
            arguments = decode_field(part.get("arguments", part.get("input", part.get("action"))))
            name = str(part.get("name") or part.get("type"))
            self.talk.use(
                str(part.get("call_id") or part.get("id") or ""), name, arguments, time, line
            )

    def _add_message(self, message: Any, time: float, line: int) -> Iterator[Item]:
        self.turn += 1
        yield from self.talk.add_message(message, time, line)

    def _end_turn(self, usage: dict[str, int] | None = None) -> Iterator[Item]:
        self.turn += 1
        for call in self.talk.close():
            call.usage = usage or call.usage
            yield call


def _build_request(model: str, items: list[Any]) -> tuple[str, dict[str, Any]]:
    return "https://api.openai.com/v1/responses", {"model": model, "input": items}


def _build_reply(answer: ModelAnswer) -> dict[str, Any]:
    return {
        "id": "resp_imported", "object": "response", "created_at": 0, "status": "completed", "model": answer.model,
        "output": answer.parts, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
