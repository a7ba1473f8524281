"""WireMock's mappings, and the bodies that lie beside them in `__files`."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.recorded import LOST, data_of, decoded, exchange, headers_of, status_of
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Grade, Item, Skipped

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
    told = source.keys & {
        "bodyFileName",
        "bodyPatterns",
        "jsonBody",
        "base64Body",
        "urlPath",
        "urlPattern",
    }
    return (
        85 if {"request", "response"} <= source.keys and (told or "mappings" in source.top) else 0
    )


def read(source: Source) -> Iterator[Item]:
    if source.path.parent.name == "__files":
        yield Skipped("the body of a mapping: it is read with it")
        return
    told = source.json()
    mappings = told.get("mappings", [told])
    for number, each in enumerate(
        sorted(mappings, key=lambda each: int(each.get("insertionIndex") or 0))
    ):
        yield _mapping(source, number, each)


def _mapping(source: Source, number: int, each: Mapping[str, Any]) -> Item:
    asked, said = each.get("request") or {}, each.get("response") or {}
    if "response-template" in (said.get("transformers") or ()):
        return Skipped("a response that is a template: no recording")
    path = str(asked.get("url") or asked.get("urlPath") or "")
    if not path:
        return Skipped("a request that is a pattern of URLs: no recording")
    missing, assumed = [LOST], list[str]()
    url = path if "://" in path else _host(path, assumed) + path
    headers = tuple(
        (str(name), str(told["equalTo"]))
        for name, told in (asked.get("headers") or {}).items()
        if "equalTo" in told
    )
    method = str(asked.get("method") or "GET").upper()
    body = _asked_body(asked.get("bodyPatterns") or (), missing)
    data = _said_body(source, said, missing)
    reply = Reply(
        status_of(said.get("status")),
        decoded(headers_of(said.get("headers")), data),
        (data,) if data else (),
    )
    request = Request(method, url, headers, body)
    grade: Grade = "W" if "request body" not in missing else "P"
    return exchange(
        source, number, "wiremock", request, reply, grade=grade, missing=missing, assumed=assumed
    )


def _host(path: str, assumed: list[str]) -> str:
    found = next(
        (host for start, host in _HOSTS.items() if path.startswith(start)), "http://localhost:8080"
    )
    assumed.append(f"host {found}: a mapping names none")
    return found


def _asked_body(patterns: Any, missing: list[str]) -> bytes:
    """`equalToJson` and `equalTo` say what was sent; any other pattern only what it was like."""
    for each in patterns:
        if "equalToJson" in each:
            told = each["equalToJson"]
            return told.encode() if isinstance(told, str) else rebuild.compact(told)
        if "equalTo" in each:
            return data_of(each["equalTo"])
        if "binaryEqualTo" in each:
            return base64.b64decode(each["binaryEqualTo"])
    if patterns:
        missing.append("request body")
    return b""


def _said_body(source: Source, said: Mapping[str, Any], missing: list[str]) -> bytes:
    if "bodyFileName" in said:
        folder = source.path.absolute().parent.parent / "__files"
        return _file(folder, str(said["bodyFileName"]), missing)
    if "jsonBody" in said:
        missing.append("reply bytes")
        return rebuild.compact(said["jsonBody"])
    if "base64Body" in said:
        return base64.b64decode(said["base64Body"])
    return data_of(said.get("body"))


def _file(folder: Path, name: str, missing: list[str]) -> bytes:
    """A body's file; never one outside its folder."""
    place = (folder / name).resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_file():
        missing.append("reply body: its file is not in __files")
        return b""
    return place.read_bytes()
