"""A cassette that is told again without its secrets is a cassette like any other: it replays, and its takes know it."""

import gzip
import json
import random

import pytest

from tape_jupyter.secrets.masking import Masking
from tape_jupyter.bundle.redaction import RedactedFolder
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import BundleError
from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.cassette.match_key import IgnorePath, match_key
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.cassette.takes.files import TakeBase, path_of
from tests.harness.plants import made
from tests.harness.recorder import JSON, Recorder, reply, request, talk
from tests.unit.secrets.test_leaks import streamed

TOKEN, _ = made("github", random.Random(1))
MARK = "redacted-github-token-1"


def retold(folder, sources=None):
    return RedactedFolder(
        folder, Masking(Secrets(), {TOKEN: MARK}), sources or {}
    ).redact_cassettes()


def masked(call):
    if isinstance(call, FunctionCall):
        return FunctionCall(
            call.name, json.loads(json.dumps(dict(call.arguments)).replace(TOKEN, MARK)), call.kind
        )
    return Request(
        call.method,
        call.url.replace(TOKEN, MARK),
        call.headers,
        call.body.replace(TOKEN.encode(), MARK.encode()),
    )


def history(*turns):
    body = talk(3)
    return request(
        {
            **body,
            "messages": [*body["messages"], *({"role": "user", "content": turn} for turn in turns)],
        }
    )


def test_every_call_is_found_by_what_is_asked_now_and_gives_what_it_gave(tmp_path):
    packed = gzip.compress(json.dumps({"content": TOKEN}).encode())
    calls = [
        (history(f"use {TOKEN}"), reply(f"I use {TOKEN}", chunks=5)),
        (history(f"use {TOKEN}", "again"), reply("fine")),
        (request({"q": 1}, f"https://api.example.com/x/{TOKEN}/y?key=1"), reply("fine")),
        (
            request({"q": 2}),
            Reply(
                200,
                (*JSON, ("content-encoding", "gzip"), ("content-length", str(len(packed)))),
                (packed,),
                (0.1,),
            ),
        ),
        (request({"q": 3}), streamed(f"say {TOKEN} now", random.Random(2))),
        (request({"q": "filler " * 12000 + TOKEN}), reply("word " * 20000 + TOKEN)),
        (FunctionCall("look_up", {"token": TOKEN}), Value(freeze({"found": TOKEN}))),
        (request({"clean": True}), reply("nothing here")),
    ]
    recorder = Recorder(tmp_path / "main.tape.yaml")
    old = [recorder.add(*call) for call in calls]
    recorder.end()
    path = tmp_path / "main.tape.yaml"
    before = {record: path.read_text().split("\n...\n")[record] for record in (0, -2)}
    assert retold(tmp_path) == [path]
    tape = Cassette.open(path, check="whole")
    everything = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert TOKEN.encode() not in everything
    for (asked, said), entry, was in zip(calls, tape.calls, old, strict=True):
        assert (entry.id, entry.run) == (was.id, was.run) and not entry.edited()
        assert entry.match == match_key(masked(asked), Secrets())
        if isinstance(asked, Request):
            now, then = entry.request(), masked(asked)
            assert (now.url, now.body) == (then.url, then.body)
            again = entry.reply()
            body = gzip.decompress(again.body) if again.header("content-encoding") else again.body
            was_said = gzip.decompress(said.body) if said.header("content-encoding") else said.body
            assert again.header("content-length", str(len(again.body))) == str(len(again.body))
            assert (
                len(body) == len(was_said.replace(TOKEN.encode(), MARK.encode()))
                or b"text_delta" in body
            )
    assert {record: path.read_text().split("\n...\n")[record] for record in (0, -2)} == before


def test_fields_that_a_cell_leaves_out_of_the_match_stay_out(tmp_path):
    recorder = Recorder(tmp_path / "main.tape.yaml")
    recorder.run = recorder.tape.start_run(
        {"mode": "record", "source": "x", "ignore": ["ts"]}, {}, Secrets()
    )
    recorder.add(request({"ts": 1, "q": TOKEN}), reply())
    recorder.end()
    retold(tmp_path)
    (entry,) = Cassette.open(tmp_path / "main.tape.yaml").calls
    assert entry.match == match_key(request({"ts": 99, "q": MARK}), Secrets(), [IgnorePath("ts")])


def test_a_reply_that_was_edited_by_hand_stays_marked(tmp_path):
    recorder = Recorder(tmp_path / "main.tape.yaml")
    recorder.add(request({"q": 1}), reply(f"use {TOKEN} please"))
    recorder.end()
    path = tmp_path / "main.tape.yaml"
    path.write_text(path.read_text().replace(" please", " at once"))
    assert Cassette.open(path).calls[0].edited()
    retold(tmp_path)
    (entry,) = Cassette.open(path).calls
    assert entry.edited() and f"use {MARK} at once".encode() in entry.reply().body


def test_a_take_knows_its_base_again(tmp_path):
    path = tmp_path / "main.tape.yaml"
    recorder = Recorder(path)
    first = recorder.add(request({"q": TOKEN}), reply(TOKEN))
    recorder.add(request({"q": 2}), reply("two"))
    recorder.end()
    where = path_of(path, "fix")
    where.parent.mkdir()
    take = Cassette(where, of=TakeBase.from_file(where, path, path.stat().st_size))
    take.refresh()
    take.append_override(
        take.calls[0],
        reply(f"not {TOKEN}"),
        {"at": "2026-11-21T20:41:07.512Z", "seconds": 0.1},
        Secrets(),
    )
    Recorder(path, cassette=Cassette.open(path)).end()  # the base grew since
    assert set(retold(tmp_path)) == {path, where}
    again = Cassette.open(where, check="whole")
    assert again.calls[0].id == first.id and f"not {MARK}".encode() in again.calls[0].reply().body
    assert again.calls[1].reply().body == b'{"content":"two"}'


def test_a_recording_knows_its_masked_cell_by_its_source(tmp_path):
    recorder = Recorder(tmp_path / "main.tape.yaml")
    recorder.add(request({"q": 1}), reply())
    recorder.end()
    assert retold(tmp_path, {"x": "0123456789abcdef"}) == [tmp_path / "main.tape.yaml"]
    assert Cassette.open(tmp_path / "main.tape.yaml").runs[0]["source"] == "0123456789abcdef"


def test_a_cassette_that_cannot_be_read_is_refused_and_left(tmp_path):
    (tmp_path / "main.tape.yaml").write_text(f"---\ntape: 1\n...\n---\nwhat: [{TOKEN}\n...\n")
    before = (tmp_path / "main.tape.yaml").read_text()
    with pytest.raises(BundleError, match="record the cell again"):
        retold(tmp_path)
    assert (tmp_path / "main.tape.yaml").read_text() == before
