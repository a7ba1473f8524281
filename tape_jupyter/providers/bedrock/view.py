"""Amazon Bedrock: Converse, and InvokeModel, which carries the model maker's own wire.

Looks at values only.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tape_jupyter.providers.anthropic import view
from tape_jupyter.providers.http import loads
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
from tape_jupyter.providers.openai import chat
from tape_jupyter.providers.types import ReplyView, RequestView, ToolCall, ToolResult, Usage

WANTED = (b"messageStart", b"toolUse", b"messageStop", b"metadata", b"xception", b"chunk")
"""Of a ConverseStream, text deltas are passed over; an InvokeModel stream wraps every event in
base64.
"""

SAMPLING = {
    "temperature": (
        "inferenceConfig.temperature",
        "textGenerationConfig.temperature",
        "temperature",
    ),
    "top_p": (
        "inferenceConfig.topP",
        "inferenceConfig.top_p",
        "textGenerationConfig.topP",
        "top_p",
    ),
    "top_k": (
        "additionalModelRequestFields.top_k",
        "additionalModelRequestFields.inferenceConfig.topK",
        "top_k",
    ),
    "max_tokens": (
        "inferenceConfig.maxTokens",
        "inferenceConfig.max_new_tokens",
        "max_gen_len",
        "max_tokens",
    ),
    "stop": ("inferenceConfig.stopSequences",),
    "reasoning": ("additionalModelRequestFields.thinking",),
}


def ask(body: Any) -> RequestView:
    """The model and whether it streams stand in the path, not here."""
    if dig(body, "anthropic_version"):
        return view.ask(body)
    return RequestView(
        sampling=sampling_settings(body, SAMPLING),
        tools=tools(maps(dig(body, "toolConfig.tools")), "toolSpec.name"),
        results=tuple(_read_results(body)),
    )


def _read_results(body: Any) -> Iterator[ToolResult]:
    names: dict[str, str] = {}
    for message in maps(dig(body, "messages")):
        for block in maps(message.get("content")):
            if "toolUse" in block:
                names[as_text(dig(block, "toolUse.toolUseId"))] = as_text(
                    dig(block, "toolUse.name")
                )
            elif "toolResult" in block:
                answered = as_text(dig(block, "toolResult.toolUseId"))
                yield ToolResult(answered, names.get(answered, ""))


def answer(body: Any) -> ReplyView:
    """Told apart by shape: Anthropic's message, a chat completion, or Converse and its likes."""
    if as_text(dig(body, "type")) in {"message", "error"}:
        return view.answer(body)
    if dig(body, "choices") is not None:
        return chat.answer(body)
    return ReplyView(
        calls=tuple(_read_calls(body)),
        usage=_read_usage(body),
        stop=as_text(dig(body, "stopReason"))
        or as_text(dig(body, "stop_reason"))
        or _read_titan_stop(body),
    )


def _read_calls(body: Any) -> Iterator[ToolCall]:
    for block in maps(dig(body, "output.message.content")):
        use = block.get("toolUse")
        if use:
            yield ToolCall(
                as_text(dig(use, "toolUseId")), as_text(dig(use, "name")), dig(use, "input")
            )


def _read_usage(body: Any) -> Usage | None:
    """Converse leaves cached tokens out of inputTokens; Llama and Titan have names of their own."""
    usage = dig(body, "usage")
    if isinstance(usage, Mapping):
        cached = count(usage.get("cacheReadInputTokens")) or count(
            usage.get("cacheReadInputTokenCount")
        )
        written = count(usage.get("cacheWriteInputTokens")) or count(
            usage.get("cacheWriteInputTokenCount")
        )
        return Usage(
            count(usage.get("inputTokens")) + cached + written,
            count(usage.get("outputTokens")),
            cached,
            written,
        )
    if dig(body, "prompt_token_count") is not None:
        return Usage(
            count(dig(body, "prompt_token_count")), count(dig(body, "generation_token_count"))
        )
    if dig(body, "inputTextTokenCount") is not None:
        output = sum(count(result.get("tokenCount")) for result in maps(dig(body, "results")))
        return Usage(count(dig(body, "inputTextTokenCount")), output)
    return None


def _read_titan_stop(body: Any) -> str:
    return next(
        (as_text(result.get("completionReason")) for result in maps(dig(body, "results"))), ""
    )


def assemble(events: Iterable[Any]) -> dict[str, Any]:
    """The reply that a stream amounts to, in the shape `answer` reads."""
    events = [open_event(event) for event in events]
    if any(dig(event, "type") == "message_start" for event in events):
        return {**view.assemble(events), "type": "message"}
    if any(dig(event, "choices") is not None for event in events):
        return chat.assemble(events)
    return _assemble_converse(events)


def open_event(event: Any) -> Any:
    """The event inside an InvokeModel chunk; others as they are."""
    wrapped = dig(event, "chunk.bytes")
    if not isinstance(wrapped, str):
        return event
    try:
        return loads(base64.b64decode(wrapped))
    except (binascii.Error, ValueError):
        return None


def _assemble_converse(events: list[Any]) -> dict[str, Any]:
    response: dict[str, Any] = {}
    blocks: dict[Any, dict[str, Any]] = {}
    for event in events:
        for kind, payload in as_mapping(event).items():
            index = key(dig(payload, "contentBlockIndex"))
            match kind:
                case "contentBlockStart" if dig(payload, "start.toolUse"):
                    blocks[index] = {**as_mapping(dig(payload, "start.toolUse")), "json": ""}
                case "contentBlockDelta" if index in blocks:
                    blocks[index]["json"] += as_text(dig(payload, "delta.toolUse.input"))
                case "messageStop" | "metadata":
                    response.update(as_mapping(payload))
                case _ if kind.endswith("xception"):
                    response["error"] = {"type": kind, "message": dig(payload, "message")}
    content = [
        {"toolUse": {**block, "input": parse_arguments(block["json"])}} for block in blocks.values()
    ]
    return {**response, "output": {"message": {"content": content}}}
