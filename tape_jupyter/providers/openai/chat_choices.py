"""What a stream of Chat Completions amounts to: its choices, and where in it each text stands.

Chunks are added up by what they say and not by a schema: hosts have keys of their own, and lists of
parts for texts.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tape_jupyter.providers.json_access import as_mapping, as_text
from tape_jupyter.providers.streams.events import StreamEvent, join_halves

TEXTS: Final = ("content", "refusal", "reasoning", "reasoning_content")
"""Keys of a delta whose texts follow each other; any other text is told once."""
CHUNK: Final = ("choices", "usage", "error", "obfuscation")
_OBJECT: Final = {"chat.completion.chunk": "chat.completion"}

Path = tuple[Any, ...]


@dataclass
class Leaf:
    """A long text of the message: where in the stream its parts stand (event, path in its data),
    and what they are.
    """

    at: list[tuple[int, Path]] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    def add(self, place: int, path: Path, part: str) -> None:
        self.at.append((place, path))
        self.parts.append(part)


@dataclass
class StreamedChoice:
    """A choice so far. `tools` are the calls by their index, `where` in which entries of which
    events each is told.
    """

    index: Any
    value: dict[str, Any] = field(default_factory=dict)
    message: dict[str, Any] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    where: dict[str, list[tuple[int, Path]]] = field(default_factory=dict)
    arguments: dict[str, Leaf] = field(default_factory=dict)

    def build_choice(self) -> dict[str, Any]:
        message = copy.deepcopy(self.message)
        for key, leaf in self.leaves.items():
            if leaf.parts:
                message[key] = join_halves("".join(leaf.parts))
        for key, leaf in self.arguments.items():
            if leaf.parts:
                call = self.tools[key]
                arguments = {get_arguments_key(call): join_halves("".join(leaf.parts))}
                call[inner_of(call)] = {**as_mapping(call.get(inner_of(call))), **arguments}
        if self.tools:
            message["tool_calls"] = copy.deepcopy(list(self.tools.values()))
        return {"index": self.index, **self.value, "message": message}


def read(events: Sequence[StreamEvent]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for event in events:
        for key, value in as_mapping(event.data).items():
            if key not in CHUNK and (value or key not in message):
                if isinstance(value, str):
                    message[key] = _OBJECT.get(value, value)
                else:
                    message[key] = value
            elif key in ("usage", "error") and value is not None:
                message[key] = value
    choices = [choice.build_choice() for choice in choices_of(events)]
    if choices or "error" not in message:
        return {**message, "choices": choices}
    return message


def choices_of(events: Sequence[StreamEvent]) -> list[StreamedChoice]:
    by_index: dict[str, StreamedChoice] = {}
    for place, event in enumerate(events):
        choices = as_mapping(event.data).get("choices")
        for number, chunk in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(chunk, dict):
                index = chunk.get("index", 0)
                _add_chunk(
                    by_index.setdefault(str(index), StreamedChoice(index)),
                    place,
                    ("choices", number),
                    chunk,
                )
    return list(by_index.values())


def _add_chunk(choice: StreamedChoice, place: int, path: Path, chunk: Mapping[str, Any]) -> None:
    for key, value in chunk.items():
        if (
            key == "logprobs"
            and isinstance(value, dict)
            and isinstance(choice.value.get(key), dict)
        ):
            choice.value[key] = _join_logprobs(choice.value[key], value)
        elif key not in ("index", "delta") and (value is not None or key not in choice.value):
            choice.value[key] = value
    for key, value in as_mapping(chunk.get("delta")).items():
        _add_delta(choice, place, (*path, "delta", key), value)


def _add_delta(choice: StreamedChoice, place: int, path: Path, value: Any) -> None:
    key = path[-1]
    if key == "tool_calls" and isinstance(value, list):
        for number, each in enumerate(value):
            _add_call_delta(choice, place, (*path, number), as_mapping(each))
    elif key in TEXTS and isinstance(value, str):
        choice.leaves.setdefault(key, Leaf()).add(place, path, value)
        choice.message.setdefault(key, None)
    elif isinstance(value, list) and isinstance(choice.message.get(key), list):
        choice.message[key] = _extend_parts(choice.message[key], value)
    elif key == "function_call" and isinstance(value, dict):
        before = as_mapping(choice.message.get(key))
        choice.message[key] = {
            k: as_text(before.get(k)) + as_text(value.get(k)) for k in {**before, **value}
        }
    elif value is not None or key not in choice.message:
        choice.message[key] = copy.deepcopy(value)


def _add_call_delta(
    choice: StreamedChoice, place: int, path: Path, call_delta: Mapping[str, Any]
) -> None:
    """Some hosts leave the index out, and send each call whole."""
    index = call_delta.get("index")
    name = f"+{len(choice.tools)}" if index is None else str(index)
    call = choice.tools.setdefault(name, {})
    choice.where.setdefault(name, []).append((place, path))
    for key, value in call_delta.items():
        if key in ("function", "custom") and isinstance(value, dict):
            inner = call[key] = dict(as_mapping(call.get(key)))
            for each, part in value.items():
                if each in ("arguments", "input") and isinstance(part, str):
                    choice.arguments.setdefault(name, Leaf()).add(place, (*path, key, each), part)
                    inner.setdefault(each, "")
                elif part or each not in inner:
                    inner[each] = part
        elif key != "index" and (value or key not in call):
            call[key] = value


def inner_of(call: Mapping[str, Any]) -> str:
    return "custom" if "custom" in call else "function"


def get_arguments_key(call: Mapping[str, Any]) -> str:
    return "input" if "custom" in call else "arguments"


def _join_logprobs(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _join_logprob_fields(before.get(key), more.get(key)) for key in {**before, **more}}


def _join_logprob_fields(before: Any, more: Any) -> Any:
    if isinstance(before, list) and isinstance(more, list):
        return [*before, *more]
    return more if more is not None else before


def _extend_parts(before: list[Any], more: list[Any]) -> list[Any]:
    """Lists of parts go on: a text part joins the one before it of its kind and index (Mistral,
    OpenRouter).
    """
    out = copy.deepcopy(before)
    for part in more:
        last = out[-1] if out else None
        if isinstance(part, dict) and isinstance(last, dict) and _may_join(last, part):
            for key, value in part.items():
                if key in ("text", "summary", "data") and isinstance(value, str):
                    last[key] = as_text(last.get(key)) + value
                elif isinstance(value, list) and isinstance(last.get(key), list):
                    last[key] = _extend_parts(last[key], value)
                elif value is not None:
                    last[key] = value
        else:
            out.append(copy.deepcopy(part))
    return out


def _may_join(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    alike = one.get("type") == two.get("type") and one.get("index") == two.get("index")
    return (
        alike
        and isinstance(one.get("type"), str)
        and ("text" in two or "thinking" in two or "summary" in two)
    )
