"""What else one recorded call tells, beyond Facts: who was served, which tier, build and host
answered.

Pure, never raises, sends nothing. Read when a report is made, not while a call is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers import http
from tape_jupyter.providers.json_access import as_mapping, as_text, dig

_WANTED = (b"message_delta", b'"response.completed"', b'"error"')
_EVENTS = 20  # of a stream, at most: the first ones and the last tell all of this
_USERS = ("user", "safety_identifier", "metadata.user_id", "labels.user_id")
_TIERS = (
    "service_tier",
    "usage.service_tier",
    "message.usage.service_tier",
    "response.service_tier",
    "serviceTier",
)
_REGIONS = (
    "x-ms-region",
    "x-groq-region",
    "x-amz-bedrock-region",
    "openai-region",
    "x-goog-region",
)
_GATEWAYS = frozenset({"openrouter", "portkey", "huggingface", "vercel", "helicone"})


@dataclass(frozen=True, slots=True)
class Particulars:
    """What was not told is "".

    `region` is what the reply's headers say (the address may say it too: hosts.region), `edge` the
    data centre of the CDN in front. `tier` is the tier that answered, else the one asked for.
    `upstream` is whom a gateway asked, `routed` whether the request fixed that. `attempt` counts
    from 1.
    """

    tier: str = ""
    fingerprint: str = ""
    upstream: str = ""
    routed: bool = False
    region: str = ""
    edge: str = ""
    attempt: int = 1
    retry_after: str = ""


def is_gateway(provider: str) -> bool:
    """Whether this provider hands requests on to others."""
    return provider in _GATEWAYS


def user_of(body: Any) -> str:
    """Whom a request says it serves: OpenAI `user` or `safety_identifier`, Anthropic
    `metadata.user_id`.
    """
    return _find_first(body, _USERS)


def particulars(
    request: Request, reply: Reply | None, *, parsed: Any = None, reply_json: Any = None
) -> Particulars:
    """`parsed` is the request's JSON and `reply_json` the reply's (registry.said_json), where the caller
    has them already.
    """
    if parsed is not None:
        body = parsed
    else:
        body = http.loads(http.decoded_body(request.headers, request.body) or b"")
    requested = Particulars(
        tier=_find_first(body, ("service_tier",)),
        routed=bool(dig(body, "provider.order") or dig(body, "provider.only")),
        attempt=_read_attempt(request),
    )
    if reply is None:
        return requested
    if isinstance(reply_json, Mapping):
        parts = [reply_json]
    else:
        parts = list(_read_reply_values(reply))
    headers = {name.lower(): value for name, value in reply.headers}
    ray = headers.get("cf-ray", "")  # Cloudflare: 8f2a0c3d4e5f6a7b-FRA
    return Particulars(
        tier=_find_in_any(parts, _TIERS) or requested.tier,
        fingerprint=_find_in_any(parts, ("system_fingerprint",)),
        upstream=_find_in_any(parts, ("provider",)) or headers.get("x-inference-provider", ""),
        routed=requested.routed,
        region=next((headers[name] for name in _REGIONS if name in headers), "")
        or _find_in_any(parts, _GEO),
        edge=ray.rpartition("-")[2] if "-" in ray else "",
        attempt=requested.attempt,
        retry_after=headers.get("retry-after", ""),
    )


_GEO = ("usage.inference_geo", "message.usage.inference_geo")


def _read_attempt(request: Request) -> int:
    """SDKs built by Stainless (OpenAI, Anthropic) count retries in a header."""
    retry_count = request.header("x-stainless-retry-count")
    if retry_count.isascii() and retry_count.isdigit() and len(retry_count) < 4:
        return int(retry_count) + 1
    return 1


def _read_reply_values(reply: Reply) -> Iterable[Mapping[str, Any]]:
    """The reply's JSON, or the events of a stream that may tell something."""
    data = http.decoded_body(reply.headers, reply.readable) or b""
    events = http.events(reply.headers, data, _WANTED) if data else None
    return (
        as_mapping(value)
        for value in ([http.loads(data)] if events is None else islice(events, _EVENTS))
    )


def _find_in_any(parts: Iterable[Mapping[str, Any]], paths: tuple[str, ...]) -> str:
    return next((value for part in parts if (value := _find_first(part, paths))), "")


def _find_first(body: Any, paths: tuple[str, ...]) -> str:
    return next((value for path in paths if (value := as_text(dig(body, path)))), "")
