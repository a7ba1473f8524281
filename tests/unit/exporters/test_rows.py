"""`tape rows`: recorded calls as rows for tables and evaluations, and rows back as a take."""

import json

import httpx
import pandas as pd
import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cli import tape as command
from tape_jupyter.core.call import FunctionCall, Value
from tape_jupyter.encoding.values.registry import freeze
from tests.harness.provider import Scripted
from tests.harness.tapes import JSON, Recorder, answered, asked
from tests.unit.exporters.test_exporters import MODELS


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def rows(*words):
    done = run("rows", *words)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def path(tmp_path, provider):
    path = tmp_path / "churn.tapes" / "main.tape.yaml"
    lookup = FunctionCall("lookup", {"id": 7}), Value(freeze({"name": "Ada", "when": (1, 2)}))
    Recorder(path).run("old", (asked("Which?"), answered("North")))
    Recorder(path, "s2").run("old", (asked("Which?"), answered("South")), lookup)
    provider.script("/page", Scripted(200, JSON, [b'{"a": 1}']))
    with tape.recording(path):
        httpx.get(f"{provider.url}/page")
    return path


def test_a_row_a_call_that_a_replay_uses_says_what_was_asked_answered_and_paid(path):
    model, tool, page = rows(path)
    assert model["input"] == [{"role": "user", "content": "Which?"}] and model["output"] == "South"
    assert model["expected"] is None and model["tokens_in"] == 1000 and model["cost"] > 0
    assert tool["input"] == {"id": 7} and tool["output"]["name"] == "Ada"
    assert page["input"]["url"].endswith("/page") and page["output"] == {"a": 1}
    assert model["notebook"] == str(path.parent.with_suffix(".ipynb"))
    assert [row["kind"] for row in rows(path, "--of", "model")] == ["model"]
    assert [row["kind"] for row in rows(path, "--of", "tool")] == ["tool"]
    ran, block = rows(path, "--of", "run")
    assert (
        ran["input"] == {"calls": 2}
        and block["input"] == {"calls": 1}
        and ran["output"] == {"outcome": "ok"}
    )
    assert json.loads(run("rows", path, "--json").stdout) == rows(path)


def test_every_provider_gives_messages_and_a_text(tmp_path):
    path = tmp_path / "m.tapes" / "main.tape.yaml"
    Recorder(path).run("ask()", *MODELS)
    found = rows(path)
    assert all(isinstance(row["input"], list) and row["input"][-1]["content"] for row in found)
    said = [row["output"] for row in found]
    assert said[0].startswith("North") and said[2] == "Rain. \u2614" and said[3:5] == ["Bo", "Bonn"]
    assert said[1]["choices"][0]["message"]["tool_calls"] and "error" in said[5]
    frame = tape.rows_frame(tmp_path)
    assert len(frame) == len(found) and frame["tokens_in"].dtype == pd.Int64Dtype()
    assert str(frame["at"].dtype) == "datetime64[ns, UTC]"


@pytest.mark.parametrize("form", ["jsonl", "evals"])
def test_rows_that_say_otherwise_become_a_take_and_the_recording_stays(path, tmp_path, form):
    out, before = tmp_path / "rows.jsonl", path.read_bytes()
    done = run("rows", path, "--as", form, "--out", out, "--json")
    told = json.loads(done.stdout)
    assert told["rows"] + told["not in it"] == 3 and told["rows"] == (1 if form == "evals" else 3)
    same = json.loads(run("rows", path, "--read", out, "--json").stdout)
    assert same == {"takes": [], "changed": [], "same": told["rows"]}
    changed = [json.loads(line) for line in out.read_text().splitlines()]
    changed[0]["expected" if form == "jsonl" else "ideal"] = "West"
    if form == "jsonl":
        changed[1]["output"] |= {"name": "Eve"}
        changed[2]["output"] = {"a": 2}
    out.write_text("".join(json.dumps(row) + "\n" for row in changed))
    done = run("rows", path, "--read", out, "--take", "mended")
    assert done.exit_code == 0 and "take mended" in done.stdout, done.output
    assert path.read_bytes() == before
    model, tool, page = rows(path, "--take", "mended")
    assert model["output"] == "South" and model["expected"] == "West"
    if form == "jsonl":
        assert tool["expected"] == {**tool["output"], "name": "Eve"} and page["expected"] == {
            "a": 2
        }
    again = [row for row in (model, tool, page)]
    out.write_text("".join(json.dumps(row) + "\n" for row in again))
    assert run("rows", path, "--read", out, "--take", "twice").exit_code == 0
    twice = rows(path, "--take", "twice")
    assert [row["expected"] for row in twice] == [row["expected"] for row in again]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", ":2: this line is not JSON"),
        ("[]", ":2: a row is a JSON object"),
        ("{}", ":2: no `row` says which call it is"),
        ('{"row": "r-0/1", "output": 1}', ":2: call r-0/1 is not recorded"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_its_line_and_nothing_is_written(
    path, tmp_path, line, told
):
    out = tmp_path / "rows.jsonl"
    good = rows(path)[0] | {"output": "West"}
    out.write_text(json.dumps(good) + "\n" + line + "\n")
    done = run("rows", path, "--read", out)
    assert done.exit_code == 2 and told in done.stderr
    assert Cassette.open(path).takes() == []


def test_nothing_is_overwritten_and_what_makes_no_sense_is_said(path, tmp_path):
    out = tmp_path / "rows.jsonl"
    out.write_text("mine")
    assert "exists already" in run("rows", path, "--out", out).stderr and out.read_text() == "mine"
    assert "neither --out nor --of" in run("rows", path, "--read", out, "--of", "run").stderr
    assert run("rows", tmp_path / "none.ipynb").exit_code == 2
    assert "has no take 'gone'" in run("rows", path, "--take", "gone").stderr
    assert "cannot be read" in run("rows", path, "--read", tmp_path / "gone.jsonl").stderr


def test_rows_that_hold_a_key_of_this_machine_are_not_written(path, tmp_path, monkeypatch):
    Recorder(path, "s3").run(
        "key", (asked("My key is sk-live-3f9a8b7c6d5e4f3a2b1c"), answered("Ok"))
    )
    monkeypatch.setenv("SHOP_API_KEY", "sk-live-3f9a8b7c6d5e4f3a2b1c")
    done = run("rows", path, "--out", tmp_path / "rows.jsonl")
    assert done.exit_code == 2 and "there are secrets" in done.stderr
    assert not (tmp_path / "rows.jsonl").exists()
