"""Cassettes with spans of every kind, made through the store, for tests of what shows them."""

from tape_jupyter.providers import registry
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.encoding.values.registry import freeze, freeze_error
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.cassette.records import Head
from tape_jupyter.secrets.registry import Secrets
from tests.harness.tapes import JSON, answered, asked

__all__ = ["Recording", "answered", "asked", "failed", "fetched", "tool"]


def failed(status=429, kind="rate_limit_error"):
    body = f'{{"type":"error","error":{{"type":"{kind}","message":"slow down"}}}}'.encode()
    return Reply(status, JSON, (body,), (0.1,))


def fetched(url, data=b'{"orders":[]}', headers=JSON, status=200):
    return Request("GET", url), Reply(
        status, headers, (data,) if data else (), (0.28,) if data else ()
    )


def tool(name, value=None, error=None, **arguments):
    told = Value(error=freeze_error(error)) if error else Value(freeze(value))
    return FunctionCall(name, arguments), told


class Recording:
    """One run at a time: `run()`, then `add(...)`, then `end()`. Calls follow each other, a second apart."""

    def __init__(self, path, cassette=None):
        self.cassette, self.secrets, self.clock = cassette or Cassette.open(path), Secrets(), 0
        self.name, self.names = "", {}

    def run(self, source="aaaa", title="", count=2, **more):
        record = {
            "mode": "record",
            "source": source,
            "session": "s1",
            "count": count,
            "at": self._at(),
            **more,
        }
        record |= {"title": title} if title else {}
        self.name = self.cassette.start_run(record, {"notebook": "n.ipynb", "cassette": "main"})
        self.names = {}
        return self.name

    def _at(self):
        self.clock += 1
        return f"2026-11-21T{20 + self.clock // 3600:02d}:{self.clock // 60 % 60:02d}:{self.clock % 60:02d}.000Z"

    def add(self, call, reply, *, span=(), parent="", seconds=0.5, at="", **head):
        match = match_key(call, self.secrets)
        self.names[match] = number = self.names.get(match, 0) + 1
        name = match[:8] + (f"-{number}" if number > 1 else "")
        function = isinstance(call, FunctionCall)
        kit = {} if function else registry.call_facts(call, reply).record()
        kind = call.kind if function else "model" if kit.get("model") else "host"
        wrong = reply.error is not None or (isinstance(reply, Reply) and (reply.status or 0) >= 400)
        told = Head(
            name, self.name, match, kind, Where(self.name, "", tuple(span), parent), at or self._at(), seconds, kit,
            call.name if function else "" if kit.get("model") else call.url, "failed" if wrong else "", **head,
        )  # fmt: skip
        return self.cassette.append_call(told, call, reply, self.secrets)

    def end(self, outcome="ok", **told):
        self.cassette.end_run(self.name, {"outcome": outcome, "seconds": 9.0, **told})
