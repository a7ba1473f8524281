"""Neutral messages (a role and parts, as OpenTelemetry writes them) -> a provider's request and
reply.

What is made here is a provider's own JSON, rebuilt: exact argument texts, ids and unknown fields
are lost, and callers say so (`rebuilt=True`, grade M). A part is `{type: text, content}`, `{type:
tool_call, id, name, arguments}`, `{type: tool_call_response, id, response}`, `{type: reasoning,
content}`, or another, which is kept as its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.core.plain_text import text_or_json
from tape_jupyter.importers import rebuild

Message = Mapping[str, Any]
_STOPS = {
    "anthropic": {
        "stop": "end_turn",
        "tool_call": "tool_use",
        "tool_calls": "tool_use",
        "length": "max_tokens",
    },
    "bedrock": {
        "stop": "end_turn",
        "tool_call": "tool_use",
        "tool_calls": "tool_use",
        "length": "max_tokens",
    },
    "gemini": {"stop": "STOP", "tool_call": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"},
    "openai_chat": {
        "tool_call": "tool_calls",
        "end_turn": "stop",
        "tool_use": "tool_calls",
        "STOP": "stop",
    },
}


@dataclass(slots=True)
class Conversation:
    """A model call in neutral words. `tools` are `{name, description, parameters}`, `settings` by
    OpenAI's names.
    """

    model: str = ""
    system: str = ""
    input_messages: list[Message] = field(default_factory=list)
    output_messages: list[Message] = field(default_factory=list)
    tools: list[Mapping[str, Any]] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)
    stop: str = ""
    id: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    stream: bool = False


def request_body(api: str, conversation: Conversation) -> dict[str, Any]:
    """The request's JSON."""
    return _BODIES.get(api, _build_chat_body)(conversation)


def reply_body(api: str, conversation: Conversation) -> dict[str, Any]:
    """The whole reply's JSON."""
    return _REPLIES.get(api, _build_chat_reply)(conversation)


def parts_of(message: Message) -> list[Mapping[str, Any]]:
    """The parts of a message; a plain `content` is one of text."""
    parts = message.get("parts")
    if isinstance(parts, list):
        return [
            part if isinstance(part, Mapping) else {"type": "text", "content": str(part)}
            for part in parts
        ]
    content = message.get("content")
    if isinstance(content, list):
        return [
            part if isinstance(part, Mapping) else {"type": "text", "content": str(part)}
            for part in content
        ]
    if isinstance(content, str) and content:
        return [{"type": "text", "content": content}]
    return []


def _to_text(part: Mapping[str, Any]) -> str:
    content = part.get("content", part.get("text"))
    if isinstance(content, str):
        return content
    if content is None:
        return json.dumps(dict(part), ensure_ascii=False)
    return json.dumps(content, ensure_ascii=False)


def _parse_arguments(part: Mapping[str, Any]) -> Any:
    return rebuild.loaded(part.get("arguments"), {})


def _find_result(part: Mapping[str, Any]) -> Any:
    return part.get("response", part.get("result", part.get("content")))


def _iterate_parts(message: Message) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for part in parts_of(message):
        kind = str(part.get("type") or "text")
        yield (
            {
                "tool_use": "tool_call",
                "tool_result": "tool_call_response",
                "thinking": "reasoning",
            }.get(kind, kind),
            part,
        )


def _choose_stop_reason(conversation: Conversation, *replies: Message) -> str:
    """Why an answer ended; where nobody says, that it calls tools or has none left to call."""
    known = next(
        (str(each["finish_reason"]) for each in replies if each.get("finish_reason")),
        conversation.stop,
    )
    uses = any(kind == "tool_call" for each in replies for kind, _ in _iterate_parts(each))
    if known not in ("", "unknown"):
        return known
    return "tool_call" if uses else "stop"


# ---------------------------------------------------------------- OpenAI Chat


def _build_chat_body(conversation: Conversation) -> dict[str, Any]:
    if conversation.system:
        messages = [{"role": "system", "content": conversation.system}]
    else:
        messages = []
    messages += [
        each for message in conversation.input_messages for each in _build_chat_messages(message)
    ]
    tools = [{"type": "function", "function": dict(tool)} for tool in conversation.tools]
    body: dict[str, Any] = {
        "messages": messages,
        "model": conversation.model,
        **conversation.settings,
    }
    if tools:
        body["tools"] = tools
    return {**body, "stream": True} if conversation.stream else body


