"""Records calls of every shape through the store, as a cell does."""

import json

from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.encoding.values.registry import freeze, freeze_error
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.cassette.records import Head
from tape_jupyter.secrets.registry import Secrets

URL = "https://api.example.com/v1/messages"
JSON = (("content-type", "application/json"),)
SSE = (("content-type", "text/event-stream"),)
KEY = "sk-ant-api03-1234567890abcdefg"


def request(body, url=URL):
    data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    return Request("POST", url, JSON, data)


def reply(text="fine", chunks=1):
    data = json.dumps({"content": text}, separators=(",", ":")).encode()
    size = max(1, len(data) // chunks)
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    return Reply(
        200,
        (*JSON, ("content-length", str(len(data)))),
        tuple(parts),
        tuple(round(0.1 * (n + 1), 1) for n in range(len(parts))),
    )


class Recorder:
    """Appends calls as a cell does."""

    def __init__(self, path, secrets=None, cassette=None):
        self.tape, self.secrets = cassette or Cassette.open(path), secrets or Secrets()
        self.run = self.tape.start_run(
            {"mode": "record", "source": "x"}, {"notebook": "churn.ipynb"}, self.secrets
        )
        self.names = {}

    def add(self, call, answer, lineage="", **head):
        match = match_key(call, self.secrets)
        self.names[match] = count = self.names.get(match, 0) + 1
        name = match[:8] + (f"-{count}" if count > 1 else "")
        told = Head(
            name,
            self.run,
            match,
            "model",
            Where("c", lineage),
            "2026-11-21T20:41:07.512Z",
            0.5,
            **head,
        )
        return self.tape.append_call(told, call, answer, self.secrets)

    def end(self, **told):
        self.tape.end_run(self.run, {"outcome": "ok", **told}, self.secrets)


def talk(turns, run=0):
    return {
        "system": "Be careful. " * 40,
        "messages": [
            {"role": "user", "content": f"{run} turn {n} " + "word " * 40} for n in range(turns)
        ],
    }


def held(tape):
    return [(e.run, e.id, e.match, e.lineage, e.request(), e.reply()) for e in tape.calls]


CALLS = [
    (request({"q": 1}), reply()),
    (request({"q": 1}), reply("again")),
    (request(b"plain \xff\x00"), Reply(200, (), (bytes(range(256)),), (0.0,))),
    (request({"q": "ünï – 😀 \ud83d\ude00"}), reply("日本\u2028\x85\x00", chunks=7)),
    (request(b""), Reply(204)),
    (request({"stream": True}), Reply(200, SSE, tuple(f'data: {{"t":"{n}"}}\n\n'.encode() for n in range(50)) + (b"data: [DONE]\n\n",), tuple(round(n / 10, 1) for n in range(51)))),
    (request({"q": "gone"}), Reply(None, (), (), (0.5,), "error", freeze_error(ConnectionRefusedError(111, "no")))),
    (request({"q": "half"}), Reply(200, JSON, (b'{"ha',), (0.5,), "error", freeze_error(ConnectionResetError(104, "r")))),
    (request({"q": "cut"}), Reply(200, SSE, (b"data: 1\n\n", b"da"), (0.5, 0.6), "closed")),
    (FunctionCall("look_up", {"id": 7, "on": True}), Value(freeze({"name": "Ada", "at": (1, 2)}))),
    (FunctionCall("look_up", {"id": 8}), Value(error=freeze_error(KeyError("ada")))),
    (FunctionCall("search", {"q": "x"}, "retrieval"), Value(freeze([1.0, None]))),
]  # fmt: skip
