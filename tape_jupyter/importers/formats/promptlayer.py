"""Requests of PromptLayer: a blueprint of messages, and the model's name and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import messages, observed
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import (
    ObservedStep,
    StepFailure,
    StepModel,
    StepNotes,
    StepPlace,
    usage_of,
)
from tape_jupyter.importers.rows import listed_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Skipped

TITLE = "PromptLayer"


def recognises(source: Source) -> int:
    return 90 if {"prompt_blueprint", "prompt_template"} <= source.keys else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name), "requests", "data", "items")


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    blueprint = mapping_field(row.get("prompt_blueprint"))
    template = mapping_field(blueprint.get("prompt_template"))
    conversation = [
        each for each in listed_field(template.get("messages")) if isinstance(each, Mapping)
    ]
    if not conversation and isinstance(template.get("content"), list):  # a completion
        conversation = [{"role": "user", "content": template["content"]}]
    if not conversation:
        yield Skipped("a request without its messages", line=line)
        return
    answer = conversation.pop() if conversation[-1].get("role") == "assistant" else None
    model = mapping_field(mapping_field(blueprint.get("metadata")).get("model"))
    tools = [*listed_field(template.get("tools")), *listed_field(template.get("functions"))]
    seen = ObservedStep(
        kind="model",
        name=str(row.get("prompt_name") or ""),
        place=StepPlace(
            id=str(row.get("id") or row.get("request_id") or line),
            trace=str(row.get("trace_id") or ""),
            start=attribute_seconds(row.get("request_start_time")),
            end=attribute_seconds(row.get("request_end_time")),
            line=line,
        ),
        input={"prompt": messages.messages_of(conversation)},
        output=messages.said_messages(answer) if answer else row.get("response"),
        failure=StepFailure(message=str(row.get("error_message") or "")),
        asked=StepModel(
            model=str(model.get("name") or row.get("model") or ""),
            provider=str(model.get("provider") or row.get("provider") or ""),
            settings=mapping_field(model.get("parameters")),
            tools=tools,
        ),
        usage=usage_of(row),
        notes=StepNotes(grade="P"),
    )
    yield observed.item(seen, "promptlayer", file)
