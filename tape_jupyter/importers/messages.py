"""Messages as SDKs and frameworks write them -> neutral ones (`role` and `parts`, see `neutral`).

OpenAI Chat and Responses, Anthropic, Gemini, Bedrock Converse, LangChain (as objects, as dumps),
Vercel AI SDK, inspect_ai, OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tape_jupyter.core.plain_text import text_or_json
from tape_jupyter.importers.rows import decode_field

Message = dict[str, Any]
_ROLES = {
    "human": "user", "humanmessage": "user", "humanmessagechunk": "user", "ai": "assistant", "aimessage": "assistant",
    "aimessagechunk": "assistant", "model": "assistant", "gemini": "assistant", "systemmessage": "system",
    "developer": "system", "toolmessage": "tool", "function": "tool", "chatmessage": "user",
}  # fmt: skip
_CALL_KEYS = ("toolUse", "functionCall", "function_call")
_RESULT_KEYS = ("toolResult", "functionResponse", "function_response")
_PLAIN_TEXT = {"text", "input_text", "output_text", "refusal"}
_CALLS = {"tool_use", "function_call", "custom_tool_call", "tool-call", "tool_call"}
_RESULTS = {
    "tool_result", "function_call_output", "custom_tool_call_output", "tool-result", "tool_call_response",
}  # fmt: skip


def messages_of(value: Any) -> list[Message]:
    """The messages that a list holds (a text is one of the user); lists in it are taken apart."""
    decoded = decode_field(value)
    if isinstance(decoded, str):
        return [{"role": "user", "parts": [text_part(decoded)]}] if decoded else []
    if isinstance(decoded, Mapping):
        return [parse_message(decoded)]
    messages: list[Message] = []
    if isinstance(decoded, list) and decoded and all(map(is_part, decoded)):
        return [{"role": "user", "parts": [part_of(each) for each in decoded]}]
    for each in decoded if isinstance(decoded, list) else ():
        if isinstance(each, Mapping) and not is_declaration(each):
            messages.append(parse_message(each))
        elif isinstance(each, (list, str)):
            messages += messages_of(each)
    return messages


def declarations(messages: Any) -> list[Any]:
    """The tools that LangChain's handler of Langfuse puts among the messages."""
    if not isinstance(messages, list):
        return []
    return [each["content"] for each in messages if is_declaration(each)]


def is_declaration(message: Any) -> bool:
    content = message.get("content") if isinstance(message, Mapping) else None
    return (
        isinstance(content, Mapping) and content.get("type") == "function" and "function" in content
    )


def is_part(value: Any) -> bool:
    """Whether this is a part of a message's content, and no message: a text, a tool's call, a thought."""
    if not isinstance(value, Mapping) or {"role", "content", "kwargs", "message"} & value.keys():
        return False
    return isinstance(value.get("text"), str) or _is_call(value) or "thinking" in value


def text_part(content: Any) -> dict[str, Any]:
    return {"type": "text", "content": text_or_json(content)}


def parse_message(record: Mapping[str, Any]) -> Message:
    """One message of any of these forms."""
    # LangChain, serialized
    if isinstance(record.get("kwargs"), Mapping) and (record.get("lc") or "id" in record):
        name = record.get("id")
        kind = str(name[-1] if isinstance(name, list) and name else record.get("type", ""))
        return parse_message({"type": kind, **record["kwargs"], "id": None})
    # LangChain, as `message_to_dict`
    if isinstance(record.get("data"), Mapping) and "content" in record["data"]:
        return parse_message({**record["data"], "type": record.get("type", "")})
    if isinstance(record.get("message"), Mapping) and "role" not in record:
        return parse_message(
            {
                **record["message"],
                "finish_reason": record.get("finish_reason", record.get("stop_reason")),
            }
        )
    kind = str(record.get("role") or record.get("type") or "user")
    role = _ROLES.get(kind.lower(), kind)
    # an item of Responses
    if _read_type(record) in _CALLS | _RESULTS | {"reasoning"} and "role" not in record:
        part = part_of(record)
        role = "tool" if part["type"] == "tool_call_response" else "assistant"
        return {"role": role, "parts": [part]}
    if role not in ("system", "user", "assistant", "tool"):
        role = "assistant" if "output" in kind else "user"
    message: Message = {"role": role, "parts": list(_read_parts(record, role))}
    about = record.get("response_metadata")  # LangChain's
    ends = (record, about if isinstance(about, Mapping) else {})
    stop = next(
        (
            each[name]
            for each in ends
            for name in ("finish_reason", "stop_reason")
            if each.get(name)
        ),
        None,
    )
    return {**message, "finish_reason": str(stop)} if stop else message


def _read_parts(record: Mapping[str, Any], role: str) -> Iterator[dict[str, Any]]:
    if isinstance(record.get("parts"), list):
        content = record.get("parts")
    else:
        content = record.get("content")
    call_id = record.get("tool_call_id") or record.get("toolCallId")
    if role == "tool" and not _has_results(content):
        result = content if content is not None else record.get("error", "")
        yield {
            "type": "tool_call_response",
            "id": call_id or "",
            "response": result,
            "name": record.get("name") or "",
        }
        return
    if isinstance(content, list):
        yield from (part_of(each) for each in content)
    elif content not in (None, ""):
        yield text_part(content)
    more = record.get("additional_kwargs")
    kwargs: Mapping[str, Any] = more if isinstance(more, Mapping) else {}
    parts = map(part_of, filter(_is_call, content)) if isinstance(content, list) else ()
    seen = {str(part.get("id")) for part in parts}
    calls = decode_field(record.get("tool_calls")) or decode_field(kwargs.get("tool_calls"))
    for each in calls if isinstance(calls, list) else ():
        if isinstance(each, Mapping) and (call := tool_call_of(each))["id"] not in seen:
            yield call
    if isinstance(old := record.get("function_call") or kwargs.get("function_call"), Mapping):
        yield tool_call_of(old)


