"""Which systems traces come from, how to have their files, and what those hold: a table, and its
pages.

`python -m tape_jupyter.importers.systems docs/systems` writes the pages anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

GRADES = {
    "W": "the bytes on the wire: the reply is byte for byte what was received",
    "J": "the JSON of both bodies: requests match, replies are that JSON, encoded again",
    "P": "the provider's messages and parameters: a match if all parameters are there; the cell always replays",
    "M": "neutral messages: both sides are rebuilt; the notebook's cell replays, the program itself only by chance",
    "T": "texts: for viewing",
}
"""What an import of each grade can promise."""


class System(NamedTuple):
    """A system: its page's name, what people call it, how its file is had, and what of a call the
    file holds.

    `command` is that way as a line of a shell, where there is one; `lost` what never comes;
    `extra`: needs `pip install 'tape-jupyter[interop]'`; `back`: the format of `tape export --as`
    that it reads.
    """

    name: str
    title: str
    formats: tuple[str, ...]
    file: str
    how: str
    grade: str
    lost: str = "headers"
    command: str = ""
    extra: str = ""
    back: str = ""


_SEEN = "chunk borders and pace"
_PLATFORM = "URL, headers, the bytes, a stream's chunks"
SYSTEMS: Sequence[System] = (
    System(
        "langfuse",
        "Langfuse",
        ("langfuse",),
        "trace.json",
        "In the UI open a trace and choose *Download*. Rows of the API and of exports (JSON, JSONL, CSV, Parquet) are "
        "read as well.",
        "J, P or M, by the instrumentation",
        _PLATFORM,
        extra="Parquet",
        back="otlp",
    ),
    System(
        "langsmith",
        "LangSmith",
        ("langsmith",),
        "runs.json",
        "Write the runs that `Client().list_runs(trace_id=...)` gives as JSON. Bulk exports and the SDK's batches "
        "are read as well; the messages that `langsmith-fetch` writes hold no calls.",
        "J (`wrap_openai`), M (LangChain)",
        _PLATFORM,
        extra="Parquet",
        back="otlp",
    ),
    System(
        "phoenix",
        "Arize Phoenix",
        ("otlp",),
        "spans.json",
        "Get the project's spans from its REST API.",
        "J (SDK instrumentors), P (frameworks)",
        _PLATFORM,
        "curl $PHOENIX/v1/projects/default/spans > spans.json",
        back="openinference",
    ),
    System(
        "opentelemetry",
        "OpenTelemetry",
        ("otlp",),
        "traces.jsonl",
        "Let a collector write a file (`exporters: {file: {path: traces.jsonl}}`). The GenAI conventions in their "
        "three generations, OpenInference, OpenLLMetry, Google ADK, pydantic-ai, Logfire, strands, Tempo and Jaeger "
        "are read.",
        "J (OpenInference, ADK), M (GenAI, OpenLLMetry)",
        "URL, headers, chunks; of GenAI also tool_choice, response_format and unknown fields",
        back="otlp",
    ),
    System(
        "vercel-ai-sdk",
        "the Vercel AI SDK",
        ("otlp",),
        "traces.jsonl",
        "Turn its telemetry on (`experimental_telemetry: {isEnabled: true}`) and let a collector write a file.",
        "M",
        _PLATFORM,
        back="otlp",
    ),
    System(
        "mlflow",
        "MLflow",
        ("mlflow",),
        "trace.json",
        "Write a trace with `to_json()`; `traces.json` of a store is one.",
        "J",
        "URL, headers. A stream's chunks are kept, with their times",
        "python -c \"import mlflow; print(mlflow.get_trace('ID').to_json())\" > trace.json",
        back="otlp",
    ),
    System(
        "bedrock",
        "Amazon Bedrock's invocation logs",
        ("bedrock_logs",),
        "log.json.gz",
        "Copy the log from the bucket that model invocation logging writes to, or from CloudWatch.",
        "J",
        "headers; chunks of ConverseStream; bodies stored in S3, which are not fetched",
        "aws s3 cp s3://BUCKET/KEY log.json.gz",
    ),
    System(
        "vertex-ai",
        "Vertex AI's request-response logs",
        ("vertex_logs",),
        "rows.jsonl",
        "Extract the BigQuery table that the endpoint logs to, as JSON lines.",
        "J",
        "headers, a stream's chunks",
    ),
    System(
        "azure",
        "Azure OpenAI",
        ("azure_logs",),
        "gateway.json",
        "Export API Management's GatewayLogs. Azure's own diagnostic logs hold no content, and are refused for that.",
        "J",
        "headers; what the gateway cut off",
    ),
    System(
        "inspect-ai",
        "inspect_ai",
        ("inspect_ai",),
        "log.eval",
        "Import the log that it writes.",
        "J, M (without its API log)",
        "URL, headers, chunks",
        extra="zstandard",
    ),
    System(
        "openai-batch",
        "OpenAI's batches",
        ("openai_batch",),
        "results.jsonl",
        "Download the file of results, and put the file of requests beside it. Groq, Mistral, Azure and Together write "
        "the same.",
        "J, T (without the requests)",
        "headers",
        back="jsonl",
    ),
    System(
        "anthropic-batch",
        "Anthropic's message batches",
        ("anthropic_batch",),
        "results.jsonl",
        "Download the results, and put the requests beside them.",
        "J, T (without the requests)",
        "headers",
        back="jsonl",
    ),
    System(
        "openai-evals",
        "OpenAI Evals",
        ("openai_evals",),
        "items.jsonl",
        "Write what `evals.runs.output_items.list` gives.",
        "P, M",
        "tools, headers",
    ),
    System(
        "braintrust",
        "Braintrust",
        ("braintrust",),
        "rows.jsonl",
        "Download the rows of a project's logs, or fetch them by BTQL.",
        "J (chat), P, M",
        "envelopes of replies, attachments, headers",
        back="otlp",
    ),
    System(
        "opik",
        "Comet Opik",
        ("opik",),
        "trace.json",
        "`opik export` writes a file for each trace.",
        "P",
        "which parameters were sent to Responses; URL, headers",
        back="otlp",
    ),
    System(
        "weave",
        "W&B Weave",
        ("weave",),
        "calls.jsonl",
        "Get the calls from `/calls/stream_query`, or export them in the UI.",
        "J",
        "objects in its store, headers",
    ),
    System(
        "helicone",
        "Helicone",
        ("helicone",),
        "requests.jsonl",
        "Export with the bodies.",
        "J",
        "headers; bodies behind URLs, which are not fetched",
        "npx @helicone/export --include-body",
    ),
    System(
        "promptlayer",
        "PromptLayer",
        ("promptlayer",),
        "request.json",
        "Get a request from `GET /requests/ID`.",
        "P",
        _PLATFORM,
    ),
    System(
        "galileo",
        "Galileo",
        ("galileo",),
        "records.jsonl",
        "`export_records()` writes the file.",
        "P",
        _PLATFORM,
    ),
    System(
        "claude-trace",
        "claude-trace",
        ("claude_trace",),
        "log.jsonl",
        "Import the log that it writes.",
        "J",
        "the request's bytes",
    ),
    System(
        "claude-tap",
        "claude-tap",
        ("claude_tap",),
        "trace.jsonl",
        "Import the trace that it writes.",
        "J",
        "the request's bytes",
    ),
    System(
        "claude-code",
        "Claude Code",
        ("claude_code",),
        "~/.claude/projects/SLUG/SESSION.jsonl",
        "Import the session that it writes.",
        "T, tools J",
        "system prompt, tool schemas, parameters, earlier messages: model calls are for viewing",
    ),
    System(
        "codex",
        "Codex",
        ("codex",),
        "~/.codex/sessions/Y/M/D/rollout-ID.jsonl",
        "Import the session that it writes.",
        "T, tools J",
        "system prompt, tool schemas, parameters: model calls are for viewing",
    ),
    System(
        "gemini-cli",
        "Gemini CLI",
        ("gemini_cli",),
        "~/.gemini/tmp/HASH/chats/session-ID.json",
        "Import the session that it writes, or what `--record-responses` writes.",
        "T, tools J",
        "system prompt, tool schemas, parameters: model calls are for viewing",
    ),
    System(
        "vcrpy",
        "vcrpy and pytest-recording",
        ("vcrpy",),
        "cassettes/",
        "Import a cassette as it is, LangGraph's too.",
        "W, J",
        _SEEN,
        extra="YAML, msgpack",
        back="vcr",
    ),
    System(
        "ruby-vcr",
        "Ruby VCR",
        ("ruby_vcr",),
        "cassettes/",
        "Import a cassette as it is.",
        "W",
        _SEEN,
        extra="YAML",
    ),
    System(
        "betamax", "betamax", ("betamax",), "cassettes/", "Import a cassette as it is.", "W", _SEEN
    ),
    System(
        "cassetter",
        "cassetter",
        ("cassetter",),
        "cassettes/",
        "Import a cassette as it is.",
        "W, J",
        _SEEN,
        extra="YAML",
    ),
    System(
        "har",
        "a browser or a proxy (HAR)",
        ("har",),
        "session.har",
        "In the browser's network panel choose *Save all as HAR with content*; Charles, insomnia and mitmproxy write "
        "it as well.",
        "W",
        _SEEN,
        back="har",
    ),
    System(
        "polly",
        "Polly.js",
        ("har",),
        "recording.har",
        "Import the recording as it is.",
        "W",
        "pace",
        extra="YAML",
    ),
    System(
        "mitmproxy",
        "mitmproxy",
        ("mitmproxy", "har"),
        "flows.har",
        "Turn the flows into HAR; flows themselves are read too.",
        "W",
        _SEEN,
        "mitmdump -nr flows.mitm --set hardump=flows.har",
        back="har",
    ),
    System(
        "wiremock",
        "WireMock",
        ("wiremock",),
        "mappings/",
        "Import a mapping as it is, with `__files` beside it.",
        "W",
        _SEEN + "; requests that are patterns",
    ),
    System(
        "nock", "nock", ("nock",), "fixture.json", "Import the fixture as it is.", "W, J", _SEEN
    ),
    System(
        "hoverfly",
        "Hoverfly",
        ("hoverfly",),
        "simulation.json",
        "Export the simulation.",
        "W",
        _SEEN,
        "hoverctl export simulation.json",
    ),
    System(
        "agenttape",
        "agenttape",
        ("agenttape",),
        "run.yaml",
        "Import the tape as it is.",
        "J",
        "chunks, headers of SDK calls",
        extra="YAML",
        back="agenttape",
    ),
    System(
        "agent-rewind",
        "agent-rewind",
        ("agent_rewind",),
        "run.rewind",
        "Import the recording as it is.",
        "J",
        "headers",
    ),
    System(
        "llm-cassette",
        "llm-cassette",
        ("llm_cassette",),
        "run.jsonl",
        "Import the cassette as it is.",
        "J",
        "headers, chunks",
    ),
)


def system_page(system: System) -> str:
    """A system's page."""
    return "\n".join(_format_page(system)) + "\n"


