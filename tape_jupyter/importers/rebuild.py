"""Provider JSON <-> requests and replies, as a provider's own SDK would have sent and heard them.

`request` and `reply` make bytes of JSON that the source holds; `streamed` puts parsed chunks back
into their frames. What has to be filled in is said in the lists that callers pass on as `missing`
and `assumed`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tape_jupyter.core.call import FunctionCall, Headers, Reply, Request, Value
from tape_jupyter.encoding.http.aws_event_stream import encode_frame
from tape_jupyter.encoding.values import registry
from tape_jupyter.importers.source import load_or_text
from tape_jupyter.providers import editing
from tape_jupyter.providers.json_access import as_list

OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC = "openai_chat", "openai_responses", "anthropic"
GEMINI, BEDROCK, EMBEDDINGS = "gemini", "bedrock", "openai_embeddings"
BEDROCK_INVOKE = "bedrock_invoke"
COMPLETIONS = "openai_completions"

JSON_HEADERS: Headers = (("content-type", "application/json"),)
SSE_HEADERS: Headers = (("content-type", "text/event-stream"),)
FRAME_HEADERS: Headers = (("content-type", "application/vnd.amazon.eventstream"),)

_BASES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "google": "https://generativelanguage.googleapis.com/v1beta",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "mistralai": "https://api.mistral.ai/v1",
    "deepseek": "https://api.deepseek.com",
    "x_ai": "https://api.x.ai/v1",
    "xai": "https://api.x.ai/v1",
    "perplexity": "https://api.perplexity.ai",
    "cohere": "https://api.cohere.com/compatibility/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "together": "https://api.together.xyz/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "cerebras": "https://api.cerebras.ai/v1",
}
_PATHS = {
    OPENAI_CHAT: "/chat/completions", OPENAI_RESPONSES: "/responses", EMBEDDINGS: "/embeddings",
    ANTHROPIC: "/v1/messages", COMPLETIONS: "/completions",
}  # fmt: skip
_STATUS = {
    "BadRequest": 400, "ValidationException": 400, "InvalidRequest": 400, "Authentication": 401,
    "Unauthorized": 401, "PermissionDenied": 403, "AccessDenied": 403, "NotFound": 404, "Conflict": 409,
    "UnprocessableEntity": 422, "RateLimit": 429, "Throttling": 429, "TooManyRequests": 429, "InternalServer": 500,
    "ServiceUnavailable": 503, "Overloaded": 529,
}  # fmt: skip


def compact(value: Any) -> bytes:
    """JSON as the SDKs of model providers write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def loaded(value: Any, otherwise: Any) -> Any:
    """What a field that holds JSON holds, as a text or as it is; `otherwise` where it has none."""
    if value is None or value == "":
        return otherwise
    decoded = load_or_text(value)
    if isinstance(otherwise, dict) and not isinstance(decoded, dict):
        return {"input": decoded}
    return decoded


def provider_of(name: str) -> str:
    """A provider as our URLs know it: of `aws.bedrock`, `gcp.gemini`, `azure.ai.openai`, `OpenAI`,
    ...
    """
    plain = str(name or "").lower()
    ends = {
        "aws.bedrock": "bedrock", "aws": "bedrock", "amazon-bedrock": "bedrock", "amazon_bedrock": "bedrock",
        "gcp.gemini": "gemini", "gcp.gen_ai": "gemini", "gcp.vertex_ai": "gemini", "gcp.vertex.agent": "gemini",
        "google": "gemini", "google-gla": "gemini", "google_genai": "gemini", "vertexai": "gemini",
        "google-vertex": "gemini", "azure.ai.openai": "azure", "azure.ai.inference": "azure", "mistral_ai": "mistral",
    }  # fmt: skip
    return ends.get(plain) or next((known for known in _BASES if plain.startswith(known)), plain)


def api_of(provider: str, body: Mapping[str, Any]) -> str:
    """Which API a request's JSON is for, by its shape first and by its provider where the shape
    leaves it open.
    """
    if "contents" in body:
        return GEMINI
    if "inferenceConfig" in body or "modelId" in body:
        return BEDROCK
    if "messages" in body:
        if provider in ("anthropic", "bedrock"):
            return ANTHROPIC if provider == "anthropic" else BEDROCK
        is_anthropic = (
            "anthropic_version" in body or "system" in body or _has_blocks(body["messages"])
        )
        return ANTHROPIC if is_anthropic and provider not in _BASES else OPENAI_CHAT
    if "input" in body:
        input_value = body["input"]  # items of Responses are objects
        plain = (
            isinstance(input_value, list)
            and bool(input_value)
            and not isinstance(input_value[0], Mapping)
        )
        embeds = plain or "encoding_format" in body or "embed" in str(body.get("model", ""))
        return EMBEDDINGS if embeds else OPENAI_RESPONSES
    return COMPLETIONS if isinstance(body.get("prompt"), str) else OPENAI_CHAT


