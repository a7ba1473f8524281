"""Models that speak over WebSockets: OpenAI Realtime, OpenAI Responses, Gemini Live. Values only.

A dialogue is many requests and replies in one call: what it cost is the sum over its turns. A
message that holds none of the words below says nothing of model, tools or usage, and is passed over
unparsed: audio comes in thousands. JSON in a spelling that no line can hold stands there as a text,
its quotes escaped.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.core.websocket import WebSocketFrame
from tape_jupyter.encoding.http.websocket import parse_frame
from tape_jupyter.errors import CassetteError
from tape_jupyter.providers.gemini import view
from tape_jupyter.providers.json_access import (
    as_mapping,
    as_text,
    dig,
    error_text,
    maps,
    sampling_settings,
    tools,
    usage,
)
from tape_jupyter.providers.openai import responses
from tape_jupyter.providers.types import Facts, Tool, ToolCall, ToolResult, Usage

_WANTED = re.compile(
    rb'"(?:model|tools|response\.(?:done|completed|failed|incomplete)|function_call_output|usage_?[mM]etadata'
    rb'|tool_?[cC]all|tool_?[rR]esponse|error)\\?"'
)
_WIRES = (
    (re.compile(r"/realtime(?:/\w+)?$"), "openai_realtime", "realtime", "openai"),
    (re.compile(r"/responses$"), "openai_responses", "responses", "openai"),
    (re.compile(r"BidiGenerateContent(?:Constrained)?$"), "gemini_live", "live", "gemini"),
)
_SAMPLING = {
    "temperature": ("temperature", "session.temperature", "setup.generationConfig.temperature"),
    "top_p": ("top_p", "setup.generationConfig.topP"),
    "top_k": ("setup.generationConfig.topK",),
    "seed": ("setup.generationConfig.seed",),
    "max_tokens": (
        *("max_output_tokens", "session.max_output_tokens", "session.max_response_output_tokens"),
        "setup.generationConfig.maxOutputTokens",
    ),
    "voice": ("session.audio.output.voice", "session.voice", "setup.generationConfig.speechConfig"),
}
_USAGE = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "cached": ("input_tokens_details.cached_tokens", "input_token_details.cached_tokens"),
}
_LIVE_USAGE = {**view.USAGE, "output": (*view.USAGE["output"], "responseTokenCount")}


def realtime_facts(request: Request, reply: Reply, provider: str) -> Facts:
    """What can be told of a dialogue, or of a later part of one. Never raises. `provider` is what
    the host tells.
    """
    dialogue = _Dialogue()
    for frame in _read_frames(reply.body):
        value = _parse_json(frame)
        if isinstance(value, dict):
            dialogue.sent(value) if frame.by == "sent" else dialogue.got(value)
    url = urlsplit(request.url)
    wire, api, owner = next(
        ((w, a, o) for path, w, a, o in _WIRES if path.search(url.path)), ("", "", "")
    )
    model = dialogue.model or next(iter(parse_qs(url.query).get("model", ())), "")
    return Facts(
        provider=provider or owner,
        wire=wire,
        api=api,
        model=model,
        answered=dialogue.answered,
        sampling=sampling_settings(dialogue.setup, _SAMPLING),
        tools=tuple(dict.fromkeys(dialogue.tools)),
        results=tuple(dialogue.results),
        calls=tuple(dialogue.calls),
        usage=dialogue.usage,
        stop=dialogue.stop,
        error=dialogue.error,
        streamed=True,
    )


def _read_frames(body: bytes) -> Iterator[WebSocketFrame]:
    for line in body.split(b"\n"):
        if _WANTED.search(line):
            try:
                yield parse_frame(line)
            except CassetteError:
                continue


def _parse_json(frame: WebSocketFrame) -> Any:
    try:
        return json.loads(frame.data) if frame.is_message else None
    except (ValueError, RecursionError):
        return None


class _Dialogue:
    """What the messages of a dialogue say, together."""

    def __init__(self) -> None:
        self.model = self.answered = self.stop = self.error = ""
        self.setup: dict[str, Any] = {}
        self.tools: list[Tool] = []
        self.results: list[ToolResult] = []
        self.calls: list[ToolCall] = []
        self.usage: Usage | None = None

    def sent(self, value: dict[str, Any]) -> None:
        self.setup = {**self.setup, **value}
        for place in (value, dig(value, "session"), dig(value, "response"), dig(value, "setup")):
            self.model = self.model or as_text(dig(place, "model")).rpartition("/")[2]
            self.tools += tools(maps(dig(place, "tools")))
            self.tools += view.ask(place).tools
        self.results += responses.ask(value).results
        if dig(value, "item.type") == "function_call_output":
            self.results.append(ToolResult(as_text(dig(value, "item.call_id")), ""))
        answers = dig(value, "toolResponse.functionResponses") or dig(
            value, "tool_response.functionResponses"
        )
        answers = answers or dig(value, "tool_response.function_responses")
        self.results += [
            ToolResult(as_text(each.get("id")), as_text(each.get("name"))) for each in maps(answers)
        ]

    def got(self, value: dict[str, Any]) -> None:
        response = as_mapping(dig(value, "response"))
        self.answered = (
            as_text(response.get("model")) or as_text(dig(value, "session.model")) or self.answered
        )
        if as_text(dig(value, "type")) in (
            "response.done",
            "response.completed",
            "response.failed",
            "response.incomplete",
        ):
            answer = responses.answer(response)
            self.calls += answer.calls
            self.stop = answer.stop
            self._add_usage(usage(response, "usage", _USAGE))
        tool_calls = as_mapping(dig(value, "toolCall") or dig(value, "tool_call"))
        for call in itertools.chain(
            maps(tool_calls.get("functionCalls")), maps(tool_calls.get("function_calls"))
        ):
            self.calls.append(
                ToolCall(as_text(call.get("id")), as_text(call.get("name")), call.get("args"))
            )
        self._add_usage(usage(value, "usageMetadata", _LIVE_USAGE))
        self.error = error_text(value, failed=False) or self.error

    def _add_usage(self, more: Usage | None) -> None:
        if more is not None:
            self.usage = together(self.usage, more)


def together(one: Usage | None, other: Usage | None) -> Usage | None:
    """The tokens of both."""
    if one is None or other is None:
        return one or other
    return Usage(*(a + b for a, b in zip(one, other, strict=True)))
