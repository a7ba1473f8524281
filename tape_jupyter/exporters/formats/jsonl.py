"""Provider batch files: the requests of a recording's model calls as OpenAI's and Anthropic's
batches take them, and what was answered as their results have it. A file of each for each provider.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.exporters.plain_bodies import parse_body
from tape_jupyter.exporters.recording import File, RecordedCall, Recording
from tape_jupyter.providers import editing, registry

TITLE = "provider batch (JSON Lines)"
SUFFIX = ".jsonl"

_OPENAI = ("openai_chat", "openai_responses", "mistral")
_STREAM = "stream: a batch never streams; the results have the whole reply"
_HEAD = "headers, chunks and their times"


def write(recording: Recording) -> list[File]:
    requests: dict[str, list[Any]] = {}
    results: dict[str, list[Any]] = {}
    for call, request, reply in recording.exchanges("a batch file"):
        wire = registry.identify(request).wire or registry.call_facts(request).wire
        body = parse_body(request.headers, request.body)
        form = "openai" if wire in _OPENAI else wire
        if form not in ("openai", "anthropic") or not isinstance(body, Mapping):
            known = wire or "other HTTP"
            recording.lost[
                f"{known} calls: only OpenAI's and Anthropic's batch files are written"
            ] += 1
            continue
        recording.lost[_STREAM] += "stream" in body
        recording.lost[_HEAD] += 1
        answer = editing.reply_message(request, reply) or parse_body(reply.headers, reply.body)
        plain = {
            name: value for name, value in body.items() if name not in ("stream", "stream_options")
        }
        custom_id = call.id.replace("/", "-")
        if form == "openai":
            requests.setdefault(form, []).append(_build_openai_request(custom_id, request, plain))
            results.setdefault(form, []).append(
                _build_openai_result(custom_id, call, reply, answer)
            )
        else:
            requests.setdefault(form, []).append({"custom_id": custom_id, "params": plain})
            results.setdefault(form, []).append(_build_anthropic_result(custom_id, reply, answer))
    files = [File(_encode_lines(requests[form]), form) for form in requests]
    return [*files, *(File(_encode_lines(results[form]), f"{form}.results") for form in results)]


def _build_openai_request(
    custom_id: str, request: Request, body: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "custom_id": custom_id,
        "method": "POST",
        "url": urlsplit(request.url).path,
        "body": body,
    }


def _build_openai_result(
    custom_id: str, call: RecordedCall, reply: Reply, answer: Any
) -> dict[str, Any]:
    request_id = reply.header("x-request-id")
    response = {"status_code": reply.status, "request_id": request_id, "body": answer}
    return {
        "id": f"batch_req_{call.id.rpartition('/')[2]}",
        "custom_id": custom_id,
        "response": response,
        "error": None,
    }


def _build_anthropic_result(custom_id: str, reply: Reply, answer: Any) -> dict[str, Any]:
    if (reply.status or 0) >= 400:
        if isinstance(answer, Mapping):
            error = answer
        else:
            error = {"type": "error", "error": {"message": str(reply.reason)}}
        return {"custom_id": custom_id, "result": {"type": "errored", "error": error}}
    return {"custom_id": custom_id, "result": {"type": "succeeded", "message": answer}}


def _encode_lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(
        "utf-8", "replace"
    )
