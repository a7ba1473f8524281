"""Every cell that depends on a changed reply is told, and few others.

The truth of the cases was found by running each history again with another reply and comparing outputs, values, files
and the state of the process. `hidden_state.json` holds ways in which state hides: in libraries, modules, closures,
files, tasks, magics; `everyday.json` what notebooks are made of: agents, histories of messages, frames, caches, plots.
`shared_objects.json` holds objects that are at two places and cells whose neighbours look alike: these are told to
depend more often than they do. `parts.json` has objects of which a part is changed, and calls that stand behind an `and`
or an `if`; `agents.json` more of these, and notebooks of agents that were written before anybody looked how they are told.
"""

import json
import os
from pathlib import Path

import pytest

import flow_score
from tape_jupyter.dataflow.downstream import HOLDS, Taints, downstream, traced
from tape_jupyter.dataflow.history import Execution, History, Step

EVERY = 1 if os.environ.get("TAPE_NIGHTLY") else 4
CASES = Path(__file__).parents[2] / "flow_cases"
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="each case runs in a forked process"
)


@pytest.mark.parametrize(
    "files", [("public.json", "parts.json"), ("hidden_state.json",)], ids="-".join
)
def test_no_cell_that_depends_is_missed_and_four_of_five_that_are_told_depend(files):
    cases = [case for file in files for case in json.loads((CASES / file).read_text())]
    rows, failures = flow_score.score_elsewhere(cases[::EVERY])
    missed = {name: sorted(cells) for name, _, cells, *_ in rows if cells}
    assert not failures
    assert not missed
    assert flow_score.sums(rows)[1] >= 0.80


@pytest.mark.night
def test_no_cell_is_missed_where_a_part_of_something_shared_is_changed():
    rows, failures = flow_score.score_elsewhere(json.loads((CASES / "same_parts.json").read_text()))
    assert not failures
    assert not {name: sorted(cells) for name, _, cells, *_ in rows if cells}
    assert flow_score.sums(rows)[1] >= 0.80


@pytest.mark.night
def test_no_cell_of_an_agent_is_missed_where_objects_are_made_of_parts():
    rows, failures = flow_score.score_elsewhere(json.loads((CASES / "agents.json").read_text()))
    assert not failures
    assert not {name: sorted(cells) for name, _, cells, *_ in rows if cells}
    assert flow_score.sums(rows)[1] >= 0.70


@pytest.mark.night
def test_no_cell_is_missed_in_notebooks_that_were_written_before_anybody_looked():
    rows, failures = flow_score.score_elsewhere(json.loads((CASES / "notebooks.json").read_text()))
    assert not failures
    assert not {name: sorted(cells) for name, _, cells, *_ in rows if cells}
    assert flow_score.sums(rows)[1] >= 0.50


@pytest.mark.night
def test_no_cell_is_missed_where_objects_are_at_two_places_though_neighbours_are_taken_in():
    rows, failures = flow_score.score_elsewhere(
        json.loads((CASES / "shared_objects.json").read_text())
    )
    assert not failures
    assert not {name: sorted(cells) for name, _, cells, *_ in rows if cells}
    assert flow_score.sums(rows)[1] >= 0.80


@pytest.mark.spread(3)
@pytest.mark.parametrize("file", ["public.json", "shared_objects.json", "everyday.json"])
def test_nine_of_ten_cells_that_run_again_had_to_and_all_show_what_a_whole_run_shows(file):
    rows, failures = flow_score.score_elsewhere(
        json.loads((CASES / file).read_text())[::EVERY], flow_score.score_reruns
    )
    needless, right = (sum(len(row[place]) for row in rows) for place in (1, 2))
    assert not failures
    assert not {row[0]: sorted(row[3]) for row in rows if row[3]}
    assert right / (right + needless) >= 0.89


def entry(index, *steps):
    return Execution(index, f"c{index}", "", index + 1, steps=steps)


def test_what_is_bound_anew_is_clean_again():
    history = History(
        [
            entry(0, Step(1, strong=frozenset({"r"}))),
            entry(1, Step(1, reads=frozenset({"r"}))),
            entry(2, Step(1, strong=frozenset({"r"}))),
            entry(3, Step(1, reads=frozenset({"r"}))),
        ]
    )
    assert downstream(history, [0]) == {0: (HOLDS,), 1: ("reads `r`, set by [1]",)}


def test_what_a_cell_did_before_the_call_is_as_it_was():
    history = History(
        [
            entry(0, Step(1, 1, strong=frozenset({"cfg"})), Step(2, 2, strong=frozenset({"r"}))),
            entry(1, Step(1, reads=frozenset({"cfg"}))),
        ]
    )
    assert set(downstream(history, {0: (2,)})) == {0}
    assert set(downstream(history, [0])) == {0, 1}


