"""A model call as neutral messages: what traces say of it, whatever provider it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.exporters.plain_bodies import parse_body, plain_body
from tape_jupyter.importers import messages, neutral
from tape_jupyter.importers.messages import Message
from tape_jupyter.providers import conversation as providers_conversation
from tape_jupyter.providers import editing, http, registry
from tape_jupyter.providers.registry import Facts

_SETTINGS = {
    "temperature": ("temperature",), "top_p": ("top_p", "topP"), "top_k": ("top_k", "topK"), "seed": ("seed",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens"),
    "stop_sequences": ("stop", "stop_sequences", "stopSequences"), "choice.count": ("n", "candidateCount"),
    "presence_penalty": ("presence_penalty", "presencePenalty"),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty"),
}  # fmt: skip
_STOPS = {
    "end_turn": "stop", "stop_sequence": "stop", "completed": "stop", "STOP": "stop", "tool_use": "tool_call",
    "tool_calls": "tool_call", "function_call": "tool_call", "max_tokens": "length", "MAX_TOKENS": "length",
    "incomplete": "length", "refusal": "content_filter", "SAFETY": "content_filter",
}  # fmt: skip


@dataclass(slots=True)
class ExportedConversation:
    """What was asked and answered. `settings` by GenAI's names; `request_json` and `reply_json` are
    the bodies.
    """

    facts: Facts
    input_messages: list[Message] = field(default_factory=list)
    output_messages: list[Message] = field(default_factory=list)
    system: str = ""
    tools: list[Mapping[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    stop: str = ""
    request_json: Any = None
    reply_json: Any = None


def export_conversation(request: Request, reply: Reply) -> ExportedConversation:
    """The call in neutral words; what its bodies do not tell is empty."""
    facts = registry.call_facts(request, reply)
    body, answer = parse_body(request.headers, request.body), _read_answer(request, reply)
    conversation = ExportedConversation(
        facts, request_json=body, reply_json=answer, stop=_STOPS.get(facts.stop, facts.stop)
    )
    if isinstance(answer, Mapping):
        conversation.id = str(answer.get("id") or answer.get("responseId") or "")
    if isinstance(body, Mapping):
        conversation.input_messages = list(_read_request_messages(body))
        conversation.system = _read_system(body)
        conversation.tools = neutral.functions(list(_read_tools(body)))
        conversation.settings = _read_settings(body)
    if (reply.status or 0) < 400:
        conversation.output_messages = _read_reply_messages(reply, answer)
    return conversation


def _read_request_messages(body: Mapping[str, Any]) -> Iterator[Message]:
    for name in ("messages", "contents", "input", "prompt"):
        if body.get(name):
            yield from messages.messages_of(body[name])
            return


def _read_system(body: Mapping[str, Any]) -> str:
    system = next(
        (body[name] for name in ("system", "instructions", "systemInstruction") if body.get(name)),
        "",
    )
    if isinstance(system, Mapping):
        system = system.get("parts") or system.get("text") or ""
    if isinstance(system, list):
        return "\n\n".join(
            str(each.get("text", "")) for each in system if isinstance(each, Mapping)
        )
    return str(system)


def _read_tools(body: Mapping[str, Any]) -> Iterator[Any]:
    config = body.get("toolConfig")
    listed = body.get("tools") or (config.get("tools") if isinstance(config, Mapping) else None)
    for each in listed if isinstance(listed, list) else ():
        inner = None
        if isinstance(each, Mapping):
            inner = each.get("functionDeclarations", each.get("function_declarations"))
        yield from inner if isinstance(inner, list) else [each]


def _read_settings(body: Mapping[str, Any]) -> dict[str, Any]:
    inner = (body.get(name) for name in ("generationConfig", "inferenceConfig"))
    parameters = {
        **body,
        **{
            name: value
            for each in inner
            if isinstance(each, Mapping)
            for name, value in each.items()
        },
    }
    settings = {
        name: next((parameters[key] for key in keys if parameters.get(key) is not None), None)
        for name, keys in _SETTINGS.items()
    }
    return {name: [value] if name == "stop_sequences" and isinstance(value, str) else value
            for name, value in settings.items() if value is not None}  # fmt: skip


def _read_answer(request: Request, reply: Reply) -> Any:
    """The reply's JSON; of a stream, the message that it amounts to."""
    message = editing.reply_message(request, reply)
    if message is not None:
        return message
    parsed = parse_body(reply.headers, reply.body)
    return parsed if isinstance(parsed, Mapping) else None


def _read_reply_messages(reply: Reply, answer: Any) -> list[Message]:
    if isinstance(answer, Mapping) and answer.get("object") != "list":
        output = answer.get("output")
        if isinstance(output, list):  # Responses: its items are one message
            parts = [part for each in messages.messages_of(output) for part in each["parts"]]
            return [{"role": "assistant", "parts": parts}]
        return messages.said_messages(answer) if _has_message(answer) else []
    events = http.events(reply.headers, plain_body(reply.headers, reply.body), ())
    blocks = providers_conversation.whole_blocks(events) if events is not None else []
    if blocks:
        return [messages.parse_message({"role": "assistant", "content": blocks})]
    return []


def _has_message(answer: Mapping[str, Any]) -> bool:
    return bool(
        {"choices", "content", "candidates", "output", "message", "completion", "text"}
        & answer.keys()
    )
