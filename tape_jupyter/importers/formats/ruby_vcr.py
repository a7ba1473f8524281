"""Cassettes of Ruby's VCR (YAML, JSON, zlib-compressed)."""

from __future__ import annotations

from collections.abc import Iterator

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers.recorded import (
    data_of,
    decoded,
    document,
    exchange,
    headers_of,
    moment,
    status_of,
)
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item

TITLE = "Ruby VCR"


def recognises(source: Source) -> int:
    text = source.head_text
    if "betamax" in text:
        return 0
    return 85 if "http_interactions" in source.keys or "http_interactions:" in text[:200] else 0


def read(source: Source) -> Iterator[Item]:
    if "<%" in source.head_text:
        raise source.failed(
            "is an ERB template: render it first, code of a recording is not run here"
        )
    for number, each in enumerate(document(source)["http_interactions"]):
        asked, said = each["request"], each["response"]
        body = data_of(said.get("body"))
        request = Request(
            str(asked["method"]).upper(),
            str(asked["uri"]),
            headers_of(asked.get("headers")),
            data_of(asked.get("body")),
        )
        headers = decoded(headers_of(said.get("headers")), body)
        status = said.get("status", said.get("status_code"))
        reply = Reply(status_of(status), headers, (body,) if body else ())
        yield exchange(
            source, number, _system(source), request, reply, start=moment(each.get("recorded_at"))
        )


def _system(source: Source) -> str:
    return "betamax" if "betamax" in source.head_text else "ruby-vcr"
