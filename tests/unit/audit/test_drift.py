"""What changed between two recordings of a cell: perturb one thing, and that thing is named."""

import dataclasses

import pytest

from tape_jupyter.audit import drift
from tests.harness.seen_runs import (
    CLOCK,
    PINS,
    chat,
    claude,
    claude_said,
    found,
    run_of,
    said,
    tool,
)

SCHEMA = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
OTHER = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "string"}}}


def between(folder, before, after):
    return drift.drift(run_of(folder, *before), run_of(folder, *after))


def whats(found):
    return [each.what for each in found]


@pytest.mark.parametrize(
    ("before", "after", "what", "values"),
    [
        ((claude(), claude_said("claude-sonnet-4-5-20250929")), (claude(), claude_said("claude-sonnet-4-5-20261001")), "answered model", ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20261001")),
        ((chat(), said(system_fingerprint="fp_1")), (chat(), said(system_fingerprint="fp_2")), "system_fingerprint", ("fp_1", "fp_2")),
        ((chat(), said(headers=(("x-ms-region", "East US"),))), (chat(), said(headers=(("x-ms-region", "Sweden"),))), "region", ("East US", "Sweden")),
        ((chat(), said(service_tier="default")), (chat(), said(service_tier="flex")), "service tier", ("default", "flex")),
        ((chat(), said(provider="Groq")), (chat(), said(provider="Azure")), "upstream provider", ("Groq", "Azure")),
        ((chat(), said()), (chat(), said(status=429)), "status", ("200", "429")),
        ((chat(temperature=0), said()), (chat(temperature=1), said()), "sampling", ("temperature 0", "temperature 1")),
        ((chat(seed=7), said()), (chat(seed=8), said()), "sampling", ("seed 7", "seed 8")),
        ((chat(model="gpt-4o"), said()), (chat(model="gpt-4o-mini"), said()), "requested model", ("gpt-4o", "gpt-4o-mini")),
        (tool(result={"status": "paid"}), tool(result={"status": "open"}), "tool result of lookup", ('{"status": "paid"}', '{"status": "open"}')),
        (found([{"id": "a", "score": 0.9}]), found([{"id": "a", "score": 0.7}]), "retrieval scores of search", ("a 0.9", "a 0.7")),
        (found([{"id": "a", "score": 1, "text": "x"}]), found([{"id": "a", "score": 1, "text": "y"}]), "retrieved text of search", None),
        (found({"chunks": [], "embedding_model": "e1"}), found({"chunks": [], "embedding_model": "e2"}), "embedding model of search", ("e1", "e2")),
    ],
)  # fmt: skip
def test_what_answered_otherwise_is_named(tmp_path, before, after, what, values):
    told = between(tmp_path, [before], [after])
    assert whats(told) == [what]
    assert values is None or (told[0].before, told[0].after) == values


def test_a_tools_schema_that_changed_is_named(tmp_path):
    told = between(tmp_path, [(chat(tools=[SCHEMA]), said())], [(chat(tools=[OTHER]), said())])
    assert whats(told) == ["tool schema lookup"]


def test_a_models_other_words_are_no_drift(tmp_path):
    assert between(tmp_path, [(chat(), said("yes"))], [(chat(), said("no"))]) == []


def test_a_change_that_many_calls_show_is_told_once(tmp_path):
    one, other = (
        [(chat(str(n)), said(system_fingerprint=f"fp_{build}")) for n in range(5)]
        for build in (1, 2)
    )
    assert whats(between(tmp_path, one, other)) == ["system_fingerprint"]


def test_calls_that_ask_otherwise_are_paired_by_name(tmp_path):
    one = [tool(id=1), tool(id=2, result="b"), (chat("x"), said())]
    other = [tool(id=2, result="c"), tool(id=3), (chat("y"), said())]
    assert whats(between(tmp_path, one, other))[0] == "tool result of lookup"


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ({"kit": {"distributions": ["httpx==0.28", "idna==1"]}}, {"kit": {"distributions": ["httpx==0.29"]}}, "library httpx"),
        ({"kit": {"git": {"commit": "a"}}}, {"kit": {"git": {"commit": "b"}}}, "git commit"),
        ({"kit": {"git": {"commit": "a", "diff": "1"}}}, {"kit": {"git": {"commit": "a", "diff": "2"}}}, "git diff"),
        ({"kit": {"modules": {"mine": "1"}}}, {"kit": {"modules": {"mine": "2"}}}, "local module mine"),
        ({"kit": {"environment": {"LANG": "C"}}}, {"kit": {"environment": {"LANG": "nb"}}}, "environment LANG"),
        ({"kit": {"user_id": "ada"}}, {"kit": {"user_id": "bob"}}, "user_id"),
        ({"kit": {"tenant_id": "a"}}, {"kit": {"tenant_id": "b"}}, "tenant_id"),
        ({"kit": {"session_id": "a"}}, {"kit": {"session_id": "b"}}, "session_id"),
        ({"kit": {"flags": {"new": True}}}, {"kit": {"flags": {"new": False}}}, "flags"),
        ({"kit": {"platform": "Linux"}}, {"kit": {"platform": "macOS"}}, "platform"),
        ({"kit": {"python": "3.11"}}, {"kit": {"python": "3.12"}}, "python"),
        ({"pins": {**PINS, "timezone": {"zone": "UTC"}}}, {}, "timezone"),
        ({"pins": {**PINS, "random": {**PINS["random"], "hash": "bb"}}}, {}, "hash seed"),
        ({"pins": {**PINS, "random": {**PINS["random"], "at": {"random": "2"}}}}, {}, "state of random"),
        ({"source": "bbbb"}, {}, "cell source"),
    ],
)  # fmt: skip
def test_what_lies_around_the_calls_is_compared(tmp_path, before, after, what):
    assert whats(drift.drift(run_of(tmp_path, **before), run_of(tmp_path, **after))) == [what]


