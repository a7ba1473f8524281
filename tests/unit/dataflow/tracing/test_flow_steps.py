"""What a statement read and may have written, put together."""

import pytest

from tests.flow_cells import tracked  # noqa: F401 - a fixture


@pytest.fixture
def run(tracked):  # noqa: F811
    shell, tracker = tracked

    def cell(source):
        shell.run_cell(source, store_history=True)
        return tracker.history[len(tracker.history) - 1]

    return cell


def test_a_key_is_a_part_of_its_own(run):
    run("memo = {}")
    assert "memo['a']" in run("memo['a'] = 1").writes
    assert run("y = memo['a']").reads >= {"memo['a']"} and "memo" not in run("y = memo['a']").reads


def test_what_may_be_added_another_time_is_written(run):
    run("seen = {'a'}")
    entry = run("seen.add('a')")
    assert "seen" in entry.writes and "seen" not in entry.changed


def test_an_element_that_is_appended_leaves_the_others(run):
    run("xs = [0]")
    assert "xs[1]" in run("xs.append(5)").writes and "xs" in run("xs.append(6)").reads


def test_aliases_are_written_with_the_name(run):
    run("inner = []\nouter = {'k': inner}")
    assert {"inner", "outer"} & run("inner.extend([1])").writes == {"inner", "outer"}


def test_an_attribute_of_a_module_is_set_for_certain(run):
    run("import math\nold = math.tau")
    entry = run("math.tau = old")
    assert "library:math.tau" in entry.strong


def test_the_newest_results_are_read_by_underscore(run):
    run("41")
    assert "output:1" in run("_ + 1").reads


def test_exec_of_an_unknown_text_may_write_anything(run):
    run("code = 'k = 1'")
    assert "*" in run("exec(code)").writes and "*" not in run("exec('k = 2')").writes
    assert "*" not in run("ns = {}\nexec(code, ns)").writes
