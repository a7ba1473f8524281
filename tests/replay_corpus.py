"""Plays a corpus of real traffic to real clients: records it live from loopback, replays it in new processes, compares.

    python tests/replay_corpus.py CORPUS.jsonl[.gz] [--limit N] [--every N] [--clients a,b] [--jobs 2] [--keep DIR]

One JSON line a record and client on stdout, a summary as the last; exit 0 when all are equal. A corpus holds one JSON
object a line: id, stream, fidelity, request{method, url, headers, body_text|body_b64}, response{status, ...}. Records
of `fidelity: reserialized` are skipped: a recorder kept their parsed JSON only, so there are no bytes to compare with.

First every client sends every record it can inside `tape.recording(path)`, `BATCH` records a cassette. Then the server
is stopped, and new processes without any key send the same in the same order inside `tape.replaying(path)`. What a
client saw (status, headers in order, raw chunks, decoded bytes, the SDK's objects, errors with class, text and fields)
must be the same both times, and its bytes those of the corpus; an audit hook counts whatever tries to connect.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(
        ROOT
    )  # not the folder of this file: its modules would stand for installed ones of the same name

from tests.corpus_clients import Record, Seen, reply_body, request_body, sha
from tests.corpus_sdks import OTHER
from tests.corpus_worker import CLIENTS, Job, read

BATCH = 50
"""Records a cassette."""
SHARE = 350
"""Records a process, at most."""
HOP = {
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
}
"""Reply headers that are the connection's."""
SHOWN = 32
"""Chunk sizes a line shows; of longer bodies it shows their digest."""
PATIENCE = 900
"""Seconds a process may take."""
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-Zq7rTq1v9WcX2bLk",
    "OPENAI_API_KEY": "sk-proj-Jw8hTq2x5NcR7vBm",
    "GEMINI_API_KEY": "AIzaSyA9f2KqL7wXcV3nB5mT8rYpZ1dGhJkQsWe",
    "MISTRAL_API_KEY": "Kf83hQmZ1xWv7TnC",
    "AWS_ACCESS_KEY_ID": "AKIAQ7ZT3MVKW5XN2YHC",
    "AWS_SECRET_ACCESS_KEY": "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",
}
"""What recording processes have in their environment; those that replay have none."""


def why_not(client: str, record: Record) -> str:
    """Why a client does not play a record; "" if it does."""
    if record["fidelity"] == "reserialized":
        return (
            "reserialized: a recorder kept the parsed JSON only, there are no bytes to compare with"
        )
    can = CLIENTS[client].can
    return can(record) if can else ""


# ---------------------------------------------------------------- playing


@dataclass
class Part:
    """What one process plays; `seen` holds its lines by mode, and `said` the last words of one that died."""

    client: str
    name: str
    batches: list[list[str]]
    seen: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)


def parts_of(clients: list[str], records: list[Record]) -> list[Part]:
    parts = []
    for client in clients:
        ids = [record["id"] for record in records if not why_not(client, record)]
        for start in range(0, len(ids), SHARE):
            share = ids[start : start + SHARE]
            batches = [share[i : i + BATCH] for i in range(0, len(share), BATCH)]
            parts.append(Part(client, f"{client}-{start}", batches))
    return parts


