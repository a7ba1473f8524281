"""The nine sources of chance: each held, recorded, impossible to hold, or missing with the line that keeps it."""

import pytest

from tape_jupyter.audit import nondeterminism
from tape_jupyter.core.call import Reply, Value
from tape_jupyter.encoding.values.tool_results import Retrieved
from tests.harness.seen_runs import chat, claude, claude_said, found, run_of, said, tool


def item(run, number, taped=()):
    return nondeterminism.budget(run, taped)[number - 1]


def test_there_are_nine_in_their_order(tmp_path):
    told = nondeterminism.budget(run_of(tmp_path))
    assert [each.number for each in told] == list(range(1, 10))
    assert [each.name for each in told] == list(nondeterminism.NAMES.values())


# 1


@pytest.mark.parametrize(
    ("call", "status", "capture"),
    [
        ((chat(temperature=0), said()), "pinned", ""),
        ((chat(temperature=0.7), said()), "recorded", ""),
        ((chat(), said()), "missing", "temperature=0"),
        ((chat(model="o3"), said()), "unpinnable", ""),
        ((claude(), claude_said()), "unpinnable", ""),
    ],
)
def test_sampling_is_what_the_request_fixed_of_it(tmp_path, call, status, capture):
    told = item(run_of(tmp_path, call), 1)
    assert (told.status, told.capture) == (status, capture)
    assert "top_p absent" in told.what


# 2


@pytest.mark.parametrize(
    ("call", "status", "capture"),
    [
        ((chat(seed=7), said()), "pinned", ""),
        ((chat(), said()), "missing", "seed=7"),
        ((chat(url="https://api.openai.com/v1/responses", input="hi"), said()), "unpinnable", ""),
        ((claude(), claude_said()), "unpinnable", ""),
    ],
)
def test_a_seed_is_asked_for_only_where_the_wire_takes_one(tmp_path, call, status, capture):
    told = item(run_of(tmp_path, call), 2)
    assert (told.status, told.capture) == (status, capture)


# 3


@pytest.mark.parametrize(
    ("call", "status", "said_so"),
    [
        ((chat(), said(system_fingerprint="fp_1")), "pinned", "fp_1"),
        ((chat(model="gpt-4o"), said()), "recorded", "answered by gpt-4o-2024-08-06"),
        ((chat(model="gpt-4o"), said(model=None)), "missing", "does not say"),
        ((claude(), claude_said()), "recorded", "claude-sonnet-4-5-20250929"),
    ],
)
def test_an_alias_is_told_apart_from_a_dated_snapshot(tmp_path, call, status, said_so):
    told = item(run_of(tmp_path, call), 3)
    assert told.status == status and said_so in told.what


def test_the_snapshot_to_ask_for_is_the_one_that_answered(tmp_path):
    told = item(run_of(tmp_path, (claude(), claude_said("claude-sonnet-4-5-20261001"))), 3)
    assert told.capture == "to pin it, ask for the dated snapshot: claude-sonnet-4-5-20261001"


# 4

EAST = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"
ROUTER = "https://openrouter.ai/api/v1/chat/completions"


@pytest.mark.parametrize(
    ("call", "status", "said_so"),
    [
        ((chat(url=EAST), said()), "pinned", "region us-east-1"),
        (
            (chat(url="http://127.0.0.1:8099/v1/chat/completions"), said()),
            "pinned",
            "127.0.0.1:8099",
        ),
        ((chat(), said()), "recorded", "request id req_9"),
        (
            (chat(), said(headers=(("x-ms-region", "Sweden"),), service_tier="flex")),
            "recorded",
            "region Sweden, tier flex",
        ),
        ((chat(url=ROUTER), said(provider="Groq")), "recorded", "through to Groq"),
        (
            (chat(url=ROUTER, provider={"only": ["Groq"]}), said(provider="Groq")),
            "pinned",
            "through to Groq",
        ),
        ((chat(url=ROUTER), said()), "missing", "the gateway does not say which provider"),
    ],
)
def test_routing_is_the_host_the_region_the_tier_and_the_request(tmp_path, call, status, said_so):
    told = item(run_of(tmp_path, call), 4)
    assert told.status == status and said_so in told.what
    assert bool(told.capture) == (status == "missing")


# 5


def test_calls_under_way_together_are_counted_and_their_order_is_held(tmp_path):
    run = run_of(tmp_path, (chat("a"), said()), (chat("b"), said()))  # both from :07.600, of 1.25 s
    told = item(run, 5)
    assert told.status == "pinned" and told.what.startswith("2 calls overlapped")
    assert "one call" in item(run_of(tmp_path, (chat(), said())), 5).what


def test_a_call_without_times_has_no_place_in_the_order(tmp_path):
    import dataclasses

    run = run_of(tmp_path, (chat(), said()))
    timeless = dataclasses.replace(run.calls[0], head={})
    told = item(dataclasses.replace(run, calls=(timeless,)), 5)
    assert told.status == "missing" and told.capture


# 6


def handed_back(name="lookup"):
    call = {"id": "t0", "function": {"name": name, "arguments": "{}"}}
    return chat(
        messages=[
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t0", "content": "x"},
        ]
    )


def test_a_result_whose_tool_is_on_the_tape_is_held(tmp_path):
    run = run_of(
        tmp_path, (chat(), said(calls=["lookup"])), tool("lookup"), (handed_back(), said())
    )
    assert item(run, 6).status == "pinned"


