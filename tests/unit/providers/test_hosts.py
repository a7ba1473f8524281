import gzip
import json
import os
from pathlib import Path

import pytest

from tape_jupyter.providers import call_class, hosts, registry
from tape_jupyter.core.call import Request

MODEL = """
https://api.anthropic.com/v1/messages?beta=true anthropic
https://api.openai.com/v1/responses openai
https://api.openai.com/v1/embeddings openai
https://eu.api.openai.com/v1/chat/completions openai
https://resource.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21 azure
https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse gemini
https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google/models/g:generateContent vertex
https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4%3A0/converse-stream bedrock
https://bedrock-mantle.us-east-1.api.aws/openai/v1/responses bedrock
https://api.mistral.ai/v1/chat/completions mistral
https://api.cohere.com/v2/chat cohere
https://openrouter.ai/api/v1/chat/completions openrouter
https://api.groq.com/openai/v1/chat/completions groq
https://router.huggingface.co/together/v1/chat/completions huggingface
http://127.0.0.1:11434/api/chat ollama
http://localhost:8099/v1/messages anthropic
http://127.0.0.1:8900/v1/chat/completions openai
http://[::1]:8900/v1beta/models/g:generateContent gemini
http://localhost:9/model/amazon.nova/converse bedrock
https://llm.internal.example/proxy/v1/chat/completions openai
https://llm.internal.example/v1/embeddings openai
"""
TELEMETRY = """
https://api.smith.langchain.com/runs/multipart
https://eu.api.smith.langchain.com/runs/batch
https://api.smith.langchain.com/runs
https://api.smith.langchain.com/feedback
https://api.smith.langchain.com/otel/v1/traces
https://us.i.posthog.com/i/v0/e/
https://os-api.agno.com/telemetry/runs
https://www.comet.com/opik/api/v1/private/spans/batch
https://cloud.langfuse.com/api/public/ingestion
https://langfuse.mycompany.example/api/public/ingestion
https://us.i.posthog.com/batch/
https://o4504.ingest.us.sentry.io/api/45/envelope/
https://sentry.mycompany.example/api/45/envelope/
https://http-intake.logs.datadoghq.com/api/v2/logs
https://api.segment.io/v1/batch
https://api.mixpanel.com/track
https://www.google-analytics.com/g/collect
https://statsigapi.net/v1/rgstr
https://api.helicone.ai/oai/v1/log
https://api.traceloop.com/v1/traces
https://otlp.arize.com/v1/traces
https://app.phoenix.arize.com/v1/traces
https://api.wandb.ai/graphql
https://api.openai.com/v1/traces/ingest
https://huggingface.co/api/telemetry/huggingface_hub
http://localhost:8126/v0.4/traces
"""
SENT = """
http://localhost:4318/v1/traces {"resourceSpans":[]}
http://collector.example:4318/v1/metrics {"resourceMetrics":[{"scopeMetrics":[]}]}
http://collector.example/v1/logs {"resourceLogs":[]}
http://collector.example/v1development/profiles {"resourceProfiles":[]}
https://langsmith.mycompany.example/api/v1/runs/batch {"post":[],"patch":[]}
"""
READ = """
GET https://sentry.io/api/0/projects/acme/web/issues/
GET https://api.datadoghq.com/api/v1/query?query=cpu
HEAD https://api.datadoghq.com/api/v1/query?query=cpu
GET https://api.smith.langchain.com/runs/1234
POST https://api.smith.langchain.com/api/v1/runs/query
POST https://api.smith.langchain.com/datasets
POST https://api.smith.langchain.com/sessions
PATCH https://api.smith.langchain.com/sessions/1f0a1a52-5a20-4fd5-8a10-6a3d2a40a1b2
POST https://api.smith.langchain.com/api/v1/examples/bulk
POST https://cloud.langfuse.com/api/public/datasets
POST https://cloud.langfuse.com/api/public/v2/prompts
POST https://app.phoenix.arize.com/v1/datasets/upload
POST https://us.i.posthog.com/decide/?v=3
POST https://statsigapi.net/v1/initialize
POST https://www.comet.com/opik/api/v1/private/datasets/retrieve
DELETE https://api.smith.langchain.com/sessions/1
POST https://api.datadoghq.eu/api/v2/logs/events/search
POST https://us.i.posthog.com/flags/?v=2
GET https://collector.example/v1/traces
POST https://api.acme.example/v1/profiles
POST https://api.acme.example/v1/metrics
POST https://api.acme.example/v1/logs
POST https://api.acme.example/v1/traces
POST https://api.acme.example/runs/batch
POST https://iot.acme.example/api/telemetry/devices
"""
ASSET = """
https://huggingface.co/bert-base/resolve/main/tokenizer.json
https://huggingface.co/api/models/bert-base/revision/main
https://cdn-lfs.huggingface.co/repos/ab/cd
https://cas-bridge.xethub.hf.co/xet-bridge-us/1
https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken
https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/index.xml
https://models.example/weights/model.safetensors
"""
HOST = """
https://api.tavily.com/search
https://example.com/
http://localhost:5000/functions
https://api.github.com/repos/a/b
https://myapp.example/api/chat
https://chat.example/channels/1/messages
https://huggingface.co/docs
https://raw.githubusercontent.com/someone/data/main/churn.csv
https://mcp.deepwiki.com/mcp
"""


