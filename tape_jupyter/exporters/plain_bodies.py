"""Bodies as text where they are text, else as base64."""

from __future__ import annotations

import base64
from typing import Any

from tape_jupyter.core.call import FunctionCall, Headers, Value
from tape_jupyter.encoding.values import registry
from tape_jupyter.errors import TapeError
from tape_jupyter.providers import http


def text_or_base64(data: bytes) -> tuple[str, bool]:
    """A body as text, and whether that is base64."""
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), True


def plain_body(headers: Headers, data: bytes) -> bytes:
    """A body with its content-encoding off, where that can be taken off."""
    opened = http.decoded_body(headers, data)
    return data if opened is None else opened


def parse_body(headers: Headers, data: bytes) -> Any:
    """The JSON of a body; None where it is none."""
    return http.loads(plain_body(headers, data)) if data else None


def plain_arguments(call: FunctionCall) -> tuple[dict[str, Any], bool]:
    """A tool's arguments as JSON can hold them, and whether all of them are what they were."""
    thawed = {str(name): _thaw_to_json(value) for name, value in call.arguments.items()}
    return {name: value for name, (value, _) in thawed.items()}, all(
        same for _, same in thawed.values()
    )


def result(value: Value) -> tuple[Any, bool]:
    """What a tool returned as JSON can hold it, and whether it is what it was."""
    return _thaw_to_json(value.value)


def error(frozen: Any) -> tuple[str, str]:
    """The class and the message of a recorded exception."""
    try:
        raised = registry.thaw_error(frozen)
    except TapeError:  # of a class that is not imported here
        kind = next(
            (str(frozen[key]) for key in ("class", "type", "error") if frozen.get(key)), "Exception"
        )
        return kind.rpartition(".")[2].rpartition(":")[2], str(
            frozen.get("text") or frozen.get("args") or kind
        )
    return type(raised).__name__, str(raised)


def _thaw_to_json(structure: Any) -> tuple[Any, bool]:
    """A frozen value as the JSON that it is; what JSON has no type for stays as the cassette writes
    it.
    """
    try:
        value = registry.thaw(structure)
    except TapeError:
        return structure, False
    same = _is_json(value)
    return (value if same else structure), same


def _is_json(value: Any) -> bool:
    if type(value) is dict:
        return all(type(name) is str and _is_json(each) for name, each in value.items())
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is float:
        return value - value == 0.0  # neither NaN nor infinite
    return value is None or type(value) in (str, int, bool)
