"""OpenAI's Responses API. Looks at values only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tape_jupyter.providers.json_access import (
    as_mapping,
    as_text,
    dig,
    maps,
    parse_arguments,
    sampling_settings,
    tools,
    usage,
)
from tape_jupyter.providers.types import ReplyView, RequestView, ToolCall, ToolResult

WANTED = (
    b'"response.completed"',
    b'"response.incomplete"',
    b'"response.failed"',
    b'"error"',
    b"output_item.done",
)
"""The last event holds the whole response; the items count when the stream was cut before it."""

SAMPLING = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_tokens": ("max_output_tokens",),
    "reasoning": ("reasoning",),
}
USAGE = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "cached": ("input_tokens_details.cached_tokens",),
}


def ask(body: Any) -> RequestView:
    return RequestView(
        model=as_text(dig(body, "model")),
        sampling=sampling_settings(body, SAMPLING),
        streamed=dig(body, "stream") is True,
        tools=tools(
            maps(dig(body, "tools"))
        ),  # built-in tools have no name: the provider runs them
        results=tuple(_read_results(body)),
    )


def _read_results(body: Any) -> Iterator[ToolResult]:
    names: dict[str, str] = {}
    for item in maps(dig(body, "input")):
        kind = item.get("type")
        if kind in ("function_call", "custom_tool_call"):
            names[as_text(item.get("call_id"))] = as_text(item.get("name"))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            answered = as_text(item.get("call_id"))
            yield ToolResult(answered, names.get(answered, ""))


def answer(body: Any) -> ReplyView:
    """`stop` is the status, with the reason when it is incomplete ("incomplete:
    max_output_tokens").
    """
    stop = (as_text(dig(body, "status")), as_text(dig(body, "incomplete_details.reason")))
    return ReplyView(
        model=as_text(dig(body, "model")),
        calls=tuple(_read_calls(body)),
        usage=usage(body, "usage", USAGE),
        stop=": ".join(part for part in stop if part),
    )


def _read_calls(body: Any) -> Iterator[ToolCall]:
    for item in maps(dig(body, "output")):
        if item.get("type") == "function_call":
            yield ToolCall(
                as_text(item.get("call_id")),
                as_text(item.get("name")),
                parse_arguments(item.get("arguments")),
            )
        elif item.get("type") == "custom_tool_call":
            yield ToolCall(
                as_text(item.get("call_id")), as_text(item.get("name")), item.get("input")
            )


def assemble(events: Iterable[Any]) -> dict[str, Any]:
    """The response in the last event that carries one; of a cut stream, the items that were done."""
    response: dict[str, Any] = {}
    done: list[Any] = []
    for event in events:
        response.update(as_mapping(dig(event, "response")))
        if dig(event, "type") == "response.output_item.done":
            done.append(dig(event, "item"))
        elif dig(event, "type") == "error":
            response["error"] = dig(event, "error") or {
                "type": dig(event, "code"),
                "message": dig(event, "message"),
            }
    return response if response.get("output") else {**response, "output": done}