def test_a_result_handed_back_without_a_call_names_the_function_to_decorate(tmp_path):
    run = run_of(
        tmp_path, (chat(), said(calls=["lookup_order"])), (handed_back("lookup_order"), said())
    )
    told = item(run, 6)
    assert (told.status, told.capture) == ("missing", "@tape.tool above def lookup_order")
    assert item(run, 6, ["lookup_order"]).status == "recorded", (
        "another run of the cassette holds its calls"
    )


def test_a_result_named_while_recording_is_named_in_the_report(tmp_path):
    cold = [
        "the result of tool refund was not taped: no function of the notebook goes by that name"
    ]
    told = item(run_of(tmp_path, tool(), end={"cold": cold}), 6)
    assert told.status == "missing" and told.capture == "@tape.tool above def refund"


def test_what_could_not_be_kept_is_missing_and_a_stub_is_said(tmp_path):
    told = item(run_of(tmp_path, tool("connect", Value(unkept="a socket"))), 6)
    assert told.status == "missing" and "a socket" in told.what
    assert item(run_of(tmp_path), 6).what == "no tool was called"


# 7

CHUNKS = [{"id": "c1", "score": 0.9, "text": "x"}, {"id": "c2", "score": 0.5, "text": "y"}]


def test_a_retrieval_that_tells_ids_scores_and_embedding_is_whole(tmp_path):
    parcel = Retrieved(
        ["x", "y"], [{"id": "c1", "score": 0.9}, {"id": "c2", "score": 0.5}], "text-embedding-3"
    )
    for value in ({"chunks": CHUNKS, "embedding_model": "text-embedding-3"}, parcel):
        told = item(run_of(tmp_path, found(value, index="docs")), 7)
        assert told.status == "pinned", told
        assert told.what == "search: 2 chunks, embedded by text-embedding-3, index docs"


@pytest.mark.parametrize(
    ("value", "lacks"),
    [
        (CHUNKS, "no embedding model"),
        ([{"id": "c1"}], "no score"),
        ([{"score": 1}], "no id"),
        ("text", "embedding"),
    ],
)
def test_what_a_retrieval_does_not_tell_is_named(tmp_path, value, lacks):
    told = item(run_of(tmp_path, found(value)), 7)
    assert told.status == "missing" and lacks in told.what and "'score'" in told.capture


def test_where_nothing_was_retrieved_that_is_said(tmp_path):
    told = item(run_of(tmp_path, (chat(), said())), 7)
    assert (told.status, told.what) == ("recorded", "none made")


# 8


def test_a_429_is_on_the_tape_with_when_to_come_again(tmp_path):
    busy = Reply(
        429,
        (("retry-after", "20"), ("x-ratelimit-remaining-requests", "0")),
        (b'{"error": {"mess',),
        (0.1,),
    )
    told = item(run_of(tmp_path, (chat(), busy), (chat(), said())), 8)
    assert told.status == "pinned"
    for part in (
        "1 failed (429",
        "retry-after 20",
        "x-ratelimit-remaining-requests: 0",
        "2026-11-21T20:41Z Europe/Oslo",
    ):
        assert part in told.what


def test_without_failures_the_hour_is_still_told_and_without_an_hour_it_is_missing(tmp_path):
    assert item(run_of(tmp_path, (chat(), said())), 8).what.startswith(
        "no call was refused; started 2026-11-21T20:41Z"
    )
    import dataclasses

    run = run_of(tmp_path)
    assert (
        item(dataclasses.replace(run, record={**run.record, "kit": {"python": "3"}}), 8).status
        == "missing"
    )


# 9


def test_the_clock_is_held_and_who_read_it_is_named(tmp_path):
    told = item(run_of(tmp_path, end={"clock": {"__main__": [1, 2], "tool:x 2.0": [3]}}), 9)
    assert told.status == "pinned" and told.what == "3 readings on the tape, by __main__, tool:x"


def test_what_ran_live_in_a_replay_has_the_clock_of_the_run_it_repeats(tmp_path):
    told = item(run_of(tmp_path, pins=None, mode="replay", parent="r-1"), 9)
    assert told.status == "pinned" and told.what == "as in r-1, which it repeats"


def test_a_clock_that_is_not_held_is_missing_and_readings_in_c_are_named(tmp_path):
    assert item(run_of(tmp_path, pins=None), 9).capture == "record it again without --no-pin clock"
    cold = [
        "numpy reads the clock in C, where it is not replayed: in replay datetime64('now') gives the new time"
    ]
    told = item(run_of(tmp_path, end={"cold": cold}), 9)
    assert told.status == "missing" and told.capture == "np.datetime64(datetime.now())"


def test_each_call_has_its_part_in_the_items_that_are_its_own(tmp_path):
    run = run_of(tmp_path, (chat(), said()), tool(), found(CHUNKS))
    model, function, retrieval = run.calls
    assert [each.number for each in nondeterminism.call_findings(model)] == [1, 2, 3, 4, 5]
    assert [each.number for each in nondeterminism.call_findings(function)] == [5, 6]
    assert [each.number for each in nondeterminism.call_findings(retrieval)] == [5, 7]
    assert all(each.call == model.id for each in nondeterminism.call_findings(model))
