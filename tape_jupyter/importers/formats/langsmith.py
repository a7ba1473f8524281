"""Runs of LangSmith: `list_runs`, its query API, the SDK's batches `{post, patch}`, bulk exports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import conventions, observed
from tape_jupyter.importers.attributes import Traced, attribute_seconds
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepArrival,
    StepFailure,
    StepModel,
    StepNotes,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.rows import listed_field, mapping_field, source_rows
from tape_jupyter.importers.source import Broken, Source
from tape_jupyter.importers.trace import Call, Item, Skipped, each

TITLE = "LangSmith"

_KINDS = {
    "llm": "model",
    "chat_model": "model",
    "embedding": "model",
    "tool": "tool",
    "retriever": "retrieval",
}
_COUNTS = ("usage_metadata", "token_usage", "usage")
_AMOUNT = {"input_tokens", "output_tokens", "total_tokens"}


def recognises(source: Source) -> int:
    if {"run_type", "dotted_order"} <= source.keys or {"run_type", "parent_run_id"} <= source.keys:
        return 90
    return 80 if {"run_type", "trace_id", "inputs"} <= source.keys else 0


def read(source: Source) -> Iterator[Item]:
    """Runs that are sent in parts (`post`, then `patch`) are put together; all others are read one
    by one.
    """
    parts: dict[str, tuple[dict[str, Any], int]] = {}
    last = ""
    for path, row, line in source_rows(source, "post", "patch", "runs", "data"):
        if len(path) == 1 and path[0] not in ("[]", "broken"):
            continue  # what an export says of itself
        if not isinstance(row, dict):
            if isinstance(row, Broken):
                yield Skipped(
                    f"a record that breaks off or is not JSON: {row.reason}",
                    line=line,
                    text=row.text,
                )
            elif not path or path[-1] == "[]":
                yield Skipped("a record that is not a JSON object", line=line, text=str(row))
        elif len(path) == 2 and path[0] in ("post", "patch"):
            run_id = str(
                row.get("id") or str(row.get("dotted_order") or "").rpartition("Z")[2] or last
            )
            before, at = parts.get(run_id, ({}, line))
            parts[run_id] = (
                {
                    **before,
                    **{k: v for k, v in row.items() if v is not None and (v or k not in before)},
                    "id": run_id,
                },
                at,
            )
            last = run_id
        elif "run_type" in row:
            yield from each(partial(_read_run, source.name, row, line), line)
        else:
            yield Skipped("a record that is no run", line=line)
    for row, line in parts.values():
        yield from each(partial(_read_run, source.name, row, line), line)


def _read_run(file: str, row: Mapping[str, Any], line: int) -> Iterator[Item]:
    extra = mapping_field(row.get("extra"))
    about = mapping_field(extra.get("metadata"))
    run_id, order = str(row.get("id") or ""), str(row.get("dotted_order") or "")
    above = order.split(".")[-2] if "." in order else ""
    parent = str(row.get("parent_run_id") or above.partition("Z")[2])
    start, end = attribute_seconds(row.get("start_time")), attribute_seconds(row.get("end_time"))
    trace = str(row.get("trace_id") or "")
    name = str(row.get("name") or "")
    failed = str(row.get("error") or "")
    if any(key.startswith(("gen_ai.", "openinference.")) for key in about):
        span = Traced(run_id, trace, parent, name, start, end, about, error=failed, line=line)
        item = conventions.item_of_span(span, file)
        if isinstance(item, Call) and "reply" not in item.missing:
            yield item
            return
    kind: Any = _KINDS.get(str(row.get("run_type")), "span")
    missing = [f"{side}: they lie in S3, which the file names" for side in ("inputs", "outputs")
               if row.get(f"{side}_s3_urls") and not row.get(side)]  # fmt: skip
    seen = ObservedStep(
        kind=kind,
        name=name,
        place=StepPlace(id=run_id, trace=trace, parent=parent, start=start, end=end, line=line),
        input=mapping_field(row.get("inputs")) or row.get("inputs"),
        output=mapping_field(row.get("outputs")) or row.get("outputs"),
        failure=StepFailure(message=_strip_traceback(failed), type_name=_find_error_type(failed)),
        asked=StepModel(
            model=str(about.get("ls_model_name") or ""),
            provider=str(about.get("ls_provider") or _guess_provider(row)),
        ),
        arrival=StepArrival(streamed=bool(row.get("first_token_time"))),
        usage=usage_of(
            about.get("usage_metadata")
            or mapping_field(row.get("outputs")).get("usage_metadata")
            or row
        ),
        notes=StepNotes(missing=missing),
    )
    if kind == "model":
        _fill_model_step(seen, extra, row)
    elif kind == "tool" and isinstance(seen.output, dict) and seen.output.keys() == {"output"}:
        seen.output = seen.output["output"]  # how the SDK keeps what is no object
    yield observed.item(seen, "langsmith", file)


def _guess_provider(row: Mapping[str, Any]) -> str:
    name = str(row.get("name") or "").lower()
    return next((known for known in ("openai", "anthropic", "gemini") if known in name), "")


def _strip_traceback(error: str) -> str:
    """An error is kept with its traceback after it."""
    return error.partition("Traceback (most recent")[0].strip() or error.strip()


def _find_error_type(error: str) -> str:
    head = error.partition("(")[0]
    return head if head.isidentifier() else ""


def _fill_model_step(seen: ObservedStep, extra: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    """The keyword arguments of an SDK's call, as `wrap_openai` and its like keep them, or
    LangChain's messages.
    """
    if not isinstance(seen.input, dict) or not observed.is_request(seen.input):
        parameters = mapping_field(extra.get("invocation_params")) or mapping_field(
            mapping_field(extra.get("metadata")).get("ls_invocation_params")
        )
        about = mapping_field(extra.get("metadata"))
        kept = {
            name: about[f"ls_{name}"]
            for name in ("temperature", "max_tokens", "stop")
            if about.get(f"ls_{name}")
        }
        seen.asked.settings = {**kept, **parameters}
        seen.asked.tools = listed_field(parameters.get("tools") or parameters.get("functions"))
        seen.asked.model = seen.asked.model or str(
            parameters.get("model") or parameters.get("model_name") or ""
        )
        tokens = any(
            mapping_field(each).get("name") == "new_token"
            for each in listed_field(row.get("events"))
        )
        seen.arrival.streamed = seen.arrival.streamed or tokens or bool(parameters.get("stream"))
        seen.usage = seen.usage or usage_of(_find_token_counts(seen.output))
        if (
            isinstance(seen.input, dict)
            and "prompts" in seen.input
            and about.get("ls_model_type") == "chat"
        ):
            seen.notes.missing.append("messages: their texts are joined")
            seen.notes.grade = "T"
        return
    body = observed.keywords(seen.input)
    first = (body.get("messages") or [{}])[0]
    if (
        seen.asked.provider == "anthropic"
        and isinstance(first, dict)
        and first.get("role") == "system"
    ):
        body = {**body, "messages": body["messages"][1:], "system": first.get("content")}
        seen.notes.assumed.append("system, which LangSmith keeps as the first message")
    seen.input = body
    events = [_read_chunk(each) for each in listed_field(row.get("events"))]
    chunks = [each for each in events if each is not None]
    if body.get("stream") and chunks and len(chunks) > 1:
        seen.arrival.chunks = [chunk for chunk, _ in chunks]
        if seen.place.start:
            seen.arrival.waits = [max(time - seen.place.start, 0.0) for _, time in chunks]
        else:
            seen.arrival.waits = ()
    if isinstance(seen.output, dict):
        seen.output = _restore_reply(seen.output, seen)


def _find_token_counts(reply: Any) -> Any:
    """The counts of tokens in LangChain's result."""
    generations = mapping_field(reply).get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    message = mapping_field(mapping_field(generations).get("message"))
    output = mapping_field(mapping_field(reply).get("llm_output"))
    places = (message.get("kwargs") or message, output)
    return next(
        (each[name] for each in places for name in _COUNTS if mapping_field(each).get(name)), None
    )


