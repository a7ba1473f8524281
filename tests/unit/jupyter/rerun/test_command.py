"""What people type and read of plans and re-runs."""

import itertools
from types import SimpleNamespace

import pytest

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter.rerun import command
from tape_jupyter.dataflow.plan import Plan, PlanCell
from tape_jupyter.jupyter.rerun.command import open_take, plan_text, print_plan, run_rerun, ticked
from tests.harness.tapes import churn

PLAN = Plan(
    (
        PlanCell(2, "c-2", 3, "mood = ask()", ("holds the changed reply",), "changed"),
        PlanCell(5, "c-5", None, "report", ("reads `mood`, set by [3]", "and 2 more"), "downstream"),
    ),
    9, ("[3] starts a process",), "`rows` is from before the first cell", 4, 1, take="angry",
)  # fmt: skip


def test_the_plan_reads_as_a_table_with_its_reasons():
    lines = plan_text(PLAN).splitlines()
    assert lines[0] == "Re-run 2 of 9 cells with take angry: 4 recorded calls, 1 may go live"
    assert lines[1].split() == [
        "x",
        "[3]",
        "mood",
        "=",
        "ask()",
        "holds",
        "the",
        "changed",
        "reply",
    ]
    assert lines[2].endswith("reads `mood`, set by [3]; and 2 more")
    assert lines[3:] == [
        "  ! [3] starts a process",
        "  ! only a fresh kernel gets this right: `rows` is from before the first cell",
    ]


@pytest.mark.parametrize(
    ("cost", "said"), [(0.00042, " (about $0.00042)"), (0.0, ""), (None, " (price not known)")]
)
def test_the_plan_says_which_cells_may_ask_and_at_what_price(cost, said):
    cells = (
        PlanCell(2, "c-2", 3, "mood = ask()", (), "changed", asks=1, cost=0.0),
        PlanCell(5, "c-5", 6, "report", (), "downstream", asks=2, cost=cost),
    )
    line = plan_text(Plan(cells, 9, from_tape=4, maybe_live=3, take="angry")).splitlines()[0]
    assert line.endswith(f"4 recorded calls, 3 may go live: 1 of [3], 2 of [6]{said}")


def test_cells_are_ticked_by_their_number_or_id():
    assert ticked(PLAN, ["3"]) == {2} and ticked(PLAN, ["[3]", "c-5"]) == {2, 5}
    with pytest.raises(TapeUsageError, match="'4' is not a cell of this plan; there are: 3, c-5"):
        ticked(PLAN, ["4"])


def test_without_a_name_the_default_take_is_meant_and_else_the_newest(tmp_path):
    from tape_jupyter.cassette.takes import files
    from tape_jupyter.cassette.cassette import Cassette

    root = churn(tmp_path)
    with pytest.raises(TapeUsageError, match="has no takes"):
        open_take(root)
    base = Cassette.open(root)
    call = next(entry for entry in base.calls if entry.head()["kind"] == "tool")
    for name in ("first", "second"):
        base.override(f"{call.run}/{call.id}", value={}, take=name)
    assert open_take(root).chain[-1] == "second"
    files.choose(root, "first")
    assert open_take(root).chain[-1] == "first"
    with pytest.raises(TapeUsageError, match="no take 'third'"):
        open_take(root, "third")


def test_a_take_is_named_by_a_word_or_by_take_as_in_a_terminal(tmp_path, monkeypatch):
    runner = SimpleNamespace(parked=None, parents=SimpleNamespace(now=str))
    monkeypatch.setattr(command.rerunner, "rerunner_of", lambda cells: runner)
    root = churn(tmp_path)
    asks = (
        lambda line: run_rerun(None, root, line, print),
        lambda line: print_plan(None, root, line),
    )
    for ask, line in itertools.product(asks, ("third", "--take third", "--take=third third")):
        with pytest.raises(TapeUsageError, match="no take 'third'"):
            ask(line)
    for ask in asks:
        with pytest.raises(TapeUsageError, match="two takes are named, 'a' and 'b': name one"):
            ask("a --take b")


@pytest.mark.parametrize("line", ["--on-divergence guess", "a b", "'a", "--cells"])
def test_a_line_that_makes_no_sense_is_explained_before_anything_runs(tmp_path, line):
    with pytest.raises(TapeUsageError, match="%tape help"):
        run_rerun(None, tmp_path, line, print)
