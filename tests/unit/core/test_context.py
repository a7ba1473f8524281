"""Strands are numbered in the program's own order, whatever order threads run in."""

from tape_jupyter.core.context import SENDING, Origin


def test_children_are_numbered_as_they_are_made_and_theirs_below_them():
    cell = Origin("the cell")
    first, second = cell.spawn(), cell.spawn()
    assert (cell.lineage, first.lineage, second.lineage, second.spawn().lineage) == (
        "",
        "0",
        "1",
        "1.0",
    )
    assert second.cell == "the cell"


def test_what_a_tap_starts_while_sending_takes_no_number_of_the_program():
    cell = Origin("the cell")
    token = SENDING.set(True)
    try:
        assert cell.spawn().lineage == "~"
    finally:
        SENDING.reset(token)
    assert cell.spawn().lineage == "0"


def test_children_that_run_the_same_are_numbered_among_themselves():
    cell = Origin("the cell")
    names = [cell.spawn(name).lineage for name in ("ask", "", "wait", "ask", "")]
    assert names == ["ask-0", "0", "wait-0", "ask-1", "1"]


def test_a_replay_of_an_earlier_versions_recording_numbers_them_all_but_a_librarys_threads():
    cell = Origin("the cell", counted=True)
    made = [
        cell.spawn(name, kind=sort)
        for name, sort in (("TMonitor", "TMonitor"), ("ask", ""), ("wait", ""))
    ]
    assert [child.lineage for child in made] == ["TMonitor0", "0", "1"]
    assert made[1].spawn("ask").lineage == "0.0"