def _read_chunk(event: Any) -> tuple[dict[str, Any], float] | None:
    """A stream's chunk and its time, where an SDK kept it as JSON (those of 2024 did)."""
    kwargs = None
    if isinstance(event, dict) and event.get("name") == "new_token":
        kwargs = event.get("kwargs")
    token = kwargs.get("token") if isinstance(kwargs, dict) else None
    if isinstance(token, dict):
        return token, attribute_seconds(event.get("time"))
    return None


def _restore_reply(reply: dict[str, Any], seen: ObservedStep) -> dict[str, Any]:
    """A reply as the provider gave it: LangSmith renames its usage, and puts streams together."""
    restored = {name: value for name, value in reply.items() if name != "usage_metadata"}
    if restored.get("object") == "chat.completion.chunk":
        restored["object"] = "chat.completion"
    if isinstance(restored.get("choices"), list):
        restored["choices"] = [_repair_finish_reason(choice) for choice in restored["choices"]]
    usage = reply.get("usage_metadata")
    if "usage" not in restored and isinstance(usage, dict) and _AMOUNT & usage.keys():
        into, out = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
        if "choices" in restored:
            names = ("prompt_tokens", "completion_tokens")
        else:
            names = ("input_tokens", "output_tokens")
        restored["usage"] = {
            names[0]: into,
            names[1]: out,
            "total_tokens": int(usage.get("total_tokens") or into + out),
        }
        seen.notes.assumed.append("reply usage, by the provider's names")
    return restored


def _repair_finish_reason(choice: Any) -> Any:
    """A choice whose finish_reason is the chunk that told it (older SDKs of JavaScript)."""
    if isinstance(choice, dict) and isinstance(choice.get("finish_reason"), dict):
        return {**choice, "finish_reason": choice["finish_reason"].get("finish_reason")}
    return choice