def _format_page(system: System) -> Iterator[str]:
    if system.extra:
        install = "pip install 'tape-jupyter[interop]'"
    else:
        install = "pip install tape-jupyter"
    first = [system.command or install]
    viewing = system.grade.startswith("T")
    last = "tape show run.ipynb --html" if viewing else "jupyter lab run.ipynb"
    goal = "cassette to look into" if viewing else "replaying notebook"
    yield f"# From {system.title} to a {goal} in three lines"
    yield ""
    yield system.how
    yield ""
    yield from ("```", *first, f"tape import {system.file} --out run.ipynb", last, "```")
    yield ""
    yield from _VIEWED if viewing else _REPLAYED
    yield ""
    yield from ("| | |", "|---|---|")
    yield f"| what is kept | {system.grade} |"
    yield f"| what is not | {system.lost} |"
    yield f"| format | {', '.join(f'`--from {each}`' for each in system.formats)}, where it is not recognised |"
    if system.extra:
        yield f"| needs | `pip install 'tape-jupyter[interop]'`, for {system.extra} |"
    if system.back:
        yield f"| the way back | `tape export run.ipynb --as {system.back}` |"
    yield ""
    yield "[The table of all systems](README.md) says what the letters promise. What a file lacks is named for"
    yield "each call (`missing`), and so is what was filled in (`assumed`): `tape gaps run.ipynb`."


