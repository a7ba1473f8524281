"""A step as an observability platform keeps it -> the call that it was, or a span.

Formats of platforms read their records into `ObservedStep`; what of it is a request's own JSON, and
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


def usage_of(usage: Any) -> dict[str, int]:
    """Counts of tokens by our names, from those of any platform."""
    counts = usage if isinstance(usage, Mapping) else {}
    values = {
        name: next((counts[key] for key in keys if counts.get(key)), None)
        for name, keys in _USAGE.items()
    }
    numbers = {name: parse_literal(count) for name, count in values.items()}
    return {
        name: int(count)
        for name, count in numbers.items()
        if isinstance(count, (int, float)) and math.isfinite(count)
    }


@dataclass(slots=True)
class StepPlace:
    """Where a step stands in its trace, and in its file. `start` and `end` are seconds since 1970; 0: they
    are not known.
    """

    id: str
    trace: str = ""
    parent: str = ""
    start: float = 0.0
    end: float = 0.0
    line: int = 0

    @property
    def seconds(self) -> float:
        return max(self.end - self.start, 0.0) if self.start and self.end else 0.0


@dataclass(slots=True)
class StepFailure:
    """How a step failed; no message: it did not. `type_name` is the class of its error, `status` that of HTTP."""

    message: str = ""
    type_name: str = ""
    status: int = 200


@dataclass(slots=True)
class StepModel:
    """Which model was asked, where, and with what beside the messages."""

    model: str = ""
    provider: str = ""
    base: str = ""
    url: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Any] = ()


@dataclass(slots=True)
class StepArrival:
    """How the reply came: as a stream's `chunks`, parsed, with the seconds to each in `waits`."""

    streamed: bool = False
    chunks: Sequence[Any] = ()
    waits: Sequence[float] = ()


@dataclass(slots=True)
class StepNotes:
    """What the source lacks and what was filled in, the grade where the format says it, and what else it
    tells of the step.
    """

    missing: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    grade: Grade | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ObservedStep:
    """A step. `input` and `output` are its input and output as JSON; `sent`: they are a request's and
    a reply's own.
    """

    kind: Literal["model", "tool", "retrieval", "span"]
    place: StepPlace
    name: str = ""
    input: Any = None
    output: Any = None
    failure: StepFailure = field(default_factory=StepFailure)
    asked: StepModel = field(default_factory=StepModel)
    arrival: StepArrival = field(default_factory=StepArrival)
    usage: Mapping[str, int] = field(default_factory=dict)
    sent: bool = False
    notes: StepNotes = field(default_factory=StepNotes)


def item(seen: ObservedStep, system: str, file: str) -> Call | Span:
    """The call that a step was. A model call without its messages, and any other step, is a span."""
    call: Call | None = None
    if seen.kind == "model":
        call = _read_sent_json(seen) or _rebuild_call(seen)
    elif seen.kind in ("tool", "retrieval"):
        call = _build_tool_call(seen)
    place = seen.place
    if call is None:
        return Span(
            place.id,
            seen.name,
            place.parent,
            place.trace,
            place.start,
            place.end,
            seen.failure.message,
        )
    call.origin = Origin(system, file, place.id, place.line)
    call.missing += seen.notes.missing
    call.assumed += seen.notes.assumed
    return call


def _build_call(seen: ObservedStep, request: Any, reply: Any, grade: Grade, **fields: Any) -> Call:
    place, notes = seen.place, seen.notes
    return Call(
        place.id,
        seen.kind,  # type: ignore[arg-type] # no step of kind "span" comes here
        request,
        reply,
        notes.grade or grade,
        Origin(""),
        place.trace,
        place.parent,
        seen.name,
        start=place.start,
        end=place.end,
        error=seen.failure.message,
        about=notes.about,
        **fields,
    )


# ---------------------------------------------------------------- a request's own JSON


def _read_sent_json(seen: ObservedStep) -> Call | None:
    body = decode_field(seen.input)
    reply_json = decode_field(seen.output)
    if not isinstance(body, dict) or not (seen.sent or is_request(body)):
        return None
    if not seen.sent and not {"model", "modelId", "contents"} & body.keys():
        return None  # messages alone: the rest of the request stands elsewhere, or nowhere
    if not (
        seen.failure.message
        or seen.arrival.chunks
        or seen.failure.status >= 400
        or (isinstance(reply_json, dict) and (seen.sent or _SAID & reply_json.keys()))
    ):
        return None
    return exchanged(seen, body, reply_json)


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


