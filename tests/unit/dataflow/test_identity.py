"""Which names were bound since the last look, whatever happened to the others."""

import sys

import pytest

from tests.harness import timing
from tape_jupyter.dataflow.identity import Bindings, identity


@pytest.fixture
def names():
    return {"a": [1], "b": [2], "c": [3]}


@pytest.fixture
def bindings(names):
    found = Bindings(names)
    found.read_changes()
    return found


def test_the_first_look_tells_of_every_name(names):
    assert Bindings(names).read_changes() == (names, [])


def test_what_is_new_or_another_object_is_told_once(names, bindings):
    names["b"], names["d"] = [2], 4
    assert bindings.read_changes() == ({"b": [2], "d": 4}, [])
    assert bindings.read_changes() == ({}, [])


def test_an_object_that_changed_is_the_same_object(names, bindings):
    names["a"].append(2)
    assert bindings.read_changes() == ({}, [])


def test_what_is_gone_is_told_and_the_names_behind_it_are_known(names, bindings):
    del names["a"]
    names["d"] = 4
    assert bindings.read_changes() == ({"d": 4}, ["a"])


def test_a_name_that_went_and_came_back_with_another_object_is_bound_anew(names, bindings):
    kept = names.pop("a")
    names["a"] = [*kept]
    assert bindings.read_changes() == ({"a": [1]}, [])


def test_all_is_told_again_after_forget_and_what_is_gone_too(names, bindings):
    bindings.forget()
    del names["c"]
    assert bindings.read_changes() == (names, ["c"])


def test_nothing_is_kept_alive(names, bindings):
    counted = sys.getrefcount(names["a"])
    bindings.read_changes()
    now = sys.getrefcount(names["a"])
    assert now == counted


def test_no_audit_hook_hears_of_a_look(names, bindings):
    heard = []
    sys.addaudithook(lambda event, _: heard.append(event) if on else None)
    on = True
    bindings.read_changes()
    identity(names)
    on = False
    assert heard == []


def test_ten_times_the_names_take_ten_times_as_long_at_most():
    def made(size):
        many = {f"x{n}": [n] for n in range(size)}
        looking = Bindings(many)
        looking.read_changes()
        return lambda: [looking.read_changes() for _ in range(20)]

    assert timing.growth(made, 1_000, 10_000) < 3