def lines(text):
    return [line.split() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("url", "name"), lines(MODEL))
def test_a_model_call_is_seen_wherever_its_server_runs(url, name):
    assert call_class.classify(url) == "model"
    assert registry.identify(Request("POST", url)).provider == name


def test_a_host_is_described_in_one_place():
    named = [host for each in registry.BUILT_IN for host in (*each.hosts, *each.host_patterns)]
    assert len({*named, *registry.OTHER_HOSTS}) == len(named) + len(registry.OTHER_HOSTS)


@pytest.mark.parametrize(
    "url", ["http://box.example:11434/api/chat", "https://ollama.acme.example/api/chat"]
)
def test_an_address_of_ollama_is_a_models_by_its_port_or_name(url):
    assert call_class.classify(url) == "model"


@pytest.mark.parametrize("url", [u for (u,) in lines(TELEMETRY)])
def test_telemetry_is_told_from_what_the_program_lives_on(url):
    assert call_class.classify(url, "POST") == "telemetry"


@pytest.mark.parametrize(("url", "body"), lines(SENT))
@pytest.mark.parametrize("packed", [False, True])
def test_what_a_tracer_sends_is_told_by_its_body_whoever_collects_it(url, body, packed):
    headers = (
        ("Content-Type", "application/json"),
        *([("Content-Encoding", "gzip")] if packed else []),
    )
    sent = gzip.compress(body.encode()) if packed else body.encode()
    assert call_class.class_of(Request("POST", url, headers, sent)) == "telemetry"
    assert call_class.class_of(
        Request("POST", url, (("content-type", "application/x-protobuf"),), b"\n\0")
    ) == ("host" if "runs" in url else "telemetry")


@pytest.mark.parametrize(("method", "url"), lines(READ))
def test_what_a_program_reads_is_no_telemetry_whoever_answers(method, url):
    asked = b'{"name": "Ada", "resourceSpans": "all", "post": 1}'
    assert (
        call_class.class_of(Request(method, url, (("content-type", "application/json"),), asked))
        == "host"
    )
    assert (
        call_class.class_of(
            Request(method, url, (("content-type", "application/json"),), b"{} no JSON")
        )
        == "host"
    )


def test_runs_sent_to_a_langsmith_of_ones_own_are_telemetry_and_so_is_what_its_thread_asks_first():
    url = "https://langsmith.mycompany.example/api/v1/runs/multipart"
    assert call_class.classify(url, "POST", "multipart/form-data; boundary=b") == "telemetry"
    assert call_class.classify("https://eu.api.smith.langchain.com/info", "GET") == "telemetry"