def _has_blocks(messages: Any) -> bool:
    blocks = (
        block
        for each in messages or ()
        if isinstance(each, Mapping)
        for block in as_list(each.get("content"))
    )
    return any(
        isinstance(block, Mapping) and block.get("type") in ("tool_use", "tool_result")
        for block in blocks
    )


def url_of(
    api: str, provider: str, assumed: list[str], *, model: str = "", stream: bool = False, base: str = "",
    region: str = "us-east-1",
) -> str:  # fmt: skip
    """The address of a request; what of it is a guess is added to `assumed`."""
    if api in (BEDROCK, BEDROCK_INVOKE):
        verb = {
            BEDROCK: ("converse", "converse-stream"),
            BEDROCK_INVOKE: ("invoke", "invoke-with-response-stream"),
        }
        place = base or f"https://bedrock-runtime.{region}.amazonaws.com"
        url = f"{place.rstrip('/')}/model/{quote(model, safe='')}/{verb[api][stream]}"
    elif api == GEMINI:
        place = (base or _BASES["gemini"]).rstrip("/")
        verb_ = "streamGenerateContent?alt=sse" if stream else "generateContent"
        url = f"{place}/models/{quote(model.removeprefix('models/'), safe='')}:{verb_}"
    else:
        owner = "anthropic" if api == ANTHROPIC else provider
        place = (base or _BASES.get(owner) or _BASES["openai"]).rstrip("/")
        url = place + (_PATHS[api].removeprefix("/v1") if place.endswith("/v1") else _PATHS[api])
    if not base:
        assumed.append(f"url {url.partition('?')[0]}")
    return url


def request(url: str, body: Any, headers: Headers = JSON_HEADERS) -> Request:
    """A POST with a JSON body."""
    return Request("POST", url, headers, compact(body))


def reply(
    body: Any, status: int = 200, seconds: float = 0.0, headers: Headers = JSON_HEADERS
) -> Reply:
    """A reply that is one JSON text, or text where `body` is a text."""
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else compact(body)
    kind = (
        (("content-type", "text/plain"),)
        if isinstance(body, str) and headers is JSON_HEADERS
        else headers
    )
    return Reply(
        status, kind, (data,) if data else (), (round(seconds, 4),) if data and seconds > 0 else ()
    )


def streamed(api: str, chunks: Iterable[Any], waits: Sequence[float] = ()) -> Reply:
    """Parsed chunks in the frames that they came in. `waits`: seconds to each of them, where they
    are known.
    """
    if api == BEDROCK:
        frames = tuple(_encode_converse_frame(each) for each in chunks)
        return Reply(200, FRAME_HEADERS, frames, _fit_waits(waits, frames))
    if api == BEDROCK_INVOKE:
        frames = tuple(_encode_invoke_frame(each) for each in chunks)
        return Reply(200, FRAME_HEADERS, frames, _fit_waits(waits, frames))
    events = [_encode_event(api, each) for each in chunks]
    if api in (OPENAI_CHAT, COMPLETIONS) and events and events[-1] != _DONE:
        events.append(_DONE)
        waits = (*waits, waits[-1]) if waits else ()
    return Reply(200, SSE_HEADERS, tuple(events), _fit_waits(waits, events))


_LITERAL_CAP = 20_000
_DONE = b"data: [DONE]\n\n"


def _fit_waits(waits: Sequence[float], chunks: Sequence[bytes]) -> tuple[float, ...]:
    if len(waits) == len(chunks):
        return tuple(round(max(wait, 0.0), 4) for wait in waits)
    return ()


def _encode_event(api: str, chunk: Any) -> bytes:
    if chunk == "[DONE]":
        return _DONE
    named = isinstance(chunk, Mapping) and isinstance(chunk.get("type"), str)
    if named and api in (ANTHROPIC, OPENAI_RESPONSES):
        head = f"event: {chunk['type']}\n".encode()
    else:
        head = b""
    return (
        head + b"data: " + (chunk.encode() if isinstance(chunk, str) else compact(chunk)) + b"\n\n"
    )


def _encode_converse_frame(chunk: Mapping[str, Any]) -> bytes:
    """`{"contentBlockDelta": {...}}` as a frame of that type."""
    name, payload = next(iter(chunk.items()), ("", {}))
    return encode_frame(
        {":event-type": str(name), ":content-type": "application/json", ":message-type": "event"},
        compact(payload),
    )


