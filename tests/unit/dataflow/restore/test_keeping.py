"""How long values are kept that cells bound anew: as long as a re-run may ask for them, within a budget."""

from tests.unit.dataflow.restore.test_versions import entry

from tape_jupyter.dataflow.history import History
from tape_jupyter.dataflow.restore.versions import Keeper
from tape_jupyter.dataflow.restore.versions import Versions

BIG = 100_000


def big():
    return bytearray(BIG)


def ran(*entries, budget=1 << 20, called=True):
    """A history and its keeper, after cells ran; the first made a call."""
    history = History()
    keeper = Keeper(history, budget)
    for each in entries:
        each.calls = called and not len(history)
        keeper.begins()
        history.entries.append(each)
        keeper.ended()
    return history, keeper


def made(index, **values):
    """A cell that binds names anew."""
    return entry(index, strong=values, **values)


def kept(history):
    return [sorted(each.kept) for each in history]


def test_what_no_cell_asked_for_is_let_go_when_it_is_bound_anew():
    history, _ = ran(made(0, x=big(), y=big()), entry(1, reads=["y"]), made(2, x=1, y=1))
    assert kept(history) == [["y"], [], ["x", "y"]]
    assert Versions(history).lost("x", 0) is None and Versions(history).unread("x", 0)


def test_what_a_cell_changes_in_place_or_may_read_is_kept():
    history, _ = ran(
        made(0, x=[1], y=[1]), entry(1, weak=["x"], x=[2]), entry(2, reads=["*"]), made(3, x=1, y=1)
    )
    assert kept(history) == [["x", "y"], ["x"], [], ["x", "y"]]


def test_before_any_call_only_what_is_small_is_kept():
    cells = made(0, x=big(), n=1), entry(1, reads=["x", "n"]), made(2, x=1, n=2)
    assert kept(ran(*cells, called=False)[0]) == [["n"], [], ["n", "x"]]


def test_the_oldest_goes_first_where_the_budget_is_spent():
    cells = [
        each for i in range(0, 40, 2) for each in (made(i, x=big()), entry(i + 1, reads=["x"]))
    ]
    history, keeper = ran(*cells)
    there = [each.index for each in history if each.kept]
    assert (
        keeper.total <= keeper.budget and there == list(range(there[0], 40, 2)) and len(there) == 10
    )
    lost = Versions(history).lost("x", 0)
    assert (
        lost
        == "what `x` held after [1] was discarded: the values that are kept take 256 MB together"
    )
    assert Versions(history).lost("x", 36) is None


def test_a_value_that_the_notebook_holds_costs_what_was_copied_of_it():
    value = [1] * (BIG // 8)
    _, keeper = ran(made(0, x=value), entry(1, weak=["x"], x=value))
    assert 2 * BIG <= keeper.total < 3 * BIG


def test_what_was_let_go_and_is_asked_for_since_is_lost():
    history, _ = ran(made(0, x=big()), entry(1), made(2, x=1))
    history.entries[1] = entry(1, reads=["x"])
    assert not Versions(history).unread("x", 0) and "no cell read it" in Versions(history).lost(
        "x", 0
    )


def test_an_earlier_value_does_not_stand_for_one_that_was_let_go():
    history, _ = ran(
        made(0, x=[1]), entry(1, reads=["x"]), made(2, x=big()), entry(3, reads=["x"]), made(4, x=1)
    )
    history[2].let_go("x", "`{name}` of {title} is gone")
    assert (
        Versions(history).lost("x", 0) is None
        and Versions(history).lost("x", 2) == "`x` of [3] is gone"
    )


def test_while_a_re_run_lasts_nothing_is_let_go():
    history, keeper = ran(made(0, x=big()), entry(1, reads=["x"]), budget=10)
    keeper.moved()
    keeper.begins()
    history.entries.append(made(2, x=1))
    keeper.ended()
    assert kept(history)[2] == ["x"]
    history.entries[0] = history.entries.pop()
    history[0].index = 0
    keeper.begins()
    history.entries.append(made(2, x=2))
    keeper.ended()
    assert kept(history) == [["x"], [], ["x"]]
