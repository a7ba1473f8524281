"""An edited message field by field, and what is wrong with it, said before it is kept.

`editable_fields` and `problems` are in the shapes of the view's protocol (js/src/view/protocol.ts: Field,
Problem). An error keeps a message from being written, a warning does not: empty texts, unknown
tools and broken schemas are what people try things with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from tape_jupyter.core.plain_text import format_json
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.providers import http
from tape_jupyter.providers.editing import format_of, require_format, value_at, with_value_at
from tape_jupyter.providers.json_access import as_mapping, as_text, dig, maps
from tape_jupyter.providers.protocol import MessageFormat, Path

LIMIT: Final = 4 * 2**20
"""Bytes that an edit may have."""

_SHOWN: Final = 5

Field = dict[str, Any]
Problem = dict[str, str]


# ---------------------------------------------------------------- fields


def editable_fields(
    name: str, message: Mapping[str, Any], tools: Iterable[str] = ()
) -> list[Field]:
    """What a person changes most: texts, thinking, tool calls with name and arguments, how the
    reply ends.
    """
    offered = list(dict.fromkeys(tools))
    form = require_format(name)
    fields = [
        _build_field(path, "text", "text", value_at(message, path)) for path in form.texts(message)
    ]
    fields += [
        _build_field(path, "thinking", "text", as_text(value_at(message, path)))
        for path in form.thinking(message)
    ]
    for number, (_, path, arguments) in enumerate(form.tool_calls(message), 1):
        called = as_text(value_at(message, path))
        fields.append(
            {
                **_build_field(path, f"tool call {number}", "name", called),
                "choices": offered or [called],
            }
        )
        fields.append(
            _build_field(
                arguments,
                f"arguments of {called or 'the tool'}",
                "json",
                value_at(message, arguments),
            )
        )
    for path in form.stops(message):
        stop_reason = as_text(value_at(message, path))
        choices = [each for each in dict.fromkeys((*form.stop_reasons, stop_reason)) if each]
        fields.append(
            {**_build_field(path, "how it ends", "choice", stop_reason), "choices": choices}
        )
    return fields


def _build_field(path: Path, label: str, kind: str, value: Any) -> Field:
    if kind == "json":
        value = _format_arguments(value)
    return {
        "path": spelled_path(path),
        "label": label,
        "kind": kind,
        "value": value if isinstance(value, str) else "",
    }


def _format_arguments(value: Any) -> str:
    """Arguments travel as JSON or as JSON in a text; both are shown as JSON that people can read."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return as_text(value)
    return format_json(value)


