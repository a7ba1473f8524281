"""Which entry gave a thing its state, and whether that state can be put back."""

from tape_jupyter.dataflow.history import Change, Execution, History, Step
from tape_jupyter.dataflow.restore.restore import hold_values
from tape_jupyter.dataflow.restore.versions import (
    BEGINNING,
    Versions,
    changed_by,
    needed_by,
    thing_of,
)


def entry(index, source="", reads=(), strong=(), weak=(), **values):
    """An entry as the tracker leaves it: `values` are what names hold after it."""
    changed = frozenset(n for n in {*strong, *weak} if n.isidentifier())
    made = Execution(
        index, f"c{index}", source, index + 1, outcome="ok", seconds=0.01, outputs=f"o{index}"
    )
    made.steps = (Step(1, reads=frozenset(reads), strong=frozenset(strong), weak=frozenset(weak)),)
    made.changed, made.kept = changed, dict(values)
    made.after = {n: repr(values.get(n, index)) for n in changed}
    made.before = dict.fromkeys(set(reads) & changed | set(weak), "?")
    hold_values(made)
    return made


def test_a_resource_is_put_back_as_the_whole_thing_it_is_part_of():
    assert thing_of("memo['a']") == "memo" and thing_of("agent.log") == "agent"
    assert thing_of("file:/tmp/a") == "file:/tmp/a" and thing_of("file:*") is None
    assert thing_of("library:json") is None and thing_of("*") is None


def test_versions_before_next_and_last():
    history = History(
        [entry(0, strong=["x"], x=[1]), entry(1, weak=["x"], x=[1]), entry(2, reads=["x"])]
    )
    versions = Versions(history)
    assert versions.before("x", 0) == BEGINNING and versions.before("x", 2) == 1 == versions.last(
        "x"
    )
    assert (
        versions.next("x", 0) == 1
        and versions.next("x", 1) is None
        and versions.changers("y") == []
    )
    assert versions.is_new_value("x", 0) and not versions.is_new_value("x", 1)


def test_what_an_entry_needs_and_changes():
    made = entry(0, reads=["x", "json.dumps"], strong=["y"], y=1)
    made.files["/tmp/a"] = Change(None, b"a")
    assert changed_by(made) == {"y", "file:/tmp/a"} and needed_by(made) == {
        "x",
        "json",
        "y",
        "file:/tmp/a",
    }


def test_what_can_be_put_back_is_not_lost():
    history = History(
        [
            entry(0, strong=["x"], x=[1]),
            entry(1, strong=["it"], it=iter([1])),
            entry(2, strong=["big"]),
        ]
    )
    versions = Versions(history)
    assert versions.lost("x", 0) is None and versions.lost("x", BEGINNING) is None
    assert versions.lost("it", 1) == "`it` holds a list_iterator, which cannot be restored"
    assert versions.lost("big", 2) == "`big` is too large to keep"


def test_a_file_that_was_too_large_to_keep_is_lost():
    made = entry(0)
    made.files["/tmp/a"] = Change(None, None, known=False)
    versions = Versions(History([made]))
    assert versions.lost("file:/tmp/a", BEGINNING) == "/tmp/a as it was before [1] was not kept"


def test_a_name_from_before_the_first_watched_cell_is_lost_once_it_was_changed():
    changed = entry(0, weak=["old"], old=[1])
    assert "before the first cell" in Versions(History([changed])).lost("old", BEGINNING)
