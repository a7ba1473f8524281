"""Logs of inspect_ai: `.eval` (a zip, zstd too) and `.json`. A sample's epoch is a run."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tape_jupyter.importers import observed
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepFailure,
    StepModel,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.rows import listed_field, mapping_field
from tape_jupyter.importers.source import RECORD_CAP, Broken, Source, TraceError
from tape_jupyter.importers.trace import Item, Run, Skipped, Span, each

TITLE = "inspect_ai log"

_REFERENCES = ("attachment://", "tc://")
_CACHED = "a model call that was answered from inspect's cache"


def recognises(source: Source) -> int:
    if source.head[:4] == b"PK\x03\x04":
        if source.path.suffix == ".eval" or "header.json" in _list_member_names(source):
            return 90
        return 0
    if {"version", "eval", "samples"} <= source.keys | source.top and {
        "task",
        "status",
    } & source.keys:
        return 85
    return 0


def _list_member_names(source: Source) -> list[str]:
    try:
        with zipfile.ZipFile(source.path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return []


def read(source: Source) -> Iterator[Item]:
    if source.head[:4] == b"PK\x03\x04":
        for member in source.members(_is_sample):
            yield from each(partial(_read_member, source.name, member))
        return
    for path, value, line in source.values(lambda path: path in ((), ("samples",))):
        if isinstance(value, Broken):
            yield Skipped(f"the file breaks off: {value.reason}", line=line, text=value.text)
        elif path == ("samples", "[]"):
            yield from each(partial(_read_sample, source.name, value, line), line)


def _read_member(file: str, member: Source) -> Iterator[Item]:
    try:
        sample = member.json()
    except TraceError as error:
        text = member.text() if member.size < RECORD_CAP else ""
        yield Skipped(f"a sample that {error.reason}", text=text)
        return
    yield from _read_sample(file, sample, 0)


def _is_sample(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


@dataclass(slots=True)
class _Pool:
    """What a sample keeps once and names often: texts, messages, requests. `budget`: characters it
    may become.
    """

    texts: Mapping[str, Any]
    messages: Sequence[Any] = ()
    calls: Sequence[Any] = ()
    budget: int = RECORD_CAP
    lost: set[str] = field(default_factory=set)

    def resolve_texts(self, value: Any) -> Any:
        """The value with its texts in place."""
        if isinstance(value, str):
            return self._resolve_text(value)
        if isinstance(value, list):
            return [self.resolve_texts(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {name: self.resolve_texts(each) for name, each in value.items()}

    def _resolve_text(self, value: str) -> str:
        start = next((each for each in _REFERENCES if value.startswith(each)), "")
        name = value[len(start) :]
        if not start or " " in name or len(name) > 100:
            return value
        if name not in self.texts:
            self.lost.add(name)
            return value
        resolved = str(self.texts[name])
        self._spend_budget(len(resolved))
        return resolved

    def slices(self, items: Sequence[Any], places: Any) -> list[Any]:
        """`[[start, end], ...]` into a list."""
        selected: list[Any] = []
        for start, end in places or ():
            part = items[start:end]
            self._spend_budget(sum(len(json.dumps(each)) for each in part))
            selected += part
        return selected

    def _spend_budget(self, size: int) -> None:
        self.budget -= size
        if self.budget < 0:
            raise ValueError("its references expand to too much data")


def _read_sample(file: str, sample: Mapping[str, Any], line: int) -> Iterator[Item]:
    data = mapping_field(sample.get("events_data"))
    pool = _Pool(
        mapping_field(sample.get("attachments")), listed_field(data.get("messages") or sample.get("message_pool")),
        listed_field(data.get("calls") or sample.get("call_pool")),
    )  # fmt: skip
    trace = f"{sample.get('id', '')}_epoch_{sample.get('epoch', 1)}"
    about = {
        "sample": sample.get("id"),
        "epoch": sample.get("epoch"),
        "scores": _read_scores(sample.get("scores")),
    }
    yield Run(
        trace,
        f"sample {sample.get('id', '')}, epoch {sample.get('epoch', 1)}",
        {k: v for k, v in about.items() if v},
    )
    events = listed_field(sample.get("events"))
    if events:
        yield from _read_events(_Log(file, trace, pool, line), events, "")
    else:
        yield from _read_messages(_Log(file, trace, pool, line), sample)
    if pool.lost:
        yield Skipped("a text that is kept in attachments that are not there", len(pool.lost), line)


def _read_scores(scores: Any) -> dict[str, Any]:
    return {
        name: each.get("value")
        for name, each in mapping_field(scores).items()
        if isinstance(each, Mapping)
    }


@dataclass(slots=True)
class _Log:
    file: str
    trace: str
    pool: _Pool
    line: int
    opened: list[str] = field(default_factory=list)
    count: int = 0

    def identify_event(self, event: Mapping[str, Any]) -> str:
        self.count += 1
        return str(event.get("uuid") or f"{event.get('event')}-{self.count}")


def _read_events(log: _Log, events: Sequence[Any], parent: str) -> Iterator[Item]:
    for event in events:
        if isinstance(event, Mapping):
            yield from each(partial(_read_event, log, event, parent), log.line)
        else:
            yield Skipped("an event that is not a JSON object", line=log.line)


def _read_event(log: _Log, event: Mapping[str, Any], parent: str) -> Iterator[Item]:
    kind = str(event.get("event") or "")
    above = str(event.get("span_id") or (log.opened[-1] if log.opened else "") or parent)
    if kind == "model":
        yield _build_model_call(log, event, above)
    elif kind == "tool":
        event_id = (
            str(event.get("span_id") or "")
            + "/"
            + str(event.get("id") or log.identify_event(event))
        )
        yield _build_tool_call(log, event, event_id, above)
        yield from _read_events(log, event.get("events") or (), event_id)
    elif kind == "span_begin":
        outer = str(event.get("parent_id") or "")
        yield Span(
            str(event.get("id")),
            str(event.get("name") or ""),
            outer,
            log.trace,
            attribute_seconds(event.get("timestamp")),
        )
    elif (kind == "step" and event.get("action") == "begin") or kind == "subtask":
        event_id = log.identify_event(event)
        yield Span(
            event_id,
            str(event.get("name") or kind),
            above,
            log.trace,
            attribute_seconds(event.get("timestamp")),
        )
        if kind == "step":
            log.opened.append(event_id)
        yield from _read_events(log, event.get("events") or (), event_id)
    elif kind in ("span_end", "step"):
        if kind == "step" and log.opened:
            log.opened.pop()
        yield Skipped("the end of a span", line=log.line)
    else:
        yield Skipped(f"an event of kind {kind[:40] or 'none'}: no call", line=log.line)


def _build_model_call(log: _Log, event: Mapping[str, Any], parent: str) -> Item:
    pool = log.pool
    provider, _, model = str(event.get("model") or "").rpartition("/")
    if event.get("cache") == "read":
        return Skipped(_CACHED, line=log.line)
    start = attribute_seconds(event.get("timestamp"))
    end = attribute_seconds(event.get("completed"))
    host = provider.partition("/")[0]
    output = pool.resolve_texts(event.get("output") or {})
    seen = ObservedStep(
        kind="model",
        name=str(event.get("model") or ""),
        place=StepPlace(
            id=log.identify_event(event),
            trace=log.trace,
            parent=parent,
            start=start,
            end=end or start + float(output.get("time") or 0.0),
            line=log.line,
        ),
        failure=StepFailure(message=str(event.get("error") or "")),
        asked=StepModel(
            model=model,
            provider={"google": "gemini", "azureai": "azure"}.get(host, host),
        ),
        usage=usage_of(output.get("usage")),
    )
    if event.get("retries"):
        seen.notes.missing.append(f"{event['retries']} retries before it")
    call = event.get("call")
    if isinstance(call, Mapping) and isinstance(call.get("request"), Mapping):
        seen.input = _restore_request(pool, call, seen)
        seen.output = pool.resolve_texts(call.get("response"))
        seen.sent = True
        seen.failure.message = seen.failure.message or str(call.get("error") or "")
        return observed.item(seen, "inspect_ai", log.file)
    input_messages = event.get("input") or pool.slices(pool.messages, event.get("input_refs"))
    seen.input, seen.output = pool.resolve_texts(input_messages), output.get("choices")
    settings = dict(mapping_field(event.get("config")))
    tools = pool.resolve_texts(listed_field(event.get("tools")))
    # without tools, nothing was to be chosen
    if tools:
        settings["tool_choice"] = event.get("tool_choice")
    else:
        settings.pop("tool_choice", None)
    seen.asked.settings, seen.asked.tools = settings, tools
    return observed.item(seen, "inspect_ai", log.file)


def _restore_request(pool: _Pool, call: Mapping[str, Any], seen: ObservedStep) -> dict[str, Any]:
    """The request as it was sent: inspect keeps what was not set as null, and long lists apart."""
    request = dict(call["request"])
    if call.get("call_refs") and call.get("call_key"):
        request[str(call["call_key"])] = pool.slices(pool.calls, call["call_refs"])
    request = pool.resolve_texts(request)
    if any(value is None for value in request.values()):
        seen.notes.assumed.append("nulls of the request were not sent")
    return {name: value for name, value in request.items() if value is not None}


def _build_tool_call(log: _Log, event: Mapping[str, Any], call_id: str, parent: str) -> Item:
    failed = event.get("error")
    failure = StepFailure()
    if isinstance(failed, Mapping):
        failure.message = str(failed.get("message") or failed.get("type") or "error")
        if failed.get("type") == "timeout":
            failure.type_name = "TimeoutError"
    seen = ObservedStep(
        kind="tool",
        name=str(event.get("function") or ""),
        place=StepPlace(
            id=call_id,
            trace=log.trace,
            parent=parent,
            start=attribute_seconds(event.get("timestamp")),
            end=attribute_seconds(event.get("completed")),
            line=log.line,
        ),
        input=log.pool.resolve_texts(event.get("arguments") or {}),
        output=log.pool.resolve_texts(event.get("result")),
        failure=failure,
    )
    return observed.item(seen, "inspect_ai", log.file)


def _read_messages(log: _Log, sample: Mapping[str, Any]) -> Iterator[Item]:
    """A sample without events has its messages: the tool calls are told by them."""
    uses: dict[str, Mapping[str, Any]] = {}
    for number, message in enumerate(log.pool.resolve_texts(listed_field(sample.get("messages")))):
        if not isinstance(message, Mapping):
            yield Skipped("a message that is not a JSON object", line=log.line)
        elif message.get("role") == "tool":
            call_id = str(message.get("tool_call_id") or number)
            event = {
                **message,
                "id": call_id,
                "result": message.get("content"),
                **uses.get(call_id, {"arguments": None}),
            }
            item = _build_tool_call(log, event, call_id, "")
            if call_id not in uses:
                getattr(item, "missing", []).append("arguments")
            yield item
        else:
            calls = (
                use for use in listed_field(message.get("tool_calls")) if isinstance(use, Mapping)
            )
            uses |= {str(use.get("id")): {"arguments": use.get("arguments")} for use in calls}
            yield Skipped("a message of a sample that was logged without its events", line=log.line)
