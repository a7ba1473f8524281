"""HTTP recordings of others (vcrpy, Ruby VCR, betamax, WireMock, nock, Hoverfly, mitmproxy, Polly) become calls."""

import base64
import gzip
import json
import zlib

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import TapeError

URL = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Who?"}]}
BODY = json.dumps(ASKED)
SAID = {"choices": [{"message": {"role": "assistant", "content": "North"}}]}
TEXT = json.dumps(SAID)
PACKED = gzip.compress(TEXT.encode(), mtime=0)


def tnet(value):
    if value is None:
        return b"0:~"
    if isinstance(value, bool):
        data, mark = str(value).lower().encode(), b"!"
    elif isinstance(value, int):
        data, mark = str(value).encode(), b"#"
    elif isinstance(value, float):
        data, mark = str(value).encode(), b"^"
    elif isinstance(value, str):
        data, mark = value.encode(), b";"
    elif isinstance(value, bytes):
        data, mark = value, b","
    elif isinstance(value, dict):
        data, mark = b"".join(tnet(part) for pair in value.items() for part in pair), b"}"
    else:
        data, mark = b"".join(map(tnet, value)), b"]"
    return str(len(data)).encode() + b":" + data + mark


def vcrpy(said=TEXT, **more):
    return {"version": 1, "interactions": [{
        "request": {"method": "POST", "uri": URL, "body": BODY, "headers": {"content-type": ["application/json"]}},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {"content-type": ["application/json"]}, "body": {"string": said}, **more},
    }]}  # fmt: skip


def http(**body):
    return {"http_interactions": [{
        "request": {"method": "post", "uri": URL, "body": {"encoding": "UTF-8", "string": BODY}, "headers": {"Content-Type": ["application/json"]}},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {"Content-Type": ["application/json"]}, "body": body or {"string": TEXT}},
        "recorded_at": "Wed, 19 Aug 2026 14:36:00 GMT"}], "recorded_with": "VCR 6.2.0"}  # fmt: skip


def exact(value):
    return [{"matcher": "exact", "value": value}]


def flow():
    return {"type": "http", "version": 20, "id": "f1", "websocket": None, "error": None,
            "request": {"method": b"POST", "scheme": b"https", "authority": b"", "host": "api.openai.com", "port": 443,
                        "path": b"/v1/chat/completions", "headers": [[b"content-type", b"application/json"]], "content": BODY.encode(),
                        "timestamp_start": 1699167601.5, "timestamp_end": 1699167601.6},
            "response": {"status_code": 200, "reason": b"OK", "http_version": b"HTTP/1.1", "content": PACKED,
                         "headers": [[b"content-type", b"application/json"], [b"content-encoding", b"gzip"]],
                         "timestamp_start": 1699167601.7, "timestamp_end": 1699167601.8}}  # fmt: skip


def yaml_of(text):
    return f"interactions:\n- request:\n    body: '{BODY}'\n    headers: {{}}\n    method: POST\n    uri: {URL}\n  response:\n    body:\n      string: {text}\n    headers: {{content-type: [application/json]}}\n    status: {{code: 200, message: OK}}\nversion: 1\n"


def langgraph():
    msgpack = pytest.importorskip("msgpack")
    return base64.b64encode(zlib.compress(msgpack.packb(vcrpy(TEXT.encode()))))


FILES = {
    "vcrpy.json": lambda: json.dumps(vcrpy()),
    "vcrpy.yaml": lambda: yaml_of(f"'{TEXT}'"),
    "gzip.yaml": lambda: yaml_of("!!binary |\n        " + base64.b64encode(PACKED).decode()).replace(
        "[application/json]", "[application/json], content-encoding: [gzip]"),
    "old.yaml": lambda: yaml_of(f"'{TEXT}'").replace("    body:\n      string:", "    content:").replace(
        f"body: '{BODY}'", "body: !!python/object/new:_io.BytesIO\n      state:\n      - !!binary |\n        "
        + base64.b64encode(BODY.encode()).decode() + "\n      - 0\n      - null"),
    "note.msgpack.zlib": langgraph,
    "ruby.yml": lambda: "---\n" + json.dumps(http()).replace("{", "{\n ", 1),
    "ruby.json": lambda: json.dumps(http(base64_string=base64.b64encode(TEXT.encode()).decode())),
    "packed.yml": lambda: zlib.compress(json.dumps(http()).encode()),
    "betamax.json": lambda: json.dumps({**http(), "recorded_with": "betamax/0.9"}),
    "nock.json": lambda: json.dumps([{"scope": "https://api.openai.com:443", "method": "POST", "path": "/v1/chat/completions",
        "body": ASKED, "status": 200, "response": [PACKED[:20].hex(), PACKED[20:].hex()],
        "rawHeaders": ["Content-Type", "application/json", "Content-Encoding", "gzip"]}]),
    "hoverfly.json": lambda: json.dumps({"data": {"pairs": [{"request": {"method": exact("POST"), "scheme": exact("https"),
        "destination": exact("api.openai.com"), "path": exact("/v1/chat/completions"), "body": exact(BODY)},
        "response": {"status": 200, "encodedBody": True, "body": base64.b64encode(TEXT.encode()).decode(),
        "headers": {"Content-Type": ["application/json"]}}}], "globalActions": {}}, "meta": {"schemaVersion": "v5.2"}}),
    "flows.mitm": lambda: tnet(flow()),
    "polly.har": lambda: json.dumps({"log": {"_recordingName": "x", "creator": {"name": "Polly.JS"}, "entries": [{"_id": "a",
        "startedDateTime": "2026-03-01T12:00:00Z", "time": 5, "request": {"method": "POST", "url": URL, "headers": [],
        "postData": {"mimeType": "application/json", "text": BODY}}, "response": {"status": 200, "headers": [
        {"name": "content-type", "value": "application/json"}, {"name": "content-encoding", "value": "gzip"}],
        "content": {"encoding": "base64", "text": json.dumps([base64.b64encode(p).decode() for p in (PACKED[:20], PACKED[20:])])}}}]}}),
}  # fmt: skip


