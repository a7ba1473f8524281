"""A recording becomes the file of another system, and comes back from it as it was, as far as that has a place for it."""

import base64
import gzip
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cli import tape as command
from tape_jupyter.encoding.values.registry import freeze, freeze_error
from tests.harness.tapes import JSON, Recorder, answered, asked

CHAT = "https://api.openai.com/v1/chat/completions"
RESPONSES = "https://api.openai.com/v1/responses"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
FORMATS = ("otlp", "openinference", "har", "vcr", "jsonl", "agenttape")
WEATHER = {"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}  # fmt: skip


def chat(*texts, **more):
    messages = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": text}
        for n, text in enumerate(texts)
    ]
    body = {"model": "gpt-4o-mini", "messages": [{"role": "system", "content": "Be brief."}, *messages], "temperature": 0.3, **more}  # fmt: skip
    return Request("POST", CHAT, JSON, json.dumps(body, ensure_ascii=False).encode())


def replied(message, stop="stop"):
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini-2024", "choices": [{"index": 0, "finish_reason": stop, "message": {"role": "assistant", **message}}], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}}  # fmt: skip
    return Reply(
        200, (*JSON, ("x-request-id", "req-7")), (json.dumps(body).encode(),), (0.25,), reason="OK"
    )


def streamed(text="Rain. ☔"):
    events = [{"id": "c2", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini", "choices": [{"index": 0, "delta": {"content": part, "role": "assistant"}, "finish_reason": None}]} for part in text]  # fmt: skip
    events.append({**events[-1], "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in events] + [
        b"data: [DONE]\n\n"
    ]
    waits = tuple(round(0.1 + n / 100, 2) for n in range(len(chunks)))
    return Reply(200, (("content-type", "text/event-stream"),), tuple(chunks), waits, reason="OK")


def gemini(text="Bonn"):
    body = {"contents": [{"role": "user", "parts": [{"text": "Where?"}]}], "systemInstruction": {"parts": [{"text": "Be brief."}]}, "generationConfig": {"maxOutputTokens": 9}}  # fmt: skip
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1}, "modelVersion": "gemini-2.5-flash"}  # fmt: skip
    return Request("POST", GEMINI, JSON, json.dumps(body).encode()), Reply(
        200, JSON, (json.dumps(said).encode(),), (0.1,)
    )


def zipped():
    data = gzip.compress(b'{"page": "caf\xc3\xa9"}', mtime=0)
    return Reply(200, (("content-type", "application/json"), ("content-encoding", "gzip")), (data[:9], data[9:]), (0.1, 0.2), reason="OK")  # fmt: skip


MODELS = [
    (chat("Who?"), replied({"content": "North 'a': {b} – ☔ \x85\u2028"})),
    (chat("Weather?", tools=[WEATHER], tool_choice="required"), replied({"content": None, "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}]}, "tool_calls")),
    (chat("And?", stream=True, stream_options={"include_usage": True}), streamed()),
    (asked("Who is it?"), answered("Bo")),
    gemini(),
    (asked("Too much"), Reply(429, JSON, (b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}',), (0.1,), reason="Too Many Requests")),
]  # fmt: skip
HTTP = [
    (Request("GET", "https://example.com/page?q=1&q=2", (("accept", "*/*"),)), zipped()),
    (Request("POST", "https://example.com/blob", (("content-type", "application/octet-stream"),), b"\xff\x00\xfe"), Reply(201, (("content-type", "image/png"), ("x-two", "a"), ("x-two", "b")), (b"\x89PNG\xff",), (0.1,), reason="Created")),
    (Request("DELETE", "https://example.com/blob"), Reply(204, (("x-gone", "yes"),), (), (), reason="No Content")),
]  # fmt: skip
TOOLS = [
    (
        FunctionCall("lookup", {"city": "Bonn", "n": 2}),
        Value(freeze({"t": [1, 2.5, None, True]}), seconds=0.1),
    ),
    (FunctionCall("fail", {}), Value(error=freeze_error(ValueError("no such city")))),
    (
        FunctionCall("search", {"query": "rain"}, "retrieval"),
        Value(freeze([{"id": "d1", "content": "wet"}])),
    ),
]


def recorded(folder, *calls):
    path = folder / "churn.tapes" / "main.tape.yaml"
    Recorder(path).run("ask()", *calls, title="ask()")
    return path


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def exported(path, form, *more, code=0):
    out = path.parent.parent / f"out.{form}.dat"
    done = run("export", path, "--as", form, "--out", out, "--json", *more)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout) if code == 0 else done


def back(files, folder, form="", drop=()):
    """The calls of exported files, imported again. `drop`: attributes that are taken out first."""
    paths = [Path(each) for each in files]
    for path in paths if drop else ():
        told = json.loads(path.read_text())
        for span in told["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            span["attributes"] = [each for each in span["attributes"] if each["key"] not in drop]
        path.write_text(json.dumps(told))
    done = tape.import_trace(*paths, form=form, cassette=folder / "back.tapes" / "main.tape.yaml")
    assert not [each.error for each in done.files if each.error]
    return Cassette.open(done.path, check="whole")


def body(part):
    return json.loads(part.body)


def exact(call):
    """What must be the same on both sides of a format that holds the wire."""
    request, reply = call.request(), call.reply()
    if isinstance(request, FunctionCall):
        return (
            request.name,
            request.kind,
            dict(request.arguments),
            reply.value,
            (reply.error or {}).get("args"),
        )
    return request, reply


@pytest.mark.parametrize("form", ["otlp", "openinference"])
def test_a_recording_comes_back_whole_from_a_trace_of_either_convention(form, tmp_path):
    path = recorded(tmp_path, *MODELS, *HTTP, *TOOLS)
    told = exported(path, form)
    again = back(told["files"], tmp_path)
    before = Cassette.open(path)
    for call in before.calls:
        assert exact(call) in [exact(each) for each in again.calls]
    assert len(again.calls) == len(before.calls)
    assert {call.head()["kind"] for call in again.calls} == {
        call.head()["kind"] for call in before.calls
    }
    assert [run["title"] for run in again.runs] == ["ask()"]
    assert {call.head()["at"] for call in again.calls} == {
        call.head()["at"] for call in before.calls
    }


@pytest.mark.parametrize("form", ["otlp", "openinference"])
def test_a_trace_tells_its_messages_to_those_who_know_the_convention_alone(form, tmp_path):
    path = recorded(tmp_path, *MODELS, *TOOLS)
    again = back(exported(path, form)["files"], tmp_path, drop=("tape.call",))
    calls = [call for call in again.calls if call.head()["kind"] == "model"]
    assert len(calls) == len(MODELS)
    asks, replies = [body(call.request()) for call in calls], [call.reply() for call in calls]
    texts = [json.dumps(each, ensure_ascii=False) for each in asks]
    for word in ("Who?", "Weather?", "And?", "Who is it?", "Where?", "Be brief.", "Too much"):
        assert any(word in each for each in texts), word
    said = "".join(reply.body.decode() for reply in replies)
    for word in ("North 'a': {b} – ☔", "weather", "Bonn", "Bo", "slow down"):
        assert word in said or json.dumps(word)[1:-1] in said, word
    assert sorted(call.head()["kit"]["model"] for call in calls) == sorted(
        ["gpt-4o-mini"] * 3 + ["claude-sonnet-4-5"] * 2 + ["gemini-2.5-flash"]
    )
    tools = {
        call.request().name: call.reply()
        for call in again.calls
        if isinstance(call.request(), FunctionCall)
    }
    assert tools["lookup"].value == {"t": [1, 2.5, None, True]} and tools["fail"].error["args"] == [
        "no such city"
    ]


def test_openinference_holds_the_very_json_of_requests(tmp_path):
    path = recorded(tmp_path, *MODELS[:5])
    again = back(exported(path, "openinference")["files"], tmp_path, drop=("tape.call",))
    before = [body(call.request()) for call in Cassette.open(path).calls]
    assert sorted(json.dumps(body(call.request())) for call in again.calls) == sorted(
        map(json.dumps, before)
    )


def test_spans_and_the_tool_that_asked_come_back(tmp_path):
    from tape_jupyter.core.call import Where
    from tape_jupyter.cassette.match_key import match_key
    from tape_jupyter.cassette.records import Head

    recorder = Recorder(tmp_path / "churn.tapes" / "main.tape.yaml")
    own = recorder.cassette.start_run(
        {"mode": "record", "source": "x", "session": "s", "at": "2026-11-21T20:41:07.512Z"}, {}
    )
    (tool, value), (request, reply) = TOOLS[0], MODELS[0]
    names = [match_key(each, recorder.secrets) for each in (tool, request)]
    at = "2026-11-21T20:41:07.512Z"
    wheres = (
        Where(own, "", ("agent", "step")),
        Where(own, "", ("agent", "step", "inner"), names[0][:8]),
    )
    for name, kind, where, asks, said in zip(
        names, ("tool", "model"), wheres, (tool, request), (value, reply), strict=True
    ):
        recorder.cassette.append_call(
            Head(name[:8], own, name, kind, where, at, 0.5), asks, said, recorder.secrets
        )
    recorder.cassette.end_run(own, {"outcome": "ok"})
    path = recorder.cassette.path
    again = back(exported(path, "otlp")["files"], tmp_path)
    heads = {call.head()["kind"]: call.head() for call in again.calls}
    assert (
        heads["tool"]["span"] == "agent / step" and heads["model"]["span"] == "agent / step / inner"
    )
    assert heads["model"]["parent"] == heads["tool"]["call"]


@pytest.mark.parametrize("form", ["otlp", "openinference"])
def test_the_protobuf_classes_of_opentelemetry_read_the_json(form, tmp_path):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def base64_ids(value):  # the one thing in which OTLP's JSON is not protobuf's
        if isinstance(value, dict):
            return {name: base64.b64encode(bytes.fromhex(each)).decode() if name in ("traceId", "spanId", "parentSpanId") else base64_ids(each) for name, each in value.items()}  # fmt: skip
        return [base64_ids(each) for each in value] if isinstance(value, list) else value

    told = exported(recorded(tmp_path, *MODELS, *HTTP, *TOOLS), form)
    document = json.loads(Path(told["files"][0]).read_text())
    parsed = json_format.ParseDict(base64_ids(document), ExportTraceServiceRequest())
    spans = parsed.resource_spans[0].scope_spans[0].spans
    assert len(spans) == len(MODELS) + len(HTTP) + len(TOOLS) + 1
    assert all(len(each.trace_id) == 16 and len(each.span_id) == 8 for each in spans)
    ids = {each.span_id for each in spans}
    assert len(ids) == len(spans) and all(
        each.parent_span_id in ids for each in spans if each.parent_span_id
    )
    assert sum(not each.parent_span_id for each in spans) == 1
    assert all(each.start_time_unix_nano <= each.end_time_unix_nano for each in spans)


@pytest.mark.parametrize("form", ["har", "vcr"])
def test_http_comes_back_byte_for_byte(form, tmp_path):
    path = recorded(tmp_path, *MODELS, *HTTP)
    told = exported(path, form)
    again = [exact(call) for call in back(told["files"], tmp_path).calls]
    for call in Cassette.open(path).calls:
        request, reply = exact(call)
        found = [
            (asks, said) for asks, said in again if asks == request and said.body == reply.body
        ]
        assert found, (form, request)
        said = found[0][1]
        assert (said.status, said.headers) == (reply.status, reply.headers)
        if form == "har":
            assert (said.chunks, said.waits, said.reason) == (
                reply.chunks,
                reply.waits,
                reply.reason,
            )


def test_the_real_vcrpy_plays_the_cassette(tmp_path):
    vcr = pytest.importorskip("vcr")
    path = recorded(tmp_path, *MODELS, *HTTP)
    file = exported(path, "vcr")["files"][0]
    recorder = vcr.VCR(match_on=["method", "uri", "sent"], record_mode="none")
    recorder.register_matcher("sent", lambda one, other: (one.body or b"") == (other.body or b""))
    with recorder.use_cassette(file) as cassette, httpx.Client() as client:
        for call in Cassette.open(path).calls:
            request, reply = call.request(), call.reply()
            said = client.request(
                request.method, request.url, content=request.body, headers=list(request.headers)
            )
            expected = (
                gzip.decompress(reply.body) if reply.header("content-encoding") else reply.body
            )
            assert (said.status_code, said.content) == (reply.status, expected)
        assert cassette.all_played


def test_a_har_holds_what_a_browser_shows(tmp_path):
    path = recorded(tmp_path, *MODELS, *HTTP)
    entries = json.loads(Path(exported(path, "har")["files"][0]).read_text())["log"]["entries"]
    first = entries[0]
    assert (
        first["request"]["postData"]["mimeType"] == "application/json"
        and first["response"]["status"] == 200
    )
    page = next(each for each in entries if "page" in each["request"]["url"])
    assert page["response"]["content"]["text"] == '{"page": "café"}'  # its content-encoding is off
    assert [each["value"] for each in page["request"]["queryString"]] == ["1", "2"]


def test_a_batch_file_is_for_one_provider_and_its_results_join_it(tmp_path):
    path = recorded(tmp_path, *MODELS)
    told = exported(path, "jsonl")
    names = [Path(each).name for each in told["files"]]
    assert names == ["out.jsonl.openai.dat", "out.jsonl.anthropic.dat", "out.jsonl.openai.results.dat", "out.jsonl.anthropic.results.dat"]  # fmt: skip
    rows = [json.loads(line) for line in Path(told["files"][0]).read_text().splitlines()]
    assert [row["url"] for row in rows] == ["/v1/chat/completions"] * 3 and len(
        {row["custom_id"] for row in rows}
    ) == 3
    assert all("stream" not in row["body"] for row in rows)
    assert any("gemini" in what for what in told["lost"]) and any(
        "stream" in what for what in told["lost"]
    )
    folder = tmp_path / "in"
    folder.mkdir()
    for each in told["files"]:
        Path(each).rename(folder / f"{Path(each).name}.jsonl")
    again = back(sorted(folder.glob("*.results.*")), tmp_path)
    asks = {json.dumps(body(call.request()), sort_keys=True) for call in again.calls}
    for request, _ in [*MODELS[:2], MODELS[3]]:
        assert json.dumps(body(request), sort_keys=True) in asks
    said = {json.dumps(body(call.reply()), sort_keys=True) for call in again.calls}
    for _, reply in [*MODELS[:2], MODELS[3]]:
        assert json.dumps(body(reply), sort_keys=True) in said


def test_agenttape_gets_calls_of_models_tools_and_hosts(tmp_path):
    path = recorded(tmp_path, *MODELS, *HTTP, *TOOLS)
    told = exported(path, "agenttape")
    rows = json.loads(Path(told["files"][0]).read_text())["interactions"]
    assert [row["kind"] for row in rows].count("llm") == 3 and [row["kind"] for row in rows].count(
        "tool"
    ) == 2
    assert all(
        row["match_key"].startswith("sha256:") and ("response" in row or "error" in row)
        for row in rows
    )
    again = back(told["files"], tmp_path)
    assert len(again.calls) == len(MODELS) + len(HTTP) + len(TOOLS)
    asks = {
        json.dumps(body(call.request()), sort_keys=True)
        for call in again.calls
        if "chat/completions" in str(call.request())
    }
    assert {json.dumps(body(request), sort_keys=True) for request, _ in MODELS[:2]} <= asks
    hosts = {
        (call.request().url, call.reply().status, call.reply().body)
        for call in again.calls
        if "example.com" in str(call.request())
    }
    assert ("https://example.com/page?q=1&q=2", 200, b'{"page": "caf\xc3\xa9"}') in hosts
    assert ("https://example.com/blob", 201, b"\x89PNG\xff") in hosts


def test_values_that_json_has_no_type_for_are_listed(tmp_path):
    path = recorded(
        tmp_path, (FunctionCall("f", {"at": freeze((1, 2))}), Value(freeze({"when": b"x"})))
    )
    for form in ("otlp", "openinference", "agenttape"):
        assert any("Python types" in what for what in exported(path, form)["lost"]), form


@pytest.mark.parametrize("form", ["har", "vcr", "jsonl"])
def test_a_format_without_a_place_for_any_call_writes_nothing(form, tmp_path):
    path = recorded(tmp_path, *TOOLS)
    done = exported(path, form, code=2)
    assert "nothing of it can be written" in done.stderr and "tool calls" in done.stderr
    assert not list(tmp_path.glob("out.*"))


def test_what_a_newer_recording_replaced_stays_out_and_is_counted(tmp_path):
    path = tmp_path / "churn.tapes" / "main.tape.yaml"
    Recorder(path).run("ask()", (chat("old"), replied({"content": "old"})))
    Recorder(path, session="s2").run("ask()", (chat("new"), replied({"content": "new"})))
    told = exported(path, "har")
    text = Path(told["files"][0]).read_text()
    assert (
        "new" in text
        and '\\"old\\"' not in text
        and any("newer recording" in what for what in told["lost"])
    )


@pytest.mark.parametrize("form", FORMATS)
def test_a_secret_is_refused_as_in_a_bundle(form, tmp_path):
    key = "sk-proj-" + "a1B2c3D4" * 6
    path = recorded(tmp_path, (chat(f"my key is {key}"), replied({"content": "thanks"})))
    done = run("export", path, "--as", form, "--out", tmp_path / "out.json")
    assert done.exit_code == 1 and "there are secrets in what would be exported" in done.stderr
    assert (
        key not in done.output
        and not list(tmp_path.glob("out*"))
        and not list(tmp_path.glob(".out*"))
    )


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_overwritten(form, tmp_path):
    path = recorded(tmp_path, *MODELS)
    exported(path, form)
    before = {each: each.read_bytes() for each in tmp_path.glob("out.*")}
    done = exported(path, form, code=2)
    assert "is not overwritten" in done.stderr and before == {
        each: each.read_bytes() for each in tmp_path.glob("out.*")
    }


def test_by_itself_the_file_lies_beside_the_notebook(tmp_path):
    recorded(tmp_path, *MODELS)
    (tmp_path / "churn.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    done = run("export", tmp_path / "churn.ipynb", "--as", "vcr")
    assert done.exit_code == 0 and (tmp_path / "churn.vcr.yaml").exists()
    assert "not in it:" in done.stdout and "churn.vcr.yaml" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--as", "pdf"], "there is no such format; there are: agenttape, har"),
        (["--as", "har", "--endpoint", "http://x"], "--endpoint sends OTLP"),
        (["--as", "otlp", "--endpoint", "x"], "name a URL"),
        (["--as", "otlp", "--endpoint", "http://x", "--out", "y"], "choose one"),
        (["--as", "har", "--redact"], "--redact is a bundle's"),
        (["there.har", "--as", "har"], "say --out FILE"),
        (["--out", "x.har"], "--out and --endpoint go with --as"),
    ],
)
def test_words_that_do_not_go_together_are_one_error(words, said, tmp_path):
    done = run("export", recorded(tmp_path, *MODELS), *words)
    assert done.exit_code == 2 and said in done.stderr and "Traceback" not in done.output


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        data = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append(
            gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data
        )
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        server.got, server.status = [], 200
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_endpoint_gets_the_spans_that_a_file_would_have(tmp_path, collector, monkeypatch):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    path = recorded(tmp_path, *MODELS, *TOOLS)
    url = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    done = run("export", path, "--as", "otlp", "--endpoint", url)
    assert done.exit_code == 0 and f"sent to {url}" in done.stdout, done.output
    sent = [span for data in collector.got for part in ExportTraceServiceRequest.FromString(data).resource_spans for scope in part.scope_spans for span in scope.spans]  # fmt: skip
    file = json.loads(Path(exported(path, "otlp")["files"][0]).read_text())["resourceSpans"][0][
        "scopeSpans"
    ][0]["spans"]
    assert [(each.name, each.span_id.hex(), each.start_time_unix_nano) for each in sent] == [
        (each["name"], each["spanId"], int(each["startTimeUnixNano"])) for each in file
    ]
    assert [{a.key for a in each.attributes} for each in sent] == [
        {a["key"] for a in each["attributes"]} for each in file
    ]


def test_an_endpoint_that_refuses_is_said(tmp_path, collector, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    collector.status = 401
    url = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    done = run("export", recorded(tmp_path, *MODELS), "--as", "openinference", "--endpoint", url)
    assert done.exit_code == 2 and "401" in done.stderr and "nothing was sent" in done.stderr, (
        done.output
    )


def test_without_the_exporter_the_endpoint_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(
        __import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None
    )
    done = run(
        "export",
        recorded(tmp_path, *MODELS),
        "--as",
        "otlp",
        "--endpoint",
        "http://127.0.0.1:1/v1/traces",
    )
    assert done.exit_code == 2 and "pip install 'tape-jupyter[otlp]'" in done.stderr


CORPUS = (
    Path(os.environ.get("TAPE_CORPUS", Path(__file__).parents[4] / "shared" / "corpus"))
    / "corpus_dev.jsonl.gz"
)


def real(count):
    """Recorded interactions of real providers, spread over the corpus."""

    def part(told):
        return (
            base64.b64decode(told["body_b64"])
            if "body_b64" in told
            else (told.get("body_text") or "").encode()
        )

    with gzip.open(CORPUS, "rt") as file:
        rows = [json.loads(line) for line in file]
    for row in rows[:: max(1, len(rows) // count)]:
        asks, said = row["request"], row["response"]
        data = part(said)
        request = Request(
            asks["method"].upper(), asks["url"], tuple(map(tuple, asks["headers"])), part(asks)
        )
        yield (
            request,
            Reply(
                said["status"],
                tuple(map(tuple, said["headers"])),
                (data,) if data else (),
                (0.1,) if data else (),
            ),
        )


@pytest.mark.spread(4)
@pytest.mark.skipif(
    not CORPUS.exists(),
    reason="needs the shared corpus of real traffic: ../shared/corpus, or TAPE_CORPUS",
)
@pytest.mark.parametrize("form", ["otlp", "openinference", "har", "vcr"])
def test_real_traffic_comes_back_byte_for_byte(form, tmp_path):
    path = recorded(tmp_path, *real(250))
    out = tmp_path / f"out.{form}"
    out.write_bytes(_written(path, form))
    again = back([out], tmp_path, form={"openinference": "otlp", "vcr": "vcrpy"}.get(form, form))
    found = {
        (
            call.request().method,
            call.request().url,
            call.request().body,
            call.reply().status,
            call.reply().body,
        )
        for call in again.calls
    }
    missing = [call for call in Cassette.open(path).calls if (call.request().method, call.request().url, call.request().body, call.reply().status, call.reply().body) not in found]  # fmt: skip
    assert not missing, [(call.request().url, call.reply().headers) for call in missing[:5]]


def _written(path, form):
    """The file, made without the search for secrets: public recordings are full of what looks like keys."""
    from tape_jupyter.exporters import exporting, reading

    return exporting.known_formats()[form].write(reading.read_recording("corpus", [path]))[0].data
