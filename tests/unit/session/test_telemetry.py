"""Telemetry is not sent in replay, and is answered as the recording saw; what a program works with is taped."""

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

import tape_jupyter as tape
from tests.harness.folders import prints, told
from tests.harness.folders import tape as command
from tests.harness.notebook import notebook
from tests.harness.provider import Provider, Scripted
from tests.harness.taped_cells import ask

AT = {"created_at": "2026-01-01T00:00:00Z", "modified_at": "2026-01-01T00:00:00Z"}


INGEST = {"use_multipart_endpoint": True, "size_limit": 100, "size_limit_bytes": 20 << 20}
INGEST |= {
    "scale_up_qsize_trigger": 1000,
    "scale_up_nthreads_limit": 4,
    "scale_down_nempty_trigger": 4,
}
"""All of it: without one of these langsmith's tracing thread dies, and its flush waits for ever."""
INFO = {"version": "0.12.0", "batch_ingest_config": INGEST}
INFO |= {"instance_flags": {"zstd_compression_enabled": True}}
"""Without that flag its tracing thread prints a warning, in whichever cell runs just then."""


class LangSmith(ThreadingHTTPServer):
    """As much of LangSmith's API as `evaluate` uses. `seen` are the method and path of each request."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _LangSmithHandler)
        self.seen, self.sessions = [], []
        self.dataset = {
            "id": str(uuid.uuid4()),
            "name": "letters",
            "data_type": "kv",
            "example_count": 2,
            **AT,
        }
        self.examples = [
            {
                "id": str(uuid.uuid4()),
                "dataset_id": self.dataset["id"],
                "inputs": {"q": q},
                "outputs": {"a": q.upper()},
            }
            | {"metadata": {}, **AT}
            for q in ("one", "two")
        ]

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class _LangSmithHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Quiet."""

    def answer(self):
        body, path, server = self._body(), self.path.partition("?")[0], self.server
        server.seen.append((self.command, path))
        status, told = 200, {}
        if path == "/info":
            told = INFO
        elif path == "/datasets":
            told = [server.dataset]
        elif path == "/examples":
            told = server.examples
        elif path == "/sessions" and self.command == "POST":
            told = {"id": str(uuid.uuid4()), "tenant_id": str(uuid.uuid4()), **json.loads(body)}
            told |= {"reference_dataset_id": server.dataset["id"], "start_time": AT["created_at"]}
            server.sessions.append(told)
        elif path == "/sessions":
            told = server.sessions
        elif path.startswith("/sessions/"):
            told = server.sessions[-1]
        elif path.startswith(("/runs", "/feedback")):
            status, told = 202, {"message": "taken"}
        data = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self):
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = do_PATCH = answer  # noqa: N815 - http.server's names


SETUP = """import os, warnings
warnings.simplefilter("ignore")
os.environ |= {"LANGSMITH_ENDPOINT": "URL", "LANGSMITH_API_KEY": "key", "LANGSMITH_TRACING": "true"}
from langsmith import Client, evaluate
client = Client()"""
EVALUATE = """def shout(inputs): return {"a": inputs["q"].upper()}
def right(run, example): return {"key": "right", "score": int(run.outputs["a"] == example.outputs["a"])}
rows = list(evaluate(shout, data="letters", evaluators=[right], client=client, max_concurrency=1))
client.flush()
print(sorted((row["run"].outputs["a"], row["evaluation_results"]["results"][0].score) for row in rows))
print(client.info.version)"""


@pytest.mark.slow
def test_langsmiths_evaluate_replays_without_its_server(tmp_path):
    with LangSmith() as server:
        path = notebook(tmp_path / "n.ipynb", SETUP.replace("URL", server.url), EVALUATE)
        done = command("record", path, "--json", home=tmp_path)
        assert told(done)[0] == ["ok", "ok"], done
        sent = {each for each in server.seen if each[1].startswith("/runs")}
        assert sent and ("POST", "/sessions") in server.seen
        assert "[('ONE', 1), ('TWO', 1)]\n0.12.0\n" in prints(path)[1]
        before = len(server.seen)
        again = command("replay", path, "--json", home=tmp_path)
        assert (told(again)[0], len(server.seen)) == (["same", "same"], before), again.stdout
    assert told(command("replay", path, "--json", home=tmp_path))[0] == ["same", "same"]


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (204, {"x-request-id": "7"}, b""),
        (202, {"content-type": "application/json"}, b'{"partialSuccess": {}}'),
        (200, {"content-type": "application/x-protobuf"}, b"\x0a\xff\x00"),
        (404, {"content-type": "text/plain"}, b"no collector here"),
    ],
)
def test_telemetry_is_answered_in_replay_as_the_recording_saw(tmp_path, status, headers, body):
    path = tmp_path / "a.tape.yaml"

    def sends():
        got = httpx.post(f"{provider.url}/v1/traces", json={"resourceSpans": [{"secret thing": 1}]})
        kept = {name: got.headers.get(name) for name in headers}
        return got.status_code, got.content, kept

    with Provider() as provider:
        provider.script("/v1/traces", Scripted(status, headers, [body] if body else []))
        with tape.recording(path):
            ask(provider, "one")
            assert sends() == (status, body, headers)
        before = len(provider.requests)
        with tape.replaying(path):
            ask(provider, "one")
            assert sends() == (status, body, headers)
        assert len(provider.requests) == before
    assert "secret thing" not in path.read_text(), "what was sent is nobody's to keep"


def test_what_no_recording_saw_is_answered_as_documented(tmp_path):
    path = tmp_path / "a.tape.yaml"
    with Provider() as provider, tape.recording(path):
        ask(provider, "one")
    with tape.replaying(path):
        ask(provider, "one")
        assert httpx.post("https://api.smith.langchain.com/runs/batch", json={}).status_code == 202
        taken = httpx.post("https://cloud.langfuse.com/api/public/ingestion", json={})
        assert (taken.status_code, taken.json()) == (207, {"successes": [], "errors": []})
        assert httpx.post("https://us.i.posthog.com/batch/", json={}).json() == {"status": 1}
