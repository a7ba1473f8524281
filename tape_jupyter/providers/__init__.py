"""Providers room: pure views over calls. Look at values and text only; never raise, never patch, never send.

`identify(request)` tells the wire from the address alone (microseconds, for every request); `facts(request, reply)`
reads the bodies once, after the reply is complete. An unknown wire gives Facts with just what can be told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from tape_jupyter.calls import Reply, Request
from tape_jupyter.providers import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
    realtime,
    wire,
)
from tape_jupyter.providers.look import dig, error_of, recalled, text
from tape_jupyter.providers.particulars import user_of
from tape_jupyter.providers.price import cost
from tape_jupyter.providers.views import Answer, Ask, Facts, Result, Tool, ToolCall, Usage

__all__ = ["Facts", "Result", "Tool", "ToolCall", "Usage", "Wire", "cost", "facts", "identify", "recalled"]


class Wire(NamedTuple):
    """What an address tells. `host_known`: the provider is told by the host and not guessed from the path."""

    provider: str = ""
    wire: str = ""
    api: str = ""
    model: str = ""
    streamed: bool = False
    host_known: bool = False


VIEWS: Mapping[str, ModuleType] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
    "mistral": mistral,
    "bedrock": bedrock,
    "cohere": cohere,
    "ollama": ollama,
}
OWNERS = {"openai_chat": "openai", "openai_responses": "openai"}
"""Who is assumed to serve a wire on a host that is not known; the wire's own name for the others."""

# Ends of host names. The longest that fits counts.
HOSTS = {
    "anthropic.com": "anthropic",
    "openai.com": "openai",
    "openai.azure.com": "azure",
    "services.ai.azure.com": "azure",
    "cognitiveservices.azure.com": "azure",
    "generativelanguage.googleapis.com": "gemini",
    "aiplatform.googleapis.com": "vertex",
    "amazonaws.com": "bedrock",
    "api.aws": "bedrock",
    "mistral.ai": "mistral",
    "cohere.com": "cohere",
    "cohere.ai": "cohere",
    "ollama.com": "ollama",
    "groq.com": "groq",
    "openrouter.ai": "openrouter",
    "deepseek.com": "deepseek",
    "together.ai": "together",
    "together.xyz": "together",
    "fireworks.ai": "fireworks",
    "x.ai": "x-ai",
    "cerebras.ai": "cerebras",
    "huggingface.co": "huggingface",
    "perplexity.ai": "perplexity",
    "novita.ai": "novita",
    "voyageai.com": "voyage",
    "z.ai": "zai",
    "snowflakecomputing.com": "snowflake",
    "crusoecloud.com": "crusoe",
    "portkey.ai": "portkey",
}

# Ends of paths, the narrow before the wide. Groups: `api` the operation (else the name beside it), `model`.
PATHS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), name, api)
    for pattern, name, api in (
        (r"/model/(?P<model>[^/]+)/(?P<api>converse(?:-stream)?|invoke(?:-with-response-stream)?)$", "bedrock", ""),
        (r"/publishers/anthropic/models/(?P<model>[^/:]+):(?P<api>rawPredict|streamRawPredict)$", "anthropic", ""),
        (
            r"/(?P<model>[^/:]+):(?P<api>(?:stream)?[gG]enerateContent|countTokens|(?:batchE|e)mbedContents?)$",
            "gemini",
            "",
        ),
        (r"/v1/messages$", "anthropic", "messages"),
        (r"/v1/messages/(?P<api>count_tokens|batches)$", "anthropic", ""),
        (r"/v1/complete$", "anthropic", "complete"),
        (r"(?:/deployments/(?P<model>[^/]+))?/chat/completions$", "openai_chat", "chat"),
        (r"/(?P<api>responses(?:/compact|/input_tokens)?)$", "openai_responses", ""),
        (r"/v[12]/(?P<api>chat|embed|rerank|classify)$", "cohere", ""),
        (r"/api/(?P<api>chat|generate|embed|embeddings)$", "ollama", ""),
        (r"(?:/deployments/(?P<model>[^/]+))?/(?P<api>embeddings|completions|rerank|moderations)$", "openai_chat", ""),
    )
)

REQUEST_IDS = (
    "request-id",
    "x-request-id",
    "x-amzn-requestid",
    "apim-request-id",
    "mistral-correlation-id",
    "x-debug-trace-id",
    "x-groq-request-id",
    "x-goog-request-id",
)
LIMITS = ("anthropic-ratelimit-", "x-ratelimit", "ratelimit", "retry-after")


def identify(request: Request) -> Wire:
    """What the address tells; an empty `wire` when it is no model's address that we know."""
    return _at(request.url, request.method)


