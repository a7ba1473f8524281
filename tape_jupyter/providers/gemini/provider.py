"""Google's Gemini API, on its own host and on Vertex."""

from __future__ import annotations

from typing import Any

from tape_jupyter.providers.gemini import view
from tape_jupyter.providers.protocol import Provider, ProviderError


def _build_error_body(error: ProviderError) -> Any:
    return {"error": {"code": error.status, "message": error.text, "status": error.word}}


PROVIDER = Provider(
    wire="gemini",
    view=view,
    paths=(
        (
            r"/(?P<model>[^/:]+):(?P<api>(?:stream)?[gG]enerateContent|countTokens|(?:batchE|e)mbedContents?)$",
            "",
        ),
    ),
    hosts={
        "generativelanguage.googleapis.com": "gemini",
        "aiplatform.googleapis.com": "vertex",
    },
    host_patterns={
        r"-aiplatform\.googleapis\.com$": "vertex",  # a host a region: us-central1-aiplatform
    },
    model_addresses=(
        r"(?:/models/[^/]+:(?:\w*[gG]enerateContent|\w*[eE]mbedContents?|countTokens|\w*[pP]redict)"
        r"|\.BidiGenerateContent(?:Constrained)?)$"
    ),
    error_body=_build_error_body,
    seeds=True,
)
