"""Real traffic is recorded in the text that it always was, found by the keys that it always had, and read back whole.

`real_recordings.json` holds digests of them, the traffic itself is not ours to give on. A change that is meant:

    python tests/unit/cassette/test_real_recordings.py CORPUS.jsonl[.gz] > tests/unit/cassette/real_recordings.json

Old cassettes must still open and match after it. With ids behind CORPUS it prints these calls' records.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.match_key import (
    compared_fields,
    exact_digest,
    field_diff,
    likeness,
    match_request,
)
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.cassette.takes import edits
from tape_jupyter.cassette.takes.overrides import UNSET
from tape_jupyter.errors import CassetteError, TapeError
from tape_jupyter.secrets.registry import Secrets
from tests import reencode_corpus
from tests.corpus_clients import Record
from tests.harness import real_traffic
from tests.harness.tapes import Recorder

KEPT = Path(__file__).with_name("real_recordings.json")


def chosen(records: list[Record]) -> dict[str, list[Record]]:
    """Each seventh conversation of several calls, and of the single calls one of each kind."""
    told: dict[str, list[Record]] = {}
    for record in records:
        told.setdefault(record["conversation"], []).append(record)
    long = [name for name, calls in told.items() if len(calls) > 1]
    kinds: Counter[tuple[Any, ...]] = Counter()
    few = {name: told[name] for name in long[::7]}
    for name, (record, *more) in told.items():
        status = record["response"]["status"] // 100
        kind = (record["provider"], record["api"], record["stream"], status)
        kinds[kind] += 1
        if not more and kinds[kind] == 1:
            few[name] = [record]
    return {
        name: calls
        for name, calls in few.items()
        if len(json.dumps(calls)) < 150_000
        and all("://" in record["request"]["url"] for record in calls)
    }


class Kept:
    """A cassette with conversations of real traffic, a run each."""

    def __init__(self, folder: Path, conversations: dict[str, list[Record]]) -> None:
        self.path = folder / "real.tapes" / "main.tape.yaml"
        self.calls: dict[str, tuple[Request, Reply]] = {}
        recorder = Recorder(self.path)
        for name, conversation in conversations.items():
            calls = [reencode_corpus.call_of(each) for each in conversation]
            ids = [each["id"] for each in conversation]
            self.calls |= dict(zip(ids, calls, strict=True))
            recorder.run(hashlib.sha256(name.encode()).hexdigest()[:16], *calls)
        tool = FunctionCall("look", {"at": "the sky"})
        recorder.run(
            "a" * 16, (tool, Value({"seen": [1, 2]})), (tool, Value('{"json": "in a text"}'))
        )
        runs = re.findall(r"(?m)^run: (r-\w{8})$", self.path.read_text("utf-8"))
        text = self.path.read_text("utf-8")
        for number, run in enumerate(dict.fromkeys(runs)):  # drawn at random
            text = text.replace(run, f"r-{number:08x}")
        self.path.write_text(text, "utf-8")
        self.cassette = Cassette.open(self.path, "whole")

    def digests(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Of each call what it is found by, and its record; by its id in the corpus."""
        records = self.path.read_text("utf-8").split("---\n")
        texts = [record for record in records if record.startswith("call: ")][: len(self.calls)]
        before: dict[str, Any] = {}
        for (name, (request, _)), text in zip(self.calls.items(), texts, strict=True):
            fields = compared_fields(request, secrets=Secrets())
            told = [fields, likeness(before, fields), field_diff(before, fields)]
            before = fields
            found = match_request(request, Secrets())
            key = [found.match, found.exact, exact_digest(request), found.discriminator]
            yield name, {"key": _digest(key), "text": _digest(text), "fields": _digest(told)}

    def damages(self) -> Iterator[tuple[str, str]]:
        """What a reader of the file is told of each of many damages: a sentence, or what it reads instead."""
        lines = self.path.read_text("utf-8").splitlines(keepends=True)
        for number in range(1, len(lines), 3):
            before, line, after = lines[:number], lines[number], lines[number + 1 :]
            other = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), line)
            for name, changed in (
                ("is gone", []),
                ("is there twice", [line, line]),
                ("has other digits", [other]),
                ("has another name", [line.replace(":", "s:", 1)]),
                ("is deeper", ["  " + line]),
                ("is a list's", [re.sub(r"(\w+: )", r"- \1", line, count=1)]),
            ):
                yield f"line {number + 1} {name}", self._read("".join([*before, *changed, *after]))
            yield f"line {number + 1} is the last", self._read("".join(before))

    def _read(self, text: str) -> str:
        folder = self.path.parent.with_name("damaged.tapes")
        folder.mkdir(exist_ok=True)
        path = folder / "main.tape.yaml"
        path.write_text(text, "utf-8")
        try:
            cassette = Cassette.open(path, "whole")
            read = [[each.head(), each.request(), each.reply()] for each in cassette.calls]
        except CassetteError as error:
            return str(error).removeprefix(str(path))
        return _digest([cassette.torn, list(cassette.runs), read])


