"""Cohere's chat (v2, and v1 as far as it goes), embed and rerank. Looks at values only."""

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

WANTED = (b'"message-start"', b'"tool-call-', b'"message-end"', b'"stream-end"', b'"error"')

SAMPLING = {
    "temperature": ("temperature",),
    "top_p": ("p",),
    "top_k": ("k",),
    "seed": ("seed",),
    "max_tokens": ("max_tokens",),
    "stop": ("stop_sequences",),
    "presence_penalty": ("presence_penalty",),
    "frequency_penalty": ("frequency_penalty",),
    "reasoning": ("thinking",),
}
USAGE = {"input": ("input_tokens",), "output": ("output_tokens",)}


def ask(body: Any) -> RequestView:
    declared = list(maps(dig(body, "tools")))
    return RequestView(
        model=as_text(dig(body, "model")),
        sampling=sampling_settings(body, SAMPLING),
        streamed=dig(body, "stream") is True,
        tools=tools(declared, "function.name") or tools(declared),
        results=tuple(_read_results(body)),
    )


def _read_results(body: Any) -> Iterator[ToolResult]:
    names: dict[str, str] = {}
    for message in maps(dig(body, "messages")):
        for call in maps(message.get("tool_calls")):
            names[as_text(call.get("id"))] = as_text(dig(call, "function.name"))
        if message.get("role") == "tool":
            answered = as_text(message.get("tool_call_id"))
            yield ToolResult(answered, names.get(answered, ""))
    for result in maps(dig(body, "tool_results")):  # v1
        yield ToolResult("", as_text(dig(result, "call.name")))


def answer(body: Any) -> ReplyView:
    """Cohere's replies do not name the model. Billed tokens are what counts; v1 keeps them in
    `meta`.
    """
    calls = maps(dig(body, "message.tool_calls"))
    return ReplyView(
        model=as_text(dig(body, "model")),
        calls=tuple(
            ToolCall(
                as_text(c.get("id")),
                as_text(dig(c, "function.name")),
                parse_arguments(dig(c, "function.arguments")),
            )
            for c in calls
        ),
        usage=usage(body, "usage.billed_units", USAGE)
        or usage(body, "usage.tokens", USAGE)
        or usage(body, "meta.billed_units", USAGE),
        stop=as_text(dig(body, "finish_reason")),
    )


def assemble(events: Iterable[Any]) -> dict[str, Any]:
    """The reply that a stream amounts to, without its text."""
    response: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for event in events:
        match dig(event, "type"):
            case "tool-call-start":
                call = as_mapping(dig(event, "delta.message.tool_calls"))
                calls.append(
                    {**call, "function": {"arguments": "", **as_mapping(call.get("function"))}}
                )
            case "tool-call-delta" if calls:
                function = calls[-1]["function"]
                more = dig(event, "delta.message.tool_calls.function.arguments")
                function["arguments"] = as_text(function["arguments"]) + as_text(more)
            case "message-end":
                response.update(as_mapping(event.get("delta")))
        if dig(event, "event_type") == "stream-end":  # v1
            response.update(as_mapping(event.get("response")))
    return {**response, "message": {"tool_calls": calls}}
