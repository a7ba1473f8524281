"""Gemini's JSON as it is spelled elsewhere (snake_case, google-genai's keyword arguments) -> the REST
API's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_OPEN_MAPS = {"args", "response", "properties", "metadata", "labels"}
_BESIDE = (
    "tools", "tool_config", "safety_settings", "cached_content", "labels", "toolConfig", "safetySettings",
    "cachedContent",
)  # fmt: skip
_OF_CLIENT = (
    "http_options",
    "httpOptions",
    "automatic_function_calling",
    "automaticFunctionCalling",
)


def camel(value: Any) -> Any:
    """Proto JSON in snake_case as the REST API spells it; what programs chose (arguments,
    properties) stays.
    """
    if isinstance(value, dict):
        return {
            _to_camel_case(name): inner if name in _OPEN_MAPS else camel(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [camel(each) for each in value]
    return value


def _to_camel_case(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def are_keywords(arguments: Mapping[str, Any]) -> bool:
    """Whether these are arguments of `generate_content` rather than a body."""
    contents = arguments.get("contents")
    listed = contents if isinstance(contents, list) else [contents]
    return bool({"config", "model"} & arguments.keys()) or not all(
        isinstance(each, Mapping) for each in listed
    )


def gemini_body(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The body that google-genai sends for these arguments (`contents`, `config`), less `model`."""
    body: dict[str, Any] = {"contents": _build_contents(arguments.get("contents"))}
    config_value = arguments.get("config")
    config = {
        name: value
        for name, value in (config_value.items() if isinstance(config_value, Mapping) else ())
        if value is not None and name not in _OF_CLIENT
    }
    for name in ("system_instruction", "systemInstruction"):
        if (system := config.pop(name, None)) is not None:
            body["systemInstruction"] = _build_contents(system)[0]
    for name in _BESIDE:
        if (value := config.pop(name, None)) is not None:
            body[_to_camel_case(name)] = value if name == "labels" else camel(value)
    if config:
        body["generationConfig"] = camel(config)
    rest = {name: value for name, value in arguments.items() if name not in ("contents", "config")}
    rest.pop("model", None)
    return {**body, **camel(rest)}


def _build_contents(contents: Any) -> list[Any]:
    """Texts and parts that follow each other are one message of the user."""
    items: list[Any] = []
    for each in contents if isinstance(contents, list) else [contents]:
        if isinstance(each, Mapping) and "parts" in each:
            items.append(camel(each))
            continue
        part = {"text": each} if isinstance(each, str) else camel(each)
        if items and items[-1].get("_open"):
            items[-1]["parts"].append(part)
        else:
            items.append({"parts": [part], "role": "user", "_open": True})
    return [
        {name: inner for name, inner in each.items() if name != "_open"}
        if isinstance(each, dict)
        else each
        for each in items
    ]