EDITS: tuple[dict[str, Any], ...] = (
    {"form": "text", "text": "Größe 7"},
    {"form": "text", "text": '{"a": [1]}'},
    {"form": "text", "text": 7},
    {"form": "message", "message": "{}"},
    {"form": "message", "message": "no JSON"},
    {"form": "fields", "fields": [{"path": "content[0].text", "value": "other"}]},
    {"form": "fields", "fields": "none"},
    {"form": "value", "value": '[1, {"a": null}]'},
    {"form": "value", "value": "no JSON"},
    {"form": "raw", "body": "plain text"},
    {"form": "raw", "body": "", "status": 503, "headers": [["retry-after", "2"], ["x", "y"]]},
    {"form": "raw", "body": '{"a": 1}', "status": 99},
    {"form": "raw", "body": "{}", "headers": [["a", "b", "c"]]},
    {"form": "raw"},
    {"form": "none"},
)
GIVEN: tuple[dict[str, Any], ...] = (
    {"reply": {"größe": [1, "\u2028"]}},
    {"reply": "text"},
    {"reply": b"bytes"},
    {"reply": b""},
    {"reply": {1, 2}},
    {"value": {"größe": (1, 2)}},
    {"error": ValueError("no")},
    {"text": "a", "value": 1},
    {"message": [1]},
    {"message": '{"id": "other"}'},
)


def edited(entry: Any) -> Iterator[str]:
    """What each kind of edit makes of a call, or why it cannot be made."""
    editable = edits.editable_of(entry).record()
    yield _digest(editable)
    named = [{"form": "fault", "name": each["name"]} for each in editable["faults"]]
    for edit in (*EDITS, *named, {"form": "fault", "name": "none"}):
        yield _tried(lambda edit=edit: edits.apply_edit(entry, edit))
        yield _digest(edits.problems_of(entry, edit))
    unset = dict.fromkeys(("text", "message", "fault", "reply", "value", "error"), UNSET)
    for given in GIVEN:
        yield _tried(lambda given=given: edits.given_edit(entry, **(unset | given)))


def _tried(make: Callable[[], Any]) -> str:
    try:
        made = make()
    except (TapeError, TypeError) as error:
        return re.sub(r"\w{8}(?:-\d+)?", "ID", str(error)) if "call" in str(error) else str(error)
    return _digest([made.reply, made.details, made.notes, made.again])


def _digest(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _small(records: list[Record]) -> dict[str, list[Record]]:
    """A few conversations of little text, each of another provider."""
    few: dict[str, list[Record]] = {}
    for name, calls in chosen(records).items():
        if len(json.dumps(calls)) < 4000:
            few.setdefault(calls[0]["provider"], calls)
    return {calls[0]["conversation"]: calls for calls in [*few.values()][:6]}


def told(records: list[Record], folder: Path) -> dict[str, Any]:
    small = Kept(folder / "small", _small(records))
    damages = dict(small.damages())
    sentences = {re.sub(r"^:\d+", "", each) for each in damages.values() if len(each) > 8}
    return {
        "calls": dict(Kept(folder / "all", chosen(records)).digests()),
        "edits": [_digest(list(edited(entry))) for entry in small.cassette.calls],
        "damages": _digest(damages),
        "sentences": sorted(sentences),
    }


def test_real_traffic_is_recorded_as_it_always_was_and_damages_of_it_are_told(tmp_path):
    kept, now = json.loads(KEPT.read_text()), told(real_traffic.records(), tmp_path)
    assert [name for name in now["calls"] if now["calls"][name] != kept["calls"].get(name)] == []
    assert now["sentences"] == kept["sentences"]
    assert now == kept


def main() -> None:
    records = reencode_corpus.read(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(told(records, Path(folder)), indent=0))


if __name__ == "__main__":
    main()