def imported(folder, name, data):
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    done = tape.import_trace(folder / name, cassette=folder / "x.tapes" / "main.tape.yaml")
    return done, Cassette.open(done.path, check="whole") if done.path else None


@pytest.mark.parametrize("name", FILES)
def test_what_was_recorded_is_answered_with_no_network(tmp_path, name):
    import httpx

    done, cassette = imported(tmp_path, name, FILES[name]())
    with tape.replaying(done.path):
        assert httpx.post(URL, json=ASKED).json() == SAID
    assert (
        cassette.calls[0].head()["kit"]["grade"] in ("W", "J")
        and cassette.calls[0].head()["kit"]["provider"] == "openai"
    )


@pytest.mark.parametrize("name", ["nock.json", "polly.har"])
def test_chunks_that_were_kept_are_chunks_again(tmp_path, name):
    _, cassette = imported(tmp_path, name, FILES[name]())
    assert [len(chunk) for chunk in cassette.calls[0].reply().chunks] == [20, len(PACKED) - 20]


def mapping(folder, response, **request):
    (folder / "mappings").mkdir()
    (folder / "__files").mkdir()
    (folder / "__files" / "body.json").write_text(TEXT)
    told = {
        "request": {
            "url": "/v1/chat/completions",
            "method": "POST",
            "bodyPatterns": [{"equalToJson": BODY}],
            **request,
        },
        "response": response,
    }
    return imported(folder / "mappings", "m.json", json.dumps(told))


def test_a_wiremock_mapping_is_read_with_the_body_beside_it(tmp_path):
    import httpx

    done, cassette = mapping(tmp_path, {"status": 200, "bodyFileName": "body.json"})
    with tape.replaying(done.path):
        assert httpx.post(URL, json=ASKED).json() == SAID
    assert cassette.calls[0].head()["kit"]["assumed"] == [
        "host https://api.openai.com: a mapping names none"
    ]


def test_a_body_outside_its_folder_is_never_read(tmp_path):
    (tmp_path / "secret.txt").write_text("Zanzibar")
    done, _ = mapping(tmp_path, {"status": 200, "bodyFileName": "../secret.txt"})
    assert "Zanzibar" not in done.path.read_text() and any(
        "__files" in each for each in done.files[0].missing
    )


HOSTILE = {
    "anchor": (yaml_of("&a x\n    other: *a"), "anchor"),
    "merge": (yaml_of("x").replace("headers: {}", "headers:\n      <<: {a: b}"), "merge key"),
    "tag": (yaml_of("!!python/object/apply:os.system ['touch /tmp/pwned']"), "python/object/apply"),
    "deep": (yaml_of("[" * 10_000), "nested too deep"),
    "erb": ("---\nhttp_interactions:\n- <%= `id` %>\n", "ERB"),
    "old list": ("[{\"request\": {\"uri\": 1}, \"response\": {}, \"interactions\": 1}]", "before vcrpy 1.0"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_yaml_that_may_do_more_than_hold_data_is_refused_by_its_line(tmp_path, name):
    text, said = HOSTILE[name]
    with pytest.raises(TapeError, match=said) as error:
        imported(tmp_path, "bad.yaml", text)
    assert "bad.yaml" in str(error.value) and not (tmp_path / "x.tapes").exists()


def test_telemetry_that_a_recording_holds_is_left_out_and_counted(tmp_path):
    told = vcrpy()
    more = json.loads(json.dumps(told["interactions"][0]))
    more["request"]["uri"] = "https://api.smith.langchain.com/runs/batch"
    told["interactions"].append(more)
    done, cassette = imported(tmp_path, "x.json", json.dumps(told))
    assert len(cassette.calls) == 1 and done.files[0].reasons == {
        "a request that reports to a telemetry service": 1
    }


def test_calls_stand_in_the_order_of_the_file(tmp_path):
    told = vcrpy()
    dates = ["Sat, 27 Jun 2015 15:39:25 GMT", "", "Sat, 27 Jun 2015 15:39:20 GMT"]
    told["interactions"] = [json.loads(json.dumps(told["interactions"][0])) for _ in dates]
    for number, (each, date) in enumerate(zip(told["interactions"], dates, strict=True)):
        each["response"]["headers"]["date"] = [date] if date else []
        each["response"]["body"]["string"] = f'"{number}"'
    _, cassette = imported(tmp_path, "x.json", json.dumps(told))
    assert [entry.reply().body for entry in cassette.calls] == [b'"0"', b'"1"', b'"2"']


@pytest.mark.parametrize("name", ["bomb.yml", "bomb.msgpack.zlib"])
def test_a_zlib_bomb_is_one_error_that_names_the_file(tmp_path, name):
    packed = zlib.compress(b'{"http_interactions": [' + b" " * 300_000_000)
    (tmp_path / name).write_bytes(base64.b64encode(packed) if name.endswith(".zlib") else packed)
    with pytest.raises(TapeError, match="expands to more than") as told:
        tape.import_trace(tmp_path / name, cassette=tmp_path / "x.tapes" / "main.tape.yaml")
    assert name in str(told.value) and not (tmp_path / "x.tapes").exists()
