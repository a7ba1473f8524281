"""A recorded run as a report sees it: whole where it can be read, named where it cannot."""

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.audit.run_view import all_seen, view_run
from tests.harness.seen_runs import chat, recorded, run_of, said, tool


def test_a_call_tells_what_was_asked_answered_and_when(tmp_path):
    model, function = run_of(tmp_path, (chat(), said()), tool("lookup")).calls
    assert (model.kind, model.name, model.host, model.status) == (
        "model",
        "gpt-4o-2024-08-06",
        "api.openai.com",
        200,
    )
    assert (function.kind, function.name, function.status) == ("tool", "lookup", None)
    assert model.began is not None and model.seconds == 1.25
    assert model.is_model and not function.is_model


def test_a_call_made_again_after_it_was_refused_is_the_next_attempt(tmp_path):
    busy, fine = said(status=429), said()
    calls = [
        (chat("a"), busy),
        (chat("b"), fine),
        (chat("a"), busy),
        (chat("a"), fine),
        (chat("a"), fine),
    ]
    assert [call.more.attempt for call in run_of(tmp_path, *calls).calls] == [1, 1, 2, 3, 1]
    told = chat("a", headers=(("x-stainless-retry-count", "4"),))
    assert [call.more.attempt for call in run_of(tmp_path, (told, fine)).calls] == [5]


def test_an_embedding_is_no_models_answer(tmp_path):
    (call,) = run_of(
        tmp_path, (chat(url="https://api.openai.com/v1/embeddings", input="x"), said())
    ).calls
    assert call.is_embedding and not call.is_model


def test_a_limit_reads_no_more_calls_than_that(tmp_path):
    path = tmp_path / "main.tape.yaml"
    cassette, run = recorded(path, *[tool(id=n) for n in range(5)])
    assert len(view_run(cassette, run, limit=2).calls) == 2
    assert view_run(cassette, run, limit=0).calls == ()
    assert [each.id for each in all_seen(cassette, [run, "r-none"])] == [run, "r-none"]


def test_a_record_that_cannot_be_read_hides_no_other(tmp_path):
    path = tmp_path / "main.tape.yaml"
    recorded(path, (chat("one"), said("yes")), (chat("two"), said("no")))
    path.write_text(path.read_text().replace("status: 200", "status: ok", 1))
    cassette = Cassette.open(path, check="marks")
    broken, whole = view_run(cassette, cassette.runs[0]["run"]).calls
    assert "status 'ok'" in broken.problem and broken.reply is None
    assert not whole.problem and whole.facts.model


def test_an_edited_clock_tells_no_time(tmp_path):
    import dataclasses

    call = run_of(tmp_path, tool()).calls[0]
    odd = dataclasses.replace(
        call, head={"at": "yesterday", "seconds": "long", "kind": 7, "kit": []}
    )
    assert (odd.began, odd.seconds, odd.kind, odd.kit) == (None, None, "host", {})
