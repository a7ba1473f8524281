"""The provider that every other test leans on does what it says."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

from tests.harness.provider import Provider, Scripted, closed_port, cut, sse

RECORD = {
    "id": "r1",
    "stream": True,
    "response": {
        "status": 201,
        "headers": [
            ["content-type", "text/event-stream"],
            ["transfer-encoding", "chunked"],
            ["x-kept", "yes"],
        ],
        "body_text": "data: 1\n\ndata: 2\n\n",
    },
}


def ask(provider: Provider, path: str, body: object = None, **headers: str) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(
        urllib.request.Request(provider.url + path, data, headers), timeout=5
    ) as reply:
        return reply.read()


def test_it_runs_in_a_process_of_its_own():
    with subprocess.Popen(
        [sys.executable, "-m", "tests.harness.provider", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            url = process.stdout.readline().strip()
            body = json.dumps({"messages": "How are you"}).encode()
            with urllib.request.urlopen(f"{url}/v1/messages", body, timeout=5) as reply:
                assert json.load(reply)["content"][0]["text"].startswith("You wrote 3 words")
        finally:
            process.terminate()


def test_the_same_question_gets_the_same_answer_unless_it_varies():
    question = {"messages": [{"role": "user", "content": "hello"}]}
    with Provider() as plain, Provider(vary=True) as varying:
        assert ask(plain, "/v1/messages", question) == ask(plain, "/v1/messages", question)
        assert len({ask(varying, "/v1/messages", question) for _ in range(5)}) > 1


def test_it_calls_the_first_tool_once_and_then_answers():
    tools = [
        {
            "name": "look_up",
            "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }
    ]
    question = {"role": "user", "content": "how many"}
    with Provider() as provider:
        called = json.loads(ask(provider, "/v1/messages", {"messages": [question], "tools": tools}))
        assert called["stop_reason"] == "tool_use" and called["content"][0]["input"] == {"n": 2}
        result = {
            "type": "tool_result",
            "tool_use_id": called["content"][0]["id"],
            "content": "seven",
        }
        messages = [
            question,
            {"role": "assistant", "content": called["content"]},
            {"role": "user", "content": [result]},
        ]
        answered = json.loads(ask(provider, "/v1/messages", {"messages": messages, "tools": tools}))
    assert answered["content"][0]["text"] == "The tool says: seven."


def test_it_serves_a_corpus_record_by_its_id():
    with Provider(corpus={"r1": RECORD}) as provider:
        request = urllib.request.Request(f"{provider.url}/any", b"{}", {"x-corpus-id": "r1"})
        with urllib.request.urlopen(request, timeout=5) as reply:
            assert (reply.status, reply.headers["x-kept"], reply.headers["transfer-encoding"]) == (
                201,
                "yes",
                "chunked",
            )
            assert reply.read() == b"data: 1\n\ndata: 2\n\n"


def test_it_cuts_streams_where_their_sender_flushed():
    assert cut(b"data: 1\r\n\r\ndata: 2\n\nrest", {}) == [
        b"data: 1\r\n\r\n",
        b"data: 2\n\n",
        b"rest",
    ]
    assert cut(b'{"a":1}\n{"b":2}', {}) == [b'{"a":1}\n', b'{"b":2}']
    packed = {"content-encoding": "gzip"}
    assert cut(b"ab\x00\x00\xff\xffcd", packed) == [b"ab\x00\x00\xff\xff", b"cd"]


def test_it_counts_requests_and_connections_and_waits_at_its_gates():
    gate = threading.Event()
    with Provider() as provider:
        provider.script("/gated", Scripted(200, {}, sse((None, 1), (None, 2)), gates={1: gate}))
        with urllib.request.urlopen(f"{provider.url}/gated", timeout=5) as reply:
            assert reply.readline() == b"data: 1\n"
            gate.set()
            assert reply.read() == b"\ndata: 2\n\n"
        assert (len(provider.requests), provider.connections) == (1, 1)


def test_nobody_listens_on_a_closed_port():
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", closed_port()), timeout=5)
