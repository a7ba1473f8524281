"""Thousands of concurrent tasks that ask a model and are cancelled at random: recorded, replayed, compared, timed.

    python -m tests.trials.cancelled_tasks [--rounds 5] [--tasks 10000] [--client aiohttp|httpx] [--json]

Each round runs the program untaped, recorded and replayed, one after another. The replies come within 0 to 20 ms; as
each tenth is there, a few tasks that still wait are cancelled. What a task got, or that it was cancelled, is to be the
same in replay, and each reply that the program got is to be on the tape. The ratios are of wall time and of the requests
that reach the provider (a recording that holds replies back would have more of them sent before their tasks are
cancelled), the middle of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx

import tape_jupyter as tape

SERVER = """
import asyncio, os, random, sys
from aiohttp import web

asked = 0

async def count(request):
    return web.Response(text=str(asked))

async def reply(request):
    global asked
    asked += 1
    await request.read()
    await asyncio.sleep(random.random() * 0.02)
    return web.json_response({"x": os.urandom(4).hex()})

async def main():
    app = web.Application()
    app.router.add_get("/count", count)
    app.router.add_post("/{any:.*}", reply)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextlib.contextmanager
def provider() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


async def ask_aiohttp(url: str, tasks: int, rng: random.Random) -> list[str]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as client:

        async def ask(number: int) -> str:
            async with client.post(f"{url}/v1/{number}", json={"n": number}) as reply:
                return await reply.text()

        return await cancelled(ask, tasks, rng)


async def ask_httpx(url: str, tasks: int, rng: random.Random) -> list[str]:
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx.AsyncClient(limits=limits, timeout=600) as client:

        async def ask(number: int) -> str:
            return (await client.post(f"{url}/v1/{number}", json={"n": number})).text

        return await cancelled(ask, tasks, rng)


async def cancelled(ask: Any, tasks: int, rng: random.Random) -> list[str]:
    """What each task got: a reply, or that it was cancelled."""
    got = ["cancelled"] * tasks
    order = rng.sample(range(tasks), tasks // 2)
    replies = 0

    async def one(number: int) -> None:
        nonlocal replies
        got[number] = await ask(number)
        replies += 1
        if replies % 10 == 0:
            for chosen in order[:10]:
                running[chosen].cancel()
            del order[:10]

    running = [asyncio.create_task(one(number)) for number in range(tasks)]
    await asyncio.gather(*running, return_exceptions=True)
    return got


def count_requests(url: str) -> int:
    """How many requests reached the provider by now."""
    return int(httpx.get(f"{url}/count").text)


CLIENTS = {"aiohttp": ask_aiohttp, "httpx": ask_httpx}


def one_round(url: str, client: str, tasks: int, seed: int) -> dict[str, Any]:
    """The seconds of each, how many tasks differ in replay, and how many replies are not on the tape."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.tape.yaml"
        seconds, got, asked = {}, {}, {}
        for what, around in (
            ("plain", contextlib.nullcontext), ("record", lambda: tape.recording(path)), ("replay", lambda: tape.replaying(path)),
        ):  # fmt: skip
            before, began = count_requests(url), time.perf_counter()
            with around():
                got[what] = asyncio.run(CLIENTS[client](url, tasks, random.Random(seed)))
            seconds[what] = time.perf_counter() - began
            asked[what] = count_requests(url) - before
        bodies = {
            entry.request().url.rpartition("/")[2]: entry.reply() for entry in tape.open(path).calls
        }
        kept = {number: getattr(reply, "body", b"").decode() for number, reply in bodies.items()}
        lost = sum(
            text not in ("cancelled", kept.get(str(n))) for n, text in enumerate(got["record"])
        )
        return {
            **{what: round(each, 2) for what, each in seconds.items()}, "asked": asked,
            "replies": sum(text != "cancelled" for text in got["record"]), "calls": len(bodies), "lost": lost,
            "differ": sum(one != other for one, other in zip(got["record"], got["replay"], strict=True)),
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--client", choices=[*CLIENTS], default="aiohttp")
    asked = parser.parse_args()
    rows = []
    with provider() as url:
        for number in range(asked.rounds):
            rows.append(one_round(url, asked.client, asked.tasks, number))
            print(json.dumps(rows[-1]), flush=True)
    ratios = {
        what: round(statistics.median(row[what] / row["plain"] for row in rows), 2)
        for what in ("record", "replay")
    }
    ratios["asked"] = round(
        statistics.median(row["asked"]["record"] / row["asked"]["plain"] for row in rows), 2
    )
    bad = {what: sum(row[what] for row in rows) for what in ("lost", "differ")}
    print(json.dumps({"client": asked.client, "tasks": asked.tasks, **ratios, **bad}))
    return 1 if any(bad.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
