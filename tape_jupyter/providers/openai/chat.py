"""OpenAI's Chat Completions, as a hundred hosts speak it; embeddings and completions too.

Looks at values only. Hosts differ (a repeated role, no finish_reason, usage elsewhere): nothing
here is required.

Mistral's chat, which is OpenAI's with lists as content and 9-character tool ids.

Looks at values only. `random_seed` for `seed` is known to openai_chat: gateways hand it through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tape_jupyter.providers.json_access import (
    as_mapping,
    as_text,
    dig,
    key,
    maps,
    parse_arguments,
    sampling_settings,
    tools,
    usage,
)
from tape_jupyter.providers.types import ReplyView, RequestView, ToolCall, ToolResult

WANTED = (
    b'"tool_calls"',
    b'"function_call"',
    b'"usage"',
    b'"error"',
    b'"finish_reason":"',
    b'"finish_reason": "',
)
"""Content deltas are passed over (their finish_reason is null)."""

SAMPLING = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "seed": ("seed", "random_seed"),
    "max_tokens": ("max_completion_tokens", "max_tokens"),
    "stop": ("stop",),
    "presence_penalty": ("presence_penalty",),
    "frequency_penalty": ("frequency_penalty",),
    "reasoning": ("reasoning_effort", "reasoning"),
}
USAGE = {
    "input": ("prompt_tokens",),
    "output": ("completion_tokens",),
    "cached": ("prompt_tokens_details.cached_tokens",),
}


def ask(body: Any) -> RequestView:
    return RequestView(
        model=as_text(dig(body, "model")),
        sampling=sampling_settings(body, SAMPLING),
        streamed=dig(body, "stream") is True,
        tools=tools(maps(dig(body, "tools")), "function.name")
        + tools(maps(dig(body, "functions"))),
        results=tuple(_read_results(body)),
    )


def _read_results(body: Any) -> Iterator[ToolResult]:
    names: dict[str, str] = {}
    for message in maps(dig(body, "messages")):
        if asked := message.get("tool_calls"):  # few turns of a long history have any
            for call in maps(asked):
                names[as_text(call.get("id"))] = as_text(dig(call, "function.name"))
        role = message.get("role")
        if role == "tool":
            answered = as_text(message.get("tool_call_id"))
            yield ToolResult(answered, names.get(answered) or as_text(message.get("name")))
        elif role == "function":
            yield ToolResult("", as_text(message.get("name")))


def answer(body: Any) -> ReplyView:
    choices = list(maps(dig(body, "choices")))
    return ReplyView(
        model=as_text(dig(body, "model")),
        calls=tuple(
            call for choice in choices for call in _read_calls(as_mapping(choice.get("message")))
        ),
        usage=usage(body, "usage", USAGE) or usage(body, "x_groq.usage", USAGE),
        stop=next((as_text(choice.get("finish_reason")) for choice in choices), ""),
    )


def _read_calls(message: Mapping[str, Any]) -> Iterator[ToolCall]:
    for call in maps(message.get("tool_calls")):
        if "custom" in call:  # free text for a tool of type "custom"
            yield ToolCall(
                as_text(call.get("id")),
                as_text(dig(call, "custom.name")),
                dig(call, "custom.input"),
            )
        else:
            arguments = parse_arguments(dig(call, "function.arguments"))
            yield ToolCall(as_text(call.get("id")), as_text(dig(call, "function.name")), arguments)
    if message.get("function_call"):  # the form before tools
        yield ToolCall(
            "",
            as_text(dig(message, "function_call.name")),
            parse_arguments(dig(message, "function_call.arguments")),
        )


def assemble(events: Iterable[Any]) -> dict[str, Any]:
    """The completion that a stream amounts to, without its text."""
    completion: dict[str, Any] = {}
    choices: dict[Any, dict[str, Any]] = {}
    for event in events:
        _merge_header_fields(completion, event)
        for chunk in maps(dig(event, "choices")):
            choice = choices.setdefault(
                key(chunk.get("index")), {"finish_reason": None, "calls": {}}
            )
            choice["finish_reason"] = chunk.get("finish_reason") or choice["finish_reason"]
            for delta in maps(dig(chunk, "delta.tool_calls")):
                _add_call_delta(choice["calls"], delta)
    for choice in choices.values():
        choice["message"] = {"tool_calls": list(choice.pop("calls").values())}
    return {**completion, "choices": list(choices.values())}


def _merge_header_fields(completion: dict[str, Any], event: Any) -> None:
    """Usage may come in every chunk, in the last, or null; the model may be "" at first."""
    completion.update(
        {name: event[name] for name in ("model", "usage", "x_groq", "error") if dig(event, name)}
    )


def _add_call_delta(calls: dict[Any, dict[str, Any]], delta: Mapping[str, Any]) -> None:
    """Some hosts leave the index out, and send each call whole."""
    index = delta.get("index")
    call = calls.setdefault(
        f"+{len(calls)}" if index is None else key(index),
        {"id": "", "function": {"name": "", "arguments": ""}},
    )
    call["id"] = as_text(delta.get("id")) or call["id"]
    call["function"]["name"] = as_text(dig(delta, "function.name")) or call["function"]["name"]
    before, more = call["function"]["arguments"], dig(delta, "function.arguments")
    if isinstance(before, str) and isinstance(more, str):
        call["function"]["arguments"] = before + more
    elif more not in (None, ""):
        call["function"]["arguments"] = more


__all__ = ["WANTED", "answer", "ask", "assemble"]