def test_what_langsmiths_client_sends_is_telemetry_wherever_its_server_is_and_its_other_calls_are_not():
    run = "1f0a1a52-5a20-4fd5-8a10-6a3d2a40a1b2"
    agent = (("User-Agent", "langsmith-py/0.15.0-httpx"), ("content-type", "application/json"))
    sent = [
        ("POST", "/runs"),
        ("PATCH", f"/runs/{run}"),
        ("POST", "/runs/batch"),
        ("POST", "/feedback"),
        ("GET", "/info"),
    ]
    read = [
        ("POST", "/sessions"),
        ("POST", "/runs/query"),
        ("GET", f"/runs/{run}"),
        ("POST", "/datasets"),
        ("GET", "/sessions"),
    ]
    for kind, asked in (("telemetry", sent), ("host", read)):
        for method, path in asked:
            assert (
                call_class.class_of(
                    Request(method, f"http://localhost:1984/api/v1{path}", agent, b"{}")
                )
                == kind
            ), path


@pytest.mark.parametrize("url", [u for (u,) in lines(ASSET)])
def test_a_downloaded_file_is_an_asset(url):
    assert call_class.classify(url, "GET") == "asset"


@pytest.mark.parametrize("url", [u for (u,) in lines(HOST)])
def test_anything_else_is_a_host(url):
    assert call_class.classify(url, "GET") == "host"
    assert call_class.classify(url, "POST") == "host"


def test_a_prompt_fetched_from_a_tracing_service_is_input_of_the_program():
    assert (
        call_class.classify("https://api.smith.langchain.com/commits/-/my-prompt/latest", "GET")
        == "host"
    )
    assert (
        call_class.classify("https://cloud.langfuse.com/api/public/v2/prompts/greeting", "GET")
        == "host"
    )


def test_spans_sent_as_protobuf_to_a_path_of_ones_own_are_telemetry():
    assert (
        call_class.classify("http://collector.example/my/traces", "POST", "application/x-protobuf")
        == "telemetry"
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://bedrock-runtime.us-east-1.amazonaws.com/model/x/converse", "us-east-1"),
        ("https://europe-west4-aiplatform.googleapis.com/v1/projects/p", "europe-west4"),
        ("https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers", "global"),
        ("https://eu.api.openai.com/v1/responses", "eu"),
        ("https://api.openai.com/v1/responses", ""),
        ("https://bedrock-mantle.us-west-2.api.aws/v1/responses", "us-west-2"),
    ],
)
def test_the_region_is_read_from_the_url(url, name):
    assert hosts.region(url) == name


@pytest.mark.parametrize(
    "url", ["", "nonsense", "http://[bad", "http://x:port/", "https://", "http://\x00/"]
)
def test_an_unreadable_url_is_just_a_host(url):
    assert call_class.classify(url, "GET") == "host"
    assert registry.identify(Request("POST", url)).provider == ""
    assert hosts.region(url) == ""


def test_loopback_is_only_this_machine():
    assert all(
        hosts.loopback(h)
        for h in ("localhost", "127.0.0.1", "127.9.9.9", "::1", "", "app.localhost")
    )
    assert not any(
        hosts.loopback(h) for h in ("10.0.0.1", "localhost.example", "0.0.0.0", "2001:db8::1")
    )


def test_real_traffic_of_every_provider_is_recognised():
    path = Path(os.environ.get("TAPE_CORPUS", "../shared/corpus")) / "corpus_dev.jsonl.gz"
    if not path.exists():
        pytest.skip("no corpus here (set TAPE_CORPUS)")
    with gzip.open(path, "rt") as file:
        records = [json.loads(line) for line in file]
    wrong = {
        (r["provider"], r["request"]["url"].split("?")[0])
        for r in records
        if r["provider"] not in ("http", "mcp")
        and call_class.classify(r["request"]["url"], r["request"]["method"]) != "model"
    }
    assert not wrong
