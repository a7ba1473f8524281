"""What a call was is read from the wire itself: samples written out here, then every record of the corpus."""

import base64
import gzip
import json
import os
import random
import struct
import subprocess
import sys
import zlib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest

from tape_jupyter.encoding.http import content_encoding
from tape_jupyter.providers import registry
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers.registry import (
    ToolResult,
    ToolCall,
    Usage,
    call_cost,
    call_facts,
    identify,
    recalled,
)
from tape_jupyter.providers import http, pricing
from tests import reencode_corpus
from tests.harness import real_traffic
from tests.harness.timing import ratio

JSON, SSE = (("content-type", "application/json"),), (("content-type", "text/event-stream"),)
FRAMES = (("content-type", "application/vnd.amazon.eventstream"),)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
ASKED = (ToolCall("t1", "weather", {"city": "Oslo"}),)


def post(url, body, headers=JSON):
    return Request("POST", url, headers, json.dumps(body).encode())


def told(body, headers=JSON, status=200):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply(status, headers, (data[: len(data) // 2], data[len(data) // 2 :]), (0.1, 0.2))


def sse(*events):
    return b"".join(
        b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n" for event in events
    )


def frame(kind, payload):
    heads = b"".join(
        bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
        for name, value in (
            (b":event-type", kind),
            (b":content-type", b"application/json"),
            (b":message-type", b"event"),
        )
    )
    payload = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(heads) + len(payload), len(heads))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + heads + payload
    return message + struct.pack(">I", zlib.crc32(message))


ANTHROPIC = "https://api.anthropic.com/v1/messages"
ANTHROPIC_ASK = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 200,
    "stream": True,
    "tools": [{"name": "weather", "input_schema": SCHEMA}],
    "messages": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t0", "name": "weather", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t0", "content": "9 C"}],
        },
    ],
}
ANTHROPIC_STREAM = (
    {"type": "message_start", "message": {"model": "claude-sonnet-4-5-20250929", "content": [], "usage": {"input_tokens": 7, "cache_read_input_tokens": 90, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}} for _ in range(9)),
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "weather", "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"city":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ' "Oslo"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}},
    {"type": "message_stop"},
)  # fmt: skip


def test_anthropic_stream():
    f = call_facts(post(ANTHROPIC, ANTHROPIC_ASK), told(sse(*ANTHROPIC_STREAM), SSE))
    assert (f.provider, f.wire, f.api, f.streamed) == ("anthropic", "anthropic", "messages", True)
    assert (f.model, f.answered, f.stop) == (
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "tool_use",
    )
    assert f.sampling == {
        "temperature": "absent",
        "top_p": "absent",
        "top_k": "absent",
        "seed": "absent",
        "max_tokens": 200,
    }
    assert (f.calls, f.results, f.usage) == (
        ASKED,
        (ToolResult("t0", "weather"),),
        Usage(97, 30, 90, 0),
    )
    assert [tool.name for tool in f.tools] == ["weather"]


def test_anthropic_json_on_vertex_names_the_model_in_its_path():
    url = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5:rawPredict"
    body = {"anthropic_version": "vertex-2023-10-16", "messages": [], "temperature": 0}
    reply = {"type": "message", "model": "claude-sonnet-4-5", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}}], "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 4}}  # fmt: skip
    f = call_facts(post(url, body), told(reply))
    assert (f.provider, f.wire, f.model, f.calls) == (
        "vertex",
        "anthropic",
        "claude-sonnet-4-5",
        ASKED,
    )
    assert f.sampling["temperature"] == 0


