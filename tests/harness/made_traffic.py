"""Traffic made up in every provider's shape: what is asked and answered, whole and streamed, and the same with odd
values in odd places, as gateways, proxies and broken connections leave it. Equal in every process.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import struct
import zlib
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.core.websocket import WebSocketFrame
from tape_jupyter.encoding.http.websocket import line_of

JSON = (("content-type", "application/json"),)
SSE = (("content-type", "text/event-stream; charset=utf-8"), ("X-Request-ID", "req_7"))
LINES = (("content-type", "application/x-ndjson"),)
FRAMES = (("content-type", "application/vnd.amazon.eventstream"),)

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2.5, 2**60, "", "text", "{}", "[1", "7", [], {}, [[]], [{}], {"": ""}, [None, "a"],
    {"text": 1}, [{"type": "text"}], [{"type": "text", "text": "odd"}], {"type": "tool_use"}, "é\ud83e", "data:,x",
)  # fmt: skip
"""What stands where it is not expected."""

SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
ARGUMENTS = '{"place": "Größe", "days": [1, 2]}'
PICTURE = base64.b64encode(b"a picture, more or less").decode()


class Wire(NamedTuple):
    """An API: its address, requests, replies, and streams of events with the headers they come with."""

    name: str
    url: str
    requests: tuple[dict[str, Any], ...]
    replies: tuple[Any, ...]
    streams: tuple[tuple[Any, ...], ...] = ()
    headers: tuple[tuple[str, str], ...] = SSE
    is_named: bool = False
    """Whether each event is named beside its data."""


def _anthropic() -> Wire:
    tool_use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": json.loads(ARGUMENTS)}  # fmt: skip
    thinking = {"type": "thinking", "thinking": "Let me see.", "signature": "sig=="}
    text = {"type": "text", "text": "It will rain."}
    asked = {
        "model": "claude-sonnet-4-5", "max_tokens": 64, "temperature": 0.5, "top_p": 0.9, "top_k": 7,
        "stop_sequences": ["END"], "thinking": {"type": "enabled", "budget_tokens": 16}, "stream": True,
        "metadata": {"user_id": "user-9"}, "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "weather", "input_schema": SCHEMA}, {"type": "web_search_1", "name": "web_search"}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Rain?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}]},
            {"role": "assistant", "content": [thinking, text, tool_use]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": {"deep": [1]}, "is_error": True}]},
            {"role": "user", "content": "And then?"},
        ],
    }  # fmt: skip
    usage = {"input_tokens": 10, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 5}  # fmt: skip
    told = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-1", "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}  # fmt: skip
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "rain"}}  # fmt: skip
    cited = {"type": "text", "text": "Cited.", "citations": [{"type": "char_location", "cited_text": "C"}]}  # fmt: skip
    start = {"type": "message_start", "message": {**told, "content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}}  # fmt: skip

    def block(number: int, shell: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        told = [
            {"type": "content_block_delta", "index": number, "delta": delta} for delta in deltas
        ]
        return [
            {"type": "content_block_start", "index": number, "content_block": shell},
            *told,
            {"type": "content_block_stop", "index": number},
        ]

    end = [
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 9, "input_tokens": None}, "context_management": {"edits": []}},
        {"type": "message_stop"},
    ]  # fmt: skip
    long = (
        start,
        {"type": "ping"},
        *block(0, {"type": "thinking", "thinking": "", "signature": ""},
               {"type": "thinking_delta", "thinking": "Let me "}, {"type": "thinking_delta", "thinking": "see."},
               {"type": "signature_delta", "signature": "sig=="}),
        *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "It will "}, {"type": "text_delta", "text": "rain"},
               {"type": "text_delta", "text": " \ud83e"}, {"type": "text_delta", "text": "\udd8a."}),
        *block(2, {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
               {"type": "input_json_delta", "partial_json": ""}, {"type": "input_json_delta", "partial_json": ARGUMENTS[:9]},
               {"type": "input_json_delta", "partial_json": ARGUMENTS[9:]}),
        *end,
    )  # fmt: skip
    other = (
        start,
        *block(0, search),
        *block(1, {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result", "title": "Rain"}]}),
        *block(2, {"type": "text", "text": "Cited", "citations": []}, {"type": "citations_delta", "citation": {"cited_text": "C"}}, {"type": "text_delta", "text": "."}),
        *block(3, {"type": "redacted_thinking", "data": "xx"}),
        *block(4, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "short"}),
        *end,
    )  # fmt: skip
    failed = (start, *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I"})[:2],
              {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})  # fmt: skip
    return Wire(
        "anthropic",
        "https://api.anthropic.com/v1/messages",
        (asked, {"model": "claude-2", "prompt": "Human: hi", "max_tokens_to_sample": 5}),
        (
            {**told, "content": [thinking, text, tool_use]},
            {**told, "content": [text, cited, search, {"type": "redacted_thinking", "data": "x"}], "stop_reason": "end_turn"},
            {"type": "completion", "completion": " Hello", "stop_reason": "stop_sequence", "model": "claude-2"},
            {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}},
        ),
        (long, other, failed),
        is_named=True,
    )  # fmt: skip


def _chat(name: str, url: str) -> Wire:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}  # fmt: skip
    custom = {"id": "call_2", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    asked = {
        "model": "gpt-4o", "temperature": 0, "top_p": 1, "seed": 7, "max_completion_tokens": 9, "max_tokens": 8, "stop": ["END"],
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "reasoning_effort": "low", "stream": True, "user": "user-9",
        "service_tier": "flex", "provider": {"order": ["a"]},
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}, {"type": "custom", "custom": {"name": "shell"}}],
        "functions": [{"name": "older", "parameters": SCHEMA}],
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "name": "ann", "content": [
                {"type": "text", "text": "Rain?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
                {"type": "image_url", "image_url": "https://example.com/a.png"},
                {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}]},
            {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [call, custom]},
            {"role": "tool", "tool_call_id": "call_1", "content": "wet"},
            {"role": "tool", "tool_call_id": "call_2", "name": "shell", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": "", "function_call": {"name": "older", "arguments": "{}"}},
            {"role": "function", "name": "older", "content": "{\"a\": 1}"},
            {"role": "assistant", "refusal": "No.", "content": "" },
            {"role": "user", "content": "And then?"},
        ],
    }  # fmt: skip
    usage = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 3}}  # fmt: skip
    base = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-2024-08-06", "service_tier": "default", "system_fingerprint": "fp_1"}  # fmt: skip
    logprobs = {"content": [{"token": "It", "logprob": -0.1}], "refusal": None}
    chunk = {**base, "object": "chat.completion.chunk"}

    def deltas(*given: dict[str, Any], index: int = 0, end: Any = "stop") -> list[dict[str, Any]]:
        choices = [{"index": index, "delta": delta, "logprobs": None, "finish_reason": None} for delta in given]  # fmt: skip
        choices.append({"index": index, "delta": {}, "logprobs": None, "finish_reason": end})
        return [{**chunk, "choices": [choice]} for choice in choices]

    def parts(index: int | None, **inner: Any) -> dict[str, Any]:
        return {"tool_calls": [{**({} if index is None else {"index": index}), **inner}]}

    role = {"role": "assistant", "content": "", "refusal": None}
    said = (
        *deltas(role, {"content": "It will "}, {"content": "rain"}, {"content": " tomorrow."}),
        {**chunk, "choices": [], "usage": usage},
    )
    called = (
        *deltas(
            {**role, "content": None}, {"reasoning_content": "Let "}, {"reasoning_content": "me see."},
            parts(0, id="call_1", type="function", function={"name": "weather", "arguments": ""}),
            parts(0, function={"arguments": ARGUMENTS[:9]}), parts(0, function={"arguments": ARGUMENTS[9:]}),
            parts(1, id="call_2", type="custom", custom={"name": "shell", "input": "ls"}), parts(1, custom={"input": " -l"}),
            parts(None, id="call_3", type="function", function={"name": "third", "arguments": "{}"}),
            end="tool_calls",
        ),
    )  # fmt: skip
    whole_call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": {"place": "here"}}}  # fmt: skip
    objects = deltas(
        {"role": "assistant", "content": None}, {"tool_calls": [{"index": 0, **whole_call}, {"index": 2, **whole_call, "id": "call_2"}]},
        {"content": "So."}, end="tool_calls",
    )  # fmt: skip
    broken = ({**chunk, "error": {"message": "no"}, "choices": [{"index": 0, "delta": {"content": "I"}, "finish_reason": "error"}]},)  # fmt: skip
    mixed = list(deltas(role, {"content": "A"}, {"content": "b"}))
    mixed += deltas(role, {"content": "C"}, {"refusal": "No"}, {"refusal": " more"}, index=1, end="length")  # fmt: skip
    mixed[1]["choices"][0]["logprobs"] = logprobs
    mixed[2]["choices"][0]["logprobs"] = {"content": [{"token": "b", "logprob": -2}]}
    listed = (
        *deltas(
            {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": ", so"}]}]},
            {"content": [{"type": "text", "text": "Wet"}]}, {"content": [{"type": "text", "text": "."}]}, {"content": "!"},
            {"reasoning": "r", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "r"}]},
            {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "s", "signature": None}]},
            {"function_call": {"name": "older", "arguments": "{"}}, {"function_call": {"arguments": "}"}},
        ),
        {"error": {"message": "broke off", "type": "server_error", "code": 500}},
    )  # fmt: skip
    message = {"role": "assistant", "content": "It will rain.", "refusal": None, "annotations": []}
    return Wire(
        name,
        url,
        (asked, {"model": "gpt-3.5", "prompt": "Once", "random_seed": 3}, {"model": "e", "input": ["a", "b"]}),
        (
            {**base, "choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"}], "usage": usage},
            {**base, "choices": [{"index": 0, "message": {**message, "content": None, "reasoning": "Hm.", "tool_calls": [call, custom]}, "finish_reason": "tool_calls"}], "x_groq": {"usage": usage}},
            {**base, "choices": [{"index": 0, "message": {**message, "function_call": {"name": "older", "arguments": ARGUMENTS}}, "finish_reason": "function_call"},
                                 {"index": 1, "message": {**message, "content": [{"type": "text", "text": "B"}], "refusal": "No."}}]},
            {**base, "object": "text_completion", "choices": [{"index": 0, "text": "upon", "finish_reason": "length"}]},
            {"object": "list", "data": [{"embedding": [0.5], "index": 0}], "model": "e", "usage": {"prompt_tokens": 2}},
            {"error": {"message": "no", "type": "rate_limit", "code": "rate_limit_exceeded"}},
        ),
        (said, called, tuple(mixed), listed, tuple(objects), broken),
    )  # fmt: skip


def _responses() -> Wire:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": ARGUMENTS, "status": "completed"}  # fmt: skip
    asked = {
        "model": "gpt-5", "temperature": 1, "top_p": 0.5, "max_output_tokens": 99, "reasoning": {"effort": "low"}, "stream": True,
        "instructions": "Be brief.", "safety_identifier": "user-9",
        "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}, {"type": "web_search"}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Rain?"}, {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}, {"type": "summary_text", "text": "so"}]},
            call,
            {"type": "function_call_output", "call_id": "call_1", "output": "wet"},
            {"type": "custom_tool_call", "call_id": "call_2", "name": "shell", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "a"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]},
        ],
    }  # fmt: skip
    text = {"type": "output_text", "text": "It will rain.", "annotations": [{"type": "url_citation", "url": "https://example.com"}], "logprobs": []}  # fmt: skip
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}  # fmt: skip
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text, {"type": "refusal", "refusal": "No."}]}  # fmt: skip
    shell = {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "shell", "input": "ls -l", "status": "completed"}  # fmt: skip
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rain"}}  # fmt: skip
    usage = {"input_tokens": 12, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 6, "total_tokens": 18}  # fmt: skip
    base = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5-2025", "error": None, "incomplete_details": None, "service_tier": "default"}  # fmt: skip
    first = {**base, "status": "in_progress", "output": [], "usage": None}

    def numbered(*events: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        return tuple({**event, "sequence_number": number} for number, event in enumerate(events))

    def item(number: int, item: dict[str, Any], *inner: dict[str, Any]) -> list[dict[str, Any]]:
        early = {**item, "content": []} if "content" in item else {**item}
        early |= {key: "" for key in ("arguments", "input") if key in item}
        early |= {"summary": []} if "summary" in item else {}
        early |= {"status": "in_progress"} if "status" in item else {}
        about = {"output_index": number}
        return [
            {"type": "response.output_item.added", "item": early, **about},
            *({"item_id": item["id"], **about, **each} for each in inner),
            {"type": "response.output_item.done", "item": item, **about},
        ]

    def told(number: int, kind: str, key: str, whole: str, **more: Any) -> list[dict[str, Any]]:
        cut = len(whole) // 2
        return [
            *({"type": f"response.{kind}.delta", "delta": part, **more} for part in (whole[:cut], whole[cut:])),
            {"type": f"response.{kind}.done", key: whole, **more},
        ]  # fmt: skip

    place = {"content_index": 0}
    items = [
        *item(0, reasoning, {"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}, "summary_index": 0},
              *told(0, "reasoning_summary_text", "text", "Hm.", summary_index=0),
              {"type": "response.reasoning_summary_part.done", "part": reasoning["summary"][0], "summary_index": 0}),
        *item(1, message, {"type": "response.content_part.added", "part": {**text, "text": "", "annotations": []}, **place},
              *told(1, "output_text", "text", "It will rain.", logprobs=[{"token": "It"}], **place),
              {"type": "response.output_text.annotation.added", "annotation_index": 0, "annotation": text["annotations"][0], **place},
              {"type": "response.content_part.done", "part": text, **place},
              {"type": "response.content_part.added", "part": {"type": "refusal", "refusal": ""}, "content_index": 1},
              *told(1, "refusal", "refusal", "No.", content_index=1)),
        *item(2, call, *told(2, "function_call_arguments", "arguments", ARGUMENTS)),
        *item(3, shell, *told(3, "custom_tool_call_input", "input", "ls -l")),
        *item(4, search, {"type": "response.web_search_call.searching"}),
    ]  # fmt: skip
    output = [reasoning, message, call, shell, search]
    begin = [{"type": "response.created", "response": first}, {"type": "response.in_progress", "response": first}]  # fmt: skip
    whole = numbered(*begin, *items, {"type": "response.completed", "response": {**base, "output": output, "usage": usage}})  # fmt: skip
    cut = numbered(*begin, *items[:-9])
    failed = numbered(*begin, *items[:4], {"type": "error", "code": "server_error", "message": "broke off", "param": None})  # fmt: skip
    bare = numbered(*begin, *items[7:14], {"type": "response.incomplete", "response": {**base, "status": "incomplete", "output": [], "incomplete_details": {"reason": "max_output_tokens"}, "usage": usage}})  # fmt: skip
    return Wire(
        "openai_responses",
        "https://api.openai.com/v1/responses",
        (asked, {"model": "gpt-5", "input": "Rain?"}),
        (
            {**base, "output": output, "usage": usage},
            {**base, "output": [message], "usage": usage, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            {**base, "status": "failed", "output": [], "error": {"code": "server_error", "message": "no"}},
        ),
        (whole, cut, failed, bare),
        is_named=True,
    )  # fmt: skip


def _gemini() -> Wire:
    asked = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 0.3, "topP": 0.8, "topK": 4, "seed": 5, "maxOutputTokens": 33, "stopSequences": ["END"],
                             "presencePenalty": 1, "frequencyPenalty": 2, "thinkingConfig": {"thinkingBudget": 1}},
        "tools": [{"functionDeclarations": [{"name": "weather", "parameters": SCHEMA}]}, {"function_declarations": [{"name": "older"}]}, {"googleSearch": {}}],
        "contents": [
            {"role": "user", "parts": [{"text": "Rain?"}, {"inlineData": {"mimeType": "image/png", "data": PICTURE}}, {"inline_data": {"mime_type": "audio/wav", "data": "x"}},
                                       {"fileData": {"fileUri": "gs://a"}}]},
            {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"functionCall": {"id": "fc1", "name": "weather", "args": {"place": "here"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "fc1", "name": "weather", "response": {"result": "wet"}}},
                                       {"function_response": {"name": "older", "response": {"a": [1]}}}]},
            {"parts": [{"text": "And then?"}]},
        ],
    }  # fmt: skip
    usage = {"promptTokenCount": 9, "toolUsePromptTokenCount": 1, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "cachedContentTokenCount": 3, "trafficType": "ON_DEMAND"}  # fmt: skip
    call = {"functionCall": {"name": "weather", "args": {"place": "here"}}}
    said = [{"text": "Hm.", "thought": True}, {"text": "It will "}, {"text": "rain."}, call, {"executableCode": {"code": "1+1"}}, {"text": "."}]  # fmt: skip

    def part(*parts: Any, **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, "index": 0, **more}], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro"}  # fmt: skip

    stream = (*map(part, said), part(finishReason="STOP"))
    whole = part(*said, finishReason="STOP")
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage}
    error = {"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED"}}
    return Wire(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent",
        (asked, {"contents": "Rain?", "model": "models/gemini-2.5-pro", "generation_config": {"top_p": 0.1}}),
        (whole, list(stream), blocked, error, [error]),
        (stream,),
    )  # fmt: skip


def _cohere() -> Wire:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
    asked = {
        "model": "command-a", "temperature": 0.3, "p": 0.7, "k": 3, "seed": 9, "max_tokens": 12, "stop_sequences": ["END"],
        "presence_penalty": 0.5, "frequency_penalty": 0.6, "thinking": {"type": "disabled"}, "stream": True,
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain?"},
            {"role": "assistant", "tool_plan": "I look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "document", "document": {"data": "wet"}}]},
        ],
    }  # fmt: skip
    older = {"message": "Rain?", "model": "command", "tools": [{"name": "weather"}], "chat_history": [{"role": "CHATBOT", "message": "Hi"}], "tool_results": [{"call": {"name": "weather"}, "outputs": [{}]}]}  # fmt: skip
    usage = {"billed_units": {"input_tokens": 5, "output_tokens": 3}, "tokens": {"input_tokens": 8, "output_tokens": 4}}  # fmt: skip
    stream = (
        {"id": "r1", "type": "message-start", "delta": {"message": {"role": "assistant", "content": []}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I look."}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "It will "}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "rain."}}}},
        {"type": "content-end", "index": 0},
        {"type": "tool-call-start", "index": 1, "delta": {"message": {"tool_calls": {**call, "function": {"name": "weather", "arguments": ""}}}}},
        {"type": "tool-call-delta", "index": 1, "delta": {"message": {"tool_calls": {"function": {"arguments": ARGUMENTS[:9]}}}}},
        {"type": "tool-call-delta", "index": 1, "delta": {"message": {"tool_calls": {"function": {"arguments": ARGUMENTS[9:]}}}}},
        {"type": "tool-call-end", "index": 1},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": usage}},
    )  # fmt: skip
    v1 = (
        {"event_type": "stream-start", "generation_id": "g"}, {"event_type": "text-generation", "text": "It"},
        {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": {"text": "It", "finish_reason": "COMPLETE", "meta": usage}},
    )  # fmt: skip
    message = {"role": "assistant", "content": [{"type": "text", "text": "It rains."}], "tool_plan": "I look.", "tool_calls": [call]}  # fmt: skip
    return Wire(
        "cohere",
        "https://api.cohere.com/v2/chat",
        (asked, older),
        (
            {"id": "r1", "message": message, "finish_reason": "TOOL_CALL", "usage": usage},
            {"text": "It", "finish_reason": "COMPLETE", "meta": usage},
            {"id": "r1", "message": message, "usage": {"tokens": usage["tokens"]}},
            {"message": "no such model"},
        ),
        (stream, v1),
    )  # fmt: skip


def _ollama() -> Wire:
    call = {"function": {"name": "weather", "arguments": {"place": "here"}}}
    asked = {
        "model": "qwen3", "think": True, "options": {"temperature": 0.1, "top_p": 0.2, "top_k": 3, "seed": 4, "num_predict": 5, "stop": ["END"]},
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain?", "images": [PICTURE]},
            {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [call]},
            {"role": "tool", "tool_name": "weather", "content": "wet"}, {"role": "tool", "tool_call_id": "t", "name": "n", "content": "x"},
        ],
    }  # fmt: skip
    base = {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z"}
    counts = {"done": True, "done_reason": "stop", "prompt_eval_count": 6, "eval_count": 7}
    lines = (
        {**base, "message": {"role": "assistant", "thinking": "Hm."}, "done": False},
        {**base, "message": {"role": "assistant", "content": "It will "}, "done": False},
        {**base, "message": {"role": "assistant", "content": "rain."}, "done": False},
        {
            **base,
            "message": {"role": "assistant", "content": "", "tool_calls": [call, call]},
            "done": False,
        },
        {**base, "message": {"role": "assistant", "content": ""}, **counts},
    )
    words = (
        {**base, "response": "It "},
        {**base, "response": "rains."},
        {**base, "response": "", **counts},
    )
    return Wire(
        "ollama",
        "http://localhost:11434/api/chat",
        (asked, {"model": "qwen3", "prompt": "Rain?", "stream": False, "options": {"seed": 1}}),
        (
            {**base, "message": {"role": "assistant", "content": "It rains.", "thinking": "Hm.", "tool_calls": [call]}, **counts},
            {**base, "response": "It rains.", "done": True, "eval_count": 2},
            {"error": "model not found"},
        ),
        (lines, words, (*lines[:2], {"error": "broke off"})),
        LINES,
    )  # fmt: skip


def _bedrock() -> Wire:
    use = {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"place": "here"}}}
    asked = {
        "system": [{"text": "Be brief."}], "inferenceConfig": {"temperature": 0.4, "topP": 0.6, "maxTokens": 44, "stopSequences": ["END"]},
        "additionalModelRequestFields": {"top_k": 8, "thinking": {"type": "enabled"}},
        "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}]},
        "messages": [
            {"role": "user", "content": [{"text": "Rain?"}, {"image": {"format": "png", "source": {"bytes": PICTURE}}}]},
            {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}, use]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"json": {"a": 1}}], "status": "error"}}]},
        ],
    }  # fmt: skip
    claude = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 5, "messages": [{"role": "user", "content": "Rain?"}]}  # fmt: skip
    usage = {"inputTokens": 5, "outputTokens": 6, "cacheReadInputTokens": 2, "cacheWriteInputTokenCount": 1, "totalTokens": 14}  # fmt: skip
    stream = (
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "It will "}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "rain."}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "weather"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": ARGUMENTS[:9]}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": ARGUMENTS[9:]}}}},
        {"messageStop": {"stopReason": "tool_use"}},
        {"metadata": {"usage": usage, "metrics": {"latencyMs": 3}}},
    )  # fmt: skip
    wrapped = tuple(
        {"chunk": {"bytes": base64.b64encode(json.dumps(event).encode()).decode()}}
        for event in _anthropic().streams[0]
    )
    content = [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": "It rains."}, use]
    return Wire(
        "bedrock",
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3/converse-stream",
        (asked, claude, {"prompt": "Rain?", "max_gen_len": 7, "textGenerationConfig": {"topP": 0.2}}),
        (
            {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use", "usage": usage},
            {"generation": "It rains.", "prompt_token_count": 3, "generation_token_count": 4, "stop_reason": "length"},
            {"inputTextTokenCount": 3, "results": [{"tokenCount": 4, "outputText": "It", "completionReason": "FINISH"}]},
            {**_anthropic().replies[0]},
            {"message": "no access"},
        ),
        (stream, (*stream[:2], {"throttlingException": {"message": "slow down"}}), wrapped),
        FRAMES,
    )  # fmt: skip


WIRES = (
    _anthropic(),
    _chat("openai_chat", "https://api.openai.com/v1/chat/completions"),
    _chat("mistral", "https://api.mistral.ai/v1/chat/completions"),
    _responses(),
    _gemini(),
    _cohere(),
    _ollama(),
    _bedrock(),
)


# --- as bytes


def request(wire: Wire, body: Any) -> Request:
    headers = (*JSON, ("x-stainless-retry-count", "2"))
    return Request("POST", wire.url, headers, _bytes(body))


def whole(body: Any, status: int = 200) -> Reply:
    data = _bytes(body)
    headers = (*JSON, ("content-length", str(len(data))), ("x-ratelimit-remaining-requests", "9"))
    return Reply(status, headers, (data[:30], data[30:]), (0.1, 0.3))


def streamed(wire: Wire, events: tuple[Any, ...]) -> Reply:
    """A stream in reads that end where no event does."""
    data = b"".join(_framed(wire, event) for event in events)
    if wire.headers is SSE and "choices" in str(events[:1]):
        data += b"data: [DONE]\n\n"
    chunks = tuple(data[start : start + 61] for start in range(0, len(data), 61))
    return Reply(200, wire.headers, chunks, tuple(n / 16 for n in range(len(chunks))))


def _framed(wire: Wire, event: Any) -> bytes:
    if wire.headers is LINES:
        return _bytes(event) + b"\n"
    if wire.headers is FRAMES:
        return _frame(*next(iter(event.items()), ("none", {}))) if isinstance(event, dict) else b""
    named = wire.is_named and isinstance(event, dict) and isinstance(event.get("type"), str)
    name = f"event: {event['type']}\n".encode("utf-8", "replace") if named else b""
    return name + b"data: " + _bytes(event) + b"\n\n"


def _frame(kind: str, payload: Any) -> bytes:
    name = b":exception-type" if kind.endswith("Exception") else b":event-type"
    value = kind.encode("utf-8", "replace")
    head = bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
    data = _bytes(payload)
    start = struct.pack(">II", 16 + len(head) + len(data), len(head))
    frame = start + struct.pack(">I", zlib.crc32(start)) + head + data
    return frame + struct.pack(">I", zlib.crc32(frame))


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


# --- odd


def made_odd(value: Any, random: Random, count: int = 2) -> Any:
    """A copy with some of its inner values gone, told twice, or another thing."""
    value = copy.deepcopy(value)
    for _ in range(count):
        places = list(_places(value))
        if not places:
            return value
        parent, place = random.choice(places)
        match random.randrange(6), parent:
            case 0, _:
                del parent[place]
            case 1, list():
                parent.insert(place, copy.deepcopy(parent[place]))
            case 1, dict():
                parent[random.choice(list(parent))] = parent[place]
            case _:
                parent[place] = copy.deepcopy(random.choice(ODD))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = range(len(value)) if isinstance(value, list) else list(value)
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def each_changed(value: Any) -> Iterator[Any]:
    """Copies, each with one inner value another one of its type: a list or mapping in it without its last."""
    for number in range(sum(1 for _ in _places(value))):
        changed = copy.deepcopy(value)
        parent, place = list(_places(changed))[number]
        match parent[place]:
            case str() as text:
                parent[place] = f"{text[:-2]} else"
            case bool() | None as known:
                parent[place] = not known
            case int() | float() as known:
                parent[place] = known + 1
            case dict() as inner if inner:
                inner.pop(list(inner)[-1])
            case list() as inner if inner:
                inner.pop()
            case _:
                parent[place] = ["more"]
        yield changed


def odd_stream(events: tuple[Any, ...], random: Random) -> tuple[Any, ...]:
    """Events lost, doubled, in another order, or odd."""
    made = list(copy.deepcopy(events))
    for _ in range(random.randrange(1, 4)):
        place = random.randrange(len(made))
        match random.randrange(8):
            case 0 if len(made) > 1:
                del made[place]
            case 1:
                made.insert(random.randrange(len(made)), copy.deepcopy(made[place]))
            case 2:
                made.insert(random.randrange(len(made)), made.pop(place))
            case 3:
                made = made[: place + 1]
            case _:
                made[place] = made_odd(made[place], random) if _holds(made[place]) else {}
    return tuple(made)


def dialogue(url: str, *messages: tuple[str, Any], status: int = 101) -> tuple[Request, Reply]:
    """A connection that stays open, and what was sent and got on it."""
    frames = [
        WebSocketFrame(by, "text", _bytes(each))  # type: ignore[arg-type]
        for by, each in messages
    ]
    lines = tuple(line_of(frame) for frame in frames)
    return Request("GET", url, ()), Reply(status, (("x-request-id", "r1"),), lines, (0.1,) * len(lines))  # fmt: skip


def dialogues() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """OpenAI Realtime, OpenAI Responses and Gemini Live: the address, and what was said."""
    tool = {"type": "function", "name": "weather", "parameters": SCHEMA}
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": ARGUMENTS}
    usage = {"input_tokens": 5, "output_tokens": 3, "input_token_details": {"cached_tokens": 2}}
    done = {"model": "gpt-realtime-1", "status": "completed", "output": [call], "usage": usage}
    yield "wss://api.openai.com/v1/realtime?model=gpt-realtime", [
        ("sent", {"type": "session.update", "session": {"tools": [tool, tool], "temperature": 0.8, "max_response_output_tokens": 9, "voice": "ash"}}),
        ("got", {"type": "session.created", "session": {"model": "gpt-realtime-0"}}),
        ("sent", {"type": "input_audio_buffer.append", "audio": "AAAA"}),
        ("got", {"type": "response.done", "response": done}),
        ("sent", {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "c1", "output": "wet"}}),
        ("sent", {"type": "response.create", "response": {"model": "x/gpt-other", "tools": [{**tool, "name": "other"}]}}),
        ("got", {"type": "response.done", "response": {"status": "incomplete", "usage": usage}}),
        ("got", {"type": "error", "error": {"type": "invalid", "message": "no"}}),
    ]  # fmt: skip
    yield "wss://api.openai.com/v1/responses", [
        ("sent", {"type": "response.create", "model": "gpt-5", "max_output_tokens": 7, "input": [{"type": "function_call_output", "call_id": "c0", "output": ""}]}),
        ("got", {"type": "response.failed", "response": {**done, "status": "failed"}}),
        ("got", {"type": "response.completed", "response": {"model": "gpt-5-1", "usage": {"input_tokens": 1}}}),
    ]  # fmt: skip
    live = "wss://generativelanguage.googleapis.com/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
    yield live, [
        ("sent", {"setup": {"model": "models/gemini-live", "tools": [{"functionDeclarations": [{"name": "weather"}]}], "generationConfig": {"temperature": 0.4, "topP": 0.3, "topK": 2, "seed": 1, "maxOutputTokens": 8, "speechConfig": {"a": 1}}}}),
        ("got", {"toolCall": {"functionCalls": [{"id": "f1", "name": "weather", "args": {"place": "here"}}]}}),
        ("sent", {"toolResponse": {"functionResponses": [{"id": "f1", "name": "weather", "response": {}}]}}),
        ("got", {"tool_call": {"function_calls": [{"id": "f2", "name": "older"}]}}),
        ("sent", {"tool_response": {"function_responses": [{"id": "f2"}]}}),
        ("got", {"serverContent": {"turnComplete": True}, "usageMetadata": {"promptTokenCount": 4, "responseTokenCount": 3, "thoughtsTokenCount": 1}}),
    ]  # fmt: skip


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list)


class Made(NamedTuple):
    """A call, and whether something in it is odd."""

    name: str
    wire: Wire
    request: Request
    reply: Reply
    is_odd: bool = False


def calls(odd: int) -> Iterator[Made]:
    """Each request, reply and stream as it should be, and of each so many that are odd."""
    for wire in WIRES:
        first = request(wire, wire.requests[0])
        replies = [whole(body, 400 if "error" in body else 200) for body in wire.replies]
        replies += [streamed(wire, events) for events in wire.streams]
        for number, body in enumerate(wire.requests):
            yield Made(f"{wire.name} request {number}", wire, request(wire, body), replies[0])
        for number, reply in enumerate(replies):
            yield Made(f"{wire.name} reply {number}", wire, first, reply)
        for number in range(odd):
            random = Random(f"{wire.name} {number}")
            body = made_odd(wire.requests[number % len(wire.requests)], random, 3)
            yield Made(f"{wire.name} odd request {number}", wire, request(wire, body), replies[0], True)  # fmt: skip
            answer = whole(made_odd(random.choice(wire.replies), random), random.choice((200, 400)))
            yield Made(f"{wire.name} odd reply {number}", wire, first, answer, True)
            told = streamed(wire, odd_stream(random.choice(wire.streams), random))
            yield Made(f"{wire.name} odd stream {number}", wire, first, told, True)
    nested: list[Any] = []
    for _ in range(600):
        nested = [nested]
    results = [{"type": "tool_result", "tool_use_id": "toolu_1"}, {"type": "tool_result", "content": nested}]  # fmt: skip
    deep = request(WIRES[0], {"model": "m", "messages": [{"role": "user", "content": results}]})
    yield Made("deep request", WIRES[0], deep, whole(WIRES[0].replies[0]))
    compressed = whole(WIRES[0].replies[0])
    packed = zlib.compress(compressed.body, 0)  # which each library spells alike
    headers = (*compressed.headers, ("Content-Encoding", "deflate"))
    reply = dataclasses.replace(compressed, headers=headers, chunks=(packed[:40], packed[40:]))
    asked = request(WIRES[0], WIRES[0].requests[0])
    yield Made("compressed", WIRES[0], asked, reply)
    yield Made("cut compressed", WIRES[0], asked, dataclasses.replace(reply, chunks=(packed[:90],)))
