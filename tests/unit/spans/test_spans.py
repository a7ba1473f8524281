"""The spans of a cassette: what stands below what, what a row says, and pages that are made without reading it all."""

import json

import pytest

from tape_jupyter.core.call import Reply
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.spans import headers, titles, rows as spans_rows, tree
from tape_jupyter.spans.rows import MARKS, Spans
from tape_jupyter.spans.tree import Pending
from tests.harness.spanned import Recording, answered, asked, failed, fetched, tool
from tests.harness.tapes import JSON

HOSTILE = [
    "</script><script>alert(1)</script>",
    "a\nb\tc",
    "\u202eevil",
    "\x1b[31mred",
    "x" * 5000,
    "\ud800",
    '"|: -',
]
USE = b'{"type":"message","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"t","name":"lookup_order","input":{"q":1}}],"usage":{"input_tokens":5,"output_tokens":2}}'


def spans_of(path):
    found = Spans(Cassette.open(path))
    found.refresh()
    return found


def drawn(spans):
    """The tree as indented lines of what a person reads first."""
    return [f"{'  ' * row.depth}{headers.KINDS[row.kind]} {row.name}" for row in spans.rows()]


def everything(path):
    """The pipeline of the viewer's picture, and what goes wrong."""
    tape = Recording(path)
    tape.run(title="classify")
    tape.add(asked("which mood?"), answered("negative"))
    tape.end()
    tape.run("bbbb", title="answer", count=3)
    tape.add(asked("where is it?"), Reply(200, JSON, (USE,), (0.4,)), span=("agent",))
    looked = tape.add(*tool("lookup_order", [1, 2], query="my order"), span=("agent",), seconds=3)
    tape.add(
        *fetched("https://shop.test/orders/search?q=my+order"), span=("agent",), parent=looked.id
    )
    tape.add(asked("again"), failed(), span=("agent",))
    tape.add(*tool("cancel", error=KeyError("no such order"), id=7))
    tape.end("raised", error="KeyError: 'no such order'")
    return path


