"""The names of a notebook and how they hang together."""

import dataclasses
import json
import sys

import pytest

from tape_jupyter.dataflow.tracing import variables as module
from tape_jupyter.dataflow.tracing.variables import MISSING, Variables, is_library


def space(source):
    names = {"__name__": "__main__"}
    exec(source, names)
    variables = Variables(names)
    variables.refresh(set(), 1.0)
    return variables


@pytest.fixture
def helper(tmp_path, monkeypatch):
    """A module of the user's beside the notebook."""
    (tmp_path / "flow_helper_m.py").write_text(
        "STATE = []\nFREE = 1\ndef add(x): STATE.append(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("flow_helper_m", None)


@pytest.fixture
def looked(monkeypatch):
    """The values that are looked at from now on."""
    seen, real = [], module.fingerprint
    monkeypatch.setattr(
        module, "fingerprint", lambda value, *a, **k: seen.append(value) or real(value, *a, **k)
    )
    return seen


def test_the_closure_of_a_function_is_what_it_and_those_it_calls_read():
    variables = space("tone = 'x'\ndef b(): return tone\ndef a(): return b()\nz = 1")
    assert variables.closure(["a"]) == {"a", "b", "tone"}


def test_the_closure_of_an_object_is_what_its_methods_read_and_it_ends():
    variables = space(
        "k = 1\nclass A:\n    def m(self): return k, n\ndef n(): return A().m()\na = A()"
    )
    assert variables.closure(["a"]) == {"a", "k", "n", "A"}


def test_names_that_hold_the_same_object_share_it():
    variables = space("log = []\nview = {'k': log}\nfree = []\ndeep = [[{'v': view}]]")
    assert variables.sharing(["log"]) == {"log", "view", "deep"}
    assert variables.holding(variables.value("log")) == {"log", "view", "deep"}


def test_who_holds_what_a_spare_look_found_changed_is_looked_at_with_it(monkeypatch):
    """`view` is too dear to be looked at without a reason."""
    monkeypatch.setattr(module, "SPARE", module.LEAST)
    variables = space("log = []\nview = {'log': log, 'dear': [[n] for n in range(50_000)]}")
    variables.value("log").append(1)
    found = ({*variables.refresh(set(), 1.0).before} & {"log", "view"} for _ in range(1000))
    assert next(filter(None, found), set()) == {"log", "view"}


def test_what_cannot_be_changed_is_shared_by_nobody():
    variables = space("a = 'long text'; b = a; c = (a, 1); d = (a, 1); e = None; f = None")
    assert variables.sharing(["a", "c", "e"]) == set()


def test_instances_of_one_class_do_not_share_for_that():
    variables = space("class A: pass\na = A(); b = A()")
    assert variables.sharing(["a"]) == {"a"}


def test_only_what_was_reached_new_or_bound_anew_is_looked_at_for_certain():
    variables = space("xs = [1]\nys = [2]")
    variables.namespace["xs"].append(2)
    variables.namespace["new"] = 1
    before = variables.refresh({"xs"}, 1.0).before
    assert before["new"] is None and before["xs"].digest != variables.prints["xs"].digest


def test_values_that_cannot_change_are_not_looked_at_again(looked):
    variables = space("a = 'a text of its own'\nn = 10**9 + 7\nimport json")
    looked.clear()
    variables.refresh({"a", "n", "json"}, 1.0)
    still = [variables.value(name) for name in ("a", "n", "json")]
    assert not [each for each in looked if any(each is known for known in still)]


def test_a_value_that_takes_too_long_is_not_looked_at_again_but_may_have_changed(looked):
    variables = space("xs = [1]")
    took_long = dataclasses.replace(variables.prints["xs"], seconds=99.0, large=True)
    variables.prints["xs"] = took_long
    looked.clear()
    variables.refresh({"xs"}, 1.0)
    assert not any(each is variables.value("xs") for each in looked)
    assert variables.prints["xs"].opaque and variables.prints["xs"].vast
    assert variables.sharing(["xs"]) == {"xs"}


def test_a_small_value_is_looked_at_again_however_long_it_took_on_a_busy_machine():
    variables = space("xs = [1]")
    variables.prints["xs"] = dataclasses.replace(variables.prints["xs"], seconds=99.0)
    variables.namespace["xs"].append(2)
    before = variables.refresh({"xs"}, 1.0).before
    assert before["xs"].digest != variables.prints["xs"].digest
    assert not variables.prints["xs"].vast


def test_a_name_bound_anew_to_an_equal_value_is_equal():
    variables = space("xs = [1]")
    variables.namespace["xs"] = [1]
    before = variables.refresh(set(), 1.0).before
    assert before["xs"].digest == variables.prints["xs"].digest


def test_what_is_gone_is_told_and_nobody_shares_with_it():
    variables = space("x = []\ny = [x]")
    del variables.namespace["x"]
    assert variables.refresh(set(), 1.0).before["x"] is not None and "x" not in variables.prints
    assert variables.value("x") is MISSING and variables.sharing(["y"]) == {"y"}


def test_a_users_module_has_variables_of_its_own(helper):
    variables = space("from flow_helper_m import add")
    closed = variables.closure(["add"])
    assert closed >= {"add", "flow_helper_m:STATE"} and "flow_helper_m:FREE" not in closed
    assert (
        variables.value("flow_helper_m:STATE") == []
        and variables.value("flow_helper_m:NO") is MISSING
    )
    assert variables.value("no_such_module:X") is MISSING


def test_a_change_in_a_users_module_is_seen(helper):
    variables = space("from flow_helper_m import add")
    variables.namespace["add"](1)
    before = variables.refresh(variables.closure(["add"]), 1.0).before
    assert before["flow_helper_m:STATE"].digest != variables.prints["flow_helper_m:STATE"].digest


def test_a_builtin_is_no_variable_until_a_cell_binds_it():
    variables = space("x = 1")
    assert variables.resource("", "print") is None and variables.resource("", "x") == "x"
    assert variables.resource("", "not_there_yet") == "not_there_yet"
    variables.ever.add("print")
    assert variables.resource("", "print") == "print"


def test_the_shells_own_names_are_none_of_the_notebooks():
    for name in ("_", "__", "_12", "_i3", "In", "Out", "get_ipython", "__name__", "_exit_code"):
        assert module.is_shells(name)
    for name in ("mood", "_private", "Output", "i1", "ins"):
        assert not module.is_shells(name)


def test_a_library_is_told_by_its_package():
    assert is_library(json) == is_library(json.dumps) == is_library(json.JSONDecoder()) == "json"
    assert is_library([]) == is_library(print) == is_library(None) == ""


def test_what_was_put_back_between_two_cells_is_looked_at_again():
    variables = space("xs = [1]")
    variables.forget()
    assert "xs" in variables.refresh(set(), 1.0).before
