"""For your own tests: a model provider on loopback that answers as scripted, in Anthropic's form
(`/v1/messages`) and OpenAI's (`/v1/chat/completions`), plain or streamed as it is asked. Other
paths: `sends`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came: header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a script: made by `says`, `uses`, `fails` and `sends`."""

    text: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def says(text: str) -> Answer:
    """The model says this."""
    return Answer(text=text)


def uses(tool: str, **arguments: Any) -> Answer:
    """The model asks for a tool, with these arguments."""
    return Answer(tool=tool, arguments=arguments)


def fails(status: int, message: str = "scripted", **headers: str) -> Answer:
    """The provider refuses, with an HTTP status of 400 or more. `retry_after="2"` is the header
    Retry-After.
    """
    error = {"type": _KINDS.get(status, "api_error"), "message": message}
    return sends({"type": "error", "error": error}, status, **headers)


def sends(
    body: bytes | str | Mapping[str, Any] | list[Any], status: int = 200, **headers: str
) -> Answer:
    """These very bytes, or this as JSON, whatever was asked."""
    data = _encode_body(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=data, headers={"content-type": "application/json", **named})


def _encode_body(body: bytes | str | Mapping[str, Any] | list[Any]) -> bytes:
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


class FakeProvider:
    """A provider that gives its answers in turn, one a request; a text is what the model says.

        with FakeProvider(uses("lookup_order", id=7), "It is late.") as provider:
            run_notebook("support.ipynb", "record", env={"ANTHROPIC_BASE_URL": provider.url})
        assert "late" in provider.requests[1].body.decode()

    `every` answers each request instead, from what it asks. `requests` are those that came. A
    request beyond the script is refused with status 500, and leaving the block raises
    AssertionError, which names it.
    """

    def __init__(
        self, *answers: Answer | str, every: Callable[[Asked], Answer | str] | None = None
    ) -> None:
        self.requests: list[Asked] = []
        self.unanswered: list[Asked] = []
        self._left, self._every, self._lock = list(answers), every, threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.provider = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def url(self) -> str:
        """Its address: base URL of an Anthropic client; OpenAI's wants `/v1` behind it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def left(self) -> int:
        """Answers that nobody has asked for yet."""
        return len(self._left)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if self.unanswered and error is None:
            requests = ", ".join(f"{each.method} {each.path}" for each in self.unanswered)
            raise AssertionError(
                f"the script has no answer for {len(self.unanswered)} of the requests: {requests}"
            )

    def answer(self, asked: Asked) -> tuple[Answer, int]:
        """What this request gets, and its number, from 1."""
        with self._lock:
            self.requests.append(asked)
            number = len(self.requests)
            scripted = self._left.pop(0) if self._left and self._every is None else None
            if scripted is None and self._every is None:
                self.unanswered.append(asked)
                return fails(
                    500, f"the script has no answer left for {asked.method} {asked.path}"
                ), number
        reply = scripted if self._every is None else self._every(asked)
        return (says(reply) if isinstance(reply, str) else reply or says("")), number


# ---------------------------------------------------------------- the wire


def _encode_answer(request: Asked, answer: Answer, number: int) -> tuple[str, list[bytes]]:
    """The content type and the chunks of an answer in the form of the path that was asked."""
    body = request.json
    if request.path.partition("?")[0].endswith("/chat/completions"):
        make = _build_completion
    else:
        make = _build_message
    reply_body, events = make(body, answer, number)
    if not body.get("stream"):
        return "application/json", [json.dumps(reply_body).encode()]
    return "text/event-stream", list(events)


def _build_message(
    body: Mapping[str, Any], answer: Answer, number: int
) -> tuple[dict[str, Any], Iterator[bytes]]:
    use = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": answer.tool,
        "input": dict(answer.arguments),
    }
    block = use if answer.tool else {"type": "text", "text": answer.text}
    shell = {**use, "input": {}} if answer.tool else {"type": "text", "text": ""}
    stop = {"stop_reason": "tool_use" if answer.tool else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 10, "output_tokens": 5}
    head = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
    }
    message = {**head, "content": [block], **stop, "usage": usage}
    part = {"type": "input_json_delta", "partial_json": json.dumps(dict(answer.arguments))}
    delta = part if answer.tool else {"type": "text_delta", "text": answer.text}
    events = (
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": shell},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    )
    return message, (
        f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events
    )


def _build_completion(
    body: Mapping[str, Any], answer: Answer, number: int
) -> tuple[dict[str, Any], Iterator[bytes]]:
    function = {"name": answer.tool, "arguments": json.dumps(dict(answer.arguments))}
    use = {"id": f"call_{number}", "type": "function", "function": function}
    base_message = {"role": "assistant", "content": None if answer.tool else answer.text}
    stop = "tool_calls" if answer.tool else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    head = {"id": f"chatcmpl-{number}", "created": 1_700_000_000, "model": body.get("model", "")}
    message = {**base_message, "tool_calls": [use]} if answer.tool else base_message
    completion = {
        **head, "object": "chat.completion", "usage": usage,
        "choices": [{"index": 0, "message": message, "finish_reason": stop}],
    }  # fmt: skip
    delta = {**base_message, "tool_calls": [{"index": 0, **use}]} if answer.tool else base_message
    pieces = ({"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": stop})
    chunks = [
        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, **piece}]}
        for piece in pieces
    ]
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    events = [*map(json.dumps, chunks), "[DONE]"]
    return completion, (f"data: {each}\n\n".encode() for each in events)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    provider: FakeProvider

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "fake", ""
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Says nothing."""

    def _send_reply(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        request = Asked(self.command, self.path, headers, body)
        answer, number = self.server.provider.answer(request)
        if answer.body is not None:
            kind, chunks = "", [answer.body]
        else:
            try:
                kind, chunks = _encode_answer(request, answer, number)
            except (ValueError, AttributeError):
                answer = fails(
                    400, "the body is not a JSON object; script this path with sends(...)"
                )
                kind, chunks = "", [answer.body or b""]
        self.send_response(answer.status)
        for name, value in {**({"content-type": kind} if kind else {}), **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(sum(map(len, chunks))))
        self.end_headers()
        for chunk in chunks if self.command != "HEAD" else ():
            self.wfile.write(chunk)

    # the base class's names
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _send_reply  # noqa: N815
