"""WireMock's mappings, and the bodies that lie beside them in `__files`."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.recorded import (
    LOST,
    data_of,
    decoded_headers,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.rows import mapping_field, source_rows
from tape_jupyter.importers.source import Broken, Source
from tape_jupyter.importers.trace import Grade, Item, Skipped, each

TITLE = "WireMock mappings"

_HOSTS = {
    "/v1/messages": "https://api.anthropic.com", "/v1/chat/completions": "https://api.openai.com",
    "/chat/completions": "https://api.openai.com/v1", "/v1/responses": "https://api.openai.com",
    "/responses": "https://api.openai.com/v1", "/model/": "https://bedrock-runtime.us-east-1.amazonaws.com",
    "/v1beta/models/": "https://generativelanguage.googleapis.com", "/v1/embeddings": "https://api.openai.com",
}  # fmt: skip


def recognises(source: Source) -> int:
    if source.path.parent.name == "__files" and (source.path.parent.parent / "mappings").is_dir():
        return 95
    mapping_keys = source.keys & {
        "bodyFileName",
        "bodyPatterns",
        "jsonBody",
        "base64Body",
        "urlPath",
        "urlPattern",
    }
    if {"request", "response"} <= source.keys and (mapping_keys or "mappings" in source.top):
        return 85
    return 0


def read(source: Source) -> Iterator[Item]:
    if source.path.parent.name == "__files":
        yield Skipped("the body of a mapping: it is read with it")
        return
    mappings = [
        (row, line)
        for path, row, line in source_rows(source, "mappings")
        if path in ((), ("[]",), ("mappings", "[]"))
    ]
    for number, (row, line) in enumerate(_sort_mappings(mappings)):
        if isinstance(row, Mapping):
            yield from each(partial(_read_mapping, source, number, row), line)
        else:
            text = row.text if isinstance(row, Broken) else str(row)
            yield Skipped("a record that is no mapping", line=line, text=text)


def _sort_mappings(mappings: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """As they were recorded: by `insertionIndex`; where there is none, a scenario's states tell, for
    WireMock lists the newest first.
    """
    records = [row if isinstance(row, Mapping) else {} for row, _ in mappings]
    if any("insertionIndex" in row for row in records):
        return sorted(
            mappings, key=lambda each: int(mapping_field(each[0]).get("insertionIndex") or 0)
        )
    steps = {
        (row.get("scenarioName"), row.get("requiredScenarioState")): row.get("newScenarioState")
        for row in records
        if row.get("scenarioName")
    }
    order: dict[tuple[Any, Any], int] = {}
    for name in {name for name, _ in steps}:
        state: Any = "Started"
        number = 0
        while (name, state) not in order:
            order[name, state] = number
            state, number = steps.get((name, state)), number + 1
    return sorted(
        mappings,
        key=lambda each: order.get(
            (
                mapping_field(each[0]).get("scenarioName"),
                mapping_field(each[0]).get("requiredScenarioState"),
            ),
            0,
        ),
    )


def _read_mapping(source: Source, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    yield _build_exchange(source, number, row)


def _build_exchange(source: Source, number: int, row: Mapping[str, Any]) -> Item:
    raw_request, raw_reply = row.get("request") or {}, row.get("response") or {}
    if "response-template" in (raw_reply.get("transformers") or ()):
        return Skipped("a response that is a template: no recording")
    if raw_reply.get("proxyBaseUrl") or raw_reply.get("fault"):
        return Skipped("a response that is a proxy or a fault: no recording")
    path = str(raw_request.get("url") or raw_request.get("urlPath") or "")
    if not path:
        return Skipped("a request that is a pattern of URLs: no recording")
    missing, assumed = [LOST], list[str]()
    url = path if "://" in path else _guess_host(path, assumed) + path
    url += _build_query(raw_request.get("queryParameters"), missing)
    headers = tuple(
        (str(name), str(matcher["equalTo"]))
        for name, matcher in (raw_request.get("headers") or {}).items()
        if isinstance(matcher, Mapping) and "equalTo" in matcher
    )
    method = str(raw_request.get("method") or "GET").upper()
    body = _read_request_body(raw_request.get("bodyPatterns") or (), missing)
    if raw_request.get("multipartPatterns"):
        missing.append("request body")
    data = _read_reply_body(source, raw_reply, missing)
    reply = Reply(
        status_of(raw_reply.get("status")),
        decoded_headers(read_headers(raw_reply.get("headers")), data),
        (data,) if data else (),
    )
    request = Request(method, url, headers, body)
    grade: Grade = "W" if "request body" not in missing else "P"
    return recorded_exchange(
        source, number, "wiremock", request, reply, grade=grade, missing=missing, assumed=assumed
    )


def _build_query(parameters: Any, missing: list[str]) -> str:
    """The parameters that a mapping tells apart from its `urlPath`."""
    kept: list[tuple[str, str]] = []
    for name, matcher in parameters.items() if isinstance(parameters, Mapping) else ():
        several = matcher.get("hasExactly") if isinstance(matcher, Mapping) else None
        values = [mapping_field(one).get("equalTo") for one in several or [matcher]]
        kept += [(str(name), str(value)) for value in values if value is not None]
        if None in values and "parts of the query" not in missing:
            missing.append("parts of the query")
    return f"?{urlencode(kept)}" if kept else ""


def _guess_host(path: str, assumed: list[str]) -> str:
    host_url = next(
        (host for start, host in _HOSTS.items() if path.startswith(start)), "http://localhost:8080"
    )
    assumed.append(f"host {host_url}: a mapping names none")
    return host_url


def _read_request_body(patterns: Any, missing: list[str]) -> bytes:
    """`equalToJson` and `equalTo` say what was sent; any other pattern only what it was like."""
    for pattern in patterns:
        if "equalToJson" in pattern:
            body = pattern["equalToJson"]
            return body.encode() if isinstance(body, str) else rebuild.compact(body)
        if "equalTo" in pattern:
            return data_of(pattern["equalTo"])
        if "binaryEqualTo" in pattern:
            return base64.b64decode(pattern["binaryEqualTo"])
    if patterns:
        missing.append("request body")
    return b""


def _read_reply_body(source: Source, raw_reply: Mapping[str, Any], missing: list[str]) -> bytes:
    if "bodyFileName" in raw_reply:
        folder = source.path.absolute().parent.parent / "__files"
        return _read_file(folder, str(raw_reply["bodyFileName"]), missing)
    if "jsonBody" in raw_reply:
        missing.append("reply bytes")
        return rebuild.compact(raw_reply["jsonBody"])
    if "base64Body" in raw_reply:
        return base64.b64decode(raw_reply["base64Body"])
    return data_of(raw_reply.get("body"))


def _read_file(folder: Path, name: str, missing: list[str]) -> bytes:
    """A body's file; never one outside its folder."""
    place = (folder / name).resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_file():
        missing.append("reply body: its file is not in __files")
        return b""
    return place.read_bytes()
