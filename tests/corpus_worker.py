"""A process of `replay_corpus.py` that plays: one client sends its records in order, on a tape, and says what it saw.

python tests/corpus_worker.py JOB.json
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # see replay_corpus.py

from tests import corpus_sdks as sdks
from tests.corpus_clients import (
    Aiohttp,
    HttpClient,
    Lm15,
    Lm15Async,
    Raw,
    RawAsync,
    Record,
    Requests,
    Seen,
)
from tests.corpus_gemini import AsyncGemini, Gemini


@dataclass(frozen=True)
class Client:
    """`make(base)` gives what has `play(record)`; `can(record)` why it cannot play one, or ""."""

    make: Callable[[str], Any]
    asynchronous: bool = False
    can: Callable[[Record], str] | None = None


def _sdk(kind: type[sdks.Sdk]) -> Client:
    return Client(kind, kind.asynchronous, kind.can)


CLIENTS = {
    "httpx": Client(lambda base: Raw(base, import_module("httpx"))),
    "httpx2": Client(lambda base: Raw(base, import_module("httpx2"))),
    "requests": Client(Requests),
    "http.client": Client(HttpClient),
    "aiohttp": Client(Aiohttp, asynchronous=True),
    "lm15": Client(Lm15, can=lambda _record: ""),
    "lm15-async": Client(Lm15Async, asynchronous=True, can=lambda _record: ""),
    "httpx-async": Client(lambda base: RawAsync(base, import_module("httpx")), asynchronous=True),
    "httpx2-async": Client(lambda base: RawAsync(base, import_module("httpx2")), asynchronous=True),
    "anthropic": _sdk(sdks.Anthropic),
    "anthropic-async": _sdk(sdks.AsyncAnthropic),
    "openai": _sdk(sdks.OpenAI),
    "openai-async": _sdk(sdks.AsyncOpenAI),
    "google-genai": _sdk(Gemini),
    "google-genai-async": _sdk(AsyncGemini),
    "mistralai": _sdk(sdks.Mistral),
    "mistralai-async": _sdk(sdks.AsyncMistral),
    "boto3": _sdk(sdks.Boto3),
}


@dataclass
class Job:
    """What one process plays: `mode` is record or replay; cassettes are `folder/part-NUMBER`; lines go to `out`."""

    client: str
    mode: str
    part: str
    batches: list[list[str]]
    corpus: str
    folder: str
    base: str
    out: str
    full: bool

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


@dataclass
class Line:
    """What one record gave, and whatever tried to connect meanwhile."""

    id: str
    seen: Seen
    connects: list[str]


def read(path: Path) -> list[Record]:
    opened = (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8")
    )
    with opened as file:
        return [json.loads(line) for line in file if line.strip()]


def work(job: Job) -> str:
    """Play every batch; gives why it stopped short, or ""."""
    connects = watched()
    records = {record["id"]: record for record in read(Path(job.corpus))}
    problem = ""
    with Path(job.out).open("w", encoding="utf-8") as out:
        for number, batch in enumerate(job.batches):
            path = Path(job.folder) / f"{job.part}-{number}.tape.yaml"
            lines, failed = play(job, path, [records[name] for name in batch], connects)
            problem = problem or failed
            for line in lines:
                if not job.full:
                    del line.seen["dump"]
                out.write(json.dumps(asdict(line)) + "\n")
    return problem


def watched() -> list[str]:
    """Everything in this process that asks for a name or connects anywhere, from now on."""
    seen: list[str] = []

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in {
            "socket.connect",
            "socket.sendto",
            "socket.getaddrinfo",
            "socket.gethostbyname",
        }:
            seen.append(f"{event} {args[-1] if event == 'socket.connect' else args[:2]}")

    sys.addaudithook(hook)
    return seen


def play(
    job: Job, path: Path, records: list[Record], connects: list[str]
) -> tuple[list[Line], str]:
    """The lines of one cassette, and why there are not as many as records, or ""."""
    lines: list[Line] = []
    sending = _send(job, path, records, connects, lines)
    try:
        if CLIENTS[job.client].asynchronous:
            asyncio.run(sending)
        else:
            _drive(sending)
    except KeyboardInterrupt:
        raise
    except (
        BaseException
    ) as error:  # a refusal is no Exception; it is told once more at the end of its block
        return lines, f"{path.name}: {type(error).__name__}: {error}"
    return lines, ""


async def _send(
    job: Job, path: Path, records: list[Record], connects: list[str], lines: list[Line]
) -> None:
    import tape_jupyter as tape

    async with tape.replaying(path) if job.mode == "replay" else tape.recording(path):
        client = CLIENTS[job.client].make(job.base)
        for record in records:
            before = len(connects)
            seen = await _played(client, record)
            lines.append(Line(record["id"], seen, connects[before:]))
        await client.close()


async def _played(client: Any, record: Record) -> Seen:
    try:
        seen: Seen = await client.play(record)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a refusal is no Exception
        client.observer.error = error
        seen = client.observer.seen()
    return seen


def _drive(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never suspends, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("a synchronous client waited for something")


if __name__ == "__main__":
    sys.exit(work(Job(**json.loads(Path(sys.argv[1]).read_text()))) or 0)
