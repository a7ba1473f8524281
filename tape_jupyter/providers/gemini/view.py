"""Google's generateContent, on the Gemini API and on Vertex. Looks at values only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tape_jupyter.providers.json_access import as_text, dig, maps, sampling_settings, tools, usage
from tape_jupyter.providers.types import ReplyView, RequestView, ToolCall, ToolResult

WANTED: tuple[bytes, ...] = ()
"""Chunks are few and large, and usage stands in every one."""

_CONFIG = ("generationConfig", "generation_config")


def _build_places(*names: str) -> tuple[str, ...]:
    return tuple(f"{config}.{name}" for config in _CONFIG for name in names)


SAMPLING = {
    "temperature": _build_places("temperature"),
    "top_p": _build_places("topP", "top_p"),
    "top_k": _build_places("topK", "top_k"),
    "seed": _build_places("seed"),
    "max_tokens": _build_places("maxOutputTokens", "max_output_tokens"),
    "stop": _build_places("stopSequences", "stop_sequences"),
    "presence_penalty": _build_places("presencePenalty"),
    "frequency_penalty": _build_places("frequencyPenalty"),
    "reasoning": _build_places("thinkingConfig"),
}
USAGE = {
    "input": ("promptTokenCount", "toolUsePromptTokenCount"),
    "output": ("candidatesTokenCount", "thoughtsTokenCount"),
    "cached": ("cachedContentTokenCount",),
}


def ask(body: Any) -> RequestView:
    """The model and whether it streams stand in the path, not here."""
    declared = (
        declaration
        for kit in maps(dig(body, "tools"))
        for declaration in maps(kit.get("functionDeclarations") or kit.get("function_declarations"))
    )
    return RequestView(
        model=as_text(dig(body, "model")).rpartition("/")[2],
        sampling=sampling_settings(body, SAMPLING),
        tools=tools(declared),
        results=tuple(_read_results(body)),
    )


def _read_results(body: Any) -> Iterator[ToolResult]:
    for content in maps(dig(body, "contents")):
        for part in maps(content.get("parts")):
            response = part.get("functionResponse") or part.get("function_response")
            if response:
                yield ToolResult(as_text(dig(response, "id")), as_text(dig(response, "name")))


def answer(body: Any) -> ReplyView:
    candidates = list(maps(dig(body, "candidates")))
    blocked = as_text(dig(body, "promptFeedback.blockReason"))
    return ReplyView(
        model=as_text(dig(body, "modelVersion")),
        calls=tuple(call for candidate in candidates for call in _read_calls(candidate)),
        usage=usage(body, "usageMetadata", USAGE),
        stop=next((as_text(candidate.get("finishReason")) for candidate in candidates), blocked),
    )


def _read_calls(candidate: Any) -> Iterator[ToolCall]:
    for part in maps(dig(candidate, "content.parts")):
        call = part.get("functionCall")
        if call:
            yield ToolCall(as_text(dig(call, "id")), as_text(dig(call, "name")), dig(call, "args"))


def assemble(events: Iterable[Any]) -> dict[str, Any]:
    """The response that a stream amounts to: the last word on usage, model and reason, all the
    parts.
    """
    response: dict[str, Any] = {}
    parts: list[Any] = []
    reason = ""
    for event in events:
        response.update(
            {
                key: event[key]
                for key in ("modelVersion", "usageMetadata", "error", "promptFeedback")
                if dig(event, key)
            }
        )
        for candidate in maps(dig(event, "candidates")):
            parts += maps(dig(candidate, "content.parts"))
            reason = as_text(candidate.get("finishReason")) or reason
    return {**response, "candidates": [{"content": {"parts": parts}, "finishReason": reason}]}
