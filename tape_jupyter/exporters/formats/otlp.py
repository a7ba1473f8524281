"""OTLP JSON by the GenAI semantic conventions of OpenTelemetry, in their current generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tape_jupyter.core.call import FunctionCall
from tape_jupyter.exporters import spans
from tape_jupyter.exporters.conversations import ExportedConversation
from tape_jupyter.exporters.recording import File, RecordedCall, Recording
from tape_jupyter.exporters.spans import Attributes, filled_attributes, json_text

TITLE = "OpenTelemetry (OTLP JSON, GenAI conventions)"
SUFFIX = ".json"
PROVIDERS = {
    "bedrock": "aws.bedrock", "gemini": "gcp.gemini", "vertex": "gcp.vertex_ai", "azure": "azure.ai.openai",
    "mistral": "mistral_ai", "x-ai": "x_ai",
}  # fmt: skip


def write(recording: Recording) -> list[File]:
    return spans.write_spans(recording, _GenAI())


class _GenAI:
    def model(self, _call: RecordedCall, conversation: ExportedConversation) -> Attributes:
        facts, usage = conversation.facts, conversation.facts.usage
        embeds = "embed" in facts.api
        input_messages = [] if embeds else conversation.input_messages
        return filled_attributes(
            {
                "gen_ai.operation.name": "embeddings" if embeds else "chat",
                "gen_ai.provider.name": PROVIDERS.get(facts.provider, facts.provider),
                "gen_ai.request.model": facts.model,
                **{
                    f"gen_ai.request.{name}": value for name, value in conversation.settings.items()
                },
                "gen_ai.request.stream": True if facts.streamed else None,
                "gen_ai.response.model": facts.answered or None,
                "gen_ai.response.id": conversation.id,
                "gen_ai.response.finish_reasons": [conversation.stop]
                if conversation.stop
                else None,
                "gen_ai.usage.input_tokens": usage.input if usage else None,
                "gen_ai.usage.output_tokens": usage.output if usage else None,
                "gen_ai.usage.cache_read.input_tokens": (usage.cached or None) if usage else None,
                "gen_ai.usage.cache_write.input_tokens": (usage.written or None) if usage else None,
                "gen_ai.system_instructions": _to_json_text(
                    [{"type": "text", "content": conversation.system}]
                    if conversation.system
                    else []
                ),
                "gen_ai.tool.definitions": _to_json_text(
                    [{"type": "function", **tool} for tool in conversation.tools]
                ),
                "gen_ai.input.messages": _to_json_text(input_messages),
                "gen_ai.output.messages": _to_json_text(
                    [
                        {"finish_reason": conversation.stop, **each}
                        for each in conversation.output_messages
                    ]
                ),
                "openai.api.type": "responses" if facts.wire == "openai_responses" else None,
            }
        )

    def tool(self, call: RecordedCall, arguments: Mapping[str, Any], result: Any) -> Attributes:
        retrieves = isinstance(call.request, FunctionCall) and call.request.kind == "retrieval"
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.request.name
            if isinstance(call.request, FunctionCall)
            else call.name,
            "gen_ai.tool.type": "datastore" if retrieves else "function",
            "gen_ai.tool.call.arguments": json_text(dict(arguments)),
        }
        failed = call.reply.error is not None
        if failed:
            return attributes
        return {**attributes, "gen_ai.tool.call.result": json_text(result)}

    def step(self) -> Attributes:
        return {}


def _to_json_text(values: list[Any]) -> str:
    return json_text(values) if values else ""