def _encode_invoke_frame(chunk: Any) -> bytes:
    payload = compact({"bytes": base64.b64encode(compact(chunk)).decode("ascii")})
    return encode_frame(
        {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"},
        payload,
    )


def as_stream(api: str, message: Mapping[str, Any]) -> Reply:
    """A stream made from a whole reply: its chunks are ours, what they amount to is the source's."""
    if api in (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC):
        data = editing.composed(api, message)
        return Reply(
            200, SSE_HEADERS, tuple(part + b"\n\n" for part in data.split(b"\n\n") if part.strip())
        )
    if api == BEDROCK:
        return streamed(BEDROCK, converse_chunks(message))
    return streamed(api, [message])


def converse_chunks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The events of ConverseStream that amount to a Converse reply."""
    reply_message = (message.get("output") or {}).get("message") or {}
    events: list[dict[str, Any]] = [
        {"messageStart": {"role": reply_message.get("role", "assistant")}}
    ]
    for place, block in enumerate(as_list(reply_message.get("content"))):
        events += _build_block_events(place, block)
    events.append({"messageStop": {"stopReason": message.get("stopReason", "end_turn")}})
    tail = {name: message[name] for name in ("usage", "metrics", "trace") if name in message}
    return [*events, {"metadata": tail}] if tail else events


def _build_block_events(place: int, block: Any) -> list[dict[str, Any]]:
    at = {"contentBlockIndex": place}
    if "toolUse" in block:
        use = block["toolUse"]
        start = {name: use.get(name, "") for name in ("toolUseId", "name")}
        arguments = json.dumps(use.get("input", {}), ensure_ascii=False)
        events = [
            {"contentBlockStart": {"start": {"toolUse": start}, **at}},
            {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}, **at}},
        ]
    elif "reasoningContent" in block:
        inner = block["reasoningContent"].get("reasoningText") or block["reasoningContent"]
        parts = [
            {name: inner[name]}
            for name in ("text", "signature", "redactedContent")
            if name in inner
        ]
        events = [
            {"contentBlockDelta": {"delta": {"reasoningContent": part}, **at}} for part in parts
        ]
    else:
        events = [{"contentBlockDelta": {"delta": block, **at}}]
    return [*events, {"contentBlockStop": at}]


def failed(kind: str, message: str, seconds: float = 0.0) -> tuple[Reply, list[str]]:
    """The reply that an SDK's error tells of, and what was assumed for it."""
    kind = kind or message.partition(":")[0].partition("(")[0][:80]
    match = re.search(r"(?:[Ee]rror code|status|HTTP)\D{0,12}([1-5]\d\d)", message)
    if match:
        status = int(match[1])
    else:
        status = next((code for name, code in _STATUS.items() if name in kind), 0)
    body = _find_error_body(message)
    assumed = [] if match else [f"status {status}, from {kind}"]
    if not status:
        status = 500
        assumed = [
            f"status 500: the source tells of the error ({kind or 'no class'}) and no status"
        ]
    return reply(body, status, seconds), assumed


def _find_error_body(message: str) -> Any:
    """The error's JSON, where an SDK's message ends in it (as Python's or as JSON)."""
    import ast

    start = message.find("{")
    if start >= 0:
        text = message[start : message.rfind("}") + 1][:_LITERAL_CAP]
        for parse in (json.loads, ast.literal_eval):
            try:
                parsed = parse(text)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            if isinstance(parsed, dict):
                return parsed if "error" in parsed else {"error": parsed}
    return {"error": {"message": message, "type": "error"}}


def tool_call(name: str, arguments: Any) -> FunctionCall:
    """A tool with its arguments by name; what is no object is the argument `input`."""
    by_name = _name_arguments(arguments)
    return FunctionCall(
        name or "tool", {str(key): _to_freezable(value) for key, value in by_name.items()}
    )


def _name_arguments(arguments: Any) -> Mapping[Any, Any]:
    if isinstance(arguments, Mapping):
        return arguments
    return {} if arguments is None else {"input": arguments}


def tool_value(result: Any, seconds: float = 0.0) -> Value:
    """What a tool returned."""
    return Value(registry.freeze(_to_freezable(result)), seconds=seconds)


def _to_freezable(value: Any) -> Any:
    """The value itself, or its JSON as text where it is nested too deep to be kept."""
    try:
        registry.freeze(value)
    except registry.CannotFreeze:
        return json.dumps(value, ensure_ascii=False)
    return value


def tool_error(message: str, kind: str = "RuntimeError") -> Value:
    """What a tool raised: of the source's class only the name is known."""
    name = kind.rpartition(".")[2]
    known = {
        "ValueError": ValueError,
        "KeyError": KeyError,
        "TypeError": TypeError,
        "TimeoutError": TimeoutError,
    }
    return Value(error=registry.freeze_error(known.get(name, RuntimeError)(message)))
