"""Takes real replies apart and puts them together again: what the real SDKs see, and each reply with another text.

    python tests/reencode_corpus.py CORPUS.jsonl[.gz] --text TOKEN [--prove]

One JSON line a record of Anthropic Messages, OpenAI Chat or OpenAI Responses (any host that speaks it): `id`, `api`,
`streamed`, `sha256` of the SDK's object of the unedited re-encoding, `composed` the same of a stream (or JSON) made
from the message alone, `recorded` that of the recorded body; `same_bytes` whether the re-encoding has its very bytes;
`body` (base64) with its first text replaced by TOKEN, `path` where that text stands (null: the reply has none, and
`body` is unedited).

A digest is that of the SDK object's `to_dict()` as canonical JSON (tests/harness/sdk_views.py). Replies that are no message
(errors, counts of tokens) have `message: false`, and their bytes as they are. With --prove each edit that people make
is made, and the last line tells how many of them the SDK sees, and sees nothing else changed.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(
        ROOT
    )  # not the folder of this file: its modules would stand for installed ones of the same name

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.encoding.http.content_encoding import decode_body
from tape_jupyter.providers import editing
from tape_jupyter.providers.streams.events import join_events, parse_events
from tests import reencode_edits
from tests.harness import sdk_views
from tests.corpus_clients import Record, reply_body, request_body

PATHS = {
    "anthropic": r"/v1/messages$|:(?:rawPredict|streamRawPredict)$",
    "openai_chat": r"/chat/completions$",
    "openai_responses": r"/responses(?:/resp_\w+)?$",
}


def read(path: Path) -> list[Record]:
    opener = (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8")
    )
    with opener as file:
        return [json.loads(line) for line in file if line.strip()]


def wire_of(record: Record) -> str:
    """Which of the three it is, by its path; "" for any other."""
    path = urlsplit(record["request"]["url"]).path
    return next((name for name, pattern in PATHS.items() if re.search(pattern, path)), "")


def call_of(record: Record) -> tuple[Request, Reply]:
    """The record as a call, its body in reads of 61 bytes, so that no read ends where an event does."""
    asked, told = record["request"], record["response"]
    headers = tuple((name, value) for name, value in told["headers"])
    body = reply_body(record)
    coding = next((value for name, value in headers if name.lower() == "content-encoding"), "")
    if coding and not _is_encoded(body, coding):  # a recorder decoded it and kept the header
        headers = tuple(
            (name, value) for name, value in headers if name.lower() != "content-encoding"
        )
    chunks = tuple(body[start : start + 61] for start in range(0, len(body), 61))
    request = Request(
        asked["method"], asked["url"], tuple(map(tuple, asked["headers"])), request_body(record)
    )
    return request, Reply(
        told["status"], headers, chunks, tuple(0.01 * n for n in range(len(chunks)))
    )


def _is_encoded(body: bytes, coding: str) -> bool:
    try:
        return decode_body(body, coding) != body
    except ValueError:
        return False


def plain(reply: Reply) -> bytes:
    return (
        decode_body(reply.body, reply.header("content-encoding"))
        if reply.header("content-encoding")
        else reply.body
    )


def line_of(record: Record, token: str) -> dict[str, Any]:
    """What is told of one record."""
    request, reply = call_of(record)
    taken, wire = editing.take_apart_reply(request, reply), wire_of(record)
    line = {"id": record["id"], "api": wire, "message": taken is not None}
    look = {"beta": is_beta(request), "status": reply.status or 200}
    if taken is None:
        body = plain(reply)
        streamed = body.lstrip()[:1] not in (b"{", b"[")
        seen = sdk_views.digest(sdk_views.sees(wire, body, streamed=streamed, **look))
        return {
            **line,
            "sha256": seen,
            "recorded": seen,
            "path": None,
            "body": base64.b64encode(body).decode(),
        }
    look["streamed"] = taken.streamed
    again = rewritten(taken)
    alone = (
        editing.composed(taken.wire, taken.message)
        if taken.streamed
        else json.dumps(taken.message).encode()
    )
    told = {"sha256": again, "composed": alone, "recorded": taken.body}
    digests = {
        name: sdk_views.digest(sdk_views.sees(wire, body, **look)) for name, body in told.items()
    }
    path = editing.first_text(taken.wire, taken.message)
    edited = reply
    if path is not None:
        edited, _ = editing.encoded(
            request, reply, editing.with_text(taken.wire, taken.message, token)
        )
    return {
        **line,
        "streamed": taken.streamed,
        **digests,
        "same_bytes": again == taken.body,
        "path": path and list(path),
        "body": base64.b64encode(plain(edited)).decode(),
    }


def rewritten(taken: editing.Taken) -> bytes:
    """The unedited message put together again; `editing.encoded` would give the recorded reply itself."""
    if not taken.streamed:
        return editing.respelled(taken.body, taken.message)
    events = parse_events(taken.body)
    return join_events(
        editing.require_format(taken.wire).rewrite(events, json.loads(json.dumps(taken.message)))
    )


def is_beta(request: Request) -> bool:
    return bool(request.header("anthropic-beta")) or "beta=true" in request.url


def lines(records: list[Record], token: str) -> Iterator[dict[str, Any]]:
    return (line_of(record, token) for record in records if wire_of(record))


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Re-encode the replies of a corpus of real traffic."
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--text", required=True, metavar="TOKEN")
    parser.add_argument(
        "--prove", action="store_true", help="make every kind of edit, and look at it with the SDKs"
    )
    asked = parser.parse_args()
    records = read(asked.corpus)
    differing = 0
    for line in lines(records, asked.text):
        differing += (
            line["message"] and len({line["sha256"], line["composed"], line["recorded"]}) != 1
        )
        print(json.dumps(line))
    if asked.prove:
        counts: Counter[str] = Counter()
        for record in (record for record in records if wire_of(record)):
            for name, problem in reencode_edits.proven(record):
                counts[f"{name}: {'differs' if problem else 'as edited'}"] += 1
                differing += bool(problem)
                if problem:
                    print(f"{record['id']} {name}: {problem}", file=sys.stderr)
        print(json.dumps({"summary": dict(sorted(counts.items()))}))
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
