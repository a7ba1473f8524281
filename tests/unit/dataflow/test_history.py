"""The history keeps what really ran, however the notebook was changed since."""

import json

import pytest

from tape_jupyter.dataflow.history import Change, Execution, History, Step, covers, name_of


@pytest.mark.parametrize(
    ("written", "read", "seen"),
    [
        ("mood", "mood", True),
        ("mood", "moods", False),
        ("memo", "memo['a']", True),
        ("memo['a']", "memo", True),
        ("memo['a']", "memo['b']", False),
        ("agent.log", "agent.log[0]", True),
        ("*", "mood", True),
        ("mood", "*", True),
        ("*", "ambient:cwd", False),
        ("file:*", "file:/tmp/a", True),
        ("file:/tmp/a", "file:*", True),
        ("file:/tmp/a", "file:/tmp/ab", False),
        ("output:3", "output:*", True),
        ("library:json", "library:jsonx", False),
    ],
)
def test_a_reader_sees_a_change_of_what_it_reads_of_its_parts_and_of_its_whole(written, read, seen):
    assert covers(written, read) is seen


def test_what_is_no_name_has_none():
    assert name_of("memo['a']") == "memo"
    assert name_of("file:/tmp/a") is None
    assert name_of("*") is None


def test_a_cell_that_ran_twice_has_two_entries_and_the_newest_counts():
    history = History()
    first, other, again = (history.begin(cell, "x", n) for n, cell in enumerate("aba"))
    assert [e.index for e in history.of_cell("a")] == [0, 2]
    assert list(history.latest().values()) == [other, again]
    first.run = again.run = "r-1"
    assert history.of_run("r-1") is again
    assert history.of_run("") is None


def test_an_entry_knows_the_sum_of_its_steps():
    steps = (
        Step(1, strong=frozenset({"a"})),
        Step(2, reads=frozenset({"a"}), weak=frozenset({"b"})),
    )
    entry = Execution(0, "c", "a = 1\nb.append(a)", 4, steps=steps)
    assert (entry.reads, entry.strong, entry.writes) == ({"a"}, {"a"}, {"a", "b"})
    assert entry.title == "[4]"


def test_its_summary_is_plain_json_and_holds_no_value_of_the_notebook():
    entry = Execution(
        0, "c", "a = secret()", kept={"a": "hunter2"}, files={"/tmp/x": Change(b"hunter2", None)}
    )
    assert "hunter2" not in json.dumps(History([entry]).summary())
