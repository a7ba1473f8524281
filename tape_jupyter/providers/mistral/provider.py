"""Mistral's API: OpenAI's paths on hosts of its own."""

from __future__ import annotations

from tape_jupyter.providers.openai import chat
from tape_jupyter.providers.openai.chat_messages import ChatMessages
from tape_jupyter.providers.protocol import Provider, plain_error

PROVIDER = Provider(
    wire="mistral",
    view=chat,
    hosts={"api.mistral.ai": "mistral", "codestral.mistral.ai": "mistral"},
    messages=ChatMessages("stop", "length", "tool_calls", "error", "model_length"),
    error_body=plain_error,
    seeds=True,
)
