"""Every field of the kit, of a run and of a call: there, or named as missing with the line that keeps it."""

import dataclasses

import pytest

from tape_jupyter.audit import environment_fields
from tape_jupyter.core.call import Reply
from tests.harness.seen_runs import PINS, chat, found, run_of, said, tool

RUN_FIELDS = (
    "run", "parent", "notebook", "cell id", "source hash", "execution count", "user_id", "tenant_id", "session_id",
    "flags", "python", "platform", "library versions", "code version", "local modules", "base clock", "timezone",
    "random state", "hash seed", "environment",
)  # fmt: skip
WHOLE = {
    "user_id": "u", "tenant_id": "t", "session_id": "s", "flags": {"new": True}, "platform": "Linux",
    "distributions": ["httpx==0.28"], "git": {"commit": "c" * 40, "dirty": False}, "modules": {"mine": "d"},
    "environment": {"PYTHONHASHSEED": "0"},
}  # fmt: skip


def field(found, name):
    return next(each for each in found if each.name == name)


def of_run(folder, **kit):
    return environment_fields.of_run(run_of(folder, (chat(), said()), kit={**WHOLE, **kit}))


def test_a_whole_kit_has_every_field_and_none_is_missing(tmp_path):
    told = of_run(tmp_path)
    assert tuple(each.name for each in told) == RUN_FIELDS
    assert [each for each in told if each.status == "missing"] == []


@pytest.mark.parametrize(
    ("change", "name", "capture"),
    [
        ({"user_id": None}, "user_id", "%tape set user_id=..."),
        ({"tenant_id": ""}, "tenant_id", "%tape set tenant_id=..."),
        ({"session_id": None}, "session_id", "%tape set session_id=..."),
        ({"platform": None}, "platform", "record it again"),
        ({"distributions": []}, "library versions", "record it again"),
        ({"git": None}, "code version", "git init"),
        ({"git": {"unknown": "git is not installed"}}, "code version", "git status"),
        (
            {"git": {"commit": "c", "dirty": True, "diff": "d"}},
            "code version",
            "git commit before recording",
        ),
        ({"variables": ""}, "environment", "record it again"),
        ({"python": None}, "python", "record it again"),
    ],
)
def test_each_field_that_is_missing_is_named_with_the_line_that_keeps_it(
    tmp_path, change, name, capture
):
    told = of_run(tmp_path, **change)
    assert [each.name for each in told if each.status == "missing"] == [name]
    assert capture in field(told, name).capture


def test_a_run_that_asked_nothing_is_not_to_be_recorded_again(tmp_path):
    kit = {**WHOLE, "python": None, "platform": None, "distributions": [], "variables": ""}
    told = environment_fields.of_run(run_of(tmp_path, kit=kit))
    assert [each for each in told if each.status == "missing"] == []
    assert field(told, "python").what == "no call was made"


@pytest.mark.parametrize("environment", [{}, "damaged", {"PYTHONHASHSEED": "random"}])
def test_a_hash_seed_is_missing_where_a_replay_could_not_tell_that_it_was_another(
    tmp_path, environment
):
    assert field(of_run(tmp_path, environment=environment), "hash seed").status == "recorded"
    pins = {**PINS, "random": {"seed": "0", "at": {}}}  # no mark of the kernel's own seed
    kit = {**WHOLE, "environment": environment}
    bare = field(environment_fields.of_run(run_of(tmp_path, pins=pins, kit=kit)), "hash seed")
    assert bare.status == "missing" and "PYTHONHASHSEED=0" in bare.capture


def test_pins_hold_clock_zone_and_chance(tmp_path):
    told = of_run(tmp_path)
    assert {field(told, name).status for name in ("base clock", "timezone", "random state")} == {
        "pinned"
    }
    bare = environment_fields.of_run(run_of(tmp_path, pins=None, kit=WHOLE))
    assert field(bare, "base clock").status == field(bare, "timezone").status == "recorded"
    assert "--no-pin random" in field(bare, "random state").capture
    assert field(environment_fields.of_run(run_of(tmp_path, pins={**PINS, "random": {"seed": "0"}}, kit=WHOLE)), "random state").status == "pinned"  # fmt: skip


