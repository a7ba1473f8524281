"""Pure views over calls. Look at values and text only; never raise, never patch, never send.

`identify(request)` tells the wire from the address alone (microseconds, for every request);
`call_facts(request, reply)` reads the bodies once, after the reply is complete. An unknown wire gives
Facts with just what can be told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from tape_jupyter.core import plugins
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers import hosts, realtime
from tape_jupyter.providers import http as wire
from tape_jupyter.providers.anthropic import provider as anthropic
from tape_jupyter.providers.bedrock import provider as bedrock
from tape_jupyter.providers.cohere import provider as cohere
from tape_jupyter.providers.gemini import provider as gemini
from tape_jupyter.providers.json_access import as_text, dig, error_text, recalled
from tape_jupyter.providers.metadata import user_of
from tape_jupyter.providers.mistral import provider as mistral
from tape_jupyter.providers.ollama import provider as ollama
from tape_jupyter.providers.openai import provider as openai
from tape_jupyter.providers.pricing import call_cost
from tape_jupyter.providers.protocol import Provider, View
from tape_jupyter.providers.types import Facts, Tool, ToolCall, ToolResult, Usage

__all__ = [
    "Facts",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "Wire",
    "call_cost",
    "call_facts",
    "identify",
    "recalled",
]


class Wire(NamedTuple):
    """What an address tells. `host_known`: the provider is told by the host and not guessed from
    the path.
    """

    provider: str = ""
    wire: str = ""
    api: str = ""
    model: str = ""
    streamed: bool = False
    host_known: bool = False


BUILT_IN: tuple[Provider, ...] = (
    bedrock.PROVIDER,
    anthropic.PROVIDER,
    gemini.PROVIDER,
    openai.RESPONSES,
    cohere.PROVIDER,
    ollama.PROVIDER,
    mistral.PROVIDER,
    openai.CHAT,
)
"""The first whose path fits has the call: narrow paths stand before wide ones."""
GROUP = "tape_jupyter.providers"
"""Entry points by which other packages add a `Provider`; theirs are asked first."""

OTHER_HOSTS = {
    "api.jina.ai": "jina",
    "api.replicate.com": "replicate",
    "integrate.api.nvidia.com": "nvidia",
    "ai.api.nvidia.com": "nvidia",
    "api.sambanova.ai": "sambanova",
    "api.ai21.com": "ai21",
    "api.moonshot.ai": "moonshot",
    "api.moonshot.cn": "moonshot",
    "dashscope.aliyuncs.com": "alibaba",
    "dashscope-intl.aliyuncs.com": "alibaba",
    "inference.heroku.com": "heroku",
    "models.github.ai": "github",
    "models.inference.ai.azure.com": "github",
    "oai.helicone.ai": "helicone",
    "ai-gateway.helicone.ai": "helicone",
    "anthropic.helicone.ai": "helicone",
    "ai-gateway.vercel.sh": "vercel",
    "gateway.ai.cloudflare.com": "cloudflare",
    "api.elevenlabs.io": "elevenlabs",
    "api.deepgram.com": "deepgram",
    "api.assemblyai.com": "assemblyai",
}
"""Hosts of models that no `Provider` names: gateways, which pass on what others answer, and APIs
that nothing of ours reads. Whose model it is and which wire, only the path tells there.
"""


@lru_cache(maxsize=1)
def providers() -> Mapping[str, Provider]:
    """All that are installed, by wire, in the order in which they are asked."""
    added = plugins.load_all(GROUP, Provider).values()
    return {provider.wire: provider for provider in (*added, *BUILT_IN)}


@lru_cache(maxsize=1)
def _compile_paths() -> Sequence[tuple[re.Pattern[str], Provider, str]]:
    return [
        (re.compile(pattern), provider, api)
        for provider in providers().values()
        for pattern, api in provider.paths
    ]


@lru_cache(maxsize=1)
def _collect_hosts() -> Mapping[str, str]:
    """Ends of host names, and who serves there."""
    known: dict[str, str] = {}
    for provider in reversed([*providers().values()]):
        known.update(provider.hosts)
    return known


@lru_cache(maxsize=1)
def _compile_host_patterns() -> Sequence[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(pattern), name)
        for provider in providers().values()
        for pattern, name in provider.host_patterns.items()
    ]


@lru_cache(maxsize=1)
def _compile_model_addresses() -> re.Pattern[str]:
    addresses = [each.model_addresses for each in providers().values() if each.model_addresses]
    return re.compile("|".join(f"(?:{each})" for each in addresses))


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
    return _identify_address(request.url, request.method)


@lru_cache(maxsize=256)
def _identify_address(address: str, method: str) -> Wire:
    try:
        url = urlsplit(address)
        provider = _find_by_port(url.port) or _find_provider(url.hostname or "")
    except ValueError:  # no such port, an unclosed [
        return Wire()
    # other methods list, read and delete: none of the views reads their bodies
    for pattern, known, api in _compile_paths() if method == "POST" else ():
        match = pattern.search(url.path)
        if match and _is_path_counted(known, provider):
            return _build_wire(provider, known.wire, match.groupdict(), api)
    return Wire(provider, host_known=bool(provider))


def _is_path_counted(known: Provider, provider: str) -> bool:
    """Whether a provider's paths count on a host of `provider` ("": nobody's that is known)."""
    if known.counts_on == "any host" or provider in _list_served(known):
        return True
    return known.counts_on == "own and unknown hosts" and not provider


def _list_served(known: Provider) -> Sequence[str]:
    """Who serves at the hosts that a provider names."""
    return [*known.hosts.values(), *known.host_patterns.values()]


@lru_cache(maxsize=64)
def _find_pathless_wire(provider: str) -> str:
    """The wire of whom serves the paths of another one on hosts of its own (Mistral), or ""."""
    for known in providers().values():
        if not known.paths and provider in _list_served(known):
            return known.wire
    return ""


def _build_wire(provider: str, name: str, groups: Mapping[str, str | None], api: str) -> Wire:
    name = _find_pathless_wire(provider) or name
    api = groups.get("api") or api
    return Wire(
        provider or _find_owner(name),
        name,
        api,
        unquote(groups.get("model") or ""),
        "stream" in api.lower(),
        bool(provider),
    )


def _find_owner(wire: str) -> str:
    return providers()[wire].owner or wire


def _find_by_port(port: int | None) -> str:
    known = (each for each in providers().values() if port is not None and each.port == port)
    return next((each.owner or each.wire for each in known), "")


def _find_provider(host: str) -> str:
    """Who serves at a host, by what the providers say of themselves."""
    host = host.lower().rstrip(".")
    known = _collect_hosts()
    for end in hosts.list_suffixes(host):
        if end in known:
            return known[end]
    return next((name for shape, name in _compile_host_patterns() if shape.search(host)), "")


def find_host_provider(host: str) -> str:
    """Whose models are reached at a host; "" at loopback, a proxy, and a host that is not known."""
    ends = hosts.list_suffixes(host)
    return _find_provider(host) or next((OTHER_HOSTS[e] for e in ends if e in OTHER_HOSTS), "")


def is_model_address(url: SplitResult) -> bool:
    """Whether calls at this address are a model's, whoever serves it."""
    host = hosts.read_host(url)
    name = "localhost" if hosts.loopback(host) else host
    address = f"{name}:{hosts.read_port(url) or ''}{url.path}"
    return _compile_model_addresses().search(address) is not None


