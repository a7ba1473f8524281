"""Real traffic through real clients: what `replay_corpus.py` finds on a sample of it, and on odd replies of our own."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

from tests import replay_corpus
from tests.corpus_clients import sha

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("TAPE_CORPUS", ROOT.parent / "shared" / "corpus"))
NIGHTLY = bool(os.environ.get("TAPE_NIGHTLY"))
EVERY = "13" if NIGHTLY else "71"
SAMPLED = "httpx,httpx2,requests,http.client,aiohttp,anthropic,openai,openai-async,google-genai,mistralai,boto3"
JSON, SSE = ("content-type", "application/json"), ("content-type", "text/event-stream")
CHUNKED = ("transfer-encoding", "chunked")


def replayed(corpus: Path, *options: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines of one run, and its summary; a failure shows what differed."""
    command = [sys.executable, str(ROOT / "tests" / "replay_corpus.py"), str(corpus), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *lines, told = [json.loads(line) for line in done.stdout.splitlines()]
    differing = [line for line in lines if line.get("equal") is False]
    assert (done.returncode, differing[:5]) == (0, []), done.stderr
    return lines, told


def test_a_sample_of_real_traffic_replays_the_same_through_every_client():
    corpus = (
        CORPUS if CORPUS.is_file() else next(iter(sorted(CORPUS.glob("corpus_*.jsonl*"))), None)
    )
    if corpus is None:
        pytest.skip(f"no corpus of real traffic in {CORPUS}; name its folder in TAPE_CORPUS")
    lines, told = replayed(corpus, "--every", EVERY, "--clients", SAMPLED)
    sent = {client: count["sent"] for client, count in told["summary"].items()}
    raw = ("httpx", "httpx2", "requests", "http.client", "aiohttp")
    assert {sent[client] for client in raw} == {told["records"]}
    assert (
        min(
            sent[client]
            for client in ("anthropic", "openai", "openai-async", "google-genai", "boto3")
        )
        > 0
    )
    assert told["live_connections"] == 0
    assert all(line["skipped"] for line in lines if "equal" not in line)


# ---------------------------------------------------------------- replies of our own making


def chat(text: str) -> str:
    message = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    whole = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [message],
    }
    return json.dumps(whole, ensure_ascii=False)


def event(text: str) -> str:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return "data: " + json.dumps(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}
    )


EVENTS = [*map(event, ("The ", "am\x7fber", " f\u2028ox \U0001f98a", "")), "data: [DONE]"]
STREAM = "\n\n".join(EVENTS) + "\n\n"
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "gzip, br": lambda body: brotli.compress(gzip.compress(body)),
}


def flushed(compressor: Any, flush: tuple[Any, ...]) -> bytes:
    """A stream compressed event by event, as a provider sends it."""
    parts = [
        compressor.compress(f"{one}\n\n".encode()) + compressor.flush(*flush) for one in EVENTS
    ]
    return b"".join(parts) + compressor.flush()


def odd_replies() -> Iterator[tuple[int, list[tuple[str, str]], bytes | str, bool]]:
    """status, headers, body, whether it is streamed."""
    for name, encode in ENCODINGS.items():
        yield 200, [JSON, ("content-encoding", name)], encode(chat("hé — \u2028").encode()), False
        yield 200, [SSE, ("content-encoding", name)], encode(STREAM.encode()), True
    yield (
        200,
        [SSE, ("content-encoding", "gzip")],
        flushed(zlib.compressobj(wbits=31), (zlib.Z_SYNC_FLUSH,)),
        True,
    )
    zstd = zstandard.ZstdCompressor().compressobj()
    yield (
        200,
        [SSE, ("content-encoding", "zstd")],
        flushed(zstd, (zstandard.COMPRESSOBJ_FLUSH_BLOCK,)),
        True,
    )
    yield 200, [JSON, ("content-encoding", "gzip")], b"not gzip at all", False
    yield 200, [JSON, ("content-encoding", "gzip")], gzip.compress(chat("cut").encode())[:-9], False
    for status in (
        201,
        202,
        204,
        301,
        304,
        400,
        401,
        403,
        404,
        408,
        409,
        422,
        429,
        500,
        502,
        503,
        529,
    ):
        yield (
            status,
            [JSON, ("retry-after", "1")],
            '{"error": {"message": "no", "type": "t", "code": null}}',
            False,
        )
    yield from ((200, [SSE], body, True) for body in ODD_STREAMS)
    for body in ODD_BODIES:
        yield 200, [JSON], body, False
        yield 200, [("content-type", "text/plain"), CHUNKED], body, False
    yield 200, ODD_HEADERS, chat("head"), False


