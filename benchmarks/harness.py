"""What the benchmark scripts share: the calls they make, the floor they are held against, and fair timing.

The floor is the same SDK calls answered by httpx2's MockTransport from memory. Rounds alternate between the
contestants, so that a machine whose speed drifts drifts for all; the median of the rounds' ratios is quoted.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2

warnings.simplefilter("ignore")

WORDS = "river stone quiet lantern copper meadow signal harbor winter thread amber violet canyon orbit pepper".split()
PASSED, WORKED = time.perf_counter, time.thread_time
"""Seconds that passed, and that the processor worked for this thread: the same where nothing else runs and nothing waits.
"""
SYSTEM = (
    "You are a careful support agent. Answer in at most two sentences, and never promise a refund. "
    * 6
)


def prose(seed: int, words: int) -> str:
    """Text that differs from call to call, in lines as models write them."""
    out = [WORDS[(seed * 31 + i * 7 + (i * i) % 11) % len(WORDS)] for i in range(words)]
    return "\n".join(" ".join(out[i : i + 14]) for i in range(0, words, 14))


def question(index: int, words: int = 60) -> dict[str, Any]:
    """One call's arguments for `client.messages.create`."""
    content = f"Ticket {index}: {prose(index, words)}"
    return {
        "model": "claude-opus-5",
        "max_tokens": 400,
        "system": SYSTEM,
        "messages": [{"role": "user", "content": content}],
    }


@functools.lru_cache(maxsize=None)
def answer(index: int, words: int = 120) -> dict[str, Any]:
    """What answers it, in Anthropic's form; made once: the floor pays for writing it as JSON, as any mock does."""
    text = f"Answer {index}. {prose(index + 7, words)}"
    return {
        "id": f"msg_{index:012d}", "type": "message", "role": "assistant", "model": "claude-opus-5",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 260, "output_tokens": 170},
    }  # fmt: skip


def respond(request: httpx2.Request, words: int = 120) -> httpx2.Response:
    """Answer a request from memory: by the ticket it speaks of."""
    index = int(request.content.rpartition(b"Ticket ")[2].partition(b":")[0])
    return httpx2.Response(200, json=answer(index, words), headers={"request-id": f"req_{index}"})


def respond_anew(request: httpx2.Request) -> httpx2.Response:
    """`respond` without a memory of its own: for measuring memory."""
    answer.cache_clear()
    return respond(request)


def floor_client(
    handler: Callable[[httpx2.Request], httpx2.Response] = respond,
) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key="sk-none", http_client=httpx2.Client(transport=httpx2.MockTransport(handler))
    )


def client(
    handler: Callable[[httpx2.Request], httpx2.Response] | None = None,
) -> anthropic.Anthropic:
    """A client as people build it: what it sends crosses the patched transport. With `handler` that transport's
    connection pool answers from memory, so that a cassette can be recorded without a server.
    """
    transport = httpx2.HTTPTransport()
    if handler is not None:
        transport._pool = Pool(handler)
    return anthropic.Anthropic(
        api_key="sk-none", max_retries=0, http_client=httpx2.Client(transport=transport)
    )


class Pool:
    """Stands in for httpcore2's connection pool below the tap."""

    def __init__(self, handler: Callable[[httpx2.Request], httpx2.Response]) -> None:
        self.handler = handler

    def handle_request(self, request: Any) -> Any:
        import httpcore2

        asked = httpx2.Request("POST", "http://pool/", content=b"".join(request.stream))
        answered = self.handler(asked)
        return httpcore2.Response(
            answered.status_code,
            headers=answered.headers.raw,
            content=answered.stream,
            extensions={"reason_phrase": b"OK"},
        )

    def close(self) -> None:
        pass


def ask(asking: anthropic.Anthropic, indexes: range, words: int = 60) -> None:
    for index in indexes:
        asking.messages.create(**question(index, words))


def timed(work: Callable[[], Any], clock: Callable[[], float] = PASSED) -> float:
    """Seconds by that clock, with the collector held off."""
    gc.collect()
    gc.disable()
    try:
        start = clock()
        work()
        return clock() - start
    finally:
        gc.enable()


def rounds(
    contestants: dict[str, Callable[[], Any]],
    count: int = 7,
    *,
    before: Callable[[], Any] = lambda: None,
    clock: Callable[[], float] = PASSED,
) -> dict[str, list[float]]:
    """Seconds of each contestant in each round, after one round that does not count. `before` each, untimed."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(count + 1):
        for name, work in contestants.items():
            before()
            seconds = timed(work, clock)
            if number:
                taken[name].append(seconds)
    return taken


def ratio(taken: dict[str, list[float]], name: str, floor: str = "floor") -> float:
    """The median of round-by-round ratios."""
    pairs = zip(taken[name], taken[floor], strict=True)
    return round(statistics.median(mine / base for mine, base in pairs), 3)


def report(figure: str, bar: str, holds: bool | None, **numbers: Any) -> None:
    """One JSON line; progress belongs on stderr."""
    print(json.dumps({"figure": figure, "bar": bar, "holds": holds, **numbers}), flush=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder of its own, and no real key."""
    os.environ.pop("ANTHROPIC_API_KEY", None)
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def record(path: Path, count: int) -> None:
    """A cassette of `count` calls, recorded through the taps."""
    import tape_jupyter as tape

    with tape.recording(path):
        ask(client(respond), range(count))


def record_elsewhere(path: Path, count: int) -> None:
    """The same in a process of its own, as people do: what recording leaves behind in a heap no replay meets."""
    subprocess.run([sys.executable, __file__, str(path), str(count)], check=True)


def forget(path: Path) -> None:
    """As in a new process: what the deck knows of the cassette is dropped."""
    from tape_jupyter.session import session

    session.get().forget(path)


if __name__ == "__main__":
    record(Path(sys.argv[1]), int(sys.argv[2]))