def _build_chat_messages(message: Message) -> Iterator[dict[str, Any]]:
    texts, calls = [], []
    for kind, part in _iterate_parts(message):
        if kind == "tool_call_response":
            yield {
                "role": "tool",
                "tool_call_id": part.get("id") or "",
                "content": text_or_json(_find_result(part)),
            }
        elif kind == "tool_call":
            calls.append(_build_chat_call(part))
        elif kind != "reasoning":
            texts.append(_to_text(part))
    role = str(message.get("role") or "user")
    chat_message = {"role": {"tool": "user", "model": "assistant"}.get(role, role)}
    if texts or (not calls and not parts_of(message)):
        chat_message["content"] = "\n".join(texts)
    if calls:
        yield {**chat_message, "tool_calls": calls}
    elif "content" in chat_message:
        yield chat_message


def _build_chat_call(part: Mapping[str, Any]) -> dict[str, Any]:
    arguments = part.get("arguments")
    if isinstance(arguments, str):
        text = arguments
    else:
        text = json.dumps(arguments or {}, ensure_ascii=False)
    return {
        "id": part.get("id") or "",
        "type": "function",
        "function": {"name": part.get("name", ""), "arguments": text},
    }


def _build_chat_reply(conversation: Conversation) -> dict[str, Any]:
    choices = []
    for index, message in enumerate(conversation.output_messages):
        reply_message: dict[str, Any] = {"role": "assistant", "content": None}
        for each in _build_chat_messages({**message, "role": "assistant"}):
            reply_message |= each
        stop = _choose_stop_reason(conversation, message)
        choices.append(
            {
                "index": index,
                "message": reply_message,
                "finish_reason": _STOPS["openai_chat"].get(stop, stop),
            }
        )
    usage = {
        "prompt_tokens": conversation.usage.get("input", 0),
        "completion_tokens": conversation.usage.get("output", 0),
    }
    completion = {
        "id": conversation.id,
        "object": "chat.completion",
        "created": 0,
        "model": conversation.model,
        "choices": choices,
    }
    if not conversation.usage:
        return completion
    return {**completion, "usage": {**usage, "total_tokens": sum(usage.values())}}


# ---------------------------------------------------------------- OpenAI Responses


def _build_responses_body(conversation: Conversation) -> dict[str, Any]:
    items = [
        item for message in conversation.input_messages for item in _build_responses_items(message)
    ]
    tools = [{"type": "function", **tool} for tool in conversation.tools]
    settings = dict(conversation.settings)
    if "max_tokens" in settings:
        settings["max_output_tokens"] = settings.pop("max_tokens")
    one = items[0] if len(items) == 1 else {}
    if one.get("role") == "user" and isinstance(one.get("content"), str):
        input_items = one["content"]
    else:
        input_items = items
    body: dict[str, Any] = {"input": input_items, "model": conversation.model, **settings}
    if conversation.system:
        body["instructions"] = conversation.system
    if tools:
        body["tools"] = tools
    return {**body, "stream": True} if conversation.stream else body


def _build_responses_items(message: Message) -> Iterator[dict[str, Any]]:
    texts = []
    for kind, part in _iterate_parts(message):
        if kind == "tool_call":
            yield {
                "type": "function_call",
                "call_id": part.get("id") or "",
                **_build_chat_call(part)["function"],
            }
        elif kind == "tool_call_response":
            yield {
                "type": "function_call_output",
                "call_id": part.get("id") or "",
                "output": text_or_json(_find_result(part)),
            }
        elif kind != "reasoning":
            texts.append(_to_text(part))
    if texts:
        yield {"role": str(message.get("role") or "user"), "content": "\n".join(texts)}


