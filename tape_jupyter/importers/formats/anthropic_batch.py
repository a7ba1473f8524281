"""Anthropic's message batches: the requests of one, and its results, joined by `custom_id`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tape_jupyter.importers import batch, rebuild
from tape_jupyter.importers.rows import listed_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Call, Grade, Item, Origin, Skipped

TITLE = "Anthropic message batch"

_URL = "https://api.anthropic.com/v1/messages"


def recognises(source: Source) -> int:
    if {"custom_id", "result"} <= source.top:
        return 90
    if {"custom_id", "params"} <= source.keys and source.top & {"requests", "params"}:
        return 85
    return 0


def read(source: Source) -> Iterator[Item]:
    if "result" not in source.top:
        yield from read_rows(source, batch.skip_request, "requests")
        return
    yield from batch.read_results(source, _read_requests, _read_row)


def _read_requests(row: Mapping[str, Any]) -> Iterator[tuple[str, batch.Ask]]:
    for each in listed_field(row.get("requests")) or [row]:
        if (
            isinstance(each, Mapping)
            and "custom_id" in each
            and isinstance(each.get("params"), dict)
        ):
            yield str(each["custom_id"]), ("POST", _URL, each["params"])


def _read_row(
    file: str, requests: Mapping[str, batch.Ask], row: Mapping[str, Any], line: int
) -> Iterator[Item]:
    result = mapping_field(row.get("result"))
    kind = str(result.get("type") or "")
    if "custom_id" not in row or kind not in ("succeeded", "errored"):
        yield Skipped(f"a result without a reply: {kind or 'it has no type'}", line=line)
        return
    request_id = str(row["custom_id"])
    message = mapping_field(result.get("message"))
    error = mapping_field(result.get("error"))
    missing = ["request headers", "reply headers", "request bytes", "reply bytes"]
    assumed = list[str]()
    grade: Grade = "J"
    if request_id in requests:
        body = requests[request_id][2]
        if body.get("stream") is False:
            missing.append("whether the program that made the batch sent stream: false")
    else:
        grade, body = "T", batch.echoed(message)
        missing.append("request body: no file beside it has the requests")
    if kind == "succeeded":
        reply, failed = rebuild.reply(message), ""
    else:
        inner = mapping_field(error.get("error")) or error
        failed = str(inner.get("message") or inner.get("type") or "error")
        status_reply, assumed = rebuild.failed(_to_camel_case(str(inner.get("type") or "")), failed)
        reply = rebuild.reply(
            error if "error" in error else {"type": "error", "error": error},
            status_reply.status or 500,
        )
    yield Call(
        request_id,
        "model",
        rebuild.request(_URL, body),
        reply,
        grade,
        Origin("anthropic-batch", file, request_id, line),
        name=request_id,
        provider="anthropic",
        model=str(message.get("model") or body.get("model") or ""),
        missing=missing,
        assumed=assumed,
        error=failed,
    )


def _to_camel_case(kind: str) -> str:
    """`rate_limit_error` as an SDK's class is called."""
    return "".join(part.capitalize() for part in kind.split("_"))
