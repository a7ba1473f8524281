"""Azure's logs. Those of Azure OpenAI hold no content, and are refused; API Management's hold
bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.importers import rebuild
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.recorded import recorded_exchange, status_of
from tape_jupyter.importers.rows import mapping_field, read_rows
from tape_jupyter.importers.source import Source, load
from tape_jupyter.importers.trace import Call, Item, Skipped

TITLE = "Azure log"

_NO_CONTENT = "a record of Azure OpenAI's diagnostic log: it holds no content"
_WHY = (
    "Azure OpenAI's diagnostic logs hold times and sizes, no requests and no replies; there is nothing to import. "
    "API Management's GatewayLogs and OpenTelemetry hold them"
)


def recognises(source: Source) -> int:
    text = source.head_text
    azure = "resourceid" in text.lower() or "ShoeboxCallResult" in text
    if (
        azure
        and '"category"' in text
        and ("RequestResponse" in text or "GatewayLogs" in text or "Audit" in text)
    ):
        return 90
    return 0


def read(source: Source) -> Iterator[Item]:
    empty = calls = 0
    for item in read_rows(source, partial(_read_row, source), "records"):
        calls += isinstance(item, Call)
        empty += isinstance(item, Skipped) and item.reason == _NO_CONTENT
        yield item
    if empty and not calls:
        raise source.failed(_WHY)


def _read_row(source: Source, row: dict[str, Any], line: int) -> Iterator[Item]:
    properties = mapping_field(row.get("properties"))
    request_body = next(
        (properties[key] for key in ("backendRequestBody", "requestBody") if properties.get(key)),
        None,
    )
    reply_body = next(
        (properties[key] for key in ("backendResponseBody", "responseBody") if properties.get(key)),
        None,
    )
    if request_body is None and reply_body is None:
        category = str(row.get("category") or "")
        yield Skipped(
            _NO_CONTENT if category != "GatewayLogs" else "a request without its bodies", line=line
        )
        return
    url = str(properties.get("backendUrl") or properties.get("url") or "")
    missing = ["request headers", "reply headers", "chunk borders and pace"]
    for what, body in (("request", request_body), ("reply", reply_body)):
        if body is None or not _is_complete_text(str(body)):
            missing.append(f"the rest of the {what} body: it is cut")
    text = str(reply_body or "")
    if text.startswith(("data:", "event:")):
        headers = rebuild.SSE_HEADERS
    else:
        headers = rebuild.JSON_HEADERS
    data = _encode_body(reply_body)
    method = str(properties.get("backendMethod") or properties.get("method") or "POST")
    request = Request(method, url, rebuild.JSON_HEADERS, _encode_body(request_body))
    code = (
        properties.get("backendResponseCode")
        or properties.get("responseCode")
        or row.get("resultSignature")
    )
    reply = Reply(status_of(code), headers, (data,) if data else ())
    yield recorded_exchange(
        source, line, "azure", request, reply, grade="J", missing=missing,
        start=attribute_seconds(row.get("time")), line=line
    )  # fmt: skip


def _encode_body(body: Any) -> bytes:
    if isinstance(body, (Mapping, list)):
        return rebuild.compact(body)
    return str(body or "").encode("utf-8", "surrogatepass")


def _is_complete_text(text: str) -> bool:
    """Whether this is not JSON that breaks off."""
    if text.startswith(("data:", "event:")):
        return "[DONE]" in text or "message_stop" in text or "response.completed" in text
    if text[:1] not in ("{", "["):
        return True
    try:
        load(text)
    except ValueError:
        return False
    return True
