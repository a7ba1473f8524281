"""Ollama's own API (chat, generate, embed); its /v1 paths are openai_chat's. Looks at values only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tape_jupyter.providers.json_access import (
    as_text,
    count,
    dig,
    maps,
    parse_arguments,
    sampling_settings,
    tools,
)
from tape_jupyter.providers.types import ReplyView, RequestView, ToolCall, ToolResult, Usage

WANTED = (b'"tool_calls"', b'"done":true', b'"done": true', b'"error"')

SAMPLING = {
    "temperature": ("options.temperature",),
    "top_p": ("options.top_p",),
    "top_k": ("options.top_k",),
    "seed": ("options.seed",),
    "max_tokens": ("options.num_predict",),
    "stop": ("options.stop",),
    "reasoning": ("think",),
}


def ask(body: Any) -> RequestView:
    """It streams unless told not to."""
    return RequestView(
        model=as_text(dig(body, "model")),
        sampling=sampling_settings(body, SAMPLING),
        streamed=dig(body, "stream") is not False,
        tools=tools(maps(dig(body, "tools")), "function.name"),
        results=tuple(_read_results(body)),
    )


def _read_results(body: Any) -> Iterator[ToolResult]:
    for message in maps(dig(body, "messages")):
        if message.get("role") == "tool":
            yield ToolResult(
                as_text(message.get("tool_call_id")),
                as_text(message.get("tool_name")) or as_text(message.get("name")),
            )


def answer(body: Any) -> ReplyView:
    return ReplyView(
        model=as_text(dig(body, "model")),
        calls=tuple(_read_calls(dig(body, "message.tool_calls"))),
        usage=_read_usage(body),
        stop=as_text(dig(body, "done_reason")),
    )


def _read_calls(calls: Any) -> Iterator[ToolCall]:
    for call in maps(calls):
        yield ToolCall(
            as_text(call.get("id")),
            as_text(dig(call, "function.name")),
            parse_arguments(dig(call, "function.arguments")),
        )


def _read_usage(body: Any) -> Usage | None:
    """A prompt found whole in the cache has no prompt_eval_count."""
    counts = dig(body, "prompt_eval_count"), dig(body, "eval_count")
    if counts == (None, None):
        return None
    return Usage(count(counts[0]), count(counts[1]))


def assemble(events: Iterable[Any]) -> dict[str, Any]:
    """The reply that the lines amount to: the last one holds the counts, any may hold tool calls."""
    response: dict[str, Any] = {}
    calls: list[Any] = []
    for event in events:
        if isinstance(event, dict):
            calls += maps(dig(event, "message.tool_calls"))
            response.update(event)
    return {**response, "message": {"tool_calls": calls}}
