"""A step as an observability platform keeps it -> the call that it was, or a span.

Formats of platforms read their records into `Observed`; what of it is a request's own JSON, and
what has to be rebuilt from messages, is decided here by what is there, never by the platform's
name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tape_jupyter.core.call import Reply
from tape_jupyter.importers import gemini, messages, neutral, rebuild
from tape_jupyter.importers.neutral import Conversation
from tape_jupyter.importers.rows import decode_field
from tape_jupyter.importers.trace import Call, Grade, Origin, Span

UNSENT = ("url", "request headers", "reply headers", "request bytes", "reply bytes")
_ASKED = {"messages", "contents", "input", "prompt"}
_NOT_SENT = ("extra_headers", "extra_query", "extra_body", "timeout", "self")
_LISTS = ("messages", "contents", "input", "prompts", "prompt", "args")
_SAID = {"choices", "output", "content", "candidates", "data", "message", "completion", "error"}
_APIS = {"anthropic": rebuild.ANTHROPIC, "bedrock": rebuild.BEDROCK, "gemini": rebuild.GEMINI}
_SETTINGS = (
    "temperature", "top_p", "top_k", "seed", "max_tokens", "max_completion_tokens", "stop", "presence_penalty",
    "frequency_penalty", "n", "reasoning_effort", "response_format", "tool_choice", "parallel_tool_calls",
    "stream_options", "logit_bias", "logprobs", "top_logprobs", "service_tier",
)  # fmt: skip


_USAGE = {
    "input": ("input", "input_tokens", "prompt_tokens", "promptTokens", "num_input_tokens", "inputTokens"),
    "output": ("output", "output_tokens", "completion_tokens", "completionTokens", "num_output_tokens", "outputTokens"),
    "cached": ("input_cached_tokens", "cache_read_input_tokens", "prompt_cached_tokens", "cached"),
}  # fmt: skip


def usage_of(told: Any) -> dict[str, int]:
    """Counts of tokens by our names, from those of any platform."""
    counts = told if isinstance(told, Mapping) else {}
    found = {
        name: next((counts[key] for key in keys if counts.get(key)), None)
        for name, keys in _USAGE.items()
    }
    numbers = {name: parse_literal(count) for name, count in found.items()}
    return {
        name: int(count)
        for name, count in numbers.items()
        if isinstance(count, (int, float)) and math.isfinite(count)
    }


@dataclass(slots=True)
class ObservedStep:
    """A step. `input` and `output` are its input and output as JSON; `sent`: they are a request's and
    a reply's own.

    `chunks` are a stream's, parsed, and `waits` the seconds to each. `thrown` is an error's class.
    """

    id: str
    kind: Literal["model", "tool", "retrieval", "span"]
    name: str = ""
    trace: str = ""
    parent: str = ""
    start: float = 0.0
    end: float = 0.0
    input: Any = None
    output: Any = None
    error: str = ""
    thrown: str = ""
    model: str = ""
    provider: str = ""
    base: str = ""
    url: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Any] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    chunks: Sequence[Any] = ()
    waits: Sequence[float] = ()
    stream: bool = False
    sent: bool = False
    status: int = 200
    grade: Grade | None = None
    line: int = 0
    missing: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return max(self.end - self.start, 0.0) if self.start and self.end else 0.0


def item(seen: ObservedStep, system: str, file: str) -> Call | Span:
    """The call that a step was. A model call without its messages, and any other step, is a span."""
    made: Call | None = None
    if seen.kind == "model":
        made = _read_sent_json(seen) or _rebuild_call(seen)
    elif seen.kind in ("tool", "retrieval"):
        made = _build_tool_call(seen)
    if made is None:
        return Span(seen.id, seen.name, seen.parent, seen.trace, seen.start, seen.end, seen.error)
    made.origin = Origin(system, file, seen.id, seen.line)
    made.missing += seen.missing
    made.assumed += seen.assumed
    return made


def _build_call(seen: ObservedStep, request: Any, reply: Any, grade: Grade, **told: Any) -> Call:
    return Call(
        seen.id, seen.kind, request, reply, seen.grade or grade, Origin(""), seen.trace, seen.parent,  # type: ignore[arg-type]
        seen.name, start=seen.start, end=seen.end, error=seen.error, about=seen.about, **told,
    )  # fmt: skip


# ---------------------------------------------------------------- a request's own JSON


def _read_sent_json(seen: ObservedStep) -> Call | None:
    body = decode_field(seen.input)
    said = decode_field(seen.output)
    if not isinstance(body, dict) or not (seen.sent or is_request(body)):
        return None
    if not seen.sent and not {"model", "modelId", "contents"} & body.keys():
        return None  # messages alone: the rest of the request stands elsewhere, or nowhere
    if not (
        seen.error
        or seen.chunks
        or seen.status >= 400
        or (isinstance(said, dict) and (seen.sent or _SAID & said.keys()))
    ):
        return None
    return exchanged(seen, body, said)


def is_request(body: Mapping[str, Any]) -> bool:
    """Whether this is what an SDK sends: messages with roles, and not those of LangChain."""
    if not _ASKED & body.keys():
        return False
    listed = body.get("messages", body.get("contents", body.get("input")))
    if listed is None or isinstance(listed, str):
        return "model" in body and isinstance(listed or body.get("prompt"), str)
    items = listed if isinstance(listed, list) else [None]
    if "model" in body and items and all(map(_is_embedding_input, items)):
        return True
    return all(
        isinstance(each, dict)
        and {"role", "type", "parts"} & each.keys()
        and _is_plain_message(each)
        for each in items
    )


def _is_embedding_input(told: Any) -> bool:
    """What an embedding is made of: a text, or tokens."""
    return isinstance(told, (str, int)) or (
        isinstance(told, list) and all(isinstance(each, int) for each in told)
    )


def _is_plain_message(message: Mapping[str, Any]) -> bool:
    return (
        "kwargs" not in message
        and "additional_kwargs" not in message
        and message.get("type") not in ("human", "ai")
    )


def keywords(given: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of an SDK's method as the body that it sends."""
    body = {name: value for name, value in given.items() if name not in _NOT_SENT}
    more = given.get("extra_body")
    return {**body, **(more if isinstance(more, Mapping) else {})}


