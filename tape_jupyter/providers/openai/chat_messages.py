"""Messages of OpenAI's Chat Completions, and of those that follow it, as people edit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tape_jupyter.providers.json_access import as_list, as_mapping, as_text, dig, maps
from tape_jupyter.providers.message_parts import of_type
from tape_jupyter.providers.openai import chat_stream
from tape_jupyter.providers.protocol import Message, Path, ToolCallPaths
from tape_jupyter.providers.streams.events import StreamEvent, same_json

_SHORT = ("content", "tool_calls", "refusal")
_REASONING = ("reasoning", "reasoning_content")


class ChatMessages:
    """`{"choices": [{"message": ..., "finish_reason": ...}]}`."""

    parts = "choices"

    def __init__(self, *stop_reasons: str) -> None:
        self.stop_reasons = stop_reasons

    def read(self, events: Sequence[StreamEvent]) -> Message:
        return chat_stream.read(events)

    def rewrite(
        self, events: Sequence[StreamEvent], message: Mapping[str, Any]
    ) -> list[StreamEvent]:
        return chat_stream.rewrite(events, message)

    def compose(self, message: Mapping[str, Any]) -> list[StreamEvent]:
        return chat_stream.compose(message)

    def expanded(self, partial: Mapping[str, Any], message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Where there is one choice, its message's own keys say enough."""
        choices = message.get("choices")
        message_fields = {key: partial[key] for key in _SHORT if key in partial}
        one = isinstance(choices, list) and len(choices) == 1 and "choices" not in partial
        if not message_fields or not one or not isinstance(choices, list):
            return partial
        rest = {key: value for key, value in partial.items() if key not in message_fields}
        choice = as_mapping(choices[0])
        return {
            **rest,
            "choices": [
                {**choice, "message": {**as_mapping(choice.get("message")), **message_fields}}
            ],
        }

    def adjust_dependents(self, old: Mapping[str, Any], new: Message) -> list[str]:
        before = {str(choice.get("index", 0)): choice for choice in maps(old.get("choices"))}
        notes: list[str] = []
        for choice in as_list(new.get("choices")):
            if isinstance(choice, dict):
                was = before.get(str(choice.get("index", 0)))
                notes += _settle_choice(was, choice) if was else []
        return notes

    def part_problem(self, part: Mapping[str, Any]) -> tuple[str, str]:
        if not isinstance(part.get("message"), dict):
            return "message", "a choice has a message"
        if not isinstance(dig(part, "message.content"), str | list | None):
            return "message.content", "a content is a text, a list of parts or null"
        return "", ""

    def texts(self, message: Mapping[str, Any]) -> Iterator[Path]:
        for at, choice in enumerate(as_list(message.get("choices"))):
            content = dig(choice, "message.content")
            place: Path = ("choices", at, "message", "content")
            if isinstance(content, str):
                yield place
            for number, _ in of_type(content, "text"):
                yield (*place, number, "text")

    def thinking(self, message: Mapping[str, Any]) -> Iterator[Path]:
        for at, choice in enumerate(as_list(message.get("choices"))):
            for key in _REASONING:
                if as_text(dig(choice, f"message.{key}")):
                    yield ("choices", at, "message", key)

    def tool_calls(self, message: Mapping[str, Any]) -> Iterator[ToolCallPaths]:
        for at, choice in enumerate(as_list(message.get("choices"))):
            for number, call in enumerate(as_list(dig(choice, "message.tool_calls"))):
                where: Path = ("choices", at, "message", "tool_calls", number)
                custom = "custom" in as_mapping(call)
                inner, key = ("custom", "input") if custom else ("function", "arguments")
                yield ToolCallPaths(where, (*where, inner, "name"), (*where, inner, key))

    def stops(self, message: Mapping[str, Any]) -> Iterator[Path]:
        for at in range(len(as_list(message.get("choices")))):
            yield ("choices", at, "finish_reason")


def _settle_choice(old: Mapping[str, Any], new: Message) -> list[str]:
    notes: list[str] = []
    called = bool(dig(old, "message.tool_calls"))
    calls = bool(dig(new, "message.tool_calls"))
    ended = old.get("finish_reason")
    if called != calls and ended is not None and same_json(ended, new.get("finish_reason")):
        if calls:
            new["finish_reason"] = "tool_calls"
        elif ended == "tool_calls":
            new["finish_reason"] = "stop"
        if new["finish_reason"] != ended:
            notes.append(f"finish_reason is {new['finish_reason']} now")
    if called and dig(new, "message.tool_calls") == []:
        del new["message"]["tool_calls"]  # no host sends an empty list
    if _has_stale_logprobs(old, new):
        new["logprobs"] = None
    return notes


def _has_stale_logprobs(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Log probabilities are of the recorded tokens."""
    kept = new.get("logprobs") and same_json(old.get("logprobs"), new.get("logprobs"))
    return bool(kept) and dig(old, "message.content") != dig(new, "message.content")
