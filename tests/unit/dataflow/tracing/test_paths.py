"""Parts of values that a text names."""

import pytest

from tape_jupyter.dataflow.tracing import paths
from tape_jupyter.dataflow.tracing.variables import MISSING


class Plain:
    def __init__(self):
        self.v = {"k": [1, 2]}

    @property
    def loud(self):
        raise AssertionError

    def __getattr__(self, name):
        raise AssertionError(name)


@pytest.mark.parametrize(
    ("path", "value"), [("x.v", {"k": [1, 2]}), ("x.v['k']", [1, 2]), ("x.v['k'][1]", 2)]
)
def test_keys_of_dicts_and_attributes_of_objects_are_found(path, value):
    assert paths.value_at(path, Plain()) == value


@pytest.mark.parametrize("path", ["x.loud", "x.gone", "x.v['no']", "x.v['k'][9]"])
def test_no_code_runs_to_find_one(path):
    assert paths.value_at(path, Plain()) is MISSING


def test_a_path_has_steps():
    assert paths.steps("a.b['k'][-1].c()") == [
        ("attr", "b"),
        ("item", "k"),
        ("item", -1),
        ("call", "c"),
    ]
    assert paths.first("helpers.STATE['a']") == "STATE" and paths.index("Out[3]") == 3


def test_what_ipython_expands():
    assert list(paths.expanded("echo $r {s.t} $$x")) == ["r", "s.t"]
