"""A cell that runs live again says in one line what answered otherwise than before."""

import httpx

import tape_jupyter as tape
from tests.harness.provider import Provider, Scripted
from tests.harness.taped_cells import ask, question, taped

ANSWER = '{{"type": "message", "model": "{model}", "content": [{{"type": "text", "text": "yes"}}], "system_fingerprint": "fp"}}'


def answers(provider, model, **more):
    body = ANSWER.format(model=model).encode()
    provider.script(
        "/v1/messages",
        Scripted(
            headers=(("content-type", "application/json"), *more.get("headers", ())), chunks=[body]
        ),
    )


def record(deck, path, body, **told):
    with taped(deck, "record", path, **told) as running:
        body()
    return [note for note in running.report.notes if note.startswith("drift")]


def test_recording_again_tells_what_answered_now(deck, path):
    with Provider() as provider:
        answers(provider, "claude-a-20250101")
        assert record(deck, path, lambda: ask(provider, "hi")) == [], (
            "there is nothing to compare with"
        )
        answers(provider, "claude-a-20261001")
        told = record(deck, path, lambda: ask(provider, "hi"))
    assert told == ["drift: answered model changed: claude-a-20250101 -> claude-a-20261001"]


def test_the_same_again_is_no_drift_and_replay_tells_none(deck, path):
    with Provider() as provider:
        for _ in range(2):
            answers(provider, "claude-a-20250101")
            assert record(deck, path, lambda: ask(provider, "hi")) == []
        with taped(deck, "replay", path) as running:
            ask(provider, "hi")
    assert not [note for note in running.report.notes if "drift" in note]


def test_a_tools_other_data_and_a_429_are_told(deck, path):
    stock = {"n": 1}

    @tape.tool
    def count() -> dict:
        return dict(stock)

    with Provider() as provider:
        record(deck, path, lambda: (count(), httpx.get(f"{provider.url}/x")))
        stock["n"] = 2
        provider.script(
            "/x", Scripted(status=429, headers=(("retry-after", "20"),), chunks=[b"busy"])
        )
        (told,) = record(deck, path, lambda: (count(), httpx.get(f"{provider.url}/x")))
    assert 'tool result of count changed: {"n": 1} -> {"n": 2}' in told
    assert "status changed:" in told and "-> 429" in told


def test_another_cell_is_not_compared(deck, path):
    with Provider() as provider:
        answers(provider, "a-20250101")
        record(deck, path, lambda: ask(provider, "hi"), source="one")
        answers(provider, "a-20261001")
        assert record(deck, path, lambda: ask(provider, "hi"), source="two") == []


def test_an_edited_tool_runs_live_in_a_take_and_its_drift_is_told(deck, path):
    answer = {"status": "shipped"}

    @tape.tool
    def lookup_order() -> dict:
        return dict(answer)

    record(deck, path, lookup_order)
    answer["status"] = "lost"
    with taped(
        deck, "replay", path, options={"live": ["tool:lookup_order"], "take": "fix"}
    ) as running:
        assert lookup_order() == {"status": "lost"}
    (told,) = [note for note in running.report.notes if note.startswith("drift")]
    assert told.startswith(
        'drift: tool result of lookup_order changed: {"status": "shipped"} -> {"status": "lost"}'
    )


def test_another_user_than_before_is_told(deck, path):
    with Provider() as provider:
        deck.set("user_id", "ada")
        record(deck, path, lambda: ask(provider, "hi"))
        deck.set("user_id", "bob")
        (told,) = record(deck, path, lambda: ask(provider, "hi"))
    assert "user_id changed: ada -> bob" in told


def test_a_recording_that_cannot_be_read_any_more_does_not_fail_the_cell(deck, path):
    with Provider() as provider:
        record(deck, path, lambda: ask(provider, "hi"))
        with taped(deck, "record", path) as running:
            ask(provider, "hi")
            path.write_text("---\nnonsense")
    assert running.report is not None
