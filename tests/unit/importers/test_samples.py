"""Real files of every format import: each record is a call, a span, or counted, and requests equal what was sent."""

import base64
import json
import os
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[3]
SAMPLES = Path(os.environ.get("TAPE_SAMPLES", ROOT.parent / "shared" / "interop" / "samples"))
TRUTH = SAMPLES / "_truth" / "made_requests.jsonl"
SENT = {  # model calls whose request equals what the provider received, of how many
    "langsmith/made_runs.json": (5, 5), "mlflow/made_agent.trace.json": (6, 6), "braintrust/made_rows.json": (5, 5),
    "opik/made_trace_trees.json": (5, 5), "openinference/made_openai_anthropic.otlp.jsonl": (9, 9),
}  # fmt: skip
REFUSED = "azure_openai_logs/"


@pytest.fixture(scope="module")
def told():
    if not TRUTH.exists():
        pytest.skip(f"no samples in {SAMPLES}; name their folder in TAPE_SAMPLES")
    script = Path(__file__).parents[2] / "trials" / "import_samples.py"
    done = subprocess.run(
        [sys.executable, script, SAMPLES, "--truth", TRUTH],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(each["file"]).relative_to(SAMPLES).as_posix(): each for each in lines}


def test_every_file_imports_and_none_gives_nothing(told):
    failed = {
        name: each["error"]
        for name, each in told.items()
        if each["error"] and not name.startswith(REFUSED)
    }
    assert not failed
    assert not [
        name
        for name, each in told.items()
        if not each["error"] and not sum(each["records"].values())
    ]


def test_requests_equal_what_the_provider_received(told):
    def counts(each):
        calls = [call for call in each["calls"] if call["kind"] == "model"]
        return sum(call["as sent"] for call in calls), len(calls)

    assert {name: counts(told[name]) for name in SENT} == SENT


def _document(path):
    text = path.read_text("utf-8-sig")
    return json.loads(text) if text.lstrip()[:1] in "{[" else yaml.load(text, yaml.CBaseLoader)


def _lines(path):
    return [line for line in path.read_text("utf-8").splitlines() if line.strip()]


def _lists(value, name):
    """The items of every list of this name."""
    if isinstance(value, dict):
        own = value.get(name)
        inner = sum(_lists(each, name) for each in value.values())
        return inner + (len(own) if isinstance(own, list) else 0)
    return sum(_lists(each, name) for each in value) if isinstance(value, list) else 0


def _sockets(path):
    return _lists(_document(path), "_webSocketMessages")


def _spans(path):
    """Spans of OTLP and of bare lists; log records of one span are one call."""
    told = (
        [json.loads(line) for line in _lines(path)] if path.suffix == ".jsonl" else _document(path)
    )
    logs = _lists(told, "logRecords")
    if logs:
        return len(set(re.findall(r'"spanId": ?"(\w+)"', path.read_text("utf-8")))) or logs
    if isinstance(told, dict) and "data" in told:
        return len(told["data"])
    listed = _lists(told, "spans")
    return listed or (len(told) if isinstance(told, list) else 1)


def _samples_of_inspect(path):
    if path.suffix == ".json":
        return json.loads(path.read_text())["samples"]
    zstd = __import__("zstandard").ZstdDecompressor()
    found = []
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename.startswith("samples/"):
                data = path.read_bytes()
                head = data[info.header_offset :]
                start = (
                    30
                    + int.from_bytes(head[26:28], "little")
                    + int.from_bytes(head[28:30], "little")
                )
                raw = head[start : start + info.compress_size]
                kinds = {8: lambda raw=raw: zlib.decompress(raw, -15), 0: lambda raw=raw: raw}
                read = kinds.get(info.compress_type, lambda raw=raw: zstd.stream_reader(raw).read())
                found.append(json.loads(read()))
    return found


def _interactions_of_msgpack(path):
    import msgpack

    return len(
        msgpack.unpackb(zlib.decompress(base64.b64decode(path.read_bytes())))["interactions"]
    )


def _flows(path):
    data = path.read_bytes()
    return data.count(b"11:client_conn;") + data.count(b"11:client_conn,")


COUNTED = {
    "agent_rewind": lambda path: len(_lines(path)) - 1,  # the head is the run
    "agenttape": lambda path: len(_document(path)["interactions"]),
    "anthropic_batch": lambda path: (
        len(_document(path)["requests"]) if path.suffix == ".json" else len(_lines(path))
    ),
    "bedrock_logs": lambda path: len(_lines(path)) if path.read_text()[:2] != "{\n" else 1,
    "betamax": lambda path: len(_document(path)["http_interactions"]),
    "cassetter": lambda path: len(_document(path)["interactions"]),
    "claude_tap": lambda path: len(_lines(path)),
    "har": lambda path: len(_document(path)["log"]["entries"]) + _sockets(path),
    "hoverfly": lambda path: _lists(_document(path), "pairs") + _lists(_document(path), "delays"),
    "inspect_ai": lambda path: sum(
        _lists(each, "events") or len(each["messages"]) for each in _samples_of_inspect(path)
    ),
    "langfuse": lambda path: len(_document(path)["observations"]),
    "langgraph_docs": _interactions_of_msgpack,
    "langsmith": lambda path: (
        len(told["post"]) if isinstance(told := _document(path), dict) else len(told)
    ),
    "llm_cassette": lambda path: len(_lines(path)),
    "mlflow": lambda path: len(_document(path)["data"]["spans"]),
    "nock": lambda path: len(_document(path)),
    "openai_batch": lambda path: len(_lines(path)),
    "openinference": _spans,
    "openllmetry": _spans,
    "opik": lambda path: _lists(_document(path), "spans"),
    "otel_genai": _spans,
    "otlp_json": _spans,
    "polly": lambda path: len(_document(path)["log"]["entries"]),
    "ruby_vcr": lambda path: len(_document(path)["http_interactions"]),
    "vcrpy": lambda path: len(_document(path)["interactions"]),
    "vercel_ai_sdk": _spans,
    "vertex_logs": lambda path: 1,
    "wiremock": lambda path: 1,
}
"""How many records a file of each system holds, counted apart from the importers."""
AT_LEAST = {  # a line may be a call and a prompt, a flow may hold messages of a socket
    "braintrust": lambda path: (
        len(told["data"]) if isinstance(told := _document(path), dict) else len(told)
    ),
    "claude_code": lambda path: len(_lines(path)),
    "codex": lambda path: len(_lines(path)) - 1,  # a session's head becomes its run
    "mitmproxy": _flows,
    "gemini_cli": lambda path: (
        len(_document(path)["messages"]) if path.suffix == ".json" else len(_lines(path))
    ),
}


def test_no_record_is_lost_in_silence(told):
    wrong = {}
    for name, each in told.items():
        system = name.partition("/")[0]
        if each["error"]:
            continue
        found = sum(each["records"].values())
        if system in COUNTED:
            held = COUNTED[system](SAMPLES / name)
            if found != held:
                wrong[name] = (held, found, each["records"])
        elif not found >= AT_LEAST[system](SAMPLES / name):
            wrong[name] = (AT_LEAST[system](SAMPLES / name), found)
    assert not wrong