def said_json(reply: Reply) -> Any:
    """The JSON of a reply that is one JSON text; None for a stream, and for what is none."""
    kind = reply.header("content-type").lower()
    if not reply.chunks or "json" not in kind or "ndjson" in kind or "stream" in kind:
        return None
    return wire.loads(wire.decoded_body(reply.headers, reply.readable) or b"")


def call_facts(
    request: Request, reply: Reply | None = None, *, parsed: Any = None, reply_json: Any = None
) -> Facts:
    """What can be told of one call. Never raises. `parsed` is the request's JSON and `reply_json` the
    reply's (`said_json`), where the caller has them already. Of a `parsed` without earlier messages
    the results are without theirs.
    """
    known = identify(request)
    if reply is not None and reply.status == 101:
        return replace(
            realtime.realtime_facts(request, reply, known.provider), **_read_headers(reply)
        )
    if not known.wire and not _may_be_model(request):
        return Facts(provider=known.provider, **_read_headers(reply))
    if parsed is not None:
        body = parsed
    else:
        body = wire.loads(wire.decoded_body(request.headers, request.body) or b"")
    data = None
    if type(reply_json) is not dict and reply is not None and reply.chunks:
        data = wire.decoded_body(reply.headers, reply.readable)
    if not known.wire:
        known = _identify_by_shape(known, request, body)
    served = providers().get(known.wire)
    if served is None:
        return Facts(provider=known.provider, **_read_headers(reply))
    view = served.view
    request_facts = view.ask(body)
    model = request_facts.model or known.model
    if not model and not known.host_known:  # somebody's own /api/chat or /responses
        return Facts(**_read_headers(reply))
    streamed = False
    if type(reply_json) is not dict:
        reply_json, streamed = _assemble_reply(view, reply, data)
    answer = view.answer(reply_json)
    return Facts(
        provider=known.provider,
        wire=known.wire,
        api=known.api,
        model=model,
        answered=answer.model,
        sampling=request_facts.sampling,
        tools=request_facts.tools,
        results=request_facts.results,
        calls=answer.calls,
        usage=answer.usage,
        stop=answer.stop,
        user=user_of(body),
        error=error_text(reply_json, failed=reply is not None and (reply.status or 0) >= 400),
        streamed=streamed or request_facts.streamed or known.streamed,
        **_read_headers(reply),
    )


def _assemble_reply(view: View, reply: Reply | None, data: bytes | None) -> tuple[Any, bool]:
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


def _read_headers(reply: Reply | None) -> dict[str, Any]:
    """What the reply's headers tell: the request's id, rate limits."""
    if reply is None:
        return {}
    headers = {key.lower(): value for key, value in reply.headers}
    limits = {name: value for name, value in headers.items() if name.startswith(LIMITS)}
    return {
        "request_id": next((headers[name] for name in REQUEST_IDS if name in headers), ""),
        "limits": limits,
    }


def _may_be_model(request: Request) -> bool:
    """Gateways have paths of their own; what they carry still looks like a model's request."""
    body = request.body[:65536]
    return (
        request.method == "POST"
        and body[:1] == b"{"
        and (b'"messages"' in body or b'"contents"' in body)
    )


def _identify_by_shape(known: Wire, request: Request, body: Any) -> Wire:
    if request.header("anthropic-version") or dig(body, "anthropic_version"):
        name = "anthropic"
    elif isinstance(dig(body, "contents"), list):
        name = "gemini"
    elif isinstance(dig(body, "messages"), list) and as_text(dig(body, "model")):
        name = "openai_chat"
    else:
        return known
    return known._replace(provider=known.provider or _find_owner(name), wire=name)
