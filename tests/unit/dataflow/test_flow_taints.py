"""What may differ covers what is read of it, found without looking at all of it."""

import random

import pytest

from tests.harness import timing
from tape_jupyter.dataflow.history import EVERYTHING, Execution, Step, covers, name_of
from tape_jupyter.dataflow.downstream import Differing, Taints

PARTS = ["", "", ".x", ".y", "['a']", "['b']", "['a'].z", "[0]", "[10]", "[*]", ".x[*]"]
RESOURCES = [
    *(f"{name}{part}" for name in ("a", "ab", "m", "h:S", "h:T") for part in PARTS),
    *(
        "*",
        "file:/t/a",
        "file:/t/a.csv",
        "file:*",
        "ambient:cwd",
        "output:3",
        "output:*",
        "library:pd",
        "library:pd.x",
    ),
]


def entry(index):
    return Execution(index, f"c{index}", "", index + 1)


@pytest.mark.parametrize("seed", range(60))
def test_a_read_is_hit_where_something_tainted_covers_it_and_only_there(seed):
    chance, taints, tainted = random.Random(seed), Taints(), {}
    for index in range(25):
        resource = chance.choice(RESOURCES[:-9] if chance.random() < 0.9 else RESOURCES)
        if chance.random() < 0.7:
            tainted[resource] = index
            taints.add(resource, entry(index))
        elif EVERYTHING not in tainted:
            for each in [
                t
                for t in tainted
                if t == resource or t.startswith((f"{resource}.", f"{resource}["))
            ]:
                del tainted[each]
            taints.clear(resource)
    assert sorted(taints) == sorted(tainted)
    for read in RESOURCES:
        covered = any(covers(each, read) for each in tainted)
        hits = taints.hits(Step(1, reads=frozenset({read})))
        assert taints.reach([read]) == bool(hits)
        if EVERYTHING not in tainted:
            assert bool(hits) == covered, read
        assert all(
            covers(written, read) and by.index == tainted[written] for _, written, by in hits
        )


def test_a_name_bound_since_any_name_may_differ_does_not():
    taints = Taints()
    taints.add(EVERYTHING, entry(0))
    taints.clear("mood")
    assert not taints.reach(["mood"]) and taints.reach(["tone"]) and not taints.reach(["file:/a"])
    assert name_of("tone") == "tone"


def test_what_differs_is_known_after_each_entry_that_depends_on_the_change():
    taints, differing = Taints(), Differing()
    taints.add("log[*]", entry(0))
    differing.passed(0, taints, depends=True)
    taints.add("log['a']", entry(1))
    taints.clear("log[*]")
    differing.passed(1, taints, depends=True)
    taints.clear("log")
    differing.passed(2, taints, depends=True)
    assert differing.after(0, "log") and differing.after(1, "log")
    assert not differing.after(2, "log") and not differing.after(0, "mood")
    assert differing.after(7, "mood"), "of an entry that does not depend on it, nothing is known"
    differing.add(2, "log")
    assert differing.after(2, "log")
    taints.add(EVERYTHING, entry(3))
    differing.passed(3, taints, depends=True)
    assert differing.after(3, "mood")


def test_ten_times_the_parts_of_a_name_take_hardly_more_than_ten_times_as_long():
    def made(size):
        def work():
            taints = Taints()
            for n in range(size):
                taints.add(f"memo['k{n}']", entry(n))
                taints.hits(Step(1, reads=frozenset({"memo", f"memo['k{n + 1}']"})))
            for n in range(size):
                taints.clear(f"memo['k{n}']")

        return work

    assert timing.growth(made, 300, 3_000) < 3
