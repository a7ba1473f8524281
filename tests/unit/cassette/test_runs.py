"""Which runs count: of each cell the newest, and what adds to it; which one replaced another."""

from tape_jupyter.cassette.runs import Current, current_runs, newer_than, run_of


def run(name, cell, session="s1", parent=""):
    return {"run": name, "cell": cell, "source": f"of {cell}", "session": session, "parent": parent}


def test_the_newest_recording_of_a_cell_counts_with_what_adds_to_it():
    runs = [
        run("a", "c1"),
        run("b", "c2"),
        run("a2", "c1"),
        run("add", "c1", parent="a2"),
        run("old", "c1", parent="a"),
    ]
    assert [each.id for each in current_runs(map(run_of, runs))] == ["b", "a2", "add"]


def test_the_recording_that_counts_instead_is_named_through_any_number_of_them():
    runs = [
        run("a", "c1"),
        run("add", "c1", parent="a"),
        run("b", "c1"),
        run("other", "c2"),
        run("c", "c1"),
    ]
    assert newer_than(runs, "a") == newer_than(runs, "b") == newer_than(runs, "add") == "c"
    assert newer_than(runs, "c") == newer_than(runs, "other") == newer_than(runs, "unknown") == ""


def test_a_file_that_goes_round_in_a_circle_has_an_end():
    runs = [run("a", "c1"), run("b", "c1"), run("a", "c1"), run("b", "c1")]
    assert newer_than(runs, "a") == "b"
    assert newer_than([run("a", "c1"), run("a", "c1")], "a") == ""


def test_added_one_by_one_or_all_at_once_is_the_same():
    runs = [
        run_of(run(f"r{n}", f"c{n % 3}", f"s{n}", f"r{n - 3}" if n % 4 == 3 else ""))
        for n in range(30)
    ]
    one_by_one = Current()
    for each in runs:
        one_by_one.add(each)
    assert list(one_by_one.kept) == list(Current(runs).kept)
