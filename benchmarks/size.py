"""A cassette of a 200-turn agent loop: at most 1.5 times its unique content, and linear from 50 to 200 turns."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import peers
from harness import client, prose, report, say, workplace

import tape_jupyter as tape

BAR = 1.5
TOOLS = [
    {
        "name": "lookup",
        "description": "Look a record up.",
        "input_schema": {"type": "object", "properties": {"key": {"type": "string"}}},
    }
]


def reply(turn: int) -> bytes:
    content = [
        {"type": "text", "text": f"Turn {turn}: {prose(turn, 60)}"},
        {
            "type": "tool_use",
            "id": f"toolu_{turn:06d}",
            "name": "lookup",
            "input": {"key": f"key {turn} {prose(turn + 3, 20)}"},
        },
    ]
    body = {
        "id": f"msg_{turn:08d}", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": content,
        "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 900, "output_tokens": 90},
    }  # fmt: skip
    return json.dumps(body, separators=(",", ":")).encode()


def loop(turns: int, unique: dict[str, int]) -> None:
    """An agent loop; `unique` collects each distinct message, and each reply's headers and body, with its size in bytes."""
    asking, messages = client(handler), [{"role": "user", "content": f"Start: {prose(1, 80)}"}]
    for turn in range(turns):
        asking.messages.create(
            model="claude-opus-5",
            max_tokens=400,
            system=prose(5, 200),
            tools=TOOLS,
            messages=messages,
        )
        used = json.loads(reply(turn))["content"]
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{turn:06d}",
            "content": f"Record {turn}: {prose(turn + 9, 120)}",
        }
        messages += [{"role": "assistant", "content": used}, {"role": "user", "content": [result]}]
        unique[f"reply {turn}"] = len(reply(turn)) + sum(
            len(f"{name}: {value}") for name, value in headers_of(reply(turn)).items()
        )
    for part in (*messages, *TOOLS, prose(5, 200)):
        text = json.dumps(part, separators=(",", ":"))
        unique[text] = len(text)


def headers_of(body: bytes) -> dict[str, str]:
    return {"content-type": "application/json", "content-length": str(len(body))}


def handler(request: httpx2.Request) -> httpx2.Response:
    body = reply((len(json.loads(request.content)["messages"]) - 1) // 2)
    return httpx2.Response(200, headers=headers_of(body), stream=httpx2.ByteStream(body))


def main():
    with workplace() as folder:
        grown = {}
        for turns in (50, 200):
            path, unique = folder / f"{turns}.tape.yaml", {}
            with tape.recording(path):
                loop(turns, unique)
            grown[turns] = path.stat().st_size
            of_unique = round(grown[turns] / sum(unique.values()), 3)
        growth = round(grown[200] / grown[50], 3)
        report(
            "cassette of a 200-turn loop",
            f"<= {BAR} x unique content",
            of_unique <= BAR,
            ratio=of_unique,
            bytes=grown[200],
            unique_bytes=sum(unique.values()),
        )
        report("growth from 50 to 200 turns", "linear: <= 4.1 x", growth <= 4.1, ratio=growth)
        for name in peers.PEERS:
            compare(name, folder / f"{name}.yaml")


def compare(name: str, path: Path) -> None:
    """A peer's file after 50 turns (it grows with the square: 200 take minutes to write)."""
    say(f"{name}: 50 turns")
    unique: dict[str, int] = {}
    figure = f"cassette of a 50-turn loop ({name})"
    try:
        with peers.recorded(name, path):
            loop(50, unique)
        size = path.stat().st_size
        report(
            figure, "for comparison", None, ratio=round(size / sum(unique.values()), 1), bytes=size
        )
    except BaseException as error:
        report(figure, "for comparison", None, failed=f"{type(error).__name__}: {error}"[:200])


if __name__ == "__main__":
    main()