def spelled_path(path: Path) -> str:
    """`content[0].text`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def with_fields(
    name: str, message: Mapping[str, Any], changes: Iterable[Mapping[str, str]]
) -> dict[str, Any]:
    """The message with fields as a person left them. Raises TapeUsageError for a field that it does
    not have.
    """
    known = {field["path"]: field for field in editable_fields(name, message)}
    places = {spelled_path(path): path for path in _iterate_places(name, message)}
    changed: Any = message
    for change in changes:
        path, value = change["path"], change["value"]
        field = known.get(path)
        if field is None:
            raise TapeUsageError(
                f"the message has no field {path[:80]!r}; it has {', '.join(known) or 'none'}"
            )
        if field["value"] != value:
            changed = with_value_at(
                changed, places[path], _parse_field(field, value_at(message, places[path]), value)
            )
    return dict(changed)


def _iterate_places(name: str, message: Mapping[str, Any]) -> Iterator[Path]:
    form = require_format(name)
    yield from form.texts(message)
    yield from form.thinking(message)
    for call in form.tool_calls(message):
        yield from (call.name, call.arguments)
    yield from form.stops(message)


def _parse_field(field: Field, recorded: Any, value: str) -> Any:
    """A field's text as what stands in the message: arguments that are JSON in a text stay JSON in
    a text.
    """
    if field["kind"] != "json":
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        if isinstance(recorded, str):
            return value
        raise TapeUsageError(f"{field['label']}: this is not JSON ({error})") from None
    if isinstance(recorded, str):
        return json.dumps(parsed, ensure_ascii=False)
    return parsed


# ---------------------------------------------------------------- problems


def problem(level: str, path: str, reason: str) -> Problem:
    return {"level": level, "path": path, "text": reason}


def too_long(text: str) -> list[Problem]:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size <= LIMIT:
        return []
    return [
        problem("error", "", f"this has {size / 2**20:.1f} MiB; an edit may have {LIMIT // 2**20}")
    ]


def problems(
    name: str,
    recorded: Mapping[str, Any],
    message: Any,
    declared: Mapping[str, Any],
    answered: Iterable[str] = (),
) -> list[Problem]:
    """What is wrong with a message. `declared`: the request's tools by name, each with its JSON
    schema (or None); `answered`: ids of tool calls whose results later requests of the recording
    hand back.
    """
    form = format_of(name)
    if not isinstance(message, dict) or form is None:
        return [problem("error", "", "a message is a JSON object")]
    return [
        *_check_shape(form, message),
        *_check_tools(form, message, declared),
        *_check_dangling(form, recorded, message, frozenset(answered)),
    ]


def _check_shape(form: MessageFormat, message: Mapping[str, Any]) -> Iterator[Problem]:
    parts = message.get(form.parts)
    if not isinstance(parts, list):
        yield problem("error", form.parts, f"a message of this API has a list {form.parts!r}")
        return
    for at, part in enumerate(parts):
        where = f"{form.parts}[{at}]"
        if not isinstance(part, dict):
            yield problem("error", where, "this is not a JSON object")
            continue
        missing, reason = form.part_problem(part)
        if reason:
            yield problem("error", f"{where}.{missing}", reason)
        elif "text" in part and not isinstance(part["text"], str):
            yield problem("error", f"{where}.text", "a text is a JSON string")


def _check_tools(
    form: MessageFormat, message: Mapping[str, Any], declared: Mapping[str, Any]
) -> Iterator[Problem]:
    for _, at_name, at_arguments in form.tool_calls(message):
        called, arguments = value_at(message, at_name), value_at(message, at_arguments)
        if not isinstance(called, str) or not called:
            yield problem("error", spelled_path(at_name), "a tool call names its tool")
            continue
        if called not in declared:
            have = ", ".join(list(declared)[:_SHOWN]) or "none"
            yield problem(
                "warning",
                spelled_path(at_name),
                f"the request offers no tool {called!r}; it offers {have}",
            )
        yield from _check_arguments(
            spelled_path(at_arguments), arguments, declared.get(called), plain=at_arguments[-1]
        )


def _check_arguments(path: str, arguments: Any, schema: Any, plain: Any) -> Iterator[Problem]:
    if plain == "input" and isinstance(arguments, str):
        return  # free text for a custom tool
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            yield problem("warning", path, f"the arguments are not JSON: {error}")
            return
    if not isinstance(arguments, dict):
        yield problem("warning", path, "the arguments of a tool are a JSON object")
    elif isinstance(schema, dict):
        yield from (
            problem("warning", f"{path}{at}", reason) for at, reason in breaches(arguments, schema)
        )


def breaches(value: Any, schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where and how a value breaks a JSON schema, a few of all; none where the schema itself is no
    good.
    """
    try:  # they come with nbformat; without them nothing is said
        jsonschema, registry = import_module("jsonschema"), import_module("referencing").Registry()
    except ImportError:
        return []
    try:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        checker = kind(schema, registry=registry)  # an empty one: a `$ref` to a URL is not fetched
        errors = sorted(
            checker.iter_errors(value), key=lambda error: list(map(str, error.absolute_path))
        )[:_SHOWN]
    except (
        Exception
    ):  # a schema may hold anything: a broken pattern, a reference to what is not there
        return []
    return [
        (
            "".join(_format_step(step) for step in error.absolute_path),
            f"breaks the tool's schema: {error.message[:200]}",
        )
        for error in errors
    ]


def _format_step(step: Any) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def _check_dangling(
    form: MessageFormat,
    recorded: Mapping[str, Any],
    message: Mapping[str, Any],
    answered: frozenset[str],
) -> Iterator[Problem]:
    """Tool calls that are gone, and whose results the program handed back later: those requests
    will differ.
    """
    removed = _collect_call_ids(form, recorded) - _collect_call_ids(form, message)
    for call in sorted(removed & answered):
        reason = (
            f"a later request of the recording hands back the result of {call}; "
            "without the call it will be another"
        )
        yield problem("warning", form.parts, reason)


def call_ids(name: str, message: Mapping[str, Any]) -> set[str]:
    """The ids by which results of a message's tool calls are handed back."""
    return _collect_call_ids(require_format(name), message)


def _collect_call_ids(form: MessageFormat, message: Mapping[str, Any]) -> set[str]:
    calls = [as_mapping(value_at(message, each.call)) for each in form.tool_calls(message)]
    return {as_text(call.get("call_id")) or as_text(call.get("id")) for call in calls} - {""}


def schemas(body: Any) -> dict[str, Any]:
    """The tools that a request declares by name: each with the JSON schema of its arguments, None
    without one.
    """
    if isinstance(body, bytes):
        body = http.loads(body)
    by_name: dict[str, Any] = {}
    for tool in (*maps(dig(body, "tools")), *maps(dig(body, "functions"))):
        inner = tool.get("function") or tool.get("custom") or tool
        name = as_text(dig(inner, "name"))
        if name:
            keys = (dig(inner, key) for key in ("input_schema", "parameters"))
            by_name[name] = next((schema for schema in keys if isinstance(schema, dict)), None)
    return by_name
