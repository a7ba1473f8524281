"""The names of a notebook and how they hang together."""

import sys

from tape_jupyter.flow.variables import MISSING, Variables, is_library, is_shells


def space(source):
    names = {"__name__": "__main__"}
    exec(source, names)
    variables = Variables(names)
    variables.refresh(set(), 1.0)
    return variables


def test_the_closure_of_a_function_is_what_it_and_those_it_calls_read():
    variables = space("tone = 'x'\ndef b(): return tone\ndef a(): return b()\nz = 1")
    assert variables.closure(["a"]) == {"a", "b", "tone"}


def test_names_that_hold_the_same_object_share_it():
    variables = space("log = []\nview = {'k': log}\nfree = []")
    assert variables.sharing(["log"]) == {"log", "view"}


def test_instances_of_one_class_do_not_share_for_that():
    variables = space("class A: pass\na = A(); b = A()")
    assert variables.sharing(["a"]) == {"a"}


def test_only_what_was_reached_new_or_bound_anew_is_looked_at_for_certain():
    variables = space("xs = [1]\nys = [2]")
    variables.namespace["xs"].append(2)
    variables.namespace["new"] = 1
    before = variables.refresh({"xs"}, 1.0)
    assert before["new"] is None and before["xs"].digest != variables.prints["xs"].digest


def test_what_is_gone_is_told():
    variables = space("x = 1")
    del variables.namespace["x"]
    assert variables.refresh(set(), 1.0)["x"] is not None and "x" not in variables.prints


def test_a_users_module_has_variables_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "flow_helper_m.py").write_text("STATE = []\ndef add(x): STATE.append(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    variables = space("from flow_helper_m import add")
    try:
        assert variables.closure(["add"]) >= {"add", "flow_helper_m:STATE"}
        assert variables.value("flow_helper_m:STATE") == [] and variables.value("flow_helper_m:NO") is MISSING
    finally:
        del sys.modules["flow_helper_m"]


def test_the_shells_own_names_are_none_of_the_notebooks():
    assert is_shells("_12") and is_shells("Out") and not is_shells("mood")
    import json

    assert is_library(json) == "json" and is_library([]) == ""
