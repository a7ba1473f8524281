"""A span of OpenTelemetry by the names of its attributes -> a call, or a span.

OpenInference, Google ADK, GenAI (its three generations), OpenLLMetry, pydantic-ai, Vercel AI SDK.
Other formats that carry these attributes (Langfuse, MLflow, ...) may use `item_of_span`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, get_args

from tape_jupyter.core.call import End, FunctionCall, Reply, Request, Value
from tape_jupyter.core.plain_text import text_or_json
from tape_jupyter.importers import gemini, neutral, observed, rebuild
from tape_jupyter.importers.attributes import SpanEvent, Traced, indexed
from tape_jupyter.importers.neutral import Conversation
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepArrival,
    StepFailure,
    StepModel,
    StepPlace,
)
from tape_jupyter.importers.recorded import read_headers, status_of
from tape_jupyter.importers.rows import listed_field, mapping_field
from tape_jupyter.importers.source import load_or_text
from tape_jupyter.importers.trace import Call, Grade, Origin, Run, Span

SYSTEMS = {
    "openinference.span.kind": "openinference", "gcp.vertex.agent.llm_request": "google-adk",
    "ai.operationId": "vercel-ai-sdk", "traceloop.span.kind": "openllmetry", "gen_ai.is_streaming": "openllmetry",
    "gen_ai.prompt.0.role": "openllmetry",
}  # fmt: skip
_REDACTED = "__REDACTED__"
_CALLS = ("chat", "generate_content", "text_completion")
_DETAILS = "gen_ai.client.inference.operation.details"
_SETTINGS = {
    "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "seed": "seed", "max_tokens": "max_tokens",
    "max_completion_tokens": "max_completion_tokens", "stop_sequences": "stop", "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty", "choice.count": "n", "reasoning_effort": "reasoning_effort",
}  # fmt: skip


def item_of_span(
    span: Traced, file: str, events: list[SpanEvent] | None = None
) -> Call | Span | Run:
    """The call that a span is, the run that it stands for, or the span itself. `events`: its log
    records.
    """
    if events:
        span = replace(span, events=[*span.events, *events])
    item = (
        _read_exported_call(span)
        or _read_openinference(span)
        or _read_adk(span)
        or _read_vercel(span)
        or _read_genai(span)
        or _read_tool(span)
    )
    if span.attributes.get("tape.top"):  # below its run's span, which is the run
        span = replace(span, parent="")
    if item is None and "tape.run" in span.attributes:
        return Run(span.trace, span.name)
    if item is None:
        return Span(span.id, span.name, span.parent, span.trace, span.start, span.end, span.error)
    item.id = span.id
    item.trace = span.trace
    item.parent = span.parent
    item.start = span.start
    item.end = span.end
    item.origin = Origin(_find_system(span), file, span.id, span.line)
    item.name = item.name or span.name
    if span.error and not item.error and "tape.call" not in span.attributes:
        item.error = span.error
    if span.dropped:
        item.missing.append(f"{span.dropped} attributes, dropped by the exporter")
    return item


def _read_exported_call(span: Traced) -> Call | None:
    """A call that we exported ourselves (exporters/spans.py): its exact request and reply as one
    JSON text.
    """
    exported = mapping_field(load_or_text(span.attributes.get("tape.call")))
    if exported.get("kind") in ("tool", "retrieval") and isinstance(
        exported.get("arguments"), dict
    ):
        return _read_exported_tool(span, exported)
    raw_request = mapping_field(exported.get("request"))
    raw_reply = mapping_field(exported.get("reply"))
    if not raw_request.get("url") or not {"status", "error"} & raw_reply.keys():
        return None
    request = Request(
        str(raw_request.get("method") or "POST"),
        str(raw_request["url"]),
        read_headers(raw_request.get("headers")),
        _decode_body(raw_request),
    )
    body = _decode_body(raw_reply)
    sizes, waits = listed_field(raw_reply.get("reads")), listed_field(raw_reply.get("waits"))
    ends = list(accumulate((size for size in sizes if isinstance(size, int)), initial=0))
    complete = ends[-1] == len(body) and all(start < end for start, end in pairwise(ends))
    if complete:
        chunks = tuple(body[start:end] for start, end in pairwise(ends))
    else:
        chunks = (body,)
    timed = len(waits) == len(chunks) and all(isinstance(wait, (int, float)) for wait in waits)
    error = raw_reply.get("error")
    reply = Reply(
        status_of(raw_reply["status"]) if raw_reply.get("status") is not None else None,
        read_headers(raw_reply.get("headers")), chunks,
        tuple(map(float, waits)) if timed else (),
        raw_reply["end"] if raw_reply.get("end") in get_args(End) else "complete",
        error if isinstance(error, dict) else None, str(raw_reply.get("version") or "HTTP/1.1"),
        str(raw_reply.get("reason") or ""),
    )  # fmt: skip
    kind = {"model": "model", "tool": "tool", "retrieval": "retrieval"}.get(
        str(exported.get("kind")), "http"
    )
    call = _build_call(kind, request, reply, "W", name=str(exported.get("name") or ""))
    call.error = str(exported.get("failed") or "")
    return call


def _read_exported_tool(span: Traced, exported: Mapping[str, Any]) -> Call:
    request = function(
        str(exported.get("name") or "tool"), exported["arguments"], str(exported["kind"])
    )
    error = exported.get("error")
    if isinstance(error, dict):
        value = Value(error=error)
    else:
        value = rebuild.tool_value(exported.get("value"), _measure_duration(span))
    call = _build_call(exported["kind"], request, value, "J", name=request.name)
    call.error = str(exported.get("failed") or "")
    return call


def _decode_body(side: Mapping[str, Any]) -> bytes:
    if "base64" in side:
        return base64.b64decode(str(side["base64"]))
    return str(side.get("text") or "").encode("utf-8", "surrogatepass")


def wants_content(span: Traced) -> bool:
    """Whether this is a model call whose messages are not in its attributes: log records may hold
    them.
    """
    return (
        span.attributes.get("gen_ai.operation.name") in _CALLS and _read_conversation(span) is None
    )


def why_empty(span: Traced) -> str:
    """Why a model call has no messages."""
    names = (*span.attributes, *(name for event in span.events for name in event.attributes))
    if any(name.startswith("gen_ai.") and name.endswith("_ref") for name in names):
        return "whose messages are stored elsewhere, and are not fetched"
    return "without their messages (their capture was off)"


def _find_system(span: Traced) -> str:
    system_name = next((system for name, system in SYSTEMS.items() if name in span.attributes), "")
    return system_name or ("pydantic-ai" if "pydantic-ai" in span.scope else "otel-genai")


def _build_call(kind: Any, request: Any, reply: Any, grade: Grade, **fields: Any) -> Call:
    return Call("", kind, request, reply, grade, Origin(""), **fields)


def _read_usage(span: Traced) -> dict[str, int]:
    names = {
        "input": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
        "output": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
        "cached": ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"),
    }  # fmt: skip
    counts = {name: span.text(*keys) for name, keys in names.items()}
    return {
        name: int(float(count))
        for name, count in counts.items()
        if re.fullmatch(r"\d+(\.\d+)?", count)
    }


def _measure_duration(span: Traced) -> float:
    return max(span.end - span.start, 0.0) if span.start and span.end else 0.0


# ---------------------------------------------------------------- OpenInference


def _read_openinference(span: Traced) -> Call | None:
    kind = span.text("openinference.span.kind").upper()
    if kind == "LLM":
        return _read_sent_json(span) or _read_flattened(span)
    if kind == "EMBEDDING":
        return _read_sent_json(span)
    if kind == "TOOL":
        arguments = span.attributes.get("input.value", span.attributes.get("tool.parameters"))
        return _build_tool_call(
            span,
            span.text("tool.name") or span.name,
            arguments,
            span.attributes.get("output.value"),
        )
    if kind == "RETRIEVER":
        return _read_retrieval(span)
    return None


def _read_sent_json(span: Traced) -> Call | None:
    """SDK instrumentors write the request's own JSON, and the reply's."""
    body = load_or_text(span.attributes.get("input.value"))
    reply_json = load_or_text(span.attributes.get("output.value"))
    if not isinstance(body, dict) or not {"messages", "contents", "input", "prompt"} & body.keys():
        return None
    if not span.error and not (isinstance(reply_json, dict) and _SAID & reply_json.keys()):
        return None
    if any(not _is_plain_message(each) for each in body.get("messages") or ()):
        return None
    settings = load_or_text(span.attributes.get("llm.invocation_parameters"))
    streamed = isinstance(settings, dict) and settings.get("stream") is True
    thrown: Mapping[str, Any] = next(
        (each.attributes for each in span.events if each.name == "exception"), {}
    )
    seen = ObservedStep(
        kind="model",
        place=StepPlace(id=span.id, start=span.start, end=span.end),
        failure=StepFailure(
            message=str(thrown.get("exception.message") or span.error) if span.error else "",
            type_name=str(thrown.get("exception.type") or span.attributes.get("error.type") or ""),
        ),
        asked=StepModel(
            model=span.text("llm.model_name", "embedding.model_name"),
            provider=span.text("llm.provider", "llm.system") or _guess_provider(span.scope),
        ),
        arrival=StepArrival(
            streamed="contents" not in body
            and (streamed or any("First Token" in each.name for each in span.events))
        ),
        usage=_read_usage(span),
    )
    call = observed.exchanged(seen, body, {} if span.error else reply_json)
    if span.text("input.value").find(_REDACTED) >= 0:
        call.missing.append("redacted parts of the request")
    return call


_SAID = {"choices", "output", "content", "candidates", "data", "message", "completion"}


def _is_plain_message(message: Any) -> bool:
    """A message as providers take them; LangChain's own objects have `kwargs`, or stand in lists of
    lists.
    """
    return isinstance(message, dict) and "role" in message


def _guess_provider(scope: str) -> str:
    return scope.rpartition(".")[2]


def _build_failed_reply(span: Traced, assumed: list[str]) -> Reply:
    thrown: Mapping[str, Any] = next(
        (each.attributes for each in span.events if each.name == "exception"), {}
    )
    kind = str(thrown.get("exception.type") or span.attributes.get("error.type") or "")
    reply, more = rebuild.failed(
        kind, str(thrown.get("exception.message") or span.error), _measure_duration(span)
    )
    assumed += more
    return reply


def _read_flattened(span: Traced) -> Call | None:
    """Framework instrumentors: messages as numbered attributes."""
    input_messages: list[neutral.Message] = [
        _read_message(each) for each in indexed(span.attributes, "llm.input_messages")
    ]
    output_messages: list[neutral.Message] = [
        _read_message(each) for each in indexed(span.attributes, "llm.output_messages")
    ]
    if not input_messages:
        return None
    settings = load_or_text(span.attributes.get("llm.invocation_parameters"))
    tools = [
        load_or_text(each.get("tool.json_schema")) for each in indexed(span.attributes, "llm.tools")
    ]
    provider = rebuild.provider_of(span.text("llm.provider", "llm.system"))
    conversation = Conversation(
        span.text("llm.model_name"),
        "",
        input_messages,
        output_messages,
        neutral.functions(tools),
        _select_settings(settings),
        span.text("llm.finish_reason"),
        _find_reply_id(span),
        _read_usage(span),
        stream=any("First Token" in each.name for each in span.events),
    )
    return _build_neutral_call(span, conversation, provider, "P")


def _find_reply_id(span: Traced) -> str:
    reply_json = load_or_text(span.attributes.get("output.value"))
    return str(reply_json.get("id") or "") if isinstance(reply_json, dict) else ""


def _select_settings(parameters: Any) -> dict[str, Any]:
    kept = (
        *_SETTINGS.values(),
        "response_format",
        "tool_choice",
        "parallel_tool_calls",
        "stream_options",
    )
    return {
        name: parameters[name]
        for name in kept
        if isinstance(parameters, dict) and parameters.get(name) is not None
    }


def _read_message(record: Mapping[str, Any]) -> dict[str, Any]:
    """`message.role`, `message.content`, `message.tool_calls.0.tool_call...` as role and parts."""
    parts: list[dict[str, Any]] = []
    role = str(record.get("message.role") or "user")
    content = record.get("message.content")
    if role == "tool":
        return {"role": role, "parts": [
            {"type": "tool_call_response", "id": record.get("message.tool_call_id", ""), "response": content or ""}
        ]}  # fmt: skip
    if content:
        parts.append({"type": "text", "content": text_or_json(content)})
    for each in indexed(record, "message.contents"):
        kind = str(each.get("message_content.type") or "text")
        text = each.get("message_content.text")
        image = each.get("message_content.image.image.url")
        parts.append(
            {"type": kind, "content": text}
            if text is not None
            else {"type": "uri", "uri": image or ""}
        )
    for each in indexed(record, "message.tool_calls"):
        name = each.get("tool_call.function.name", "")
        arguments = each.get("tool_call.function.arguments", "{}")
        parts.append(
            {
                "type": "tool_call",
                "id": each.get("tool_call.id", ""),
                "name": name,
                "arguments": arguments,
            }
        )
    return {"role": role, "parts": parts}


def _read_retrieval(span: Traced) -> Call:
    documents = indexed(span.attributes, "retrieval.documents")
    contents = [
        {name.removeprefix("document."): load_or_text(value) for name, value in each.items()}
        for each in documents
    ]
    result = contents or load_or_text(span.attributes.get("output.value"))
    query = load_or_text(span.attributes.get("input.value"))
    call = rebuild.tool_call(span.name, query if isinstance(query, dict) else {"query": query})
    return _build_call(
        "retrieval",
        replace(call, kind="retrieval"),
        _build_tool_value(span, result),
        "J",
        name=span.name,
    )


# ---------------------------------------------------------------- tools


def _read_tool(span: Traced) -> Call | None:
    """`execute_tool` spans, and the tool spans of OpenLLMetry and the Vercel AI SDK."""
    attributes = span.attributes
    if "ai.toolCall.name" in attributes:
        return _build_tool_call(
            span,
            span.text("ai.toolCall.name"),
            attributes.get("ai.toolCall.args"),
            attributes.get("ai.toolCall.result"),
        )
    if (
        attributes.get("gen_ai.operation.name") == "execute_tool"
        or attributes.get("traceloop.span.kind") == "tool"
    ):
        name = span.text("gen_ai.tool.name", "traceloop.entity.name") or span.name
        arguments = _find_first(
            attributes,
            "gen_ai.tool.call.arguments",
            "gcp.vertex.agent.tool_call_args",
            "traceloop.entity.input",
        )
        arguments = arguments if arguments is not None else attributes.get("tool_arguments")
        result = _find_first(
            attributes,
            "gen_ai.tool.call.result",
            "gcp.vertex.agent.tool_response",
            "traceloop.entity.output",
        )
        return _build_tool_call(
            span, name, arguments, result if result is not None else attributes.get("tool_response")
        )
    return None


def _find_first(attributes: Mapping[str, Any], *names: str) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _build_tool_call(span: Traced, name: str, arguments_text: Any, result: Any) -> Call:
    arguments = load_or_text(arguments_text)
    if isinstance(arguments, dict) and arguments.keys() == {"args", "kwargs"}:
        arguments = {
            **{str(n): each for n, each in enumerate(arguments["args"] or ())},
            **(arguments["kwargs"] or {}),
        }
    missing = [
        what
        for what, field_value in (("arguments", arguments_text), ("result", result))
        if field_value is None
    ]
    if span.error and result is None:
        missing = [each for each in missing if each != "result"]
    return _build_call(
        "tool",
        rebuild.tool_call(name, arguments),
        _build_tool_value(span, load_or_text(result)),
        "J",
        name=name,
        missing=missing,
    )


def _build_tool_value(span: Traced, result: Any) -> Value:
    if span.error:
        thrown: Mapping[str, Any] = next(
            (each.attributes for each in span.events if each.name == "exception"), {}
        )
        return rebuild.tool_error(span.error, str(thrown.get("exception.type") or "RuntimeError"))
    return rebuild.tool_value(result, _measure_duration(span))


# ---------------------------------------------------------------- Google ADK


def _read_adk(span: Traced) -> Call | None:
    request_json = load_or_text(span.attributes.get("gcp.vertex.agent.llm_request"))
    reply_json = load_or_text(span.attributes.get("gcp.vertex.agent.llm_response"))
    if not isinstance(request_json, dict) or not request_json.get("contents"):
        return None
    config = {n: each for n, each in (request_json.get("config") or {}).items() if n != "labels"}
    body = gemini.gemini_body({"contents": request_json["contents"], "config": config})
    reply_body = gemini.camel(reply_json) if isinstance(reply_json, dict) else {}
    candidate = {
        "content": reply_body.get("content", {}),
        "finishReason": reply_body.get("finishReason", "STOP"),
        "index": 0,
    }
    reply = {
        "candidates": [candidate],
        "usageMetadata": reply_body.get("usageMetadata", {}), "modelVersion": reply_body.get("modelVersion", ""),
    }  # fmt: skip
    assumed = ["reply envelope, from ADK's own form"]
    model = str(request_json.get("model") or span.text("gen_ai.request.model"))
    url = rebuild.url_of(rebuild.GEMINI, "gemini", assumed, model=model)
    missing = ["url", "request headers", "reply headers", "request bytes", "reply bytes"]
    if any("types." in text_or_json(tool) for tool in body.get("tools") or ()):
        missing.append("tool schemas")
    if span.error:
        answer = _build_failed_reply(span, assumed)
    else:
        answer = rebuild.reply(reply, seconds=_measure_duration(span))
    return _build_call(
        "model", rebuild.request(url, body), answer, "J", provider="gemini", model=model, missing=missing,
        assumed=assumed, usage=_read_usage(span),
    )  # fmt: skip


# ---------------------------------------------------------------- GenAI, OpenLLMetry, pydantic-ai, Vercel


def _read_genai(span: Traced) -> Call | None:
    operation = span.attributes.get("gen_ai.operation.name")
    classic = (
        "gen_ai.prompt.0.role" in span.attributes or "gen_ai.prompt.0.content" in span.attributes
    )
    if operation is not None and operation not in _CALLS:
        return None
    if (
        operation is None
        and not classic
        and "gen_ai.input.messages" not in span.attributes
        and not any(each.name in (_DETAILS, "gen_ai.choice") for each in span.events)
    ):
        return None
    conversation = _read_conversation(span)
    if conversation is None:
        return None
    provider = rebuild.provider_of(span.text("gen_ai.provider.name", "gen_ai.system"))
    return _build_neutral_call(span, conversation, provider, "M")


def _read_conversation(span: Traced) -> Conversation | None:
    attributes = dict(span.attributes)
    for event in span.events:
        if event.name == _DETAILS:
            attributes = {**event.attributes, **attributes}
    input_messages = load_or_text(attributes.get("gen_ai.input.messages"))
    output_messages = load_or_text(attributes.get("gen_ai.output.messages"))
    if not isinstance(input_messages, list):
        input_messages, output_messages = _read_event_messages(span) or _read_numbered_messages(
            span.attributes
        )
    if not input_messages:
        return None
    system = load_or_text(attributes.get("gen_ai.system_instructions"))
    tools = load_or_text(attributes.get("gen_ai.tool.definitions"))
    if not isinstance(tools, list):
        tools = indexed(attributes, "llm.request.functions")
    settings = {
        name: observed.parse_literal(attributes[f"gen_ai.request.{key}"])
        for key, name in _SETTINGS.items()
        if attributes.get(f"gen_ai.request.{key}") is not None
    }
    stops = attributes.get("gen_ai.response.finish_reasons")
    stops = load_or_text(stops)
    return Conversation(
        str(
            attributes.get("gen_ai.request.model") or attributes.get("gen_ai.response.model") or ""
        ),
        _join_system(system),
        [each for each in input_messages if isinstance(each, Mapping)],
        [each for each in output_messages if isinstance(each, Mapping)]
        if isinstance(output_messages, list)
        else [],
        neutral.functions(tools),
        settings,
        str(stops[0]) if isinstance(stops, list) and stops else "",
        str(attributes.get("gen_ai.response.id") or ""),
        _read_usage(replace(span, attributes=attributes)),
        str(
            attributes.get("gen_ai.request.stream", attributes.get("gen_ai.is_streaming", ""))
        ).lower()
        == "true"
        or "gen_ai.response.time_to_first_chunk" in attributes,
    )


def _join_system(system: Any) -> str:
    if isinstance(system, list):
        return "\n\n".join(
            text_or_json(each.get("content", "")) for each in system if isinstance(each, Mapping)
        )
    return system if isinstance(system, str) else ""


def _read_event_messages(span: Traced) -> tuple[list[Any], list[Any]] | None:
    """The first generation: an event a message (attributes or body), or pydantic-ai's `events` as
    JSON.
    """
    listed = load_or_text(span.attributes.get("events"))
    if isinstance(listed, list):
        named_events = [
            (str(each.get("event.name", "")), each)
            for each in listed or ()
            if isinstance(each, Mapping)
        ]
    else:
        named_events = []
    named_events += [
        (each.name, {**each.attributes, **_read_event_body(each)})
        for each in span.events
        if each.name.startswith("gen_ai.")
    ]
    input_messages, output_messages = [], []
    for name, each in named_events:
        if name == "gen_ai.choice":
            message = load_or_text(each.get("message"))
            message = message if isinstance(message, dict) else each
            output_messages.append(
                {
                    "role": "assistant",
                    "parts": _read_event_parts(message),
                    "finish_reason": each.get("finish_reason", ""),
                }
            )
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            role = name.split(".")[1]
            input_messages.append({"role": role, "parts": _read_event_parts(each, role)})
    return (input_messages, output_messages) if input_messages else None


def _read_event_body(event: SpanEvent) -> dict[str, Any]:
    body = load_or_text(event.attributes.get("body"))
    return body if isinstance(body, dict) else {}


def _read_event_parts(record: Mapping[str, Any], role: str = "") -> list[dict[str, Any]]:
    content = record.get("content")
    if role == "tool":
        return [
            {
                "type": "tool_call_response",
                "id": record.get("id", ""),
                "response": content if content is not None else "",
            }
        ]
    parts: list[dict[str, Any]] = (
        [{"type": "text", "content": text_or_json(content)}] if content else []
    )
    for each in load_or_text(record.get("tool_calls")) or ():
        inner = each.get("function", each) if isinstance(each, Mapping) else {}
        parts.append(
            {
                "type": "tool_call",
                "id": each.get("id", ""),
                "name": inner.get("name", ""),
                "arguments": inner.get("arguments", "{}"),
            }
        )
    return parts


def _read_numbered_messages(attributes: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """OpenLLMetry before 0.5x: `gen_ai.prompt.N.*`, `gen_ai.completion.N.*`."""
    sides = (
        [_read_numbered_message(each) for each in indexed(attributes, name)]
        for name in ("gen_ai.prompt", "gen_ai.completion")
    )
    input_messages, output_messages = sides
    return input_messages, output_messages


def _read_numbered_message(record: Mapping[str, Any]) -> dict[str, Any]:
    role = str(record.get("role") or "assistant")
    if role == "tool":
        part = {
            "type": "tool_call_response",
            "id": record.get("tool_call_id", ""),
            "response": record.get("content", ""),
        }
        return {"role": role, "parts": [part]}
    parts: list[dict[str, Any]] = (
        [{"type": "text", "content": text_or_json(record["content"])}]
        if record.get("content")
        else []
    )
    parts += [
        {
            "type": "tool_call",
            "id": each.get("id", ""),
            "name": each.get("name", ""),
            "arguments": each.get("arguments", "{}"),
        }
        for each in indexed(record, "tool_calls")
    ]
    return {"role": role, "parts": parts, "finish_reason": record.get("finish_reason", "")}


def _read_vercel(span: Traced) -> Call | None:
    attributes = span.attributes
    input_messages = load_or_text(attributes.get("ai.prompt.messages"))
    if not isinstance(input_messages, list):
        return None
    parts: list[dict[str, Any]] = []
    if attributes.get("ai.response.reasoning"):
        parts.append({"type": "reasoning", "content": attributes["ai.response.reasoning"]})
    if output_text := attributes.get("ai.response.text") or attributes.get("ai.response.object"):
        parts.append({"type": "text", "content": text_or_json(output_text)})
    uses = load_or_text(attributes.get("ai.response.toolCalls")) or ()
    parts += [_read_vercel_tool_call(each) for each in uses if isinstance(each, Mapping)]
    listed = attributes.get("ai.prompt.tools") or []
    tools = [
        load_or_text(each)
        for each in (listed if isinstance(listed, list) else load_or_text(listed))
    ]
    names = {
        "temperature": "temperature",
        "topP": "top_p",
        "topK": "top_k",
        "seed": "seed",
        "maxOutputTokens": "max_tokens",
    }
    names |= {
        "maxTokens": "max_tokens",
        "stopSequences": "stop",
        "frequencyPenalty": "frequency_penalty",
    }
    settings = {
        name: observed.parse_literal(attributes[f"ai.settings.{key}"])
        for key, name in names.items()
        if attributes.get(f"ai.settings.{key}") is not None
    }
    operation = span.text("ai.operationId", "operation.name").lower()
    conversation = Conversation(
        span.text("ai.model.id", "gen_ai.request.model"), "",
        [_read_vercel_message(each) for each in input_messages if isinstance(each, Mapping)],
        [{"role": "assistant", "parts": parts}], neutral.functions(tools), settings,
        span.text("ai.response.finishReason").replace("tool-calls", "tool_calls"),
        span.text("ai.response.id", "gen_ai.response.id"), _read_usage(span), "stream" in operation,
    )  # fmt: skip
    provider = rebuild.provider_of(
        span.text("ai.model.provider", "gen_ai.system").partition(".")[0]
    )
    return _build_neutral_call(span, conversation, provider, "M")


def _read_vercel_tool_call(each: Mapping[str, Any]) -> dict[str, Any]:
    arguments = each.get("input", each.get("args", {}))
    return {
        "type": "tool_call",
        "id": each.get("toolCallId", ""),
        "name": each.get("toolName", ""),
        "arguments": arguments,
    }


def _read_vercel_message(message: Mapping[str, Any]) -> dict[str, Any]:
    parts: list[Any] = []
    for each in neutral.parts_of(message):
        if each.get("type") == "tool-call":
            parts.append(_read_vercel_tool_call(each))
        elif each.get("type") == "tool-result":
            result = each.get("output", each.get("result"))
            if isinstance(result, Mapping) and "value" in result:
                result = result.get("value")
            parts.append(
                {"type": "tool_call_response", "id": each.get("toolCallId", ""), "response": result}
            )
        else:
            parts.append(each)
    return {"role": message.get("role", "user"), "parts": parts}


def _build_neutral_call(
    span: Traced, conversation: Conversation, provider: str, grade: Grade
) -> Call:
    responses = (
        span.text("openai.api.type") == "responses"
        or span.text("ai.model.provider").endswith(".responses")
        or conversation.id.startswith("resp_")
        or span.name == "openai.response"
    )
    if responses:
        api = rebuild.OPENAI_RESPONSES
    else:
        api = _APIS.get(provider, rebuild.OPENAI_CHAT)
    if api != rebuild.OPENAI_CHAT:
        first = [each for each in conversation.input_messages if each.get("role") == "system"]
        texts = [
            part.get("content", part.get("text", ""))
            for each in first
            for part in neutral.parts_of(each)
        ]
        conversation.system = conversation.system or "\n\n".join(map(text_or_json, texts))
        conversation.input_messages = [
            each for each in conversation.input_messages if each.get("role") != "system"
        ]
    request, reply, missing, assumed = neutral.call_parts(
        conversation, provider, api, _find_base_url(span, api), _find_region(span)
    )
    if span.error:
        reply = _build_failed_reply(span, assumed)
    elif not conversation.output_messages:
        missing.append("reply")
    if span.attributes.get("gen_ai.openai.api_base") is None and _find_base_url(span, api):
        assumed.append("url path")
    if (
        isinstance(reply, Reply)
        and isinstance(request, Request)
        and _measure_duration(span)
        and len(reply.chunks) == 1
    ):
        reply = replace(reply, waits=(round(_measure_duration(span), 4),))
    return _build_call(
        "model", request, reply, grade, provider=provider, model=conversation.model, missing=missing, assumed=assumed,
        usage=conversation.usage, rebuilt=True,
    )  # fmt: skip


_APIS = {"anthropic": rebuild.ANTHROPIC, "bedrock": rebuild.BEDROCK, "gemini": rebuild.GEMINI}
_VERSION_PATHS = {
    rebuild.OPENAI_CHAT: "/v1",
    rebuild.OPENAI_RESPONSES: "/v1",
    rebuild.GEMINI: "/v1beta",
}


def _find_base_url(span: Traced, api: str) -> str:
    if api_base := span.text("gen_ai.openai.api_base"):
        return api_base if "://" in api_base else ""
    host, port = span.text("server.address"), span.text("server.port")
    if not host or "://" in host:
        return host.rstrip("/")
    scheme = "http" if host in ("127.0.0.1", "localhost", "::1") else "https"
    place = f"{scheme}://{host}" + (f":{port}" if port and port not in ("443", "80") else "")
    return place + _VERSION_PATHS.get(api, "")


def _find_region(span: Traced) -> str:
    match = re.search(r"bedrock-runtime\.([a-z0-9-]+)\.", span.text("server.address"))
    if match:
        return match[1]
    return span.text("cloud.region", "aws.region") or "us-east-1"


def function(name: str, arguments: Any, kind: str = "tool") -> FunctionCall:
    """A tool call as `rebuild.tool_call` makes it, or a retrieval."""
    call = rebuild.tool_call(name, arguments)
    return replace(call, kind="retrieval") if kind == "retrieval" else call
