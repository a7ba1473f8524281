"""What a platform keeps of a request and a reply in pieces (messages here, parameters there) ->
their JSON.

Platforms put request parameters and reply fields into one map, and keep only the heart of a reply.
`envelope_request` and `envelope_reply` put both together again; what is made up is said in `assumed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tape_jupyter.importers import rebuild

_REPLYS = {  # fields of a reply that are no parameter of a request
    "id", "created", "created_at", "completed_at", "object", "status", "usage", "system_fingerprint", "moderation",
    "stop_reason", "stop_sequence", "stop_details", "finish_reason", "error", "incomplete_details", "billing",
}  # fmt: skip
_AMBIGUOUS = {  # a Responses reply says these of every request, whether they were sent or not
    "parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "text", "metadata", "truncation",
    "background", "store", "reasoning", "service_tier", "top_logprobs", "presence_penalty", "frequency_penalty",
    "max_tool_calls",
}  # fmt: skip


def parameters(
    fields: Mapping[str, Any], *, without: tuple[str, ...] = ()
) -> tuple[dict[str, Any], bool]:
    """The request's parameters in a map that may hold the reply's fields too, and whether it did."""
    mixed = bool(_REPLYS & fields.keys())
    kept = {
        name: value
        for name, value in fields.items()
        if value is not None and name not in _REPLYS and name not in without
    }
    if fields.get("object") == "response":
        kept = {name: value for name, value in kept.items() if name not in _AMBIGUOUS}
    return kept, mixed


def envelope_request(
    request_input: Any, settings: Mapping[str, Any], provider: str, assumed: list[str]
) -> dict[str, Any] | None:
    """A request's JSON of its messages (or its input) and its parameters; None where they are no
    provider's.
    """
    if isinstance(request_input, Mapping):
        return (
            {**request_input, **settings}
            if request_input.keys() & {"messages", "input", "contents"}
            else None
        )
    if isinstance(request_input, str):
        return {"input": request_input, **settings}
    maps = (
        [each for each in request_input or () if isinstance(each, Mapping)]
        if isinstance(request_input, list)
        else []
    )
    if not maps or len(maps) != len(request_input):
        return None
    if any(
        each.get("type") in ("function_call", "function_call_output", "message") for each in maps
    ):
        return {"input": request_input, **settings}
    if provider == "anthropic" and len(maps) > 1 and maps[-1].get("role") == "system":
        assumed.append("system, which stands behind the messages")
        return {"messages": maps[:-1], "system": maps[-1].get("content"), **settings}
    return {"messages": request_input, **settings} if all("role" in each for each in maps) else None


def envelope_reply(
    api: str, reply: Any, model: str, usage: Mapping[str, int], about: Mapping[str, Any]
) -> Any:
    """A reply's JSON of its choices, its output items, its content or its text; as it is where it
    is whole.
    """
    if not _is_partial_reply(reply):
        return reply
    envelope = _MAKE.get(api, _build_chat_reply)(reply, model, about)
    if usage and "usage" not in envelope:
        into, out = usage.get("input", 0), usage.get("output", 0)
        if api == rebuild.OPENAI_CHAT:
            names = ("prompt_tokens", "completion_tokens")
        else:
            names = ("input_tokens", "output_tokens")
        total = {} if api == rebuild.ANTHROPIC else {"total_tokens": into + out}
        envelope["usage"] = {names[0]: into, names[1]: out, **total}
    return envelope


def _is_partial_reply(reply: Any) -> bool:
    return not isinstance(reply, Mapping) or not ({"id", "object"} & reply.keys())


def _build_chat_reply(reply: Any, model: str, about: Mapping[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices") if isinstance(reply, Mapping) else reply
    if not isinstance(choices, list):
        if isinstance(reply, Mapping):
            message = reply
        else:
            message = {"role": "assistant", "content": reply}
        choices = [
            {
                "message": message,
                "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
            }
        ]
    numbered = [
        {"index": place, **each} for place, each in enumerate(choices) if isinstance(each, Mapping)
    ]
    for each in numbered:
        if isinstance(each.get("message"), Mapping):
            each["message"] = {"role": "assistant", "content": None, **each["message"]}
    return {
        "id": str(about.get("id") or "chatcmpl-imported"), "object": "chat.completion",
        "created": int(about.get("created") or 0), "model": model, "choices": numbered,
    }  # fmt: skip


def _build_responses_reply(reply: Any, model: str, about: Mapping[str, Any]) -> dict[str, Any]:
    output = reply.get("output") if isinstance(reply, Mapping) else reply
    if not isinstance(output, list):
        text = [
            {
                "type": "output_text",
                "text": output if isinstance(output, str) else "",
                "annotations": [],
            }
        ]
        output = [
            {
                "id": "msg_0",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": text,
            }
        ]
    return {
        "id": str(about.get("id") or "resp_imported"), "object": "response", "model": model, "output": output,
        "created_at": about.get("created_at") or 0, "status": str(about.get("status") or "completed"),
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def _build_anthropic_reply(reply: Any, model: str, about: Mapping[str, Any]) -> dict[str, Any]:
    content = reply.get("content") if isinstance(reply, Mapping) else reply
    if isinstance(content, list):
        blocks = content
    else:
        blocks = [{"type": "text", "text": content or ""}]
    return {
        "id": str(about.get("id") or "msg_imported"), "type": "message", "role": "assistant", "model": model,
        "content": blocks, "stop_reason": about.get("stop_reason") or "end_turn",
        "stop_sequence": about.get("stop_sequence"),
    }  # fmt: skip


_MAKE = {
    rebuild.OPENAI_CHAT: _build_chat_reply,
    rebuild.OPENAI_RESPONSES: _build_responses_reply,
    rebuild.ANTHROPIC: _build_anthropic_reply,
}
