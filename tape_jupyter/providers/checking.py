"""Providers room: an edited message field by field, and what is wrong with it, said before it is kept.

`fields` and `problems` are in the shapes of the view's protocol (js/src/view/protocol.ts: Field, Problem). An error
keeps a message from being written, a warning does not: empty texts, unknown tools and broken schemas are what people
try things with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.providers import wire
from tape_jupyter.providers.editing import CODECS, Path, get, put, texts
from tape_jupyter.providers.look import dig, mapping, maps, text

LIMIT: Final = 4 * 2**20
"""Bytes that an edit may have."""

_STOPS: Final = {
    "anthropic": ("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
    "openai_chat": ("stop", "length", "tool_calls", "content_filter"),
    "mistral": ("stop", "length", "tool_calls", "error", "model_length"),
    "openai_responses": ("completed", "incomplete", "failed"),
}
_LISTS: Final = {"anthropic": "content", "openai_responses": "output"}
_SHOWN: Final = 5

Field = dict[str, Any]
Problem = dict[str, str]


# ---------------------------------------------------------------- fields


def fields(name: str, message: Mapping[str, Any], tools: Iterable[str] = ()) -> list[Field]:
    """What a person changes most: texts, thinking, tool calls with name and arguments, how the reply ends."""
    offered = list(dict.fromkeys(tools))
    found = [_field(path, "text", "text", get(message, path)) for path in texts(name, message)]
    found += [_field(path, "thinking", "text", told) for path, told in _thinking(name, message)]
    for number, (path, arguments) in enumerate(tool_calls(name, message), 1):
        called = text(get(message, path))
        found.append({**_field(path, f"tool call {number}", "name", called), "choices": offered or [called]})
        found.append(_field(arguments, f"arguments of {called or 'the tool'}", "json", get(message, arguments)))
    for path in _ends(name, message):
        told = text(get(message, path))
        choices = list(dict.fromkeys((*_STOPS[name], told))) if told else [*_STOPS[name]]
        found.append({**_field(path, "how it ends", "choice", told), "choices": choices})
    return found


def _field(path: Path, label: str, kind: str, value: Any) -> Field:
    if kind == "json":
        value = _pretty(value)
    return {"path": spelled_path(path), "label": label, "kind": kind, "value": value if isinstance(value, str) else ""}


def _pretty(value: Any) -> str:
    """Arguments travel as JSON or as JSON in a text; both are shown as JSON that people can read."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return text(value)
    return json.dumps(value, indent=2, ensure_ascii=False)


