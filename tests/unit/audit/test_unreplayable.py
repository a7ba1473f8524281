"""Cold cases: which runs no replay can repeat, why, and what they have in common."""

from tape_jupyter.audit import nondeterminism, unreplayable
from tape_jupyter.core.call import Value
from tests.harness.seen_runs import chat, run_of, said, tool


def case(run, taped=()):
    return unreplayable.case(run, "main.tape.yaml", nondeterminism.budget(run, taped))


def test_a_run_that_replays_whole_is_not_cold_though_its_model_is_an_alias(tmp_path):
    assert case(run_of(tmp_path, (chat(model="gpt-4o"), said()))).reasons == ()


def test_what_was_said_while_recording_makes_a_run_cold(tmp_path):
    assert case(run_of(tmp_path, end={"cold": ["connection to db:5432"]})).reasons == (
        "connection to db:5432",
    )


def test_a_run_without_an_end_mark_is_cold(tmp_path):
    (reason,) = case(run_of(tmp_path, (chat(), said()), outcome="")).reasons
    assert "no end mark" in reason


def test_a_value_that_was_not_kept_makes_a_run_cold_and_is_told_once(tmp_path):
    (reason,) = case(run_of(tmp_path, tool("connect", Value(unkept="a socket")))).reasons
    assert "connect" in reason and "a socket" in reason


def test_a_result_without_its_tool_makes_a_run_cold_and_is_told_once(tmp_path):
    text = "the result of tool refund was not taped: no function of the notebook goes by that name"
    assert case(run_of(tmp_path, end={"cold": [text]})).reasons == (text,)


def test_cold_cases_are_grouped_by_what_they_share(tmp_path):
    late = {"at": "2026-11-21T15:00:00.000Z"}
    cases = [
        case(
            run_of(
                tmp_path,
                (chat(), said(calls=["pay"])),
                kit={"tenant_id": "acme"},
                end={"cold": ["x"]},
                **late,
            )
        ),
        case(run_of(tmp_path, (chat(), said()), kit={"tenant_id": "acme"}, **late)),
        case(run_of(tmp_path, (chat(model="o3"), said()), kit={"tenant_id": "bolt"})),
    ]
    told = unreplayable.cold_patterns(cases)
    assert told == {
        "model": [{"value": "gpt-4o-2024-08-06", "cold": 1, "runs": 2}],
        "hour": [{"value": "15:00 UTC", "cold": 1, "runs": 2}],
        "tenant": [{"value": "acme", "cold": 1, "runs": 2}],
        "tool": [{"value": "pay", "cold": 1, "runs": 1}],
    }