ODD_STREAMS: list[bytes | str] = [
    STREAM.replace("\n", "\r\n"),
    STREAM.replace("\n", "\r"),
    "\ufeff" + STREAM,
    ": ping\n\n" + STREAM,
    STREAM[:-2],
    STREAM[: len(STREAM) // 2],
    'event: error\ndata: {"error": {"message": "boom"}}\n\n',
    'data: {"error": {"message": "mid"}}\n\n' + STREAM,
    "data: {broken\n\n" + STREAM,
    "data: a\ndata: b\n\n",
    "data\n\n",
    "",
    "data: " + "x" * 200_000 + "\n\n",
    STREAM.encode() + b"\xff\xfe\n\n",
]
ODD_BODIES: list[bytes | str] = [
    '{"a":1,"a":2}',
    '{"a":1.0,"b":1E+2,"n":123456789012345678901234567890,"z":-0.0}',
    '{"s":"\\ud800 \\u00e9 \\/"}',
    "NaN",
    "[" * 3000 + "]" * 3000,
    '{"<from>":"78a670b1 messages[0:17]","base64":"!!!","events":[]}',
    "---\n...\n---\ntape: 99\n...\n",
    "<<<<<<< HEAD\n",
    '{\r\n  "a": 1\r\n}',
    "\u2028\u2029\u0085\x00\x1b[0m",
    json.dumps(
        {
            "no": "yes",
            "1:20": "2001-01-01",
            "? q": "| pipe",
            "t": " lead",
            "v": "\nlead",
            "y": "a\n\n\n",
        }
    ),
    json.dumps({"x": "b" * 70_000, "l": list(range(500))}),
    bytes(range(256)),
    "utf16 é".encode("utf-16"),
    "",
]
ODD_HEADERS = [
    *(
        JSON,
        ("x-a", "1"),
        ("X-A", "2"),
        ("vary", "a"),
        ("vary", "b"),
        ("X-MiXeD", "ok"),
        ("x-empty", ""),
    ),
    *(
        ("x-colon", "a: b # c"),
        ("x-quote", "\"q\" 'r'"),
        ("x-number", "007"),
        ("x-latin", "caf\xe9 \xff"),
    ),
]


def record(
    number: int, status: int, headers: list[tuple[str, str]], body: bytes | str, stream: bool
) -> dict[str, Any]:
    asked = {
        "model": "m",
        "messages": [{"role": "user", "content": f"question {number}"}],
        "stream": stream,
    }
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    url = "https://api.openai.com/v1/chat/completions"
    request = {"method": "POST", "url": url, "headers": [JSON], "body_text": json.dumps(asked)}
    response = {"status": status, "headers": headers, "body_b64": base64.b64encode(data).decode()}
    common = {
        "id": f"odd-{number:03}",
        "provider": "openai",
        "api": "chat",
        "stream": stream,
        "fidelity": "wire",
    }
    return {**common, "request": request, "response": response}


def test_odd_encodings_statuses_streams_bodies_and_headers_replay_the_same(tmp_path):
    records = [record(number, *reply) for number, reply in enumerate(odd_replies())]
    corpus = tmp_path / "odd.jsonl"
    corpus.write_text("".join(json.dumps(one) + "\n" for one in records))
    clients = "httpx,http.client,aiohttp,openai-async,lm15,lm15-async"
    if NIGHTLY:
        clients += ",httpx2-async,requests,openai"
    told = replayed(corpus, "--clients", clients, "--keep", str(tmp_path / "kept"))[1]
    sent = dict.fromkeys(clients.split(","), len(records))
    packing = [dict(each["response"]["headers"]).get("content-encoding", "") for each in records]
    refused = [each for each in packing if "br" in each or "zstd" in each]  # by lm15 itself
    sent |= dict.fromkeys(("lm15", "lm15-async"), len(records) - len(refused))
    assert {name: count["sent"] for name, count in told["summary"].items()} == sent


def test_the_comparison_tells_what_differs():
    one = record(0, 200, [JSON], "{}", stream=False)
    seen = {
        "heads": [[200, "", "", [list(JSON)]]],
        "sizes": [2],
        "wire": sha(b"{}"),
        "objects": "x",
        "error": None,
    }
    assert replay_corpus.differences(seen, seen, one, whole=True) == []
    assert replay_corpus.differences(seen, {**seen, "sizes": [1, 1]}, one, whole=True) == ["sizes"]
    other = {**seen, "wire": sha(b"[]")}
    assert replay_corpus.differences(other, other, one, whole=True) == [
        "the bytes are not those of the corpus"
    ]
    bare = {**seen, "heads": [[200, "", "", []]]}
    assert replay_corpus.differences(bare, bare, one, whole=True) == [
        "headers of the corpus are missing: content-type"
    ]
