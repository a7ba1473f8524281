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
    error_body=_build_error_body,
    seeds=True,
)
