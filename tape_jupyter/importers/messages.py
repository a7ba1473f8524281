"""Messages as SDKs and frameworks write them -> neutral ones (`role` and `parts`, see `neutral`).

OpenAI Chat and Responses, Anthropic, Gemini, Bedrock Converse, LangChain (as objects, as dumps),
Vercel AI SDK, inspect_ai, OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tape_jupyter.importers.attributes import attribute_text
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


def messages_of(told: Any) -> list[Message]:
    """The messages that a list holds (a text is one of the user); lists in it are taken apart."""
    found = decode_field(told)
    if isinstance(found, str):
        return [{"role": "user", "parts": [text_part(found)]}] if found else []
    if isinstance(found, Mapping):
        return [parse_message(found)]
    made: list[Message] = []
    if isinstance(found, list) and found and all(map(is_part, found)):
        return [{"role": "user", "parts": [part_of(each) for each in found]}]
    for each in found if isinstance(found, list) else ():
        if isinstance(each, Mapping) and not is_declaration(each):
            made.append(parse_message(each))
        elif isinstance(each, (list, str)):
            made += messages_of(each)
    return made


def declarations(told: Any) -> list[Any]:
    """The tools that LangChain's handler of Langfuse puts among the messages."""
    return (
        [each["content"] for each in told if is_declaration(each)] if isinstance(told, list) else []
    )


def is_declaration(message: Any) -> bool:
    content = message.get("content") if isinstance(message, Mapping) else None
    return (
        isinstance(content, Mapping) and content.get("type") == "function" and "function" in content
    )


def is_part(told: Any) -> bool:
    """Whether this is a part of a message's content, and no message: a text, a tool's call, a thought."""
    if not isinstance(told, Mapping) or {"role", "content", "kwargs", "message"} & told.keys():
        return False
    return isinstance(told.get("text"), str) or _is_call(told) or "thinking" in told


def text_part(content: Any) -> dict[str, Any]:
    return {"type": "text", "content": attribute_text(content)}


def parse_message(told: Mapping[str, Any]) -> Message:
    """One message of any of these forms."""
    if isinstance(told.get("kwargs"), Mapping) and (
        told.get("lc") or "id" in told
    ):  # LangChain, serialized
        name = told.get("id")
        kind = str(name[-1] if isinstance(name, list) and name else told.get("type", ""))
        return parse_message({"type": kind, **told["kwargs"], "id": None})
    if (
        isinstance(told.get("data"), Mapping) and "content" in told["data"]
    ):  # LangChain, as `message_to_dict`
        return parse_message({**told["data"], "type": told.get("type", "")})
    if isinstance(told.get("message"), Mapping) and "role" not in told:
        return parse_message(
            {**told["message"], "finish_reason": told.get("finish_reason", told.get("stop_reason"))}
        )
    kind = str(told.get("role") or told.get("type") or "user")
    role = _ROLES.get(kind.lower(), kind)
    if (
        told.get("type") in _CALLS | _RESULTS | {"reasoning"} and "role" not in told
    ):  # an item of Responses
        part = part_of(told)
        role = "tool" if part["type"] == "tool_call_response" else "assistant"
        return {"role": role, "parts": [part]}
    if role not in ("system", "user", "assistant", "tool"):
        role = "assistant" if "output" in kind else "user"
    made: Message = {"role": role, "parts": list(_read_parts(told, role))}
    about = told.get("response_metadata")  # LangChain's
    ends = (told, about if isinstance(about, Mapping) else {})
    stop = next(
        (
            each[name]
            for each in ends
            for name in ("finish_reason", "stop_reason")
            if each.get(name)
        ),
        None,
    )
    return {**made, "finish_reason": str(stop)} if stop else made


def _read_parts(told: Mapping[str, Any], role: str) -> Iterator[dict[str, Any]]:
    content = told.get("parts") if isinstance(told.get("parts"), list) else told.get("content")
    own = told.get("tool_call_id") or told.get("toolCallId")
    if role == "tool" and not _has_results(content):
        result = content if content is not None else told.get("error", "")
        yield {
            "type": "tool_call_response",
            "id": own or "",
            "response": result,
            "name": told.get("name") or "",
        }
        return
    if isinstance(content, list):
        yield from (part_of(each) for each in content)
    elif content not in (None, ""):
        yield text_part(content)
    more = told.get("additional_kwargs")
    kwargs: Mapping[str, Any] = more if isinstance(more, Mapping) else {}
    seen = (
        {part_of(each)["id"] for each in content if _is_call(each)}
        if isinstance(content, list)
        else set()
    )
    for each in (
        decode_field(told.get("tool_calls")) or decode_field(kwargs.get("tool_calls")) or ()
    ):
        if isinstance(each, Mapping) and (call := tool_call_of(each))["id"] not in seen:
            yield call
    if isinstance(old := told.get("function_call") or kwargs.get("function_call"), Mapping):
        yield tool_call_of(old)


def _has_results(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(each, Mapping) and (each.get("type") in _RESULTS or "functionResponse" in each)
        for each in content
    )


