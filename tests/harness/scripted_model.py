"""A model that follows a script: it asks for tools, several at once if told so, and says something in the end.

    with ScriptedModel([[call("add_todo", item="milk"), call("add_todo", item="eggs")], "Both are on the list."]) as model:
        anthropic.Anthropic(base_url=model.url, api_key="k")

Speaks Anthropic messages, OpenAI chat and responses, and Gemini; plain and streamed. Which turn a request gets is read
from the request itself: the turns that it already holds from the model. So answers never depend on the order in which
requests come. A script may tell several conversations apart: {"words of the question": [turn, ...], ...}.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.harness.provider import Provider, Scripted, Seen, sse


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: Mapping[str, Any]


def call(tool: str, /, **arguments: Any) -> ToolCall:
    """The model asks for a tool."""
    return ToolCall(tool, arguments)


Turn = str | Sequence[str | ToolCall]
Script = Sequence[Turn] | Mapping[str, Sequence[Turn]]


class ScriptedModel(Provider):
    def __init__(self, script: Script, **options: Any) -> None:
        super().__init__(**options)
        self._conversations = script if isinstance(script, Mapping) else {"": script}

    def _model(self, seen: Seen) -> Scripted:
        path = seen.path.split("?")[0]
        wire = next((wire for pattern, wire in _WIRES.items() if re.search(pattern, path)), None)
        if wire is None:
            return _refused(404, "no such path")
        body = seen.json
        text = json.dumps(
            [body.get(name) for name in ("messages", "input", "contents", "system", "instructions")]
        )
        goes_on = _goes_on(body)
        if goes_on is not None:
            asked, before = goes_on
        else:
            asked, before = (
                next((n for n, words in enumerate(self._conversations) if words in text), -1),
                0,
            )
        turns = list(self._conversations.values())[asked] if asked >= 0 else ()
        number = before + _turns_so_far(body)
        if number >= len(turns):
            return _refused(400, f"the script has no turn {number + 1} for this conversation")
        turn = turns[number]
        parts = [turn] if isinstance(turn, str) else list(turn)
        mark = f"{asked}x{number}x{hashlib.sha256(seen.body).hexdigest()[:12]}"
        whole, events = wire(body, parts, mark)
        streamed = bool(body.get("stream")) or "stream" in path.rpartition("/")[2]
        if streamed:
            return Scripted(200, {"content-type": "text/event-stream"}, events, delay=self.delay)
        return Scripted(
            200,
            {"content-type": "application/json"},
            [json.dumps(whole).encode()],
            delay=self.delay,
        )


def _refused(status: int, why: str) -> Scripted:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": why}}
    return Scripted(status, {"content-type": "application/json"}, [json.dumps(error).encode()])


def _goes_on(body: Mapping[str, Any]) -> tuple[int, int] | None:
    """The conversation, and its turns so far, that a request goes on with by the id of the reply before."""
    before = (body.get("thread") or {}).get("previous_message_id") or body.get(
        "previous_response_id"
    )
    found = re.fullmatch(r"[a-z]+_(\d+)x(\d+)x\w+", before or "")
    return (int(found[1]), int(found[2]) + 1) if found else None


def _turns_so_far(body: Mapping[str, Any]) -> int:
    """How often the model has spoken in what it is sent."""
    items = body.get("messages") or body.get("contents") or body.get("input") or []
    if isinstance(items, str):
        return 0
    spoken = [
        each.get("role") in ("assistant", "model")
        or each.get("type") in ("function_call", "reasoning")
        for each in items
    ]
    return sum(
        1 for before, now in zip([False, *spoken], spoken, strict=False) if now and not before
    )


# ---------------------------------------------------------------- wire forms


def _anthropic(
    body: Mapping[str, Any], parts: list[str | ToolCall], mark: str
) -> tuple[Any, list[bytes]]:
    blocks: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        if isinstance(part, str):
            blocks.append({"type": "text", "text": part})
        else:
            blocks.append(
                {
                    "type": "tool_use",
                    "id": f"toolu_{mark}_{number}",
                    "name": part.name,
                    "input": dict(part.arguments),
                }
            )
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 5}
    head = {
        "id": f"msg_{mark}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "m"),
    }
    whole = {**head, "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(blocks):
        tool = block["type"] == "tool_use"
        shell = {**block, "input": {}} if tool else {"type": "text", "text": ""}
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            if tool
            else {"type": "text_delta", "text": block["text"]}
        )
        events.append({"type": "content_block_start", "index": index, "content_block": shell})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": usage,
        }
    )
    events.append({"type": "message_stop"})
    return whole, sse(*((event["type"], event) for event in events))


def _chat(
    body: Mapping[str, Any], parts: list[str | ToolCall], mark: str
) -> tuple[Any, list[bytes]]:
    text = " ".join(part for part in parts if isinstance(part, str))
    calls = [
        {
            "id": f"call_{mark}_{number}",
            "type": "function",
            "function": {"name": part.name, "arguments": json.dumps(part.arguments)},
        }
        for number, part in enumerate(parts)
        if not isinstance(part, str)
    ]
    stop = "tool_calls" if calls else "stop"
    message = {
        "role": "assistant",
        "content": text or None,
        **({"tool_calls": calls} if calls else {}),
    }
    head = {"id": f"chatcmpl-{mark}", "created": 1_700_000_000, "model": body.get("model", "m")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    deltas = [{"role": "assistant", "content": text or None}]
    deltas += [{"tool_calls": [{"index": number, **each}]} for number, each in enumerate(calls)]
    chunk = {**head, "object": "chat.completion.chunk"}
    events = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append({**chunk, "choices": [], "usage": usage})
    return whole, [*sse(*((None, event) for event in events)), b"data: [DONE]\n\n"]


def _responses(
    body: Mapping[str, Any], parts: list[str | ToolCall], mark: str
) -> tuple[Any, list[bytes]]:
    items: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        if isinstance(part, str):
            content = [{"type": "output_text", "text": part, "annotations": []}]
            items.append({"id": f"msg_{mark}_{number}", "type": "message", "role": "assistant", "status": "completed", "content": content})  # fmt: skip
        else:
            items.append({
                "id": f"fc_{mark}_{number}", "type": "function_call", "call_id": f"call_{mark}_{number}", "name": part.name,
                "arguments": json.dumps(part.arguments), "status": "completed",
            })  # fmt: skip
    usage = {
        "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    whole = {
        "id": f"resp_{mark}", "object": "response", "created_at": 1_700_000_000, "status": "completed", "output": items,
        "model": body.get("model", "m"), "parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools", []),
        "usage": usage, "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
        "temperature": 1.0, "top_p": 1.0,
    }  # fmt: skip
    events: list[dict[str, Any]] = [
        {
            "type": "response.created",
            "response": {**whole, "status": "in_progress", "output": [], "usage": None},
        }
    ]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, sse(
        *((event["type"], {**event, "sequence_number": n}) for n, event in enumerate(events))
    )


def _gemini(
    body: Mapping[str, Any], parts: list[str | ToolCall], mark: str
) -> tuple[Any, list[bytes]]:
    told = [
        {"text": part}
        if isinstance(part, str)
        else {"functionCall": {"name": part.name, "args": dict(part.arguments)}}
        for part in parts
    ]
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"content": {"role": "model", "parts": told}, "finishReason": "STOP", "index": 0}
    whole = {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "m",
        "responseId": mark,
    }
    return whole, [f"data: {json.dumps(whole)}\r\n\r\n".encode()]


_WIRES = {
    r"/messages$": _anthropic,
    r"/chat/completions$": _chat,
    r"/responses$": _responses,
    r":(streamG|g)enerateContent$": _gemini,
}
