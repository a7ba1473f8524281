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
    return 85 if {"request_payload", "response_payload", "logging_time"} <= source.keys else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name))


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    asked = mapping_field(row.get("full_request")) or _read_first(row.get("request_payload"))
    said = decode_field(row.get("full_response")) or _read_payload(row.get("response_payload"))
    method = str(row.get("api_method") or "GenerateContent").rpartition(".")[2]
    method = method[:1].upper() + method[1:]
    if not asked or not said:
        yield Skipped("a row without its request or its reply", line=line)
    elif method not in _VERBS:
        yield Skipped(f"a call of {method[:40]}, which is not known", line=line)
    else:
        yield _build_call(file, row, asked, said, method, line)


def _read_payload(told: Any) -> Any:
    found = [decode_field(each) for each in listed_field(told)]
    return found if len(found) > 1 else found[0] if found else None


def _read_first(told: Any) -> dict[str, Any]:
    return mapping_field(next(iter(listed_field(told)), None))


def _build_call(
    file: str, row: Mapping[str, Any], asked: Mapping[str, Any], said: Any, method: str, line: int
) -> Call:
    name = str(asked.get("model") or row.get("model") or row.get("endpoint") or "")
    body: dict[str, Any] = {key: value for key, value in asked.items() if key != "model"}
    missing = ["request headers", "reply headers", "request bytes", "reply bytes"]
    assumed: list[str] = []
    if "contents" in body:
        body, said = camel(body), camel(said)
        assumed.append("camelCase, which the log writes in snake_case")
    found = re.search(r"locations/([\w-]+)/", name)
    region = found[1] if found else "us-central1"
    host = (
        "aiplatform.googleapis.com" if region == "global" else f"{region}-aiplatform.googleapis.com"
    )
    path = name if name.startswith("projects/") else f"projects/PROJECT/locations/{region}/{name}"
    if path != name:
        assumed.append("project and region of the url")
    url = f"https://{host}/v1/{path}:{_VERBS[method]}"
    own, end = str(row.get("request_id") or line), attribute_seconds(row.get("logging_time"))
    took = float(mapping_field(row.get("metadata")).get("request_latency") or 0.0) / 1000
    failed = mapping_field(said.get("error")) if isinstance(said, dict) else {}
    if failed or not method.startswith("Stream"):
        reply = rebuild.reply(said, status_of(failed.get("code")), took)
    elif isinstance(said, list):
        missing.append("pace")
        reply = rebuild.streamed(rebuild.GEMINI if "contents" in body else rebuild.ANTHROPIC, said)
    else:
        missing.append("chunks")
        reply = rebuild.as_stream(rebuild.GEMINI if "contents" in body else rebuild.ANTHROPIC, said)
    return Call(
        own, "model", rebuild.request(url, body), reply, "J", Origin("vertex", file, own, line), name=method,
        provider="gemini" if "contents" in body else "anthropic", model=name.rpartition("/")[2],
        start=max(end - took, 0.0), end=end, missing=missing, assumed=assumed,
    )  # fmt: skip
