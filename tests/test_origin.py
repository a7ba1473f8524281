"""Strands are numbered in the program's own order, whatever order threads run in."""

from tape_jupyter.origin import SENDING, Origin


def test_children_are_numbered_as_they_are_made_and_theirs_below_them():
    cell = Origin("the cell")
    first, second = cell.spawn(), cell.spawn()
    assert (cell.lineage, first.lineage, second.lineage, second.spawn().lineage) == ("", "0", "1", "1.0")
    assert second.cell == "the cell"


def test_what_a_tap_starts_while_sending_takes_no_number_of_the_program():
    cell = Origin("the cell")
    token = SENDING.set(True)
    try:
        assert cell.spawn().lineage == "~"
    finally:
        SENDING.reset(token)
    assert cell.spawn().lineage == "0"


def test_children_of_a_sort_take_no_number_of_the_others():
    cell = Origin("the cell")
    assert [cell.spawn(sort).lineage for sort in ("Monitor", "", "Monitor", "")] == ["Monitor0", "0", "Monitor1", "1"]
