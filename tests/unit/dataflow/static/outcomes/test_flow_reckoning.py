"""What is done after something that may fail depends on that."""

from tape_jupyter.dataflow.static.outcomes import values
from tape_jupyter.dataflow.history import REPLY
from tests.flow_cells import run, tracked  # noqa: F401 - fixtures


def test_what_comes_after_something_that_may_raise_depends_on_that(run):
    step = run(
        "n, m = 0, []\ndef count(p):\n    global n\n    k = int(outside(p))\n    m.append(1)\n    n += 1",
        "count('3')",
    )
    assert REPLY in step.needs["n"] and REPLY in step.needs["m"]


def test_a_statement_that_goes_on_for_thousands_of_lines_is_not_read_to_its_end(run):
    lines = "\n".join(f"    a{n} = p + {n}" for n in range(values.NODES))
    step = run(f"def long(p):\n{lines}\n    return outside(p)", "a = long(1)")
    assert step.needs.get("a") is None
