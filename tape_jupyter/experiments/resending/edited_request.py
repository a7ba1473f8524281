"""A recorded request with other settings, or with another message."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from tape_jupyter.core.call import Request
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.providers import editing, http, registry

_LISTS = ("messages", "input", "contents")
_TEXTS = ("text", "input_text")
_MASKED = re.compile(r"<secret:[^<>]*>")


def edited(request: Request, settings: Sequence[str], message: str | None) -> Request:
    """The request with these settings (`temperature=0`, `generationConfig.topK=1`) and this
    message.

    `message` takes the place of the newest text of the user; JSON of a list, that of all messages.
    Raises TapeUsageError for what the request has no place for, and where it holds a masked secret.
    """
    coding = request.header("content-encoding")
    plain = http.decoded_body(request.headers, request.body)
    if plain is None:
        raise TapeUsageError(f"the request's body ({coding}) cannot be opened, and is not sent")
    headers = tuple(
        (name, value) for name, value in request.headers if name.lower() != "content-encoding"
    )
    new_request = replace(request, headers=headers, body=plain)
    if settings or message is not None:
        body = http.loads(plain)
        if not isinstance(body, dict):
            raise TapeUsageError(
                "the request is not a JSON object: it can be sent again only as it is"
            )
        new_body = copy.deepcopy(body)
        for setting in settings:
            new_request = _apply_setting(new_request, new_body, setting)
        if message is not None:
            _set_message(new_body, message)
        new_request = replace(
            new_request, body=editing.respelled(plain, new_body) if new_body != body else plain
        )
    if match := _MASKED.search(new_request.body.decode("utf-8", "replace")):
        raise TapeUsageError(
            f"the recorded request holds a masked secret ({match[0]}): it is not what was sent"
        )
    return new_request


def _apply_setting(request: Request, body: dict[str, Any], setting: str) -> Request:
    """One `PATH=VALUE`; VALUE is JSON, or a text. The model stands in the URL of some wires."""
    path, equals, value_text = setting.partition("=")
    if not equals or not path:
        raise TapeUsageError(f"--set {setting}: write NAME=VALUE, like temperature=0")
    try:
        value = json.loads(value_text)
    except ValueError:
        value = value_text
    in_url = registry.identify(request).model
    if path == "model" and "model" not in body and in_url:
        old, new = (quote(name, safe="") for name in (in_url, str(value)))
        if f"/{in_url}" in request.url:
            address = request.url.replace(f"/{in_url}", f"/{new}", 1)
        else:
            address = request.url
        address = address.replace(f"/{old}", f"/{new}", 1)
        if unquote(address) == unquote(request.url) and in_url != value:
            raise TapeUsageError(
                f"--set {setting}: the model in {request.url.partition('?')[0]} was not found"
            )
        return replace(request, url=address)
    *outer, last = path.split(".")
    at: Any = body
    for name in outer:
        at = _descend_into(at, name, setting)
    if isinstance(at, list) and last.lstrip("-").isdigit() and -len(at) <= int(last) < len(at):
        at[int(last)] = value
    elif isinstance(at, dict):
        at[last] = value
    else:
        raise TapeUsageError(f"--set {setting}: the request has no {path}")
    return request


def _descend_into(at: Any, name: str, setting: str) -> Any:
    if isinstance(at, dict):
        return at.setdefault(name, {})
    if isinstance(at, list) and name.lstrip("-").isdigit() and -len(at) <= int(name) < len(at):
        return at[int(name)]
    raise TapeUsageError(f"--set {setting}: the request has no {name} there")


def _set_message(body: dict[str, Any], message: str) -> None:
    name = next((each for each in _LISTS if body.get(each)), "")
    if not name:
        raise TapeUsageError("--message: the request has no messages")
    try:
        messages = json.loads(message) if message.lstrip()[:1] == "[" else None
    except ValueError:
        messages = None
    if isinstance(messages, list) and messages and all(isinstance(each, dict) for each in messages):
        body[name] = messages
    elif isinstance(body[name], str):
        body[name] = message
    elif not any(
        _replace_text(each, message) for each in reversed(body[name]) if isinstance(each, dict)
    ):
        raise TapeUsageError(
            "--message: no message of the user has a text; give all messages as JSON: --message '[...]'"
        )


def _replace_text(message: dict[str, Any], text: str) -> bool:
    """Put the text in the place of the message's own, where it is the user's and has one."""
    if message.get("role") != "user":
        return False
    for name in ("content", "parts"):
        content = message.get(name)
        if isinstance(content, str):
            message[name] = text
            return True
        parts: list[Any] = content if isinstance(content, list) else []
        for part in reversed(parts):
            if (
                isinstance(part, dict)
                and isinstance(part.get("text"), str)
                and part.get("type", "text") in _TEXTS
            ):
                part["text"] = text
                return True
    return False