def test_attempts_that_failed_stand_below_the_call_that_ended_them(tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    tape.run(title="classify")
    tape.add(asked("which mood?"), failed(), span=("agent",))
    tape.add(asked("which mood?"), failed(500, "api_error"), span=("agent",))
    tape.add(*tool("look"), span=("agent",))
    tape.add(asked("which mood?"), answered("negative"), span=("agent",))
    tape.add(asked("which mood?"), failed())  # from elsewhere: no attempt at that
    tape.add(asked("again"), failed())
    tape.add(asked("again"), failed(529, "overloaded_error"))
    tape.add(asked("same"), answered("one"))
    tape.add(asked("same"), answered("two"))
    tape.end()
    spans = spans_of(tape.cassette.path)
    assert drawn(spans) == [
        "cell [2] classify",
        "  span agent",
        "    tool look()",
        '    model "negative"',
        "      model 429 rate_limit",
        "      model 500 api",
        "  model 429 rate_limit",
        "  model 529 overloaded",
        "    model 429 rate_limit",
        '  model "one"',
        '  model "two"',
    ]
    marks = [MARKS[row.mark] for row in spans.rows()]
    assert marks == ["", "", "", "", "retried", "retried", "error", "error", "retried", "", ""]
    totals = spans.totals()
    assert (totals["calls"], totals["errors"], spans.nodes[0].calls) == (9, 2, 9)


def test_a_run_reads_as_what_happened_first_one_below_the_other(tmp_path):
    spans = spans_of(everything(tmp_path / "n.tapes" / "main.tape.yaml"))
    assert drawn(spans) == [
        "cell [2] classify",
        '  model "negative"',
        "cell [3] answer",
        "  span agent",
        "    model → lookup_order",
        '    tool lookup_order(query="my order")',
        "      http GET orders/search?q=my order",
        "    model 429 rate_limit",
        "  tool cancel(id=7)",
    ]
    rows = {row.name: row for row in spans.rows()}
    assert [MARKS[rows[name].mark] for name in ("[2] classify", "[3] answer", "429 rate_limit", "cancel(id=7)")] == [
        "", "error", "error", "error",
    ]  # fmt: skip
    assert rows["GET orders/search?q=my order"].note == "shop.test"
    assert (
        rows['"negative"'].note.startswith("claude-sonnet-4-5")
        and rows['"negative"'].tokens == 1100
    )
    assert rows['"negative"'].cost == pytest.approx(0.0045)


def test_times_are_counted_from_the_earliest_span_and_the_first_token_lies_within(tmp_path):
    rows = list(spans_of(everything(tmp_path / "n.tapes" / "main.tape.yaml")).rows())
    assert rows[0].start == 0.0
    assert all(row.start <= row.end for row in rows)
    assert rows[1].first == pytest.approx(rows[1].start + 0.1)
    assert all(row.first is None or row.start <= row.first <= row.end for row in rows)


def test_only_the_newest_recording_of_a_cell_is_shown_and_what_was_added_follows_it(tmp_path):
    path = tmp_path / "main.tape.yaml"
    for session, text in (("s1", "old"), ("s2", "new")):
        tape = Recording(path)
        newest = tape.run(title="ask", session=session)
        tape.add(asked("q"), answered(text))
        tape.end()
    tape.run("cccc", title="other")
    tape.add(asked("o"), answered("other"))
    tape.run("aaaa", title="ask", parent=newest, mode="new_episodes")
    tape.add(asked("more"), answered("added"))
    spans = spans_of(path)
    assert [row.name for row in spans.rows() if row.kind == headers.MODEL] == [
        '"new"',
        '"added"',
        '"other"',
    ]


def a_take(tmp_path, ran=True, late_override=False):
    """Of three recorded calls the second is changed, the last is not asked again; a re-run stopped, and one came to its end."""
    path = tmp_path / "main.tape.yaml"
    tape = Recording(path)
    run = tape.run(title="agent")
    first, second, third = (tape.add(asked(text), answered(text)) for text in ("a", "b", "c"))
    tape.end()
    tape.cassette.override(second, reply=answered("changed"), take="t")
    over = Recording(path, Cassette.open(tmp_path / "takes" / "main.t.tape.yaml"))
    now = "2999-01-01T00:00:00.000Z" if not late_override else "1999-01-01T00:00:00.000Z"
    stopped = over.run(title="agent", parent=run, mode="replay", at=now)
    live = over.add(asked("d"), answered("d"), diverged="live")
    over.end("raised")
    newest = over.run(title="agent", parent=run, mode="replay", at=now)
    slow = over.add(asked("e"), failed(), diverged="live")
    last = over.add(asked("e"), answered("e"), diverged="live")
    went = [
        f"{run}/{first.id}",
        f"{stopped}/{live.id}",
        f"{run}/{second.id}",
        f"{newest}/{slow.id}",
        f"{newest}/{last.id}",
    ]
    over.end(**({"ran": went} if ran else {}))
    return spans_of(over.cassette.path)


def test_a_cell_of_a_take_shows_what_the_newest_re_run_went_through(tmp_path):
    spans = a_take(tmp_path)
    assert drawn(spans) == [
        "cell [2] agent",
        *(f'  model "{text}"' for text in ("a", "d", "changed", "e")),
        "    model 429 rate_limit",  # sent again: folded, as where it was recorded
        '  model "c"',
    ]
    rows = list(spans.rows())
    assert rows[0].note == "record · 3 new"
    assert [MARKS[row.mark] for row in rows] == [
        "",
        "",
        "diverged",
        "overridden",
        "diverged",
        "retried",
        "superseded",
    ]
    assert spans.totals()["calls"] == 5
    assert rows[0].end - rows[0].start == 9  # as it was recorded, not until the re-run
    assert spans.totals()["spans"] == 7


@pytest.mark.parametrize("how", [{"ran": False}, {"late_override": True}])
def test_where_a_re_run_did_not_end_or_a_reply_was_changed_since_nothing_is_superseded(
    tmp_path, how
):
    spans = a_take(tmp_path, **how)
    assert sorted(drawn(spans)) == sorted(
        [
            "cell [2] agent",
            *(f'  model "{text}"' for text in ("a", "changed", "c", "d", "e")),
            "    model 429 rate_limit",
        ]
    )
    assert all(MARKS[row.mark] != "superseded" for row in spans.rows())


def test_a_parent_that_is_missing_or_a_circle_of_parents_loses_no_row(tmp_path):
    path = tmp_path / "main.tape.yaml"
    tape = Recording(path)
    tape.run()
    tape.add(*tool("lost"), parent="deadbeef")
    first = tape.add(*tool("one", n=1), parent="")
    tape.add(*tool("two", n=2), parent=first.id)
    text = path.read_text()
    second = tape.cassette.calls[-1].id
    path.write_text(
        text.replace(
            f"name: one\n",
            f"name: one\nparent: {second if second.isalnum() and not second.isdigit() else chr(34) + second + chr(34)}\n",
        )
    )
    spans = spans_of(path)
    assert sorted(row.name for row in spans.rows() if row.kind == headers.TOOL) == [
        "lost()",
        "one(n=1)",
        "two(n=2)",
    ]


def test_tools_that_call_tools_a_thousand_deep_are_one_below_the_other(tmp_path):
    tape = Recording(tmp_path / "main.tape.yaml")
    tape.run()
    above = ""
    for number in range(1200):
        above = tape.add(
            *tool("deep", number, n=number), parent=above, at="2026-11-21T20:41:07.600Z"
        ).id
    assert max(node.depth for node in spans_of(tape.cassette.path).nodes) == 1200


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_one_line_of_plain_characters(tmp_path, text):
    tape = Recording(tmp_path / "main.tape.yaml")
    tape.run(title=text)
    tape.add(asked("q"), answered(text), span=(text.replace("\ud800", "?"),))
    tape.add(*tool("look", "x", key=text))
    tape.add(*fetched(f"https://h.test/{'%3Cb%3E' * 200}"))
    for row in spans_of(tape.cassette.path).rows():
        assert (
            len(row.name) <= titles.LONG
            and "\n" not in row.name
            and "\u202e" not in row.name
            and "\x1b" not in row.name
        )
        json.dumps(row, allow_nan=False).encode("utf-8")
        row.name.encode("utf-8")


def test_a_cassette_of_nothing_has_no_rows(tmp_path):
    spans = spans_of(tmp_path / "none.tape.yaml")
    page = spans.page(0)
    assert (page["total"], page["id"]) == (0, []) and set(spans_rows.COLUMNS) < set(page)
    assert spans.totals()["calls"] == 0 and spans.totals()["cost"] is None


def test_a_torn_end_shows_what_was_committed(tmp_path):
    path = everything(tmp_path / "main.tape.yaml")
    path.write_bytes(path.read_bytes() + b'---\ncall: "12')
    assert len(spans_of(path).nodes) == 9


def test_one_broken_record_is_a_row_with_its_error_and_hides_no_other(tmp_path):
    path = everything(tmp_path / "main.tape.yaml")
    path.write_text(path.read_text().replace("text: negative", "text: [negative"))
    spans = Spans(Cassette.open(path, check="marks"))
    spans.refresh()
    rows = list(spans.rows())
    assert len(rows) == 9 and MARKS[rows[1].mark] == "error" and "main.tape.yaml" in rows[1].name


def test_a_take_shows_what_was_put_in_place_and_its_takes_too(tmp_path):
    path = everything(tmp_path / "main.tape.yaml")
    base = Cassette.open(path)
    call = base.calls[0]
    take = base.override(call, reply=answered("positive"), take="glad")
    spans = spans_of(take.path)
    row = next(row for row in spans.rows() if row.id.endswith(call.id))
    assert (row.name, MARKS[row.mark]) == ('"positive"', "overridden")
    again = take.override(call.id, reply=answered("great"), take="glad-2")
    assert '"great"' in [row.name for row in spans_of(again.path).rows()]
    assert '"negative"' in [row.name for row in spans_of(path).rows()]


def test_what_diverged_or_is_stale_is_marked(tmp_path):
    tape = Recording(tmp_path / "main.tape.yaml")
    tape.run()
    for how in ("live", "stale", "hand"):
        tape.add(asked(how), answered(how), diverged=how)
    rows = list(spans_of(tape.cassette.path).rows())
    assert [MARKS[row.mark] for row in rows[1:]] == ["diverged", "stale", "diverged"]


def test_a_reply_edited_by_hand_is_told_as_it_stands(tmp_path):
    path = everything(tmp_path / "main.tape.yaml")
    path.write_text(path.read_text().replace("text: negative", "text: positive"))
    assert '"positive"' in [row.name for row in spans_of(path).rows()]


def test_what_runs_now_stands_below_its_cell_and_is_told_from_the_row_it_begins_at(tmp_path):
    path = everything(tmp_path / "main.tape.yaml")
    spans = spans_of(path)
    before = len(spans.nodes)
    tape = Recording(path, Cassette.open(path))
    tape.clock = 60
    run = tape.run("dddd", title="now")
    told = headers.CallHeader(
        None, "12345678", run, headers.MODEL, "", "post", "https://api.anthropic.com/v1/messages", "", (),
        1795293700.0, 0.0, "", headers.Facts(model="claude"), "", running=True,
    )  # fmt: skip
    spans.book.refresh()
    assert spans.refresh(Pending(run, [told], 1795293701.5)) == before
    cell, call = list(spans.rows())[before:]
    assert (cell.name, MARKS[cell.mark], MARKS[call.mark], call.note) == (
        "[2] now",
        "running",
        "running",
        "claude",
    )
    tape.add(asked("done"), answered("done"))
    spans.book.refresh()
    assert spans.refresh(Pending(run, [], 1795293702.0)) == before + 1
    tape.end()
    spans.book.refresh()
    assert spans.refresh() == before


def test_ten_thousand_calls_make_their_first_page_without_reading_their_bodies(
    tmp_path, monkeypatch
):
    path = tmp_path / "main.tape.yaml"
    tape = Recording(path)
    tape.run()
    tape.add(asked("q"), answered("a"))
    text = path.read_text()
    head, record = (
        text[: text.index('---\ncall: "') if '---\ncall: "' in text else text.index("---\ncall: ")],
        "",
    )
    record = text[len(head) :]
    match = tape.cassette.calls[0].match
    many = "".join(record.replace(match[:8], f"{match[:8]}-{n}", 1) for n in range(2, 10_001))
    path.write_text(head + record + many)
    spans = Spans(Cassette.open(path, check="marks"))
    read = []
    monkeypatch.setattr(
        spans_rows, "happened", lambda told: read.append(told) or titles.happened(told)
    )
    slow = []
    monkeypatch.setattr(headers, "_read_header", lambda entry: slow.append(entry))
    spans.refresh()
    page = spans.page(0, patience=0.0)
    assert page["total"] == 10_001 and len(page["id"]) >= 60
    assert len(read) < 100 and not slow
    rows = len(page["id"])
    while rows < page["total"]:
        rows += len(spans.page(rows, patience=60.0)["id"])
    assert rows == 10_001 and len(read) == 10_000  # each body once


def test_an_id_finds_its_row_and_all_below_it(tmp_path):
    spans = spans_of(everything(tmp_path / "main.tape.yaml"))
    start, stop = spans.below(spans.nodes[2].id)
    assert (
        (start, stop) == (2, 9)
        and spans.node("nothing/here") is None
        and spans.below("x") == (0, 0)
    )


def test_streams_are_named_from_their_folded_events(tmp_path):
    tape = Recording(tmp_path / "main.tape.yaml")
    tape.run()
    events = [
        '{"type":"message_start","message":{"model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":1}}}',
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        *(f'{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{word} "}}}}' for word in ("so", "it", "is", "done")),
        '{"type":"message_stop"}',
    ]  # fmt: skip
    chunks = tuple(f"event: {json.loads(e)['type']}\ndata: {e}\n\n".encode() for e in events)
    reply = Reply(
        200,
        (("content-type", "text/event-stream"),),
        chunks,
        tuple(0.1 * n for n in range(len(chunks))),
    )
    tape.add(asked("stream"), reply)
    assert list(spans_of(tape.cassette.path).rows())[1].name == '"so it is done"'