def test_after_a_statement_that_may_raise_now_the_rest_of_its_cell_is_not_sure():
    calm = entry(
        0, Step(1, 1, strong=frozenset({"r"}), calm_call=True), Step(2, 2, strong=frozenset({"k"}))
    )
    wild = entry(0, Step(1, 1, strong=frozenset({"r"})), Step(2, 2, strong=frozenset({"k"})))
    reader = entry(1, Step(1, reads=frozenset({"k"})))
    assert set(downstream(History([calm, reader]), {0: (1,)})) == {0}
    assert set(downstream(History([wild, reader]), {0: (1,)})) == {0, 1}


def test_what_follows_on_the_same_line_may_not_be_reached_either():
    history = History(
        [
            entry(0, Step(1, 1, strong=frozenset({"r"}), calm_call=True)),
            entry(1, Step(1, 1, reads=frozenset({"r"})), Step(1, 1, strong=frozenset({"m"}))),
            entry(2, Step(1, 1, reads=frozenset({"m"}))),
        ]
    )
    assert set(downstream(history, {0: (1,)})) == {0, 1, 2}


def test_to_add_to_a_list_of_which_another_element_differs_does_not_raise():
    log = frozenset({"log"})
    first = entry(0, Step(1, 1, reads=log, weak=frozenset({"log[0]"}), amends=log, calm_call=True))
    second = Step(1, 1, reads=log, weak=frozenset({"log[1]"}), amends=log, calm_call=True)
    history = History(
        [
            first,
            entry(1, second, Step(2, 2, strong=frozenset({"n"}))),
            entry(2, Step(1, 1, reads=frozenset({"n"}))),
        ]
    )
    assert set(downstream(history, {0: (1,)})) == {0, 1}


@pytest.mark.parametrize(
    ("resource", "via", "sentence"),
    [
        ("client", "ask", "calls `ask`, which reads `client`, set by [1]"),
        ("file:/tmp/out.csv", "", "opens out.csv, written by [1]"),
        ("ambient:cwd", "", "depends on the working directory, changed by [1]"),
        ("helpers:STATE", "", "reads `STATE` of helpers, set by [1]"),
        ("library:json", "", "uses json, whose state [1] may have changed"),
        ("output:3", "", "reads `Out[3]`, shown by [1]"),
    ],
)
def test_reasons_are_in_peoples_words(resource, via, sentence):
    one = frozenset({resource})
    history = History(
        [
            entry(0, Step(1, weak=one)),
            entry(1, Step(1, reads=one, via={resource: via} if via else {})),
        ]
    )
    assert downstream(history, [0])[1] == (sentence,)


def test_a_copy_of_the_taints_is_its_own():
    taints = Taints()
    taints.add("*", entry(0))
    taints.clear("k")
    other = taints.copy()
    other.add("z", entry(0))
    assert set(taints) == {"*"} and set(other) == {"*", "z"}
    assert not other.hits(Step(1, reads=frozenset({"k"}))) and other.hits(
        Step(1, reads=frozenset({"q"}))
    )


def test_the_work_grows_with_what_is_read_not_with_the_square_of_the_cells(monkeypatch):
    from tape_jupyter.dataflow import downstream as module

    asked = []
    real = module.covers, module._find_parts
    monkeypatch.setattr(module, "covers", lambda w, r: asked.append(1) or real[0](w, r))
    monkeypatch.setattr(
        module,
        "_find_parts",
        lambda *a, **k: [asked.append(1) or each for each in real[1](*a, **k)],
    )

    def counted(n):
        asked.clear()
        steps = [
            entry(
                i,
                Step(
                    1,
                    reads=frozenset({f"x{i - 1}", f"m['{i - 1}']"}),
                    strong=frozenset({f"x{i}", f"m['{i}']"}),
                ),
            )
            for i in range(n)
        ]
        assert len(downstream(History(steps), [0])) == n
        return len(asked)

    assert counted(1000) <= 20 * max(1, counted(100))


def test_what_is_left_at_the_end_is_gone_through_once_not_after_each_cell(monkeypatch):
    asked, real = [], Taints.writers
    monkeypatch.setattr(Taints, "writers", lambda self: asked.append(1) or real(self))
    steps = [
        entry(i, Step(1, reads=frozenset({"x"}), weak=frozenset({f"x{i}", "x"}))) for i in range(9)
    ]
    assert traced(History(steps), [0])[1].find_contributors([]) and len(asked) == 1
