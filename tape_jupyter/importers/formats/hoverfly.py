"""Hoverfly's simulations, version 5 (JSON)."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers.recorded import (
    LOST,
    data_of,
    decoded_headers,
    parse_moment,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Grade, Item, Skipped, each

TITLE = "Hoverfly simulation"


def recognises(source: Source) -> int:
    if {"data", "pairs", "schemaVersion"} <= source.keys or {
        "pairs",
        "globalActions",
    } <= source.keys:
        return 90
    return 0


def read(source: Source) -> Iterator[Item]:
    simulation = source.json()
    version = str((simulation.get("meta") or {}).get("schemaVersion") or "")
    if not version.startswith("v5"):
        raise source.failed(
            f"is a simulation of schema {version or 'unknown'}; Hoverfly itself makes v5 of it", 1
        )
    if (simulation["data"].get("globalActions") or {}).get("delays"):
        yield Skipped(
            "a delay that was made up (globalActions)",
            len(simulation["data"]["globalActions"]["delays"]),
        )
    start = parse_moment((simulation.get("meta") or {}).get("timeExported"))
    for number, pair in enumerate(simulation["data"].get("pairs") or ()):
        yield from each(partial(_read_pair, source, number, pair, start))


def _read_pair(
    source: Source, number: int, pair: Mapping[str, Any], start: float
) -> Iterator[Item]:
    yield _build_exchange(source, number, pair, start)


def _build_exchange(source: Source, number: int, pair: Mapping[str, Any], start: float) -> Item:
    raw_request, raw_reply = pair.get("request") or {}, pair.get("response") or {}
    if raw_reply.get("templated"):
        return Skipped("a response that is a template: no recording")
    missing, assumed = [LOST], list[str]()
    host = _find_exact_value(raw_request.get("destination"))
    path = _find_exact_value(raw_request.get("path"))
    if host is None:
        return Skipped("a request that is a pattern of hosts: no recording")
    if path is None:
        missing.append("path")
    query = _build_query(raw_request.get("query"), missing)
    scheme = _find_exact_value(raw_request.get("scheme"))
    if scheme is None:
        assumed.append("scheme https")
    body = _find_exact_value(raw_request.get("body"))
    if body is None and raw_request.get("body"):
        missing.append("request body")
    url = f"{scheme or 'https'}://{host}{path or '/'}{query}"
    method = _find_exact_value(raw_request.get("method")) or "GET"
    headers = {
        name: value
        for name, matchers in (raw_request.get("headers") or {}).items()
        if (value := _find_exact_value(matchers)) is not None
    }
    if raw_reply.get("encodedBody"):
        data = base64.b64decode(raw_reply.get("body") or "")
    else:
        data = data_of(raw_reply.get("body"))
    if "bodyFile" in raw_reply:
        missing.append("reply body: it is in another file, which is not opened")
    reply = Reply(
        status_of(raw_reply.get("status")),
        decoded_headers(read_headers(raw_reply.get("headers")), data),
        (data,) if data else (),
    )
    request = Request(method.upper(), url, read_headers(headers), data_of(body))
    grade: Grade = "W" if not {"request body", "path"} & set(missing) else "P"
    return recorded_exchange(
        source,
        number,
        "hoverfly",
        request,
        reply,
        grade=grade,
        missing=missing,
        assumed=assumed,
        start=start,
    )


def _find_exact_value(matchers: Any) -> str | None:
    for one in matchers or ():
        if isinstance(one, Mapping) and one.get("matcher") in ("exact", "json", "xml"):
            value = one.get("value")
            if value is None or isinstance(value, str):
                return value
            return data_of(value).decode()
    return None


def _build_query(query: Any, missing: list[str]) -> str:
    if isinstance(query, list):
        return f"?{value}" if (value := _find_exact_value(query)) else ""
    parameters = [(name, _find_exact_value(each)) for name, each in (query or {}).items()]
    if any(value is None for _, value in parameters):
        missing.append("parts of the query")
    kept = [
        (name, part) for name, value in parameters if value is not None for part in value.split(";")
    ]
    return f"?{urlencode(kept)}" if kept else ""