def _build_responses_reply(conversation: Conversation) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    for number, message in enumerate(conversation.output_messages):
        for item in _build_responses_items({**message, "role": "assistant"}):
            if "type" in item:
                output.append({"id": f"fc_{number}", "status": "completed", **item})
            else:
                content = [{"type": "output_text", "text": item["content"], "annotations": []}]
                output_message = {
                    "id": f"msg_{number}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                }
                output.append({**output_message, "content": content})
    usage = {
        "input_tokens": conversation.usage.get("input", 0),
        "output_tokens": conversation.usage.get("output", 0),
    }
    record: dict[str, Any] = {
        "id": conversation.id or "resp_imported",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": conversation.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    if conversation.usage:
        record["usage"] = {**usage, "total_tokens": sum(usage.values())}
    return record


# ---------------------------------------------------------------- Anthropic


def _build_anthropic_body(conversation: Conversation) -> dict[str, Any]:
    tools = [_build_anthropic_tool(tool) for tool in conversation.tools]
    messages: list[dict[str, Any]] = []
    for message in conversation.input_messages:
        role = "assistant" if message.get("role") in ("assistant", "model") else "user"
        messages.append(
            {"role": role, "content": _simplify_blocks(list(_build_anthropic_blocks(message)))}
        )
    settings = {"max_tokens": 1024, **conversation.settings}
    if "stop" in settings:
        settings["stop_sequences"] = settings.pop("stop")
    body: dict[str, Any] = {**settings, "messages": messages, "model": conversation.model}
    if conversation.system:
        body["system"] = conversation.system
    if tools:
        body["tools"] = tools
    return {**body, "stream": True} if conversation.stream else body


def _build_anthropic_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = tool.get("parameters") or {"type": "object", "properties": {}}
    about = {"description": tool["description"]} if tool.get("description") else {}
    return {"name": tool.get("name", ""), **about, "input_schema": schema}


def _simplify_blocks(blocks: list[dict[str, Any]]) -> Any:
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return blocks


def _build_anthropic_blocks(message: Message) -> Iterator[dict[str, Any]]:
    for kind, part in _iterate_parts(message):
        if kind == "tool_call":
            yield {
                "type": "tool_use",
                "id": part.get("id") or "",
                "name": part.get("name", ""),
                "input": _parse_arguments(part),
            }
        elif kind == "tool_call_response":
            yield {
                "type": "tool_result",
                "tool_use_id": part.get("id") or "",
                "content": text_or_json(_find_result(part)),
            }
        elif kind != "reasoning":
            yield {"type": "text", "text": _to_text(part)}


def _build_anthropic_reply(conversation: Conversation) -> dict[str, Any]:
    stop = _choose_stop_reason(conversation, *conversation.output_messages)
    usage = {
        "input_tokens": conversation.usage.get("input", 0),
        "output_tokens": conversation.usage.get("output", 0),
    }
    return {
        "id": conversation.id or "msg_imported", "type": "message", "role": "assistant", "model": conversation.model,
        "content": [block for message in conversation.output_messages for block in _build_anthropic_blocks(message)],
        "stop_reason": _STOPS["anthropic"].get(stop, stop), "stop_sequence": None, "usage": usage,
    }  # fmt: skip


# ---------------------------------------------------------------- Bedrock Converse


def _build_bedrock_body(conversation: Conversation) -> dict[str, Any]:
    names = {
        "max_tokens": "maxTokens",
        "temperature": "temperature",
        "top_p": "topP",
        "stop": "stopSequences",
    }
    config = {names[name]: value for name, value in conversation.settings.items() if name in names}
    body: dict[str, Any] = {
        "messages": [_build_bedrock_message(message) for message in conversation.input_messages]
    }
    if conversation.system:
        body["system"] = [{"text": conversation.system}]
    if config:
        body["inferenceConfig"] = config
    if conversation.tools:
        body["toolConfig"] = {"tools": [_build_bedrock_tool(tool) for tool in conversation.tools]}
    return body


def _build_bedrock_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"json": tool.get("parameters") or {"type": "object", "properties": {}}}
    about = {"description": tool["description"]} if tool.get("description") else {}
    return {"toolSpec": {"name": tool.get("name", ""), **about, "inputSchema": schema}}


def _build_bedrock_message(message: Message) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for kind, part in _iterate_parts(message):
        if kind == "tool_call":
            use = {
                "toolUseId": part.get("id") or "",
                "name": part.get("name", ""),
                "input": _parse_arguments(part),
            }
            content.append({"toolUse": use})
        elif kind == "tool_call_response":
            result = _find_result(part)
            result_block = (
                {"json": result} if isinstance(result, dict) else {"text": text_or_json(result)}
            )
            content.append(
                {"toolResult": {"toolUseId": part.get("id") or "", "content": [result_block]}}
            )
        elif kind != "reasoning":
            content.append({"text": _to_text(part)})
    return {
        "role": "assistant" if message.get("role") in ("assistant", "model") else "user",
        "content": content,
    }


def _build_bedrock_reply(conversation: Conversation) -> dict[str, Any]:
    content = [
        block
        for message in conversation.output_messages
        for block in _build_bedrock_message({**message, "role": "assistant"})["content"]
    ]
    stop = _choose_stop_reason(conversation, *conversation.output_messages)
    usage = {
        "inputTokens": conversation.usage.get("input", 0),
        "outputTokens": conversation.usage.get("output", 0),
    }
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _STOPS["bedrock"].get(stop, stop), "usage": {**usage, "totalTokens": sum(usage.values())},
        "metrics": {"latencyMs": 0},
    }  # fmt: skip


# ---------------------------------------------------------------- Gemini