def exchanged(seen: ObservedStep, body: dict[str, Any], said: Any) -> Call:
    """A call of which the source holds the JSON of its request and of its reply (or of its chunks)."""
    body = keywords(body)
    model = str(body.get("model") or body.get("modelId") or seen.model)
    missing, assumed = [each for each in UNSENT if each != "url" or not seen.url], list[str]()
    chosen = isinstance(said, dict) and "choices" in said
    provider = _choose_provider(seen, "" if chosen else model, assumed)
    api = rebuild.api_of(provider, body)
    if chosen and api == rebuild.ANTHROPIC:
        api = rebuild.OPENAI_CHAT
    if isinstance(said, dict) and api == rebuild.ANTHROPIC and "content" not in said:
        said = decode_field(said.get("message")) or said  # as LangSmith's wrapper keeps it
    if api == rebuild.GEMINI and gemini.are_keywords(body):
        body, said = gemini.gemini_body(body), gemini.camel(said)
        seen = replace(seen, chunks=gemini.camel(list(seen.chunks)))
        assumed.append("the request's JSON, from the SDK's arguments")
    elif "modelId" in body:  # boto3's, which goes into the address
        body = {name: value for name, value in body.items() if name != "modelId"}
    stream = bool(body.get("stream")) or bool(seen.chunks) or seen.stream
    if stream and "stream" not in body and api not in (rebuild.GEMINI, rebuild.BEDROCK):
        body = {**body, "stream": True}
        assumed.append("stream: true, as the source tells of chunks or of a first token")
    url = seen.url or rebuild.url_of(
        api, provider, assumed, model=model, stream=stream, base=seen.base
    )
    reply = _build_reply(seen, api, said, missing, assumed, stream=stream)
    return _build_call(
        seen, rebuild.request(url, body), reply, "J", provider=provider, model=model, missing=missing,
        assumed=assumed, usage=seen.usage,
    )  # fmt: skip


def _choose_provider(seen: ObservedStep, model: str, assumed: list[str]) -> str:
    """The provider that the source names, or the one whose model this is called."""
    named = rebuild.provider_of(seen.provider)
    if named or seen.base or seen.url:
        return named
    owner = next((owner for start, owner in _OWNERS.items() if model.startswith(start)), "")
    if owner:
        assumed.append(f"provider {owner}, from the model's name")
    return owner


_OWNERS = {"claude-": "anthropic", "gemini-": "gemini"}


def _build_reply(
    seen: ObservedStep, api: str, said: Any, missing: list[str], assumed: list[str], *, stream: bool
) -> Reply:
    """The reply: an error's, the chunks of a stream, or what the source put together."""
    whole = isinstance(said, dict)
    if seen.status >= _FAILED and said is not None:
        return rebuild.reply(said, seen.status, seen.seconds)
    if seen.error and not seen.chunks and not (whole and _SAID & said.keys()):
        reply, more = rebuild.failed(seen.thrown, seen.error, seen.seconds)
        assumed += more
        return reply
    if seen.chunks:
        return rebuild.streamed(api, seen.chunks, seen.waits)
    if not stream or not whole:
        return rebuild.reply(said, seconds=seen.seconds)
    missing.append("chunks")
    reply = rebuild.as_stream(api, said)
    if not reply.chunks:
        missing.append("reply: it is of no form that is known")
    return reply


