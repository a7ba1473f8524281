"""Request-response logs of Vertex AI (rows of BigQuery, as JSON or Parquet)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import rebuild
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.gemini import camel
from tape_jupyter.importers.recorded import status_of
from tape_jupyter.importers.rows import decode_field, listed_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Call, Item, Origin, Skipped

TITLE = "Vertex AI request-response log"

_VERBS = {
    "GenerateContent": "generateContent", "StreamGenerateContent": "streamGenerateContent?alt=sse",
    "RawPredict": "rawPredict", "StreamRawPredict": "streamRawPredict", "Predict": "predict",
}  # fmt: skip


def recognises(source: Source) -> int:
    if {"full_request", "api_method"} <= source.keys:
        return 92
    if {"request_payload", "response_payload", "logging_time"} <= source.keys:
        return 85
    return 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name))


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    raw_request = mapping_field(row.get("full_request")) or _read_first(row.get("request_payload"))
    raw_reply = decode_field(row.get("full_response")) or _read_payload(row.get("response_payload"))
    method = str(row.get("api_method") or "GenerateContent").rpartition(".")[2]
    method = method[:1].upper() + method[1:]
    if not raw_request or not raw_reply:
        yield Skipped("a row without its request or its reply", line=line)
    elif method not in _VERBS:
        yield Skipped(f"a call of {method[:40]}, which is not known", line=line)
    else:
        yield _build_call(file, row, raw_request, raw_reply, method, line)


def _read_payload(value: Any) -> Any:
    payloads = [decode_field(each) for each in listed_field(value)]
    if len(payloads) > 1:
        return payloads
    return payloads[0] if payloads else None


def _read_first(value: Any) -> dict[str, Any]:
    return mapping_field(next(iter(listed_field(value)), None))


def _build_call(
    file: str,
    row: Mapping[str, Any],
    raw_request: Mapping[str, Any],
    raw_reply: Any,
    method: str,
    line: int,
) -> Call:
    name = str(raw_request.get("model") or row.get("model") or row.get("endpoint") or "")
    body: dict[str, Any] = {key: value for key, value in raw_request.items() if key != "model"}
    missing = ["request headers", "reply headers", "request bytes", "reply bytes"]
    assumed: list[str] = []
    if "contents" in body:
        body, raw_reply = camel(body), camel(raw_reply)
        assumed.append("camelCase, which the log writes in snake_case")
    match = re.search(r"locations/([\w-]+)/", name)
    region = match[1] if match else "us-central1"
    if region == "global":
        host = "aiplatform.googleapis.com"
    else:
        host = f"{region}-aiplatform.googleapis.com"
    if name.startswith("projects/"):
        path = name
    else:
        path = f"projects/PROJECT/locations/{region}/{name}"
    if path != name:
        assumed.append("project and region of the url")
    url = f"https://{host}/v1/{path}:{_VERBS[method]}"
    request_id, end = str(row.get("request_id") or line), attribute_seconds(row.get("logging_time"))
    took = float(mapping_field(row.get("metadata")).get("request_latency") or 0.0) / 1000
    failed = mapping_field(raw_reply.get("error")) if isinstance(raw_reply, dict) else {}
    if failed or not method.startswith("Stream"):
        reply = rebuild.reply(raw_reply, status_of(failed.get("code")), took)
    elif isinstance(raw_reply, list):
        missing.append("pace")
        reply = rebuild.streamed(
            rebuild.GEMINI if "contents" in body else rebuild.ANTHROPIC, raw_reply
        )
    else:
        missing.append("chunks")
        reply = rebuild.as_stream(
            rebuild.GEMINI if "contents" in body else rebuild.ANTHROPIC, raw_reply
        )
    return Call(
        request_id,
        "model",
        rebuild.request(url, body),
        reply,
        "J",
        Origin("vertex", file, request_id, line),
        name=method,
        provider="gemini" if "contents" in body else "anthropic",
        model=name.rpartition("/")[2],
        start=max(end - took, 0.0),
        end=end,
        missing=missing,
        assumed=assumed,
    )
