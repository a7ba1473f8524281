"""What is reported of a cell once it is over, live and replayed alike."""

import pytest

import tape_jupyter as tape
from tape_jupyter.session.summary_rows import row_of_entry
from tests.harness.provider import Provider, Scripted
from tests.harness.taped_cells import ask, on_tape


@pytest.fixture(scope="module")
def provider():
    with Provider() as provider:
        provider.script(
            "/v1/chat/completions",
            Scripted(
                529,
                {"content-type": "application/json"},
                [b'{"type":"error"}'],
                reason="Overloaded",
            ),
        )
        yield provider


@tape.tool
def divide(a: int, b: int) -> float:
    return a / b


def program(provider):
    import httpx

    ask(provider, "How many words are these?")
    httpx.post(
        f"{provider.url}/v1/chat/completions", json={"model": "m", "max_tokens": 1, "messages": []}
    )
    divide(4, 2)
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)


def test_rows_of_a_replay_tell_what_the_rows_of_the_recording_told(provider, path):
    with tape.recording(path) as live:
        program(provider)
    with tape.replaying(path) as again:
        program(provider)
    words = [
        [
            (r.id, r.kind, r.name, r.provider, r.tokens_in, r.tokens_out, r.error)
            for r in b.report.calls
        ]
        for b in (live, again)
    ]
    assert words[0] == words[1]
    assert [r.kind for r in live.report.calls] == ["model", "model", "tool", "tool"]
    assert [r.error for r in live.report.calls] == [
        "",
        "529 Overloaded",
        "",
        "ZeroDivisionError: division by zero",
    ]
    assert live.report.calls[0].tokens_out == 9
    recorded = [entry.head()["seconds"] for entry in on_tape(path).calls]
    assert [r.seconds for r in again.report.calls] == recorded
    rows_first = zip(
        live.report.calls, recorded, strict=True
    )  # made before the record, which rounds to 0.0001
    assert all(row.seconds <= told + 0.0001 for row, told in rows_first)


def test_a_row_is_read_from_the_head_of_a_record_alone(provider, path):
    with tape.recording(path):
        program(provider)
    path.write_text(path.read_text().replace("status: 200", "status: not one"))
    entry = tape.open(path, check="marks").calls[0]
    assert row_of_entry(entry).name == "m"


def test_a_report_prints_its_calls(provider, path):
    with tape.recording(path) as block:
        ask(provider, "which order?")
    printed = str(block.report.calls)
    assert printed.startswith("[ReportRow(id=") and "kind='model'" in printed


def test_edits_are_named_up_to_three(provider, path):
    texts = ["one", "two words", "three words now", "four of them now", "five of them are here"]
    with tape.recording(path):
        live = [ask(provider, text) for text in texts]
    path.write_text(path.read_text().replace("You wrote", "I read"))
    with tape.replaying(path) as block:
        assert [ask(provider, text) for text in texts] == [
            text.replace("You wrote", "I read") for text in live
        ]
    ids = [entry.id for entry in on_tape(path).calls]
    assert block.report.notes == [f"edited by hand: {', '.join(ids[:3])} and 2 more"]


def test_a_torn_tail_is_told_and_what_is_whole_replays(provider, path):
    with tape.recording(path):
        live = ask(provider, "one")
    with path.open("a") as file:
        file.write("---\ncall: ")
    with tape.replaying(path) as block:
        assert ask(provider, "one") == live
    assert any("never finished" in note for note in block.report.notes)


def test_a_cell_that_raised_is_incomplete_and_its_refusals_are_listed(provider, path):
    with tape.recording(path):
        ask(provider, "one")
    block = tape.replaying(path)
    with pytest.raises(tape.UnmatchedCall), block:
        ask(provider, "two")
    assert block.report.incomplete
    assert [type(miss) for miss in block.report.misses] == [tape.UnmatchedCall]
    assert (block.report.mode, block.report.path) == ("replay", path)


def test_rows_stand_in_the_order_in_which_the_calls_began(path):
    """A tool that asks another one begins first and ends last."""

    @tape.tool
    def outer():
        return divide(4, 2)

    with tape.recording(path) as made:
        outer()
    assert [row.name for row in made.report.calls] == ["outer", "divide"]


def test_a_call_that_goes_live_in_a_replay_stands_among_those_that_were_played(path):
    def program(second):
        for a in (4, second, 8):
            divide(a, 2)

    with tape.recording(path):
        program(6)
    with tape.replaying(path, on_divergence="live") as made:
        program(7)
    assert [row.live for row in made.report.calls] == [False, True, False]