def test_a_user_whom_the_requests_name_needs_not_be_told(tmp_path):
    run = run_of(tmp_path, (chat(user="ada"), said()), kit={**WHOLE, "user_id": None})
    assert field(environment_fields.of_run(run), "user_id").what == "ada (in the requests)"


def test_flags_that_were_evaluated_stand_beside_those_told(tmp_path):
    run = run_of(tmp_path, kit={"flags": {"told": 1}}, end={"flags": {"seen": "on"}})
    assert environment_fields.tags(run)["flags"] == {"told": 1, "seen": "on"}
    assert "none set" in field(environment_fields.of_run(run_of(tmp_path)), "flags").what


def test_a_run_without_a_kit_is_one_gap(tmp_path):
    run = run_of(tmp_path)
    for kit in ({}, None, "x", 7):
        (told,) = environment_fields.of_run(
            dataclasses.replace(run, record={"run": "r", "kit": kit})
        )
        assert (told.name, told.status) == ("kit", "missing")


def test_a_model_call_has_every_field_of_its_own(tmp_path):
    schema = {"type": "function", "function": {"name": "lookup", "parameters": {}}}
    limits = (("x-ratelimit-limit-requests", "5"),)
    call = (chat(tools=[schema], headers=(("x-stainless-retry-count", "1"),)), said(headers=limits))
    told = environment_fields.environment_findings(run_of(tmp_path, call).calls[0])
    assert [each.name for each in told] == [
        "host", "region", "request id", "rate limits", "attempt", "provider", "requested model", "answered model",
        "sampling", "tool schemas", "start", "end", "first byte", "lineage",
    ]  # fmt: skip
    values = {each.name: each.what for each in told}
    assert (
        values["host"] == "api.openai.com"
        and values["attempt"] == "2"
        and values["request id"] == "req_9"
    )
    assert (
        values["tool schemas"].startswith("lookup ")
        and values["rate limits"] == "x-ratelimit-limit-requests"
    )
    assert values["start"] == "2026-11-21T20:41:07.600Z" and values["end"] == "1.25 s after"
    assert values["first byte"] == "0.1 s after"
    assert field(told, "region").status == "unpinnable"
    assert field(told, "sampling").capture == "temperature=0"


def test_what_a_call_cannot_tell_is_missing(tmp_path):
    model, retrieval, function = run_of(
        tmp_path, (chat(), said(model=None)), found([{"id": 1}]), tool()
    ).calls
    assert (
        field(environment_fields.environment_findings(model), "answered model").status == "missing"
    )
    assert (
        field(environment_fields.environment_findings(retrieval), "embedding model").status
        == "missing"
    )
    assert [each.name for each in environment_fields.environment_findings(function)] == [
        "start",
        "end",
        "lineage",
    ]
    timeless = dataclasses.replace(function, head={})
    assert [each.status for each in environment_fields.environment_findings(timeless)] == [
        "missing",
        "missing",
        "recorded",
    ]


def test_of_a_call_that_failed_nothing_answered(tmp_path):
    call = run_of(tmp_path, (chat(model="gpt-4o"), said(model=None, status=429))).calls[0]
    assert (
        field(environment_fields.environment_findings(call), "answered model").status == "recorded"
    )


def test_a_record_that_cannot_be_read_is_one_gap(tmp_path):
    call = dataclasses.replace(
        run_of(tmp_path, tool()).calls[0], request=None, problem="main.tape.yaml:7: broken"
    )
    (told,) = environment_fields.environment_findings(call)
    assert told.status == "missing" and "main.tape.yaml:7" in told.what


def test_a_reply_that_failed_before_its_head_still_has_its_times(tmp_path):
    call = run_of(
        tmp_path, (chat(), Reply(None, waits=(0.3,), end="error", error={"class": "x"}))
    ).calls[0]
    assert field(environment_fields.environment_findings(call), "first byte").what == "0.3 s after"