def _is_embedding_input(value: Any) -> bool:
    """What an embedding is made of: a text, or tokens."""
    return isinstance(value, (str, int)) or (
        isinstance(value, list) and all(isinstance(each, int) for each in value)
    )


def _is_plain_message(message: Mapping[str, Any]) -> bool:
    return (
        "kwargs" not in message
        and "additional_kwargs" not in message
        and message.get("type") not in ("human", "ai")
    )


def keywords(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of an SDK's method as the body that it sends."""
    body = {name: value for name, value in arguments.items() if name not in _NOT_SENT}
    more = arguments.get("extra_body")
    return {**body, **(more if isinstance(more, Mapping) else {})}


def exchanged(seen: ObservedStep, body: dict[str, Any], reply_json: Any) -> Call:
    """A call of which the source holds the JSON of its request and of its reply (or of its chunks)."""
    body = keywords(body)
    model = str(body.get("model") or body.get("modelId") or seen.asked.model)
    missing = [each for each in UNSENT if each != "url" or not seen.asked.url]
    assumed: list[str] = []
    chosen = isinstance(reply_json, dict) and "choices" in reply_json
    provider = _choose_provider(seen, "" if chosen else model, assumed)
    api = rebuild.api_of(provider, body)
    if chosen and api == rebuild.ANTHROPIC:
        api = rebuild.OPENAI_CHAT
    if isinstance(reply_json, dict) and api == rebuild.ANTHROPIC and "content" not in reply_json:
        # as LangSmith's wrapper keeps it
        reply_json = decode_field(reply_json.get("message")) or reply_json
    if api == rebuild.GEMINI and gemini.are_keywords(body):
        body, reply_json = gemini.gemini_body(body), gemini.camel(reply_json)
        arrival = replace(seen.arrival, chunks=gemini.camel(list(seen.arrival.chunks)))
        seen = replace(seen, arrival=arrival)
        assumed.append("the request's JSON, from the SDK's arguments")
    elif "modelId" in body:  # boto3's, which goes into the address
        body = {name: value for name, value in body.items() if name != "modelId"}
    stream = bool(body.get("stream")) or bool(seen.arrival.chunks) or seen.arrival.streamed
    if stream and "stream" not in body and api not in (rebuild.GEMINI, rebuild.BEDROCK):
        body = {**body, "stream": True}
        assumed.append("stream: true, as the source tells of chunks or of a first token")
    url = seen.asked.url or rebuild.url_of(
        api, provider, assumed, model=model, stream=stream, base=seen.asked.base
    )
    reply = _build_reply(seen, api, reply_json, missing, assumed, stream=stream)
    return _build_call(
        seen, rebuild.request(url, body), reply, "J", provider=provider, model=model, missing=missing,
        assumed=assumed, usage=seen.usage,
    )  # fmt: skip


def _choose_provider(seen: ObservedStep, model: str, assumed: list[str]) -> str:
    """The provider that the source names, or the one whose model this is called."""
    named = rebuild.provider_of(seen.asked.provider)
    if named or seen.asked.base or seen.asked.url:
        return named
    owner = next((owner for start, owner in _OWNERS.items() if model.startswith(start)), "")
    if owner:
        assumed.append(f"provider {owner}, from the model's name")
    return owner


_OWNERS = {"claude-": "anthropic", "gemini-": "gemini"}


def _build_reply(
    seen: ObservedStep,
    api: str,
    reply_json: Any,
    missing: list[str],
    assumed: list[str],
    *,
    stream: bool,
) -> Reply:
    """The reply: an error's, the chunks of a stream, or what the source put together."""
    is_object = isinstance(reply_json, dict)
    if seen.failure.status >= _FAILED and reply_json is not None:
        return rebuild.reply(reply_json, seen.failure.status, seen.place.seconds)
    if (
        seen.failure.message
        and not seen.arrival.chunks
        and not (is_object and _SAID & reply_json.keys())
    ):
        reply, more = rebuild.failed(
            seen.failure.type_name, seen.failure.message, seen.place.seconds
        )
        assumed += more
        return reply
    if seen.arrival.chunks:
        return rebuild.streamed(api, seen.arrival.chunks, seen.arrival.waits)
    if not stream or not is_object:
        return rebuild.reply(reply_json, seconds=seen.place.seconds)
    missing.append("chunks")
    reply = rebuild.as_stream(api, reply_json)
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
    single_message = listed is None and bool({"content", "role"} & body.keys())
    if single_message:
        listed = [body]
    input_messages = messages.messages_of(listed)
    if not any(each["parts"] for each in input_messages):
        return None
    output_messages = messages.said_messages(seen.output)
    tools = [
        *seen.asked.tools,
        *(decode_field(body.get("tools")) or ()),
        *messages.declarations(decode_field(listed)),
    ]
    model = seen.asked.model or str(body.get("model") or "")
    guessed: list[str] = []
    provider = _choose_provider(seen, model, guessed)
    responses = seen.asked.provider.endswith(".responses") or _is_responses_reply(seen.output)
    if responses:
        api = rebuild.OPENAI_RESPONSES
    else:
        api = _APIS.get(provider, rebuild.OPENAI_CHAT)
    settings = {**body, **seen.asked.settings}
    conversation = Conversation(
        model,
        _read_system(body),
        list(input_messages),
        list(output_messages),
        neutral.functions(tools),
        {
            name: parse_literal(settings[name])
            for name in _SETTINGS
            if settings.get(name) not in _UNSET
        },
        str(output_messages[0].get("finish_reason") or "") if output_messages else "",
        usage=seen.usage,
        stream=seen.arrival.streamed,
    )
    if api != rebuild.OPENAI_CHAT:
        _lift_system(conversation)
    request, reply, missing, assumed = neutral.call_parts(
        conversation, provider, api, seen.asked.base
    )
    assumed += guessed
    if seen.arrival.streamed and not settings.get("stream"):
        assumed.append("stream: true, from the time of the first token")
    if single_message:
        missing.append("earlier messages: the source keeps the last one")
    if seen.failure.message:
        reply, more = rebuild.failed(
            seen.failure.type_name, seen.failure.message, seen.place.seconds
        )
        assumed += more
    elif not output_messages:
        missing.append("reply")
    if isinstance(reply, Reply) and len(reply.chunks) == 1 and seen.place.seconds:
        reply = replace(reply, waits=(round(seen.place.seconds, 4),))
    return _build_call(
        seen, request, reply, "M", provider=provider, model=conversation.model, missing=missing, assumed=assumed,
        usage=seen.usage, rebuilt=True,
    )  # fmt: skip


def _is_responses_reply(value: Any) -> bool:
    """Whether the reply is one of OpenAI's Responses API."""
    decoded = decode_field(value)
    return isinstance(decoded, Mapping) and (
        decoded.get("object") == "response" or str(decoded.get("id")).startswith("resp_")
    )


def _read_system(body: Mapping[str, Any]) -> str:
    system = body.get(
        "system",
        body.get("instructions", body.get("system_instruction", body.get("systemInstruction"))),
    )
    if system is None:
        return ""
    parts = (each for message in messages.messages_of(system) for each in message["parts"])
    return "\n\n".join(str(each.get("content", "")) for each in parts)


def _lift_system(conversation: Conversation) -> None:
    """Providers other than OpenAI take the system text beside the messages."""
    first = [each for each in conversation.input_messages if each.get("role") == "system"]
    texts = [str(part.get("content", "")) for each in first for part in neutral.parts_of(each)]
    conversation.system = conversation.system or "\n\n".join(texts)
    conversation.input_messages = [
        each for each in conversation.input_messages if each.get("role") != "system"
    ]


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
    arguments, result = decode_field(seen.input), _unwrap_result(decode_field(seen.output))
    request = rebuild.tool_call(seen.name, arguments)
    if seen.kind == "retrieval":
        request = replace(request, kind="retrieval")
    missing = [
        what
        for what, field_value in (("arguments", arguments), ("result", result))
        if field_value is None
    ]
    if seen.failure.message:
        missing = [each for each in missing if each != "result"]
        value = rebuild.tool_error(seen.failure.message, seen.failure.type_name or "RuntimeError")
    else:
        value = rebuild.tool_value(result, seen.place.seconds)
    return _build_call(seen, request, value, "J", missing=missing)
