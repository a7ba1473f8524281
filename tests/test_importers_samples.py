"""Real files of every format import: each record is a call, a span, or counted, and requests equal what was sent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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
    script = Path(__file__).parent / "import_samples.py"
    done = subprocess.run(
        [sys.executable, script, SAMPLES, "--truth", TRUTH], capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(each["file"]).relative_to(SAMPLES).as_posix(): each for each in lines}


def test_every_file_imports_and_none_gives_nothing(told):
    failed = {name: each["error"] for name, each in told.items() if each["error"] and not name.startswith(REFUSED)}
    assert not failed
    assert not [name for name, each in told.items() if not each["error"] and not sum(each["records"].values())]


def test_requests_equal_what_the_provider_received(told):
    def counts(each):
        calls = [call for call in each["calls"] if call["kind"] == "model"]
        return sum(call["as sent"] for call in calls), len(calls)

    assert {name: counts(told[name]) for name in SENT} == SENT