_REPLAYED = (
    "`tape import` writes `run.tapes/main.tape.yaml`, a cassette of ordinary calls, and `run.ipynb`, whose cells ask",
    "as the recorded program did. *Run All* gives the recorded answers, with no network and no key. A changed prompt",
    "is a call that is not on the tape, and the tape says which.",
)
_VIEWED = (
    "`tape import` writes `run.tapes/main.tape.yaml`, a cassette of ordinary calls, and `run.ipynb`. A session does",
    "not hold what was sent to the model: its tools' calls replay, the model's are for viewing.",
)


def systems_page() -> str:
    """The page of all of them."""
    lines = [
        "# Systems whose traces and recordings replay here", "",
        "`tape import FILE --out run.ipynb` makes a cassette of a file, and a notebook that replays it.", "",
        "| from | what is kept | what is not | the way back |", "|---|---|---|---|",
    ]  # fmt: skip
    for system in SYSTEMS:
        back = f"`--as {system.back}`" if system.back else ""
        lines.append(
            f"| [{system.title}]({system.name}.md) | {system.grade} | {system.lost} | {back} |"
        )
    lines += ["", "| grade | what the file holds of a call |", "|---|---|"]
    lines += [f"| {grade} | {meaning} |" for grade, meaning in GRADES.items()]
    lines += [
        "",
        "These pages are written by `python -m tape_jupyter.importers.systems docs/systems`.",
    ]
    return "\n".join(lines) + "\n"


def write_pages(folder: Path) -> None:
    """Write every page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    return {
        "README.md": systems_page(),
        **{f"{system.name}.md": system_page(system) for system in SYSTEMS},
    }


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
