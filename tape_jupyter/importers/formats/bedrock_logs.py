"""Amazon Bedrock's model invocation logs (S3, CloudWatch). What they keep in S3 is never fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Reply
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.rows import decode_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Call, Item, Origin, Skipped

TITLE = "Amazon Bedrock invocation log"

_OPERATIONS = {  # the API, and whether its reply is a stream
    "Converse": (rebuild.BEDROCK, False), "ConverseStream": (rebuild.BEDROCK, True),
    "InvokeModel": (rebuild.BEDROCK_INVOKE, False), "InvokeModelWithResponseStream": (rebuild.BEDROCK_INVOKE, True),
}  # fmt: skip
_USAGE = {
    "input": "inputTokenCount",
    "output": "outputTokenCount",
    "cached": "cacheReadInputTokenCount",
}


def recognises(source: Source) -> int:
    if "ModelInvocationLog" in source.head_text:
        return 95
    if {"inputBodyJson", "outputBodyJson", "modelId"} <= source.keys:
        return 85
    return 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, partial(_read_row, source.name), "events", "logEvents", "Records")


def _read_row(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    if "modelId" not in row:  # CloudWatch puts a log's text into its own record
        row = mapping_field(row.get("message", row.get("@message")))
    operation = str(row.get("operation") or "")
    raw_request, raw_reply = mapping_field(row.get("input")), mapping_field(row.get("output"))
    if "modelId" not in row:
        yield Skipped("a record that is no invocation", line=line)
    elif operation not in _OPERATIONS and not _is_chat_reply(raw_reply):
        yield Skipped(
            f"an invocation by {operation or 'an operation without a name'}, which is not known",
            line=line,
        )
    elif "inputBodyJson" not in raw_request:
        where = str(raw_request.get("inputBodyS3Path") or "")
        reason = "lies in S3, and is not fetched" if where else "is not in the log"
        yield Skipped(f"an invocation whose request {reason}", line=line, text=where)
    elif "outputBodyJson" not in raw_reply and not row.get("errorCode"):
        where = str(raw_reply.get("outputBodyS3Path") or "")
        reason = "lies in S3, and is not fetched" if where else "is not in the log"
        yield Skipped(f"an invocation whose reply {reason}", line=line, text=where)
    else:
        yield _build_call(file, row, raw_request, raw_reply, line)


def _is_chat_reply(raw_reply: Mapping[str, Any]) -> bool:
    """Whether a reply is that of OpenAI's chat API, which Bedrock serves too."""
    reply_body = decode_field(raw_reply.get("outputBodyJson"))
    first = reply_body[0] if isinstance(reply_body, list) and reply_body else reply_body
    return "choices" in mapping_field(first)


def _build_call(
    file: str,
    row: Mapping[str, Any],
    raw_request: Mapping[str, Any],
    raw_reply: Mapping[str, Any],
    line: int,
) -> Call:
    reply_body = decode_field(raw_reply.get("outputBodyJson"))
    api, stream = _OPERATIONS.get(
        str(row["operation"]), (rebuild.OPENAI_CHAT, isinstance(reply_body, list))
    )
    model, region = str(row["modelId"]), str(row.get("region") or "us-east-1")
    body = decode_field(raw_request["inputBodyJson"])
    base = f"https://bedrock-runtime.{region}.amazonaws.com"
    if api == rebuild.OPENAI_CHAT:
        base += "/openai/v1"
    missing = ["request headers", "reply headers", "request bytes", "reply bytes"]
    assumed = list[str]()
    url = rebuild.url_of(api, "bedrock", assumed, model=model, stream=stream, base=base)
    if api == rebuild.OPENAI_CHAT:
        assumed.append(f"url {url}")
    start, request_id = attribute_seconds(row.get("timestamp")), str(row.get("requestId") or "")
    failed = str(row.get("errorCode") or "")
    if failed:
        reply, assumed = rebuild.failed(failed, failed)
        missing.append("error message")
    else:
        reply = _build_reply(api, reply_body, missing, assumed, stream=stream)
    usage = {
        name: int(raw_request.get(key) or raw_reply.get(key) or 0) for name, key in _USAGE.items()
    }
    identity = mapping_field(row.get("identity")).get("arn")
    about = {
        "account": row.get("accountId"),
        "identity": identity,
        "request metadata": row.get("requestMetadata"),
    }
    return Call(
        request_id, "model", rebuild.request(url, body), reply, "J", Origin("bedrock", file, request_id, line),
        name=str(row["operation"]), provider="bedrock", model=model, start=start, error=failed, missing=missing,
        assumed=assumed, usage=usage, about={name: value for name, value in about.items() if value},
    )  # fmt: skip


def _build_reply(
    api: str, body: Any, missing: list[str], assumed: list[str], *, stream: bool
) -> Reply:
    if not stream:
        return rebuild.reply(body)
    if isinstance(body, list):  # each chunk as it came
        missing.append("pace")
        if "[DONE]" in body:
            assumed.append("the log's [DONE] is no chunk")
        return rebuild.streamed(api, [each for each in body if each != "[DONE]"])
    missing.append("chunks")
    return rebuild.as_stream(api, body)