_FAILED = 400


# ---------------------------------------------------------------- messages


def _rebuild_call(seen: ObservedStep) -> Call | None:
    """A call that is told in messages, in whatever form."""
    body = decode_field(seen.input)
    body = body if isinstance(body, Mapping) else {"messages": body}
    listed = next((body[name] for name in _LISTS if body.get(name)), None)
    alone = listed is None and bool({"content", "role"} & body.keys())
    if alone:
        listed = [body]
    asked = messages.messages_of(listed)
    if not any(each["parts"] for each in asked):
        return None
    said = messages.said_messages(seen.output)
    tools = [
        *seen.tools,
        *(decode_field(body.get("tools")) or ()),
        *messages.declarations(decode_field(listed)),
    ]
    model = seen.model or str(body.get("model") or "")
    guessed: list[str] = []
    provider = _choose_provider(seen, model, guessed)
    responses = seen.provider.endswith(".responses") or _is_responses_reply(seen.output)
    api = rebuild.OPENAI_RESPONSES if responses else _APIS.get(provider, rebuild.OPENAI_CHAT)
    settings = {**body, **seen.settings}
    told = Conversation(
        model, _read_system(body), list(asked), list(said), neutral.functions(tools),
        {name: parse_literal(settings[name]) for name in _SETTINGS if settings.get(name) not in _UNSET},
        str(said[0].get("finish_reason") or "") if said else "", usage=seen.usage, stream=seen.stream,
    )  # fmt: skip
    if api != rebuild.OPENAI_CHAT:
        _lift_system(told)
    request, reply, missing, assumed = neutral.call_parts(told, provider, api, seen.base)
    assumed += guessed
    if seen.stream and not settings.get("stream"):
        assumed.append("stream: true, from the time of the first token")
    if alone:
        missing.append("earlier messages: the source keeps the last one")
    if seen.error:
        reply, more = rebuild.failed(seen.thrown, seen.error, seen.seconds)
        assumed += more
    elif not said:
        missing.append("reply")
    if isinstance(reply, Reply) and len(reply.chunks) == 1 and seen.seconds:
        reply = replace(reply, waits=(round(seen.seconds, 4),))
    return _build_call(
        seen, request, reply, "M", provider=provider, model=told.model, missing=missing, assumed=assumed,
        usage=seen.usage, rebuilt=True,
    )  # fmt: skip


def _is_responses_reply(said: Any) -> bool:
    """Whether the reply is one of OpenAI's Responses API."""
    told = decode_field(said)
    return isinstance(told, Mapping) and (
        told.get("object") == "response" or str(told.get("id")).startswith("resp_")
    )


def _read_system(body: Mapping[str, Any]) -> str:
    told = body.get(
        "system",
        body.get("instructions", body.get("system_instruction", body.get("systemInstruction"))),
    )
    if told is None:
        return ""
    parts = (each for message in messages.messages_of(told) for each in message["parts"])
    return "\n\n".join(str(each.get("content", "")) for each in parts)


def _lift_system(told: Conversation) -> None:
    """Providers other than OpenAI take the system text beside the messages."""
    first = [each for each in told.input_messages if each.get("role") == "system"]
    texts = [str(part.get("content", "")) for each in first for part in neutral.parts_of(each)]
    told.system = told.system or "\n\n".join(texts)
    told.input_messages = [each for each in told.input_messages if each.get("role") != "system"]


_UNSET = (None, "", "None", "null", "undefined", "NOT_GIVEN")
"""How platforms write a parameter that was not given."""


def parse_literal(value: Any) -> Any:
    """Platforms keep numbers and booleans as texts."""
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        try:
            return float(value) if "." in value else int(value)
        except ValueError:
            return decode_field(value)
    return value


# ---------------------------------------------------------------- tools


def _unwrap_result(result: Any) -> Any:
    """What a tool returned, where LangChain made a message for the model of it."""
    if isinstance(result, Mapping):
        inner = result.get("kwargs") if result.get("lc") else result
        if isinstance(inner, Mapping) and "tool_call_id" in inner and "content" in inner:
            return inner["content"]
    return result


def _build_tool_call(seen: ObservedStep) -> Call:
    given, result = decode_field(seen.input), _unwrap_result(decode_field(seen.output))
    request = rebuild.tool_call(seen.name, given)
    if seen.kind == "retrieval":
        request = replace(request, kind="retrieval")
    missing = [what for what, told in (("arguments", given), ("result", result)) if told is None]
    if seen.error:
        missing = [each for each in missing if each != "result"]
        value = rebuild.tool_error(seen.error, seen.thrown or "RuntimeError")
    else:
        value = rebuild.tool_value(result, seen.seconds)
    return _build_call(seen, request, value, "J", missing=missing)
