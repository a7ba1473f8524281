"""Cassettes of vcrpy and pytest-recording, which the real vcrpy plays."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from http import HTTPStatus

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.exporters.recording import File, Recording

TITLE = "vcrpy"
SUFFIX = ".yaml"

_READS = "borders between network reads, and their pace: vcrpy keeps a body whole"
_ENDED = "how a reply ended that the program did not read to its end"
_ESCAPED = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def write(recording: Recording) -> list[File]:
    lines = ["interactions:"]
    for _, request, reply in recording.exchanges("vcrpy"):
        lines += _format_interaction(request, reply)
        recording.lost[_READS] += len(reply.chunks) > 1
        recording.lost[_ENDED] += reply.end != "complete"
    if len(lines) == 1:
        return []
    return [File("\n".join([*lines, "version: 1", ""]).encode())]


def _format_interaction(request: Request, reply: Reply) -> Iterator[str]:
    yield "- request:"
    yield f"    body: {_format_body(request.body) if request.body else 'null'}"
    yield from _format_headers(request.headers)
    yield f"    method: {request.method}"
    yield f"    uri: {_quote_text(request.url)}"
    yield "  response:"
    yield "    body:"
    yield f"      string: {_format_body(reply.body)}"
    yield from _format_headers(reply.headers)
    yield "    status:"
    yield f"      code: {reply.status}"
    yield f"      message: {_quote_text(reply.reason or _find_phrase(reply.status or 0))}"


def _format_headers(headers: Headers) -> Iterator[str]:
    if not headers:
        yield "    headers: {}"
        return
    yield "    headers:"
    names: dict[str, list[str]] = {}
    for name, value in headers:
        names.setdefault(name, []).append(value)
    for name, values in names.items():
        yield f"      {_quote_text(name)}:"
        yield from (f"      - {_quote_text(value)}" for value in values)


def _format_body(data: bytes) -> str:
    try:
        return _quote_text(data.decode("utf-8"))
    except UnicodeDecodeError:
        return f'!!binary "{b64encode(data).decode("ascii")}"'


def _quote_text(text: str) -> str:
    """A quoted YAML text of one line. JSON's escapes are YAML's; what YAML cannot print, or would
    fold, is escaped.
    """
    return _ESCAPED.sub(_escape_character, json.dumps(text, ensure_ascii=False))


def _escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _find_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