def _thinking(name: str, message: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    listed = message.get(_LISTS.get(name, "choices"))
    for at, each in enumerate(listed if isinstance(listed, list) else ()):
        if name == "anthropic" and dig(each, "type") == "thinking":
            yield ("content", at, "thinking"), text(each.get("thinking"))
        elif name == "openai_responses" and dig(each, "type") == "reasoning":
            for place, part in enumerate(maps(each.get("summary"))):
                yield ("output", at, "summary", place, "text"), text(part.get("text"))
        elif name in ("openai_chat", "mistral"):
            for key in ("reasoning", "reasoning_content"):
                if text(dig(each, f"message.{key}")):
                    yield ("choices", at, "message", key), text(dig(each, f"message.{key}"))


def tool_calls(name: str, message: Mapping[str, Any]) -> Iterator[tuple[Path, Path]]:
    """Of each tool call that the program is asked to make: where its name and its arguments stand."""
    if name == "anthropic":
        for at, block in enumerate(_listed(message.get("content"))):
            if dig(block, "type") == "tool_use":
                yield ("content", at, "name"), ("content", at, "input")
    elif name == "openai_responses":
        keys = {"function_call": "arguments", "custom_tool_call": "input"}
        for at, item in enumerate(_listed(message.get("output"))):
            if key := keys.get(text(dig(item, "type"))):
                yield ("output", at, "name"), ("output", at, key)
    else:
        for at, choice in enumerate(_listed(message.get("choices"))):
            for number, call in enumerate(_listed(dig(choice, "message.tool_calls"))):
                where: Path = ("choices", at, "message", "tool_calls", number)
                inner, key = ("custom", "input") if "custom" in mapping(call) else ("function", "arguments")
                yield (*where, inner, "name"), (*where, inner, key)


def _ends(name: str, message: Mapping[str, Any]) -> Iterator[Path]:
    if name == "anthropic":
        yield ("stop_reason",)
    elif name == "openai_responses":
        yield ("status",)
    else:
        yield from (("choices", at, "finish_reason") for at in range(len(_listed(message.get("choices")))))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def spelled_path(path: Path) -> str:
    """`content[0].text`."""
    told = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return told.removeprefix(".")


def with_fields(name: str, message: Mapping[str, Any], changes: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    """The message with fields as a person left them. Raises TapeUsageError for a field that it does not have."""
    known = {field["path"]: field for field in fields(name, message)}
    places = {spelled_path(path): path for path in _all_places(name, message)}
    changed: Any = message
    for change in changes:
        path, value = change["path"], change["value"]
        field = known.get(path)
        if field is None:
            raise TapeUsageError(f"the message has no field {path[:80]!r}; it has {', '.join(known) or 'none'}")
        if field["value"] != value:
            changed = put(changed, places[path], _given(field, get(message, places[path]), value))
    return dict(changed)


def _all_places(name: str, message: Mapping[str, Any]) -> Iterator[Path]:
    yield from texts(name, message)
    yield from (path for path, _ in _thinking(name, message))
    yield from (path for both in tool_calls(name, message) for path in both)
    yield from _ends(name, message)


def _given(field: Field, recorded: Any, value: str) -> Any:
    """A field's text as what stands in the message: arguments that are JSON in a text stay JSON in a text."""
    if field["kind"] != "json":
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        if isinstance(recorded, str):
            return value
        raise TapeUsageError(f"{field['label']}: this is no JSON ({error})") from None
    return json.dumps(parsed, ensure_ascii=False) if isinstance(recorded, str) else parsed


# ---------------------------------------------------------------- problems


def problem(level: str, path: str, said: str) -> Problem:
    return {"level": level, "path": path, "text": said}


def too_long(given: str) -> list[Problem]:
    size = len(given.encode("utf-8", "surrogatepass"))
    if size <= LIMIT:
        return []
    return [problem("error", "", f"this has {size / 2**20:.1f} MiB; an edit may have {LIMIT // 2**20}")]


def problems(
    name: str, recorded: Mapping[str, Any], message: Any, declared: Mapping[str, Any], answered: Iterable[str] = ()
) -> list[Problem]:
    """What is wrong with a message. `declared`: the request's tools by name, each with its JSON schema (or None);
    `answered`: ids of tool calls whose results later requests of the recording hand back.
    """
    if not isinstance(message, dict) or name not in CODECS:
        return [problem("error", "", "a message is a JSON object")]
    return [
        *_shape(name, message),
        *_tools(name, message, declared),
        *_dangling(name, recorded, message, frozenset(answered)),
    ]


def _shape(name: str, message: Mapping[str, Any]) -> Iterator[Problem]:
    key = _LISTS.get(name, "choices")
    listed = message.get(key)
    if not isinstance(listed, list):
        yield problem("error", key, f"a message of this API has a list {key!r}")
        return
    for at, each in enumerate(listed):
        where = f"{key}[{at}]"
        if not isinstance(each, dict):
            yield problem("error", where, "this is no JSON object")
        elif key == "choices" and not isinstance(each.get("message"), dict):
            yield problem("error", f"{where}.message", "a choice has a message")
        elif key != "choices" and not text(each.get("type")):
            yield problem("error", f"{where}.type", "each part of a message says what it is: it has a type")
        elif "text" in each and not isinstance(each["text"], str):
            yield problem("error", f"{where}.text", "a text is a JSON string")
        elif key == "choices" and not isinstance(dig(each, "message.content"), str | list | None):
            yield problem("error", f"{where}.message.content", "a content is a text, a list of parts or null")


def _tools(name: str, message: Mapping[str, Any], declared: Mapping[str, Any]) -> Iterator[Problem]:
    for at_name, at_arguments in tool_calls(name, message):
        called, arguments = get(message, at_name), get(message, at_arguments)
        if not isinstance(called, str) or not called:
            yield problem("error", spelled_path(at_name), "a tool call names its tool")
            continue
        if called not in declared:
            have = ", ".join(list(declared)[:_SHOWN]) or "none"
            yield problem("warning", spelled_path(at_name), f"the request offers no tool {called!r}; it offers {have}")
        yield from _arguments(spelled_path(at_arguments), arguments, declared.get(called), plain=at_arguments[-1])


def _arguments(path: str, arguments: Any, schema: Any, plain: Any) -> Iterator[Problem]:
    if plain == "input" and isinstance(arguments, str):
        return  # free text for a custom tool
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            yield problem("warning", path, f"the arguments are no JSON: {error}")
            return
    if not isinstance(arguments, dict):
        yield problem("warning", path, "the arguments of a tool are a JSON object")
    elif isinstance(schema, dict):
        yield from (problem("warning", f"{path}{at}", said) for at, said in breaches(arguments, schema))


def breaches(value: Any, schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where and how a value breaks a JSON schema, a few of all; none where the schema itself is no good."""
    try:  # they come with nbformat; without them nothing is said
        jsonschema, registry = import_module("jsonschema"), import_module("referencing").Registry()
    except ImportError:
        return []
    try:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        checker = kind(schema, registry=registry)  # an empty one: a `$ref` to a URL is not fetched
        found = sorted(checker.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))[:_SHOWN]
    except Exception:  # a schema may hold anything: a broken pattern, a reference to what is not there
        return []
    return [("".join(_step(step) for step in error.absolute_path), f"breaks the tool's schema: {error.message[:200]}")
            for error in found]  # fmt: skip


def _step(step: Any) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def _dangling(
    name: str, recorded: Mapping[str, Any], message: Mapping[str, Any], answered: frozenset[str]
) -> Iterator[Problem]:
    """Tool calls that are gone, and whose results the program handed back later: those requests will differ."""
    gone = call_ids(name, recorded) - call_ids(name, message)
    for call in sorted(gone & answered):
        said = f"a later request of the recording hands back the result of {call}; without the call it will be another"
        yield problem("warning", _LISTS.get(name, "choices"), said)


def call_ids(name: str, message: Mapping[str, Any]) -> set[str]:
    """The ids by which results of a message's tool calls are handed back."""
    ids: set[str] = set()
    for path, _ in tool_calls(name, message):
        where = path[:-2] if name in ("openai_chat", "mistral") else path[:-1]
        call = mapping(get(message, where))
        ids.add(text(call.get("call_id")) or text(call.get("id")))
    return ids - {""}


def schemas(body: Any) -> dict[str, Any]:
    """The tools that a request declares by name: each with the JSON schema of its arguments, None without one."""
    if isinstance(body, bytes):
        body = wire.loads(body)
    found: dict[str, Any] = {}
    for tool in (*maps(dig(body, "tools")), *maps(dig(body, "functions"))):
        inner = tool.get("function") or tool.get("custom") or tool
        name = text(dig(inner, "name"))
        if name:
            keys = (dig(inner, key) for key in ("input_schema", "parameters"))
            found[name] = next((schema for schema in keys if isinstance(schema, dict)), None)
    return found
