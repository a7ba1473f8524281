"""Nock's fixtures (nockBack, JSON)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.recorded import (
    LOST,
    decoded_headers,
    read_headers,
    recorded_exchange,
    status_of,
)
from tape_jupyter.importers.rows import read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Grade, Item, Skipped

TITLE = "nock fixtures"


def recognises(source: Source) -> int:
    if source.top >= {"scope", "method", "path"} and {"response", "status"} & source.keys:
        return 85
    return 0


def read(source: Source) -> Iterator[Item]:
    count = 0

    def read_item(row: dict[str, Any], line: int) -> Iterator[Item]:
        nonlocal count
        count += 1
        if "scope" in row:
            yield _build_exchange(source, count - 1, row)
        else:
            yield Skipped("an item that is no exchange", line=line)

    yield from read_rows(source, read_item)


def _build_exchange(source: Source, number: int, each: Mapping[str, Any]) -> Item:
    missing, raw_body = [LOST], each.get("body")
    coded = any("encoding" in name.lower() for name, _ in read_headers(each.get("reqheaders")))
    body = b""
    if (
        isinstance(raw_body, list)
        and coded
        and raw_body
        and all(_is_hex(part) for part in raw_body)
    ):
        body = b"".join(bytes.fromhex(part) for part in raw_body)
    elif isinstance(raw_body, str):
        body = raw_body.encode("utf-8", "surrogatepass")
    elif raw_body is not None:
        body = rebuild.compact(raw_body)
        missing.append("request bytes")
    chunks = _read_chunks(each, missing)
    scope = str(each["scope"]).removesuffix(
        ":443" if str(each["scope"]).startswith("https") else ":80"
    )
    request = Request(
        str(each.get("method") or "GET").upper(),
        scope + str(each.get("path", "/")),
        read_headers(each.get("reqheaders")),
        body,
    )
    headers = decoded_headers(_read_headers(each), b"".join(chunks))
    grade: Grade = "J" if {"request bytes", "reply bytes"} & set(missing) else "W"
    return recorded_exchange(
        source,
        number,
        "nock",
        request,
        Reply(status_of(each.get("status")), headers, chunks),
        grade=grade,
        missing=missing,
    )


def _read_headers(each: Mapping[str, Any]) -> Headers:
    raw = each.get("rawHeaders") or each.get("headers") or []
    if isinstance(raw, Mapping):
        return read_headers(raw)
    return tuple((str(name), str(value)) for name, value in zip(raw[::2], raw[1::2], strict=False))


def _read_chunks(each: Mapping[str, Any], missing: list[str]) -> tuple[bytes, ...]:
    """Text, parsed JSON, hex of binary, or a list of chunks in hex (of what is content-encoded)."""
    raw_body = each.get("response")
    if raw_body in (None, ""):
        return ()
    coded = any("encoding" in name.lower() for name, _ in _read_headers(each))
    if (
        isinstance(raw_body, list)
        and coded
        and raw_body
        and all(_is_hex(part) for part in raw_body)
    ):
        missing[:] = [what for what in missing if what != LOST] + ["pace"]
        return tuple(bytes.fromhex(part) for part in raw_body)
    if isinstance(raw_body, str):
        return (
            bytes.fromhex(raw_body)
            if each.get("responseIsBinary") and _is_hex(raw_body)
            else raw_body.encode("utf-8", "surrogatepass"),
        )
    missing.append("reply bytes")
    return (rebuild.compact(raw_body),)


def _is_hex(text: Any) -> bool:
    return (
        isinstance(text, str)
        and len(text) % 2 == 0
        and all(char in "0123456789abcdefABCDEF" for char in text)
    )
