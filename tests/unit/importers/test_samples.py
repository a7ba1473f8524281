"""Real files of every format import: each record is a call, a span, or counted, and requests equal what was sent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    script = Path(__file__).parents[2] / "import_samples.py"
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


def _records(path):
    """How many records a file holds, counted apart from the importers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl" or path.parent.name in ("agent_rewind",):
        return sum(bool(line.strip()) for line in text.splitlines())
    value = json.loads(text)
    system = path.parent.name
    if system == "langfuse":
        return len(value["observations"])
    if system == "mlflow":
        return len(value["data"]["spans"])
    if system == "langsmith":
        return len(value["post"] if isinstance(value, dict) else value)
    rows = value["data"] if isinstance(value, dict) else value
    return len(rows)


EXACT = ("langfuse", "mlflow", "langsmith", "openai_batch", "llm_cassette")
AT_LEAST = (
    "braintrust",
    "claude_code",
    "codex",
    "claude_tap",
    "anthropic_batch",
)  # a line may be a call and a prompt


def test_no_record_is_lost_in_silence(told):
    for name, each in told.items():
        system = name.partition("/")[0]
        if system in EXACT + AT_LEAST and not name.endswith("requests.json"):
            held, found = _records(SAMPLES / name), sum(each["records"].values())
            # a session's head becomes its run, and is counted nowhere else
            heads = system == "codex"
            assert found == held if system in EXACT else found + heads >= held, name
