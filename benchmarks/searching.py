"""The search for secrets at export costs at most 1 s per 100 MB: of processor time, kind by kind of what bundles hold.

    python benchmarks/searching.py [--megabytes 20] [KIND ...]

Floor: hashlib's SHA-256 over the same bytes, which an export pays for each file anyway.
"""

from __future__ import annotations

import argparse
import base64
import functools
import gc
import hashlib
import io
import json
import random
import struct
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import prose, report

BAR, ROUNDS = 1.0, 3
KEY = "sk-ant-api03-k3jv9d8fk20dk3jv9d8fk20dQx7"
URL = "https://api.example.com/v1/messages"


def picture(rng: random.Random, size: int = 60_000) -> bytes:
    """A PNG of noise: of `size` bytes, about."""
    side = int(size**0.5)
    rows = b"".join(b"\0" + rng.randbytes(side) for _ in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def words(rng: random.Random, count: int) -> str:
    return prose(rng.randrange(10**9), count)


def ident(rng: random.Random, start: str) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    return start + "".join(rng.choices(letters, k=24))


def turns(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """What an agent and its tools say to each other."""
    said: list[dict[str, Any]] = []
    for _ in range(count):
        use = ident(rng, "toolu_")
        asked = {
            "query": words(rng, 8),
            "limit": rng.randrange(100),
            "after": "2026-01-28T12:30:11Z",
        }
        found = {
            "rows": [
                {"id": rng.randrange(10**6), "score": rng.random(), "text": words(rng, 30)}
                for _ in range(5)
            ]
        }
        said += [
            {"role": "user", "content": words(rng, 60)},
            {"role": "assistant", "content": [{"type": "text", "text": words(rng, 80)}, {"type": "tool_use", "id": use, "name": "look_up", "input": asked}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use, "content": json.dumps(found)}]},
        ]  # fmt: skip
    return said


def request(messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    }
    tool = {"name": "look_up", "description": "Looks rows up.", "input_schema": schema}
    return {
        "model": "claude-opus-5",
        "max_tokens": 400,
        "tools": [tool],
        "messages": messages,
        **more,
    }


def events(rng: random.Random, text: str) -> bytes:
    """A streamed reply of a few letters an event."""
    lines, at = [], 0
    while at < len(text):
        size = rng.randint(2, 9)
        delta = {"type": "text_delta", "text": text[at : at + size]}
        event = {"type": "content_block_delta", "index": 0, "delta": delta}
        lines.append(f"event: content_block_delta\ndata: {json.dumps(event)}\n\n")
        at += size
    return "".join(lines).encode()


def vector(rng: random.Random) -> list[float]:
    return [rng.gauss(0, 0.03) for _ in range(1536)]


def packed(rng: random.Random) -> str:
    """A vector as OpenAI's client asks for it."""
    return base64.b64encode(struct.pack("<1536f", *vector(rng))).decode()


def file_of(make: Callable[[random.Random], bytes], size: int) -> bytes:
    rng, out = random.Random(5), io.BytesIO()
    while out.tell() < size:
        out.write(make(rng))
    return out.getvalue()


def notebook(size: int) -> bytes:
    rng, cells, total = random.Random(5), [], 0
    while total < size:
        shown = base64.encodebytes(picture(rng)).decode()
        output = {"output_type": "display_data", "data": {"image/png": shown}, "metadata": {}}
        cells.append(
            {"cell_type": "code", "metadata": {}, "source": words(rng, 40), "outputs": [output]}
        )
        total += len(shown)
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def cassette(
    size: int, calls: Callable[[random.Random], Iterator[tuple[Any, bytes, str]]]
) -> dict[str, bytes]:
    """What recording such calls writes: the cassette, and the long texts beside it."""
    from tape_jupyter.cassette.cassette import Cassette
    from tape_jupyter.cassette.match_key import match_key
    from tape_jupyter.cassette.records import Head
    from tape_jupyter.core.call import Reply, Request, Where
    from tape_jupyter.secrets.registry import Secrets

    rng, secrets, total, number = random.Random(5), Secrets(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        tape = Cassette.open(Path(folder) / "main.tape.yaml")
        run = tape.start_run({"mode": "record", "source": "x"}, {"notebook": "n.ipynb"}, secrets)
        while total < size:
            for asked, answer, kind in calls(rng):
                body = json.dumps(asked).encode()
                call = Request("POST", URL, (("content-type", "application/json"),), body)
                chunks = tuple(answer[at : at + 4096] for at in range(0, len(answer), 4096))
                reply = Reply(200, (("content-type", kind),), chunks, tuple(0.1 for _ in chunks))
                match, number = match_key(call, secrets), number + 1
                head = Head(
                    f"{match[:8]}-{number}",
                    run,
                    match,
                    "model",
                    Where("c", ""),
                    "2026-11-21T20:41:07.512Z",
                    0.5,
                )
                tape.append_call(head, call, reply, secrets)
            total = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        tape.end_run(run, {"outcome": "ok", "calls": number}, secrets)
        files = [
            file
            for file in sorted(Path(folder).rglob("*"))
            if file.is_file() and file.stat().st_size
        ]
        return {f"session/n.tapes/{file.relative_to(folder)}": file.read_bytes() for file in files}


def talk(rng: random.Random) -> Iterator[tuple[Any, bytes, str]]:
    """An agent's loop, the whole history in each request; every other reply is streamed."""
    said = turns(rng, 12)
    for end in range(1, len(said), 2):
        answer = json.dumps(
            {"id": ident(rng, "msg_"), "content": [{"type": "text", "text": words(rng, 200)}]}
        )
        if end % 4 == 1:
            yield (
                request(said[:end], stream=True),
                events(rng, words(rng, 120)),
                "text/event-stream",
            )
        else:
            yield request(said[:end]), answer.encode(), "application/json"


def embed(rng: random.Random) -> Iterator[tuple[Any, bytes, str]]:
    rows = [{"object": "embedding", "index": n, "embedding": vector(rng)} for n in range(4)]
    yield (
        {"input": words(rng, 60), "model": "e"},
        json.dumps({"data": rows}).encode(),
        "application/json",
    )
    rows = [{"object": "embedding", "index": n, "embedding": packed(rng)} for n in range(8)]
    yield (
        {"input": words(rng, 60), "model": "e", "encoding_format": "base64"},
        json.dumps({"data": rows}).encode(),
        "application/json",
    )


def traffic(rng: random.Random) -> bytes:
    """A log of an agent's loop: every request whole, every reply."""
    lines = []
    for asked, answer, _ in talk(rng):
        lines += [
            json.dumps({"request": json.dumps(asked)}),
            json.dumps({"response": answer.decode()}),
        ]
    return "\n".join(lines).encode() + b"\n"


def request_lines(rng: random.Random) -> bytes:
    return "".join(json.dumps(request(turns(rng, 4))) + "\n" for _ in range(5)).encode()


def log(rng: random.Random) -> bytes:
    lines = [
        f"2026-01-28 12:{n:02}:11,{rng.randrange(1000):03} INFO httpx: HTTP Request: POST {URL}?trace={rng.randbytes(16).hex()} \"HTTP/1.1 200 OK\"\n"
        f"2026-01-28 12:{n:02}:12 DEBUG /usr/lib/python3.11/site-packages/agent/loop.py:{n} {words(rng, 12).replace(chr(10), ' ')}\n"
        for n in range(60)
    ]  # fmt: skip
    return "".join(lines).encode()


def page(rng: random.Random) -> bytes:
    shown = base64.b64encode(picture(rng)).decode()
    return f'<p>{words(rng, 40)}</p><img src="data:image/png;base64,{shown}">\n'.encode()


KINDS: dict[str, Callable[[int], dict[str, bytes]]] = {
    "prose": lambda size: {"a.txt": file_of(lambda rng: words(rng, 500).encode(), size)},
    "requests as JSON lines": lambda size: {"a.jsonl": file_of(request_lines, size)},
    "traffic of an agent, JSON in JSON": lambda size: {"a.jsonl": file_of(traffic, size)},
    "streamed replies": lambda size: {"a.txt": file_of(lambda rng: events(rng, words(rng, 500)), size)},
    "cassette of an agent": lambda size: cassette(size, talk),
    "cassette of embeddings": lambda size: cassette(size, embed),
    "numbers": lambda size: {"a.json": file_of(lambda rng: json.dumps(vector(rng)).encode() + b"\n", size)},
    "vectors in base64": lambda size: {"a.json": file_of(lambda rng: json.dumps({"embedding": packed(rng)}).encode() + b"\n", size)},
    "log": lambda size: {"a.log": file_of(log, size)},
    "notebook of pictures": lambda size: {"session/n.ipynb": notebook(size)},
    "page of pictures": lambda size: {"a.html": file_of(page, size)},
    "PNG": lambda size: {"a.png": picture(random.Random(5), size)},
    "bytes": lambda size: {"a.bin": random.Random(5).randbytes(size)},
}  # fmt: skip


def least(work: Callable[[], Any]) -> float:
    """Seconds of this process's processor, in the round that others disturbed least."""
    taken = []
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def measure(kind: str, size: int) -> None:
    from tape_jupyter.secrets import leaks
    from tape_jupyter.secrets.registry import Secrets

    files, secrets = KINDS[kind](size), Secrets()
    secrets.learn("ANTHROPIC_API_KEY", KEY)
    leaks.scan({"warm": b"eyJ" * 20}, secrets)
    total = sum(map(len, files.values()))
    found: list[leaks.Leak] = []
    spent = least(lambda: found.extend(leaks.scan(files, secrets)))
    assert not found, found[:3]
    floor = least(lambda: [hashlib.sha256(data).digest() for data in files.values()])
    per = spent / total * 1e8
    report(
        f"searching, {kind}",
        f"<= {BAR} s per 100 MB",
        per <= BAR,
        seconds_per_100_mb=round(per, 2),
        floor=round(floor / total * 1e8, 2),
        ratio=round(spent / floor, 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("kinds", nargs="*")
    asked = parser.parse_args()
    for kind in asked.kinds or KINDS:
        measure(kind, asked.megabytes * 10**6)


if __name__ == "__main__":
    main()
