"""State of the process, taken and put back."""

import decimal
import logging
import os
import random
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from tape_jupyter.flow import ambient

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
    before = ambient.take()
    try:
        CHANGES[part]()
        assert part in ambient.changes(before, ambient.take())
    finally:
        ambient.put(part, before[part])
    assert part not in ambient.changes(before, ambient.take())


def test_nothing_changes_by_looking():
    assert ambient.changes(ambient.take(), ambient.take()) == {}
