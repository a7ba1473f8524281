"""Cassettes of Ruby's VCR (YAML, JSON, zlib-compressed)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers.recorded import (
    data_of,
    decoded_headers,
    document,
    has_key,
    parse_moment,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, each

TITLE = "Ruby VCR"


def recognises(source: Source) -> int:
    text = source.head_text
    if "betamax" in text or {"http_interactions", "url"} <= source.keys:
        return 0
    if "http_interactions" in source.keys or has_key(source, "http_interactions"):
        return 85
    return 0


def read(source: Source) -> Iterator[Item]:
    if "<%" in source.head_text:
        raise source.failed(
            "is an ERB template: render it first, code of a recording is not run here"
        )
    cassette = document(source)
    if not isinstance(cassette, Mapping) or not isinstance(cassette.get("http_interactions"), list):
        raise source.failed("holds no list of http_interactions", 1)
    for number, row in enumerate(cassette["http_interactions"]):
        yield from each(partial(_read_interaction, source, number, row))


def _read_interaction(source: Source, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    raw_request, raw_reply = row["request"], row["response"]
    body = data_of(raw_reply.get("body"))
    request = Request(
        str(raw_request["method"]).upper(),
        str(raw_request["uri"]),
        read_headers(raw_request.get("headers")),
        data_of(raw_request.get("body")),
    )
    headers = decoded_headers(read_headers(raw_reply.get("headers")), body)
    status = raw_reply.get("status", raw_reply.get("status_code"))
    reply = Reply(status_of(status), headers, (body,) if body else ())
    yield recorded_exchange(
        source,
        number,
        _find_system(source),
        request,
        reply,
        start=parse_moment(row.get("recorded_at")),
    )


def _find_system(source: Source) -> str:
    return "betamax" if "url" in source.keys else "ruby-vcr"
