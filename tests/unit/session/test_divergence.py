"""A call of a replay that the tape does not hold: stop, live or stale; the base is never written, the take replays."""

import hashlib
import itertools

import httpx
import pytest

import tape_jupyter as tape
from tape_jupyter.errors import TapeUsageError, UnmatchedCall
from tape_jupyter.session import mismatch
from tests.harness.taped_cells import ask
from tests.harness.tool_runs import Witness

RAN = Witness()
MOOD = ["negative"]


@pytest.fixture(autouse=True)
def fresh():
    RAN.clear()
    MOOD[0] = "negative"


@tape.tool
def lookup(order, mood="any"):
    RAN.append((order, mood))
    return {"order": order, "mood": mood}


def program(provider):
    """Two calls that quote MOOD, and one that does not."""
    return [
        ask(provider, "which order?"),
        ask(provider, f"answer kindly: {MOOD[0]}"),
        lookup("r_1", MOOD[0]),
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nb.tapes" / "main.tape.yaml"


@pytest.fixture
def recorded(fresh, provider, path):
    """What the program gave when it was recorded; MOOD is another now. The base stays as it is."""
    with tape.recording(path):
        result = program(provider)
    RAN.clear()
    provider.requests.clear()
    MOOD[0], before = "positive", digest(path)
    yield result
    assert digest(path) == before, "the base was written"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def heads(path, take):
    return [entry.head().get("diverged", "") for entry in tape.open(path).take(take).calls]


def test_without_a_word_it_stops_and_the_divergence_is_remembered(provider, path, recorded):
    block = tape.replaying(path)
    with pytest.raises(UnmatchedCall), block:
        program(provider)
    (divergence,) = block.report.divergences
    (field, before, after) = divergence.fields[0]
    assert field == "messages[0].content" and "negative" in before and "positive" in after
    assert divergence.nearest is not None and divergence.nearest.id == tape.open(path).calls[1].id
    assert provider.requests == [] and not (path.parent / "takes").exists()


def test_what_was_said_stands_before_the_ids_that_a_provider_made_up(provider, path):
    def asked(name, order):
        use = {"type": "tool_use", "id": name, "name": "find", "input": {"id": order}}
        result = {"type": "tool_result", "tool_use_id": name, "content": order}
        messages = [{"role": "user", "content": "find " + order}, {"role": "assistant", "content": [use]},
                    {"role": "user", "content": [result]}]  # fmt: skip
        body = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": messages}
        httpx.post(f"{provider.url}/v1/messages", json=body)

    with tape.recording(path):
        asked("toolu_1", "r_1")
    block = tape.replaying(path)
    with pytest.raises(UnmatchedCall), block:
        asked("toolu_2", "r_2")
    (divergence,) = block.report.divergences
    assert [name for name, _, _ in divergence.fields] == [
        "messages[2].content[0].content",
        "messages[1].content[0].input.id",
        "messages[0].content",
        "messages[1].content[0].id",
        "messages[2].content[0].tool_use_id",
    ]


def test_a_changed_request_is_compared_with_one_that_the_cell_has_not_gone_past(
    provider, path, monkeypatch
):
    """An agent's second request was shown beside the first one, which had gone live: most of it as absent.

    The machine is slow here: there is time to look at one recorded call.
    """

    def asked(*said):
        roles = ("user", "assistant")
        messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]
        body = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": messages}
        httpx.post(f"{provider.url}/v1/messages", json=body)

    def agent(order, *, whole=True):
        asked("find", f"it is {order}", "go on")
        lookup("r_1")
        if whole:
            asked(
                "find", f"it is {order}", "go on", f"{order} was found at {order}", f"is {order}?"
            )

    with tape.recording(path):
        agent("globex")
    with tape.replaying(path, take="live", on_divergence="live"):
        agent("acme", whole=False)
    block = tape.replaying(path, take="live")
    with pytest.raises(UnmatchedCall), block:
        monkeypatch.setattr(mismatch, "monotonic", itertools.count(0, 0.1).__next__)
        agent("acme")
    (divergence,) = block.report.divergences
    assert divergence.nearest is not None and divergence.nearest.id == tape.open(path).calls[2].id
    assert "(absent)" not in str(divergence.fields)


def test_live_goes_out_into_a_take_that_replays_afterwards(provider, path, recorded):
    with tape.replaying(path, on_divergence="live") as block:
        live = program(provider)
    assert len(provider.requests) == 1 and RAN == [("r_1", "positive")]
    assert live[0] == recorded[0] and live[2]["mood"] == "positive"
    assert "what ran live is in the take live" in " ".join(block.report.notes)
    assert sorted(row.live for row in block.report.calls) == [False, True, True]
    assert heads(path, "live") == ["", "", "", "live", "live"]
    with tape.replaying(path, take="live"):
        assert program(provider) == live
    assert len(provider.requests) == 1 and len(RAN) == 1


def test_stale_gives_the_recorded_reply_of_the_same_place_and_says_so(provider, path, recorded):
    with tape.replaying(path, take="kept", on_divergence="stale") as block:
        assert program(provider) == recorded
    assert provider.requests == [] and RAN == []
    assert any(
        "2 stale: answered as another request was when recorded" in note
        for note in block.report.notes
    )
    assert heads(path, "kept") == ["", "", "", "stale", "stale"]
    assert not any(row.live for row in block.report.calls)
    assert "what was kept is in the take kept" in " ".join(block.report.notes)
    of = [entry.head()["frozen"] for entry in tape.open(path).take("kept").calls[3:]]
    assert of == [f"{entry.run}/{entry.id}" for entry in tape.open(path).calls[1:]]
    with tape.replaying(path, take="kept"):
        assert program(provider) == recorded


def test_a_stale_reply_is_given_once_and_never_that_of_another_address(provider, path, recorded):
    def more():
        return [*program(provider), ask(provider, "and one more"), ask(provider, "and two")]

    block = tape.replaying(path, on_divergence="stale")
    with pytest.raises(UnmatchedCall, match="and one more"), block:
        more()
    assert len(block.report.divergences) == 1


def test_a_call_made_more_often_than_recorded_diverges_too(provider, path, recorded):
    MOOD[0] = "negative"
    with tape.replaying(path, on_divergence="live"):
        program(provider)
        ask(provider, "which order?")
    assert len(provider.requests) == 1


def test_only_replay_diverges(path, recorded):
    with pytest.raises(TapeUsageError, match="--on-divergence goes with replay"):
        tape.replaying(path, mode="once", on_divergence="live")
    with pytest.raises(TapeUsageError, match="is not a choice at a changed request"):
        tape.replaying(path, on_divergence="guess")
