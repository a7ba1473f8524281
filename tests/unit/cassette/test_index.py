"""The index of a cassette and of a take: what is there, found by what was asked, and kept up while others append."""

import pytest

from tape_jupyter.core.call import FunctionCall, Value, Where
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.records import Head
from tests.harness.tapes import Recorder, answered, asked, churn


def test_runs_calls_and_ends_are_found_by_name(tmp_path):
    tape = Cassette.open(churn(tmp_path))
    first = tape.calls[0]
    assert tape.call(first.run, first.id) is first and tape.call("r-0", first.id) is None
    assert [run["run"] for run in tape.runs] == list(tape.ended) and tape.ended[
        tape.runs[2]["run"]
    ]["outcome"] == "raised"
    assert [each.run for each in tape.matching(first.match)] == [
        run["run"] for run in tape.runs[:2]
    ]
    assert list(tape.tools) == ["lookup"] and len(tape) == 3 and tape.torn == 0


def test_a_take_is_indexed_after_what_it_is_of_and_shares_nothing_that_changes(tmp_path):
    main = Cassette.open(churn(tmp_path))
    take = main.take("t")
    own = Recorder.__new__(Recorder)
    own.cassette, own.secrets, own.session = take, Recorder(main.path).secrets, "s9"
    own.run("cccc", (asked("new"), answered("yes")), (asked("Which region?"), answered("East")))
    for tape, calls in (
        (take, 5),
        (Cassette.open(take.path), 5),
        (main, 3),
        (Cassette.open(main.path), 3),
    ):
        assert len(tape.calls) == calls and [entry.place for entry in tape.calls] == list(
            range(calls)
        )
    match = main.calls[0].match
    assert len(take.matching(match)) == 3 and len(main.matching(match)) == 2
    assert take.size == main.size + take.path.stat().st_size


def test_the_calls_of_a_tool_are_known_by_its_name_when_they_are_appended_as_when_they_are_read(
    tmp_path,
):
    written = Recorder(tmp_path / "a.tape.yaml")
    written.run(
        "aaaa", (asked("hi"), answered("yes")), (FunctionCall("lookup", {"n": 1}), Value(1))
    )
    for tape in (written.cassette, Cassette.open(written.cassette.path)):
        assert {name: [entry.id for entry in calls] for name, calls in tape.tools.items()} == {
            "lookup": [tape.calls[1].id]
        }
    take = written.cassette.override(written.cassette.calls[1], value=7)
    assert list(take.tools) == ["lookup"]


def test_what_another_kernel_appends_to_a_take_is_added_in_place(tmp_path):
    main = Cassette.open(churn(tmp_path))
    mine = main.override(main.calls[1], reply=answered("East"), take="t")
    theirs = Cassette.open(mine.path)
    theirs.override(main.calls[2], value=7)
    assert len(mine.overrides) == 1 and mine.refresh() and len(mine.overrides) == 2
    assert mine.calls[2].reply().value == 7 and not mine.refresh()


def test_the_headers_of_two_branches_that_were_merged_must_name_one_base(tmp_path):
    main = Cassette.open(churn(tmp_path))
    take = main.override(main.calls[1], reply=answered("East"), take="t")
    text = take.path.read_text()
    take.path.write_text(text + text.replace("East", "West"))
    assert len(Cassette.open(take.path).overrides) == 2
    import re

    take.path.write_text(text + re.sub(r"bytes: \d+", "bytes: 12", text))
    with pytest.raises(CassetteError, match="names another base than the take's first"):
        Cassette.open(take.path)


def test_a_call_of_a_task_many_tasks_deep_keeps_its_lineage_and_its_tool(tmp_path):
    recorder = Recorder(tmp_path / "main.tape.yaml")
    lineage = ".".join("0" * 60)
    run = recorder.run("cell", outcome="")
    head = Head(
        "a1b2c3d4",
        run,
        "ab" * 16,
        "tool",
        Where(lineage=lineage),
        "2026-11-21T20:41:07.600Z",
        0.1,
        {},
        "n" * 120,
    )
    recorder.cassette.append_call(head, FunctionCall("n" * 120, {}), Value("x"), recorder.secrets)
    (read,) = Cassette.open(tmp_path / "main.tape.yaml").calls
    assert read.lineage == lineage == recorder.cassette.calls[0].lineage
    assert list(read.book.tools) == ["n" * 120]


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ("mode: record", "mode: record\nignore: true", "`ignore` lists JSON paths"),
        ("mode: record", "mode: record\nignore:\n  - 7", "`ignore` lists JSON paths"),
        ("outcome: ok", "outcome: {}", "`outcome` is a word"),
        ("outcome: ok", "outcome: ok\nalike: 5", "`alike` lists call ids"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_line(tmp_path, was, now, why):
    path = churn(tmp_path)
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now, 1))
    with pytest.raises(CassetteError, match=why) as caught:
        Cassette.open(path)
    assert caught.value.line
