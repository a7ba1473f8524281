"""Anthropic's Messages API, also as Vertex and Bedrock carry it. Looks at values only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tape_jupyter.providers.json_access import (
    as_mapping,
    as_text,
    count,
    dig,
    key,
    maps,
    parse_arguments,
    sampling_settings,
    tools,
)
from tape_jupyter.providers.types import ReplyView, RequestView, ToolCall, ToolResult, Usage

WANTED = (b"message_start", b"tool_use", b"input_json_delta", b"message_delta", b'"error"')
"""Text and thinking deltas are passed over."""

SAMPLING = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "max_tokens": ("max_tokens", "max_tokens_to_sample"),
    "stop": ("stop_sequences",),
    "reasoning": ("thinking",),
}


def ask(body: Any) -> RequestView:
    return RequestView(
        model=as_text(dig(body, "model")),
        sampling=sampling_settings(body, SAMPLING),
        streamed=dig(body, "stream") is True,
        tools=tools(maps(dig(body, "tools"))),
        results=tuple(_read_results(body)),
    )


def _read_results(body: Any) -> Iterator[ToolResult]:
    names: dict[str, str] = {}
    messages = dig(body, "messages")
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if type(message) is dict else None
        if type(content) is not list:  # most turns of a long history are texts
            continue
        for block in maps(content):
            if block.get("type") == "tool_use":
                names[as_text(block.get("id"))] = as_text(block.get("name"))
            elif block.get("type") == "tool_result":
                answered = as_text(block.get("tool_use_id"))
                yield ToolResult(answered, names.get(answered, ""))


def answer(body: Any) -> ReplyView:
    """`server_tool_use` blocks were run by the provider: nobody here is asked to."""
    tool_blocks = (block for block in maps(dig(body, "content")) if block.get("type") == "tool_use")
    return ReplyView(
        model=as_text(dig(body, "model")),
        calls=tuple(
            ToolCall(as_text(b.get("id")), as_text(b.get("name")), b.get("input"))
            for b in tool_blocks
        ),
        usage=_read_usage(dig(body, "usage")),
        stop=as_text(dig(body, "stop_reason")),
    )


def _read_usage(usage: Any) -> Usage | None:
    """Anthropic's `input_tokens` leaves out those read from and written to the cache."""
    if not isinstance(usage, Mapping):
        return None
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Usage(
        count(usage.get("input_tokens")) + cached + written,
        count(usage.get("output_tokens")),
        cached,
        written,
    )


def assemble(events: Iterable[Any]) -> dict[str, Any]:
    """The message that a stream amounts to, without its text."""
    message: dict[str, Any] = {}
    blocks: dict[Any, dict[str, Any]] = {}
    for event in events:
        match dig(event, "type"):
            case "message_start":
                message.update(as_mapping(event.get("message")))
            case "content_block_start":
                blocks[key(event.get("index"))] = {
                    **as_mapping(event.get("content_block")),
                    "json": "",
                }
            case "content_block_delta":
                block = blocks.setdefault(key(event.get("index")), {"json": ""})
                block["json"] += as_text(dig(event, "delta.partial_json"))
            case "message_delta":
                message.update(as_mapping(event.get("delta")))
                message["usage"] = {
                    **as_mapping(message.get("usage")),
                    **as_mapping(event.get("usage")),
                }
            case "error":
                message["error"] = event.get("error")
    message["content"] = [
        {**b, "input": parse_arguments(b["json"]) if b["json"] else b.get("input")}
        for b in blocks.values()
    ]
    return message
