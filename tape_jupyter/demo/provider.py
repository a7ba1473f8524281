"""The demo's stand-in for a model: Anthropic's and OpenAI's wire forms on loopback, chance
included.

Standard library only. It knows the three prompts of pipeline.ipynb, refuses requests without the
key of DEMO_KEY, and waits like a model does: half a second for the first token, then some 30 tokens
a second.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FIRST_TOKEN = (0.25, 0.55)
"""Seconds, from and to."""
NEXT_TOKEN = (0.02, 0.05)

_chance = random.SystemRandom()


# ---- what it says


def think(prompt: str) -> str:
    """The continuation of a prompt, by its last word; another one every time."""
    question = prompt.rstrip().rpartition("\n")[2]
    if question.startswith("Sentiment"):
        return _chance.choice((" positive", " positive", " negative"))
    if question.startswith("Call"):
        return json.dumps(_choose_next_call(prompt))
    return _compose_summary()


def _choose_next_call(prompt: str) -> dict[str, str]:
    """A tool for this customer that was not called yet, or done."""
    story = prompt.rpartition("\nCustomer (")[2]
    left = [tool for tool in ("lookup_customer", "lookup_invoice") if tool not in story]
    if not left or ("Result:" in story and _chance.random() < 0.5):
        return {"tool": "done", "query": ""}
    what = _chance.choice(("billing", "billing page", "access to billing", "account locked"))
    return {"tool": _chance.choice(left), "query": f"{what} {_chance.randrange(100, 1000)}"}


def _compose_summary() -> str:
    who = _chance.choice(("A customer", "Ada Roy", "The customer", "A Pro customer"))
    mood = _chance.choice(
        ("is cross", "is worried", "is puzzled", "is polite but firm", "asks for the second time")
    )
    want = _chance.choice(
        ("unlock the billing page", "send the invoices", "call back", "reset the login")
    )
    ticket = _chance.randrange(10**4, 10**5)
    return f" {who} {mood}: the billing page cannot be reached; {want} today (ticket {ticket})."


def word_tokens(text: str) -> list[str]:
    """The pieces in which it says a text: a word with the space before it."""
    return re.findall(r"\s*\S+", text)


# ---- the wire


def prompt_of(body: dict[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


def message(body: dict[str, Any], text: str) -> dict[str, Any]:
    """Anthropic's message."""
    usage = {"input_tokens": len(prompt_of(body)) // 4, "output_tokens": len(word_tokens(text))}
    return {
        "id": f"msg_{secrets.token_hex(12)}", "type": "message", "role": "assistant", "model": body["model"],
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def message_events(full_message: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The same message as Anthropic streams it."""
    start = {
        **full_message,
        "content": [],
        "stop_reason": None,
        "usage": {**full_message["usage"], "output_tokens": 1},
    }
    yield {"type": "message_start", "message": start}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in word_tokens(full_message["content"][0]["text"]):
        yield {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": piece},
        }
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": full_message["stop_reason"], "stop_sequence": None}
    yield {
        "type": "message_delta",
        "delta": end,
        "usage": {"output_tokens": full_message["usage"]["output_tokens"]},
    }
    yield {"type": "message_stop"}


def chat_completion(body: dict[str, Any], text: str) -> dict[str, Any]:
    """OpenAI's chat completion."""
    into, out = len(prompt_of(body)) // 4, len(word_tokens(text))
    reply_message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [
            {"index": 0, "message": reply_message, "finish_reason": "stop", "logprobs": None}
        ],
        "usage": {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out},
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "stand-in", ""
    disable_nagle_algorithm = True
    key = ""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        if not self._has_key():
            return self._send_json(
                401, {"error": {"type": "authentication_error", "message": "wrong or no key"}}
            )
        if self.path == "/v1/messages":
            return self._send_message(body)
        if self.path == "/v1/chat/completions":
            return self._send_json(200, chat_completion(body, self._wait_for_answer(body)))
        return self._send_json(404, {"error": {"type": "not_found_error", "message": self.path}})

    def _has_key(self) -> bool:
        sent = (
            self.headers.get("authorization", "").removeprefix("Bearer "),
            self.headers.get("x-api-key", ""),
        )
        return not self.key or self.key in sent

    def _wait_for_answer(self, body: dict[str, Any]) -> str:
        time.sleep(_chance.uniform(*FIRST_TOKEN))
        return think(prompt_of(body))

    def _send_message(self, body: dict[str, Any]) -> None:
        full_message = message(body, self._wait_for_answer(body))
        if not body.get("stream"):
            return self._send_json(200, full_message)
        self._send_head(200, "text/event-stream; charset=utf-8", ("transfer-encoding", "chunked"))
        for event in message_events(full_message):
            time.sleep(
                _chance.uniform(*NEXT_TOKEN) if event["type"] == "content_block_delta" else 0
            )
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _send_json(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer, separators=(",", ":")).encode()
        self._send_head(status, "application/json", ("content-length", str(len(data))))
        self.wfile.write(data)

    def _send_head(self, status: int, kind: str, framing: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (
            ("content-type", kind),
            framing,
            ("request-id", f"req_{secrets.token_hex(8)}"),
        ):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Says nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error."""


def main() -> None:
    """Listen on --port (on any free one if it is taken), print the address, serve until terminated."""
    parser = argparse.ArgumentParser(description="A stand-in for a model, on loopback.")
    parser.add_argument("--port", type=int, default=0)
    port = parser.parse_args().port
    Handler.key = os.environ.get("DEMO_KEY", "")
    try:
        server = Server(("127.0.0.1", port), Handler)
    except OSError:
        server = Server(("127.0.0.1", 0), Handler)
    # its parent waits for this line
    print(f"http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