CHAT = "https://api.openai.com/v1/chat/completions"
CHAT_ASK = {
    "model": "gpt-4o",
    "temperature": 0.5,
    "seed": 7,
    "max_completion_tokens": 99,
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
    "messages": [
        {
            "role": "assistant",
            "tool_calls": [{"id": "t0", "function": {"name": "weather", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "t0", "content": "9 C"},
    ],
}


@pytest.mark.parametrize(
    ("url", "provider", "view"),
    [
        (CHAT, "openai", "openai_chat"),
        ("https://api.mistral.ai/v1/chat/completions", "mistral", "mistral"),
        ("https://api.groq.com/openai/v1/chat/completions", "groq", "openai_chat"),
        ("http://127.0.0.1:8099/v1/chat/completions", "openai", "openai_chat"),
        ("http://localhost:11434/v1/chat/completions", "ollama", "openai_chat"),
        (
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1",
            "azure",
            "openai_chat",
        ),
    ],
)
def test_chat_completions_wherever_they_are_served(url, provider, view):
    calls = [
        {
            "id": "t1",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
        }
    ]
    reply = {"model": "gpt-4o-2024-08-06", "choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 80, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 64}}}  # fmt: skip
    f = call_facts(post(url, CHAT_ASK), told(reply))
    assert (f.provider, f.wire, f.api, f.streamed) == (provider, view, "chat", False)
    assert (f.calls, f.results, f.usage, f.stop) == (
        ASKED,
        (ToolResult("t0", "weather"),),
        Usage(80, 20, 64),
        "tool_calls",
    )
    assert (f.sampling["temperature"], f.sampling["seed"], f.sampling["max_tokens"]) == (0.5, 7, 99)


def test_a_chat_stream_puts_tool_calls_together_from_pieces_and_survives_an_empty_first_chunk():
    def delta(value, **more):
        return {
            "model": "gpt-4o",
            "choices": [{"index": 0, "delta": value, "finish_reason": None, **more}],
        }

    stream = sse(
        {"model": "", "choices": [], "prompt_filter_results": []},
        delta({"role": "assistant", "content": ""}),
        *(delta({"content": 'say "tool_calls"'}) for _ in range(5)),
        delta({"tool_calls": [{"index": 0, "id": "t1", "type": "function", "function": {"name": "weather", "arguments": ""}}]}),
        delta({"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]}),
        delta({"tool_calls": [{"index": 0, "function": {"arguments": '"Oslo"}'}}]}),
        delta({}, finish_reason="tool_calls"),
        {"model": "gpt-4o", "choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 2}},
    )  # fmt: skip
    f = call_facts(
        post(CHAT, {**CHAT_ASK, "stream": True}), told(stream + b"data: [DONE]\n\n", SSE)
    )
    assert (f.answered, f.calls, f.stop, f.usage) == ("gpt-4o", ASKED, "tool_calls", Usage(8, 2))


def test_responses_as_json_and_as_a_stream_cut_before_its_end():
    item = {
        "type": "function_call",
        "call_id": "t1",
        "name": "weather",
        "arguments": '{"city":"Oslo"}',
    }
    whole = {"object": "response", "model": "gpt-5", "status": "completed", "output": [item], "usage": {"input_tokens": 5, "output_tokens": 6, "input_tokens_details": {"cached_tokens": 0}}, "error": None}  # fmt: skip
    ask = {"model": "gpt-5", "max_output_tokens": 9, "tools": [{"type": "web_search"}, {"type": "function", "name": "weather", "parameters": SCHEMA}], "input": [{"type": "function_call", "call_id": "t0", "name": "weather", "arguments": "{}"}, {"type": "function_call_output", "call_id": "t0", "output": "9 C"}]}  # fmt: skip
    url = "https://api.openai.com/v1/responses"
    f = call_facts(post(url, ask), told(whole))
    assert (f.calls, f.results, f.usage, f.stop, f.error) == (
        ASKED,
        (ToolResult("t0", "weather"),),
        Usage(5, 6),
        "completed",
        "",
    )
    assert [tool.name for tool in f.tools] == ["weather"]
    started = {
        "type": "response.created",
        "response": {**whole, "output": [], "usage": None, "status": "in_progress"},
    }
    done = {"type": "response.output_item.done", "item": item}
    cut = call_facts(post(url, {**ask, "stream": True}), told(sse(started, done), SSE))
    assert (cut.calls, cut.usage, cut.stop, cut.streamed) == (ASKED, None, "in_progress", True)
    full = call_facts(
        post(url, ask),
        told(sse(started, done, {"type": "response.completed", "response": whole}), SSE),
    )
    assert (full.calls, full.usage, full.stop) == (ASKED, Usage(5, 6), "completed")


@pytest.mark.parametrize("shape", ["json", "sse", "array"])
def test_gemini_in_its_three_shapes(shape):
    first = {"candidates": [{"content": {"parts": [{"functionCall": {"id": "t1", "name": "weather", "args": {"city": "Oslo"}}}]}}], "modelVersion": "gemini-2.5-flash"}  # fmt: skip
    last = {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "modelVersion": "gemini-2.5-flash", "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 2, "thoughtsTokenCount": 5}}  # fmt: skip
    reply = {
        "json": told({**last, "candidates": [{**first["candidates"][0], "finishReason": "STOP"}]}),
        "sse": told(sse(first, last).replace(b"\n\n", b"\r\n\r\n"), SSE),
        "array": told([first, last]),
    }[shape]
    ask = {"contents": [{"parts": [{"functionResponse": {"name": "weather", "response": {}}}]}], "tools": [{"functionDeclarations": [{"name": "weather", "parameters": SCHEMA}]}], "generationConfig": {"topK": 3, "maxOutputTokens": 9}}  # fmt: skip
    method = "generateContent" if shape == "json" else "streamGenerateContent"
    f = call_facts(
        post(
            f"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:{method}",
            ask,
        ),
        reply,
    )
    assert (f.provider, f.model, f.answered, f.api) == (
        "gemini",
        "gemini-2.5-flash",
        "gemini-2.5-flash",
        method,
    )
    assert (f.calls, f.results, f.usage, f.stop) == (
        ASKED,
        (ToolResult("", "weather"),),
        Usage(8, 7),
        "STOP",
    )
    assert (f.streamed, f.sampling["top_k"], f.tools[0].name) == (shape != "json", 3, "weather")


BEDROCK = (
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-haiku-20240307-v1%3A0"
)


def test_bedrock_converse_as_json_and_as_binary_frames():
    ask = {"inferenceConfig": {"maxTokens": 5}, "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}]}, "messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "t0"}}]}]}  # fmt: skip
    use, spent = (
        {"toolUseId": "t1", "name": "weather"},
        {"inputTokens": 10, "outputTokens": 3, "cacheReadInputTokens": 5},
    )
    whole = {"output": {"message": {"content": [{"toolUse": {**use, "input": {"city": "Oslo"}}}]}}, "stopReason": "tool_use", "usage": spent}  # fmt: skip
    frames = (
        frame(b"messageStart", {"role": "assistant", "p": "abc"})
        + frame(b"contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "toolUse?"}}) * 5
        + frame(b"contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": use}})
        + frame(
            b"contentBlockDelta",
            {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"city":"Oslo"}'}}},
        )
        + frame(b"messageStop", {"stopReason": "tool_use"})
        + frame(b"metadata", {"usage": spent, "metrics": {"latencyMs": 9}})
    )
    for path, reply in (("converse", told(whole)), ("converse-stream", told(frames, FRAMES))):
        f = call_facts(post(f"{BEDROCK}/{path}", ask), reply)
        assert (f.provider, f.api, f.model) == (
            "bedrock",
            path,
            "anthropic.claude-3-haiku-20240307-v1:0",
        )
        assert (f.calls, f.usage, f.stop, f.streamed) == (
            ASKED,
            Usage(15, 3, 5),
            "tool_use",
            path != "converse",
        )
        assert (f.results, f.tools[0].name, f.sampling["max_tokens"]) == (
            (ToolResult("t0", ""),),
            "weather",
            5,
        )
    torn = call_facts(post(f"{BEDROCK}/converse-stream", ask), told(frames[:-7], FRAMES))
    assert (torn.calls, torn.stop, torn.usage) == (ASKED, "tool_use", None)


def test_bedrock_invoke_stream_carries_the_makers_own_events():
    chunks = (
        frame(b"chunk", {"bytes": base64.b64encode(json.dumps(e).encode()).decode(), "p": "ab"})
        for e in ANTHROPIC_STREAM
    )
    ask = {k: v for k, v in ANTHROPIC_ASK.items() if k not in {"model", "stream"}} | {
        "anthropic_version": "bedrock-2023-05-31"
    }
    f = call_facts(
        post(f"{BEDROCK}/invoke-with-response-stream", ask), told(b"".join(chunks), FRAMES)
    )
    assert (f.calls, f.usage, f.results) == (
        ASKED,
        Usage(97, 30, 90),
        (ToolResult("t0", "weather"),),
    )
    assert f.streamed and f.model == "anthropic.claude-3-haiku-20240307-v1:0"


def test_cohere_as_json_and_stream():
    call = {
        "id": "t1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
    }
    spent = {
        "billed_units": {"input_tokens": 4, "output_tokens": 5},
        "tokens": {"input_tokens": 40, "output_tokens": 50},
    }
    url, ask = "https://api.cohere.com/v2/chat", {"model": "command-r", "p": 0.3, "k": 2, "tools": [{"type": "function", "function": {"name": "weather"}}], "messages": []}  # fmt: skip
    opened = {**call, "function": {"name": "weather", "arguments": ""}}
    stream = sse(
        {"type": "message-start", "id": "m"},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": opened}}},
        {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": '{"city":'}}}}},
        {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": '"Oslo"}'}}}}},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": spent}},
    )  # fmt: skip
    whole = told(
        {"id": "m", "message": {"tool_calls": [call]}, "finish_reason": "TOOL_CALL", "usage": spent}
    )
    for reply in (whole, told(stream, SSE)):
        f = call_facts(post(url, ask), reply)
        assert (f.provider, f.calls, f.usage, f.stop) == ("cohere", ASKED, Usage(4, 5), "TOOL_CALL")
        assert (f.sampling["top_p"], f.sampling["top_k"], f.tools[0].name) == (0.3, 2, "weather")


def test_ollama_streams_lines_unless_told_not_to():
    lines = [
        *({"model": "qwen3", "message": {"content": "x"}, "done": False} for _ in range(6)),
        {"model": "qwen3", "message": {"tool_calls": [{"id": "t1", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}]}, "done": False},
        {"model": "qwen3", "message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 4},
    ]  # fmt: skip
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    ask = {
        "model": "qwen3",
        "options": {"seed": 3, "num_predict": 8},
        "messages": [{"role": "tool", "tool_name": "weather"}],
    }
    f = call_facts(
        post("http://127.0.0.1:11434/api/chat", ask),
        told(body, (("content-type", "application/x-ndjson"),)),
    )
    assert (f.provider, f.calls, f.usage, f.stop, f.streamed) == (
        "ollama",
        ASKED,
        Usage(9, 4),
        "stop",
        True,
    )
    assert (f.sampling["seed"], f.sampling["max_tokens"], f.results) == (
        3,
        8,
        (ToolResult("", "weather"),),
    )
    assert not call_facts(
        post("http://127.0.0.1:11434/api/chat", {**ask, "stream": False}), told(lines[-1])
    ).streamed


def test_errors_request_ids_and_rate_limits():
    headers = (
        *JSON,
        ("Request-Id", "req_1"),
        ("Retry-After", "7"),
        ("anthropic-ratelimit-requests-remaining", "0"),
    )
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    f = call_facts(post(ANTHROPIC, ANTHROPIC_ASK), told(body, headers, 429))
    assert (f.error, f.request_id, f.usage) == ("rate_limit_error: slow down", "req_1", None)
    assert f.limits == {"retry-after": "7", "anthropic-ratelimit-requests-remaining": "0"}
    broken = call_facts(post(ANTHROPIC, ANTHROPIC_ASK), told(sse(*ANTHROPIC_STREAM[:3], body), SSE))
    assert broken.error == "rate_limit_error: slow down"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_encoded_bodies_are_read(coding):
    import brotli
    import zstandard

    body = json.dumps({"model": "gpt-4o", "choices": [], "usage": {"prompt_tokens": 3}}).encode()
    encode = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "br": brotli.compress,
        "zstd": zstandard.compress,
    }[coding]
    assert call_facts(
        post(CHAT, CHAT_ASK), told(encode(body), (*JSON, ("content-encoding", coding)))
    ).usage == Usage(3, 0)


def test_a_bomb_is_not_opened():
    bomb = gzip.compress(bytes(content_encoding.CAP + 1))
    call = post(CHAT, CHAT_ASK), told(bomb, (*JSON, ("content-encoding", "gzip")))
    assert call_facts(*call).usage is None
    assert ratio(lambda: call_facts(*call), lambda: gzip.decompress(bomb), rounds=2) < 5


def test_an_unknown_wire_gives_what_can_be_told():
    gateway = post("https://gateway.example/prompts/p1/run", {"model": "gpt-4o", "messages": []})
    assert call_facts(gateway, told({"choices": [], "usage": {"prompt_tokens": 3}})).usage == Usage(
        3, 0
    )
    shop = call_facts(
        Request("GET", "https://shop.example/items"), told(b"<html>", (("x-request-id", "r9"),))
    )
    assert (shop.provider, shop.wire, shop.model, shop.request_id) == ("", "", "", "r9")
    own = call_facts(
        post("http://intranet.example/api/chat", {"question": "?"}), told({"reply": "!"})
    )
    assert (own.provider, own.wire, own.usage) == ("", "", None)


NONSENSE = [
    None,
    True,
    3,
    -1,
    1e400,
    "x",
    [],
    {},
    [None, 3, {}],
    {"function": 3},
    {"content": [{"type": "tool_use"}]},
    [[[]]],
]


@pytest.mark.parametrize("wire_name", [*registry.providers()])
def test_nonsense_never_raises(wire_name):
    urls = {"anthropic": ANTHROPIC, "openai_chat": CHAT, "openai_responses": "https://api.openai.com/v1/responses", "gemini": "https://x.example/models/m:generateContent", "mistral": "https://api.mistral.ai/v1/chat/completions", "bedrock": f"{BEDROCK}/converse", "cohere": "https://api.cohere.com/v2/chat", "ollama": "http://localhost:11434/api/chat"}  # fmt: skip
    keys = ("model", "messages", "tools", "stream", "choices", "usage", "content", "output", "candidates", "message", "error", "type", "input", "contents", "delta", "stop_reason", "chunk", "contentBlockStart", "toolConfig", "response", "functions", "event_type", "index")  # fmt: skip
    for junk in NONSENSE:
        body = dict.fromkeys(keys, junk)
        for reply in (
            told(body),
            told(sse(body, junk, {**body, "type": "content_block_delta"}), SSE),
            told([body, junk]),
        ):
            f = call_facts(post(urls[wire_name], body), reply)
            assert recalled(f.record()).usage == (f.usage if f.usage and any(f.usage) else None)
    deep = b"[" * 100_000
    for data in (b"\xff\x00", deep, b'{"a":' + deep, b"data: " + deep + b"\n\n", b"\x00" * 40, b""):
        for headers in (
            JSON,
            SSE,
            FRAMES,
            (("content-encoding", "gzip"),),
            (("content-encoding", "frob"),),
        ):
            call_facts(Request("POST", urls[wire_name], JSON, data), told(data, headers))


@pytest.mark.parametrize(
    "url", ["http://[", "http://h:99999/v1/messages", "", "x", "//", "http:///v1/messages"]
)
def test_an_address_that_is_none_is_no_models(url):
    assert identify(Request("POST", url)).provider in {"", "anthropic"}


def test_a_tools_digest_does_not_hang_on_the_order_of_keys():
    def digest(tool):
        return call_facts(post(ANTHROPIC, {"model": "m", "tools": [tool]})).tools[0].digest

    assert (
        digest({"name": "w", "a": 1})
        == digest({"a": 1, "name": "w"})
        != digest({"name": "w", "a": 2})
    )


def test_what_a_record_keeps_is_read_back():
    f = call_facts(
        post(ANTHROPIC, ANTHROPIC_ASK), told(sse(*ANTHROPIC_STREAM), (*SSE, ("request-id", "r")))
    )
    kept = json.loads(json.dumps(f.record()))
    assert kept["usage"] == {"input": 97, "output": 30, "cached": 90}
    assert call_cost(recalled(kept)) == call_cost(f) and recalled(kept).provider == f.provider
    assert recalled({"usage": 3, "model": ["x"]}) == registry.Facts()


def test_cost_counts_cached_tokens_at_their_own_price():
    f = call_facts(
        post(ANTHROPIC, ANTHROPIC_ASK), told(sse(*ANTHROPIC_STREAM), SSE)
    )  # 3 $ / 0.30 $ / 15 $ a million
    assert (
        call_cost(f)
        == (Decimal(7 * 3) + Decimal(90) * Decimal("0.3") + Decimal(30 * 15)) / 1_000_000
    )


MODELS = [
    ("anthropic", "claude-opus-5"), ("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5"), ("gemini", "gemini-2.5-pro"),
    ("deepseek", "deepseek-chat"), ("openai", "text-embedding-3-small"), ("nobody", "nothing"), ("ollama", "gemma3"),
    ("perplexity", "sonar"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_cost_is_that_of_the_table_also_above_a_step_and_for_odd_counts(provider, model):
    draw, at = random.Random(7), datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
    for _ in range(100):
        size = draw.choice((2, 100, 10_000, 90_000, 300_000, 2_000_000))
        usage = registry.Usage(
            draw.randrange(size),
            draw.randrange(size),
            draw.choice((0, draw.randrange(size))),
            draw.choice((0, 50)),
        )
        try:
            table = genai_prices.calc_price(
                genai_prices.Usage(
                    input_tokens=usage.input,
                    output_tokens=usage.output,
                    cache_read_tokens=usage.cached,
                    cache_write_tokens=usage.written,
                ),
                model,
                provider_id="google" if provider == "gemini" else provider,
                genai_request_timestamp=at,
            ).total_price
        except (LookupError, ValueError):
            table = None
        assert call_cost(registry.Facts(provider=provider, model=model, usage=usage), at) == table


def test_the_table_is_asked_a_few_times_for_a_model_and_an_hour(monkeypatch):
    asked = []
    real = genai_prices.calc_price
    monkeypatch.setattr(
        genai_prices, "calc_price", lambda *a, **k: asked.append(a) or real(*a, **k)
    )
    for number in range(1, 5_000):
        usage = registry.Usage(number, 3)
        call_cost(registry.Facts(provider="anthropic", model="claude-opus-4-1", usage=usage))
    assert len(asked) < 20


@pytest.mark.parametrize("model", ["gemma3-270m", "", "no-such-model"])
def test_cost_of_a_model_without_a_price_is_not_made_up(model):
    reply = told(
        {"model": model, "choices": [{}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    )
    assert (
        call_cost(
            call_facts(post("http://127.0.0.1:8099/v1/chat/completions", {"model": model}), reply)
        )
        is None
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_the_table_of_prices_that_loads_meanwhile_is_no_thread_of_the_programs_and_a_fork_waits_for_it():
    code = """if True:
        import os, sys, threading
        from tape_jupyter.providers import pricing
        pricing.load_libraries()
        pricing.load_table_meanwhile()
        child = os.fork()
        if not child:
            os._exit("genai_prices.data_snapshot" not in sys.modules)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), threading.active_count())
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "0 1\n", run


def test_no_library_that_others_may_look_for_is_imported_beside_the_program():
    """openai 2 uses httpx2 where it finds it among the modules, be it half imported."""
    code = """if True:
        import sys
        from tape_jupyter.core import unlisted_thread
        from tape_jupyter.providers import pricing
        waits, run = [], unlisted_thread.run_unlisted
        pricing.run_unlisted = lambda work: waits.append(run(work)) or waits[-1]
        pricing.load_table_meanwhile()
        assert not waits
        pricing.load_libraries()
        import annotated_types  # a part of pydantic's
        before = {name.partition(".")[0] for name in sys.modules}
        pricing.load_table_meanwhile()
        [wait() for wait in waits]
        new = {name.partition(".")[0] for name in sys.modules} - before
        print(*(each for each in new - sys.stdlib_module_names if each[0] != "_"))
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "genai_prices\n", run


def test_looking_at_calls_imports_nothing_heavy():
    code = "import sys, tape_jupyter.providers.registry; print({'pydantic', 'genai_prices', 'brotli', 'zstandard'} & set(sys.modules))"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "set()\n"
    )


def test_facts_of_a_20_kb_call_cost_a_few_times_the_parsing_of_its_json():
    ask = {
        **CHAT_ASK,
        "messages": [
            {"role": "user", "content": "word " * 2000},
            {"role": "user", "content": "x" * 10_000},
        ],
    }
    request, reply = (
        post(CHAT, ask),
        told({"model": "gpt-4o", "choices": [{"message": {"content": "x" * 2000}}]}),
    )
    parsed = lambda: [json.loads(request.body), json.loads(reply.body)]
    assert ratio(lambda: call_facts(request, reply), parsed, rounds=50) < 20  # measured: 3.3


def test_facts_of_2000_events_cost_less_than_parsing_the_json_of_each():
    reply = told(
        sse(*ANTHROPIC_STREAM[:3], *[ANTHROPIC_STREAM[3]] * 2000, *ANTHROPIC_STREAM[12:]), SSE
    )
    parsed = lambda: [
        json.loads(event.partition(b"data: ")[2]) for event in reply.body.split(b"\n\n") if event
    ]
    assert (
        ratio(lambda: call_facts(post(ANTHROPIC, ANTHROPIC_ASK), reply), parsed) < 2
    )  # measured: 0.6


@pytest.fixture(scope="module")
def corpus():
    return [(each, *reencode_corpus.call_of(each)) for each in real_traffic.records()]


APIS = {
    "messages",
    "chat",
    "responses",
    "generateContent",
    "streamGenerateContent",
    "converse",
    "converse-stream",
}


def test_real_traffic_tells_model_stop_and_usage(corpus):
    """Every answered model call of the known APIs, but for those whose hosts leave it out of the bytes."""
    seen, silent = 0, []
    for record, request, reply in corpus:
        if (
            record["api"] not in APIS
            or reply.status != 200
            or not reply.chunks
            or request.method != "POST"
        ):
            continue
        f, seen = call_facts(request, reply), seen + 1
        assert f.wire and f.model, record["id"]
        assert f.streamed == record["stream"] or f.error or record["api"] == "responses", record[
            "id"
        ]
        if not (
            f.usage
            or b"usage" not in reply.body.lower()
            or b'"usage":null' in reply.body.replace(b" ", b"")
        ):
            silent.append((record["id"], f))
        if f.usage and not f.stop and record["provider"] != "snowflake":
            silent.append((record["id"], f))
    assert seen > 1300 and len(silent) <= 12, silent


def test_passing_over_events_loses_nothing_on_real_streams(corpus, monkeypatch):
    streams = [
        (record["id"], request, reply) for record, request, reply in corpus if record["stream"]
    ]
    quick = {name: call_facts(request, reply) for name, request, reply in streams}
    for view in [each.view for each in registry.providers().values()]:
        monkeypatch.setattr(view, "WANTED", ())
    assert {name: call_facts(request, reply) for name, request, reply in streams} == quick
    assert len(quick) > 300


def test_usage_on_real_traffic_is_what_the_price_table_reads(corpus):
    """An independent reader: genai-prices' own extraction, wherever it knows provider and model."""
    import genai_prices

    flavours = {"openai_chat": "chat", "openai_responses": "responses"}
    agreed = 0
    for record, request, reply in corpus:
        f = call_facts(request, reply)
        if record["stream"] or reply.status != 200 or not f.usage:
            continue
        body = http.loads(http.decoded_body(reply.headers, reply.body))
        flavour = "embeddings" if f.api == "embeddings" else flavours.get(f.wire, "default")
        try:
            billed = pricing.BILLED_AS.get(f.provider, f.provider)
            read = genai_prices.extract_usage(body, provider_id=billed, api_flavor=flavour).usage
        except (ValueError, LookupError, AttributeError):
            continue
        theirs = Usage(
            read.input_tokens, read.output_tokens, read.cache_read_tokens, read.cache_write_tokens
        )
        assert f.usage == theirs, record["id"]
        agreed += 1
    assert agreed > 1000
