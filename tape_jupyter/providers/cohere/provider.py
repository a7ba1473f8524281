"""Cohere's API. Its paths are common words, so they count on its own and on unknown hosts only."""

from __future__ import annotations

from tape_jupyter.providers.cohere import view
from tape_jupyter.providers.protocol import Provider, plain_error

PROVIDER = Provider(
    wire="cohere",
    view=view,
    paths=((r"/v[12]/(?P<api>chat|embed|rerank|classify)$", ""),),
    hosts={"api.cohere.com": "cohere", "api.cohere.ai": "cohere"},
    model_addresses=r"/v2/(?:chat|embed|rerank)$",
    counts_on="own and unknown hosts",
    error_body=plain_error,
    seeds=True,
)
