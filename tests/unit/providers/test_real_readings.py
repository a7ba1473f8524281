"""What is read of real traffic, and what edits of it become, is what it was: its facts, turns, fields, faults and bytes.

`real_readings.json` holds a digest of each, the traffic itself is not ours to give on. A change that is meant:

    python tests/unit/providers/test_real_readings.py CORPUS.jsonl[.gz] > tests/unit/providers/real_readings.json

and look at the difference: `... CORPUS ID` prints what one record reads as, before and after the change.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers.registry import identify
from tests import reencode_corpus
from tests.corpus_clients import Record
from tests.harness import real_traffic
from tests.harness.readings import digest, edited, edits, facts, turns

KEPT = Path(__file__).with_name("real_readings.json")
EACH = 2
"""So many records of each kind: of a provider, an API, streamed or not, answered or refused, with tools or without."""


def chosen(records: list[Record]) -> Iterator[Record]:
    seen: dict[tuple[Any, ...], int] = defaultdict(int)
    for record in records:
        status = record["response"]["status"] // 100
        size = len(json.dumps(record["response"]))
        is_asking = "tool" in json.dumps(record["response"])
        kind = (record["provider"], record["api"], record["stream"], status, is_asking)
        seen[kind] += size < 60_000
        if seen[kind] <= EACH and size < 60_000:
            yield record


def readings(record: Record) -> dict[str, Any]:
    """What is read of a record: a value that JSON can hold by what it is the reading of."""
    request, reply = reencode_corpus.call_of(record)
    half = dataclasses.replace(reply, chunks=reply.chunks[: len(reply.chunks) // 2 + 1])
    return {
        "facts": [identify(request), facts(request, reply), facts(request, half)],
        "turns": [turns(request, reply), turns(request, half)],
        "odd": [_odd(request, each) for each in _oddities(reply)],
        **edits(request, reply),
    }


def _oddities(reply: Reply) -> Iterator[Reply]:
    """The reply as servers, networks and people leave it at times."""
    for status in (None, 399, 400, 500):
        yield dataclasses.replace(reply, status=status)
    for body in (b"", b"{}", b"[]", b'{"message": {}}', b"data: {}\n\n", b"null", reply.body[:-7]):
        yield dataclasses.replace(reply, chunks=(body,), waits=(0.1,))
    nested = b'{"content": [[[[[[[[[[{"type": "text", "text": "deep"}]]]]]]]]]]}'
    yield dataclasses.replace(reply, chunks=(nested,), waits=(0.1,))


def _odd(request: Request, reply: Reply) -> Any:
    return [facts(request, reply), turns(request, reply), edited(request, reply, dict)]


def digests(record: Record) -> dict[str, str]:
    return {name: digest(value) for name, value in readings(record).items()}


def test_real_traffic_reads_as_it_did():
    kept = json.loads(KEPT.read_text())
    now = {record["id"]: digests(record) for record in chosen(real_traffic.records())}
    differing = {
        name: [part for part in now[name] | kept.get(name, {}) if now[name].get(part) != kept.get(name, {}).get(part)]
        for name in now
    }  # fmt: skip
    assert {name: parts for name, parts in differing.items() if parts} == {}
    assert len(now) > 100


def main() -> None:
    records = reencode_corpus.read(Path(sys.argv[1]))
    for name in sys.argv[2:]:
        record = next(each for each in records if each["id"] == name)
        print(json.dumps(readings(record), indent=1, default=str))
    if not sys.argv[2:]:
        lines = [f'"{each["id"]}": {json.dumps(digests(each))}' for each in chosen(records)]
        print("{", ",\n".join(lines), "}", sep="\n")


if __name__ == "__main__":
    main()
