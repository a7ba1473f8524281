"""A model provider on loopback, for tests and the demo: real paths, real wire forms, our own small logic.

    with Provider() as provider:
        anthropic.Anthropic(base_url=provider.url, api_key="k")

It answers Anthropic messages, OpenAI chat and responses, and Bedrock converse; plain, streamed, and calling the first
tool it is offered once. `script(path, ...)` answers a path with exact chunks, gates and endings instead; `corpus=`
answers with the record that the header `x-corpus-id` names. `python -m tests.harness.provider --port 0` runs it alone.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Then = Literal["end", "close", "reset", "hang"]
FRAMING = {
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
}
WORDS = "amber birch cedar delta ember flint grove hazel indigo jasper".split()


@dataclass
class Scripted:
    """One answer, to the byte.

    Chunks go out one flush each, `delay` seconds apart; chunk i waits for `gates[i]`, the end for `gates[len(chunks)]`.
    `then` says what follows them: a proper end, the connection closed or reset where it stands, or silence. A
    status of 0 sends no head. Without a framing header a body of one chunk has a length, any other is chunked.
    """

    status: int = 200
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    chunks: Sequence[bytes] = ()
    delay: float = 0.0
    then: Then = "end"
    gates: Mapping[int, threading.Event] = field(default_factory=dict)
    reason: str | None = None


@dataclass
class Seen:
    """A request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Provider:
    """The server. `requests` are those seen so far, `connections` counts accepted sockets."""

    def __init__(
        self,
        *,
        port: int = 0,
        vary: bool = False,
        delay: float = 0.0,
        corpus: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self.vary, self.delay, self.corpus = vary, delay, corpus or {}
        self.requests: list[Seen] = []
        self.connections = 0
        self._scripts: dict[str, list[Scripted]] = {}
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._random = random.SystemRandom()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.provider = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Provider:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port and every connection. Calling it twice is harmless."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        with self._lock:
            for connection in self._open:
                _quietly(connection.shutdown, socket.SHUT_RDWR)

    def __enter__(self) -> Provider:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def script(self, path: str, *answers: Scripted) -> None:
        """Answer `path` (without its query) with these in turn; the last one stays."""
        self._scripts[path] = list(answers)

    def answer(self, seen: Seen) -> Scripted:
        """What this request gets."""
        with self._lock:
            self.requests.append(seen)
            script = self._scripts.get(seen.path.split("?")[0])
            if script:
                return script.pop(0) if len(script) > 1 else script[0]
        if "x-corpus-id" in seen.headers:
            return self.serve_record(seen.headers["x-corpus-id"])
        return self._model(seen)

    def serve_record(self, record: str) -> Scripted:
        """A record of a traffic corpus: its status, headers and body bytes, a stream cut where its sender flushed."""
        answer = self.corpus[record]["response"]
        body = (
            base64.b64decode(answer["body_b64"])
            if "body_b64" in answer
            else answer.get("body_text", "").encode()
        )
        headers = [
            (name, value) for name, value in answer["headers"] if name.lower() not in FRAMING
        ]
        chunked = any(
            name.lower() == "transfer-encoding" and "chunked" in value
            for name, value in answer["headers"]
        )
        streamed = self.corpus[record].get("stream")
        if chunked or streamed:
            headers.append(("transfer-encoding", "chunked"))
        chunks = (
            cut(body, dict((name.lower(), value) for name, value in headers))
            if streamed
            else [body]
        )
        return Scripted(answer["status"], headers, [c for c in chunks if c], delay=self.delay)

    def _model(self, seen: Seen) -> Scripted:
        for pattern, wire in WIRES.items():
            if re.search(pattern, seen.path.split("?")[0]):
                return wire(self._reply(seen), self.delay)
        return Scripted(
            404, {"content-type": "application/json"}, [b'{"error":{"message":"no such path"}}']
        )

    def _reply(self, seen: Seen) -> Reply:
        body = seen.json
        turn = read_turn(body)
        extra = (
            f" ({self._random.choice(WORDS)} {self._random.randrange(1000)})" if self.vary else ""
        )
        salt = str(self._random.random()) if self.vary else ""
        mark = hashlib.sha256(seen.body + salt.encode()).hexdigest()[:16]
        stream = bool(body.get("stream")) or seen.path.endswith("converse-stream")
        if turn.tool and not turn.result:
            return Reply(
                mark, body, stream, tool=turn.tool, arguments=fill(turn.schema, turn.prompt)
            )
        return Reply(mark, body, stream, text=compose(turn) + extra)


# ---------------------------------------------------------------- what the model "thinks"


@dataclass
class Turn:
    """A request, whoever's wire form it came in: the last prompt, the first tool offered, the results given."""

    prompt: str = ""
    tool: str = ""
    schema: dict[str, Any] = field(default_factory=dict)
    result: str = ""


@dataclass
class Reply:
    mark: str
    request: dict[str, Any]
    stream: bool
    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


def read_turn(body: dict[str, Any]) -> Turn:
    turn = Turn()
    messages = body.get("messages") or body.get("input") or ""
    for message in (
        [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    ):
        read_message(message, turn)
    tools = body.get("tools") or (body.get("toolConfig") or {}).get("tools") or []
    for tool in tools[:1]:
        spec = tool.get("function") or tool.get("toolSpec") or tool
        turn.tool = spec.get("name", "")
        turn.schema = (
            spec.get("parameters")
            or spec.get("input_schema")
            or (spec.get("inputSchema") or {}).get("json", {})
        )
    return turn


def read_message(message: dict[str, Any], turn: Turn) -> None:
    if message.get("role") == "tool" or message.get("type") == "function_call_output":
        turn.result = str(message.get("content") or message.get("output"))
    content = message.get("content")
    for part in [content] if isinstance(content, str) else content or []:
        if isinstance(part, dict) and (part.get("type") == "tool_result" or "toolResult" in part):
            turn.result = " ".join(texts(part.get("content") or part["toolResult"]["content"]))
        elif message.get("role") == "user":
            turn.prompt = " ".join(texts(part)) or turn.prompt
            turn.result = ""


def texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for each in part:
            yield from texts(each)
    elif isinstance(part, dict) and "text" in part:
        yield part["text"]
    elif isinstance(part, dict) and "json" in part:
        yield json.dumps(part["json"])


def compose(turn: Turn) -> str:
    """A plain answer that depends on the prompt alone."""
    if turn.result:
        return f"The tool says: {turn.result}."
    if re.search(r"sentiment|classify|positive or negative", turn.prompt, re.I):
        return (
            "negative"
            if re.search(r"can't|cannot|not|late|broken|worst|never", turn.prompt, re.I)
            else "positive"
        )
    words = turn.prompt.split()
    return f"You wrote {len(words)} words, the last of them {words[-1] if words else 'none'!r}."


def fill(schema: Any, prompt: str) -> Any:
    """A value that fits a JSON schema."""
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    if isinstance(schema, dict) and "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        wanted = schema.get("required") or list(schema.get("properties", {}))
        return {name: fill(schema["properties"][name], prompt) for name in wanted}
    if kind == "array":
        return [fill(schema.get("items", {}), prompt)]
    return {"integer": len(prompt.split()), "number": 0.5, "boolean": True}.get(
        kind, (prompt.split() or ["x"])[-1]
    )


# ---------------------------------------------------------------- wire forms


def pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text) or [""]


def sse(*events: tuple[str | None, Any]) -> list[bytes]:
    """Server-sent events, one a chunk; without a name they are data alone."""
    return [
        ((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n").encode()
        for name, data in events
    ]


def answered(reply: Reply, whole: Any, events: list[bytes], delay: float) -> Scripted:
    identity = {"request-id": f"req_{reply.mark}", "x-request-id": f"req_{reply.mark}"}
    if reply.stream:
        return Scripted(
            200, {"content-type": "text/event-stream; charset=utf-8", **identity}, events, delay
        )
    body = json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()
    return Scripted(200, {"content-type": "application/json", **identity}, [body], delay)


def anthropic_wire(reply: Reply, delay: float = 0.0) -> Scripted:
    tool = {"type": "tool_use", "id": f"toolu_{reply.mark}", "name": reply.tool}
    content = (
        [{**tool, "input": reply.arguments}]
        if reply.tool
        else [{"type": "text", "text": reply.text}]
    )
    stop = "tool_use" if reply.tool else "end_turn"
    usage = {
        "input_tokens": len(json.dumps(reply.request)) // 4,
        "output_tokens": len(pieces(reply.text)),
    }
    head = {
        "id": f"msg_{reply.mark}",
        "type": "message",
        "role": "assistant",
        "model": reply.request.get("model"),
    }
    whole = {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}
    shell = {**tool, "input": {}} if reply.tool else {"type": "text", "text": ""}
    if reply.tool:
        deltas = [
            {"type": "input_json_delta", "partial_json": part}
            for part in ["", *pieces(json.dumps(reply.arguments))]
        ]
    else:
        deltas = [{"type": "text_delta", "text": part} for part in pieces(reply.text)]
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": shell},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]
    return answered(reply, whole, sse(*((event["type"], event) for event in events)), delay)


def chat_wire(reply: Reply, delay: float = 0.0) -> Scripted:
    stop = "tool_calls" if reply.tool else "stop"
    arguments = json.dumps(reply.arguments)
    call = {
        "id": f"call_{reply.mark}",
        "type": "function",
        "function": {"name": reply.tool, "arguments": arguments},
    }
    message = {
        "role": "assistant",
        "content": reply.text or None,
        **({"tool_calls": [call]} if reply.tool else {}),
    }
    head = {
        "id": f"chatcmpl-{reply.mark}",
        "created": 1700000000,
        "model": reply.request.get("model"),
    }
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": len(pieces(reply.text)),
        "total_tokens": 10 + len(pieces(reply.text)),
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    deltas: list[Any] = [{"role": "assistant", "content": None if reply.tool else ""}]
    if reply.tool:
        deltas += [
            {
                "tool_calls": [
                    {"index": 0, **call, "function": {"name": reply.tool, "arguments": ""}}
                ]
            }
        ]
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}
            for part in pieces(arguments)
        ]
    else:
        deltas += [{"content": part} for part in pieces(reply.text)]
    chunk = {**head, "object": "chat.completion.chunk"}
    events = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    if (reply.request.get("stream_options") or {}).get("include_usage"):
        events.append({**chunk, "choices": [], "usage": usage})
    return answered(
        reply, whole, [*sse(*((None, event) for event in events)), b"data: [DONE]\n\n"], delay
    )


def responses_wire(reply: Reply, delay: float = 0.0) -> Scripted:
    arguments = json.dumps(reply.arguments)
    part = {"type": "output_text", "text": reply.text, "annotations": []}
    item: dict[str, Any] = {
        "id": f"msg_{reply.mark}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    if reply.tool:
        item = {
            "id": f"fc_{reply.mark}",
            "type": "function_call",
            "call_id": f"call_{reply.mark}",
            "name": reply.tool,
        }
        item |= {"arguments": arguments, "status": "completed"}
    count = len(pieces(reply.text))
    usage = {"input_tokens": 10, "output_tokens": count, "total_tokens": 10 + count}
    usage |= {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole = {
        "id": f"resp_{reply.mark}",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
    }
    whole |= {
        "model": reply.request.get("model"),
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
    }
    whole |= {
        "tools": reply.request.get("tools", []),
        "usage": usage,
        "error": None,
        "incomplete_details": None,
    }
    whole |= {"instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0}
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    place = {"item_id": item["id"], "output_index": 0}
    text = {**place, "content_index": 0}
    shell = {
        **item,
        "status": "in_progress",
        **({"arguments": ""} if reply.tool else {"content": []}),
    }
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    events.append({"type": "response.output_item.added", "output_index": 0, "item": shell})
    if reply.tool:
        name = "response.function_call_arguments"
        events += [{"type": f"{name}.delta", **place, "delta": each} for each in pieces(arguments)]
        events.append({"type": f"{name}.done", **place, "arguments": arguments, "name": reply.tool})
    else:
        events.append({"type": "response.content_part.added", **text, "part": {**part, "text": ""}})
        events += [
            {"type": "response.output_text.delta", **text, "delta": each, "logprobs": []}
            for each in pieces(reply.text)
        ]
        events.append(
            {"type": "response.output_text.done", **text, "text": reply.text, "logprobs": []}
        )
        events.append({"type": "response.content_part.done", **text, "part": part})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": whole})
    numbered = (
        (event["type"], {**event, "sequence_number": number}) for number, event in enumerate(events)
    )
    return answered(reply, whole, sse(*numbered), delay)


def converse_wire(reply: Reply, delay: float = 0.0) -> Scripted:
    stop = "tool_use" if reply.tool else "end_turn"
    use = {"toolUseId": f"tooluse_{reply.mark}", "name": reply.tool}
    content = (
        [{"toolUse": {**use, "input": reply.arguments}}] if reply.tool else [{"text": reply.text}]
    )
    tail = {
        "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
        "metrics": {"latencyMs": 1},
    }
    whole = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        **tail,
    }
    if not reply.stream:
        return answered(reply, whole, [], delay)
    parts = (
        [{"toolUse": {"input": json.dumps(reply.arguments)}}]
        if reply.tool
        else [{"text": each} for each in pieces(reply.text)]
    )
    events: list[tuple[str, Any]] = [("messageStart", {"role": "assistant"})]
    if reply.tool:
        events.append(("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": use}}))
    events += [("contentBlockDelta", {"contentBlockIndex": 0, "delta": part}) for part in parts]
    events += [
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": stop}),
        ("metadata", tail),
    ]
    headers = {
        "content-type": "application/vnd.amazon.eventstream",
        "x-amzn-requestid": f"req_{reply.mark}",
    }
    return Scripted(200, headers, [frame(name, data) for name, data in events], delay)


def frame(event: str, data: Any) -> bytes:
    """One message of AWS's binary event stream: total, headers' length, crc32, headers, payload, crc32."""
    names = {":event-type": event, ":content-type": "application/json", ":message-type": "event"}
    head = b"".join(
        struct.pack(">B", len(name))
        + name.encode()
        + struct.pack(">BH", 7, len(value))
        + value.encode()
        for name, value in names.items()
    )
    payload = json.dumps(data).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + head + payload
    return message + struct.pack(">I", binascii.crc32(message))


WIRES = {
    r"/messages$": anthropic_wire,
    r"/chat/completions$": chat_wire,
    r"/responses$": responses_wire,
    r"/model/[^/]+/converse(-stream)?$": converse_wire,
}


def cut(body: bytes, headers: Mapping[str, str]) -> list[bytes]:
    """A recorded stream cut where its sender must have flushed: gzip flush marks, AWS frames, events, lines."""
    kind = headers.get("content-type", "")
    if headers.get("content-encoding"):
        return _after(rb"\x00\x00\xff\xff", body)
    if "vnd.amazon.eventstream" in kind:
        return list(_frames(body))
    if "event-stream" in kind or re.match(rb"(data|event|id|:)", body):
        return _after(rb"\r\n\r\n|\n\n|\r\r", body)
    return _after(rb"\n", body)


def _after(pattern: bytes, body: bytes) -> list[bytes]:
    ends = [0, *(found.end() for found in re.finditer(pattern, body)), len(body)]
    return [body[start:end] for start, end in zip(ends, ends[1:], strict=False) if end > start]


def _frames(body: bytes) -> Iterator[bytes]:
    while len(body) >= 16 and 16 <= (size := int.from_bytes(body[:4], "big")) <= len(body):
        yield body[:size]
        body = body[size:]
    if body:
        yield body


# ---------------------------------------------------------------- the server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    provider: Provider

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        provider = self.server.provider
        with provider._lock:
            provider.connections += 1
            provider._open.add(self.connection)

    def finish(self) -> None:
        provider = self.server.provider
        with provider._lock:
            provider._open.discard(self.connection)
        super().finish()

    def log_message(self, *args: Any) -> None:
        pass

    def answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.provider.answer(Seen(self.command, self.path, headers, self._body()))
        try:
            self._send(answer)
        except OSError:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, answer: Scripted) -> None:
        bodiless = self.command == "HEAD" or answer.status in {204, 304}
        chunked = self._head(answer, bodiless)
        for number, chunk in enumerate(() if bodiless else answer.chunks):
            if number:
                time.sleep(answer.delay)
            _wait(answer.gates.get(number))
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk) if chunked else chunk)
        _wait(answer.gates.get(len(answer.chunks)))
        if answer.then == "end" and chunked and not bodiless:
            self.wfile.write(b"0\r\n\r\n")
        if answer.then != "end":
            self._break_off(answer.then)

    def _head(self, answer: Scripted, bodiless: bool) -> bool:
        if not answer.status:
            return False
        items = list(
            answer.headers.items() if isinstance(answer.headers, Mapping) else answer.headers
        )
        given = {name.lower(): value.lower() for name, value in items}
        if not given.keys() & {
            "content-length",
            "transfer-encoding",
            "connection",
        } and answer.status not in {204, 304}:
            whole = len(answer.chunks) <= 1 and answer.then == "end"
            items.append(
                ("content-length", str(sum(map(len, answer.chunks))))
                if whole
                else ("transfer-encoding", "chunked")
            )
            given.update({name.lower(): value for name, value in items})
        self.send_response_only(answer.status, answer.reason)
        for name, value in items:
            self.send_header(name, value)
        self.end_headers()
        return "chunked" in given.get("transfer-encoding", "")

    def _break_off(self, then: Then) -> None:
        self.close_connection = True
        if then == "hang":
            self.connection.recv(1)  # until the client leaves, or the provider stops
        if then == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.rfile.close()
            self.connection.close()


def _wait(gate: threading.Event | None) -> None:
    if gate is not None and not gate.wait(30):
        raise OSError("nobody opened the gate")


def _quietly(do: Any, *args: Any) -> None:
    try:
        do(*args)
    except OSError:
        pass


def closed_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--vary", action="store_true", help="put a random word into every text")
    parser.add_argument(
        "--delay", type=float, default=0.0, help="seconds between the chunks of a stream"
    )
    options = parser.parse_args()
    with Provider(port=options.port, vary=options.vary, delay=options.delay) as provider:
        print(provider.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
