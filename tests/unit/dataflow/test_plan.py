"""Which entries run again after a change: what depends on it, and what must be put back or made anew for it."""

from tests.unit.dataflow.restore.test_versions import entry

from tape_jupyter.dataflow.history import Change, History
from tape_jupyter.dataflow.plan import plan_rerun


def roles(planned):
    return {cell.entry: cell.role for cell in planned.cells}


def test_what_depends_on_the_change_runs_again_in_order_with_reasons():
    history = History(
        [
            entry(0, "r = ask()", strong=["r"], r="a"),
            entry(1, "k = 1", strong=["k"], k=1),
            entry(2, "print(r)", reads=["r"]),
        ]
    )
    planned = plan_rerun(history, [0])
    assert (
        roles(planned) == {0: "changed", 2: "downstream"}
        and planned.total == 3
        and planned.downstream == [2]
    )
    assert planned.cells[1].reasons == ("reads `r`, set by [1]",) and planned.cells[1].needs == (0,)
    assert planned.hermetic is None and planned.warnings == ()


def test_a_value_overwritten_since_is_put_back_without_running_its_cell():
    history = History(
        [
            entry(0, strong=["x"], x=[1]),
            entry(1, strong=["r"], r="a"),
            entry(2, reads=["r", "x"], strong=["y"], y=1),
            entry(3, strong=["x"], x=2),
        ]
    )
    assert roles(plan_rerun(history, [1])) == {1: "changed", 2: "downstream"}


def test_a_generator_is_made_anew_and_who_used_it_since_runs_again():
    history = History(
        [
            entry(0, "ids = iter(range(9))", strong=["ids"], ids=iter(range(9))),
            entry(
                1,
                "a = next(ids)",
                reads=["ids"],
                weak=["ids"],
                strong=["a"],
                a=0,
                ids=iter(range(9)),
            ),
            entry(
                2,
                "r = ask(next(ids))",
                reads=["ids"],
                weak=["ids"],
                strong=["r"],
                r="a",
                ids=iter(range(9)),
            ),
            entry(
                3,
                "b = next(ids)",
                reads=["ids"],
                weak=["ids"],
                strong=["b"],
                b=2,
                ids=iter(range(9)),
            ),
        ]
    )
    planned = plan_rerun(history, [2])
    assert roles(planned)[0] == roles(planned)[1] == "restores" and sorted(roles(planned)) == [
        0,
        1,
        2,
        3,
    ]
    assert planned.cells[0].reasons == (
        "makes `ids` for [3]: `ids` holds a range_iterator, which cannot be restored",
    )


def test_who_changed_the_same_object_in_place_since_changes_it_again():
    history = History(
        [
            entry(0, "memo = {}", strong=["memo"], memo={}),
            entry(1, "memo['a'] = ask()", weak=["memo['a']", "memo"], memo={}),
            entry(2, "memo['b'] = 1", weak=["memo['b']", "memo"], memo={}),
        ]
    )
    planned = plan_rerun(history, [1])
    assert 2 in roles(planned)


def test_only_a_fresh_kernel_will_do_where_nothing_made_what_cannot_be_wound_back():
    made = entry(0, reads=["ids"], weak=["ids"], strong=["r"], r="a", ids=iter([1]))
    planned = plan_rerun(History([made]), [0])
    assert planned.hermetic == "`ids` was set before the first cell that was watched"


def test_a_file_that_was_too_large_to_keep_needs_a_fresh_kernel():
    made = entry(0, strong=["r"], r="a")
    made.files["/tmp/big"] = Change(None, None, known=False)
    assert "was not kept" in plan_rerun(History([made]), [0]).hermetic


def test_what_a_proof_found_is_taken_in():
    history = History([entry(0, strong=["r"], r="a"), entry(1, "print(1)")])
    assert roles(plan_rerun(history, [0], learned={1: "its output differs"})) == {
        0: "changed",
        1: "downstream",
    }


def test_calls_of_the_tape_are_counted_and_what_cannot_be_known_is_said():
    one, two = entry(0, strong=["r"], r="a"), entry(1, reads=["r", "*"])
    one.run, two.run, two.notes = "r-1", "r-2", ("starts a process: it may read any file",)
    planned = plan_rerun(History([one, two]), [0], calls={"r-1": 2, "r-2": 3}, take="t")
    assert (planned.from_tape, planned.maybe_live, planned.take) == (5, 3, "t")
    more = plan_rerun(
        History([one, two]), [0], calls={"r-1": 2, "r-2": 3}, later={"r-1": 1, "r-9": 4}
    )
    assert more.maybe_live == 4  # what the changed cell asked after its changed reply, too
    assert (
        planned.warnings[0] == "[2] starts a process: it may read any file"
        and "any name" in planned.warnings[1]
    )


def test_the_record_is_what_the_view_draws():
    planned = plan_rerun(
        History([entry(0, "%%tape record\n# why\nr = ask()", strong=["r"], r="a")]), [0]
    )
    assert planned.record()["cells"] == [
        {"entry": 0, "cell": "c0", "number": 1, "title": "why", "reasons": ["holds the changed reply"], "role": "changed", "ticked": True, "needs": [],
         "asks": 0, "cost": None}
    ]  # fmt: skip
    assert set(planned.record()) == {
        "take",
        "total",
        "cells",
        "from_tape",
        "maybe_live",
        "counted",
        "warnings",
        "hermetic",
        "seconds",
    }


def test_the_two_reasons_that_tell_most_are_said():
    history = History(
        [
            entry(0, strong=["a", "b", "c", "d"], a=1, b=2, c=3, d=4),
            entry(1, reads=["a", "b", "c", "d"]),
        ]
    )
    assert plan_rerun(history, [0]).cells[1].reasons == (
        "reads `a`, set by [1]",
        "reads `b`, set by [1]",
        "and 2 more",
    )


def test_a_thousand_cells_make_a_plan_no_larger_than_what_depends():
    chain = [entry(i, reads=[f"x{i - 1}"], strong=[f"x{i}"], **{f"x{i}": i}) for i in range(1000)]
    assert len(plan_rerun(History(chain), [500]).cells) == 500


def test_rows_and_heading_count_runs_where_a_cell_ran_more_than_once():
    once = [entry(0, strong=["r"], r="a"), entry(1, "x = r", reads=["r"]), entry(2, "y = 1")]
    for each, cell in zip(once, "abc", strict=True):
        each.cell = cell
    planned = plan_rerun(History(once), [0])
    assert (planned.total, planned.counted) == (3, "cells")
    once[2].cell = "b"
    planned = plan_rerun(History(once), [0])
    assert (planned.total, planned.counted) == (3, "runs")
