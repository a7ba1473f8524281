"""Runs as a report sees them, recorded through the store: for tests of budget, kit fields, cold cases and drift."""

import dataclasses
import itertools
import json
from pathlib import Path

from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.audit.run_view import view_run
from tests.harness.tapes import JSON, Recorder

CHAT = "https://api.openai.com/v1/chat/completions"
CLAUDE = "https://api.anthropic.com/v1/messages"
PINS = {"clock": {"wall": 1, "monotonic": 1, "perf": 1}, "timezone": {"zone": "Europe/Oslo"}, "random": {"seed": "00", "hash": "aa", "at": {"random": "1"}}}  # fmt: skip
CLOCK = {"utc": "2026-11-21T20:41:07.512Z", "zone": "Europe/Oslo", "offset": "+0100"}
_numbers = itertools.count()


def chat(text="hi", *, url=CHAT, headers=(), **body):
    whole = {"model": "gpt-4o-2024-08-06", "messages": [{"role": "user", "content": text}], **body}
    return Request("POST", url, (*JSON, *headers), json.dumps(whole).encode())


def said(text="yes", *, status=200, headers=(), calls=(), **body):
    """An OpenAI completion; `calls` are the names of tools it asks for."""
    tools = [
        {"id": f"t{n}", "function": {"name": name, "arguments": "{}"}}
        for n, name in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": tools}
    whole = {"model": "gpt-4o-2024-08-06", "choices": [{"message": message}], **body}
    return Reply(
        status, (*JSON, ("x-request-id", "req_9"), *headers), (json.dumps(whole).encode(),), (0.1,)
    )


def claude(text="hi", **body):
    whole = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": text}],
        **body,
    }
    return Request("POST", CLAUDE, JSON, json.dumps(whole).encode())


def claude_said(model="claude-sonnet-4-5-20250929", **body):
    whole = {
        "type": "message",
        "model": model,
        "content": [{"type": "text", "text": "yes"}],
        **body,
    }
    return Reply(200, JSON, (json.dumps(whole).encode(),), (0.1,))


def tool(name="lookup", result="found", **arguments):
    return FunctionCall(name, arguments), result if isinstance(result, Value) else Value(
        freeze(result)
    )


def found(chunks, query="q", name="search", **arguments):
    return FunctionCall(name, {"query": query, **arguments}, "retrieval"), Value(freeze(chunks))


def run_of(folder: Path, *calls, kit=None, pins=PINS, end=None, outcome="ok", **record):
    """A run of these (request, reply) pairs, recorded and read back. `kit`, `record` and `end` are added to its records."""
    path = folder / f"{next(_numbers)}.tapes" / "main.tape.yaml"
    seen = view_run(*recorded(path, *calls, kit=kit, pins=pins, end=end, outcome=outcome, **record))
    return dataclasses.replace(seen, notebook="n.ipynb")


def recorded(path, *calls, kit=None, pins=PINS, end=None, outcome="ok", source="aaaa", **record):
    """The cassette and the id of the run that was added to it."""
    recorder = Recorder(path)
    more = {"pins": pins} if pins else {}
    run = recorder.run(source, *calls, outcome="", kit={"clock": CLOCK}, **more, **record)
    recorder.cassette.add_kit(run, {"python": "3.11.7", "variables": "HOME PATH", **(kit or {})})
    if outcome:
        recorder.cassette.end_run(run, {"outcome": outcome, "calls": len(calls), **(end or {})})
    return Cassette.open(path), run
