"""`tape import` of 100,000 spans (300 MB of OTLP, GenAI and OpenInference calls, tools, HTTP): <= 60 s, <= 500 MB."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import report

SPANS = 100_000
CHANCE = random.Random(7)
WORDS = ["".join(CHANCE.choices("abcdefghijklmnopqrstuvwxyz", k=CHANCE.randint(2, 10))) for _ in range(20_000)]  # fmt: skip


def main():
    spans = int(sys.argv[1]) if len(sys.argv) > 1 else SPANS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        written = write(path, spans)
        began = time.perf_counter()
        words = [sys.executable, "-m", "tape_jupyter", "import", path.name]
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        megabytes = used.ru_maxrss / (1024 if sys.platform == "linux" else 2**20)
        size = path.stat().st_size / 1e6
    holds = seconds <= 60 and megabytes <= 500 if spans == SPANS else None
    report(
        f"tape import of {written:,} spans ({size:.0f} MB of OTLP)", "<= 60 s and <= 500 MB", holds,
        s=round(seconds, 1), processor_s=round(used.ru_utime + used.ru_stime, 1), mb=round(megabytes),
        load=round(os.getloadavg()[0], 1),
    )  # fmt: skip


def write(path, spans):
    """A trace of 5 to 40 spans after another, their spans mixed, 50 to a request; how many there are."""
    waiting, count, at = [], 0, 1772366400 * 10**9
    with path.open("w") as file:
        while count < spans:
            trace = list(a_trace(at))
            CHANCE.shuffle(trace)
            waiting, count, at = waiting + trace, count + len(trace), at + 10**10
            while len(waiting) >= 50 or (count >= spans and waiting):
                part, waiting = waiting[:50], waiting[50:]
                inner = {"scope": {"name": "x"}, "spans": part}
                told = {"resourceSpans": [{"resource": {}, "scopeSpans": [inner]}]}
                file.write(json.dumps(told) + "\n")
    return count


def a_trace(at):
    own, above = identity(32), []
    for place in range(CHANCE.randint(5, 40)):
        kind = CHANCE.choices([genai, openinference, tool, chain, http], [34, 26, 28, 7, 5])[0]
        kind = kind if place else chain
        span, start = identity(16), at + place * 10**7
        more = {"parentSpanId": CHANCE.choice(above)} if place else {}
        if kind in (chain, tool):
            above.append(span)
        yield {
            "traceId": own, "spanId": span, "name": kind.__name__, "kind": 3, "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + CHANCE.randint(1, 900) * 10**6), "status": {"code": 1},
            "attributes": [{"key": name, "value": value(each)} for name, each in kind().items()], **more,
        }  # fmt: skip


def value(told):
    if isinstance(told, int):
        return {"intValue": str(told)}
    return {"doubleValue": told} if isinstance(told, float) else {"stringValue": told}


def text(words):
    return " ".join(CHANCE.choices(WORDS, k=words))


def identity(digits):
    return f"{CHANCE.getrandbits(4 * digits):0{digits}x}"


def said(role, words):
    return {"role": role, "parts": [{"type": "text", "content": text(words)}]}


def genai():
    asked = [said("user", CHANCE.randint(20, 280))]
    for _ in range(CHANCE.randint(0, 3)):
        use = {"type": "tool_call", "id": identity(6), "name": "look", "arguments": {"q": text(5)}}
        seen = {"type": "tool_call_response", "id": use["id"], "response": text(40)}
        asked += [{"role": "assistant", "parts": [use]}, {"role": "tool", "parts": [seen]}]
    answer = {**said("assistant", CHANCE.randint(10, 200)), "finish_reason": "stop"}
    provider, model = CHANCE.choice(
        [("openai", "gpt-4o-mini"), ("anthropic", "claude-sonnet-4-5"), ("gcp.gemini", "gemini-2.5-flash")]
    )  # fmt: skip
    return {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model,
        "gen_ai.request.temperature": 0.5, "gen_ai.request.max_tokens": 512, "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps([answer]), "gen_ai.usage.input_tokens": 300, "gen_ai.usage.output_tokens": 90,
    }  # fmt: skip


def openinference():
    asked = [{"role": "system", "content": text(20)}, {"role": "user", "content": text(CHANCE.randint(20, 330))}]  # fmt: skip
    message = {"role": "assistant", "content": text(CHANCE.randint(10, 200))}
    reply = {
        "id": identity(8), "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }  # fmt: skip
    return {
        "openinference.span.kind": "LLM", "llm.provider": "openai", "llm.model_name": "gpt-4o-mini",
        "input.value": json.dumps({"model": "gpt-4o-mini", "messages": asked, "temperature": 0}),
        "output.value": json.dumps(reply), "llm.input_messages.0.message.content": asked[1]["content"],
    }  # fmt: skip


def tool():
    return {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": CHANCE.choice(["look", "search", "read"]),
        "gen_ai.tool.call.arguments": json.dumps({"q": text(6), "n": CHANCE.randint(0, 9)}),
        "gen_ai.tool.call.result": json.dumps({"found": text(CHANCE.randint(20, 250))}),
    }  # fmt: skip


def chain():
    return {"openinference.span.kind": "CHAIN", "input.value": text(10)}


def http():
    return {"http.request.method": "POST", "http.response.status_code": 200, "note": text(20)}


if __name__ == "__main__":
    main()