@lru_cache(maxsize=256)
def _at(address: str, method: str) -> Wire:
    try:
        url = urlsplit(address)
        provider = "ollama" if url.port == 11434 else _provider(url.hostname or "")
    except ValueError:  # no such port, an unclosed [
        return Wire()
    for pattern, name, api in PATHS:
        found = pattern.search(url.path)
        if found and method == "POST" and not (name == "cohere" and provider not in {"cohere", ""}):
            return _wire(provider, name, found.groupdict(), api)
    return Wire(provider, host_known=bool(provider))


def _wire(provider: str, name: str, groups: Mapping[str, str | None], api: str) -> Wire:
    name = "mistral" if provider == "mistral" else name
    api = groups.get("api") or api
    return Wire(
        provider or OWNERS.get(name, name),
        name,
        api,
        unquote(groups.get("model") or ""),
        "stream" in api.lower(),
        bool(provider),
    )


def _provider(host: str) -> str:
    labels = host.lower().rstrip(".").split(".")
    ends = (".".join(labels[start:]) for start in range(len(labels)))
    named = next((HOSTS[end] for end in ends if end in HOSTS), "")
    # Vertex has a host a region: us-central1-aiplatform.googleapis.com. Amazon has hosts for everything.
    if not named and host.endswith("-aiplatform.googleapis.com"):
        return "vertex"
    return "" if named == "bedrock" and "bedrock" not in labels[0] else named


def said_json(reply: Reply) -> Any:
    """The JSON of a reply that is one JSON text; None for a stream, and for what is none."""
    kind = reply.header("content-type").lower()
    if not reply.chunks or "json" not in kind or "ndjson" in kind or "stream" in kind:
        return None
    return wire.loads(wire.plain(reply.headers, reply.body) or b"")


def facts(request: Request, reply: Reply | None = None, *, parsed: Any = None, said: Any = None) -> Facts:
    """What can be told of one call. Never raises. `parsed` is the request's JSON and `said` the reply's (`said_json`),
    where the caller has them already.
    """
    known = identify(request)
    if reply is not None and reply.status == 101:
        return replace(realtime.facts(request, reply, known.provider), **_heads(reply))
    if not known.wire and not _may_be_model(request):
        return Facts(provider=known.provider, **_heads(reply))
    body = parsed if parsed is not None else wire.loads(wire.plain(request.headers, request.body) or b"")
    data = None
    if type(said) is not dict and reply is not None and reply.chunks:
        data = wire.plain(reply.headers, reply.body)
    if not known.wire:
        known = _by_shape(known, request, body)
    view = VIEWS.get(known.wire)
    if view is None:
        return Facts(provider=known.provider, **_heads(reply))
    ask: Ask = view.ask(body)
    model = ask.model or known.model
    if not model and not known.host_known:  # somebody's own /api/chat or /responses
        return Facts(**_heads(reply))
    said, streamed = (said, False) if type(said) is dict else _said(view, reply, data)
    answer: Answer = view.answer(said)
    return Facts(
        provider=known.provider,
        wire=known.wire,
        api=known.api,
        model=model,
        answered=answer.model,
        sampling=ask.sampling,
        tools=ask.tools,
        results=ask.results,
        calls=answer.calls,
        usage=answer.usage,
        stop=answer.stop,
        user=user_of(body),
        error=error_of(said, failed=reply is not None and (reply.status or 0) >= 400),
        streamed=streamed or ask.streamed or known.streamed,
        **_heads(reply),
    )


def _said(view: ModuleType, reply: Reply | None, data: bytes | None) -> tuple[Any, bool]:
    """The reply's JSON, a stream put together; and whether it came as a stream."""
    if reply is None or not data:
        return None, False
    events = wire.events(reply.headers, data, view.WANTED)
    if events is None:
        body = wire.loads(data)
        if not isinstance(body, list):
            return body, False
        events = iter(body)  # Gemini streams a JSON array when not asked for SSE
    return view.assemble(events), True


def _heads(reply: Reply | None) -> dict[str, Any]:
    """What the reply's headers tell: the request's id, rate limits."""
    if reply is None:
        return {}
    told = {key.lower(): value for key, value in reply.headers}
    limits = {name: value for name, value in told.items() if name.startswith(LIMITS)}
    return {"request_id": next((told[name] for name in REQUEST_IDS if name in told), ""), "limits": limits}


def _may_be_model(request: Request) -> bool:
    """Gateways have paths of their own; what they carry still looks like a model's request."""
    body = request.body[:65536]
    return request.method == "POST" and body[:1] == b"{" and (b'"messages"' in body or b'"contents"' in body)


def _by_shape(known: Wire, request: Request, body: Any) -> Wire:
    if request.header("anthropic-version") or dig(body, "anthropic_version"):
        name = "anthropic"
    elif isinstance(dig(body, "contents"), list):
        name = "gemini"
    elif isinstance(dig(body, "messages"), list) and text(dig(body, "model")):
        name = "openai_chat"
    else:
        return known
    return known._replace(provider=known.provider or OWNERS.get(name, name), wire=name)
