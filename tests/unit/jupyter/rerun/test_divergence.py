"""A divergence as a person sees it, and the reply that a person writes: on the take at once, and it replays."""

from types import SimpleNamespace

import pytest

import tape_jupyter as tape
from tape_jupyter.errors import TapeUsageError, UnmatchedCall
from tape_jupyter.jupyter.rerun.divergence import divergence_fields, commit_reply
from tests.harness.taped_cells import ask

CELL = SimpleNamespace(cell="answer")


@tape.tool
def lookup(order):
    return {"order": order}


@pytest.fixture
def path(provider, tmp_path):
    path = tmp_path / "nb.tapes" / "main.tape.yaml"
    with tape.recording(path):
        ask(provider, "say: negative")
        lookup("r_1")
    return path


def diverged(path, program):
    block = tape.replaying(path)
    with pytest.raises(UnmatchedCall), block:
        program()
    return block.report.divergences[0]


def test_it_tells_what_is_asked_what_was_recorded_and_what_it_may_cost(path, provider, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789abcdef")
    card = divergence_fields(
        diverged(path, lambda: ask(provider, "say: positive sk-0123456789abcdef"))
    )
    assert card["fields"][0]["path"] == "messages[0].content"
    assert "positive" in card["asked"]["text"] and "negative" in card["recorded"]["text"]
    assert "0123456789abcdef" not in str(card), "no secret is told"
    assert card["choices"] == ["live", "write", "stale", "skip"] and card["reply"]["json"]


def test_a_written_message_replays_in_the_wire_form_that_was_recorded(path, provider):
    divergence = diverged(path, lambda: ask(provider, "say: positive"))
    commit_reply(tape.open(path).take("mine"), CELL.cell, divergence, "How lovely.")
    provider.requests.clear()
    with tape.replaying(path, take="mine"):
        assert ask(provider, "say: positive") == "How lovely."
    call = tape.open(path).take("mine").calls[-1]
    assert call.head()["diverged"] == "hand" and provider.requests == []


def test_a_tools_value_can_be_written(path):
    divergence = diverged(path, lambda: lookup("r_2"))
    commit_reply(tape.open(path).take("mine"), CELL.cell, divergence, '{"order": "lost"}')
    with tape.replaying(path, take="mine"):
        assert lookup("r_2") == {"order": "lost"}


def test_what_has_no_like_has_no_wire_form(path, provider):
    @tape.tool
    def other():
        return 1

    divergence = diverged(path, other)
    if divergence.nearest is None:
        with pytest.raises(TapeUsageError, match="no format for"):
            commit_reply(tape.open(path).take("mine"), CELL.cell, divergence, "1")
        assert divergence_fields(divergence)["choices"] == ["live", "skip"]