def test_a_recording_of_another_day_says_so(tmp_path):
    run = run_of(tmp_path)
    tomorrow = {
        **run.record,
        "kit": {**run.kit, "clock": {**CLOCK, "utc": "2026-11-22T00:01:07.512Z"}},
    }
    (told,) = drift.drift(run, dataclasses.replace(run, record=tomorrow))
    assert str(told) == "day (UTC) changed: 2026-11-21 -> 2026-11-22"


def test_another_order_of_completion_is_named_where_calls_overlapped(tmp_path):
    run = run_of(tmp_path, (chat("a", model="m-1"), said()), (chat("b", model="m-2"), said()))
    told = drift.drift(run, dataclasses.replace(run, calls=run.calls[::-1]))
    assert whats(told) == ["order of completion"]
    assert told[0].before.startswith("m-1 ") and told[0].after.startswith("m-2 ")


def test_more_calls_than_before_are_counted(tmp_path):
    told = between(tmp_path, [tool()], [tool(), tool(id=2)])
    assert str(told[0]) == "number of calls changed: 1 -> 2"


def test_long_results_are_shown_from_where_they_part(tmp_path):
    (told,) = between(tmp_path, [tool(result="x" * 500 + "old")], [tool(result="x" * 500 + "new")])
    assert "old" in told.before and "new" in told.after and len(told.before) < 100


def test_one_line_tells_the_first_changes_and_counts_the_others(tmp_path):
    found = [drift.Drift(f"thing {n}", "a", "b") for n in range(8)]
    assert drift.line(found).startswith("drift: thing 0 changed: a -> b; thing 1")
    assert drift.line(found).endswith("; and 2 more")
    assert drift.line([]) == ""


def test_what_is_known_by_a_digest_is_said_without_it():
    assert (
        str(drift.Drift("cell source", "f8f12aa317e6d347", "ff35bdb09d5e540f"))
        == "cell source changed"
    )
    assert (
        str(drift.Drift("cell source", "", "ff35bdb0")) == "cell source changed: none -> ff35bdb0"
    )
    assert str(drift.Drift("python", "3.11", "3.12")) == "python changed: 3.11 -> 3.12"
