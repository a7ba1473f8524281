"""Which key a request that is sent again carries, and to whom it may go.

A recording may be a stranger's, and names the host itself: a key of this machine goes to its own
provider alone, or where a person says so. A placeholder of a replay is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

from tape_jupyter.core.call import Request
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.providers import registry
from tape_jupyter.secrets.registry import placeholder

VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",), "openai": ("OPENAI_API_KEY",), "azure": ("AZURE_OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "mistral": ("MISTRAL_API_KEY",), "cohere": ("CO_API_KEY", "COHERE_API_KEY"), "groq": ("GROQ_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",), "deepseek": ("DEEPSEEK_API_KEY",), "together": ("TOGETHER_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",), "x-ai": ("XAI_API_KEY",), "cerebras": ("CEREBRAS_API_KEY",),
    "huggingface": ("HF_TOKEN",), "perplexity": ("PERPLEXITY_API_KEY", "PPLX_API_KEY"), "voyage": ("VOYAGE_API_KEY",),
    "ollama": ("OLLAMA_API_KEY",),
}  # fmt: skip
"""Which variables hold a provider's key."""

_HEADERS = {"anthropic": "x-api-key", "gemini": "x-goog-api-key", "azure": "api-key"}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def with_key(request: Request, environ: Mapping[str, str], named: str = "") -> Request:
    """The request as it goes out: with a key, and without what stands for one in its URL.

    `named`: the variable that holds it, for any host. Raises TapeUsageError where there is no key
    to send.
    """
    known = registry.identify(request)
    url = urlsplit(request.url)
    host = url.hostname or ""
    request = _remove_masks(request)
    variables = _list_variables(known, named)
    variable = next((name for name in variables if environ.get(name)), "")
    if not variable:
        if variables and host not in _LOOPBACK and known.provider != "ollama":
            raise TapeUsageError(f"the key for {host} is not set: {' or '.join(variables)}")
        return request
    value = environ[variable]
    if value in {
        placeholder(each)
        for each in (variable, *(name for names in VARIABLES.values() for name in names))
    }:
        raise TapeUsageError(
            f"{variable} holds the placeholder of a replay, which is never sent: set the real key"
        )
    if url.scheme != "https" and host not in _LOOPBACK:
        raise TapeUsageError(
            f"{variable} is not sent to {url.scheme}://{host}, which is not encrypted"
        )
    provider = known.provider if known.provider in _HEADERS else known.wire
    header = _HEADERS.get(provider, "authorization")
    header_value = value if header != "authorization" else f"Bearer {value}"
    kept = tuple(pair for pair in request.headers if pair[0].lower() != header)
    return Request(request.method, request.url, (*kept, (header, header_value)), request.body)


def without_key(request: Request, named: str = "") -> str:
    """Why a request goes out without a key; "" where it has one, or needs none."""
    known = registry.identify(request)
    host = urlsplit(request.url).hostname or ""
    if named or known.host_known or host in _LOOPBACK:
        return ""
    return f"no key is sent to {host}, which is no provider's own host; name its variable with --key if it needs one"


def _list_variables(known: registry.Wire, named: str) -> tuple[str, ...]:
    if named:
        return (named,)
    return VARIABLES.get(known.provider, ()) if known.host_known else ()


def _remove_masks(request: Request) -> Request:
    """Keys that were in the query are markers now."""
    url = urlsplit(request.url)
    query = parse_qsl(url.query, keep_blank_values=True)
    kept = [(name, value) for name, value in query if not value.startswith("<secret:")]
    if len(kept) == len(query):
        return request
    return Request(
        request.method, url._replace(query=urlencode(kept)).geturl(), request.headers, request.body
    )
