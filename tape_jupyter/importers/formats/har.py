"""HAR 1.2 (browsers, mitmproxy, Charles, insomnia) and Polly.js, which writes the same shape.

Bodies are whole; their borders on the wire and their pace are lost, but for Polly's compressed
bodies.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any
from urllib.parse import urlencode

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.importers.recorded import document, has_key, parse_moment
from tape_jupyter.importers.rows import listed_field, mapping_field
from tape_jupyter.importers.source import Source, Value
from tape_jupyter.importers.trace import Call, Grade, Item, Origin, Skipped
from tape_jupyter.importers.trace import each as each_record

TITLE = "HAR 1.2"

_ENTRIES = ("log", "entries", "[]")
_CODED = ("content-encoding", "content-length", "transfer-encoding")


def recognises(source: Source) -> int:
    if has_key(source, "log") and "entries:" in source.head_text:  # Polly, as YAML
        return 90
    return 95 if "log" in source.top and "entries" in source.keys else 0


def read(source: Source) -> Iterator[Item]:
    if source.head_text[:1] != "{":
        for number, entry in enumerate(document(source)["log"]["entries"]):
            yield from each_record(partial(_read_entry, source, number, Value(_ENTRIES, entry, 0)))
        return
    for number, each in enumerate(
        source.values(lambda path: path in ((), ("log",), ("log", "entries")))
    ):
        if each.path == ("broken",):
            yield Skipped(
                f"the file breaks off: {each.value.reason}", line=each.line, text=each.value.text
            )
        elif each.path == _ENTRIES:
            yield from each_record(partial(_read_entry, source, number, each), each.line)


def _read_entry(source: Source, number: int, each: Value) -> Iterator[Item]:
    raw_request, raw_reply = each.value.get("request") or {}, each.value.get("response") or {}
    if not raw_request.get("url") or not raw_request.get("method"):
        yield Skipped("an entry without a request", line=each.line)
        return
    missing, assumed = ["chunk borders and pace"], list[str]()
    body = _read_request_body(raw_request.get("postData"), missing, assumed)
    request = Request(
        str(raw_request["method"]).upper(),
        str(raw_request["url"]),
        _read_headers(raw_request),
        body,
    )
    start = parse_moment(each.value.get("startedDateTime"))
    seconds = max(float(each.value.get("time") or 0.0), 0.0) / 1000
    tape_fields = mapping_field(each.value.get("_tape"))
    status = int(raw_reply.get("status") or 0)
    if not 100 <= status <= 999:
        yield Skipped(
            "a request without a reply (cancelled, blocked, or from a cache)", line=each.line
        )
        return
    chunks, coded = _read_reply_body(raw_reply.get("content") or {}, missing)
    headers = _read_headers(raw_reply)
    kind = (raw_reply.get("content") or {}).get("mimeType")
    if chunks and kind and not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("content-type", str(kind)))
        assumed.append("header content-type, from the kind of the content")
    if tape_fields.get("wire"):
        chunks, coded = (base64.b64decode(str(tape_fields["wire"])),), True
    if not coded:
        headers = tuple((name, value) for name, value in headers if name.lower() not in _CODED)
    waits = tuple(round(seconds, 4) for _ in chunks) if seconds else ()
    grade: Grade = "J" if "request bytes" in missing else "W"
    reply = Reply(status, headers, chunks, waits, reason=str(raw_reply.get("statusText") or ""))
    if tape_fields:  # of `tape export --as har`
        reply = _restore_reads(reply, tape_fields, missing)
    own_id = "-".join(str(each.value[name]) for name in ("_id", "_order") if name in each.value)
    yield Call(
        f"{number}", "http", request, reply, grade,
        Origin("har", source.name, own_id or f"{number}", each.line), start=start, end=start + seconds,
        missing=missing, assumed=assumed, trace=str(tape_fields.get("run") or ""),
    )  # fmt: skip
    if sockets := each.value.get("_webSocketMessages"):
        yield Skipped("a message of a WebSocket", len(sockets), each.line)


def _restore_reads(reply: Reply, tape_fields: Mapping[str, Any], missing: list[str]) -> Reply:
    """The reply in the reads that it came in, with their times, where our own fields tell them and
    fit its body.
    """
    reads, waits = listed_field(tape_fields.get("reads")), listed_field(tape_fields.get("waits"))
    sizes = [size for size in reads if isinstance(size, int) and size > 0]
    if len(sizes) != len(reads) or sum(sizes) != len(reply.body):
        return reply
    ends = list(accumulate(sizes, initial=0))
    chunks = tuple(reply.body[start:end] for start, end in pairwise(ends))
    fitting = len(waits) == len(chunks) and all(isinstance(wait, (int, float)) for wait in waits)
    missing.remove("chunk borders and pace")
    return replace(
        reply, chunks=chunks, waits=tuple(float(wait) for wait in waits) if fitting else ()
    )


def _read_headers(message: Mapping[str, Any]) -> Headers:
    """HTTP/2's own (`:authority`) are no headers; Polly marks those that repeat."""
    pairs = (
        (str(each.get("name", "")), str(each.get("value", "")))
        for each in message.get("headers") or ()
    )
    return tuple((name, value) for name, value in pairs if name and not name.startswith(":"))


def _read_request_body(post: Any, missing: list[str], assumed: list[str]) -> bytes:
    if not post:
        return b""
    if "text" not in post and post.get("textJSON") is not None:
        missing.append("request bytes")
        return json.dumps(post["textJSON"], ensure_ascii=False, separators=(",", ":")).encode()
    text = str(post.get("text") or "")
    if not text and post.get("params"):
        if "urlencoded" not in str(post.get("mimeType", "")):
            missing.append("request body")
            return b""
        assumed.append("request body, from its parameters")
        return urlencode(
            [(str(p.get("name", "")), str(p.get("value", ""))) for p in post["params"]]
        ).encode()
    if post.get("encoding") == "base64":
        return base64.b64decode(text)
    return text.encode("utf-8", "surrogatepass")


def _read_reply_body(
    content: Mapping[str, Any], missing: list[str]
) -> tuple[tuple[bytes, ...], bool]:
    """The body in its reads, and whether its content-encoding is still on."""
    text = content.get("text")
    if not text:
        streamed = "event-stream" in str(content.get("mimeType"))
        if streamed or (text is None and content.get("size")):
            missing.append("reply body")
        return (), False
    # Polly: a list of chunks, as they came
    if content.get("encoding") == "base64" and str(text)[:1] == "[":
        missing.remove("chunk borders and pace")
        missing.append("pace")
        return tuple(base64.b64decode(each) for each in json.loads(text)), True
    if content.get("encoding") == "base64":
        data = base64.b64decode("".join(str(text).split()), validate=True)
    else:
        data = str(text).encode("utf-8", "surrogatepass")
    return ((data,) if data else ()), False
