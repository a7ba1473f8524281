"""A server on loopback in a process of its own: answers Anthropic calls with a body of the request's size."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if asked.get("stream"):
            return self.stream(asked["max_tokens"])
        text = asked["messages"][-1]["content"][::-1]
        body = json.dumps(message([{"type": "text", "text": text}]), separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events: int) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in stream_events(events):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        pass


def message(content: list[dict]) -> dict:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 9},
    }  # fmt: skip


def stream_events(count: int) -> Iterator[bytes]:
    """A message of `count` text deltas, as Anthropic streams it."""
    yield sse("message_start", {"message": {**message([]), "stop_reason": None}})
    yield sse("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
    for number in range(count):
        yield sse(
            "content_block_delta",
            {"index": 0, "delta": {"type": "text_delta", "text": f"word{number} "}},
        )
    yield sse("content_block_stop", {"index": 0})
    yield sse(
        "message_delta",
        {
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": count},
        },
    )
    yield sse("message_stop", {})


def sse(kind: str, data: dict) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, separators=(',', ':'))}\n\n".encode()


@contextmanager
def serving() -> Iterator[str]:
    """Base URL of the server, which ends with the block."""
    child = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    try:
        yield child.stdout.readline().strip()
    finally:
        child.kill()
        child.wait()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
