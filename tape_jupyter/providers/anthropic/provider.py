"""Anthropic's Messages API, on its own hosts, on Vertex and on Bedrock's."""

from __future__ import annotations

from typing import Any

from tape_jupyter.providers.anthropic import view
from tape_jupyter.providers.anthropic.messages import AnthropicMessages
from tape_jupyter.providers.protocol import Provider, ProviderError


def _build_error_body(error: ProviderError) -> Any:
    return {"type": "error", "error": {"type": error.kind, "message": error.text}}


PROVIDER = Provider(
    wire="anthropic",
    view=view,
    paths=(
        (
            r"/publishers/anthropic/models/(?P<model>[^/:]+):(?P<api>rawPredict|streamRawPredict)$",
            "",
        ),
        (r"/v1/messages$", "messages"),
        (r"/v1/messages/(?P<api>count_tokens|batches)$", ""),
        (r"/v1/complete$", "complete"),
    ),
    hosts={"api.anthropic.com": "anthropic"},
    model_addresses=r"/v1/(?:messages(?:/count_tokens|/batches.*)?|complete)$",
    messages=AnthropicMessages(),
    error_body=_build_error_body,
    overloaded=529,
)