def _build_gemini_body(conversation: Conversation) -> dict[str, Any]:
    names = {
        "max_tokens": "maxOutputTokens",
        "temperature": "temperature",
        "top_p": "topP",
        "top_k": "topK",
    }
    names |= {"stop": "stopSequences", "seed": "seed"}
    config = {names[name]: value for name, value in conversation.settings.items() if name in names}
    body: dict[str, Any] = {
        "contents": [_build_gemini_content(message) for message in conversation.input_messages]
    }
    if conversation.system:
        body["systemInstruction"] = {"parts": [{"text": conversation.system}], "role": "user"}
    if config:
        body["generationConfig"] = config
    if conversation.tools:
        body["tools"] = [{"functionDeclarations": [dict(tool) for tool in conversation.tools]}]
    return body


def _build_gemini_content(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for kind, part in _iterate_parts(message):
        if kind == "tool_call":
            parts.append(
                {"functionCall": {"name": part.get("name", ""), "args": _parse_arguments(part)}}
            )
        elif kind == "tool_call_response":
            result = _find_result(part)
            response = result if isinstance(result, dict) else {"result": result}
            parts.append(
                {
                    "functionResponse": {
                        "name": part.get("name") or part.get("id") or "",
                        "response": response,
                    }
                }
            )
        elif kind != "reasoning":
            parts.append({"text": _to_text(part)})
    return {
        "role": "model" if message.get("role") in ("assistant", "model") else "user",
        "parts": parts,
    }


def _build_gemini_reply(conversation: Conversation) -> dict[str, Any]:
    candidates = []
    for index, message in enumerate(conversation.output_messages):
        stop = str(message.get("finish_reason") or conversation.stop or "stop")
        content = _build_gemini_content({**message, "role": "model"})
        candidates.append(
            {"content": content, "finishReason": _STOPS["gemini"].get(stop, stop), "index": index}
        )
    usage = {
        "promptTokenCount": conversation.usage.get("input", 0),
        "candidatesTokenCount": conversation.usage.get("output", 0),
    }
    response = {"candidates": candidates, "modelVersion": conversation.model}
    if not conversation.usage:
        return response
    return {**response, "usageMetadata": {**usage, "totalTokenCount": sum(usage.values())}}


_BODIES = {
    rebuild.OPENAI_CHAT: _build_chat_body, rebuild.OPENAI_RESPONSES: _build_responses_body,
    rebuild.ANTHROPIC: _build_anthropic_body, rebuild.BEDROCK: _build_bedrock_body, rebuild.GEMINI: _build_gemini_body,
}  # fmt: skip
_REPLIES = {
    rebuild.OPENAI_CHAT: _build_chat_reply, rebuild.OPENAI_RESPONSES: _build_responses_reply,
    rebuild.ANTHROPIC: _build_anthropic_reply, rebuild.BEDROCK: _build_bedrock_reply,
    rebuild.GEMINI: _build_gemini_reply,
}  # fmt: skip


def functions(tools: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Tool declarations of any provider as `{name, description, parameters}`; what is no
    declaration is left out.
    """
    declarations: list[Mapping[str, Any]] = []
    for tool in tools:
        if not isinstance(tool, Mapping):
            continue
        several = tool.get("functionDeclarations", tool.get("function_declarations"))
        if isinstance(several, list):  # Gemini's
            declarations += functions(several)
            continue
        inner = tool.get("function", tool.get("toolSpec", tool))
        if not isinstance(inner, Mapping) or not inner.get("name"):
            continue
        schema = inner.get("parameters", inner.get("input_schema", inner.get("inputSchema")))
        schema = rebuild.loaded(schema, None)
        schema = schema.get("json", schema) if isinstance(schema, Mapping) else schema
        declaration = {
            "name": inner["name"],
            "description": inner.get("description"),
            "parameters": schema,
        }
        declarations.append(
            {name: value for name, value in declaration.items() if value is not None}
        )
    return declarations


def call_parts(
    conversation: Conversation, provider: str, api: str, base: str = "", region: str = "us-east-1"
) -> tuple[Any, Any, list[str], list[str]]:
    """Request, reply, missing and assumed of a call that is told in neutral messages."""
    assumed: list[str] = []
    missing = [
        "request JSON: rebuilt from messages",
        "reply JSON: rebuilt from messages",
        "reply headers",
    ]
    url = rebuild.url_of(
        api, provider, assumed, model=conversation.model, stream=conversation.stream, base=base, region=region
    )  # fmt: skip
    if api == rebuild.ANTHROPIC and "max_tokens" not in conversation.settings:
        assumed.append("max_tokens 1024, which the API requires")
    body = reply_body(api, conversation)
    if conversation.stream:
        missing.append("chunks")
        reply = rebuild.as_stream(api, body)
    else:
        reply = rebuild.reply(body)
    return rebuild.request(url, request_body(api, conversation)), reply, missing, assumed