def run(part: Part, mode: str, corpus: Path, folder: Path, base: str, full: bool) -> None:
    """Play a part in a new process."""
    if mode == "record":
        for old in folder.glob(f"{part.name}-*.tape.yaml"):  # of a run before: recordings append
            old.unlink()
    out, file = folder / f"{part.name}.{mode}.jsonl", folder / f"{part.name}.{mode}.job.json"
    out.unlink(missing_ok=True)
    Job(
        part.client, mode, part.name, part.batches, str(corpus), str(folder), base, str(out), full
    ).write(file)
    command = [sys.executable, str(ROOT / "tests" / "corpus_worker.py"), str(file)]
    asked = {"env": environment(mode, folder), "capture_output": True, "text": True, "cwd": folder}
    try:
        done = subprocess.run(command, timeout=PATIENCE, check=False, **asked)
        part.said[mode] = done.stderr.strip().rpartition("\n")[2]
    except subprocess.TimeoutExpired:
        part.said[mode] = f"its process was stopped after {PATIENCE} s"
    part.seen[mode] = (
        [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    )


def environment(mode: str, home: Path) -> dict[str, str]:
    """No setting of this machine's but where programs and libraries are; keys to record with, none to replay with."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
        if name in os.environ
    }
    kept |= {"HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true"}
    return {**kept, **(KEYS if mode == "record" else {})}


def both_ways(parts: list[Part], corpus: Path, folder: Path, jobs: int, full: bool) -> None:
    """Record everything, stop the server, replay everything."""
    from tests.harness.provider import Provider

    by_id = {record["id"]: record for record in read(corpus)}
    with Provider(corpus=by_id) as provider:
        base = provider.url
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda part: run(part, "record", corpus, folder, base, full), parts))
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda part: run(part, "replay", corpus, folder, base, full), parts))


# ---------------------------------------------------------------- comparing


def lines_of(part: Part, records: dict[str, Record]) -> Iterator[dict[str, Any]]:
    told = {mode: {line["id"]: line for line in part.seen[mode]} for mode in ("record", "replay")}
    for name in (name for batch in part.batches for name in batch):
        yield compared(part, records[name], told["record"].get(name), told["replay"].get(name))


def compared(
    part: Part, record: Record, live: dict[str, Any] | None, played: dict[str, Any] | None
) -> dict[str, Any]:
    line: dict[str, Any] = {"id": record["id"], "client": part.client}
    if live is None or played is None:
        mode = "record" if live is None else "replay"
        return {
            **line,
            "equal": False,
            "differs": [f"no result: {part.said[mode] or 'its process ended'}"],
        }
    if not live["seen"]["heads"]:
        error = live["seen"]["error"] or {"class": "", "text": "nothing was sent"}
        return {
            **line,
            "skipped": f"{part.client} does not send it: {error['class']}: {error['text'][:200]}",
        }
    differs = differences(
        live["seen"], played["seen"], record, whole=CLIENTS[part.client].can is None
    )
    if played["connects"]:
        differs.append(f"tried to connect: {played['connects'][:3]}")
    line |= {**shown_of(played), "equal": not differs}
    return {**line, "differs": differs, "live": shown_of(live)} if differs else line


def differences(live: Seen, played: Seen, record: Record, whole: bool) -> list[str]:
    """What the two runs saw differently; else what is not as in the corpus. An SDK may leave a stream early."""
    names = [name for name in live if name != "dump" and live[name] != played[name]]
    if names:
        return names
    body = b"" if _bodiless(record) else reply_body(record)
    if played["wire"] != sha(body if whole else body[: sum(played["sizes"])]):
        names.append("the bytes are not those of the corpus")
    if lost := lost_headers(record, played["heads"][0][3]):
        names.append(f"headers of the corpus are missing: {', '.join(lost)}")
    return names


def _bodiless(record: Record) -> bool:
    return record["request"]["method"] == "HEAD" or record["response"]["status"] in {204, 304}


def lost_headers(record: Record, seen: list[list[str]]) -> list[str]:
    """Names of recorded headers that a client did not get; those of the connection are the server's own.

    boto3 shows one line of a repeated header: only of those that stand once all values are asked for.
    """
    kept = {(name.lower(), value.strip()) for name, value in seen}
    recorded = [(name.lower(), value.strip()) for name, value in record["response"]["headers"]]
    once = Counter(name for name, _ in recorded)
    return [
        name
        for name, value in recorded
        if once[name] == 1 and name not in HOP and (name, value) not in kept
    ]


def shown_of(told: dict[str, Any]) -> dict[str, Any]:
    seen = told["seen"]
    status, version, _, headers = seen["heads"][0] if seen["heads"] else (None, "", "", [])
    sizes = seen["sizes"]
    chunks: dict[str, Any] = {"count": len(sizes), "sha256": sha(json.dumps(sizes).encode())}
    if len(sizes) <= SHOWN:
        chunks["sizes"] = sizes
    return {
        "status": status,
        "headers": {"count": len(headers), "sha256": sha(json.dumps(headers).encode())},
        "version": version,
        "body_sha256": seen["wire"],
        "chunks": chunks,
        "decoded_sha256": seen["decoded"],
        "objects": {"count": seen["count"], "sha256": seen["objects"]},
        "error": seen["error"],
        "live_connections": len(told["connects"]),
    }


def main(argv: list[str]) -> int:
    asked = parser().parse_args(argv)
    clients = asked.clients.split(",") if asked.clients else list(CLIENTS)
    unknown = [name for name in clients if name not in CLIENTS]
    if unknown:
        parser().error(f"no such client: {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
    folder = (
        Path(tempfile.mkdtemp(prefix="corpus-")) if not asked.keep else Path(asked.keep).resolve()
    )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return report(asked, clients, Path(asked.corpus).resolve(), folder)
    finally:
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("corpus", help="CORPUS.jsonl or CORPUS.jsonl.gz")
    made.add_argument("--limit", type=int, help="the first N records that have bytes")
    made.add_argument("--every", type=int, default=1, help="every Nth record that has bytes")
    made.add_argument("--clients", default="", help=f"some of {','.join(CLIENTS)}")
    made.add_argument("--jobs", type=int, default=2, help="processes at a time")
    made.add_argument(
        "--keep", help="a folder for cassettes and all that was seen, objects in full"
    )
    return made


def report(asked: argparse.Namespace, clients: list[str], corpus: Path, folder: Path) -> int:
    started = time.perf_counter()
    records = read(corpus)
    exact = [record for record in records if record["fidelity"] != "reserialized"]
    chosen = exact[:: asked.every][: asked.limit]
    parts = parts_of(clients, chosen)
    both_ways(parts, corpus, folder, asked.jobs, bool(asked.keep))
    counts = {client: Counter[str]() for client in clients}
    by_id = {record["id"]: record for record in records}
    for record in records:
        if record["fidelity"] == "reserialized" and asked.every == 1 and not asked.limit:
            print(
                json.dumps(
                    {"id": record["id"], "client": "all", "skipped": why_not(clients[0], record)}
                )
            )
    for client in clients:
        for line in _lines(client, parts, chosen, by_id):
            print(json.dumps(line))
            _count(counts[client], line)
    told = {**summary(counts, folder, chosen, parts), "reserialized": len(records) - len(exact)}
    print(json.dumps({**told, "seconds": round(time.perf_counter() - started, 1)}))
    return 0 if told["equal"] == told["sent"] and told["sent"] else 1


def _lines(
    client: str, parts: list[Part], chosen: list[Record], by_id: dict[str, Record]
) -> Iterator[dict[str, Any]]:
    for record in chosen:
        if reason := why_not(client, record):
            yield {"id": record["id"], "client": client, "skipped": reason}
    for part in parts:
        if part.client == client:
            yield from lines_of(part, by_id)


def _count(count: Counter[str], line: dict[str, Any]) -> None:
    if "skipped" in line:
        count["not its API" if line["skipped"] == OTHER else "skipped"] += 1
        return
    count["sent"] += 1
    count["equal"] += line["equal"]
    count["live connections"] += line.get("live_connections", 0)


def summary(
    counts: dict[str, Counter[str]], folder: Path, chosen: list[Record], parts: list[Part]
) -> dict[str, Any]:
    """The last line. Sizes are of the first raw client's cassettes, against request and reply bytes as sent."""
    names = ("sent", "equal", "skipped", "not its API", "live connections")
    raw = next((client for client in counts if CLIENTS[client].can is None), None)
    files = [
        path
        for part in parts
        if part.client == raw
        for path in folder.glob(f"{part.name}-*.tape.yaml")
    ]
    return {
        "summary": {
            client: {name: count[name] for name in names} for client, count in counts.items()
        },
        "records": len(chosen),
        "sent": sum(count["sent"] for count in counts.values()),
        "equal": sum(count["equal"] for count in counts.values()),
        "live_connections": sum(count["live connections"] for count in counts.values()),
        "raw_bytes": sum(len(reply_body(r)) + len(request_body(r)) for r in chosen),
        "cassette_bytes": sum(path.stat().st_size for path in files),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
