"""OpenAI's batches, which Groq, Mistral, Azure and Together write too: JSON Lines joined by
`custom_id`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tape_jupyter.importers import batch, rebuild
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.recorded import status_of
from tape_jupyter.importers.rows import decode_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Call, Grade, Item, Origin, Skipped

TITLE = "OpenAI batch"

_HOST = "https://api.openai.com"


def recognises(source: Source) -> int:
    if {"custom_id", "response"} <= source.top or {
        "custom_id",
        "method",
        "url",
        "body",
    } <= source.top:
        return 90
    return 0


def read(source: Source) -> Iterator[Item]:
    if "body" in source.top and "response" not in source.top:
        yield from read_rows(source, batch.skip_request)
        return
    yield from batch.read_results(source, _read_requests, _read_row)


def _read_requests(row: Mapping[str, Any]) -> Iterator[tuple[str, batch.Ask]]:
    if "custom_id" in row and isinstance(row.get("body"), dict):
        yield (
            str(row["custom_id"]),
            (str(row.get("method") or "POST"), str(row.get("url") or ""), row["body"]),
        )


def _read_row(
    file: str, requests: Mapping[str, batch.Ask], row: Mapping[str, Any], line: int
) -> Iterator[Item]:
    if "custom_id" not in row:
        yield Skipped("a record that is no result of a batch", line=line)
        return
    request_id = str(row["custom_id"])
    raw_reply = mapping_field(row.get("response"))
    failed = mapping_field(row.get("error"))
    body = decode_field(raw_reply.get("body"))
    missing = ["request headers", "reply headers", "request bytes", "reply bytes"]
    assumed = list[str]()
    grade: Grade = "J"
    if request_id in requests:
        _, path, request_body = requests[request_id]
    else:
        grade = "T"
        request_body = batch.echoed(mapping_field(body))
        path = _guess_path(mapping_field(body))
        missing.append("request body: no file beside it has the requests")
    url = path if "://" in path else _HOST + path
    assumed.append(f"host {_HOST}: a batch names none")
    if body is not None:
        reply = rebuild.reply(body, status_of(raw_reply.get("status_code")))
    else:
        reply, more = rebuild.failed(
            str(failed.get("code") or ""),
            str(failed.get("message") or failed.get("code") or "no reply"),
        )
        assumed += more
    about = {"batch request": row.get("id"), "request id": raw_reply.get("request_id")}
    request = rebuild.request(url, request_body)
    yield Call(
        request_id,
        "model",
        request,
        reply,
        grade,
        Origin("openai-batch", file, request_id, line),
        provider="openai",
        name=request_id,
        model=str(mapping_field(body).get("model") or request_body.get("model") or ""),
        missing=missing,
        assumed=assumed,
        start=attribute_seconds(
            mapping_field(body).get("created") or mapping_field(body).get("created_at")
        ),
        error=str(failed.get("message") or ""),
        about={name: value for name, value in about.items() if value},
    )


def _guess_path(body: Mapping[str, Any]) -> str:
    """Which API a reply is of."""
    kind = str(body.get("object") or "")
    return {"response": "/v1/responses", "list": "/v1/embeddings"}.get(kind, "/v1/chat/completions")
