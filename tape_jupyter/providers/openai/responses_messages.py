"""Messages of OpenAI's Responses API as people edit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tape_jupyter.providers.json_access import as_list, as_text, dig
from tape_jupyter.providers.message_parts import of_type, touched_parts, type_problem
from tape_jupyter.providers.openai import responses_stream
from tape_jupyter.providers.protocol import TAPE_ONLY, Message, Path, ToolCallPaths
from tape_jupyter.providers.streams.events import StreamEvent

_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}


class ResponsesMessages:
    """`{"output": [items], "status": ...}`."""

    parts = "output"
    stop_reasons = ("completed", "incomplete", "failed")

    def read(self, events: Sequence[StreamEvent]) -> Message:
        return responses_stream.read(events)

    def rewrite(
        self, events: Sequence[StreamEvent], message: Mapping[str, Any]
    ) -> list[StreamEvent]:
        return responses_stream.rewrite(events, message)

    def compose(self, message: Mapping[str, Any]) -> list[StreamEvent]:
        return responses_stream.compose(message)

    def expanded(self, partial: Mapping[str, Any], _: Mapping[str, Any]) -> Mapping[str, Any]:
        return partial

    def adjust_dependents(self, old: Mapping[str, Any], new: Message) -> list[str]:
        notes = _settle_reasoning(old, new)
        _drop_stale_logprobs(old, new)
        return notes

    def part_problem(self, part: Mapping[str, Any]) -> tuple[str, str]:
        return type_problem(part)

    def texts(self, message: Mapping[str, Any]) -> Iterator[Path]:
        for at, item in of_type(message.get("output"), "message"):
            for number, _ in of_type(item.get("content"), "output_text"):
                yield ("output", at, "content", number, "text")

    def thinking(self, message: Mapping[str, Any]) -> Iterator[Path]:
        for at, item in of_type(message.get("output"), "reasoning"):
            for number, part in enumerate(as_list(item.get("summary"))):
                if isinstance(part, dict):
                    yield ("output", at, "summary", number, "text")

    def tool_calls(self, message: Mapping[str, Any]) -> Iterator[ToolCallPaths]:
        for at, item in enumerate(as_list(message.get("output"))):
            if key := _ARGUMENTS.get(as_text(dig(item, "type"))):
                call: Path = ("output", at)
                yield ToolCallPaths(call, (*call, "name"), (*call, key))

    def stops(self, _: Mapping[str, Any]) -> Iterator[Path]:
        yield ("status",)


def _settle_reasoning(old: Mapping[str, Any], new: Message) -> list[str]:
    """Reasoning items are paired with what follows them, by id or by their encrypted content."""
    parts = touched_parts(old.get("output"), new.get("output"))
    reasoning = [item for item in parts if item.get("type") == "reasoning"]
    for item in reasoning:
        if item.get("encrypted_content"):
            item["encrypted_content"] = None
    if not reasoning:
        return []
    return [f"{TAPE_ONLY}: reasoning no longer belongs to what follows it, and the API refuses it"]


def _drop_stale_logprobs(old: Mapping[str, Any], new: Message) -> None:
    """Log probabilities are of the recorded tokens."""
    recorded = dict(_iterate_content_parts(old))
    for key, part in _iterate_content_parts(new):
        was = recorded.get(key)
        if part.get("logprobs") and was is not None and was.get("text") != part.get("text"):
            part["logprobs"] = []


def _iterate_content_parts(message: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], Any]]:
    """The parts of all items, each with its item's id and its place there."""
    for item in as_list(message.get("output")):
        for at, part in enumerate(as_list(dig(item, "content"))):
            if isinstance(part, dict):
                yield (str(item.get("id")), at), part