def _read_type(value: Mapping[str, Any]) -> str:
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def _has_results(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(each, Mapping) and (_read_type(each) in _RESULTS or "functionResponse" in each)
        for each in content
    )


def _is_call(part: Any) -> bool:
    return isinstance(part, Mapping) and (
        _read_type(part) in _CALLS or "toolUse" in part or "functionCall" in part
    )


def tool_call_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call, in any spelling: its id, name and arguments."""
    if isinstance(record.get("function"), Mapping):
        inner = record.get("function")
    else:
        inner = record
    assert isinstance(inner, Mapping)
    name = inner.get("name") or inner.get("toolName") or inner.get("function") or ""
    arguments: Any = next(
        (inner[key] for key in ("arguments", "args", "input") if inner.get(key) is not None), {}
    )
    call_id = (
        record.get("call_id")
        or record.get("toolCallId")
        or record.get("toolUseId")
        or record.get("id")
        or ""
    )
    return {"type": "tool_call", "id": str(call_id), "name": str(name), "arguments": arguments}


def part_of(value: Any) -> dict[str, Any]:
    """A part of a message's content; one of no known type is kept as it is."""
    if not isinstance(value, Mapping):
        return text_part(value)
    kind = str(value.get("type") or "")
    call = next((value[name] for name in _CALL_KEYS if isinstance(value.get(name), Mapping)), None)
    result = next(
        (value[name] for name in _RESULT_KEYS if isinstance(value.get(name), Mapping)), None
    )
    if kind in _CALLS or call is not None:
        return tool_call_of(value if call is None or kind in _CALLS else call)
    if kind in _RESULTS or result is not None:
        return _read_result(value if result is None else result)
    content = value.get("text", value.get("content"))
    if kind in ("thinking", "reasoning"):
        content = value.get("thinking", value.get("reasoning", content))
        return {
            "type": "reasoning",
            "content": text_or_json(content or value.get("summary") or ""),
        }
    if (kind in _PLAIN_TEXT or not kind) and isinstance(content, str):
        return {"type": "text", "content": content}
    return {**value, "type": kind or "other"}


def _read_result(record: Mapping[str, Any]) -> dict[str, Any]:
    call_id = next(
        (
            record[key]
            for key in ("tool_use_id", "call_id", "toolCallId", "toolUseId", "id")
            if record.get(key)
        ),
        "",
    )
    keys = ("content", "output", "response", "result")
    result = next((record[key] for key in keys if record.get(key) is not None), "")
    if isinstance(result, list):  # blocks of one text
        texts = [each.get("text") for each in result if isinstance(each, Mapping)]
        if len(texts) == len(result) == 1 and isinstance(texts[0], str):
            result = texts[0]
    return {
        "type": "tool_call_response",
        "id": str(call_id),
        "name": str(record.get("name") or ""),
        "response": result,
    }


def said_messages(value: Any) -> list[Message]:
    """The messages of a reply: an envelope of a provider or of LangChain, a message, a list of
    them, or a text.
    """
    decoded = decode_field(value)
    if isinstance(decoded, str):
        if decoded:
            return [{"role": "assistant", "parts": [text_part(decoded)]}]
        return []
    if isinstance(decoded, list):
        return _read_reply_list(decoded)
    return _read_reply_map(decoded) if isinstance(decoded, Mapping) else []


def _read_reply_list(items: list[Any]) -> list[Message]:
    maps = [each for each in items if isinstance(each, Mapping)]
    if maps and len(maps) == len(items):
        if all(_is_call(each) or "toolName" in each for each in maps):
            return [{"role": "assistant", "parts": [tool_call_of(each) for each in maps]}]
        if all(map(is_part, maps)):
            return [{"role": "assistant", "parts": [part_of(each) for each in maps]}]
        if all("finish_reason" in each or "stop_reason" in each for each in maps):
            return [message for each in maps for message in _read_choice(each)]
    return [{**each, "role": "assistant"} for each in messages_of(items) if each["role"] != "tool"]


def _read_reply_map(reply: Mapping[str, Any]) -> list[Message]:
    for name in ("generations", "choices", "candidates", "output_messages"):
        if isinstance(reply.get(name), list) and reply[name]:
            return [each for inner in _flatten_lists(reply[name]) for each in _read_choice(inner)]
    if {"role", "content", "parts", "kwargs", "tool_calls"} & reply.keys():
        return [{**parse_message(reply), "role": "assistant"}]
    if isinstance(reply.get("messages"), list):
        return said_messages(reply["messages"][-1:])
    for name in ("message", "output", "text", "completion", "answer", "response", "result"):
        if reply.get(name):
            return said_messages(reply[name])
    if reply:
        return [{"role": "assistant", "parts": [text_part(dict(reply))]}]
    return []


def _flatten_lists(value: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for each in value:
        if isinstance(each, list):
            yield from _flatten_lists(each)
        elif isinstance(each, Mapping):
            yield each


def _read_choice(choice: Mapping[str, Any]) -> list[Message]:
    info = choice.get("generation_info")
    stop = choice.get("finish_reason") or choice.get("finishReason") or choice.get("stop_reason")
    stop = stop or (info.get("finish_reason") if isinstance(info, Mapping) else None)
    inner = choice.get("message") or choice.get("content") or choice.get("text") or ""
    messages = said_messages(inner)
    if stop:
        return [{**each, "finish_reason": str(stop)} for each in messages]
    return messages
