"""OTLP JSON by OpenInference, the conventions of Phoenix and Arize."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tape_jupyter.core.call import FunctionCall, Reply, Request
from tape_jupyter.exporters import plain_bodies, spans
from tape_jupyter.exporters.conversations import ExportedConversation
from tape_jupyter.exporters.recording import File, RecordedCall, Recording
from tape_jupyter.exporters.spans import Attributes, filled_attributes, json_text

TITLE = "OpenTelemetry (OTLP JSON, OpenInference)"
SUFFIX = ".json"
_JSON = "application/json"
_UNSAID = (
    "messages",
    "contents",
    "input",
    "prompt",
    "tools",
    "system",
    "instructions",
    "systemInstruction",
)


def write(recording: Recording) -> list[File]:
    return spans.write_spans(recording, _OpenInference())


class _OpenInference:
    def model(self, call: RecordedCall, conversation: ExportedConversation) -> Attributes:
        facts, usage = conversation.facts, conversation.facts.usage
        embeds = "embed" in facts.api
        if isinstance(conversation.request_json, Mapping):
            body = conversation.request_json
        else:
            body = {}
        settings = {name: value for name, value in body.items() if name not in _UNSAID}
        model = "embedding.model_name" if embeds else "llm.model_name"
        return {
            **filled_attributes(
                {
                    "openinference.span.kind": "EMBEDDING" if embeds else "LLM",
                    model: facts.answered or facts.model,
                    "llm.provider": facts.provider,
                    "llm.system": facts.provider,
                    "llm.invocation_parameters": json_text(settings) if settings else "",
                    "llm.finish_reason": conversation.stop,
                    "llm.token_count.prompt": usage.input if usage else None,
                    "llm.token_count.completion": usage.output if usage else None,
                    "llm.token_count.total": usage.input + usage.output if usage else None,
                    "llm.token_count.prompt_details.cache_read": (usage.cached or None)
                    if usage
                    else None,
                    "llm.token_count.prompt_details.cache_write": (usage.written or None)
                    if usage
                    else None,
                    **_describe_values(call, conversation),
                }
            ),
            **_flatten_messages(
                "llm.input_messages",
                [
                    *_build_system_messages(conversation),
                    *([] if embeds else conversation.input_messages),
                ],
            ),
            **_flatten_messages("llm.output_messages", conversation.output_messages),
            **{
                f"llm.tools.{n}.tool.json_schema": json_text(tool)
                for n, tool in enumerate(_find_tools(body))
            },
        }

    def tool(self, call: RecordedCall, arguments: Mapping[str, Any], result: Any) -> Attributes:
        function_call = call.request
        assert isinstance(function_call, FunctionCall)
        attributes: Attributes = {
            "input.value": json_text(dict(arguments)),
            "input.mime_type": _JSON,
        }
        if call.reply.error is None:
            attributes |= {"output.value": json_text(result), "output.mime_type": _JSON}
        if function_call.kind == "retrieval":
            return {
                "openinference.span.kind": "RETRIEVER",
                **attributes,
                **_flatten_documents(result),
            }
        return {"openinference.span.kind": "TOOL", "tool.name": function_call.name, **attributes}

    def step(self) -> Attributes:
        return {"openinference.span.kind": "CHAIN"}


def _describe_values(call: RecordedCall, conversation: ExportedConversation) -> Attributes:
    """`input.value` is the request's own text, `output.value` the reply's; a stream is put
    together.
    """
    assert isinstance(call.request, Request)
    assert isinstance(call.reply, Reply)
    request_text, coded = plain_bodies.text_or_base64(
        plain_bodies.plain_body(call.request.headers, call.request.body)
    )
    values: Attributes = {} if coded else {"input.value": request_text, "input.mime_type": _JSON}
    if conversation.reply_json is None:
        text = "\n".join(
            str(part.get("content", ""))
            for each in conversation.output_messages
            for part in each["parts"]
        )
        if text:
            return {**values, "output.value": text, "output.mime_type": "text/plain"}
        return values
    said_text, coded = plain_bodies.text_or_base64(
        plain_bodies.plain_body(call.reply.headers, call.reply.body)
    )
    complete = (
        not coded and plain_bodies.parse_body(call.reply.headers, call.reply.body) is not None
    )
    return {
        **values,
        "output.value": said_text if complete else json_text(conversation.reply_json),
        "output.mime_type": _JSON,
    }


def _build_system_messages(conversation: ExportedConversation) -> list[dict[str, Any]]:
    if not conversation.system:
        return []
    return [{"role": "system", "parts": [{"type": "text", "content": conversation.system}]}]


def _find_tools(body: Mapping[str, Any]) -> list[Any]:
    tools = body.get("tools")
    return tools if isinstance(tools, list) else []


def _flatten_messages(prefix: str, messages: list[Any]) -> Attributes:
    return {
        f"{prefix}.{number}.message.{name}": value
        for number, message in enumerate(messages)
        for name, value in _flatten_message(message)
    }


def _flatten_message(message: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "role", str(message.get("role") or "user")
    parts = message.get("parts") or []
    results = [part for part in parts if part.get("type") == "tool_call_response"]
    calls = [part for part in parts if part.get("type") == "tool_call"]
    rest = [part for part in parts if part not in results and part not in calls]
    if results and len(parts) == 1:
        yield "tool_call_id", str(results[0].get("id") or "")
        yield "content", _to_text(results[0].get("response"))
        return
    if len(rest) == 1 and not results and rest[0].get("type") == "text":
        yield "content", _to_text(rest[0].get("content"))
    else:
        for place, part in enumerate([*rest, *results]):
            yield f"contents.{place}.message_content.type", str(part.get("type") or "text")
            yield (
                f"contents.{place}.message_content.text",
                _to_text(part.get("content", part.get("response", dict(part)))),
            )
    for place, part in enumerate(calls):
        at = f"tool_calls.{place}.tool_call"
        yield f"{at}.id", str(part.get("id") or "")
        yield f"{at}.function.name", str(part.get("name") or "")
        yield f"{at}.function.arguments", _to_text(part.get("arguments"))


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _flatten_documents(result: Any) -> Attributes:
    """The documents of a retrieval, where its result is a list of them."""
    attributes: Attributes = {}
    for number, each in enumerate(result if isinstance(result, list) else ()):
        document = each if isinstance(each, Mapping) else {"content": each}
        for name, value in document.items():
            attributes[f"retrieval.documents.{number}.document.{name}"] = _to_text(value)
    return attributes
