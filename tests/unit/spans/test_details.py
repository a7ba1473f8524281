"""One span in full: what was said, headers, raw bytes, timing, kit; and two calls side by side."""

import gzip
import json

import pytest

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.spans import details, formatting
from tape_jupyter.spans.rows import Spans
from tests.harness.spanned import Recording, answered, asked, failed, fetched, tool
from tests.harness.tapes import JSON


@pytest.fixture
def tape(tmp_path):
    made = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    made.run(title="ask")
    return made


def opened(tape):
    spans = Spans(Cassette.open(tape.cassette.path))
    spans.refresh()
    return spans


def last(tape):
    spans = opened(tape)
    told = details.span_detail(spans, spans.nodes[-1])
    json.dumps(told, allow_nan=False).encode("utf-8")
    return told


def test_a_model_call_is_told_as_a_conversation_with_what_it_took(tape):
    tape.add(asked("which mood?"), answered("negative"))
    told = last(tape)
    assert [turn["role"] for turn in told["turns"]] == ["user", "assistant"]
    assert told["title"] == '"negative"' and told["kind"] == "model" and told["status"] == 200
    assert told["usage"] == {"tokens_in": 1000, "tokens_out": 100, "cost": pytest.approx(0.0045), "model": "claude-sonnet-4-5-20250929"}  # fmt: skip
    assert told["timing"]["first"] == 0.1 and told["timing"]["chunks"] == 2
    assert (
        told["editable"] == "message"
        and told["path"].endswith("main.tape.yaml")
        and told["line"] > 1
    )
    assert json.loads(told["request"]["text"])["messages"] and told["request"]["json"]
    assert ["request-id", "req_1"] in told["headers"]["reply"]
    assert ["sampling.max_tokens", "9"] in told["kit"]


def test_a_tool_shows_its_arguments_and_its_value(tape):
    tape.add(*tool("look", {"name": "Ada"}, id=7))
    told = last(tape)
    assert (json.loads(told["request"]["text"]), json.loads(told["reply"]["text"])) == (
        {"id": 7},
        {"name": "Ada"},
    )
    assert told["editable"] == "value" and told["turns"] == [] and told["raw"]["reply"] > 0


def test_an_error_says_what_was_raised_or_answered(tape):
    tape.add(*tool("look", error=KeyError("ada"), id=7))
    assert "ada" in last(tape)["reply"]["text"] and last(tape)["error"]
    tape.add(asked("q"), failed())
    assert (
        last(tape)["status"] == 429
        and "slow down" in last(tape)["reply"]["text"]
        and last(tape)["editable"] == "raw"
    )


def test_a_cell_shows_its_source_from_the_notebook_and_its_outcome(tape, tmp_path):
    from tape_jupyter.cassette.cell_sources import source_hash

    tape.run(source_hash("ask()"), title="ask")
    tape.end("raised", error="KeyError: 1")
    cells = [{"cell_type": "code", "id": "c1", "source": ["%%tape record\n", "ask()"]}]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    told = last(tape)
    assert (
        told["kind"] == "cell"
        and told["source"].endswith("ask()")
        and told["error"] == "KeyError: 1"
    )
    assert told["ending"] == "raised"


def test_a_body_that_expands_past_the_cap_is_named_and_not_opened(tape, monkeypatch):
    monkeypatch.setattr("tape_jupyter.encoding.http.content_encoding.CAP", 1000)
    monkeypatch.setattr(
        formatting,
        "decode_body",
        lambda data, coding: (_ for _ in ()).throw(formatting.TooLarge("past the cap")),
    )
    packed = gzip.compress(b"0" * 100_000)
    tape.add(*fetched("https://h.test/bomb", packed, (("content-encoding", "gzip"),)))
    told = last(tape)
    assert "too large to open" in told["reply"]["text"] and not told["reply"]["whole"]


