"""Imports every file below a folder, each by itself, and prints one JSON line a file: what came of it.

    python tests/trials/import_samples.py FOLDER [--truth FILE] [--only PART]

`request` and `reply` are sha256 of canonical JSON (keys sorted, compact, UTF-8) of the body, a stream put together;
of what is no JSON, of the bytes. `--truth` compares each request with those a provider really received (JSON Lines
with `path` and `body`). Exit code 1 where a file cannot be imported.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

from tape_jupyter.providers import registry
from tape_jupyter.core.call import FunctionCall, Reply, Request
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import TapeError
from tape_jupyter.importers.assemble import import_trace
from tape_jupyter.providers import editing, http


def digest(value):
    if not isinstance(value, bytes):
        value = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
    return hashlib.sha256(value).hexdigest()


def plain(headers, body):
    data = http.decoded_body(headers, body)
    loaded = http.loads(data) if data else None
    return data if loaded is None else loaded


def said(request, reply):
    if not isinstance(reply, Reply):
        return reply.error if reply.error is not None else reply.value
    message = editing.reply_message(request, reply) if isinstance(request, Request) else None
    return message if message is not None else plain(reply.headers, reply.body) or b""


def asked(request):
    if isinstance(request, FunctionCall):
        return {"name": request.name, "arguments": dict(request.arguments)}
    return plain(request.headers, request.body) or b""


def calls(path):
    cassette = Cassette.open(path, check="whole")
    for entry in cassette.calls:
        head, request, reply = entry.head(), entry.request(), entry.reply()
        kit = head.get("kit", {})
        facts = registry.call_facts(request, reply) if isinstance(request, Request) else None
        yield {
            "call": entry.name, "kind": head["kind"], "provider": kit.get("provider", ""), "model": kit.get("model", ""),
            "name": head.get("name", ""), "request": digest(asked(request)), "reply": digest(said(request, reply)),
            "streamed": bool(facts and facts.streamed), "usage": kit.get("usage", {}), "grade": kit.get("grade"),
            "parent": head.get("parent", ""), "span": head.get("span", ""), "failed": head.get("failed", ""),
            "missing": kit.get("missing", []), "assumed": kit.get("assumed", []), "body": asked(request),
        }  # fmt: skip


def imported(path, truth):
    began = time.perf_counter()
    told = {"file": str(path), "format": "", "grade": "", "runs": 0, "calls": [], "error": ""}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = import_trace(path, cassette=Path(folder) / "x.tapes" / "main.tape.yaml")
            report = done.files[0]
            made = list(calls(done.path)) if done.path else []
        except TapeError as error:
            return {**told, "error": str(error), "seconds": round(time.perf_counter() - began, 3)}
    for each in made:
        body = each.pop("body")
        if truth is not None:
            each["as sent"] = digest(body) in truth
    return {
        **told, "format": report.format, "grade": report.grade, "runs": len(report.runs), "calls": made,
        "records": {"calls": report.calls, "spans": report.spans, **report.reasons},
        "missing": dict(report.missing), "assumed": dict(report.assumed), "notes": report.notes,
        "seconds": round(time.perf_counter() - began, 3),
    }  # fmt: skip


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("folder", type=Path)
    words.add_argument("--truth", type=Path)
    words.add_argument("--only", default="")
    given = words.parse_args()
    truth = None
    if given.truth:
        lines = given.truth.read_text("utf-8").splitlines()
        truth = {digest(json.loads(json.loads(line)["body"])) for line in lines if line.strip()}
    bad = 0
    files = [given.folder] if given.folder.is_file() else sorted(given.folder.rglob("*"))
    for path in files:
        if path.is_file() and not {"_truth"} & set(path.parts) and given.only in str(path):
            told = imported(path, truth)
            bad += bool(told["error"])
            print(json.dumps(told, ensure_ascii=False), flush=True)
    sys.exit(int(bool(bad)))


if __name__ == "__main__":
    main()
