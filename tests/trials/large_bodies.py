"""Bodies of a gigabyte, as replies and as uploads: recorded and replayed; what that takes of memory and time.

    python -m tests.trials.large_bodies [--megabytes 1000] [--rounds 3] [--only httpx,reply] [--json]

Each run is a process of its own: untaped, recorded, replayed, one after another in each round. Memory is the peak above
the untaped process's; seconds are of wall time and of processor time (which a busy machine leaves alone). `floor` is what
writing and hashing so many bytes costs by itself. Exit code 1 where a body does not come back as it was, or memory is
over 100 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MOST = 100
"""MB above untaped."""

BLOCK = hashlib.sha256(b"body").digest() * 2048
PIECE = bytes((each * 7 + at) % 251 for at, each in enumerate(BLOCK))
"""64 KB that stand again and again in each body."""

SERVER = """
import asyncio
from tests.trials.large_bodies import PIECE

async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            size = int(head.split(b" ")[1].rpartition(b"/")[2]) << 20
            if head.startswith(b"POST"):
                lines = {k.lower(): v for k, _, v in (line.partition(b": ") for line in head.split(b"\\r\\n"))}
                if b"transfer-encoding" in lines:
                    while length := int(await reader.readuntil(b"\\r\\n"), 16):
                        while length:
                            length -= len(await reader.read(min(length, 1 << 20)))
                        await reader.readexactly(2)
                    await reader.readexactly(2)
                else:
                    left = int(lines[b"content-length"])
                    while left:
                        left -= len(await reader.read(min(left, 1 << 20)))
                writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 4\\r\\n\\r\\ndone")
            else:
                writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: application/octet-stream\\r\\ncontent-length: %d\\r\\n\\r\\n" % size)
                for _ in range(size // len(PIECE)):
                    writer.write(PIECE)
                    await writer.drain()
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

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


# ---------------------------------------------------------------- the programs: each gives a digest of what came


def digest(parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def sent(megabytes: int) -> Iterator[bytes]:
    for _ in range((megabytes << 20) // len(PIECE)):
        yield PIECE


def httpx_reply(url: str, megabytes: int) -> str:
    import httpx

    with httpx.stream("GET", f"{url}/{megabytes}", timeout=600) as reply:
        return digest(reply.iter_bytes())


def httpx_upload(url: str, megabytes: int) -> str:
    import httpx

    return httpx.post(f"{url}/{megabytes}", content=sent(megabytes), timeout=600).text


def requests_reply(url: str, megabytes: int) -> str:
    import requests

    with requests.get(f"{url}/{megabytes}", stream=True, timeout=600) as reply:
        return digest(reply.iter_content(1 << 16))


def requests_upload(url: str, megabytes: int) -> str:
    import requests

    return requests.post(f"{url}/{megabytes}", data=sent(megabytes), timeout=600).text


def requests_upload_file(url: str, megabytes: int) -> str:
    import requests

    with tempfile.TemporaryFile() as file:
        file.writelines(sent(megabytes))
        file.seek(0)
        return requests.post(f"{url}/{megabytes}", data=file, timeout=600).text


def aiohttp_reply(url: str, megabytes: int) -> str:
    import aiohttp

    async def ask() -> str:
        found = hashlib.sha256()
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{url}/{megabytes}", timeout=aiohttp.ClientTimeout(600)) as reply,
        ):
            async for part in reply.content.iter_any():
                found.update(part)
        return found.hexdigest()

    return asyncio.run(ask())


def aiohttp_upload(url: str, megabytes: int) -> str:
    import aiohttp

    async def parts() -> Any:
        for part in sent(megabytes):
            yield part

    async def ask() -> str:
        async with (
            aiohttp.ClientSession() as client,
            client.post(
                f"{url}/{megabytes}", data=parts(), timeout=aiohttp.ClientTimeout(600)
            ) as reply,
        ):
            return await reply.text()

    return asyncio.run(ask())


def httpx_reply_whole(url: str, megabytes: int) -> str:
    import httpx

    return digest([httpx.get(f"{url}/{megabytes}", timeout=600).content])


def floor(_url: str, megabytes: int) -> str:
    with tempfile.NamedTemporaryFile(dir=Path.cwd(), buffering=0) as file:
        found = hashlib.sha256()
        for _ in range(megabytes):
            block = PIECE * 16
            file.write(block)
            found.update(block)
    return found.hexdigest()


PROGRAMS: dict[str, Callable[[str, int], str]] = {
    each.__name__: each
    for each in (
        httpx_reply, httpx_upload, requests_reply, requests_upload, requests_upload_file, aiohttp_reply, aiohttp_upload,
        httpx_reply_whole, floor,
    )
}  # fmt: skip

RUN = """
import json, resource, sys, time
import tape_jupyter.session.api, httpx, requests, aiohttp
import tape_jupyter as tape
from contextlib import nullcontext
from tests.trials.large_bodies import PROGRAMS

name, how, url, megabytes, path = sys.argv[1:]
around = {"plain": nullcontext, "record": lambda: tape.recording(path), "replay": lambda: tape.replaying(path)}[how]
began, used = time.perf_counter(), time.process_time()
with around():
    got = PROGRAMS[name](url, int(megabytes))
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")][0].split()[1]
print(json.dumps([got, time.perf_counter() - began, time.process_time() - used, int(peak) / 1024]))
"""


def measured(name: str, how: str, url: str, megabytes: int, folder: Path) -> list[Any]:
    command = [
        sys.executable,
        "-c",
        RUN,
        name,
        how,
        url,
        str(megabytes),
        str(folder / "large.tape.yaml"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def rounds(name: str, url: str, megabytes: int, count: int) -> dict[str, Any]:
    """What one program takes untaped, recorded and replayed: seconds, processor seconds, MB (the middle of the rounds)."""
    found: dict[str, list[Any]] = {"plain": [], "record": [], "replay": [], "floor": []}
    for _ in range(count):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            for how in ("plain", "record", "replay"):
                found[how].append(measured(name, how, url, megabytes, Path(folder)))
            found["floor"].append(measured("floor", "plain", url, megabytes, Path(folder)))
    row: dict[str, Any] = {"program": name, "megabytes": megabytes}
    for how, each in found.items():
        row[how] = {
            "seconds": round(statistics.median(one[1] for one in each), 2),
            "cpu": round(statistics.median(one[2] for one in each), 2),
            "mb": round(statistics.median(one[3] for one in each)),
        }
    row["same"] = len({one[0] for how in ("plain", "record", "replay") for one in found[how]}) == 1
    row["above_mb"] = max(row[how]["mb"] - row["plain"]["mb"] for how in ("record", "replay"))
    return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="words that stand in a program's name")
    asked = parser.parse_args()
    words = [word for word in asked.only.split(",") if word]
    bad = 0
    with provider() as url:
        for name in PROGRAMS:
            if name != "floor" and all(word in name for word in words):
                row = rounds(name, url, asked.megabytes, asked.rounds)
                bad += not row["same"] or row["above_mb"] > MOST
                print(json.dumps(row), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
