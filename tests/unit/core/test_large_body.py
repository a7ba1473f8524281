"""Large bodies: recorded and replayed byte for byte in constant memory, beside the cassette, with no secret in it."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

import tape_jupyter as tape
from tape_jupyter.errors import CassetteError, TapeRefusal
from tape_jupyter.core.large_body import LIMIT, LargeBody, LargeChunks, join_chunks
from tests.trials import large_program

CLIENTS = ("httpx", "requests", "urllib3", "urllib", "aiohttp")
KEY = "sk-proj-9vQ2mZ7kLx41PwT8"
SIZE = 96 << 20
ROOM = 60 << 20
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="the most memory of a process is read from /proc"
)


@pytest.fixture
def server():
    running = large_program.serve()
    yield running
    running.shutdown()
    running.server_close()


def url_of(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


def run(mode, cassette, client, url, size, key=""):
    line = [sys.executable, large_program.__file__, mode, str(cassette), client, url, str(size)]
    env = {**os.environ, "OPENAI_API_KEY": key}
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.spread(5)
@linux
@pytest.mark.parametrize("client", CLIENTS)
def test_a_large_reply_and_a_large_upload_take_little_memory(tmp_path, server, client):
    cassette, url = tmp_path / "run.tape.yaml", url_of(server)
    plain = run("untaped", cassette, client, url, SIZE)
    recorded = run("record", cassette, client, url, SIZE)
    server.shutdown()
    server.server_close()
    replayed = run("replay", cassette, client, url, SIZE)
    for taped in (recorded, replayed):
        assert {**taped, "most": 0} == {**plain, "most": 0}
        assert taped["most"] - plain["most"] < ROOM
    assert cassette.stat().st_size < 2 << 20


@pytest.mark.spread(5)
@linux
@pytest.mark.parametrize("client", CLIENTS)
def test_a_key_in_a_large_body_is_masked_and_the_program_has_its_own(
    tmp_path, server, client, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # the server sends it, too
    cassette, url = tmp_path / "run.tape.yaml", url_of(server)
    plain = run("untaped", cassette, client, url, 10 << 20, KEY)
    recorded = run("record", cassette, client, url, 10 << 20, KEY)
    assert {**recorded, "most": 0} == {**plain, "most": 0}
    kept = [
        file.read_bytes()
        for file in tmp_path.rglob("*")
        if file.is_file() and file.name != "upload"
    ]
    assert not [file for file in kept if KEY.encode() in file]
    assert sum(file.count(b"<secret:OPENAI_API_KEY>") for file in kept) >= 2
    replayed = run("replay", cassette, client, url, 10 << 20, KEY)
    assert replayed["said"] == plain["said"]


def test_a_small_body_stands_in_the_cassette_as_ever(tmp_path, server):
    import httpx

    with tape.recording(tmp_path / "run.tape.yaml"):
        httpx.get(f"{url_of(server)}/{1 << 20}")
    text = (tmp_path / "run.tape.yaml").read_text()
    assert "\n  large:" not in text and "base64:" in text


def record(folder, server):
    import httpx

    with tape.recording(folder / "run.tape.yaml"):
        return httpx.get(f"{url_of(server)}/{LIMIT + 1}").content


def test_a_large_body_is_read_with_the_library(tmp_path, server):
    body = record(tmp_path, server)
    [call] = tape.open(tmp_path / "run.tape.yaml").calls
    assert call.reply().body == body and not call.edited()


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_a_large_body_that_is_not_as_it_was_is_refused_before_any_of_it_is_handed_on(
    tmp_path, server, harm
):
    import httpx

    record(tmp_path, server)
    [asset] = (tmp_path / "assets").iterdir()
    if harm == "gone":
        asset.unlink()
    else:
        asset.write_bytes(b"x" + asset.read_bytes()[1:])
    with (
        pytest.raises((TapeRefusal, CassetteError), match=asset.name),
        tape.replaying(tmp_path / "run.tape.yaml"),
    ):
        httpx.get(f"{url_of(server)}/{LIMIT + 1}")


@pytest.mark.parametrize(
    ("was", "harm", "says"),
    [
        ('"<bytes>": ', '"<bytes>": "../../../etc/passwd" #', "sha256 name"),
        ('"<bytes>": ', '"<bytes>": 5 #', "sha256 name"),
        ('"<bytes>": ', '"<asset>": "x" #', "large|asset"),
        ("  reads: [", "  reads: [9999999999999999999999, ", "more bytes than any body has"),
    ],
)
def test_a_mark_of_somebody_elses_making_is_refused_in_a_line(tmp_path, server, was, harm, says):
    record(tmp_path, server)
    path = tmp_path / "run.tape.yaml"
    lines = path.read_text().splitlines()
    told = [line.replace(was, harm).partition(" #")[0] for line in lines]
    assert told != lines
    path.write_text("\n".join(told) + "\n")
    with pytest.raises(CassetteError, match=says):
        [call.reply() for call in tape.open(path).calls]


def test_the_same_body_lies_there_once(tmp_path, server):
    record(tmp_path, server)
    record(tmp_path, server)
    assert len(list((tmp_path / "assets").iterdir())) == 1


def test_a_json_reply_is_kept_as_structure_up_to_32_megabytes(tmp_path, server):
    import httpx

    with tape.recording(tmp_path / "run.tape.yaml"):
        reply = httpx.get(f"{url_of(server)}/json")
    assert len(reply.content) > LIMIT
    text = (tmp_path / "run.tape.yaml").read_text()
    assert "\n  large:" not in text and "json: compact" in text


@pytest.fixture
def body(tmp_path):
    data = bytes(range(256)) * 40
    (tmp_path / "body").write_bytes(data)
    return LargeBody(
        None, len(data), hashlib.sha256(data).hexdigest(), path=tmp_path / "body"
    ), data


def test_chunks_are_cut_where_they_were(body):
    large, data = body
    chunks = LargeChunks(large, [100, 9_000, 1_140])
    assert [*map(len, chunks)] == [100, 9_000, 1_140] and b"".join(chunks) == data
    assert chunks[-1] == data[9_100:] and chunks[1:][0] == data[100:9_100]
    with pytest.raises(IndexError):
        chunks[3]


def test_chunks_of_a_body_that_was_masked_are_as_many(body):
    large, data = body
    chunks = LargeChunks(large, [100, 9_000, 2_000])
    assert len(chunks) == 3 and b"".join(chunks) == data


def test_runs_of_chunks_are_joined(body):
    large, data = body
    chunks = join_chunks((b"ab", b"c"), LargeChunks(large, [10_000, 240]), (b"d",))
    assert len(chunks) == 5 and b"".join(chunks) == b"abc" + data + b"d" and chunks[-1] == b"d"


def test_a_form_is_compared_without_its_boundary(tmp_path):
    digests = set()
    for boundary in (b"0123456789abcdef", b"fedcba9876543210"):
        data = b"--".join([boundary, b"x" * ((1 << 20) - 20), boundary, b"y", boundary])
        (tmp_path / "body").write_bytes(data)
        digests.add(LargeBody(None, len(data), "", path=tmp_path / "body").counted(boundary))
    assert len(digests) == 1
