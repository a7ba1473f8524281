"""The calls of a cell before and after, aligned: overridden, live, stale, new and gone ones."""

from contextlib import suppress

import pytest

import tape_jupyter as tape
from tape_jupyter.jupyter.rerun.comparison import calls_changed
from tests.harness.provider import Scripted
from tests.harness.taped_cells import ask
from tests.harness.tapes import JSON

MOOD = ["negative"]


def program(provider):
    ask(provider, "which order?")
    ask(provider, f"answer kindly: {MOOD[0]}")


@pytest.fixture
def recorded(provider, tmp_path):
    path, MOOD[0] = tmp_path / "nb.tapes" / "main.tape.yaml", "negative"
    with tape.recording(path):
        program(provider)
    return tape.open(path)


def compared(path, provider, what=program, **options):
    block = tape.replaying(path, **options)
    with block:
        cell = block._cell
        what(provider)
    run = tape.open(path).runs[0]["run"]
    return [(each.mark, each.note) for each in calls_changed(run, cell)]


def test_a_replay_changes_nothing(recorded, provider):
    (first, asked), (second, other) = compared(recorded.path, provider)
    assert first == second == "same" and asked != other  # each tells what was answered
    assert "'order?'" in asked and "'negative'" in other


def test_an_overridden_call_stands_beside_the_recorded_one(recorded, provider):
    recorded.override(recorded.calls[0], text="none", take="angry")
    (changed, note), (same, _) = compared(recorded.path, provider, take="angry")
    assert changed == "changed" and note.endswith('-> "none"') and same == "same"


@pytest.mark.parametrize(
    ("policy", "said"), [("live", "went live"), ("stale", "stale: recorded for another request")]
)
def test_a_divergence_says_what_became_of_it(recorded, provider, policy, said):
    MOOD[0] = "positive"
    (same, _), (mark, note) = compared(recorded.path, provider, take="t", on_divergence=policy)
    assert same == "same" and mark == "changed" and note.startswith(said)


def test_calls_that_are_new_and_calls_that_are_gone(recorded, provider):
    same, gone = compared(recorded.path, provider, lambda p: ask(p, "which order?"))
    assert same[0] == "same" and gone[0] == "gone" and "'negative'" in gone[1]

    def more(provider):
        program(provider)
        ask(provider, "one more")

    mark, note = compared(recorded.path, provider, more, take="t", on_divergence="live")[2]
    assert mark == "added" and note.startswith('went live, "You wrote 2 words')


def test_what_failed_and_was_sent_again_is_no_call_beside_the_one_that_ended_it(recorded, provider):
    def insist(provider):
        ask(provider, "which order?")
        with suppress(KeyError):
            ask(provider, "answer kindly: positive")
        ask(provider, "answer kindly: positive")

    refusal = Scripted(429, {}, [b'{"error": {"type": "slow"}}'])
    reply = Scripted(
        200, JSON, [b'{"type": "message", "content": [{"type": "text", "text": "Gladly"}]}']
    )
    provider.script("/v1/messages", refusal, reply)
    (same, _), (mark, note) = compared(
        recorded.path, provider, insist, take="t", on_divergence="live"
    )
    assert same == "same" and mark == "changed"
    assert "'negative'" in note and note.rpartition("-> ")[2] == '"Gladly"'
