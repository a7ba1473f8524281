"""The tap of the documentation, as written, on a client that sends over a socket of its own."""

import json
import re
import types
from pathlib import Path

import pytest

import tape_jupyter as tape
from tests.harness.provider import Provider

PAGE = Path(__file__).parents[4] / "docs" / "contributing" / "inside.md"
TINYHTTP = """
import socket
from urllib.parse import urlsplit


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body


def send(method, url, headers, body):
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port)) as connection:
        lines = {**headers, "Host": where.netloc, "Content-Length": len(body), "Connection": "close"}
        head = "".join(f"{name}: {value}\\r\\n" for name, value in lines.items())
        connection.sendall(f"{method} {where.path} HTTP/1.1\\r\\n{head}\\r\\n".encode() + body)
        data = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = data.partition(b"\\r\\n\\r\\n")
    first, *lines = head.decode().split("\\r\\n")
    return Response(int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body)
"""
ASKED = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def tinyhttp():
    module = types.ModuleType("tinyhttp")
    exec(TINYHTTP, vars(module))
    example = {}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1], example)
    untap = example["patch"](module)
    yield module
    untap()
    assert not hasattr(module.send, "__wrapped__")


def ask(tinyhttp, url):
    headers = {"content-type": "application/json", "x-api-key": "k"}
    reply = tinyhttp.send("POST", f"{url}/v1/messages", headers, json.dumps(ASKED).encode())
    return reply.status, reply.headers, reply.body


def test_it_records_and_replays(tinyhttp, tmp_path):
    with Provider() as provider:
        url = provider.url
        with tape.recording(tmp_path / "a.tape.yaml") as block:
            recorded = ask(tinyhttp, url)
    (call,) = block.report.calls
    assert recorded[0] == 200 and (call.kind, call.name) == ("model", "m")
    with tape.replaying(tmp_path / "a.tape.yaml"):
        assert ask(tinyhttp, url) == recorded


def test_an_error_is_raised_again(tinyhttp, tmp_path):
    with Provider() as provider:
        url = provider.url
    with tape.recording(tmp_path / "a.tape.yaml"), pytest.raises(ConnectionRefusedError) as first:
        ask(tinyhttp, url)
    with tape.replaying(tmp_path / "a.tape.yaml"), pytest.raises(ConnectionRefusedError) as again:
        ask(tinyhttp, url)
    assert str(again.value) == str(first.value)
