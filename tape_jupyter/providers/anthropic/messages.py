"""Messages of Anthropic's API as people edit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tape_jupyter.providers.anthropic import stream
from tape_jupyter.providers.json_access import maps
from tape_jupyter.providers.message_parts import of_type, touched_parts, type_problem
from tape_jupyter.providers.protocol import TAPE_ONLY, Message, Path, ToolCallPaths
from tape_jupyter.providers.streams.events import StreamEvent


class AnthropicMessages:
    """`{"content": [blocks], "stop_reason": ...}`."""

    parts = "content"
    stop_reasons = (
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
    )

    def read(self, events: Sequence[StreamEvent]) -> Message:
        return stream.read(events)

    def rewrite(
        self, events: Sequence[StreamEvent], message: Mapping[str, Any]
    ) -> list[StreamEvent]:
        return stream.rewrite(events, message)

    def compose(self, message: Mapping[str, Any]) -> list[StreamEvent]:
        return stream.compose(message)

    def expanded(self, partial: Mapping[str, Any], _: Mapping[str, Any]) -> Mapping[str, Any]:
        content = partial.get("content")
        if isinstance(content, str):
            return {**partial, "content": [{"type": "text", "text": content}]}
        return partial

    def adjust_dependents(self, old: Mapping[str, Any], new: Message) -> list[str]:
        return [*_settle_stop(old, new), *_settle_thinking(old, new)]

    def part_problem(self, part: Mapping[str, Any]) -> tuple[str, str]:
        return type_problem(part)

    def texts(self, message: Mapping[str, Any]) -> Iterator[Path]:
        for at, _ in of_type(message.get("content"), "text"):
            yield ("content", at, "text")

    def thinking(self, message: Mapping[str, Any]) -> Iterator[Path]:
        for at, _ in of_type(message.get("content"), "thinking"):
            yield ("content", at, "thinking")

    def tool_calls(self, message: Mapping[str, Any]) -> Iterator[ToolCallPaths]:
        for at, _ in of_type(message.get("content"), "tool_use"):
            call: Path = ("content", at)
            yield ToolCallPaths(call, (*call, "name"), (*call, "input"))

    def stops(self, _: Mapping[str, Any]) -> Iterator[Path]:
        yield ("stop_reason",)


def _settle_stop(old: Mapping[str, Any], new: Message) -> list[str]:
    """A reply that calls a tool ends so, one that does not, not; unless the person said how it
    ends.
    """
    before, after = _has_tool_call(old), _has_tool_call(new)
    ended = old.get("stop_reason")
    if before == after or new.get("stop_reason") != ended:
        return []
    if after:
        new["stop_reason"] = "tool_use"
    elif ended == "tool_use":
        new["stop_reason"] = "end_turn"
    if new.get("stop_reason") == ended:
        return []
    return [f"stop_reason is {new['stop_reason']} now"]


def _has_tool_call(message: Mapping[str, Any]) -> bool:
    return any(block.get("type") == "tool_use" for block in maps(message.get("content")))


def _settle_thinking(old: Mapping[str, Any], new: Message) -> list[str]:
    """A signature is for the thinking and what follows it: it holds where nothing from there on
    changed.
    """
    lost = False
    for block in touched_parts(old.get("content"), new.get("content")):
        kind = block.get("type")
        if kind == "thinking" and block.get("signature"):
            block["signature"] = ""
            lost = True
        lost = lost or kind == "redacted_thinking"
    if not lost:
        return []
    return [f"{TAPE_ONLY}: thinking lost its signature, and the API refuses it without one"]
