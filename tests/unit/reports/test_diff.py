"""How two cassettes differ, in the words of their records: one word changed is a small diff."""

from dataclasses import replace

import tape_jupyter as tape
from tape_jupyter.reports import diff
from tape_jupyter.commands import takes
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.reports.diff import drifts
from tests.harness.seen_runs import claude, claude_said, recorded, tool
from tests.harness.tapes import Recorder, answered, asked, churn

STREAM = b"".join(
    b'data: {"delta": {"text": "%s"}}\n\n' % word
    for word in (b"North ", b"lost ", b"the ", b"most")
)


def test_a_cassette_is_not_different_from_itself(tmp_path):
    path = churn(tmp_path)
    assert tape.diff(path, str(path)) == []
    assert diff.diff_text([], "a", "b") == "a and b answer every call the same way"


def test_one_word_changed_is_one_line_of_diff_and_the_rest_is_silent(tmp_path):
    main = Cassette.open(churn(tmp_path))
    take = main.override(main.calls[1], reply=answered("East"), take="t")
    (found,) = tape.diff(main, take)
    assert (found.what, found.a, found.b) == ("changed", found.b, found.a)
    assert [line for line in found.lines if line[0] in "+-"] == [
        "-      text: South",
        "+      text: East",
    ]
    told = diff.diff_text([found], "main", "main > t")
    assert (
        told.startswith("--- main\n+++ main > t\nchanged: ") and "(model claude-sonnet-4-5" in told
    )


def test_a_stream_is_compared_as_it_reads_and_not_as_it_was_cut(tmp_path):
    path = tmp_path / "m.tape.yaml"
    recorder = Recorder(path)
    kind = (("content-type", "text/event-stream"),)
    recorder.run("aaaa", (asked("x"), Reply(200, kind, (STREAM,), (0.1,))))
    main = Cassette.open(path)
    cut = Reply(200, kind, (STREAM[:9], STREAM[9:]), (0.1, 0.5))
    assert tape.diff(main, main.override(main.calls[0], reply=cut, take="cut")) == []
    other = Reply(200, kind, (STREAM.replace(b"North", b"South"),), (0.1,))
    (found,) = tape.diff(main, main.override(main.calls[0], reply=other, take="other"))
    assert any("South lost the most" in line for line in found.lines) and len(found.lines) < 8


def test_headers_are_told_where_nothing_else_differs(tmp_path):
    main = Cassette.open(churn(tmp_path))
    reply = main.calls[1].reply()
    take = main.override(
        main.calls[1],
        reply=replace(reply, headers=(*reply.headers, ("retry-after", "20"))),
        take="t",
    )
    (found,) = tape.diff(main, take)
    assert '+  retry-after: "20"' in found.lines


def test_calls_of_other_runs_are_paired_by_what_was_asked(tmp_path):
    one, two = tmp_path / "1.tape.yaml", tmp_path / "2.tape.yaml"
    tool = FunctionCall("lookup", {"id": 7})
    Recorder(one).run("aaaa", (asked("x"), answered("A")), (asked("x"), answered("B")), (tool, Value(1)), (asked("only 1"), answered("C")))  # fmt: skip
    Recorder(two).run("aaaa", (asked("x"), answered("A")), (asked("x"), answered("Z")), (tool, Value(1)), (asked("only 2"), answered("C")))  # fmt: skip
    found = tape.diff(one, two)
    assert [each.what for each in found] == ["changed", "only in A", "only in B"]
    assert "-      text: B" in found[0].lines and "+      text: Z" in found[0].lines
    assert found[1].record()["title"].startswith("model")


def test_long_diffs_are_cut_and_the_rest_counted(tmp_path):
    main = Cassette.open(churn(tmp_path))
    take = main.override(main.calls[1], reply="\n".join(map(str, range(500))), take="t")
    (found,) = tape.diff(main, take)
    assert len(found.lines) == diff.LINES + 1 and "more lines" in found.lines[-1]


def test_what_answered_otherwise_is_told_beside_the_differences(tmp_path):
    one, _ = recorded(tmp_path / "one.tape.yaml", (claude(), claude_said("m-20250101")), tool(result=1), kit={"distributions": ["httpx==0.28"]})  # fmt: skip
    other, _ = recorded(tmp_path / "two.tape.yaml", (claude(), claude_said("m-20261001")), tool(result=1), kit={"distributions": ["httpx==0.29"]})  # fmt: skip
    told = [str(each) for each in drifts(one, other)]
    assert told == [
        "answered model changed: m-20250101 -> m-20261001",
        "library httpx changed: 0.28 -> 0.29",
    ]
    assert drifts(one, one) == []
    text, found = takes.compare_takes(one, other)
    assert text.endswith("drift: library httpx changed: 0.28 -> 0.29")
    assert [each["what"] for each in takes.difference_records(one, other, found)] == [
        "changed",
        "drift",
        "drift",
    ]
