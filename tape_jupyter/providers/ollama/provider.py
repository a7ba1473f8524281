"""Ollama's own API."""

from __future__ import annotations

from typing import Any

from tape_jupyter.providers.ollama import view
from tape_jupyter.providers.protocol import Provider, ProviderError


def _build_error_body(error: ProviderError) -> Any:
    return {"error": error.text}


PROVIDER = Provider(
    wire="ollama",
    view=view,
    paths=((r"/api/(?P<api>chat|generate|embed|embeddings)$", ""),),
    hosts={"ollama.com": "ollama"},
    port=11434,
    # Anybody may have an /api/chat: it counts on this machine, at Ollama's port, under its name.
    model_addresses=(
        r"^(?:localhost:|[^/]*:11434(?=/)|[^/]*ollama).*/api/(?:chat|generate|embed|embeddings)$"
    ),
    error_body=_build_error_body,
    seeds=True,
)