def test_long_bodies_are_cut_and_the_raw_pages_join_without_a_seam(tape):
    text = "grün😀" * 60_000
    tape.add(*fetched("https://h.test/long", text.encode(), (("content-type", "text/plain"),)))
    spans = opened(tape)
    told = details.span_detail(spans, spans.nodes[-1])
    assert not told["reply"]["whole"] and len(told["reply"]["text"]) == formatting.CUT
    entry, found, start = spans.nodes[-1].header.entry, "", 0
    while start < told["raw"]["reply"]:
        page = details.raw_body(entry, "reply", start, 10_007)
        found, start = found + page["text"], start + 10_007
    assert found == text


def test_bytes_are_shown_as_a_hex_dump(tape):
    tape.add(*fetched("https://h.test/bytes", bytes(range(256))))
    spans = opened(tape)
    page = details.raw_body(spans.nodes[-1].header.entry, "reply", 16, 16)
    assert page["hex"] and page["text"].startswith("00000010  10 11 12") and page["total"] == 256


def test_a_call_beside_what_it_was_before_and_beside_its_likes(tape):
    first = tape.add(asked("a"), answered("negative"))
    tape.add(asked("b"), answered("neutral"))
    tape.add(*tool("look", 1))
    take = tape.cassette.override(first, reply=answered("positive"), take="glad")
    spans = Spans(Cassette.open(take.path))
    spans.refresh()
    node = spans.node(f"{first.run}/{first.id}")
    told = details.span_detail(spans, node)
    assert told["overridden"]["take"] == "glad" and '"negative"' in told["overridden"]["note"]
    assert [each["name"] for each in details.comparable_calls(spans, node)] == [
        "as recorded",
        '"neutral"',
    ]
    shown = details.diff_calls(node.header.entry.recorded, node.header.entry)
    assert (
        "negative" in shown["left"]
        and "positive" in shown["right"]
        and "positive" in shown["right_name"]
    )


def test_a_call_of_a_superseded_run_is_found_by_its_id(tape):
    old = tape.add(asked("a"), answered("old"))
    newer = Recording(tape.cassette.path)
    newer.run(session="s2")
    newer.add(asked("a"), answered("new"))
    spans = opened(newer)
    assert spans.node(f"{old.run}/{old.id}") is None
    assert (
        details.span_detail(spans, details.find_span(spans, f"{old.run}/{old.id}"))["title"]
        == '"old"'
    )
    assert (
        details.find_span(spans, "r-nope/12345678") is None
        and details.find_span(spans, "x") is None
    )


def test_hostile_values_become_json_that_every_browser_reads(tape):
    tape.add(
        *tool("look", {"deep": [[[[[1]]]]], "half": "\ud800", "big": 2**60}, key="</script>\u2028")
    )
    tape.add(Request("POST", "https://api.anthropic.com/v1/messages", JSON, b'{"messages":[{"role":"user","content":[{"type":"x","v":NaN,"w":1e999}]}],"model":"m"}'), Reply(200, JSON, (b'{"content":[{"type":"y","v":NaN}]}',), (0.1,)))  # fmt: skip
    spans = opened(tape)
    for node in spans.nodes:
        json.dumps(details.span_detail(spans, node), allow_nan=False).encode("utf-8")


def test_a_record_that_cannot_be_read_is_told_with_its_place(tape):
    tape.add(asked("a"), answered("negative"))
    path = tape.cassette.path
    path.write_text(path.read_text().replace("text: negative", "text: [negative"))
    spans = Spans(Cassette.open(path, check="marks"))
    spans.refresh()
    told = details.span_detail(spans, spans.nodes[-1])
    assert "main.tape.yaml:" in told["error"] and told["editable"] == "no"


def test_what_a_tool_raised_is_said_in_words_and_recorded_as_it_is(tape):
    entry = tape.add(*tool("ship", error=RuntimeError("no van"), item="lamp"))
    told = last(tape)
    assert told["reply"]["text"] == "raised RuntimeError('no van')" and not told["reply"]["json"]
    assert "builtins:RuntimeError" in details.raw_body(entry, "reply", 0, 4_000)["text"]
