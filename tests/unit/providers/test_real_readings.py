"""What is read of real traffic, and what edits of it become, is what it was: its facts, turns, fields, faults and bytes.

`real_readings.json` holds a digest of each, the traffic itself is not ours to give on. A change that is meant:

    python tests/unit/providers/test_real_readings.py CORPUS.jsonl[.gz] > tests/unit/providers/real_readings.json

and look at the difference: `... CORPUS ID` prints what one record reads as, before and after the change.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.errors import TapeError
from tape_jupyter.providers import editing, http, validation
from tape_jupyter.providers.conversation import conversation_turns, gist
from tape_jupyter.providers.registry import call_facts, identify
from tests import reencode_corpus, reencode_edits
from tests.corpus_clients import Record
from tests.harness import real_traffic

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
        "facts": [identify(request), _facts(request, reply), _facts(request, half)],
        "turns": [_turns(request, reply), _turns(request, half)],
        "odd": [_odd(request, each) for each in _oddities(reply)],
        **_edits(request, reply),
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
    return [_facts(request, reply), _turns(request, reply), _edited(request, reply, dict)]


def _facts(request: Request, reply: Reply) -> Any:
    return dataclasses.asdict(call_facts(request, reply))


def _turns(request: Request, reply: Reply) -> Any:
    turns = conversation_turns(request, reply)
    return [turns, gist(turns)]


def _edits(request: Request, reply: Reply) -> dict[str, Any]:
    taken = editing.take_apart_reply(request, reply)
    if taken is None:
        return {}
    wire, message = taken.wire, taken.message
    tools = validation.schemas(http.decoded_body(request.headers, request.body) or b"")
    fields = validation.editable_fields(wire, message, tools)
    edits = [*_typed(wire, message, fields), *_common(wire, message)]
    return {
        "fields": [fields, sorted(validation.call_ids(wire, message))],
        "alone": editing.composed(wire, message).decode() if taken.streamed else "",
        "edits": {
            f"{number} {name}": _edited(request, reply, change)
            for number, (name, change) in enumerate(edits)
        },
        "problems": {
            f"{number} {name}": _problems(taken, change, tools)
            for number, (name, change) in enumerate(edits)
        },
    }


Change = Callable[[], Any]


def _common(wire: str, message: dict[str, Any]) -> Iterator[tuple[str, Change]]:
    """The edits of the trials, where they know the form."""
    if wire in reencode_corpus.PATHS:
        for name, edited in reencode_edits.edits(wire, message):
            yield name, lambda edited=edited: edited


def _typed(
    wire: str, message: dict[str, Any], fields: list[dict[str, Any]]
) -> Iterator[tuple[str, Change]]:
    """Each field of the editor with something else typed into it."""
    for field in fields:
        for value in ("", f"{field['value']} and 7", '{"made": [1, true, null]}', "end_turn"):
            change = {"path": field["path"], "value": value}
            yield (
                f"{field['path']} = {value[-30:]}",
                lambda change=change: validation.with_fields(wire, message, [change]),
            )


def _edited(request: Request, reply: Reply, change: Change) -> Any:
    try:
        edited, notes = editing.encoded(request, reply, change())
    except TapeError as error:
        return str(error)
    chunks = [chunk.decode("latin-1") for chunk in edited.chunks]
    return [edited.headers, chunks, edited.waits, notes]


def _problems(taken: editing.Taken, change: Change, tools: dict[str, Any]) -> Any:
    try:
        return validation.problems(taken.wire, taken.message, change(), tools, frozenset())
    except TapeError as error:
        return str(error)


def digests(record: Record) -> dict[str, str]:
    return {
        name: hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:8]
        for name, value in readings(record).items()
    }


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
