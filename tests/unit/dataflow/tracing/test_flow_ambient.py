"""State of the process, taken and put back."""

import decimal
import logging
import math
import os
import random
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest

from tape_jupyter.dataflow.tracing import ambient

CHANGES = {
    "environment": lambda: os.environ.__setitem__("FLOW_AMBIENT", "x"),
    "cwd": lambda: os.chdir("/"),
    "random": random.random,
    "path": lambda: sys.path.append("/nowhere"),
    "decimal": lambda: setattr(decimal.getcontext(), "prec", 7),
    "logging": lambda: logging.getLogger("flow.ambient").setLevel("DEBUG"),
    "warnings": lambda: warnings.simplefilter("ignore", ImportWarning),
    "process": lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 7),
    "numpy random": np.random.rand,
    "numpy": lambda: np.set_printoptions(precision=2),
    "pandas": lambda: pd.set_option("display.precision", 2),
}


@pytest.mark.parametrize("part", CHANGES)
def test_a_part_that_changes_is_told_and_put_back(part):
    before = ambient.take_ambient()
    try:
        CHANGES[part]()
        assert part in ambient.changed_parts(before, ambient.take_ambient())
    finally:
        ambient.restore_part(part, before[part])
    assert part not in ambient.changed_parts(before, ambient.take_ambient())


@pytest.mark.parametrize("part", CHANGES)
@pytest.mark.parametrize("near", [None, {"json", "random", "logging", "gc"}, {"somebodys"}])
def test_a_part_that_code_nearby_may_have_changed_is_looked_at_again(part, near):
    before = ambient.take_ambient()
    try:
        CHANGES[part]()
        asked = (
            part not in ("numpy random", "numpy", "pandas") or near is None or "somebodys" in near
        )
        found = ambient.take_ambient(before, None if near is None else frozenset(near))
        assert (part in ambient.changed_parts(before, found)) == asked
    finally:
        ambient.restore_part(part, before[part])


def test_a_part_that_no_code_nearby_changes_is_as_it_was():
    before = ambient.take_ambient()
    found = ambient.take_ambient(before, frozenset({"json"}))
    for part in ("random", "logging", "process", "numpy random", "numpy", "pandas"):
        assert found[part] is before[part]
    assert (
        found.keys() == before.keys()
        and ambient.take_ambient({}, frozenset()).keys() == before.keys()
    )


def test_nothing_changes_by_looking():
    assert ambient.changed_parts(ambient.take_ambient(), ambient.take_ambient()) == {}


def test_a_logger_gets_its_level_and_handlers_back():
    logger = logging.getLogger("flow.ambient.new")
    before = ambient.take_ambient()
    logger.setLevel("DEBUG")
    logger.addHandler(logging.NullHandler())
    ambient.restore_part("logging", before["logging"])
    assert logger.level == logging.NOTSET and logger.handlers == []


def test_a_time_zone_is_put_back_for_the_clock_as_well(monkeypatch):
    before = ambient.take_ambient()
    there = time.localtime(0).tm_hour
    monkeypatch.setenv("TZ", "Asia/Tokyo" if there != 9 else "UTC")
    time.tzset()
    assert {"environment", "time zone"} <= set(
        ambient.changed_parts(before, ambient.take_ambient())
    )
    ambient.restore_part("environment", before["environment"])
    ambient.restore_part("time zone", before["time zone"])
    assert time.localtime(0).tm_hour == there


def test_a_variable_that_is_gone_comes_back(monkeypatch):
    monkeypatch.setenv("FLOW_AMBIENT_OLD", "was")
    before = ambient.take_ambient()
    del os.environ["FLOW_AMBIENT_OLD"]
    change = ambient.changed_parts(before, ambient.take_ambient())["environment"]
    ambient.restore_part("environment", change.before)
    assert os.environ["FLOW_AMBIENT_OLD"] == "was"
    ambient.restore_part("environment", change.after)
    assert "FLOW_AMBIENT_OLD" not in os.environ


def test_what_replay_lends_a_cell_is_no_change_and_ones_own_key_is(monkeypatch):
    monkeypatch.setitem(ambient.LENT, "FLOW_API_KEY", "placeholder")
    before = ambient.take_ambient()
    monkeypatch.setenv("FLOW_API_KEY", "placeholder")
    assert ambient.changed_parts(before, ambient.take_ambient()) == {}
    monkeypatch.setenv("FLOW_API_KEY", "sk-mine")
    assert set(ambient.changed_parts(before, ambient.take_ambient())) == {"environment"}


def test_what_was_taken_does_not_change_with_what_it_was_taken_of():
    before = ambient.take_ambient()
    sys.path.append("/flow-ambient")
    try:
        assert "/flow-ambient" not in before["path"]
    finally:
        sys.path.remove("/flow-ambient")


def test_a_patched_function_of_a_module_is_a_change_and_is_put_back(monkeypatch):
    before = dict(vars(math))
    monkeypatch.setitem(vars(math), "tau", 1)
    monkeypatch.setitem(vars(math), "flow_new", 2)
    change = ambient.module_changes("math", before)
    assert change.after == {"tau": 1, "flow_new": 2}
    ambient.restore_part("module math", change.before)
    assert (
        math.tau > 6
        and not hasattr(math, "flow_new")
        and ambient.module_changes("math", before) is None
    )


def test_a_part_whose_library_is_not_there_is_left_out_and_its_arrival_is_no_change(monkeypatch):
    before = ambient.take_ambient()
    monkeypatch.delitem(sys.modules, "numpy.random")
    without = ambient.take_ambient()
    assert "numpy random" in before and "numpy random" not in without
    assert "numpy random" not in ambient.changed_parts(without, before)


def test_a_library_that_is_not_as_we_know_it_spoils_nothing(monkeypatch):
    monkeypatch.setitem(
        ambient.PARTS, "broken", ambient.AmbientPart("broken", lambda: 1 / 0, lambda _: None)
    )
    assert "broken" not in ambient.take_ambient() and "cwd" in ambient.take_ambient()
