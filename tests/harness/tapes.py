"""Cassettes made through the store itself, for tests of what reads them."""

import json
from pathlib import Path

from tape_jupyter.providers import registry
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.cassette.records import Head
from tape_jupyter.secrets.registry import Secrets

# A cell: a model asked through a transport that is tapped, without an SDK's import time. Replace URL.
ASK = """import json, urllib3
def ask(text):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}
    reply = urllib3.PoolManager().request("POST", "URL/v1/messages", json=body, retries=False)
    return "".join(block["text"] for block in reply.json()["content"])"""

URL = "https://api.anthropic.com/v1/messages"
JSON = (("content-type", "application/json"),)


def asked(*texts, model="claude-sonnet-4-5"):
    messages = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": text}
        for i, text in enumerate(texts)
    ]
    return Request(
        "POST",
        URL,
        JSON,
        json.dumps({"model": model, "max_tokens": 9, "messages": messages}).encode(),
    )


def answered(text, status=200):
    body = {"type": "message", "model": "claude-sonnet-4-5-20250929", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {"input_tokens": 1000, "output_tokens": 100}}  # fmt: skip
    data = json.dumps(body).encode()
    return Reply(status, (*JSON, ("request-id", "req_1")), (data[:20], data[20:]), (0.1, 0.2))


class Recorder:
    """Records runs into a cassette: `with_calls("cell source", [(request, reply), ...])` is one run."""

    def __init__(self, path: Path, session="s1"):
        self.cassette, self.secrets, self.session = Cassette.open(path), Secrets(), session

    def run(self, source, *calls, outcome="ok", **more):
        record = {
            "mode": "record",
            "source": source,
            "session": self.session,
            "count": 3,
            "at": "2026-11-21T20:41:07.512Z",
        }
        run = self.cassette.start_run(
            {**record, **more}, {"notebook": "n.ipynb", "cassette": "main"}
        )
        self.cassette.add_kit(run, {"python": "3.11.7", "source": source})
        names = {}
        for call, reply in calls:
            self.call(run, call, reply, names)
        if outcome:
            self.cassette.end_run(run, {"outcome": outcome, "calls": len(calls)})
        return run

    def call(self, run, call, reply, names):
        match = match_key(call, self.secrets)
        names[match] = names.get(match, 0) + 1
        name = match[:8] if names[match] == 1 else f"{match[:8]}-{names[match]}"
        is_tool = isinstance(call, FunctionCall)
        kit = {} if is_tool else registry.call_facts(call, reply).record()
        head = Head(
            name,
            run,
            match,
            call.kind if is_tool else "model",
            Where(),
            "2026-11-21T20:41:07.600Z",
            1.25,
            kit,
            call.name if is_tool else "",
        )
        return self.cassette.append_call(head, call, reply, self.secrets)


def churn(folder: Path) -> Path:
    """churn.tapes/main.tape.yaml: two cells, one recorded twice, a model call and a tool call."""
    path = folder / "churn.tapes" / "main.tape.yaml"
    first = Recorder(path)
    first.run("aaaa", (asked("Which region?"), answered("North")))
    Recorder(path, "s2").run("aaaa", (asked("Which region?"), answered("South")))
    Recorder(path, "s2").run(
        "bbbb",
        (FunctionCall("lookup", {"id": 7}), Value({"name": "Ada"})),
        outcome="raised",
        cell="",
    )
    return path