def _is_call(part: Any) -> bool:
    return isinstance(part, Mapping) and (
        part.get("type") in _CALLS or "toolUse" in part or "functionCall" in part
    )


def tool_call_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call, in any spelling: its id, name and arguments."""
    inner = told.get("function") if isinstance(told.get("function"), Mapping) else told
    assert isinstance(inner, Mapping)
    name = inner.get("name") or inner.get("toolName") or inner.get("function") or ""
    given: Any = next(
        (inner[key] for key in ("arguments", "args", "input") if inner.get(key) is not None), {}
    )
    own = (
        told.get("call_id")
        or told.get("toolCallId")
        or told.get("toolUseId")
        or told.get("id")
        or ""
    )
    return {"type": "tool_call", "id": str(own), "name": str(name), "arguments": given}


def part_of(told: Any) -> dict[str, Any]:
    """A part of a message's content; one of no known type is kept as it is."""
    if not isinstance(told, Mapping):
        return text_part(told)
    kind = str(told.get("type") or "")
    call = next((told[name] for name in _CALL_KEYS if isinstance(told.get(name), Mapping)), None)
    result = next(
        (told[name] for name in _RESULT_KEYS if isinstance(told.get(name), Mapping)), None
    )
    if kind in _CALLS or call is not None:
        return tool_call_of(told if call is None or kind in _CALLS else call)
    if kind in _RESULTS or result is not None:
        return _read_result(told if result is None else result)
    said = told.get("text", told.get("content"))
    if kind in ("thinking", "reasoning"):
        said = told.get("thinking", told.get("reasoning", said))
        return {"type": "reasoning", "content": attribute_text(said or told.get("summary") or "")}
    if (kind in _PLAIN_TEXT or not kind) and isinstance(said, str):
        return {"type": "text", "content": said}
    return {**told, "type": kind or "other"}


def _read_result(told: Mapping[str, Any]) -> dict[str, Any]:
    own = next(
        (
            told[key]
            for key in ("tool_use_id", "call_id", "toolCallId", "toolUseId", "id")
            if told.get(key)
        ),
        "",
    )
    keys = ("content", "output", "response", "result")
    result = next((told[key] for key in keys if told.get(key) is not None), "")
    if isinstance(result, list):  # blocks of one text
        texts = [each.get("text") for each in result if isinstance(each, Mapping)]
        result = (
            texts[0] if len(texts) == len(result) == 1 and isinstance(texts[0], str) else result
        )
    return {
        "type": "tool_call_response",
        "id": str(own),
        "name": str(told.get("name") or ""),
        "response": result,
    }


def said_messages(told: Any) -> list[Message]:
    """The messages of a reply: an envelope of a provider or of LangChain, a message, a list of
    them, or a text.
    """
    found = decode_field(told)
    if isinstance(found, str):
        return [{"role": "assistant", "parts": [text_part(found)]}] if found else []
    if isinstance(found, list):
        return _read_reply_list(found)
    return _read_reply_map(found) if isinstance(found, Mapping) else []


def _read_reply_list(found: list[Any]) -> list[Message]:
    maps = [each for each in found if isinstance(each, Mapping)]
    if maps and len(maps) == len(found):
        if all(_is_call(each) or "toolName" in each for each in maps):
            return [{"role": "assistant", "parts": [tool_call_of(each) for each in maps]}]
        if all(map(is_part, maps)):
            return [{"role": "assistant", "parts": [part_of(each) for each in maps]}]
        if all("finish_reason" in each or "stop_reason" in each for each in maps):
            return [message for each in maps for message in _read_choice(each)]
    return [{**each, "role": "assistant"} for each in messages_of(found) if each["role"] != "tool"]


def _read_reply_map(found: Mapping[str, Any]) -> list[Message]:
    for name in ("generations", "choices", "candidates", "output_messages"):
        if isinstance(found.get(name), list) and found[name]:
            return [each for inner in _flatten_lists(found[name]) for each in _read_choice(inner)]
    if {"role", "content", "parts", "kwargs", "tool_calls"} & found.keys():
        return [{**parse_message(found), "role": "assistant"}]
    if isinstance(found.get("messages"), list):
        return said_messages(found["messages"][-1:])
    for name in ("message", "output", "text", "completion", "answer", "response", "result"):
        if found.get(name):
            return said_messages(found[name])
    return [{"role": "assistant", "parts": [text_part(dict(found))]}] if found else []


def _flatten_lists(value: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for each in value:
        if isinstance(each, list):
            yield from _flatten_lists(each)
        elif isinstance(each, Mapping):
            yield each


def _read_choice(told: Mapping[str, Any]) -> list[Message]:
    info = told.get("generation_info")
    stop = told.get("finish_reason") or told.get("finishReason") or told.get("stop_reason")
    stop = stop or (info.get("finish_reason") if isinstance(info, Mapping) else None)
    inner = told.get("message") or told.get("content") or told.get("text") or ""
    made = said_messages(inner)
    return [{**each, "finish_reason": str(stop)} for each in made] if stop else made
